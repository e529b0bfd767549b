//! What can be wrong with a loop nest, and what its variables are.

use std::fmt;

use crate::DType;
use crate::index::IndexExpr;
use crate::nest::stmt::Type;
use crate::nest::variable::Var;
use crate::nest::{Function, Nest, Parameter};

/// What is wrong with a loop nest; variables by their names.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum NestError {
    /// A variable is used where it is not defined.
    Undefined(String),
    /// A variable is defined where it is already, or a loop goes along an axis that has a position already.
    Redefined(String),
    /// A variable is used where another one of its name is nearer.
    Hidden(String),
    /// What cannot change is assigned.
    Immutable(String),
    /// An expression is not of the type that is needed there.
    Mistyped {
        /// The type that is needed.
        wanted: String,
        /// The expression.
        expr: String,
    },
    /// An operation of a dtype that it is not defined for.
    Unsupported {
        /// The operation.
        op: &'static str,
        /// Of its operands.
        dtype: DType,
    },
    /// Threads of a block, or for an exchange of a warp, may come to it while others do not.
    Divergent(&'static str),
    /// Shared memory is read that nothing has been written to.
    Unwritten(String),
    /// Shared memory is read, or written over, with no barrier since others wrote or read it.
    Unsynchronised(String),
    /// Shared memory is read, and no copy to it has been waited for.
    Unawaited(String),
    /// An index that is computed in 32 bits, which do not hold it.
    TooNarrow(String),
    /// An element of an array that it may not have.
    OutOfBounds {
        /// The array.
        array: String,
        /// Where it is read or written.
        index: String,
        /// The least and the most that the index can be.
        range: (i64, i64),
        /// Elements.
        len: u64,
    },
}

impl fmt::Display for NestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NestError::Undefined(name) => write!(f, "{name} is used where it is not defined"),
            NestError::Redefined(name) => write!(f, "{name} is defined twice"),
            NestError::Hidden(name) => write!(f, "{name} is used where another {name} is nearer"),
            NestError::Immutable(name) => write!(f, "{name} is assigned, and cannot change"),
            NestError::Mistyped { wanted, expr } => write!(f, "{expr} is no {wanted}"),
            NestError::Unsupported { op, dtype } => write!(f, "{op} is not defined for {dtype}"),
            NestError::Divergent(what) => write!(f, "{what} that not all threads reach"),
            NestError::Unwritten(name) => write!(f, "{name} is read before anything is written there"),
            NestError::Unsynchronised(name) => write!(f, "no barrier between two uses of {name}"),
            NestError::Unawaited(name) => {
                write!(f, "{name} is read, and nothing has waited for the copies to it")
            }
            NestError::TooNarrow(index) => write!(f, "32 bits do not hold {index}"),
            NestError::OutOfBounds { array, index, range: (least, most), len } => {
                write!(f, "{array}[{index}] may be {least} to {most}, of {len} elements")
            }
        }
    }
}

impl std::error::Error for NestError {}

/// What a variable is called in errors.
pub(super) fn name(nest: &Nest, function: &Function, var: Var) -> String {
    nest.name_of(&function.body.locals, var)
}

/// Type and length of an array; `None` of what is none.
pub(super) fn array(nest: &Nest, function: &Function, var: Var) -> Option<(Type, u64)> {
    match var {
        Var::Parameter(Parameter::Buffer(id)) => {
            let buffer = &nest.kernel.buffers[id.index()];
            Some((Type::Memory(buffer.dtype), buffer.elements))
        }
        Var::Parameter(Parameter::Workspace(number)) => {
            let space = nest.workspaces.get(number)?;
            let ty = if space.zeroed { Type::Index } else { Type::Register(space.dtype) };
            Some((ty, space.elements))
        }
        Var::Parameter(Parameter::Checks) => Some((Type::Register(DType::I64), 2)),
        Var::Local(id) => {
            let local = &function.body.locals[id.index()];
            Some((local.ty, local.len?))
        }
        Var::Axis(_) | Var::Lane | Var::Parameter(_) => None,
    }
}

/// An index, by the names of its axes.
pub(super) fn index(nest: &Nest, index: &IndexExpr) -> String {
    index.to_text(&|axis| nest.kernel.axis(axis).name.clone(), "")
}
