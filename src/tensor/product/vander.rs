//! Matrices of powers.

use crate::tensor::arguments::call::Call;
use crate::tensor::make::create::counting;
use crate::{Shape, Tensor};

impl Tensor {
    /// Vandermonde's matrix: along a new last axis the powers of each element, from that of `columns - 1` down to 1, or from 1 up
    /// if `increasing`. PyTorch's and NumPy's `vander`, for any rows. Floats keep their dtype, integers and bools give `I64`
    /// and wrap.
    ///
    /// Invalid for a 0-d tensor.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[2, 3], [2]);
    /// assert_eq!(x.vander(3, true).to_vec::<i64>()?, [1, 2, 4, 1, 3, 9]);
    /// assert_eq!(x.vander(3, false).to_vec::<i64>()?, [4, 2, 1, 9, 3, 1]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn vander(&self, columns: usize, increasing: bool) -> Tensor {
        let call = Call::here("vander");
        call.composed(|| {
            let (shape, dtype) = self.known()?;
            if shape.rank() == 0 {
                return call.fail(format!("needs at least 1 dimension, got {dtype} {shape}"));
            }
            let result: Shape = shape.iter().copied().chain([columns]).collect();
            call.needs_addressable(&result)?;
            let factors = counting(columns).eq(0).where_(1, self.unsqueeze(-1));
            let powers = factors.cumprod(-1);
            Ok(if increasing { powers } else { powers.flip(-1) })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::tests::mistake;
    use crate::{DType, Device};

    #[test]
    fn powers_are_numpys() {
        let (nan, inf) = (f64::NAN, f64::INFINITY);
        let x = Tensor::from_slice(&[0.0, -2.0, inf, nan], [2, 2]).to(&Device::interpreter());
        let powers = x.vander(3, true);
        assert_eq!(powers.shape().unwrap(), Shape::from([2, 2, 3]));
        let got: Vec<f64> = powers.to_vec().unwrap();
        assert_eq!(got[..9], [1.0, 0.0, 0.0, 1.0, -2.0, 4.0, 1.0, inf, inf]);
        assert!(got[9] == 1.0 && got[10].is_nan() && got[11].is_nan());
        let flags = Tensor::from_slice(&[true, false], [2]).to(&Device::interpreter());
        assert_eq!(flags.vander(2, false).to_vec::<i64>().unwrap(), [1, 1, 0, 1]);
        assert_eq!(flags.vander(0, false).shape().unwrap(), Shape::from([2, 0]));
        assert_eq!(flags.slice(0, 2..).vander(5, true).shape().unwrap(), Shape::from([0, 5]));
        assert_eq!(flags.cast(DType::F16).vander(2, true).dtype().unwrap(), DType::F16);
        mistake!(Tensor::scalar(1.0).vander(2, true), "vander: needs at least 1 dimension, got f64 []");
    }
}
