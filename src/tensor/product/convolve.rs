//! NumPy's convolution of two vectors.

use crate::tensor::arguments::call::Call;
use crate::tensor::arguments::promotion::Operand;
use crate::tensor::map::operands::Rule;
use crate::{Result, Tensor};

/// Which part of a convolution [`Tensor::convolve`] gives: NumPy's `mode`.
///
/// ```
/// use lazuli::{ConvolveMode, Tensor};
/// let (x, w) = (Tensor::from([1, 2, 3]), Tensor::from([0, 1, 10]));
/// assert_eq!(x.convolve(&w, ConvolveMode::Same).to_vec::<i32>()?, [1, 12, 23]);
/// # Ok::<(), lazuli::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum ConvolveMode {
    /// Wherever the two overlap: of `m` and `n` elements `m + n - 1`.
    #[default]
    Full,
    /// The middle, as long as the longer one.
    Same,
    /// Where the shorter one is within the longer one.
    Valid,
}

impl Tensor {
    /// The convolution of two vectors, one of which is reversed: element k is the sum of all `self[i] * other[k - i]`. In the promoted
    /// dtype; integers wrap, and 16-bit floats are summed in `F32`. NumPy's `convolve`. For many channels, images and strides, see
    /// [`Tensor::conv1d`], which reverses nothing.
    ///
    /// Invalid for bools, and unless both have one dimension and an element.
    ///
    /// ```
    /// use lazuli::{ConvolveMode, Tensor};
    /// let (x, w) = (Tensor::from([1, 2, 3]), Tensor::from([0, 1, 10]));
    /// assert_eq!(x.convolve(&w, ConvolveMode::Full).to_vec::<i32>()?, [0, 1, 12, 23, 30]);
    /// assert_eq!(x.convolve(&w, ConvolveMode::Valid).to_vec::<i32>()?, [12]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn convolve(&self, other: impl AsRef<Tensor>, mode: ConvolveMode) -> Tensor {
        let (call, other) = (Call::here("convolve"), other.as_ref());
        call.composed(|| convolve(call, self, other, mode))
    }
}

fn convolve(call: Call, a: &Tensor, b: &Tensor, mode: ConvolveMode) -> Result<Tensor> {
    let dtype = Rule::Numbers.dtype(call, &[Operand::from(a), Operand::from(b)])?;
    let (own, other) = (a.known()?.0, b.known()?.0);
    let (&[of_a], &[of_b]) = (&own[..], &other[..]) else {
        return call.fail(format!("needs two tensors of one dimension, got shapes {own} and {other}"));
    };
    if of_a == 0 || of_b == 0 {
        return call.fail(format!("there is no convolution of nothing: shapes {own} and {other}"));
    }
    let (long, short, count) = if of_a < of_b { (b, a, of_a) } else { (a, b, of_b) };
    let border = match mode {
        ConvolveMode::Full => (count - 1, count - 1),
        // The middle of the whole; of an even number of elements more at its end.
        ConvolveMode::Same => (count / 2, count - 1 - count / 2),
        ConvolveMode::Valid => (0, 0),
    };
    let channel = |x: &Tensor| x.cast(dtype).unsqueeze(0).unsqueeze(0);
    let padded = channel(long).pad(&[(0, 0), (0, 0), border], 0);
    Ok(padded.conv1d(channel(&short.flip(0)), None, 1, 0).ravel())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::tests::mistake;
    use crate::{DType, Device};

    /// By the definition.
    fn expected(a: &[i64], b: &[i64]) -> Vec<i64> {
        let mut sums = vec![0; a.len() + b.len() - 1];
        for (i, x) in a.iter().enumerate() {
            b.iter().enumerate().for_each(|(j, y)| sums[i + j] += x * y);
        }
        sums
    }

    #[test]
    fn parts_of_all_lengths() {
        let numbers = [3, -1, 4, 1, -5, 9, 2];
        for (m, n) in (1..=7).flat_map(|m| (1..=5).map(move |n| (m, n))) {
            let (a, b) = (&numbers[..m], &numbers[2..2 + n]);
            let whole = expected(a, b);
            let [x, y] = [a, b].map(|x| Tensor::from_slice(x, [x.len()]).to(&Device::interpreter()));
            let of = |mode| x.convolve(&y, mode).to_vec::<i64>().unwrap();
            assert_eq!(of(ConvolveMode::Full), whole, "{m} and {n}");
            let (least, most) = (m.min(n), m.max(n));
            let first = (least - 1) / 2;
            assert_eq!(of(ConvolveMode::Same), whole[first..first + most], "{m} and {n}");
            assert_eq!(of(ConvolveMode::Valid), whole[least - 1..most], "{m} and {n}");
        }
    }

    #[test]
    fn dtypes_meet_and_integers_wrap() {
        let (x, y) = (Tensor::from([200u8, 2]), Tensor::from([2u8]));
        assert_eq!(x.convolve(&y, ConvolveMode::Full).to_vec::<u8>().unwrap(), [144, 4]);
        assert_eq!(x.convolve(Tensor::from([0.5f64]), ConvolveMode::Full).dtype().unwrap(), DType::F64);
    }

    #[test]
    fn mistakes() {
        let x = Tensor::ones([3], DType::F32);
        mistake!(
            x.convolve(x.unsqueeze(0), ConvolveMode::Full),
            "convolve: needs two tensors of one dimension, got shapes [3] and [1, 3]"
        );
        mistake!(
            x.convolve(x.narrow(0, 0, 0), ConvolveMode::Full),
            "convolve: there is no convolution of nothing: shapes [3] and [0]"
        );
        let mask = Tensor::ones([3], DType::Bool);
        mistake!(
            mask.convolve(&mask, ConvolveMode::Full),
            "convolve: not defined for bools, got bool [3] and bool [3]; cast first, such as with .cast(DType::I64)"
        );
    }
}
