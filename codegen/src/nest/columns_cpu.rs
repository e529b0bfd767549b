//! Reductions of columns on the CPU: vector lanes hold neighbouring columns and walk down together.

use super::accumulate::{Accumulator, load, save};
use super::emitter::Emitter;
use super::pointwise::launch_items;
use super::stmt::Arithmetic::{Add, Div, Min, Mul, Rem, Sub};
use super::stmt::{Builtin, Expr, LoopHint};
use super::variable::Var;
use super::walk::{Pass, Plan, count_loop, items_formula, lane_of, partial_workspaces};
use super::{Function, INDEX, Nest, needs_wide_index, parameters};
use crate::Language;
use crate::index::AxisId;
use crate::ir::Kernel;
use crate::schedule::{COLUMN_SPLIT_LENGTH, ColumnSchedule, Launch};

pub(super) fn build(kernel: &Kernel, plan: &Plan, schedule: &ColumnSchedule) -> Nest {
    let width = u64::from(schedule.threads_x);
    let columns = launch_items(kernel, &plan.map);
    let split = schedule.splits > 1;
    let workspaces = match split {
        true => {
            partial_workspaces(kernel, Language::C, &plan.reductions(), columns * u64::from(schedule.splits))
        }
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
    let launch = |items: u64, formula: String| Launch { items, formula, ..Launch::default() };
    let mut functions = Vec::new();
    if split {
        let mut emitter = Emitter::new(kernel, Language::C);
        writer.begin(&mut emitter, true);
        let from = Expr::name("part").then(Mul, Expr::Int(COLUMN_SPLIT_LENGTH));
        let to =
            from.clone().then(Add, Expr::Int(COLUMN_SPLIT_LENGTH)).then(Min, emitter.positions(&plan.axes));
        emitter.bind("end", INDEX, to);
        let to = Expr::name("end");
        let accumulators = writer.walk(&mut emitter, &plan.passes[0], from, to);
        writer.each_column(&mut emitter, |emitter, lane| {
            let at = writer.place(emitter, Expr::name("part"));
            save(emitter, &accumulators, Some(lane), &at);
        });
        let items = blocks * u64::from(schedule.splits);
        let launch_parts = launch(items, format!("{formula} * parts"));
        functions.push(Function { name: kernel.name.clone(), body: emitter.finish(), launch: launch_parts });
        let mut emitter = Emitter::new(kernel, Language::C);
        writer.begin(&mut emitter, false);
        let parts = plan.parts(&emitter, COLUMN_SPLIT_LENGTH);
        let accumulators = plan.passes[0].declare(&mut emitter, kernel, Some(width));
        emitter.open(&[], false);
        writer.each_column(&mut emitter, |emitter, lane| {
            let at = writer.place(emitter, Expr::name("part"));
            load(emitter, &accumulators, Some(lane), &at);
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
            let parts = self.plan.parts(emitter, COLUMN_SPLIT_LENGTH);
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
        let lane = Expr::name(Var::Lane);
        emitter.open(&[self.inner()], false);
        emitter.bind(self.inner(), INDEX, Expr::name("first").then(Add, lane.clone()));
        body(emitter, &lane);
        let body = emitter.close();
        emitter.push(count_loop(Var::Lane, Expr::Int(0), Expr::name("width"), LoopHint::Simd, body));
    }

    fn walk(&self, emitter: &mut Emitter, pass: &Pass, from: Expr, to: Expr) -> Vec<Accumulator> {
        let accumulators = pass.declare(emitter, self.kernel, Some(self.width));
        let flat = self.plan.walk_name();
        let welford = Accumulator::common_welford(&accumulators);
        let steps = welford.map(|accumulator| accumulator.declare_steps(emitter));
        emitter.open(&[], false);
        emitter.unflatten(flat, &self.plan.axes, 1);
        let weight =
            welford.zip(steps.as_ref()).map(|(accumulator, steps)| accumulator.next_step(emitter, steps));
        self.each_column(emitter, |emitter, lane| {
            for (&id, accumulator) in pass.reductions.iter().zip(&accumulators) {
                accumulator.take(emitter, id, Some(lane), weight.as_ref());
            }
            pass.stores.iter().for_each(|&store| emitter.store(&self.kernel.stores[store]));
        });
        let body = emitter.close();
        emitter.push(count_loop(flat, from, to, LoopHint::None, body));
        if let Some(steps) = &steps {
            accumulators.iter().for_each(|accumulator| accumulator.spread_steps(emitter, steps));
        }
        accumulators
    }

    /// A column's place among all partial results.
    fn place(&self, emitter: &Emitter, part: Expr) -> Expr {
        let row = if self.outer().is_empty() { Expr::Int(0) } else { Expr::name("row") };
        let extent = emitter.extent(self.inner());
        let name = Expr::name(self.inner());
        let column = row.then(Mul, extent).then(Add, name);
        part.then(Mul, emitter.positions(&self.plan.map)).then(Add, column)
    }

    fn finish(&self, emitter: &mut Emitter, pass: &Pass, accumulators: &[Accumulator]) {
        for accumulator in accumulators.iter().filter(|accumulator| accumulator.settles()) {
            self.each_column(emitter, |emitter, lane| accumulator.settle(emitter, Some(lane)));
        }
        pass.define(emitter, accumulators, |id| Some(lane_of(self.kernel, id, Some(self.inner()))));
    }

    fn results(&self, emitter: &mut Emitter) {
        if !self.plan.results.is_empty() {
            self.each_column(emitter, |emitter, _| {
                self.plan.results.iter().for_each(|&store| emitter.store(&self.kernel.stores[store]));
            });
        }
    }
}
