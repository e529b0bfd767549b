//! A very short innermost axis on the CPU, as of interleaved results: the loop goes along the axis before it, in vectors,
//! and the short one's positions stand one after the other in its body. What is looked up at positions that are computed is
//! brought in by a loop of its own before, some rows at a time: it has no vectors, and what follows from it has. Where all else
//! is consecutive over both axes, these are collapsed: what is brought in is laid out like the results, and what follows is one
//! loop in vectors over the elements of all rows.

use super::INDEX;
use super::emitter::Emitter;
use super::fission::{CHEAP, TOGETHER};
use super::loops::counting;
use super::segments::Segments;
use super::stmt::Arithmetic::{Add, Mul, Sub};
use super::stmt::{Expr, LoopHint, Stmt, Type};
use super::variable::Var;
use crate::index::{AxisId, IndexExpr};
use crate::ir::{Kernel, ValueId, ValueOp};
use crate::schedule::operations;

/// Longer axes, or more values at all positions together, are too much text.
const LONGEST: u64 = 8;
const MOST_VALUES: usize = 256;

/// Bytes of what is looked up for some rows: half of the nearest cache.
const MOST_LOOKED_UP: u64 = 16 * 1024;

/// Rows of fewer are brought in element by element: vectors that overlap as much take longer.
const SPELLED_OUT: u64 = 4;

/// The axis whose positions are spelled out.
pub(super) struct ShortAxis {
    axis: AxisId,
    extent: u64,
    /// What its positions decide: which operand of a join each is of.
    segments: Option<Segments>,
}

impl ShortAxis {
    /// The innermost axis, if it is short, the one before it is at least `long`, and neither keeps guards.
    pub(super) fn of(kernel: &Kernel, map: &[AxisId], long: u64) -> Option<ShortAxis> {
        let [.., before, axis] = *map else { return None };
        let extent = kernel.axis(axis).extent;
        let is_short = (2..=LONGEST).contains(&extent) && !kernel.axis(axis).is_argument;
        let is_plain = kernel.values.iter().all(|value| !matches!(value.op, ValueOp::Reduce { .. }));
        let guarded = kernel.values.iter().any(|value| matches!(value.op, ValueOp::InBounds(_)));
        let segments = if guarded { fixed_segments(kernel, axis) } else { None };
        let fits = kernel.values.len() * extent as usize <= MOST_VALUES;
        let before = kernel.axis(before);
        let is_worth_it = is_short && is_plain && fits && (before.is_argument || before.extent >= long);
        (is_worth_it && guarded == segments.is_some()).then_some(ShortAxis { axis, extent, segments })
    }

    /// How many results one position of the other axes has.
    pub(super) fn extent(&self) -> u64 {
        self.extent
    }

