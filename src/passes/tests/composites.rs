//! Decompositions: their primitives, and their values against the composites' definitions in f64.

use super::super::decompose;
use super::{all_passes, printed};
use crate::graph::Graph;
use crate::graph::op::{Axes, Composite, Op, Pool2d};
use crate::graph::sketch::Sketch;
use crate::graph::verify::verify;
use crate::passes::evaluate::evaluate;
use crate::{DType, Scalar, Shape};

fn drawn(composite: Composite, shape: [usize; 3], result: impl Into<Shape>, dtype: DType) -> Graph {
    let mut s = Sketch::new();
    let x = s.input(shape, dtype);
    let y = s.op(Op::Composite(composite), &[x], result, dtype);
    s.outputs([y])
}

fn axes(axes: &[usize]) -> Axes {
    Axes::from_slice(axes)
}

fn pool(kernel: [usize; 2], stride: [usize; 2], padding: [usize; 2], dilation: [usize; 2]) -> Pool2d {
    Pool2d { kernel, stride, padding, dilation }
}

fn decomposed(composite: Composite, shape: [usize; 3], result: impl Into<Shape>, dtype: DType) -> String {
    printed(&decompose::run(&drawn(composite, shape, result, dtype)).unwrap())
}

#[test]
fn softmax_is_max_exp_sum_and_a_factor() {
    let expected = "\
%0 = input slot=0 : f32 [1, 2, 3]
%1 = max(%0) axes=[2] : f32 [1, 2]  # softmax
%2 = reshape(%1) : f32 [1, 2, 1]  # softmax
%3 = expand(%2) : f32 [1, 2, 3]  # softmax
%4 = sub(%0, %3) : f32 [1, 2, 3]  # softmax
%5 = exp(%4) : f32 [1, 2, 3]  # softmax
%6 = sum(%5) axes=[2] : f32 [1, 2]  # softmax
%7 = reciprocal(%6) : f32 [1, 2]  # softmax
%8 = reshape(%7) : f32 [1, 2, 1]  # softmax
%9 = expand(%8) : f32 [1, 2, 3]  # softmax
%10 = mul(%5, %9) : f32 [1, 2, 3]  # softmax
return %10
";
    assert_eq!(decomposed(Composite::Softmax { axis: 2 }, [1, 2, 3], [1, 2, 3], DType::F32), expected);
}

#[test]
fn pooling_is_pad_windows_and_a_reduction() {
    let composite = Composite::MaxPool2d(pool([3, 2], [2, 1], [1, 0], [1, 1]));
    let expected = "\
%0 = input slot=0 : i32 [1, 5, 4]
%1 = pad(%0) before=[0, 1, 0] value=-2147483648 : i32 [1, 7, 4]  # max_pool2d
%2 = window(%1) axis=1 size=3 stride=2 : i32 [1, 3, 4, 3]  # max_pool2d
%3 = window(%2) axis=2 size=2 stride=1 : i32 [1, 3, 3, 3, 2]  # max_pool2d
%4 = max(%3) axes=[3, 4] : i32 [1, 3, 3]  # max_pool2d
return %4
";
    assert_eq!(decomposed(composite, [1, 5, 4], [1, 3, 3], DType::I32), expected);
}

#[test]
fn a_16_bit_mean_is_summed_and_divided_in_f32() {
    let expected = "\
%0 = input slot=0 : bf16 [1, 2, 3]
%1 = cast(%0) : f32 [1, 2, 3]  # mean
%2 = sum(%1) axes=[0, 2] : f32 [2]  # mean
%3 = constant 3.0 argument : f32 []  # mean
%4 = expand(%3) : f32 [2]  # mean
%5 = div(%2, %4) : f32 [2]  # mean
%6 = cast(%5) : bf16 [2]  # mean
return %6
";
    assert_eq!(decomposed(Composite::Mean { axes: axes(&[0, 2]) }, [1, 2, 3], [2], DType::BF16), expected);
}

