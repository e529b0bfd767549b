//! Resizing by interpolation.
//!
//! Position i of the result lies at a source position that is a quotient of integers: `(start + step * i) / unit`.
//! Every position repeated `unit` times, then every `step`-th from `start` on, is the element at its whole part. So
//! the source is read through views alone, and the weights are a function of the remainder. No rounding moves a
//! position, however large the image.

use super::adaptive::adaptive;
use super::pool::gcd;
use crate::recording::is_addressable;
use crate::tensor::arguments::call::Call;
use crate::tensor::make::create::counting;
use crate::tensor::reduce::statistics::{along, widened};
use crate::tensor::view::rearrange::{around, interleaved};
use crate::{DType, PadMode, Result, Shape, Tensor};

/// What a result is made from: see [`Tensor::interpolate`].
///
/// ```
/// use lazuli::{Interpolation, Tensor};
/// let x = Tensor::from_slice(&[0.0f32, 4.0], [2]);
/// let resized = |mode| x.interpolate([4], mode).to_vec::<f32>();
/// assert_eq!(resized(Interpolation::Nearest)?, [0.0, 0.0, 4.0, 4.0]);
/// assert_eq!(resized(Interpolation::Linear { align_corners: false })?, [0.0, 1.0, 3.0, 4.0]);
/// assert_eq!(x.interpolate([3], Interpolation::Linear { align_corners: true }).to_vec::<f32>()?, [0.0, 2.0, 4.0]);
/// assert_eq!(resized(Interpolation::Cubic { align_corners: false })?, [-0.421875, 0.90625, 3.09375, 4.421875]);
/// assert_eq!(x.interpolate([1], Interpolation::Area).to_vec::<f32>()?, [2.0]);
/// # Ok::<(), lazuli::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Interpolation {
    /// The element at `floor(i * extent / size)`; of every dtype.
    Nearest,
    /// The element at `floor((i + 1/2) * extent / size)`, whose centre is nearest; of every dtype.
    NearestExact,
    /// Linear between neighbours: bilinear of two axes, trilinear of three; of floats.
    Linear {
        /// Whether the centres of the corners stay where they are, and not their outer edges.
        align_corners: bool,
    },
    /// Cubic between the four nearest elements of each axis, of which the last ones are repeated beyond the ends: bicubic of two
    /// axes; of floats. Results may be beyond all elements.
    Cubic {
        /// As of [`Interpolation::Linear`].
        align_corners: bool,
    },
    /// The mean of what a position covers, as of [`Tensor::adaptive_avg_pool2d`]: of one to three axes; of floats.
    Area,
}

/// The last axes' source positions: `(start + step * i) / unit` for i up to, but without, `size`.
#[derive(Clone, Copy)]
struct Positions {
    start: i64,
    step: i64,
    unit: i64,
    size: usize,
}

impl Positions {
    /// Whether each is that of one element of so many, in their order.
    fn are_all_of(self, extent: usize) -> bool {
        self.start == 0 && self.size == extent && (self.step == self.unit || self.step == 0)
    }
}

impl Tensor {
    /// The last axes resized, as many as `size` has: PyTorch's `interpolate`, which for an image
    /// `[.., height, width]` and [`Interpolation::Linear`] is `mode="bilinear"`. Keeps the dtype.
    ///
    /// Invalid of integers and bools for all but [`Interpolation::Nearest`] and its like, for an empty axis, and for a size of 0.
    ///
    /// ```
    /// use lazuli::{DType, Interpolation, Shape, Tensor};
    /// let image = Tensor::zeros([3, 480, 640], DType::F32);
    /// let small = image.interpolate([224, 224], Interpolation::Linear { align_corners: false });
    /// assert_eq!(small.shape()?, Shape::from([3, 224, 224]));
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn interpolate(&self, size: impl Into<Shape>, mode: Interpolation) -> Tensor {
        let (call, size) = (Call::here("interpolate"), size.into());
        call.composed(|| {
            let (first, shape) = axes(call, self, size.rank(), mode)?;
            let ratios = shape[first..].iter().zip(&size[..]).map(|(&extent, &size)| (size, extent, size));
            resize(call, self, &ratios.collect::<Vec<_>>(), mode)
        })
    }

