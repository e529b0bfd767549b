//! Contractions of rows on the CPU: attention, layers after a normalisation, and rows of products that are reduced.
//!
//! A block has some rows. If they are made of products, such as scores of queries and keys, these are added up in the
//! block's array as in any contraction. Then each row's reductions follow, one after the other, and the row becomes what is
//! multiplied with the columns, unless it is a result, or its reductions are. So no row is ever in memory, and everything is computed as it would be apart.

use super::accumulate::set;
use super::contraction_cpu::{Left, Packed, Part, Writer, ceil};
use super::emitter::Emitter;
use super::loops::{counting, stepping};
use super::passes::launch_of_parts;
use super::row_statistics::Row;
use super::stmt::Arithmetic::{Add, Div, Max, Min, Mul, Rem, Sub};
use super::stmt::{Builtin, Expr, LoopHint, Stmt, Type};
use super::variable::Var;
use super::{Function, INDEX, Nest};
use crate::index::AxisId;
use crate::ir::{Kernel, Store, ValueId, ValueOp};
use crate::schedule::{
    Contraction, ContractionSchedule, Masked, PANEL, RowContraction, RowContractionSchedule, padded,
};
use crate::{BinaryOp, Language, Refusal, Scalar};

pub(super) fn build(
    kernel: &Kernel,
    of: &RowContraction,
    schedule: &RowContractionSchedule,
) -> Result<Nest, Refusal> {
    let mut emitter = Emitter::new(kernel, Language::C);
    let Contraction { batch, rows, .. } = &of.contraction;
    let row_part = Part::new(&mut emitter, "row");
    let mut writer = Rows { kernel, of, schedule, rows: row_part, row: emitter.index("r"), end: None };
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
    /// How many elements of its rows count if not all: a multiple of a panel, or all.
    end: Option<Var>,
}

