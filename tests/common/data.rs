//! Elements to compute with: those where implementations go wrong, and ordinary ones.

use lazuli::operations::{Elements, Input};
use lazuli::{DType, Device, Element, Shape, Tensor, bf16, f16};

/// A source of test elements.
pub trait Sample: Element {
    /// Limits, zeros, NaN, numbers between which conversions round, and a few ordinary ones.
    fn specials() -> Vec<Self>;

    /// An ordinary number made from one in [-1, 1): exact in every dtype, at most 8, and 0 now and then.
    fn ordinary(unit: f64) -> Self;
}

/// Numbers that every float dtype must treat right; what a dtype cannot hold becomes its neighbour or infinity.
const FLOATS: [f64; 58] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    1.5,
    2.5,
    -2.5,
    3.5,
    0.49999997,
    -3.7,
    3.7,
    0.1,
    -0.1,
    2.0,
    -2.0,
    3.0,
    -3.0,
    7.0,
    10.0,
    100.25,
    -100.25,
    1e-3,
    -1e-3,
    1e-7,
    6e-8,
    1e-20,
    1.1754943508222875e-38,
    1e-40,
    -1e-40,
    1.401298464324817e-45,
    3.4028234663852886e38,
    -3.4028234663852886e38,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
    255.0,
    255.5,
    256.0,
    -256.0,
    2049.0,
    65504.0,
    65520.0,
    16777216.0,
    16777217.0,
    2147483520.0,
    2147483648.0,
    -2147483648.0,
    9.223371e18,
    9.223372036854776e18,
    -9.223372036854776e18,
    std::f64::consts::PI,
    -std::f64::consts::FRAC_PI_2,
    88.5,
    -87.5,
    -103.0,
    1e10,
];

/// Only `F64` holds these: beyond `F32`, or between two 16-bit floats by less than an `F32` can tell.
const DOUBLES: [f64; 10] = [
    1.7976931348623157e308,
    -1.7976931348623157e308,
    2.2250738585072014e-308,
    5e-324,
    -5e-324,
    9007199254740993.0,
    1.0 + 1.0 / 2048.0 + 1e-12,
    1.0 + 1.0 / 256.0 + 1e-12,
    1.0 + 3.0 / 2048.0 - 1e-12,
    3.4028235677973366e38,
];

macro_rules! samples {
    ($($ty:ty: $specials:expr, $ordinary:expr;)*) => {$(
        impl Sample for $ty {
            fn specials() -> Vec<$ty> {
                $specials
            }
            fn ordinary(unit: f64) -> $ty {
                let ordinary: fn(f64) -> $ty = $ordinary;
                ordinary(unit)
            }
        }
    )*};
}

samples! {
    bool: vec![false, true, true], |x| x > 0.0;
    u8: vec![0, 1, 2, 3, 5, 7, 16, 100, 127, 128, 200, 254, 255], |x| (x.abs() * 8.0) as u8;
    i8: vec![0, 1, -1, 2, -2, 3, -3, 5, 7, -7, 10, 16, 100, -100, i8::MAX, i8::MIN, i8::MAX - 1, i8::MIN + 1],
        |x| (x * 8.0) as i8;
    i16: vec![
        0, 1, -1, 2, -2, 3, -3, 5, 7, -7, 10, 15, 16, 100, -100, 181, 182, 255, 256, -256, i16::MAX, i16::MIN,
        i16::MAX - 1, i16::MIN + 1,
    ], |x| (x * 8.0) as i16;
    u32: vec![
        0, 1, 2, 3, 5, 7, 10, 31, 32, 100, 255, 256, 65_535, 65_536, 16_777_217, i32::MAX as u32, 1 << 31, 3_000_000_000,
        u32::MAX - 1, u32::MAX,
    ], |x| (x.abs() * 8.0) as u32;
    i32: vec![
        0, 1, -1, 2, -2, 3, -3, 5, 7, -7, 10, 31, 32, 100, -100, 255, 256, -256, 46_341, 65_535, 16_777_217, -16_777_217,
        i32::MAX, i32::MIN, i32::MAX - 1, i32::MIN + 1,
    ], |x| (x * 8.0) as i32;
    i64: vec![
        0, 1, -1, 2, -2, 3, -3, 5, 7, -7, 10, 63, 64, 100, -100, 255, 256, -256, 65_535, 16_777_217, -16_777_217,
        i32::MAX as i64, i32::MIN as i64, 1 << 32, 3_037_000_500, 9_007_199_254_740_993, i64::MAX, i64::MIN,
        i64::MAX - 1, i64::MIN + 1,
    ], |x| (x * 8.0) as i64;
    f16: FLOATS.iter().map(|&x| f16::from_f64(x)).chain([f16::MIN_POSITIVE_SUBNORMAL, f16::MIN_POSITIVE, f16::MAX, f16::MIN, f16::from_f64(-6e-8)]).collect(),
        |x| f16::from_f64((x * 32.0).trunc() / 4.0);
    bf16: FLOATS.iter().map(|&x| bf16::from_f64(x)).chain([bf16::MIN_POSITIVE_SUBNORMAL, bf16::MIN_POSITIVE, bf16::MAX, bf16::MIN]).collect(),
        |x| bf16::from_f64((x * 32.0).trunc() / 4.0);
    f32: FLOATS.iter().map(|&x| x as f32).collect(), |x| ((x * 32.0).trunc() / 4.0) as f32;
    f64: FLOATS.iter().chain(&DOUBLES).copied().collect(), |x| (x * 32.0).trunc() / 4.0;
}

