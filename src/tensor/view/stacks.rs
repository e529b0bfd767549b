//! Joins and parts along the axes that NumPy and PyTorch name rather than number, and matrices put together.

use std::borrow::Borrow;

use super::join::{borrowed, cat};
use crate::tensor::arguments::call::Call;
use crate::{Result, Shape, Tensor};

macro_rules! stack_methods {
    ($($(#[$meta:meta])* $name:ident = ($raised:expr, $axis:expr);)*) => {
        impl Tensor {
            $($(#[$meta])*
            ///
            /// Invalid if the tensors do not fit together, as for [`Tensor::cat`].
            #[track_caller]
            pub fn $name<T: Borrow<Tensor>>(tensors: impl AsRef<[T]>) -> Tensor {
                let tensors = tensors.as_ref();
                let call = Call::here(stringify!($name));
                let raised: fn(&Tensor, usize) -> Tensor = $raised;
                let axis: fn(usize) -> isize = $axis;
                call.composed(|| {
                    let parts = borrowed(tensors)
                        .into_iter()
                        .map(|x| Ok(raised(x, x.known()?.0.rank())))
                        .collect::<Result<Vec<Tensor>>>()?;
                    let rank = parts.first().map_or(0, |first| first.node.shape.rank());
                    cat(call, &borrowed(&parts), axis(rank))
                })
            })*
        }
    };
}

stack_methods! {
    /// Side by side: [`Tensor::cat`] along axis 1, or axis 0 of tensors with one; 0-d tensors count as one element.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let (x, y) = (Tensor::from_slice(&[1, 2], [2]), Tensor::from_slice(&[3, 4], [2]));
    /// assert_eq!(Tensor::hstack(&[x, y]).to_vec::<i32>()?, [1, 2, 3, 4]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    hstack = (|x, rank| if rank == 0 { x.unsqueeze(0) } else { x.clone() }, |rank| if rank < 2 { 0 } else { 1 });
    /// One below the other: [`Tensor::cat`] along axis 0, of which tensors with fewer than two axes are a row.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let (x, y) = (Tensor::from_slice(&[1, 2], [2]), Tensor::from_slice(&[3, 4], [2]));
    /// assert_eq!(Tensor::vstack(&[x, y]).t().to_vec::<i32>()?, [1, 3, 2, 4]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    vstack = (two_axes, |_| 0);
    /// One behind the other: [`Tensor::cat`] along axis 2, of which tensors with fewer than three axes are a plane.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let (x, y) = (Tensor::from_slice(&[1, 2], [2]), Tensor::from_slice(&[3, 4], [2]));
    /// assert_eq!(Tensor::dstack(&[x, y]).to_vec::<i32>()?, [1, 3, 2, 4]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    dstack = (|x, rank| if rank > 2 { x.clone() } else { two_axes(x, rank).unsqueeze(2) }, |_| 2);
    /// Columns side by side: [`Tensor::cat`] along axis 1, of which tensors with fewer than two axes are a column.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let (x, y) = (Tensor::from_slice(&[1, 2], [2]), Tensor::from_slice(&[3, 4], [2]));
    /// assert_eq!(Tensor::column_stack(&[x, y]).to_vec::<i32>()?, [1, 3, 2, 4]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    column_stack = (|x, rank| if rank > 1 { x.clone() } else { x.reshape([-1, 1]) }, |_| 1);
}

fn two_axes(x: &Tensor, rank: usize) -> Tensor {
    if rank > 1 { x.clone() } else { x.reshape([1, -1]) }
}

macro_rules! part_methods {
    ($($(#[$meta:meta])* $name:ident = ($least:literal, $axis:expr);)*) => {
        impl Tensor {
            $($(#[$meta])*
            ///
            /// # Errors
            /// The first error in the tensor's history; no parts, parts that are not equal, or too few dimensions.
            #[track_caller]
            pub fn $name(&self, parts: usize) -> Result<Vec<Tensor>> {
                equal(Call::here(stringify!($name)), self, parts, $least, $axis)
            })*
        }
    };
}

part_methods! {
    /// So many equal parts side by side: along axis 1, or axis 0 of a tensor with one.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let parts = Tensor::arange(0, 8, 1).reshape([2, 4]).hsplit(2)?;
    /// assert_eq!(parts[1].to_vec::<i32>()?, [2, 3, 6, 7]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    hsplit = (1, |rank| rank.min(2) - 1);
    /// So many equal parts one below the other: along axis 0 of a tensor with at least two.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let parts = Tensor::arange(0, 8, 1).reshape([2, 4]).vsplit(2)?;
    /// assert_eq!(parts[1].to_vec::<i32>()?, [4, 5, 6, 7]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    vsplit = (2, |_| 0);
    /// So many equal parts one behind the other: along axis 2 of a tensor with at least three.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let parts = Tensor::arange(0, 8, 1).reshape([2, 2, 2]).dsplit(2)?;
    /// assert_eq!(parts[1].to_vec::<i32>()?, [1, 3, 5, 7]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    dsplit = (3, |_| 2);
}

/// Equal parts along an axis, which follows from the number of dimensions, of which there must be some.
fn equal(
    call: Call,
    x: &Tensor,
    parts: usize,
    least: usize,
    axis: fn(usize) -> usize,
) -> Result<Vec<Tensor>> {
    let (shape, dtype) = x.known()?;
    if shape.rank() < least {
        let s = if least == 1 { "" } else { "s" };
        return call.fail(format!("needs at least {least} dimension{s}, got {dtype} {shape}"));
    }
    let axis = axis(shape.rank());
    let extent = shape[axis];
    if parts == 0 || !extent.is_multiple_of(parts) {
        return call.fail(format!(
            "axis {axis} of shape {shape} has {extent} positions, which cannot be {parts} equal parts; use .tensor_split"
        ));
    }
    super::join::bounded(call, parts, shape)?;
    call.compose(|| x.split_sizes(&vec![extent / parts; parts], axis as isize))
}

impl Tensor {
    /// A matrix with these matrices along its diagonal, and zeros elsewhere. A tensor of one dimension is a row.
    ///
    /// Invalid for more than two dimensions, and for no tensor.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let (x, y) = (Tensor::from_slice(&[1, 2], [2, 1]), Tensor::from_slice(&[3, 4], [2]));
    /// assert_eq!(Tensor::block_diag(&[x, y]).to_vec::<i32>()?, [1, 0, 0, 2, 0, 0, 0, 3, 4]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn block_diag<T: Borrow<Tensor>>(tensors: impl AsRef<[T]>) -> Tensor {
        let tensors = tensors.as_ref();
        let call = Call::here("block_diag");
        call.composed(|| {
            let mut blocks = Vec::new();
            for x in borrowed(tensors) {
                let (shape, dtype) = x.known()?;
                if shape.rank() > 2 {
                    return call.fail(format!("blocks are matrices, got {dtype} {shape}"));
                }
                blocks.push(two_axes(x, shape.rank()));
            }
            let all = blocks.iter().fold(0usize, |sum, block| sum.saturating_add(block.node.shape[1]));
            let mut before = 0;
            let mut rows = Vec::new();
            for block in &blocks {
                let own = block.node.shape[1];
                call.needs_addressable(&Shape::from([block.node.shape[0], all]))?;
                rows.push(block.pad(&[(0, 0), (before, all - before - own)], 0));
                before += own;
            }
            cat(call, &borrowed(&rows), 0)
        })
    }

    /// So many consecutive parts along an axis, of which the first are one longer where they cannot all be equal; as
    /// PyTorch's `tensor_split` and NumPy's `array_split`: five positions in three parts are 2, 2 and 1.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let parts = Tensor::arange(0, 5, 1).tensor_split(3, 0)?;
    /// assert_eq!(parts[1].to_vec::<i32>()?, [2, 3]);
    /// assert_eq!(parts[2].to_vec::<i32>()?, [4]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    ///
    /// # Errors
    /// The first error in the tensor's history; no parts, or an axis out of range.
    #[track_caller]
    pub fn tensor_split(&self, parts: usize, axis: isize) -> Result<Vec<Tensor>> {
        let call = Call::here("tensor_split");
        let (shape, _) = self.known()?;
        let extent = shape[call.axis(axis, shape)?];
        if parts == 0 {
            return call.fail(format!("needs at least 1 part of shape {shape}, got 0"));
        }
        super::join::bounded(call, parts, shape)?;
        let size = |part: usize| extent / parts + usize::from(part < extent % parts);
        call.compose(|| self.split_sizes(&(0..parts).map(size).collect::<Vec<_>>(), axis))
    }

    /// The diagonal of a matrix, `offset` columns right of the main one; or, of a vector, the square matrix with that
    /// diagonal.
    ///
    /// Invalid for another number of dimensions.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[1, 2], [2]);
    /// assert_eq!(x.diag(0).to_vec::<i32>()?, [1, 0, 0, 2]);
    /// assert_eq!(x.diag(0).diag(0).to_vec::<i32>()?, [1, 2]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn diag(&self, offset: isize) -> Tensor {
        let call = Call::here("diag");
        call.composed(|| {
            let (shape, dtype) = self.known()?;
            match shape.rank() {
                1 => Ok(self.diag_embed(offset)),
                2 => Ok(self.diagonal(offset, 0, 1)),
                _ => call.fail(format!("needs a vector or a matrix, got {dtype} {shape}")),
            }
        })
    }

    /// Kronecker's product: each element of this tensor times all of the other, in its place. Extents multiply; missing axes
    /// count as 1.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[1, 10], [2]);
    /// assert_eq!(x.kron(&Tensor::from_slice(&[1, 2, 3], [3])).to_vec::<i32>()?, [1, 2, 3, 10, 20, 30]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn kron(&self, other: impl AsRef<Tensor>) -> Tensor {
        let other = other.as_ref();
        let call = Call::here("kron");
        call.composed(|| {
            let (left, right) = (self.known()?.0, other.known()?.0);
            let rank = left.rank().max(right.rank());
            let extent = |shape: &Shape, axis: usize| {
                axis.checked_sub(rank - shape.rank()).map_or(1, |axis| shape[axis])
            };
            let pairs: Vec<[usize; 2]> =
                (0..rank).map(|axis| [extent(left, axis), extent(right, axis)]).collect();
            let outer: Vec<usize> = pairs.iter().flat_map(|pair| [pair[0], 1]).collect();
            let inner: Vec<usize> = pairs.iter().flat_map(|pair| [1, pair[1]]).collect();
            let together: Shape = pairs.iter().map(|pair| pair[0].saturating_mul(pair[1])).collect();
            call.needs_addressable(&together)?;
            Ok((self.reshape(outer) * other.reshape(inner)).reshape(together))
        })
    }
}
