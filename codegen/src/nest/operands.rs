//! What stands for an expression where one is asked for: numbers, variables, axes and the launch's coordinates.

use super::Parameter;
use super::stmt::{Arithmetic, Builtin, Expr};
use super::variable::Var;
use crate::index::AxisId;

impl Expr {
    /// A variable.
    pub fn name(var: impl Into<Var>) -> Expr {
        Expr::Name(var.into())
    }

    /// `self op other`.
    pub fn then(self, op: Arithmetic, other: impl Into<Expr>) -> Expr {
        let other = other.into();
        match (op, &self, &other) {
            (Arithmetic::Add, Expr::Int(0), _) => other,
            (Arithmetic::Add | Arithmetic::Sub, _, Expr::Int(0)) => self,
            (Arithmetic::Mul | Arithmetic::Div, _, Expr::Int(1)) => self,
            (Arithmetic::Mul, Expr::Int(1), _) => other,
            (Arithmetic::Rem, _, Expr::Int(1)) => Expr::Int(0),
            (Arithmetic::Mul, Expr::Int(0), _) | (Arithmetic::Mul, _, Expr::Int(0)) => Expr::Int(0),
            (Arithmetic::Mul, Expr::Int(a), Expr::Int(b)) => Expr::Int(a.saturating_mul(*b)),
            (Arithmetic::Sub, Expr::Int(a), Expr::Int(b)) if a >= b => Expr::Int(a - b),
            (Arithmetic::Div, Expr::Int(a), Expr::Int(b)) if *b > 0 => Expr::Int(a / b),
            (Arithmetic::Add, Expr::Int(a), Expr::Int(b)) => Expr::Int(a.saturating_add(*b)),
            (Arithmetic::Min, Expr::Int(a), Expr::Int(b)) => Expr::Int(*a.min(b)),
            _ => Expr::Arithmetic(op, Box::new(self), Box::new(other)),
        }
    }

    /// `array[index]`.
    pub fn element(array: impl Into<Var>, index: impl Into<Expr>) -> Expr {
        Expr::Element(array.into(), Box::new(index.into()))
    }
}

macro_rules! operands {
    ($($from:ty: |$own:ident| $expr:expr),*) => {$(
        impl From<$from> for Expr {
            fn from($own: $from) -> Expr {
                $expr
            }
        }
    )*};
}
operands! {
    u64: |value| Expr::Int(value),
    Var: |var| Expr::Name(var),
    &Var: |var| Expr::Name(*var),
    AxisId: |axis| Expr::Name(axis.into()),
    Parameter: |parameter| Expr::Name(parameter.into()),
    Builtin: |builtin| Expr::Builtin(builtin),
    &Expr: |expr| expr.clone()
}

impl Var {
    /// `self op other`.
    pub fn then(self, op: Arithmetic, other: impl Into<Expr>) -> Expr {
        Expr::Name(self).then(op, other)
    }
}

impl Builtin {
    /// `self op other`.
    pub fn then(self, op: Arithmetic, other: impl Into<Expr>) -> Expr {
        Expr::Builtin(self).then(op, other)
    }
}
