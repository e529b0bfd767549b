//! Parts of a tensor between given positions.

use super::join::bounded;
use crate::tensor::arguments::axes::{Dims, resolve_slice};
use crate::tensor::arguments::call::Call;
use crate::{Result, Tensor};

macro_rules! cut_methods {
    ($($(#[$meta:meta])* $name:ident = ($least:literal, $axis:expr);)*) => {
        impl Tensor {
            $($(#[$meta])*
            ///
            /// # Errors
            /// The first error in the tensor's history; too few dimensions.
            #[track_caller]
            pub fn $name(&self, positions: impl Into<Dims>) -> Result<Vec<Tensor>> {
                let (call, positions) = (Call::here(stringify!($name)), positions.into());
                let (shape, dtype) = self.known()?;
                if shape.rank() < $least {
                    let s = if $least == 1 { "" } else { "s" };
                    return call.fail(format!("needs at least {} dimension{s}, got {dtype} {shape}", $least));
                }
                let axis: fn(usize) -> usize = $axis;
                cut(call, self, &positions.0, axis(shape.rank()))
            })*
        }
    };
}

cut_methods! {
    /// [`Tensor::tensor_split_at`] along axis 1, or axis 0 of a tensor with one: PyTorch's `hsplit` by a list.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let parts = Tensor::arange(0, 8, 1).reshape([2, 4]).hsplit_at([3])?;
    /// assert_eq!(parts[1].to_vec::<i32>()?, [3, 7]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    hsplit_at = (1, |rank| rank.min(2) - 1);
    /// [`Tensor::tensor_split_at`] along axis 0 of a tensor with at least two: PyTorch's `vsplit` by a list.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let parts = Tensor::arange(0, 6, 1).reshape([3, 2]).vsplit_at([1])?;
    /// assert_eq!(parts[1].to_vec::<i32>()?, [2, 3, 4, 5]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    vsplit_at = (2, |_| 0);
    /// [`Tensor::tensor_split_at`] along axis 2 of a tensor with at least three: PyTorch's `dsplit` by a list.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let parts = Tensor::arange(0, 6, 1).reshape([1, 2, 3]).dsplit_at([-1])?;
    /// assert_eq!(parts[1].to_vec::<i32>()?, [2, 5]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    dsplit_at = (3, |_| 2);
}

impl Tensor {
    /// Consecutive parts along an axis that end, and begin, at these positions; one more than there are of these. Positions are
    /// Python's: negative ones count from the end, those beyond the axis are its ends, and a part that ends before it begins is empty.
    /// PyTorch's `tensor_split` by a list, NumPy's `array_split`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let parts = Tensor::arange(0, 5, 1).tensor_split_at([1, -1], 0)?;
    /// assert_eq!(parts.len(), 3);
    /// assert_eq!(parts[1].to_vec::<i32>()?, [1, 2, 3]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    ///
    /// # Errors
    /// The first error in the tensor's history; an axis out of range.
    #[track_caller]
    pub fn tensor_split_at(&self, positions: impl Into<Dims>, axis: isize) -> Result<Vec<Tensor>> {
        let (call, positions) = (Call::here("tensor_split_at"), positions.into());
        let axis = call.axis(axis, self.known()?.0)?;
        cut(call, self, &positions.0, axis)
    }
}

fn cut(call: Call, x: &Tensor, positions: &[isize], axis: usize) -> Result<Vec<Tensor>> {
    let (shape, _) = x.known()?;
    bounded(call, positions.len().saturating_add(1), shape)?;
    let begins = std::iter::once(None).chain(positions.iter().copied().map(Some));
    let ends = positions.iter().copied().map(Some).chain([None]);
    let part = |(begin, end)| call.slice(x, &[(axis, resolve_slice(shape[axis], begin, end, 1))]);
    begins.zip(ends).map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DType, Device};

    #[test]
    fn positions_are_pythons() {
        let x = Tensor::arange(0, 6, 1).to(&Device::interpreter());
        let cut = |positions: &[isize]| -> Vec<Vec<i32>> {
            x.tensor_split_at(positions, -1).unwrap().iter().map(|part| part.to_vec().unwrap()).collect()
        };
        assert_eq!(cut(&[]), [vec![0, 1, 2, 3, 4, 5]]);
        // As PyTorch's.
        assert_eq!(cut(&[4, 2, -1, 99]), [vec![0, 1, 2, 3], vec![], vec![2, 3, 4], vec![5], vec![]]);
        assert_eq!(cut(&[-99, 0, 6]), [vec![], vec![], vec![0, 1, 2, 3, 4, 5], vec![]]);
        let none = Tensor::zeros([0, 2], DType::F32).tensor_split_at([1], 0).unwrap();
        assert_eq!(none.iter().map(|part| part.shape().unwrap().elements()).sum::<usize>(), 0);
    }

    #[test]
    fn mistakes_say_what_does_not_fit() {
        let x = Tensor::zeros([4], DType::F32);
        let message = |parts: Result<Vec<Tensor>>| parts.unwrap_err().to_string();
        let text = message(x.vsplit_at([1]));
        assert!(text.starts_with("vsplit_at: needs at least 2 dimensions, got f32 [4], at "), "{text}");
        let text = message(x.select(0, 0).hsplit_at([1]));
        assert!(text.starts_with("hsplit_at: needs at least 1 dimension, got f32 [], at "), "{text}");
        let text = message(x.tensor_split_at([1], 1));
        assert!(text.starts_with("tensor_split_at: axis 1 is out of range for shape [4]"), "{text}");
    }
}
