//! Rearrangements made of views: they copy nothing, and cost an index expression in the kernel that reads.

use crate::graph::op::{self, View};
use crate::tensor::arguments::axes::{Axes, AxesKind, Dims};
use crate::tensor::arguments::call::{Call, is_of_scalar};
use crate::tensor::make::create::below;
use crate::{DType, Error, Result, Shape, Tensor};

impl Tensor {
    /// One axis divided into several; one extent may be -1 and follows from the others. The opposite of
    /// [`Tensor::flatten`].
    ///
    /// ```
    /// use lazuli::{DType, Shape, Tensor};
    /// let heads = Tensor::zeros([2, 7, 64], DType::F32).unflatten(-1, [8, -1]);
    /// assert_eq!(heads.shape()?, Shape::from([2, 7, 8, 8]));
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn unflatten(&self, axis: isize, dims: impl Into<Dims>) -> Tensor {
        Tensor::or_invalid(unflatten(Call::here("unflatten"), self, axis, &dims.into().0))
    }

    /// All elements along one axis: `flatten(..)` under NumPy's name.
    ///
    /// ```
    /// use lazuli::{DType, Shape, Tensor};
    /// assert_eq!(Tensor::zeros([2, 3], DType::F32).ravel().shape()?, Shape::from([6]));
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn ravel(&self) -> Tensor {
        Call::here("ravel").composed(|| Ok(self.flatten(..)))
    }

    /// The axes at `source` moved to `destination`; the others keep their order.
    ///
    /// ```
    /// use lazuli::{DType, Shape, Tensor};
    /// let nhwc = Tensor::zeros([1, 8, 9, 3], DType::U8);
    /// assert_eq!(nhwc.movedim(-1, 1).shape()?, Shape::from([1, 3, 8, 9]));
    /// assert_eq!(nhwc.movedim([0, 3], [3, 0]).shape()?, Shape::from([3, 8, 9, 1]));
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn movedim(&self, source: impl Into<Axes>, destination: impl Into<Axes>) -> Tensor {
        Tensor::or_invalid(movedim(Call::here("movedim"), self, &source.into(), &destination.into()))
    }

    /// Two axes exchanged: [`Tensor::transpose`] under NumPy's name.
    ///
    /// ```
    /// use lazuli::{DType, Shape, Tensor};
    /// assert_eq!(Tensor::zeros([2, 3, 4], DType::F32).swapaxes(0, -1).shape()?, Shape::from([4, 3, 2]));
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn swapaxes(&self, a: isize, b: isize) -> Tensor {
        Call::here("swapaxes").composed(|| Ok(self.transpose(a, b)))
    }

