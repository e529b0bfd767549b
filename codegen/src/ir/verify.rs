//! Checks the invariants of a kernel.

use super::{AxisKind, Kernel, ValueId, ValueOp};
use crate::DType;

impl Kernel {
    /// Checks the invariants stated in the [module](super).
    ///
    /// # Errors
    /// Which invariant is broken, and where.
    pub fn verify(&self) -> Result<(), String> {
        (0..self.values.len()).try_for_each(|number| self.verify_value(number))?;
        self.verify_recurrences()?;
        for axis in &self.axes {
            if let AxisKind::Computed { value, .. } = axis.kind
                && self.values.get(value.index()).is_none_or(|value| value.dtype != DType::I64)
            {
                return Err(format!("kernel {}: {} is not computed by an i64", self.name, axis.name));
            }
        }
        for store in &self.stores {
            let fits = store.value.index() < self.values.len()
                && self.buffers.get(store.buffer.index()).is_some_and(|buffer| buffer.is_output);
            if !fits {
                return Err(format!("kernel {}: a store does not fit its output", self.name));
            }
            let written = store.index.axes();
            // Of at most one position no index is needed.
            let is_single = |axis| !self.axis(axis).is_argument && self.axis(axis).extent <= 1;
            if !self.value(store.value).axes.iter().all(|&axis| written.contains(&axis) || is_single(axis)) {
                return Err(format!(
                    "kernel {}: a store overwrites an element with different values",
                    self.name
                ));
            }
        }
        Ok(())
    }

    /// Checks the invariants of one value. What its recurrence or its axes name may come later.
    pub(super) fn verify_value(&self, number: usize) -> Result<(), String> {
        let value = &self.values[number];
        let fail = |what: &str| Err(format!("kernel {}: v{number} {what}", self.name));
        if value.dtype != value.dtype.compute() {
            return fail("has a storage dtype");
        }
        if self.operands(&value.op).iter().any(|operand| operand.index() >= number) {
            return fail("uses a later value");
        }
        if self.axes_of(&value.op) != value.axes {
            return fail("does not vary over the axes that it states");
        }
        let dtype = |id: &ValueId| self.value(*id).dtype;
        let sound = match &value.op {
            ValueOp::Load { buffer, guard, .. } => {
                self.buffers
                    .get(buffer.index())
                    .is_some_and(|b| !b.is_output && b.dtype.compute() == value.dtype)
                    && guard.is_none_or(|guard| matches!(self.value(guard).op, ValueOp::InBounds(_)))
            }
            ValueOp::Literal(scalar) => scalar.dtype() == value.dtype,
            ValueOp::Argument(argument) => {
                self.arguments.get(argument.index()).is_some_and(|a| a.value.dtype() == value.dtype)
            }
            ValueOp::Position(_) => value.dtype == DType::I64,
            ValueOp::InBounds(bounds) => value.dtype == DType::Bool && !bounds.is_empty(),
            ValueOp::Random { seed, .. } => {
                let seed = self.arguments.get(seed.index());
                value.dtype.is_float() && seed.is_some_and(|seed| seed.value.dtype() == DType::I64)
            }
            ValueOp::Unary(op, a) => op.accepts(dtype(a)) && op.result(dtype(a)) == value.dtype,
            ValueOp::Binary(op, a, b) => {
                dtype(a) == dtype(b) && op.accepts(dtype(a)) && op.result(dtype(a)) == value.dtype
            }
            ValueOp::Select(condition, a, b) => {
                dtype(condition) == DType::Bool && dtype(a) == dtype(b) && dtype(a) == value.dtype
            }
            ValueOp::Cast(to, _) => to.compute() == value.dtype,
            ValueOp::Scan { op, axis, operand, .. } => {
                op.is_scan()
                    && op.accepts(dtype(operand))
                    && dtype(operand) == value.dtype
                    && self.axis(*axis).kind == AxisKind::Map
            }
            ValueOp::Carry { recurrence, init, .. } => {
                let axis = self.recurrences.get(recurrence.index()).map(|recurrence| recurrence.axis);
                dtype(init) == value.dtype && axis.is_some_and(|axis| self.axis(axis).kind == AxisKind::Map)
            }
            ValueOp::Last { carry } => dtype(carry) == value.dtype && self.axis_of_carry(*carry).is_some(),
            ValueOp::Scatter { op, axis, over, index, operand, .. } => {
                op.is_plain()
                    && op.accepts(dtype(operand))
                    && dtype(operand) == value.dtype
                    && dtype(index) == DType::I64
                    && self.axis(*axis).kind == AxisKind::Map
                    && self.axis(*over).kind == AxisKind::Reduce
                    && [index, operand].iter().all(|id| !self.value(**id).axes.contains(axis))
            }
            ValueOp::Sort { axis, over, is_position, operand, .. } => {
                value.dtype == (if *is_position { DType::I64 } else { dtype(operand) })
                    && self.axis(*axis).kind == AxisKind::Map
                    && self.axis(*over).kind == AxisKind::Reduce
                    && self.axis(*axis).extent <= self.axis(*over).extent
                    && !self.value(*operand).axes.contains(axis)
            }
            ValueOp::Reduce { op, axes, operand, position } => {
                op.accepts(dtype(operand))
                    && op.result(dtype(operand)) == value.dtype
                    && position.is_some() == op.is_position()
                    && position.is_none_or(|position| dtype(&position) == DType::I64)
                    && !axes.is_empty()
                    && axes.iter().all(|&axis| self.axis(axis).kind == AxisKind::Reduce)
            }
        };
        if !sound {
            return fail("does not fit its operands or parameters");
        }
        Ok(())
    }
}
