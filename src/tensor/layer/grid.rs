//! Images and volumes read between their pixels: where a grid of positions says, in the kernel that computes the grid.

use super::interpolate::adjoint::{inner, outer};
use crate::tensor::arguments::call::Call;
use crate::tensor::position::gather::{gathered, gathered_within};
use crate::{DType, Result, Shape, Tensor};

/// How [`Tensor::grid_sample`] reads: bilinear, 0 outside, and -1 and 1 the outer edges of the corner pixels, unless told
/// otherwise. PyTorch's defaults.
///
/// ```
/// use lazuli::{GridSample, Outside, Tensor};
/// let image = Tensor::from_slice(&[1.0f32, 3.0], [1, 1, 1, 2]);
/// let grid = Tensor::from_slice(&[0.0f32, 0.0, 2.0, 0.0], [1, 1, 2, 2]); // the middle, and right of the image
/// let read = |sample| image.grid_sample(&grid, sample).to_vec::<f32>();
/// assert_eq!(read(GridSample::new())?, [2.0, 0.0]);
/// assert_eq!(read(GridSample::new().outside(Outside::Border))?, [2.0, 3.0]);
/// # Ok::<(), lazuli::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct GridSample {
    reading: Reading,
    outside: Outside,
    align_corners: bool,
}

/// How many pixels around a position count along each axis.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Reading {
    Nearest,
    Linear,
    Cubic,
}

/// What is beyond the edges of an image; see [`GridSample::outside`].
///
/// ```
/// use lazuli::{GridSample, Outside};
/// assert_eq!(GridSample::new().outside(Outside::Zeros), GridSample::new());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Outside {
    /// Zeros.
    Zeros,
    /// The nearest pixel of the edge.
    Border,
    /// The image, mirrored at its edges as often as it takes.
    Reflection,
}

impl Default for GridSample {
    fn default() -> GridSample {
        GridSample { reading: Reading::Linear, outside: Outside::Zeros, align_corners: false }
    }
}

impl GridSample {
    /// Bilinear, zeros outside, edges aligned.
    ///
    /// ```
    /// assert_eq!(lazuli::GridSample::new(), lazuli::GridSample::default());
    /// ```
    pub fn new() -> GridSample {
        GridSample::default()
    }

    /// The nearest pixel, the even one of two, in place of four that are weighted.
    ///
    /// ```
    /// use lazuli::{GridSample, Tensor};
    /// let image = Tensor::from_slice(&[1.0f32, 3.0], [1, 1, 1, 2]);
    /// let grid = Tensor::from_slice(&[0.4f32, 0.0], [1, 1, 1, 2]);
    /// assert_eq!(image.grid_sample(&grid, GridSample::new().nearest()).item::<f32>()?, 3.0);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn nearest(mut self) -> GridSample {
        self.reading = Reading::Nearest;
        self
    }

    /// Cubic between the four nearest pixels of each axis, 16 in place of four; of images alone. PyTorch's `mode="bicubic"`.
    ///
    /// ```
    /// use lazuli::{GridSample, Outside, Tensor};
    /// let image = Tensor::from_slice(&[0.0f32, 0.0, 1.0, 1.0], [1, 1, 1, 4]);
    /// let grid = Tensor::from_slice(&[0.0f32, 0.0, 0.125, 0.0], [1, 1, 2, 2]);
    /// let sample = GridSample::new().bicubic().outside(Outside::Border);
    /// assert_eq!(image.grid_sample(&grid, sample).to_vec::<f32>()?, [0.5, 0.7734375]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn bicubic(mut self) -> GridSample {
        self.reading = Reading::Cubic;
        self
    }

    /// What is beyond the edges.
    ///
    /// ```
    /// use lazuli::{GridSample, Outside, Tensor};
    /// let image = Tensor::from_slice(&[1.0f32, 3.0], [1, 1, 1, 2]);
    /// let grid = Tensor::from_slice(&[1.5f32, 0.0], [1, 1, 1, 2]);
    /// let sample = GridSample::new().outside(Outside::Reflection);
    /// assert_eq!(image.grid_sample(&grid, sample).item::<f32>()?, 3.0);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn outside(mut self, outside: Outside) -> GridSample {
        self.outside = outside;
        self
    }

    /// Whether -1 and 1 are the centres of the corner pixels, and not their outer edges.
    ///
    /// ```
    /// use lazuli::{GridSample, Tensor};
    /// let image = Tensor::from_slice(&[1.0f32, 3.0], [1, 1, 1, 2]);
    /// let grid = Tensor::from_slice(&[1.0f32, 0.0], [1, 1, 1, 2]);
    /// let read = |sample| image.grid_sample(&grid, sample).item::<f32>();
    /// assert_eq!(read(GridSample::new().align_corners(true))?, 3.0);
    /// assert_eq!(read(GridSample::new())?, 1.5); // half of the pixel, and nothing
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn align_corners(mut self, align: bool) -> GridSample {
        self.align_corners = align;
        self
    }

    /// The positions among the pixels of an axis of that extent that coordinates from -1 to 1 are.
    fn positions(self, coordinates: &Tensor, extent: usize) -> Tensor {
        let size = extent as f64;
        match self.align_corners {
            true => (coordinates + 1.0) * ((size - 1.0) / 2.0),
            false => ((coordinates + 1.0) * size - 1.0) / 2.0,
        }
    }

    /// The positions that are read for those beyond the edges.
    fn kept(self, positions: Tensor, extent: usize) -> Tensor {
        let size = extent as f64;
        match self.outside {
            Outside::Zeros => positions,
            Outside::Border => positions.clamp(0.0, size - 1.0),
            Outside::Reflection => {
                let (low, span) = if self.align_corners { (0.0, size - 1.0) } else { (-0.5, size) };
                if span == 0.0 {
                    return positions.zeros_like();
                }
                let distance = (positions - low).abs();
                let (rest, is_even) =
                    (distance.fmod(span), (&distance / span).floor().remainder(2.0).eq(0.0));
                (is_even.where_(&rest, span - &rest) + low).clamp(0.0, size - 1.0)
            }
        }
    }
}

