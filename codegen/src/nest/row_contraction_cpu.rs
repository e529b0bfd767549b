//! Contractions of rows on the CPU: attention, layers after a normalisation, and rows of products that are reduced.
//!
//! A block has some rows. If they are made of products, such as scores of queries and keys, these are added up in the
//! block's array as in any contraction. Then each row's reductions follow, one after the other, and the row becomes what is
//! multiplied with the columns, unless it is a result, or its reductions are. So no row is ever in memory, and everything is computed as it would be apart.

use super::accumulate::set;
use super::contraction_cpu::{Left, Packed, Part, Writer, ceil};
use super::emitter::Emitter;
use super::kept;
use super::loops::{counting, stepping};
use super::passes::launch_of_parts;
use super::row_statistics::{Extent, Row};
use super::stmt::Arithmetic::{Add, Div, Min, Mul, Rem, Sub};
use super::stmt::{Builtin, Expr, LoopHint, Stmt, Type};
use super::variable::Var;
use super::{Function, INDEX, Nest};
use crate::index::AxisId;
use crate::ir::{Kernel, Store, ValueId, ValueOp};
use crate::schedule::{
    Contraction, ContractionSchedule, PANEL, RowContraction, RowContractionSchedule, padded,
};
use crate::{BinaryOp, DType, Language, Refusal, Scalar, UnaryOp};

pub(super) fn build(
    kernel: &Kernel,
    of: &RowContraction,
    schedule: &RowContractionSchedule,
) -> Result<Nest, Refusal> {
    let mut emitter = Emitter::new(kernel, Language::C);
    let Contraction { batch, rows, .. } = &of.contraction;
    let row_part = Part::new(&mut emitter, "row");
    let mut writer = Rows { kernel, of, schedule, rows: row_part, row: emitter.index("r"), part: None };
    writer.body(&mut emitter);
    let body = emitter.finish()?;
    let launch = launch_of_parts(kernel, &[(batch, 1), (rows, schedule.rows.into())]);
    Ok(Nest::new(kernel.clone(), vec![Function::of(kernel, body, launch)], Vec::new()))
}

/// Columns whose terms are looked at for infinities.
const MOST_PROBED: u64 = 1024;

struct Rows<'a> {
    kernel: &'a Kernel,
    of: &'a RowContraction,
    schedule: &'a RowContractionSchedule,
    rows: Part,
    /// One row of the block.
    row: Var,
    /// Which elements of its rows count if not all: whole panels.
    part: Option<Extent>,
}

impl<'a> Rows<'a> {
    fn body(&mut self, emitter: &mut Emitter) {
        let Contraction { batch, rows, dtype, .. } = &self.of.contraction;
        self.begin(emitter, batch, rows);
        self.part = self.kept(emitter);
        let element = Type::Register(*dtype);
        let array = |emitter: &mut Emitter, prefix, len| {
            let var = emitter.fresh(prefix);
            emitter.array(var, element, len)
        };
        let (of_block, deep) = (u64::from(self.schedule.rows), u64::from(self.schedule.depth));
        let length = padded(self.kernel, self.of.along);
        let writers: Vec<Writer> =
            self.of.scores.iter().map(|score| self.writer(emitter, score, length)).collect();
        let of_left = writers.iter().map(Writer::left_elements).max().unwrap_or(1);
        let left = array(emitter, "left", of_left);
        let right = array(emitter, "right", u64::from(self.schedule.columns) * deep);
        // The products' sums, of which the first become what is multiplied.
        let scores: Vec<Var> =
            (0..self.of.scores.len().max(1)).map(|_| array(emitter, "scores", of_block * length)).collect();
        for (writer, &sums) in writers.iter().zip(&scores) {
            self.sums(
                emitter,
                writer,
                [Left::Packed(left), Left::Packed(right), Left::Packed(sums)],
                |_, _| {},
            );
        }
        let weights = match self.of.contraction.is_paired {
            true => {
                let weights = emitter.fresh("weights");
                emitter.array(weights, Type::Memory(DType::BF16), of_block * length)
            }
            false => scores[0],
        };
        let known = self.weigh(emitter, &scores, weights);
        if self.of.contraction.products.is_empty() {
            return;
        }
        let sums = array(emitter, "sums", of_block * u64::from(self.schedule.columns));
        let mut writer = self.writer(emitter, &self.of.contraction, u64::from(self.schedule.columns));
        (writer.is_whole, writer.part) = (false, self.part);
        let weights = Left::There { array: weights, row: length };
        self.sums(emitter, &writer, [weights, Left::Packed(right), Left::Packed(sums)], |emitter, writer| {
            writer.results(emitter, &writer.contraction.products, &[sums], &known);
        });
    }

