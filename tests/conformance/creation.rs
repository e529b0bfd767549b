//! Proves constructors right against tables, and random numbers the same on every device and well distributed.

use lazuli::{DType, Tensor};

use crate::common::data::{ordinary, units};
use crate::common::{check, exact, near};

#[test]
fn spaces_are_numpys() {
    let f64s = |x: Tensor| x.to_vec::<f64>().unwrap();
    assert_eq!(f64s(Tensor::linspace(0.0, 1.0, 5, DType::F64)), [0.0, 0.25, 0.5, 0.75, 1.0]);
    assert_eq!(f64s(Tensor::linspace(2.0, -2.0, 5, DType::F64)), [2.0, 1.0, 0.0, -1.0, -2.0]);
    assert_eq!(f64s(Tensor::linspace(3.0, 3.0, 2, DType::F64)), [3.0, 3.0]);
    assert_eq!(f64s(Tensor::linspace(3.0, 9.0, 1, DType::F64)), [3.0]);
    assert_eq!(f64s(Tensor::linspace(3.0, 9.0, 0, DType::F64)), [0.0f64; 0]);
    // Both ends are exact although the step is not.
    let tenths = f64s(Tensor::linspace(0.1, 0.7, 7, DType::F64));
    assert_eq!((tenths[0], tenths[6]), (0.1, 0.7));
    // `torch.linspace(0, 10, 4, dtype=torch.int64)` truncates.
    assert_eq!(Tensor::linspace(0.0, 10.0, 4, DType::I64).to_vec::<i64>().unwrap(), [0, 3, 6, 10]);
    assert_eq!(f64s(Tensor::logspace(-1.0, 2.0, 4, 10.0, DType::F64)), [0.1, 1.0, 10.0, 100.0]);
    assert_eq!(Tensor::logspace(0.0, 4.0, 5, 2.0, DType::U8).to_vec::<u8>().unwrap(), [1, 2, 4, 8, 16]);
    check("spaces", |device| {
        let dtypes = [DType::F16, DType::BF16, DType::F32, DType::F64, DType::I32];
        let spaces = |dtype| {
            [Tensor::linspace(-3.0, 7.5, 101, dtype), Tensor::logspace(0.0, 3.0, 50, 2.0, dtype)]
                .map(|x| x.to(device))
        };
        let [line, powers] = spaces(DType::F64);
        let mut outputs = vec![exact("linspace", line), near("logspace", powers, 1e-15, 0.0)];
        outputs.extend(dtypes.map(|dtype| exact(format!("linspace {dtype}"), spaces(dtype)[0].clone())));
        outputs
    });
}

#[test]
fn matrices_of_positions() {
    for (rows, columns, offset) in [(3, 3, 0), (2, 4, 1), (4, 2, -1), (3, 3, 7), (0, 2, 0), (1, 1, 0)] {
        let expected = |holds: fn(isize, isize) -> bool| -> Vec<f32> {
            let pairs = (0..rows).flat_map(|r| (0..columns).map(move |c| (r, c)));
            pairs.map(|(r, c)| if holds(c - r, offset) { 1.0 } else { 0.0 }).collect()
        };
        let (m, n) = (rows as usize, columns as usize);
        let eye = Tensor::eye_with(m, n, offset, DType::F32);
        assert_eq!(eye.to_vec::<f32>().unwrap(), expected(|above, offset| above == offset));
        let tri = Tensor::tri(m, n, offset, DType::F32);
        assert_eq!(tri.to_vec::<f32>().unwrap(), expected(|above, offset| above <= offset));
    }
    check("positions", |device| {
        let labels = ordinary(device, DType::I32, [7, 3], 1) % 6;
        vec![
            exact("eye", Tensor::eye(5, DType::F16).to(device)),
            exact("tri", Tensor::tri(4, 7, -1, DType::Bool).to(device)),
            exact("one_hot", labels.one_hot(6)),
            exact("one_hot of u8", (labels % 3).cast(DType::U8).one_hot(3)),
        ]
    });
    let labels = Tensor::from_slice(&[1i32, 2, 1, 0], [2, 2]).one_hot(3);
    assert_eq!(labels.to_vec::<i64>().unwrap(), [0, 1, 0, 0, 0, 1, 0, 1, 0, 1, 0, 0]);
    assert_eq!(labels.shape().unwrap().to_vec(), [2, 2, 3]);
    for wrong in [-1, 3] {
        let error = Tensor::from_slice(&[1, wrong], [2]).one_hot(3).to_vec::<i64>().unwrap_err();
        assert!(matches!(error, lazuli::Error::IndexOutOfRange { op: "one_hot", extent: 3, .. }), "{error}");
    }
}

