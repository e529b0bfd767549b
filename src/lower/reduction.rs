//! Reductions: axes for what they combine, and their operands at all positions of these.

use lazuli_codegen::ReduceOp;
use lazuli_codegen::index::{AxisId, IndexExpr};
use lazuli_codegen::ir::{AxisKind, ValueId};
use smallvec::SmallVec;

use super::indices::{Guards, Indices};
use super::refusal::{Refusal, Result};
use super::{Extents, Lowering, without};
use crate::Shape;
use crate::graph::domain::{Roles, roles};
use crate::graph::op::Op;
use crate::graph::{NodeId, maps};

impl Lowering<'_> {
    /// The operand combined over some of its axes, at the indices of the others.
    pub(super) fn reduction(
        &mut self,
        operand: NodeId,
        op: ReduceOp,
        axes: &[usize],
        indices: &Indices,
        guards: &Guards,
    ) -> Result<ValueId> {
        let shape = &self.request.graph.node(operand).shape;
        let extents: Extents = axes.iter().map(|&axis| shape[axis]).collect();
        // Inside of those reductions only along whose axes it varies; other rows are swept before.
        let varies = |axes: &SmallVec<[AxisId; 4]>| self.vary(indices, axes);
        let depth = self.enclosing.iter().rposition(varies).map_or(0, |position| position + 1);
        let (reduced, inner) = self.reduced(extents, depth, &roles(shape, axes));
        if self.vary(indices, &reduced) {
            // A row's result wanted along the row itself, as in x + x.sum(1) of a square x.
            return Err(Refusal::ReducedAlong);
        }
        let mut kept = indices.iter();
        let mut inner = inner.into_iter();
        let operand_indices: Indices = (0..shape.rank())
            .filter_map(|position| match axes.contains(&position) {
                true => inner.next(),
                false => kept.next().cloned(),
            })
            .collect();
        let guards = without(&self.kernel, guards, &reduced)?;
        if op == ReduceOp::Sum {
            self.note_factors(operand);
        }
        let around = self.enclosing.split_off(depth);
        self.enclosing.push(reduced.clone());
        let value = self.value(operand, &operand_indices, &guards);
        self.enclosing.truncate(depth);
        self.enclosing.extend(around);
        let value = value?;
        Ok(match op.is_position() {
            true => self.kernel.reduce_position(op, &reduced, value),
            false => self.kernel.reduce(op, &reduced, value),
        })
    }

    pub(super) fn reduce_axes_for(
        &mut self,
        extents: Extents,
        depth: usize,
        outermost: bool,
    ) -> SmallVec<[AxisId; 4]> {
        if let Some(axes) = self.reduce_axes.get(&(extents.clone(), depth)) {
            return axes.clone();
        }
        let mut axes = SmallVec::new();
        for (position, &extent) in extents.iter().enumerate() {
            axes.push(self.axis(AxisKind::Reduce, extent, outermost && position == 0 && extent > 1));
        }
        self.reduce_axes.insert((extents, depth), axes.clone());
        axes
    }

    /// The axes of a reduction inside of `depth` others, and the indices along what it reduces: those that threads share go
    /// over the same rows by the same axes, whatever their shapes look like.
    fn reduced(&mut self, extents: Extents, depth: usize, own: &Roles) -> (SmallVec<[AxisId; 4]>, Indices) {
        let graph = self.request.graph;
        if let Some(first) = self.request.hero.reduction().filter(|_| depth == 0)
            && let Op::Reduce { axes, .. } = &graph.node(first).op
        {
            let full = &graph.node(graph.operands(first)[0]).shape;
            let common: Extents = axes.iter().map(|&axis| full[axis]).collect();
            if common != extents && roles(full, axes) == *own {
                let shape = |extents: &Extents| extents.iter().copied().collect::<Shape>();
                let (from, to) = (shape(&common), shape(&extents));
                let reduced = self.reduce_axes_for(common, depth, false);
                let along: Indices = reduced.iter().map(|&axis| IndexExpr::axis(axis)).collect();
                return (reduced, maps::unflatten(&maps::flatten(&along, &from), &to, &self.ranges));
            }
        }
        let reduced = self.reduce_axes_for(extents, depth, false);
        let along = reduced.iter().map(|&axis| IndexExpr::axis(axis)).collect();
        (reduced, along)
    }
}
