//! Combining elements at positions that another tensor says. What is combined, and what follows from the results
//! element by element, is part of the kernel. The order of every sum follows from the sizes: no atomic additions.

use super::gather::{as_lines, gathered, needs_index};
use crate::graph::op::{ConstantRole, Op};
use crate::tensor::arguments::call::{Call, is_of_scalar, list};
use crate::tensor::arguments::promotion::{Number, Operand};
use crate::tensor::make::create::counting;
use crate::tensor::reduce::reductions::accumulator;
use crate::{DType, ReduceOp, Result, Scalar, Shape, Tensor};

/// How [`Tensor::scatter_reduce`] combines the elements of one position: PyTorch's names.
///
/// ```
/// use lazuli::{ScatterReduction, Tensor};
/// let x = Tensor::from_slice(&[1.0f32, 2.0], [2]);
/// let (index, src) = (Tensor::from_slice(&[0, 0], [2]), Tensor::from_slice(&[3.0f32, 8.0], [2]));
/// let most = x.scatter_reduce(0, &index, &src, ScatterReduction::Amax, true);
/// assert_eq!(most.to_vec::<f32>()?, [8.0, 2.0]);
/// # Ok::<(), lazuli::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ScatterReduction {
    /// The sum; integers wrap.
    Sum,
    /// The product; integers wrap.
    Prod,
    /// The mean; of integers, rounded down.
    Mean,
    /// The largest; NaN if any is NaN.
    Amax,
    /// The smallest; NaN if any is NaN.
    Amin,
}

impl ScatterReduction {
    fn op(self) -> ReduceOp {
        match self {
            ScatterReduction::Sum | ScatterReduction::Mean => ReduceOp::Sum,
            ScatterReduction::Prod => ReduceOp::Prod,
            ScatterReduction::Amax => ReduceOp::Max,
            ScatterReduction::Amin => ReduceOp::Min,
        }
    }
}

