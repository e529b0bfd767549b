//! Results of a few short axes on the CPU, such as those of small matrices: lanes go along the axis before these. What lies
//! across is turned on the way in and on the way out, some positions at a time.

mod joined;

use rustc_hash::FxHashMap;

use super::INDEX;
use super::accumulate::set;
use super::emitter::{Emitter, Staged};
use super::loops::counting;
use super::stmt::Arithmetic::{Add, Mul, Sub};
use super::stmt::{Expr, LoopHint, Stmt, Turning, Type};
use super::variable::Var;
use crate::DType;
use crate::index::{AxisId, IndexExpr};
use crate::ir::{AxisKind, BufferId, Kernel, ValueId, ValueOp};
use crate::schedule::operations;

/// Longer axes, or more positions of all of them, fill vectors or are too much text.
const LONGEST: u64 = 8;
const MOST_POSITIONS: u64 = 64;
const MOST_VALUES: u64 = 256;

/// Fewer positions of the axis before are not worth turning.
const SHORTEST: u64 = 32;

/// Simple operations of an element that are worth transposing it.
const COSTLY: f64 = 12.0;

/// Elements of an array that lies in the nearest cache beside some others, and positions that are turned together.
const ELEMENTS: u64 = 2048;
const MOST_TOGETHER: u64 = 128;

/// The short axes of a kernel's results, and what of memory lies across.
pub(super) struct SmallMatrices {
    /// The short axes but the last, which are loops around the lanes, and the last one, which is spelled out.
    around: Vec<AxisId>,
    last: AxisId,
    /// Results of one position of the axis before them.
    pub(super) positions: u64,
    loads: Vec<(ValueId, Tile)>,
    stores: Vec<(usize, Tile)>,
    together: u64,
}

/// Elements that one position has side by side, each in a line of an array: those of a buffer, or of several that are joined.
struct Tile {
    /// Each with its first line.
    parts: Vec<(u64, Across)>,
    dtype: DType,
    /// How many there are, and which is meant.
    span: u64,
    element: IndexExpr,
}

/// Elements of a buffer that one position has side by side.
#[derive(PartialEq)]
struct Across {
    buffer: BufferId,
    /// Where the first is, and those of the next position.
    first: IndexExpr,
    stride: u64,
    /// How many there are.
    span: u64,
}

impl SmallMatrices {
    /// `None` if the kernel reduces nothing and compilers vectorise it without, or if other loops are made of it.
    pub(super) fn of(kernel: &Kernel, map: &[AxisId]) -> Option<SmallMatrices> {
        let extent = |axis: AxisId| kernel.axis(axis).extent;
        let (mut positions, mut from) = (1, map.len());
        while let Some(&axis) = map[..from].last()
            && !kernel.axis(axis).is_argument
            && (1..=LONGEST).contains(&extent(axis))
            && positions * extent(axis) <= MOST_POSITIONS
        {
            positions *= extent(axis);
            from -= 1;
        }
        let (&along, (&last, around)) = (map[..from].last()?, map[from..].split_last()?);
        let is_long = kernel.axis(along).is_argument || extent(along) >= SHORTEST;
        let spelled = kernel.values.len() as u64 * extent(last);
        if !is_long || spelled > MOST_VALUES {
            return None;
        }
        let mut moving: Vec<AxisId> = map[from..].to_vec();
        moving.extend(kernel.axes_of_kind(AxisKind::Reduce));
        let (mut loads, mut stores) = (Vec::new(), Vec::new());
        let mut reduces = false;
        let mut is_below = vec![false; kernel.values.len()];
        let mut pending: Vec<ValueId> = kernel.stores.iter().map(|store| store.value).collect();
        while let Some(id) = pending.pop() {
            if std::mem::replace(&mut is_below[id.index()], true) {
                continue;
            }
            if let Some(joined) = Tile::joined(kernel, id, along, &moving) {
                loads.push((id, joined));
                continue;
            }
            let op = &kernel.value(id).op;
            if !is_plain(kernel, op) {
                return None;
            }
            reduces |= matches!(op, ValueOp::Reduce { .. });
            if let ValueOp::Load { buffer, index, .. } = op
                && !matches!(index.coefficient(along), Some(0 | 1))
            {
                loads.push((id, Tile::of(kernel, *buffer, index, along, &moving)?));
            }
            pending.extend(kernel.operands(op));
        }
        let is_slow = || !interleaves(extent(last)) && shares(kernel, along, last) && is_costly(kernel, last);
        if !(reduces || is_slow()) {
            return None;
        }
        loads.sort_unstable_by_key(|(id, _)| *id);
        for (number, store) in kernel.stores.iter().enumerate() {
            if store.index.coefficient(along) != Some(1) {
                let tile = Tile::of(kernel, store.buffer, &store.index, along, &moving)?;
                stores.push((number, tile.filter_dense(kernel, &moving, positions)?));
            }
        }
        let spans = loads.iter().map(|(_, tile)| tile.span);
        let most = spans.chain(stores.iter().map(|(_, tile)| tile.span)).max()?;
        let together = (ELEMENTS / most.next_power_of_two()).clamp(16, MOST_TOGETHER);
        Some(SmallMatrices { around: around.to_vec(), last, positions, loads, stores, together })
    }

