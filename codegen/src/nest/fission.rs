//! Fission of the innermost loops on the CPU: of some elements at a time, what is costly is computed in loops of its own,
//! one after the other, each of which leaves its values in a small array.
//!
//! A core overlaps as many elements as its window of instructions holds. In one long loop that is one element's chain of
//! operations, each of which waits for the one before; in several short ones the chains of many. The arrays stay in the
//! nearest cache.

use super::emitter::{Emitter, MOST_IN_LOOP};
use super::loops::counting;
use super::prefetch::prefetch_streams;
use super::stmt::Arithmetic::Sub;
use super::stmt::{Expr, LoopHint, Type};
use crate::DType;
use crate::index::AxisId;
use crate::ir::{AxisSet, BufferId, Kernel, Store, ValueId, ValueOp};
use crate::schedule::operations;

/// Elements of a stretch: a dozen arrays of them stay in the nearest cache. See benches/notes/vectors.md.
pub(super) const TOGETHER: u64 = 256;

/// Shorter loops are not worth it.
pub(super) const SHORTEST: u64 = 64;

/// The same of loops that read at computed positions.
pub(super) const SHORTEST_FAR: u64 = 16;

/// Simple operations in a row of one loop.
const BUDGET: f64 = 30.0;

/// What is cheaper is computed where it is used.
pub(super) const CHEAP: f64 = 2.0;

/// Cheap operations that follow a costly one belong to its loop, however long its chain is, up to so many in a row: a loop
/// of nothing else would only load and store.
const TAIL: f64 = 10.0;

/// Simple operations of a loop that others follow: what has nothing to do with each other goes into several, so that the
/// constants of each stay in registers.
const MOST_TOGETHER: f64 = 80.0;

/// Arrays at most: 16 KiB of the stack.
const MOST: usize = 16;

/// Which values are computed before the loop that uses them.
#[derive(Default)]
pub(super) struct Fission {
    /// The values that each loop leaves to later ones.
    loops: Vec<Vec<ValueId>>,
}

/// A loop to divide.
pub(super) struct Divided<'a> {
    pub(super) kernel: &'a Kernel,
    /// The axes that the loop goes over; together they have as many positions as the loop.
    pub(super) along: &'a [AxisId],
    /// All axes that have a position in it.
    pub(super) bound: AxisSet,
    /// What the loop computes.
    pub(super) ends: Vec<ValueId>,
    /// What it finds in an array already.
    pub(super) there: &'a [ValueId],
    /// Whether what the loop takes is left to it by another one from this cost on, however short that is; else it takes
    /// part in the computation.
    pub(super) apart: Option<f64>,
}

