//! The windows of PyTorch's `torch.signal.windows` that are not among its other ones.

use std::f64::consts::PI;

use super::tapers::{shaped, taper};
use crate::tensor::arguments::call::Call;
use crate::tensor::make::create::counting;
use crate::{DType, Result, Tensor};

/// A. Nuttall's weights with a continuous first derivative, 1981.
const NUTTALL: [f64; 4] = [0.3635819, 0.4891775, 0.1365995, 0.0106411];

impl Tensor {
    /// A sum of cosines of 0, 1, 2 … turns along the window, with these weights, every other of which is subtracted: `w₀ - w₁ * cos(2πt / n) +
    /// w₂ * cos(4πt / n) - …`. PyTorch's `signal.windows.general_cosine`.
    ///
    /// A `periodic` window is one period of what goes on; otherwise, as by PyTorch's `sym=True`, it is symmetric. Computed in `F64`.
    /// Invalid for integers and bools, and without weights.
    ///
    /// ```
    /// use lazuli::{DType, Tensor};
    /// let window = Tensor::general_cosine_window(4, true, &[0.5, 0.25], DType::F64).round_decimals(9);
    /// assert_eq!(window.to_vec::<f64>()?, [0.25, 0.5, 0.75, 0.5]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn general_cosine_window(length: usize, periodic: bool, weights: &[f64], dtype: DType) -> Tensor {
        let call = Call::here("general_cosine_window");
        call.composed(|| alternating(call, length, periodic, dtype, weights))
    }

    /// `alpha - (1 - alpha) * cos(2πt / n)`: [`Tensor::hann_window`] of 0.5, [`Tensor::hamming_window`] of 0.54. PyTorch's
    /// `signal.windows.general_hamming`. `periodic`, dtypes and errors are those of [`Tensor::general_cosine_window`].
    ///
    /// ```
    /// use lazuli::{DType, Tensor};
    /// let window = Tensor::general_hamming_window(3, false, 0.75, DType::F64).round_decimals(9);
    /// assert_eq!(window.to_vec::<f64>()?, [0.5, 1.0, 0.5]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn general_hamming_window(length: usize, periodic: bool, alpha: f64, dtype: DType) -> Tensor {
        let call = Call::here("general_hamming_window");
        call.composed(|| alternating(call, length, periodic, dtype, &[alpha, 1.0 - alpha]))
    }

    /// Nuttall's window of four cosines with a continuous first derivative. PyTorch's `signal.windows.nuttall`. `periodic`, dtypes and
    /// errors are those of [`Tensor::general_cosine_window`].
    ///
    /// A. H. Nuttall, "Some windows with very good sidelobe behavior", 1981.
    ///
    /// ```
    /// use lazuli::{DType, Tensor};
    /// let window = Tensor::nuttall_window(3, false, DType::F64).round_decimals(7);
    /// assert_eq!(window.to_vec::<f64>()?, [0.0003628, 1.0, 0.0003628]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn nuttall_window(length: usize, periodic: bool, dtype: DType) -> Tensor {
        let call = Call::here("nuttall_window");
        call.composed(|| alternating(call, length, periodic, dtype, &NUTTALL))
    }

    /// The bell curve `exp(-(t - n / 2)² / (2 * std²))`. PyTorch's `signal.windows.gaussian`. `periodic` and dtypes are those of
    /// [`Tensor::general_cosine_window`].
    ///
    /// Invalid for integers and bools, and unless the deviation `std` is more than 0.
    ///
    /// ```
    /// use lazuli::{DType, Tensor};
    /// let window = Tensor::gaussian_window(3, false, 1.0, DType::F64);
    /// assert_eq!(window.to_vec::<f64>()?, [(-0.5f64).exp(), 1.0, (-0.5f64).exp()]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn gaussian_window(length: usize, periodic: bool, std: f64, dtype: DType) -> Tensor {
        let call = Call::here("gaussian_window");
        call.composed(|| {
            call.needs(std > 0.0, "the deviation of a window must be more than 0", std)?;
            let turns = (length as f64 - f64::from(u8::from(!periodic))).max(0.0);
            shaped(call, length, periodic, dtype, |_| {
                let distance = counting(length).cast(DType::F64) - turns / 2.0;
                ((distance / std).square() * -0.5).exp()
            })
        })
    }

    /// Half a period of a sine, `sin(π * (t + 1/2) / n)`, also called sine window. PyTorch's `signal.windows.cosine`. Dtypes and errors
    /// are those of [`Tensor::general_cosine_window`]; one that is `periodic` is the symmetric one of one more element without its last.
    ///
    /// ```
    /// use lazuli::{DType, Tensor};
    /// let window = Tensor::cosine_window(3, false, DType::F64).round_decimals(9);
    /// assert_eq!(window.to_vec::<f64>()?, [0.5, 1.0, 0.5]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn cosine_window(length: usize, periodic: bool, dtype: DType) -> Tensor {
        let call = Call::here("cosine_window");
        call.composed(|| {
            let steps = length as f64 + f64::from(u8::from(periodic));
            shaped(call, length, periodic, dtype, |_| {
                ((counting(length).cast(DType::F64) + 0.5) * (PI / steps)).sin()
            })
        })
    }

    /// `exp(-|t - center| / tau)`, about the middle of the window or about another element. PyTorch's `signal.windows.exponential`. `periodic`
    /// and dtypes are those of [`Tensor::general_cosine_window`].
    ///
    /// Invalid for integers and bools, unless `tau` is more than 0, and for a centre of a window that is not `periodic`, which would not be
    /// symmetric.
    ///
    /// ```
    /// use lazuli::{DType, Tensor};
    /// let window = Tensor::exponential_window(3, false, None, 1.0, DType::F64);
    /// assert_eq!(window.to_vec::<f64>()?, [(-1f64).exp(), 1.0, (-1f64).exp()]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn exponential_window(
        length: usize,
        periodic: bool,
        center: impl Into<Option<f64>>,
        tau: f64,
        dtype: DType,
    ) -> Tensor {
        let (call, center) = (Call::here("exponential_window"), center.into());
        call.composed(|| {
            call.needs(tau > 0.0, "tau of a window must be more than 0", tau)?;
            if let (Some(center), false) = (center, periodic) {
                return call.fail(format!("a window about {center} is not symmetric; let it be periodic"));
            }
            let about = |center: f64| {
                let distance = (counting(length).cast(DType::F64) - center).abs();
                (-(distance * (1.0 / tau))).exp()
            };
            match center {
                // Of one element too.
                Some(center) => {
                    let window = shaped(call, length, periodic, dtype, |_| about(center))?;
                    Ok(if length == 1 { about(center).cast(dtype) } else { window })
                }
                None => {
                    let turns = (length as f64 - f64::from(u8::from(!periodic))).max(0.0);
                    shaped(call, length, periodic, dtype, |_| about(turns / 2.0))
                }
            }
        })
    }
}

