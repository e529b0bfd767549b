//! What the schedules of sorts share: items, which are what is compared, and what is stored in the end.

use super::accumulate::set;
use super::emitter::Emitter;
use super::stmt::Arithmetic::{Add, Mul};
use super::stmt::{Expr, SortPart};
use super::variable::Var;
use crate::ir::{Kernel, ValueOp};
pub(super) use crate::schedule::Sorts;
use crate::{DType, Scalar};

/// An array of items, of which each is one 64-bit number or two.
#[derive(Clone, Copy)]
pub(super) struct Items {
    pub(super) array: Var,
    pub(super) wide: bool,
}

impl Items {
    /// Where an item begins.
    pub(super) fn place(self, at: Expr) -> Expr {
        if self.wide { at.then(Mul, 2) } else { at }
    }

    /// A number of an item: the item, or the place and the key.
    fn element(self, at: Expr, number: u64) -> Expr {
        Expr::element(self.array, self.place(at).then(Add, number))
    }

    /// The numbers of an item.
    pub(super) fn numbers(self, at: &Expr) -> Vec<Expr> {
        (0..if self.wide { 2 } else { 1 }).map(|number| self.element(at.clone(), number)).collect()
    }

    /// The number that tells the place, and the one that tells the value.
    pub(super) fn place_and_key(self, at: Expr) -> [Expr; 2] {
        [self.element(at.clone(), 0), self.element(at, u64::from(self.wide))]
    }

    /// Puts an item that is after all others.
    pub(super) fn fill(self, emitter: &mut Emitter, at: &Expr) {
        for number in self.numbers(at) {
            emitter.push(set(number, Expr::Literal(Scalar::from_i64(DType::I64, i64::MAX))));
        }
    }
}

impl Sorts {
    fn part(&self, kernel: &Kernel, part: SortPart, a: Expr, b: Expr) -> Expr {
        let (dtype, descending) = (kernel.value(self.operand).dtype, self.descending);
        Expr::Sort { part, dtype, descending, operands: Box::new([a, b]) }
    }

    /// Puts the item of the row's element into the array.
    pub(super) fn put(&self, emitter: &mut Emitter, items: Items, at: Expr, place: Expr) {
        let kernel = emitter.kernel;
        let value = emitter.value(self.operand);
        let parts = match self.wide {
            true => vec![SortPart::Place, SortPart::Key],
            false => vec![SortPart::Item],
        };
        let value = if self.wide { emitter.named(value, kernel.value(self.operand).dtype) } else { value };
        for (number, part) in items.numbers(&at).into_iter().zip(parts) {
            let item = self.part(kernel, part, value.clone(), place.clone());
            emitter.push(set(number, item));
        }
    }

    /// Stores what follows from an item, where all map axes have positions.
    pub(super) fn store(&self, emitter: &mut Emitter, [place, key]: [Expr; 2]) {
        let kernel = emitter.kernel;
        let key = emitter.named(key, DType::I64);
        let place = if self.wide { emitter.named(place, DType::I64) } else { key.clone() };
        for &id in &self.ids {
            let ValueOp::Sort { is_position, .. } = kernel.value(id).op else { continue };
            let result = match is_position {
                true => self.part(kernel, SortPart::Position, place.clone(), key.clone()),
                false => self.part(kernel, SortPart::Value, key.clone(), place.clone()),
            };
            let result = emitter.named(result, kernel.value(id).dtype);
            emitter.define(id, result);
        }
        emitter.store_all(kernel);
    }
}
