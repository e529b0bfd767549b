//! Proves Fourier transforms right: of lengths with all kinds of factors against sums in double precision, and on
//! every device against the interpreter.

use std::f64::consts::TAU;

use lazuli::{DType, Device, Index, Shape, Stft, Tensor, explain};

use crate::common::data::floats;
use crate::common::{check, check_on_cpu, near};

/// Butterflies of all sizes, several passes, products with matrices of large primes (11, 17), convolutions (67, 134).
const LENGTHS: [usize; 21] =
    [1, 2, 3, 7, 16, 17, 20, 24, 27, 35, 64, 66, 67, 81, 113, 114, 134, 150, 243, 256, 400];

/// `Σ x[t] * exp(sign * 2πi * k * t / n)` of rows.
fn sums(re: &[f64], im: &[f64], n: usize, sign: f64) -> (Vec<f64>, Vec<f64>) {
    let (mut sums_re, mut sums_im) = (Vec::new(), Vec::new());
    for (re, im) in re.chunks(n).zip(im.chunks(n)) {
        for k in 0..n {
            let (mut sum_re, mut sum_im) = (0.0, 0.0);
            for t in 0..n {
                let (sin, cos) = (sign * TAU * ((k * t) % n) as f64 / n as f64).sin_cos();
                sum_re += re[t] * cos - im[t] * sin;
                sum_im += re[t] * sin + im[t] * cos;
            }
            sums_re.push(sum_re);
            sums_im.push(sum_im);
        }
    }
    (sums_re, sums_im)
}

/// All numbers, in double precision.
fn numbers(x: &Tensor) -> Vec<f64> {
    x.cast(DType::F64).to_vec().unwrap()
}

fn assert_close(what: &str, got: &Tensor, expected: &[f64], tolerance: f64) {
    let got = numbers(got);
    assert_eq!(got.len(), expected.len(), "{what}");
    for (place, (got, expected)) in got.iter().zip(expected).enumerate() {
        assert!((got - expected).abs() <= tolerance, "{what}, element {place}: {got}, not {expected}");
    }
}

#[test]
fn transforms_are_those_of_plain_sums() {
    for n in LENGTHS {
        // In double precision, a few are enough.
        let wide = [20, 67, 114].contains(&n).then_some((DType::F64, 1e-15));
        for (dtype, precision) in [(DType::F32, 3e-7)].into_iter().chain(wide) {
            let data = |seed| floats(&Device::cpu(), dtype, [3, n], 1.0, seed);
            let (x, y) = (data(1), data(2));
            let (re, im) = (numbers(&x), numbers(&y));
            // Rounding is of the largest sums, and grows with the number of passes.
            let tolerance = precision * (n as f64).sqrt() * 8.0;
            let (got_re, got_im) = x.fft(&y, 1);
            let (expected_re, expected_im) = sums(&re, &im, n, -1.0);
            assert_close(&format!("{dtype} fft of {n}, re"), &got_re, &expected_re, tolerance);
            assert_close(&format!("{dtype} fft of {n}, im"), &got_im, &expected_im, tolerance);

            let (got_re, got_im) = x.ifft(&y, 1);
            let (mut back_re, mut back_im) = sums(&re, &im, n, 1.0);
            back_re.iter_mut().chain(&mut back_im).for_each(|sum| *sum /= n as f64);
            assert_close(&format!("{dtype} ifft of {n}, re"), &got_re, &back_re, tolerance);
            assert_close(&format!("{dtype} ifft of {n}, im"), &got_im, &back_im, tolerance);

            let (got_re, got_im) = x.rfft(1);
            let (real_re, real_im) = sums(&re, &vec![0.0; re.len()], n, -1.0);
            let half =
                |x: &[f64]| -> Vec<f64> { x.chunks(n).flat_map(|row| row[..n / 2 + 1].to_vec()).collect() };
            assert_close(&format!("{dtype} rfft of {n}, re"), &got_re, &half(&real_re), tolerance);
            assert_close(&format!("{dtype} rfft of {n}, im"), &got_im, &half(&real_im), tolerance);
            assert_close(&format!("{dtype} irfft of {n}"), &got_re.irfft(&got_im, n, 1), &re, tolerance);
        }
    }
}