impl<'a> Rows<'a> {
    fn body(&mut self, emitter: &mut Emitter) {
        let Contraction { batch, rows, dtype, .. } = &self.of.contraction;
        self.begin(emitter, batch, rows);
        self.end = self.end(emitter);
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
        let known = self.weigh(emitter, &scores);
        if self.of.contraction.products.is_empty() {
            return;
        }
        let sums = array(emitter, "sums", of_block * u64::from(self.schedule.columns));
        let mut writer = self.writer(emitter, &self.of.contraction, u64::from(self.schedule.columns));
        (writer.is_whole, writer.end) = (false, self.end);
        let weights = Left::There { array: scores[0], row: length };
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

    /// Where all rows of the block have come to what a mask leaves out: its number must be negative infinity, and the
    /// columns' terms from there on finite, as zero times infinity is no zero.
    fn end(&self, emitter: &mut Emitter) -> Option<Var> {
        let kernel = self.kernel;
        let Masked { fill, behind } = self.of.masked(kernel)?;
        let Contraction { column, products, dtype, .. } = &self.of.contraction;
        let columns = kernel.axis(*column).extent;
        let length = kernel.axis(self.of.along).extent;
        if columns > MOST_PROBED || length <= PANEL {
            return None;
        }
        let (number, ty) =
            (|value: f64| Expr::Literal(Scalar::from_f64(*dtype, value)), Type::Register(*dtype));
        let after = self.rows.first.then(Add, self.rows.count);
        let last = match behind - 1 {
            less @ ..0 => after.then(Sub, less.unsigned_abs()),
            more => after.then(Add, more.unsigned_abs()),
        };
        let last = emitter.bind("last", INDEX, last.then(Max, 1));
        let panels = ceil(Expr::Name(last), Expr::Int(PANEL));
        let known = emitter.bind("known", INDEX, panels.then(Mul, PANEL).then(Min, length));
        let probe = emitter.fresh("probe");
        let probe = emitter.array(probe, ty, columns);
        let at = Expr::element(probe, Var::Lane);
        let zero = vec![set(at.clone(), number(0.0))];
        emitter.push(counting(Var::Lane, 0, columns, LoopHint::Simd).of(zero));
        let term = emitter.index("t");
        emitter.open(&[self.of.along], false);
        emitter.bind(self.of.along, INDEX, Expr::Name(term));
        emitter.open(&[*column], false);
        emitter.bind(*column, INDEX, Expr::name(Var::Lane));
        let value = emitter.value(products[0].right);
        let binary = |op, a, b| Expr::Binary(op, *dtype, Box::new(a), Box::new(b));
        let nothing = binary(BinaryOp::Mul, value, number(0.0));
        emitter.push(set(at.clone(), binary(BinaryOp::Add, at.clone(), nothing)));
        let body = emitter.close();
        emitter.push(counting(Var::Lane, 0, columns, LoopHint::Simd).of(body));
        let body = emitter.close();
        emitter.push(counting(term, known, length, LoopHint::None).of(body));
        let all = emitter.fresh("v");
        let all = emitter.variable(all, ty, number(0.0));
        let add = set(all, binary(BinaryOp::Add, Expr::Name(all), at));
        emitter.push(counting(Var::Lane, 0, columns, LoopHint::None).of(vec![add]));
        let end = emitter.variable("end", INDEX, Expr::Int(length));
        let fill = emitter.value(fill);
        let is_zero = binary(BinaryOp::Eq, Expr::Name(all), number(0.0));
        let then = vec![Stmt::If { condition: is_zero, then: vec![set(end, known)], otherwise: Vec::new() }];
        let condition = binary(BinaryOp::Eq, fill, number(f64::NEG_INFINITY));
        emitter.push(Stmt::If { condition, then, otherwise: Vec::new() });
        Some(end)
    }

    fn writer<'w>(&self, emitter: &mut Emitter, contraction: &'w Contraction, sums_row: u64) -> Writer<'w>
    where
        'a: 'w,
    {
        let RowContractionSchedule { rows, columns, .. } = *self.schedule;
        let terms = self.kernel.axis(contraction.depth[0]).extent;
        let depth = terms.clamp(1, self.schedule.depth.into()) as u32;
        let schedule = ContractionSchedule { rows, lines: 1, columns, depth };
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
        let extent = self.end.filter(|_| column == self.of.along).map_or(all, Expr::Name);
        let columns = Expr::Int(self.schedule.columns.into());
        emitter.repeat(stepping(writer.columns.first, (0, &extent), &columns, LoopHint::None), |emitter| {
            let rest = extent.clone().then(Sub, writer.columns.first);
            emitter.bind(writer.columns.count, INDEX, columns.clone().then(Min, rest));
            writer.all_terms(emitter, left, &Packed { array: right, image: None }, &[sums]);
            then(emitter, writer);
        });
    }

    /// Each row's reductions, then the row as it is multiplied, in the first array, or what is stored of it. Gives arrays of the
    /// reductions' results that are needed later, one for each row.
    fn weigh(&self, emitter: &mut Emitter, scores: &[Var]) -> Vec<(ValueId, Var)> {
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
            end: self.end,
        };
        for &id in &self.of.statistics {
            let ValueOp::Reduce { operand, .. } = kernel.value(id).op else { continue };
            if is_used_again(kernel, operand) {
                row.keep(emitter, operand);
            }
            let result = row.reduce(emitter, id);
            if let Some((_, of_rows)) = known.iter().find(|(other, _)| *other == id) {
                emitter.push(set(Expr::element(*of_rows, self.row), result.clone()));
            }
            emitter.define(id, result);
        }
        match products.first() {
            Some(product) => {
                let target = Expr::element(scores[0], at.then(Add, Var::Lane));
                row.each(emitter, |emitter| {
                    let value = emitter.value(product.left);
                    emitter.push(set(target, value));
                });
            }
            None => self.results(emitter, &row),
        }
        let body = emitter.close();
        emitter.push(counting(self.row, 0, self.rows.count, LoopHint::None).of(body));
        known
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
