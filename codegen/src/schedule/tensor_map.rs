//! Tensor maps: where the elements of a factor are, for copies of whole tiles to shared memory (CUDA, sm_90).

use crate::DType;
use crate::index::{Atom, AxisId};
use crate::ir::{BufferId, Kernel, ValueId, ValueOp};

/// The most axes that a map has, and bytes that their steps are multiples of (CUDA's `cuTensorMapEncodeTiled`).
const MOST_MAPPED: usize = 5;
const STEP_BYTES: u64 = 16;

/// Where the elements of a buffer are along some axes, of which a tile has 64 positions of the first and `lines` of the second. What is
/// beyond an axis comes as zeros.
///
/// ```
/// use lazuli_codegen::index::AxisId;
/// use lazuli_codegen::ir::BufferId;
/// use lazuli_codegen::schedule::TensorMap;
/// let rows_of_512 = vec![(AxisId(1), 1), (AxisId(0), 512)];
/// let map = TensorMap { buffer: BufferId(0), first: 0, lines: 128, axes: rows_of_512 };
/// assert_eq!(map.tile_elements(), 64 * 128);
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TensorMap {
    /// The buffer, of 16-bit elements.
    pub buffer: BufferId,
    /// The element at the first position of all axes.
    pub first: u64,
    /// Positions of the second axis in a tile.
    pub lines: u32,
    /// The axes, and elements from a position to the next; the first has neighbours.
    pub axes: Vec<(AxisId, u64)>,
}

impl TensorMap {
    /// Positions of the first axis in a tile: 128 bytes.
    pub const LINE: u32 = 64;

    /// Elements of a tile.
    pub fn tile_elements(&self) -> u64 {
        u64::from(TensorMap::LINE) * u64::from(self.lines)
    }

    /// The map of a factor of 16-bit elements that is in memory as it is: one of its own axis and the terms has neighbours, and every
    /// other axis steps by whole 16 bytes. `None` if there is none.
    pub(crate) fn of(
        kernel: &Kernel,
        value: ValueId,
        own: &[AxisId],
        depth: AxisId,
        lines: impl FnOnce(bool) -> u32,
    ) -> Option<TensorMap> {
        let &[own] = own else { return None };
        let ValueOp::Load { buffer, index, guard: None } = &kernel.value(value).op else { return None };
        let dtype = kernel.buffers[buffer.index()].dtype;
        let of_step = STEP_BYTES / dtype.size() as u64;
        let is_whole = |step: u64| step.is_multiple_of(of_step);
        if !matches!(dtype, DType::F16 | DType::BF16) || !kernel.computed_axes(index).is_empty() {
            return None;
        }
        let mut axes = Vec::new();
        for (atom, step) in index.terms() {
            let Atom::Axis(axis) = atom else { return None };
            axes.push((*axis, u64::try_from(*step).ok()?));
        }
        let first = u64::try_from(index.constant_term()).ok().filter(|&first| is_whole(first))?;
        let place = |axis: AxisId| axes.iter().position(|&(other, _)| other == axis);
        // The axis with neighbours, the other one of the tile, and what says which tile it is.
        let is_along = axes.get(place(depth)?)?.1 == 1;
        let inner = if is_along { [depth, own] } else { [own, depth] };
        let rank = |axis: AxisId| inner.iter().position(|&other| other == axis).unwrap_or(inner.len());
        place(own)?;
        axes.sort_by_key(|&(axis, _)| (rank(axis), axis));
        let fits =
            axes.len() <= MOST_MAPPED && axes[0].1 == 1 && axes[1..].iter().all(|&(_, step)| is_whole(step));
        fits.then(|| TensorMap { buffer: *buffer, first, lines: lines(is_along), axes })
    }
}
