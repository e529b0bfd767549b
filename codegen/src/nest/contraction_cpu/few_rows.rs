//! Few rows: they go through the columns together, which are read as memory has them wherever that is what is multiplied. Rows
//! have their terms side by side; columns are neighbours, a few terms at a time, or lines of terms.

use super::super::INDEX;
use super::super::accumulate::set;
use super::super::emitter::Emitter;
use super::super::loops::{counting, stepping};
use super::super::stmt::Arithmetic::{Add, Less, Min, Mul, Sub};
use super::super::stmt::{Expr, LoopHint, Stmt, TileProduct, Type};
use super::super::variable::Var;
use super::{Columns, Extent, Rows, Writer, plus, whole};
use crate::DType;
use crate::ir::ValueId;
use crate::schedule::{PANEL, Product};

/// Lines of terms that are multiplied together.
const LINES: u64 = 4;

/// Of the widest registers.
const VECTOR_BYTES: u64 = 64;

impl Writer<'_> {
    /// The sums of all terms, some terms at a time.
    pub(super) fn few_rows(&self, emitter: &mut Emitter, sums: &[Var]) {
        self.each_part(emitter, |emitter| {
            for (product, &sums) in self.contraction.products.iter().zip(sums) {
                emitter.open(&[], false);
                let rows = self.rows_of(emitter, product);
                match self.contraction.goes_along_terms(self.kernel, product.right) {
                    true => self.multiply_lines(emitter, product, &rows, sums),
                    false => self.multiply_panels(emitter, product, &rows, sums),
                }
                let body = emitter.close();
                emitter.push(Stmt::Block(body));
            }
        });
    }

    /// An array for what is packed.
    fn packed(&self, emitter: &mut Emitter, name: &'static str, ty: Type, len: u64) -> Var {
        let array = emitter.fresh(name);
        emitter.array(array, ty, len)
    }

    /// An element of a line of terms: those of BF16 are pairs as memory has them.
    fn stored(&self) -> Type {
        if self.contraction.is_paired { Type::Memory(DType::BF16) } else { self.element() }
    }

    /// From line to line of what is packed: each begins with a vector, and few begin in the same set of a cache.
    pub(super) fn pitch(&self) -> u64 {
        let vector = VECTOR_BYTES / self.stored().bytes(8);
        u64::from(self.schedule.depth).next_multiple_of(vector) + vector
    }

    /// Rows whose elements are read one by one, as they are. Vectors of them would begin anywhere.
    fn rows_in_memory(&self, product: &Product) -> Option<Rows> {
        let value = product.left;
        if self.contraction.goes_along_terms(self.kernel, product.right) {
            return None;
        }
        if !self.contraction.rows.is_empty() {
            return self.unpacked(value, Expr::Int(0));
        }
        let (array, index, first) = self.plain(value, &[self.depth])?;
        let at = plus(first, Expr::Name(self.term));
        (index.coefficient(self.depth) == Some(1)).then_some(Rows { array, at, row: 0, term: 1 })
    }

    /// The block's rows: in memory, or packed.
    fn rows_of(&self, emitter: &mut Emitter, product: &Product) -> Rows {
        if let Some(rows) = self.rows_in_memory(product) {
            return rows;
        }
        let len = u64::from(self.schedule.rows) * self.pitch();
        let array = self.packed(emitter, "left", self.stored(), len);
        let r = emitter.index("r");
        emitter.repeat(counting(r, 0, self.rows.count, LoopHint::None), |emitter| {
            self.bind_row(emitter, &Expr::Name(r));
            self.pack_line(emitter, product.left, array, Expr::Name(r));
        });
        Rows { array, at: Expr::Int(0), row: self.pitch(), term: 1 }
    }

    /// A factor's terms side by side, in a line of the array.
    fn pack_line(&self, emitter: &mut Emitter, value: ValueId, array: Var, line: Expr) {
        let line = line.then(Mul, self.pitch());
        self.each_term(emitter, LoopHint::Simd, |emitter, term| {
            let element = self.factor(emitter, value);
            let element = match self.contraction.is_paired {
                true => Expr::ToMemory(DType::BF16, Box::new(element)),
                false => element,
            };
            emitter.push(set(Expr::element(array, line.then(Add, term)), element));
        });
    }

    /// Products with lines of terms: four columns are read for all rows, and then the next ones.
    fn multiply_lines(&self, emitter: &mut Emitter, product: &Product, rows: &Rows, sums: Var) {
        let count = Expr::Name(self.columns.count);
        if let Some((from, at, row)) = self.lines(product.right) {
            let at = plus(at, self.columns.first.then(Mul, row).then(Add, self.term));
            let columns = Columns { array: from, at, row };
            return self.multiply_few(emitter, (rows, columns, true), (sums, Expr::Int(0)), count);
        }
        let array = self.packed(emitter, "right", self.stored(), LINES * self.pitch());
        let (first, lane) = (emitter.index("first"), emitter.index("lane"));
        emitter.repeat(stepping(first, (0, count.clone()), LINES, LoopHint::None), |emitter| {
            let left = count.then(Sub, first);
            let some = Expr::Name(emitter.bind("width", INDEX, Expr::Int(LINES).then(Min, left)));
            emitter.open(&[self.contraction.column], false);
            let column = self.columns.first.then(Add, first).then(Add, lane);
            emitter.bind(self.contraction.column, INDEX, column);
            self.pack_line(emitter, product.right, array, Expr::Name(lane));
            let body = emitter.close();
            emitter.push(counting(lane, 0, some.clone(), LoopHint::None).of(body));
            let columns = Columns { array, at: Expr::Int(0), row: self.pitch() };
            self.multiply_few(emitter, (rows, columns, true), (sums, Expr::Name(first)), some);
        });
    }

    /// Products with neighbouring columns, in memory or packed.
    fn multiply_panels(&self, emitter: &mut Emitter, product: &Product, rows: &Rows, sums: Var) {
        if let Some(columns) = self.in_place(product.right) {
            let width = whole(Expr::Name(self.columns.count));
            return self.multiply_few(emitter, (rows, columns, false), (sums, Expr::Int(0)), width);
        }
        let deep = u64::from(self.schedule.depth);
        let array = self.packed(emitter, "right", self.element(), self.width() * deep);
        self.pack_columns(emitter, product.right, array);
        self.each_panel(emitter, |emitter, panel, width| {
            let at = panel.clone().then(Mul, deep * PANEL);
            let columns = Columns { array, at, row: PANEL };
            self.multiply_few(emitter, (rows, columns, false), (sums, panel.then(Mul, PANEL)), whole(width));
        });
    }

    fn multiply_few(
        &self,
        emitter: &mut Emitter,
        (rows, columns, lines): (&Rows, Columns, bool),
        (sums, sums_at): (Var, Expr),
        width: Expr,
    ) {
        let [first, _] = Extent::of(self.part, Expr::Int(0));
        emitter.push(Stmt::MultiplyTile(Box::new(TileProduct {
            dtype: if self.contraction.is_paired { DType::BF16 } else { self.contraction.dtype },
            left: rows.array,
            left_at: rows.at.clone(),
            left_row: rows.row,
            left_term: rows.term,
            right: columns.array,
            right_at: columns.at,
            right_row: columns.row,
            lines,
            sums,
            sums_at,
            sums_row: self.sums_row,
            depth: Expr::Name(self.terms),
            width,
            adds: first.then(Less, self.term),
            rows: Some(Expr::Name(self.rows.count)),
            few: true,
            streams: false,
        })));
    }
}