    /// Rotated by `turns` quarters from the first of two axes towards the second; negative turns go back.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::arange(0, 4, 1).reshape([2, 2]);
    /// assert_eq!(x.rot90(1, [0, 1]).to_vec::<i32>()?, [1, 3, 0, 2]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn rot90(&self, turns: isize, axes: [isize; 2]) -> Tensor {
        let call = Call::here("rot90");
        call.composed(|| {
            let axes = call.axes_in_order(&axes, self.known()?.0)?;
            let [a, b] = [axes[0] as isize, axes[1] as isize];
            Ok(match turns.rem_euclid(4) {
                0 => self.clone(),
                1 => self.flip(b).transpose(a, b),
                2 => self.flip([a, b]),
                _ => self.flip(a).transpose(a, b),
            })
        })
    }

    /// Shifted along axes, by one number for each of them; what leaves at one end enters at the other. By one number along
    /// no axis, `()`, all elements are shifted along one line (row-major) and keep the shape, as PyTorch's `roll` without `dims`.
    ///
    /// Invalid for another number of shifts than of axes.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::arange(0, 5, 1);
    /// assert_eq!(x.roll(2, 0).to_vec::<i32>()?, [3, 4, 0, 1, 2]);
    /// assert_eq!(x.roll(-1, 0).to_vec::<i32>()?, [1, 2, 3, 4, 0]);
    /// let x = Tensor::arange(0, 6, 1).reshape([2, 3]);
    /// assert_eq!(x.roll([1, -1], [0, 1]).to_vec::<i32>()?, [4, 5, 3, 1, 2, 0]);
    /// assert_eq!(x.roll(1, ()).to_vec::<i32>()?, [5, 0, 1, 2, 3, 4]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn roll(&self, shifts: impl Into<Dims>, axes: impl Into<Axes>) -> Tensor {
        let (call, shifts, axes) = (Call::here("roll"), shifts.into().0, axes.into());
        call.composed(|| rolled(call, self, &shifts, &axes))
    }

    /// Copies side by side, so many along each axis; new axes come first. As PyTorch's `repeat`, and not
    /// NumPy's, which is [`Tensor::repeat_interleave`].
    ///
    /// Invalid for fewer numbers than axes: see [`Tensor::tile`].
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::arange(0, 2, 1);
    /// assert_eq!(x.repeat([2, 2]).to_vec::<i32>()?, [0, 1, 0, 1, 0, 1, 0, 1]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn repeat(&self, copies: impl Into<Dims>) -> Tensor {
        Tensor::or_invalid(repeat(Call::here("repeat"), self, &copies.into().0, false))
    }

    /// [`Tensor::repeat`] that leaves the first axes alone if there are fewer numbers than axes.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::arange(0, 4, 1).reshape([2, 2]);
    /// assert_eq!(x.tile([2]).to_vec::<i32>()?, [0, 1, 0, 1, 2, 3, 2, 3]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn tile(&self, copies: impl Into<Dims>) -> Tensor {
        Tensor::or_invalid(repeat(Call::here("tile"), self, &copies.into().0, true))
    }

    /// Each position of an axis `count` times in a row.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::arange(0, 3, 1);
    /// assert_eq!(x.repeat_interleave(2, 0).to_vec::<i32>()?, [0, 0, 1, 1, 2, 2]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn repeat_interleave(&self, count: usize, axis: isize) -> Tensor {
        let call = Call::here("repeat_interleave");
        call.composed(|| {
            let axis = call.axis(axis, self.known()?.0)?;
            interleaved(call, self, axis, count)
        })
    }

    /// The elements whose indices along two axes differ by `offset` (the second minus the first), along a new
    /// last axis; the two axes are gone.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::arange(0, 9, 1).reshape([3, 3]);
    /// assert_eq!(x.diagonal(0, 0, 1).to_vec::<i32>()?, [0, 4, 8]);
    /// assert_eq!(x.diagonal(-1, 0, 1).to_vec::<i32>()?, [3, 7]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn diagonal(&self, offset: isize, first: isize, second: isize) -> Tensor {
        let call = Call::here("diagonal");
        call.composed(|| diagonal(call, self, offset, [first, second]))
    }

    /// Square matrices, 0 but for a diagonal: that whose column exceeds the row by `offset` has the elements of the last
    /// axis. The opposite of [`Tensor::diagonal`].
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[1, 2], [2]);
    /// assert_eq!(x.diag_embed(0).to_vec::<i32>()?, [1, 0, 0, 2]);
    /// assert_eq!(x.diag_embed(1).to_vec::<i32>()?, [0, 1, 0, 0, 0, 2, 0, 0, 0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn diag_embed(&self, offset: isize) -> Tensor {
        let call = Call::here("diag_embed");
        call.composed(|| diag_embed(call, self, offset))
    }

    /// [`Tensor::diag_embed`] with the rows along axis `first` of the result, and the columns along `second`. PyTorch's `diag_embed`
    /// with `dim1` and `dim2`.
    ///
    /// Invalid for equal axes, and for those that the result does not have.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[1, 2], [2]);
    /// assert_eq!(x.diag_embed_with(1, 1, 0).to_vec::<i32>()?, [0, 0, 0, 1, 0, 0, 0, 2, 0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn diag_embed_with(&self, offset: isize, first: isize, second: isize) -> Tensor {
        let call = Call::here("diag_embed_with");
        call.composed(|| {
            let matrices = diag_embed(call, self, offset)?;
            let axes = call.axes_in_order(&[first, second], matrices.known()?.0)?;
            Ok(matrices.movedim([-2isize, -1], &axes[..]))
        })
    }

    /// The lower triangle of the last two axes: zero where the column exceeds the row by more than
    /// `diagonal`.
    ///
    /// ```
    /// use lazuli::{DType, Tensor};
    /// let x = Tensor::ones([2, 3], DType::F32);
    /// assert_eq!(x.tril(0).to_vec::<f32>()?, [1.0, 0.0, 0.0, 1.0, 1.0, 0.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn tril(&self, diagonal: isize) -> Tensor {
        let call = Call::here("tril");
        call.composed(|| triangle(call, self, diagonal, true))
    }

    /// The upper triangle of the last two axes: zero where the column exceeds the row by less than `diagonal`.
    ///
    /// ```
    /// use lazuli::{DType, Tensor};
    /// let x = Tensor::ones([2, 3], DType::F32);
    /// assert_eq!(x.triu(1).to_vec::<f32>()?, [0.0, 1.0, 1.0, 0.0, 0.0, 1.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn triu(&self, diagonal: isize) -> Tensor {
        let call = Call::here("triu");
        call.composed(|| triangle(call, self, diagonal, false))
    }

    /// `[.., channels * factor², height, width]` to `[.., channels, height * factor, width * factor]`: each
    /// pixel's channels become a square of pixels.
    ///
    /// W. Shi et al., "Real-time single image and video super-resolution using an efficient sub-pixel
    /// convolutional neural network", 2016.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::arange(0, 4, 1).reshape([4, 1, 1]);
    /// assert_eq!(x.pixel_shuffle(2).to_vec::<i32>()?, [0, 1, 2, 3]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn pixel_shuffle(&self, factor: usize) -> Tensor {
        let call = Call::here("pixel_shuffle");
        call.composed(|| {
            let (batch, [channels, height, width]) = planes(call, self)?;
            let area = square(call, factor)?;
            if channels % area != 0 {
                return call.fail(format!(
                    "the {channels} channels of shape {} are no multiple of {area}, the pixels of a {factor}×{factor} square",
                    self.known()?.0
                ));
            }
            let count = channels / area;
            let split = self.reshape(joined(batch, &[count, factor, factor, height, width]));
            let moved = split.movedim([-4, -3], [-3, -1]);
            Ok(moved.reshape(joined(batch, &[count, height.saturating_mul(factor), width.saturating_mul(factor)])))
        })
    }

    /// The opposite of [`Tensor::pixel_shuffle`]: squares of pixels become channels.
    ///
    /// ```
    /// use lazuli::{DType, Shape, Tensor};
    /// let x = Tensor::zeros([1, 3, 8, 6], DType::F32);
    /// assert_eq!(x.pixel_unshuffle(2).shape()?, Shape::from([1, 12, 4, 3]));
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn pixel_unshuffle(&self, factor: usize) -> Tensor {
        let call = Call::here("pixel_unshuffle");
        call.composed(|| {
            let (batch, [channels, height, width]) = planes(call, self)?;
            let area = square(call, factor)?;
            if height % factor != 0 || width % factor != 0 {
                return call.fail(format!(
                    "the {height}×{width} pixels of shape {} are no multiple of {factor}×{factor}",
                    self.known()?.0
                ));
            }
            let (rows, columns) = (height / factor, width / factor);
            let split = self.reshape(joined(batch, &[channels, rows, factor, columns, factor]));
            let moved = split.movedim([-3, -1], [-4, -3]);
            Ok(moved.reshape(joined(batch, &[channels.saturating_mul(area), rows, columns])))
        })
    }

    /// The channels of `[batch, channels, …]` in the order in which so many groups of them are dealt out one by one: the first of
    /// each group, then the second of each. PyTorch's `channel_shuffle`.
    ///
    /// X. Zhang et al., "ShuffleNet: an extremely efficient convolutional neural network for mobile devices", 2018.
    ///
    /// Invalid for fewer than three dimensions, and unless the groups are equal.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::arange(0, 6, 1).reshape([1, 6, 1]);
    /// assert_eq!(x.channel_shuffle(2).to_vec::<i32>()?, [0, 3, 1, 4, 2, 5]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn channel_shuffle(&self, groups: usize) -> Tensor {
        let call = Call::here("channel_shuffle");
        call.composed(|| {
            let (shape, dtype) = self.known()?;
            let [batch, channels, _, ..] = shape[..] else {
                return call
                    .fail(format!("needs at least 3 dimensions (batch, channels, …), got {dtype} {shape}"));
            };
            if groups == 0 || channels % groups != 0 {
                return call.fail(format!(
                    "the {channels} channels of shape {shape} cannot be {groups} equal groups"
                ));
            }
            let split = self.reshape(joined(&[batch, groups, channels / groups], &shape[2..]));
            Ok(split.transpose(1, 2).reshape(shape))
        })
    }
}