    /// Binds the block's rows and the batch's axes.
    fn begin(&self, emitter: &mut Emitter, batch: &[AxisId], rows: &[AxisId]) {
        let block = Expr::Builtin(Builtin::BlockX);
        let (count, of) = (emitter.positions(rows), Expr::Int(self.schedule.rows.into()));
        let chunks = ceil(count.clone(), of.clone());
        let own = if batch.is_empty() { block.clone() } else { block.clone().then(Rem, chunks.clone()) };
        emitter.bind(self.rows.first, INDEX, own.then(Mul, of.clone()));
        emitter.bind(self.rows.count, INDEX, of.then(Min, count.then(Sub, self.rows.first)));
        if !batch.is_empty() {
            let rest = emitter.bind("block1", INDEX, block.then(Div, chunks));
            emitter.unflatten(rest, batch, 1);
        }
    }

    /// Which elements the block's rows have beside those that a mask leaves out: its numbers must be negative infinity, and
    /// the columns' terms there finite, as zero times infinity is no zero.
    fn kept(&self, emitter: &mut Emitter) -> Option<Extent> {
        let masked = self.of.masked(self.kernel)?;
        let Contraction { rows: axes, column, dtype, .. } = &self.of.contraction;
        let columns = self.kernel.axis(*column).extent;
        let length = self.kernel.axis(self.of.along).extent;
        if columns > MOST_PROBED || length <= PANEL {
            return None;
        }
        let (number, ty) =
            (|value: f64| Expr::Literal(Scalar::from_f64(*dtype, value)), Type::Register(*dtype));
        let rows =
            kept::Rows { axes, first: Expr::Name(self.rows.first), count: Expr::Name(self.rows.count) };
        let [begin, end] = kept::part_of_rows(emitter, self.of, &masked, &rows).map(Expr::Name);
        // Whole panels.
        let begin = masked.kept.has_beginning().then(|| {
            let panels = begin.then(Div, Expr::Int(PANEL));
            emitter.bind("first", INDEX, panels.then(Mul, Expr::Int(PANEL)))
        });
        let panels = ceil(end, Expr::Int(PANEL));
        let last =
            emitter.bind("last", INDEX, panels.then(Mul, Expr::Int(PANEL)).then(Min, Expr::Int(length)));
        let probe = emitter.fresh("probe");
        let probe = emitter.array(probe, ty, columns);
        let at = Expr::element(probe, Var::Lane);
        let zero = vec![set(at.clone(), number(0.0))];
        emitter.push(counting(Var::Lane, Expr::Int(0), Expr::Int(columns), LoopHint::Simd).of(zero));
        if let Some(begin) = begin {
            self.probe(emitter, &at, Expr::Int(0), Expr::Name(begin));
        }
        self.probe(emitter, &at, Expr::Name(last), Expr::Int(length));
        let binary = |op, a, b| Expr::Binary(op, *dtype, Box::new(a), Box::new(b));
        let all = emitter.fresh("v");
        let all = emitter.variable(all, ty, number(0.0));
        let add = set(Expr::Name(all), binary(BinaryOp::Add, Expr::Name(all), at));
        emitter.push(counting(Var::Lane, Expr::Int(0), Expr::Int(columns), LoopHint::None).of(vec![add]));
        let part = Extent {
            begin: begin.map(|_| emitter.variable("begin", INDEX, Expr::Int(0))),
            end: emitter.variable("end", INDEX, Expr::Int(length)),
        };
        let is_zero = binary(BinaryOp::Eq, Expr::Name(all), number(0.0));
        let mut then = vec![set(Expr::Name(part.end), Expr::Name(last))];
        if let (Some(begin), Some(first)) = (part.begin, begin) {
            then.push(set(Expr::Name(begin), Expr::Name(first)));
        }
        let mut conditions = vec![is_zero];
        conditions.extend(
            masked
                .numbers(self.kernel)
                .into_iter()
                .map(|(id, value)| binary(BinaryOp::Eq, emitter.value(id), number(value))),
        );
        for condition in conditions {
            then = vec![Stmt::If { condition, then, otherwise: Vec::new() }];
        }
        then.into_iter().for_each(|stmt| emitter.push(stmt));
        Some(part)
    }

