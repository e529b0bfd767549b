//! Reductions of rows: a group of threads walks the consecutive elements of a row, pass by pass.
//!
//! A pass is one walk along the row. Reductions of what is known before a walk share it; what depends
//! on their results needs the next one. Elements that a later pass needs again are read again.

use super::accumulate::{Accumulator, mul_add, set};
use super::emitter::Emitter;
use super::pointwise::{lanes_and_stores, launch_items, split_lanes};
use super::stmt::Arithmetic::{Add, And, Div, Equal, Less, Min, Mul, Rem, Sub};
use super::stmt::{Builtin, Expr, LoopHint, Step, Stmt};
use super::{Function, INDEX, Nest, Workspace, extent_name, needs_wide_index, parameters};
use crate::index::AxisId;
use crate::ir::{AxisKind, Kernel, Store, ValueId, ValueOp, operands};
use crate::schedule::{Launch, RowSchedule, cooperative};
use crate::{DType, Language, ReduceOp};

/// What the walks along a row compute.
pub(super) struct Plan {
    /// The reduced axes, outermost first.
    pub(super) axes: Vec<AxisId>,
    /// The axes of the results.
    pub(super) map: Vec<AxisId>,
    /// One entry a pass.
    pub(super) passes: Vec<Pass>,
    /// Stores of results that do not vary along the row.
    pub(super) results: Vec<usize>,
}

/// One walk.
#[derive(Default)]
pub(super) struct Pass {
    pub(super) reductions: Vec<ValueId>,
    /// Stores of values that vary along the row.
    pub(super) stores: Vec<usize>,
}

impl Plan {
    pub(super) fn new(kernel: &Kernel) -> Result<Plan, String> {
        let reductions = cooperative(kernel)?;
        let axes = match reductions.first().map(|&first| &kernel.value(first).op) {
            Some(ValueOp::Reduce { axes, .. }) => axes.to_vec(),
            _ => return Err("no reduction for several threads".into()),
        };
        // A value's pass: how many walks must have ended before it can be computed.
        let mut pass_of = vec![0usize; kernel.values.len()];
        for (number, value) in kernel.values.iter().enumerate() {
            let before =
                operands(&value.op).iter().map(|operand| pass_of[operand.index()]).max().unwrap_or(0);
            let is_cooperative = reductions.contains(&ValueId(number as u32));
            pass_of[number] = before + usize::from(is_cooperative);
        }
        let last = pass_of.iter().copied().max().unwrap_or(0);
        let mut passes: Vec<Pass> = (0..=last).map(|_| Pass::default()).collect();
        for &reduction in &reductions {
            passes[pass_of[reduction.index()] - 1].reductions.push(reduction);
        }
        let mut results = Vec::new();
        for (number, store) in kernel.stores.iter().enumerate() {
            let value = kernel.value(store.value);
            let varies = |axis: &AxisId| value.axes.contains(axis) || store.index.uses(*axis);
            match kernel.axes_of_kind(AxisKind::Reduce).iter().any(varies) {
                true => passes[pass_of[store.value.index()]].stores.push(number),
                false => results.push(number),
            }
        }
        passes.retain(|pass| !pass.reductions.is_empty() || !pass.stores.is_empty());
        Ok(Plan { axes, map: kernel.axes_of_kind(AxisKind::Map), passes, results })
    }
}

/// How many work items a launch has, as text over the kernel's arguments.
pub(super) fn items_formula(kernel: &Kernel, axes: &[AxisId], divisor: u64) -> String {
    let mut constant = 1;
    let mut names = Vec::new();
    for &axis in axes {
        match kernel.axis(axis).is_argument {
            true => names.push(extent_name(kernel, axis)),
            false => constant *= kernel.axis(axis).extent,
        }
    }
    let product = |names: &[String], constant: u64| match (names, constant) {
        ([], constant) => constant.to_string(),
        (names, 1) => names.join(" * "),
        (names, constant) => format!("{} * {constant}", names.join(" * ")),
    };
    match divisor {
        1 => product(&names, constant),
        divisor if constant % divisor == 0 => product(&names, constant / divisor),
        divisor => format!("ceil({} / {divisor})", product(&names, constant)),
    }
}

