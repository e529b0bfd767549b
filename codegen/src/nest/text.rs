//! The textual form of a loop nest: all of it, so that [`parse`](super::parse) gives back the same.
//!
//! Variables go by their names: the nearest one of a name is the one that is meant, as the verifier has it.

use std::fmt::Write;

use super::stmt::{
    Arithmetic, Builtin, BulkCopy, BulkStep, Copying, Expr, GroupFactor, GroupProduct, Lines, LoopHint,
    MatrixProduct, Pairing, ProductStep, Scanning, SortBy, Sorting, Step, Stmt, TileProduct, Turning, Type,
};
use super::variable::{Local, Space, Var};
use super::{Function, Nest, Workspace, parameter_name};
use crate::Language;
use crate::index::{AxisId, IndexExpr};
use crate::schedule::TensorMap;

impl Nest {
    /// The nest as text, which [`Nest::parse`] reads.
    pub fn to_text(&self, language: Language) -> String {
        let wide = if self.wide_index { " wide" } else { "" };
        let mut text = format!("nest {}{wide}\n{}", language.name(), self.kernel);
        for Workspace { name, dtype, elements, zeroed } in &self.workspaces {
            let zeroed = if *zeroed { " zeroed" } else { "" };
            let _ = writeln!(text, "workspace {name}: {dtype} [{elements}]{zeroed}");
        }
        for TensorMap { buffer, first, lines, axes } in &self.maps {
            let buffer = &self.kernel.buffers[buffer.index()].name;
            let axes = axes.iter().map(|&(axis, step)| format!("{} * {step}", self.kernel.axis(axis).name));
            let axes = axes.collect::<Vec<String>>().join(", ");
            let _ = writeln!(text, "tensor_map {buffer}[{first}] lines {lines} along {axes}");
        }
        for function in &self.functions {
            let mut writer = Writer { nest: self, locals: &function.body.locals, text, depth: 1 };
            writer.function(function);
            text = writer.text;
        }
        text
    }
}

/// An expression of a function as text.
pub(super) fn expression(nest: &Nest, function: &Function, expr: &Expr) -> String {
    Writer { nest, locals: &function.body.locals, text: String::new(), depth: 0 }.expr(expr)
}

/// How tightly an operator binds.
pub(super) fn precedence(op: Arithmetic) -> u8 {
    match op {
        Arithmetic::And => 1,
        Arithmetic::Equal | Arithmetic::Less | Arithmetic::LessEqual => 2,
        Arithmetic::Add | Arithmetic::Sub => 3,
        Arithmetic::Mul | Arithmetic::Div | Arithmetic::Rem | Arithmetic::Xor => 4,
        Arithmetic::Min | Arithmetic::Max => 5,
    }
}

/// The names of the launch's coordinates.
pub(super) const BUILTINS: [(&str, Builtin); 5] = [
    ("thread.x", Builtin::ThreadX),
    ("thread.y", Builtin::ThreadY),
    ("block.x", Builtin::BlockX),
    ("block.y", Builtin::BlockY),
    ("grid.y", Builtin::GridY),
];

struct Writer<'a> {
    nest: &'a Nest,
    locals: &'a [Local],
    text: String,
    depth: usize,
}

