//! The CPU's pointwise schedule: blocks of consecutive results, the innermost axis in vectors.

use super::emitter::Emitter;
use super::fission::Stretches;
use super::guarded_lanes::are_masks;
use super::index_split::IndexSplit;
use super::interior::Interior;
use super::loops::{counting, stepping};
use super::passes::{launch_of_columns, launch_over};
use super::prefetch::prefetch_streams;
use super::segments::Segments;
use super::short_axis::ShortAxis;
use super::small_matrices::SmallMatrices;
use super::stmt::Arithmetic::{Add, Div, Less, Max, Min, Rem};
use super::stmt::{Builtin, Expr, LoopHint, Stmt};
use super::turned;
use super::variable::Var;
use super::windows_cpu::{Border, Windows};
use super::{Body, INDEX};
use crate::index::{AxisId, IndexExpr};
use crate::ir::{AxisKind, Kernel, Value, ValueId, ValueOp};
use crate::schedule::{Launch, PointwiseSchedule, lanes_along, operations};
use crate::{DType, Language, Refusal};

/// The body for a range of blocks, and how many blocks there are.
pub(super) fn body(
    kernel: &Kernel,
    map: &[AxisId],
    schedule: &PointwiseSchedule,
) -> Result<(Body, Launch), Refusal> {
    // Lanes go along the axis before one that was unrolled wholly. Reductions choose theirs below.
    let reduces = kernel.values.iter().any(|value| matches!(value.op, ValueOp::Reduce { .. }));
    let is_whole = |axis: AxisId| !kernel.axis(axis).is_argument && kernel.axis(axis).extent == 1;
    let map = match map {
        [outer @ .., inner] if !outer.is_empty() && !reduces && is_whole(*inner) => outer,
        _ => map,
    };
    let are_laid_out = map.last().is_some_and(|&inner| Windows::lays_out_guards(kernel, inner));
    let matrices = if schedule.order.is_none() { SmallMatrices::of(kernel, map) } else { None };
    let short = ShortAxis::of(kernel, map, SHORT_AXIS).filter(|_| matrices.is_none());
    let border = map.last().and_then(|&inner| Windows::border(kernel, inner));
    let is_decided = border.is_some() || are_laid_out;
    let interior = map.last().filter(|_| !is_decided).and_then(|&inner| Interior::of(kernel, inner));
    let segments = match &interior {
        _ if is_decided => None,
        Some(interior) if !interior.is_whole_rows() => None,
        _ => Segments::of(kernel)
            .or_else(|| beside_others(kernel, map))
            .or_else(|| map.last().and_then(|&inner| Segments::of_rows(kernel, inner))),
    };
    let has_loops_of_guards = is_decided || segments.is_some() || short.is_some();
    let is_masked = !has_loops_of_guards && map.last().is_some_and(|&inner| are_masks(kernel, inner));
    let one_part = || map.last().and_then(|&inner| Interior::of_one_part(kernel, inner));
    let interior = interior.or_else(|| one_part().filter(|_| !is_decided));
    let interior = interior.filter(|_| segments.is_none());
    let is_decided = is_decided || interior.is_some() || short.is_some() || is_masked;
    let windows = || map.last().and_then(|&inner| Segments::of_windows(kernel, inner));
    let segments = segments.or_else(|| windows().filter(|_| !is_decided));
    let interior = if is_masked { interior.and_then(Interior::of_whole_vectors) } else { interior };
    let guards = match (&short, &interior, &segments) {
        _ if matrices.is_some() => matrices.as_ref().map_or(Guards::Stay, Guards::Matrices),
        (Some(short), ..) => Guards::Short(short),
        (None, Some(interior), _) => Guards::Interior(interior, is_masked),
        (None, None, Some(segments)) => Guards::Segments(segments),
        (None, None, None) => border.as_ref().map_or(Guards::Stay, Guards::Windows),
    };
    // The loops are those of the other axes.
    let (map, per_position) = match (&short, &matrices, map) {
        (_, Some(matrices), _) => (&map[..map.len() - matrices.axes()], matrices.positions),
        (Some(short), None, [outer @ .., _]) => (outer, short.extent()),
        _ => (map, 1),
    };
    // Guards are decided along the innermost axis, which then has to stay that.
    let is_free = matches!(guards, Guards::Stay) && schedule.order.is_none();
    let along = if is_free { consecutive_last(kernel, map) } else { None };
    let map = along.as_deref().unwrap_or(map);
    let mut emitter = Emitter::new(kernel, Language::C);
    let Some((&inner, outer)) = map.split_last() else {
        emitter.store_all(kernel);
        return Ok((emitter.finish()?, Launch::default()));
    };
    let chunk = (schedule.elements_per_block / per_position).max(1);
    let loops = Loops { kernel, guards, inner, outer };
    let extent = kernel.axis(inner).extent;
    let launch = match outer.is_empty() {
        false if extent < SHORTEST_ROW && !is_costly_once(kernel, inner) => {
            loops.positions(&mut emitter, map, chunk)
        }
        false if reads_across(kernel, inner) => loops.columns(&mut emitter),
        false if extent < chunk => loops.whole_rows(&mut emitter, (chunk / extent.max(1)).max(1)),
        _ => loops.part_of_row(&mut emitter, chunk),
    };
    Ok((emitter.finish()?, launch))
}