pub(super) fn build(kernel: &Kernel, language: Language, schedule: &RowSchedule) -> Result<Nest, String> {
    let plan = Plan::new(kernel)?;
    if schedule.splits > 1
        && (plan.passes.len() > 1 || plan.passes.iter().any(|pass| !pass.stores.is_empty()))
    {
        return Err("a split row can only be walked once".into());
    }
    let wide_index = needs_wide_index(kernel);
    match language {
        Language::Cuda => {
            let vectorised = split_lanes(kernel, plan.axes.last().copied(), schedule.vector);
            let writer = CudaRows { scalar: kernel, plan: &plan, schedule };
            let workspaces = writer.workspaces(&vectorised);
            let body = writer.body(&vectorised);
            let rows = launch_items(kernel, &plan.map);
            let launch = Launch {
                items: rows,
                formula: items_formula(kernel, &plan.map, 1),
                per_block: u64::from(schedule.rows_per_block),
                splits: schedule.splits,
                block: [schedule.threads_per_row, schedule.rows_per_block, 1],
            };
            let parameters = parameters(&vectorised, &workspaces);
            let functions = vec![Function { name: kernel.name.clone(), body, launch }];
            Ok(Nest { functions, parameters, workspaces, wide_index, kernel: vectorised })
        }
        Language::C => Ok(cpu(kernel, &plan, schedule, wide_index)),
    }
}

struct CudaRows<'a> {
    scalar: &'a Kernel,
    plan: &'a Plan,
    schedule: &'a RowSchedule,
}

impl<'a> CudaRows<'a> {
    /// Partial results of the parts of split rows, and a counter of finished parts for each row.
    fn workspaces(&self, kernel: &Kernel) -> Vec<Workspace> {
        if self.schedule.splits == 1 {
            return Vec::new();
        }
        let rows = launch_items(kernel, &self.plan.map);
        let reductions: Vec<ValueId> =
            self.plan.passes.iter().flat_map(|pass| pass.reductions.clone()).collect();
        let mut spaces = partial_workspaces(kernel, &reductions, rows * u64::from(self.schedule.splits));
        spaces.push(Workspace { name: "arrivals".into(), dtype: DType::I32, elements: rows, zeroed: true });
        spaces
    }

    fn body(&self, kernel: &'a Kernel) -> Vec<Stmt> {
        let mut emitter = Emitter::new(kernel, Language::Cuda);
        let several = self.schedule.rows_per_block > 1;
        let row = match several {
            true => mul_add(
                Expr::Builtin(Builtin::BlockX),
                Expr::Int(u64::from(self.schedule.rows_per_block)),
                Expr::Builtin(Builtin::ThreadY),
            ),
            false => Expr::Builtin(Builtin::BlockX),
        };
        let rows = emitter.positions(&self.plan.map);
        let name = row_name(kernel, self.plan);
        if several {
            // Threads beyond the last row walk it too, so that whole warps take part in shuffles.
            emitter.bind("own_row", INDEX, row);
            let last = rows.clone().then(Sub, Expr::Int(1));
            emitter.bind(name.clone(), INDEX, Expr::name("own_row").then(Min, last));
        } else if !self.plan.map.is_empty() || self.schedule.splits > 1 {
            emitter.bind(name.clone(), INDEX, row);
        }
        emitter.unflatten(&name, &self.plan.map, 1);
        for pass in &self.plan.passes {
            let accumulators = self.walk(&mut emitter, kernel, pass, several.then(|| rows.clone()));
            for (reduction, accumulator) in pass.reductions.iter().zip(&accumulators) {
                self.merge_threads(&mut emitter, accumulator);
                if self.schedule.splits == 1 {
                    emitter.define(*reduction, accumulator.result(None));
                }
            }
            if self.schedule.splits > 1 {
                self.merge_splits(&mut emitter, pass, &accumulators);
            }
        }
        if !self.plan.results.is_empty() {
            let first = Expr::Builtin(Builtin::ThreadX).then(Equal, Expr::Int(0));
            let condition = match several {
                true => first.then(And, Expr::name("own_row").then(Less, rows)),
                false => first,
            };
            emitter.open_pinned();
            for &store in &self.plan.results {
                let store = kernel.stores[store].clone();
                emitter.store(&store);
            }
            if self.schedule.splits > 1 {
                emitter.push(set(Expr::element("arrivals", Expr::name(name)), Expr::Int(0)));
            }
            let then = emitter.close();
            emitter.push(Stmt::If { condition, then, otherwise: Vec::new() });
        }
        emitter.finish()
    }

