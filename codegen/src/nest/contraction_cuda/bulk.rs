//! Steps of products whose tiles are copied as a whole: one thread begins the copies, and a group of warps waits for what it multiplies.

use super::plan::Factor;
use super::{Tile, Writer};
use crate::DType;
use crate::index::IndexExpr;
use crate::nest::accumulate::mul_add;
use crate::nest::emitter::Emitter;
use crate::nest::loops::counting;
use crate::nest::stmt::Arithmetic::{Add, Div, Equal, Less, Mul, Rem};
use crate::nest::stmt::{
    Builtin, BulkCopy, BulkRound, BulkStep, Expr, GROUP_LINE, LoopHint, ProductStep, Stmt, Type,
};
use crate::nest::variable::Var;
use crate::nest::{INDEX, Nest};
use crate::schedule::TensorMap;

impl<'k> Writer<'k> {
    /// As [`Writer::add_up`]: all slots but one are on their way while the last one is multiplied. Whoever has awaited the products
    /// of the step before meets the others, and then its slot is free.
    pub(super) fn add_up_tiles(
        &self,
        emitter: &mut Emitter<'k>,
        tiles: &[Tile<'k>],
        sums: &[Var],
        first: &Expr,
    ) {
        let count = self.slots;
        let arrived = emitter.fresh("arrived");
        let arrived = emitter.share(arrived, Type::Register(DType::I64), count);
        let copies = tiles.iter().map(|tile| self.copies_of(tile.factor)).sum::<u64>() as u32;
        let is_first = || Builtin::ThreadX.then(Equal, 0);
        let expect = BulkStep::Expect { arrived, slots: count as u32, copies };
        emitter.push(Stmt::If {
            condition: is_first(),
            then: vec![Stmt::Bulk(expect)],
            otherwise: Vec::new(),
        });
        emitter.push(Stmt::Barrier);
        let steps = Expr::Name(self.v.steps);
        self.guarded(emitter, is_first(), |emitter| {
            emitter.open_pinned();
            let stage = Expr::Name(self.v.stage);
            self.guarded(emitter, stage.clone().then(Less, steps.clone()), |emitter| {
                self.begin_tiles(emitter, tiles, &first.clone().then(Add, stage), self.v.stage, arrived);
            });
            let body = emitter.close();
            self.repeated(emitter, self.v.stage, count - 1, body);
        });
        emitter.push(Stmt::Barrier);

        emitter.open(&[], false);
        emitter.bind(self.v.slot, INDEX, self.v.step.then(Rem, count));
        let round = self.v.step.then(Div, count);
        let round = BulkRound { arrived, slot: Expr::Name(self.v.slot), round };
        emitter.push(Stmt::Bulk(BulkStep::Await(Box::new(round))));
        emitter.push(Stmt::Products(ProductStep::Begin));
        self.multiply_groups(emitter, tiles, sums);
        emitter.push(Stmt::Products(ProductStep::Commit));
        emitter.push(Stmt::Products(ProductStep::Await(1)));
        emitter.push(Stmt::Barrier);
        let after = self.v.step.then(Add, count - 1);
        emitter.bind(self.v.other, INDEX, after.clone().then(Rem, count));
        emitter.bind(self.v.next_step, INDEX, first.clone().then(Add, after.clone()));
        self.guarded(emitter, is_first(), |emitter| {
            self.guarded(emitter, after.then(Less, steps.clone()), |emitter| {
                self.begin_tiles(emitter, tiles, &Expr::Name(self.v.next_step), self.v.other, arrived);
            });
        });
        let body = emitter.close();
        emitter.push(counting(self.v.step, 0, steps, LoopHint::None).of(body));
        emitter.push(Stmt::Products(ProductStep::Await(0)));
    }

    /// Begins to copy the tiles of a step.
    fn begin_tiles(
        &self,
        emitter: &mut Emitter<'k>,
        tiles: &[Tile<'k>],
        step: &Expr,
        slot: Var,
        arrived: Var,
    ) {
        for (number, tile) in tiles.iter().enumerate() {
            let Some(map) = self.plan.map(tile.factor) else { continue };
            let len = self.plan.tile_len(tile.factor);
            for part in 0..self.copies_of(tile.factor) {
                let own = Expr::Name(if tile.factor.is_left { self.v.row0 } else { self.v.column0 });
                let position = |axis| match axis {
                    axis if axis == self.plan.depth => step.clone().then(Mul, self.plan.deep()),
                    axis if tile.factor.axes.contains(&axis) => own.clone().then(Add, part * GROUP_LINE),
                    // Of a batch, or an offset.
                    axis => Expr::Index(IndexExpr::axis(axis)),
                };
                let lines = part * self.plan.deep() * GROUP_LINE;
                let copy = BulkCopy {
                    map: number as u32,
                    positions: map.axes.iter().map(|&(axis, _)| position(axis)).collect(),
                    shared: tile.shared,
                    at: mul_add(slot, len, Expr::Int(lines)),
                    arrived,
                    slot: Expr::Name(slot),
                };
                emitter.push(Stmt::Bulk(BulkStep::Begin(Box::new(copy))));
            }
        }
    }

    /// Of a step's tile: 64 terms of all rows, or all terms of each 64 columns.
    fn copies_of(&self, factor: &Factor) -> u64 {
        if factor.is_along { 1 } else { factor.width / GROUP_LINE }
    }
}

impl super::Plan<'_> {
    /// Where the tiles of a factor are.
    pub(in crate::nest) fn map(&self, factor: &Factor) -> Option<TensorMap> {
        let lines = |is_along: bool| if is_along { factor.width as u32 } else { self.schedule.depth };
        TensorMap::of(self.flat, factor.value, &factor.axes, self.depth, lines)
    }

    /// The nest, with the maps of its factors if tiles are copied as a whole.
    pub(super) fn with_maps(&self, nest: Nest, factors: &[Factor]) -> Nest {
        match self.schedule.bulk {
            true => nest.with_maps(factors.iter().filter_map(|factor| self.map(factor)).collect()),
            false => nest,
        }
    }
}
