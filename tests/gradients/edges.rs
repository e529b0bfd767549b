//! Gradients at edges, beside PyTorch's: where parts of a function have no finite slope, and where it has a bend.

use std::f64::consts::PI;

use lazuli::{Device, Reduction, ScatterReduction, Tensor};

/// The function, places, and what reaches them of a sum of the results in PyTorch 2.11.
type Edge = (&'static str, fn(&Tensor) -> Tensor, &'static [f64], &'static [f64]);

fn constant(values: &[f64]) -> Tensor {
    Tensor::from_vec(values.to_vec(), [values.len()]).to(&Device::interpreter())
}

/// Pairs of numbers.
fn rows(x: &Tensor) -> Tensor {
    x.unflatten(0, &[-1, 2])
}

const FAR: &[f64] = &[-1000.0, -0.0, 1000.0];
/// A row of zeros, and one of the norm 5.
const ROWS: &[f64] = &[0.0, 0.0, 3.0, 4.0];

#[rustfmt::skip]
const EDGES: &[Edge] = &[
    ("sigmoid", |x| x.sigmoid(), FAR, &[0.0, 0.25, 0.0]),
    ("silu", |x| x.silu(), FAR, &[0.0, 0.5, 1.0]),
    ("glu", |x| x.glu(0), &[1.0, 2.0, -1000.0, 1000.0], &[0.0, 1.0, 0.0, 0.0]),
    ("elu", |x| x.elu(1.0), FAR, &[0.0, 1.0, 1.0]),
    ("celu", |x| x.celu(2.0), FAR, &[0.0, 1.0, 1.0]),
    ("selu", |x| x.selu(), FAR, &[0.0, 1.758_099_340_847_376_6, 1.050_700_987_355_480_5]),
    ("softplus", |x| x.softplus(1.0, 20.0), &[-1000.0, 0.0, 1000.0, 30.0], &[0.0, 0.5, 1.0, 1.0]),
    ("softplus(2)", |x| x.softplus(2.0, 20.0), &[-1000.0, 0.0, 1000.0, 15.0], &[0.0, 0.5, 1.0, 1.0]),
    ("mish", |x| x.mish(), FAR, &[0.0, 0.6, 1.0]),
    ("relu6", |x| x.relu6(), &[0.0, 6.0, 3.0, 7.0, -1.0], &[0.0, 0.0, 1.0, 0.0, 0.0]),
    ("hardtanh", |x| x.hardtanh(-1.0, 1.0), &[-1.0, 1.0, 0.5, 2.0], &[0.0, 0.0, 1.0, 0.0]),
    ("hardsigmoid", |x| x.hardsigmoid(), &[-3.0, 3.0, 0.0, 4.0], &[0.0, 0.0, 1.0 / 6.0, 0.0]),
    ("hardswish", |x| x.hardswish(), &[-3.0, 3.0, 0.0, 4.0, -4.0], &[0.0, 1.0, 0.5, 1.0, 0.0]),
    ("clamp", |x| x.clamp(0.0, 1.0), &[0.0, 1.0, 0.5, -1.0, 2.0], &[1.0, 1.0, 1.0, 0.0, 0.0]),
    ("clamp_min", |x| x.clamp_min(0.0), &[0.0, 1.0, -1.0], &[1.0, 1.0, 0.0]),
    ("clamp_max", |x| x.clamp_max(0.0), &[0.0, 1.0, -1.0], &[1.0, 0.0, 1.0]),
    ("clamp, by the low limit", |low| constant(&[-1.0, 0.5, 2.0, 0.5]).clamp(low, 1.0), &[0.0, 0.0, 0.0, 2.0], &[1.0, 0.0, 0.0, 0.0]),
    ("clamp, by the high limit", |high| constant(&[-1.0, 0.5, 2.0, 0.5]).clamp(constant(&[0.0, 0.0, 0.0, 2.0]), high), &[1.0; 4], &[0.0, 0.0, 1.0, 1.0]),
    ("norm(2)", |x| rows(x).norm(1, 2.0), ROWS, &[0.0, 0.0, 0.6, 0.8]),
    ("norm(1)", |x| rows(x).norm(1, 1.0), ROWS, &[0.0, 0.0, 1.0, 1.0]),
    ("norm(3)", |x| rows(x).norm(1, 3.0), ROWS, &[0.0, 0.0, 0.444_851_351_730_535_6, 0.790_846_847_520_952_1]),
    ("norm(1.5)", |x| rows(x).norm(1, 1.5), ROWS, &[0.0, 0.0, 0.732_956_475_828_974_8, 0.846_345_237_248_276_1]),
    ("norm(0.5)", |x| rows(x).norm(1, 0.5), ROWS, &[0.0, 0.0, 2.154_700_538_379_252, 1.866_025_403_784_438_6]),
    ("norm(-1)", |x| rows(x).norm(1, -1.0), ROWS, &[0.0, 0.0, 0.326_530_612_244_898, 0.183_673_469_387_755_14]),
    ("lp_pool1d(2)", |x| x.unsqueeze(0).lp_pool1d(2.0, 2, 2), ROWS, &[0.0, 0.0, 0.6, 0.8]),
    ("lp_pool1d(3)", |x| x.unsqueeze(0).lp_pool1d(3.0, 2, 2), ROWS, &[0.0, 0.0, 0.444_851_351_730_535_6, 0.790_846_847_520_952_1]),
    ("normalize", |x| rows(x).normalize(2.0, 1, 1e-12), ROWS, &[1e12, 1e12, 0.032, -0.024]),
    ("cosine_similarity", |x| rows(x).cosine_similarity(constant(&[1.0, 2.0]), 1, 1e-8), ROWS, &[44_721_359.549_995_795, 89_442_719.099_991_59, -0.028_621_670_111_997_302, 0.021_466_252_583_997_952]),
    ("cdist", |x| rows(x).cdist(rows(x), 2.0), &[0.0, 0.0, 0.0, 0.0, 3.0, 4.0], &[-1.2, -1.6, -1.2, -1.6, 2.4, 3.2]),
    ("std", |x| rows(x).std(1, 1), &[3.0, 3.0, 1.0, 2.0], &[0.0, 0.0, -0.707_106_781_186_547_5, 0.707_106_781_186_547_5]),
    ("sinc", |x| x.sinc(), &[0.0, 0.5], &[0.0, -1.273_239_544_735_162_5]),
    ("binary_cross_entropy", |x| x.binary_cross_entropy(constant(&[0.0, 1.0, 1.0, 0.0]), Reduction::None), &[0.0, 1.0, 0.5, 1.0], &[0.0, 0.0, -2.0, 1e12]),
    ("smooth_l1_loss(0)", |x| x.smooth_l1_loss(constant(&[0.0; 3]), 0.0, Reduction::None), &[1.0, 0.0, -3.0], &[1.0, 0.0, -1.0]),
    ("xlogy", |x| x.xlogy(constant(&[0.0, 2.0, 3.0])), &[0.0, 0.0, 2.0], &[0.0, std::f64::consts::LN_2, 1.098_612_288_668_109_8]),
    ("xlog1py", |x| x.xlog1py(constant(&[-1.0, 1.0])), &[0.0, 2.0], &[0.0, std::f64::consts::LN_2]),
    ("entr", |x| x.entr(), &[0.0, 1.0], &[f64::INFINITY, -1.0]),
    ("logit", |x| x.logit(), &[0.0, 1.0, 0.5], &[f64::INFINITY, f64::INFINITY, 4.0]),
    ("i0e", |x| x.i0e(), &[0.0, 1.0], &[0.0, -0.257_849_192_243_931_94]),
    ("copysign", |x| x.copysign(constant(&[-1.0, -1.0, -1.0])), &[0.0, 2.0, f64::INFINITY], &[0.0, -1.0, -1.0]),
    ("pow, by the exponent", |x| constant(&[0.0, 3.0]).pow(x), &[0.0, 2.0], &[0.0, 9.887_510_598_012_987]),
    ("floor", |x| x.floor(), &[0.5, 2.0], &[0.0, 0.0]),
    ("round", |x| x.round(), &[0.5, 2.0], &[0.0, 0.0]),
];

/// Of the sum of the gradients. PyTorch's `mish` gives NaN at 1000.
#[rustfmt::skip]
const SECOND: &[Edge] = &[
    ("logsigmoid", |x| x.logsigmoid(), &[0.0], &[-0.25]),
    ("binary_cross_entropy_with_logits", |x| x.binary_cross_entropy_with_logits(constant(&[1.0]), Reduction::None), &[0.0], &[0.25]),
    ("sigmoid", |x| x.sigmoid(), FAR, &[0.0; 3]),
    ("silu", |x| x.silu(), FAR, &[0.0, 0.5, 0.0]),
    ("elu", |x| x.elu(1.0), &[-1000.0, 1000.0], &[0.0, 0.0]),
    ("mish", |x| x.mish(), &[-1000.0, 1000.0, 0.5], &[0.0, 0.0, 0.468_053_377_844_886_54]),
    ("softplus", |x| x.softplus(1.0, 20.0), &[-1000.0, 1000.0, 0.5], &[0.0, 0.0, 0.235_003_712_201_594_5]),
    ("hardswish", |x| x.hardswish(), &[-4.0, 4.0, 0.5], &[0.0, 0.0, 1.0 / 3.0]),
    ("i0", |x| x.i0(), &[0.0, 1.0], &[0.5, 0.700_906_773_759_523_2]),
    ("i0e", |x| x.i0e(), &[0.0, 1.0], &[0.5, 0.307_787_969_138_155_4]),
    ("i1", |x| x.i1(), &[0.0, 1.0, -1.0], &[0.0, 0.429_411_434_225_447_3, -0.429_411_434_225_447_3]),
    ("i1e", |x| x.i1e(), &[0.0, 1.0], &[0.0, -0.149_816_330_682_670_3]),
    ("bessel_j0", |x| x.bessel_j0(), &[0.0, 1.0], &[-0.5, -0.325_147_100_813_033_1]),
    ("bessel_j1", |x| x.bessel_j1(), &[0.0, 1.0], &[0.0, -0.325_147_100_813_033_1]),
    ("sinc", |x| x.sinc(), &[0.0, 1.0], &[-PI * PI / 3.0, 2.0]),
    ("copysign", |x| x.copysign(constant(&[-1.0, -1.0])), &[0.0, 2.0], &[0.0, 0.0]),
    ("digamma", |x| x.digamma(), &[0.0, -1.0, 1.0], &[f64::NEG_INFINITY, f64::NEG_INFINITY, -2.404_113_806_319_188_6]),
    ("lp_pool1d", |x| x.unsqueeze(0).lp_pool1d(2.0, 2, 2), &[0.0; 2], &[0.0; 2]),
    ("logaddexp", |x| x.logaddexp(constant(&[0.0, 1.0, f64::INFINITY])), &[0.0, 1.0, 0.0], &[0.25, 0.25, 0.0]),
    ("logaddexp2", |x| x.logaddexp2(constant(&[0.0, 1.0])), &[0.0, 1.0], &[0.173_286_795_139_986_32; 2]),
    ("pow, by the exponent", |x| constant(&[0.0, 3.0]).pow(x), &[-1.0, 2.0], &[f64::INFINITY, 10.862_540_647_313_239]),
];

/// Of the sum of the second derivatives.
#[rustfmt::skip]
const THIRD: &[Edge] = &[
    ("i0", |x| x.i0(), &[0.0], &[0.0]),
    ("i0e", |x| x.i0e(), &[0.0], &[0.0]),
    ("bessel_j0", |x| x.bessel_j0(), &[0.0], &[0.0]),
    ("sinc", |x| x.sinc(), &[0.0], &[0.0]),
    // PyTorch's is 0, that of bessel_j1 an error.
    ("i1", |x| x.i1(), &[0.0], &[0.375]),
    ("bessel_j1", |x| x.bessel_j1(), &[0.0], &[-0.375]),
];

#[test]
fn edges_have_the_slopes_of_pytorch() {
    let mut wrong = Vec::new();
    let first = |f: fn(&Tensor) -> Tensor, x: &Tensor| lazuli::grad(&f(x).sum(..), x);
    for (order, edges) in [(1, EDGES), (2, SECOND), (3, THIRD)] {
        for (name, f, at, expected) in edges {
            let x = constant(at);
            let slopes = (1..order).fold(first(*f, &x), |slopes, _| lazuli::grad(&slopes.sum(..), &x));
            let slopes = slopes.to_vec::<f64>().unwrap();
            let is_near = |(a, b): (&f64, &f64)| a == b || (a - b).abs() <= 1e-8 * b.abs();
            if slopes.len() != expected.len() || !slopes.iter().zip(*expected).all(is_near) {
                wrong.push(format!("{name}, order {order}: {slopes:?}, not {expected:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A product with zeros has slopes by these, and slopes of slopes, whatever it is made with.
#[test]
fn products_with_zeros_have_second_derivatives() {
    let weights = constant(&[1.0, 2.0, 3.0]);
    let second = |f: &dyn Fn(&Tensor) -> Tensor, at: &[f64]| {
        let s = constant(at);
        let first = lazuli::grad(&f(&s).sum(..), &s);
        lazuli::grad(&(first * &weights).sum(..), &s).to_vec::<f64>().unwrap()
    };
    let x = constant(&[2.0, 3.0]);
    let places = |at: [i64; 3]| Tensor::from(at).to(&Device::interpreter());
    let scattered = |at: [i64; 3]| {
        let (x, index) = (x.clone(), places(at));
        move |s: &Tensor| x.scatter_reduce(0, &index, s, ScatterReduction::Prod, true)
    };
    let indexed = |s: &Tensor| x.index_reduce(0, places([0, 0, 1]), s, ScatterReduction::Prod, true);
    assert_eq!(second(&scattered([0, 0, 1]), &[0.0, 4.0, 5.0]), [4.0, 2.0, 0.0]);
    assert_eq!(second(&indexed, &[0.0, 4.0, 5.0]), [4.0, 2.0, 0.0]);
    assert_eq!(second(&scattered([0, 0, 0]), &[0.0, 4.0, 5.0]), [44.0, 10.0, 8.0]);
    // Of two zeros, where PyTorch gives an error, and of three.
    assert_eq!(second(&scattered([0, 0, 0]), &[0.0, 0.0, 5.0]), [20.0, 10.0, 0.0]);
    assert_eq!(second(&scattered([0, 0, 0]), &[0.0, 0.0, 0.0]), [0.0; 3]);
    let product = |s: &Tensor| s.prod(0);
    assert_eq!(second(&product, &[0.0, 4.0, 5.0]), [22.0, 5.0, 4.0]);
    assert_eq!(second(&product, &[0.0, 0.0, 5.0]), [10.0, 5.0, 0.0]);
    let running = |s: &Tensor| s.cumprod(0);
    assert_eq!(second(&running, &[0.0, 4.0, 5.0]), [24.0, 6.0, 4.0]);
    assert_eq!(second(&running, &[0.0, 0.0, 5.0]), [12.0, 6.0, 0.0]);
}
