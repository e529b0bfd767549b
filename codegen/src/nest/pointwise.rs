//! Kernels whose every thread computes its own results: elementwise chains and window reductions.

use super::accumulate::{for_lanes, mul_add};
use super::emitter::Emitter;
use super::stmt::Arithmetic::{Add, Div, Less, LessEqual, Min, Mul, Rem};
use super::stmt::{Builtin, Expr, LoopHint, Step, Stmt, Type};
use super::{Function, INDEX, Nest, needs_wide_index, parameters};
use crate::Language;
use crate::index::{AxisId, IndexExpr};
use crate::ir::{AxisKind, Kernel, Store, ValueOp};
use crate::schedule::{Launch, PointwiseSchedule};

pub(super) fn build(
    kernel: &Kernel,
    language: Language,
    schedule: &PointwiseSchedule,
) -> Result<Nest, String> {
    let map = kernel.axes_of_kind(AxisKind::Map);
    let wide_index = needs_wide_index(kernel);
    let (body, launch, kernel) = match language {
        Language::Cuda => {
            let vectorised = split_lanes(kernel, map.last().copied(), schedule.vector);
            let body = cuda(kernel, &vectorised, &map, schedule);
            let launch = Launch {
                items: launch_items(kernel, &map),
                formula: super::rows::items_formula(kernel, &map, 1),
                per_block: u64::from(schedule.threads) * u64::from(schedule.vector),
                splits: 1,
                block: [schedule.threads, 1, 1],
            };
            (body, launch, vectorised)
        }
        Language::C => {
            let (body, launch) = cpu(kernel, &map, schedule);
            (body, launch, kernel.clone())
        }
    };
    let parameters = parameters(&kernel, &[]);
    let functions = vec![Function { name: kernel.name.clone(), body, launch }];
    Ok(Nest { functions, parameters, workspaces: Vec::new(), wide_index, kernel })
}

/// How many positions the axes have in this launch.
pub(super) fn launch_items(kernel: &Kernel, axes: &[AxisId]) -> u64 {
    axes.iter().fold(1, |product, &axis| product.saturating_mul(kernel.axis(axis).extent))
}

/// The kernel with `axis` advancing in steps of `lanes`, and a new axis `l` over the lanes between.
pub(super) fn split_lanes(kernel: &Kernel, axis: Option<AxisId>, lanes: u32) -> Kernel {
    let mut result = kernel.clone();
    let Some(axis) = axis.filter(|_| lanes > 1) else { return result };
    let lane = result.add_axis(kernel.axis(axis).kind, u64::from(lanes), false);
    result.axes[lane.0 as usize].name = "l".into();
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
    result
}

/// The lane axis that [`split_lanes`] added.
pub(super) fn lane_axis(kernel: &Kernel) -> Option<AxisId> {
    kernel.axes.iter().position(|axis| axis.name == "l").map(|number| AxisId(number as u32))
}

fn cuda(scalar: &Kernel, vectorised: &Kernel, map: &[AxisId], schedule: &PointwiseSchedule) -> Vec<Stmt> {
    let lanes = u64::from(schedule.vector);
    let thread = mul_add(
        Expr::Builtin(Builtin::BlockX),
        Expr::Int(u64::from(schedule.threads)),
        Expr::Builtin(Builtin::ThreadX),
    );
    let mut outer = Emitter::new(scalar, Language::Cuda);
    let total = outer.positions(map);
    match map {
        [axis]
            if lanes > 1
                && (scalar.axis(*axis).is_argument || !scalar.axis(*axis).extent.is_multiple_of(lanes)) =>
        {
            // One axis of any length: whole vectors, and a scalar tail in the last thread.
            outer.bind("first", INDEX, thread.then(Mul, Expr::Int(lanes)));
            let mut whole = Emitter::new(vectorised, Language::Cuda);
            whole.multiples.insert(*axis, lanes as i64);
            whole.bind(scalar.axis(*axis).name.clone(), INDEX, Expr::name("first"));
            whole.bind_axes(map);
            lanes_and_stores(&mut whole, vectorised);
            let mut tail = Emitter::new(scalar, Language::Cuda);
            tail.open(map, false);
            scalar.stores.iter().for_each(|store| tail.store(store));
            let body = tail.close();
            tail.push(Stmt::For {
                name: scalar.axis(*axis).name.clone(),
                from: Expr::name("first"),
                to: total.clone(),
                step: Step::Add(Expr::Int(1)),
                hint: LoopHint::None,
                body,
            });
            let condition = Expr::name("first").then(Add, Expr::Int(lanes)).then(LessEqual, total);
            outer.push(Stmt::If { condition, then: whole.finish(), otherwise: tail.finish() });
            outer.finish()
        }
        _ => {
            let mut emitter = Emitter::new(vectorised, Language::Cuda);
            let flat = match map {
                [axis] if lanes == 1 => scalar.axis(*axis).name.clone(),
                _ => "t".into(),
            };
            emitter.bind(flat.clone(), INDEX, thread);
            let count = match (map, lanes) {
                // The innermost extent is a multiple of the lanes.
                ([.., last], lanes) if lanes > 1 => {
                    let outer = emitter.positions(&map[..map.len() - 1]);
                    outer.then(Mul, Expr::Int(scalar.axis(*last).extent / lanes))
                }
                _ => total,
            };
            let inside = Expr::name(flat.clone()).then(Less, count);
            emitter.push(Stmt::If { condition: inside, then: Vec::new(), otherwise: vec![Stmt::Return] });
            emitter.unflatten(&flat, map, lanes);
            lanes_and_stores(&mut emitter, vectorised);
            emitter.finish()
        }
    }
}

