//! Resizing by interpolation.
//!
//! Position i of the result lies at a source position that is a quotient of integers: `(start + step * i) / unit`.
//! Every position repeated `unit` times, then every `step`-th from `start` on, is the element at its whole part. So
//! the source is read through views alone, and the weights are a function of the remainder. No rounding moves a
//! position, however large the image. Positions of factors that are no small fractions are computed numbers.

pub(super) mod adjoint;
mod antialias;
mod banded;
mod computed;
mod positions;

use super::adaptive::adaptive;
use super::pool::gcd;
use crate::recording::is_addressable;
use crate::tensor::arguments::call::Call;
use crate::tensor::reduce::statistics::{along, widened};
use crate::{DType, PadMode, Result, Shape, Tensor};
use adjoint::{Curve, inner, outer, returned};
use positions::{Positions, elements, remainders};

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
    #[doc(alias = "bilinear")]
    #[doc(alias = "trilinear")]
    Linear {
        /// Whether the centres of the corners stay where they are, and not their outer edges.
        align_corners: bool,
    },
    /// Cubic between the four nearest elements of each axis, of which the last ones are repeated beyond the ends: bicubic of two
    /// axes; of floats. Results may be beyond all elements.
    #[doc(alias = "bicubic")]
    Cubic {
        /// As of [`Interpolation::Linear`].
        align_corners: bool,
    },
    /// The mean of what a position covers, as of [`Tensor::adaptive_avg_pool2d`]: of one to three axes; of floats.
    Area,
}

impl Interpolation {
    fn aligns_corners(self) -> bool {
        match self {
            Interpolation::Linear { align_corners } | Interpolation::Cubic { align_corners } => align_corners,
            _ => false,
        }
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
            let of = |(&extent, &size)| Resized { size, distance: Distance::Ratio(extent, size) };
            resize(call, self, &shape[first..].iter().zip(&size[..]).map(of).collect::<Vec<_>>(), mode)
        })
    }

    /// [`Tensor::interpolate`] between neighbours that are as many as a position of a smaller result stands for, so that nothing
    /// finer than these positions is left: PyTorch's `interpolate` with `antialias=True`, for any number of axes. Of a larger result
    /// [`Interpolation::Linear`] is as without, and [`Interpolation::Cubic`] has another curve (a slope of -1/2, as Pillow's). Keeps the
    /// dtype.
    ///
    /// Invalid for other modes, for integers and bools, for an empty axis, and for a size of 0.
    ///
    /// ```
    /// use lazuli::{Interpolation, Tensor};
    /// let dot = Tensor::from_slice(&[8.0f32, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [9]);
    /// let linear = Interpolation::Linear { align_corners: false };
    /// assert_eq!(dot.interpolate([3], linear).to_vec::<f32>()?, [0.0; 3]);
    /// let smooth = dot.interpolate_antialias([3], linear).round_decimals(5);
    /// assert_eq!(smooth.to_vec::<f32>()?, [2.0, 0.0, 0.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn interpolate_antialias(&self, size: impl Into<Shape>, mode: Interpolation) -> Tensor {
        let (call, size) = (Call::here("interpolate_antialias"), size.into());
        call.composed(|| {
            let curve = match mode {
                Interpolation::Linear { .. } => Curve::Linear,
                Interpolation::Cubic { .. } => Curve::Cubic,
                _ => return call.fail(format!("smooths linear and cubic interpolation alone, got {mode:?}")),
            };
            let (first, shape) = axes(call, self, size.rank(), mode)?;
            let resized = resized(call, shape, first, &size)?;
            call.needs_addressable(&resized)?;
            // Outer axes first: vectors lie along the last one.
            let mut axes = first..shape.rank();
            let mut along = |x: &Tensor| {
                axes.try_fold(x.clone(), |x, axis| {
                    antialias::smoothed(call, &x, axis, resized[axis], (curve, mode.aligns_corners()))
                })
            };
            widened(self, |x| Tensor::or_invalid(along(x)))
        })
    }

    /// [`Tensor::interpolate`] by factors, one for each of the last axes: an extent becomes
    /// `floor(extent * factor)`, and distances are divided by the factor itself, which is taken as a fraction of small
    /// integers where one equals it. As PyTorch's `interpolate` with `scale_factor`: where an extent stays what it is,
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
            let mut axes = Vec::new();
            for (&extent, &factor) in shape[first..].iter().zip(factors) {
                if !(factor.is_finite() && factor > 0.0) {
                    return call.fail(format!("the factors must be positive and finite, got {factors:?}"));
                }
                let distance = match fraction(factor) {
                    Some((numerator, denominator)) => Distance::Ratio(denominator, numerator),
                    None => Distance::Reciprocal(factor),
                };
                axes.push(Resized { size: (extent as f64 * factor).floor() as usize, distance });
            }
            let stays: Vec<bool> =
                axes.iter().zip(&shape[first..]).map(|(axis, &extent)| axis.size == extent).collect();
            let copies = |axis: usize| match mode {
                Interpolation::Linear { .. } => stays[axis],
                Interpolation::Nearest => stays[..] == [true, true],
                _ => false,
            };
            for (number, axis) in axes.iter_mut().enumerate() {
                if copies(number) {
                    axis.distance = Distance::Ratio(1, 1);
                }
            }
            resize(call, self, &axes, mode)
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