#[test]
fn values_agree_with_the_definitions() {
    let padded = pool([3, 3], [2, 1], [1, 1], [1, 1]);
    let dilated = pool([2, 3], [1, 2], [0, 1], [2, 1]);
    let single = pool([1, 1], [2, 1], [0, 0], [1, 1]);
    let full = Shape::from([2, 5, 6]);
    let composites: Vec<(Composite, Shape)> = vec![
        (Composite::Mean { axes: axes(&[0, 2]) }, [5].into()),
        (Composite::Mean { axes: axes(&[]) }, full.clone()),
        (Composite::Var { axes: axes(&[1]), correction: 1 }, [2, 6].into()),
        (Composite::Var { axes: axes(&[0]), correction: 0 }, [5, 6].into()),
        (Composite::Var { axes: axes(&[0]), correction: 5 }, [5, 6].into()),
        (Composite::Sigmoid, full.clone()),
        (Composite::Silu, full.clone()),
        (Composite::Gelu, full.clone()),
        (Composite::GeluTanh, full.clone()),
        (Composite::Softmax { axis: 1 }, full.clone()),
        (Composite::Softmax { axis: 2 }, full.clone()),
        (Composite::LayerNorm { dims: 1, eps_bits: 1e-5f64.to_bits() }, full.clone()),
        (Composite::LayerNorm { dims: 2, eps_bits: 0.5f64.to_bits() }, full),
        (Composite::MaxPool2d(padded), [2, 3, 6].into()),
        (Composite::MaxPool2d(dilated), [2, 3, 3].into()),
        (Composite::MaxPool2d(single), [2, 3, 6].into()),
        (Composite::AvgPool2d(padded), [2, 3, 6].into()),
        (Composite::AvgPool2d(dilated), [2, 3, 3].into()),
        (Composite::AvgPool2d(single), [2, 3, 6].into()),
    ];
    for (composite, result) in composites {
        for dtype in [DType::F16, DType::F32, DType::F64] {
            let before = drawn(composite.clone(), [2, 5, 6], result.clone(), dtype);
            verify(&before, "sample").unwrap();
            let after = all_passes(&before);
            assert!(after.nodes().all(|id| !matches!(after.node(id).op, Op::Composite(_))));
            let data: Vec<Scalar> =
                (0..60).map(|n| Scalar::from_f64(dtype, (n * 37 % 60) as f64 / 8.0 - 4.0)).collect();
            assert_close(&before, &after, &data, dtype);
        }
    }
}

fn assert_close(before: &Graph, after: &Graph, data: &[Scalar], dtype: DType) {
    let (expected, actual) = (evaluate(before, &[data.to_vec()]), evaluate(after, &[data.to_vec()]));
    let tolerance = if dtype == DType::F16 { 1e-3 } else { 1e-6 };
    for (e, a) in expected[0].iter().zip(&actual[0]) {
        let (e, a) = (e.as_f64(), a.as_f64());
        let close = e == a || e.is_nan() && a.is_nan() || (e - a).abs() <= tolerance * e.abs().max(1.0);
        assert!(close, "{a} is not {e}:\n{}{}", printed(before), printed(after));
    }
}

#[test]
fn infinities_and_nan_come_out_as_in_pytorch() {
    let value = |composite: Composite, x: f64| {
        let graph = all_passes(&drawn(composite, [1, 1, 1], [1, 1, 1], DType::F32));
        evaluate(&graph, &[vec![Scalar::from_f64(DType::F32, x)]])[0][0].as_f64()
    };
    assert_eq!(value(Composite::Sigmoid, f64::NEG_INFINITY), 0.0);
    assert_eq!(value(Composite::Sigmoid, f64::INFINITY), 1.0);
    assert_eq!(value(Composite::Silu, f64::INFINITY), f64::INFINITY);
    assert!(value(Composite::Silu, f64::NEG_INFINITY).is_nan());
    assert!(value(Composite::Softmax { axis: 0 }, f64::INFINITY).is_nan());
    assert!(value(Composite::MaxPool2d(pool([1, 1], [1, 1], [0, 0], [1, 1])), f64::NAN).is_nan());
    assert_eq!(value(Composite::Softmax { axis: 0 }, 5.0), 1.0);
}

#[test]
fn empty_tensors_are_no_obstacle() {
    let softmax = drawn(Composite::Softmax { axis: 2 }, [2, 3, 0], [2, 3, 0], DType::F32);
    assert_eq!(printed(&all_passes(&softmax)), "%0 = input slot=0 : f32 [2, 3, 0]\nreturn %0\n");
    let norm = drawn(Composite::LayerNorm { dims: 1, eps_bits: 0 }, [2, 3, 0], [2, 3, 0], DType::F16);
    assert!(evaluate(&all_passes(&norm), &[vec![]])[0].is_empty());
    let mean = drawn(Composite::Mean { axes: axes(&[2]) }, [2, 3, 0], [2, 3], DType::F32);
    let mean = evaluate(&all_passes(&mean), &[vec![]]);
    assert!(mean[0].len() == 6 && mean[0].iter().all(|x| x.as_f64().is_nan()));
}