    /// One walk along the row, by all threads of the row.
    fn walk(
        &self,
        emitter: &mut Emitter<'a>,
        kernel: &'a Kernel,
        pass: &Pass,
        rows: Option<Expr>,
    ) -> Vec<Accumulator> {
        let accumulators: Vec<Accumulator> = pass
            .reductions
            .iter()
            .filter_map(|&id| match &kernel.value(id).op {
                ValueOp::Reduce { op, .. } => {
                    Some(Accumulator::declare(emitter, *op, kernel.value(id).dtype, None))
                }
                _ => None,
            })
            .collect();
        let vector = u64::from(self.schedule.vector);
        let threads = u64::from(self.schedule.threads_per_row);
        let length = emitter.positions(&self.plan.axes);
        let single = self.plan.axes.len() == 1;
        let tail = vector > 1 && single && self.scalar.axis(self.plan.axes[0]).is_argument;
        let flat = match single {
            true => kernel.axis(self.plan.axes[0]).name.clone(),
            false => "r".into(),
        };
        let whole = match tail {
            true => length.clone().then(Div, Expr::Int(vector)).then(Mul, Expr::Int(vector)),
            false => length.clone(),
        };
        let thread = Expr::Builtin(Builtin::ThreadX);
        let (thread, step) = match self.schedule.splits {
            1 => (thread, Expr::Int(threads)),
            _ => (
                mul_add(Expr::Builtin(Builtin::BlockY), Expr::Int(threads), thread),
                Expr::Builtin(Builtin::GridY).then(Mul, Expr::Int(threads)),
            ),
        };
        let position = thread.clone().then(Mul, Expr::Int(vector));
        emitter.open(&[], false);
        if single {
            emitter.bind_axes(&self.plan.axes);
            if vector > 1 {
                emitter.multiples.insert(self.plan.axes[0], vector as i64);
            }
        } else {
            // The flat position counts vectors, so that it unflattens by whole ones.
            emitter.unflatten("r", &self.plan.axes, vector);
        }
        let (from, to, stride) = match single {
            true => (position, whole.clone(), step.clone().then(Mul, Expr::Int(vector))),
            false => (thread.clone(), whole.clone().then(Div, Expr::Int(vector)), step.clone()),
        };
        self.elements(emitter, kernel, pass, &accumulators, rows.clone());
        let body = emitter.close();
        emitter.push(Stmt::For {
            name: flat.clone(),
            from,
            to,
            step: Step::Add(stride),
            hint: LoopHint::UnrollBy(4),
            body,
        });
        if tail {
            let body = emitter.using(self.scalar, |emitter| {
                emitter.open(&self.plan.axes, false);
                self.elements(emitter, self.scalar, pass, &accumulators, rows);
                emitter.close()
            });
            emitter.push(Stmt::For {
                name: flat,
                from: whole.then(Add, thread),
                to: length,
                step: Step::Add(step),
                hint: LoopHint::None,
                body,
            });
        }
        accumulators
    }

    /// What is done with the elements at one position, all lanes.
    fn elements(
        &self,
        emitter: &mut Emitter<'a>,
        kernel: &'a Kernel,
        pass: &Pass,
        accumulators: &[Accumulator],
        rows: Option<Expr>,
    ) {
        let stores: Vec<&Store> = pass.stores.iter().map(|&store| &kernel.stores[store]).collect();
        let condition = rows.map(|rows| Expr::name("own_row").then(Less, rows));
        lanes_and_stores(emitter, kernel, &stores, condition, |emitter| {
            for (&reduction, accumulator) in pass.reductions.iter().zip(accumulators) {
                if let ValueOp::Reduce { operand, .. } = kernel.value(reduction).op {
                    let value = emitter.value(operand);
                    accumulator.update(emitter, value, None, None);
                }
            }
        });
    }

