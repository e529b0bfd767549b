//! Scans: the elements along an axis up to each, combined.

use super::call::Call;
use super::reductions::accumulator;
use crate::graph::op::Op;
use crate::{ReduceOp, Result, Tensor};

/// In which order a scan goes along its axis, and whether each result contains its own element.
///
/// ```
/// use lazuli::{ScanOrder, Tensor};
/// let x = Tensor::from_slice(&[1.0f32, 2.0, 4.0], [3]);
/// assert_eq!(x.cumsum_with(0, ScanOrder::new()).to_vec::<f32>()?, [1.0, 3.0, 7.0]);
/// assert_eq!(x.cumsum_with(0, ScanOrder::new().reverse()).to_vec::<f32>()?, [7.0, 6.0, 4.0]);
/// assert_eq!(x.cumsum_with(0, ScanOrder::new().exclusive()).to_vec::<f32>()?, [0.0, 1.0, 3.0]);
/// # Ok::<(), lazuli::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct ScanOrder {
    reverse: bool,
    exclusive: bool,
}

impl ScanOrder {
    /// From the first element to the last, each result with its own element.
    ///
    /// ```
    /// use lazuli::{ScanOrder, Tensor};
    /// let x = Tensor::from_slice(&[1.0f32, 2.0, 4.0], [3]);
    /// assert_eq!(x.cumsum_with(0, ScanOrder::new()).to_vec::<f32>()?, x.cumsum(0).to_vec::<f32>()?);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn new() -> ScanOrder {
        ScanOrder::default()
    }

    /// From the last element to the first.
    ///
    /// ```
    /// use lazuli::{ScanOrder, Tensor};
    /// let x = Tensor::from_slice(&[1i32, 3, 2], [3]);
    /// assert_eq!(x.cummax_with(0, ScanOrder::new().reverse()).to_vec::<i32>()?, [3, 3, 2]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn reverse(mut self) -> ScanOrder {
        self.reverse = true;
        self
    }

    /// Each result without its own element: the first is 0 for sums and 1 for products.
    ///
    /// ```
    /// use lazuli::{ScanOrder, Tensor};
    /// let x = Tensor::from_slice(&[2i32, 3, 4], [3]);
    /// assert_eq!(x.cumprod_with(0, ScanOrder::new().exclusive()).to_vec::<i64>()?, [1, 2, 6]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn exclusive(mut self) -> ScanOrder {
        self.exclusive = true;
        self
    }
}

macro_rules! scan_methods {
    ($($(#[$meta:meta])* $name:ident, $name_with:ident = $op:expr;)*) => {
        impl Tensor {
            $(
                $(#[$meta])*
                #[track_caller]
                pub fn $name(&self, axis: isize) -> Tensor {
                    Tensor::or_invalid(scan(Call::here(stringify!($name)), $op, self, axis, ScanOrder::new()))
                }

                #[doc = concat!(
                    "[`Tensor::", stringify!($name), "`] in another order.\n\n",
                    "```\n",
                    "use lazuli::{ScanOrder, Tensor};\n",
                    "let x = Tensor::from_slice(&[3i32, 1, 2], [3]);\n",
                    "let backwards = x.", stringify!($name_with), "(0, ScanOrder::new().reverse());\n",
                    "assert_eq!(backwards.to_string(), x.flip(0).", stringify!($name), "(0).flip(0).to_string());\n",
                    "```"
                )]
                #[track_caller]
                pub fn $name_with(&self, axis: isize, order: ScanOrder) -> Tensor {
                    Tensor::or_invalid(scan(Call::here(stringify!($name_with)), $op, self, axis, order))
                }
            )*
        }
    };
}

scan_methods! {
    /// The sums of the elements along the axis up to each. Floats keep their dtype (16-bit floats accumulate in
    /// `F32`), integers and bools give `I64` and wrap.
    ///
    /// Invalid for an axis out of range.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0], [2, 2]);
    /// assert_eq!(x.cumsum(1).to_vec::<f32>()?, [1.0, 3.0, 3.0, 7.0]);
    /// assert_eq!(x.cumsum(0).to_vec::<f32>()?, [1.0, 2.0, 4.0, 6.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    cumsum, cumsum_with = ReduceOp::Sum;
    /// The products of the elements along the axis up to each; dtypes as by [`Tensor::cumsum`].
    ///
    /// Invalid for an axis out of range.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[1.0f32, 2.0, 3.0], [3]);
    /// assert_eq!(x.cumprod(0).to_vec::<f32>()?, [1.0, 2.0, 6.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    cumprod, cumprod_with = ReduceOp::Prod;
    /// The largest of the elements along the axis up to each, NaN from the first NaN on. Keeps the dtype. PyTorch's
    /// also gives positions.
    ///
    /// Invalid for an axis out of range, and in an exclusive order.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[1i32, 3, 2], [3]);
    /// assert_eq!(x.cummax(0).to_vec::<i32>()?, [1, 3, 3]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    cummax, cummax_with = ReduceOp::Max;
    /// The smallest of the elements along the axis up to each, NaN from the first NaN on. Keeps the dtype. PyTorch's
    /// also gives positions.
    ///
    /// Invalid for an axis out of range, and in an exclusive order.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[3i32, 1, 2], [3]);
    /// assert_eq!(x.cummin(-1).to_vec::<i32>()?, [3, 1, 1]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    cummin, cummin_with = ReduceOp::Min;
}

fn scan(call: Call, op: ReduceOp, x: &Tensor, axis: isize, order: ScanOrder) -> Result<Tensor> {
    let (shape, dtype) = x.known()?;
    let axis = call.axis(axis, shape)?;
    let ScanOrder { reverse, exclusive } = order;
    let x = match op {
        ReduceOp::Sum | ReduceOp::Prod => call.cast(x, accumulator(dtype))?,
        ReduceOp::Max
        | ReduceOp::Min
        | ReduceOp::SquaredDeviations
        | ReduceOp::SumExp
        | ReduceOp::ArgMax
        | ReduceOp::ArgMin => {
            if exclusive {
                return call.fail(
                    "an exclusive order begins with nothing, which has no largest or smallest element",
                );
            }
            x.clone()
        }
    };
    call.record(Op::Scan { op, axis, reverse, exclusive }, &[&x], shape.clone(), x.node.dtype)
}
