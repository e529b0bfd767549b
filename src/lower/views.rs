//! What each view does to the indices of its result.

use lazuli_codegen::index::{AxisRanges, Bound, BoundTruth, IndexExpr};
use lazuli_codegen::ir::ValueId;
use smallvec::SmallVec;

use super::Lowering;
use super::indices::{Guards, Indices, flatten, unflatten};
use super::refusal::Result;
use crate::graph::NodeId;
use crate::graph::op::View;
use crate::graph::parameters::{Place, Placed};
use crate::{Scalar, Shape};

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
            View::Reshape => {
                let inner = reshape(indices, &node.shape, &from, &self.ranges);
                self.value(operand, &inner, guards)
            }
            View::Permute(perm) => {
                let mut inner: Indices = SmallVec::from_elem(IndexExpr::zero(), perm.len());
                for (index, &source) in indices.iter().zip(perm) {
                    inner[source] = index.clone();
                }
                self.value(operand, &inner, guards)
            }
            View::Expand => {
                let lead = node.shape.rank() - from.rank();
                let inner: Indices = from
                    .iter()
                    .enumerate()
                    .map(|(axis, &extent)| match extent {
                        1 => IndexExpr::zero(),
                        _ => indices[lead + axis].clone(),
                    })
                    .collect();
                self.value(operand, &inner, guards)
            }
            View::Slice { starts, steps } => {
                let mut inner = Indices::new();
                for (axis, (&start, &step)) in starts.iter().zip(steps).enumerate() {
                    inner.push(indices[axis].scale(step).add(&self.start(id, axis, start)));
                }
                self.value(operand, &inner, guards)
            }
            View::Window { axis, stride, dilation, .. } => {
                let mut inner = indices.clone();
                if let Some(within) = inner.pop() {
                    inner[*axis] = inner[*axis].scale(*stride as i64).add(&within.scale(*dilation as i64));
                }
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
        match place {
            Place::First => (index.clone(), Bound { expr: distance, lo: Bound::NO_LO, hi: 0 }),
            Place::Middle => (distance.clone(), Bound { expr: distance, lo: 0, hi: length as i64 }),
            Place::Last => (distance.clone(), Bound { expr: distance, lo: 0, hi: Bound::NO_HI }),
        }
    }
}

/// The operand's indices of a reshape; dimensions that only gain or lose 1s pass through.
fn reshape(indices: &Indices, to: &Shape, from: &Shape, ranges: &AxisRanges) -> Indices {
    let kept = |shape: &Shape| shape.iter().copied().filter(|&extent| extent != 1).collect::<Vec<_>>();
    if kept(to) == kept(from) {
        let mut moved =
            to.iter().zip(indices).filter(|(extent, _)| **extent != 1).map(|(_, index)| index.clone());
        return from
            .iter()
            .map(
                |&extent| {
                    if extent == 1 { IndexExpr::zero() } else { moved.next().unwrap_or_else(IndexExpr::zero) }
                },
            )
            .collect();
    }
    unflatten(&flatten(indices, to), from, ranges)
}
