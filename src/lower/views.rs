//! What each view does to the indices of its result.

use lazuli_codegen::index::{Bound, BoundTruth, IndexExpr};
use lazuli_codegen::ir::ValueId;

use super::Lowering;
use super::indices::{Guards, Indices};
use super::refusal::Result;
use crate::Scalar;
use crate::graph::NodeId;
use crate::graph::maps;
use crate::graph::op::View;
use crate::graph::parameters::{Place, Placed};

impl Lowering<'_> {
    pub(super) fn view(
        &mut self,
        view: &View,
        id: NodeId,
        operand: NodeId,
        indices: &Indices,
        guards: &Guards,
    ) -> Result<ValueId> {
        let graph = self.request.graph;
        let (node, from) = (graph.node(id), graph.node(operand).shape.clone());
        match view {
            View::Reshape | View::Permute(_) | View::Expand | View::Slice { .. } | View::Window { .. } => {
                let starts = match view {
                    View::Slice { starts, .. } => {
                        let starts = starts.iter().enumerate();
                        starts.map(|(axis, &start)| self.start(id, axis, start)).collect()
                    }
                    _ => Indices::new(),
                };
                let inner = maps::through(view, (&node.shape, &from), indices, &starts, &self.ranges);
                self.value(operand, &inner, guards)
            }
            View::Pad { before, value } => {
                let mut inner = Indices::new();
                let mut own = Guards::new();
                let padding = self.literal(*value);
                for (axis, index) in indices.iter().enumerate() {
                    let (inside, bound) = self.placed(id, axis, index, before[axis], from[axis]);
                    inner.push(inside);
                    if from[axis] == node.shape[axis] {
                        continue;
                    }
                    let bound = Bound { expr: bound.expr.simplify(&self.ranges), ..bound };
                    match bound.simplify(&self.ranges) {
                        BoundTruth::Always => {}
                        BoundTruth::Never => return Ok(padding),
                        BoundTruth::Depends(bound) => own.push(bound),
                    }
                }
                if own.is_empty() {
                    return self.value(operand, &inner, guards);
                }
                let mut all = guards.clone();
                for bound in own {
                    // Two bounds on one index, as a pad of a pad has them, are one.
                    match all.iter_mut().find(|other| other.expr == bound.expr) {
                        Some(other) => {
                            (other.lo, other.hi) = (other.lo.max(bound.lo), other.hi.min(bound.hi));
                            if other.lo >= other.hi {
                                return Ok(padding);
                            }
                        }
                        None => all.push(bound),
                    }
                }
                let value = self.value(operand, &inner, &all)?;
                // The outer guards hold wherever this value is used, so the choice may test all of them.
                let Some(guard) = self.guard(&all) else { return Ok(value) };
                let truth = |of: bool| self.literals.get(&Scalar::from_bool(of)).copied();
                if truth(true) == Some(value) && truth(false) == Some(padding) {
                    return Ok(guard);
                }
                Ok(self.kernel.select(guard, value, padding))
            }
        }
    }
}

impl Lowering<'_> {
    /// The operand's index of a pad along an axis, and when the operand has it.
    fn placed(
        &mut self,
        id: NodeId,
        axis: usize,
        index: &IndexExpr,
        before: usize,
        length: usize,
    ) -> (IndexExpr, Bound) {
        let Some(&Placed { parameter, place, extent, is_outermost }) =
            self.request.parameters.placed(id, axis)
        else {
            let inside = index.offset(-(before as i64));
            return (inside.clone(), Bound { expr: inside, lo: 0, hi: length as i64 });
        };
        let offset = self.offset(parameter, extent, is_outermost);
        let distance = index.sub(&offset);
        let (inside, lo, hi) = match place {
            Place::First => (index, Bound::NO_LO, 0),
            Place::Middle => (&distance, 0, length as i64),
            Place::Last => (&distance, 0, Bound::NO_HI),
        };
        // The only position is the first, whatever is divided of it.
        let inside = if length == 1 { IndexExpr::zero() } else { inside.clone() };
        (inside, Bound { expr: distance, lo, hi })
    }
}