/// The plain sums along the rows of a matrix, and then along its columns.
fn sums_of_both(re: &[f64], im: &[f64], [rows, columns]: [usize; 2], sign: f64) -> (Vec<f64>, Vec<f64>) {
    let turned = |x: &[f64], rows: usize, columns: usize| -> Vec<f64> {
        (0..columns * rows).map(|i| x[i % rows * columns + i / rows]).collect()
    };
    let (re, im) = sums(re, im, columns, sign);
    let (re, im) = sums(&turned(&re, rows, columns), &turned(&im, rows, columns), rows, sign);
    (turned(&re, columns, rows), turned(&im, columns, rows))
}

#[test]
fn transforms_of_images_are_those_of_plain_sums() {
    for [rows, columns] in [[1, 1], [1, 5], [3, 1], [5, 6], [4, 17], [20, 9], [7, 120]] {
        for (dtype, precision) in [(DType::F32, 3e-7), (DType::F64, 1e-15)] {
            let count = rows * columns;
            let tolerance = precision * (count as f64).sqrt() * 8.0;
            let data = |seed| floats(&Device::interpreter(), dtype, [2, rows, columns], 1.0, seed);
            let (x, y) = (data(1), data(2));
            // Of the second of two images.
            let second = |x: &Tensor| numbers(&x.select(0, 1));
            let close = |what: &str, got: (Tensor, Tensor), expected: (Vec<f64>, Vec<f64>)| {
                let what = format!("{dtype} {what} of {rows}×{columns}");
                assert_close(&format!("{what}, re"), &got.0.select(0, 1), &expected.0, tolerance);
                assert_close(&format!("{what}, im"), &got.1.select(0, 1), &expected.1, tolerance);
            };
            let (re, im) = (second(&x), second(&y));
            let forward = sums_of_both(&re, &im, [rows, columns], -1.0);
            close("fft2", x.fft2(&y), forward.clone());
            close("fftn", x.fftn(&y, [-1, 1]), forward);
            let (mut back_re, mut back_im) = sums_of_both(&re, &im, [rows, columns], 1.0);
            back_re.iter_mut().chain(&mut back_im).for_each(|sum| *sum /= count as f64);
            close("ifft2", x.ifft2(&y), (back_re, back_im));

            let half = x.rfft2();
            let (real_re, real_im) = sums_of_both(&re, &vec![0.0; count], [rows, columns], -1.0);
            let cut = |x: &[f64], kept: usize| -> Vec<f64> {
                x.chunks(columns).flat_map(|row| row[..kept].to_vec()).collect()
            };
            let kept = columns / 2 + 1;
            close("rfft2", half.clone(), (cut(&real_re, kept), cut(&real_im, kept)));
            let back = half.0.irfft2(&half.1, columns);
            assert_close(&format!("{dtype} irfft2 of {rows}×{columns}"), &back.select(0, 1), &re, tolerance);
            // The last of the named axes has half of the results.
            let (re_first, _) = x.rfftn([2, 1]);
            let expected: Vec<f64> = real_re[..(rows / 2 + 1) * columns].to_vec();
            assert_close("rfftn, rows last", &re_first.select(0, 1), &expected, tolerance);
        }
    }
    let x = Tensor::from_slice(&[1.0f32, 2.0], [2]);
    let (re, im) = x.fftn(&x, Vec::<isize>::new());
    assert_eq!((re.to_vec::<f32>().unwrap(), im.to_vec::<f32>().unwrap()), (vec![1.0, 2.0], vec![1.0, 2.0]));
}

