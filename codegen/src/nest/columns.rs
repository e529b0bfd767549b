//! Reductions of columns: the results are consecutive in memory, so neighbouring threads (or vector
//! lanes on the CPU) hold neighbouring columns and walk down together.

use super::accumulate::{Accumulator, mul_add, set};
use super::emitter::Emitter;
use super::pointwise::{lane_axis, lanes_and_stores, launch_items, split_lanes, unrolled_lanes};
use super::rows::{Pass, Plan, count_loop, items_formula, partial_workspaces};
use super::stmt::Arithmetic::{Add, And, Div, Equal, Less, Min, Mul, Rem, Sub};
use super::stmt::{Builtin, Expr, LoopHint, Step, Stmt, Type};
use super::{Function, INDEX, Nest, Workspace, needs_wide_index, parameters};
use crate::index::AxisId;
use crate::ir::{Kernel, Store, ValueId, ValueOp};
use crate::schedule::{ColumnSchedule, Launch};
use crate::{DType, Language};

pub(super) fn build(kernel: &Kernel, language: Language, schedule: &ColumnSchedule) -> Result<Nest, String> {
    let plan = Plan::new(kernel)?;
    if plan.map.is_empty() {
        return Err("a column reduction needs columns".into());
    }
    let walks_once = plan.passes.len() == 1 && plan.passes[0].stores.is_empty();
    if schedule.splits > 1 && !walks_once {
        return Err("a split column can only be walked once".into());
    }
    match language {
        Language::Cuda => Ok(cuda(kernel, &plan, schedule)),
        Language::C => Ok(cpu(kernel, &plan, schedule)),
    }
}

fn reductions(plan: &Plan) -> Vec<ValueId> {
    plan.passes.iter().flat_map(|pass| pass.reductions.clone()).collect()
}

fn declare(emitter: &mut Emitter, kernel: &Kernel, pass: &Pass, lanes: Option<u64>) -> Vec<Accumulator> {
    let mut accumulators = Vec::new();
    for &id in &pass.reductions {
        if let ValueOp::Reduce { op, .. } = kernel.value(id).op {
            accumulators.push(Accumulator::declare(emitter, op, kernel.value(id).dtype, lanes));
        }
    }
    accumulators
}

/// The lane of a result: results that do not vary over the lanes are in the first.
fn lane_of(kernel: &Kernel, id: ValueId, lane_axis: Option<AxisId>) -> Expr {
    match lane_axis.is_some_and(|axis| !kernel.value(id).axes.contains(&axis)) {
        true => Expr::Int(0),
        false => Expr::name("l"),
    }
}

struct CudaColumns<'a> {
    kernel: &'a Kernel,
    plan: &'a Plan,
    schedule: &'a ColumnSchedule,
    lane: Option<AxisId>,
    groups: Expr,
}

fn cuda(scalar: &Kernel, plan: &Plan, schedule: &ColumnSchedule) -> Nest {
    let kernel = split_lanes(scalar, plan.map.last().copied(), schedule.vector);
    let columns = launch_items(scalar, &plan.map);
    let items = columns / u64::from(schedule.vector);
    let launch = Launch {
        items,
        formula: items_formula(scalar, &plan.map, u64::from(schedule.vector)),
        per_block: u64::from(schedule.threads_x),
        splits: schedule.splits,
        block: [schedule.threads_x, schedule.threads_y, 1],
    };
    let mut workspaces = Vec::new();
    if schedule.splits > 1 {
        workspaces = partial_workspaces(&kernel, &reductions(plan), columns * u64::from(schedule.splits));
        let elements = launch.grid()[0];
        workspaces.push(Workspace { name: "arrivals".into(), dtype: DType::I32, elements, zeroed: true });
    }
    let mut emitter = Emitter::new(&kernel, Language::Cuda);
    let groups = match plan.map.split_last() {
        Some((&last, outer)) => {
            let inner = match scalar.axis(last).is_argument {
                true => emitter.extent(last).then(Div, Expr::Int(u64::from(schedule.vector))),
                false => Expr::Int(scalar.axis(last).extent / u64::from(schedule.vector)),
            };
            emitter.positions(outer).then(Mul, inner)
        }
        None => Expr::Int(1),
    };
    let writer = CudaColumns { kernel: &kernel, plan, schedule, lane: lane_axis(&kernel), groups };
    writer.body(&mut emitter);
    let body = emitter.finish();
    Nest {
        functions: vec![Function { name: kernel.name.clone(), body, launch }],
        parameters: parameters(&kernel, &workspaces),
        workspaces,
        wide_index: needs_wide_index(scalar),
        kernel,
    }
}

