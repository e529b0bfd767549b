//! The factors of a contraction, brought in as the products read them: panels of columns, lines of rows.

use super::super::INDEX;
use super::super::accumulate::set;
use super::super::emitter::Emitter;
use super::super::loops::{counting, stepping};
use super::super::prefetch::prefetch_next;
use super::super::stmt::Arithmetic::{Add, Less, Min, Mul, Sub};
use super::super::stmt::{Expr, LoopHint, Pairing, Stmt, Turning};
use super::super::variable::Var;
use super::{LANES, Writer, ceil, plus, whole};
use crate::DType;
use crate::index::IndexExpr;
use crate::ir::ValueId;
use crate::schedule::{PANEL, TILE_ROWS, consecutive_along};

/// The part of a term's columns that a block has is short, and that of the next term far: no hardware prefetches it.
const TERMS_AHEAD: i64 = 8;

impl Writer<'_> {
    /// Panels: the columns of one term side by side, then those of the next one.
    pub(super) fn pack_columns(&self, emitter: &mut Emitter, value: ValueId, packed: Var) {
        let deep = Expr::Int(u64::from(self.schedule.depth));
        let turns = consecutive_along(self.kernel, value, self.depth, self.contraction.column);
        self.each_panel(emitter, |emitter, panel, width| {
            let before = self.panel.then(Mul, PANEL);
            let first = emitter.bind("first", INDEX, self.columns.first.then(Add, before));
            let width = emitter.bind("width", INDEX, width);
            let panel = panel.then(Mul, deep).then(Mul, PANEL);
            match turns {
                true => self.pack_turned(emitter, value, packed, &panel, (first, width)),
                false => self.pack_straight(emitter, value, packed, &panel, (first, width)),
            }
            // Lines of terms are pairs already.
            if !turns || self.lines(value).is_none() {
                let width = whole(Expr::Name(width));
                self.pair(emitter, packed, (panel, PANEL), (width, false));
            }
        });
    }

    /// Where neighbouring columns are neighbours: term after term.
    fn pack_straight(
        &self,
        emitter: &mut Emitter,
        value: ValueId,
        packed: Var,
        panel: &Expr,
        (first, width): (Var, Var),
    ) {
        self.each_term(emitter, LoopHint::None, |emitter, term| {
            let lane = Expr::name(Var::Lane);
            let row = panel.clone().then(Add, term.then(Mul, PANEL));
            let target = Expr::element(packed, row.then(Add, lane.clone()));
            emitter.open(&[self.contraction.column], false);
            emitter.bind(self.contraction.column, INDEX, first.then(Add, lane));
            let around = (&[self.depth][..], self.contraction.column);
            prefetch_next(emitter, self.kernel, &[value], around, TERMS_AHEAD);
            let value = self.factor(emitter, value);
            emitter.push(Stmt::Assign { target: target.clone(), value });
            let body = emitter.close();
            emitter.push(counting(Var::Lane, 0, width, LoopHint::SimdSpilling).of(body));
            // Lanes without a column multiply zeros.
            let rest = vec![Stmt::Assign { target, value: self.zero() }];
            let (from, to) = (Expr::Name(width), self.filled(Expr::Name(width)));
            emitter.push(counting(Var::Lane, from, to, LoopHint::SimdSpilling).of(rest));
        });
    }

    /// Where neighbouring terms are neighbours: a vector's columns one after the other, then turned.
    fn pack_turned(
        &self,
        emitter: &mut Emitter,
        value: ValueId,
        packed: Var,
        panel: &Expr,
        (first, width): (Var, Var),
    ) {
        let deep = Expr::Int(u64::from(self.schedule.depth));
        let (lane_var, first_lane) = (emitter.index("lane"), emitter.index("lane0"));
        let end =
            if self.contraction.has_lifts() { self.filled(Expr::Name(width)) } else { Expr::Name(width) };
        emitter.repeat(stepping(first_lane, (0, end), LANES, LoopHint::None), |emitter| {
            emitter.open(&[], false);
            let turned = emitter.fresh("turned");
            let turned = emitter.array(turned, self.element(), LANES * u64::from(self.schedule.depth));
            let (lane, lane0) = (Expr::Name(lane_var), Expr::Name(first_lane));
            emitter.open(&[self.contraction.column], false);
            // Lanes without a column are the last one again.
            let last = width.then(Sub, 1);
            let column = lane0.clone().then(Add, lane.clone()).then(Min, last);
            emitter.bind(self.contraction.column, INDEX, first.then(Add, column));
            self.each_term_along(emitter, value, |emitter, term| {
                let value = self.factor(emitter, value);
                let at = lane.then(Mul, deep.clone()).then(Add, term);
                emitter.push(Stmt::Assign { target: Expr::element(turned, at), value });
            });
            let body = emitter.close();
            emitter.push(counting(lane_var, 0, LANES, LoopHint::None).of(body));
            emitter.push(Stmt::Turn(Box::new(Turning {
                dtype: self.contraction.dtype,
                to: packed,
                to_at: panel.clone().then(Add, lane0),
                to_row: PANEL,
                from: turned,
                from_at: Expr::Int(0),
                from_row: self.schedule.depth.into(),
                depth: Expr::Name(self.terms),
                rows: None,
            })));
            let lines = self.lines(value);
            if lines.is_some() {
                let at = panel.clone().then(Add, first_lane);
                self.pair(emitter, packed, (at, PANEL), (Expr::Int(LANES), false));
            }
            let packed_lines = emitter.close();
            match lines {
                None => emitter.append(packed_lines),
                Some((from, at, from_row)) => {
                    let at_column = first.then(Add, first_lane);
                    let is_paired = self.contraction.is_paired;
                    let then = vec![Stmt::Turn(Box::new(Turning {
                        dtype: if is_paired { DType::BF16 } else { self.contraction.dtype },
                        to: packed,
                        to_at: panel.clone().then(Add, first_lane),
                        to_row: PANEL,
                        from,
                        from_at: plus(at, at_column.then(Mul, from_row).then(Add, self.term)),
                        from_row,
                        depth: Expr::Name(self.terms),
                        rows: None,
                    }))];
                    let last = first_lane.then(Add, LANES - 1);
                    let condition = last.then(Less, width);
                    emitter.push(Stmt::If { condition, then, otherwise: packed_lines });
                }
            }
        });
    }

    /// A right factor in memory with a line of terms for each column: where they begin, and elements from line to line.
    pub(super) fn lines(&self, value: ValueId) -> Option<(Var, IndexExpr, u64)> {
        let column = self.contraction.column;
        let (array, index, first) = self.plain(value, &[column, self.depth])?;
        let row = u64::try_from(index.coefficient(column)?).ok().filter(|&row| self.has_whole_pairs(row))?;
        (index.coefficient(self.depth) == Some(1)).then_some((array, first, row))
    }

    /// The rows of a tile, each with its terms side by side. Rows that the block does not have are zeros.
    pub(super) fn pack_rows(&self, emitter: &mut Emitter, value: ValueId, packed: Var) {
        let deep = Expr::Int(u64::from(self.schedule.depth));
        let count = Expr::Name(emitter.bind("tile_rows", INDEX, self.rows_of_tile()));
        let r = emitter.index("r");
        let line = r.then(Mul, deep);
        emitter.repeat(counting(r, 0, count.clone(), LoopHint::None), |emitter| {
            self.bind_row(emitter, &self.tile.then(Add, r));
            self.each_term_along(emitter, value, |emitter, term| {
                let value = self.factor(emitter, value);
                emitter.push(set(Expr::element(packed, line.clone().then(Add, term)), value));
            });
        });
        let zero = set(Expr::element(packed, line.then(Add, Var::Lane)), self.zero());
        let terms = Expr::Name(self.terms);
        let zeros = counting(Var::Lane, 0, terms, LoopHint::SimdSpilling).of(vec![zero]);
        let whole = match self.contraction.is_paired {
            true => ceil(count.clone(), Expr::Int(TILE_ROWS)).then(Mul, TILE_ROWS),
            false => Expr::Int(TILE_ROWS),
        };
        emitter.push(counting(r, count.clone(), whole.clone(), LoopHint::None).of(vec![zeros]));
        self.pair(emitter, packed, (Expr::Int(0), self.schedule.depth.into()), (whole, true));
    }

    /// All rows of the block, those of a term side by side, where they are neighbours in memory; of pairs each with its terms
    /// side by side. Rows that the block does not have are zeros.
    pub(super) fn pack_all_rows(&self, emitter: &mut Emitter, value: ValueId, packed: Var) {
        let row = Expr::name(Var::Lane);
        let count = Expr::Name(self.rows.count);
        let whole = ceil(count.clone(), Expr::Int(TILE_ROWS)).then(Mul, TILE_ROWS);
        if self.contraction.is_paired {
            return self.pack_rows_turned(emitter, value, packed, whole);
        }
        self.each_term(emitter, LoopHint::None, |emitter, term| {
            let at = term.then(Mul, Expr::Int(self.schedule.rows.into())).then(Add, row.clone());
            let target = Expr::element(packed, at);
            emitter.repeat(counting(Var::Lane, 0, count.clone(), LoopHint::SimdSpilling), |emitter| {
                self.bind_row(emitter, &row);
                let value = self.factor(emitter, value);
                emitter.push(set(target.clone(), value));
            });
            let zero = vec![set(target, self.zero())];
            emitter.push(counting(Var::Lane, count, whole.clone(), LoopHint::SimdSpilling).of(zero));
        });
    }

    /// The same of pairs: sixteen terms at a time, of which each has its rows side by side, are turned.
    fn pack_rows_turned(&self, emitter: &mut Emitter, value: ValueId, packed: Var, whole: Expr) {
        let (of_term, of_row) = (u64::from(self.schedule.rows), self.pitch());
        let (first, line, row) = (emitter.index("first"), emitter.index("line"), Expr::name(Var::Lane));
        emitter.repeat(stepping(first, (0, self.terms), LANES, LoopHint::None), |emitter| {
            let lines = emitter.fresh("lines");
            let lines = emitter.array(lines, self.element(), LANES * of_term);
            let some = Expr::Int(LANES).then(Min, self.terms.then(Sub, first));
            let some = Expr::Name(emitter.bind("some", INDEX, some));
            emitter.repeat_along(&[self.depth], counting(line, 0, &some, LoopHint::None), |emitter| {
                emitter.bind(self.depth, INDEX, self.term.then(Add, first).then(Add, line));
                let target = |row: Expr| Expr::element(lines, line.then(Mul, of_term).then(Add, row));
                let all = counting(Var::Lane, 0, self.rows.count, LoopHint::SimdSpilling);
                emitter.repeat(all, |emitter| {
                    self.bind_row(emitter, &row);
                    let value = self.factor(emitter, value);
                    emitter.push(set(target(row.clone()), value));
                });
                let zero = vec![set(target(row.clone()), self.zero())];
                let rest = counting(Var::Lane, self.rows.count, &whole, LoopHint::SimdSpilling);
                emitter.push(rest.of(zero));
            });
            emitter.push(Stmt::Turn(Box::new(Turning {
                dtype: self.contraction.dtype,
                to: packed,
                to_at: Expr::Name(first),
                to_row: of_row,
                from: lines,
                from_at: Expr::Int(0),
                from_row: of_term,
                depth: whole.clone(),
                rows: Some(some),
            })));
        });
        self.pair(emitter, packed, (Expr::Int(0), of_row), (whole, true));
    }

    /// Makes pairs of packed terms, where these are multiplied so: of so many elements of each term, or of rows `along` which
    /// terms are neighbours.
    pub(super) fn pair(
        &self,
        emitter: &mut Emitter,
        array: Var,
        (at, row): (Expr, u64),
        (count, along): (Expr, bool),
    ) {
        if self.contraction.is_paired {
            let depth = Expr::Name(self.terms);
            emitter.push(Stmt::Pair(Box::new(Pairing { array, at, row, depth, count, along })));
        }
    }
}
