//! Values that are costly to compute and that several walks along a row need: kept in registers on CUDA, computed again
//! elsewhere, and the same in both.

use lazuli::{DType, Target, Tensor};

use crate::common::data::floats;
use crate::common::{Output, check_fused, near};

fn costly(x: &Tensor) -> Vec<Output> {
    let unit = match x.dtype().unwrap() {
        DType::BF16 => 2f64.powi(-8),
        DType::F16 => 2f64.powi(-11),
        DType::F64 => 2f64.powi(-53),
        _ => 2f64.powi(-24),
    };
    let length = x.shape().unwrap()[1];
    let within = |name: &str, y: Tensor| near(name, y, 256.0 * unit, 256.0 * unit);
    let erf = x.erf();
    let noise = -(-(x.rand_like(3) + 1e-3).log()).log();
    let scaled = (x.sin() / (x.square() + 1.0)).exp();
    let guarded = x.slice(1, 0..length as isize - 1).pad(&[(0, 0), (1, 0)], 0.5).tanh();
    vec![
        within("norm of erf", erf.layer_norm([length], None, None, 1e-3)),
        within("erf", erf),
        within("softmax of noise", (x + noise).softmax(1)),
        within("share", &scaled / scaled.sum_keepdim(1)),
        within("guarded", &guarded - guarded.mean_keepdim(1)),
        within("its maximum", guarded.max(1)),
    ]
}

#[test]
fn of_every_length() {
    for length in [9, 31, 32, 33, 100, 1023, 1024, 1025, 5000, 16_384, 20_000] {
        let rows = if length > 4000 { 2 } else { 5 };
        check_fused(&format!("rows of {length}"), |device| {
            costly(&floats(device, DType::F32, [rows, length], 2.0, length as u64))
        });
    }
    for dtype in [DType::F16, DType::BF16, DType::F64] {
        for length in [33, 1024] {
            check_fused(&format!("{dtype} rows of {length}"), |device| {
                costly(&floats(device, dtype, [3, length], 2.0, 7))
            });
        }
    }
    check_fused("two axes", |device| {
        let x = floats(device, DType::F32, [6, 3, 10, 24], 2.0, 8);
        let erf = (&x * 0.5).erf();
        let middle = x.permute([1, 0, 2, 3]).cos().exp();
        vec![
            near("rows", &erf / erf.square().sum_keepdim([2, 3]).sqrt(), 1e-5, 1e-6),
            near("channels", &middle / middle.sum_keepdim([1, 2, 3]), 1e-5, 1e-7),
        ]
    });
}

/// A short reduction is a loop of the thread: what it computes on its way is no one value.
#[test]
fn loops_within_rows() {
    for length in [50, 1024, 3000] {
        check_fused(&format!("sums of four below rows of {length}"), |device| {
            let of = |rows: usize| floats(device, DType::F32, [rows, length], 2.0, rows as u64);
            let (x, y) = (of(4), of(6));
            let products = x.erf().sum_keepdim(0) * (&y * 0.125).exp();
            let plain = x.sum_keepdim(0) * &y;
            vec![
                near("softmax", products.softmax(1), 1e-4, 1e-6),
                near("variance", products.var(1, 0), 1e-4, 1e-6),
                near("softmax of a sum", plain.softmax(1), 1e-4, 1e-6),
            ]
        });
    }
}

/// What is kept is computed once.
#[test]
fn once_in_the_source() {
    let x = Tensor::from_vec(vec![1.0f32; 64 * 1024], [64, 1024]);
    let erf = x.erf();
    for (y, function) in [
        (x.softmax(1), "expf("),
        (&erf / erf.square().sum_keepdim(1).sqrt(), "erff("),
        ((&x + x.rand_like(1)).softmax(1), "= lz_random"),
    ] {
        let program = y.compile_for(&Target::cuda("sm_90")).unwrap();
        let [kernel] = program.kernels() else { panic!("{}", program.explain()) };
        let calls = kernel.source().split("extern").last().unwrap().matches(function).count();
        assert_eq!(calls, 1, "{function}\n{}", kernel.source());
    }
}