impl CudaColumns<'_> {
    fn lanes(&self) -> Option<u64> {
        self.lane.map(|axis| self.kernel.axis(axis).extent)
    }

    /// Runs `body` for each lane, or once without lanes.
    fn for_each_lane(&self, emitter: &mut Emitter, body: impl FnOnce(&mut Emitter, Option<&Expr>)) {
        match self.lane {
            None => body(emitter, None),
            Some(axis) => {
                emitter.open(&[axis], true);
                body(emitter, Some(&Expr::name("l")));
                let body = emitter.close();
                emitter.push(unrolled_lanes(self.kernel.axis(axis).extent, body));
            }
        }
    }

    fn body(&self, emitter: &mut Emitter) {
        let kernel = self.kernel;
        let group = mul_add(
            Expr::Builtin(Builtin::BlockX),
            Expr::Int(u64::from(self.schedule.threads_x)),
            Expr::Builtin(Builtin::ThreadX),
        );
        // Threads beyond the last column walk it too, so that all take part in the barriers.
        emitter.bind("own_group", INDEX, group);
        let last = self.groups.clone().then(Sub, Expr::Int(1));
        emitter.bind("group", INDEX, Expr::name("own_group").then(Min, last));
        emitter.unflatten("group", &self.plan.map, u64::from(self.schedule.vector));
        let inside = Expr::name("own_group").then(Less, self.groups.clone());
        for pass in &self.plan.passes {
            let accumulators = declare(emitter, kernel, pass, self.lanes());
            self.walk(emitter, pass, &accumulators, &inside);
            for accumulator in &accumulators {
                self.merge_threads(emitter, accumulator, "shared");
            }
            if self.schedule.splits > 1 {
                self.merge_splits(emitter, &accumulators, &inside);
            }
            for (&id, accumulator) in pass.reductions.iter().zip(&accumulators) {
                let lane = lane_of(kernel, id, self.lane);
                emitter.define(id, accumulator.result(self.lane.map(|_| &lane)));
            }
        }
        if !self.plan.results.is_empty() {
            let first = Expr::Builtin(Builtin::ThreadY).then(Equal, Expr::Int(0));
            emitter.open_pinned();
            let stores: Vec<&Store> = self.plan.results.iter().map(|&store| &kernel.stores[store]).collect();
            lanes_and_stores(emitter, kernel, &stores, None, |_| {});
            let then = emitter.close();
            emitter.push(Stmt::If { condition: first.then(And, inside), then, otherwise: Vec::new() });
        }
        if self.schedule.splits > 1 {
            let thread = Expr::Builtin(Builtin::ThreadX).then(Add, Expr::Builtin(Builtin::ThreadY));
            let reset = set(Expr::element("arrivals", Expr::Builtin(Builtin::BlockX)), Expr::Int(0));
            let condition = thread.then(Equal, Expr::Int(0));
            emitter.push(Stmt::If { condition, then: vec![reset], otherwise: Vec::new() });
        }
    }

    fn walk(&self, emitter: &mut Emitter, pass: &Pass, accumulators: &[Accumulator], inside: &Expr) {
        let threads = u64::from(self.schedule.threads_y);
        let thread = Expr::Builtin(Builtin::ThreadY);
        let (from, step) = match self.schedule.splits {
            1 => (thread, Expr::Int(threads)),
            _ => (
                mul_add(Expr::Builtin(Builtin::BlockY), Expr::Int(threads), thread),
                Expr::Builtin(Builtin::GridY).then(Mul, Expr::Int(threads)),
            ),
        };
        let flat = match self.plan.axes.as_slice() {
            [axis] => self.kernel.axis(*axis).name.clone(),
            _ => "r".into(),
        };
        emitter.open(&[], false);
        emitter.unflatten(&flat, &self.plan.axes, 1);
        let stores: Vec<&Store> = pass.stores.iter().map(|&store| &self.kernel.stores[store]).collect();
        let lane = self.lane.map(|_| Expr::name("l"));
        lanes_and_stores(emitter, self.kernel, &stores, Some(inside.clone()), |emitter| {
            for (&id, accumulator) in pass.reductions.iter().zip(accumulators) {
                if let ValueOp::Reduce { operand, .. } = self.kernel.value(id).op {
                    let value = emitter.value(operand);
                    accumulator.update(emitter, value, lane.as_ref(), None);
                }
            }
        });
        let body = emitter.close();
        let to = emitter.positions(&self.plan.axes);
        emitter.push(Stmt::For {
            name: flat,
            from,
            to,
            step: Step::Add(step),
            hint: LoopHint::UnrollBy(4),
            body,
        });
    }

    /// Merges the partial results of the threads of each column, in their order; all get the result.
    fn merge_threads(&self, emitter: &mut Emitter, accumulator: &Accumulator, prefix: &str) {
        let lanes = self.lanes().unwrap_or(1);
        let width = u64::from(self.schedule.threads_x) * lanes;
        let names: Vec<String> = accumulator.parts.iter().map(|part| format!("{prefix}_{part}")).collect();
        for name in &names {
            let len = width * u64::from(self.schedule.threads_y);
            emitter.push(Stmt::Shared { name: name.clone(), ty: Type::Register(accumulator.dtype), len });
        }
        let slot = |thread: Expr, lane: Option<&Expr>| {
            let column = Expr::Builtin(Builtin::ThreadX).then(Mul, Expr::Int(lanes));
            let column = lane.map_or(column.clone(), |lane| column.then(Add, lane.clone()));
            thread.then(Mul, Expr::Int(width)).then(Add, column)
        };
        self.for_each_lane(emitter, |emitter, lane| {
            for (part, name) in names.iter().enumerate() {
                let target = Expr::element(name, slot(Expr::Builtin(Builtin::ThreadY), lane));
                emitter.push(set(target, accumulator.part(part, lane)));
            }
        });
        emitter.push(Stmt::Barrier);
        accumulator.reset(emitter);
        emitter.open(&[], false);
        self.for_each_lane(emitter, |emitter, lane| {
            accumulator
                .merge(emitter, lane, &|part| Expr::element(&names[part], slot(Expr::name("y"), lane)));
        });
        let body = emitter.close();
        let rows = Expr::Int(u64::from(self.schedule.threads_y));
        emitter.push(count_loop("y", Expr::Int(0), rows, LoopHint::Unroll, body));
    }

    /// Every block leaves its partial results; the last one of some columns merges all in order.
    fn merge_splits(&self, emitter: &mut Emitter, accumulators: &[Accumulator], inside: &Expr) {
        let lanes = self.lanes().unwrap_or(1);
        let splits = || Expr::Builtin(Builtin::GridY);
        let place = |split: Expr, lane: Option<&Expr>| {
            let column = mul_add(split, self.groups.clone(), Expr::name("group")).then(Mul, Expr::Int(lanes));
            lane.map_or(column.clone(), |lane| column.then(Add, lane.clone()))
        };
        emitter.open(&[], false);
        self.for_each_lane(emitter, |emitter, lane| {
            let at = place(Expr::Builtin(Builtin::BlockY), lane);
            accumulators.iter().for_each(|accumulator| accumulator.save(emitter, lane, &at));
        });
        let then = emitter.close();
        let first = Expr::Builtin(Builtin::ThreadY).then(Equal, Expr::Int(0));
        emitter.push(Stmt::If { condition: first.then(And, inside.clone()), then, otherwise: Vec::new() });
        emitter.push(Stmt::Arrive { index: Expr::Builtin(Builtin::BlockX), count: splits() });
        accumulators.iter().for_each(|accumulator| accumulator.reset(emitter));
        emitter.open(&[], false);
        self.for_each_lane(emitter, |emitter, lane| {
            let at = place(Expr::name("part"), lane);
            accumulators.iter().for_each(|accumulator| accumulator.load(emitter, lane, &at));
        });
        let body = emitter.close();
        emitter.push(Stmt::For {
            name: "part".into(),
            from: Expr::Builtin(Builtin::ThreadY),
            to: splits(),
            step: Step::Add(Expr::Int(u64::from(self.schedule.threads_y))),
            hint: LoopHint::None,
            body,
        });
        for accumulator in accumulators {
            self.merge_threads(emitter, accumulator, "final");
        }
    }
}