impl Tensor {
    /// The tensor with each element of `src` put where the index says: `result[index[i][j]][j] = src[i][j]` along
    /// axis 0. Where several meet, it is the last of them along the axis, on every device. The source may be a number,
    /// which is converted to the tensor's dtype as by [`Tensor::full`].
    ///
    /// Shapes and index out of range: as [`Tensor::scatter_add`]; of every dtype, which the source must have.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[10.0f32, 20.0, 30.0], [3]);
    /// let index = Tensor::from_slice(&[2i64, 0, 2], [3]);
    /// let src = Tensor::from_slice(&[1.0f32, 2.0, 3.0], [3]);
    /// assert_eq!(x.scatter(0, &index, &src).to_vec::<f32>()?, [2.0, 20.0, 3.0]);
    /// assert_eq!(x.scatter(0, &index, 5).to_vec::<f32>()?, [5.0, 20.0, 5.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn scatter(&self, axis: isize, index: impl AsRef<Tensor>, src: impl Into<Operand>) -> Tensor {
        let index = index.as_ref();
        let (call, src) = (Call::here("scatter"), src.into());
        call.composed(|| scatter(call, self, axis, index, src))
    }

    /// The tensor with each element of `src` added where the index says: `result[index[i][j]][j] += src[i][j]` along
    /// axis 0. Index, source and tensor have equally many dimensions; the index is nowhere larger than the source,
    /// nor than the tensor but along the axis. Elements of the source beyond the index are left out.
    ///
    /// Keeps the dtype, which the source must have; invalid for bools. 16-bit floats accumulate in `F32`, integers wrap.
    /// The same sizes give the same bits: what meets at one position is added in a fixed order.
    ///
    /// An index that is negative, or not below the extent, is an [`IndexOutOfRange`](crate::Error::IndexOutOfRange)
    /// when the values are asked for.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[10.0f32, 20.0, 30.0], [3]);
    /// let index = Tensor::from_slice(&[2i64, 0, 2, 2], [4]);
    /// let src = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0], [4]);
    /// assert_eq!(x.scatter_add(0, &index, &src).to_vec::<f32>()?, [12.0, 20.0, 38.0]);
    ///
    /// let beyond = x.scatter_add(0, &(index + 1), &src).to_vec::<f32>().unwrap_err();
    /// let text = beyond.to_string();
    /// assert!(text.starts_with("scatter_add: index 3 is out of range for axis 0 of extent 3, at "), "{text}");
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn scatter_add(&self, axis: isize, index: impl AsRef<Tensor>, src: impl AsRef<Tensor>) -> Tensor {
        let (index, src) = (index.as_ref(), src.as_ref());
        let call = Call::here("scatter_add");
        call.composed(|| scatter_reduced(call, self, (axis, index, src), ScatterReduction::Sum, true))
    }

    /// [`Tensor::scatter_add`] with another way to combine. With `include_self`, a position's element of the tensor is
    /// combined with those of the source; without, it stays only where there are none.
    ///
    /// Dtypes, order and index out of range: as [`Tensor::scatter_add`].
    ///
    /// ```
    /// use lazuli::{ScatterReduction, Tensor};
    /// let x = Tensor::from_slice(&[10.0f32, 20.0, 30.0], [3]);
    /// let index = Tensor::from_slice(&[2i64, 0, 2, 2], [4]);
    /// let src = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 5.0], [4]);
    /// let mean = |include_self| x.scatter_reduce(0, &index, &src, ScatterReduction::Mean, include_self);
    /// assert_eq!(mean(false).to_vec::<f32>()?, [2.0, 20.0, 3.0]);
    /// assert_eq!(mean(true).to_vec::<f32>()?, [6.0, 20.0, 9.75]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn scatter_reduce(
        &self,
        axis: isize,
        index: impl AsRef<Tensor>,
        src: impl AsRef<Tensor>,
        reduce: ScatterReduction,
        include_self: bool,
    ) -> Tensor {
        let (index, src) = (index.as_ref(), src.as_ref());
        let call = Call::here("scatter_reduce");
        call.composed(|| scatter_reduced(call, self, (axis, index, src), reduce, include_self))
    }

    /// The tensor with the positions of the source along an axis added to those that a 1-d index names, some of them
    /// several times: `result[index[i]] += src[i]` along axis 0. The source has the tensor's shape, but along the axis
    /// the index's length. On zeros, this is the sum of each segment of the source.
    ///
    /// Dtypes, order and index out of range: as [`Tensor::scatter_add`].
    ///
    /// ```
    /// use lazuli::{DType, Tensor};
    /// let rows = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], [3, 2]);
    /// let segments = Tensor::from_slice(&[1i64, 0, 1], [3]);
    /// let sums = Tensor::zeros([2, 2], DType::F32).index_add(0, &segments, &rows);
    /// assert_eq!(sums.to_vec::<f32>()?, [3.0, 4.0, 6.0, 8.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn index_add(&self, axis: isize, index: impl AsRef<Tensor>, src: impl AsRef<Tensor>) -> Tensor {
        let (index, src) = (index.as_ref(), src.as_ref());
        let call = Call::here("index_add");
        call.composed(|| index_added(call, self, axis, index, src, None))
    }

    /// [`Tensor::index_add`] of `alpha` times the source. For integers, alpha is one.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[1.0f32, 1.0], [2]);
    /// let (index, src) = (Tensor::from_slice(&[1, 1], [2]), Tensor::from_slice(&[2.0f32, 4.0], [2]));
    /// assert_eq!(x.index_add_with(0, &index, &src, -0.5).to_vec::<f32>()?, [1.0, -2.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn index_add_with(
        &self,
        axis: isize,
        index: impl AsRef<Tensor>,
        src: impl AsRef<Tensor>,
        alpha: impl Into<Number>,
    ) -> Tensor {
        let (index, src) = (index.as_ref(), src.as_ref());
        let (call, alpha) = (Call::here("index_add_with"), alpha.into());
        call.composed(|| index_added(call, self, axis, index, src, Some(alpha)))
    }

    /// How often each of the numbers 0, 1, … below `bins` occurs in a 1-d tensor of integers, as `I64`.
    ///
    /// PyTorch's `bincount` with as many bins as its result has: shapes are known before values. A number that is
    /// negative, or not below `bins`, is an [`IndexOutOfRange`](crate::Error::IndexOutOfRange) when the values are asked
    /// for.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[1u8, 3, 1, 0], [4]);
    /// assert_eq!(x.bincount(5).to_vec::<i64>()?, [1, 2, 0, 1, 0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn bincount(&self, bins: usize) -> Tensor {
        let call = Call::here("bincount");
        call.composed(|| {
            needs_line(call, self)?;
            counted(call, self, bins, None)
        })
    }

    /// [`Tensor::bincount`] that counts each number with its weight. `F32` weights give `F32`, others `F64`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[1u8, 3, 1, 0], [4]);
    /// let weights = Tensor::from_slice(&[0.5f32, 1.0, 0.25, 2.0], [4]);
    /// assert_eq!(x.bincount_with(4, &weights).to_vec::<f32>()?, [2.0, 0.75, 0.0, 1.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn bincount_with(&self, bins: usize, weights: impl AsRef<Tensor>) -> Tensor {
        let weights = weights.as_ref();
        let call = Call::here("bincount_with");
        call.composed(|| {
            needs_line(call, self)?;
            let ((shape, _), (own, dtype)) = (self.known()?, weights.known()?);
            if own != shape {
                return call
                    .fail(format!("the weights must have the numbers' shape {shape}, got shape {own}"));
            }
            let dtype = if dtype == DType::F32 { dtype } else { DType::F64 };
            counted(call, self, bins, Some(weights.cast(dtype)))
        })
    }

    /// How many elements are in each of `bins` equal parts of the numbers from `min` to `max`: a histogram. A part
    /// contains its lower limit; the last one also `max`. What is outside, and NaN, counts nowhere. Keeps the dtype;
    /// invalid for integers and bools, and if `min` is more than `max`, or one is not finite.
    ///
    /// As in PyTorch, the part of x is `(x - min) * bins / (max - min)`, rounded down, and equal limits stand for the least and
    /// the largest element, or for 1 less and 1 more if these are equal too. Of elements that are not all finite, nothing counts
    /// then; PyTorch refuses them. Counts are exact until the dtype rounds them.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[0.0f32, 0.3, 0.5, 1.0, 1.5, f32::NAN], [6]);
    /// assert_eq!(x.histc(2, 0.0, 1.0).to_vec::<f32>()?, [2.0, 2.0]);
    /// assert_eq!(x.slice(0, ..5).histc(3, 0.0, 0.0).to_vec::<f32>()?, [2.0, 1.0, 2.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn histc(&self, bins: usize, min: f64, max: f64) -> Tensor {
        let call = Call::here("histc");
        call.composed(|| {
            call.needs_float(self)?;
            if !(min.is_finite() && max.is_finite() && min <= max) {
                return call
                    .fail(format!("min must not be more than max, and both finite, got {min} and {max}"));
            }
            if bins == 0 {
                return call.fail("needs at least one bin");
            }
            let (shape, dtype) = self.known()?;
            if min == max {
                return within_own_range(call, self, bins);
            }
            // 16-bit numbers would be rounded on the way to their bin.
            let compute = if dtype == DType::F64 { DType::F64 } else { DType::F32 };
            let width = |scale: f64| match compute {
                DType::F64 => max * scale - min * scale,
                _ => f64::from(max as f32 * scale as f32 - min as f32 * scale as f32),
            };
            // Where a product would overflow, everything is a power of two smaller, which rounds nothing of that size.
            let largest = if compute == DType::F64 { f64::MAX } else { f32::MAX.into() };
            let scale = if width(1.0) * bins as f64 <= largest { 1.0 } else { 0.5f64.powi(66) };
            let x = self.reshape([shape.elements()]).cast(compute);
            let inside = x.ge(min).logical_and(x.le(max));
            let distance = if scale == 1.0 { &x - min } else { &x * scale - min * scale };
            let bin = (distance * bins as f64 / width(scale)).cast(DType::I64).clamp_max(bins as i64 - 1);
            let counts = counted(call, &inside.where_(bin, 0), bins, Some(inside.cast(DType::I64)))?;
            Ok(counts.cast(dtype))
        })
    }
}

