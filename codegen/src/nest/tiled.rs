//! What tiles of transposed reads share: where they lie, and how many there are.

use super::INDEX;
use super::emitter::Emitter;
use super::passes::launch_of_parts;
use super::stmt::Arithmetic::{Add, Div, Mul, Rem};
use super::stmt::{Builtin, Expr};
use super::variable::Var;
use crate::Refusal;
use crate::index::AxisId;
use crate::ir::{AxisKind, Kernel};
use crate::schedule::{Launch, TiledSchedule};

/// The axes of the tiles.
pub(super) struct Tiles<'a> {
    pub(super) kernel: &'a Kernel,
    /// Consecutive in the results.
    pub(super) inner: AxisId,
    /// Consecutive in the transposed inputs.
    pub(super) across: AxisId,
    /// The other map axes.
    outer: Vec<AxisId>,
    /// Rows and columns of a tile.
    pub(super) tile: u64,
}

impl<'a> Tiles<'a> {
    pub(super) fn new(kernel: &'a Kernel, schedule: &TiledSchedule) -> Result<Tiles<'a>, Refusal> {
        let map = kernel.axes_of_kind(AxisKind::Map);
        let inner = *map.last().ok_or(Refusal::Misfit("a tile needs two axes"))?;
        let across = schedule.across;
        let outer = map.into_iter().filter(|&axis| axis != inner && axis != across).collect();
        Ok(Tiles { kernel, inner, across, outer, tile: u64::from(schedule.tile) })
    }

    /// One block a tile.
    pub(super) fn launch(&self, block: [u32; 3]) -> Launch {
        let parts = [(&self.outer[..], 1), (&[self.across], self.tile), (&[self.inner], self.tile)];
        Launch { block, ..launch_of_parts(self.kernel, &parts) }
    }

    /// Binds where the block's tile begins along the inner axis and across, and the outer axes.
    pub(super) fn bind(&self, emitter: &mut Emitter<'a>) -> (Var, Var) {
        let size = self.tile;
        let tiles = |emitter: &Emitter, axis| match self.kernel.axis(axis).is_argument {
            true => emitter.extent(axis).then(Add, size - 1).then(Div, size),
            false => Expr::Int(self.kernel.axis(axis).extent.div_ceil(size)),
        };
        let (along, down) = (tiles(emitter, self.inner), tiles(emitter, self.across));
        let block = || Expr::Builtin(Builtin::BlockX);
        let tile = emitter.bind("tile", INDEX, block().then(Div, along.clone()));
        let left = emitter.bind("left", INDEX, block().then(Rem, along).then(Mul, size));
        let tile = Expr::Name(tile);
        if self.outer.is_empty() {
            return (left, emitter.bind("top", INDEX, tile.then(Mul, size)));
        }
        let top = tile.clone().then(Rem, down.clone()).then(Mul, size);
        let top = emitter.bind("top", INDEX, top);
        let outer = emitter.bind("outer", INDEX, tile.then(Div, down));
        emitter.unflatten(outer, &self.outer, 1);
        (left, top)
    }
}
