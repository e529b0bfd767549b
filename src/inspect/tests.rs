use std::collections::BTreeSet;

use crate::{Attention, DType, Device, Reduction, Target, Tensor, compile, compile_for, profile};

fn input(shape: &[usize]) -> Tensor {
    Tensor::placeholder(shape, DType::F32)
}

/// The lines of what is apart.
fn apart(text: &str) -> &str {
    text.split_once("apart:\n").map_or("", |(_, lines)| lines)
}

#[test]
fn placeholders_have_the_kernels_of_data() {
    let explained = |x: Tensor, w: Tensor| {
        let y = (x.matmul(&w) + 1.0).relu().softmax(1);
        let text = y.explain().unwrap().to_string();
        let source = |target: &Target| y.compile_for(target).unwrap().source();
        (text, source(&Target::cpu()), source(&Target::cuda("sm_90")))
    };
    let data = |shape: [usize; 2]| Tensor::from_vec(vec![1.0f32; shape[0] * shape[1]], shape);
    assert_eq!(explained(input(&[32, 48]), input(&[48, 64])), explained(data([32, 48]), data([48, 64])));
    // Where a library does it on a CPU.
    let x = input(&[100, 100]);
    assert!(x.det().explain().unwrap().to_string().contains("by a library"));
    assert!(x.det().compile_for(&Target::cuda("sm_80")).unwrap().kernels().len() > 1);
}

#[test]
fn placeholders_have_no_values() {
    let x = input(&[4]);
    let elsewhere = Device::cpu_virtual(1);
    let tensors =
        [x.clone(), &x + 1.0, x.to(&elsewhere), x.to(&elsewhere).sum(0), x.to(&Device::interpreter()).exp()];
    for tensor in &tensors {
        assert!(tensor.explain().is_ok());
        for error in [tensor.eval().unwrap_err(), tensor.to_vec::<f32>().unwrap_err()] {
            assert!(error.to_string().starts_with("placeholder: it has no values"), "{error}");
            assert!(error.to_string().contains("src/inspect/tests.rs"), "{error}");
        }
    }
    assert!(x.to_string().contains("no values"), "{x}");
    // A function is recorded for its type, and not called with it, nor with one that it has captured.
    let double = compile(|x: Tensor| x * 2.0);
    assert_eq!(double.executable(&x).unwrap().explain().unwrap().kernels(), 1);
    assert!(double.call(&x).is_err());
    let captured = x.clone();
    assert!(compile(move |y: Tensor| y + &captured).executable(input(&[4])).is_err());
    let too_large = Tensor::placeholder([1 << 40, 1 << 40], DType::F32);
    assert!(too_large.explain().unwrap_err().to_string().starts_with("placeholder: shape "));
}

#[test]
fn gpus_without_asynchronous_copies_have_no_stages() {
    let y = input(&[1024, 1024]).matmul(&input(&[1024, 1024]));
    let stages = |architecture: &str| {
        let program = y.compile_for(&Target::cuda(architecture)).unwrap();
        program.kernels()[0].schedule().parameter("stages").map(str::to_owned)
    };
    for architecture in ["sm_70", "sm_72", "sm_75"] {
        assert_eq!(stages(architecture), None, "{architecture}");
    }
    for architecture in ["sm_80", "sm_86", "sm_90", "sm_120"] {
        assert!(stages(architecture).is_some(), "{architecture}");
    }
}

#[test]
fn kernels_of_one_name_are_files_of_their_own() {
    let program = input(&[256, 131_072]).softmax(1).compile_for(&Target::cuda("sm_90")).unwrap();
    let names: BTreeSet<&str> = program.kernels().iter().map(|kernel| kernel.name()).collect();
    assert!(program.kernels().len() > names.len(), "{names:?}");
    let source = program.source();
    let count = program.kernels().len();
    for (number, kernel) in program.kernels().iter().enumerate() {
        let heading = format!("// ---- file {} of {count} ----\n// {}: ", number + 1, kernel.name());
        assert_eq!(source.matches(&heading).count(), 1, "{source}");
        assert!(source.contains(kernel.source()));
    }
    let alone = input(&[256, 100]).softmax(1).compile_for(&Target::cuda("sm_90")).unwrap();
    assert!(!alone.source().contains("// ----"));
}

#[test]
fn a_profile_says_what_was_done_beside_kernels() {
    let x = Tensor::rand([64, 64], 1);
    x.eval().unwrap();
    let there = x.to(&Device::interpreter());
    there.eval().unwrap();
    let (result, interpreted) = profile(|| there.matmul(&there).eval());
    result.unwrap();
    let text = interpreted.to_string();
    assert!(text.contains(" interpreting, without kernels, ") && !text.contains("compiling"), "{text}");
    assert!(interpreted.seconds_interpreting() <= interpreted.seconds());
    let (result, interpreted) = profile(|| x.to(&Device::cpu_interpreted()).exp().eval());
    result.unwrap();
    assert!(interpreted.seconds_interpreting() > 0.0);

    let (result, product) = profile(|| (x.matmul(&x) + 0.125).relu().eval());
    result.unwrap();
    let text = product.to_string();
    assert!(text.contains(" compiling and loading kernels, ") && !text.contains("interpreting"), "{text}");
    assert!(text.contains("GFLOP/s") && product.chrome_trace().contains("GFLOP/s"), "{text}");
    assert_eq!(product.kernels()[0].flops, 2 * 64 * 64 * 64);
    // Sums of what does not broadcast are no products.
    let (result, sums) = profile(|| (&x * &x).sum(1).eval());
    result.unwrap();
    assert_eq!(sums.kernels()[0].flops, 0);
    assert!(!sums.to_string().contains("GFLOP/s"), "{sums}");
    let image = Tensor::rand([1, 3, 8, 8], 2);
    let weight = Tensor::rand([4, 3, 3, 3], 3);
    crate::eval([&image, &weight]).unwrap();
    let (result, convolution) = profile(|| image.conv2d(&weight, None, 1, 0).eval());
    result.unwrap();
    let flops: u64 = convolution.kernels().iter().map(|kernel| kernel.flops).sum();
    assert_eq!(flops, 2 * 4 * 6 * 6 * 3 * 9);
}
