//! Contractions on CUDA: tiles of both factors go through shared memory, and each thread keeps its part of the sums in
//! registers.
//!
//! While the products of one tile of terms are added up, the next tile is on its way: what is loaded waits in registers, and
//! whatever the factors are computed from it is computed when it is put into the other half of the shared memory. What
//! follows from the sums is computed from them where they are. Each sum has its terms in order; where the terms are split
//! among blocks, the last block adds up what the others have left, in order.

use super::accumulate::{mul_add, set};
use super::contraction_cpu::{ceil, consecutive_along};
use super::emitter::Emitter;
use super::pointwise::{lanes_and_stores, launch_items, split_lanes, unrolled_lanes};
use super::stmt::Arithmetic::{Add, Div, Equal, Less, Min, Mul, Rem, Sub, Xor};
use super::stmt::{Builtin, Expr, LoopHint, MatrixProduct, Stmt, Type};
use super::variable::Var;
use super::walk::{arrivals, count_loop, items_formula};
use super::{Function, INDEX, Nest, Parameter, Workspace, needs_wide_index, parameters};
use crate::index::{AxisId, IndexExpr};
use crate::ir::{Kernel, Store, ValueId, ValueOp};
use crate::schedule::{Contraction, Instruction, Launch, ProductSchedule, with_one_depth};
use crate::{BinaryOp, DType, Language, Refusal, Scalar};

/// Bytes of the widest access.
const ACCESS_BYTES: u64 = 16;

/// Tiles of each factor that are in shared memory: one is read while the next one is written.
const SLOTS: u64 = 2;

/// Threads of a warp.
const WARP: u64 = 32;

/// Chunks of 16 bytes that all banks of shared memory hold: 32 of 4 bytes.
const BANK_CHUNKS: u64 = 8;

/// Registers of a multiprocessor, and those of a thread beside what it multiplies.
const REGISTERS: u32 = 1 << 16;
const OTHER_REGISTERS: u32 = 36;

/// Blocks that a multiprocessor has registers for: a few of them hide what each waits for.
fn at_once(contraction: &Contraction, schedule: &ProductSchedule) -> u32 {
    let words = |dtype: DType| (dtype.size() as u32).div_ceil(4);
    let (rows, columns) = (schedule.own_rows, schedule.own_columns);
    let sums = schedule.sums() * words(contraction.sum) * contraction.products.len() as u32;
    // What is read of the factors' tiles for one term, and half of it for the next one; of matrices a lane's part.
    let parts = match schedule.matrices {
        Some(_) => (rows + columns) / 4,
        None => (rows + columns) * words(contraction.dtype) * 3 / 2,
    };
    (REGISTERS / (schedule.threads() * (sums + parts + OTHER_REGISTERS))).clamp(1, 8)
}

pub(super) fn build(
    kernel: &Kernel,
    contraction: &Contraction,
    schedule: &ProductSchedule,
) -> Result<Nest, Refusal> {
    let (flat, depth) = with_one_depth(kernel, &contraction.depth);
    let columns = contraction.columns();
    let each = [
        (&contraction.rows[..], u64::from(schedule.rows)),
        (&columns[..], u64::from(schedule.columns)),
        (&contraction.batch[..], 1),
    ];
    let each: Vec<_> = each.into_iter().filter(|(axes, _)| !axes.is_empty()).collect();
    let blocks = each.iter().map(|(axes, of)| launch_items(kernel, axes).div_ceil(*of)).product();
    let formula: Vec<String> = each.iter().map(|(axes, of)| items_formula(kernel, axes, *of)).collect();
    let launch = Launch {
        items: blocks,
        formula: formula.join(" * "),
        splits: schedule.splits,
        block: [schedule.threads(), 1, 1],
        at_once: at_once(contraction, schedule),
        ..Launch::default()
    };
    let workspaces = match schedule.splits {
        1 => Vec::new(),
        splits => partial_sums(contraction, schedule, blocks * u64::from(splits), blocks),
    };
    let plan = Plan { flat: &flat, contraction, columns, depth, schedule };
    let factors = plan.factors();
    let of_results = plan.of_results();
    let mut emitter = Emitter::new(&flat, Language::Cuda);
    let v = Vars::new(&mut emitter);
    let layout = plan.layout();
    let writer = Writer { v, plan: &plan, layout, of_results: &of_results, arrivals: arrivals(&workspaces) };
    writer.body(&mut emitter, &factors);
    let body = emitter.finish()?;
    Ok(Nest {
        functions: vec![Function { name: kernel.name.clone(), body, launch }],
        parameters: parameters(&flat, &workspaces),
        workspaces,
        wide_index: needs_wide_index(kernel),
        // Has a name for the lanes of whatever is split.
        kernel: split_lanes(&flat, Some(contraction.column), 2),
    })
}

/// Memory for the sums of each part, and counters of those that are done.
fn partial_sums(
    contraction: &Contraction,
    schedule: &ProductSchedule,
    parts: u64,
    blocks: u64,
) -> Vec<Workspace> {
    let elements = parts * u64::from(schedule.rows) * u64::from(schedule.columns);
    let of = |number| Workspace {
        name: format!("partial_sums{number}"),
        dtype: contraction.sum,
        elements,
        zeroed: false,
    };
    let mut workspaces: Vec<Workspace> = (0..contraction.products.len()).map(of).collect();
    workspaces.push(Workspace { name: "arrivals".into(), dtype: DType::I32, elements: blocks, zeroed: true });
    workspaces
}

/// What is known before anything is emitted.
struct Plan<'a> {
    /// The kernel with one summed axis.
    flat: &'a Kernel,
    contraction: &'a Contraction,
    columns: Vec<AxisId>,
    depth: AxisId,
    schedule: &'a ProductSchedule,
}

/// A factor whose tiles go through shared memory.
struct Factor {
    value: ValueId,
    /// Whether it varies over the rows; else over the columns.
    is_left: bool,
    /// Its own axes, over which the columns or rows of its tile go.
    axes: Vec<AxisId>,
    /// Columns or rows of a tile.
    width: u64,
    /// Of those, how many are a thread's.
    of_thread: u64,
    /// Whether a thread's vector goes along the terms.
    is_along: bool,
    /// Elements that a thread reads at once.
    vector: u64,
    /// Turns of the threads to read a tile.
    turns: u64,
    /// The kernel with lanes along that vector.
    kernel: Kernel,
    /// Its loads that are on their way while the tile before is multiplied.
    early: Vec<ValueId>,
}