    fn merge_threads(&self, emitter: &mut Emitter, accumulator: &Accumulator) {
        accumulator.merge_by_shuffles(emitter, self.schedule.threads_per_row.min(32));
        accumulator.merge_by_shared_memory(emitter, self.schedule.threads_per_row / 32, "shared");
    }

    /// Every block leaves its partial results; the last one of a row merges all of them in order.
    fn merge_splits(&self, emitter: &mut Emitter, pass: &Pass, accumulators: &[Accumulator]) {
        let splits = || Expr::Builtin(Builtin::GridY);
        let row = || Expr::name(row_name(self.scalar, self.plan));
        let first = Expr::Builtin(Builtin::ThreadX).then(Equal, Expr::Int(0));
        emitter.open(&[], false);
        let at = mul_add(row(), splits(), Expr::Builtin(Builtin::BlockY));
        accumulators.iter().for_each(|accumulator| accumulator.save(emitter, None, &at));
        let then = emitter.close();
        emitter.push(Stmt::If { condition: first, then, otherwise: Vec::new() });
        emitter.push(Stmt::Arrive { index: row(), count: splits() });
        accumulators.iter().for_each(|accumulator| accumulator.reset(emitter));
        emitter.open(&[], false);
        let at = mul_add(row(), splits(), Expr::name("part"));
        accumulators.iter().for_each(|accumulator| accumulator.load(emitter, None, &at));
        let body = emitter.close();
        emitter.push(Stmt::For {
            name: "part".into(),
            from: Expr::Builtin(Builtin::ThreadX),
            to: splits(),
            step: Step::Add(Expr::Int(u64::from(self.schedule.threads_per_row))),
            hint: LoopHint::None,
            body,
        });
        for (&reduction, accumulator) in pass.reductions.iter().zip(accumulators) {
            accumulator.merge_by_shuffles(emitter, self.schedule.threads_per_row.min(32));
            accumulator.merge_by_shared_memory(emitter, self.schedule.threads_per_row / 32, "final");
            emitter.define(reduction, accumulator.result(None));
        }
    }
}

/// The variable that numbers the rows: the map axis itself where there is only one.
fn row_name(kernel: &Kernel, plan: &Plan) -> String {
    match plan.map.as_slice() {
        [axis] => kernel.axis(*axis).name.clone(),
        _ => "row".into(),
    }
}

/// Workspaces for the partial results of some reductions.
pub(super) fn partial_workspaces(kernel: &Kernel, reductions: &[ValueId], elements: u64) -> Vec<Workspace> {
    let mut scratch = Emitter::new(kernel, Language::Cuda);
    let mut spaces = Vec::new();
    for &id in reductions {
        if let ValueOp::Reduce { op, .. } = kernel.value(id).op {
            let dtype = kernel.value(id).dtype;
            let accumulator = Accumulator::declare(&mut scratch, op, dtype, None);
            spaces.extend(accumulator.workspace_names().into_iter().map(|name| Workspace {
                name,
                dtype,
                elements,
                zeroed: false,
            }));
        }
    }
    spaces
}

