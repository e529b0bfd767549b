//! Attention on CUDA: a block goes along its rows once, and never stores them.
//!
//! Some elements at a time, products are added up in registers as in any contraction. Each row's greatest element so far
//! makes weights of them, in shared memory or, of matrices, where each thread has them, and these are multiplied with the other
//! factor. Where a greater element comes, what has been added up before is scaled to it. At the end the sums are divided by the sum
//! of the weights. Where shared memory has room for all that some elements need, twice, what the next ones need is on its way while
//! these are made and multiplied, and the rows' own factor stays.

mod masked;

use super::accumulate::{mul_add, set};
use super::contraction_cpu::ceil;
use super::contraction_cuda::plan::{Factor, Plan};
use super::contraction_cuda::{Filled, Tile, Vars, Writer};
use super::emitter::Emitter;
use super::loops::{Loop, counting, halving, stepping};
use super::passes::launch_of_parts;
use super::pointwise::split_lanes;
use super::row_statistics::Extent;
use super::split::Arrivals;
use super::stmt::Arithmetic::{Add, Div, Less, Min, Mul, Rem, Sub, Xor};
use super::stmt::{Builtin, Expr, LoopHint, ProductStep, Stmt, Type};
use super::variable::Var;
use super::{Function, INDEX, Nest};
use crate::ir::Kernel;
use crate::schedule::{Contraction, Launch, Nothing, RowContraction, RowProductSchedule, Softmax, Unit};
use crate::{BinaryOp, DType, Language, Refusal, Scalar, UnaryOp};

/// The numbers' type.
const F32: Type = Type::Register(DType::F32);

pub(super) fn build(
    kernel: &Kernel,
    of: &RowContraction,
    schedule: &RowProductSchedule,
) -> Result<Nest, Refusal> {
    let misfit = Refusal::Misfit("no softmax of products");
    let (Some(softmax), [scores]) = (of.softmax(kernel), of.scores.as_slice()) else { return Err(misfit) };
    let tiles = [schedule.of_elements(), schedule.of_results()];
    let plan = |contraction, schedule| Plan::new(kernel, contraction, schedule);
    let plans = [plan(scores, &tiles[0]), plan(&of.contraction, &tiles[1])];
    let factors = plans.each_ref().map(Plan::factors);
    let of_results = plans.each_ref().map(Plan::of_results);
    let mut emitter = Emitter::new(kernel, Language::Cuda);
    let v = Vars::new(&mut emitter);
    // Those of the elements, of the next ones and of the results are there at the same time.
    let of_elements = Vars { column0: emitter.index("element0"), ..v };
    let of_next = Vars { column0: emitter.index("next0"), ..v };
    let writer = |number: usize, v| Writer {
        v,
        layout: plans[number].layout(),
        plan: &plans[number],
        of_results: &of_results[number],
        slots: plans[number].slots(&factors[number]),
        // Its terms are not split.
        arrivals: Arrivals::of(0, Expr::Int(0)),
    };
    let rows = Rows {
        kernel,
        of,
        schedule,
        softmax,
        elements: writer(0, of_elements),
        next: writer(0, of_next),
        results: writer(1, v),
        part: None,
    };
    rows.body(&mut emitter, &factors);
    let body = emitter.finish()?;
    let Contraction { batch, rows, column, .. } = &of.contraction;
    let launch = Launch {
        block: [schedule.threads(), 1, 1],
        at_once: schedule.at_once(),
        ..launch_of_parts(kernel, &[(rows, schedule.rows.into()), (batch, 1)])
    };
    // Has a name for the lanes of whatever is split.
    let named = split_lanes(kernel, Some(*column), 2);
    let mut function = Function::of(kernel, body, launch);
    match schedule.unit.is_group() {
        true => function.share_lines_at_launch(),
        false => function.share_at_launch(),
    }
    Ok(Nest::new(named, vec![function], Vec::new()))
}

/// Matrices of a batch whose blocks of the same rows follow each other, where a mask makes rows differ in length: enough to fill a GPU, few
/// enough for their keys and values to stay in its second-level cache.
const INTERLEAVED: u64 = 64;

struct Rows<'k> {
    kernel: &'k Kernel,
    of: &'k RowContraction,
    schedule: &'k RowProductSchedule,
    softmax: Softmax,
    /// Adds up the rows' elements.
    elements: Writer<'k>,
    /// The same of those that come next.
    next: Writer<'k>,
    /// Adds up the results.
    results: Writer<'k>,
    /// Which elements of the rows count, from a multiple of those at a time, if not all.
    part: Option<Extent>,
}

