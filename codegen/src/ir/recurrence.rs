//! Loops along an axis whose every step needs what the step before gave.
//!
//! A recurrence is two values: the carry, which is what the step before gave, and the next one, which follows from it
//! by any operations. What is between them belongs to the step like every other value that varies along the axis.

use super::{Kernel, RecurrenceId, ValueId, ValueOp};
use crate::index::{AxisId, IndexExpr};

/// What each step of a loop along an axis gives to the next.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Recurrence {
    /// Along which axis; it is never merged with another.
    pub axis: AxisId,
    /// Whether it goes from the last position to the first.
    pub reverse: bool,
    /// What a step finds, a `Carry`.
    pub carry: ValueId,
    /// What it gives.
    pub next: ValueId,
}

impl Kernel {
    /// The carry of a new recurrence, which begins as `init`. `row` tells apart the positions of the other axes: each
    /// has a loop of its own. [`Kernel::set_next`] says what each step gives.
    ///
    /// ```
    /// use lazuli_codegen::index::IndexExpr;
    /// use lazuli_codegen::ir::{AxisKind, Kernel};
    /// use lazuli_codegen::{BinaryOp, DType, Scalar};
    ///
    /// // Decaying sums along rows of 100.
    /// let mut kernel = Kernel::new("decay");
    /// let (row, i) = (kernel.add_axis(AxisKind::Map, 8, true), kernel.add_axis(AxisKind::Map, 100, false));
    /// let (input, output) = (kernel.add_input(DType::F32, 800), kernel.add_output(DType::F32, 800));
    /// let at = IndexExpr::axis(row).scale(100).add(&IndexExpr::axis(i));
    /// let [zero, half] = [0.0, 0.5].map(|value| kernel.literal(Scalar::from_f64(DType::F32, value)));
    /// let carry = kernel.add_recurrence(i, false, zero, IndexExpr::axis(row));
    /// let x = kernel.load(input, at.clone(), None);
    /// let decayed = kernel.binary(BinaryOp::Mul, carry, half);
    /// let next = kernel.binary(BinaryOp::Add, decayed, x);
    /// kernel.set_next(carry, next);
    /// kernel.store(output, at, next);
    /// assert!(kernel.verify().is_ok());
    /// ```
    pub fn add_recurrence(&mut self, axis: AxisId, reverse: bool, init: ValueId, row: IndexExpr) -> ValueId {
        let recurrence = RecurrenceId(self.recurrences.len() as u32);
        let carry = ValueId(self.values.len() as u32);
        self.recurrences.push(Recurrence { axis, reverse, carry, next: carry });
        let dtype = self.value(init).dtype;
        self.add(ValueOp::Carry { recurrence, init, row }, dtype)
    }

    /// Says what each step gives to the next one.
    pub fn set_next(&mut self, carry: ValueId, next: ValueId) {
        if let ValueOp::Carry { recurrence, .. } = self.value(carry).op {
            self.recurrences[recurrence.index()].next = next;
        }
    }

    /// What the last step gives, once a row.
    pub fn last(&mut self, carry: ValueId) -> ValueId {
        let dtype = self.value(carry).dtype;
        self.add(ValueOp::Last { carry }, dtype)
    }

    /// The axis of the carry's recurrence.
    pub(super) fn axis_of_carry(&self, carry: ValueId) -> Option<AxisId> {
        match self.value(carry).op {
            ValueOp::Carry { recurrence, .. } => Some(self.recurrences.get(recurrence.index())?.axis),
            _ => None,
        }
    }

    /// What is wrong with the recurrences, if something is.
    pub(super) fn verify_recurrences(&self) -> Result<(), String> {
        for (number, recurrence) in self.recurrences.iter().enumerate() {
            let fail = |what: &str| Err(format!("kernel {}: recurrence {number} {what}", self.name));
            let Recurrence { axis, carry, next, .. } = *recurrence;
            let (Some(carry), Some(next)) = (self.values.get(carry.index()), self.values.get(next.index()))
            else {
                return fail("names a value that is not there");
            };
            let ValueOp::Carry { recurrence, init, .. } = &carry.op else { return fail("has no carry") };
            if recurrence.index() != number {
                return fail("has the carry of another one");
            }
            if next.dtype != carry.dtype || !next.axes.is_subset(&carry.axes) {
                return fail("gives something else than it carries");
            }
            if self.value(*init).axes.contains(&axis) {
                return fail("begins differently at each position");
            }
        }
        Ok(())
    }
}