impl Tensor {
    /// An image `[batch, channels, height, width]` read where a grid `[batch, rows, columns, 2]` says, whose last axis is x and y,
    /// from -1 (left, top) to 1: `[batch, channels, rows, columns]`, of the image's dtype. Or a volume `[batch, channels, depth,
    /// height, width]` where a grid `[batch, planes, rows, columns, 3]` says, with z as well. PyTorch's `grid_sample`; NaN in the
    /// grid is -1. Gathers and weights are in the kernel that computes the grid.
    ///
    /// Invalid unless both are floats of one dtype and of these shapes, for an image without pixels, and for a volume that is read
    /// [`GridSample::bicubic`].
    ///
    /// ```
    /// use lazuli::{GridSample, Tensor};
    /// let image = Tensor::from_slice(&[0.0f32, 1.0, 2.0, 3.0], [1, 1, 2, 2]);
    /// let centre = Tensor::from_slice(&[0.0f32, 0.0], [1, 1, 1, 2]);
    /// assert_eq!(image.grid_sample(&centre, GridSample::new()).item::<f32>()?, 1.5);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn grid_sample(&self, grid: impl AsRef<Tensor>, sample: GridSample) -> Tensor {
        let grid = grid.as_ref();
        let call = Call::here("grid_sample");
        call.composed(|| sampled(call, self, grid, sample))
    }

    /// The grid for [`Tensor::grid_sample`] of an affine map of the plane: for maps `[batch, 2, 3]`, of which the last column is
    /// the translation, `[batch, rows, columns, 2]`. The identity reads an image as it is, resized. PyTorch's `affine_grid`.
    ///
    /// Invalid for integers and bools, and other shapes of maps.
    ///
    /// ```
    /// use lazuli::{GridSample, Tensor};
    /// let image = Tensor::from_slice(&[1.0f32, 2.0], [1, 1, 1, 2]);
    /// let mirrored = Tensor::from_slice(&[-1.0f32, 0.0, 0.0, 0.0, 1.0, 0.0], [1, 2, 3]).affine_grid([1, 2], false);
    /// assert_eq!(image.grid_sample(&mirrored, GridSample::new()).to_vec::<f32>()?, [2.0, 1.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn affine_grid(&self, size: [usize; 2], align_corners: bool) -> Tensor {
        let call = Call::here("affine_grid");
        call.composed(|| affine_grid(call, self, &size, align_corners))
    }

    /// [`Tensor::affine_grid`] of a map of space, for volumes: for maps `[batch, 3, 4]`, `[batch, planes, rows, columns, 3]`. PyTorch's
    /// `affine_grid` of five extents.
    ///
    /// ```
    /// use lazuli::{GridSample, Tensor};
    /// let volume = Tensor::from_slice(&[1.0f32, 2.0], [1, 1, 2, 1, 1]);
    /// let map = [1.0f32, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, -1.0, 0.0];
    /// let mirrored = Tensor::from_slice(&map, [1, 3, 4]).affine_grid3d([2, 1, 1], false);
    /// assert_eq!(volume.grid_sample(&mirrored, GridSample::new()).to_vec::<f32>()?, [2.0, 1.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn affine_grid3d(&self, size: [usize; 3], align_corners: bool) -> Tensor {
        let call = Call::here("affine_grid3d");
        call.composed(|| affine_grid(call, self, &size, align_corners))
    }
}

