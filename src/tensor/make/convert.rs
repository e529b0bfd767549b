//! Tensors from Rust's own collections.

use crate::Tensor;
use crate::runtime::host;
use crate::tensor::arguments::element::Element;

/// A 1-d tensor of the elements.
///
/// ```
/// use lazuli::Tensor;
/// let squares: Tensor = (0..4).map(|x| x * x).collect();
/// assert_eq!(squares.to_vec::<i32>()?, [0, 1, 4, 9]);
/// # Ok::<(), lazuli::Error>(())
/// ```
impl<T: Element> FromIterator<T> for Tensor {
    #[track_caller]
    fn from_iter<I: IntoIterator<Item = T>>(elements: I) -> Tensor {
        match host::collect(elements) {
            Ok(elements) => Tensor::from(elements),
            Err(error) => Tensor::invalid(error),
        }
    }
}

/// A 0-d tensor, as [`Tensor::scalar`] makes it. A literal of no other type is `f64` or `i32`, as in any Rust program.
///
/// ```
/// use lazuli::{DType, Tensor};
/// let threshold = Tensor::from(0.5f32);
/// assert_eq!((threshold.shape()?.rank(), threshold.dtype()?), (0, DType::F32));
/// # Ok::<(), lazuli::Error>(())
/// ```
impl<T: Element> From<T> for Tensor {
    #[track_caller]
    fn from(value: T) -> Tensor {
        Tensor::scalar(value)
    }
}

/// A 1-d tensor of the elements.
impl<T: Element> From<Vec<T>> for Tensor {
    #[track_caller]
    fn from(elements: Vec<T>) -> Tensor {
        let count = elements.len();
        Tensor::from_vec(elements, [count])
    }
}

/// A 1-d tensor of a copy of the elements.
impl<T: Element> From<&[T]> for Tensor {
    #[track_caller]
    fn from(elements: &[T]) -> Tensor {
        Tensor::from_slice(elements, [elements.len()])
    }
}

/// A 1-d tensor of the elements.
///
/// ```
/// use lazuli::Tensor;
/// assert_eq!(Tensor::from([1.0f32, 2.0]).sum(..).item::<f32>()?, 3.0);
/// # Ok::<(), lazuli::Error>(())
/// ```
impl<T: Element, const N: usize> From<[T; N]> for Tensor {
    #[track_caller]
    fn from(elements: [T; N]) -> Tensor {
        Tensor::from_slice(&elements, [N])
    }
}

/// A matrix of the rows.
///
/// ```
/// use lazuli::Tensor;
/// let x = Tensor::from([[1, 2, 3], [4, 5, 6]]);
/// assert_eq!(x.sum(0).to_vec::<i64>()?, [5, 7, 9]);
/// # Ok::<(), lazuli::Error>(())
/// ```
impl<T: Element, const ROWS: usize, const COLUMNS: usize> From<[[T; COLUMNS]; ROWS]> for Tensor {
    #[track_caller]
    fn from(rows: [[T; COLUMNS]; ROWS]) -> Tensor {
        Tensor::from_slice(rows.as_flattened(), [ROWS, COLUMNS])
    }
}

/// A 3-d tensor of the planes.
impl<T: Element, const PLANES: usize, const ROWS: usize, const COLUMNS: usize>
    From<[[[T; COLUMNS]; ROWS]; PLANES]> for Tensor
{
    #[track_caller]
    fn from(planes: [[[T; COLUMNS]; ROWS]; PLANES]) -> Tensor {
        Tensor::from_slice(planes.as_flattened().as_flattened(), [PLANES, ROWS, COLUMNS])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DType, bf16, f16};

    #[test]
    fn collections_become_tensors() {
        let described = |x: Tensor| (x.dtype().unwrap(), x.shape().unwrap().to_vec());
        assert_eq!(described(bf16::ONE.into()), (DType::BF16, vec![]));
        assert_eq!(described(vec![f16::ONE; 3].into()), (DType::F16, vec![3]));
        assert_eq!(described(Tensor::from(&[bf16::ONE][..])), (DType::BF16, vec![1]));
        assert_eq!(described([true, false].into_iter().collect()), (DType::Bool, vec![2]));
        assert_eq!(described([[0u8; 0]; 3].into()), (DType::U8, vec![3, 0]));
        assert_eq!(described([[[1i64; 4]; 3]; 2].into()), (DType::I64, vec![2, 3, 4]));
        assert_eq!(described(Vec::<f64>::new().into()), (DType::F64, vec![0]));
        let x = Tensor::from([[[1, 2], [3, 4]], [[5, 6], [7, 8]]]);
        assert_eq!(x.select(0, 1).to_vec::<i32>().unwrap(), [5, 6, 7, 8]);
    }
}