impl Divided<'_> {
    /// Whether each position of the loop has a value of its own, which an array can hold.
    fn is_element(&self, id: ValueId) -> bool {
        let axes = &self.kernel.value(id).axes;
        axes.iter().any(|axis| self.along.contains(axis)) && axes.is_subset(&self.bound)
    }

    /// Whether reading the value anew is as good as an array: it is in one already.
    fn is_read(&self, id: ValueId) -> bool {
        let is_plain = |op: &ValueOp| match op {
            ValueOp::Load { index, .. } => self.kernel.computed_axes(index).is_empty(),
            ValueOp::Position(_) | ValueOp::InBounds(_) => true,
            _ => false,
        };
        self.there.contains(&id) || is_plain(&self.kernel.value(id).op)
    }

    /// Whether neighbours read where each one's own position is computed to be, by itself or within a loop of the element's own: a
    /// loop of single numbers, which should do nothing else.
    fn is_far(&self, id: ValueId) -> bool {
        let kernel = self.kernel;
        let varies = |value: ValueId| kernel.value(value).axes.iter().any(|axis| self.along.contains(axis));
        let reads_far = |id: ValueId| match &kernel.value(id).op {
            ValueOp::Load { index, .. } => {
                kernel.computed_axes(index).iter().any(|&(_, value)| varies(value))
            }
            _ => false,
        };
        reads_far(id) || self.below(id).1.into_iter().any(reads_far)
    }

    /// Of each value, whether lanes hold it in 64 bits. Positions, and integers that follow from them, have 32 there.
    fn in_64_bits(&self) -> Vec<bool> {
        let mut wide: Vec<bool> = Vec::with_capacity(self.kernel.values.len());
        for value in &self.kernel.values {
            let is_own = value.dtype.size() == 8 && value.axes.iter().any(|axis| self.along.contains(axis));
            let of_operands = || value.op.named_operands().iter().any(|id| wide[id.index()]);
            let is_wide = match &value.op {
                ValueOp::Position(_) => false,
                ValueOp::Unary(..) | ValueOp::Binary(..) | ValueOp::Select(..) if value.dtype.is_int() => {
                    of_operands()
                }
                _ => true,
            };
            wide.push(is_own && is_wide);
        }
        wide
    }

    /// The elements that a value is computed from, and what is computed between them and it, within loops of its own.
    fn below(&self, id: ValueId) -> (Vec<ValueId>, Vec<ValueId>) {
        let kernel = self.kernel;
        let (mut elements, mut inside): (Vec<ValueId>, Vec<ValueId>) = (Vec::new(), Vec::new());
        let mut pending = kernel.operands(&kernel.value(id).op).to_vec();
        while let Some(id) = pending.pop() {
            if self.is_element(id) {
                elements.push(id);
            } else if !kernel.value(id).axes.is_subset(&self.bound) && !inside.contains(&id) {
                pending.extend(kernel.operands(&kernel.value(id).op));
                inside.push(id);
            }
        }
        elements.sort_unstable();
        elements.dedup();
        (elements, inside)
    }

    /// The elements that a value is computed from, and the simple operations that takes.
    fn sources(&self, id: ValueId) -> (Vec<ValueId>, f64) {
        let kernel = self.kernel;
        let (sources, inside) = self.below(id);
        let within = inside.into_iter().map(|id| {
            let loops = kernel.value(id).axes.iter().filter(|axis| !self.bound.contains(axis));
            let turns: f64 = loops.map(|&axis| kernel.axis(axis).extent as f64).product();
            turns * operations(kernel, id).max(1.0)
        });
        (sources, operations(kernel, id) + within.sum::<f64>())
    }

    /// Which values are worth a loop of their own in a loop of so many positions; `None` if one loop is best.
    pub(super) fn fission(&self, length: u64) -> Option<Fission> {
        let below = self.kernel.down_to(self.ends.iter().copied(), self.there);
        let wide = self.in_64_bits();
        // An operation has as many lanes as the widest of its result and operands.
        let is_wide = |id: ValueId| {
            let operands = self.kernel.value(id).op.named_operands();
            wide[id.index()] || operands.iter().any(|id| wide[id.index()])
        };
        let elements: Vec<Element> = below
            .into_iter()
            .filter(|&id| self.is_element(id) && !self.is_read(id))
            .map(|id| {
                let (sources, operations) = self.sources(id);
                let (is_far, is_wide) = (self.is_far(id), is_wide(id));
                Element { id, sources, operations, is_far, is_wide, stage: 0, depth: 0.0, tail: 0.0 }
            })
            .collect();
        if length < SHORTEST && (length < SHORTEST_FAR || !elements.iter().any(|element| element.is_far)) {
            return None;
        }
        let mut budget = BUDGET;
        // With a larger one, fewer values are left to other loops.
        for _ in 0..4 {
            let loops = self.in_stages(elements.clone(), budget);
            match loops.iter().map(Vec::len).sum::<usize>() {
                0 => return None,
                1..=MOST => return Some(Fission { loops }),
                _ => budget *= 2.0,
            }
        }
        None
    }

    /// What each loop leaves to later ones, where none has longer chains of operations than the budget allows.
    fn in_stages(&self, mut elements: Vec<Element>, budget: f64) -> Vec<Vec<ValueId>> {
        let place = |elements: &[Element], id: ValueId| elements.iter().position(|element| element.id == id);
        let after = narrow_operations(&elements);
        for number in 0..elements.len() {
            let before = elements[number].sources.iter().filter_map(|&id| place(&elements[..number], id));
            let before = before.map(|at| (elements[at].stage, elements[at].depth, elements[at].tail));
            let longest =
                |most: (usize, f64, f64), own: (usize, f64, f64)| match (own.0, own.1) > (most.0, most.1) {
                    true => own,
                    false => most,
                };
            let (stage, depth, tail) = before.fold((0, 0.0, 0.0), longest);
            let follows = |is: fn(&Element) -> bool| {
                let sources = elements[number].sources.iter();
                let mut here = sources.filter_map(|&id| place(&elements[..number], id));
                here.any(|at| elements[at].stage == stage && is(&elements[at]))
            };
            // What precedes and follows a far element has vectors, and what is costly beside 64 bits whole ones.
            let is_apart = match &elements[number] {
                element if element.is_far => depth > CHEAP,
                _ if follows(|before| before.is_far) => true,
                element if element.is_wide => follows(|before| !before.is_wide && before.depth > TAIL),
                _ => follows(|before| before.is_wide) && after[number] > TAIL,
            };
            let element = &mut elements[number];
            let operations = element.operations;
            let is_cheap = operations <= CHEAP;
            let is_tail = is_cheap && tail + operations <= TAIL;
            let is_long = depth > CHEAP && depth + operations > budget && !is_tail;
            (element.stage, element.depth) = match is_long || is_apart {
                true => (stage + 1, operations),
                false => (stage, depth + operations),
            };
            element.tail = match is_cheap {
                true if element.stage == stage => tail + operations,
                true => operations,
                false => 0.0,
            };
        }
        let mut last = elements.iter().map(|element| element.stage).max().unwrap_or(0);
        let is_apart = |element: &Element| {
            let longest = if last > 0 { f64::INFINITY } else { element.depth };
            self.apart.is_some_and(|least| longest >= least)
        };
        let is_end = |id: ValueId| self.ends.contains(&id);
        let is_costly = |element: &Element| !element.is_wide && element.depth > TAIL;
        let ends_wide = elements.iter().any(|element| element.is_wide && is_end(element.id));
        if self.apart.is_some() && (last > 0 || elements.iter().any(is_apart))
            || ends_wide && elements.iter().any(|element| element.stage == last && is_costly(element))
        {
            last += 1;
        }
        let mixes = elements.iter().any(is_costly);
        // Cheap values belong where they are used, unless that leaves more to later loops.
        let mut first_use = vec![usize::MAX; elements.len()];
        let mut last_use = vec![0; elements.len()];
        for number in (0..elements.len()).rev() {
            if is_end(elements[number].id) {
                first_use[number] = first_use[number].min(last);
                last_use[number] = last;
            }
            let sources: Vec<usize> =
                elements[number].sources.iter().filter_map(|&id| place(&elements, id)).collect();
            let to = first_use[number];
            let more = sources.iter().filter(|&&at| last_use[at] < to).count();
            let stays = elements[number].is_far || mixes && elements[number].is_wide;
            let is_moved = to != usize::MAX && to > elements[number].stage && more <= 1 && !stays;
            if is_moved && elements[number].operations <= CHEAP {
                elements[number].stage = to;
            }
            for at in sources {
                first_use[at] = first_use[at].min(elements[number].stage);
                last_use[at] = last_use[at].max(elements[number].stage);
            }
        }
        self.loops_of(&elements, &last_use, last)
    }

    /// The loops of stages that others follow: of each, parts that have nothing to do with each other go into one as far as
    /// that is short.
    fn loops_of(&self, elements: &[Element], last_use: &[usize], last: usize) -> Vec<Vec<ValueId>> {
        let place = |id: ValueId| elements.iter().position(|element| element.id == id);
        // Random numbers are integers of another width: what is computed beside them would have half the lanes. And beside what is
        // read from afar it would have no lanes.
        let mut kinds = vec![Kind::Plain; elements.len()];
        // The number of the first element of each one's part.
        let mut part: Vec<usize> = (0..elements.len()).collect();
        for (number, element) in elements.iter().enumerate() {
            let before = element.sources.iter().filter_map(|&id| place(id));
            let here: Vec<usize> = before.filter(|&at| elements[at].stage == element.stage).collect();
            let own = match self.kernel.value(element.id).op {
                _ if element.is_far => Kind::Far,
                ValueOp::Random { .. } => Kind::Draws,
                _ => Kind::Plain,
            };
            kinds[number] = here.iter().map(|&at| kinds[at]).fold(own, Kind::max);
            for at in here.into_iter().filter(|&at| kinds[at] == kinds[number]) {
                let (one, other) = (part[at].min(part[number]), part[at].max(part[number]));
                part.iter_mut().filter(|own| **own == other).for_each(|own| *own = one);
            }
        }
        self.join_reductions(elements, &mut part);
        let mut loops: Vec<Vec<ValueId>> = Vec::new();
        let all_kinds = |stage| [Kind::Plain, Kind::Draws, Kind::Far].map(|kind| (stage, kind));
        for (stage, kind) in (0..last).flat_map(all_kinds) {
            let mut together = f64::INFINITY;
            for first in 0..elements.len() {
                let own = || {
                    let all = elements.iter().enumerate();
                    all.filter(|(number, element)| part[*number] == first && element.stage == stage)
                };
                let left: Vec<ValueId> = own()
                    .filter(|(number, _)| kinds[*number] == kind && last_use[*number] > stage)
                    .map(|(_, element)| element.id)
                    .collect();
                if left.is_empty() {
                    continue;
                }
                let operations: f64 = own().map(|(_, element)| element.operations).sum();
                together += operations;
                match loops.last_mut().filter(|_| together <= MOST_TOGETHER) {
                    Some(values) => values.extend(left),
                    None => {
                        together = operations;
                        loops.push(left);
                    }
                }
            }
        }
        loops.iter_mut().for_each(|values| values.sort_unstable());
        loops
    }
}

