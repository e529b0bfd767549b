//! Scans against plain loops: every operation, direction and axis, lengths on both sides of the schedules' limits, and
//! what fuses with them.

use lazuli::{DType, Device, ScanOrder, Target, Tensor};

use crate::common::data::ordinary;
use crate::common::{check, check_fused, devices, exact, near};

/// The scan of one row of whole numbers, in order.
fn running(row: &[f32], order: (bool, bool), first: f32, combine: fn(f32, f32) -> f32) -> Vec<f32> {
    let (reverse, exclusive) = order;
    let mut running = first;
    let mut step = |x: &f32| {
        let before = running;
        running = combine(running, *x);
        if exclusive { before } else { running }
    };
    match reverse {
        false => row.iter().map(&mut step).collect(),
        true => {
            let mut result: Vec<f32> = row.iter().rev().map(&mut step).collect();
            result.reverse();
            result
        }
    }
}

#[test]
fn every_length_and_order() {
    for length in [1usize, 2, 31, 33, 64, 127, 256, 300, 1024, 2000, 5000] {
        let values: Vec<f32> = (0..3 * length).map(|i| ((i * 7919) % 17) as f32 - 8.0).collect();
        for device in devices().into_iter().chain([Device::interpreter()]) {
            let x = Tensor::from_slice(&values, [3, length]).to(&device);
            // Along axis 0 of its transpose, whose layout is made first.
            let columns = Tensor::from_vec(x.t().to_vec::<f32>().unwrap(), [length, 3]).to(&device);
            for (reverse, exclusive) in [(false, false), (true, false), (false, true), (true, true)] {
                let mut order = ScanOrder::new();
                order = if reverse { order.reverse() } else { order };
                order = if exclusive { order.exclusive() } else { order };
                let sums: Vec<f32> = values
                    .chunks(length)
                    .flat_map(|row| running(row, (reverse, exclusive), 0.0, |a, b| a + b))
                    .collect();
                let context = format!("{length}, {order:?} on {device}");
                assert_eq!(x.cumsum_with(1, order).to_vec::<f32>().unwrap(), sums, "{context}");
                let down = columns.cumsum_with(0, order).t();
                assert_eq!(down.to_vec::<f32>().unwrap(), sums, "columns of {context}");
            }
            let most: Vec<f32> = values
                .chunks(length)
                .flat_map(|row| running(row, (false, false), f32::NEG_INFINITY, f32::max))
                .collect();
            assert_eq!(x.cummax(-1).to_vec::<f32>().unwrap(), most, "{length} on {device}");
            let least: Vec<f32> = values
                .chunks(length)
                .flat_map(|row| running(row, (true, false), f32::INFINITY, f32::min))
                .collect();
            let reversed = columns.cummin_with(0, ScanOrder::new().reverse()).t();
            assert_eq!(reversed.to_vec::<f32>().unwrap(), least, "{length} on {device}");
        }
    }
}

#[test]
fn every_dtype_and_axis() {
    for dtype in DType::ALL {
        check(&format!("scans of {dtype}"), |device| {
            let x = ordinary(device, dtype, [3, 5, 7, 4], 3);
            let mut outputs = Vec::new();
            for axis in 0..4 {
                outputs.push(exact(format!("cummax along {axis}"), x.cummax(axis)));
                outputs.push(exact(
                    format!("cummin along {axis}"),
                    x.cummin_with(axis, ScanOrder::new().reverse()),
                ));
                let (sum, product) =
                    (x.cumsum(axis), x.ones_like().cumprod_with(axis, ScanOrder::new().exclusive()));
                let eps = dtype.finfo().map_or(0.0, |info| info.eps);
                outputs.push(near(format!("cumsum along {axis}"), sum, 8.0 * eps, 64.0 * eps));
                outputs.push(exact(format!("cumprod along {axis}"), product));
            }
            outputs
        });
    }
}

#[test]
fn special_values() {
    check("scans of special values", |device| {
        let values = [1.0f32, f32::INFINITY, 2.0, f32::NEG_INFINITY, 3.0, f32::NAN, 4.0, -0.0];
        let x = Tensor::from_slice(&values, [8]).to(device);
        vec![
            exact("cumsum", x.cumsum(0)),
            exact("cumprod", x.cumprod(0)),
            exact("cummax", x.cummax(0)),
            exact("cummin", x.cummin_with(0, ScanOrder::new().reverse())),
            exact("of nothing", Tensor::zeros([3, 0], DType::F32).to(device).cumsum(1)),
            exact("of one", Tensor::ones([3, 1], DType::F32).to(device).cumsum(1)),
        ]
    });
}

#[test]
fn scans_among_other_operations() {
    check("scans fused", |device| {
        let x = ordinary(device, DType::F32, [6, 130], 1);
        let mask = ordinary(device, DType::F32, [130], 2).gt(0.0);
        let sum = (&x * 2.0 + 1.0).cumsum(1);
        let both = mask.where_(&sum, &x) - x.cummax(1);
        let of_view = x.t().cumsum(0) * 0.5;
        let of_reduction = (&x - x.mean_keepdim(1)).cumsum(1);
        let reduced = x.cumsum(1).sum(1);
        let moved = x.cumsum(0).slice(1, 3..50) + 1.0;
        let twice = x.cumsum(1).cumsum(0);
        vec![
            near("both", both, 1e-5, 1e-4),
            near("the sum", sum, 1e-5, 1e-4),
            near("of a view", of_view, 1e-5, 1e-4),
            near("of a reduction", of_reduction, 1e-5, 1e-4),
            near("reduced", reduced, 1e-5, 1e-2),
            near("moved", moved, 1e-5, 1e-4),
            near("twice", twice, 1e-5, 1e-3),
        ]
    });
    check_fused("long scans", |device| {
        let x = ordinary(device, DType::F32, [40_000], 1);
        let y = ordinary(device, DType::F16, [70, 3, 90], 2);
        vec![
            near("long", x.cumsum(0), 1e-5, 2e-3),
            near("middle", y.cumsum(1) * 2.0, 2e-3, 2e-3),
            near("outer", y.cumsum(0), 2e-3, 3e-2),
        ]
    });
}

/// Prologue and epilogue are part of the scan's kernel, which reads and writes once.
#[test]
fn one_kernel() {
    let x = Tensor::rand([512, 1000], 1);
    let scanned = ((&x * 2.0).exp().cumsum(1) / 3.0).relu();
    assert_eq!(scanned.compile_for(&Target::cuda("sm_90")).unwrap().kernels().len(), 1);
    let columns = (&x - 1.0).cumsum_with(0, ScanOrder::new().reverse()) * &x;
    assert_eq!(columns.compile_for(&Target::cuda("sm_90")).unwrap().kernels().len(), 1);
    let mean = x.cumsum(1) / (Tensor::arange(0.0f32, 1000.0, 1.0) + 1.0);
    assert_eq!(mean.compile_for(&Target::cuda("sm_90")).unwrap().kernels().len(), 1);
}