/// The arrays of a factor.
struct Tile<'k> {
    factor: &'k Factor,
    /// Both tiles in shared memory, one after the other.
    shared: Var,
    /// What has been loaded of the next one.
    next: Vec<Var>,
}

impl Plan<'_> {
    fn deep(&self) -> u64 {
        self.schedule.depth.into()
    }

    fn threads(&self) -> u64 {
        self.schedule.threads().into()
    }

    /// What is in shared memory.
    fn dtype(&self) -> DType {
        self.schedule.matrices.unwrap_or(self.contraction.dtype)
    }

    /// Elements of the widest access to shared memory.
    fn group(&self) -> u64 {
        ACCESS_BYTES / self.dtype().size() as u64
    }

    /// Whose sums are where.
    fn layout(&self) -> Layout {
        let schedule = self.schedule;
        let (rows, columns) = (u64::from(schedule.own_rows), u64::from(schedule.own_columns));
        let instruction = schedule.matrices.and_then(Instruction::for_factors);
        match instruction {
            // A lane has two neighbours in each of two rows of a small matrix.
            Some(Instruction { rows: of_rows, columns: of_columns, .. }) => {
                let (of_rows, of_columns) = (u64::from(of_rows), u64::from(of_columns));
                let across = columns / of_columns;
                Layout {
                    rows: [rows / of_rows, 2],
                    row_steps: [of_rows, of_rows / 2],
                    row_scale: 1,
                    columns: across,
                    column_step: of_columns,
                    lanes: 2,
                    sum_steps: [across * 4, 2, 4],
                }
            }
            None => {
                let group = self.group();
                Layout {
                    rows: [rows / group, group],
                    row_steps: [u64::from(schedule.rows) / rows * group, 1],
                    row_scale: group,
                    columns: columns / group,
                    column_step: u64::from(schedule.columns) / columns * group,
                    lanes: group,
                    sum_steps: [group * columns, columns, group],
                }
            }
        }
    }

    /// The lanes of whatever is split.
    fn lane(&self) -> AxisId {
        AxisId(self.flat.axes.len() as u32)
    }

    /// The kernel with lanes along a vector of neighbouring results, if every result is in a whole one.
    fn of_results(&self) -> (Kernel, u64) {
        let column = self.flat.axis(self.contraction.column);
        let lanes = self.layout().lanes;
        let whole = !column.is_argument && column.extent.is_multiple_of(lanes);
        let vector = if whole { lanes } else { 1 };
        (split_lanes(self.flat, Some(self.contraction.column), vector as u32), vector)
    }

    /// What is in shared memory: each factor once, however many products it is in.
    fn factors(&self) -> Vec<Factor> {
        let schedule = self.schedule;
        let mut factors: Vec<Factor> = Vec::new();
        for product in &self.contraction.products {
            let left = (product.left, true, &self.contraction.rows, schedule.rows, schedule.own_rows);
            let right = (product.right, false, &self.columns, schedule.columns, schedule.own_columns);
            for (value, is_left, axes, width, of_thread) in [left, right] {
                if !factors.iter().any(|factor| (factor.value, factor.is_left) == (value, is_left)) {
                    factors.push(self.factor(value, is_left, axes, [width, of_thread].map(u64::from)));
                }
            }
        }
        factors
    }

    fn factor(&self, value: ValueId, is_left: bool, axes: &[AxisId], [width, of_thread]: [u64; 2]) -> Factor {
        let own = axes.last().copied().unwrap_or(self.depth);
        let is_along = consecutive_along(self.flat, value, self.depth, own);
        let axis = if is_along { self.depth } else { own };
        let each = width * self.deep() / self.threads();
        let mut vector = each.min(self.group());
        while vector > 1 && !self.is_vector(value, axis, vector) {
            vector /= 2;
        }
        let kernel = split_lanes(self.flat, Some(axis), vector as u32);
        let is_early = |id: &ValueId| match &kernel.value(*id).op {
            ValueOp::Load { index, .. } if vector > 1 => index.uses(self.lane()),
            ValueOp::Load { .. } => {
                kernel.value(*id).axes.iter().any(|axis| *axis == self.depth || axes.contains(axis))
            }
            _ => false,
        };
        let early = kernel.down_from([value]).into_iter().filter(is_early).collect();
        let (axes, turns) = (axes.to_vec(), each / vector);
        Factor { value, is_left, axes, width, of_thread, is_along, vector, turns, kernel, early }
    }

    /// Whether vectors of so many elements along the axis are single accesses of all loads that vary along it.
    fn is_vector(&self, value: ValueId, axis: AxisId, vector: u64) -> bool {
        let own = self.flat.axis(axis);
        if own.is_argument || !own.extent.is_multiple_of(vector) {
            return false;
        }
        let (kernel, lane) = (split_lanes(self.flat, Some(axis), vector as u32), self.lane());
        let mut emitter = Emitter::new(&kernel, Language::Cuda);
        emitter.multiples.insert(axis, vector as i64);
        let is_single = |index: &IndexExpr, dtype: DType| {
            let first = index.substitute(lane, &IndexExpr::zero(), &kernel.ranges());
            index.coefficient(lane) == Some(1)
                && vector * dtype.size() as u64 <= ACCESS_BYTES
                && emitter.alignment(&first, vector) == vector
        };
        let varies = |value: ValueId| kernel.value(value).axes.contains(&lane);
        kernel.down_from([value]).iter().all(|&id| match &kernel.value(id).op {
            ValueOp::Load { .. } if !varies(id) => true,
            ValueOp::Load { buffer, index, guard: None } => {
                kernel.computed_axes(index).is_empty()
                    && is_single(index, kernel.buffers[buffer.index()].dtype)
            }
            ValueOp::Load { .. } => false,
            _ => true,
        })
    }

    /// Elements from one line to the next in shared memory. A line is a term's: a vector more than there are, so that what the
    /// threads of a warp write together is in different banks also where their vectors go along the terms. Of matrices it goes
    /// where the vectors go, as long as it is.
    fn pitch(&self, factor: &Factor) -> u64 {
        match (self.schedule.matrices, factor.is_along) {
            (None, _) => factor.width + self.group(),
            (Some(_), true) => self.deep(),
            (Some(_), false) => factor.width,
        }
    }

    /// Elements of a factor's tile.
    fn tile_len(&self, factor: &Factor) -> u64 {
        match (self.schedule.matrices, factor.is_along) {
            (Some(_), true) => factor.width * self.pitch(factor),
            _ => self.deep() * self.pitch(factor),
        }
    }
}

