//! Loops that are written out, of other lengths; and images of other widths that borders are laid around.

use lazuli::{DType, Device, PadMode, Reduction, Tensor, grad, s, stats};

use super::{MOST_KERNELS, alone, ramp};

/// Kernels that a call compiles or loads.
fn loaded(call: impl FnOnce()) -> u64 {
    let before = stats();
    call();
    stats().kernels_compiled + stats().disk_hits - before.kernels_compiled - before.disk_hits
}

/// A recurrent network whose steps are written out, with its gradient: kernels have whole steps, so that those of one
/// length are those of others.
#[test]
fn few_kernels_serve_loops_that_are_written_out() {
    let _alone = alone();
    let device = Device::cpu();
    let (w, u) = (ramp(&device, &[3, 8]) * 0.1, ramp(&device, &[8, 8]) * 0.1);
    lazuli::eval([&w, &u]).unwrap();
    let run = |steps: usize| {
        let x = ramp(&device, &[steps, 2, 3]);
        x.eval().unwrap();
        let cell = |h: Tensor, t: usize| (x.select(0, t as isize).matmul(&w) + h.matmul(&u)).tanh();
        let h = (0..steps).fold(Tensor::zeros([2, 8], DType::F32), cell);
        let loss = h.mse_loss(Tensor::ones([2, 8], DType::F32), Reduction::Mean);
        let gradients = grad(&loss, &[w.clone(), u.clone()]);
        loaded(|| lazuli::eval(gradients.iter().chain([&loss])).unwrap())
    };
    let first = run(60);
    assert!(first <= 30, "{first} kernels of 60 steps");
    run(61);
    run(64);
    let compiled = run(72) + run(77) + run(90);
    assert!(compiled <= 2 * MOST_KERNELS as u64, "{compiled} kernels");
}

/// Where the border repeats what is inside, positions are compared with the width in lanes.
#[test]
fn few_kernels_serve_borders_of_every_width() {
    let _alone = alone();
    let device = Device::cpu();
    let filter = ramp(&device, &[1, 1, 3, 3]);
    filter.eval().unwrap();
    for mode in [PadMode::Replicate, PadMode::Reflect, PadMode::Circular] {
        let run = |width: usize| {
            let x = ramp(&device, &[20, width]);
            x.eval().unwrap();
            let p = x.pad_with([[1, 1], [1, 1]], mode);
            let rows = p.i(s![1..21]);
            let slopes = rows.i(s![.., 2..]) - rows.i(s![.., ..-2]);
            let filtered = p.unsqueeze(0).unsqueeze(0).conv2d(&filter, None, 1, 0);
            loaded(|| slopes.eval().unwrap()) + loaded(|| filtered.eval().unwrap())
        };
        let compiled: u64 = (0..12).map(|n| run(150 - n)).sum();
        assert!(compiled <= 4 * MOST_KERNELS as u64, "{mode:?}: {compiled} kernels");
        assert_eq!(run(137), 0, "{mode:?}");
    }
}
