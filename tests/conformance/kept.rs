//! Values that are costly to compute and that several sweeps along a row need: kept in registers or shared memory on CUDA,
//! on the stack on the CPU, and the same as if computed again.

use lazuli::{DType, Device, Target, Tensor};

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

/// What is costly and the same in all rows, or along the inner axis of a row: weights that follow from the position.
#[test]
fn weights_by_position() {
    let weights = |device: &Device, n: usize| {
        (Tensor::arange(0i64, n as i64, 1).to(device).cast(DType::F32) * 0.37).sin().exp().erf()
    };
    let twice = |x: &Tensor, w: &Tensor, axes: &[isize]| {
        let total = |y: &Tensor| y.sum_keepdim(axes) / 64;
        let y = x * w;
        let z = (&y - total(&y)).square() * w;
        (&z - total(&z)) * w
    };
    for n in [3, 8, 16, 40] {
        check_fused(&format!("weights of {n}"), |device| {
            let x = floats(device, DType::F32, [37, n], 1.0, 1);
            let (outer, inner) = (
                floats(device, DType::F32, [9, n, 5], 1.0, 2),
                floats(device, DType::F32, [9, 5, n], 1.0, 3),
            );
            let w = || weights(device, n);
            vec![
                near("rows", twice(&x, &w(), &[1]), 1e-4, 1e-5),
                near("outer", twice(&outer, &w().unsqueeze(1), &[1, 2]), 1e-4, 1e-5),
                near("inner", twice(&inner, &w(), &[1, 2]), 1e-4, 1e-5),
                near("down", twice(&outer.permute([1, 2, 0]), &w().reshape([n, 1, 1]), &[0, 1]), 1e-4, 1e-5),
            ]
        });
    }
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
    let noisy = (&x + x.rand_like(1)).softmax(1);
    let half = x.cast(DType::F16);
    half.eval().unwrap();
    for (y, cuda, c) in [
        (x.softmax(1), "expf(", "lz_exp_f32v("),
        (&erf / erf.square().sum_keepdim(1).sqrt(), "erff(", "lz_erf_f32v("),
        (noisy, "= lz_random", "lz_random_after_f32"),
        (half.softmax(1), "expf(", "lz_exp_f32v("),
        (half.softmax(1), "lz_f32_to_f16(", "lz_narrow_f16("),
    ] {
        for (target, function, before) in
            [(Target::cuda("sm_90"), cuda, "__global__"), (Target::cpu(), c, "_blocks(")]
        {
            let program = y.compile_for(&target).unwrap();
            let [kernel] = program.kernels() else { panic!("{}", program.explain()) };
            let (_, body) = kernel.source().split_once(before).unwrap();
            assert_eq!(body.matches(function).count(), 1, "{function}\n{}", kernel.source());
            assert!(!body.contains("lz_round_f16("), "{}", kernel.source());
        }
    }
}

/// Rows that registers do not hold, and a block's shared memory does: of several dtypes and vector widths, of several
/// axes, with loads and computed values kept, and so many operations that no sweep is unrolled wholly.
#[test]
fn rows_in_shared_memory() {
    let check = |name: &str, tolerance: f64, result: &dyn Fn(&Device) -> Tensor| {
        let program = result(&Device::cpu()).compile_for(&Target::cuda("sm_90")).unwrap();
        let schedules: Vec<String> = program.kernels().iter().map(|k| k.schedule().to_string()).collect();
        assert!(matches!(&schedules[..], [one] if one.contains(", shared_bytes=")), "{name}: {schedules:?}");
        check_fused(name, |device| vec![near("result", result(device), tolerance, 1e-7)]);
    };
    let values = |device: &Device, dtype: DType, shape: &[usize], seed: u64| {
        let x = floats(device, DType::F32, shape.to_vec(), 4.0, seed).cast(dtype);
        x.eval().unwrap();
        x
    };
    for (dtype, length, tolerance) in [
        (DType::F32, 33_000, 1e-4),
        (DType::F32, 40_001, 1e-4),
        (DType::F32, 57_600, 1e-4),
        (DType::F64, 20_002, 1e-11),
        (DType::BF16, 70_000, 8e-3),
        (DType::F16, 100_001, 1e-3),
    ] {
        check(&format!("{dtype} softmax of {length}"), tolerance, &|device| {
            values(device, dtype, &[3, length], 1).softmax(1)
        });
    }
    check("a sum instead of its parts", 1e-4, &|device| {
        let sum = values(device, DType::F32, &[3, 40_000], 1) + values(device, DType::F32, &[3, 40_000], 2);
        &sum / (sum.square().mean_keepdim(1) + 1e-5).sqrt()
    });
    check("random numbers", 1e-4, &|device| {
        (values(device, DType::F32, &[3, 36_000], 1) + Tensor::rand([3, 36_000], 5)).softmax(1)
    });
    check("several axes", 1e-4, &|device| {
        let x = values(device, DType::F32, &[2, 3, 210, 160], 1).permute([1, 0, 2, 3]);
        &x - x.mean_keepdim([2, 3])
    });
    check("a mean and a variance", 1e-4, &|device| {
        values(device, DType::F32, &[3, 36_000], 1).layer_norm([36_000], None, None, 1e-5)
    });
    // Sines of up to 40 differ in their last bits, and 70 of them may cancel.
    check("many operations", 1e-3, &|device| {
        let x = values(device, DType::F32, &[3, 40_000], 1);
        let waves = (1..70).fold(x.clone(), |sum, n| sum + (&x * (f64::from(n) / 7.0)).sin());
        &waves - waves.mean_keepdim(1)
    });
}