fn affine_grid(call: Call, maps: &Tensor, size: &[usize], align_corners: bool) -> Result<Tensor> {
    call.needs_float(maps)?;
    let ((shape, dtype), count) = (maps.known()?, size.len());
    let batch = match shape[..] {
        [batch, rows, columns] if rows == count && columns == count + 1 => batch,
        _ => {
            let columns = count + 1;
            return call.fail(format!("maps have the shape [batch, {count}, {columns}], got {shape}"));
        }
    };
    call.needs_addressable(&std::iter::once(batch).chain(size.iter().copied()).chain([count]).collect())?;
    let line = |extent: usize| {
        let ends = if align_corners { 1.0 } else { 1.0 - 1.0 / extent.max(1) as f64 };
        // The centre, of a single position.
        let first = if extent == 1 { 0.0 } else { -ends };
        Tensor::linspace(first, ends, extent, dtype.compute())
    };
    let maps = maps.cast(dtype.compute()).transpose(1, 2);
    let maps = (0..count).fold(maps, |maps, _| maps.unsqueeze(1));
    let column = |k: usize| maps.select(-2, k as isize);
    // x is along the last of the axes.
    let along = size.iter().rev().enumerate().map(|(k, &extent)| {
        let mut dims = vec![1; count + 1];
        dims[count - 1 - k] = extent;
        column(k) * line(extent).reshape(dims)
    });
    let turned = along.reduce(|sum, term| sum + term).unwrap_or_else(|| column(0));
    Ok((turned + column(count)).cast(dtype))
}