impl Writer<'_> {
    fn function(&mut self, function: &Function) {
        let launch = &function.launch;
        let [x, y, z] = launch.block;
        let (per_block, splits, shared) = (launch.per_block, launch.splits, launch.shared_bytes);
        let at_once = match launch.at_once {
            0 => String::new(),
            blocks => format!(" at_once {blocks}"),
        };
        let _ = writeln!(
            self.text,
            "function {} threads [{x}, {y}, {z}] per_block {per_block} splits {splits} shared {shared}{at_once} items {} = {}",
            function.name,
            launch.items.count(),
            launch.items
        );
        self.statements(&function.body.statements);
    }

    fn statements(&mut self, statements: &[Stmt]) {
        statements.iter().for_each(|stmt| self.statement(stmt));
    }

    fn line(&mut self, line: &str) {
        let _ = writeln!(self.text, "{:width$}{line}", "", width = self.depth * 2);
    }

    /// `head {`, what is in it, and `}`.
    fn block(&mut self, head: &str, body: &[Stmt]) {
        self.line(&format!("{head} {{"));
        self.inside(body);
        self.line("}");
    }

    fn inside(&mut self, body: &[Stmt]) {
        self.depth += 1;
        self.statements(body);
        self.depth -= 1;
    }

    fn statement(&mut self, stmt: &Stmt) {
        let line = match stmt {
            Stmt::Let { var, value } => format!("let {} = {}", self.definition(*var), self.expr(value)),
            Stmt::Declare { var, init } => self.declaration(*var, init.as_ref()),
            Stmt::Assign { target, value } => format!("set {} = {}", self.expr(target), self.expr(value)),
            Stmt::For { .. } => return self.rounds(stmt),
            Stmt::Block(body) => return self.block("block", body),
            Stmt::If { condition, then, otherwise } => {
                self.line(&format!("if {} {{", self.expr(condition)));
                self.inside(then);
                if !otherwise.is_empty() {
                    self.line("} else {");
                    self.inside(otherwise);
                }
                "}".to_string()
            }
            Stmt::VectorLoad { array, at, buffer, index, dtype, width } => {
                let (array, buffer) = (self.element(*array, at), self.element(*buffer, index));
                format!("load {array} = {buffer} width {width} of {dtype}")
            }
            Stmt::VectorStore { array, at, buffer, index, dtype, width } => {
                let (array, buffer) = (self.element(*array, at), self.element(*buffer, index));
                format!("store {buffer} = {array} width {width} of {dtype}")
            }
            Stmt::LoadMatrices { parts, at, shared, index, dtype, turns } => {
                let (parts, shared) = (self.element(*parts, at), self.element(*shared, index));
                format!("matrices {parts} = {shared} of {dtype}{}", if *turns { " turned" } else { "" })
            }
            Stmt::BeginCopy(copying) => {
                let Copying { shared, at, buffer, index, dtype, width, condition } = &**copying;
                let (shared, buffer) = (self.element(*shared, at), self.element(*buffer, index));
                let condition =
                    condition.as_ref().map(|condition| format!(" where {}", self.expr(condition)));
                format!("copy {shared} = {buffer} width {width} of {dtype}{}", condition.unwrap_or_default())
            }
            Stmt::Bulk(BulkStep::Expect { arrived, slots, copies }) => {
                format!("expect_tiles {} {slots} copies {copies}", self.name(*arrived))
            }
            Stmt::Bulk(BulkStep::Begin(copy)) => {
                let BulkCopy { map, positions, shared, at, arrived, slot } = &**copy;
                let positions = positions.iter().map(|position| self.expr(position));
                let positions = positions.collect::<Vec<String>>().join(", ");
                let (shared, arrived) = (self.element(*shared, at), self.element(*arrived, slot));
                format!("begin_tile {shared} = {map} at {positions} as {arrived}")
            }
            Stmt::Bulk(BulkStep::Await(of)) => {
                format!("await_tiles {} round {}", self.element(of.arrived, &of.slot), self.expr(&of.round))
            }
            Stmt::CommitCopies => "commit_copies".to_string(),
            Stmt::AwaitCopies { but } => format!("await_copies but {but}"),
            Stmt::MultiplyMatrices(product) => {
                let MatrixProduct { dtype, left, left_at, right, right_at, sums, sums_at } = &**product;
                let sums = self.element(*sums, sums_at);
                let (left, right) = (self.element(*left, left_at), self.element(*right, right_at));
                format!("multiply_matrices {sums}, {left}, {right} of {dtype}")
            }
            Stmt::MultiplyGroup(product) => {
                let GroupProduct { dtype, columns, left, right, sums, sums_at } = &**product;
                let factor = |factor: &GroupFactor| {
                    let lines = match factor.lines {
                        Lines::Along => "",
                        Lines::Turned => " turned",
                        Lines::Own => " own",
                    };
                    format!("{}{lines}", self.element(factor.array, &factor.at))
                };
                let (sums, left, right) = (self.element(*sums, sums_at), factor(left), factor(right));
                format!("multiply_group {columns} {sums}, {left}, {right} of {dtype}")
            }
            Stmt::Products(step) => match step {
                ProductStep::Publish => "products publish".to_string(),
                ProductStep::Begin => "products begin".to_string(),
                ProductStep::Commit => "products commit".to_string(),
                ProductStep::Await(but) => format!("products await but {but}"),
            },
            Stmt::MultiplyTile(tile) => self.multiply(tile),
            Stmt::Turn(turning) => {
                let Turning { dtype, to, to_at, to_row, from, from_at, from_row, depth, rows } = &**turning;
                let (to, from) = (self.element(*to, to_at), self.element(*from, from_at));
                let rows = rows.as_ref().map_or(String::new(), |rows| format!(", rows {}", self.expr(rows)));
                let depth = self.expr(depth);
                format!("turn {dtype} {to} row {to_row}, {from} row {from_row}, depth {depth}{rows}")
            }
            Stmt::Pair(pairing) => {
                let Pairing { array, at, row, depth, count, along } = &**pairing;
                let at = self.element(*array, at);
                let [depth, count] = [depth, count].map(|expr| self.expr(expr));
                let of = if *along { "rows" } else { "width" };
                format!("pair {at} row {row}, depth {depth}, {of} {count}")
            }
            Stmt::Scan(scanning) => {
                let Scanning { op, dtype, to, to_at, from, from_at, count, running } = &**scanning;
                let (to, from) = (self.element(*to, to_at), self.element(*from, from_at));
                let (count, running) = (self.expr(count), self.expr(running));
                format!("{} {dtype} {to}, {from}, running {running}, count {count}", op.scan_name())
            }
            Stmt::Sort(sorting) => self.sort(sorting),
            Stmt::Positions { .. } | Stmt::Buffers { .. } | Stmt::Part { .. } => return self.table(stmt),
            Stmt::InTurns { key, active, body } => {
                return self.block(&format!("in_turns {} while {}", self.expr(key), self.expr(active)), body);
            }
            Stmt::Barrier => "barrier".to_string(),
            Stmt::Prefetch { buffer, index, stream } => {
                let stream = if *stream { " stream" } else { "" };
                format!("prefetch {}{stream}", self.element(*buffer, index))
            }
            Stmt::Arrive { counters, index, count } => {
                format!("arrive {} of {}", self.element(*counters, index), self.expr(count))
            }
            Stmt::Add { target, value, dtype } => {
                format!("add {dtype} {} to {}", self.expr(value), self.expr(target))
            }
            Stmt::Return => "return".to_string(),
        };
        self.line(&line);
    }

    fn rounds(&mut self, stmt: &Stmt) {
        let Stmt::For { var, from, to, step, hint, body } = stmt else { return };
        let (var, from, to) = (self.definition(*var), self.expr(from), self.expr(to));
        let step = match step {
            Step::Add(step) => format!("step {}", self.expr(step)),
            Step::Halve => "halving".to_string(),
        };
        let hint = match hint {
            LoopHint::None => String::new(),
            LoopHint::Unroll => " unroll".to_string(),
            LoopHint::UnrollBy(factor) => format!(" unroll {factor}"),
            LoopHint::Simd => " simd".to_string(),
            LoopHint::SimdSegment => " simd_segment".to_string(),
            LoopHint::SimdSpilling => " simd_spilling".to_string(),
        };
        self.block(&format!("for {var} = {from} to {to} {step}{hint}"), body);
    }

    /// Tables of joins of many.
    fn table(&mut self, stmt: &Stmt) {
        let line = match stmt {
            Stmt::Positions { table, positions } => {
                format!("positions {} = {positions:?}", self.name(*table))
            }
            Stmt::Buffers { table, buffers, dtype } => {
                let buffers: Vec<String> = buffers.iter().map(|&buffer| self.name(buffer)).collect();
                format!("buffers {} = [{}] of {dtype}", self.name(*table), buffers.join(", "))
            }
            Stmt::Part { part, table, number, dtype } => {
                format!("part {} = {} of {dtype}", self.name(*part), self.element(*table, number))
            }
            _ => return,
        };
        self.line(&line);
    }

    fn sort(&self, sorting: &Sorting) -> String {
        let Sorting { items, at, wide, by } = sorting;
        let by = match by {
            SortBy::Row(row) => {
                let spare = self.element(row.spare, &row.spare_at);
                let [count, wanted] = [&row.count, &row.wanted].map(|expr| self.expr(expr));
                format!("row {spare} count {count} wanted {wanted}")
            }
            SortBy::Lanes { count } => format!("lanes count {}", self.expr(count)),
            SortBy::Block { items, length, threads } => {
                format!("block items {items} length {length} threads {threads}")
            }
        };
        format!("sort {}{} by {by}", self.element(*items, at), if *wide { " wide" } else { "" })
    }

    fn multiply(&self, tile: &TileProduct) -> String {
        let TileProduct {
            dtype,
            left,
            left_at,
            left_row,
            left_term,
            right,
            right_at,
            right_row,
            lines,
            sums,
            sums_at,
            sums_row,
            ..
        } = tile;
        let [left, right, sums] =
            [(left, left_at), (right, right_at), (sums, sums_at)].map(|(var, at)| self.element(*var, at));
        let [depth, width, adds] = [&tile.depth, &tile.width, &tile.adds].map(|expr| self.expr(expr));
        let few = if tile.few { "few " } else { "" };
        let rows =
            tile.rows.as_ref().map_or(String::new(), |rows| format!(", {few}rows {}", self.expr(rows)));
        let streams = if tile.streams { ", streams" } else { "" };
        let of = if *lines { "line" } else { "row" };
        format!(
            "multiply {dtype} {left} row {left_row} term {left_term}, {right} {of} {right_row}, {sums} row {sums_row}, depth {depth}, width {width}, adds {adds}{rows}{streams}"
        )
    }

    fn declaration(&self, var: Var, init: Option<&Expr>) -> String {
        let definition = self.definition(var);
        let Var::Local(id) = var else { return format!("var {definition}") };
        let Local { len, space, .. } = &self.locals[id.index()];
        match (space, len, init) {
            (Space::Shared(None), Some(len), _) => format!("shared {definition} [{len}]"),
            (Space::Shared(Some(from)), Some(len), _) => format!("shared {definition} [{len}] from {from}"),
            (Space::Launch(from), Some(len), _) => format!("launch {definition} [{len}] from {from}"),
            (_, Some(len), _) => format!("array {definition} [{len}]"),
            (_, None, Some(init)) => format!("var {definition} = {}", self.expr(init)),
            (_, None, None) => format!("var {definition}"),
        }
    }

    fn name(&self, var: Var) -> String {
        match var {
            Var::Axis(axis) => self.nest.kernel.axis(axis).name.clone(),
            Var::Lane => LANE.into(),
            Var::Parameter(parameter) => parameter_name(self.nest, parameter),
            Var::Local(id) => self.locals[id.index()].hint.clone(),
        }
    }

    /// The name; of a variable of the function's own with its type.
    fn definition(&self, var: Var) -> String {
        match var {
            Var::Local(id) => format!("{}: {}", self.name(var), type_text(self.locals[id.index()].ty)),
            Var::Axis(_) | Var::Lane | Var::Parameter(_) => self.name(var),
        }
    }

    fn element(&self, array: Var, index: &Expr) -> String {
        format!("{}[{}]", self.name(array), self.expr(index))
    }

    fn index(&self, index: &IndexExpr) -> String {
        index.to_text(&|axis: AxisId| self.nest.kernel.axis(axis).name.clone(), "")
    }

    /// An operand of an operator.
    fn operand(&self, expr: &Expr, level: u8) -> String {
        match expr {
            Expr::Arithmetic(op, ..) if precedence(*op) < level => format!("({})", self.expr(expr)),
            _ => self.expr(expr),
        }
    }

    fn call(&self, function: &str, operands: &[&Expr]) -> String {
        let operands: Vec<String> = operands.iter().map(|operand| self.expr(operand)).collect();
        format!("{function}({})", operands.join(", "))
    }

    fn expr(&self, expr: &Expr) -> String {
        match expr {
            Expr::Name(var) => self.name(*var),
            Expr::Int(value) => value.to_string(),
            Expr::Index(index) => format!("index({})", self.index(index)),
            Expr::Wide(a) => self.call("wide", &[a]),
            Expr::Arithmetic(op, a, b) => {
                let level = precedence(*op);
                format!("{} {} {}", self.operand(a, level), op.sign(), self.operand(b, level + 1))
            }
            Expr::Builtin(builtin) => {
                let known = BUILTINS.iter().find(|(_, other)| other == builtin);
                known.map_or("", |(name, _)| name).to_string()
            }
            Expr::Literal(value) => format!("literal({} {value})", value.dtype()),
            Expr::Position(index) => format!("position({})", self.index(index)),
            Expr::InBounds(bounds) => {
                let bound =
                    |b: &crate::index::Bound| format!("{} <= {} < {}", b.lo, self.index(&b.expr), b.hi);
                let bounds: Vec<String> = bounds.iter().map(bound).collect();
                format!("in_bounds({})", bounds.join(", "))
            }
            Expr::Random { dtype, seed, index } => {
                format!("random.{dtype}({}, {})", self.name(*seed), self.index(index))
            }
            Expr::Checked { position, extent, check } => {
                let (position, extent) = (self.expr(position), self.expr(extent));
                match check {
                    Some(check) => format!("checked({position}, {extent}, {check})"),
                    None => format!("below({position}, {extent})"),
                }
            }
            Expr::ToIndex(a) => self.call("to_index", &[a]),
            Expr::Unary(op, dtype, a) => self.call(&format!("{op}.{dtype}"), &[a]),
            Expr::Binary(op, dtype, a, b) => self.call(&format!("{op}.{dtype}"), &[a, b]),
            Expr::BriefExp(a) => self.call("brief_exp", &[a]),
            Expr::ZeroTimes(dtype, first, count) => {
                format!("zero_times.{dtype}({}, {count})", self.expr(first))
            }
            Expr::MulAdd(dtype, operands) => {
                self.call(&format!("mul_add.{dtype}"), &operands.iter().collect::<Vec<_>>())
            }
            Expr::Quotient(dtype, operands) => {
                let [a, b] = &**operands;
                self.call(&format!("quotient.{dtype}"), &[a, b])
            }
            Expr::Select(condition, a, b) => self.call("select", &[condition, a, b]),
            Expr::Cast { from, to, operand } => self.call(&format!("cast.{from}.{to}"), &[operand]),
            Expr::Element(array, index) => self.element(*array, index),
            Expr::FromMemory(dtype, a) => self.call(&format!("from_memory.{dtype}"), &[a]),
            Expr::ToMemory(dtype, a) => self.call(&format!("to_memory.{dtype}"), &[a]),
            Expr::Sort { part, dtype, descending, operands } => {
                let [a, b] = &**operands;
                let descending = if *descending { ".descending" } else { "" };
                self.call(&format!("{}.{dtype}{descending}", part.name()), &[a, b])
            }
            Expr::Votes(a) => self.call("votes", &[a]),
            Expr::VotesBefore(a) => self.call("votes_before", &[a]),
            Expr::ShuffleUp { value, delta } => self.call("shuffle_up", &[value, delta]),
            Expr::ShuffleXor { value, mask, width } => {
                self.call(&format!("shuffle_xor.{width}"), &[value, mask])
            }
        }
    }
}

/// What the lane is called.
pub(super) const LANE: &str = "l";

/// A type as text.
pub(super) fn type_text(ty: Type) -> String {
    match ty {
        Type::Index => "index".to_string(),
        Type::Register(dtype) => dtype.to_string(),
        Type::Memory(dtype) => format!("memory {dtype}"),
    }
}
