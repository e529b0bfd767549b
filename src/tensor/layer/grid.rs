//! Images read between their pixels: where a grid of positions says, in the kernel that computes the grid.

use crate::tensor::arguments::call::Call;
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
    nearest: bool,
    outside: Outside,
    align_corners: bool,
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
        GridSample { nearest: false, outside: Outside::Zeros, align_corners: false }
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
        self.nearest = true;
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

    /// The pixel positions along an axis of that extent that coordinates from -1 to 1 are.
    fn positions(self, coordinates: &Tensor, extent: usize) -> Tensor {
        let size = extent as f64;
        let positions = match self.align_corners {
            true => (coordinates + 1.0) * ((size - 1.0) / 2.0),
            false => ((coordinates + 1.0) * size - 1.0) / 2.0,
        };
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
    /// from -1 (left, top) to 1: `[batch, channels, rows, columns]`, of the image's dtype. PyTorch's `grid_sample` in two
    /// dimensions; NaN in the grid is -1. Gathers and weights are in the kernel that computes the grid.
    ///
    /// Invalid unless both are floats of one dtype and of these shapes, and for an image without pixels.
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
        call.composed(|| {
            call.needs_float(self)?;
            let (shape, dtype) = self.known()?;
            let &[batch, 2, 3] = &shape[..] else {
                return call.fail(format!("maps have the shape [batch, 2, 3], got {shape}"));
            };
            call.needs_addressable(&Shape::from([batch, size[0], size[1], 2]))?;
            let line = |extent: usize| {
                let ends = if align_corners { 1.0 } else { 1.0 - 1.0 / extent.max(1) as f64 };
                // The centre, of a single position.
                let first = if extent == 1 { 0.0 } else { -ends };
                Tensor::linspace(first, ends, extent, dtype.compute())
            };
            let (x, y) = (line(size[1]).unsqueeze(-1), line(size[0]).reshape([size[0], 1, 1]));
            let maps = self.cast(dtype.compute()).transpose(1, 2).unsqueeze(1).unsqueeze(1);
            let column = |k: isize| maps.select(-2, k);
            Ok((column(0) * x + column(1) * y + column(2)).cast(dtype))
        })
    }
}

fn sampled(call: Call, image: &Tensor, grid: &Tensor, sample: GridSample) -> Result<Tensor> {
    let ((shape, dtype), (of_grid, other)) = (image.known()?, grid.known()?);
    let (&[batch, channels, height, width], &[of_batch, rows, columns, 2]) = (&shape[..], &of_grid[..])
    else {
        return call.fail(format!(
            "an image [batch, channels, height, width] and a grid [batch, rows, columns, 2], got {shape} and {of_grid}"
        ));
    };
    call.needs_float(image)?;
    if batch != of_batch || dtype != other {
        return call.fail(format!("image and grid differ: {dtype} {shape} and {other} {of_grid}"));
    }
    if height == 0 || width == 0 {
        return call.fail(format!("an image without pixels: {shape}"));
    }
    let compute = dtype.compute();
    let grid = grid.isnan().where_(-1.0, grid).cast(compute).reshape([batch, 1, rows * columns, 2]);
    let (x, y) =
        (sample.positions(&grid.select(-1, 0), width), sample.positions(&grid.select(-1, 1), height));
    let pixels = image.reshape([batch, channels, height * width]);
    // Half as wide where that holds them: twice as many in a vector, and converted from floats by one instruction.
    let position = if height * width <= i32::MAX as usize { DType::I32 } else { DType::I64 };
    // The pixels at whole positions; 0 where there are none.
    let at = |x: &Tensor, y: &Tensor| {
        let inside = |at: &Tensor, extent: usize| {
            let last = (extent - 1) as f64;
            (at.ge(0.0).logical_and(at.le(last)), at.clamp(0.0, last).cast(position))
        };
        let ((in_x, x), (in_y, y)) = (inside(x, width), inside(y, height));
        let index = (y * width as i64 + x).expand([batch, channels, rows * columns]);
        in_x.logical_and(in_y).where_(pixels.gather(2, &index).cast(compute), 0.0)
    };
    let read = match sample.nearest {
        true => at(&x.round(), &y.round()),
        false => {
            let (left, top) = (x.floor(), y.floor());
            let (right, bottom) = (&left + 1.0, &top + 1.0);
            let ((to_left, to_top), (to_right, to_bottom)) =
                ((&x - &left, &y - &top), (&right - &x, &bottom - &y));
            at(&left, &top) * (&to_right * &to_bottom)
                + at(&right, &top) * (&to_left * &to_bottom)
                + at(&left, &bottom) * (&to_right * &to_top)
                + at(&right, &bottom) * (&to_left * &to_top)
        }
    };
    Ok(read.cast(dtype).reshape([batch, channels, rows, columns]))
}