fn cpu(kernel: &Kernel, plan: &Plan, schedule: &RowSchedule, wide_index: bool) -> Nest {
    let rows = launch_items(kernel, &plan.map);
    let reductions: Vec<ValueId> = plan.passes.iter().flat_map(|pass| pass.reductions.clone()).collect();
    let formula = items_formula(kernel, &plan.map, 1);
    let split = schedule.splits > 1;
    let mut emitter = Emitter::new(kernel, Language::C);
    let workspaces = match split {
        true => partial_workspaces(kernel, &reductions, rows * u64::from(schedule.splits)),
        false => Vec::new(),
    };
    let mut functions = Vec::new();
    if split {
        // First phase: a block is a part of a row, and leaves partial results.
        let parts = parts_of_row(&emitter, plan);
        emitter.bind("parts", INDEX, parts);
        emitter.bind("row", INDEX, Expr::Builtin(Builtin::BlockX).then(Div, Expr::name("parts")));
        let part = Expr::Builtin(Builtin::BlockX).then(Rem, Expr::name("parts"));
        emitter.bind("first", INDEX, part.then(Mul, Expr::Int(PART)));
        let end = Expr::name("first").then(Add, Expr::Int(PART)).then(Min, emitter.positions(&plan.axes));
        emitter.bind("end", INDEX, end);
        emitter.unflatten("row", &plan.map, 1);
        for pass in &plan.passes {
            let accumulators =
                cpu_walk(&mut emitter, kernel, plan, pass, schedule, Expr::name("first"), Expr::name("end"));
            let zero = Expr::Int(0);
            let lane = (schedule.threads_per_row > 1).then_some(&zero);
            for accumulator in &accumulators {
                accumulator.save(&mut emitter, lane, &Expr::Builtin(Builtin::BlockX));
            }
        }
        let launch = Launch {
            items: rows * u64::from(schedule.splits),
            formula: format!("{formula} * parts"),
            per_block: 1,
            splits: 1,
            block: [1, 1, 1],
        };
        functions.push(Function { name: kernel.name.clone(), body: emitter.finish(), launch });
        // Second phase: merge the parts of each row in order.
        let mut emitter = Emitter::new(kernel, Language::C);
        let parts = parts_of_row(&emitter, plan);
        emitter.bind("parts", INDEX, parts);
        emitter.bind("row", INDEX, Expr::Builtin(Builtin::BlockX));
        emitter.unflatten("row", &plan.map, 1);
        let accumulators: Vec<Accumulator> = reductions
            .iter()
            .filter_map(|&id| match kernel.value(id).op {
                ValueOp::Reduce { op, .. } => {
                    Some(Accumulator::declare(&mut emitter, op, kernel.value(id).dtype, None))
                }
                _ => None,
            })
            .collect();
        emitter.open(&[], false);
        let at = mul_add(Expr::name("row"), Expr::name("parts"), Expr::name("part"));
        accumulators.iter().for_each(|accumulator| accumulator.load(&mut emitter, None, &at));
        let body = emitter.close();
        emitter.push(count_loop("part", Expr::Int(0), Expr::name("parts"), LoopHint::None, body));
        for (&reduction, accumulator) in reductions.iter().zip(&accumulators) {
            emitter.define(reduction, accumulator.result(None));
        }
        plan.results.iter().for_each(|&store| emitter.store(&kernel.stores[store]));
        let launch = Launch { items: rows, formula, per_block: 1, splits: 1, block: [1, 1, 1] };
        let name = format!("{}_merge", kernel.name);
        functions.push(Function { name, body: emitter.finish(), launch });
    } else {
        let per_block = u64::from(schedule.rows_per_block);
        emitter.bind("first_row", INDEX, Expr::Builtin(Builtin::BlockX).then(Mul, Expr::Int(per_block)));
        let end =
            Expr::name("first_row").then(Add, Expr::Int(per_block)).then(Min, emitter.positions(&plan.map));
        emitter.bind("end_row", INDEX, end);
        let row = row_name(kernel, plan);
        emitter.open_pinned();
        emitter.unflatten(&row, &plan.map, 1);
        for pass in &plan.passes {
            let length = emitter.positions(&plan.axes);
            let accumulators = cpu_walk(&mut emitter, kernel, plan, pass, schedule, Expr::Int(0), length);
            let zero = Expr::Int(0);
            let lane = (schedule.threads_per_row > 1).then_some(&zero);
            for (&reduction, accumulator) in pass.reductions.iter().zip(&accumulators) {
                emitter.define(reduction, accumulator.result(lane));
            }
        }
        plan.results.iter().for_each(|&store| emitter.store(&kernel.stores[store]));
        let body = emitter.close();
        emitter.push(count_loop(&row, Expr::name("first_row"), Expr::name("end_row"), LoopHint::None, body));
        let launch = Launch { items: rows, formula, per_block, splits: 1, block: [1, 1, 1] };
        functions.push(Function { name: kernel.name.clone(), body: emitter.finish(), launch });
    }
    let parameters = parameters(kernel, &workspaces);
    Nest { functions, parameters, workspaces, wide_index, kernel: kernel.clone() }
}

/// Elements of a part of a split row on the CPU.
const PART: u64 = 1 << 16;

fn parts_of_row(emitter: &Emitter, plan: &Plan) -> Expr {
    emitter.positions(&plan.axes).then(Add, Expr::Int(PART - 1)).then(Div, Expr::Int(PART))
}