fn cpu(kernel: &Kernel, plan: &Plan, schedule: &ColumnSchedule) -> Nest {
    let width = u64::from(schedule.threads_x);
    let columns = launch_items(kernel, &plan.map);
    let split = schedule.splits > 1;
    let workspaces = match split {
        true => partial_workspaces(kernel, &reductions(plan), columns * u64::from(schedule.splits)),
        false => Vec::new(),
    };
    let writer = CpuColumns { kernel, plan, width };
    let Some((&inner, outer)) = plan.map.split_last() else {
        return Nest {
            functions: Vec::new(),
            parameters: parameters(kernel, &workspaces),
            workspaces,
            wide_index: false,
            kernel: kernel.clone(),
        };
    };
    let blocks = kernel.axis(inner).extent.div_ceil(width) * launch_items(kernel, outer);
    let inner_formula = items_formula(kernel, &[inner], width);
    let formula = match outer.is_empty() {
        true => inner_formula,
        false => format!("{} * {inner_formula}", items_formula(kernel, outer, 1)),
    };
    let launch =
        |items: u64, formula: String| Launch { items, formula, per_block: 1, splits: 1, block: [1, 1, 1] };
    let mut functions = Vec::new();
    if split {
        let mut emitter = Emitter::new(kernel, Language::C);
        writer.begin(&mut emitter, true);
        let from = Expr::name("part").then(Mul, Expr::Int(PART));
        let to = from.clone().then(Add, Expr::Int(PART)).then(Min, emitter.positions(&plan.axes));
        emitter.bind("end", INDEX, to);
        let to = Expr::name("end");
        let accumulators = writer.walk(&mut emitter, &plan.passes[0], from, to);
        writer.each_column(&mut emitter, |emitter, lane| {
            let at = writer.place(emitter, Expr::name("part"));
            accumulators.iter().for_each(|accumulator| accumulator.save(emitter, Some(lane), &at));
        });
        let items = blocks * u64::from(schedule.splits);
        let launch_parts = launch(items, format!("{formula} * parts"));
        functions.push(Function { name: kernel.name.clone(), body: emitter.finish(), launch: launch_parts });
        let mut emitter = Emitter::new(kernel, Language::C);
        writer.begin(&mut emitter, false);
        let parts = parts(&emitter, plan);
        let accumulators = declare(&mut emitter, kernel, &plan.passes[0], Some(width));
        emitter.open(&[], false);
        writer.each_column(&mut emitter, |emitter, lane| {
            let at = writer.place(emitter, Expr::name("part"));
            accumulators.iter().for_each(|accumulator| accumulator.load(emitter, Some(lane), &at));
        });
        let body = emitter.close();
        emitter.push(count_loop("part", Expr::Int(0), parts, LoopHint::None, body));
        writer.finish(&mut emitter, &plan.passes[0], &accumulators);
        writer.results(&mut emitter);
        let name = format!("{}_merge", kernel.name);
        functions.push(Function { name, body: emitter.finish(), launch: launch(blocks, formula) });
    } else {
        let mut emitter = Emitter::new(kernel, Language::C);
        writer.begin(&mut emitter, false);
        for pass in &plan.passes {
            let to = emitter.positions(&plan.axes);
            let accumulators = writer.walk(&mut emitter, pass, Expr::Int(0), to);
            writer.finish(&mut emitter, pass, &accumulators);
        }
        writer.results(&mut emitter);
        functions.push(Function {
            name: kernel.name.clone(),
            body: emitter.finish(),
            launch: launch(blocks, formula),
        });
    }
    let parameters = parameters(kernel, &workspaces);
    Nest { functions, parameters, workspaces, wide_index: needs_wide_index(kernel), kernel: kernel.clone() }
}