/// What a thread knows of its rows.
#[derive(Clone, Copy)]
struct Known {
    /// The elements, and then the weights.
    elements: Var,
    /// The greatest elements so far, and the sums of this thread's weights.
    greatest: Var,
    totals: Var,
    /// The results' sums.
    sums: Var,
}

fn number(value: f64) -> Expr {
    Expr::Literal(Scalar::from_f64(DType::F32, value))
}

fn binary(op: BinaryOp, a: Expr, b: Expr) -> Expr {
    Expr::Binary(op, DType::F32, Box::new(a), Box::new(b))
}

/// What a neighbour of a group of so many lanes has.
fn shuffled(value: Expr, step: Var, width: u32) -> Expr {
    Expr::ShuffleXor { value: Box::new(value), mask: Box::new(Expr::Name(step)), width }
}

fn exp(a: Expr) -> Expr {
    Expr::Unary(UnaryOp::Exp, DType::F32, Box::new(a))
}

impl<'k> Rows<'k> {
    fn body(mut self, emitter: &mut Emitter<'k>, factors: &'k [Vec<Factor>; 2]) {
        self.begin(emitter);
        self.part = self.kept(emitter, &factors[1]);
        let steps = self.filled_steps(factors);
        let filled = |number: usize, factor: &Factor| match steps {
            Some(_) if number == 0 && factor.is_left => Filled::Before,
            Some(steps) => Filled::Ahead { steps: steps[number] },
            None => Filled::InTurns,
        };
        let of_elements: Vec<Tile> = (factors[0].iter())
            .map(|factor| self.elements.declare(emitter, factor, filled(0, factor)))
            .collect();
        let mut of_results: Vec<Tile> = Vec::new();
        let mut weights = Vec::new();
        let dtype = self.results.plan.dtype();
        for factor in &factors[1] {
            if factor.is_left {
                let len = factor.width * u64::from(self.schedule.elements);
                for &name in self.parts_of_weights() {
                    let name = emitter.fresh(name);
                    let own = match self.schedule.unit {
                        Unit::Thread => emitter.share(name, Type::Memory(dtype), len),
                        _ => emitter.array(name, Type::Memory(dtype), self.elements.sums_of_thread()),
                    };
                    weights.push(own);
                    of_results.push(Tile { factor, shared: own, next: Vec::new(), filled: Filled::Computed });
                }
            } else {
                of_results.push(self.results.declare(emitter, factor, filled(1, factor)));
            }
        }
        let own = self.own_rows();
        let known = Known {
            elements: emitter.array("elements", F32, self.elements.sums_of_thread()),
            greatest: emitter.array("greatest", F32, own),
            totals: emitter.array("totals", F32, own),
            sums: self.results.declare_sums(emitter, None),
        };
        let i = || Expr::Name(self.elements.v.i);
        let first = vec![
            set(Expr::element(known.greatest, i()), number(f64::NEG_INFINITY)),
            set(Expr::element(known.totals, i()), number(0.0)),
        ];
        self.each_row(emitter, first);

        let tiles = [&of_elements[..], &of_results[..]];
        match steps {
            Some(steps) => self.sweep_filled(emitter, tiles, steps, known, &weights),
            None => self.sweep(emitter, tiles, known, &weights),
        }
        self.divide(emitter, known);
        self.results.results(emitter, &[known.sums]);
    }

    /// Steps of the elements' products and of the results', if all tiles of either are copied and there is a slot for each.
    fn filled_steps(&self, factors: &[Vec<Factor>; 2]) -> Option<[u64; 2]> {
        let of_elements =
            self.kernel.axis(self.elements.plan.depth).extent.div_ceil(self.elements.plan.deep());
        let of_results = u64::from(self.schedule.elements) / self.results.plan.deep();
        let [tiles, other_tiles] = factors;
        let are_copied = tiles.iter().all(|factor| factor.is_copied)
            && other_tiles.iter().all(|factor| factor.is_left || factor.is_copied);
        let fits = of_elements <= self.elements.slots && of_results <= self.results.slots;
        (are_copied && fits).then_some([of_elements, of_results])
    }

