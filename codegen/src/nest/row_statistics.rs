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
    /// Which elements count if not all: from a multiple of the lanes to one, or to the last.
    pub(super) part: Option<Extent>,
}

/// A part of each row's elements.
#[derive(Clone, Copy)]
pub(super) struct Extent {
    /// If not the first element.
    pub(super) begin: Option<Var>,
    pub(super) end: Var,
}

impl Extent {
    /// Where the part begins and ends, or all.
    pub(super) fn of(part: Option<Extent>, all: Expr) -> [Expr; 2] {
        let begin = part.and_then(|part| part.begin).map_or(Expr::Int(0), Expr::Name);
        [begin, part.map_or(all, |part| Expr::Name(part.end))]
    }
}

impl Row<'_> {
    fn length(&self) -> u64 {
        self.kernel.axis(self.along).extent
    }

    /// All elements, in lanes.
    pub(super) fn each(&self, emitter: &mut Emitter, body: impl FnOnce(&mut Emitter)) {
        self.in_lanes(emitter, self.extent(), Expr::name(Var::Lane), body);
    }

    fn extent(&self) -> [Expr; 2] {
        Extent::of(self.part, Expr::Int(self.length()))
    }

    /// In lanes: elements from one on, so many.
    fn elements(&self, emitter: &mut Emitter, from: Expr, count: Expr, body: impl FnOnce(&mut Emitter)) {
        self.in_lanes(emitter, [Expr::Int(0), count], from.then(Add, Expr::name(Var::Lane)), body);
    }

    fn in_lanes(
        &self,
        emitter: &mut Emitter,
        [from, to]: [Expr; 2],
        at: Expr,
        body: impl FnOnce(&mut Emitter),
    ) {
        emitter.repeat_along(&[self.along], counting(Var::Lane, from, to, LoopHint::Simd), |emitter| {
            emitter.bind(self.along, super::INDEX, at.clone());
            for (value, array, first) in &self.there {
                emitter.define(*value, Expr::element(array, first.clone().then(Add, at.clone())));
            }
            body(emitter);
        });
    }

    /// Computes a value once that is used several times; `of` makes of it what is kept.
    pub(super) fn keep(
        &mut self,
        emitter: &mut Emitter,
        id: ValueId,
        of: impl FnOnce(&mut Emitter, Expr) -> Expr,
    ) {
        let value = self.kernel.value(id);
        if self.there.iter().any(|(own, ..)| *own == id) || !value.axes.contains(&self.along) {
            return;
        }
        let array = emitter.fresh("kept");
        let array = emitter.array(array, Type::Register(value.dtype), padded(self.kernel, self.along));
        self.each(emitter, |emitter| {
            let value = emitter.value(id);
            let value = of(emitter, value);
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
        let [from, end] = self.extent();
        let up_to = match self.part {
            None => Expr::Int(whole),
            Some(Extent { end, .. }) => {
                let var = emitter.fresh("whole");
                Expr::Name(emitter.bind(var, super::INDEX, Expr::Int(whole).then(Min, end)))
            }
        };
        if whole > 0 {
            let element = emitter.index("element");
            emitter.repeat(stepping(element, (from, up_to.clone()), LANES, LoopHint::None), |emitter| {
                self.elements(emitter, Expr::Name(element), Expr::Int(LANES), |emitter| {
                    accumulator.take(emitter, id, Some(&lane), None);
                });
            });
        }
        if rest > 0 {
            let rest = end.then(Sub, up_to);
            self.elements(emitter, Expr::Int(whole), rest, |emitter| {
                accumulator.take(emitter, id, Some(&lane), None);
            });
        }
        accumulator.merge_lanes(emitter);
        accumulator.settle(emitter, Some(&zero));
        emitter.named(accumulator.result(Some(&zero)), self.kernel.value(id).dtype)
    }
}