/// `numpy.fft`'s, of even and odd numbers and of one.
#[test]
fn frequencies_and_their_order_are_numpys() {
    let freq = |n, spacing| numbers(&Tensor::fftfreq(n, spacing, DType::F64));
    assert_eq!(freq(1, 2.0), [0.0]);
    assert_eq!(freq(2, 0.25), [0.0, -2.0]);
    assert_eq!(freq(6, 1.0 / 6.0), [0.0, 1.0, 2.0, -3.0, -2.0, -1.0]);
    assert_eq!(freq(7, -1.0 / 7.0), [0.0, -1.0, -2.0, -3.0, 3.0, 2.0, 1.0]);
    let half = |n, spacing| numbers(&Tensor::rfftfreq(n, spacing, DType::F64));
    assert_eq!(half(1, 2.0), [0.0]);
    assert_eq!(half(6, 1.0 / 6.0), [0.0, 1.0, 2.0, 3.0]);
    assert_eq!(half(7, 1.0 / 7.0), [0.0, 1.0, 2.0, 3.0]);
    let shifted = |n: i32, back: bool| {
        let x = Tensor::arange(0, n, 1);
        (if back { x.ifftshift(-1) } else { x.fftshift(-1) }).to_vec::<i32>().unwrap()
    };
    assert_eq!(shifted(6, false), [3, 4, 5, 0, 1, 2]);
    assert_eq!(shifted(7, false), [4, 5, 6, 0, 1, 2, 3]);
    assert_eq!(shifted(7, true), [3, 4, 5, 6, 0, 1, 2]);
    assert_eq!(shifted(1, true), [0]);
    let x = Tensor::arange(0, 6, 1).reshape([2, 3]);
    assert_eq!(x.fftshift(..).to_vec::<i32>().unwrap(), [5, 3, 4, 2, 0, 1]);
    assert_eq!(x.slice(1, 3..).fftshift(1).shape().unwrap(), Shape::from([2, 0]));
    assert_eq!(Tensor::scalar(3).ifftshift(..).item::<i32>().unwrap(), 3);
}

/// The imaginary parts of the first result, and of the middle one of an even number, are not looked at.
#[test]
fn real_transforms_back_ignore_what_real_numbers_have_not() {
    for n in [1, 2, 6, 7, 100, 114, 143] {
        let (re, im) = floats(&Device::cpu(), DType::F32, [2, n], 1.0, 3).rfft(1);
        let mut odd = im.slice_assign([Index::from(..), 0.into()], f32::NAN);
        if n % 2 == 0 {
            odd = odd.slice_assign([Index::from(..), (n as isize / 2).into()], f32::INFINITY);
        }
        let (expected, got) = (re.irfft(&im, n, 1), re.irfft(&odd, n, 1));
        assert_close(&format!("irfft of {n}"), &got, &numbers(&expected), 1e-6);
    }
}

#[test]
fn transforms_agree_with_the_interpreter() {
    for (shape, axis) in
        [(vec![20], 0), (vec![3, 36], 1), (vec![100, 3], 0), (vec![2, 128, 5], 1), (vec![2, 3, 114], 2)]
    {
        check(&format!("transforms of {shape:?} along {axis}"), |device| {
            let data = |seed| floats(device, DType::F32, Shape::from(&shape[..]), 1.0, seed);
            let (x, y) = (data(1), data(2));
            let (re, im) = x.fft(&y, axis);
            let (half_re, half_im) = x.rfft(axis);
            let n = shape[axis as usize];
            let back = half_re.irfft(&half_im, n, axis);
            let names = ["re", "im", "half re", "half im", "back"];
            names
                .into_iter()
                .zip([re, im, half_re, half_im, back])
                .map(|(name, y)| near(name, y, 1e-5, 1e-5))
                .collect()
        });
    }
}

#[test]
fn transforms_of_many_rows_agree_with_the_interpreter() {
    for (rows, n) in [(70, 128), (33, 200), (9, 512), (2, 4096), (300, 48)] {
        check_on_cpu(&format!("transforms of {rows} rows of {n}"), |device| {
            let data = |seed| floats(device, DType::F32, [rows, n], 1.0, seed);
            let (x, y) = (data(1), data(2));
            let (re, im) = x.fft(&y, 1);
            let (half_re, half_im) = x.rfft(1);
            // A convolution around: what follows is in the kernels of the passes.
            let (other_re, other_im) = y.rfft(1);
            let product_re = &half_re * &other_re - &half_im * &other_im;
            let product_im = &half_re * other_im + &half_im * other_re;
            let around = product_re.irfft(&product_im, n, 1) / n as f64;
            let power = half_re.square() + half_im.square();
            let names = ["re", "im", "power", "around"];
            let outputs = names.into_iter().zip([re, im, power, around]);
            outputs.map(|(name, y)| near(name, y, 1e-4, 1e-4)).collect()
        });
    }
}

