//! Positions that are quotients of integers, and what a tensor has there: views alone, where these repeat every few positions.

use crate::tensor::arguments::call::Call;
use crate::tensor::make::create::counting;
use crate::tensor::view::rearrange::{around, interleaved};
use crate::{DType, Result, Tensor};

/// After how many units, at most, views repeat: vectors lie along as many results. What repeats later would be gathered all the
/// same, by indices that are divided in each loop, and be another kernel for each size: benches/notes/windows.md.
const LONGEST_PERIOD: i64 = 8;

/// The last axes' source positions: `(start + step * i) / unit` for i up to, but without, `size`.
#[derive(Clone, Copy)]
pub(super) struct Positions {
    pub(super) start: i64,
    pub(super) step: i64,
    pub(super) unit: i64,
    pub(super) size: usize,
}

impl Positions {
    /// Each element of so many, in their order.
    pub(super) fn all_of(extent: usize) -> Positions {
        Positions { start: 0, step: 1, unit: 1, size: extent }
    }

    /// Whether each is that of one element of so many, in their order.
    pub(super) fn are_all_of(self, extent: usize) -> bool {
        self.start == 0 && self.size == extent && (self.step == self.unit || self.step == 0)
    }

    /// Whether views have what is there: of every so many elements one, or of a short period with few left out.
    pub(super) fn are_regular(self) -> bool {
        self.step % self.unit == 0 || self.unit <= LONGEST_PERIOD && 2 * self.step < 3 * self.unit
    }
}

/// The positions, times their unit: whole numbers in `F64`, which vectors divide. Rounded quotients of such have the right whole
/// parts, as those that are not whole are `1 / unit` away from what is.
pub(super) fn numerators(positions: Positions) -> Tensor {
    counting(positions.size).cast(DType::F64) * positions.step as f64 + positions.start as f64
}

/// The elements at the whole parts of regular positions, which are moved by `offset`.
pub(super) fn elements(
    call: Call,
    x: &Tensor,
    axis: usize,
    positions: Positions,
    offset: i64,
) -> Result<Tensor> {
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

/// How far behind an element each of some regular positions lies.
pub(super) fn remainders(positions: Positions, first: usize, count: usize, dtype: DType) -> Result<Tensor> {
    let Positions { start, step, unit, .. } = positions;
    if step == 0 || count == 0 {
        return Ok(Tensor::zeros([count], dtype));
    }
    let at = start + first as i64 * step;
    Ok(whole_remainders(at, step, unit, count)?.cast(dtype) * (1.0 / unit as f64))
}

/// The remainders by `unit` of so many integers from `start` on, each `step` more than the one before it.
pub(super) fn whole_remainders(start: i64, step: i64, unit: i64, count: usize) -> Result<Tensor> {
    let reach = (count - 1) * step as usize + 1;
    let remainders = around(&counting(unit as usize), 0, start as isize, reach)?;
    Ok(remainders.slice_step(0, None, None, step as isize))
}
