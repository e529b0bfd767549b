//! Recurrences: the body's nodes become values of the kernel, as far as what is asked for needs them.

use lazuli_codegen::index::{Atom, AxisId, IndexExpr};
use lazuli_codegen::ir::ValueId;
use rustc_hash::FxHashMap;

use super::indices::{Guards, Indices};
use super::refusal::{Refusal, Result};
use super::{Loop, Lowering};
use crate::Shape;
use crate::graph::maps;
use crate::graph::op::{Op, StepResult};
use crate::graph::{NodeId, Operands};

impl Lowering<'_> {
    /// The shape that a scan or a recurrence goes along, and its axis.
    pub(super) fn scanned(&self, id: NodeId) -> Result<(Shape, usize)> {
        let graph = self.request.graph;
        let shape_of = |id: NodeId| graph.node(id).shape.clone();
        match &graph.node(id).op {
            Op::Scan { axis, .. } => Ok((shape_of(id), *axis)),
            Op::Recurrence { axis, body, .. } => Ok((shape_of(graph.operands(id)[body.carries]), *axis)),
            _ => Err(Refusal::Broken("no scan")),
        }
    }

    /// The axis of the kernel that a scan goes along: an axis of the iteration space itself.
    pub(super) fn scan_axis(&self, index: &IndexExpr) -> Result<AxisId> {
        match index.terms() {
            [(Atom::Axis(along), 1)] if index.constant_term() == 0 => Ok(*along),
            _ => Err(Refusal::Broken("a scan is not along an axis of its kernel")),
        }
    }

    /// A result of a recurrence at some indices.
    pub(super) fn recurrence(&mut self, id: NodeId, indices: &Indices) -> Result<ValueId> {
        let Op::Recurrence { axis, reverse, body, result } = &self.request.graph.node(id).op else {
            return Err(Refusal::Broken("no recurrence"));
        };
        let mut indices = indices.clone();
        if let StepResult::Last(_) = result {
            let along = self.scan_axis.ok_or(Refusal::Broken("an end of no scan"))?;
            indices.insert(*axis, IndexExpr::axis(along));
        }
        self.scan_axis(&indices[*axis])?;
        let operands = self.request.graph.operands(id);
        let known = self.loops.iter().position(|known| {
            (&known.operands, &known.body, known.reverse) == (&operands, body, *reverse)
                && known.indices == indices
        });
        let number = known.unwrap_or_else(|| {
            let (carries, next) = (vec![None; body.carries], vec![None; body.carries]);
            let (body, values) = (body.clone(), FxHashMap::default());
            let (axis, reverse) = (*axis, *reverse);
            self.loops.push(Loop { operands, body, reverse, indices, axis, values, carries, next });
            self.loops.len() - 1
        });
        match *result {
            StepResult::Each(result) => self.result_of_step(number, result),
            StepResult::Last(carry) => {
                let before = self.carry(number, carry)?;
                self.finish_carries(number)?;
                Ok(self.kernel.last(before))
            }
        }
    }

    /// An output of the body at each position.
    fn result_of_step(&mut self, number: usize, result: usize) -> Result<ValueId> {
        let value = match result < self.loops[number].body.carries {
            true => self.next(number, result)?,
            false => self.step_value(number, result)?,
        };
        self.finish_carries(number)?;
        Ok(value)
    }

    /// What a carry is at the start of a step.
    fn carry(&mut self, number: usize, carry: usize) -> Result<ValueId> {
        if let Some(value) = self.loops[number].carries[carry] {
            return Ok(value);
        }
        let Loop { operands, indices, axis, reverse, .. } = &self.loops[number];
        let (operand, axis, reverse) = (operands[carry], *axis, *reverse);
        let along = self.scan_axis(&indices[axis])?;
        let mut row = indices.clone();
        row.remove(axis);
        let init = self.value(operand, &row, &Guards::new())?;
        let position = maps::flatten(&row, &self.request.graph.node(operand).shape).simplify(&self.ranges);
        let value = self.kernel.add_recurrence(along, reverse, init, position);
        self.loops[number].carries[carry] = Some(value);
        Ok(value)
    }

    /// What a carry is at the end of a step: rounded to its own dtype, so that the next step and whoever wants the
    /// result find the same.
    fn next(&mut self, number: usize, carry: usize) -> Result<ValueId> {
        if let Some(value) = self.loops[number].next[carry] {
            return Ok(value);
        }
        let dtype = self.loops[number].body.inputs[carry];
        let value = self.step_value(number, carry)?;
        let value = if dtype == dtype.compute() { value } else { self.kernel.cast(dtype, value) };
        self.loops[number].next[carry] = Some(value);
        Ok(value)
    }

    /// Says what the carries become that came up. To find that may need others.
    fn finish_carries(&mut self, number: usize) -> Result<()> {
        let open =
            |of: &Loop| (0..of.carries.len()).find(|&k| of.carries[k].is_some() && of.next[k].is_none());
        while let Some(carry) = open(&self.loops[number]) {
            self.next(number, carry)?;
        }
        for carry in 0..self.loops[number].carries.len() {
            if let (Some(value), Some(next)) =
                (self.loops[number].carries[carry], self.loops[number].next[carry])
            {
                self.kernel.set_next(value, next);
            }
        }
        Ok(())
    }

    /// The value of an output of the body, as the body gives it.
    fn step_value(&mut self, number: usize, output: usize) -> Result<ValueId> {
        let body = self.loops[number].body.clone();
        let &root = body.graph.outputs().get(output).ok_or(Refusal::Broken("a step with too few results"))?;
        for id in body.needed(root, |id| self.loops[number].values.contains_key(&id)) {
            let operands: Operands = body.graph.operands(id);
            let of = |n: usize| self.loops[number].values[&operands[n]];
            let node = body.graph.node(id);
            let value = match &node.op {
                Op::Input(slot) if *slot < body.carries => self.carry(number, *slot)?,
                Op::Input(slot) => {
                    let Loop { operands, indices, .. } = &self.loops[number];
                    let (element, indices) = (operands[*slot], indices.clone());
                    self.value(element, &indices, &Guards::new())?
                }
                Op::Constant(constant) => self.literal(constant.value),
                Op::Unary(op) => self.kernel.unary(*op, of(0)),
                Op::Binary(op) => self.kernel.binary(*op, of(0), of(1)),
                Op::Select => self.kernel.select(of(0), of(1), of(2)),
                Op::Cast => self.cast(node.dtype, of(0)),
                _ => return Err(Refusal::Broken("a step with what is not elementwise")),
            };
            self.loops[number].values.insert(id, value);
        }
        Ok(self.loops[number].values[&root])
    }
}