    /// How many short axes there are.
    pub(super) fn axes(&self) -> usize {
        self.around.len() + 1
    }

    /// The loop along the axis before the short ones.
    pub(super) fn emit<'k>(
        &'k self,
        emitter: &mut Emitter<'k>,
        kernel: &'k Kernel,
        axis: AxisId,
        (from, to): (Expr, Expr),
    ) {
        let (start, stop) = (emitter.index("start"), emitter.index("stop"));
        emitter.stretches([start, stop], (from, &to), self.together, |emitter| {
            let count = Expr::Name(emitter.bind("count", INDEX, stop.then(Sub, start)));
            let place = |tile: &Tile| {
                let slot = Expr::Index(tile.element.clone()).then(Mul, self.together);
                slot.then(Add, Expr::name(axis).then(Sub, start))
            };
            let mut staged = FxHashMap::default();
            let mut arrays: Vec<(&Tile, Var)> = Vec::new();
            for (id, tile) in &self.loads {
                let there =
                    arrays.iter().find(|(other, _)| other.parts == tile.parts).map(|(_, array)| *array);
                let array = there.unwrap_or_else(|| {
                    let array = self.array(emitter, "tile", tile);
                    self.turn(emitter, tile, (array, true), (start, &count));
                    arrays.push((tile, array));
                    array
                });
                staged.insert(*id, Staged { array, dtype: tile.dtype, slot: Some(place(tile)) });
            }
            let results: FxHashMap<usize, (Var, &Tile)> = self
                .stores
                .iter()
                .map(|(number, tile)| (*number, (self.array(emitter, "result", tile), tile)))
                .collect();
            emitter.staged = staged;
            self.lanes(emitter, kernel, (axis, start, stop), &self.around, &|emitter, number| {
                let store = &kernel.stores[number];
                match results.get(&number) {
                    None => emitter.store(store),
                    Some(&(array, tile)) => {
                        let value = emitter.stored(store);
                        emitter.push(set(Expr::element(array, place(tile)), value));
                    }
                }
            });
            emitter.staged = FxHashMap::default();
            for (number, _) in &self.stores {
                if let Some(&(array, tile)) = results.get(number) {
                    self.turn(emitter, tile, (array, false), (start, &count));
                }
            }
        });
    }

    /// Loops over the short axes, lanes, and the last axis spelled out.
    fn lanes<'k>(
        &self,
        emitter: &mut Emitter<'k>,
        kernel: &'k Kernel,
        (axis, start, stop): (AxisId, Var, Var),
        around: &[AxisId],
        store: &dyn Fn(&mut Emitter<'k>, usize),
    ) {
        if let Some((&first, rest)) = around.split_first() {
            emitter.open(&[first], false);
            self.lanes(emitter, kernel, (axis, start, stop), rest, store);
            return emitter.close_loop(first, LoopHint::None);
        }
        emitter.repeat_along(&[axis], counting(axis, start, stop, LoopHint::Simd), |emitter| {
            for position in 0..kernel.axis(self.last).extent {
                emitter.open(&[], true);
                emitter.bind_axes(&[self.last]);
                emitter.bind(self.last, INDEX, Expr::Int(position));
                (0..kernel.stores.len()).for_each(|number| store(emitter, number));
                let body = emitter.close();
                emitter.push(Stmt::Block(body));
            }
        });
    }

    fn array(&self, emitter: &mut Emitter, name: &'static str, tile: &Tile) -> Var {
        let array = emitter.fresh(name);
        emitter.array(array, Type::Memory(tile.dtype), tile.span * self.together)
    }

    /// Turns what some positions have, into an array or out of it.
    fn turn(&self, emitter: &mut Emitter, tile: &Tile, array: (Var, bool), part: (Var, &Expr)) {
        for (line, across) in &tile.parts {
            let turn = self.turn_part(emitter, (across, tile.dtype), array, *line * self.together, part);
            emitter.push(turn);
        }
    }

    fn turn_part(
        &self,
        emitter: &mut Emitter,
        (across, dtype): (&Across, DType),
        (array, is_in): (Var, bool),
        line: u64,
        (start, count): (Var, &Expr),
    ) -> Stmt {
        let Across { first, stride, span, .. } = across;
        let first = match first.as_constant() {
            Some(0) => start.then(Mul, *stride),
            _ => Expr::Index(first.clone()).then(Add, start.then(Mul, *stride)),
        };
        let buffer = Var::from(across.buffer);
        let there = (array, Expr::Int(line), self.together);
        let memory = (buffer, first, *stride);
        if matches!(dtype, DType::F32 | DType::F64 | DType::I32 | DType::U32 | DType::I64) {
            let (to, from) = if is_in { (there, memory) } else { (memory, there) };
            let (rows, depth) = match is_in {
                true => (count.clone(), Expr::Int(*span)),
                false => (Expr::Int(*span), count.clone()),
            };
            return Stmt::Turn(Box::new(Turning {
                dtype,
                to: to.0,
                to_at: to.1,
                to_row: to.2,
                from: from.0,
                from_at: from.1,
                from_row: from.2,
                depth,
                rows: Some(rows),
            }));
        }
        let (n, element) = (emitter.index("n"), emitter.index("element"));
        let in_memory = memory.1.then(Add, n.then(Mul, *stride)).then(Add, element);
        let in_memory = Expr::element(buffer, in_memory);
        let slot = element.then(Mul, self.together).then(Add, n);
        let in_array = Expr::element(array, if line == 0 { slot } else { slot.then(Add, line) });
        let copy = if is_in { set(in_array, in_memory) } else { set(in_memory, in_array) };
        let all = counting(element, 0, *span, LoopHint::Unroll).of(vec![copy]);
        counting(n, 0, count.clone(), LoopHint::None).of(vec![all])
    }
}