    /// The loops along the axis before it.
    pub(super) fn emit<'k>(
        &'k self,
        emitter: &mut Emitter<'k>,
        kernel: &'k Kernel,
        axis: AxisId,
        from: Expr,
        to: Expr,
    ) {
        let looked_up = if self.segments.is_none() { looked_up(kernel, axis) } else { Vec::new() };
        let apart = if looked_up.is_empty() { None } else { self.not_consecutive(kernel, axis) };
        let rows = self.rows(kernel, apart.as_ref().unwrap_or(&looked_up));
        if let Some(found) = apart
            && rows > 0
        {
            return self.collapsed(emitter, kernel, &found, rows, (axis, from, to));
        }
        if looked_up.is_empty() || rows == 0 {
            return self.along(emitter, kernel, (axis, from, to, LoopHint::Simd), |emitter, _| {
                emitter.store_all(emitter.kernel);
            });
        }
        let [start, stop] = [emitter.fresh("start"), emitter.fresh("stop")];
        let slot = Expr::name(axis).then(Sub, start);
        emitter.stretches([start, stop], (from, &to), rows, |emitter| {
            let of_position = |_| emitter.elements_of(&looked_up, "found", rows, &slot);
            let elements: Vec<Vec<(ValueId, Expr)>> = (0..self.extent).map(of_position).collect();
            let (from, to) = (Expr::name(start), Expr::name(stop));
            let lookups = (axis, from.clone(), to.clone(), LoopHint::None);
            self.along(emitter, kernel, lookups, |emitter, position| emitter.leave(&elements[position]));
            self.along(emitter, kernel, (axis, from, to, LoopHint::Simd), |emitter, position| {
                emitter.find(&elements[position]);
                emitter.store_all(emitter.kernel);
            });
        });
    }

    /// Rows whose elements of these values stay near.
    fn rows(&self, kernel: &Kernel, ids: &[ValueId]) -> u64 {
        let bytes: usize = ids.iter().map(|&id| kernel.value(id).dtype.compute().size()).sum();
        (MOST_LOOKED_UP / (bytes as u64 * self.extent).max(1)).min(TOGETHER) / 16 * 16
    }

    /// What the collapsed loop, over both axes, cannot read in the order of its elements, or is computed once for several of them;
    /// `None` if that costs more than little, or if results are not stored in that order.
    fn not_consecutive(&self, kernel: &Kernel, before: AxisId) -> Option<Vec<ValueId>> {
        let is_consecutive = |index: &IndexExpr| {
            let steps = [before, self.axis].map(|axis| index.coefficient(axis));
            steps[0].zip(steps[1]).is_some_and(|(row, own)| own == 1 && row == self.extent as i64)
        };
        if !kernel.stores.iter().all(|store| is_consecutive(&store.index)) {
            return None;
        }
        let (mut found, mut seen) = (Vec::new(), vec![false; kernel.values.len()]);
        let mut pending: Vec<ValueId> = kernel.stores.iter().map(|store| store.value).collect();
        while let Some(id) = pending.pop() {
            let axes = &kernel.value(id).axes;
            let varies = [before, self.axis].map(|axis| axes.contains(&axis));
            if std::mem::replace(&mut seen[id.index()], true) || varies == [false; 2] {
                continue;
            }
            let op = &kernel.value(id).op;
            match op {
                ValueOp::Load { index, .. }
                    if kernel.computed_axes(index).is_empty() && is_consecutive(index) => {}
                ValueOp::Load { .. } => found.push(id),
                // Once a row, or the same in all rows.
                _ if varies != [true; 2] => {
                    let below = kernel.down_from([id]);
                    if below.into_iter().map(|id| operations(kernel, id)).sum::<f64>() > CHEAP {
                        return None;
                    }
                    found.push(id);
                }
                _ if op.is_elementwise() => pending.extend(op.named_operands()),
                _ => return None,
            }
        }
        found.sort_unstable();
        Some(found)
    }

    /// Loops that bring values in, laid out like the results, and collapsed loops of all that follows from them.
    fn collapsed<'k>(
        &'k self,
        emitter: &mut Emitter<'k>,
        kernel: &'k Kernel,
        found: &[ValueId],
        rows: u64,
        (before, from, to): (AxisId, Expr, Expr),
    ) {
        let [start, stop] = [emitter.fresh("start"), emitter.fresh("stop")];
        emitter.stretches([start, stop], (from, &to), rows, |emitter| {
            let mut array = |&id: &ValueId| {
                let (name, ty) = (emitter.fresh("found"), Type::Register(kernel.value(id).dtype));
                (id, emitter.array(name, ty, rows * self.extent))
            };
            let arrays: Vec<(ValueId, Var)> = found.iter().map(&mut array).collect();
            let elements = |slot: Expr| -> Vec<(ValueId, Expr)> {
                arrays.iter().map(|&(id, array)| (id, Expr::element(array, slot.clone()))).collect()
            };
            let [start, stop] = [start, stop].map(Expr::Name);
            let row = Expr::name(before).then(Sub, start.clone()).then(Mul, self.extent);
            let slot = |own: Expr| row.clone().then(Add, own);
            let lookups = (before, start.clone(), stop.clone(), LoopHint::None);
            match self.extent > SPELLED_OUT {
                false => self.along(emitter, kernel, lookups, |emitter, position| {
                    emitter.leave(&elements(slot(Expr::Int(position as u64))));
                }),
                true => {
                    let (before, from, to, hint) = lookups;
                    emitter.repeat_along(&[before], counting(before, from, to, hint), |emitter| {
                        // What a vector has beyond the end of a row, the next row writes over.
                        let hint = LoopHint::SimdSpilling;
                        let own = counting(self.axis, Expr::Int(0), Expr::Int(self.extent), hint);
                        emitter.repeat_along(&[self.axis], own, |emitter| {
                            emitter.leave(&elements(slot(Expr::name(self.axis))));
                        });
                    });
                }
            }
            // Collapsed: the short axis goes on from one row to the next.
            let first = Expr::Name(emitter.bind("begin", INDEX, start.then(Mul, self.extent)));
            let end = Expr::Name(emitter.bind("end", INDEX, stop.then(Mul, self.extent)));
            let elements = elements(Expr::name(self.axis).then(Sub, first.clone()));
            let all = counting(self.axis, first, end, LoopHint::Simd);
            emitter.repeat_along(&[self.axis], all, |emitter| {
                emitter.bind_axes(&[before]);
                emitter.bind(before, INDEX, Expr::Int(0));
                emitter.using(kernel, |emitter| {
                    emitter.find(&elements);
                    emitter.values_before_stores(kernel);
                    emitter.store_all(kernel);
                });
            });
        });
    }

    /// One loop along the axis before it, with what is done at each position of the short one.
    fn along<'k>(
        &'k self,
        emitter: &mut Emitter<'k>,
        kernel: &'k Kernel,
        (axis, from, to, hint): (AxisId, Expr, Expr, LoopHint),
        mut at: impl FnMut(&mut Emitter<'k>, usize),
    ) {
        emitter.repeat_along(&[axis], counting(axis, from, to, hint), |emitter| {
            for position in 0..self.extent {
                let part = match &self.segments {
                    Some(segments) => segments.at(position),
                    None => None,
                };
                emitter.using(part.unwrap_or(kernel), |emitter| {
                    match part {
                        // What a segment reads is not there in the next one.
                        Some(_) => emitter.open_pinned(),
                        None => emitter.open(&[], true),
                    }
                    emitter.bind_axes(&[self.axis]);
                    emitter.bind(self.axis, INDEX, Expr::Int(position));
                    at(emitter, position as usize);
                    let body = emitter.close();
                    emitter.push(Stmt::Block(body));
                });
            }
        });
    }
}

