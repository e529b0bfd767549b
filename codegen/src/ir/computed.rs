//! Axes whose position is computed: reading where another value says.
//!
//! Such an axis is an axis in every respect but one: no loop gives it positions, a value does. So every view between a
//! read and its buffer is an index expression as ever, with the axis in it. The value's own axes are what the read
//! varies over.

use smallvec::SmallVec;

use super::{Axis, AxisKind, Kernel, ValueId, ValueOp};
use crate::index::{AxisId, IndexExpr};

impl Axis {
    /// The extent that bounds index expressions. A computed axis of one position keeps its place in them: the value
    /// must be checked all the same.
    pub fn range(&self) -> u64 {
        match self.kind {
            AxisKind::Map | AxisKind::Reduce | AxisKind::Offset { .. } => self.extent,
            AxisKind::Computed { .. } => self.extent.max(2),
        }
    }
}

impl Kernel {
    /// A new axis at the position that `value`, an `I64`, says. Where that is not below the extent, the kernel
    /// notes `check` and the value for whoever launched it, and goes on with the nearest position that is. Without a check the
    /// value must always be below the extent: nothing looks.
    ///
    /// ```
    /// use lazuli_codegen::index::IndexExpr;
    /// use lazuli_codegen::ir::{AxisKind, Kernel};
    /// use lazuli_codegen::DType;
    ///
    /// let mut kernel = Kernel::new("take");
    /// let i = kernel.add_axis(AxisKind::Map, 1000, true);
    /// let (input, index) = (kernel.add_input(DType::F32, 50), kernel.add_input(DType::I64, 1000));
    /// let output = kernel.add_output(DType::F32, 1000);
    /// let position = kernel.load(index, IndexExpr::axis(i), None);
    /// let g = kernel.add_computed_axis(position, 50, false, Some(0));
    /// let x = kernel.load(input, IndexExpr::axis(g), None);
    /// kernel.store(output, IndexExpr::axis(i), x);
    /// assert!(kernel.verify().is_ok() && kernel.has_checks());
    /// assert!(kernel.value(x).axes.contains(&i)); // as the value does
    /// ```
    pub fn add_computed_axis(
        &mut self,
        value: ValueId,
        extent: u64,
        is_argument: bool,
        check: Option<u32>,
    ) -> AxisId {
        self.add_axis(AxisKind::Computed { value, check }, extent, is_argument)
    }

    /// The value that says the axis's position, if it is computed.
    pub fn computed_by(&self, axis: AxisId) -> Option<ValueId> {
        match self.axes.get(axis.0 as usize)?.kind {
            AxisKind::Map | AxisKind::Reduce | AxisKind::Offset { .. } => None,
            AxisKind::Computed { value, .. } => Some(value),
        }
    }

    /// Whether some computed position is checked, so that launches must provide a place for what is noted.
    pub fn has_checks(&self) -> bool {
        self.axes.iter().any(|axis| matches!(axis.kind, AxisKind::Computed { check: Some(_), .. }))
            || self.values.iter().any(|value| matches!(value.op, ValueOp::Scatter { .. }))
    }

    pub(crate) fn has_computed_axes(&self) -> bool {
        self.axes.iter().any(|axis| matches!(axis.kind, AxisKind::Computed { .. }))
    }

    /// The computed axes in an index, each with its value.
    pub fn computed_axes(&self, index: &IndexExpr) -> SmallVec<[(AxisId, ValueId); 2]> {
        if !self.has_computed_axes() {
            return SmallVec::new();
        }
        index.axes().into_iter().filter_map(|axis| Some((axis, self.computed_by(axis)?))).collect()
    }

    /// The values that an operation uses, also those that say at which position.
    pub fn operands(&self, op: &ValueOp) -> SmallVec<[ValueId; 3]> {
        let mut operands: SmallVec<[ValueId; 3]> = op.named_operands().into_iter().copied().collect();
        if self.has_computed_axes() {
            let computed = op.indices().into_iter().flat_map(|index| self.computed_axes(index));
            operands.extend(computed.map(|(_, value)| value));
        }
        operands
    }

    /// Lets every computed axis be computed by what takes its value's place.
    pub(crate) fn replace_computed(&mut self, mut replace: impl FnMut(ValueId) -> ValueId) {
        for axis in &mut self.axes {
            if let AxisKind::Computed { value, .. } = &mut axis.kind {
                *value = replace(*value);
            }
        }
    }
}
