//! A kernel of your own, under test: its source is a snapshot that a reviewer reads like any other diff.
//!
//! ```text
//! cargo run  --example snapshot_test     prints the kernel
//! cargo test --example snapshot_test     compares it with snapshots/, checks its numbers
//! ```
//!
//! Neither needs a GPU or a CUDA installation. In a project of yours `swish_scale` lives in the library, and the
//! tests in `tests/`. After a change on purpose, `INSTA_UPDATE=always cargo test` writes the new snapshots, and
//! version control shows what became of the kernels.

use lazuli::{Result, Target, Tensor};

/// `x * sigmoid(x) * weight`, the weight by column.
fn swish_scale(x: &Tensor, weight: &Tensor) -> Tensor {
    x.silu() * weight
}

fn main() -> Result<()> {
    let (x, weight) = (Tensor::rand([1024, 256], 1), Tensor::rand([256], 2));
    lazuli::eval([&x, &weight])?; // inputs with data: else their random numbers would be fused in as well
    let y = swish_scale(&x, &weight);
    let program = y.compile_for(&Target::cuda("sm_90"))?;
    println!("{}", program.explain());
    for kernel in program.kernels() {
        println!("{} has {} and these parameters:", kernel.name(), kernel.launches()[0]);
        kernel.arguments().iter().for_each(|argument| println!("    {argument}"));
    }
    println!("\n{}", program.source());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use lazuli::Fusion;

    /// Data does not matter to the kernel, only shapes and dtypes do.
    fn recorded() -> Tensor {
        let x = Tensor::from_vec(vec![0.5f32; 1024 * 256], [1024, 256]);
        let weight = Tensor::from_vec(vec![2.0f32; 256], [256]);
        swish_scale(&x, &weight)
    }

    #[test]
    fn the_kernel_is_the_one_that_was_reviewed() {
        let program = recorded().compile_for(&Target::cuda("sm_90")).unwrap();
        insta::with_settings!({ snapshot_path => "../snapshots", prepend_module_to_snapshot => false }, {
            insta::assert_snapshot!("example_swish_scale", program.source());
        });
    }

    #[test]
    fn it_stays_one_kernel_that_moves_no_byte_too_many() {
        let plan = recorded().explain().unwrap();
        assert_eq!(plan.kernels(), 1, "{plan}");
        assert_eq!(plan.bytes_moved(), plan.least_bytes(), "{plan}");
    }

    #[test]
    fn its_numbers_are_those_of_the_formula() {
        let inputs = [-2.0f32, -0.5, 0.0, 0.5, 2.0, 100.0];
        let x = Tensor::from_vec(inputs.to_vec(), [2, 3]);
        let weight = Tensor::from_vec(vec![1.0f32, 2.0, 3.0], [3]);
        for fusion in [Fusion::On, Fusion::Off] {
            let results = lazuli::with_fusion(fusion, || swish_scale(&x, &weight).to_vec::<f32>()).unwrap();
            for ((result, x), weight) in results.iter().zip(inputs).zip([1.0, 2.0, 3.0, 1.0, 2.0, 3.0]) {
                let expected = x / (1.0 + (-x).exp()) * weight;
                assert!((result - expected).abs() <= 1e-6 * expected.abs().max(1.0), "{result} {expected}");
            }
        }
    }
}
