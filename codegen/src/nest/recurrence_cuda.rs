//! Recurrences along the innermost axis on CUDA: each thread goes along a row of its own, so neighbouring threads would
//! read and write a row apart. Tiles of rows × steps go through shared memory instead, which the threads fill and empty
//! row by row, neighbours at neighbouring elements.

use rustc_hash::FxHashMap;

use super::INDEX;
use super::accumulate::{Accumulator, mul_add, set};
use super::emitter::{Emitter, Staged};
use super::loops::{counting, stepping};
use super::scan::{Carries, Scans};
use super::stmt::Arithmetic::{Add, And, Less, Min, Mul, Sub};
use super::stmt::{Builtin, Expr, LoopHint, Stmt};
use super::variable::Var;
use crate::index::IndexExpr;
use crate::ir::{BufferId, Kernel, Store, ValueId, ValueOp};

/// Bytes of shared memory that the tiles of a block may take, of the 48 KiB that every GPU has.
const SHARED_BYTES: u64 = 40 << 10;

/// What goes through shared memory, and how.
pub(super) struct Tiles<'a> {
    pub(super) kernel: &'a Kernel,
    pub(super) scans: &'a Scans,
    /// Threads of a block, and the rows of a tile.
    pub(super) rows: u64,
    /// Steps of a tile.
    pub(super) steps: u64,
    /// The first of them.
    pub(super) tile: Var,
}

