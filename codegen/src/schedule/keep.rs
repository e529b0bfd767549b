//! What stays from one pass over a row to the next, in registers, in shared memory or on the stack: elements that several
//! passes read, and values that would cost too much to compute again.

use super::{Plan, ValueSet, operations};
use crate::Language;
use crate::cost::WORTH_KEEPING;
use crate::index::AxisId;
use crate::ir::{AxisKind, Kernel, ValueId, ValueOp};

/// What a plan's passes leave to those after them.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Keep {
    /// Loads that no guard protects: kept as they are in memory.
    pub(crate) loads: Vec<ValueId>,
    /// Other values.
    pub(crate) values: Vec<ValueId>,
    /// The most that is kept at a time, in bytes an element.
    pub(crate) bytes: u64,
    /// Bytes of an element of each array.
    sizes: Vec<u64>,
}

impl Keep {
    /// Bytes of an element in all arrays.
    fn sum(&self) -> u64 {
        self.sizes.iter().sum()
    }

    /// All values.
    pub(crate) fn ids(&self) -> ValueSet {
        self.loads.iter().chain(&self.values).copied().collect()
    }

    /// Bytes of arrays that hold all of it for a row, each from a place on where any access may begin.
    pub(crate) fn array_bytes(&self, length: u64) -> u64 {
        self.sizes.iter().map(|size| array_bytes(length, *size)).sum()
    }
}

/// Bytes of one array.
pub(crate) fn array_bytes(elements: u64, size: u64) -> u64 {
    (elements * size).next_multiple_of(16)
}

/// Values that are kept at most, beside loads: what they are is searched for one by one.
const MOST_VALUES: usize = 4;

impl Plan {
    /// The loads that several passes need.
    pub(crate) fn keep_loads(&self, kernel: &Kernel) -> Keep {
        let passes = Passes::new(self, kernel, Language::Cuda);
        let loads = passes.loads();
        passes.used(&loads)
    }

    /// The loads that several passes need, and instead of them or besides what is costly to compute from them.
    pub(crate) fn keep_values(&self, kernel: &Kernel) -> Keep {
        let passes = Passes::new(self, kernel, Language::Cuda);
        passes.used(&passes.with_costly(passes.loads(), |_| true))
    }

    /// What a core keeps of a row in some bytes of its stack: what costs more to compute than to store and read. Loads are near anyway.
    pub(crate) fn keep_on_stack(&self, kernel: &Kernel, length: u64, bytes: u64) -> Keep {
        let passes = Passes::new(self, kernel, Language::C);
        let fits = |kept: &[ValueId]| passes.used(kept).array_bytes(length) <= bytes;
        passes.used(&passes.with_costly(Vec::new(), fits))
    }

    /// These values, as far as a pass needs them again.
    pub(crate) fn keep_these(&self, kernel: &Kernel, language: Language, ids: ValueSet) -> Keep {
        let passes = Passes::new(self, kernel, language);
        let ids: Vec<ValueId> = ids.ids().filter(|id| passes.shared.contains(id)).collect();
        passes.used(&ids)
    }

    /// What several passes need in the fewest bytes: a value instead of several loads that it follows from.
    pub(crate) fn keep_least(&self, kernel: &Kernel) -> Keep {
        let passes = Passes::new(self, kernel, Language::Cuda);
        let mut kept = passes.loads();
        let mut least = passes.used(&kept);
        for _ in 0..MOST_VALUES {
            let with = |id: ValueId| (id, passes.used(&[kept.as_slice(), &[id]].concat()));
            let others = passes.shared.iter().copied().filter(|id| !kept.contains(id)).map(with);
            let Some((id, with)) = others.min_by_key(|(_, keep)| keep.sum()) else { break };
            if with.sum() >= least.sum() {
                break;
            }
            kept.push(id);
            least = with;
        }
        least
    }
}

/// The passes of a plan, and what they need of each other.
struct Passes<'a> {
    plan: &'a Plan,
    kernel: &'a Kernel,
    language: Language,
    /// What several passes need if nothing is kept, ascending.
    shared: Vec<ValueId>,
}

