//! Transposed reads on the CPU: a tile is copied into a small array first, row by row as it lies in memory, and laid down
//! across there. Read from memory across, its elements would be a power of two apart, in few sets of the caches.

use rustc_hash::FxHashMap;

use super::accumulate::{mul_add, set};
use super::emitter::{Emitter, Staged};
use super::loops::counting;
use super::pointwise_cpu::Guarded;
use super::stmt::Arithmetic::{Add, Max, Min, Sub};
use super::stmt::{Expr, LoopHint, Stmt, Turning, Type};
use super::tiled::Tiles;
use super::variable::Var;
use super::{Function, Nest};
use crate::index::{AxisId, Bound, IndexExpr};
use crate::ir::{Kernel, ValueOp};
use crate::schedule::{CORE_PITCH, TiledSchedule, limits, transposed_loads};
use crate::{DType, Language, Refusal, Scalar};

pub(super) fn build(kernel: &Kernel, schedule: &TiledSchedule) -> Result<Nest, Refusal> {
    let tiles = Tiles::new(kernel, schedule)?;
    let (inner, across) = (tiles.inner, tiles.across);
    let turned = transposed_loads(kernel, across, Language::C);
    let guarded = Guarded::of(kernel, inner, &turned);
    let mut emitter = Emitter::new(kernel, Language::C);
    let (left, top) = tiles.bind(&mut emitter);
    let [right, bottom] = [("right", left, inner), ("bottom", top, across)].map(|(end, start, axis)| {
        let stop = start.then(Add, tiles.tile).then(Min, emitter.extent(axis));
        emitter.bind(end, super::INDEX, stop)
    });
    let (along, down) = ((inner, left, right), (across, top, bottom));
    let row = Expr::name(inner).then(Sub, left);
    let column = Expr::name(across).then(Sub, top);
    // Transposed where it is copied, so that lanes find neighbours where something is computed.
    let slot = mul_add(column, CORE_PITCH, row);
    let mut staged = FxHashMap::default();
    for id in turned {
        let ValueOp::Load { buffer, index, guard } = &kernel.value(id).op else { continue };
        let dtype = kernel.buffers[buffer.index()].dtype;
        let array = emitter.fresh("staged");
        emitter.array(array, Type::Memory(dtype), tiles.tile * CORE_PITCH);
        let place = || Expr::element(array, slot.clone());
        let copy = set(place(), Expr::element(*buffer, Expr::Index(index.clone())));
        match guard.map(|guard| &kernel.value(guard).op) {
            None if let Some((from_row, first)) = lines(kernel, index, dtype, inner, across) => {
                // From where the tile's first line begins.
                let begun = mul_add(left, Expr::Int(from_row), top);
                let from_at =
                    if first == IndexExpr::zero() { begun } else { Expr::Index(first).then(Add, begun) };
                emitter.push(Stmt::Turn(Box::new(Turning {
                    dtype,
                    to: array,
                    to_at: Expr::Int(0),
                    to_row: CORE_PITCH,
                    from: (*buffer).into(),
                    from_at,
                    from_row,
                    depth: bottom.then(Sub, top),
                    rows: Some(right.then(Sub, left)),
                })));
            }
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

/// A load whose tiles can be transposed in registers: its stride from line to line, and its index at the origin of both axes.
fn lines(
    kernel: &Kernel,
    index: &IndexExpr,
    dtype: DType,
    inner: AxisId,
    across: AxisId,
) -> Option<(u64, IndexExpr)> {
    let step = u64::try_from(index.coefficient(inner)?).ok()?;
    let (ranges, zero) = (kernel.ranges(), IndexExpr::zero());
    let is_plain = Turning::takes(dtype)
        && index.coefficient(across) == Some(1)
        && kernel.computed_axes(index).is_empty();
    is_plain.then(|| (step, index.substitute(inner, &zero, &ranges).substitute(across, &zero, &ranges)))
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
