//! Vectors as sets, by NumPy's names. How many elements they have must be known before anything can be recorded of them, so that
//! these evaluate.

use crate::tensor::arguments::call::Call;
use crate::tensor::arguments::promotion::{Operand, result_type};
use crate::{Result, Tensor};

impl Tensor {
    /// The different elements that two tensors of any shapes have both, in ascending order: NumPy's `intersect1d`. In the promoted
    /// dtype. NaN is equal to nothing.
    ///
    /// **Evaluates** how many there are; see [`Tensor::nonzero`].
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let both = Tensor::from([3, 1, 2, 3]).intersect1d(Tensor::from([5, 3, 1]))?;
    /// assert_eq!(both.to_vec::<i32>()?, [1, 3]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn intersect1d(&self, other: impl AsRef<Tensor>) -> Result<Tensor> {
        let (call, other) = (Call::here("intersect1d"), other.as_ref());
        call.compose(|| {
            let [own, other] = promoted(self, other)?;
            let own = own.unique()?;
            own.masked_select(own.isin(other))
        })
    }

    /// The different elements of two tensors of any shapes together, in ascending order, as [`Tensor::unique`]: NumPy's `union1d`. In
    /// the promoted dtype.
    ///
    /// **Evaluates** how many there are; see [`Tensor::nonzero`].
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let all = Tensor::from([3, 1, 2, 3]).union1d(Tensor::from([5, 3]))?;
    /// assert_eq!(all.to_vec::<i32>()?, [1, 2, 3, 5]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn union1d(&self, other: impl AsRef<Tensor>) -> Result<Tensor> {
        let (call, other) = (Call::here("union1d"), other.as_ref());
        call.compose(|| Tensor::cat(promoted(self, other)?, 0).unique())
    }

    /// The different elements that are not among those of another tensor, in ascending order: NumPy's `setdiff1d`. Keeps the dtype.
    /// NaN is equal to nothing.
    ///
    /// **Evaluates** how many there are; see [`Tensor::nonzero`].
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let rest = Tensor::from([3, 1, 2, 3]).setdiff1d(Tensor::from([5, 3]))?;
    /// assert_eq!(rest.to_vec::<i32>()?, [1, 2]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn setdiff1d(&self, other: impl AsRef<Tensor>) -> Result<Tensor> {
        let (call, other) = (Call::here("setdiff1d"), other.as_ref());
        call.compose(|| without(self, other))
    }

    /// The different elements that only one of two tensors has, in ascending order: NumPy's `setxor1d`. In the promoted dtype. NaN is
    /// equal to nothing.
    ///
    /// **Evaluates** how many there are; see [`Tensor::nonzero`].
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let either = Tensor::from([3, 1, 2, 3]).setxor1d(Tensor::from([5, 3]))?;
    /// assert_eq!(either.to_vec::<i32>()?, [1, 2, 5]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn setxor1d(&self, other: impl AsRef<Tensor>) -> Result<Tensor> {
        let (call, other) = (Call::here("setxor1d"), other.as_ref());
        call.compose(|| {
            let [own, other] = promoted(self, other)?;
            let both = [without(&own, &other)?, without(&other, &own)?];
            Ok(Tensor::cat(both, 0).sort(0, false).0)
        })
    }
}

fn without(x: &Tensor, others: &Tensor) -> Result<Tensor> {
    let own = x.unique()?;
    own.masked_select(own.isin(others).logical_not())
}

/// Both with one dimension, in one dtype.
fn promoted(a: &Tensor, b: &Tensor) -> Result<[Tensor; 2]> {
    let dtype = result_type(&[Operand::from(a), Operand::from(b)])?;
    Ok([a, b].map(|x| x.cast(dtype).ravel()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DType, Device};

    type Of = fn(&Tensor, &Tensor) -> Result<Tensor>;
    const ALL: [Of; 4] =
        [|a, b| a.intersect1d(b), |a, b| a.union1d(b), |a, b| a.setdiff1d(b), |a, b| a.setxor1d(b)];

    fn of(elements: &[f32]) -> Tensor {
        Tensor::from_slice(elements, [elements.len()]).to(&Device::interpreter())
    }

    #[test]
    fn of_nothing_and_of_any_shape() {
        let (none, some) = (of(&[]), of(&[2.0, 1.0, 2.0, 0.0]).reshape([2, 2]));
        let results = |a: &Tensor, b: &Tensor| ALL.map(|f| f(a, b).unwrap().to_vec::<f32>().unwrap());
        let whole = vec![0.0, 1.0, 2.0];
        assert_eq!(results(&none, &none), [const { Vec::<f32>::new() }; 4]);
        assert_eq!(results(&some, &none), [vec![], whole.clone(), whole.clone(), whole.clone()]);
        assert_eq!(results(&none, &some), [vec![], whole.clone(), vec![], whole.clone()]);
        assert_eq!(results(&some, &some), [whole.clone(), whole, vec![], vec![]]);
    }

    #[test]
    fn special_elements_and_dtypes() {
        let (a, b) = (of(&[f32::NAN, 0.0, f32::INFINITY]), of(&[-0.0, f32::NAN, 7.0]));
        let counts = ALL.map(|f| f(&a, &b).unwrap().numel().unwrap());
        // Zeros are equal, and no NaN is another one.
        assert_eq!(counts, [1, 5, 2, 4]);
        let ints = Tensor::from([1u8, 0]).to(&Device::interpreter());
        assert_eq!(ints.intersect1d(&a).unwrap().dtype().unwrap(), DType::F32);
        assert_eq!(ints.setdiff1d(&a).unwrap().to_vec::<u8>().unwrap(), [1]);
        assert!(a.matmul(of(&[1.0])).union1d(&b).is_err());
    }
}
