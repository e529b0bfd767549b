//! Reductions of rows beside products on the CPU: partial results in lanes, merged at the end of each row.

use super::accumulate::{Accumulator, set};
use super::emitter::Emitter;
use super::loops::{counting, stepping};
use super::stmt::Arithmetic::{Add, Min, Sub};
use super::stmt::{Expr, LoopHint, Type};
use super::variable::Var;
use crate::index::AxisId;
use crate::ir::{Kernel, ValueId, ValueOp};
use crate::schedule::padded;

/// Partial results of a row's reduction: four of the widest vectors.
const LANES: u64 = 64;

/// The row at hand.
pub(super) struct Row<'a> {
    pub(super) kernel: &'a Kernel,
    /// What it goes along; its extent is no argument.
    pub(super) along: AxisId,
    /// Values whose elements are in arrays, and where the row begins there.
    pub(super) there: Vec<(ValueId, Var, Expr)>,
    /// How many elements count if not all: a multiple of the lanes, or all.
    pub(super) end: Option<Var>,
}

impl Row<'_> {
    fn length(&self) -> u64 {
        self.kernel.axis(self.along).extent
    }

    /// All elements, in lanes.
    pub(super) fn each(&self, emitter: &mut Emitter, body: impl FnOnce(&mut Emitter)) {
        self.part(emitter, Expr::Int(0), self.end(), body);
    }

    fn end(&self) -> Expr {
        self.end.map_or(Expr::Int(self.length()), Expr::Name)
    }

    /// In lanes: elements from one on, so many.
    fn part(&self, emitter: &mut Emitter, from: Expr, count: Expr, body: impl FnOnce(&mut Emitter)) {
        let at = from.then(Add, Var::Lane);
        emitter.repeat_along(&[self.along], counting(Var::Lane, 0, count, LoopHint::Simd), |emitter| {
            emitter.bind(self.along, super::INDEX, at.clone());
            for (value, array, first) in &self.there {
                emitter.define(*value, Expr::element(array, first.clone().then(Add, at.clone())));
            }
            body(emitter);
        });
    }

    /// Computes a value once that is used several times.
    pub(super) fn keep(&mut self, emitter: &mut Emitter, id: ValueId) {
        let value = self.kernel.value(id);
        if self.there.iter().any(|(own, ..)| *own == id) || !value.axes.contains(&self.along) {
            return;
        }
        let array = emitter.fresh("kept");
        let array = emitter.array(array, Type::Register(value.dtype), padded(self.kernel, self.along));
        self.each(emitter, |emitter| {
            let value = emitter.value(id);
            emitter.push(set(Expr::element(array, Var::Lane), value));
        });
        self.there.push((id, array, Expr::Int(0)));
    }

    /// What a reduction comes to.
    pub(super) fn reduce(&self, emitter: &mut Emitter, id: ValueId) -> Expr {
        let (lane, zero) = (Expr::name(Var::Lane), Expr::Int(0));
        let ValueOp::Reduce { .. } = self.kernel.value(id).op else { return emitter.misfit("no reduction") };
        let Some(accumulator) = Accumulator::of(emitter, self.kernel, id, Some(LANES)) else {
            return emitter.misfit("no reduction");
        };
        let (whole, rest) = (self.length() / LANES * LANES, self.length() % LANES);
        let up_to = match self.end {
            None => Expr::Int(whole),
            Some(end) => {
                let var = emitter.fresh("whole");
                Expr::Name(emitter.bind(var, super::INDEX, Expr::Int(whole).then(Min, end)))
            }
        };
        if whole > 0 {
            let element = emitter.index("element");
            emitter.repeat(stepping(element, (0, up_to.clone()), LANES, LoopHint::None), |emitter| {
                self.part(emitter, Expr::Name(element), Expr::Int(LANES), |emitter| {
                    accumulator.take(emitter, id, Some(&lane), None);
                });
            });
        }
        if rest > 0 {
            let rest = self.end().then(Sub, up_to);
            self.part(emitter, Expr::Int(whole), rest, |emitter| {
                accumulator.take(emitter, id, Some(&lane), None);
            });
        }
        accumulator.merge_lanes(emitter);
        accumulator.settle(emitter, Some(&zero));
        emitter.named(accumulator.result(Some(&zero)), self.kernel.value(id).dtype)
    }
}
