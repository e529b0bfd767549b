//! Windows that let a signal begin and end gently, for transforms of a part of it.

use std::f64::consts::TAU;

use crate::tensor::arguments::call::Call;
use crate::tensor::make::create::counting;
use crate::{DType, Result, Tensor};

macro_rules! taper_methods {
    ($($(#[$meta:meta])* $name:ident = [$($weight:literal),*];)*) => {
        impl Tensor {
            $($(#[$meta])*
            ///
            /// A `periodic` window, PyTorch's default, is one period of what goes on, as transforms want; otherwise it is
            /// symmetric, as NumPy's and as filters want. Computed in `F64`. Invalid for integers and bools.
            #[track_caller]
            pub fn $name(length: usize, periodic: bool, dtype: DType) -> Tensor {
                let call = Call::here(stringify!($name));
                call.composed(|| taper(call, length, periodic, dtype, &[$($weight),*]))
            })*
        }
    };
}

taper_methods! {
    /// Hann's window: `0.5 - 0.5 * cos(2πt / n)`.
    ///
    /// ```
    /// use lazuli::{DType, Tensor};
    /// let window = Tensor::hann_window(4, true, DType::F64).round_decimals(9);
    /// assert_eq!(window.to_vec::<f64>()?, [0.0, 0.5, 1.0, 0.5]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    hann_window = [0.5, -0.5];
    /// Hamming's window: `0.54 - 0.46 * cos(2πt / n)`.
    ///
    /// ```
    /// use lazuli::{DType, Tensor};
    /// let window = Tensor::hamming_window(3, false, DType::F64).round_decimals(9);
    /// assert_eq!(window.to_vec::<f64>()?, [0.08, 1.0, 0.08]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    hamming_window = [0.54, -0.46];
    /// Blackman's window: `0.42 - 0.5 * cos(2πt / n) + 0.08 * cos(4πt / n)`.
    ///
    /// ```
    /// use lazuli::{DType, Tensor};
    /// let window = Tensor::blackman_window(3, false, DType::F64).round_decimals(9).abs();
    /// assert_eq!(window.to_vec::<f64>()?, [0.0, 1.0, 0.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    blackman_window = [0.42, -0.5, 0.08];
}

/// A sum of cosines of 0, 1, 2 … turns along the window.
fn taper(call: Call, length: usize, periodic: bool, dtype: DType, weights: &[f64]) -> Result<Tensor> {
    if !dtype.is_float() {
        return call.fail(format!("windows are of floats, not {dtype}"));
    }
    call.needs_addressable(&[length].into())?;
    if length == 1 {
        return Ok(Tensor::ones([1], dtype));
    }
    let turns = length.saturating_sub(usize::from(!periodic)).max(1) as f64;
    let angle = counting(length).cast(DType::F64) * (TAU / turns);
    let cosines = weights.iter().enumerate().skip(1).map(|(turns, &weight)| (&angle * turns).cos() * weight);
    let first = angle.full_like(weights.first().copied().unwrap_or(0.0));
    Ok(cosines.fold(first, |sum, cosine| sum + cosine).cast(dtype))
}
