//! Positions that are quotients of integers, and what a tensor has there: views alone, where these repeat few times.

use crate::tensor::arguments::call::Call;
use crate::tensor::make::create::counting;
use crate::tensor::view::rearrange::{around, interleaved};
use crate::{DType, Result, Tensor};

/// How many times larger than what is read and what results, at most, views make an axis. An evaluation that fuses nothing stores
/// that, and beyond it positions are computed numbers. Fused, views are faster: benches/notes/windows.md.
const MOST_REPEATED: usize = 1024;

/// The last axes' source positions: `(start + step * i) / unit` for i up to, but without, `size`.
#[derive(Clone, Copy)]
pub(super) struct Positions {
    pub(super) start: i64,
    pub(super) step: i64,
    pub(super) unit: i64,
    pub(super) size: usize,
}

impl Positions {
    /// Whether each is that of one element of so many, in their order.
    pub(super) fn are_all_of(self, extent: usize) -> bool {
        self.start == 0 && self.size == extent && (self.step == self.unit || self.step == 0)
    }
}

/// The elements at the whole parts of the source positions, which are moved by `offset`.
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
    let extent = x.known()?.0[axis];
    if extent.saturating_mul(unit as usize) > extent.max(size).saturating_mul(MOST_REPEATED) {
        let index = (counting(size) * step + first).floor_divide(unit);
        return Ok(x.index_select(at, index));
    }
    let span = (size - 1) * step as usize + 1;
    let repeated = interleaved(call, x, axis, unit as usize)?;
    Ok(repeated.narrow(at, first as usize, span).slice_step(at, None, None, step as isize))
}

fn sizes_with(x: &Tensor, axis: usize, size: usize) -> Vec<usize> {
    x.node.shape.iter().enumerate().map(|(own, &extent)| if own == axis { size } else { extent }).collect()
}

/// How far behind an element each of some positions lies.
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
    if unit > MOST_REPEATED as i64 {
        return Ok((counting(count) * step + start).remainder(unit));
    }
    let reach = (count - 1) * step as usize + 1;
    let remainders = around(&counting(unit as usize), 0, start as isize, reach)?;
    Ok(remainders.slice_step(0, None, None, step as isize))
}