fn needs_line(call: Call, x: &Tensor) -> Result<()> {
    let (shape, dtype) = x.known()?;
    match shape.rank() == 1 && dtype.is_int() {
        true => Ok(()),
        false => call.fail(format!(
            "needs integers in one dimension, got {dtype} {shape}; flatten and cast them first, such as with \
             .flatten(..).cast(DType::I64)"
        )),
    }
}

/// [`Tensor::histc`] from the least to the largest element.
fn within_own_range(call: Call, x: &Tensor, bins: usize) -> Result<Tensor> {
    let (shape, dtype) = x.known()?;
    let compute = if dtype == DType::F64 { DType::F64 } else { DType::F32 };
    if shape.elements() == 0 {
        return Ok(Tensor::zeros([bins], dtype));
    }
    let x = x.reshape([shape.elements()]).cast(compute);
    let (least, most) = (x.min(..), x.max(..));
    let is_one = least.eq(&most);
    let (min, max) = (is_one.where_(&least - 1.0, &least), is_one.where_(&most + 1.0, &most));
    // As of given limits: a power of two smaller where a product would overflow.
    let largest = if compute == DType::F64 { f64::MAX } else { f32::MAX.into() };
    let is_narrow = ((&max - &min) * bins as f64).le(largest);
    let scale = is_narrow.where_(max.ones_like(), 0.5f64.powi(66));
    let (low, width) = (&min * &scale, &max * &scale - &min * &scale);
    let is_known = least.isfinite().logical_and(most.isfinite());
    let bin = ((&x * &scale - low) * bins as f64 / width).cast(DType::I64).clamp(0, bins as i64 - 1);
    let counts = counted(
        call,
        &is_known.where_(bin, 0),
        bins,
        Some(is_known.broadcast_to([shape.elements()]).cast(DType::I64)),
    )?;
    Ok(counts.cast(dtype))
}

