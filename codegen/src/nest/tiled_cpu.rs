//! Transposed reads on the CPU: a tile is copied into a small array first, row by row as it lies in memory, and laid down
//! across there. Read from memory across, its elements would be a power of two apart, in few sets of the caches.

use rustc_hash::FxHashMap;

use super::accumulate::{mul_add, set};
use super::emitter::{Emitter, Staged};
use super::loops::counting;
use super::stmt::Arithmetic::{Add, Min, Sub};
use super::stmt::{Expr, LoopHint, Stmt, Type};
use super::tiled::{PITCH, Tiles};
use super::variable::Var;
use super::{Function, Nest};
use crate::Language;
use crate::Refusal;
use crate::index::AxisId;
use crate::ir::{Kernel, ValueOp};
use crate::schedule::{TILE, TiledSchedule, transposed_loads};

pub(super) fn build(kernel: &Kernel, schedule: &TiledSchedule) -> Result<Nest, Refusal> {
    let tiles = Tiles::new(kernel, schedule)?;
    let (inner, across) = (tiles.inner, tiles.across);
    let mut emitter = Emitter::new(kernel, Language::C);
    let (left, top) = tiles.bind(&mut emitter);
    let [right, bottom] = [("right", left, inner), ("bottom", top, across)].map(|(end, start, axis)| {
        let stop = start.then(Add, TILE).then(Min, emitter.extent(axis));
        emitter.bind(end, super::INDEX, stop)
    });
    let (along, down) = ((inner, left, right), (across, top, bottom));
    let row = Expr::name(inner).then(Sub, left);
    let column = Expr::name(across).then(Sub, top);
    // Transposed where it is copied, so that lanes find neighbours where something is computed.
    let slot = mul_add(column, PITCH, row);
    let mut staged = FxHashMap::default();
    for id in transposed_loads(kernel, across, Language::C) {
        let ValueOp::Load { buffer, index, .. } = &kernel.value(id).op else { continue };
        let dtype = kernel.buffers[buffer.index()].dtype;
        let array = emitter.fresh("staged");
        emitter.array(array, Type::Memory(dtype), TILE * PITCH);
        let element = Expr::element(*buffer, Expr::Index(index.clone()));
        let copy = set(Expr::element(array, slot.clone()), element);
        let body = vec![range(down, LoopHint::Simd, vec![copy])];
        emitter.push(range(along, LoopHint::None, body));
        staged.insert(id, Staged { array, dtype, slot: None });
    }
    emitter.staged = staged;
    emitter.staged_slot = Some(slot);
    emitter.open(&[across], false);
    emitter.open(&[inner], false);
    emitter.store_all(kernel);
    let body = emitter.close();
    emitter.push(range(along, LoopHint::Simd, body));
    let body = emitter.close();
    emitter.push(range(down, LoopHint::None, body));
    let launch = tiles.launch([1, 1, 1]);
    Ok(Nest::new(kernel.clone(), vec![Function::of(kernel, emitter.finish()?, launch)], Vec::new()))
}

fn range((axis, from, to): (AxisId, Var, Var), hint: LoopHint, body: Vec<Stmt>) -> Stmt {
    counting(axis, from, to, hint).of(body)
}