fn sampled(call: Call, image: &Tensor, grid: &Tensor, sample: GridSample) -> Result<Tensor> {
    let ((shape, dtype), (of_grid, other)) = (image.known()?, grid.known()?);
    let rank = shape.rank();
    if !(4..=5).contains(&rank) || of_grid.rank() != rank || of_grid[rank - 1] != rank - 2 {
        return call.fail(format!(
            "an image [batch, channels, height, width] and a grid [batch, rows, columns, 2], or a volume and a grid with a \
             dimension more, got {shape} and {of_grid}"
        ));
    }
    call.needs_float(image)?;
    let (batch, channels, extents, sizes) = (shape[0], shape[1], &shape[2..], &of_grid[1..rank - 1]);
    if batch != of_grid[0] || dtype != other {
        return call.fail(format!("image and grid differ: {dtype} {shape} and {other} {of_grid}"));
    }
    if extents.contains(&0) {
        return call.fail(format!("an image without pixels: {shape}"));
    }
    if sample.reading == Reading::Cubic && rank == 5 {
        return call.fail(format!("bicubic reading is of images, got {dtype} {shape}"));
    }
    let compute = dtype.compute();
    let (whole, count): (usize, usize) = (extents.iter().product(), sizes.iter().product());
    let grid = grid.isnan().where_(-1.0, grid).cast(compute).reshape([batch, 1, count, rank - 2]);
    // x first, which is along the last axis.
    let extents: Vec<usize> = extents.iter().rev().copied().collect();
    let positions = extents.iter().enumerate().map(|(k, &extent)| {
        let positions = sample.positions(&grid.select(-1, k as isize), extent);
        // Of four along an axis, each is kept.
        if sample.reading == Reading::Cubic { positions } else { sample.kept(positions, extent) }
    });
    let positions: Vec<Tensor> = positions.collect();
    let pixels = image.reshape([batch, channels, whole]);
    // Half as wide where that holds them: twice as many in a vector, and converted from floats by one instruction.
    let integer = if whole <= i32::MAX as usize { DType::I32 } else { DType::I64 };
    // `F32` has these extents exactly: a place that is clamped to the last pixel is within.
    let are_exact = extents.iter().all(|&extent| extent <= 1 << f32::MANTISSA_DIGITS);
    let gather = if are_exact { gathered_within } else { gathered };
    // The pixels at whole positions; 0 where there are none.
    let at = |places: &[&Tensor]| {
        let (mut index, mut inside): (Option<Tensor>, Option<Tensor>) = (None, None);
        for (&place, &extent) in places.iter().zip(&extents).rev() {
            let last = (extent - 1) as f64;
            let is_in = place.ge(0.0).logical_and(place.le(last));
            let place = place.clamp(0.0, last).cast(integer);
            index = Some(index.map_or(place.clone(), |index| index * extent as i64 + place));
            inside = Some(inside.map_or(is_in.clone(), |inside| is_in.logical_and(inside)));
        }
        let (Some(index), Some(inside)) = (index, inside) else { return pixels.clone() };
        let index = index.expand([batch, channels, count]);
        let read = Tensor::or_invalid(gather(call, &pixels, 2, &index)).cast(compute);
        inside.where_(read, 0.0)
    };
    let read = match sample.reading {
        Reading::Nearest => {
            at(&positions.iter().map(Tensor::round).collect::<Vec<_>>().iter().collect::<Vec<_>>())
        }
        Reading::Linear => linear(&positions, at),
        Reading::Cubic => cubic(&positions, |k, place| sample.kept(place, extents[k]), at),
    };
    let result: Shape = [batch, channels].into_iter().chain(sizes.iter().copied()).collect();
    Ok(read.cast(dtype).reshape(result))
}

/// Between the two pixels along each axis, x fastest: so many corners, each with the share that is opposite to it.
fn linear(positions: &[Tensor], at: impl Fn(&[&Tensor]) -> Tensor) -> Tensor {
    let low: Vec<Tensor> = positions.iter().map(Tensor::floor).collect();
    let high: Vec<Tensor> = low.iter().map(|low| low + 1.0).collect();
    let corner = |number: usize| {
        let is_high = |k: usize| number >> k & 1 == 1;
        let places: Vec<&Tensor> =
            (0..positions.len()).map(|k| if is_high(k) { &high[k] } else { &low[k] }).collect();
        let share = |(k, position): (usize, &Tensor)| match is_high(k) {
            true => position - &low[k],
            false => &high[k] - position,
        };
        let weight = positions.iter().enumerate().map(share).reduce(|product, share| product * share);
        weight.map_or_else(|| at(&places), |weight| at(&places) * weight)
    };
    (1..1 << positions.len()).fold(corner(0), |sum, number| sum + corner(number))
}

/// Between the four pixels along both axes, where each is one that is kept.
fn cubic(
    positions: &[Tensor],
    kept: impl Fn(usize, Tensor) -> Tensor,
    at: impl Fn(&[&Tensor]) -> Tensor,
) -> Tensor {
    let four = |k: usize| {
        let base = positions[k].floor();
        let far = &positions[k] - &base;
        let near = 1.0 - &far;
        let weights = [outer(&far), inner(&far), inner(&near), outer(&near)];
        let places = [-1.0, 0.0, 1.0, 2.0].map(|offset| kept(k, &base + offset));
        places.into_iter().zip(weights).collect::<Vec<_>>()
    };
    let (columns, rows) = (four(0), four(1));
    let along =
        |y: &Tensor| columns.iter().map(|(x, weight)| at(&[x, y]) * weight).reduce(|sum, next| sum + next);
    let terms = rows.iter().filter_map(|(y, weight)| along(y).map(|row| row * weight));
    terms.reduce(|sum, next| sum + next).unwrap_or_else(|| positions[0].clone())
}