    /// Adds zero times the columns' terms of some elements.
    fn probe(&self, emitter: &mut Emitter, at: &Expr, from: Expr, to: Expr) {
        let Contraction { column, products, dtype, .. } = &self.of.contraction;
        let binary = |op, a, b| Expr::Binary(op, *dtype, Box::new(a), Box::new(b));
        let term = emitter.index("t");
        emitter.open(&[self.of.along], false);
        emitter.bind(self.of.along, INDEX, Expr::Name(term));
        emitter.open(&[*column], false);
        emitter.bind(*column, INDEX, Expr::name(Var::Lane));
        let value = emitter.value(products[0].right);
        let zero = Expr::Literal(Scalar::from_f64(*dtype, 0.0));
        let nothing = binary(BinaryOp::Mul, value, zero);
        emitter.push(set(at.clone(), binary(BinaryOp::Add, at.clone(), nothing)));
        let body = emitter.close();
        let columns = Expr::Int(self.kernel.axis(*column).extent);
        emitter.push(counting(Var::Lane, Expr::Int(0), columns, LoopHint::Simd).of(body));
        let body = emitter.close();
        emitter.push(counting(term, from, to, LoopHint::None).of(body));
    }

    fn writer<'w>(&self, emitter: &mut Emitter, contraction: &'w Contraction, sums_row: u64) -> Writer<'w>
    where
        'a: 'w,
    {
        let RowContractionSchedule { rows, columns, .. } = *self.schedule;
        let terms = self.kernel.axis(contraction.depth[0]).extent;
        let depth = terms.clamp(1, self.schedule.depth.into()) as u32;
        let schedule = ContractionSchedule { rows, lines: 1, columns, depth, part: 0 };
        let mut writer = Writer::new(emitter, self.kernel, contraction, contraction.depth[0], schedule);
        writer.rows = self.rows;
        (writer.sums_row, writer.is_whole) = (sums_row, true);
        writer
    }

    /// Sums of products, some columns at a time.
    fn sums(
        &self,
        emitter: &mut Emitter,
        writer: &Writer,
        [left, right, sums]: [Left; 3],
        then: impl FnOnce(&mut Emitter, &Writer),
    ) {
        let Left::Packed(right) = right else { return };
        let Left::Packed(sums) = sums else { return };
        let column = writer.contraction.column;
        let all = Expr::Int(self.kernel.axis(column).extent);
        let [from, extent] = Extent::of(self.part.filter(|_| column == self.of.along), all);
        let columns = Expr::Int(self.schedule.columns.into());
        emitter.repeat(
            stepping(writer.columns.first, (from, &extent), &columns, LoopHint::None),
            |emitter| {
                let rest = extent.clone().then(Sub, writer.columns.first);
                emitter.bind(writer.columns.count, INDEX, columns.clone().then(Min, rest));
                writer.all_terms(emitter, left, &Packed { array: right, image: None }, &[sums]);
                then(emitter, writer);
            },
        );
    }

    /// Each row's reductions, then the row as it is multiplied, in an array, or what is stored of it. Gives arrays of the
    /// reductions' results that are needed later, one for each row.
    fn weigh(&self, emitter: &mut Emitter, scores: &[Var], weights: Var) -> Vec<(ValueId, Var)> {
        let kernel = self.kernel;
        let Contraction { rows, products, .. } = &self.of.contraction;
        let later = products.first().map_or_else(Vec::new, |product| needed_after(kernel, product.sum));
        let known: Vec<(ValueId, Var)> = (self.of.statistics.iter().copied())
            .filter(|id| later.contains(id))
            .map(|id| {
                let of_rows = emitter.fresh("of_rows");
                let ty = Type::Register(kernel.value(id).dtype);
                (id, emitter.array(of_rows, ty, self.schedule.rows.into()))
            })
            .collect();
        emitter.open(&[], false);
        let at_row = self.rows.first.then(Add, self.row);
        let at_row = emitter.bind("at_row", INDEX, at_row);
        emitter.unflatten(at_row, rows, 1);
        let at = self.row.then(Mul, padded(kernel, self.of.along));
        let sums = self.of.scores.iter().zip(scores);
        let mut row = Row {
            kernel,
            along: self.of.along,
            there: sums.map(|(score, &sums)| (score.products[0].sum, sums, at.clone())).collect(),
            part: self.part,
        };
        for &id in &self.of.statistics {
            let ValueOp::Reduce { operand, .. } = kernel.value(id).op else { continue };
            if is_used_again(kernel, operand) {
                let least = self.least_weight(operand);
                row.keep(emitter, operand, |emitter, value| match least {
                    Some(least) => at_least(emitter, value, least),
                    None => value,
                });
            }
            let result = row.reduce(emitter, id);
            if let Some((_, of_rows)) = known.iter().find(|(other, _)| *other == id) {
                emitter.push(set(Expr::element(*of_rows, self.row), result.clone()));
            }
            emitter.define(id, result);
        }
        match products.first() {
            Some(product) => {
                let target = Expr::element(weights, at.then(Add, Var::Lane));
                row.each(emitter, |emitter| {
                    let value = emitter.value(product.left);
                    let value = match self.of.contraction.is_paired {
                        true => Expr::ToMemory(DType::BF16, Box::new(value)),
                        false => value,
                    };
                    emitter.push(set(target, value));
                });
            }
            None => self.results(emitter, &row),
        }
        let body = emitter.close();
        emitter.push(counting(self.row, 0, self.rows.count, LoopHint::None).of(body));
        known
    }

    /// The least weight of a softmax that is not zero: what is less counts as this. Subnormal weights, and products of weights near
    /// them, take Intel's processors a hundred cycles each. A row's greatest weight is 1, so that no sum shows a difference unless
    /// some of its terms are 2^70 times as large as others. Zero would not do: zero times infinity is NaN.
    fn least_weight(&self, id: ValueId) -> Option<Scalar> {
        let softmax = self.of.contraction.products.first().and_then(|_| self.of.softmax(self.kernel))?;
        let value = self.kernel.value(id);
        let is_weight = matches!(value.op, ValueOp::Unary(UnaryOp::Exp, distance)
            if matches!(self.kernel.value(distance).op, ValueOp::Binary(BinaryOp::Sub, a, _) if a == softmax.operand));
        let limits = value.dtype.finfo().filter(|_| is_weight)?;
        Some(Scalar::from_f64(value.dtype, limits.tiny / limits.eps))
    }

    /// What is stored of a row.
    fn results(&self, emitter: &mut Emitter, row: &Row) {
        let is_element = |store: &&Store| store.index.uses(self.of.along);
        let (elements, of_row): (Vec<&Store>, Vec<&Store>) = self.kernel.stores.iter().partition(is_element);
        of_row.iter().for_each(|store| emitter.store(store));
        if !elements.is_empty() {
            row.each(emitter, |emitter| elements.iter().for_each(|store| emitter.store(store)));
        }
    }
}