/// What results are computed from that lies at positions which are computed for each row; nothing if little is computed of it.
fn looked_up(kernel: &Kernel, axis: AxisId) -> Vec<ValueId> {
    let varies = |id: ValueId| kernel.value(id).axes.contains(&axis);
    let (mut found, mut seen, mut cost) = (Vec::new(), vec![false; kernel.values.len()], 0.0);
    let mut pending: Vec<ValueId> = kernel.stores.iter().map(|store| store.value).collect();
    while let Some(id) = pending.pop() {
        if std::mem::replace(&mut seen[id.index()], true) || !varies(id) {
            continue;
        }
        cost += operations(kernel, id);
        let op = &kernel.value(id).op;
        match op {
            ValueOp::Load { index, .. } => {
                let is_of_row = kernel.computed_axes(index).iter().any(|&(_, value)| varies(value));
                found.extend(is_of_row.then_some(id));
            }
            _ => pending.extend(op.named_operands()),
        }
    }
    found.sort_unstable();
    if cost > CHEAP { found } else { Vec::new() }
}

/// Parts of the axis that begin where the text says.
fn fixed_segments(kernel: &Kernel, axis: AxisId) -> Option<Segments> {
    Segments::of(kernel).filter(|segments| segments.axis == axis && segments.at(0).is_some())
}
