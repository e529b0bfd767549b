//! Boxes in images: which of those that overlap are kept, and what is read in each. Torchvision's operations.

use std::cmp::Ordering;

use crate::tensor::arguments::call::Call;
use crate::tensor::make::create::counting;
use crate::{DType, Result, Shape, Tensor};

/// How [`Tensor::roi_align`] reads boxes: 1 by 1 cells of 1 by 1 places, coordinates as they are, unless told otherwise.
///
/// ```
/// use lazuli::{RoiAlign, Tensor};
/// let image = Tensor::arange(0.0f32, 16.0, 1.0).reshape([1, 1, 4, 4]);
/// let whole = Tensor::from_slice(&[0.0f32, 0.0, 0.0, 4.0, 4.0], [1, 5]);
/// let settings = RoiAlign::new([2, 2]).sampling(2).aligned(true);
/// assert_eq!(image.roi_align(&whole, settings).to_vec::<f32>()?, [2.5, 4.5, 10.5, 12.5]);
/// # Ok::<(), lazuli::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RoiAlign {
    size: [usize; 2],
    scale: f64,
    sampling: usize,
    aligned: bool,
}

impl RoiAlign {
    /// So many rows and columns of cells in each box.
    ///
    /// ```
    /// use lazuli::{RoiAlign, Shape, Tensor};
    /// let (image, boxes) = (Tensor::rand([1, 3, 8, 8], 1), Tensor::rand([5, 5], 2) * 0.0);
    /// assert_eq!(image.roi_align(&boxes, RoiAlign::new([2, 4])).shape()?, Shape::from([5, 3, 2, 4]));
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn new(size: [usize; 2]) -> RoiAlign {
        RoiAlign { size, scale: 1.0, sampling: 1, aligned: false }
    }

    /// What the boxes' coordinates are multiplied by, where the image is a smaller one than theirs. Torchvision's `spatial_scale`.
    ///
    /// ```
    /// use lazuli::{RoiAlign, Tensor};
    /// let image = Tensor::arange(0.0f32, 4.0, 1.0).reshape([1, 1, 2, 2]);
    /// let whole = Tensor::from_slice(&[0.0f32, 0.0, 0.0, 8.0, 8.0], [1, 5]);
    /// let settings = RoiAlign::new([1, 1]).scale(0.25).aligned(true);
    /// assert_eq!(image.roi_align(&whole, settings).item::<f32>()?, 1.5);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn scale(mut self, scale: f64) -> RoiAlign {
        self.scale = scale;
        self
    }

    /// So many places a row and a column of each cell, of which it has the mean. Torchvision's `sampling_ratio`, whose number by the size
    /// of each box (-1) is none here: shapes are known before values.
    ///
    /// ```
    /// use lazuli::{RoiAlign, Tensor};
    /// let image = Tensor::from_slice(&[0.0f32, 4.0, 8.0, 20.0], [1, 1, 1, 4]);
    /// let whole = Tensor::from_slice(&[0.0f32, 0.0, 0.0, 4.0, 1.0], [1, 5]);
    /// let read = |sampling| image.roi_align(&whole, RoiAlign::new([1, 1]).sampling(sampling).aligned(true));
    /// assert_eq!(read(1).item::<f32>()?, 6.0);
    /// assert_eq!(read(4).item::<f32>()?, 8.0);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn sampling(mut self, places: usize) -> RoiAlign {
        self.sampling = places;
        self
    }

    /// Whether a pixel's centre is half a pixel from its edges, so that a box over all pixels reads them all alike, and not at the pixel's
    /// own position, where boxes are at least one pixel wide and high. Torchvision's `aligned`.
    ///
    /// ```
    /// use lazuli::{RoiAlign, Tensor};
    /// let image = Tensor::from_slice(&[0.0f32, 4.0], [1, 1, 1, 2]);
    /// let whole = Tensor::from_slice(&[0.0f32, 0.0, 0.0, 2.0, 1.0], [1, 5]);
    /// let read = |aligned| image.roi_align(&whole, RoiAlign::new([1, 1]).aligned(aligned)).item::<f32>();
    /// assert_eq!((read(true)?, read(false)?), (2.0, 4.0));
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn aligned(mut self, aligned: bool) -> RoiAlign {
        self.aligned = aligned;
        self
    }
}