fn unflatten(call: Call, x: &Tensor, axis: isize, dims: &[isize]) -> Result<Tensor> {
    let (shape, _) = x.known()?;
    let axis = call.axis(axis, shape)?;
    let sizes = |extents: &[usize]| extents.iter().map(|&extent| extent as isize).collect::<Vec<_>>();
    let parts = Tensor::zeros([shape[axis]], DType::Bool);
    // What the reshape of this axis alone says is what is wrong.
    let divided = call.compose(|| parts.reshape(dims)).shape().map_err(|error| match error {
        Error::InvalidOperation { message, .. } => call.error(format!("axis {axis} of {shape}: {message}")),
        other => other,
    })?;
    let all = [&sizes(&shape[..axis])[..], &sizes(&divided), &sizes(&shape[axis + 1..])].concat();
    Ok(call.compose(|| x.reshape(all)))
}

fn movedim(call: Call, x: &Tensor, source: &Axes, destination: &Axes) -> Result<Tensor> {
    let (shape, _) = x.known()?;
    let is_one = |axes: &Axes| matches!(&axes.0, AxesKind::List(list) if matches!(list[..], [axis] if is_of_scalar(axis, shape)));
    if is_one(source) && is_one(destination) {
        return Ok(x.clone());
    }
    let in_order = |axes: &Axes| match &axes.0 {
        AxesKind::All => Ok((0..shape.rank()).collect()),
        AxesKind::List(list) => call.axes_in_order(list, shape),
    };
    let (from, to) = (in_order(source)?, in_order(destination)?);
    if from.len() != to.len() {
        return call.fail(format!(
            "{} axes of shape {shape} cannot move to {} places: give as many of both",
            from.len(),
            to.len()
        ));
    }
    let mut others = (0..shape.rank()).filter(|axis| !from.contains(axis));
    let order: op::Axes = (0..shape.rank())
        .filter_map(|place| match to.iter().position(|&to| to == place) {
            Some(moved) => Some(from[moved]),
            None => others.next(),
        })
        .collect();
    let extents = order.iter().map(|&axis| shape[axis]).collect();
    call.view(View::Permute(order), x, extents)
}