impl Divided<'_> {
    /// Reductions of the same elements are of one part: what they have in common is computed once.
    fn join_reductions(&self, elements: &[Element], part: &mut [usize]) {
        let kernel = self.kernel;
        let reduced = |element: &Element| match &kernel.value(element.id).op {
            ValueOp::Reduce { axes, .. } => Some(axes),
            _ => None,
        };
        let loads = |element: &Element| {
            let is_load = |id: &ValueId| matches!(kernel.value(*id).op, ValueOp::Load { .. });
            self.below(element.id).1.into_iter().filter(is_load).collect::<Vec<_>>()
        };
        let mut seen: Vec<(usize, Vec<ValueId>)> = Vec::new();
        for (number, element) in elements.iter().enumerate().filter(|(_, element)| reduced(element).is_some())
        {
            let own = loads(element);
            let beside = seen.iter().find(|(other, theirs)| {
                let (one, other) = (part[*other], &elements[*other]);
                let of_part = || seen.iter().filter(|(number, _)| part[*number] == one).count();
                one != part[number]
                    && other.stage == element.stage
                    && reduced(other) == reduced(element)
                    && own.iter().any(|load| theirs.contains(load))
                    && of_part() < MOST_IN_LOOP
            });
            if let Some((other, _)) = beside {
                let (one, other) = (part[*other].min(part[number]), part[*other].max(part[number]));
                part.iter_mut().filter(|own| **own == other).for_each(|own| *own = one);
            }
            seen.push((number, own));
        }
    }
}