/// A sum of cosines of 0, 1, 2 … turns, added and subtracted in turn.
fn alternating(call: Call, length: usize, periodic: bool, dtype: DType, weights: &[f64]) -> Result<Tensor> {
    if weights.is_empty() {
        return call.fail("a window of cosines needs at least one weight");
    }
    let signed: Vec<f64> =
        weights.iter().zip([1.0, -1.0].into_iter().cycle()).map(|(weight, sign)| weight * sign).collect();
    taper(call, length, periodic, dtype, &signed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Device;
    use crate::tensor::tests::mistake;

    /// PyTorch's, of one element and of none.
    #[test]
    fn of_one_element_and_of_none() {
        let of = |window: Tensor| window.to(&Device::interpreter()).to_vec::<f64>().unwrap();
        let dtype = DType::F64;
        for (length, expected) in [(0, vec![]), (1, vec![1.0])] {
            for periodic in [true, false] {
                for window in [
                    Tensor::gaussian_window(length, periodic, 0.5, dtype),
                    Tensor::cosine_window(length, periodic, dtype),
                    Tensor::nuttall_window(length, periodic, dtype),
                    Tensor::exponential_window(length, periodic, None, 0.5, dtype),
                ] {
                    assert_eq!(of(window), expected);
                }
            }
        }
        assert_eq!(of(Tensor::exponential_window(1, true, 2.0, 1.0, dtype)), [(-2f64).exp()]);
    }

    #[test]
    fn mistakes_say_what_does_not_fit() {
        let dtype = DType::F32;
        mistake!(
            Tensor::gaussian_window(4, true, 0.0, dtype),
            "gaussian_window: the deviation of a window must be more than 0, got 0"
        );
        mistake!(
            Tensor::exponential_window(4, false, 1.0, 1.0, dtype),
            "exponential_window: a window about 1 is not symmetric; let it be periodic"
        );
        mistake!(
            Tensor::exponential_window(4, true, None, f64::NAN, dtype),
            "exponential_window: tau of a window must be more than 0, got NaN"
        );
        mistake!(
            Tensor::general_cosine_window(4, true, &[], dtype),
            "general_cosine_window: a window of cosines needs at least one weight"
        );
        mistake!(Tensor::cosine_window(4, true, DType::I32), "cosine_window: windows are of floats, not i32");
    }
}