    /// [`Tensor::interpolate`] by factors, one for each of the last axes: an extent becomes
    /// `floor(extent * factor)`, and distances are divided by the factor itself. Factors are taken as the
    /// simplest fraction that equals them. As PyTorch's `interpolate` with `scale_factor`: where an extent stays what it is,
    /// [`Interpolation::Linear`] copies along that axis, and [`Interpolation::Nearest`] of two axes copies where both do.
    ///
    /// Invalid as by [`Tensor::interpolate`], and for a factor that is not positive and finite.
    ///
    /// ```
    /// use lazuli::{Interpolation, Tensor};
    /// let x = Tensor::from_slice(&[1i32, 2, 3], [3]);
    /// assert_eq!(x.interpolate_scale(&[2.0], Interpolation::Nearest).to_vec::<i32>()?, [1, 1, 2, 2, 3, 3]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn interpolate_scale(&self, factors: &[f64], mode: Interpolation) -> Tensor {
        let call = Call::here("interpolate_scale");
        call.composed(|| {
            let (first, shape) = axes(call, self, factors.len(), mode)?;
            let mut ratios = Vec::new();
            for (&extent, &factor) in shape[first..].iter().zip(factors) {
                let Some((numerator, denominator)) = fraction(factor) else {
                    return call
                        .fail(format!("the factors must be positive and not extreme, got {factors:?}"));
                };
                ratios.push(((extent as f64 * factor).floor() as usize, denominator, numerator));
            }
            let stays: Vec<bool> =
                ratios.iter().zip(&shape[first..]).map(|(ratio, &extent)| ratio.0 == extent).collect();
            let copies = |axis: usize| match mode {
                Interpolation::Linear { .. } => stays[axis],
                Interpolation::Nearest => stays[..] == [true, true],
                _ => false,
            };
            for (axis, ratio) in ratios.iter_mut().enumerate() {
                if copies(axis) {
                    (ratio.1, ratio.2) = (1, 1);
                }
            }
            resize(call, self, &ratios, mode)
        })
    }
}

/// The first of the last axes, and the shape.
fn axes(call: Call, x: &Tensor, count: usize, mode: Interpolation) -> Result<(usize, &Shape)> {
    let (shape, dtype) = x.known()?;
    if !matches!(mode, Interpolation::Nearest | Interpolation::NearestExact) {
        call.needs_float(x)?;
    }
    match shape.rank().checked_sub(count) {
        Some(first) => Ok((first, shape)),
        None => call.fail(format!("{count} axes to resize, but {dtype} {shape} has {}", shape.rank())),
    }
}

/// The simplest fraction that rounds to the number: its continued fraction, cut as soon as it does.
fn fraction(number: f64) -> Option<(usize, usize)> {
    if !number.is_finite() || number <= 0.0 {
        return None;
    }
    let (mut rest, mut before, mut now) = (number, (0u64, 1u64), (1u64, 0u64));
    for _ in 0..40 {
        let whole = rest.floor();
        // What needs larger numbers is no factor of an image.
        let next = |before: u64, now: u64| {
            let term = (whole < 1e6).then_some(whole as u64)?;
            now.checked_mul(term)?.checked_add(before).filter(|&number| number < 1 << 24)
        };
        (before, now) = (now, (next(before.0, now.0)?, next(before.1, now.1)?));
        if now.0 > 0 && (now.0 as f64 / now.1 as f64 - number).abs() <= number * 1e-12 {
            return Some((now.0 as usize, now.1 as usize));
        }
        rest = 1.0 / (rest - whole);
    }
    None
}

