//! Transposed reads on CUDA: square tiles go through shared memory, so that both the reads and the writes of
//! neighbouring threads are consecutive.
//!
//! Threads first read along the axis that is consecutive in the transposed inputs, and leave the elements in
//! shared memory; after a barrier they compute along the axis that is consecutive in the results.

use rustc_hash::FxHashMap;

use super::accumulate::{mul_add, set};
use super::emitter::{Emitter, Staged};
use super::loops::counting;
use super::stmt::Arithmetic::{Add, And, Less};
use super::stmt::{Builtin, Expr, LoopHint, Stmt};
use super::tiled::Tiles;
use super::variable::Var;
use super::{Function, INDEX, Nest};
use crate::Language;
use crate::Refusal;
use crate::index::AxisId;
use crate::ir::{Kernel, ValueOp};
use crate::schedule::{TILE, TiledSchedule, transposed_loads};

/// A row of a tile in shared memory: one element more than a tile is wide, so that a column's elements lie in different banks.
const PITCH: u64 = TILE + 1;

pub(super) fn build(kernel: &Kernel, schedule: &TiledSchedule) -> Result<Nest, Refusal> {
    let tiles = Tiles::new(kernel, schedule)?;
    let launch = tiles.launch([TILE as u32, schedule.rows, 1]);
    let mut emitter = Emitter::new(kernel, Language::Cuda);
    let (left, top) = tiles.bind(&mut emitter);
    let turn = emitter.index("turn");
    Writer { tiles, rows: u64::from(schedule.rows), left, top, turn }.body(&mut emitter);
    Ok(Nest::new(kernel.clone(), vec![Function::of(kernel, emitter.finish()?, launch)], Vec::new()))
}

struct Writer<'a> {
    tiles: Tiles<'a>,
    rows: u64,
    left: Var,
    top: Var,
    /// Which of its rows of the tile a thread is at.
    turn: Var,
}

impl<'k> Writer<'k> {
    fn body(&self, emitter: &mut Emitter<'k>) {
        let kernel = self.tiles.kernel;
        let mut staged = FxHashMap::default();
        for id in transposed_loads(kernel, self.tiles.across, Language::Cuda) {
            let ValueOp::Load { buffer, .. } = kernel.value(id).op else { continue };
            let dtype = kernel.buffers[buffer.index()].dtype;
            let array = emitter.staged_array(dtype, TILE * PITCH);
            staged.insert(id, Staged { array, dtype, slot: None });
        }
        let (x, y) = (Expr::Builtin(Builtin::ThreadX), Expr::Builtin(Builtin::ThreadY));
        let row = mul_add(self.turn, self.rows, y);
        // In shared memory a row is a position along the innermost axis.
        self.sweep(emitter, (row.clone(), x.clone()), |emitter| {
            let slot = mul_add(row.clone(), PITCH, x.clone());
            let mut ids: Vec<_> = staged.iter().collect();
            ids.sort_by_key(|(id, _)| **id);
            for (id, staged) in ids {
                if let ValueOp::Load { buffer, index, .. } = &kernel.value(*id).op {
                    let element = Expr::element(*buffer, Expr::Index(index.clone()));
                    emitter.push(set(Expr::element(staged.array, slot.clone()), element));
                }
            }
        });
        emitter.push(Stmt::Barrier);
        emitter.staged = staged;
        emitter.staged_slot = Some(mul_add(x.clone(), PITCH, row.clone()));
        self.sweep(emitter, (x, row), |emitter| {
            emitter.store_all(kernel);
        });
    }

    /// Every position of the tile: `at` is the place along the innermost axis, and across.
    fn sweep(&self, emitter: &mut Emitter<'k>, at: (Expr, Expr), body: impl FnOnce(&mut Emitter<'k>)) {
        let Tiles { kernel, inner, across, .. } = self.tiles;
        let turns = Expr::Int(TILE / self.rows);
        emitter.repeat(counting(self.turn, 0, turns, LoopHint::Unroll), |emitter| {
            emitter.bind(inner, INDEX, self.left.then(Add, at.0));
            emitter.bind(across, INDEX, self.top.then(Add, at.1));
            emitter.open(&[inner, across], false);
            body(emitter);
            let then = emitter.close();
            let is_whole = |axis: AxisId| {
                let axis = kernel.axis(axis);
                !axis.is_argument && axis.extent.is_multiple_of(TILE)
            };
            let checks = [inner, across].into_iter().filter(|&axis| !is_whole(axis));
            let inside = checks
                .map(|axis| Expr::name(axis).then(Less, emitter.extent(axis)))
                .reduce(|all, next| all.then(And, next));
            emitter.guarded(inside, then);
        });
    }
}
