//! What an operation is made of, said once: whoever looks at a kernel or changes it goes by this.

use smallvec::SmallVec;

use super::{ValueId, ValueOp};
use crate::index::{AxisId, IndexExpr};

/// The parts of operations, to look at and to change.
macro_rules! parts {
    ($operands:ident, $indices:ident, $axes:ident, $($mutable:tt)?) => {
        impl ValueOp {
            /// The values that it names; [`Kernel::operands`](super::Kernel::operands) are all.
            pub(crate) fn $operands(&$($mutable)? self) -> SmallVec<[&$($mutable)? ValueId; 3]> {
                let mut parts: SmallVec<[&$($mutable)? ValueId; 3]> = SmallVec::new();
                match self {
                    ValueOp::Literal(_)
                    | ValueOp::Argument(_)
                    | ValueOp::Position(_)
                    | ValueOp::InBounds(_)
                    | ValueOp::Random { .. } => {}
                    ValueOp::Load { guard, .. } => parts.extend(guard),
                    ValueOp::Unary(_, a)
                    | ValueOp::Cast(_, a)
                    | ValueOp::Scan { operand: a, .. }
                    | ValueOp::Carry { init: a, .. }
                    | ValueOp::Last { carry: a }
                    | ValueOp::Sort { operand: a, .. } => parts.push(a),
                    ValueOp::Binary(_, a, b) | ValueOp::Scatter { index: a, operand: b, .. } => {
                        parts.extend([a, b]);
                    }
                    ValueOp::Select(condition, a, b) => parts.extend([condition, a, b]),
                    ValueOp::Reduce { operand, position, .. } => {
                        parts.push(operand);
                        parts.extend(position);
                    }
                }
                parts
            }

            /// The index expressions in it.
            pub fn $indices(&$($mutable)? self) -> SmallVec<[&$($mutable)? IndexExpr; 2]> {
                let mut parts: SmallVec<[&$($mutable)? IndexExpr; 2]> = SmallVec::new();
                match self {
                    ValueOp::Load { index, .. }
                    | ValueOp::Position(index)
                    | ValueOp::Random { index, .. }
                    | ValueOp::Carry { row: index, .. } => parts.push(index),
                    ValueOp::InBounds(bounds) => {
                        let bounds: &$($mutable)? [crate::index::Bound] = bounds;
                        for bound in bounds {
                            parts.push(&$($mutable)? bound.expr);
                        }
                    }
                    _ => {}
                }
                parts
            }

            /// The axes that it names by itself, in no index.
            pub(super) fn $axes(&$($mutable)? self) -> SmallVec<[&$($mutable)? AxisId; 4]> {
                let mut parts: SmallVec<[&$($mutable)? AxisId; 4]> = SmallVec::new();
                match self {
                    ValueOp::Reduce { axes, .. } => parts.extend(axes),
                    ValueOp::Scan { axis, .. } => parts.push(axis),
                    ValueOp::Scatter { axis, over, .. } | ValueOp::Sort { axis, over, .. } => {
                        parts.extend([axis, over]);
                    }
                    _ => {}
                }
                parts
            }
        }
    };
}
parts!(named_operands, indices, named_axes,);
parts!(named_operands_mut, indices_mut, named_axes_mut, mut);