/// What a loop does that others should not share.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Plain,
    Draws,
    Far,
}

/// A value of each element, in the order of the kernel's values.
#[derive(Clone)]
struct Element {
    id: ValueId,
    sources: Vec<ValueId>,
    operations: f64,
    /// Whether it is read at a position of its own.
    is_far: bool,
    /// Whether it or an operand has 64 bits, so that vectors have half as many lanes.
    is_wide: bool,
    /// The loop that computes it.
    stage: usize,
    /// The longest chain of that loop that ends here.
    depth: f64,
    /// The cheap operations at the end of it.
    tail: f64,
}

/// Of each element, the operations of the longest chain that begins with it and is all in 32 bits. Elements ascend by their ids.
fn narrow_operations(elements: &[Element]) -> Vec<f64> {
    let mut after = vec![0.0f64; elements.len()];
    for (number, element) in elements.iter().enumerate().rev().filter(|(_, element)| !element.is_wide) {
        after[number] += element.operations;
        for source in &element.sources {
            if let Ok(at) = elements.binary_search_by_key(source, |element| element.id) {
                after[at] = after[at].max(after[number]);
            }
        }
    }
    after
}

/// What appends a loop of some body.
pub(super) type Each<'a, 'k> = &'a mut dyn FnMut(&mut Emitter<'k>, Body<'_, 'k>);
type Body<'a, 'k> = &'a mut dyn FnMut(&mut Emitter<'k>);