/// Evaluates the expression with the alias standing for the dtype's element type.
#[macro_export]
macro_rules! with_type {
    ($dtype:expr, $alias:ident => $body:expr) => {
        $crate::with_type!(@ $dtype, $alias, $body,
            Bool bool, U8 u8, I8 i8, I16 i16, I32 i32, U32 u32, I64 i64, F16 lazuli::f16, BF16 lazuli::bf16, F32 f32, F64 f64)
    };
    (@ $dtype:expr, $alias:ident, $body:expr, $($variant:ident $ty:ty),*) => {
        match $dtype {
            $(lazuli::DType::$variant => {
                type $alias = $ty;
                $body
            })*
        }
    };
}

/// Numbers in [-1, 1), the same on every run.
pub fn units(count: usize, seed: u64) -> impl Iterator<Item = f64> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x2545_f491_4f6c_dd1d;
    std::iter::repeat_with(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    })
    .take(count)
}

/// All special elements, in one dimension.
pub fn specials(device: &Device, dtype: DType) -> Tensor {
    with_type!(dtype, T => {
        let elements = T::specials();
        Tensor::from_slice(&elements, [elements.len()]).to(device)
    })
}

/// The special elements over and over, from the one numbered `first` on, every `step`-th.
pub fn mixed(device: &Device, dtype: DType, shape: impl Into<Shape>, first: usize, step: usize) -> Tensor {
    let shape = shape.into();
    with_type!(dtype, T => {
        let specials = T::specials();
        let elements: Vec<T> =
            (0..shape.elements()).map(|i| specials[(first + i * step) % specials.len()]).collect();
        Tensor::from_vec(elements, shape).to(device)
    })
}

/// Ordinary elements: small, exact in every dtype.
pub fn ordinary(device: &Device, dtype: DType, shape: impl Into<Shape>, seed: u64) -> Tensor {
    let shape = shape.into();
    with_type!(dtype, T => {
        let elements: Vec<T> = units(shape.elements(), seed).map(T::ordinary).collect();
        Tensor::from_vec(elements, shape).to(device)
    })
}

/// Numbers in [-scale, scale) with all the digits of an `F32`, in any float dtype.
pub fn floats(device: &Device, dtype: DType, shape: impl Into<Shape>, scale: f64, seed: u64) -> Tensor {
    let shape = shape.into();
    let elements: Vec<f32> = units(shape.elements(), seed).map(|x| (x * scale) as f32).collect();
    // Converted before it reaches the device, so that a case has exactly the operations that it names.
    match dtype {
        DType::F16 => Tensor::from_vec(elements.into_iter().map(f16::from_f32).collect(), shape),
        DType::BF16 => Tensor::from_vec(elements.into_iter().map(bf16::from_f32).collect(), shape),
        DType::F64 => Tensor::from_vec(elements.into_iter().map(f64::from).collect(), shape),
        _ => Tensor::from_vec(elements, shape),
    }
    .to(device)
}

/// An input of an operation of the table. `shape` is for one that may have any shape, `first` chooses its elements.
pub fn input(device: &Device, input: &Input, dtype: DType, shape: &[usize], first: usize) -> Tensor {
    let (shape, dtype) = (input.shape.unwrap_or(shape), input.dtype.unwrap_or(dtype));
    match input.elements {
        Elements::Special => mixed(device, dtype, shape, first, 1),
        Elements::Small => ordinary(device, dtype, shape, first as u64 + 1),
        Elements::Unit => {
            let shape = Shape::from(shape);
            let elements = units(shape.elements(), first as u64 + 1).map(|x| x.abs() as f32).collect();
            Tensor::from_vec(elements, shape).cast(dtype).to(device)
        }
        Elements::Below(end) => {
            let shape = Shape::from(shape);
            let index = |x: f64| (x.abs() * end as f64) as i64;
            let elements = units(shape.elements(), first as u64 + 1).map(index).collect();
            Tensor::from_vec(elements, shape).cast(dtype).to(device)
        }
    }
}
