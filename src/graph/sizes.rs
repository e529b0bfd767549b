//! Graphs that differ in sizes: extents, where views begin, and the user's numbers.
//!
//! A size up to [`FEW`] is what it is: 0, 1 and the lengths that kernels spell out. Larger ones are of a class, from above one
//! power of two up to the next, and which of them are equal is part of the structure. So is which tensors have equally many
//! elements.

use std::hash::Hash;

use super::hash::StructuralKey;
use super::hash::coded;
use super::op::{Constant, ConstantRole, Op, Sorted, View};
use super::{Graph, Node, NodeId};
use crate::{DType, ReduceOp, Scalar};

/// Sizes that are what they are.
const FEW: i64 = 4;

/// Different sizes of one graph, at most.
const MOST: usize = 128;

/// What a graph is but for its sizes, and these.
#[derive(Clone, Debug)]
pub(crate) struct Sizes {
    /// Equal for graphs that differ in sizes within their classes alone.
    pub(crate) key: StructuralKey,
    /// The sizes above [`FEW`], each once, in the order in which they come up.
    pub(crate) numbers: Vec<i64>,
    /// The user's numbers but for special ones, and the seeds of random numbers; each once.
    pub(crate) scalars: Vec<Scalar>,
    /// Whether something is computed from the user's numbers alone, so that what the graph becomes may follow from which they
    /// are.
    pub(crate) computes_scalars: bool,
}

/// An operation without its sizes.
#[derive(Hash)]
enum Shapeless<'a> {
    Other(&'a Op),
    Number(DType),
    Seed,
    Slice(&'a [i64]),
    Pad(&'a Scalar),
    Scatter(ReduceOp, usize),
    Sort(usize, bool, Sorted),
}

/// A size as the structure has it.
#[derive(Hash)]
enum Size {
    Exactly(i64),
    /// Its class, and which of the sizes so far it is.
    Of(u32, usize),
}

/// What is computed of constants alone.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Follows {
    Literals,
    Scalars,
    Values,
}

impl Sizes {
    /// `None` where there are too many to look at.
    pub(crate) fn of(graph: &Graph) -> Option<Sizes> {
        let (mut numbers, mut elements, mut scalars) = (Vec::new(), Vec::new(), Vec::new());
        let mut computes_scalars = false;
        let mut follows = Vec::with_capacity(graph.bound());
        let key = coded(graph, |id, node, code| {
            shapeless(&node.op).hash(code);
            for number in numbers_of(node) {
                let size = match number.abs() <= FEW {
                    true => Size::Exactly(number),
                    false => Size::Of(class(number), place(&mut numbers, number)),
                };
                size.hash(code);
            }
            place(&mut elements, node.shape.elements()).hash(code);
            if let Some(scalar) = scalar(&node.op) {
                match is_any(&node.op, scalar) {
                    true => (is_negative(scalar), place(&mut scalars, scalar)).hash(code),
                    false => scalar.hash(code),
                }
            }
            let own = follows_from(graph, id, &follows);
            let is_moved = matches!(node.op, Op::Constant(_) | Op::View(_) | Op::Cast);
            computes_scalars |= own == Follows::Scalars && !is_moved;
            follows.push(own);
        });
        let is_few = numbers.len() <= MOST && elements.len() <= MOST && scalars.len() <= MOST;
        is_few.then_some(Sizes { key, numbers, scalars, computes_scalars })
    }
}

fn follows_from(graph: &Graph, id: NodeId, follows: &[Follows]) -> Follows {
    match &graph.node(id).op {
        Op::Constant(Constant { role: ConstantRole::Argument, .. }) => Follows::Scalars,
        Op::Constant(_) => Follows::Literals,
        // The one position is 0.
        Op::Iota if graph.node(id).shape.elements() <= 1 => Follows::Literals,
        Op::Input(_) | Op::Iota | Op::Random { .. } => Follows::Values,
        // Of no or of one position are numbers by themselves.
        Op::Reduce { .. } | Op::Scan { .. } | Op::Sort { .. } if few_positions(graph, id) => {
            Follows::Literals.max(of_operands(graph, id, follows).min(Follows::Scalars))
        }
        _ => of_operands(graph, id, follows),
    }
}

/// Whether what it reads along its axes is one element or none.
fn few_positions(graph: &Graph, id: NodeId) -> bool {
    let from = &graph.node(graph.operands(id)[0]).shape;
    match &graph.node(id).op {
        Op::Reduce { axes, .. } => axes.iter().map(|&axis| from[axis]).product::<usize>() <= 1,
        Op::Scan { axis, .. } | Op::Sort { axis, .. } => from[*axis] <= 1,
        _ => false,
    }
}

fn of_operands(graph: &Graph, id: NodeId, follows: &[Follows]) -> Follows {
    let of = |operand: NodeId| follows.get(operand.index()).copied().unwrap_or(Follows::Values);
    graph.operands(id).into_iter().map(of).max().unwrap_or(Follows::Values)
}

fn shapeless(op: &Op) -> Shapeless<'_> {
    match op {
        Op::Constant(Constant { role: ConstantRole::Argument, value }) => Shapeless::Number(value.dtype()),
        Op::Random { .. } => Shapeless::Seed,
        Op::View(View::Slice { steps, .. }) => Shapeless::Slice(steps),
        Op::View(View::Pad { value, .. }) => Shapeless::Pad(value),
        Op::Scatter { op, axis, .. } => Shapeless::Scatter(*op, *axis),
        Op::Sort { axis, descending, result, .. } => Shapeless::Sort(*axis, *descending, *result),
        _ => Shapeless::Other(op),
    }
}

