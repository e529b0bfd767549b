//! What a mask leaves out of all rows of a block: found before the sweep along them, which then begins later and ends earlier.

use super::{F32, Rows, binary, number, shuffled};
use crate::index::IndexExpr;
use crate::ir::ValueOp;
use crate::nest::INDEX;
use crate::nest::accumulate::set;
use crate::nest::contraction_cuda::WARP;
use crate::nest::contraction_cuda::plan::Factor;
use crate::nest::emitter::Emitter;
use crate::nest::kept;
use crate::nest::loops::stepping;
use crate::nest::pointwise::lanes_and_stores;
use crate::nest::row_statistics::Extent;
use crate::nest::stmt::Arithmetic::{Add, Div, Equal, Min, Mul, Rem, Sub};
use crate::nest::stmt::{Builtin, Expr, LoopHint, Stmt, Type};
use crate::nest::variable::Var;
use crate::schedule::Contraction;
use crate::{BinaryOp, DType};

impl<'k> Rows<'k> {
    /// Which elements of the rows count: of what a mask leaves out before and behind those of all rows, none if its numbers
    /// are negative infinity, and the other factor is finite there, as zero times infinity is no zero.
    pub(super) fn kept(&self, emitter: &mut Emitter<'k>, factors: &'k [Factor]) -> Option<Extent> {
        let masked = self.of.masked(self.kernel)?;
        let axes = &self.of.contraction.rows;
        let first = Expr::Name(self.elements.v.row0);
        let rest = emitter.positions(axes).then(Sub, first.clone());
        let count = Expr::Int(self.schedule.rows.into()).then(Min, rest);
        let count = Expr::Name(emitter.bind("rows", INDEX, count));
        let rows = kept::Rows { axes, first, count };
        let [from, known] = kept::part_of_rows(emitter, self.of, &masked, &rows).map(Expr::Name);
        let together = Expr::Int(self.schedule.elements.into());
        let from = masked.kept.has_beginning().then(|| {
            let before = from.then(Div, together.clone()).then(Mul, together);
            Expr::Name(emitter.bind("first", INDEX, before))
        });
        let nothing = emitter.variable("nothing", F32, number(0.0));
        if let Some(from) = &from {
            self.probe(emitter, factors, nothing, [Expr::Int(0), from.clone()]);
        }
        self.probe(emitter, factors, nothing, [known.clone(), Expr::Int(self.length())]);
        let is_zero = binary(BinaryOp::Eq, self.of_block(emitter, nothing), number(0.0));
        let part = Extent {
            begin: from.as_ref().map(|_| emitter.variable("begin", INDEX, Expr::Int(0))),
            end: emitter.variable("end", INDEX, Expr::Int(self.length())),
        };
        let mut then = vec![set(Expr::Name(part.end), known)];
        if let (Some(begin), Some(from)) = (part.begin, from) {
            then.push(set(Expr::Name(begin), from));
        }
        for (id, value) in masked.numbers(self.kernel) {
            let condition = binary(BinaryOp::Eq, emitter.value(id), number(value));
            then = vec![Stmt::If { condition, then, otherwise: Vec::new() }];
        }
        emitter.push(Stmt::If { condition: is_zero, then, otherwise: Vec::new() });
        Some(part)
    }

    /// Adds zero times the other factor's terms of some elements, of which each thread has its part, in vectors where these are
    /// single accesses.
    fn probe(&self, emitter: &mut Emitter<'k>, factors: &'k [Factor], nothing: Var, [from, to]: [Expr; 2]) {
        let Contraction { column, products, .. } = &self.of.contraction;
        let in_vectors = |factor: &&Factor| !factor.is_left && !factor.is_along && factor.vector > 1;
        let factor = factors.iter().find(in_vectors);
        let (kernel, vector) = match factor {
            Some(factor) => (&factor.kernel, factor.vector),
            None => (self.kernel, 1),
        };
        let vectors = Expr::Int(self.kernel.axis(*column).extent / vector);
        let at = emitter.index("element");
        // What is in memory as it is multiplied is not widened.
        let plain = factor.filter(|factor| factor.is_copied);
        let body = emitter.using(kernel, |emitter| {
            emitter.open(&[], false);
            emitter.unflatten(at, &[self.of.along, *column], vector);
            if let Some((factor, ValueOp::Load { buffer, index, .. })) =
                plain.map(|factor| (factor, &factor.kernel.value(factor.value).op))
                && let dtype @ (DType::F16 | DType::BF16) = kernel.buffers[buffer.index()].dtype
            {
                let first = index.substitute(self.results.plan.lane(), &IndexExpr::zero(), &kernel.ranges());
                let tile = emitter.fresh("tile");
                let array = emitter.array(tile, Type::Memory(dtype), vector);
                emitter.push(Stmt::VectorLoad {
                    array,
                    at: Expr::Int(0),
                    buffer: (*buffer).into(),
                    index: Expr::Index(first),
                    dtype,
                    width: factor.vector,
                });
                let first = Box::new(Expr::element(array, Expr::Int(0)));
                let zero = Expr::ZeroTimes(dtype, first, vector);
                emitter.push(set(nothing, binary(BinaryOp::Add, Expr::Name(nothing), zero)));
                return emitter.close();
            }
            lanes_and_stores(emitter, kernel, &[], None, |emitter| {
                let value = emitter.value(products[0].right);
                let zero = binary(BinaryOp::Mul, value, number(0.0));
                emitter.push(set(nothing, binary(BinaryOp::Add, Expr::Name(nothing), zero)));
            });
            emitter.close()
        });
        let first_of = |position: Expr| position.then(Mul, vectors.clone());
        let own = first_of(from).then(Add, Expr::Builtin(Builtin::ThreadX));
        let threads = Expr::Int(self.schedule.threads().into());
        emitter.push(stepping(at, (own, first_of(to)), threads, LoopHint::UnrollBy(8)).of(body));
    }

    /// The sum over the block's threads, of which all find the same.
    fn of_block(&self, emitter: &mut Emitter<'k>, nothing: Var) -> Expr {
        let (threads, warp) = (u64::from(self.schedule.threads()), WARP);
        let thread = Expr::Builtin(Builtin::ThreadX);
        let step = emitter.index("step");
        let other = shuffled(Expr::Name(nothing), step, warp as u32);
        let body = vec![set(nothing, binary(BinaryOp::Add, Expr::Name(nothing), other))];
        self.halving(emitter, step, warp / 2, body);
        let shared = emitter.share("nothings", F32, threads / warp);
        let then = vec![set(Expr::element(shared, thread.clone().then(Div, warp)), nothing)];
        let is_first = thread.then(Rem, warp).then(Equal, 0);
        emitter.push(Stmt::If { condition: is_first, then, otherwise: Vec::new() });
        emitter.push(Stmt::Barrier);
        let all = (0..threads / warp)
            .map(|n| Expr::element(shared, n))
            .fold(number(0.0), |all, own| binary(BinaryOp::Add, all, own));
        Expr::Name(emitter.bind("all", F32, all))
    }
}