impl Tile {
    /// Of an index whose elements at one position are near each other, and no other position's.
    fn of(
        kernel: &Kernel,
        buffer: BufferId,
        index: &IndexExpr,
        along: AxisId,
        moving: &[AxisId],
    ) -> Option<Tile> {
        let stride = u64::try_from(index.coefficient(along)?).ok()?;
        let (ranges, zero) = (kernel.ranges(), IndexExpr::zero());
        let mut first = index.substitute(along, &zero, &ranges);
        let (mut span, mut element) = (1u64, zero.clone());
        for &axis in moving {
            let step = u64::try_from(first.coefficient(axis)?).ok()?;
            span = span.saturating_add(step.saturating_mul(kernel.axis(axis).extent.saturating_sub(1)));
            first = first.substitute(axis, &zero, &ranges);
            element = element.add(&IndexExpr::axis(axis).scale(step as i64));
        }
        let dtype = kernel.buffers[buffer.index()].dtype;
        Tile { parts: vec![(0, Across { buffer, first, stride, span })], dtype, span, element }.filter()
    }

    fn filter(self) -> Option<Tile> {
        let are_apart = self.parts.iter().all(|(_, across)| across.span <= across.stride);
        (are_apart && self.span <= MOST_POSITIONS).then_some(self)
    }

    /// The same where each element is one of the results.
    fn filter_dense(self, kernel: &Kernel, moving: &[AxisId], positions: u64) -> Option<Tile> {
        let mut steps: Vec<(u64, u64)> = moving
            .iter()
            .filter(|&&axis| kernel.axis(axis).kind == AxisKind::Map && kernel.axis(axis).extent > 1)
            .map(|&axis| (self.element.coefficient(axis).unwrap_or(0) as u64, kernel.axis(axis).extent))
            .collect();
        steps.sort_unstable();
        let mut next = 1;
        let is_dense = steps.into_iter().all(|(step, extent)| {
            let follows = step == next;
            next *= extent;
            follows
        });
        (is_dense && self.span == positions).then_some(self)
    }
}

/// Whether compilers vectorise accesses to interleaved groups of so many elements.
fn interleaves(extent: u64) -> bool {
    extent == 3 || extent.is_power_of_two()
}

/// Whether some value is the same at all positions of the short axis and differs along the longer one.
fn shares(kernel: &Kernel, along: AxisId, short: AxisId) -> bool {
    kernel.values.iter().any(|value| value.axes.contains(&along) && !value.axes.contains(&short))
}

/// Whether what varies along an axis costs more than transposing it.
fn is_costly(kernel: &Kernel, axis: AxisId) -> bool {
    let all = (0..kernel.values.len() as u32).map(ValueId);
    all.filter(|&id| kernel.value(id).axes.contains(&axis)).map(|id| operations(kernel, id)).sum::<f64>()
        >= COSTLY
}

/// Whether it is computed element by element or a short reduction, without conditions.
fn is_plain(kernel: &Kernel, op: &ValueOp) -> bool {
    match op {
        ValueOp::Load { index, guard: None, .. } => kernel.computed_axes(index).is_empty(),
        ValueOp::Literal(_) | ValueOp::Argument(_) => true,
        ValueOp::Reduce { op, axes, position: None, .. } => {
            let extents = axes.iter().map(|&axis| kernel.axis(axis).extent);
            op.is_plain()
                && axes.iter().all(|&axis| !kernel.axis(axis).is_argument)
                && (1..=MOST_POSITIONS).contains(&extents.product())
        }
        op => op.is_elementwise(),
    }
}
