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

impl Tensor {
    /// Hamming's window with other weights, `alpha - beta * cos(2πt / n)`: PyTorch's `hamming_window` with `alpha` and `beta`.
    ///
    /// ```
    /// use lazuli::{DType, Tensor};
    /// let window = Tensor::hamming_window_with(3, false, 0.75, 0.25, DType::F64).round_decimals(9);
    /// assert_eq!(window.to_vec::<f64>()?, [0.5, 1.0, 0.5]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    ///
    /// A `periodic` window, PyTorch's default, is one period of what goes on; otherwise it is symmetric. Computed in `F64`. Invalid
    /// for integers and bools.
    #[track_caller]
    pub fn hamming_window_with(length: usize, periodic: bool, alpha: f64, beta: f64, dtype: DType) -> Tensor {
        let call = Call::here("hamming_window_with");
        call.composed(|| taper(call, length, periodic, dtype, &[alpha, -beta]))
    }

    /// Bartlett's window, a triangle: `1 - |2t / n - 1|`, which is 0 where it begins.
    ///
    /// ```
    /// use lazuli::{DType, Tensor};
    /// assert_eq!(Tensor::bartlett_window(4, true, DType::F64).to_vec::<f64>()?, [0.0, 0.5, 1.0, 0.5]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    ///
    /// A `periodic` window, PyTorch's default, is one period of what goes on; otherwise it is symmetric. Computed in `F64`. Invalid
    /// for integers and bools.
    #[track_caller]
    pub fn bartlett_window(length: usize, periodic: bool, dtype: DType) -> Tensor {
        let call = Call::here("bartlett_window");
        call.composed(|| shaped(call, length, periodic, dtype, |turns| 1.0 - (turns * 2.0 - 1.0).abs()))
    }

    /// Kaiser's window: `i0(beta * sqrt(1 - (2t / n - 1)²)) / i0(beta)`. The larger `beta`, 12 by default in PyTorch, the less of
    /// other frequencies a transform shows, and the wider each is.
    ///
    /// ```
    /// use lazuli::{DType, Tensor};
    /// let window = Tensor::kaiser_window(5, false, 0.0, DType::F64);
    /// assert_eq!(window.to_vec::<f64>()?, [1.0; 5]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    ///
    /// A `periodic` window, PyTorch's default, is one period of what goes on; otherwise it is symmetric. Computed in `F64`. Invalid
    /// for integers and bools, and for a `beta` that is below 0 or NaN.
    #[track_caller]
    pub fn kaiser_window(length: usize, periodic: bool, beta: f64, dtype: DType) -> Tensor {
        let call = Call::here("kaiser_window");
        call.composed(|| {
            call.needs(beta >= 0.0, "beta of a window must be 0 or more", beta)?;
            let at = |root: Tensor| (root * beta).i0();
            shaped(call, length, periodic, dtype, |turns| {
                let inside = (1.0 - (turns * 2.0 - 1.0).square()).clamp_min(0.0);
                let most = at(inside.slice(0, ..1).ones_like());
                at(inside.sqrt()) / most
            })
        })
    }
}

/// A window of some shape, which is given how far along it each position is: from 0 to 1 in `F64`.
pub(super) fn shaped(
    call: Call,
    length: usize,
    periodic: bool,
    dtype: DType,
    shape: impl FnOnce(Tensor) -> Tensor,
) -> Result<Tensor> {
    if !dtype.is_float() {
        return call.fail(format!("windows are of floats, not {dtype}"));
    }
    call.needs_addressable(&[length].into())?;
    if length <= 1 {
        return Ok(Tensor::ones([length], dtype));
    }
    let turns = length - usize::from(!periodic);
    Ok(shape(counting(length).cast(DType::F64) / turns as f64).cast(dtype))
}

/// A sum of cosines of 0, 1, 2 … turns along the window.
pub(super) fn taper(
    call: Call,
    length: usize,
    periodic: bool,
    dtype: DType,
    weights: &[f64],
) -> Result<Tensor> {
    shaped(call, length, periodic, dtype, |turns| {
        let angle = turns * TAU;
        let cosines =
            weights.iter().enumerate().skip(1).map(|(turns, &weight)| (&angle * turns as f64).cos() * weight);
        let first = angle.full_like(weights.first().copied().unwrap_or(0.0));
        cosines.fold(first, |sum, cosine| sum + cosine)
    })
}