/// Where the sums of a thread are: in each of some groups of rows there are some, and in each row some groups of columns.
struct Layout {
    /// Groups, and rows of each.
    rows: [u64; 2],
    /// Rows from group to group, and in a group.
    row_steps: [u64; 2],
    /// Rows from thread to thread.
    row_scale: u64,
    /// Groups of columns.
    columns: u64,
    /// Columns from group to group.
    column_step: u64,
    /// Columns of a group.
    lanes: u64,
    /// Sums from group to group of rows, from row to row, and from group to group of columns.
    sum_steps: [u64; 3],
}

/// The variables of a function.
struct Vars {
    row0: Var,
    column0: Var,
    x: Var,
    y: Var,
    first_step: Var,
    steps: Var,
    of_part: Var,
    step: Var,
    slot: Var,
    other: Var,
    next_step: Var,
    turn: Var,
    at: Var,
    along: Var,
    across: Var,
    position: Var,
    term: Var,
    k: Var,
    i: Var,
    j: Var,
    m: Var,
    n: Var,
    part: Var,
    row: Var,
    lane: Var,
    warp_row: Var,
    warp_column: Var,
    column: Var,
}

impl Vars {
    fn new(emitter: &mut Emitter) -> Vars {
        Vars {
            row0: emitter.index("row0"),
            column0: emitter.index("column0"),
            x: emitter.index("x"),
            y: emitter.index("y"),
            first_step: emitter.index("first_step"),
            steps: emitter.index("steps"),
            of_part: emitter.index("of_part"),
            step: emitter.index("step"),
            slot: emitter.index("slot"),
            other: emitter.index("other"),
            next_step: emitter.index("next_step"),
            turn: emitter.index("turn"),
            at: emitter.index("at"),
            along: emitter.index("along"),
            across: emitter.index("across"),
            position: emitter.index("position"),
            term: emitter.index("term"),
            k: emitter.index("k"),
            i: emitter.index("i"),
            j: emitter.index("j"),
            m: emitter.index("m"),
            n: emitter.index("n"),
            part: emitter.index("part"),
            row: emitter.index("row"),
            lane: emitter.index("lane"),
            warp_row: emitter.index("warp_row"),
            warp_column: emitter.index("warp_column"),
            column: emitter.index("column"),
        }
    }
}

struct Writer<'k> {
    v: Vars,
    layout: Layout,
    plan: &'k Plan<'k>,
    of_results: &'k (Kernel, u64),
    /// Counters of finished parts, where there are parts.
    arrivals: Var,
}

impl<'k> Writer<'k> {
    fn sums_of_thread(&self) -> u64 {
        u64::from(self.plan.schedule.sums())
    }

    fn body(&self, emitter: &mut Emitter<'k>, factors: &'k [Factor]) {
        self.begin(emitter);
        let tiles: Vec<Tile> = factors.iter().map(|factor| self.declare(emitter, factor)).collect();
        let products = &self.plan.contraction.products;
        let sums: Vec<Var> = products.iter().map(|_| self.declare_sums(emitter)).collect();
        self.steps(emitter);
        let step = self.first_step();
        tiles.iter().for_each(|tile| self.fetch(emitter, tile, &step));
        tiles.iter().for_each(|tile| self.place(emitter, tile, &step, None));
        emitter.push(Stmt::Barrier);

        emitter.open(&[], false);
        let (step, after) = (Expr::Name(self.v.step), Expr::Name(self.v.step).then(Add, Expr::Int(1)));
        emitter.bind(self.v.slot, INDEX, step.then(Rem, Expr::Int(SLOTS)));
        emitter.bind(self.v.other, INDEX, after.clone().then(Rem, Expr::Int(SLOTS)));
        emitter.bind(self.v.next_step, INDEX, self.first_step().then(Add, after.clone()));
        let (step, is_next) = (Expr::Name(self.v.next_step), after.then(Less, Expr::Name(self.v.steps)));
        self.guarded(emitter, is_next.clone(), |emitter| {
            tiles.iter().for_each(|tile| self.fetch(emitter, tile, &step));
        });
        match self.plan.schedule.matrices {
            Some(_) => self.multiply_matrices(emitter, &tiles, &sums),
            None => self.multiply(emitter, &tiles, &sums),
        }
        self.guarded(emitter, is_next, |emitter| {
            tiles.iter().for_each(|tile| self.place(emitter, tile, &step, Some(self.v.other)));
        });
        emitter.push(Stmt::Barrier);
        let body = emitter.close();
        emitter.push(count_loop(self.v.step, Expr::Int(0), Expr::Name(self.v.steps), LoopHint::None, body));
        if self.plan.schedule.splits > 1 {
            self.merge_splits(emitter, &sums);
        }
        self.results(emitter, &sums);
    }

