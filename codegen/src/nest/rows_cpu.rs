//! Reductions of rows on the CPU: vector lanes walk a row together, long rows are cut into parts of a
//! fixed length, so that results do not depend on the number of threads.

use super::accumulate::{Accumulator, load, mul_add, save};
use super::emitter::Emitter;
use super::persistent::{Kept, Place};
use super::pointwise::launch_items;
use super::stmt::Arithmetic::{Add, Div, Min, Mul, Rem, Sub};
use super::stmt::{Builtin, Expr, LoopHint, Step, Stmt};
use super::variable::Var;
use super::walk::{Pass, Plan, count_loop, items_formula, partial_workspaces};
use super::{Function, INDEX, Nest, needs_wide_index, parameters};
use crate::Language;
use crate::ir::Kernel;
use crate::schedule::{Launch, RowSchedule, SPLIT_LENGTH};

pub(super) fn build(kernel: &Kernel, plan: &Plan, schedule: &RowSchedule) -> Nest {
    let wide_index = needs_wide_index(kernel);
    let rows = launch_items(kernel, &plan.map);
    let reductions = plan.reductions();
    let formula = items_formula(kernel, &plan.map, 1);
    let split = schedule.splits > 1;
    let mut emitter = Emitter::new(kernel, Language::C);
    let workspaces = match split {
        true => partial_workspaces(kernel, Language::C, &reductions, rows * u64::from(schedule.splits)),
        false => Vec::new(),
    };
    let mut functions = Vec::new();
    if split {
        // First phase: a block is a part of a row, and leaves partial results.
        let parts = plan.parts(&emitter, SPLIT_LENGTH);
        emitter.bind("parts", INDEX, parts);
        emitter.bind("row", INDEX, Expr::Builtin(Builtin::BlockX).then(Div, Expr::name("parts")));
        let part = Expr::Builtin(Builtin::BlockX).then(Rem, Expr::name("parts"));
        emitter.bind("first", INDEX, part.then(Mul, Expr::Int(SPLIT_LENGTH)));
        let end =
            Expr::name("first").then(Add, Expr::Int(SPLIT_LENGTH)).then(Min, emitter.positions(&plan.axes));
        emitter.bind("end", INDEX, end);
        emitter.unflatten("row", &plan.map, 1);
        for pass in &plan.passes {
            let accumulators =
                cpu_walk(&mut emitter, kernel, plan, pass, schedule, Expr::name("first"), Expr::name("end"));
            let zero = Expr::Int(0);
            let lane = (schedule.threads_per_row > 1).then_some(&zero);
            save(&mut emitter, &accumulators, lane, &Expr::Builtin(Builtin::BlockX));
        }
        let launch = Launch {
            items: rows * u64::from(schedule.splits),
            formula: format!("{formula} * parts"),
            ..Launch::default()
        };
        functions.push(Function { name: kernel.name.clone(), body: emitter.finish(), launch });
        // Second phase: merge the parts of each row in order.
        let mut emitter = Emitter::new(kernel, Language::C);
        let parts = plan.parts(&emitter, SPLIT_LENGTH);
        emitter.bind("parts", INDEX, parts);
        emitter.bind("row", INDEX, Expr::Builtin(Builtin::BlockX));
        emitter.unflatten("row", &plan.map, 1);
        let accumulators = plan.passes[0].declare(&mut emitter, kernel, None);
        emitter.open(&[], false);
        let at = mul_add(Expr::name("row"), Expr::name("parts"), Expr::name("part"));
        load(&mut emitter, &accumulators, None, &at);
        let body = emitter.close();
        emitter.push(count_loop("part", Expr::Int(0), Expr::name("parts"), LoopHint::None, body));
        accumulators.iter().for_each(|accumulator| accumulator.settle(&mut emitter, None));
        plan.passes[0].define(&mut emitter, &accumulators, |_| None);
        plan.results.iter().for_each(|&store| emitter.store(&kernel.stores[store]));
        let launch = Launch { items: rows, formula, ..Launch::default() };
        let name = format!("{}_merge", kernel.name);
        functions.push(Function { name, body: emitter.finish(), launch });
    } else {
        let per_block = u64::from(schedule.rows_per_block);
        let row = plan.row_name();
        let one_row = plan.map.is_empty();
        if !one_row {
            emitter.bind("first_row", INDEX, Expr::Builtin(Builtin::BlockX).then(Mul, Expr::Int(per_block)));
            let end = Expr::name("first_row").then(Add, Expr::Int(per_block));
            let end = end.then(Min, emitter.positions(&plan.map));
            emitter.bind("end_row", INDEX, end);
            emitter.open_pinned();
            emitter.unflatten(row, &plan.map, 1);
        }
        if schedule.stack_bytes > 0 {
            let length = launch_items(kernel, &plan.axes);
            let values = plan.keep_on_stack(kernel, length, u64::from(schedule.stack_bytes)).values;
            let position = Expr::name(plan.walk_name());
            emitter.keep(Kept::new(Vec::new(), values, Place::Stack { position, length }));
        }
        for pass in &plan.passes {
            let length = emitter.positions(&plan.axes);
            let accumulators = cpu_walk(&mut emitter, kernel, plan, pass, schedule, Expr::Int(0), length);
            let zero = Expr::Int(0);
            let lane = (schedule.threads_per_row > 1).then_some(&zero);
            accumulators.iter().for_each(|accumulator| accumulator.settle(&mut emitter, lane));
            pass.define(&mut emitter, &accumulators, |_| lane.cloned());
        }
        plan.results.iter().for_each(|&store| emitter.store(&kernel.stores[store]));
        if !one_row {
            let body = emitter.close();
            let (first, end) = (Expr::name("first_row"), Expr::name("end_row"));
            emitter.push(count_loop(row, first, end, LoopHint::None, body));
        }
        let launch = Launch { items: rows, formula, per_block, ..Launch::default() };
        functions.push(Function { name: kernel.name.clone(), body: emitter.finish(), launch });
    }
    let parameters = parameters(kernel, &workspaces);
    Nest { functions, parameters, workspaces, wide_index, kernel: kernel.clone() }
}

