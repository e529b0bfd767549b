//! Rearrangements under PyTorch's further names: those of other tensors' shapes, and of images.

use std::borrow::Borrow;

use super::join::borrowed;
use crate::tensor::arguments::call::Call;
use crate::{Shape, Tensor};

macro_rules! least_rank_methods {
    ($($(#[$meta:meta])* $name:ident = $rank:literal;)*) => {
        impl Tensor {
            $(
                $(#[$meta])*
                #[track_caller]
                pub fn $name(&self) -> Tensor {
                    let call = Call::here(stringify!($name));
                    call.composed(|| {
                        let shape = self.known()?.0;
                        let whole: Shape = match (shape.rank(), $rank) {
                            (own, rank) if own >= rank => return Ok(self.clone()),
                            // A row is one of an image: before and behind it is one more axis.
                            (1, 3) => [1, shape[0], 1].into(),
                            (2, 3) => [shape[0], shape[1], 1].into(),
                            (own, rank) => (own..rank).map(|_| 1).chain(shape.iter().copied()).collect(),
                        };
                        Ok(self.reshape(whole))
                    })
                }
            )*
        }
    };
}

least_rank_methods! {
    /// With at least one dimension: a 0-d tensor as one element.
    ///
    /// ```
    /// use lazuli::{Shape, Tensor};
    /// assert_eq!(Tensor::scalar(3).atleast_1d().shape()?, Shape::from([1]));
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    atleast_1d = 1;
    /// With at least two dimensions: one of elements as a row.
    ///
    /// ```
    /// use lazuli::{Shape, Tensor};
    /// assert_eq!(Tensor::arange(0, 3, 1).atleast_2d().shape()?, Shape::from([1, 3]));
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    atleast_2d = 2;
    /// With at least three dimensions: `[n]` becomes `[1, n, 1]`, and `[m, n]` becomes `[m, n, 1]`.
    ///
    /// ```
    /// use lazuli::{Shape, Tensor};
    /// assert_eq!(Tensor::arange(0, 3, 1).atleast_3d().shape()?, Shape::from([1, 3, 1]));
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    atleast_3d = 3;
}

impl Tensor {
    /// The tensors broadcast to the shape of all, each of its own dtype. PyTorch's `broadcast_tensors`.
    ///
    /// All are invalid if the shapes do not broadcast.
    ///
    /// ```
    /// use lazuli::{Shape, Tensor};
    /// let (x, y) = (Tensor::arange(0, 2, 1).reshape([2, 1]), Tensor::arange(0.0f32, 3.0, 1.0));
    /// let both = Tensor::broadcast_tensors(&[x, y]);
    /// assert_eq!(both[0].to_vec::<i32>()?, [0, 0, 0, 1, 1, 1]);
    /// assert_eq!(both[1].shape()?, Shape::from([2, 3]));
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn broadcast_tensors<T: Borrow<Tensor>>(tensors: impl AsRef<[T]>) -> Vec<Tensor> {
        let (call, tensors) = (Call::here("broadcast_tensors"), borrowed(tensors.as_ref()));
        let together = call.compose(|| {
            let shapes: Vec<&Shape> =
                tensors.iter().map(|tensor| Ok(tensor.known()?.0)).collect::<crate::Result<_>>()?;
            call.broadcast(&shapes)
        });
        let whole =
            |tensor: &&Tensor| call.composed(|| together.clone().map(|shape| tensor.broadcast_to(shape)));
        tensors.iter().map(whole).collect()
    }

    /// Repeated to another tensor's shape: [`Tensor::broadcast_to`] it.
    ///
    /// ```
    /// use lazuli::{DType, Tensor};
    /// let x = Tensor::from_slice(&[1, 2], [2, 1]);
    /// assert_eq!(x.expand_as(&Tensor::zeros([2, 2], DType::F32)).to_vec::<i32>()?, [1, 1, 2, 2]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn expand_as(&self, other: impl AsRef<Tensor>) -> Tensor {
        let (call, other) = (Call::here("expand_as"), other.as_ref());
        call.composed(|| Ok(self.broadcast_to(other.known()?.0)))
    }

    /// The same elements in another tensor's shape: PyTorch's `reshape_as` and `view_as`.
    ///
    /// Invalid for another number of elements.
    ///
    /// ```
    /// use lazuli::{DType, Shape, Tensor};
    /// let x = Tensor::arange(0, 6, 1).reshape_as(&Tensor::zeros([2, 3], DType::F32));
    /// assert_eq!(x.shape()?, Shape::from([2, 3]));
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn reshape_as(&self, other: impl AsRef<Tensor>) -> Tensor {
        let (call, other) = (Call::here("reshape_as"), other.as_ref());
        call.composed(|| Ok(self.reshape(other.known()?.0)))
    }

    /// The second axis reversed: left and right exchanged. Invalid for fewer than two dimensions.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::arange(0, 4, 1).reshape([2, 2]);
    /// assert_eq!(x.fliplr().to_vec::<i32>()?, [1, 0, 3, 2]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn fliplr(&self) -> Tensor {
        let call = Call::here("fliplr");
        call.composed(|| {
            let (shape, dtype) = self.known()?;
            match shape.rank() {
                0 | 1 => call.fail(format!("needs at least 2 dimensions, got {dtype} {shape}")),
                _ => Ok(self.flip(1)),
            }
        })
    }

    /// The first axis reversed: up and down exchanged. Invalid for no dimension.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::arange(0, 4, 1).reshape([2, 2]);
    /// assert_eq!(x.flipud().to_vec::<i32>()?, [2, 3, 0, 1]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn flipud(&self) -> Tensor {
        let call = Call::here("flipud");
        call.composed(|| {
            let (shape, dtype) = self.known()?;
            match shape.rank() {
                0 => call.fail(format!("needs at least 1 dimension, got {dtype} {shape}")),
                _ => Ok(self.flip(0)),
            }
        })
    }

    /// The square matrix whose diagonal, `offset` columns to the right of the main one, has all elements in row-major order, and that
    /// is 0 elsewhere. PyTorch's and NumPy's `diagflat`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[1, 2], [1, 2]);
    /// assert_eq!(x.diagflat(1).to_vec::<i32>()?, [0, 1, 0, 0, 0, 2, 0, 0, 0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn diagflat(&self, offset: isize) -> Tensor {
        let call = Call::here("diagflat");
        call.composed(|| Ok(self.ravel().diag_embed(offset)))
    }
}
