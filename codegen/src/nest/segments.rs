//! Where guards are decided: parts of one axis, as the operands of a join have. In each, every guard holds or none of
//! its positions, so that a loop over it reads without conditions.

use super::interior::{bounds, ceil_div, decided, decided_where, without, without_windows};
use super::runs::Run;
use crate::index::{Atom, AxisId, Bound, IndexExpr};
use crate::ir::{AxisKind, Kernel};

/// More segments with a loop each are too much text, and more values in all of them too much work.
const MOST_SEGMENTS: usize = 128;
const MOST_VALUES: usize = 1 << 20;

/// The same where each has conditions of its own.
const MOST_SEGMENTS_BESIDE: usize = 8;

/// The same of rows, by several of their axes.
const MOST_SEGMENTS_OF_ROWS: usize = 16;

/// The same of windows over a join.
const MOST_SEGMENTS_OF_WINDOWS: usize = 16;

/// Parts of an axis.
pub(super) struct Segments {
    pub(super) axis: AxisId,
    /// The kernel from each position to the next one, without guards; the first is 0.
    pub(super) parts: Vec<(IndexExpr, Kernel)>,
    /// Those of them that do the same.
    pub(super) runs: Vec<Run>,
    /// What parts are divided into along other axes, where guards compare several.
    pub(super) within: Vec<Segments>,
}

/// What all guards compare: a multiple of an axis, from an offset on if there is one.
#[derive(Clone, Copy, PartialEq)]
struct Compared {
    axis: AxisId,
    from: Option<AxisId>,
}

impl Compared {
    /// That, and the multiple.
    fn of(kernel: &Kernel, expr: &IndexExpr, is_cut: &dyn Fn(AxisId) -> bool) -> Option<(Compared, i64)> {
        match expr.terms() {
            [(Atom::Axis(axis), stride)] if is_cut(*axis) => {
                Some((Compared { axis: *axis, from: None }, *stride))
            }
            [(Atom::Axis(axis), 1), (Atom::Axis(from), -1)] if is_cut(*axis) && kernel.is_offset(*from) => {
                Some((Compared { axis: *axis, from: Some(*from) }, 1))
            }
            _ => None,
        }
    }
}

impl Segments {
    /// The segments of the one axis that all guards depend on; `None` if there are several, or if what begins at an
    /// offset meets what begins elsewhere: their order is not known.
    pub(super) fn of(kernel: &Kernel) -> Option<Segments> {
        Segments::along(kernel, &|axis| kernel.axis(axis).kind == AxisKind::Map)
    }

    /// As [`Segments::of`], if the axis is one that can be cut.
    pub(super) fn along(kernel: &Kernel, is_cut: &dyn Fn(AxisId) -> bool) -> Option<Segments> {
        let mut found: Option<Compared> = None;
        // Where each segment begins, from the offset on.
        let mut starts = Vec::new();
        for bound in kernel.values.iter().flat_map(|value| bounds(&value.op)) {
            let (compared, stride) = Compared::of(kernel, &bound.expr, is_cut)?;
            if *found.get_or_insert(compared) != compared {
                return None;
            }
            // lo <= stride * i + constant < hi begins and ends at these positions.
            let constant = bound.expr.constant_term();
            let limits = [bound.has_lo().then_some(bound.lo), bound.has_hi().then_some(bound.hi)];
            for limit in limits.into_iter().flatten().map(|limit| limit - constant) {
                starts.push(first_beyond(limit, stride));
            }
        }
        let Compared { axis, from } = found?;
        if from.is_none() {
            let end = if kernel.axis(axis).is_argument { i64::MAX } else { kernel.axis(axis).extent as i64 };
            starts.push(0);
            starts.retain(|&start| (0..end).contains(&start));
        }
        starts.sort_unstable();
        starts.dedup();
        if from.is_some() {
            starts.insert(0, starts.first()? - 1);
        }
        if starts.len() < 2 || starts.len() * kernel.values.len() > MOST_VALUES {
            return None;
        }
        let holds = |bound: &Bound, at: i64| {
            let stride = bound.expr.coefficient(axis).unwrap_or(0);
            (bound.lo..bound.hi).contains(&(stride * at + bound.expr.constant_term()))
        };
        let segment = |(number, at): (usize, i64)| {
            let kernel = decided(kernel, |bounds| bounds.iter().all(|bound| holds(bound, at)));
            let start = match from {
                _ if number == 0 => IndexExpr::zero(),
                Some(from) => IndexExpr::axis(from).offset(at),
                None => IndexExpr::constant(at),
            };
            (start, kernel)
        };
        let parts: Vec<(IndexExpr, Kernel)> = starts.into_iter().enumerate().map(segment).collect();
        let runs = Run::all(axis, &parts, kernel);
        let in_runs: usize = runs.iter().map(|run| run.segments.len()).sum();
        (parts.len() - in_runs <= MOST_SEGMENTS).then_some(Segments { axis, parts, runs, within: Vec::new() })
    }