impl Tensor {
    /// Which of these boxes, `[n, 4]` as left, top, right and bottom, are kept where of two that overlap the one with the lower score
    /// goes: their numbers (`I64`), by descending scores. Boxes overlap whose intersection is more than `threshold` of their union.
    /// Torchvision's `nms`; of equal scores the first comes first.
    ///
    /// **Evaluates** boxes and scores, and compares on the host; see [`Tensor::nonzero`].
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let boxes = Tensor::from([[0.0f32, 0.0, 4.0, 4.0], [1.0, 0.0, 5.0, 4.0], [8.0, 8.0, 9.0, 9.0]]);
    /// let scores = Tensor::from([0.5f32, 0.75, 0.25]);
    /// assert_eq!(boxes.nms(&scores, 0.5)?.to_vec::<i64>()?, [1, 2]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    ///
    /// # Errors
    /// The first error in the history of boxes or scores, and what computing them may return; integers and bools, and other shapes.
    #[track_caller]
    pub fn nms(&self, scores: impl AsRef<Tensor>, threshold: f64) -> Result<Tensor> {
        let (call, scores) = (Call::here("nms"), scores.as_ref());
        call.compose(|| nms(call, self, scores, threshold))
    }

    /// What images `[batch, channels, height, width]` have in boxes `[n, 5]`, which are the number of an image in the batch, left, top,
    /// right and bottom: `[n, channels, rows, columns]`, in each cell of a box the mean of some places, which are read between the four
    /// pixels around them. Beyond one pixel outside of the image is 0. Keeps the image's dtype. Torchvision's `roi_align`.
    ///
    /// K. He et al., "Mask R-CNN", 2017.
    ///
    /// The number of an image that is out of range is an [`IndexOutOfRange`](crate::Error::IndexOutOfRange) when the values are asked
    /// for. Invalid unless both are floats of one dtype and of these shapes, for an image without pixels, and for settings of 0.
    ///
    /// ```
    /// use lazuli::{RoiAlign, Tensor};
    /// let image = Tensor::from_slice(&[0.0f32, 1.0, 2.0, 3.0], [1, 1, 2, 2]);
    /// let whole = Tensor::from_slice(&[0.0f32, 0.0, 0.0, 2.0, 2.0], [1, 5]);
    /// assert_eq!(image.roi_align(&whole, RoiAlign::new([1, 1]).aligned(true)).item::<f32>()?, 1.5);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn roi_align(&self, boxes: impl AsRef<Tensor>, settings: RoiAlign) -> Tensor {
        let (call, boxes) = (Call::here("roi_align"), boxes.as_ref());
        call.composed(|| roi_align(call, self, boxes, settings))
    }
}

fn nms(call: Call, boxes: &Tensor, scores: &Tensor, threshold: f64) -> Result<Tensor> {
    call.needs_float(boxes)?;
    call.needs_float(scores)?;
    let ((shape, dtype), (of_scores, other)) = (boxes.known()?, scores.known()?);
    if shape.rank() != 2 || shape[1] != 4 || of_scores[..] != shape[..1] {
        return call
            .fail(format!("needs boxes [n, 4] and scores [n], got {dtype} {shape} and {other} {of_scores}"));
    }
    let [corners, scores] = [boxes, scores].map(|x| x.cast(DType::F64));
    crate::eval([&corners, &scores])?;
    let (corners, scores) = (corners.to_vec::<f64>()?, scores.to_vec::<f64>()?);
    let corners: Vec<[f64; 4]> =
        corners.chunks_exact(4).map(|c| std::array::from_fn(|side| c[side])).collect();
    let mut order: Vec<usize> = (0..scores.len()).collect();
    // NaN is greater than all numbers, as when sorting.
    order.sort_by(|&a, &b| match (scores[a].is_nan(), scores[b].is_nan()) {
        (false, false) => scores[b].partial_cmp(&scores[a]).unwrap_or(Ordering::Equal),
        (a, b) => b.cmp(&a),
    });
    let mut kept: Vec<usize> = Vec::new();
    for number in order {
        if !kept.iter().any(|&better| overlap(&corners[better], &corners[number]) > threshold) {
            kept.push(number);
        }
    }
    let count = kept.len();
    let kept = Tensor::from_vec(kept.into_iter().map(|number| number as i64).collect(), [count]);
    boxes.node.device.map_or(Ok(kept.clone()), |device| call.transfer(&kept, device))
}

