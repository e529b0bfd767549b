//! Proves convolutions right on every device against the interpreter: windows of an image, laid out for products.

use lazuli::{Conv1d, Conv2d, Conv3d, DType, Device, Interpolation, Shape, Target, Tensor};

use crate::common::data::{floats, ordinary};
use crate::common::{self, check, check_on_cpu, devices, near};

#[test]
fn convolutions_of_every_kind() {
    check("convolutions", |device| {
        let of = |shape: &[usize], seed| floats(device, DType::F32, shape.to_vec(), 1.0, seed);
        let (x, weight) = (of(&[2, 6, 11, 23], 1), of(&[9, 6, 3, 3], 2));
        let near = |name: &str, y| near(name, y, 1e-6, 1e-5);
        vec![
            near("plain", x.conv2d(&weight, None, 1, 0)),
            near("padded, with bias", x.conv2d(&weight, Some(&of(&[9], 3)), 1, 1).relu()),
            near("strides", x.conv2d(&weight, None, (2, 3), (0, 2))),
            near("dilated", x.conv2d_with(&weight, None, Conv2d::new().dilation((1, 2)).same())),
            near("groups", x.conv2d_with(&of(&[9, 2, 3, 3], 2), None, Conv2d::new().groups(3).padding(1))),
            near("depthwise", x.conv2d_with(&of(&[6, 1, 3, 3], 2), None, Conv2d::new().groups(6))),
            near("one by one", x.conv2d(&of(&[9, 6, 1, 1], 2), None, 1, 0)),
            near("pooled", x.conv2d(&weight, None, 1, 1).relu().max_pool2d(2, 2)),
            near(
                "1-d",
                of(&[2, 6, 50], 1).conv1d_with(&of(&[9, 6, 5], 2), None, Conv1d::new().stride(2).padding(3)),
            ),
            near(
                "3-d",
                of(&[1, 3, 5, 6, 20], 1).conv3d_with(
                    &of(&[4, 3, 2, 3, 2], 2),
                    None,
                    Conv3d::new().padding(1),
                ),
            ),
            near("transposed", x.conv_transpose2d(&of(&[6, 5, 3, 3], 2), None, 2, 1)),
            near("no batch", x.select(0, 0).conv2d(&weight, None, 1, 0)),
        ]
    });
}

/// Columns that are windows of an image, which a block packs once: several blocks of lines or of columns, more channels than
/// are packed together, and what is computed of the image.
#[test]
fn convolutions_of_larger_images() {
    check_on_cpu("windows", |device| {
        let of = |shape: &[usize], seed| floats(device, DType::F32, shape.to_vec(), 1.0, seed);
        let near = |name: &str, y| near(name, y, 1e-5, 1e-4);
        let (x, weight) = (of(&[2, 20, 33, 45], 1), of(&[14, 20, 3, 3], 2));
        let gates = x.conv2d(&of(&[14, 20, 3, 3], 3), None, 1, 1).sigmoid();
        let doubled = x.interpolate_scale(&[2.0, 2.0], Interpolation::Nearest);
        vec![
            near("normalised before", ((&x - 0.5) * 2.0).silu().conv2d(&weight, None, 1, 1)),
            near("two products", x.conv2d(&weight, None, 1, 1).tanh() * gates),
            near("strides", x.conv2d(&weight, None, 2, 1)),
            near("lines alone", x.conv2d(&of(&[14, 20, 5, 1], 4), None, 1, (2, 0)).relu()),
            near("columns alone", x.conv2d(&of(&[14, 20, 1, 5], 5), None, 1, (0, 2)).relu()),
            near(
                "wide",
                of(&[3, 4, 1100], 6).conv1d_with(&of(&[7, 4, 9], 7), None, Conv1d::new().dilation(3).same()),
            ),
            near("wider steps", of(&[1, 4, 2100], 6).conv1d(&of(&[7, 4, 9], 7), None, 4, 2)),
            near("upsampled", doubled.conv2d(&weight, None, 1, 1)),
            near("residual", (x.conv2d(&of(&[20, 20, 3, 3], 8), None, 1, 1) + &x).relu()),
            near("doubles", x.cast(DType::F64).conv2d(&weight.cast(DType::F64), None, 1, 1)),
        ]
    });
}

