//! Windows of images as columns, and what overlaps added up: neither copies anything, both are views in the kernel that
//! reads.

use crate::tensor::arguments::call::Call;
use crate::tensor::layer::pool::PerAxis;
use crate::tensor::product::convolution::Conv2d;
use crate::{DType, Result, Shape, Tensor};

impl Tensor {
    /// The windows of an image as columns, PyTorch's `functional.unfold`: `[.., channels, height, width]` to
    /// `[.., channels * kernel height * kernel width, windows]`. The settings are a convolution's, which is the product
    /// of its weight with these columns. Zeros are beyond the edges. Windows of any axis are [`Tensor::unfold`].
    ///
    /// Invalid if not even one window fits, for fewer than three dimensions, and for settings of groups or of the result.
    ///
    /// ```
    /// use lazuli::{Conv2d, Shape, Tensor};
    /// let image = Tensor::arange(0, 9, 1).reshape([1, 3, 3]);
    /// let columns = image.unfold2d(2, Conv2d::new());
    /// assert_eq!(columns.shape()?, Shape::from([4, 4]));
    /// assert_eq!(columns.select(1, 0).to_vec::<i32>()?, [0, 1, 3, 4]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn unfold2d(&self, kernel: impl Into<PerAxis<2>>, conv: Conv2d) -> Tensor {
        let (call, PerAxis(kernel)) = (Call::here("unfold2d"), kernel.into());
        call.composed(|| {
            let (shape, dtype) = self.known()?;
            let [ref batch @ .., channels, _, _] = shape[..] else {
                return call.fail(format!(
                    "needs at least 3 dimensions (channels, height, width), got {dtype} {shape}"
                ));
            };
            let ([stride, padding, dilation], rank) = (conv.windows(call)?, shape.rank());
            let mut border = vec![(0, 0); rank];
            (border[rank - 2], border[rank - 1]) = ((padding[0], padding[0]), (padding[1], padding[1]));
            let padded = self.pad(&border, 0);
            // [.., channels, rows, columns, kernel height, kernel width]
            let windows = padded.window(-2, kernel[0], stride[0], dilation[0]).window(
                -2,
                kernel[1],
                stride[1],
                dilation[1],
            );
            let apart = windows.known()?.0.to_vec();
            let count = apart[rank - 2].saturating_mul(apart[rank - 1]);
            let area = channels.saturating_mul(kernel[0]).saturating_mul(kernel[1]);
            Ok(windows.movedim([-2, -1], [-4, -3]).reshape([batch, &[area, count]].concat()))
        })
    }

    /// The opposite of [`Tensor::unfold2d`], PyTorch's `functional.fold`: columns back to an image of so many rows and columns,
    /// where windows overlap their sum: `[.., channels * kernel height * kernel width, windows]` to
    /// `[.., channels, height, width]`.
    ///
    /// Invalid if columns or windows are not as many as [`Tensor::unfold2d`] makes of such an image, and for bools.
    ///
    /// ```
    /// use lazuli::{Conv2d, Tensor};
    /// let image = Tensor::arange(0, 9, 1).reshape([1, 3, 3]);
    /// let columns = image.unfold2d(2, Conv2d::new());
    /// let times = columns.fold2d((3, 3), 2, Conv2d::new()).floor_divide(image.clamp_min(1));
    /// assert_eq!(times.to_vec::<i32>()?, [0, 2, 1, 2, 4, 2, 1, 2, 1]); // how many windows a pixel is in
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn fold2d(
        &self,
        image: impl Into<PerAxis<2>>,
        kernel: impl Into<PerAxis<2>>,
        conv: Conv2d,
    ) -> Tensor {
        let (call, PerAxis(image), PerAxis(kernel)) = (Call::here("fold2d"), image.into(), kernel.into());
        call.composed(|| fold2d(call, self, image, kernel, conv))
    }
}