/// Segments of the innermost axis where guards of other axes stay, if these would keep loops from being vectors.
fn beside_others(kernel: &Kernel, map: &[AxisId]) -> Option<Segments> {
    let &inner = map.last()?;
    let is_long = kernel.axis(inner).is_argument || kernel.axis(inner).extent >= SHORT_AXIS;
    let wanted = is_long && !are_masks(kernel, inner);
    wanted.then(|| Segments::beside_others(kernel, inner)).flatten()
}

/// The loops of a block.
struct Loops<'k, 'a> {
    kernel: &'k Kernel,
    guards: Guards<'k>,
    inner: AxisId,
    outer: &'a [AxisId],
}

impl<'k> Loops<'k, '_> {
    fn launch(&self, axes: &[AxisId], per_block: u64) -> Launch {
        Launch { per_block, ..launch_over(self.kernel, axes) }
    }

    /// One loop over all positions of the block: the innermost axis is too short to be a loop of its own.
    fn positions(&self, emitter: &mut Emitter<'k>, map: &[AxisId], chunk: u64) -> Launch {
        let total = emitter.positions(map);
        let (first, end) = emitter.part(["first", "end"], Expr::Builtin(Builtin::BlockX), chunk, total);
        let t = emitter.index("t");
        emitter.repeat(counting(t, first, end, LoopHint::None), |emitter| {
            emitter.unflatten(t, map, 1);
            emitter.store_all(self.kernel);
        });
        self.launch(map, chunk)
    }

    /// A block is a part of one row.
    fn part_of_row(&self, emitter: &mut Emitter<'k>, chunk: u64) -> Launch {
        let (kernel, block) = (self.kernel, Expr::Builtin(Builtin::BlockX));
        let extent = emitter.extent(self.inner);
        let mut number = block.clone();
        if !self.outer.is_empty() {
            let per_row = extent.clone().then(Add, chunk - 1).then(Div, chunk);
            let chunks = Expr::Name(emitter.bind("chunks", INDEX, per_row));
            let row = emitter.bind("row", INDEX, block.clone().then(Div, chunks.clone()));
            emitter.unflatten(row, self.outer, 1);
            number = block.then(Rem, chunks);
        }
        let (first, end) = emitter.part(["first", "end"], number, chunk, extent);
        inner_loop(emitter, kernel, self.guards, self.inner, first, end);
        launch_of_columns(kernel, &[self.outer, &[self.inner]].concat(), chunk)
    }

    /// Some input is consecutive along another axis: goes down a few columns at a time, so that each of its cache lines is
    /// used by the rows of the block before it is gone.
    fn columns(&self, emitter: &mut Emitter<'k>) -> Launch {
        let rows = emitter.positions(self.outer);
        let (first, end) = emitter.part(["first", "end"], Expr::Builtin(Builtin::BlockX), TILE, rows);
        let left = emitter.index("left");
        emitter.open(&[], false);
        let extent = emitter.extent(self.inner);
        let right = left.then(Add, TILE).then(Min, extent.clone());
        let right = emitter.bind("right", INDEX, right);
        let (left_end, right_end) = (Expr::Name(left), Expr::Name(right));
        match self.outer {
            [across] if self.reads_mostly_along(*across) => {
                let along = counting(self.inner, left_end, right_end, LoopHint::None);
                emitter.repeat_along(&[self.inner], along, |emitter| {
                    inner_loop(emitter, self.kernel, self.guards, *across, first, end);
                });
            }
            _ => self.rows(emitter, (first, end), (left_end, right_end)),
        }
        let body = emitter.close();
        emitter.push(stepping(left, (0, extent), TILE, LoopHint::None).of(body));
        self.launch(self.outer, TILE)
    }

    /// Whether lanes that go along another axis than the innermost find neighbours for nearly all that results reduce.
    fn reads_mostly_along(&self, across: AxisId) -> bool {
        let kernel = self.kernel;
        let accesses = |axis: AxisId| {
            let is_neighbours = |value: &&Value| match &value.op {
                ValueOp::Load { index, .. } => index.coefficient(axis) == Some(1),
                _ => false,
            };
            let loads = kernel.values.iter().filter(is_neighbours);
            let is_reduced = |axis: &&AxisId| kernel.axis(**axis).kind == AxisKind::Reduce;
            let each = |value: &Value| {
                value.axes.iter().filter(is_reduced).map(|&axis| kernel.axis(axis).extent).product::<u64>()
            };
            let stores =
                kernel.stores.iter().filter(|store| store.index.coefficient(axis) == Some(1)).count();
            loads.map(each).sum::<u64>() + stores as u64
        };
        matches!(self.guards, Guards::Stay) && accesses(across) >= MOSTLY * accesses(self.inner)
    }

    /// A block is some whole rows.
    fn whole_rows(&self, emitter: &mut Emitter<'k>, rows: u64) -> Launch {
        let total = emitter.positions(self.outer);
        let part = emitter.part(["first", "end"], Expr::Builtin(Builtin::BlockX), rows, total);
        if !matches!(self.guards, Guards::Short(_) | Guards::Matrices(_)) {
            turned::lay_out(emitter, self.kernel, self.inner, rows);
        }
        let extent = emitter.extent(self.inner);
        self.rows(emitter, part, (Expr::Int(0), extent));
        self.launch(self.outer, rows)
    }

    /// A loop over rows, and in it one along each.
    fn rows(&self, emitter: &mut Emitter<'k>, (first, end): (Expr, Expr), (from, to): (Expr, Expr)) {
        let row = emitter.flat(self.outer, "row");
        emitter.repeat(counting(row, first, end, LoopHint::None), |emitter| {
            emitter.unflatten(row, self.outer, 1);
            inner_loop(emitter, self.kernel, self.guards, self.inner, from, to);
        });
    }
}