pub(super) fn count_loop(name: &str, from: Expr, to: Expr, hint: LoopHint, body: Vec<Stmt>) -> Stmt {
    Stmt::For { name: name.into(), from, to, step: Step::Add(Expr::Int(1)), hint, body }
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
    let accumulators: Vec<Accumulator> = pass
        .reductions
        .iter()
        .filter_map(|&id| match kernel.value(id).op {
            ValueOp::Reduce { op, .. } => {
                let lanes = (lanes > 1).then_some(lanes);
                Some(Accumulator::declare(emitter, op, kernel.value(id).dtype, lanes))
            }
            _ => None,
        })
        .collect();
    // An element's position is where its group of lanes starts, plus its lane.
    let single = plan.axes.len() == 1;
    let flat = match single {
        true => kernel.axis(plan.axes[0]).name.clone(),
        false => "r".to_string(),
    };
    let visit =
        |emitter: &mut Emitter, position: Option<Expr>, lane: Option<&Expr>, weight: Option<&Expr>| {
            emitter.open(&[], false);
            if let Some(position) = position {
                emitter.bind(flat.clone(), INDEX, position);
            }
            match single {
                true => emitter.bind_axes(&plan.axes),
                false => emitter.unflatten("r", &plan.axes, 1),
            }
            for (&reduction, accumulator) in pass.reductions.iter().zip(&accumulators) {
                if let ValueOp::Reduce { operand, .. } = kernel.value(reduction).op {
                    let value = emitter.value(operand);
                    accumulator.update(emitter, value, lane, weight);
                }
            }
            pass.stores.iter().for_each(|&store| emitter.store(&kernel.stores[store]));
            emitter.close()
        };
    if lanes == 1 {
        let body = visit(emitter, None, None, None);
        emitter.push(count_loop(&flat, first, end, LoopHint::None, body));
        return accumulators;
    }
    let welford = Accumulator::common_welford(&accumulators);
    let is_long = launch_items(kernel, &plan.axes) >= CHAIN * lanes * 8;
    let has_welford = accumulators.iter().any(|accumulator| accumulator.op == ReduceOp::SquaredDeviations);
    let chain = if is_long && !has_welford { CHAIN } else { 1 };
    let group = lanes * chain;
    let length = end.clone().then(Sub, first.clone());
    let whole_length = length.then(Div, Expr::Int(group)).then(Mul, Expr::Int(group));
    let mut whole = first.clone().then(Add, whole_length);
    if !matches!(whole, Expr::Int(_)) {
        let name = emitter.fresh("whole");
        emitter.bind(name.clone(), INDEX, whole);
        whole = Expr::Name(name);
    }
    let lane = Expr::name("l");
    let steps = welford.map(|accumulator| accumulator.declare_steps(emitter));
    emitter.open(&[], false);
    let weight =
        welford.zip(steps.as_ref()).map(|(accumulator, steps)| accumulator.next_step(emitter, steps));
    let position = Expr::name("start").then(Add, lane.clone());
    let body = match chain {
        1 => visit(emitter, Some(position), Some(&lane), weight.as_ref()),
        // Several additions to a lane at a time, so that it stays in a register between them.
        _ => {
            let position =
                mul_add(Expr::name("k"), Expr::Int(lanes), Expr::name("start")).then(Add, lane.clone());
            let body = visit(emitter, Some(position), Some(&lane), None);
            vec![count_loop("k", Expr::Int(0), Expr::Int(chain), LoopHint::Unroll, body)]
        }
    };
    emitter.push(count_loop("l", Expr::Int(0), Expr::Int(lanes), LoopHint::Simd, body));
    let body = emitter.close();
    emitter.push(Stmt::For {
        name: "start".into(),
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
        let rest = visit(emitter, Some(whole.then(Add, lane)), Some(&own_lane), None);
        emitter.push(count_loop("l", Expr::Int(0), remaining, LoopHint::None, rest));
    }
    accumulators.iter().for_each(|accumulator| accumulator.merge_lanes(emitter));
    accumulators
}

/// Additions to a lane in a row.
const CHAIN: u64 = 4;