/// One walk along a row from `first` to `end`, all lanes at once, then the rest one by one.
fn cpu_walk(
    emitter: &mut Emitter,
    kernel: &Kernel,
    plan: &Plan,
    pass: &Pass,
    schedule: &RowSchedule,
    first: Expr,
    end: Expr,
) -> Vec<Accumulator> {
    let lanes = u64::from(schedule.threads_per_row);
    let accumulators = pass.declare(emitter, kernel, (lanes > 1).then_some(lanes));
    // An element's position is where its group of lanes starts, plus its lane.
    let single = plan.axes.len() == 1;
    let flat = plan.walk_name();
    let visit =
        |emitter: &mut Emitter, position: Option<Expr>, lane: Option<&Expr>, weight: Option<&Expr>| {
            emitter.open(&[], false);
            if let Some(position) = position {
                emitter.bind(flat, INDEX, position);
            }
            match single {
                true => emitter.bind_axes(&plan.axes),
                false => emitter.unflatten("r", &plan.axes, 1),
            }
            visit_here(emitter, kernel, pass, &accumulators, lane, weight);
            emitter.close()
        };
    if lanes == 1 {
        let body = visit(emitter, None, None, None);
        emitter.push(count_loop(flat, first, end, LoopHint::None, body));
        return accumulators;
    }
    let welford = Accumulator::common_welford(&accumulators);
    let is_long = launch_items(kernel, &plan.axes) >= CHAIN * lanes * 8;
    let is_plain = accumulators.iter().all(|accumulator| accumulator.op.is_plain());
    // A group of lanes that never reaches into the next position of the outer axes needs no division for each lane.
    let inner = plan.axes.last().map_or(1, |&axis| kernel.axis(axis).extent);
    let stays_within = |group: u64| !single && inner.is_multiple_of(group);
    let chain = match is_long && is_plain && (stays_within(lanes * CHAIN) || !stays_within(lanes)) {
        true => CHAIN,
        false => 1,
    };
    let group = lanes * chain;
    let is_within = stays_within(group);
    let length = end.clone().then(Sub, first.clone());
    let whole_length = length.then(Div, Expr::Int(group)).then(Mul, Expr::Int(group));
    let mut whole = first.clone().then(Add, whole_length);
    if !matches!(whole, Expr::Int(_)) {
        let name = emitter.fresh("whole");
        whole = Expr::Name(emitter.bind(name, INDEX, whole));
    }
    let lane = Expr::name(Var::Lane);
    let before = emitter.kept.as_ref().map(|kept| kept.there.clone());
    let steps = welford.map(|accumulator| accumulator.declare_steps(emitter));
    emitter.open(&[], false);
    let weight =
        welford.zip(steps.as_ref()).map(|(accumulator, steps)| accumulator.next_step(emitter, steps));
    if is_within && let Some((_, outer)) = plan.axes.split_last() {
        emitter.bind("outer", INDEX, Expr::name("start").then(Div, Expr::Int(inner)));
        emitter.bind("begin", INDEX, Expr::name("start").then(Rem, Expr::Int(inner)));
        emitter.unflatten("outer", outer, 1);
    }
    let within = |emitter: &mut Emitter, offset: Expr, weight: Option<&Expr>| {
        let Some((&axis, _)) = plan.axes.split_last() else { return Vec::new() };
        emitter.open(&[axis], false);
        emitter.bind(axis, INDEX, Expr::name("begin").then(Add, offset.clone()));
        if emitter.kept.is_some() {
            emitter.bind(flat, INDEX, Expr::name("start").then(Add, offset));
        }
        visit_here(emitter, kernel, pass, &accumulators, Some(&lane), weight);
        emitter.close()
    };
    let body = match chain {
        1 if is_within => within(emitter, lane.clone(), weight.as_ref()),
        1 => visit(emitter, Some(Expr::name("start").then(Add, lane.clone())), Some(&lane), weight.as_ref()),
        // Several additions to a lane at a time, so that it stays in a register between them.
        _ => {
            let offset =
                |start: Expr| mul_add(Expr::name("k"), Expr::Int(lanes), start).then(Add, lane.clone());
            let body = match is_within {
                true => {
                    within(emitter, Expr::name("k").then(Mul, Expr::Int(lanes)).then(Add, lane.clone()), None)
                }
                false => visit(emitter, Some(offset(Expr::name("start"))), Some(&lane), None),
            };
            vec![count_loop("k", Expr::Int(0), Expr::Int(chain), LoopHint::Unroll, body)]
        }
    };
    emitter.push(count_loop(Var::Lane, Expr::Int(0), Expr::Int(lanes), LoopHint::Simd, body));
    let body = emitter.close();
    emitter.push(Stmt::For {
        var: "start".into(),
        from: first,
        to: whole.clone(),
        step: Step::Add(Expr::Int(group)),
        hint: LoopHint::None,
        body,
    });
    if let Some(steps) = &steps {
        accumulators.iter().for_each(|accumulator| accumulator.spread_steps(emitter, steps));
    }
    let remaining = end.then(Sub, whole.clone());
    if remaining != Expr::Int(0) {
        let own_lane = if chain == 1 { lane.clone() } else { lane.clone().then(Rem, Expr::Int(lanes)) };
        if let (Some(kept), Some(before)) = (&mut emitter.kept, before) {
            // The other elements are not there yet.
            kept.there = before;
        }
        let rest = visit(emitter, Some(whole.then(Add, lane)), Some(&own_lane), None);
        emitter.push(count_loop(Var::Lane, Expr::Int(0), remaining, LoopHint::None, rest));
    }
    accumulators.iter().for_each(|accumulator| accumulator.merge_lanes(emitter));
    accumulators
}

/// What a walk does at the position that is bound.
fn visit_here(
    emitter: &mut Emitter,
    kernel: &Kernel,
    pass: &Pass,
    accumulators: &[Accumulator],
    lane: Option<&Expr>,
    weight: Option<&Expr>,
) {
    for (&reduction, accumulator) in pass.reductions.iter().zip(accumulators) {
        accumulator.take(emitter, reduction, lane, weight);
    }
    pass.stores.iter().for_each(|&store| emitter.store(&kernel.stores[store]));
}

/// Additions to a lane in a row.
const CHAIN: u64 = 4;