/// The stores of a thread: all lanes of each, written as vectors where consecutive.
pub(super) fn lanes_and_stores(emitter: &mut Emitter, kernel: &Kernel) {
    let Some(lane) = lane_axis(kernel) else {
        kernel.stores.iter().for_each(|store| emitter.store(store));
        return;
    };
    let lanes = kernel.axis(lane).extent;
    let vectors: Vec<Option<(String, u64)>> =
        kernel.stores.iter().map(|store| declare_vector(emitter, kernel, store, lane)).collect();
    emitter.open(&[lane], true);
    for (store, vector) in kernel.stores.iter().zip(&vectors) {
        match vector {
            None => emitter.store(store),
            Some((array, _)) => {
                let dtype = kernel.buffers[store.buffer.index()].dtype;
                let value = emitter.value(store.value);
                let target = Expr::element(array, Expr::name("l"));
                emitter.push(Stmt::Assign { target, value: Expr::ToMemory(dtype, Box::new(value)) });
            }
        }
    }
    let body = emitter.close();
    emitter.push(unrolled_lanes(lanes, body));
    for (store, vector) in kernel.stores.iter().zip(&vectors) {
        let Some((array, width)) = vector else { continue };
        let buffer = &kernel.buffers[store.buffer.index()];
        let start = store.index.substitute(lane, &IndexExpr::zero(), &kernel.ranges());
        for (at, width) in super::tile::chunks(lanes, *width) {
            emitter.push(Stmt::VectorStore {
                array: array.clone(),
                at: Expr::Int(at),
                buffer: buffer.name.clone(),
                index: Expr::Index(start.offset(at as i64)),
                dtype: buffer.dtype,
                width,
            });
        }
    }
}

pub(super) fn unrolled_lanes(lanes: u64, body: Vec<Stmt>) -> Stmt {
    match for_lanes(lanes, body) {
        Stmt::For { name, from, to, step, body, .. } => {
            Stmt::For { name, from, to, step, hint: LoopHint::Unroll, body }
        }
        other => other,
    }
}

/// An array for the lanes of a store, and the width of its accesses, if the lanes are consecutive.
fn declare_vector(
    emitter: &mut Emitter,
    kernel: &Kernel,
    store: &Store,
    lane: AxisId,
) -> Option<(String, u64)> {
    let lanes = kernel.axis(lane).extent;
    if store.index.coefficient(lane) != Some(1) {
        return None;
    }
    let buffer = &kernel.buffers[store.buffer.index()];
    let start = store.index.substitute(lane, &IndexExpr::zero(), &kernel.ranges());
    let width = emitter.alignment(&start, lanes.min(16 / buffer.dtype.size() as u64));
    if width < 2 {
        return None;
    }
    let name = emitter.fresh("result");
    let ty = Type::Memory(buffer.dtype);
    emitter.push(Stmt::Variable { name: name.clone(), ty, len: Some(lanes), init: None });
    Some((name, width))
}