/// The arrays of a tile.
struct Arrays<'a> {
    /// The loads of each, its buffer and the index there.
    inputs: Vec<(Vec<ValueId>, BufferId, &'a IndexExpr, Staged)>,
    results: Vec<(&'a Store, Staged)>,
    /// What has no place there.
    direct: Vec<&'a Store>,
}

impl<'a> Tiles<'a> {
    /// All steps, tile by tile, with the stores at each position.
    pub(super) fn run_steps(
        &self,
        emitter: &mut Emitter<'a>,
        running: &[Accumulator],
        carries: &Carries<'_>,
        stores: &[&'a Store],
        inside: Option<Expr>,
    ) {
        let arrays = self.arrays(emitter, stores);
        let extent = emitter.extent(self.scans.axis);
        emitter.repeat(stepping(self.tile, (0, &extent), self.steps, LoopHint::None), |emitter| {
            self.sweep(emitter, false, |emitter, slot| {
                for (_, buffer, index, staged) in &arrays.inputs {
                    let element = Expr::element(*buffer, Expr::Index((*index).clone()));
                    emitter.push(set(Expr::element(staged.array, slot.clone()), element));
                }
            });
            emitter.push(Stmt::Barrier);

            let end = self.tile.then(Add, self.steps).then(Min, extent.clone());
            let end = emitter.bind("end", INDEX, end);
            let step = self.scans.step_name(emitter);
            let place = Expr::name(step).then(Sub, self.tile);
            let slot = mul_add(Builtin::ThreadX, self.pitch(), place);
            let mut staged = FxHashMap::default();
            for (loads, _, _, array) in &arrays.inputs {
                let of_load =
                    |&id: &ValueId| (id, Staged { array: array.array, dtype: array.dtype, slot: None });
                staged.extend(loads.iter().map(of_load));
            }
            emitter.staged = staged;
            emitter.staged_slot = Some(slot.clone());
            emitter.repeat(counting(step, self.tile, end, LoopHint::UnrollBy(8)), |emitter| {
                self.scans.bind_position(emitter, step);
                emitter.bind_axes(&[self.scans.axis]);
                carries.begin_step(emitter, None);
                self.scans.advance(emitter, self.kernel, running, None, None);
                carries.end_step(emitter, None, |emitter| {
                    for (store, staged) in &arrays.results {
                        let value = emitter.stored(store);
                        emitter.push(set(Expr::element(staged.array, slot.clone()), value));
                    }
                    emitter.under(inside, |emitter| {
                        arrays.direct.iter().for_each(|store| emitter.store(store));
                    });
                });
            });
            emitter.staged.clear();
            emitter.staged_slot = None;

            // The next tile overwrites the inputs now, and the results when all threads have come to its barrier.
            emitter.push(Stmt::Barrier);
            self.sweep(emitter, true, |emitter, slot| {
                for (store, staged) in &arrays.results {
                    let target = Expr::element(store.buffer, Expr::Index(store.index.clone()));
                    emitter.push(set(target, Expr::element(staged.array, slot.clone())));
                }
            });
        });
    }

    /// Elements from a row of a tile to the next: one more than there are, so that threads of neighbouring rows find
    /// theirs in different banks.
    fn pitch(&self) -> u64 {
        self.steps + 1
    }

    /// Whether neighbouring steps are neighbours in memory.
    fn is_consecutive(&self, index: &IndexExpr) -> bool {
        let of_map = |axis| self.kernel.axis(axis).kind.is_map_or_offset();
        index.coefficient(self.scans.axis).is_some_and(|stride| stride.unsigned_abs() == 1)
            && index.axes().into_iter().all(of_map)
    }

    fn arrays(&self, emitter: &mut Emitter<'a>, stores: &[&'a Store]) -> Arrays<'a> {
        let mut bytes = 0;
        let mut array = |emitter: &mut Emitter<'a>, buffer: BufferId| {
            let dtype = self.kernel.buffers[buffer.index()].dtype;
            let len = self.rows * self.pitch();
            let taken = len * dtype.size() as u64;
            if bytes + taken > SHARED_BYTES {
                return None;
            }
            bytes += taken;
            Some(Staged { array: emitter.staged_array(dtype, len), dtype, slot: None })
        };
        let mut arrays = Arrays { inputs: Vec::new(), results: Vec::new(), direct: Vec::new() };
        for &store in stores {
            let staged = self.is_consecutive(&store.index).then(|| array(emitter, store.buffer)).flatten();
            match staged {
                Some(staged) => arrays.results.push((store, staged)),
                None => arrays.direct.push(store),
            }
        }
        for (number, value) in self.kernel.values.iter().enumerate() {
            let ValueOp::Load { buffer, index, guard: None } = &value.op else { continue };
            let id = ValueId(number as u32);
            if !self.is_consecutive(index) {
                continue;
            }
            if let Some(same) = arrays.inputs.iter_mut().find(|other| (&other.1, other.2) == (buffer, index))
            {
                same.0.push(id);
            } else if let Some(staged) = array(emitter, *buffer) {
                arrays.inputs.push((vec![id], *buffer, index, staged));
            }
        }
        arrays
    }

    /// Every element of the tile, a row at a time; those that there are not are left out, and on demand those of rows
    /// that there are not: else they are the last row's.
    fn sweep(&self, emitter: &mut Emitter<'a>, own_rows: bool, body: impl FnOnce(&mut Emitter<'a>, Expr)) {
        let others = &self.scans.others;
        let (x, rows) = (Expr::Builtin(Builtin::ThreadX), emitter.positions(others));
        let turn = emitter.index("turn");
        emitter.repeat(counting(turn, 0, self.rows, LoopHint::UnrollBy(8)), |emitter| {
            let first = Builtin::BlockX.then(Mul, self.rows);
            let tile_row = emitter.bind("tile_row", INDEX, first.then(Add, turn));
            let row = tile_row.then(Min, rows.clone().then(Sub, 1));
            let read_row = emitter.bind("read_row", INDEX, row);
            emitter.unflatten(read_row, others, 1);
            let place = emitter.bind("place", INDEX, self.tile.then(Add, x.clone()));
            self.scans.bind_position(emitter, place);
            let slot = mul_add(turn, self.pitch(), x);
            emitter.open_pinned();
            body(emitter, slot);
            let then = emitter.close();
            let axis = self.kernel.axis(self.scans.axis);
            let is_whole = !axis.is_argument && axis.extent.is_multiple_of(self.steps);
            let in_row = (!is_whole).then(|| place.then(Less, emitter.extent(self.scans.axis)));
            let of_row = own_rows.then(|| tile_row.then(Less, rows));
            let inside = in_row.into_iter().chain(of_row).reduce(|all, next| all.then(And, next));
            emitter.guarded(inside, then);
        });
    }
}
