//! Many terms of few results: blocks have parts of the terms and leave partial sums, which a second function adds up in order.

use super::super::accumulate::{mul_add, set};
use super::super::emitter::Emitter;
use super::super::lifted::combined;
use super::super::loops::counting;
use super::super::split::Parts;
use super::super::stmt::Arithmetic::{Add, Div, Min, Mul, Rem};
use super::super::stmt::{Builtin, Expr, LoopHint, Stmt};
use super::super::variable::Var;
use super::super::{INDEX, Parameter};
use super::{Extent, Writer, ceil};
use crate::ReduceOp;

impl Writer<'_> {
    /// How many parts there are.
    fn all_parts(&self, emitter: &mut Emitter) -> Expr {
        let parts = ceil(emitter.extent(self.depth), Expr::Int(self.schedule.part.into()));
        Expr::Name(emitter.bind("parts", INDEX, parts))
    }

    /// The sums of a block's part of the terms, in the workspaces.
    pub(super) fn leave_part(&mut self, emitter: &mut Emitter) {
        let (block, parts) = (Expr::Builtin(Builtin::BlockX), self.all_parts(emitter));
        let part = Expr::Name(emitter.bind("part", INDEX, block.clone().then(Rem, parts.clone())));
        let of_block = Expr::Name(emitter.bind("block0", INDEX, block.clone().then(Div, parts)));
        self.begin(emitter, of_block);
        let [begin, end] = [emitter.index("begin"), emitter.index("end")];
        let length = u64::from(self.schedule.part);
        emitter.bind(begin, INDEX, part.then(Mul, length));
        let terms = emitter.extent(self.depth);
        emitter.bind(end, INDEX, begin.then(Add, length).then(Min, terms));
        self.part = Some(Extent { begin: Some(begin), end });
        let sums = self.sums(emitter, None);
        self.each_sum(emitter, &block, |emitter, number, own, place| {
            emitter.push(set(place, Expr::element(sums[number], own)));
        });
    }

    /// Adds up the parts of a block's results, and computes what follows from them.
    pub(super) fn add_parts(&self, emitter: &mut Emitter) {
        let (block, parts) = (Expr::Builtin(Builtin::BlockX), self.all_parts(emitter));
        self.begin(emitter, block.clone());
        let sums = self.arrays_of_sums(emitter);
        let take = |emitter: &mut Emitter, part: Expr, adds: bool| {
            let block = mul_add(block.clone(), parts.clone(), part);
            let block = Expr::Name(emitter.bind("block0", INDEX, block));
            self.each_sum(emitter, &block, |emitter, number, own, place| {
                let product = &self.contraction.products[number];
                let op = product.lift.map_or(ReduceOp::Sum, |lift| lift.op);
                let target = Expr::element(sums[number], own);
                let value = match adds {
                    true => combined(op, self.contraction.sum, target.clone(), place),
                    false => place,
                };
                emitter.push(set(target, value));
            });
        };
        emitter.open(&[], false);
        take(emitter, Expr::Int(0), false);
        let first = emitter.close();
        emitter.push(Stmt::Block(first));
        Parts::after_first(parts.clone()).merge(emitter, |emitter, part| take(emitter, part.clone(), true));
        self.results(emitter, &self.contraction.products, &sums, &[]);
    }

    /// A loop over the sums of a block: has which product's each is, its place in the block's array, and where it is among
    /// those that the block of a number leaves.
    fn each_sum(&self, emitter: &mut Emitter, block: &Expr, body: impl Fn(&mut Emitter, usize, Expr, Expr)) {
        let r = emitter.index("r");
        emitter.repeat(counting(r, 0, self.rows.count, LoopHint::None), |emitter| {
            self.each_line(emitter, |emitter, line| {
                let from = r.then(Mul, self.width()).then(Add, self.before(line));
                let own = from.then(Add, Expr::name(Var::Lane));
                let place = mul_add(block.clone(), self.block_sums(), own.clone());
                emitter.repeat(counting(Var::Lane, 0, self.columns.count, LoopHint::Simd), |emitter| {
                    for number in 0..self.contraction.products.len() {
                        let workspace = Var::from(Parameter::Workspace(number));
                        body(emitter, number, own.clone(), Expr::element(workspace, place.clone()));
                    }
                });
            });
        });
    }
}