/// Lines of few columns each, which do not follow one another in memory: several of them fill a panel's vectors together.
#[test]
fn short_lines_share_vectors() {
    let of = |device: &Device, shape: &[usize], seed| floats(device, DType::F32, shape.to_vec(), 1.0, seed);
    let cpu = Device::cpu();
    let y = of(&cpu, &[1, 32, 14, 14], 1).conv2d(&of(&cpu, &[24, 32, 1, 1], 2), None, 2, 0);
    let text = y.compile_for(&Target::cpu()).unwrap().source();
    assert!(text.contains("columns=7x7,"), "{text}");
    check_on_cpu("lines", |device| {
        let of = |shape: &[usize], seed| of(device, shape, seed);
        let (x, weight, other) = (of(&[3, 40, 14, 13], 1), of(&[20, 40, 1, 1], 2), of(&[20, 40, 1, 1], 3));
        let near = |name: &str, y| near(name, y, 1e-5, 1e-4);
        let strided = |x: &Tensor, weight: &Tensor| x.conv2d(weight, None, 2, 0);
        let of_dtype = |dtype| strided(&x.cast(dtype), &weight.cast(dtype)).cast(DType::F32);
        let part = x.select(0, 0).slice(1, 2..9).slice(2, 3..12);
        let points = x.select(0, 2).slice(1, 0..8).slice(2, 1..6);
        vec![
            near("strides", x.conv2d(&weight, Some(&of(&[20], 4)), 2, 0).relu()),
            near("other strides", x.select(0, 1).conv2d(&weight, None, (1, 3), 0)),
            near("computed, padded", x.tanh().conv2d(&weight, None, 2, 1)),
            near("two products", strided(&x, &weight) * strided(&x, &other)),
            near("doubles", of_dtype(DType::F64)),
            crate::common::near("bf16", of_dtype(DType::BF16), 1e-2, 1e-2),
            crate::common::near("f16", of_dtype(DType::F16), 1e-3, 1e-3),
            near("a part", (weight.reshape([20, 40, 1, 1]) * &part.unsqueeze(0)).sum(1)),
            near("distances", (weight.reshape([20, 40, 1, 1]) - &points.unsqueeze(0)).abs().sum(1)),
        ]
    });
}

/// Transposed convolutions beside loops that spread each element: kernels of some strides and of others, borders, more at the
/// end, groups.
/// Blocks that have several small images whole: with a border, a stride or none, each with places of one line or of one element, and in
/// the text for eight images fewer and more of them.
#[test]
fn small_images_share_vectors() {
    let of = |device: &Device, shape: &[usize], seed| floats(device, DType::F32, shape.to_vec(), 1.0, seed);
    let cpu = Device::cpu();
    let source = |batch: usize, kernel: usize| {
        let x = of(&cpu, &[batch, 96, 7, 7], 1);
        let y = x.conv2d(&of(&cpu, &[160, 96, kernel, kernel], 2), None, 1, kernel / 2);
        y.compile_for(&Target::cpu()).unwrap().source()
    };
    for kernel in [1, 3] {
        let text = source(8, kernel);
        assert!(text.contains("idx at_image = "), "{text}");
        assert_eq!(text, source(7, kernel), "another number of images is no other kernel");
    }
    check_on_cpu("small images", |device| {
        let of = |shape: &[usize], seed| of(device, shape, seed);
        let near = |name: &str, y: Tensor| {
            if *device == Device::cpu() {
                let text = y.compile_for(&Target::cpu()).unwrap().source();
                assert!(text.contains("idx at_image = "), "{name}: blocks are of one image");
            }
            near(name, y, 1e-5, 1e-4)
        };
        let weight = of(&[160, 96, 3, 3], 2);
        let residual = of(&[7, 160, 5, 5], 3);
        let bf16 = |x: Tensor| x.cast(DType::BF16);
        vec![
            near("with a border", (of(&[7, 96, 5, 5], 1).conv2d(&weight, None, 1, 1) + residual).relu()),
            near(
                "more than a text is for",
                of(&[19, 64, 6, 4], 1).conv2d(&of(&[100, 64, 3, 3], 2), None, 1, 0),
            ),
            near("strides", of(&[8, 96, 9, 9], 1).conv2d(&weight, Some(&of(&[160], 4)), 2, 1)),
            near("one by one", of(&[11, 64, 7, 7], 1).silu().conv2d(&of(&[100, 64, 1, 1], 5), None, 1, 0)),
            near("lines alone", of(&[8, 64, 9, 5], 1).conv2d(&of(&[100, 64, 3, 1], 6), None, 1, 0)),
            near("1-d", of(&[9, 64, 13], 1).conv1d(&of(&[100, 64, 3], 7), None, 1, 1)),
            near("groups", {
                let weight = of(&[320, 96, 3, 3], 8);
                of(&[8, 192, 5, 5], 1).conv2d_with(&weight, None, Conv2d::new().groups(2).padding(1))
            }),
            near(
                "doubles",
                of(&[8, 96, 5, 5], 1).cast(DType::F64).conv2d(&weight.cast(DType::F64), None, 1, 1),
            ),
            near("transposed", of(&[8, 64, 4, 4], 1).conv_transpose2d(&of(&[64, 40, 4, 4], 9), None, 2, 1)),
            // Of which terms are multiplied in pairs.
            common::near(
                "bf16",
                bf16(of(&[8, 96, 5, 5], 1)).conv2d(&bf16(weight.clone()), None, 1, 1),
                1e-2,
                1e-1,
            ),
        ]
    });
}

