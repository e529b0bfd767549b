//! What the schedules of scatters share: where the blocks are, and how one element is combined.

use super::accumulate::{Accumulator, mul_add, set};
use super::emitter::{Definition, Emitter};
use super::stmt::Arithmetic::{Div, Mul, Rem};
use super::stmt::{Expr, Type};
use super::variable::Var;
use super::{INDEX, Parameter, Workspace};
use crate::ir::{Kernel, ValueId, ValueOp};
pub(super) use crate::schedule::Scatters;
use crate::schedule::{Launch, WorkItems};
use crate::{DType, ReduceOp};

/// Partial results of one scatter, many in an array.
pub(super) struct Partials {
    pub(super) id: ValueId,
    pub(super) op: ReduceOp,
    pub(super) dtype: DType,
    pub(super) operand: ValueId,
    pub(super) array: Var,
}

impl Partials {
    pub(super) fn element(&self, at: &Expr) -> Expr {
        Expr::element(self.array, at.clone())
    }

    /// Nothing is combined yet.
    pub(super) fn reset(&self, emitter: &mut Emitter, at: &Expr) {
        emitter.push(set(self.element(at), Expr::Literal(self.op.identity(self.dtype))));
    }

    /// Takes one more value.
    pub(super) fn combine(&self, emitter: &mut Emitter, at: &Expr, value: Expr) {
        let (before, value) = match self.op.repeats() {
            true => {
                let before = emitter.named(self.element(at), self.dtype);
                (before, emitter.named(value, self.dtype))
            }
            false => (self.element(at), value),
        };
        // The verifier lets no other monoid scatter.
        let Some(op) = self.op.plain() else { return };
        let combined = Expr::Binary(op, self.dtype, Box::new(before), Box::new(value));
        emitter.push(set(self.element(at), combined));
    }

    /// A variable for several of them, combined.
    pub(super) fn declare(&self, emitter: &mut Emitter) -> Accumulator {
        Accumulator::declare(emitter, self.op, self.dtype, None)
    }

    /// Lets a variable take one of them.
    pub(super) fn merge(&self, emitter: &mut Emitter, into: &Accumulator, at: &Expr) {
        into.merge(emitter, None, &|_| self.element(at));
    }
}

/// Workspaces for partial results.
pub(super) fn workspaces(partials: &[Partials], elements: u64) -> Vec<Workspace> {
    let workspace = |(number, partials): (usize, &Partials)| Workspace {
        name: format!("partial{number}"),
        dtype: partials.dtype,
        elements,
        zeroed: false,
    };
    partials.iter().enumerate().map(workspace).collect()
}

/// The place of the n-th partial results in the workspaces.
pub(super) fn workspace(number: usize) -> Var {
    Parameter::Workspace(number).into()
}

impl Scatters {
    /// The partial results of each scatter, in arrays by their numbers.
    pub(super) fn partials(&self, kernel: &Kernel, mut array: impl FnMut(usize) -> Var) -> Vec<Partials> {
        let partials = self.ids.iter().enumerate().filter_map(|(number, &id)| match kernel.value(id).op {
            ValueOp::Scatter { op, operand, .. } => {
                Some(Partials { id, op, dtype: kernel.value(id).dtype, operand, array: array(number) })
            }
            _ => None,
        });
        partials.collect()
    }

    /// Binds the outer axes from a row's number, which has a variable where there are several rows.
    pub(super) fn bind_row(&self, emitter: &mut Emitter, row: &Expr) {
        if let Expr::Name(row) = row {
            return emitter.unflatten(*row, &self.outer, 1);
        }
        for &axis in &self.outer {
            emitter.bind(axis, INDEX, Expr::Int(0));
        }
        emitter.bind_axes(&self.outer);
    }

    /// Binds a variable to the position that the index says, where the index is known.
    pub(super) fn bind_position(&self, emitter: &mut Emitter, at: impl Into<Definition>) -> Var {
        let position = Box::new(emitter.value(self.index));
        let extent = Box::new(emitter.extent(self.axis));
        emitter.bind(at, INDEX, Expr::Checked { position, extent, check: Some(self.check) })
    }

    /// A launch of so many blocks for each row.
    pub(super) fn launch(&self, kernel: &Kernel, blocks: u64) -> Launch {
        Launch { items: WorkItems::of(kernel, &self.outer) * WorkItems::number(blocks), ..Launch::default() }
    }

    /// The variable that numbers the columns: the inner axis itself where there is only one.
    pub(super) fn column_name(&self, emitter: &mut Emitter) -> Var {
        emitter.flat(&self.inner, "column")
    }
}

/// Takes a number apart into digits of these bases, the last one first: a variable for each whose base is not 1, which is
/// always 0.
pub(super) fn bind_digits<const N: usize>(
    emitter: &mut Emitter,
    number: Expr,
    digits: [(&'static str, &Expr); N],
) -> [Expr; N] {
    let mut rest = number;
    let mut bound = [const { None }; N];
    for (place, (name, base)) in digits.iter().enumerate().rev() {
        if **base == Expr::Int(1) {
            continue;
        }
        let is_first = digits[..place].iter().all(|(_, base)| **base == Expr::Int(1));
        let digit = if is_first { rest.clone() } else { rest.clone().then(Rem, (*base).clone()) };
        bound[place] = Some((*name, digit));
        rest = rest.then(Div, (*base).clone());
    }
    bound.map(|digit| match digit {
        Some((name, digit)) => Expr::Name(emitter.bind(name, INDEX, digit)),
        None => Expr::Int(0),
    })
}

/// `number * scale`, also where the number is 0.
pub(super) fn scaled(number: Expr, scale: Expr) -> Expr {
    if number == Expr::Int(0) { number } else { number.then(Mul, scale) }
}

/// `a * b + c`, also where a is 0.
pub(super) fn offset(a: Expr, b: Expr, c: Expr) -> Expr {
    if a == Expr::Int(0) { c } else { mul_add(a, b, c) }
}

/// A truth as a variable.
pub(super) const TRUTH: Type = Type::Register(DType::Bool);