/// Where it is among those so far.
fn place<T: PartialEq>(list: &mut Vec<T>, one: T) -> usize {
    // Beyond what is looked at anyway, it does not matter.
    let found = list.iter().take(MOST + 1).position(|other| *other == one);
    found.unwrap_or_else(|| {
        list.push(one);
        list.len() - 1
    })
}

/// Up to which power of two, and on which side of 0.
fn class(number: i64) -> u32 {
    2 * bits(number) + u32::from(number < 0)
}

fn bits(number: i64) -> u32 {
    u64::BITS - number.unsigned_abs().saturating_sub(1).leading_zeros()
}

/// The least and the largest size of the class of one above [`FEW`].
pub(crate) fn ends_of_class(number: i64) -> (i64, i64) {
    let last = 1i64 << bits(number).min(62);
    match number < 0 {
        false => (last / 2 + 1, last),
        true => (-last, -last / 2 - 1),
    }
}

/// The user's number of a node, or its seed.
pub(crate) fn scalar(op: &Op) -> Option<Scalar> {
    match op {
        Op::Constant(Constant { role: ConstantRole::Argument, value }) => Some(*value),
        Op::Random { seed } => Some(Scalar::from_i64(DType::I64, *seed as i64)),
        _ => None,
    }
}

fn is_negative(scalar: Scalar) -> bool {
    scalar.as_f64() < 0.0
}

/// Whether another one of its sign would do the same.
fn is_any(op: &Op, scalar: Scalar) -> bool {
    matches!(op, Op::Random { .. }) || !is_special(scalar)
}

/// Whether a law of numbers may be about this one: small ones, powers of two, infinities, NaN; and those of narrow integers.
pub(crate) fn is_special(scalar: Scalar) -> bool {
    match scalar.dtype() {
        DType::F16 | DType::BF16 | DType::F32 | DType::F64 => {
            let value = scalar.as_f64();
            let is_power = value.to_bits() & ((1 << 52) - 1) == 0;
            !value.is_normal() || is_power || value.fract() == 0.0 && value.abs() <= FEW as f64
        }
        DType::I32 | DType::U32 | DType::I64 => {
            let value = scalar.as_i64();
            let least = if scalar.dtype() == DType::I64 { i64::MIN } else { i32::MIN as i64 };
            let is_extreme = [least, least + 1, i32::MAX as i64, u32::MAX as i64, i64::MAX].contains(&value);
            is_extreme || value.unsigned_abs().is_power_of_two() || value.abs() <= FEW
        }
        DType::Bool | DType::U8 | DType::I8 | DType::I16 => true,
    }
}

/// A node's sizes: extents, and where it begins.
pub(crate) fn numbers_of(node: &Node) -> impl Iterator<Item = i64> + '_ {
    let (starts, before): (&[i64], &[usize]) = match &node.op {
        Op::View(View::Slice { starts, .. }) => (starts, &[]),
        Op::View(View::Pad { before, .. }) => (&[], before),
        Op::Scatter { extent, .. } | Op::Sort { extent, .. } => (&[], std::slice::from_ref(extent)),
        _ => (&[], &[]),
    };
    let sizes = node.shape.iter().chain(before).map(|&size| size as i64);
    sizes.chain(starts.iter().copied())
}

/// The same node of other sizes, in the order of [`numbers_of`].
pub(crate) fn set_numbers(node: &mut Node, mut other: impl FnMut(i64) -> i64) {
    let mut size = |size: usize| other(size as i64).max(0) as usize;
    node.shape = node.shape.iter().map(|&extent| size(extent)).collect();
    match &mut node.op {
        Op::View(View::Slice { starts, .. }) => starts.iter_mut().for_each(|start| *start = other(*start)),
        Op::View(View::Pad { before, .. }) => before.iter_mut().for_each(|before| *before = size(*before)),
        Op::Scatter { extent, .. } | Op::Sort { extent, .. } => *extent = size(*extent),
        _ => {}
    }
}