/// The extents before the last three dimensions, and those three.
fn planes(call: Call, x: &Tensor) -> Result<(&[usize], [usize; 3])> {
    let (shape, dtype) = x.known()?;
    match shape[..] {
        [ref batch @ .., channels, height, width] => Ok((batch, [channels, height, width])),
        _ => call.fail(format!("needs at least 3 dimensions (channels, height, width), got {dtype} {shape}")),
    }
}

fn square(call: Call, factor: usize) -> Result<usize> {
    match factor.checked_mul(factor) {
        Some(area) if area > 0 => Ok(area),
        _ => call.fail(format!("the factor must be at least 1 and its square addressable, got {factor}")),
    }
}

fn joined(first: &[usize], last: &[usize]) -> Vec<usize> {
    [first, last].concat()
}

fn repeat(call: Call, x: &Tensor, copies: &[isize], fill: bool) -> Result<Tensor> {
    let (shape, _) = x.known()?;
    let rank = shape.rank();
    if copies.len() < rank && !fill {
        return call.fail(format!(
            "{} numbers {copies:?} for shape {shape}: give one for each of its {rank} axes, or use .tile",
            copies.len()
        ));
    }
    if let Some(negative) = copies.iter().find(|&&copies| copies < 0) {
        return call.fail(format!("cannot repeat {negative} times, in {copies:?}"));
    }
    let all = rank.max(copies.len());
    let aligned = |list: &[usize]| -> Vec<usize> {
        std::iter::repeat_n(1, all - list.len()).chain(list.iter().copied()).collect()
    };
    let own = aligned(shape);
    let times = aligned(&copies.iter().map(|&copies| copies as usize).collect::<Vec<_>>());
    // Every axis gets an outer one that counts its copies.
    let mut with_copies = Vec::with_capacity(2 * all);
    let mut together = Vec::with_capacity(all);
    let mut single = Vec::with_capacity(2 * all);
    for (&own, &times) in own.iter().zip(&times) {
        if times != 1 {
            with_copies.push(times);
            single.push(1);
        }
        with_copies.push(own);
        single.push(own);
        together.push(own.saturating_mul(times));
    }
    let together = Shape::from(together);
    call.needs_addressable(&together)?;
    let expanded = call.expand(&call.reshape(x, single.into())?, &with_copies.into())?;
    call.reshape(&expanded, together)
}

/// Each position of the axis `count` times in a row.
pub(crate) fn interleaved(call: Call, x: &Tensor, axis: usize, count: usize) -> Result<Tensor> {
    let mut extents = x.known()?.0.to_vec();
    let extent = extents[axis];
    extents.insert(axis + 1, 1);
    let apart = call.reshape(x, Shape::from(&extents[..]))?;
    extents[axis + 1] = count;
    let copies = call.expand(&apart, &Shape::from(&extents[..]))?;
    extents.remove(axis + 1);
    extents[axis] = extent.saturating_mul(count);
    let shape = Shape::from(extents);
    call.needs_addressable(&shape)?;
    call.reshape(&copies, shape)
}