    /// The segments of one axis where guards compare others as well, which are asked for in each segment: a border along several
    /// axes whose elements come from elsewhere, as reflected ones do. `None` if some guard compares the axis with others.
    pub(super) fn beside_others(kernel: &Kernel, axis: AxisId) -> Option<Segments> {
        let mut starts = vec![0];
        for bound in kernel.values.iter().flat_map(|value| bounds(&value.op)) {
            if !bound.expr.uses(axis) {
                continue;
            }
            let ([(Atom::Axis(_), 1)], constant) = (bound.expr.terms(), bound.expr.constant_term()) else {
                return None;
            };
            starts.extend(bound.has_lo().then_some(bound.lo - constant));
            starts.extend(bound.has_hi().then_some(bound.hi - constant));
        }
        let end = if kernel.axis(axis).is_argument { i64::MAX } else { kernel.axis(axis).extent as i64 };
        starts.retain(|start| (0..end).contains(start));
        starts.sort_unstable();
        starts.dedup();
        if !(2..=MOST_SEGMENTS_BESIDE).contains(&starts.len()) {
            return None;
        }
        let segment = |at: i64| {
            let holds = |bound: &Bound| {
                let value = at + bound.expr.constant_term();
                bound.expr.uses(axis).then(|| (bound.lo..bound.hi).contains(&value))
            };
            let kernel = decided_where(kernel, |bounds| {
                bounds.iter().any(|bound| holds(bound) == Some(false)).then_some(false)
            });
            let all = kernel.values.iter().flat_map(|value| bounds(&value.op));
            let known: Vec<Bound> = all.filter(|bound| holds(bound) == Some(true)).cloned().collect();
            (IndexExpr::constant(at), without(&kernel, &known))
        };
        let parts: Vec<(IndexExpr, Kernel)> = starts.into_iter().map(segment).collect();
        Some(Segments { axis, parts, runs: Vec::new(), within: Vec::new() })
    }

    /// The segments of rows by several axes, in each of which no guards are left: the places that joins of joins put their parts at.
    /// `None` if a guard compares the axis along rows, or several axes.
    pub(super) fn of_rows(kernel: &Kernel, along: AxisId) -> Option<Segments> {
        let all = || kernel.values.iter().flat_map(|value| bounds(&value.op));
        let axis = all().find_map(|bound| match bound.expr.terms() {
            [(Atom::Axis(axis), _)] if kernel.axis(*axis).kind == AxisKind::Map => Some(*axis),
            _ => None,
        })?;
        let mut segments = Segments::beside_others(kernel, axis)?;
        for (_, kernel) in &segments.parts {
            if kernel.values.iter().any(|value| !bounds(&value.op).is_empty()) {
                let within = Segments::of(kernel).filter(|within| within.axis != along);
                segments.within.push(within.or_else(|| Segments::of_rows(kernel, along))?);
            }
        }
        let is_all = [0, segments.parts.len()].contains(&segments.within.len());
        (axis != along && is_all && segments.count() <= MOST_SEGMENTS_OF_ROWS).then_some(segments)
    }

