//! Transposed reads on CUDA: square tiles go through shared memory, so that both the reads and the writes of
//! neighbouring threads are consecutive.
//!
//! Threads first read along the axis that is consecutive in the transposed inputs, and leave the elements in
//! shared memory; after a barrier they compute along the axis that is consecutive in the results.

use rustc_hash::FxHashMap;

use super::accumulate::{mul_add, set};
use super::emitter::{Emitter, Staged};
use super::pointwise::launch_items;
use super::stmt::Arithmetic::{Add, And, Div, Less, Mul, Rem};
use super::stmt::{Builtin, Expr, LoopHint, Stmt, Type};
use super::walk::{count_loop, items_formula};
use super::{Function, INDEX, Nest, needs_wide_index, parameters};
use crate::Language;
use crate::index::AxisId;
use crate::ir::{AxisKind, Kernel, ValueOp};
use crate::schedule::{Launch, TILE, TiledSchedule, transposed_loads};

/// A row of a tile in shared memory: one element more than a tile is wide, so that a column's elements lie in
/// different banks.
const PITCH: u64 = TILE + 1;

pub(super) fn build(kernel: &Kernel, schedule: &TiledSchedule) -> Result<Nest, String> {
    let map = kernel.axes_of_kind(AxisKind::Map);
    let inner = *map.last().ok_or("a tile needs two axes")?;
    let across = schedule.across;
    let outer: Vec<AxisId> = map.iter().copied().filter(|&axis| axis != inner && axis != across).collect();
    let tiles = |axis: AxisId| kernel.axis(axis).extent.div_ceil(TILE);
    let formula = |axis: AxisId| match kernel.axis(axis).is_argument {
        true => format!("ceil({} / {TILE})", super::extent_name(kernel, axis)),
        false => tiles(axis).to_string(),
    };
    let mut factors = vec![formula(across), formula(inner)];
    if !outer.is_empty() {
        factors.insert(0, items_formula(kernel, &outer, 1));
    }
    let launch = Launch {
        items: launch_items(kernel, &outer).saturating_mul(tiles(inner)).saturating_mul(tiles(across)),
        formula: factors.join(" * "),
        per_block: 1,
        splits: 1,
        block: [TILE as u32, schedule.rows, 1],
    };
    let body = Writer { kernel, inner, across, outer, rows: u64::from(schedule.rows) }.body();
    Ok(Nest {
        functions: vec![Function { name: kernel.name.clone(), body, launch }],
        parameters: parameters(kernel, &[]),
        workspaces: Vec::new(),
        wide_index: needs_wide_index(kernel),
        kernel: kernel.clone(),
    })
}

struct Writer<'a> {
    kernel: &'a Kernel,
    inner: AxisId,
    across: AxisId,
    outer: Vec<AxisId>,
    rows: u64,
}

impl Writer<'_> {
    fn body(&self) -> Vec<Stmt> {
        let mut emitter = Emitter::new(self.kernel, Language::Cuda);
        let tiles = |emitter: &Emitter, axis| match self.kernel.axis(axis).is_argument {
            true => emitter.extent(axis).then(Add, Expr::Int(TILE - 1)).then(Div, Expr::Int(TILE)),
            false => Expr::Int(self.kernel.axis(axis).extent.div_ceil(TILE)),
        };
        let (along, down) = (tiles(&emitter, self.inner), tiles(&emitter, self.across));
        let block = || Expr::Builtin(Builtin::BlockX);
        emitter.bind("tile", INDEX, block().then(Div, along.clone()));
        emitter.bind("left", INDEX, block().then(Rem, along).then(Mul, Expr::Int(TILE)));
        let tile = Expr::name("tile");
        if self.outer.is_empty() {
            emitter.bind("top", INDEX, tile.then(Mul, Expr::Int(TILE)));
        } else {
            emitter.bind("top", INDEX, tile.clone().then(Rem, down.clone()).then(Mul, Expr::Int(TILE)));
            emitter.bind("outer", INDEX, tile.then(Div, down));
            emitter.unflatten("outer", &self.outer, 1);
        }
        let mut staged = FxHashMap::default();
        for id in transposed_loads(self.kernel, self.across) {
            let ValueOp::Load { buffer, .. } = self.kernel.value(id).op else { continue };
            let array = emitter.fresh("staged");
            let dtype = self.kernel.buffers[buffer.index()].dtype;
            emitter.push(Stmt::Shared { name: array.clone(), ty: Type::Memory(dtype), len: TILE * PITCH });
            staged.insert(id, Staged { array, dtype });
        }
        let (x, y) = (Expr::Builtin(Builtin::ThreadX), Expr::Builtin(Builtin::ThreadY));
        let row = mul_add(Expr::name("turn"), Expr::Int(self.rows), y);
        // In shared memory a row is a position along the innermost axis.
        self.sweep(&mut emitter, (row.clone(), x.clone()), |emitter| {
            let slot = mul_add(row.clone(), Expr::Int(PITCH), x.clone());
            let mut ids: Vec<_> = staged.iter().collect();
            ids.sort_by_key(|(id, _)| **id);
            for (id, staged) in ids {
                if let ValueOp::Load { buffer, index, .. } = &self.kernel.value(*id).op {
                    let source = &self.kernel.buffers[buffer.index()].name;
                    let element = Expr::element(source, Expr::Index(index.clone()));
                    emitter.push(set(Expr::element(&staged.array, slot.clone()), element));
                }
            }
        });
        emitter.push(Stmt::Barrier);
        emitter.staged = staged;
        emitter.staged_slot = Some(mul_add(x.clone(), Expr::Int(PITCH), row.clone()));
        self.sweep(&mut emitter, (x, row), |emitter| {
            self.kernel.stores.iter().for_each(|store| emitter.store(store));
        });
        emitter.finish()
    }

    /// Every position of the tile: `at` is the place along the innermost axis, and across.
    fn sweep(&self, emitter: &mut Emitter, at: (Expr, Expr), body: impl FnOnce(&mut Emitter)) {
        let name = |axis: AxisId| self.kernel.axis(axis).name.clone();
        emitter.open(&[], false);
        emitter.bind(name(self.inner), INDEX, Expr::name("left").then(Add, at.0));
        emitter.bind(name(self.across), INDEX, Expr::name("top").then(Add, at.1));
        emitter.open(&[self.inner, self.across], false);
        body(emitter);
        let then = emitter.close();
        let is_whole = |axis: AxisId| {
            let axis = self.kernel.axis(axis);
            !axis.is_argument && axis.extent.is_multiple_of(TILE)
        };
        let checks = [self.inner, self.across].into_iter().filter(|&axis| !is_whole(axis));
        let inside = checks
            .map(|axis| Expr::name(name(axis)).then(Less, emitter.extent(axis)))
            .reduce(|all, next| all.then(And, next));
        emitter.guarded(inside, then);
        let body = emitter.close();
        let turns = Expr::Int(TILE / self.rows);
        emitter.push(count_loop("turn", Expr::Int(0), turns, LoopHint::Unroll, body));
    }
}