/// Each axis as its new size, and the distance of neighbours in the source as numerator and denominator.
fn resize(call: Call, x: &Tensor, axes: &[(usize, usize, usize)], mode: Interpolation) -> Result<Tensor> {
    let (shape, _) = x.known()?;
    let first = shape.rank() - axes.len();
    let resized: Shape = shape[..first].iter().copied().chain(axes.iter().map(|axis| axis.0)).collect();
    if shape[first..].contains(&0) || resized[first..].contains(&0) {
        return call.fail(format!("cannot resize shape {shape} to {resized}: no axis may be empty"));
    }
    call.needs_addressable(&resized)?;
    if mode == Interpolation::Area {
        return match resized[first..] {
            [length] => adaptive(call, x, [length], false),
            [height, width] => adaptive(call, x, [height, width], false),
            [depth, height, width] => adaptive(call, x, [depth, height, width], false),
            _ => call.fail(format!("areas are of one to three axes, got {}", axes.len())),
        };
    }
    let mut positions = Vec::new();
    for (&(size, step, unit), &extent) in axes.iter().zip(&shape[first..]) {
        let common = gcd(step, unit);
        let (step, unit) = ((step / common) as i64, (unit / common) as i64);
        let (start, step, unit) = match mode {
            Interpolation::Nearest => (0, step, unit),
            Interpolation::NearestExact => (step, 2 * step, 2 * unit),
            Interpolation::Linear { align_corners: false }
            | Interpolation::Cubic { align_corners: false } => (step - unit, 2 * step, 2 * unit),
            _ if size == 1 || extent == 1 => (0, 0, 1),
            _ => {
                let common = gcd(extent - 1, size - 1);
                (0, ((extent - 1) / common) as i64, ((size - 1) / common) as i64)
            }
        };
        // The last of the repeated elements must have a number.
        if !is_addressable(&[extent + 4, unit as usize]) {
            return call.fail(format!(
                "shape {shape} resized to {resized} has more positions than can be addressed"
            ));
        }
        positions.push(Positions { start, step, unit, size });
    }
    let border = |width: usize| -> Vec<(usize, usize)> {
        (0..shape.rank()).map(|axis| if axis < first { (0, 0) } else { (width, width) }).collect()
    };
    match mode {
        // A neighbour that does not exist has weight 0.
        Interpolation::Linear { .. } => {
            widened(x, |x| Tensor::or_invalid(linear(call, &x.pad(&border(1), 0), first, &positions)))
        }
        Interpolation::Cubic { .. } => widened(x, |x| {
            let x = x.pad_with(&border(2), PadMode::Replicate);
            Tensor::or_invalid(cubic(call, &x, first, &positions))
        }),
        _ => {
            let mut result = x.clone();
            for (d, positions) in positions.iter().enumerate() {
                result = elements(call, &result, first + d, *positions, 0)?;
            }
            Ok(result)
        }
    }
}

/// The elements at the whole parts of the source positions, which are moved by `offset`.
fn elements(call: Call, x: &Tensor, axis: usize, positions: Positions, offset: i64) -> Result<Tensor> {
    let Positions { start, step, unit, size } = positions;
    let first = start + offset * unit;
    let at = axis as isize;
    if step == 0 {
        return Ok(x.narrow(at, first as usize, 1).expand(sizes_with(x, axis, size)));
    }
    let span = (size - 1) * step as usize + 1;
    let repeated = interleaved(call, x, axis, unit as usize)?;
    Ok(repeated.narrow(at, first as usize, span).slice_step(at, None, None, step as isize))
}

fn sizes_with(x: &Tensor, axis: usize, size: usize) -> Vec<usize> {
    x.node.shape.iter().enumerate().map(|(own, &extent)| if own == axis { size } else { extent }).collect()
}

