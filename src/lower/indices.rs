//! Where a value is wanted: index expressions, conditions, and positions in row-major order.

use lazuli_codegen::index::{AxisRanges, Bound, IndexExpr};
use smallvec::SmallVec;

use crate::Shape;

/// Index expressions, one a dimension.
pub(super) type Indices = SmallVec<[IndexExpr; 4]>;

/// Conditions under which a value exists: it lies inside of all pads on the way.
pub(super) type Guards = SmallVec<[Bound; 2]>;

/// The row-major position of an element.
pub(super) fn flatten(indices: &[IndexExpr], shape: &Shape) -> IndexExpr {
    let strides = shape.strides();
    indices
        .iter()
        .zip(&strides)
        .fold(IndexExpr::zero(), |position, (index, &stride)| position.add(&index.scale(stride as i64)))
}

/// The indices of the element at a row-major position.
pub(super) fn unflatten(position: &IndexExpr, shape: &Shape, ranges: &AxisRanges) -> Indices {
    let position = position.simplify(ranges);
    let strides = shape.strides();
    let mut indices = Indices::new();
    // The outermost dimension needs no remainder, unless everything before it is 1 as well.
    let first = shape.iter().position(|&extent| extent > 1);
    for (axis, (&extent, &stride)) in shape.iter().zip(&strides).enumerate() {
        indices.push(match extent {
            0 | 1 => IndexExpr::zero(),
            _ => {
                let quotient = position.div(stride as i64, ranges);
                if first == Some(axis) { quotient } else { quotient.modulo(extent as i64, ranges) }
            }
        });
    }
    indices
}