/// The axes with one last along which reductions read what is consecutive, if the innermost is too short for lanes or not that.
fn consecutive_last(kernel: &Kernel, map: &[AxisId]) -> Option<Vec<AxisId>> {
    let &inner = map.last()?;
    let reduces = kernel.values.iter().any(|value| matches!(value.op, ValueOp::Reduce { .. }));
    let is_map = |axis: &AxisId| kernel.axis(*axis).kind == AxisKind::Map;
    let is_guard = |value: &&Value| matches!(value.op, ValueOp::InBounds(_));
    // What all results have in common may be guarded.
    let is_guarded = kernel.values.iter().filter(is_guard).any(|guard| guard.axes.iter().any(is_map));
    if !reduces || is_guarded {
        return None;
    }
    let lanes = lanes_along(kernel).filter(|&lanes| lanes != inner).or_else(|| summed_along(kernel, map))?;
    Some(map.iter().copied().filter(|&axis| axis != lanes).chain([lanes]).collect())
}

/// Positions of a reduction whose reads outweigh that results are stored far from each other, at least.
const MANY_POSITIONS: u64 = 8;

/// The axis along which all that reductions read is consecutive, where it is far apart along the innermost one: a sum whose result
/// is transposed.
fn summed_along(kernel: &Kernel, map: &[AxisId]) -> Option<AxisId> {
    let (inner, outer) = map.split_last()?;
    let is_reduced = |axis: &&AxisId| kernel.axis(**axis).kind == AxisKind::Reduce;
    let reads = kernel.values.iter().filter_map(|value| match &value.op {
        ValueOp::Load { index, .. } if value.axes.iter().any(|axis| is_reduced(&axis)) => {
            let positions =
                value.axes.iter().filter(is_reduced).map(|&axis| kernel.axis(axis).extent).product();
            Some((index, positions))
        }
        _ => None,
    });
    let reads: Vec<(&IndexExpr, u64)> = reads.collect();
    let step = |index: &IndexExpr, axis: AxisId| index.coefficient(axis).map_or(0, i64::unsigned_abs);
    let is_along = |axis: AxisId| {
        reads.iter().all(|&(index, positions)| {
            step(index, axis) == 1 && step(index, *inner) > SHORT_AXIS && positions >= MANY_POSITIONS
        })
    };
    let is_long = |axis: AxisId| !kernel.axis(axis).is_argument && kernel.axis(axis).extent >= SHORT_AXIS;
    outer.iter().copied().find(|&axis| !reads.is_empty() && is_long(axis) && is_along(axis))
}