    fn count(&self) -> usize {
        if self.within.is_empty() { self.parts.len() } else { self.within.iter().map(Segments::count).sum() }
    }

    /// The segments of one axis along which windows lie wholly in one part of a join, and between those the few positions whose
    /// windows do not, where guards stay. `None` if guards compare anything else.
    pub(super) fn of_windows(kernel: &Kernel, axis: AxisId) -> Option<Segments> {
        let compared = |bound: &Bound| {
            let (rest, least, most) = without_windows(kernel, &bound.expr, &[])?;
            match rest.terms() {
                [(Atom::Axis(own), stride)] if *own == axis => {
                    Some((*stride, [least, most].map(|by| by + rest.constant_term())))
                }
                _ => None,
            }
        };
        let extent = if kernel.axis(axis).is_argument { i64::MAX } else { kernel.axis(axis).extent as i64 };
        let mut starts = vec![0];
        for bound in kernel.values.iter().flat_map(|value| bounds(&value.op)) {
            let (stride, ends) = compared(bound)?;
            let limits = [bound.has_lo().then_some(bound.lo), bound.has_hi().then_some(bound.hi)];
            for limit in limits.into_iter().flatten().flat_map(|limit| ends.map(|end| limit - end)) {
                starts.push(first_beyond(limit, stride));
            }
        }
        starts.retain(|start| (0..extent).contains(start));
        starts.sort_unstable();
        starts.dedup();
        if !(2..=MOST_SEGMENTS_OF_WINDOWS).contains(&starts.len()) {
            return None;
        }
        let holds = |bound: &Bound, at: i64| {
            let (stride, [first, last]) = compared(bound)?;
            let (first, last) = (stride * at + first, stride * at + last);
            match (bound.lo..bound.hi).contains(&first) && (bound.lo..bound.hi).contains(&last) {
                true => Some(true),
                false => (last < bound.lo || first >= bound.hi).then_some(false),
            }
        };
        let segment = |&at: &i64| {
            let kernel = decided_where(kernel, |bounds| {
                let all: Vec<Option<bool>> = bounds.iter().map(|bound| holds(bound, at)).collect();
                match all.contains(&Some(false)) {
                    true => Some(false),
                    false => (!all.contains(&None)).then_some(true),
                }
            });
            (IndexExpr::constant(at), kernel)
        };
        let parts: Vec<(IndexExpr, Kernel)> = starts.iter().map(segment).collect();
        let ends = starts.iter().skip(1).copied().chain([extent]);
        let is_decided = |kernel: &Kernel| kernel.values.iter().all(|value| bounds(&value.op).is_empty());
        let lengths = starts.iter().zip(ends).zip(&parts).filter(|(_, (_, kernel))| is_decided(kernel));
        let decided: i64 = lengths.map(|((start, end), _)| end - start).sum();
        (decided > extent / 2).then_some(Segments { axis, parts, runs: Vec::new(), within: Vec::new() })
    }

    /// The kernel at a position; `None` if that depends on an offset.
    pub(super) fn at(&self, position: u64) -> Option<&Kernel> {
        let starts: Option<Vec<i64>> = self.parts.iter().map(|(start, _)| start.as_constant()).collect();
        let number = starts?.iter().rposition(|&start| start <= position as i64)?;
        Some(&self.parts[number].1)
    }
}

/// The first position from which on a multiple of it is no longer below a limit, or, of a negative one, no longer above.
fn first_beyond(limit: i64, stride: i64) -> i64 {
    match stride > 0 {
        true => ceil_div(limit, stride),
        false => (-limit).div_euclid(-stride) + 1,
    }
}
