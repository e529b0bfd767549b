//! Kernels from one value after the other.

use smallvec::SmallVec;

use super::{Argument, ArgumentId, Axis, AxisKind, Buffer, BufferId, Kernel, Store, Value, ValueId, ValueOp};
use crate::index::{AxisId, IndexExpr};
use crate::{BinaryOp, DType, ReduceOp, Scalar, UnaryOp};

impl Kernel {
    /// A kernel without axes, parameters and values.
    pub fn new(name: impl Into<String>) -> Kernel {
        Kernel {
            name: name.into(),
            axes: Vec::new(),
            buffers: Vec::new(),
            arguments: Vec::new(),
            values: Vec::new(),
            recurrences: Vec::new(),
            stores: Vec::new(),
        }
    }

    /// A new axis, named by its kind and number.
    pub fn add_axis(&mut self, kind: AxisKind, extent: u64, is_argument: bool) -> AxisId {
        let letter = |kind| match kind {
            AxisKind::Map => 'i',
            AxisKind::Reduce => 'r',
            AxisKind::Computed { .. } => 'g',
            AxisKind::Offset { .. } => 'o',
        };
        let letter_of = letter(kind);
        let number = self.axes.iter().filter(|axis| letter(axis.kind) == letter_of).count();
        self.axes.push(Axis {
            name: format!("{letter_of}{number}"),
            kind,
            extent,
            is_argument,
            positions_of: None,
            is_lane: false,
        });
        AxisId(self.axes.len() as u32 - 1)
    }

    /// A new axis whose one position is an argument: where a slice begins, say. The text holds for every position
    /// below the extent, and for every one if that is an argument itself.
    ///
    /// ```
    /// use lazuli_codegen::index::IndexExpr;
    /// use lazuli_codegen::ir::{AxisKind, Kernel};
    /// use lazuli_codegen::schedule::{Figures, Matrices};
    /// use lazuli_codegen::{DType, Language, emit};
    ///
    /// let mut kernel = Kernel::new("part");
    /// let i = kernel.add_axis(AxisKind::Map, 100, true);
    /// let o = kernel.add_offset(901, false, 0);
    /// let (input, output) = (kernel.add_input(DType::F32, 1000), kernel.add_output(DType::F32, 100));
    /// let x = kernel.load(input, IndexExpr::axis(i).add(&IndexExpr::axis(o)), None);
    /// kernel.store(output, IndexExpr::axis(i), x);
    /// let figures = Figures { processors: 2, is_low_pressure: false, shared_bytes: 0, matrices: Matrices::Warps };
    /// let source = emit(&kernel, Language::Cuda, &figures)?.source;
    /// assert!(source.contains("in0[i0 + o0]"));
    /// # Ok::<(), lazuli_codegen::Refusal>(())
    /// ```
    pub fn add_offset(&mut self, extent: u64, is_argument: bool, number: u32) -> AxisId {
        self.add_axis(AxisKind::Offset { number }, extent, is_argument)
    }

    /// Whether the axis is a position that the launch says.
    pub fn is_offset(&self, axis: AxisId) -> bool {
        matches!(self.axis(axis).kind, AxisKind::Offset { .. })
    }

    /// A new input buffer.
    pub fn add_input(&mut self, dtype: DType, elements: u64) -> BufferId {
        self.add_buffer("in", dtype, elements, false)
    }

    /// A new output buffer.
    pub fn add_output(&mut self, dtype: DType, elements: u64) -> BufferId {
        self.add_buffer("out", dtype, elements, true)
    }

    fn add_buffer(&mut self, prefix: &str, dtype: DType, elements: u64, is_output: bool) -> BufferId {
        let number = self.buffers.iter().filter(|buffer| buffer.is_output == is_output).count();
        self.buffers.push(Buffer { name: format!("{prefix}{number}"), dtype, elements, is_output });
        BufferId(self.buffers.len() as u32 - 1)
    }

    /// A new scalar parameter.
    pub fn add_argument(&mut self, prefix: &str, value: Scalar) -> ArgumentId {
        let number = self.arguments.iter().filter(|argument| argument.name.starts_with(prefix)).count();
        let value = value.cast(value.dtype().compute());
        self.arguments.push(Argument { name: format!("{prefix}{number}"), value });
        ArgumentId(self.arguments.len() as u32 - 1)
    }

    /// A new value; an equal one that exists already is shared.
    pub fn add(&mut self, op: ValueOp, dtype: DType) -> ValueId {
        let axes = self.axes_of(&op);
        self.values.push(Value { op, dtype, axes });
        ValueId(self.values.len() as u32 - 1)
    }

    /// Adds a load.
    pub fn load(&mut self, buffer: BufferId, index: IndexExpr, guard: Option<ValueId>) -> ValueId {
        let dtype = self.buffers[buffer.index()].dtype.compute();
        self.add(ValueOp::Load { buffer, index, guard }, dtype)
    }

    /// Adds a constant of the text; 16-bit floats become the `F32` they are.
    pub fn literal(&mut self, value: Scalar) -> ValueId {
        let value = value.cast(value.dtype().compute());
        self.add(ValueOp::Literal(value), value.dtype())
    }

    /// Adds a pointwise operation.
    pub fn unary(&mut self, op: UnaryOp, operand: ValueId) -> ValueId {
        let dtype = op.result(self.value(operand).dtype);
        self.add(ValueOp::Unary(op, operand), dtype)
    }

    /// Adds a pointwise operation on two values.
    pub fn binary(&mut self, op: BinaryOp, a: ValueId, b: ValueId) -> ValueId {
        let dtype = op.result(self.value(a).dtype);
        self.add(ValueOp::Binary(op, a, b), dtype)
    }

    /// Adds a choice; one within it that asks the same is decided.
    pub fn select(&mut self, condition: ValueId, a: ValueId, b: ValueId) -> ValueId {
        let a = match self.value(a).op {
            ValueOp::Select(same, then, _) if same == condition => then,
            _ => a,
        };
        let b = match self.value(b).op {
            ValueOp::Select(same, _, otherwise) if same == condition => otherwise,
            _ => b,
        };
        let dtype = self.value(a).dtype;
        self.add(ValueOp::Select(condition, a, b), dtype)
    }

    /// Adds a conversion.
    pub fn cast(&mut self, to: DType, operand: ValueId) -> ValueId {
        self.add(ValueOp::Cast(to, operand), to.compute())
    }

    /// Adds a reduction.
    pub fn reduce(&mut self, op: ReduceOp, axes: &[AxisId], operand: ValueId) -> ValueId {
        let dtype = self.value(operand).dtype;
        let axes = SmallVec::from_slice(axes);
        self.add(ValueOp::Reduce { op, axes, operand, position: None }, dtype)
    }

    /// Adds a reduction to the position of a value; the axes are in the order in which positions count, and do not
    /// depend on arguments but for the first.
    pub fn reduce_position(&mut self, op: ReduceOp, axes: &[AxisId], operand: ValueId) -> ValueId {
        let index = axes.iter().fold(IndexExpr::zero(), |index, &axis| {
            index.scale(self.axis(axis).extent as i64).add(&IndexExpr::axis(axis))
        });
        let position = Some(self.add(ValueOp::Position(index), DType::I64));
        let axes = SmallVec::from_slice(axes);
        self.add(ValueOp::Reduce { op, axes, operand, position }, DType::I64)
    }

    /// Adds a store.
    pub fn store(&mut self, buffer: BufferId, index: IndexExpr, value: ValueId) {
        self.stores.push(Store { buffer, index, value });
    }
}
