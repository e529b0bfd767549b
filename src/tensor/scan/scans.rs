//! Scans: the elements along an axis up to each, combined.

use crate::graph::op::Op;
use crate::tensor::arguments::call::{Call, is_of_scalar};
use crate::tensor::make::create::counting;
use crate::tensor::reduce::reductions::accumulator;
use crate::{DType, ReduceOp, Result, Shape, Tensor};

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

    /// Whether it is reverse, and whether exclusive.
    pub(crate) fn parts(self) -> (bool, bool) {
        (self.reverse, self.exclusive)
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
                    "let x = Tensor::from_slice(&[3.0f32, 1.0, 2.0], [3]);\n",
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
    /// The largest of the elements along the axis up to each, NaN from the first NaN on. Keeps the dtype.
    /// [`Tensor::cummax_with_indices`] also gives positions, as PyTorch's does.
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
    /// The smallest of the elements along the axis up to each, NaN from the first NaN on. Keeps the dtype.
    /// [`Tensor::cummin_with_indices`] also gives positions, as PyTorch's does.
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
    /// The logarithms of the sums of the exponentials of the elements along the axis up to each, without overflow on the
    /// way; an exclusive order begins with -inf, the logarithm of nothing. Keeps the dtype (16-bit floats accumulate in
    /// `F32`).
    ///
    /// Invalid for an axis out of range, and for integers and bools.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[1000.0f32, 1000.0, -1000.0], [3]);
    /// let ln2 = std::f32::consts::LN_2;
    /// assert_eq!(x.logcumsumexp(0).to_vec::<f32>()?, [1000.0, 1000.0 + ln2, 1000.0 + ln2]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    logcumsumexp, logcumsumexp_with = ReduceOp::LogSumExp;
}

macro_rules! running_position_methods {
    ($($(#[$meta:meta])* $name:ident = $extreme:ident;)*) => {
        impl Tensor {
            $(
                $(#[$meta])*
                #[track_caller]
                pub fn $name(&self, axis: isize) -> (Tensor, Tensor) {
                    let call = Call::here(stringify!($name));
                    match call.compose(|| running_positions(call, self, axis, self.$extreme(axis))) {
                        Ok(both) => both,
                        Err(error) => (Tensor::invalid(error.clone()), Tensor::invalid(error)),
                    }
                }
            )*
        }
    };
}

running_position_methods! {
    /// [`Tensor::cummax`] and the index along the axis of each of its results, as `I64`: of equal elements the last, and
    /// from the first NaN on that of the last NaN, as in PyTorch. One kernel if they are evaluated together.
    ///
    /// Invalid for an axis out of range.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[2i32, 1, 2, 5, 3], [5]);
    /// let (largest, indices) = x.cummax_with_indices(0);
    /// lazuli::eval([&largest, &indices])?;
    /// assert_eq!(largest.to_vec::<i32>()?, [2, 2, 2, 5, 5]);
    /// assert_eq!(indices.to_vec::<i64>()?, [0, 0, 2, 3, 3]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    cummax_with_indices = cummax;
    /// [`Tensor::cummin`] and the index along the axis of each of its results, as `I64`: of equal elements the last, and
    /// from the first NaN on that of the last NaN, as in PyTorch. One kernel if they are evaluated together.
    ///
    /// Invalid for an axis out of range.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[2.0f32, 3.0, 1.0, 1.0], [4]);
    /// let (smallest, indices) = x.cummin_with_indices(0);
    /// lazuli::eval([&smallest, &indices])?;
    /// assert_eq!(indices.to_vec::<i64>()?, [0, 0, 2, 3]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    cummin_with_indices = cummin;
}

/// A running extreme, and where it is: the last position up to each at which the element is the extreme one.
fn running_positions(call: Call, x: &Tensor, axis: isize, best: Tensor) -> Result<(Tensor, Tensor)> {
    let (shape, dtype) = x.known()?;
    if is_of_scalar(axis, shape) {
        return Ok((best, x.zeros_like().cast(DType::I64)));
    }
    let along = call.axis(axis, shape)?;
    let indices: Shape = (0..shape.rank()).map(|k| if k == along { shape[k] } else { 1 }).collect();
    let is_best = match dtype.is_float() {
        true => x.eq(&best).logical_or(x.isnan()),
        false => x.eq(&best),
    };
    let index = counting(shape[along]).reshape(indices);
    Ok((best, is_best.where_(index, 0).cummax(axis)))
}

fn scan(call: Call, op: ReduceOp, x: &Tensor, axis: isize, order: ScanOrder) -> Result<Tensor> {
    let (_, dtype) = x.known()?;
    let (reverse, exclusive) = order.parts();
    let x = match op {
        ReduceOp::Sum | ReduceOp::Prod => call.cast(x, accumulator(dtype))?,
        ReduceOp::LogSumExp => {
            call.needs_float(x)?;
            x.clone()
        }
        ReduceOp::Max | ReduceOp::Min if exclusive => {
            return call
                .fail("an exclusive order begins with nothing, which has no largest or smallest element");
        }
        _ => x.clone(),
    };
    call.along(&x, axis, |x, axis| {
        let (shape, dtype) = x.known()?;
        call.record(Op::Scan { op, axis, reverse, exclusive }, &[x], shape.clone(), dtype)
    })
}