    fn guarded(&self, emitter: &mut Emitter<'k>, condition: Expr, body: impl FnOnce(&mut Emitter<'k>)) {
        emitter.open_pinned();
        body(emitter);
        let then = emitter.close();
        emitter.guarded(Some(condition), then);
    }

    /// Binds the block's first row and column, the batch's axes, and the thread's place.
    fn begin(&self, emitter: &mut Emitter) {
        let Contraction { batch, rows, .. } = self.plan.contraction;
        let mut block = Expr::Builtin(Builtin::BlockX);
        let parts = [
            (self.v.row0, "block1", rows.as_slice(), self.plan.schedule.rows),
            (self.v.column0, "block2", self.plan.columns.as_slice(), self.plan.schedule.columns),
        ];
        for (first, rest, axes, of) in parts {
            let of = Expr::Int(of.into());
            let chunks = ceil(emitter.positions(axes), of.clone());
            let is_last = batch.is_empty() && first == self.v.column0;
            let own = if is_last { block.clone() } else { block.clone().then(Rem, chunks.clone()) };
            emitter.bind(first, INDEX, own.then(Mul, of));
            if !is_last {
                block = Expr::Name(emitter.bind(rest, INDEX, block.then(Div, chunks)));
            }
        }
        if let (false, Expr::Name(rest)) = (batch.is_empty(), &block) {
            emitter.unflatten(*rest, batch, 1);
        }
        let schedule = self.plan.schedule;
        let across = Expr::Int((schedule.columns / schedule.own_columns).into());
        let thread = Expr::Builtin(Builtin::ThreadX);
        if schedule.matrices.is_none() {
            emitter.bind(self.v.x, INDEX, thread.clone().then(Rem, across.clone()));
            emitter.bind(self.v.y, INDEX, thread.then(Div, across));
            return;
        }
        emitter.bind(self.v.lane, INDEX, thread.clone().then(Rem, Expr::Int(WARP)));
        let warp = Expr::Name(emitter.bind("warp", INDEX, thread.then(Div, Expr::Int(WARP))));
        let (rows, columns) = (Expr::Int(schedule.own_rows.into()), Expr::Int(schedule.own_columns.into()));
        emitter.bind(self.v.warp_row, INDEX, warp.clone().then(Div, across.clone()).then(Mul, rows));
        emitter.bind(self.v.warp_column, INDEX, warp.then(Rem, across).then(Mul, columns));
        // The lane's first row, and its first pair of columns.
        let row = Expr::Name(self.v.lane).then(Div, Expr::Int(4));
        emitter.bind(self.v.y, INDEX, Expr::Name(self.v.warp_row).then(Add, row));
        let pair = Expr::Name(self.v.lane).then(Rem, Expr::Int(4));
        let first = Expr::Name(self.v.warp_column).then(Div, Expr::Int(2));
        emitter.bind(self.v.x, INDEX, first.then(Add, pair));
    }

    fn declare(&self, emitter: &mut Emitter, factor: &'k Factor) -> Tile<'k> {
        let dtype = self.plan.dtype();
        let shared = emitter.fresh(if factor.is_left { "left" } else { "right" });
        let len = SLOTS * self.plan.tile_len(factor);
        let shared = emitter.share(shared, Type::Memory(dtype), len);
        let mut next = Vec::new();
        for &id in &factor.early {
            let (var, value) = (emitter.fresh("next"), factor.kernel.value(id));
            // Vectors wait as they are in memory, single elements as values.
            let ty = match (&value.op, factor.vector) {
                (ValueOp::Load { buffer, .. }, 2..) => {
                    Type::Memory(factor.kernel.buffers[buffer.index()].dtype)
                }
                _ => Type::Register(value.dtype),
            };
            next.push(emitter.array(var, ty, factor.turns * factor.vector));
        }
        Tile { factor, shared, next }
    }

    fn declare_sums(&self, emitter: &mut Emitter) -> Var {
        let var = emitter.fresh("sums");
        let sums = emitter.array(var, Type::Register(self.plan.contraction.sum), self.sums_of_thread());
        self.clear(emitter, sums);
        sums
    }

    fn clear(&self, emitter: &mut Emitter, sums: Var) {
        let zero = Expr::Literal(Scalar::from_i64(self.plan.contraction.sum, 0));
        self.each_sum(emitter, |n| vec![set(Expr::element(sums, n), zero)]);
    }

    fn each_sum(&self, emitter: &mut Emitter, body: impl FnOnce(Expr) -> Vec<Stmt>) {
        let all = Expr::Int(self.sums_of_thread());
        emitter.push(count_loop(self.v.n, Expr::Int(0), all, LoopHint::Unroll, body(Expr::Name(self.v.n))));
    }

    /// Binds the block's first tile of terms, and how many it has.
    fn steps(&self, emitter: &mut Emitter) {
        let tiles = ceil(emitter.positions(&[self.plan.depth]), Expr::Int(self.plan.deep()));
        if self.plan.schedule.splits == 1 {
            emitter.bind(self.v.steps, INDEX, tiles);
            return;
        }
        let (part, parts) = (Expr::Builtin(Builtin::BlockY), Expr::Builtin(Builtin::GridY));
        let each = tiles.clone().then(Add, parts.clone()).then(Sub, Expr::Int(1)).then(Div, parts);
        emitter.bind(self.v.of_part, INDEX, each);
        let first = part.then(Mul, Expr::Name(self.v.of_part));
        emitter.bind(self.v.first_step, INDEX, first.then(Min, tiles.clone()));
        let rest = tiles.then(Sub, self.first_step());
        emitter.bind(self.v.steps, INDEX, Expr::Name(self.v.of_part).then(Min, rest));
    }

    /// A loop over the thread's vectors of a step's tile. Each has bound its positions: `along` the terms, `across` the
    /// factor's own axes, and the axes themselves.
    fn each_vector(
        &self,
        emitter: &mut Emitter<'k>,
        factor: &'k Factor,
        step: &Expr,
        body: impl FnOnce(&mut Emitter<'k>),
    ) {
        let (vector, one) = (Expr::Int(factor.vector), Expr::Int(1));
        let (of_term, of_own) = if factor.is_along { (vector, one) } else { (one, vector) };
        let deep = Expr::Int(self.plan.deep()).then(Div, of_term.clone());
        let width = Expr::Int(factor.width).then(Div, of_own.clone());
        emitter.using(&factor.kernel, |emitter| {
            emitter.open_pinned();
            let turn = self.turn(factor).then(Mul, Expr::Int(self.plan.threads()));
            emitter.bind(self.v.at, INDEX, Expr::Builtin(Builtin::ThreadX).then(Add, turn));
            let at = |op, by: &Expr| Expr::Name(self.v.at).then(op, by.clone());
            let (along, across) = match factor.is_along {
                true => (at(Rem, &deep), at(Div, &deep)),
                false => (at(Div, &width), at(Rem, &width)),
            };
            emitter.bind(self.v.along, INDEX, along);
            emitter.bind(self.v.across, INDEX, across);
            // Beyond the last row, column or term is that one again.
            let within = |emitter: &Emitter, position: Expr, axes: &[AxisId], of: &Expr| {
                let last = emitter.positions(axes).then(Div, of.clone()).then(Sub, Expr::Int(1));
                position.then(Min, last)
            };
            let first = Expr::Name(if factor.is_left { self.v.row0 } else { self.v.column0 });
            let position = first.then(Div, of_own.clone()).then(Add, Expr::Name(self.v.across));
            let position = within(emitter, position, &factor.axes, &of_own);
            emitter.bind(self.v.position, INDEX, position);
            emitter.unflatten(self.v.position, &factor.axes, if factor.is_along { 1 } else { factor.vector });
            emitter.bind(self.v.term, INDEX, mul_add(step.clone(), deep, Expr::Name(self.v.along)));
            let term = within(emitter, Expr::Name(self.v.term), &[self.plan.depth], &of_term);
            emitter.bind(self.plan.depth, INDEX, term.then(Mul, of_term));
            emitter.bind_axes(&[self.plan.depth]);
            if factor.is_along {
                emitter.multiples.insert(self.plan.depth, factor.vector as i64);
            }
            body(emitter);
            let body = emitter.close();
            let body = used(&factor.kernel, body);
            self.repeated(emitter, self.v.turn, factor.turns, body);
        });
    }

    /// A loop that is unrolled, if it has several turns.
    fn repeated(&self, emitter: &mut Emitter, var: Var, turns: u64, body: Vec<Stmt>) {
        emitter.push(match turns {
            1 => Stmt::Block(body),
            _ => count_loop(var, Expr::Int(0), Expr::Int(turns), LoopHint::Unroll, body),
        });
    }

    fn turn(&self, factor: &Factor) -> Expr {
        if factor.turns == 1 { Expr::Int(0) } else { Expr::Name(self.v.turn) }
    }

    /// The first step of the block.
    fn first_step(&self) -> Expr {
        if self.plan.schedule.splits == 1 { Expr::Int(0) } else { Expr::Name(self.v.first_step) }
    }

    /// Which group of the thread's rows.
    fn row_group(&self) -> Expr {
        if self.layout.rows[0] == 1 { Expr::Int(0) } else { Expr::Name(self.v.m) }
    }

    /// The same of its columns.
    fn column_group(&self) -> Expr {
        if self.layout.columns == 1 { Expr::Int(0) } else { Expr::Name(self.v.n) }
    }

    /// Loads of a tile that nothing waits for yet.
    fn fetch(&self, emitter: &mut Emitter<'k>, tile: &Tile<'k>, step: &Expr) {
        let factor = tile.factor;
        if factor.early.is_empty() {
            return;
        }
        self.each_vector(emitter, factor, step, |emitter| {
            let at = self.turn(factor).then(Mul, Expr::Int(factor.vector));
            for (&id, &array) in factor.early.iter().zip(&tile.next) {
                match &factor.kernel.value(id).op {
                    ValueOp::Load { buffer, index, .. } if factor.vector > 1 => {
                        let lane = self.plan.lane();
                        let first = index.substitute(lane, &IndexExpr::zero(), &factor.kernel.ranges());
                        emitter.push(Stmt::VectorLoad {
                            array,
                            at: at.clone(),
                            buffer: (*buffer).into(),
                            index: Expr::Index(first),
                            dtype: factor.kernel.buffers[buffer.index()].dtype,
                            width: factor.vector,
                        });
                    }
                    _ => {
                        let value = emitter.value(id);
                        emitter.push(set(Expr::element(array, at.clone()), value));
                    }
                }
            }
        });
    }

    /// Computes a tile of what has been loaded, and puts it into its slot of the shared memory, the first one without a
    /// name.
    fn place(&self, emitter: &mut Emitter<'k>, tile: &Tile<'k>, step: &Expr, slot: Option<Var>) {
        let (factor, dtype) = (tile.factor, self.plan.dtype());
        let in_slot = |at: Expr| match slot {
            Some(slot) => mul_add(Expr::Name(slot), Expr::Int(self.plan.tile_len(factor)), at),
            None => at,
        };
        self.each_vector(emitter, factor, step, |emitter| {
            let at = self.turn(factor).then(Mul, Expr::Int(factor.vector));
            if factor.vector == 1 {
                let value = self.tile_value(emitter, tile, &at, None);
                emitter.push(set(Expr::element(tile.shared, in_slot(self.slot_of(factor, None))), value));
                return;
            }
            let width = factor.vector;
            // Whether a vector stays one.
            let is_line = !factor.is_along || self.plan.schedule.matrices.is_some();
            let row = in_slot(self.slot_of(factor, None));
            let copy = |array, at| {
                let index = row.clone();
                Stmt::VectorStore { array, at, buffer: tile.shared, index, dtype, width }
            };
            if is_line && self.is_plain(factor) {
                return emitter.push(copy(tile.next[0], at));
            }
            let packed = is_line.then(|| {
                let var = emitter.fresh("packed");
                emitter.array(var, Type::Memory(dtype), width)
            });
            let lane = Expr::name(Var::Lane);
            emitter.open(&[self.plan.lane()], true);
            let value = self.tile_value(emitter, tile, &at, Some(&lane));
            let target = match packed {
                Some(packed) => Expr::element(packed, lane),
                None => Expr::element(tile.shared, in_slot(self.slot_of(factor, Some(lane)))),
            };
            emitter.push(set(target, value));
            let body = emitter.close();
            emitter.push(unrolled_lanes(width, body));
            if let Some(packed) = packed {
                emitter.push(copy(packed, Expr::Int(0)));
            }
        });
    }

    /// Where a thread's vector is in a tile, or an element of it.
    fn slot_of(&self, factor: &Factor, lane: Option<Expr>) -> Expr {
        let (along, across) = (Expr::Name(self.v.along), Expr::Name(self.v.across));
        let width = Expr::Int(factor.vector);
        if self.plan.schedule.matrices.is_some() {
            let (line, vector) = if factor.is_along { (across, along) } else { (along, across) };
            if factor.vector == self.plan.group() {
                return self.chunk(factor, line, vector);
            }
            let (first, group) = (vector.then(Mul, width), Expr::Int(self.plan.group()));
            let chunk = first.clone().then(Div, group.clone());
            return self.chunk(factor, line, chunk).then(Add, first.then(Rem, group));
        }
        let pitch = Expr::Int(self.plan.pitch(factor));
        match (factor.is_along, lane) {
            (true, Some(lane)) => mul_add(along.then(Mul, width).then(Add, lane), pitch, across),
            (true, None) => mul_add(along.then(Mul, width), pitch, across),
            (false, _) => mul_add(along, pitch, across.then(Mul, width)),
        }
    }

    /// Where a chunk of 16 bytes of a line of a tile of matrices is. Eight neighbouring lines have theirs in different banks:
    /// chunks change places within a line.
    fn chunk(&self, factor: &Factor, line: Expr, chunk: Expr) -> Expr {
        let (pitch, group) = (self.plan.pitch(factor), self.plan.group());
        let chunks = pitch / group;
        // Lines of fewer than eight chunks follow each other in a row of banks.
        let in_row = (BANK_CHUNKS / chunks).max(1);
        let turn = line.clone().then(Div, Expr::Int(in_row)).then(Rem, Expr::Int(chunks.min(BANK_CHUNKS)));
        let place = Expr::Arithmetic(Xor, Box::new(chunk), Box::new(turn));
        mul_add(line, Expr::Int(pitch), place.then(Mul, Expr::Int(group)))
    }

    /// Whether what is loaded is the factor, and no term of a tile is beyond the last.
    fn is_plain(&self, factor: &Factor) -> bool {
        let is_same = |id| match factor.kernel.value(id).op {
            ValueOp::Load { buffer, .. } => factor.kernel.buffers[buffer.index()].dtype == self.plan.dtype(),
            _ => false,
        };
        self.is_whole() && factor.early == [factor.value] && is_same(factor.value)
    }

    /// Whether the terms are whole tiles.
    fn is_whole(&self) -> bool {
        let terms = self.plan.flat.axis(self.plan.depth);
        !terms.is_argument && terms.extent.is_multiple_of(self.plan.deep())
    }

    /// An element of the factor as it is in shared memory: 0 beyond the last term.
    fn tile_value(&self, emitter: &mut Emitter<'k>, tile: &Tile<'k>, at: &Expr, lane: Option<&Expr>) -> Expr {
        let (factor, dtype) = (tile.factor, self.plan.contraction.dtype);
        for (&id, &array) in factor.early.iter().zip(&tile.next) {
            let element = match lane {
                Some(lane) => Expr::element(array, at.clone().then(Add, lane.clone())),
                None => Expr::element(array, at.clone()),
            };
            let value = match (&factor.kernel.value(id).op, lane) {
                (ValueOp::Load { buffer, .. }, Some(_)) => {
                    Expr::FromMemory(factor.kernel.buffers[buffer.index()].dtype, Box::new(element))
                }
                _ => element,
            };
            emitter.define(id, value);
        }
        let mut value = emitter.value(factor.value);
        let from = factor.kernel.value(factor.value).dtype;
        if from != dtype {
            value = Expr::Cast { from, to: dtype, operand: Box::new(value) };
        }
        if !self.is_whole() {
            let of = if factor.is_along { factor.vector } else { 1 };
            let terms = emitter.extent(self.plan.depth).then(Div, Expr::Int(of));
            let is_term = Expr::Name(self.v.term).then(Less, terms);
            let zero = Expr::Literal(Scalar::from_i64(dtype, 0));
            let named = emitter.named(value, dtype);
            value = Expr::Select(Box::new(is_term), Box::new(named), Box::new(zero));
        }
        Expr::ToMemory(self.plan.dtype(), Box::new(value))
    }

    /// Adds the products of the tiles in the slot to the sums.
    fn multiply(&self, emitter: &mut Emitter, tiles: &[Tile], sums: &[Var]) {
        let (dtype, group) = (self.plan.contraction.dtype, self.plan.group());
        emitter.open(&[], false);
        let mut parts: Vec<Var> = Vec::new();
        for tile in tiles {
            let (factor, pitch) = (tile.factor, self.plan.pitch(tile.factor));
            let part = emitter.fresh(if factor.is_left { "a" } else { "b" });
            parts.push(emitter.array(part, Type::Memory(dtype), factor.of_thread));
            let own =
                Expr::Name(if factor.is_left { self.v.y } else { self.v.x }).then(Mul, Expr::Int(group));
            let slot = Expr::Int(self.plan.tile_len(factor));
            for first in (0..factor.of_thread).step_by(group as usize) {
                // A thread's vectors are as far from each other as all threads' are wide.
                let at = Expr::Int(first * (factor.width / factor.of_thread)).then(Add, own.clone());
                let at = mul_add(Expr::Name(self.v.k), Expr::Int(pitch), at);
                emitter.push(Stmt::VectorLoad {
                    array: part_of(&parts),
                    at: Expr::Int(first),
                    buffer: tile.shared,
                    index: mul_add(Expr::Name(self.v.slot), slot.clone(), at),
                    dtype,
                    width: group,
                });
            }
        }
        let part = |value: ValueId, is_left: bool| {
            let is_own = |tile: &Tile| (tile.factor.value, tile.factor.is_left) == (value, is_left);
            tiles.iter().position(is_own).map(|number| parts[number])
        };
        let columns = Expr::Int(self.plan.schedule.own_columns.into());
        let (i, j) = (Expr::Name(self.v.i), Expr::Name(self.v.j));
        let mut body = Vec::new();
        for (product, &sums) in self.plan.contraction.products.iter().zip(sums) {
            let (Some(a), Some(b)) = (part(product.left, true), part(product.right, false)) else { continue };
            let factor =
                |array: Var, at: &Expr| Expr::FromMemory(dtype, Box::new(Expr::element(array, at.clone())));
            let sum = Expr::element(sums, mul_add(i.clone(), columns.clone(), j.clone()));
            let value = self.plus_product(sum.clone(), factor(a, &i), factor(b, &j));
            body.push(set(sum, value));
        }
        let body = vec![count_loop(self.v.j, Expr::Int(0), columns, LoopHint::Unroll, body)];
        let rows = Expr::Int(self.plan.schedule.own_rows.into());
        emitter.push(count_loop(self.v.i, Expr::Int(0), rows, LoopHint::Unroll, body));
        let body = emitter.close();
        let deep = Expr::Int(self.plan.deep());
        // Of many sums no more than a few terms at a time: what is read of them takes the registers that are left.
        let registers = self.sums_of_thread() * self.plan.contraction.sum.size() as u64 / 4;
        let hint = if registers > 32 { LoopHint::UnrollBy(2) } else { LoopHint::Unroll };
        emitter.push(count_loop(self.v.k, Expr::Int(0), deep, hint, body));
    }

    fn plus_product(&self, sum: Expr, a: Expr, b: Expr) -> Expr {
        let Contraction { dtype, sum: wide, .. } = *self.plan.contraction;
        if dtype == wide {
            return Expr::MulAdd(dtype, Box::new([a, b, sum]));
        }
        let product = Expr::Binary(BinaryOp::Mul, dtype, Box::new(a), Box::new(b));
        let product = Expr::Cast { from: dtype, to: wide, operand: Box::new(product) };
        Expr::Binary(BinaryOp::Add, wide, Box::new(sum), Box::new(product))
    }

    /// Every block leaves its sums; the last one of a tile adds all up in order.
    fn merge_splits(&self, emitter: &mut Emitter, sums: &[Var]) {
        let threads = Expr::Int(self.plan.threads());
        // Neighbouring threads leave neighbouring elements.
        let place = |part: Expr, n: Expr| {
            let part = mul_add(Expr::Builtin(Builtin::BlockX), Expr::Builtin(Builtin::GridY), part);
            let n = mul_add(part, Expr::Int(self.sums_of_thread()), n);
            mul_add(n, threads.clone(), Expr::Builtin(Builtin::ThreadX))
        };
        for (number, &sums) in sums.iter().enumerate() {
            let space = Parameter::Workspace(number);
            self.each_sum(emitter, |n| {
                let target = Expr::element(space, place(Expr::Builtin(Builtin::BlockY), n.clone()));
                vec![set(target, Expr::element(sums, n))]
            });
        }
        let parts = Expr::Builtin(Builtin::GridY);
        let index = Expr::Builtin(Builtin::BlockX);
        let (counters, count) = (self.arrivals, parts.clone());
        emitter.push(Stmt::Arrive { counters, index: index.clone(), count });
        sums.iter().for_each(|&sums| self.clear(emitter, sums));
        emitter.open(&[], false);
        let dtype = self.plan.contraction.sum;
        for (number, &sums) in sums.iter().enumerate() {
            let space = Parameter::Workspace(number);
            self.each_sum(emitter, |n| {
                let part = Expr::element(space, place(Expr::Name(self.v.part), n.clone()));
                let sum = Expr::element(sums, n);
                let both = Expr::Binary(BinaryOp::Add, dtype, Box::new(sum.clone()), Box::new(part));
                vec![set(sum, both)]
            });
        }
        let body = emitter.close();
        emitter.push(count_loop(self.v.part, Expr::Int(0), parts, LoopHint::None, body));
        let reset = set(Expr::element(self.arrivals, index), Expr::Int(0));
        let condition = Expr::Builtin(Builtin::ThreadX).then(Equal, Expr::Int(0));
        emitter.push(Stmt::If { condition, then: vec![reset], otherwise: Vec::new() });
    }

    /// Adds the products of the tiles in the slot to the sums, a small matrix of each at a time.
    fn multiply_matrices(&self, emitter: &mut Emitter, tiles: &[Tile], sums: &[Var]) {
        let Some(of) = self.plan.schedule.matrices.and_then(Instruction::for_factors) else { return };
        let (group, deep) = (self.plan.group(), u64::from(of.terms));
        let int = |n: u32| Expr::Int(n.into());
        emitter.open(&[], false);
        let mut parts: Vec<Var> = Vec::new();
        for tile in tiles {
            let factor = tile.factor;
            // Four matrices at a time: of one small one of the left, or of two of the right.
            let wide = u64::from(of.rows);
            let count = factor.of_thread / wide;
            let part = emitter.fresh(if factor.is_left { "a" } else { "b" });
            let part = emitter.array(part, Type::Register(DType::U32), count * 4);
            parts.push(part);
            // Lane 8 n + i names row i of matrix n: which half of the factor's own axis that is in, and which of the terms.
            let lane = |op, by| Expr::Name(self.v.lane).then(op, Expr::Int(by));
            let (low, high) = (lane(Div, 8).then(Rem, Expr::Int(2)), lane(Div, 16));
            let (of_own, of_terms) = if factor.is_left { (low, high) } else { (high, low) };
            let own = Expr::Name(if factor.is_left { self.v.warp_row } else { self.v.warp_column });
            let own = own.then(Add, Expr::Name(self.v.i).then(Mul, Expr::Int(wide)));
            let term = Expr::Name(self.v.k).then(Mul, Expr::Int(deep));
            let row = |first: Expr, half: Expr| {
                first.then(Add, half.then(Mul, Expr::Int(8))).then(Add, lane(Rem, 8))
            };
            let chunk = |first: Expr, half: Expr| first.then(Div, Expr::Int(group)).then(Add, half);
            let (line, chunk) = match factor.is_along {
                true => (row(own, of_own), chunk(term, of_terms)),
                false => (row(term, of_terms), chunk(own, of_own)),
            };
            emitter.open(&[], false);
            let line = Expr::Name(emitter.bind("line", INDEX, line));
            let at = self.chunk(factor, line, chunk);
            let slot = Expr::Int(self.plan.tile_len(factor));
            let load = Stmt::LoadMatrices {
                parts: part,
                at: Expr::Name(self.v.i).then(Mul, Expr::Int(4)),
                shared: tile.shared,
                index: mul_add(Expr::Name(self.v.slot), slot, at),
                dtype: of.factors,
                // A part has neighbouring terms.
                turns: !factor.is_along,
            };
            emitter.push(load);
            let body = emitter.close();
            emitter.push(count_loop(self.v.i, Expr::Int(0), Expr::Int(count), LoopHint::Unroll, body));
        }
        let part = |value: ValueId, is_left: bool| {
            let is_own = |tile: &Tile| (tile.factor.value, tile.factor.is_left) == (value, is_left);
            tiles.iter().position(is_own).map(|number| parts[number])
        };
        let (i, j) = (Expr::Name(self.v.i), Expr::Name(self.v.j));
        let [of_row, _, of_column] = self.layout.sum_steps;
        let mut body = Vec::new();
        for (product, &sums) in self.plan.contraction.products.iter().zip(sums) {
            let (Some(left), Some(right)) = (part(product.left, true), part(product.right, false)) else {
                continue;
            };
            body.push(Stmt::MultiplyMatrices(Box::new(MatrixProduct {
                dtype: of.factors,
                left,
                left_at: i.clone().then(Mul, Expr::Int(4)),
                right,
                right_at: j.clone().then(Mul, Expr::Int(2)),
                sums,
                sums_at: mul_add(i.clone(), Expr::Int(of_row), j.clone().then(Mul, Expr::Int(of_column))),
            })));
        }
        let schedule = self.plan.schedule;
        let columns = int(schedule.own_columns / of.columns);
        let body = vec![count_loop(self.v.j, Expr::Int(0), columns, LoopHint::Unroll, body)];
        let rows = int(schedule.own_rows / of.rows);
        emitter.push(count_loop(self.v.i, Expr::Int(0), rows, LoopHint::Unroll, body));
        let body = emitter.close();
        let terms = int(schedule.depth / of.terms);
        emitter.push(count_loop(self.v.k, Expr::Int(0), terms, LoopHint::Unroll, body));
    }

    /// Whatever follows from the sums, vector by vector of neighbouring columns.
    fn results(&self, emitter: &mut Emitter<'k>, sums: &[Var]) {
        let (kernel, vector) = self.of_results;
        let loops = |emitter: &mut Emitter, var, to: u64| {
            let body = emitter.close();
            self.repeated(emitter, var, to, body);
        };
        let (rows, layout) = (&self.plan.contraction.rows, &self.layout);
        emitter.using(kernel, |emitter| {
            emitter.open(&[], false);
            emitter.open(&[], false);
            let own = Expr::Name(self.v.i).then(Mul, Expr::Int(layout.row_steps[1]));
            let own = mul_add(Expr::Name(self.v.y), Expr::Int(layout.row_scale), own);
            let row = mul_add(self.row_group(), Expr::Int(layout.row_steps[0]), own);
            emitter.bind(self.v.row, INDEX, Expr::Name(self.v.row0).then(Add, row));
            let is_row = Expr::Name(self.v.row).then(Less, emitter.positions(rows));
            self.guarded(emitter, is_row, |emitter| {
                emitter.unflatten(self.v.row, rows, 1);
                emitter.open(&[], false);
                match *vector {
                    1 => {
                        emitter.open(&[], false);
                        self.column(emitter, sums);
                        loops(emitter, self.v.j, layout.lanes);
                    }
                    _ => self.column(emitter, sums),
                }
                loops(emitter, self.v.n, layout.columns);
            });
            loops(emitter, self.v.i, layout.rows[1]);
            loops(emitter, self.v.m, layout.rows[0]);
        });
    }

    /// What follows from the sums of one vector: `m`, `i`, `n` and, of single columns, `j` say which.
    fn column(&self, emitter: &mut Emitter<'k>, sums: &[Var]) {
        let ((kernel, vector), layout) = (self.of_results, &self.layout);
        let (of, columns) = (Expr::Int(*vector), &self.plan.columns);
        let own = match vector {
            1 => mul_add(Expr::Name(self.v.x), Expr::Int(layout.lanes), Expr::Name(self.v.j)),
            _ => Expr::Name(self.v.x),
        };
        let own = mul_add(self.column_group(), Expr::Int(layout.column_step / vector), own);
        emitter.bind(self.v.column, INDEX, Expr::Name(self.v.column0).then(Div, of.clone()).then(Add, own));
        let is_column = Expr::Name(self.v.column).then(Less, emitter.positions(columns).then(Div, of));
        self.guarded(emitter, is_column, |emitter| {
            emitter.unflatten(self.v.column, columns, *vector);
            let [of_group, of_row, of_columns] = layout.sum_steps.map(Expr::Int);
            let row = mul_add(self.row_group(), of_group, Expr::Name(self.v.i).then(Mul, of_row));
            let lane = if *vector > 1 { Expr::name(Var::Lane) } else { Expr::Name(self.v.j) };
            let at = row.then(Add, self.column_group().then(Mul, of_columns)).then(Add, lane);
            let stores: Vec<&Store> = kernel.stores.iter().collect();
            lanes_and_stores(emitter, kernel, &stores, None, |emitter| {
                for (product, &sums) in self.plan.contraction.products.iter().zip(sums) {
                    let (from, to) = (self.plan.contraction.sum, kernel.value(product.sum).dtype);
                    let sum = Expr::element(sums, at.clone());
                    let sum = match from == to {
                        true => sum,
                        false => Expr::Cast { from, to, operand: Box::new(sum) },
                    };
                    emitter.define(product.sum, sum);
                }
            });
        });
    }
}

/// Without the variables at the beginning of a block that nothing in it uses.
fn used(kernel: &Kernel, body: Vec<Stmt>) -> Vec<Stmt> {
    let mut kept: Vec<Stmt> = Vec::with_capacity(body.len());
    for stmt in body.into_iter().rev() {
        match &stmt {
            Stmt::Let { var, .. } if !kept.iter().any(|user| uses(kernel, user, *var)) => {}
            _ => kept.push(stmt),
        }
    }
    kept.reverse();
    kept
}

fn uses(kernel: &Kernel, stmt: &Stmt, var: Var) -> bool {
    let of_index = |index: &IndexExpr| index.axes().iter().any(|&axis| kernel.position(axis) == var);
    let mut found = stmt.vars().contains(&&var);
    for expr in stmt.expressions() {
        expr.visit(&mut |expr| {
            found |= expr.var() == Some(&var)
                || match expr {
                    Expr::Index(index) | Expr::Position(index) | Expr::Random { index, .. } => {
                        of_index(index)
                    }
                    Expr::InBounds(bounds) => bounds.iter().any(|bound| of_index(&bound.expr)),
                    _ => false,
                };
        });
    }
    found || stmt.bodies().into_iter().any(|body| body.iter().any(|stmt| uses(kernel, stmt, var)))
}

fn part_of(parts: &[Var]) -> Var {
    parts.last().copied().unwrap_or(Var::Lane)
}