impl Fission {
    /// Appends the loops; `each` makes one of a body, and the slot is an element's place in the arrays, of so many
    /// elements. The elements are to be defined in the loop that uses them.
    pub(super) fn emit<'k>(
        &self,
        emitter: &mut Emitter<'k>,
        kernel: &'k Kernel,
        slot: &Expr,
        length: u64,
        each: Each<'_, 'k>,
    ) -> Vec<(ValueId, Expr)> {
        let mut elements: Vec<(ValueId, Expr)> = Vec::new();
        for values in &self.loops {
            // What is kept of a row is in an array anyway.
            let (kept, own): (Vec<ValueId>, Vec<ValueId>) =
                values.iter().partition(|&&id| emitter.is_to_keep(id));
            let own: Vec<(ValueId, Expr)> = own
                .into_iter()
                .map(|id| {
                    let name = emitter.fresh("element");
                    // Bytes would have as many lanes as a vector has of them, in several vectors of all else.
                    let dtype = match kernel.value(id).dtype {
                        DType::Bool | DType::U8 | DType::I8 | DType::I16 => DType::I32,
                        dtype => dtype,
                    };
                    let ty = Type::Register(dtype);
                    (id, Expr::element(emitter.array(name, ty, length), slot.clone()))
                })
                .collect();
            each(emitter, &mut |emitter| {
                emitter.find(&elements);
                kept.iter().for_each(|&id| drop(emitter.value(id)));
                emitter.leave(&own);
            });
            elements.extend(own);
        }
        elements
    }
}

impl Emitter<'_> {
    /// Of a loop after others: an earlier one may have read what the first of the stores writes over, and this one reads it
    /// again.
    pub(super) fn values_before_stores(&mut self, kernel: &Kernel) {
        let is_input = |number: usize| kernel.is_written_over(BufferId(number as u32));
        if (0..kernel.buffers.len()).any(is_input) {
            kernel.stores.iter().for_each(|store| drop(self.value(store.value)));
        }
    }
}

/// What is worth loops of its own in a loop of results along an axis, of so many positions, that finds some values in arrays.
pub(super) fn of_results(
    kernel: &Kernel,
    axis: AxisId,
    bound: &[AxisId],
    there: &[ValueId],
    length: u64,
) -> Option<Fission> {
    let is_far = |store: &Store| {
        store.index.uses(axis) && store.index.coefficient(axis).is_none_or(|step| step.unsigned_abs() > 1)
    };
    // Lanes are not stored far apart.
    let stores_far = kernel.stores.iter().any(is_far);
    let divided = Divided {
        kernel,
        along: &[axis],
        bound: bound.iter().copied().collect(),
        ends: kernel.stores.iter().map(|store| store.value).collect(),
        there,
        apart: stores_far.then_some(TAIL),
    };
    // A loop without vectors takes many times as long, however short it is.
    divided.fission(if stores_far { length.max(SHORTEST) } else { length })
}

/// The innermost loop of results, divided.
pub(super) struct Stretches {
    axis: AxisId,
    fission: Fission,
}

impl Stretches {
    /// Those of the loop along an axis; `None` if it is best as it is.
    pub(super) fn of(kernel: &Kernel, axis: AxisId, bound: &[AxisId]) -> Option<Stretches> {
        if kernel.axis(axis).extent < SHORTEST_FAR && !kernel.axis(axis).is_argument {
            return None;
        }
        let length = match kernel.axis(axis) {
            axis if axis.is_argument => u64::MAX,
            axis => axis.extent,
        };
        of_results(kernel, axis, bound, &[], length).map(|fission| Stretches { axis, fission })
    }

    /// The loop from `from` to `to`.
    pub(super) fn emit<'k>(
        &self,
        emitter: &mut Emitter<'k>,
        kernel: &'k Kernel,
        (from, to): (Expr, Expr),
        hint: LoopHint,
    ) {
        let [start, stop] = [emitter.fresh("start"), emitter.fresh("stop")];
        let slot = Expr::name(self.axis).then(Sub, start);
        emitter.stretches([start, stop], (from, &to), TOGETHER, |emitter| {
            emitter.using(kernel, |emitter| {
                let mut is_first = true;
                let mut each = |emitter: &mut Emitter<'k>, body: &mut dyn FnMut(&mut Emitter<'k>)| {
                    let (from, to) = (Expr::name(start), Expr::name(stop));
                    let is_first = std::mem::take(&mut is_first);
                    emitter.repeat_along(&[self.axis], counting(self.axis, from, to, hint), |emitter| {
                        if is_first {
                            prefetch_streams(emitter, kernel, self.axis);
                        }
                        body(emitter);
                    });
                };
                let elements = self.fission.emit(emitter, kernel, &slot, TOGETHER, &mut each);
                each(emitter, &mut |emitter| {
                    emitter.find(&elements);
                    emitter.values_before_stores(kernel);
                    emitter.store_all(kernel);
                });
            });
        });
    }
}