fn fold2d(call: Call, x: &Tensor, image: [usize; 2], kernel: [usize; 2], conv: Conv2d) -> Result<Tensor> {
    let (shape, dtype) = x.known()?;
    if dtype == DType::Bool {
        return call.fail(format!("not defined for bool, got {dtype} {shape}; cast it first"));
    }
    let [ref batch @ .., area, windows] = shape[..] else {
        return call.fail(format!("needs at least 2 dimensions (columns, windows), got {dtype} {shape}"));
    };
    let [stride, padding, dilation] = conv.windows(call)?;
    let mut counts = [0; 2];
    for axis in 0..2 {
        let padded = padding[axis].saturating_mul(2).saturating_add(image[axis]);
        let reach = kernel[axis].saturating_sub(1).saturating_mul(dilation[axis]).saturating_add(1);
        let rest =
            padded.checked_sub(reach).filter(|_| kernel[axis] > 0 && stride[axis] > 0 && dilation[axis] > 0);
        let Some(rest) = rest else {
            return call.fail(format!(
                "no window of {} fits into {padded} positions, at a stride of {} and a dilation of {}",
                kernel[axis], stride[axis], dilation[axis]
            ));
        };
        counts[axis] = rest / stride[axis] + 1;
    }
    let (each, all) = (kernel[0].saturating_mul(kernel[1]), counts[0].saturating_mul(counts[1]));
    if area % each != 0 || windows != all {
        return call.fail(format!(
            "shape {shape} needs a multiple of {each} columns of {all} windows, for {}×{} pixels",
            image[0], image[1]
        ));
    }
    let apart = [batch, &[area / each, kernel[0], kernel[1], counts[0], counts[1]]].concat();
    // [.., channels, rows, kernel height, columns, kernel width]
    let apart = x.reshape(apart).movedim([-2, -4, -1, -3], [-4, -3, -2, -1]);
    let across = overlapped(call, &apart, stride[1], dilation[1])?;
    // [.., channels, columns, rows, kernel height]
    let down = overlapped(call, &across.movedim(-1, -3), stride[0], dilation[0])?;
    // The other way than in `unfold2d`: what lies in the border goes, and what no window reached is 0.
    let both = down.transpose(-1, -2);
    let mut border = vec![(0, 0); both.known()?.0.rank()];
    let rank = border.len();
    for axis in 0..2 {
        let before = padding[axis] as isize;
        let reached = both.node.shape[rank - 2 + axis] as isize;
        border[rank - 2 + axis] = (-before, image[axis] as isize + before - reached);
    }
    Ok(both.pad(&border, 0))
}

/// Windows, `[.., count, size]`, added up where they overlap: each begins `stride` after the one before it, and its elements
/// are `dilation` apart. May only be called while a call is composed.
///
/// Windows divided into blocks of one stride add up along diagonals: block `b` of the result is the sum of block `j` of window
/// `b - j`.
pub(crate) fn overlapped(call: Call, windows: &Tensor, stride: usize, dilation: usize) -> Result<Tensor> {
    let (shape, _) = windows.known()?;
    let [ref batch @ .., count, size] = shape[..] else {
        return call.fail(format!("needs windows, got shape {shape}"));
    };
    let border = |last: &[(usize, usize)]| -> Vec<(usize, usize)> {
        std::iter::repeat_n((0, 0), batch.len()).chain(last.iter().copied()).collect()
    };
    let reach = size.saturating_sub(1).saturating_mul(dilation).saturating_add(1);
    let spread = match dilation {
        1 => windows.clone(),
        _ => {
            let zeros = windows.unsqueeze(-1).pad(&border(&[(0, 0), (0, 0), (0, dilation - 1)]), 0);
            zeros.flatten(-2..).narrow(-1, 0, reach)
        }
    };
    let blocks = reach.div_ceil(stride);
    let end = (count.saturating_sub(1)).saturating_mul(stride).saturating_add(reach);
    call.needs_addressable(&Shape::from([end, blocks]))?;
    let divided = spread
        .pad(&border(&[(blocks - 1, blocks - 1), (0, blocks * stride - reach)]), 0)
        .unflatten(-1, [blocks, stride]);
    // [.., result's blocks, block, stride, window], of which window `blocks - 1 - block` is meant.
    let diagonals = divided.window(batch.len() as isize, blocks, 1, 1).flip(-1).diagonal(0, -3, -1);
    Ok(diagonals.sum(-1).cast(windows.node.dtype).flatten(-2..).narrow(-1, 0, end))
}