fn cpu(kernel: &Kernel, map: &[AxisId], schedule: &PointwiseSchedule) -> (Vec<Stmt>, Launch) {
    let mut emitter = Emitter::new(kernel, Language::C);
    let block = || Expr::Builtin(Builtin::BlockX);
    let chunk = schedule.elements_per_block;
    let launch = |items: u64, axes: &[AxisId], per_block: u64| Launch {
        items,
        formula: super::rows::items_formula(kernel, axes, 1),
        per_block,
        splits: 1,
        block: [1, 1, 1],
    };
    let Some((&inner, outer)) = map.split_last() else {
        kernel.stores.iter().for_each(|store| emitter.store(store));
        return (emitter.finish(), launch(1, map, 1));
    };
    let extent = kernel.axis(inner).extent;
    let is_long = outer.is_empty() || extent >= chunk;
    let is_short = !outer.is_empty() && extent < SHORT_AXIS;
    if is_short {
        // Too short to be a loop of its own: one loop over all positions of the block.
        let total = emitter.positions(map);
        emitter.bind("first", INDEX, block().then(Mul, Expr::Int(chunk)));
        emitter.bind("end", INDEX, Expr::name("first").then(Add, Expr::Int(chunk)).then(Min, total));
        emitter.open(&[], false);
        emitter.unflatten("t", map, 1);
        kernel.stores.iter().for_each(|store| emitter.store(store));
        let body = emitter.close();
        emitter.push(Stmt::For {
            name: "t".into(),
            from: Expr::name("first"),
            to: Expr::name("end"),
            step: Step::Add(Expr::Int(1)),
            hint: LoopHint::None,
            body,
        });
        (emitter.finish(), launch(launch_items(kernel, map), map, chunk))
    } else if is_long {
        // A block is a part of one row.
        let chunks = Expr::name("chunks");
        let mut items = extent.div_ceil(chunk);
        let mut number = block();
        if !outer.is_empty() {
            let per_row = emitter.extent(inner).then(Add, Expr::Int(chunk - 1)).then(Div, Expr::Int(chunk));
            emitter.bind("chunks", INDEX, per_row);
            emitter.bind("row", INDEX, block().then(Div, chunks.clone()));
            emitter.unflatten("row", outer, 1);
            number = block().then(Rem, chunks);
            items *= launch_items(kernel, outer);
        }
        emitter.bind("first", INDEX, number.then(Mul, Expr::Int(chunk)));
        let to = Expr::name("first").then(Add, Expr::Int(chunk)).then(Min, emitter.extent(inner));
        emitter.bind("end", INDEX, to);
        inner_loop(&mut emitter, kernel, inner, Expr::name("first"), Expr::name("end"));
        let formula = super::rows::items_formula(kernel, outer, 1);
        let inner_text = super::rows::items_formula(kernel, &[inner], chunk);
        let formula = if outer.is_empty() { inner_text } else { format!("{formula} * {inner_text}") };
        (emitter.finish(), Launch { items, formula, per_block: 1, splits: 1, block: [1, 1, 1] })
    } else {
        // A block is some whole rows.
        let rows = (chunk / extent.max(1)).max(1);
        emitter.bind("first", INDEX, block().then(Mul, Expr::Int(rows)));
        let to = Expr::name("first").then(Add, Expr::Int(rows)).then(Min, emitter.positions(outer));
        emitter.bind("end", INDEX, to);
        let row = match outer {
            [axis] => kernel.axis(*axis).name.clone(),
            _ => "row".into(),
        };
        emitter.open(&[], false);
        emitter.unflatten(&row, outer, 1);
        let extent = emitter.extent(inner);
        inner_loop(&mut emitter, kernel, inner, Expr::Int(0), extent);
        let body = emitter.close();
        emitter.push(Stmt::For {
            name: row,
            from: Expr::name("first"),
            to: Expr::name("end"),
            step: Step::Add(Expr::Int(1)),
            hint: LoopHint::None,
            body,
        });
        (emitter.finish(), launch(launch_items(kernel, outer), outer, rows))
    }
}

/// An innermost axis shorter than this is not worth a loop of its own on the CPU.
const SHORT_AXIS: u64 = 16;

fn inner_loop(emitter: &mut Emitter, kernel: &Kernel, axis: AxisId, from: Expr, to: Expr) {
    emitter.open(&[axis], false);
    kernel.stores.iter().for_each(|store| emitter.store(store));
    let body = emitter.close();
    let name = kernel.axis(axis).name.clone();
    emitter.push(Stmt::For { name, from, to, step: Step::Add(Expr::Int(1)), hint: LoopHint::Simd, body });
}
