//! Tiles of what is combined in another way than by sums of products: a row of the tile has its results of a vector of columns
//! in a register, term after term.

use super::super::INDEX;
use super::super::accumulate::set;
use super::super::emitter::Emitter;
use super::super::lifted::{cast, combined, of_factor, with_lifted};
use super::super::loops::{counting, stepping};
use super::super::stmt::Arithmetic::{Add, Mul};
use super::super::stmt::{Expr, LoopHint, Stmt, TileProduct, Type};
use super::super::variable::Var;
use super::{LANES, Writer};
use crate::index::AxisId;
use crate::schedule::{Contraction, Lift, Product, TILE_ROWS};

impl Writer<'_> {
    /// Combines what the terms of a tile's rows and a panel are lifted to with what has been combined before: of two vectors of
    /// columns together where there are as many, for which a row's element is read once. Each part of the terms begins with
    /// the identity: of many terms, sums of sums err less.
    pub(super) fn combine(
        &self,
        emitter: &mut Emitter,
        product: &Product,
        lift: Lift,
        (tile, is_packed): (&TileProduct, bool),
    ) {
        let vectors = if is_packed { 2 } else { 1 };
        let (n, t) = (emitter.index("n"), emitter.index("t"));
        emitter.repeat(stepping(n, (0, &tile.width), vectors * LANES, LoopHint::None), |emitter| {
            emitter.open(&[], false);
            let columns: Vec<Expr> =
                (0..vectors).map(|v| n.then(Add, Expr::name(Var::Lane)).then(Add, v * LANES)).collect();
            let identity = Expr::Literal(lift.op.identity(lift.dtype));
            let mut result = || {
                let sum = emitter.fresh("sum");
                emitter.variable(sum, Type::Register(lift.dtype), identity.clone())
            };
            let sums: Vec<Vec<Var>> =
                (0..TILE_ROWS).map(|_| columns.iter().map(|_| result()).collect()).collect();
            emitter.open(&[self.depth], false);
            if lift.has_others {
                emitter.bind(self.depth, INDEX, self.term.then(Add, t));
            }
            let rights: Vec<Expr> = columns
                .iter()
                .map(|column| {
                    let at = t.then(Mul, tile.right_row).then(Add, column.clone());
                    let right = self.element_of(tile.right, tile.right_at.clone().then(Add, at));
                    emitter.named(right, self.contraction.dtype)
                })
                .collect();
            for (row, sums) in (0..).zip(&sums) {
                let at = t.then(Mul, tile.left_term).then(Add, row * tile.left_row);
                let left = self.element_of(tile.left, tile.left_at.clone().then(Add, at));
                for (right, &sum) in rights.iter().zip(sums) {
                    self.take(emitter, (product, lift), [left.clone(), right.clone()], sum);
                }
            }
            let terms = emitter.close();
            emitter.push(counting(t, 0, &tile.depth, LoopHint::None).of(terms));
            self.leave(emitter, lift, tile, &columns, &sums);
            let body = emitter.close();
            emitter.push(counting(Var::Lane, 0, LANES, LoopHint::Simd).of(body));
        });
    }

    /// Combines what an element of each factor is lifted to with a partial result.
    fn take(
        &self,
        emitter: &mut Emitter,
        (product, lift): (&Product, Lift),
        [left, right]: [Expr; 2],
        sum: Var,
    ) {
        let (kernel, dtype) = (self.kernel, self.contraction.dtype);
        let Contraction { rows, lines, column, .. } = self.contraction;
        let axes: Vec<AxisId> = rows.iter().chain(lines).chain([column]).copied().collect();
        emitter.open(&axes, false);
        emitter.define(product.left, of_factor(kernel, product.left, dtype, left));
        emitter.define(product.right, of_factor(kernel, product.right, dtype, right));
        let more = with_lifted(emitter, lift, lift.dtype, Expr::Name(sum));
        emitter.push(set(Expr::Name(sum), more));
        let taken = emitter.close();
        emitter.push(Stmt::Block(taken));
    }

    /// Combines the results of some terms with those of the terms before.
    fn leave(
        &self,
        emitter: &mut Emitter,
        lift: Lift,
        tile: &TileProduct,
        columns: &[Expr],
        sums: &[Vec<Var>],
    ) {
        let wide = self.contraction.sum;
        let results = |adds: bool| -> Vec<Stmt> {
            let mut stores = Vec::new();
            for (row, sums) in (0..).zip(sums) {
                for (column, &sum) in columns.iter().zip(sums) {
                    let at = tile.sums_at.clone().then(Add, column.clone()).then(Add, row * tile.sums_row);
                    let target = Expr::element(tile.sums, at);
                    let sum = cast(Expr::Name(sum), lift.dtype, wide);
                    let value = if adds { combined(lift.op, wide, target.clone(), sum) } else { sum };
                    stores.push(set(target, value));
                }
            }
            stores
        };
        let terms = self.kernel.axis(self.depth);
        let is_one_part =
            !terms.is_argument && terms.extent <= self.schedule.depth.into() && self.part.is_none();
        match is_one_part {
            true => emitter.append(results(false)),
            false => emitter.push(Stmt::If {
                condition: tile.adds.clone(),
                then: results(true),
                otherwise: results(false),
            }),
        }
    }

    /// An element of what is packed, or of memory where that is as packing would leave it.
    fn element_of(&self, array: Var, at: Expr) -> Expr {
        let element = Expr::element(array, at);
        match array {
            Var::Parameter(_) => Expr::FromMemory(self.contraction.dtype, Box::new(element)),
            Var::Local(_) | Var::Axis(_) | Var::Lane => element,
        }
    }
}