#[test]
fn spectrograms_agree_with_the_interpreter() {
    check_on_cpu("power of a spectrogram, and its signal", |device| {
        let x = floats(device, DType::F32, [3, 2000], 1.0, 1);
        let settings = Stft::new(200).hop(80).window(&Tensor::hann_window(200, true, DType::F32).to(device));
        let (re, im) = x.stft(&settings);
        let back = re.istft(&im, &settings, 2000);
        vec![near("power", (&re * &re + &im * &im).log1p(), 1e-4, 1e-4), near("back", back, 1e-4, 1e-4)]
    });
}

#[test]
fn each_pass_is_one_kernel() {
    for (n, passes) in [(64, 2), (256, 3), (512, 3), (4096, 4)] {
        let data = |seed| floats(&Device::cpu_interpreted(), DType::F32, [(1 << 20) / n, n], 1.0, seed);
        let (re, im) = data(1).fft(&data(2), 1);
        let explanation = explain([&re, &im]).unwrap();
        assert_eq!(explanation.kernels(), passes, "{n}\n{explanation}");
    }
}

/// What is joined follows from each other by way of a reduction, or of another join.
#[test]
fn joins_of_what_others_lie_between() {
    check("parts before and after a sum", |device| {
        let x = floats(device, DType::F32, [2, 3, 40], 1.0, 1).exp();
        let share = &x / x.sum_keepdim(2);
        let parts = [&x + &share, &x - &share, &share * 2.0, share.clone()];
        let joined = Tensor::stack(parts, 1);
        vec![near("joined", joined.relu(), 1e-5, 1e-5), near("share", share, 1e-5, 1e-5)]
    });
    check("a join before and after a running sum", |device| {
        let x = floats(device, DType::F32, [5, 300], 1.0, 1);
        let joined = Tensor::stack([x.sin(), x.cos()], 0);
        vec![near("joined", &joined + joined.cumsum(2).tanh(), 1e-5, 1e-5)]
    });
    check("joins that need parts of each other", |device| {
        let joined = |seed| {
            let x = floats(device, DType::F32, [5, 300], 1.0, seed);
            Tensor::stack([x.sin(), x.cos()], 0)
        };
        let (one, other) = (joined(1), joined(2));
        let (one_sum, other_sum) = (one.cumsum(2).tanh(), other.cumsum(2).tanh());
        vec![near("one", one + other_sum, 1e-5, 1e-5), near("other", other + one_sum, 1e-5, 1e-5)]
    });
}

/// By a library on a CPU; a function that is traced has kernels. Of lines and columns, numbers with small factors and primes, and their
/// gradients.
#[test]
fn a_library_and_the_decomposition_agree() {
    type Results = (Vec<Tensor>, (Tensor, Tensor));
    for shape in [vec![17], vec![3, 20], vec![24, 5], vec![2, 18, 31]] {
        for axis in 0..shape.len() as isize {
            let n = shape[axis as usize];
            let all = move |(x, y): (Tensor, Tensor)| -> Results {
                let (re, im) = x.fft(&y, axis);
                let (back_re, back_im) = x.ifft(&y, axis);
                let (half_re, half_im) = x.rfft(axis);
                let real = half_re.irfft(&(&half_im + 1.0), n, axis);
                let results = vec![re, im, back_re, back_im, half_re, half_im, real];
                let weighted = |(number, x): (usize, &Tensor)| (x.square() * (number + 1) as f64).sum(..);
                let loss = results.iter().enumerate().map(weighted).reduce(|sum, x| sum + x).unwrap();
                let gradients = lazuli::grad(&loss, &(x, y));
                (results, gradients)
            };
            let data = |seed| floats(&Device::cpu(), DType::F64, shape.clone(), 1.0, seed);
            let (x, y) = (data(1), data(2));
            let (composed, of_composed) = lazuli::compile(all).call((&x, &y)).unwrap();
            let (made, of_made) = all((x, y));
            lazuli::eval(made.iter().chain([&of_made.0, &of_made.1])).unwrap();
            let gradients = [(&of_composed.0, &of_made.0), (&of_composed.1, &of_made.1)];
            for (number, (composed, made)) in composed.iter().zip(&made).chain(gradients).enumerate() {
                let what = format!("result {number} of {shape:?} along {axis}");
                assert_eq!(composed.shape().unwrap(), made.shape().unwrap(), "{what}");
                assert_close(&what, made, &numbers(composed), 1e-10);
            }
        }
    }
}
