//! Which passes over the reduced axes compute what.
//!
//! Reductions of what is known before a pass share it; what depends on their
//! results needs the next one.

use super::cooperative;
use crate::index::AxisId;
use crate::ir::{AxisKind, Kernel, ValueId, ValueOp};
use crate::{ReduceOp, Refusal};

/// What the passes along a row compute.
pub(crate) struct Plan {
    /// The reduced axes, outermost first.
    pub(crate) axes: Vec<AxisId>,
    /// The axes of the results.
    pub(crate) map: Vec<AxisId>,
    /// One entry a pass.
    pub(crate) passes: Vec<Pass>,
    /// Stores of results that do not vary along the row.
    pub(crate) results: Vec<usize>,
}

/// One sweep along the reduced axes.
#[derive(Default)]
pub(crate) struct Pass {
    pub(crate) reductions: Vec<ValueId>,
    /// Maxima that a reduction of the pass finds on its way: the maximum, and which reduction.
    pub(crate) maxima: Vec<(ValueId, usize)>,
    /// Stores of values that vary along the row.
    pub(crate) stores: Vec<usize>,
}

impl Pass {
    /// Leaves the maxima of what sums of exponentials are taken of to these.
    fn share_maxima(&mut self, kernel: &Kernel) {
        let reduced = |id: ValueId| match &kernel.value(id).op {
            ValueOp::Reduce { op, operand, .. } => Some((*op, *operand)),
            _ => None,
        };
        let sums: Vec<ValueId> = self.reductions.clone();
        let finds = |sums: &[ValueId], max: ValueId| {
            let (_, operand) = reduced(max).filter(|(op, _)| *op == ReduceOp::Max)?;
            sums.iter().copied().find(|&sum| reduced(sum) == Some((ReduceOp::SumExp, operand)))
        };
        self.reductions.retain(|&id| finds(&sums, id).is_none());
        for &id in &sums {
            let found = finds(&sums, id).and_then(|sum| self.reductions.iter().position(|&own| own == sum));
            self.maxima.extend(found.map(|position| (id, position)));
        }
    }
}

impl Plan {
    pub(crate) fn new(kernel: &Kernel) -> Result<Plan, Refusal> {
        Plan::of(kernel, cooperative(kernel)?)
    }

    /// That of some reductions.
    pub(crate) fn of(kernel: &Kernel, reductions: Vec<ValueId>) -> Result<Plan, Refusal> {
        let axes = match reductions.first().map(|&first| &kernel.value(first).op) {
            Some(ValueOp::Reduce { axes, .. }) => axes.to_vec(),
            _ => return Err(Refusal::Misfit("no reduction for several threads")),
        };
        // A value's pass: how many others must have ended before it can be computed.
        let mut pass_of = vec![0usize; kernel.values.len()];
        for (number, value) in kernel.values.iter().enumerate() {
            let before = kernel.operands(&value.op).iter().map(|id| pass_of[id.index()]).max().unwrap_or(0);
            let is_cooperative = reductions.contains(&ValueId(number as u32));
            pass_of[number] = before + usize::from(is_cooperative);
        }
        let last = pass_of.iter().copied().max().unwrap_or(0);
        let mut passes: Vec<Pass> = (0..=last).map(|_| Pass::default()).collect();
        for &reduction in &reductions {
            passes[pass_of[reduction.index()] - 1].reductions.push(reduction);
        }
        passes.iter_mut().for_each(|pass| pass.share_maxima(kernel));
        let mut results = Vec::new();
        for (number, store) in kernel.stores.iter().enumerate() {
            let value = kernel.value(store.value);
            let mut along = kernel.axes_of_kind(AxisKind::Reduce);
            along.retain(|axis| value.axes.contains(axis) || store.index.uses(*axis));
            match along.as_slice() {
                [] => results.push(number),
                // Another row than the one that is swept.
                _ if along.iter().any(|axis| !axes.contains(axis)) => {
                    return Err(Refusal::DifferentReductions);
                }
                _ => passes[pass_of[store.value.index()]].stores.push(number),
            }
        }
        passes.retain(|pass| !pass.reductions.is_empty() || !pass.stores.is_empty());
        Ok(Plan { axes, map: kernel.axes_of_kind(AxisKind::Map), passes, results })
    }

    /// All reductions that threads share and that have partial results of their own, in the order of their passes.
    pub(crate) fn reductions(&self) -> Vec<ValueId> {
        self.passes.iter().flat_map(|pass| pass.reductions.clone()).collect()
    }

    /// Whether there is one pass: then it can be split. What is stored along it does not wait for its end.
    pub(crate) fn has_one_pass(&self) -> bool {
        self.passes.len() == 1
    }
}