/// Sums of the weights, or of ones, by number.
pub(super) fn counted(call: Call, x: &Tensor, bins: usize, weights: Option<Tensor>) -> Result<Tensor> {
    let weights = match weights {
        Some(weights) => weights,
        None => call.filled(Scalar::from_i64(DType::I64, 1), ConstantRole::Literal, x.known()?.0)?,
    };
    scattered(call, ReduceOp::Sum, &weights, 0, x, bins)
}

fn needs_dtype_of(call: Call, x: &Tensor, src: &Tensor) -> Result<()> {
    let ((_, dtype), (_, other)) = (x.known()?, src.known()?);
    match dtype == other {
        true => Ok(()),
        false => call.fail(format!(
            "the source must have the tensor's dtype {dtype}, got {other}; cast it first, such as with \
             .cast(DType::{dtype:?})"
        )),
    }
}

fn needs_numbers(call: Call, x: &Tensor) -> Result<()> {
    match x.known()? {
        (shape, DType::Bool) => call.fail(format!("needs numbers, got bool {shape}; cast it first")),
        _ => Ok(()),
    }
}

fn index_added(
    call: Call,
    x: &Tensor,
    axis: isize,
    index: &Tensor,
    src: &Tensor,
    alpha: Option<Number>,
) -> Result<Tensor> {
    let ((shape, dtype), (own, _)) = (x.known()?, src.known()?);
    needs_index(call, index)?;
    needs_numbers(call, x)?;
    needs_dtype_of(call, x, src)?;
    if let (Some(Number::Float(alpha)), false) = (alpha, dtype.is_float()) {
        return call.fail(format!("alpha must be an integer beside {dtype}, got {alpha}"));
    }
    if let Some(alpha) = alpha {
        alpha.held(call, dtype)?;
    }
    if is_of_scalar(axis, shape) {
        let [x, src] = as_lines(call, x, index, src)?;
        return Ok(index_added(call, &x, 0, index, &src, alpha)?.reshape(Shape::scalar()));
    }
    let axis = call.axis(axis, shape)?;
    let (at, _) = index.known()?;
    let expected = shape.with_extent(axis, at.elements());
    if at.rank() > 1 {
        return call.fail(format!("the index must have one dimension, got shape {at}; use .scatter_add"));
    }
    if *own != expected {
        return call.fail(format!(
            "the source must have shape {expected}, as the tensor has {shape} and the index {at}, got shape {own}"
        ));
    }
    let mut line = vec![1; shape.rank()];
    line[axis] = at.elements();
    let index = index.reshape(line).broadcast_to(expected);
    let widened = widened(dtype);
    let sum = scattered(call, ReduceOp::Sum, &src.cast(widened), axis, &index, shape[axis])?;
    let sum = match alpha {
        None => sum,
        Some(alpha) => sum * alpha,
    };
    Ok((x.cast(widened) + sum).cast(dtype))
}

