//! Kernels whose every thread computes its own results: elementwise chains and window reductions.

use std::borrow::Cow;

use super::accumulate::{for_lanes, mul_add};
use super::emitter::Emitter;
use super::loops::stepping;
use super::stmt::Arithmetic::{Add, Less, LessEqual, Mul};
use super::stmt::{Builtin, Expr, LoopHint, Stmt, Type};
use super::variable::Var;
use super::{Body, Function, INDEX, Nest};
use crate::Language;
use crate::Refusal;
use crate::index::{Atom, AxisId, Bound, IndexExpr};
use crate::ir::{AxisKind, Kernel, Store, ValueOp};
use crate::schedule::{Launch, PointwiseSchedule, flattened};

pub(super) fn build(
    kernel: &Kernel,
    language: Language,
    schedule: &PointwiseSchedule,
) -> Result<Nest, Refusal> {
    let map = kernel.axes_of_kind(AxisKind::Map);
    let (body, launch, kernel) = match language {
        Language::Cuda => {
            let launch = Launch {
                per_block: u64::from(schedule.threads) * u64::from(schedule.vector),
                block: [schedule.threads, 1, 1],
                ..super::passes::launch_over(kernel, &map)
            };
            // Vectors that no line is a multiple of go across lines.
            let is_across = |&axis: &AxisId| !kernel.axis(axis).extent.is_multiple_of(schedule.vector.into());
            let flat = match map.as_slice() {
                [_, .., last] if is_across(last) => flattened(kernel),
                _ => None,
            };
            let (kernel, map) = match flat {
                Some((flat, axis)) => (Cow::Owned(flat), vec![axis]),
                None => (Cow::Borrowed(kernel), map),
            };
            let vectorised = split_lanes(&kernel, map.last().copied(), schedule.vector);
            let body = cuda(&kernel, &vectorised, &map, schedule)?;
            (body, launch, vectorised)
        }
        Language::C => {
            let map = schedule.order.map_or(map, |order| order.axes().collect());
            let (body, launch) = super::pointwise_cpu::body(kernel, &map, schedule)?;
            (body, launch, kernel.clone())
        }
    };
    let functions = vec![Function::of(&kernel, body, launch)];
    Ok(Nest::new(kernel, functions, Vec::new()))
}

/// The kernel with `axis` advancing in steps of `lanes`, and a new axis `l` over the lanes between.
pub(super) fn split_lanes(kernel: &Kernel, axis: Option<AxisId>, lanes: u32) -> Kernel {
    let mut result = kernel.clone();
    let Some(axis) = axis.filter(|_| lanes > 1) else { return result };
    let lane = result.add_axis(kernel.axis(axis).kind, u64::from(lanes), false);
    (result.axes[lane.0 as usize].name, result.axes[lane.0 as usize].is_lane) = ("l".into(), true);
    for value in &mut result.values {
        if let ValueOp::Reduce { axes, .. } = &mut value.op
            && axes.contains(&axis)
        {
            axes.push(lane);
        }
    }
    // Nothing is known of the base axis but its start: its last position plus a lane stays in range.
    let ranges = result.ranges();
    let replacement = IndexExpr::axis(axis).add(&IndexExpr::axis(lane));
    result.map_indices(|index| index.substitute(axis, &replacement, &ranges));
    decide_once(&mut result, axis, lane, i64::from(lanes));
    result
}

/// A condition whose limits are multiples of the lanes is the same in all of them: in which part of a join they are, say.
fn decide_once(kernel: &mut Kernel, axis: AxisId, lane: AxisId, lanes: i64) {
    let ranges = kernel.ranges();
    let is_multiple = |(atom, coefficient): &(Atom, i64)| match atom {
        Atom::Axis(own) if *own == axis => true,
        _ => coefficient % lanes == 0,
    };
    let first = |bound: &Bound| {
        let first = bound.expr.substitute(lane, &IndexExpr::zero(), &ranges);
        let is_aligned = first.constant_term() % lanes == 0 && first.terms().iter().all(is_multiple);
        let fits = |limit: i64, is_there: bool| !is_there || limit % lanes == 0;
        let fit = fits(bound.lo, bound.has_lo()) && fits(bound.hi, bound.has_hi());
        let is_same = bound.expr.coefficient(lane) == Some(1) && is_aligned && fit;
        is_same.then(|| Bound { expr: first, ..bound.clone() })
    };
    for value in &mut kernel.values {
        if let ValueOp::InBounds(bounds) = &mut value.op {
            for bound in bounds {
                *bound = first(bound).unwrap_or_else(|| bound.clone());
            }
        }
    }
    // What follows from such conditions may vary along fewer axes.
    kernel.map_indices(IndexExpr::clone);
}

/// The lane axis that [`split_lanes`] added.
pub(super) fn lane_axis(kernel: &Kernel) -> Option<AxisId> {
    kernel.axes.iter().position(|axis| axis.is_lane).map(|number| AxisId(number as u32))
}