/// Elements of a part of a split column on the CPU.
const PART: u64 = 1 << 16;

fn parts(emitter: &Emitter, plan: &Plan) -> Expr {
    emitter.positions(&plan.axes).then(Add, Expr::Int(PART - 1)).then(Div, Expr::Int(PART))
}

struct CpuColumns<'a> {
    kernel: &'a Kernel,
    plan: &'a Plan,
    width: u64,
}

impl CpuColumns<'_> {
    fn inner(&self) -> AxisId {
        self.plan.map[self.plan.map.len() - 1]
    }

    fn outer(&self) -> &[AxisId] {
        &self.plan.map[..self.plan.map.len() - 1]
    }

    /// Binds the block's columns: `first`, `width`, the outer axes and, if split, the part.
    fn begin(&self, emitter: &mut Emitter, split: bool) {
        let mut block = Expr::Builtin(Builtin::BlockX);
        if split {
            let parts = parts(emitter, self.plan);
            emitter.bind("parts", INDEX, parts);
            emitter.bind("part", INDEX, block.clone().then(Rem, Expr::name("parts")));
            block = block.then(Div, Expr::name("parts"));
        }
        let width = Expr::Int(self.width);
        let extent = emitter.extent(self.inner());
        if !self.outer().is_empty() {
            let count = extent.clone().then(Add, Expr::Int(self.width - 1)).then(Div, width.clone());
            emitter.bind("chunks", INDEX, count);
            emitter.bind("row", INDEX, block.clone().then(Div, Expr::name("chunks")));
            emitter.unflatten("row", self.outer(), 1);
            block = block.then(Rem, Expr::name("chunks"));
        }
        emitter.bind("first", INDEX, block.then(Mul, width.clone()));
        emitter.bind("width", INDEX, width.then(Min, extent.then(Sub, Expr::name("first"))));
    }

    /// A loop over the block's columns that binds the innermost axis.
    fn each_column(&self, emitter: &mut Emitter, body: impl FnOnce(&mut Emitter, &Expr)) {
        let lane = Expr::name("l");
        emitter.open(&[self.inner()], false);
        let name = self.kernel.axis(self.inner()).name.clone();
        emitter.bind(name, INDEX, Expr::name("first").then(Add, lane.clone()));
        body(emitter, &lane);
        let body = emitter.close();
        emitter.push(count_loop("l", Expr::Int(0), Expr::name("width"), LoopHint::Simd, body));
    }

    fn walk(&self, emitter: &mut Emitter, pass: &Pass, from: Expr, to: Expr) -> Vec<Accumulator> {
        let accumulators = declare(emitter, self.kernel, pass, Some(self.width));
        let flat = match self.plan.axes.as_slice() {
            [axis] => self.kernel.axis(*axis).name.clone(),
            _ => "r".into(),
        };
        let welford = Accumulator::common_welford(&accumulators);
        let steps = welford.map(|accumulator| accumulator.declare_steps(emitter));
        emitter.open(&[], false);
        emitter.unflatten(&flat, &self.plan.axes, 1);
        let weight =
            welford.zip(steps.as_ref()).map(|(accumulator, steps)| accumulator.next_step(emitter, steps));
        self.each_column(emitter, |emitter, lane| {
            for (&id, accumulator) in pass.reductions.iter().zip(&accumulators) {
                if let ValueOp::Reduce { operand, .. } = self.kernel.value(id).op {
                    let value = emitter.value(operand);
                    accumulator.update(emitter, value, Some(lane), weight.as_ref());
                }
            }
            pass.stores.iter().for_each(|&store| emitter.store(&self.kernel.stores[store]));
        });
        let body = emitter.close();
        emitter.push(count_loop(&flat, from, to, LoopHint::None, body));
        if let Some(steps) = &steps {
            accumulators.iter().for_each(|accumulator| accumulator.spread_steps(emitter, steps));
        }
        accumulators
    }

    /// A column's place among all partial results.
    fn place(&self, emitter: &Emitter, part: Expr) -> Expr {
        let row = if self.outer().is_empty() { Expr::Int(0) } else { Expr::name("row") };
        let extent = emitter.extent(self.inner());
        let name = Expr::name(self.kernel.axis(self.inner()).name.clone());
        let column = row.then(Mul, extent).then(Add, name);
        part.then(Mul, emitter.positions(&self.plan.map)).then(Add, column)
    }

    fn finish(&self, emitter: &mut Emitter, pass: &Pass, accumulators: &[Accumulator]) {
        for (&id, accumulator) in pass.reductions.iter().zip(accumulators) {
            let lane = lane_of(self.kernel, id, Some(self.inner()));
            emitter.define(id, accumulator.result(Some(&lane)));
        }
    }

    fn results(&self, emitter: &mut Emitter) {
        if !self.plan.results.is_empty() {
            self.each_column(emitter, |emitter, _| {
                self.plan.results.iter().for_each(|&store| emitter.store(&self.kernel.stores[store]));
            });
        }
    }
}