/// The share of the intersection in the union.
fn overlap(a: &[f64; 4], b: &[f64; 4]) -> f64 {
    let area = |c: &[f64; 4]| (c[2] - c[0]) * (c[3] - c[1]);
    let side = |low: usize| (a[low + 2].min(b[low + 2]) - a[low].max(b[low])).max(0.0);
    let common = side(0) * side(1);
    common / (area(a) + area(b) - common)
}

fn roi_align(call: Call, image: &Tensor, boxes: &Tensor, settings: RoiAlign) -> Result<Tensor> {
    call.needs_float(image)?;
    let ((shape, dtype), (of_boxes, other)) = (image.known()?, boxes.known()?);
    let (&[batch, channels, height, width], &[count, 5]) = (&shape[..], &of_boxes[..]) else {
        return call.fail(format!(
            "needs images [batch, channels, height, width] and boxes [n, 5], got shapes {shape} and {of_boxes}"
        ));
    };
    if dtype != other {
        return call.fail(format!("images and boxes differ: {dtype} {shape} and {other} {of_boxes}"));
    }
    let RoiAlign { size, scale, sampling, aligned } = settings;
    if height == 0 || width == 0 || sampling == 0 || size.contains(&0) {
        return call.fail(format!(
            "pixels, cells and places must be some: an image {shape}, cells {size:?}, {sampling} places a cell and axis"
        ));
    }
    let places = size.map(|cells| cells.saturating_mul(sampling));
    let all = places[0].saturating_mul(places[1]);
    call.needs_addressable(&Shape::from([count, channels, all]))?;
    let compute = dtype.compute();
    let boxes = boxes.cast(compute);
    let offset = if aligned { 0.5 } else { 0.0 };
    let side = |k: isize| boxes.select(1, k) * scale - offset;
    // Of an axis, for each place of a box: the pixels before and after it, their shares, and whether the image reaches there.
    let along = |low: isize, cells: usize, extent: usize| {
        let (begin, end) = (side(low), side(low + 2));
        let length = if aligned { end - &begin } else { (end - &begin).maximum(1.0) };
        let number = counting(cells * sampling).cast(compute) + 0.5;
        let place = begin.unsqueeze(1) + (length / cells as f64).unsqueeze(1) * (number / sampling as f64);
        let last = extent as f64 - 1.0;
        let is_in = place.ge(-1.0).logical_and(place.le(extent as f64));
        let place = place.clamp(0.0, last);
        let before = place.floor();
        let share = place - &before;
        let after = (&before + 1.0).minimum(last);
        let [before, after] = [before, after].map(|at| is_in.where_(at, 0.0).cast(DType::I64));
        ([(before, 1.0 - &share), (after, share)], is_in)
    };
    let (rows, row_in) = along(2, size[0], height);
    let (columns, column_in) = along(1, size[1], width);
    let first = boxes.select(1, 0).cast(DType::I64).reshape([count, 1, 1]) * (height * width) as i64;
    // [channels, batch * height * width]
    let pixels = image.movedim(1, 0).reshape([channels, batch * height * width]);
    let mut sum: Option<Tensor> = None;
    for (row, of_row) in &rows {
        for (column, of_column) in &columns {
            let index = &first + row.unsqueeze(2) * width as i64 + column.unsqueeze(1);
            let read = pixels.index_select(1, index.ravel()).reshape([channels, count, places[0], places[1]]);
            let term = read.cast(compute) * (of_row.unsqueeze(2) * of_column.unsqueeze(1));
            sum = Some(sum.map_or(term.clone(), |sum| sum + term));
        }
    }
    let Some(sum) = sum else { return call.fail("reads nothing") };
    let is_in = row_in.unsqueeze(2).logical_and(column_in.unsqueeze(1));
    let cells = is_in.where_(sum, 0.0).reshape([channels, count, size[0], sampling, size[1], sampling]);
    Ok(cells.mean([3, 5]).movedim(1, 0).cast(dtype))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Device;
    use crate::tensor::tests::mistake;

    fn here(x: Tensor) -> Tensor {
        x.to(&Device::interpreter())
    }

    #[test]
    fn overlapping_boxes_with_lower_scores_go() {
        let boxes = here(Tensor::from([
            [0.0f32, 0.0, 2.0, 2.0],
            [0.0, 0.0, 2.0, 2.0],
            [0.0, 1.0, 2.0, 3.0],
            [0.0, 2.0, 2.0, 4.0],
            [9.0, 9.0, 9.0, 9.0],
        ]));
        let scores = here(Tensor::from([0.5f32, 0.5, 0.75, 0.25, f32::NAN]));
        let kept = |threshold| boxes.nms(&scores, threshold).unwrap().to_vec::<i64>().unwrap();
        // A third of the union is not more than a third; of the two that are equal the first stays.
        assert_eq!(kept(1.0 / 3.0), [4, 2, 0, 3]);
        assert_eq!(kept(0.25), [4, 2]);
        assert_eq!(kept(1.0), [4, 2, 0, 1, 3]);
        let none = boxes.slice(0, ..0).nms(scores.slice(0, ..0), 0.5).unwrap();
        assert_eq!(none.shape().unwrap(), Shape::from([0]));
        let text = boxes.nms(boxes.select(1, 0).slice(0, 1..), 0.5).unwrap_err().to_string();
        let expected = "nms: needs boxes [n, 4] and scores [n], got f32 [5, 4] and f32 [4], at ";
        assert!(text.starts_with(expected), "{text}");
    }

    /// One place, as torchvision's kernel reads it.
    fn read(image: &[f64], extents: [usize; 2], at: [f64; 2]) -> f64 {
        if (0..2).any(|d| at[d] < -1.0 || at[d] > extents[d] as f64) {
            return 0.0;
        }
        let axis = |d: usize| {
            let at = at[d].max(0.0);
            let low = at as usize;
            match low + 1 >= extents[d] {
                true => (extents[d] - 1, extents[d] - 1, 0.0),
                false => (low, low + 1, at - low as f64),
            }
        };
        let ((top, bottom, y), (left, right, x)) = (axis(0), axis(1));
        let pixel = |row: usize, column: usize| image[row * extents[1] + column];
        (1.0 - y) * ((1.0 - x) * pixel(top, left) + x * pixel(top, right))
            + y * ((1.0 - x) * pixel(bottom, left) + x * pixel(bottom, right))
    }

    #[test]
    fn boxes_are_read_as_in_loops() {
        let (height, width) = (5, 7);
        let image: Vec<f64> = (0..2 * height * width).map(|n| ((n * n) % 23) as f64).collect();
        let rois: [[f64; 5]; 4] = [
            [1.0, 0.5, 1.0, 6.0, 4.0],
            [0.0, -3.0, -2.5, 3.0, 9.0],
            [0.0, 2.0, 2.0, 2.25, 2.125],
            [1.0, 4.0, 4.0, 20.0, 20.0],
        ];
        let x = here(Tensor::from_slice(&image, [2, 1, height, width]));
        let boxes = here(Tensor::from(rois));
        for aligned in [false, true] {
            let settings = RoiAlign::new([2, 3]).scale(0.75).sampling(2).aligned(aligned);
            let y = x.roi_align(&boxes, settings).to_vec::<f64>().unwrap();
            let offset = if aligned { 0.5 } else { 0.0 };
            let mut expected = Vec::new();
            for roi in rois {
                let side = |k: usize| roi[k] * 0.75 - offset;
                let least = if aligned { f64::NEG_INFINITY } else { 1.0 };
                let lengths = [(side(4) - side(2)).max(least), (side(3) - side(1)).max(least)];
                let own = &image[roi[0] as usize * height * width..][..height * width];
                for (row, column) in (0..2).flat_map(|row| (0..3).map(move |column| (row, column))) {
                    let at = |first: f64, length: f64, cells: f64, cell: usize, place: usize| {
                        first + length / cells * (cell as f64 + (place as f64 + 0.5) / 2.0)
                    };
                    let sum: f64 = (0..4)
                        .map(|place| {
                            let y = at(side(2), lengths[0], 2.0, row, place / 2);
                            let x = at(side(1), lengths[1], 3.0, column, place % 2);
                            read(own, [height, width], [y, x])
                        })
                        .sum();
                    expected.push(sum / 4.0);
                }
            }
            let is_near = y.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-12);
            assert!(y.len() == expected.len() && is_near, "{aligned}: {y:?} {expected:?}");
        }
        mistake!(
            x.roi_align(&boxes, RoiAlign::new([2, 0])),
            "roi_align: pixels, cells and places must be some: an image [2, 1, 5, 7], cells [2, 0], 1 places a cell and axis"
        );
    }
}
