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

/// What factors are packed into that are not in memory as they are multiplied.
struct Arrays {
    rows: Option<Var>,
    panels: Option<Var>,
    lines: Option<Var>,
}

impl Writer<'_> {
    /// The sums of all terms, some terms at a time.
    pub(super) fn few_rows(&self, emitter: &mut Emitter, sums: &[Var]) {
        let arrays = self.arrays(emitter);
        self.each_part(emitter, |emitter| {
            for (product, &sums) in self.contraction.products.iter().zip(sums) {
                emitter.open(&[], false);
                let rows = self.rows_of(emitter, product, arrays.rows);
                match self.contraction.goes_along_terms(self.kernel, product.right) {
                    true => self.multiply_lines(emitter, product, (&rows, arrays.lines), sums),
                    false => self.multiply_panels(emitter, product, (&rows, arrays.panels), sums),
                }
                let body = emitter.close();
                emitter.push(Stmt::Block(body));
            }
        });
    }

    /// The arrays that some factor needs.
    fn arrays(&self, emitter: &mut Emitter) -> Arrays {
        let deep = u64::from(self.schedule.depth);
        let products = &self.contraction.products;
        let goes_along = |product: &&Product| self.contraction.goes_along_terms(self.kernel, product.right);
        let are_packed = products.iter().any(|product| self.rows_in_memory(product).is_none());
        let are_panels = products
            .iter()
            .filter(|product| !goes_along(product))
            .any(|product| self.in_place(product.right).is_none());
        let are_lines = products.iter().filter(goes_along).any(|product| self.lines(product.right).is_none());
        let mut array = |is_needed: bool, name, ty, len| {
            is_needed.then(|| {
                let var = emitter.fresh(name);
                emitter.array(var, ty, len)
            })
        };
        Arrays {
            rows: array(are_packed, "left", self.stored(), u64::from(self.schedule.rows) * self.pitch()),
            panels: array(are_panels, "right", self.element(), self.width() * deep),
            lines: array(are_lines, "right", self.stored(), LINES * self.pitch()),
        }
    }

    /// An element of a line of terms: those of BF16 are pairs as memory has them.
    fn stored(&self) -> Type {
        if self.contraction.is_paired { Type::Memory(DType::BF16) } else { self.element() }
    }

    /// From line to line of what is packed: each begins with a vector, and few begin in the same set of a cache.
    fn pitch(&self) -> u64 {
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
    fn rows_of(&self, emitter: &mut Emitter, product: &Product, array: Option<Var>) -> Rows {
        let value = product.left;
        let (None, Some(array)) = (self.rows_in_memory(product), array) else {
            return self.rows_in_memory(product).unwrap_or_else(|| unreachable!("an array of rows"));
        };
        let r = emitter.index("r");
        emitter.repeat(counting(r, 0, self.rows.count, LoopHint::None), |emitter| {
            self.bind_row(emitter, &Expr::Name(r));
            self.pack_line(emitter, value, array, Expr::Name(r));
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
    fn multiply_lines(
        &self,
        emitter: &mut Emitter,
        product: &Product,
        (rows, array): (&Rows, Option<Var>),
        sums: Var,
    ) {
        let count = Expr::Name(self.columns.count);
        if let Some((from, at, row)) = self.lines(product.right) {
            let at = plus(at, self.columns.first.then(Mul, row).then(Add, self.term));
            let columns = Columns { array: from, at, row };
            return self.multiply_few(emitter, (rows, columns, true), (sums, Expr::Int(0)), count);
        }
        let Some(array) = array else { return };
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
    fn multiply_panels(
        &self,
        emitter: &mut Emitter,
        product: &Product,
        (rows, array): (&Rows, Option<Var>),
        sums: Var,
    ) {
        if let Some(columns) = self.in_place(product.right) {
            let width = whole(Expr::Name(self.columns.count));
            return self.multiply_few(emitter, (rows, columns, false), (sums, Expr::Int(0)), width);
        }
        let Some(array) = array else { return };
        self.pack_columns(emitter, product.right, array);
        let deep = u64::from(self.schedule.depth);
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
        })));
    }
}