/// Whether a row has something in common that is worth a loop for each row: a position that is looked up, or costly operations.
fn is_costly_once(kernel: &Kernel, inner: AxisId) -> bool {
    let is_common = |id: ValueId| {
        let axes = &kernel.value(id).axes;
        !axes.is_empty() && !axes.contains(&inner)
    };
    let all = || (0..kernel.values.len() as u32).map(ValueId).filter(|&id| is_common(id));
    let is_position = |axis: &crate::ir::Axis| match axis.kind {
        AxisKind::Computed { value, .. } => is_common(value),
        AxisKind::Map | AxisKind::Reduce | AxisKind::Offset { .. } => false,
    };
    let is_plain =
        |id: &ValueId| kernel.value(*id).axes.iter().all(|axis| kernel.axis(*axis).kind == AxisKind::Map);
    kernel.axes.iter().any(is_position)
        || all().filter(is_plain).map(|id| operations(kernel, id)).sum::<f64>() >= COSTLY_ONCE
}

/// Simple operations that cost more than a loop for each row.
const COSTLY_ONCE: f64 = 12.0;

/// Rows and columns of a tile of a transposed read: 64 lines of 16 floats stay in the nearest cache.
const TILE: u64 = 64;

/// Neighbours along another axis for each one along the innermost, above which lanes go along the other.
const MOSTLY: u64 = 4;

/// Whether some load is consecutive along another map axis than the innermost, which strides.
fn reads_across(kernel: &Kernel, inner: AxisId) -> bool {
    kernel.values.iter().any(|value| match &value.op {
        ValueOp::Load { index, .. } => {
            let stride = |axis: AxisId| index.coefficient(axis).unwrap_or(0).unsigned_abs();
            let map = kernel.axes_of_kind(AxisKind::Map);
            stride(inner) > TILE && map.into_iter().any(|axis| axis != inner && stride(axis) == 1)
        }
        _ => false,
    })
}

/// Along a shorter axis lanes do not go where they could go along another one.
const SHORT_AXIS: u64 = 16;

