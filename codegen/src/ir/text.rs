//! The stable textual form of a kernel.

use std::fmt;

use super::{AxisKind, Kernel, Recurrence, ValueId, ValueOp};
use crate::index::{AxisId, IndexExpr};

impl Kernel {
    fn index_text(&self, index: &IndexExpr) -> String {
        index.to_text(&|axis: AxisId| self.axis(axis).name.clone(), "")
    }

    fn op_text(&self, op: &ValueOp) -> String {
        let name = |id: &ValueId| format!("v{}", id.0);
        match op {
            ValueOp::Load { buffer, index, guard } => {
                let access =
                    format!("load {}[{}]", self.buffers[buffer.index()].name, self.index_text(index));
                match guard {
                    Some(guard) => format!("{access} if {}", name(guard)),
                    None => access,
                }
            }
            ValueOp::Literal(value) => format!("literal {value}"),
            ValueOp::Argument(argument) => format!("argument {}", self.arguments[argument.index()].name),
            ValueOp::Position(index) => format!("position {}", self.index_text(index)),
            ValueOp::InBounds(bounds) => {
                let bounds: Vec<String> = bounds
                    .iter()
                    .map(|b| format!("{} <= {} < {}", b.lo, self.index_text(&b.expr), b.hi))
                    .collect();
                format!("in_bounds {}", bounds.join(", "))
            }
            ValueOp::Random { seed, index } => {
                format!("random {}[{}]", self.arguments[seed.index()].name, self.index_text(index))
            }
            ValueOp::Unary(op, a) => format!("{op} {}", name(a)),
            ValueOp::Binary(op, a, b) => format!("{op} {} {}", name(a), name(b)),
            ValueOp::Select(condition, a, b) => format!("select {} {} {}", name(condition), name(a), name(b)),
            ValueOp::Cast(dtype, a) => format!("cast {} to {dtype}", name(a)),
            ValueOp::Scan { op, axis, reverse, exclusive, operand } => {
                let how = match (reverse, exclusive) {
                    (false, false) => "",
                    (true, false) => "reverse ",
                    (false, true) => "exclusive ",
                    (true, true) => "reverse exclusive ",
                };
                format!("{how}{op} along {} of {}", self.axis(*axis).name, name(operand))
            }
            ValueOp::Carry { init, row, .. } => {
                format!("carry of row {} from {}", self.index_text(row), name(init))
            }
            ValueOp::Last { carry } => format!("last of {}", name(carry)),
            ValueOp::Scatter { op, axis, over, index, check: _, operand } => {
                let (axis, over) = (&self.axis(*axis).name, &self.axis(*over).name);
                format!("scatter {op} over {over} of {} to {axis} at {}", name(operand), name(index))
            }
            ValueOp::Reduce { op, axes, operand, position } => {
                let axes: Vec<&str> = axes.iter().map(|&axis| self.axis(axis).name.as_str()).collect();
                let at = position.map_or(String::new(), |position| format!(" at {}", name(&position)));
                format!("reduce {op} over {} of {}{at}", axes.join(", "), name(operand))
            }
        }
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "kernel {}", self.name)?;
        for axis in &self.axes {
            let (kind, computed) = match axis.kind {
                AxisKind::Map => ("map", String::new()),
                AxisKind::Reduce => ("reduce", String::new()),
                AxisKind::Computed { value, .. } => ("computed", format!(" is v{}", value.0)),
                AxisKind::Offset { .. } => ("offset", String::new()),
            };
            match axis.is_argument {
                true => writeln!(f, "  {kind} {} < n_{}{computed}", axis.name, axis.name)?,
                false => writeln!(f, "  {kind} {} < {}{computed}", axis.name, axis.extent)?,
            }
        }
        for buffer in &self.buffers {
            writeln!(f, "  buffer {}: {}", buffer.name, buffer.dtype)?;
        }
        for argument in &self.arguments {
            writeln!(f, "  argument {}: {}", argument.name, argument.value.dtype())?;
        }
        for (number, value) in self.values.iter().enumerate() {
            writeln!(f, "  v{number}: {} = {}", value.dtype, self.op_text(&value.op))?;
        }
        for Recurrence { axis, reverse, carry, next } in &self.recurrences {
            let how = if *reverse { "reverse recurrence" } else { "recurrence" };
            let along = &self.axis(*axis).name;
            writeln!(f, "  {how} along {along}: v{} becomes v{}", carry.0, next.0)?;
        }
        for store in &self.stores {
            let buffer = &self.buffers[store.buffer.index()].name;
            writeln!(f, "  store {buffer}[{}] = v{}", self.index_text(&store.index), store.value.0)?;
        }
        Ok(())
    }
}
