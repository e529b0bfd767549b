//! The iteration space of a kernel: the axes that its hero goes over, and where among them each result is stored.

use lazuli_codegen::index::{AxisId, IndexExpr};
use lazuli_codegen::ir::{AxisKind, Kernel};
use rustc_hash::FxHashSet;
use smallvec::SmallVec;

use super::indices::Indices;
use super::refusal::{Refusal, Result};
use super::{Extents, Lowering};
use crate::Shape;
use crate::graph::NodeId;
use crate::graph::domain::{self, Hero};
use crate::graph::op::{Op, View};

/// Results of a stack that may be side by side.
const MOST_STACKED: usize = 16;

/// Indices along the axes of a shape.
type Positions = (Indices, Shape);

pub(super) struct Space {
    /// The map axes.
    map: Positions,
    /// Of rows: with the reduced axes.
    full: Option<Positions>,
    /// What scans have come to in the end has no place along their axis.
    ends: Option<Positions>,
}

impl Space {
    /// Where a result of that shape is stored.
    pub(super) fn of(&self, own: &Shape) -> Option<&Positions> {
        let map = &self.map.1;
        // Nothing fits everywhere: then the axes that all values of the kernel have.
        let is_empty = own.elements() == 0 && map.elements() == 0;
        let is_full = |full: &&Positions| own.elements() == full.1.elements() && !is_empty;
        let is_end = |ends: &&Positions| {
            *own == ends.1 || own.elements() == ends.1.elements() && own.rank() != map.rank()
        };
        let is_map = |map: &&Positions| own.elements() == map.1.elements();
        let others = || self.ends.as_ref().filter(is_end).or(Some(&self.map).filter(is_map));
        self.full.as_ref().filter(is_full).or_else(others)
    }
}

impl Space {
    /// The axes that rows go along.
    pub(super) fn along(&self, kernel: &Kernel) -> SmallVec<[AxisId; 4]> {
        let axes = self.full.iter().flat_map(|(indices, _)| indices.iter().flat_map(IndexExpr::axes));
        axes.filter(|&axis| kernel.axis(axis).kind == AxisKind::Reduce).collect()
    }
}

impl Lowering<'_> {
    /// Adds the axes of the iteration space. The outermost extent is an argument: another batch, the same kernel.
    pub(super) fn space(&mut self) -> Result<Space> {
        let graph = self.request.graph;
        match self.request.hero {
            Hero::Reduction(reduction) => self.rows(reduction),
            Hero::Scan(scan) => {
                let (shape, axis) = self.scanned(scan)?;
                let indices = self.map_axes(&shape, self.outermost(&shape));
                let mut others = indices.clone();
                self.scan_axis = Some(self.scan_axis(&others.remove(axis))?);
                let ends = Some((others, shape.without(&[axis])));
                Ok(Space { map: (indices, shape), full: None, ends })
            }
            Hero::Elements | Hero::Scatter(_) if self.request.outputs.is_empty() => {
                Err(Refusal::Broken("a group without outputs"))
            }
            Hero::Elements | Hero::Scatter(_) => {
                let outputs = self.request.outputs.iter();
                let shape = domain::common(outputs.map(|&output| &graph.node(output).shape));
                let outermost = self.outermost(&shape).filter(|&at| !self.stacks(&shape, at));
                let indices = self.map_axes(&shape, outermost);
                Ok(Space { map: (indices, shape), full: None, ends: None })
            }
        }
    }

    /// The space of a reduction that threads share.
    fn rows(&mut self, reduction: NodeId) -> Result<Space> {
        let graph = self.request.graph;
        let shape = |id: NodeId| &graph.node(id).shape;
        let Op::Reduce { axes, .. } = &graph.node(reduction).op else {
            return Err(Refusal::Broken("the reduction of a group does not reduce"));
        };
        let full = shape(graph.operands(reduction)[0]).clone();
        let own_map = full.without(axes);
        let extents: Extents = axes.iter().map(|&axis| full[axis]).collect();
        let outermost = axes.first() == Some(&0);
        let mut outputs = self.request.outputs.iter().map(|&output| shape(output));
        let stores_rows = outputs.clone().any(|output| output.elements() == full.elements());
        let first = outputs.find(|output| output.elements() == own_map.elements());
        let is_turned = |first: &&Shape| **first != own_map && first.rank() == own_map.rank();
        if let Some(first) = first.filter(is_turned).filter(|_| !stores_rows) {
            // Results in another order: their axes are the map axes.
            self.reduce_axes_for(extents, 0, outermost);
            return Ok(Space { map: (self.map_axes(first, None), first.clone()), full: None, ends: None });
        }
        // Map axes first: they come first in index expressions.
        let kept: Vec<AxisId> = (0..full.rank())
            .filter(|position| !axes.contains(position))
            .map(|position| self.axis(AxisKind::Map, full[position], position == 0 && full[position] > 1))
            .collect();
        let map: Indices = kept.iter().map(|&axis| IndexExpr::axis(axis)).collect();
        let reduced = self.reduce_axes_for(extents, 0, outermost);
        let (mut kept, mut reduced) = (kept.into_iter(), reduced.into_iter());
        let of = |position: usize| if axes.contains(&position) { reduced.next() } else { kept.next() };
        let indices: Indices = (0..full.rank()).filter_map(of).map(IndexExpr::axis).collect();
        Ok(Space { map: (map, own_map), full: Some((indices, full)), ends: None })
    }

    /// Map axes for a shape, one of whose extents may be an argument.
    fn map_axes(&mut self, shape: &Shape, argument: Option<usize>) -> Indices {
        let mut indices = Indices::new();
        for (position, &extent) in shape.iter().enumerate() {
            let is_argument = argument == Some(position) && extent > 1;
            indices.push(IndexExpr::axis(self.axis(AxisKind::Map, extent, is_argument)));
        }
        indices
    }

    /// Whether results are stacks of a few along their outermost axis: another number of these is another kernel anyway, and what
    /// the few share is computed once if it is known how many they are.
    fn stacks(&self, results: &Shape, at: usize) -> bool {
        let few = 2..=MOST_STACKED;
        if !few.contains(&results[at]) {
            return false;
        }
        let graph = self.request.graph;
        let inner: usize = results[at + 1..].iter().product();
        // Of one in many places, or of a few that are stacks themselves.
        let is_stacked = |id: NodeId| match (&graph.node(id).op, &graph.operands(id)[..]) {
            (Op::View(View::Pad { .. }), &[part]) => {
                let (all, part) = (&graph.node(id).shape, &graph.node(part).shape);
                let outermost = all.iter().position(|&extent| extent != 1);
                part.elements() == inner && outermost.is_some_and(|at| part[at] == 1)
            }
            _ => false,
        };
        let operands = self.request.nodes.iter().flat_map(|&id| graph.operands(id));
        let parts: FxHashSet<NodeId> = operands.filter(|&id| is_stacked(id)).collect();
        parts.len() >= results[at]
    }

    /// The outermost axis, of a row as of a vector; but a scan along the row is faster if its length is known, and the
    /// positions to scatter to are divided into ranges of known extents.
    fn outermost(&self, shape: &Shape) -> Option<usize> {
        let is_known = |at: usize| {
            let mut ops = self.request.nodes.iter().map(|&id| &self.request.graph.node(id).op);
            ops.any(|op| {
                matches!(op, Op::Scan { .. }) && at > 0
                    || matches!(op, Op::Scatter { axis, .. } | Op::Sort { axis, .. } if *axis == at)
            })
        };
        shape.iter().position(|&extent| extent != 1).filter(|&at| !is_known(at))
    }
}