impl<'a> Passes<'a> {
    fn new(plan: &'a Plan, kernel: &'a Kernel, language: Language) -> Passes<'a> {
        let mut passes = Passes { plan, kernel, language, shared: Vec::new() };
        if plan.passes.len() > 1 {
            let mut needed = vec![0u32; kernel.values.len()];
            passes.visit(&[], |_, id, _| needed[id.index()] += 1);
            // A loop within the pass has several values at one position: no one register holds them.
            let is_inner =
                |axis: &AxisId| kernel.axis(*axis).kind == AxisKind::Reduce && !plan.axes.contains(axis);
            let is_shared =
                |id: &ValueId| needed[id.index()] > 1 && !kernel.value(*id).axes.iter().any(is_inner);
            passes.shared = (0..kernel.values.len() as u32).map(ValueId).filter(is_shared).collect();
        }
        passes
    }

    /// Calls `found` for what each pass needs and that varies along the row: with the number of the pass, the value, and
    /// whether an earlier pass has kept it.
    fn visit(&self, kept: &[ValueId], mut found: impl FnMut(usize, ValueId, bool)) {
        let (plan, kernel) = (self.plan, self.kernel);
        let mut seen_by = vec![usize::MAX; kernel.values.len()];
        let mut is_there = vec![false; kernel.values.len()];
        let mut pending: Vec<ValueId> = Vec::new();
        for (number, pass) in plan.passes.iter().enumerate() {
            pending.extend(pass.reductions.iter().flat_map(|id| kernel.operands(&kernel.value(*id).op)));
            pending.extend(pass.stores.iter().map(|&store| kernel.stores[store].value));
            while let Some(id) = pending.pop() {
                let varies = kernel.value(id).axes.iter().any(|axis| plan.axes.contains(axis));
                if !varies || std::mem::replace(&mut seen_by[id.index()], number) == number {
                    continue;
                }
                found(number, id, is_there[id.index()]);
                if !is_there[id.index()] {
                    pending.extend(kernel.operands(&kernel.value(id).op));
                }
            }
            for id in kept {
                is_there[id.index()] |= seen_by[id.index()] == number;
            }
        }
    }

    /// An unguarded load at a position that follows from the pass's own.
    fn is_plain_load(&self, id: ValueId) -> bool {
        let ValueOp::Load { guard: None, index, .. } = &self.kernel.value(id).op else { return false };
        let strays = |axis: &AxisId| self.plan.axes.contains(axis);
        !self
            .kernel
            .computed_axes(index)
            .iter()
            .any(|(_, value)| self.kernel.value(*value).axes.iter().any(strays))
    }

    fn loads(&self) -> Vec<ValueId> {
        self.shared.iter().copied().filter(|&id| self.is_plain_load(id)).collect()
    }

    /// The same, and what is costly to compute: as long as some value saves more than it takes, the one that saves most.
    fn with_costly(&self, mut kept: Vec<ValueId>, fits: impl Fn(&[ValueId]) -> bool) -> Vec<ValueId> {
        let mut cost = self.cost(&kept);
        // Of a GPU's loads it is known whether they are kept.
        let is_open = |id: &ValueId| self.language == Language::C || !self.is_plain_load(*id);
        let candidates: Vec<ValueId> = self.shared.iter().copied().filter(is_open).collect();
        for _ in 0..MOST_VALUES.min(candidates.len()) {
            let mut best: Option<(f64, ValueId)> = None;
            for &id in &candidates {
                if kept.contains(&id) {
                    continue;
                }
                kept.push(id);
                let with = self.cost(&kept);
                if best.is_none_or(|(least, _)| with < least) && fits(&kept) {
                    best = Some((with, id));
                }
                kept.pop();
            }
            let Some((with, id)) = best.filter(|&(with, _)| cost - with >= WORTH_KEEPING) else { break };
            kept.push(id);
            cost = with;
        }
        kept
    }

    /// Simple operations for each element of the row, in all passes.
    fn cost(&self, kept: &[ValueId]) -> f64 {
        let mut cost = 0.0;
        self.visit(kept, |_, id, is_there| {
            if !is_there {
                cost += self.operations(id);
            }
        });
        cost
    }

    /// Those of the kept values that a later pass asks for.
    fn used(&self, kept: &[ValueId]) -> Keep {
        let mut spans: Vec<Option<(usize, usize)>> = vec![None; self.kernel.values.len()];
        self.visit(kept, |number, id, _| {
            let span = spans[id.index()].get_or_insert((number, number));
            span.1 = number;
        });
        let mut result = Keep::default();
        let mut bytes = vec![0u64; self.plan.passes.len()];
        let mut places = Vec::new();
        for &id in kept {
            let Some((first, last)) = spans[id.index()].filter(|(first, last)| first < last) else {
                continue;
            };
            let size = match &self.kernel.value(id).op {
                ValueOp::Load { buffer, index, .. }
                    if self.language == Language::Cuda && self.is_plain_load(id) =>
                {
                    result.loads.push(id);
                    // The same element, read by several values.
                    if places.contains(&(buffer, index)) {
                        continue;
                    }
                    places.push((buffer, index));
                    self.kernel.buffers[buffer.index()].dtype.size()
                }
                _ => {
                    result.values.push(id);
                    self.kernel.value(id).dtype.compute().size()
                }
            };
            result.sizes.push(size as u64);
            // A register holds at most two elements.
            bytes[first..last].iter_mut().for_each(|bytes| *bytes += (size as u64).max(2));
        }
        result.bytes = bytes.into_iter().max().unwrap_or(0);
        result
    }

    /// Simple operations of one evaluation.
    fn operations(&self, id: ValueId) -> f64 {
        match (&self.kernel.value(id).op, self.language) {
            (ValueOp::Position(_), _) => 0.0,
            // Checks of positions, and reads from a near cache.
            (ValueOp::Load { .. }, Language::Cuda) => 4.0,
            (ValueOp::Load { .. }, Language::C) => 1.0,
            _ => operations(self.kernel, id),
        }
    }
}
