//! Without the libraries nothing has a result; who asks [`Routine::IS_AVAILABLE`] does not ask for any.

use std::marker::PhantomData;

use crate::routine::{Matrix, Routine};
use crate::transform::Transform;

/// NaN.
pub fn f32(_: Routine, _: Matrix<'_, f32>, _: Option<Matrix<'_, f32>>, to: &mut [&mut [f32]]) {
    to.iter_mut().for_each(|part| part.fill(f32::NAN));
}

/// NaN.
pub fn f64(_: Routine, _: Matrix<'_, f64>, _: Option<Matrix<'_, f64>>, to: &mut [&mut [f64]]) {
    to.iter_mut().for_each(|part| part.fill(f64::NAN));
}

/// No transform.
pub struct Lines<T>(PhantomData<T>);

macro_rules! lines {
    ($($float:ident)*) => {$(
        impl Lines<$float> {
            /// None.
            pub fn new(_: Transform, _: usize) -> Lines<$float> {
                Lines(PhantomData)
            }

            /// NaN.
            pub fn one(&mut self, _: &[$float], _: &[$float], to_re: &mut [$float], to_im: &mut [$float]) {
                to_re.fill($float::NAN);
                to_im.fill($float::NAN);
            }
        }
    )*};
}
lines!(f32 f64);