/// The same graph with other sizes and other numbers of the user's in the place of those that it has.
pub(crate) fn with_sizes(graph: &Graph, own: &Sizes, numbers: &[i64], scalars: &[Scalar]) -> Graph {
    graph.clone().map_nodes(|_, node| {
        set_numbers(node, |number| {
            let at = own.numbers.iter().position(|&own| own == number);
            at.filter(|_| number.abs() > FEW).map_or(number, |at| numbers[at])
        });
        let Some(scalar) = scalar(&node.op).filter(|scalar| is_any(&node.op, *scalar)) else { return };
        if let Some(at) = own.scalars.iter().position(|own| *own == scalar) {
            set_scalar(node, scalars[at]);
        }
    })
}

/// The same node with another number of the user's, or another seed.
pub(crate) fn set_scalar(node: &mut Node, scalar: Scalar) {
    match &mut node.op {
        Op::Constant(constant) => constant.value = scalar,
        Op::Random { seed } => *seed = scalar.as_i64() as u64,
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::sketch::Sketch;
    use crate::{BinaryOp, ReduceOp};

    /// Some rows without the first ones, times a number and from there on padded, and the sums of other rows.
    fn sizes([rows, first, columns, others]: [usize; 4], number: f64) -> Sizes {
        let mut s = Sketch::new();
        let (x, y) = (s.input([rows, columns], DType::F32), s.input([others, 3], DType::F32));
        let cut = s.slice(x, [first as i64, 0], [1, 1], [rows - first, columns]);
        let number = Scalar::from_f64(DType::F32, number);
        let number = s.splat_as(number, ConstantRole::Argument, [rows - first, columns]);
        let cut = s.binary(BinaryOp::Mul, cut, number);
        let padded = s.pad(cut, [first, 0], Scalar::from_f64(DType::F32, 0.0), [rows, columns]);
        let sums = s.reduce(ReduceOp::Sum, y, [1]);
        Sizes::of(&s.outputs([padded, sums])).unwrap()
    }

    #[test]
    fn what_differs_in_sizes_is_one_structure() {
        let base = sizes([50, 9, 20, 100], 0.3);
        assert_eq!(base.numbers, [50, 20, 100, 41, 9]);
        assert_eq!(base.scalars, [Scalar::from_f64(DType::F32, 0.3)]);
        for (same, number) in [([60, 10, 20, 100], 0.3), ([50, 9, 17, 65], 1e9)] {
            assert_eq!(sizes(same, number).key, base.key, "{same:?} {number}");
        }
        let others = [
            ([65, 9, 20, 100], 0.3),  // of another class
            ([50, 17, 20, 100], 0.3), // it begins in another one
            ([50, 4, 20, 100], 0.3),  // spelled out
            ([50, 9, 33, 100], 0.3),
            ([60, 20, 20, 100], 0.3), // equal to another
            ([50, 9, 20, 100], -0.3),
            ([50, 9, 20, 100], 1.0),
            ([50, 9, 20, 100], 0.25),
            ([50, 9, 20, 100], f64::NAN),
        ];
        for (other, number) in others {
            assert_ne!(sizes(other, number).key, base.key, "{other:?} {number}");
        }
    }

    #[test]
    fn equally_many_elements_are_part_of_the_structure() {
        let key = |rows: usize, other: usize| {
            let mut s = Sketch::new();
            let (x, y) = (s.input([rows, 24], DType::F32), s.input([other], DType::F32));
            Sizes::of(&s.outputs([x, y])).unwrap().key
        };
        assert_eq!(key(50, 1201), key(51, 1202));
        assert_ne!(key(50, 1201), key(50, 1200));
    }

    #[test]
    fn sizes_are_put_in_the_place_of_others() {
        let mut s = Sketch::new();
        let x = s.input([50, 3], DType::F32);
        let y = s.slice(x, [9, 1], [1, 1], [41, 2]);
        let graph = s.outputs([y]);
        let own = Sizes::of(&graph).unwrap();
        let other = with_sizes(&graph, &own, &[60, 10, 50], &[]);
        let numbers = |graph: &Graph| -> Vec<i64> {
            graph.nodes().flat_map(|id| numbers_of(graph.node(id)).collect::<Vec<_>>()).collect()
        };
        assert_eq!(own.numbers, [50, 41, 9]);
        assert_eq!(numbers(&graph), [50, 3, 41, 2, 9, 1]);
        assert_eq!(numbers(&other), [60, 3, 10, 2, 50, 1]);
    }

    #[test]
    fn what_is_computed_of_numbers_alone_is_noticed() {
        let computes = |with_values: bool| {
            let mut s = Sketch::new();
            let number = |s: &mut Sketch, value: f64| {
                s.splat_as(Scalar::from_f64(DType::F32, value), ConstantRole::Argument, [7])
            };
            let (a, b) = (number(&mut s, 0.3), number(&mut s, 0.7));
            let a = if with_values { s.input([7], DType::F32) } else { a };
            let y = s.binary(BinaryOp::Lt, a, b);
            Sizes::of(&s.outputs([y])).unwrap().computes_scalars
        };
        assert_eq!([computes(true), computes(false)], [false, true]);
    }
}
