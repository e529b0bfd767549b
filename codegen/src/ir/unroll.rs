//! Loop unrolling, of a kernel's axes: what stood in several steps of a loop is side by side in one.

use super::{AxisKind, Kernel, Numbered, Value, ValueId, ValueOp};
use crate::index::{Atom, AxisId, IndexExpr};

/// More values of an unrolled loop are too much text.
const MOST_VALUES: usize = 512;

/// A stack of more parts is not unrolled.
const MOST_PARTS: u64 = 16;

impl Kernel {
    /// Whether loops along an axis may be unrolled by a factor: they may be at all, and it is not too much text.
    pub(crate) fn unrolls(&self, axis: AxisId, factor: u64) -> bool {
        self.values.len().saturating_mul(factor as usize) <= MOST_VALUES && self.is_unrollable(axis)
    }

    /// Whether elements along an axis may be combined in any order, by one operation.
    pub(crate) fn is_unrollable(&self, axis: AxisId) -> bool {
        let is_plain = |value: &Value| match &value.op {
            ValueOp::Reduce { op, axes, operand, .. } if axes.contains(&axis) => {
                op.is_plain() && self.value(*operand).dtype == value.dtype
            }
            _ => true,
        };
        self.is_unordered(axis) && self.values.iter().all(is_plain)
    }

    /// Whether a loop may go along an axis in any order: no reduction says where an element is, and there are no scans, scatters,
    /// sorts or computed positions, along whatever axis.
    pub(crate) fn is_unordered(&self, axis: AxisId) -> bool {
        let is_free = |value: &Value| match &value.op {
            ValueOp::Reduce { axes, position, .. } => position.is_none() || !axes.contains(&axis),
            ValueOp::Scan { .. }
            | ValueOp::Carry { .. }
            | ValueOp::Last { .. }
            | ValueOp::Scatter { .. }
            | ValueOp::Sort { .. } => false,
            _ => true,
        };
        !self.has_computed_axes() && self.values.iter().all(is_free)
    }

    /// The kernel with loops along an axis unrolled by a factor of its extent. What reduces the axis combines the steps before.
    pub(crate) fn unrolled(&self, axis: AxisId, factor: u64) -> Kernel {
        let mut result = Numbered::like(self);
        let is_whole = self.axis(axis).extent == factor;
        result.kernel.axes[axis.0 as usize].extent /= factor;
        let ranges = result.kernel.ranges();
        let away = AxisId(self.axes.len() as u32);
        let renamed = |id: AxisId| if id == axis { away } else { id };
        let at = |step: u64| IndexExpr::axis(axis).scale(factor as i64).offset(step as i64);
        // Of each value what it is in each of the steps: once for what does not vary along the axis.
        let mut steps: Vec<Vec<ValueId>> = Vec::with_capacity(self.values.len());
        for value in &self.values {
            let varies = value.axes.contains(&axis);
            let own = (0..if varies { factor } else { 1 }).map(|step| {
                let mut op = value.op.clone();
                for index in op.indices_mut() {
                    *index = index.renamed(&renamed).substitute(away, &at(step), &ranges);
                }
                if let ValueOp::Reduce { op: reduction, axes, operand, .. } = &mut op
                    && let (Some(by), true) = (reduction.plain(), axes.contains(&axis))
                {
                    let (all, dtype) = (&steps[operand.index()], self.value(*operand).dtype);
                    let mut both = |a, b| result.add(ValueOp::Binary(by, a, b), dtype);
                    let whole = (1..factor as usize).fold(all[0], |a, n| both(a, all[n % all.len()]));
                    axes.retain(|reduced| *reduced != axis || !is_whole);
                    if axes.is_empty() {
                        // A sum of nothing but negative zeros is zero.
                        let none = result.add(ValueOp::Literal(reduction.identity(dtype)), dtype);
                        return result.add(ValueOp::Binary(by, none, whole), dtype);
                    }
                    *operand = whole;
                } else {
                    for id in op.named_operands_mut() {
                        let of = &steps[id.index()];
                        *id = of[step as usize % of.len()];
                    }
                }
                result.decided(op, value.dtype)
            });
            let own = own.collect();
            steps.push(own);
        }
        let mut result = result.kernel;
        for store in &self.stores {
            let own = &steps[store.value.index()];
            let varies = store.index.uses(axis) || own.len() > 1;
            for step in 0..if varies { factor } else { 1 } {
                let index = store.index.renamed(&renamed).substitute(away, &at(step), &ranges);
                result.store(store.buffer, index, own[step as usize % own.len()]);
            }
        }
        result.retain_needed();
        result
    }

    /// Drops what no store follows from, as the parts of a join that a known condition left out.
    fn retain_needed(&mut self) {
        let needed = self.down_from(self.stores.iter().map(|store| store.value));
        let mut renumbered = vec![ValueId(u32::MAX); self.values.len()];
        for (number, id) in needed.iter().enumerate() {
            renumbered[id.index()] = ValueId(number as u32);
        }
        let old = std::mem::take(&mut self.values);
        let kept = old.into_iter().enumerate().filter(|(number, _)| renumbered[*number].0 != u32::MAX);
        self.values = kept.map(|(_, value)| value).collect();
        for value in &mut self.values {
            value.op.named_operands_mut().into_iter().for_each(|id| *id = renumbered[id.index()]);
        }
        self.stores.iter_mut().for_each(|store| store.value = renumbered[store.value.index()]);
    }

    /// Exchanges two axes of results whose extents are known. Axes keep their numbers, which parameters refer to.
    pub(crate) fn exchange(&mut self, a: AxisId, b: AxisId) {
        let (first, second) = (self.axis(a).extent, self.axis(b).extent);
        (self.axes[a.0 as usize].extent, self.axes[b.0 as usize].extent) = (second, first);
        self.rename_axes(&|axis| match axis {
            axis if axis == a => b,
            axis if axis == b => a,
            axis => axis,
        });
        self.find_axes();
    }

    /// A reduced axis along which the few parts of a stack lie, one at each position, which conditions tell apart: unrolled, it has
    /// none. One whose extent is an argument, or known.
    pub fn stacked_axis(&self, is_argument: bool) -> Option<AxisId> {
        let is_stacked = |axis: &AxisId| {
            let own = self.axis(*axis);
            let bounds = self.values.iter().flat_map(|value| match &value.op {
                ValueOp::InBounds(bounds) => &bounds[..],
                _ => &[],
            });
            let of_axis = bounds.filter(|bound| {
                bound.expr.terms() == [(Atom::Axis(*axis), 1)] && bound.expr.constant_term() == 0
            });
            let mut ends: Vec<i64> = of_axis.flat_map(|bound| [bound.lo, bound.hi]).collect();
            ends.retain(|&end| 0 < end && end < own.extent as i64);
            ends.sort_unstable();
            ends.dedup();
            own.is_argument == is_argument
                && (2..=MOST_PARTS).contains(&own.extent)
                && ends.len() as u64 + 1 == own.extent
                && self.unrolls(*axis, own.extent)
        };
        self.axes_of_kind(AxisKind::Reduce).into_iter().find(is_stacked)
    }

    /// Unrolls all of [`Kernel::stacked_axis`] that are of known extents, as a whole.
    pub fn unroll_stacks(&mut self) {
        while let Some(axis) = self.stacked_axis(false) {
            *self = self.unrolled(axis, self.axis(axis).extent);
        }
    }
}