    /// What a weight is the sum of. Small matrices have numbers of 16 bits: a weight is the nearest one and, where a result has
    /// more bits than that, the rest.
    fn parts_of_weights(&self) -> &'static [&'static str] {
        let is_wide =
            self.kernel.stores.iter().any(|store| self.kernel.buffers[store.buffer.index()].dtype.size() > 2);
        let is_of_matrices = self.schedule.unit != Unit::Thread;
        if is_wide && is_of_matrices { &["weights", "rests"] } else { &["weights"] }
    }

    /// Goes along the rows, some elements at a time.
    fn sweep(&self, emitter: &mut Emitter<'k>, tiles: [&[Tile<'k>]; 2], known: Known, weights: &[Var]) {
        let [of_elements, of_results] = tiles;
        let column0 = self.elements.v.column0;
        let along = self.along();
        emitter.repeat_pinned(along, |emitter| {
            self.elements.clear(emitter, known.elements, None);
            self.add_up(emitter, &self.elements, of_elements, known.elements, Expr::Int(0));
            self.weigh(emitter, known);
            self.store_weights(emitter, known, weights);
            let first = column0.then(Div, self.results.plan.deep());
            self.add_up(emitter, &self.results, of_results, known.sums, first);
        });
    }

    /// The same, where shared memory holds what all steps need.
    fn sweep_filled(
        &self,
        emitter: &mut Emitter<'k>,
        tiles: [&[Tile<'k>]; 2],
        [of_elements, of_results]: [u64; 2],
        known: Known,
        weights: &[Var],
    ) {
        let (column0, next0) = (self.elements.v.column0, self.next.v.column0);
        let zero = Expr::Int(0);
        let rows: Vec<&Tile> = tiles[0].iter().filter(|tile| tile.factor.is_left).collect();
        let lines: Vec<&Tile> = tiles[0].iter().filter(|tile| !tile.factor.is_left).collect();
        let others: Vec<&Tile> = tiles[1].iter().filter(|tile| tile.filled != Filled::Computed).collect();
        let [from, to] = Extent::of(self.part, Expr::Int(self.length()));
        let v = &self.elements.v;
        let together = u64::from(self.schedule.elements);
        let fill_next = |emitter: &mut Emitter<'k>| {
            let is_any = Expr::Name(next0).then(Less, to.clone());
            emitter.under(Some(is_any), |emitter| {
                self.next.fill(emitter, &lines, of_elements, &zero);
                let first = next0.then(Div, self.results.plan.deep());
                self.results.fill(emitter, &others, of_results, &first);
            });
            emitter.push(Stmt::CommitCopies);
        };
        self.elements.fill(emitter, &rows, of_elements, &zero);
        emitter.open_pinned();
        emitter.bind(next0, INDEX, from);
        emitter.bind(v.other, INDEX, next0.then(Div, together).then(Rem, 2));
        fill_next(emitter);
        let body = emitter.close();
        emitter.push(Stmt::Block(body));
        let is_group = self.schedule.unit.is_group();
        emitter.repeat_pinned(self.along(), |emitter| {
            self.elements.clear(emitter, known.elements, None);
            emitter.push(Stmt::AwaitCopies { but: 0 });
            if is_group {
                emitter.push(Stmt::Products(ProductStep::Publish));
            }
            // All warps have read what the next elements' tiles take the place of.
            emitter.push(Stmt::Barrier);
            let count = emitter.bind("count", INDEX, column0.then(Div, together));
            emitter.bind(v.slot, INDEX, count.then(Rem, 2));
            emitter.bind(v.other, INDEX, count.then(Add, 1).then(Rem, 2));
            self.elements.add_filled(emitter, tiles[0], &[known.elements], of_elements);
            emitter.bind(next0, INDEX, column0.then(Add, together));
            fill_next(emitter);
            if is_group {
                emitter.push(Stmt::Products(ProductStep::Await(0)));
            }
            self.weigh(emitter, known);
            self.store_weights(emitter, known, weights);
            self.results.add_filled(emitter, tiles[1], &[known.sums], of_results);
            if is_group {
                emitter.push(Stmt::Products(ProductStep::Await(0)));
            }
        });
    }

    /// The loop over the rows' elements.
    fn along(&self) -> Loop {
        let [from, to] = Extent::of(self.part, Expr::Int(self.length()));
        let together = Expr::Int(self.schedule.elements.into());
        stepping(self.elements.v.column0, (from, to), together, LoopHint::None)
    }

    /// Rows of a thread.
    fn own_rows(&self) -> u64 {
        self.elements.layout.rows[1]
    }

    /// A loop over the thread's elements or results of a row; `n` and `j` say which.
    fn each_own(&self, emitter: &mut Emitter<'k>, of: &Writer<'k>, body: Vec<Stmt>) {
        let (v, layout) = (&self.elements.v, &of.layout);
        let body = vec![counting(v.j, 0, layout.lanes, LoopHint::Unroll).of(body)];
        of.repeated(emitter, v.n, layout.columns, body);
    }

    /// Where the element or result at hand is among the thread's.
    fn own(&self, of: &Writer<'k>) -> Expr {
        let [_, of_row, of_group] = of.layout.sum_steps.map(Expr::Int);
        let row = Expr::Name(of.v.i).then(Mul, of_row);
        row.then(Add, of.column_group().then(Mul, of_group)).then(Add, of.v.j)
    }

    fn length(&self) -> u64 {
        self.kernel.axis(self.of.along).extent
    }

    fn each_row(&self, emitter: &mut Emitter<'k>, body: Vec<Stmt>) {
        let rows = Expr::Int(self.own_rows());
        emitter.push(counting(self.elements.v.i, 0, rows, LoopHint::Unroll).of(body));
    }

    /// Binds the block's rows, the batch's axes, and the thread's place.
    fn begin(&self, emitter: &mut Emitter<'k>) {
        let Contraction { batch, rows, .. } = &self.of.contraction;
        let (v, block, of) =
            (&self.elements.v, Expr::Builtin(Builtin::BlockX), Expr::Int(self.schedule.rows.into()));
        let chunks = ceil(emitter.positions(rows), of.clone());
        let is_masked = self.of.masked(self.kernel).is_some();
        let [own, of_batch] = match (batch.is_empty(), is_masked) {
            (true, _) => [block, Expr::Int(0)],
            (false, false) => [block.clone().then(Rem, chunks.clone()), block.then(Div, chunks.clone())],
            (false, true) => {
                let most = Expr::Int(INTERLEAVED);
                let blocks = most.clone().then(Mul, chunks.clone());
                let first = block.clone().then(Div, blocks.clone()).then(Mul, most.clone());
                let first = Expr::Name(emitter.bind("first_matrix", INDEX, first));
                let rest = emitter.positions(batch).then(Sub, first.clone());
                let count = Expr::Name(emitter.bind("interleaved", INDEX, most.then(Min, rest)));
                let at = Expr::Name(emitter.bind("block_of_these", INDEX, block.then(Rem, blocks)));
                [at.clone().then(Div, count.clone()), first.then(Add, at.then(Rem, count))]
            }
        };
        // A mask leaves the last rows the most elements: their blocks begin first, of many matrices.
        let own = if is_masked { chunks.then(Sub, 1).then(Sub, own) } else { own };
        emitter.bind(v.row0, INDEX, own.then(Mul, of));
        if !batch.is_empty() {
            let rest = emitter.bind("block1", INDEX, of_batch);
            emitter.unflatten(rest, batch, 1);
        }
        self.elements.place_thread(emitter);
        emitter.bind(self.results.v.column0, INDEX, Expr::Int(0));
    }

    fn halving(&self, emitter: &mut Emitter<'k>, var: Var, from: u64, body: Vec<Stmt>) {
        emitter.push(halving(var, from, LoopHint::Unroll).of(body));
    }

    /// Adds up products: of all terms of the elements, or of the elements at hand.
    fn add_up(
        &self,
        emitter: &mut Emitter<'k>,
        writer: &Writer<'k>,
        tiles: &[Tile<'k>],
        sums: Var,
        first: Expr,
    ) {
        let terms = match tiles.iter().any(|tile| tile.filled == Filled::Computed) {
            true => u64::from(self.schedule.elements),
            false => self.kernel.axis(writer.plan.depth).extent,
        };
        emitter.open_pinned();
        emitter.bind(writer.v.steps, INDEX, Expr::Int(terms.div_ceil(writer.plan.deep())));
        let first = emitter.bind(writer.v.first_step, INDEX, first);
        writer.add_up(emitter, tiles, &[sums], &Expr::Name(first));
        let body = emitter.close();
        emitter.push(Stmt::Block(body));
    }

    /// Binds the row of the thread's that is at hand: beyond the last row, that one again.
    fn bind_row(&self, emitter: &mut Emitter<'k>) {
        let (v, rows, layout) = (&self.elements.v, &self.of.contraction.rows, &self.elements.layout);
        let own = Expr::Name(v.i).then(Mul, layout.row_steps[1]);
        let row = mul_add(v.y, layout.row_scale, own);
        let row = Expr::Name(v.row0).then(Add, row);
        let last = emitter.positions(rows).then(Sub, 1);
        emitter.bind(v.row, INDEX, row.then(Min, last));
        emitter.unflatten(v.row, rows, 1);
    }

    /// Makes weights of the elements, and scales what has been added up before.
    fn weigh(&self, emitter: &mut Emitter<'k>, known: Known) {
        let v = &self.elements.v;
        let i = Expr::Name(v.i);
        let (greatest, total) = (Expr::element(known.greatest, i.clone()), Expr::element(known.totals, i));
        let element = Expr::element(known.elements, self.own(&self.elements));
        emitter.open(&[], false);
        self.bind_row(emitter);
        let most = emitter.variable("most", F32, greatest.clone());
        emitter.open(&[], true);
        let is_element = self.bind_element(emitter);
        emitter.define(self.of.scores[0].products[0].sum, element.clone());
        let value = emitter.value(self.softmax.operand);
        let value = emitter.named(value, DType::F32);
        let value = match is_element {
            Some(condition) => {
                Expr::Select(Box::new(condition), Box::new(value), Box::new(number(f64::NEG_INFINITY)))
            }
            None => value,
        };
        let value = emitter.named(value, DType::F32);
        emitter.push(set(element.clone(), value.clone()));
        emitter.push(set(most, binary(BinaryOp::Maximum, Expr::Name(most), value)));
        let body = emitter.close();
        self.each_own(emitter, &self.elements, body);

        let width = self.schedule.threads_of_row();
        let step = emitter.index("step");
        emitter.open(&[], false);
        let other = shuffled(Expr::Name(most), step, width);
        let other = emitter.named(other, DType::F32);
        emitter.push(set(most, binary(BinaryOp::Maximum, Expr::Name(most), other)));
        let body = emitter.close();
        self.halving(emitter, step, u64::from(width / 2), body);
        // Where nothing has been greater than negative infinity, weights are zero and no NaN.
        let is_none = binary(BinaryOp::Eq, Expr::Name(most), number(f64::NEG_INFINITY));
        let base = Expr::Select(Box::new(is_none), Box::new(number(0.0)), Box::new(Expr::Name(most)));
        let base = Expr::Name(emitter.bind("base", F32, base));
        let scale = exp(binary(BinaryOp::Sub, greatest.clone(), base.clone()));
        let scale = Expr::Name(emitter.bind("scale", F32, scale));
        emitter.push(set(greatest, most));
        emitter.push(set(total.clone(), binary(BinaryOp::Mul, total.clone(), scale.clone())));
        emitter.open(&[], true);
        self.bind_element(emitter);
        let distance = binary(BinaryOp::Sub, element.clone(), base);
        // One that is rounded to 16 bits has no use for all bits of an exponential.
        let is_brief = self.schedule.unit != Unit::Thread && self.parts_of_weights().len() == 1;
        let weight = if is_brief { Expr::BriefExp(Box::new(distance)) } else { exp(distance) };
        let weight = emitter.named(weight, DType::F32);
        emitter.push(set(total.clone(), binary(BinaryOp::Add, total, weight.clone())));
        emitter.define(self.softmax.quotient, weight);
        if let Some(Nothing { choice, weights, .. }) = self.softmax.nothing {
            let weights = emitter.value(weights);
            emitter.define(choice, weights);
        }
        let value = emitter.value(self.of.contraction.products[0].left);
        emitter.push(set(element, value));
        let body = emitter.close();
        self.each_own(emitter, &self.elements, body);
        let sum = Expr::element(known.sums, self.own(&self.results));
        let body = vec![set(sum.clone(), binary(BinaryOp::Mul, sum, scale))];
        self.each_own(emitter, &self.results, body);
        let body = emitter.close();
        self.each_row(emitter, body);
    }

    /// Binds the element of the row that is at hand: beyond the last one, that one again. Gives whether it is one, where it
    /// may be none.
    fn bind_element(&self, emitter: &mut Emitter<'k>) -> Option<Expr> {
        let (v, layout) = (&self.elements.v, &self.elements.layout);
        let at = mul_add(v.x, layout.lanes, v.j);
        let group = self.elements.column_group().then(Mul, layout.column_step);
        let at = if layout.columns == 1 { at } else { group.then(Add, at) };
        let at = Expr::Name(v.column0).then(Add, at);
        let at = Expr::Name(emitter.bind(v.position, INDEX, at));
        let last = Expr::Int(self.length().saturating_sub(1));
        let is_whole = self.length().is_multiple_of(self.schedule.elements.into());
        let bound = if is_whole { at.clone() } else { at.clone().then(Min, last) };
        emitter.bind(self.of.along, INDEX, bound);
        emitter.bind_axes(&[self.of.along]);
        (!is_whole).then(|| at.then(Less, self.length()))
    }

    /// Puts the weights to where they are multiplied, as numbers of the other factor's type.
    fn store_weights(&self, emitter: &mut Emitter<'k>, known: Known, weights: &[Var]) {
        let (v, layout) = (&self.elements.v, &self.elements.layout);
        let dtype = self.results.plan.dtype();
        let to_memory = |value: Expr| Expr::ToMemory(dtype, Box::new(value));
        let numbers = |to: &[Var], at: &Expr, weight: &Expr| {
            let mut body = vec![set(Expr::element(to[0], at.clone()), to_memory(weight.clone()))];
            if let Some(&rest) = to.get(1) {
                let near = Expr::FromMemory(dtype, Box::new(Expr::element(to[0], at.clone())));
                let rest_of = to_memory(binary(BinaryOp::Sub, weight.clone(), near));
                body.push(set(Expr::element(rest, at.clone()), rest_of));
            }
            body
        };
        if self.schedule.unit != Unit::Thread {
            // A thread's parts of matrices are in the order in which it has their sums.
            let body = numbers(weights, &Expr::Name(v.n), &Expr::element(known.elements, v.n));
            let all = Expr::Int(self.elements.sums_of_thread());
            return emitter.push(counting(v.n, 0, all, LoopHint::Unroll).of(body));
        }
        emitter.open(&[], false);
        let packed = emitter.fresh("packed");
        let width = self.own_rows();
        emitter.array(packed, Type::Memory(dtype), width);
        let weight = Expr::element(known.elements, self.own(&self.elements));
        // Those of the thread's rows go together for each element, as they are read.
        self.each_row(emitter, numbers(&[packed], &Expr::Name(v.i), &weight));
        let at = mul_add(v.x, layout.lanes, v.j);
        let index = self.results.weight(self.schedule.rows.into(), at);
        let (at, buffer) = (Expr::Int(0), weights[0]);
        emitter.push(Stmt::VectorStore { array: packed, at, buffer, index, dtype, width });
        let body = emitter.close();
        emitter.push(counting(v.j, 0, layout.lanes, LoopHint::Unroll).of(body));
    }

    /// Divides the sums by those of the weights. Of rows whose weights are nothing they are zero, if none is infinite.
    fn divide(&self, emitter: &mut Emitter<'k>, known: Known) {
        let v = &self.elements.v;
        let total = Expr::element(known.totals, v.i);
        emitter.open(&[], false);
        let step = emitter.index("step");
        let width = self.schedule.threads_of_row();
        let other = shuffled(total.clone(), step, width);
        let body = vec![set(total.clone(), binary(BinaryOp::Add, total.clone(), other))];
        self.halving(emitter, step, u64::from(width / 2), body);
        let sum = Expr::element(known.sums, self.own(&self.results));
        let quotient = binary(BinaryOp::Div, sum.clone(), total.clone());
        let result = match self.softmax.nothing {
            None => quotient,
            Some(Nothing { condition, holds, .. }) => {
                self.bind_row(emitter);
                emitter.define(self.softmax.greatest, Expr::element(known.greatest, v.i));
                emitter.define(self.softmax.total, total);
                let condition = emitter.value(condition);
                let condition = emitter.named(condition, DType::Bool);
                let zero = binary(BinaryOp::Mul, sum.clone(), number(0.0));
                let (a, b) = if holds { (quotient, zero) } else { (zero, quotient) };
                Expr::Select(Box::new(condition), Box::new(a), Box::new(b))
            }
        };
        let body = vec![set(sum, result)];
        self.each_own(emitter, &self.results, body);
        let body = emitter.close();
        self.each_row(emitter, body);
    }
}

impl Writer<'_> {
    /// Where the weights of the thread's rows are for an element: eight neighbouring threads have theirs in different
    /// banks, as groups of rows change places.
    pub(super) fn weight(&self, rows: u64, element: Expr) -> Expr {
        let group = self.plan.group();
        let turn = element.clone().then(Div, group).then(Rem, 8);
        let place = Expr::Arithmetic(Xor, Box::new(Expr::Name(self.v.y)), Box::new(turn));
        mul_add(element, rows, place.then(Mul, group))
    }
}
