//! What a block has of rows, lines, columns and terms, and its loops over them.

use super::super::INDEX;
use super::super::emitter::Emitter;
use super::super::index_split::IndexSplit;
use super::super::loops::{counting, stepping};
use super::super::row_statistics::Extent;
use super::super::stmt::Arithmetic::{Add, Div, Min, Mul, Rem, Sub};
use super::super::stmt::{Expr, LoopHint, Stmt};
use super::super::variable::Var;
use super::{Writer, ceil};
use crate::ir::ValueId;
use crate::schedule::{Contraction, PANEL};

impl Writer<'_> {
    /// A loop over the terms, some at a time.
    pub(super) fn each_part<'k>(&self, emitter: &mut Emitter<'k>, body: impl FnOnce(&mut Emitter<'k>)) {
        let deep = Expr::Int(u64::from(self.schedule.depth));
        emitter.open(&[], false);
        let [from, terms] = Extent::of(self.part, emitter.extent(self.depth));
        let depth = deep.clone().then(Min, terms.clone().then(Sub, self.term));
        emitter.bind(self.terms, INDEX, depth);
        body(emitter);
        let body = emitter.close();
        emitter.push(stepping(self.term, (from, terms), deep, LoopHint::None).of(body));
    }

    /// Binds what the block of a number has of rows, lines and columns, and the batch's axes.
    pub(super) fn begin(&self, emitter: &mut Emitter, mut block: Expr) {
        let Contraction { batch, rows, lines, column, .. } = self.contraction;
        if rows.is_empty() {
            emitter.bind(self.rows.first, INDEX, Expr::Int(0));
            emitter.bind(self.rows.count, INDEX, Expr::Int(1));
        }
        let mut parts = vec![
            (self.rows, "block1", rows.as_slice(), self.schedule.rows),
            (self.columns, "block2", std::slice::from_ref(column), self.schedule.columns),
            (self.lines, "block3", lines.as_slice(), self.schedule.lines),
        ];
        parts.retain(|(_, _, axes, _)| !axes.is_empty());
        if self.has_more_filters() {
            parts.rotate_left(1);
        }
        let last = parts.len() - 1;
        for (number, (part, rest, axes, of)) in parts.into_iter().enumerate() {
            let (count, of) = (emitter.positions(axes), Expr::Int(of.into()));
            let chunks = ceil(count.clone(), of.clone());
            let is_last = batch.is_empty() && number == last;
            let own = if is_last { block.clone() } else { block.clone().then(Rem, chunks.clone()) };
            emitter.bind(part.first, INDEX, own.then(Mul, of.clone()));
            emitter.bind(part.count, INDEX, of.then(Min, count.then(Sub, part.first)));
            if !is_last {
                block = Expr::Name(emitter.bind(rest, INDEX, block.then(Div, chunks)));
            }
        }
        if let (false, Expr::Name(rest)) = (batch.is_empty(), &block) {
            emitter.unflatten(*rest, batch, 1);
        }
    }

    /// A line within a loop over these, by its number.
    pub(super) fn line(&self, number: Var) -> Expr {
        let is_one = self.contraction.lines.is_empty() || self.schedule.lines == 1;
        if is_one { Expr::Int(0) } else { Expr::Name(number) }
    }

    /// A loop over the block's lines that binds their axes, and has the number of each.
    pub(super) fn each_line<'k>(&self, emitter: &mut Emitter<'k>, body: impl FnOnce(&mut Emitter<'k>, Expr)) {
        let number = emitter.index("line");
        self.each_line_by(emitter, number, body);
    }

    /// The same, where loops of one block share the variable that numbers lines.
    pub(super) fn each_line_by<'k>(
        &self,
        emitter: &mut Emitter<'k>,
        number: Var,
        body: impl FnOnce(&mut Emitter<'k>, Expr),
    ) {
        let lines = &self.contraction.lines;
        let line = self.line(number);
        let is_one = line == Expr::Int(0);
        emitter.open(&[], false);
        if !lines.is_empty() {
            let at_line = emitter.bind("at_line", INDEX, self.lines.first.then(Add, line.clone()));
            emitter.unflatten(at_line, lines, 1);
        }
        body(emitter, line);
        let body = emitter.close();
        match is_one {
            true => emitter.push(Stmt::Block(body)),
            false => {
                let count = Expr::Name(self.lines.count);
                emitter.push(counting(number, 0, count, LoopHint::None).of(body))
            }
        }
    }

    /// A loop over the block's panels: has each one's number and how many columns it has.
    pub(super) fn each_panel(&self, emitter: &mut Emitter, body: impl FnOnce(&mut Emitter, Expr, Expr)) {
        if self.contraction.windows.is_some() {
            emitter.open(&[], false);
            let (panel, all) = (Expr::Name(self.panel), self.all_columns());
            let left = all.clone().then(Sub, panel.clone().then(Mul, PANEL));
            body(emitter, panel, Expr::Int(PANEL).then(Min, left));
            let body = emitter.close();
            let panels = ceil(all, Expr::Int(PANEL));
            emitter.push(counting(self.panel, 0, panels, LoopHint::None).of(body));
            return;
        }
        self.each_line(emitter, |emitter, line| {
            emitter.open(&[], false);
            let first = line.then(Mul, self.panels());
            let panel = Expr::Name(self.panel);
            let left = self.columns.count.then(Sub, panel.clone().then(Mul, PANEL));
            body(emitter, first.then(Add, panel), Expr::Int(PANEL).then(Min, left));
            let body = emitter.close();
            let panels = ceil(Expr::Name(self.columns.count), Expr::Int(PANEL));
            emitter.push(counting(self.panel, 0, panels, LoopHint::None).of(body));
        });
    }

    /// A loop over the terms that are packed together, which binds their axis.
    pub(super) fn each_term(
        &self,
        emitter: &mut Emitter,
        hint: LoopHint,
        body: impl FnOnce(&mut Emitter, Expr),
    ) {
        let t = emitter.index("t");
        emitter.repeat_along(&[self.depth], counting(t, 0, self.terms, hint), |emitter| {
            emitter.bind(self.depth, INDEX, self.term.then(Add, t));
            body(emitter, Expr::Name(t));
        });
    }

    /// A loop over them in which neighbours are computed together: where a window goes on in the next line of an image, or the next
    /// image, it is split.
    pub(super) fn each_term_along(
        &self,
        emitter: &mut Emitter,
        value: ValueId,
        body: impl FnOnce(&mut Emitter, Expr),
    ) {
        let Some(split) = IndexSplit::below(self.kernel, self.depth, value) else {
            return self.each_term(emitter, LoopHint::SimdSpilling, body);
        };
        let end = emitter.bind("end", INDEX, self.term.then(Add, Expr::Name(self.terms)));
        split.emit(emitter, (Expr::Name(self.term), Expr::Name(end)), |emitter, at, stop| {
            let along = counting(self.depth, Expr::Name(at), Expr::Name(stop), LoopHint::SimdSegment);
            emitter.repeat_along(&[self.depth], along, |emitter| {
                body(emitter, Expr::name(self.depth).then(Sub, self.term));
            });
        });
    }
}