fn cuda(
    scalar: &Kernel,
    vectorised: &Kernel,
    map: &[AxisId],
    schedule: &PointwiseSchedule,
) -> Result<Body, Refusal> {
    let lanes = u64::from(schedule.vector);
    let thread = mul_add(Builtin::BlockX, u64::from(schedule.threads), Builtin::ThreadX);
    let mut outer = Emitter::new(scalar, Language::Cuda);
    let stores: Vec<&Store> = vectorised.stores.iter().collect();
    let total = outer.positions(map);
    match map {
        [axis]
            if lanes > 1
                && (scalar.axis(*axis).is_argument || !scalar.axis(*axis).extent.is_multiple_of(lanes)) =>
        {
            // One axis of any length: whole vectors, and a scalar tail in the last thread.
            let first = outer.bind("first", INDEX, thread.then(Mul, lanes));
            let then = outer.beside(|outer| {
                outer.using(vectorised, |whole| {
                    whole.open_pinned();
                    whole.multiples.insert(*axis, lanes as i64);
                    whole.bind(*axis, INDEX, Expr::Name(first));
                    whole.bind_axes(map);
                    lanes_and_stores(whole, vectorised, &stores, None, |_| {});
                    whole.close()
                })
            });
            outer.open_pinned();
            outer.open(map, false);
            scalar.stores.iter().for_each(|store| outer.store(store));
            let body = outer.close();
            outer.push(stepping(Var::Axis(*axis), (first, total.clone()), 1, LoopHint::None).of(body));
            let condition = first.then(Add, lanes).then(LessEqual, total);
            let otherwise = outer.close();
            outer.push(Stmt::If { condition, then, otherwise });
            outer.finish()
        }
        _ => {
            let mut emitter = Emitter::new(vectorised, Language::Cuda);
            let flat = match map {
                [axis] if lanes == 1 => Var::Axis(*axis),
                _ => emitter.index("t"),
            };
            emitter.bind(flat, INDEX, thread);
            let count = match (map, lanes) {
                // The innermost extent is a multiple of the lanes.
                ([.., last], lanes) if lanes > 1 => {
                    let outer = emitter.positions(&map[..map.len() - 1]);
                    outer.then(Mul, scalar.axis(*last).extent / lanes)
                }
                _ => total,
            };
            let inside = Expr::name(flat).then(Less, count);
            emitter.push(Stmt::If { condition: inside, then: Vec::new(), otherwise: vec![Stmt::Return] });
            emitter.unflatten(flat, map, lanes);
            lanes_and_stores(&mut emitter, vectorised, &stores, None, |_| {});
            emitter.finish()
        }
    }
}

/// What a thread does at its position: `before` and then some stores, for all lanes. Consecutive
/// results are written as vectors. With a condition, everything is computed, but stored only if it holds.
pub(super) fn lanes_and_stores(
    emitter: &mut Emitter,
    kernel: &Kernel,
    stores: &[&Store],
    condition: Option<Expr>,
    before: impl FnOnce(&mut Emitter),
) {
    let Some(lane) = lane_axis(kernel) else {
        before(emitter);
        emitter.open_pinned();
        emitter.expecting(stores.iter().map(|store| store.value), |emitter| {
            stores.iter().for_each(|store| emitter.store(store));
        });
        let then = emitter.close();
        return emitter.guarded(condition, then);
    };
    let lanes = kernel.axis(lane).extent;
    let arrays: Vec<Option<(Var, u64)>> = stores
        .iter()
        .map(|store| {
            let width = vector_width(emitter, kernel, store, lane);
            // Conditional stores wait in registers for the end of the lanes.
            (width > 1 || condition.is_some()).then(|| {
                let name = emitter.fresh("result");
                let ty = Type::Memory(kernel.buffers[store.buffer.index()].dtype);
                (emitter.array(name, ty, lanes), width)
            })
        })
        .collect();
    emitter.open(&[lane], true);
    before(emitter);
    emitter.expecting(stores.iter().map(|store| store.value), |emitter| {
        for (store, array) in stores.iter().zip(&arrays) {
            match array {
                None => emitter.store(store),
                Some((array, _)) => {
                    let value = emitter.stored(store);
                    emitter.push(Stmt::Assign { target: Expr::element(array, Var::Lane), value });
                }
            }
        }
    });
    let body = emitter.close();
    emitter.push(unrolled_lanes(lanes, body));
    let mut writes = Vec::new();
    for (store, array) in stores.iter().zip(&arrays) {
        let Some((array, width)) = array else { continue };
        let buffer = &kernel.buffers[store.buffer.index()];
        if *width == 1 {
            let target = Expr::element(store.buffer, Expr::Index(store.index.clone()));
            let value = Expr::element(array, Var::Lane);
            writes.push(unrolled_lanes(lanes, vec![Stmt::Assign { target, value }]));
            continue;
        }
        let start = store.index.substitute(lane, &IndexExpr::zero(), &kernel.ranges());
        for (at, width) in super::tile::chunks(lanes, *width) {
            writes.push(Stmt::VectorStore {
                array: *array,
                at: Expr::Int(at),
                buffer: store.buffer.into(),
                index: Expr::Index(start.offset(at as i64)),
                dtype: buffer.dtype,
                width,
            });
        }
    }
    emitter.guarded(condition, writes);
}

/// How many lanes of a store one access may write: 1 if they are not consecutive.
fn vector_width(emitter: &Emitter, kernel: &Kernel, store: &Store, lane: AxisId) -> u64 {
    if store.index.coefficient(lane) != Some(1) {
        return 1;
    }
    let lanes = kernel.axis(lane).extent;
    let start = store.index.substitute(lane, &IndexExpr::zero(), &kernel.ranges());
    emitter.alignment(&start, lanes.min(16 / kernel.buffers[store.buffer.index()].dtype.size() as u64))
}

pub(super) fn unrolled_lanes(lanes: u64, body: Vec<Stmt>) -> Stmt {
    match for_lanes(lanes, body) {
        Stmt::For { var: name, from, to, step, body, .. } => {
            Stmt::For { var: name, from, to, step, hint: LoopHint::Unroll, body }
        }
        other => other,
    }
}