/// The number, or `least` where it is between zero and that.
fn at_least(emitter: &mut Emitter, value: Expr, least: Scalar) -> Expr {
    let dtype = least.dtype();
    let value = emitter.named(value, dtype);
    let binary = |op, dtype, a: Expr, b: Expr| Expr::Binary(op, dtype, Box::new(a), Box::new(b));
    let zero = Expr::Literal(Scalar::from_f64(dtype, 0.0));
    let is_more = binary(BinaryOp::Lt, dtype, zero, value.clone());
    let is_less = binary(BinaryOp::Lt, dtype, value.clone(), Expr::Literal(least));
    let is_tiny = binary(BinaryOp::And, DType::Bool, is_more, is_less);
    Expr::Select(Box::new(is_tiny), Box::new(Expr::Literal(least)), Box::new(value))
}

/// Whether an element of the rows is needed for more than one reduction.
fn is_used_again(kernel: &Kernel, id: ValueId) -> bool {
    let users = kernel.values.iter().filter(|value| kernel.operands(&value.op).contains(&id)).count();
    users + kernel.stores.iter().filter(|store| store.value == id).count() > 1
}

/// What results need beside a sum.
fn needed_after(kernel: &Kernel, sum: ValueId) -> Vec<ValueId> {
    let mut found = Vec::new();
    let mut pending: Vec<ValueId> = kernel.stores.iter().map(|store| store.value).collect();
    while let Some(id) = pending.pop() {
        if id != sum && !found.contains(&id) {
            found.push(id);
            pending.extend(kernel.operands(&kernel.value(id).op));
        }
    }
    found
}