/// In which sums and products are computed, to be rounded once: a sum of halves may be beyond them where the result is
/// not.
fn widened(dtype: DType) -> DType {
    accumulator(dtype).compute()
}

/// Where each element of a source goes.
struct Placed {
    call: Call,
    /// Of the shape of the index, as far as that says where it goes.
    src: Tensor,
    /// Of the tensor's shape but for the axis.
    index: Tensor,
    axis: usize,
    /// Positions along the axis.
    extent: usize,
    /// Where the index does not reach.
    border: Vec<(usize, usize)>,
}

/// What `combine` makes of a tensor and of the elements that go to its positions; the tensor, if there are none.
fn placed(
    call: Call,
    x: &Tensor,
    (axis, index, src): (isize, &Tensor, &Tensor),
    combine: impl FnOnce(&Tensor, Placed) -> Result<Tensor>,
) -> Result<Tensor> {
    needs_index(call, index)?;
    needs_dtype_of(call, x, src)?;
    let ((shape, _), (at, _), (own, _)) = (x.known()?, index.known()?, src.known()?);
    let ranks = [shape.rank(), at.rank(), own.rank()];
    if ranks.contains(&0) && ranks.iter().all(|&rank| rank < 2) && matches!(axis, 0 | -1) {
        // As in PyTorch, a number has one axis here.
        let [x, index, src] = [x, index, src].map(Tensor::ravel);
        return Ok(placed(call, &x, (0, &index, &src), combine)?.reshape(shape));
    }
    if at.rank() != shape.rank() || own.rank() != shape.rank() {
        return call.fail(format!(
            "index and source must have as many dimensions as shape {shape}, got shapes {at} and {own}; to add whole \
             rows, use .index_add"
        ));
    }
    let axis = call.axis(axis, shape)?;
    let all = 0..shape.rank();
    let beyond: Vec<usize> =
        all.clone().filter(|&k| at[k] > own[k] || k != axis && at[k] > shape[k]).collect();
    if at.elements() == 0 {
        return Ok(call.following(x, &[src]));
    }
    if !beyond.is_empty() {
        return call.fail(format!(
            "the index of shape {at} is too large along {} {}: the source has shape {own}, and the tensor {shape}, \
             which may be smaller only along axis {axis}",
            if beyond.len() == 1 { "axis" } else { "axes" },
            list(&beyond)
        ));
    }
    let src =
        all.clone().filter(|&k| at[k] < own[k]).fold(src.clone(), |src, k| src.narrow(k as isize, 0, at[k]));
    let border = all.map(|k| (0, if k == axis { 0 } else { shape[k] - at[k] })).collect();
    let placed = Placed { call, src, index: index.clone(), axis, extent: shape[axis], border };
    let index = placed.around(index, Number::Int(0));
    combine(x, Placed { index, ..placed })
}

impl Placed {
    /// The tensor, with nothing that would count where the index does not reach.
    fn around(&self, tensor: &Tensor, nothing: Number) -> Tensor {
        match self.border.iter().any(|&(_, after)| after > 0) {
            true => tensor.pad(&self.border, nothing),
            false => tensor.clone(),
        }
    }

    /// What meets at each position, of the source or of what is in its places.
    fn combined(&self, src: &Tensor, op: ReduceOp) -> Result<Tensor> {
        let nothing = Number::of(op.identity(src.known()?.1));
        scattered(self.call, op, &self.around(src, nothing), self.axis, &self.index, self.extent)
    }

    fn filled(&self, value: Scalar) -> Result<Tensor> {
        self.call.filled(value, ConstantRole::Literal, self.src.known()?.0)
    }

    /// Whether anything is at a position.
    fn is_met(&self) -> Result<Tensor> {
        self.combined(&self.filled(Scalar::from_bool(true))?, ReduceOp::Max)
    }

