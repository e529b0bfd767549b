//! Runs of segments that differ in what buffer they read and where they begin, as the operands of a join of many.

use std::ops::Range;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::DType;
use crate::index::{AxisId, IndexExpr};
use crate::ir::{AxisKind, BufferId, Kernel, ValueId, ValueOp};

/// Fewer segments run faster with a loop each, whose length is known, and are not too much text.
const LEAST_PIECES: usize = 48;

/// Consecutive segments that do the same.
pub(super) struct Run {
    /// Which segments.
    pub(super) segments: Range<usize>,
    /// What each reads.
    pub(super) buffers: Vec<BufferId>,
    /// Where each begins, and where the last one ends.
    pub(super) positions: Vec<u64>,
    /// What the first one reads from its buffer.
    pub(super) loads: Vec<ValueId>,
    pub(super) dtype: DType,
}

impl Run {
    /// The runs among the segments, in order.
    pub(super) fn all(axis: AxisId, parts: &[(IndexExpr, Kernel)], kernel: &Kernel) -> Vec<Run> {
        let starts: Option<Vec<i64>> = parts.iter().map(|(start, _)| start.as_constant()).collect();
        let Some(mut starts) = starts else { return Vec::new() };
        let extent = kernel.axis(axis);
        starts.push(if extent.is_argument { i64::MAX } else { extent.extent as i64 });
        let mut runs = Vec::new();
        let mut first = 0;
        while first < parts.len() {
            let part = |number: usize| Part { kernel: &parts[number].1, axis, start: starts[number] };
            let mut run: Option<Run> = None;
            let mut end = first + 1;
            while end < parts.len() {
                let Some(same) = Comparison::of(part(first), part(end)) else { break };
                let run = run.get_or_insert_with(|| Run {
                    segments: first..end,
                    buffers: vec![same.buffers.0],
                    positions: Vec::new(),
                    loads: same.loads.clone(),
                    dtype: kernel.buffers[same.buffers.0.index()].dtype,
                });
                if (run.buffers[0], &run.loads) != (same.buffers.0, &same.loads) {
                    break;
                }
                run.buffers.push(same.buffers.1);
                end += 1;
            }
            if let Some(mut run) = run.filter(|run| run.buffers.len() >= LEAST_PIECES) {
                run.segments.end = end;
                run.positions = starts[first..=end].iter().map(|&start| start as u64).collect();
                runs.push(run);
            }
            first = end;
        }
        runs
    }

    /// The length of the segments, if it is one.
    pub(super) fn length(&self) -> Option<u64> {
        let length = self.positions[1].checked_sub(self.positions[0])?;
        self.positions.windows(2).all(|pair| pair[1] - pair[0] == length).then_some(length)
    }
}

/// The index with positions along the axis from `start` on.
pub(super) fn from(index: &IndexExpr, axis: AxisId, start: i64, kernel: &Kernel) -> IndexExpr {
    index.substitute(axis, &IndexExpr::axis(axis).offset(start), &kernel.ranges())
}

/// A segment as it is compared.
#[derive(Clone, Copy)]
struct Part<'a> {
    kernel: &'a Kernel,
    axis: AxisId,
    start: i64,
}

/// What two segments that do the same read, each from a buffer of its own, at the same place from its beginning on.
struct Comparison {
    buffers: (BufferId, BufferId),
    /// The first one's.
    loads: Vec<ValueId>,
}

impl Comparison {
    fn of(a: Part, b: Part) -> Option<Comparison> {
        let mut found: FxHashMap<ValueId, (BufferId, BufferId)> = FxHashMap::default();
        let mut seen: FxHashSet<(ValueId, ValueId)> = FxHashSet::default();
        let pairs = a.kernel.stores.iter().zip(&b.kernel.stores);
        let mut pending: Vec<(ValueId, ValueId)> = pairs.map(|(a, b)| (a.value, b.value)).collect();
        while let Some((x, y)) = pending.pop() {
            if !seen.insert((x, y)) {
                continue;
            }
            match (&a.kernel.value(x).op, &b.kernel.value(y).op) {
                (
                    ValueOp::Load { buffer: of_a, index: at_a, guard: None },
                    ValueOp::Load { buffer: of_b, index: at_b, guard: None },
                ) => {
                    if (of_a, at_a) == (of_b, at_b) {
                        continue;
                    }
                    let dtype = |part: Part, buffer: BufferId| part.kernel.buffers[buffer.index()].dtype;
                    let at_a = from(at_a, a.axis, a.start, a.kernel);
                    let is_same = at_a == from(at_b, b.axis, b.start, b.kernel);
                    let is_map = |axis: &AxisId| a.kernel.axis(*axis).kind == AxisKind::Map;
                    let is_linear = at_a.coefficient(a.axis).is_some_and(|stride| stride >= 0);
                    if !is_same
                        || !is_linear
                        || !at_a.axes().iter().all(is_map)
                        || dtype(a, *of_a) != dtype(b, *of_b)
                    {
                        return None;
                    }
                    found.insert(x, (*of_a, *of_b));
                }
                (x, y) if x == y && matches!(x, ValueOp::Literal(_) | ValueOp::Argument(_)) => {}
                (ValueOp::Unary(f, a), ValueOp::Unary(g, b)) if f == g => pending.push((*a, *b)),
                (ValueOp::Cast(f, a), ValueOp::Cast(g, b)) if f == g => pending.push((*a, *b)),
                (ValueOp::Binary(f, a, b), ValueOp::Binary(g, c, d)) if f == g => {
                    pending.extend([(*a, *c), (*b, *d)]);
                }
                (ValueOp::Select(a, b, c), ValueOp::Select(d, e, f)) => {
                    pending.extend([(*a, *d), (*b, *e), (*c, *f)]);
                }
                _ => return None,
            }
        }
        let mut loads: Vec<ValueId> = found.keys().copied().collect();
        loads.sort_unstable();
        let buffers = *found.get(loads.first()?)?;
        found.values().all(|&other| other == buffers).then_some(Comparison { buffers, loads })
    }
}
