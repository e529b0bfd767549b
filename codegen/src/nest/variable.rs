//! What a loop nest computes with: parameters, positions along axes, and the function's own variables and arrays.

use super::Parameter;
use super::stmt::Type;
use crate::index::AxisId;
use crate::ir::{ArgumentId, BufferId, Kernel};

/// A variable, an array or a parameter.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Var {
    /// The position along an axis, where it is bound.
    Axis(AxisId),
    /// The lane: the place in a vector of a thread, or in one of a loop of a core.
    Lane,
    /// A parameter of the function.
    Parameter(Parameter),
    /// One of the function's own: a number in [`Body::locals`](super::Body).
    Local(LocalId),
}

/// The number of a variable or array in its function.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LocalId(pub u32);

impl LocalId {
    /// The number as an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A variable or array of a function.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Local {
    /// What it is called if no other one that is seen there is.
    pub hint: String,
    /// Its type, or that of its elements.
    pub ty: Type,
    /// Elements of an array; `None` of a plain variable.
    pub len: Option<u64>,
    /// Where it is.
    pub space: Space,
}

/// Where a variable is, and who sees it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Space {
    /// The thread's, and never assigned: a `Let` or a loop's variable.
    Constant,
    /// The thread's: registers, or the stack.
    Thread,
    /// Shared memory of the block: declared, or from that byte on of what the launch provides.
    Shared(Option<u64>),
    /// The shared memory that the launch provides, from that byte on. Each thread has elements of its own there.
    Launch(u64),
}

impl Kernel {
    /// The variable that holds the position along an axis.
    pub(crate) fn position(&self, axis: AxisId) -> Var {
        if self.axis(axis).is_lane { Var::Lane } else { Var::Axis(axis) }
    }
}

impl From<&Var> for Var {
    fn from(var: &Var) -> Var {
        *var
    }
}

impl From<AxisId> for Var {
    fn from(axis: AxisId) -> Var {
        Var::Axis(axis)
    }
}

impl From<Parameter> for Var {
    fn from(parameter: Parameter) -> Var {
        Var::Parameter(parameter)
    }
}

impl From<BufferId> for Var {
    fn from(buffer: BufferId) -> Var {
        Var::Parameter(Parameter::Buffer(buffer))
    }
}

impl From<ArgumentId> for Var {
    fn from(argument: ArgumentId) -> Var {
        Var::Parameter(Parameter::Argument(argument))
    }
}
