//! Index-set splitting: a loop is split where a remainder wraps around, into segments in each of which quotients by constants
//! stay and remainders grow with their dividends. So what is rolled or repeated along the innermost axis is read as vectors.

use super::INDEX;
use super::emitter::Emitter;
use super::loops::stepping;
use super::stmt::Arithmetic::{Add, Div, Min, Mul, Rem, Sub};
use super::stmt::{Expr, LoopHint, Stmt};
use super::variable::Var;
use crate::index::{Atom, AxisId, IndexExpr};
use crate::ir::{Kernel, ValueId};

/// Shorter segments, on average, are not worth a loop each. At this length a loop takes half the time of divisions.
const SHORTEST: u64 = 4;

/// More quotients are not worth finding a segment's end.
const MOST_DIVIDENDS: usize = 16;

/// Where a loop is split.
pub(super) struct IndexSplit {
    dividends: Vec<Dividend>,
}

/// What is divided by a constant: at the first position, by how much it grows, and the constant.
#[derive(PartialEq)]
struct Dividend {
    first: IndexExpr,
    step: i64,
    by: i64,
}

impl IndexSplit {
    /// That of a loop along an axis; `None` if nothing is divided there, or if segments would be short.
    pub(super) fn of(kernel: &Kernel, axis: AxisId) -> Option<IndexSplit> {
        let loads = kernel.values.iter().flat_map(|value| value.op.indices());
        IndexSplit::of_indices(kernel, axis, loads.chain(kernel.stores.iter().map(|store| &store.index)))
    }

    /// That of a loop which computes one value for each position.
    pub(super) fn below(kernel: &Kernel, axis: AxisId, value: ValueId) -> Option<IndexSplit> {
        let below = kernel.down_from([value]);
        IndexSplit::of_indices(kernel, axis, below.into_iter().flat_map(|id| kernel.value(id).op.indices()))
    }

    fn of_indices<'k>(
        kernel: &Kernel,
        axis: AxisId,
        indices: impl Iterator<Item = &'k IndexExpr>,
    ) -> Option<IndexSplit> {
        let mut dividends = Vec::new();
        for index in indices {
            find(kernel, axis, index, &mut dividends)?;
        }
        let ends: f64 = dividends.iter().map(|one| one.step.unsigned_abs() as f64 / one.by as f64).sum();
        let is_long = ends * SHORTEST as f64 <= 1.0 && dividends.len() <= MOST_DIVIDENDS;
        (is_long && !dividends.is_empty()).then_some(IndexSplit { dividends })
    }

    /// Appends the segments from one position to another; `part` appends one.
    pub(super) fn emit<'k>(
        &self,
        emitter: &mut Emitter<'k>,
        (from, to): (Expr, Expr),
        part: impl FnOnce(&mut Emitter<'k>, Var, Var),
    ) {
        let [at, length, stop] = ["at", "length", "stop"].map(|name| emitter.fresh(name));
        emitter.variable(length, INDEX, Expr::Int(0));
        let segments = stepping(at, (from, to.clone()), Expr::Name(length), LoopHint::None);
        emitter.repeat_pinned(segments, |emitter| {
            // Each minimum has a name: in C one says both of its operands twice.
            let mut end = to;
            for (number, one) in self.dividends.iter().enumerate() {
                let name = if number + 1 == self.dividends.len() { stop } else { emitter.fresh("end") };
                end = Expr::Name(emitter.bind(name, INDEX, end.then(Min, at.then(Add, one.left(at)))));
            }
            part(emitter, at, stop);
            emitter.push(Stmt::Assign { target: Expr::Name(length), value: stop.then(Sub, at) });
        });
    }
}

impl Dividend {
    /// The positions from one on with its quotient.
    fn left(&self, at: Var) -> Expr {
        let (step, by) = (self.step.unsigned_abs(), self.by as u64);
        let (first, grown) = (Expr::Index(self.first.clone()), at.then(Mul, step));
        match self.step > 0 {
            true => Expr::Int(by + step - 1).then(Sub, first.then(Add, grown).then(Rem, by)).then(Div, step),
            false => first.then(Sub, grown).then(Rem, by).then(Div, step).then(Add, 1),
        }
    }
}

/// Notes what is divided in an expression and varies along the axis; `None` if that is itself made of remainders, or of quotients
/// and the axis.
fn find(kernel: &Kernel, axis: AxisId, index: &IndexExpr, dividends: &mut Vec<Dividend>) -> Option<()> {
    for (atom, _) in index.terms() {
        let (Atom::Div(of, by) | Atom::Mod(of, by)) = atom else { continue };
        if !of.uses(axis) {
            continue;
        }
        let Some(step) = of.coefficient(axis) else {
            // What is divided stays where its own quotients do.
            let stays = of.terms().iter().all(|(atom, _)| match atom {
                Atom::Axis(own) => *own != axis,
                Atom::Div(..) => true,
                Atom::Mod(of, _) => !of.uses(axis),
            });
            if !stays {
                return None;
            }
            find(kernel, axis, of, dividends)?;
            continue;
        };
        let first = of.substitute(axis, &IndexExpr::zero(), &kernel.ranges());
        // What one position says cannot be told from outside of the loop.
        if first.axes().iter().any(|&other| !kernel.axis(other).kind.is_map_or_offset()) {
            return None;
        }
        let dividend = Dividend { first, step, by: *by };
        if step != 0 && !dividends.contains(&dividend) {
            dividends.push(dividend);
        }
    }
    Some(())
}