/// Rows that are worth a loop of their own: as many as have vectors, one of which is mostly enough.
const SHORTEST_ROW: u64 = 3;

/// How the loops along an axis get rid of guards, if a kernel has some.
pub(super) struct Guarded {
    interior: Option<Interior>,
    segments: Option<Segments>,
    /// Whether what is left beside an interior is in vectors: it has conditions, but loads nothing under them.
    is_masked: bool,
}

impl Guarded {
    /// `None` if nothing is guarded. Loads that are `staged` are zero where their guards do not hold.
    pub(super) fn of(kernel: &Kernel, inner: AxisId, staged: &[ValueId]) -> Option<Guarded> {
        kernel.values.iter().find(|value| matches!(value.op, ValueOp::InBounds(_)))?;
        let interior = Interior::of(kernel, inner);
        let segments = match &interior {
            Some(interior) if !interior.is_whole_rows() => None,
            _ => Segments::of(kernel),
        };
        let is_safe = |(id, value): (usize, &Value)| match value.op {
            ValueOp::Load { guard, .. } => guard.is_none() || staged.contains(&ValueId(id as u32)),
            _ => true,
        };
        let is_masked = kernel.values.iter().enumerate().all(is_safe);
        Some(Guarded { interior: interior.filter(|_| segments.is_none()), segments, is_masked })
    }

    /// Whether no loop asks whether a guard holds.
    pub(super) fn is_decided(&self) -> bool {
        self.segments.is_some()
    }

    /// The loops from one position to another.
    pub(super) fn emit<'k>(
        &'k self,
        emitter: &mut Emitter<'k>,
        kernel: &'k Kernel,
        inner: AxisId,
        (from, to): (Expr, Expr),
    ) {
        let guards = match (&self.segments, &self.interior) {
            (Some(segments), _) => Guards::Segments(segments),
            (None, Some(interior)) => Guards::Interior(interior, self.is_masked),
            (None, None) => Guards::Stay,
        };
        inner_loop(emitter, kernel, guards, inner, from, to);
    }
}

