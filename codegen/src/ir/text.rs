//! The stable textual form of a kernel: all of it, so that `parse` gives back the same.

use std::fmt;

use super::{Argument, Axis, AxisKind, Buffer, Kernel, Recurrence, ValueId, ValueOp};
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
                let reverse = if *reverse { " reverse" } else { "" };
                let exclusive = if *exclusive { " exclusive" } else { "" };
                let scan = op.scan_name();
                format!("{scan}{reverse}{exclusive} along {} of {}", self.axis(*axis).name, name(operand))
            }
            ValueOp::Carry { recurrence, init, row } => {
                format!("carry {} of row {} from {}", recurrence.0, self.index_text(row), name(init))
            }
            ValueOp::Last { carry } => format!("last of {}", name(carry)),
            ValueOp::Scatter { op, axis, over, index, check, operand } => {
                let (axis, over) = (&self.axis(*axis).name, &self.axis(*over).name);
                let (operand, index) = (name(operand), name(index));
                format!("scatter {op} over {over} of {operand} to {axis} at {index} check {check}")
            }
            ValueOp::Sort { axis, over, descending, is_position, operand } => {
                let (axis, over) = (&self.axis(*axis).name, &self.axis(*over).name);
                let what = if *is_position { "argsort" } else { "sort" };
                let descending = if *descending { " descending" } else { "" };
                format!("{what}{descending} over {over} of {} to {axis}", name(operand))
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
        for Axis { name, kind, extent, is_argument, positions_of, is_lane } in &self.axes {
            let lane = if *is_lane { " lane" } else { "" };
            let extent = match (is_argument, positions_of) {
                (_, Some((of, times))) => format!("{} * {times} = {extent}", self.extent_name(*of)),
                (true, None) => format!("n_{name} = {extent}"),
                (false, None) => format!("{extent}{lane}"),
            };
            match kind {
                AxisKind::Map => writeln!(f, "  map {name} < {extent}")?,
                AxisKind::Reduce => writeln!(f, "  reduce {name} < {extent}")?,
                AxisKind::Computed { value, check } => {
                    write!(f, "  computed {name} < {extent} is v{}", value.0)?;
                    match check {
                        Some(check) => writeln!(f, " check {check}")?,
                        None => writeln!(f)?,
                    }
                }
                AxisKind::Offset { number } => writeln!(f, "  offset {name} < {extent} number {number}")?,
            }
        }
        for Buffer { name, dtype, elements, is_output } in &self.buffers {
            let kind = if *is_output { "output" } else { "input" };
            writeln!(f, "  {kind} {name}: {dtype} [{elements}]")?;
        }
        for Argument { name, value } in &self.arguments {
            writeln!(f, "  argument {name}: {} = {value}", value.dtype())?;
        }
        for Recurrence { axis, reverse, carry, next } in &self.recurrences {
            let along = &self.axis(*axis).name;
            let reverse = if *reverse { " reverse" } else { "" };
            writeln!(f, "  recurrence along {along}{reverse}: v{} becomes v{}", carry.0, next.0)?;
        }
        for (number, value) in self.values.iter().enumerate() {
            writeln!(f, "  v{number}: {} = {}", value.dtype, self.op_text(&value.op))?;
        }
        for store in &self.stores {
            let buffer = &self.buffers[store.buffer.index()].name;
            writeln!(f, "  store {buffer}[{}] = v{}", self.index_text(&store.index), store.value.0)?;
        }
        Ok(())
    }
}