#[test]
fn transposed_convolutions_spread_each_element() {
    let (batch, [height, width]) = (2, [4usize, 3]);
    // Kernel, stride, padding, output padding, dilation, groups.
    let cases: [([[usize; 2]; 2], [usize; 4]); 23] = [
        ([[4, 4], [2, 2]], [1, 0, 1, 1]),
        ([[2, 2], [2, 2]], [0, 1, 1, 2]),
        ([[6, 3], [3, 3]], [2, 2, 1, 1]),
        ([[4, 3], [2, 2]], [1, 1, 1, 2]),
        ([[4, 3], [2, 1]], [1, 0, 1, 1]),
        ([[3, 3], [3, 1]], [2, 0, 1, 1]),
        ([[4, 4], [2, 2]], [3, 1, 2, 1]),
        ([[8, 4], [4, 4]], [1, 3, 1, 4]),
        ([[1, 2], [1, 2]], [0, 0, 1, 1]),
        ([[2, 2], [2, 2]], [2, 1, 1, 1]),
        ([[4, 4], [2, 2]], [3, 0, 1, 1]),
        ([[3, 3], [2, 2]], [1, 1, 1, 1]),
        ([[5, 7], [2, 4]], [2, 1, 1, 2]),
        ([[4, 5], [3, 3]], [1, 2, 1, 1]),
        ([[1, 3], [2, 2]], [0, 1, 1, 1]),
        // Dilations that share a factor with the stride, or not; and strides that the kernel does not reach.
        ([[3, 3], [2, 2]], [1, 1, 2, 1]),
        ([[3, 2], [5, 4]], [1, 0, 2, 1]),
        ([[4, 3], [3, 4]], [2, 1, 2, 2]),
        ([[5, 4], [2, 3]], [3, 2, 3, 1]),
        ([[1, 2], [4, 6]], [0, 3, 4, 1]),
        ([[2, 5], [6, 4]], [2, 0, 4, 1]),
        ([[7, 3], [4, 2]], [0, 1, 6, 1]),
        ([[5, 5], [3, 3]], [7, 0, 2, 1]),
    ];
    for ([kernel, stride], [padding, more, dilation, groups]) in cases {
        let (inputs, outputs) = (4, 3 * groups);
        let of = |device: &Device, shape: &[usize], seed| ordinary(device, DType::F32, shape, seed);
        let shapes = [[batch, inputs, height, width], [inputs, outputs / groups, kernel[0], kernel[1]]];
        let [x, weight] =
            [1, 2].map(|n| of(&Device::cpu(), &shapes[n - 1], n as u64).to_vec::<f32>().unwrap());
        let extent = |d: usize, from: usize| (from - 1) * stride[d] + dilation * (kernel[d] - 1) + 1 + more;
        let full = [extent(0, height), extent(1, width)];
        let [rows, columns] = full.map(|full| full - 2 * padding);
        let mut expected = vec![0f64; batch * outputs * rows * columns];
        let own = outputs / groups;
        for (at, &element) in x.iter().enumerate() {
            let (n, channel, row, column) = (
                at / (inputs * height * width),
                at / (height * width) % inputs,
                at / width % height,
                at % width,
            );
            for (place, &factor) in weight[channel * own * kernel[0] * kernel[1]..]
                [..own * kernel[0] * kernel[1]]
                .iter()
                .enumerate()
            {
                let output = channel / (inputs / groups) * own + place / (kernel[0] * kernel[1]);
                let to = [
                    row * stride[0] + place / kernel[1] % kernel[0] * dilation,
                    column * stride[1] + place % kernel[1] * dilation,
                ];
                let [Some(row), Some(column)] = to.map(|to| to.checked_sub(padding)) else { continue };
                if row < rows && column < columns {
                    expected[((n * outputs + output) * rows + row) * columns + column] +=
                        f64::from(element) * f64::from(factor);
                }
            }
        }
        let conv = Conv2d::new().stride((stride[0], stride[1])).padding(padding);
        let conv = conv.output_padding(more).dilation(dilation).groups(groups);
        for device in devices() {
            let result =
                of(&device, &shapes[0], 1).conv_transpose2d_with(&of(&device, &shapes[1], 2), None, conv);
            assert_eq!(result.shape().unwrap(), Shape::from([batch, outputs, rows, columns]), "{conv:?}");
            let result = result.to_vec::<f32>().unwrap();
            for (at, (own, expected)) in result.iter().zip(&expected).enumerate() {
                assert!(
                    (f64::from(*own) - expected).abs() < 1e-4,
                    "{conv:?} on {device}: {at}: {own} {expected}"
                );
            }
        }
    }
}
