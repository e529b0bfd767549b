//! Without the library nothing has a result; who asks [`Routine::IS_AVAILABLE`] does not ask for any.

use crate::routine::{Matrix, Routine};

/// NaN.
pub fn f32(_: Routine, _: Matrix<'_, f32>, _: Option<Matrix<'_, f32>>, to: &mut [&mut [f32]]) {
    to.iter_mut().for_each(|part| part.fill(f32::NAN));
}

/// NaN.
pub fn f64(_: Routine, _: Matrix<'_, f64>, _: Option<Matrix<'_, f64>>, to: &mut [&mut [f64]]) {
    to.iter_mut().for_each(|part| part.fill(f64::NAN));
}