    /// The last element at each position, in the source's order along the axis; x where there is none.
    fn last(&self, x: &Tensor) -> Result<Tensor> {
        let (shape, _) = self.src.known()?;
        let count = shape[self.axis];
        let dtype = if i32::try_from(count).is_ok() { DType::I32 } else { DType::I64 };
        let mut line = vec![1; shape.rank()];
        line[self.axis] = count;
        let order = counting(count).cast(dtype).reshape(line).broadcast_to(shape);
        let last = self.combined(&order, ReduceOp::Max)?;
        let (is_met, at) = met(self.call, &last)?;
        let elements = self.around(&self.src, Number::Int(0));
        Ok(is_met.where_(gathered(self.call, &elements, self.axis, &at.cast(DType::I64))?, x))
    }
}

/// Of the greatest positions that are scattered: where there is one, and which. Zero is part of the text: of nothing it is known
/// then that there is none.
pub(super) fn met(call: Call, last: &Tensor) -> Result<(Tensor, Tensor)> {
    let zero = call.constant(Scalar::from_i64(last.known()?.1, 0), ConstantRole::Literal)?;
    Ok((last.ge(&zero), last.maximum(&zero)))
}

fn scatter_reduced(
    call: Call,
    x: &Tensor,
    places: (isize, &Tensor, &Tensor),
    reduce: ScatterReduction,
    include_self: bool,
) -> Result<Tensor> {
    needs_numbers(call, x)?;
    let is_extreme = matches!(reduce, ScatterReduction::Amax | ScatterReduction::Amin);
    placed(call, x, places, |x, placed| {
        let (_, dtype) = x.known()?;
        let widened = if is_extreme { dtype } else { widened(dtype) };
        let result = placed.combined(&placed.src.cast(widened), reduce.op())?;
        if reduce == ScatterReduction::Mean {
            let count = placed.combined(&placed.filled(Scalar::from_i64(DType::I64, 1))?, ReduceOp::Sum)?;
            let (sum, divisor) = match include_self {
                true => (x.cast(widened) + result, &count + 1),
                false => (result, count.clamp_min(1)),
            };
            let divisor = divisor.cast(widened);
            let mean = if dtype.is_float() { sum / divisor } else { sum.floor_divide(divisor) };
            let mean = mean.cast(dtype);
            return Ok(if include_self { mean } else { count.gt(0).where_(mean, x) });
        }
        if include_self {
            let own = x.cast(widened);
            let result = match reduce {
                ScatterReduction::Prod => own * result,
                ScatterReduction::Amax => own.maximum(result),
                ScatterReduction::Amin => own.minimum(result),
                ScatterReduction::Sum | ScatterReduction::Mean => own + result,
            };
            return Ok(result.cast(dtype));
        }
        Ok(placed.is_met()?.where_(result.cast(dtype), x))
    })
}

fn scatter(call: Call, x: &Tensor, axis: isize, index: &Tensor, src: Operand) -> Result<Tensor> {
    match src {
        Operand::Tensor(src) => placed(call, x, (axis, index, &src), |x, placed| placed.last(x)),
        Operand::Number(value) => {
            let ((_, dtype), (at, _)) = (x.known()?, index.known()?);
            let value = value.held(call, dtype)?;
            let src = call.filled(value, ConstantRole::Argument, at)?;
            placed(call, x, (axis, index, &src), |x, placed| {
                Ok(placed.is_met()?.where_(call.constant(value, ConstantRole::Argument)?, x))
            })
        }
    }
}

/// The primitive: source and index have one shape.
pub(crate) fn scattered(
    call: Call,
    op: ReduceOp,
    src: &Tensor,
    axis: usize,
    index: &Tensor,
    extent: usize,
) -> Result<Tensor> {
    let ((shape, dtype), (at, _)) = (src.known()?, index.known()?);
    if extent == 0 && at.elements() > 0 {
        return call
            .fail(format!("an axis of extent 0 has no positions for the {} of the index", at.elements()));
    }
    let result = shape.with_extent(axis, extent);
    call.needs_addressable(&result)?;
    if shape.elements() == 0 {
        // No kernel is to look at elements that are not there.
        let nothing = call.filled_on(src.node.device, op.identity(dtype), ConstantRole::Literal, &result)?;
        return Ok(call.following(&nothing, &[src]));
    }
    call.record(Op::Scatter { op, axis, extent }, &[src, index], result, dtype)
}