/// What becomes of an axis.
#[derive(Clone, Copy)]
struct Resized {
    size: usize,
    distance: Distance,
}

/// How far apart neighbours are in the source.
#[derive(Clone, Copy)]
enum Distance {
    /// The first number by the second.
    Ratio(usize, usize),
    /// 1 by this number.
    Reciprocal(f64),
}

/// The simplest fraction that equals the number but for rounding: its continued fraction, cut as soon as it does.
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
        if now.0 > 0 && (now.0 as f64 / now.1 as f64 - number).abs() <= number * 2.0 * f64::EPSILON {
            return Some((now.0 as usize, now.1 as usize));
        }
        rest = 1.0 / (rest - whole);
    }
    None
}

/// The shape with other extents from an axis on.
fn resized(call: Call, shape: &Shape, first: usize, sizes: &[usize]) -> Result<Shape> {
    let resized: Shape = shape[..first].iter().chain(sizes).copied().collect();
    match shape[first..].contains(&0) || sizes.contains(&0) {
        false => Ok(resized),
        true => call.fail(format!("cannot resize shape {shape} to {resized}: no axis may be empty")),
    }
}

fn resize(call: Call, x: &Tensor, axes: &[Resized], mode: Interpolation) -> Result<Tensor> {
    let (shape, _) = x.known()?;
    let first = shape.rank() - axes.len();
    let sizes: Vec<usize> = axes.iter().map(|axis| axis.size).collect();
    let resized = resized(call, shape, first, &sizes)?;
    call.needs_addressable(&resized)?;
    if mode == Interpolation::Area {
        return match resized[first..] {
            [length] => adaptive(call, x, [length], false),
            [height, width] => adaptive(call, x, [height, width], false),
            [depth, height, width] => adaptive(call, x, [depth, height, width], false),
            _ => call.fail(format!("areas are of one to three axes, got {}", axes.len())),
        };
    }
    let (mut positions, mut computed) = (Vec::new(), Vec::new());
    for (number, (&Resized { size, distance }, &extent)) in axes.iter().zip(&shape[first..]).enumerate() {
        let (step, unit) = match distance {
            Distance::Ratio(step, unit) => {
                let common = gcd(step, unit);
                ((step / common) as i64, (unit / common) as i64)
            }
            // The corners say where all others are.
            Distance::Reciprocal(_) if mode.aligns_corners() => (1, 1),
            Distance::Reciprocal(factor) => {
                computed.push((first + number, size, factor));
                positions.push(Positions::all_of(size));
                continue;
            }
        };
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
    let curve = match mode {
        Interpolation::Linear { .. } => Curve::Linear,
        Interpolation::Cubic { .. } => Curve::Cubic,
        _ => Curve::Nearest,
    };
    let edge = if mode == Interpolation::NearestExact { 0.5 } else { 0.0 };
    let of = |x: &Tensor| {
        let known = computed.iter().try_fold(x.clone(), |x, &(axis, size, factor)| {
            computed::scaled(call, &x, axis, size, factor, (curve, edge))
        });
        resampled(call, &Tensor::or_invalid(known), positions, curve)
    };
    if curve == Curve::Nearest { Ok(of(x)) } else { widened(x, of) }
}

/// The last axes at some positions. What reaches them goes back along one axis after the other, as the sum of the few elements
/// that each one is read for: views alone go back as sums over all that an axis was repeated to, in all axes at once.
fn resampled(call: Call, x: &Tensor, positions: Vec<Positions>, curve: Curve) -> Tensor {
    let result = Tensor::or_invalid(between(call, x, &positions, curve));
    let extents = x.node.shape[x.node.shape.rank().saturating_sub(positions.len())..].to_vec();
    call.derived(&result, &[x], move |g, _| {
        Ok(vec![back(call, g, positions.clone(), extents.clone(), curve)])
    })
}

/// What reaches the last axes, of so many elements each, of what reaches them at some positions: linear, so that what reaches
/// it in turn is at these positions. 16-bit floats are rounded once.
fn back(call: Call, g: &Tensor, positions: Vec<Positions>, extents: Vec<usize>, curve: Curve) -> Tensor {
    let sum = widened(g, |g| {
        let first = g.node.shape.rank().saturating_sub(extents.len());
        let axes = positions.iter().zip(&extents).enumerate();
        Tensor::or_invalid(axes.rev().try_fold(g.clone(), |g, (d, (&positions, &extent))| {
            returned(call, &g, first + d, extent, positions, curve)
        }))
    });
    let sum = Tensor::or_invalid(sum);
    call.derived(&sum, &[g], move |g, _| Ok(vec![resampled(call, g, positions.clone(), curve)]))
}

fn between(call: Call, x: &Tensor, positions: &[Positions], curve: Curve) -> Result<Tensor> {
    let rank = x.known()?.0.rank();
    let first = rank - positions.len();
    // Outer axes first: vectors lie along the last one.
    let (mut x, mut positions) = (x.clone(), positions.to_vec());
    for (axis, positions) in (first..).zip(&mut positions) {
        if !positions.are_regular() {
            x = computed::at_quotients(call, &x, axis, *positions, curve)?;
            *positions = Positions::all_of(positions.size);
        }
    }
    let (x, positions) = (&x, &positions[..]);
    let are_there = |(positions, &extent): (&Positions, &usize)| positions.are_all_of(extent);
    if positions.iter().zip(&x.known()?.0[first..]).all(are_there) {
        return Ok(x.clone());
    }
    let border = |width: usize| -> Vec<(usize, usize)> {
        (0..rank).map(|axis| if axis < first { (0, 0) } else { (width, width) }).collect()
    };
    match curve {
        Curve::Nearest => positions
            .iter()
            .enumerate()
            .try_fold(x.clone(), |x, (d, &positions)| elements(call, &x, first + d, positions, 0)),
        // A neighbour that does not exist has weight 0.
        Curve::Linear => linear(call, &x.pad(&border(1), 0), first, positions),
        Curve::Cubic => cubic(call, &x.pad_with(&border(2), PadMode::Replicate), first, positions),
    }
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
    if positions.are_all_of(shape[axis] - 4) {
        return cubic(call, &elements(call, x, axis, *positions, 2)?, axis + 1, rest);
    }
    let far = remainders(*positions, 0, positions.size, dtype)?;
    let far = far.reshape(along(shape.rank(), axis, positions.size));
    let near = 1.0 - &far;
    let mut sum: Option<Tensor> = None;
    for (offset, weight) in (1..).zip([outer(&far), inner(&far), inner(&near), outer(&near)]) {
        let neighbours = cubic(call, &elements(call, x, axis, *positions, offset)?, axis + 1, rest)? * weight;
        sum = Some(sum.map_or(neighbours.clone(), |sum| sum + &neighbours));
    }
    Ok(sum.unwrap_or_else(|| x.clone()))
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
    use super::*;
    use crate::Device;
    use crate::graph::op::Op;
    use crate::tensor::make::create::counting;

    /// Elements are gathered along one axis after the other, by as many tables as an element has neighbours, and so do gradients go
    /// back: what is scattered, or repeated to the least common multiple of both sizes, would be added up in all axes at once.
    #[test]
    fn what_goes_back_is_few_sums_of_few() {
        let gathered = |extent: usize, size: usize, mode: Interpolation| {
            let x = Tensor::zeros([3, extent, extent], DType::F32);
            let gradient = crate::grad(&x.interpolate([size, size], mode).square().sum(..), &x);
            let graph = crate::recording::build::build(std::slice::from_ref(&gradient)).unwrap().graph;
            let gathers = graph.nodes().filter(|&id| matches!(graph.node(id).op, Op::Gather { .. }));
            gathers.map(|id| graph.node(id).shape.elements()).sum::<usize>()
        };
        let expected = |extent: usize, size: usize, there: usize, back: usize| {
            3 * size * (there * (extent + size) + back * extent) + 3 * back * extent * extent
        };
        let linear = Interpolation::Linear { align_corners: false };
        // At most four positions read an element.
        assert_eq!(gathered(128, 200, linear), expected(128, 200, 2, 4));
        assert_eq!(gathered(200, 128, linear), expected(200, 128, 2, 2));
        let cubic = Interpolation::Cubic { align_corners: true };
        assert_eq!(gathered(128, 200, cubic), expected(128, 200, 4, 7));
        assert_eq!(gathered(128, 200, Interpolation::Nearest), expected(128, 200, 1, 2));
    }

    #[test]
    fn factors_are_simple_fractions() {
        assert_eq!(fraction(2.0), Some((2, 1)));
        assert_eq!(fraction(0.5), Some((1, 2)));
        assert_eq!(fraction(1.7), Some((17, 10)));
        assert_eq!(fraction(1.0 / 3.0), Some((1, 3)));
        assert_eq!(fraction(224.0 / 640.0), Some((7, 20)));
        assert_eq!(fraction(2.24544), Some((7017, 3125)));
        for extreme in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-300, 1e300, 0.512345678901234] {
            assert_eq!(fraction(extreme), None, "{extreme}");
        }
    }

    /// PyTorch's, of numbers that no small fraction equals, in one axis and in two.
    #[test]
    fn factors_that_are_no_fractions() {
        let x = counting(6).cast(DType::F64).square().to(&Device::interpreter());
        let resized = |factor: f64, mode| x.interpolate_scale(&[factor], mode);
        let close = |y: Tensor, expected: &[f64]| {
            let y = y.to_vec::<f64>().unwrap();
            assert_eq!(y.len(), expected.len(), "{y:?}");
            let is_near = y.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12);
            assert!(is_near, "{y:?} {expected:?}");
        };
        let linear = Interpolation::Linear { align_corners: false };
        let cubic = Interpolation::Cubic { align_corners: false };
        close(resized(0.512345678901234, Interpolation::Nearest), &[0.0, 1.0, 9.0]);
        close(resized(0.512345678901234, Interpolation::NearestExact), &[0.0, 4.0, 16.0]);
        close(
            resized(0.512345678901234, linear),
            &[0.4759036146694743, 6.138554220042115, 19.415662660126344],
        );
        close(
            resized(0.512345678901234, cubic),
            &[0.20582451386946454, 5.85986543295167, 20.055087120701764],
        );
        close(
            resized(1.7123456789012346, Interpolation::Nearest),
            &[0.0, 0.0, 1.0, 1.0, 4.0, 4.0, 9.0, 16.0, 16.0, 25.0],
        );
        close(
            resized(1.7123456789012346, Interpolation::NearestExact),
            &[0.0, 0.0, 1.0, 4.0, 4.0, 9.0, 9.0, 16.0, 16.0, 25.0],
        );
        close(
            resized(1.7123456789012346, linear),
            &[
                0.0,
                0.3759913482904392,
                0.9599855804840653,
                2.631939438033074,
                4.639870224356587,
                7.559841385324718,
                11.07173756480999,
                15.159697190165373,
                20.1755587628124,
                25.0,
            ],
        );
        close(
            resized(1.7123456789012346, cubic),
            &[
                -0.09785382809389054,
                0.1629582568752148,
                0.8858489469190828,
                2.2271111148270024,
                4.6800595148244835,
                7.034896121582472,
                11.05678970151922,
                14.720296418398553,
                20.835121547807827,
                25.29334105455684,
            ],
        );
    }

    /// What is stored, where nothing is fused, is as large as the image and the result.
    #[test]
    fn large_units_repeat_nothing() {
        let x = Tensor::zeros([2, 5, 6, 7], DType::F32);
        let factors = [2.24544, 2.84996, 1.78123];
        for mode in [Interpolation::Nearest, Interpolation::Linear { align_corners: false }] {
            let y = x.interpolate_scale(&factors, mode);
            let gradient = crate::grad(&y.square().sum(..), &x);
            for (tensor, times) in [(&y, 2), (&gradient, 8)] {
                let graph = crate::recording::build::build(std::slice::from_ref(tensor)).unwrap().graph;
                let most = graph.nodes().map(|id| graph.node(id).shape.elements()).max().unwrap();
                assert!(most <= times * y.shape().unwrap().elements(), "{most} {:?}", y.shape());
            }
        }
    }
}