/// Between the two neighbours along the first of the axes, each of which lies between two along the next. The axes
/// have a border of one position.
fn linear(call: Call, x: &Tensor, axis: usize, axes: &[Positions]) -> Result<Tensor> {
    let [positions, rest @ ..] = axes else { return Ok(x.clone()) };
    let (shape, dtype) = x.known()?;
    if positions.are_all_of(shape[axis] - 2) {
        // A neighbour that does not count may be infinite.
        return linear(call, &elements(call, x, axis, *positions, 1)?, axis + 1, rest);
    }
    let low = linear(call, &elements(call, x, axis, *positions, 1)?, axis + 1, rest)?;
    let high = linear(call, &elements(call, x, axis, *positions, 2)?, axis + 1, rest)?;
    let weight =
        weights(*positions, shape[axis] - 2, dtype)?.reshape(along(shape.rank(), axis, positions.size));
    Ok(low * (1.0 - &weight) + high * weight)
}

/// Between the four neighbours along the first of the axes, each of which lies between four along the next. The axes have a
/// border of two positions.
fn cubic(call: Call, x: &Tensor, axis: usize, axes: &[Positions]) -> Result<Tensor> {
    let [positions, rest @ ..] = axes else { return Ok(x.clone()) };
    let (shape, dtype) = x.known()?;
    let far = remainders(*positions, 0, positions.size, dtype)?;
    let far = far.reshape(along(shape.rank(), axis, positions.size));
    let near = 1.0 - &far;
    // Keys' curve with a slope of -3/4, as PyTorch's, by the distance of inner and of outer neighbours.
    let inner = |distance: &Tensor| (distance * 1.25 - 2.25) * distance.square() + 1.0;
    let outer = |distance: &Tensor| {
        let distance = distance + 1.0;
        ((&distance * -0.75 + 3.75) * &distance - 6.0) * &distance + 3.0
    };
    let mut sum: Option<Tensor> = None;
    for (offset, weight) in (1..).zip([outer(&far), inner(&far), inner(&near), outer(&near)]) {
        let neighbours = cubic(call, &elements(call, x, axis, *positions, offset)?, axis + 1, rest)? * weight;
        sum = Some(sum.map_or(neighbours.clone(), |sum| sum + &neighbours));
    }
    Ok(sum.unwrap_or_else(|| x.clone()))
}

/// How far behind an element each of some positions lies.
fn remainders(positions: Positions, first: usize, count: usize, dtype: DType) -> Result<Tensor> {
    let Positions { start, step, unit, .. } = positions;
    if step == 0 || count == 0 {
        return Ok(Tensor::zeros([count], dtype));
    }
    let at = start + unit + first as i64 * step;
    let remainder = around(&counting(unit as usize), 0, at as isize, (count - 1) * step as usize + 1)?;
    Ok(remainder.slice_step(0, None, None, step as isize).cast(dtype) * (1.0 / unit as f64))
}

/// How much the higher neighbour counts: the remainder, but all before the first element and nothing after the last,
/// where there is one neighbour alone.
fn weights(positions: Positions, extent: usize, dtype: DType) -> Result<Tensor> {
    let Positions { start, step, unit, size } = positions;
    if step == 0 {
        return Ok(Tensor::zeros([size], dtype));
    }
    // The first index whose position is not less.
    let index_of = |position: i64| {
        let index = (position - start + step - 1).div_euclid(step);
        usize::try_from(index).unwrap_or(0).min(size)
    };
    let (first, end) = (index_of(0), index_of((extent as i64 - 1) * unit));
    let end = end.max(first);
    let inside = remainders(positions, first, end - first, dtype)?;
    // As pads, which cost nothing.
    Ok(inside.pad(&[(0, size - end)], 0).pad(&[(first, 0)], 1))
}

#[cfg(test)]
mod tests {
    use super::fraction;

    #[test]
    fn factors_are_simple_fractions() {
        assert_eq!(fraction(2.0), Some((2, 1)));
        assert_eq!(fraction(0.5), Some((1, 2)));
        assert_eq!(fraction(1.7), Some((17, 10)));
        assert_eq!(fraction(1.0 / 3.0), Some((1, 3)));
        assert_eq!(fraction(224.0 / 640.0), Some((7, 20)));
        for extreme in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-300, 1e300] {
            assert_eq!(fraction(extreme), None, "{extreme}");
        }
    }
}
