//! Transposed reads on the CPU: a tile is copied into a small array first, row by row as it lies in memory, and laid down
//! across there. Read from memory across, its elements would be a power of two apart, in few sets of the caches.

use rustc_hash::FxHashMap;

use super::accumulate::{mul_add, set};
use super::emitter::{Emitter, Staged};
use super::loops::counting;
use super::pointwise_cpu::Guarded;
use super::stmt::Arithmetic::{Add, Max, Min, Sub};
use super::stmt::{Expr, LoopHint, Stmt, Type};
use super::tiled::{PITCH, Tiles};
use super::variable::Var;
use super::{Function, Nest};
use crate::index::{AxisId, Bound};
use crate::ir::{Kernel, ValueOp};
use crate::schedule::{TILE, TiledSchedule, limits, transposed_loads};
use crate::{Language, Refusal, Scalar};

pub(super) fn build(kernel: &Kernel, schedule: &TiledSchedule) -> Result<Nest, Refusal> {
    let tiles = Tiles::new(kernel, schedule)?;
    let (inner, across) = (tiles.inner, tiles.across);
    let turned = transposed_loads(kernel, across, Language::C);
    let guarded = Guarded::of(kernel, inner, &turned);
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
    for id in turned {
        let ValueOp::Load { buffer, index, guard } = &kernel.value(id).op else { continue };
        let dtype = kernel.buffers[buffer.index()].dtype;
        let array = emitter.fresh("staged");
        emitter.array(array, Type::Memory(dtype), TILE * PITCH);
        let place = || Expr::element(array, slot.clone());
        let copy = set(place(), Expr::element(*buffer, Expr::Index(index.clone())));
        match guard.map(|guard| &kernel.value(guard).op) {
            Some(ValueOp::InBounds(bounds)) => {
                if !guarded.as_ref().is_some_and(Guarded::is_decided) {
                    let zero = Expr::Literal(Scalar::from_i64(kernel.value(id).dtype, 0));
                    let zero = Expr::ToMemory(dtype, Box::new(zero));
                    let body = vec![range(along, LoopHint::Simd, vec![set(place(), zero)])];
                    emitter.push(range(down, LoopHint::None, body));
                }
                let (along, down, others) = within(&mut emitter, kernel, bounds, along, down);
                let body = vec![range(down, LoopHint::Simd, vec![copy])];
                let condition = if others.is_empty() { None } else { Some(Expr::InBounds(others)) };
                emitter.guarded(condition, vec![range(along, LoopHint::None, body)]);
            }
            _ => {
                let body = vec![range(down, LoopHint::Simd, vec![copy])];
                emitter.push(range(along, LoopHint::None, body));
            }
        }
        staged.insert(id, Staged { array, dtype, slot: None });
    }
    emitter.staged = staged;
    emitter.staged_slot = Some(slot);
    emitter.open(&[across], false);
    match &guarded {
        Some(guarded) => guarded.emit(&mut emitter, kernel, inner, (Expr::Name(left), Expr::Name(right))),
        None => {
            emitter.open(&[inner], false);
            emitter.store_all(kernel);
            let body = emitter.close();
            emitter.push(range(along, LoopHint::Simd, body));
        }
    }
    let body = emitter.close();
    emitter.push(range(down, LoopHint::None, body));
    let launch = tiles.launch([1, 1, 1]);
    Ok(Nest::new(kernel.clone(), vec![Function::of(kernel, emitter.finish()?, launch)], Vec::new()))
}

/// An axis with the first of a tile's positions and the one after the last.
type Positions = (AxisId, Var, Var);

/// The positions along both axes of a tile at which all bounds hold, and the bounds of other axes.
fn within(
    emitter: &mut Emitter,
    kernel: &Kernel,
    bounds: &[Bound],
    mut along: Positions,
    mut down: Positions,
) -> (Positions, Positions, Vec<Bound>) {
    let mut others = Vec::new();
    for bound in bounds {
        let of_tile = |axis| [along.0, down.0].contains(&axis);
        let Some((axis, lo, hi)) = limits(kernel, bound).filter(|&(axis, ..)| of_tile(axis)) else {
            others.push(bound.clone());
            continue;
        };
        let (_, from, to) = if axis == along.0 { &mut along } else { &mut down };
        if let Some(lo) = lo.filter(|&lo| lo > 0) {
            let first = emitter.fresh("from");
            *from = emitter.bind(first, super::INDEX, from.then(Max, lo as u64));
        }
        let is_limit = |&hi: &i64| kernel.axis(axis).is_argument || hi < kernel.axis(axis).extent as i64;
        if let Some(hi) = hi.filter(is_limit) {
            let end = emitter.fresh("to");
            *to = emitter.bind(end, super::INDEX, to.then(Min, hi.max(0) as u64));
        }
    }
    (along, down, others)
}

fn range((axis, from, to): Positions, hint: LoopHint, body: Vec<Stmt>) -> Stmt {
    counting(axis, from, to, hint).of(body)
}