/// How a loop gets rid of guards, because loads under a condition do not vectorise.
#[derive(Clone, Copy)]
enum Guards<'k> {
    /// What is left on either side has masks or is a loop of numbers.
    Interior(&'k Interior, bool),
    Segments(&'k Segments),
    /// Windows that are combined before the loop know where they are beyond the border.
    Windows(&'k Border),
    /// Each position of a short axis stands for itself.
    Short(&'k ShortAxis),
    /// There are none, and the lanes go along the axis before some short ones.
    Matrices(&'k SmallMatrices),
    Stay,
}

/// A part of the innermost loop.
fn part<'k>(
    emitter: &mut Emitter<'k>,
    kernel: &'k Kernel,
    axis: AxisId,
    (from, to): (Expr, Expr),
    hint: LoopHint,
) {
    if hint == LoopHint::Simd
        && let Some(windows) = Windows::of(kernel, axis)
    {
        return windows.emit(emitter, (kernel, None), from, to);
    }
    if hint == LoopHint::Simd
        && let Some(split) = IndexSplit::of(kernel, axis)
    {
        return split.emit(emitter, (from, to), |emitter, at, stop| {
            part(emitter, kernel, axis, (Expr::Name(at), Expr::Name(stop)), LoopHint::SimdSegment);
        });
    }
    if hint.is_simd()
        && let Some(stretches) = Stretches::of(kernel, axis, &kernel.axes_of_kind(AxisKind::Map))
    {
        return stretches.emit(emitter, kernel, (from, to), hint);
    }
    let body = emitter.using(kernel, |emitter| {
        emitter.open(&[axis], false);
        if hint.is_simd() {
            prefetch_streams(emitter, kernel, axis);
        }
        emitter.rolled = hint == LoopHint::None;
        emitter.store_all(kernel);
        emitter.rolled = false;
        emitter.close()
    });
    let hint = if hint.is_simd() && is_scattered(emitter, kernel, axis) { LoopHint::None } else { hint };
    emitter.push(counting(axis, from, to, hint).of(body));
}

/// Whether the loop mostly reads far apart: vectors are put together one element after the other, which is no faster than
/// none, and the C compiler takes 20 ms over each of them.
fn is_scattered(emitter: &Emitter, kernel: &Kernel, axis: AxisId) -> bool {
    let is_far = |id: &ValueId| match &kernel.value(*id).op {
        ValueOp::Load { index, .. } if !emitter.staged.contains_key(id) => {
            index.coefficient(axis).is_some_and(|step| step.unsigned_abs() > FAR)
        }
        _ => false,
    };
    let varies = |id: &ValueId| kernel.value(*id).axes.contains(&axis);
    let all = || (0..kernel.values.len() as u32).map(ValueId).filter(varies);
    let far = all().filter(is_far).count();
    far >= MANY_FAR && all().map(|id| operations(kernel, id)).sum::<f64>() < CHEAP_PER_LOAD * far as f64
}

/// Elements that a cache line does not have two of.
const FAR: u64 = 8;
/// Loads that vectors may be put together of: below, a compiler is quick anyway.
const MANY_FAR: usize = 16;
/// Simple operations for each load, below which vectors gain nothing.
const CHEAP_PER_LOAD: f64 = 8.0;

/// The innermost loop.
fn inner_loop<'k>(
    emitter: &mut Emitter<'k>,
    kernel: &'k Kernel,
    guards: Guards<'k>,
    axis: AxisId,
    from: Expr,
    to: Expr,
) {
    match guards {
        Guards::Windows(border) => {
            if let Some(windows) = Windows::of(kernel, axis) {
                windows.emit(emitter, (kernel, Some(border)), from, to);
            }
        }
        Guards::Stay => part(emitter, kernel, axis, (from, to), LoopHint::Simd),
        Guards::Short(short) => short.emit(emitter, kernel, axis, from, to),
        Guards::Matrices(matrices) => matrices.emit(emitter, kernel, axis, (from, to)),
        Guards::Interior(interior, is_masked) => {
            loop_with_interior(emitter, kernel, (interior, is_masked), axis, from, to);
        }
        Guards::Segments(segments) if segments.axis == axis => loop_of_segments(emitter, segments, from, to),
        Guards::Segments(segments) => {
            // Each row is in one of the segments.
            let name = || Expr::name(segments.axis);
            let mut choice: Vec<Stmt> = Vec::new();
            let mut end = segments.parts.len();
            while end > 0 {
                let run = segments.runs.iter().find(|run| run.segments.end == end);
                let first = run.map_or(end - 1, |run| run.segments.start);
                // What it computes once a row is right in this segment alone.
                emitter.open_pinned();
                match (run, segments.within.get(first)) {
                    (Some(run), _) => run.across(emitter, segments, axis, (from.clone(), to.clone())),
                    (None, Some(within)) => {
                        let guards = Guards::Segments(within);
                        inner_loop(emitter, &segments.parts[first].1, guards, axis, from.clone(), to.clone());
                    }
                    (None, None) => {
                        let kernel = &segments.parts[first].1;
                        part(emitter, kernel, axis, (from.clone(), to.clone()), LoopHint::Simd);
                    }
                }
                let body = emitter.close();
                choice = match segments.parts.get(end) {
                    None => body,
                    Some((end, _)) => vec![Stmt::If {
                        condition: name().then(Less, position(end)),
                        then: body,
                        otherwise: choice,
                    }],
                };
                end = first;
            }
            emitter.append(choice);
        }
    }
}

fn position(at: &IndexExpr) -> Expr {
    match at.as_constant() {
        Some(constant) => Expr::Int(constant as u64),
        None => Expr::Index(at.clone()),
    }
}

/// A loop for each segment of the innermost axis.
fn loop_of_segments<'k>(emitter: &mut Emitter<'k>, segments: &'k Segments, from: Expr, to: Expr) {
    let whole = from == Expr::Int(0) && matches!(to, Expr::Int(_));
    let clamp = |at: &IndexExpr| match position(at) {
        at @ Expr::Int(_) if whole => at,
        at => from.clone().then(Max, at).then(Min, to.clone()),
    };
    let mut start = from.clone();
    for (number, (_, kernel)) in segments.parts.iter().enumerate() {
        let run = segments.runs.iter().find(|run| run.segments.contains(&number));
        if run.is_some_and(|run| run.segments.end > number + 1) {
            continue;
        }
        let end = match segments.parts.get(number + 1).map(|(end, _)| clamp(end)) {
            None => to.clone(),
            Some(end @ Expr::Int(_)) => end,
            Some(end) => {
                let name = emitter.fresh("segment");
                Expr::Name(emitter.bind(name, INDEX, end))
            }
        };
        emitter.open_pinned();
        match run {
            Some(run) => run.along(emitter, segments, &start, &end),
            None => part(emitter, kernel, segments.axis, (start, end.clone()), LoopHint::Simd),
        }
        let body = emitter.close();
        // Some segments are not in this block, and each has the positions that it computes.
        let names_positions = body.iter().any(|stmt| matches!(stmt, Stmt::Let { var: Var::Axis(_), .. }));
        match whole && !names_positions || body.len() < 2 {
            true => emitter.append(body),
            false => emitter.push(Stmt::Block(body)),
        }
        start = end;
    }
}

/// The loop where guards leave an interior without them; what is left on either side keeps them.
fn loop_with_interior<'k>(
    emitter: &mut Emitter<'k>,
    kernel: &'k Kernel,
    (interior, is_masked): (&'k Interior, bool),
    axis: AxisId,
    from: Expr,
    to: Expr,
) {
    let beside = if is_masked { LoopHint::Simd } else { LoopHint::None };
    let part = |emitter: &mut Emitter<'k>, kernel: &'k Kernel, from: Expr, to: Expr, hint: LoopHint| {
        part(emitter, kernel, axis, (from, to), hint);
    };
    let whole = from == Expr::Int(0) && matches!(to, Expr::Int(_));
    let clamp = |at: u64| match whole {
        true => Expr::Int(at),
        false if at == 0 => from.clone(),
        false if at == kernel.axis(axis).extent => to.clone(),
        false => from.clone().then(Max, at).then(Min, to.clone()),
    };
    let (mut low, mut high) = (clamp(interior.low), clamp(interior.high));
    let always = interior.conditions.is_empty();
    if !always {
        // Rows at the border have no interior.
        let holds = Expr::InBounds(interior.conditions.clone());
        let inside = emitter.bind("inside", super::stmt::Type::Register(DType::Bool), holds);
        let or_end = |at: Expr| match at == to {
            true => at,
            false => Expr::Select(Box::new(Expr::Name(inside)), Box::new(at), Box::new(to.clone())),
        };
        (low, high) = (or_end(low), or_end(high));
    }
    let named = |emitter: &mut Emitter<'k>, name: &'static str, value: Expr| match value {
        Expr::Int(_) => value,
        value => Expr::Name(emitter.bind(name, INDEX, value)),
    };
    let low = named(emitter, "low", low);
    let high = named(emitter, "high", high);
    if low != from {
        part(emitter, kernel, from, low.clone(), beside);
    }
    // What it computes once a row lacks the guards: it stays in here, and is only computed where there is an interior.
    emitter.open_pinned();
    part(emitter, &interior.kernel, low.clone(), high.clone(), LoopHint::Simd);
    let mut body = emitter.close();
    match body.len() {
        0 | 1 => body.drain(..).for_each(|stmt| emitter.push(stmt)),
        _ => emitter.guarded(Some(low.then(Less, high.clone())), body),
    }
    if high != to {
        part(emitter, kernel, high, to, beside);
    }
}
