//! Gradients of what is resized and pooled to sizes that do not divide.

use lazuli::{DType, Device, Fusion, Interpolation, Tensor, with_fusion};

use super::{checked, numbers};

type Resized = Box<dyn Fn(&Tensor) -> Tensor>;

fn modes() -> Vec<Interpolation> {
    let corners =
        |align_corners| [Interpolation::Linear { align_corners }, Interpolation::Cubic { align_corners }];
    let others = [Interpolation::Nearest, Interpolation::NearestExact, Interpolation::Area];
    [&corners(false)[..], &corners(true), &others].concat()
}

/// Shapes with what is made of images of that shape.
fn cases() -> Vec<(String, Vec<usize>, Resized)> {
    let sizes: [(&[usize], &[usize]); 12] = [
        (&[2, 5], &[7]),
        (&[7], &[5]),
        (&[1, 3], &[11]),
        (&[11], &[3]),
        (&[1], &[4]),
        (&[4], &[1]),
        (&[2], &[5]),
        (&[2, 3, 5], &[4, 7]),
        (&[5, 4], &[3, 4]),
        (&[1, 7], &[3, 2]),
        (&[3, 2, 4], &[5, 3, 3]),
        (&[1, 3, 1, 5], &[2, 3, 4]),
    ];
    let mut cases: Vec<(String, Vec<usize>, Resized)> = Vec::new();
    for (shape, size) in sizes {
        for mode in modes() {
            let name = format!("{shape:?} to {size:?}, {mode:?}");
            cases.push((name, shape.to_vec(), Box::new(move |x| x.interpolate(size, mode))));
        }
    }
    // Small fractions, large ones, and none.
    let factors: [&[f64]; 4] =
        [&[1.7, 0.6], &[2.24544, 1.0], &[0.6f32 as f64, 1.7], &[0.512345678901234, 2.0]];
    for (mode, factors) in modes().into_iter().flat_map(|mode| factors.map(|factors| (mode, factors))) {
        let name = format!("[5, 6] by {factors:?}, {mode:?}");
        cases.push((name, vec![5, 6], Box::new(move |x| x.interpolate_scale(factors, mode))));
    }
    cases.push(("pool 1".into(), vec![2, 7], Box::new(|x| x.adaptive_avg_pool1d(3))));
    cases.push(("pool 2".into(), vec![2, 7, 5], Box::new(|x| x.adaptive_avg_pool2d([3, 4]))));
    cases.push(("wide".into(), vec![9, 9], Box::new(|x| x.adaptive_avg_pool2d(2))));
    cases.push(("pool 3".into(), vec![3, 5, 4], Box::new(|x| x.adaptive_avg_pool3d([2, 3, 5]))));
    cases.push(("largest 1".into(), vec![2, 7], Box::new(|x| x.adaptive_max_pool1d(3))));
    cases.push(("largest 2".into(), vec![2, 7, 5], Box::new(|x| x.adaptive_max_pool2d([3, 4]))));
    cases.push(("largest, wide".into(), vec![9, 9], Box::new(|x| x.adaptive_max_pool2d(2))));
    cases.push(("largest 3".into(), vec![3, 5, 4], Box::new(|x| x.adaptive_max_pool3d([2, 3, 5]))));
    cases
}

/// What is a function of each result, and of none as of another.
fn weighed(y: &Tensor) -> Tensor {
    let shape = y.shape().unwrap();
    let weights = Tensor::from_vec(numbers(3, shape.elements(), 0.5, 1.5), shape).cast(y.dtype().unwrap());
    (y.sin() * weights.to(&y.device().unwrap())).sum(..)
}

#[test]
fn what_is_resized_goes_back() {
    for (name, shape, f) in cases() {
        println!("{name}");
        checked(|x| weighed(&f(x)), &numbers(8, shape.iter().product(), -1.0, 1.0), &shape);
    }
}

#[test]
fn what_is_resized_goes_back_twice() {
    for (name, shape, f) in cases() {
        println!("{name}");
        let slope = |x: &Tensor| weighed(&lazuli::grad(&weighed(&f(x)), x));
        checked(slope, &numbers(9, shape.iter().product(), -1.0, 1.0), &shape);
    }
    let third = |x: &Tensor| {
        let y = x.interpolate([5], Interpolation::Cubic { align_corners: false });
        let slope = lazuli::grad(&weighed(&y), x);
        weighed(&lazuli::grad(&weighed(&slope), x))
    };
    checked(third, &numbers(9, 3, -1.0, 1.0), &[3]);
}

#[test]
fn the_first_of_equal_elements_is_the_largest() {
    let slopes = |x: &[f64], f: fn(&Tensor) -> Tensor| {
        let x = Tensor::from_slice(x, [x.len()]).to(&Device::interpreter());
        lazuli::grad(&f(&x).sum(..), &x).to_vec::<f64>().unwrap()
    };
    // PyTorch's.
    assert_eq!(slopes(&[2.0; 5], |x| x.adaptive_max_pool1d(2)), [1.0, 0.0, 1.0, 0.0, 0.0]);
    let square = [1.0, 3.0, 3.0, 3.0, 2.0, 3.0, 0.0, 3.0, 3.0];
    let expected = [0.0, 2.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0];
    assert_eq!(slopes(&square, |x| x.reshape([3, 3]).adaptive_max_pool2d(2)), expected);
    assert_eq!(slopes(&[f64::NEG_INFINITY; 3], |x| x.adaptive_max_pool1d(2)), [1.0, 1.0, 0.0]);
}

#[test]
fn what_is_infinite_reaches_what_is_read_alone() {
    let x = Tensor::zeros([5], DType::F64).to(&Device::interpreter());
    let g = Tensor::from([0.0, 0.0, 0.0, f64::INFINITY, 0.0, 0.0, 0.0]).to(&Device::interpreter());
    for mode in modes() {
        let back = lazuli::vjp(&[x.interpolate([7], mode)], &[&g], &x).to_vec::<f64>().unwrap();
        assert!(back[2].is_infinite(), "{mode:?}: {back:?}");
        assert!(back[0] == 0.0 && back[4] == 0.0, "{mode:?}: {back:?}");
    }
}

#[test]
fn kernels_resize_back() {
    let results = |device: &Device| {
        let mut all = Vec::new();
        for mode in modes() {
            for (extent, size) in [(17, 29), (29, 17), (3, 40), (16, 24)] {
                let x = Tensor::randn([2, extent, extent + 2], 1).to(device);
                let y = x.interpolate([size, size + 3], mode);
                all.push((format!("{mode:?} {extent} {size}"), lazuli::grad(&y.sin().sum(..), &x)));
            }
        }
        for (extent, size) in [(17, 4), (9, 7)] {
            let x = Tensor::randn([2, extent, extent], 1).to(device);
            for y in [x.adaptive_avg_pool2d(size), x.adaptive_max_pool2d(size)] {
                all.push((format!("pool {extent} {size}"), lazuli::grad(&y.sin().sum(..), &x)));
            }
        }
        all.into_iter().map(|(name, x)| (name, x.to_vec::<f32>().unwrap())).collect::<Vec<_>>()
    };
    let expected = results(&Device::interpreter());
    let unfused = with_fusion(Fusion::Off, || results(&Device::cpu_interpreted()));
    for own in [results(&Device::cpu_interpreted()), unfused] {
        for ((name, expected), (_, own)) in expected.iter().zip(own) {
            for (own, expected) in own.iter().zip(expected) {
                assert!(
                    (own - expected).abs() <= 1e-5 * (1.0 + expected.abs()),
                    "{name}: {own}, not {expected}"
                );
            }
        }
    }
}