fn rolled(call: Call, x: &Tensor, shifts: &[isize], axes: &Axes) -> Result<Tensor> {
    let (shape, _) = x.known()?;
    if let ([_], true) = (shifts, is_none_named(axes)) {
        return Ok(rolled(call, &x.ravel(), shifts, &Axes::from(0i64))?.reshape(shape));
    }
    // An axis may be named again, as in PyTorch: its shifts add up.
    let axes: Vec<usize> = match &axes.0 {
        AxesKind::All => (0..shape.rank()).collect(),
        AxesKind::List(list) => list.iter().map(|&axis| call.axis(axis, shape)).collect::<Result<_>>()?,
    };
    if shifts.len() != axes.len() {
        let (given, taken) = (shifts.len(), axes.len());
        return call
            .fail(format!("takes a shift for each axis, got {given} for {taken} axes of shape {shape}"));
    }
    axes.iter().zip(shifts).try_fold(x.clone(), |x, (&axis, &shift)| match isize::try_from(shape[axis]) {
        Ok(extent) if extent > 1 => around(&x, axis, extent - shift.rem_euclid(extent), shape[axis]),
        _ => Ok(x),
    })
}

/// Whether no axis is named: all, or an empty list.
fn is_none_named(axes: &Axes) -> bool {
    match &axes.0 {
        AxesKind::All => true,
        AxesKind::List(list) => list.is_empty(),
    }
}

/// `length` positions along the axis from `start` on, where the position after the last is the first. May only
/// be called while a call is composed; the axis is not empty.
pub(crate) fn around(x: &Tensor, axis: usize, start: isize, length: usize) -> Result<Tensor> {
    let (shape, _) = x.known()?;
    let extent = shape[axis];
    let first = start.rem_euclid(extent as isize) as usize;
    let copies = first.saturating_add(length).div_ceil(extent);
    if copies <= 1 {
        return Ok(x.narrow(axis as isize, first, length));
    }
    let times: Vec<isize> =
        (0..shape.rank()).map(|own| if own == axis { copies as isize } else { 1 }).collect();
    Ok(x.repeat(times).narrow(axis as isize, first, length))
}

fn diagonal(call: Call, x: &Tensor, offset: isize, axes: [isize; 2]) -> Result<Tensor> {
    let (shape, dtype) = x.known()?;
    if shape.rank() < 2 {
        return call.fail(format!("needs at least 2 dimensions, got {dtype} {shape}"));
    }
    let axes = call.axes_in_order(&axes, shape)?;
    let (rows, columns) = (shape[axes[0]], shape[axes[1]]);
    let skipped = offset.unsigned_abs();
    let count = match offset >= 0 {
        true => rows.min(columns.saturating_sub(skipped)),
        false => columns.min(rows.saturating_sub(skipped)),
    };
    let last = x.movedim([axes[0], axes[1]], [-2isize, -1].as_slice());
    let rest = shape.without(&axes);
    let flat = last.reshape(joined(&rest, &[rows * columns]));
    // Neighbours on a diagonal are a row and a column apart.
    let step = columns + 1;
    let start = match (count, offset >= 0) {
        (0, _) => 0,
        (_, true) => skipped,
        (_, false) => skipped * columns,
    };
    let span = if count == 0 { 0 } else { (count - 1) * step + 1 };
    Ok(flat.narrow(-1, start, span).slice_step(-1, None, None, step as isize))
}

fn diag_embed(call: Call, x: &Tensor, offset: isize) -> Result<Tensor> {
    let (shape, dtype) = x.known()?;
    let [.., length] = shape[..] else {
        return call.fail(format!("needs at least 1 dimension, got {dtype} {shape}"));
    };
    let skipped = offset.unsigned_abs();
    let (before, after) = if offset >= 0 { (skipped, 0) } else { (0, skipped) };
    let Some(size) = length.checked_add(skipped) else {
        return call.fail(format!("a matrix of {length} and {skipped} more columns has too many"));
    };
    let mut border = vec![(0, 0); shape.rank()];
    border[shape.rank() - 1] = (before, after);
    let columns = x.pad(&border, 0).unsqueeze(-2);
    let mut square = columns.known()?.0.to_vec();
    square[shape.rank() - 1] = size;
    let square = columns.broadcast_to(square);
    let is_on = Tensor::eye_with(size, size, offset, DType::Bool);
    Ok(is_on.where_(&square, square.zeros_like()))
}

fn triangle(call: Call, x: &Tensor, diagonal: isize, lower: bool) -> Result<Tensor> {
    let (shape, dtype) = x.known()?;
    let [.., rows, columns] = shape[..] else {
        return call.fail(format!("needs at least 2 dimensions, got {dtype} {shape}"));
    };
    Ok(below(rows, columns, diagonal, lower).where_(x, x.zeros_like()))
}