#[test]
fn random_numbers_are_the_same_everywhere() {
    check("random", |device| {
        let x = ordinary(device, DType::F32, [20, 30], 3);
        let p = Tensor::from_vec(units(600, 1).map(|u| u.abs() as f32).collect(), [20, 30]).to(device);
        vec![
            // Logarithm and cosine are approximate; elements near 0 come from a cosine near 0.
            near("randn", Tensor::randn([20, 30], 5).to(device), 1e-5, 1e-6),
            near("randn f64", Tensor::randn_with([20, 30], DType::F64, 5).to(device), 1e-13, 1e-15),
            near("randn_like", x.randn_like(6), 1e-5, 1e-6),
            exact("rand_like", x.rand_like(5)),
            exact("randint", Tensor::randint(-5, 12, [20, 30], 5).to(device)),
            exact("bernoulli", p.bernoulli(9)),
            exact("dropout", x.dropout(0.25, 4)),
            exact("dropout of f16", x.cast(DType::F16).dropout(0.5, 4)),
            exact("all dropped", x.dropout(1.0, 4).abs()),
            exact("none dropped", x.dropout(0.0, 4)),
        ]
    });
    // However it is fused and whatever else is in the kernel.
    let noise = Tensor::randn([50], 3);
    let alone = noise.clone().to_vec::<f32>().unwrap();
    let again = Tensor::randn([50], 3);
    assert_eq!((again.clone() * 1.0).reshape([5, 10]).t().t().to_vec::<f32>().unwrap(), alone);
    assert_ne!(Tensor::randn([50], 4).to_vec::<f32>().unwrap(), alone);
    assert_eq!((again + 1.0).exp().explain().unwrap().kernels(), 1);
}

#[test]
fn random_numbers_are_distributed_as_they_say() {
    let n = 200_000;
    let x = Tensor::randn([n], 17).to_vec::<f32>().unwrap();
    let moment = |k: i32| x.iter().map(|&x| f64::from(x).powi(k)).sum::<f64>() / n as f64;
    let (mean, variance, skew, kurtosis) = (moment(1), moment(2), moment(3), moment(4));
    assert!(mean.abs() < 0.01 && (variance - 1.0).abs() < 0.02, "{mean} {variance}");
    assert!(skew.abs() < 0.03 && (kurtosis - 3.0).abs() < 0.1, "{skew} {kurtosis}");
    assert!(x.iter().all(|x| x.is_finite()));
    let dice = Tensor::randint(1, 7, [n], 17).to_vec::<i64>().unwrap();
    for eyes in 1..=6 {
        let share = dice.iter().filter(|&&x| x == eyes).count() as f64 / n as f64;
        assert!((share - 1.0 / 6.0).abs() < 0.005, "{eyes}: {share}");
    }
    assert!(Tensor::randint(-3, -2, [100], 1).to_vec::<i64>().unwrap().iter().all(|&x| x == -3));
    let kept = Tensor::ones([n], DType::F32).dropout(0.3, 8).to_vec::<f32>().unwrap();
    let share = kept.iter().filter(|&&x| x != 0.0).count() as f64 / n as f64;
    assert!((share - 0.7).abs() < 0.005, "{share}");
    assert!(kept.iter().all(|&x| x == 0.0 || x == 1.0 / 0.7f32), "{:?}", &kept[..9]);
    let nan = Tensor::full([4], f64::NAN, DType::F32).dropout(1.0, 1).to_vec::<f32>().unwrap();
    assert!(nan.iter().all(|x| x.is_nan()));
}
