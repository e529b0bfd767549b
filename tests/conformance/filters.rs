//! Long windows with weights, as filters have: neighbouring results in lanes, what they read laid out before.

use lazuli::{Conv1d, Conv2d, DType, Device, Tensor};

use crate::common::data::{floats, mixed};
use crate::common::{check_on_cpu, exact, near};

fn of(device: &Device, shape: &[usize], seed: u64) -> Tensor {
    floats(device, DType::F32, shape.to_vec(), 1.0, seed)
}

/// Fewer results than a block, whole ones, and some beside; borders that windows do not reach over, and that are most of a line.
#[test]
fn filters_of_any_length() {
    for (length, taps) in [(90, 40), (300, 65), (577, 129), (70, 70), (1100, 300)] {
        check_on_cpu(&format!("{taps} taps over {length}"), |device| {
            let (x, weight) = (of(device, &[2, 1, length], 1), of(device, &[1, 1, taps], 2));
            let channels = of(device, &[2, 3, length], 3);
            let each = Conv1d::new().groups(3).padding(taps / 2);
            let windows = x.squeeze(1).unfold(1, taps, 1);
            let by = weight.reshape([taps]);
            vec![
                near("inside", x.conv1d(&weight, None, 1, 0), 1e-5, 1e-4),
                near("over a border", x.conv1d(&weight, None, 1, taps / 2), 1e-5, 1e-4),
                near("every third", x.conv1d(&weight, None, 3, taps / 2), 1e-5, 1e-4),
                near(
                    "far",
                    channels.conv1d_with(&of(device, &[3, 1, taps / 3], 4), None, each.dilation(2)),
                    1e-5,
                    1e-4,
                ),
                near("of channels", channels.conv1d(&of(device, &[1, 3, taps], 5), None, 1, 3), 1e-5, 1e-4),
                near("distances", (&windows - &by).square().sum(-1), 1e-5, 1e-4),
                exact("largest", (&windows * &by).max(-1)),
                near("beside the first", (&windows * windows.slice(2, 0..1)).sum(-1).relu(), 1e-5, 1e-4),
            ]
        });
    }
}

#[test]
fn filters_of_special_values() {
    check_on_cpu("NaN, infinities and zeros", |device| {
        let x = mixed(device, DType::F32, [3, 1, 700], 3, 67);
        let weight = mixed(device, DType::F32, [1, 1, 31], 5, 11);
        let windows = x.squeeze(1).pad(&[(0, 0), (15, 15)], 0.0).unfold(1, 31, 1);
        vec![
            near("one filter", x.conv1d(of(device, &[1, 1, 31], 4), None, 1, 15), 1e-4, 1e-4),
            exact("largest", (&windows * weight.reshape([31])).max(-1)),
            exact("infinite weights", (windows * weight.reshape([31])).isnan().any(-1)),
        ]
    });
}

/// Lines of fewer results than a vector has, and steps along them.
#[test]
fn each_channel_of_an_image_over_a_border() {
    for width in [7, 14, 28, 56, 61, 130] {
        check_on_cpu(&format!("images of {width} columns"), |device| {
            let x = of(device, &[2, 3, 9, width], 1);
            let filtered = |size: usize, stride: usize, x: &Tensor| {
                let conv = Conv2d::new().groups(3).padding(size / 2).stride(stride);
                x.conv2d_with(of(device, &[3, 1, size, size], 2), Some(&of(device, &[3], 3)), conv)
            };
            vec![
                near("of seven", filtered(7, 1, &x), 1e-5, 1e-5),
                near("of seven, every second", filtered(7, 2, &x).relu(), 1e-5, 1e-5),
                near("of five, every second", filtered(5, 2, &x.exp()), 1e-5, 1e-5),
                near("of five, and its mean", filtered(5, 1, &x).mean([2, 3]), 1e-5, 1e-5),
            ]
        });
    }
}
