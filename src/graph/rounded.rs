//! Graphs that differ in extents as one: a batch of another size, a cache that has grown by a row. So do what has grown along
//! another axis, what it has grown from, and rows of another length, unless they are cut, padded or divided.
//!
//! Which operations share a kernel is decided for rounded extents, so that it is decided once for all that round alike,
//! whichever of them comes first. Kernels are made for the extents as they are.

use std::collections::BTreeSet;

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::op::{Op, View};
use super::{Graph, NodeId, verify};

/// The longest inner extent that is rounded.
const LONGEST: usize = 1 << 14;

/// The same graph with rounded extents where they are outermost wherever they occur, those of what grows, and those that every
/// operation goes over as a whole; `None` if there are none, or if what is rounded does not fit together.
pub(crate) fn rounded(graph: &Graph) -> Option<Graph> {
    let outermost = Extents::of(graph);
    let mut extents = outermost.with_whole(graph).unwrap_or(outermost);
    while !extents.0.is_empty() {
        let result = apply(graph, &extents);
        let Some(broken) = verify::first_broken(&result) else { return Some(result) };
        // What does not fit stays as it is, such as heads that are a part of features.
        let before = extents.0.len();
        for id in graph.operands(broken).into_iter().chain([broken]) {
            graph.node(id).shape.iter().for_each(|extent| {
                extents.0.remove(extent);
            });
        }
        if extents.0.len() == before {
            return None;
        }
    }
    None
}

fn apply(graph: &Graph, extents: &Extents) -> Graph {
    graph.clone().map_nodes(|id, node| {
        node.shape = node.shape.iter().map(|&extent| extents.rounded(extent)).collect();
        let from = graph.operands(id).first().map(|&operand| &graph.node(operand).shape);
        match (&mut node.op, from) {
            (Op::View(View::Slice { starts, steps }), Some(from)) => {
                // As far to the end as it was, or as there are positions.
                for (axis, (start, &step)) in starts.iter_mut().zip(&*steps).enumerate() {
                    let reach = step * (node.shape[axis] as i64 - 1);
                    let last = extents.rounded(from[axis]) as i64 - 1;
                    *start = (*start).min(last - reach.max(0)).max(-reach.min(0));
                }
            }
            (Op::View(View::Pad { before, .. }), Some(from)) => {
                for (axis, before) in before.iter_mut().enumerate() {
                    let border = node.shape[axis].saturating_sub(extents.rounded(from[axis]));
                    *before = extents.rounded(*before).min(border);
                }
            }
            (Op::Scatter { extent, .. } | Op::Sort { extent, .. }, _) => *extent = extents.rounded(*extent),
            _ => {}
        }
    })
}

/// What each extent that is rounded becomes.
#[derive(Clone)]
struct Extents(FxHashMap<usize, usize>);

impl Extents {
    fn of(graph: &Graph) -> Extents {
        let (mut outermost, mut inner) = (FxHashSet::default(), FxHashSet::default());
        for id in graph.nodes() {
            let mut extents = graph.node(id).shape.iter().copied().filter(|&extent| extent > 1);
            outermost.extend(extents.next());
            inner.extend(extents);
        }
        let mut extents: Vec<usize> = outermost.difference(&inner).copied().collect();
        extents.extend(growing(graph));
        extents.sort_unstable();
        extents.dedup();
        let all = graph.nodes().flat_map(|id| graph.node(id).shape.iter().copied());
        let others: FxHashSet<usize> = all.filter(|extent| extents.binary_search(extent).is_err()).collect();
        let mut result: FxHashMap<usize, usize> = FxHashMap::default();
        let mut above: Option<(usize, usize)> = None;
        for extent in extents.into_iter().rev() {
            // What grows and what it has grown to are alike.
            let rounded = match above {
                Some((next, rounded)) if next - extent <= (extent / 8).max(1) => rounded,
                _ => round(extent, &others),
            };
            above = Some((extent, rounded));
            result.insert(extent, rounded);
        }
        // Reshaping keeps the number of elements.
        let mut multiples: Vec<(usize, usize)> = graph
            .nodes()
            .filter(|&id| graph.node(id).op == Op::View(View::Reshape))
            .filter_map(|id| {
                let of = |id: NodeId| first(&graph.node(id).shape);
                let (a, b) = (of(id)?, of(graph.operands(id)[0])?);
                Some((a.max(b), a.min(b))).filter(|(large, small)| large > small && large % small == 0)
            })
            .collect();
        multiples.sort_unstable();
        for (large, small) in multiples {
            if let (true, Some(&rounded)) = (result.contains_key(&large), result.get(&small)) {
                result.insert(large, large / small * rounded);
            }
        }
        // What is read at several distances is as much longer than these as it was: alike, its neighbours would be itself.
        for (least, most) in stencils(graph) {
            let Some(&rounded) = result.get(&least) else { continue };
            let between = result.iter_mut().filter(|(extent, _)| (least..=most).contains(*extent));
            between.for_each(|(extent, to)| *to = rounded + (extent - least));
        }
        Extents(result)
    }

    /// The same with extents along inner axes that are never cut, padded or divided; `None` if there are none.
    fn with_whole(&self, graph: &Graph) -> Option<Extents> {
        let whole = whole(graph).filter(|extent| !self.0.contains_key(extent));
        let whole: BTreeSet<usize> = whole.collect();
        let all = graph.nodes().flat_map(|id| graph.node(id).shape.iter().copied());
        let others = all.filter(|extent| !whole.contains(extent)).map(|extent| self.rounded(extent));
        let others: FxHashSet<usize> = others.collect();
        let (mut result, mut last) = (self.clone(), 0);
        for extent in whole {
            // Different extents stay different.
            let least = extent.next_power_of_two();
            let free = [least, 2 * least].into_iter().find(|&to| to > last && !others.contains(&to));
            if let Some(rounded) = free {
                last = rounded;
                result.0.insert(extent, rounded);
            }
        }
        (result.0.len() > self.0.len()).then_some(result)
    }

    fn rounded(&self, extent: usize) -> usize {
        self.0.get(&extent).copied().unwrap_or(extent)
    }
}

/// How far a stencil reaches, at most.
const REACH: usize = 16;

/// From the least to the greatest extents that slices cut a little from the front of, ascending, none within another's.
fn stencils(graph: &Graph) -> Vec<(usize, usize)> {
    let mut found: Vec<(usize, usize)> = Vec::new();
    for id in graph.nodes() {
        let Op::View(View::Slice { starts, steps }) = &graph.node(id).op else { continue };
        let (to, from) = (&graph.node(id).shape, &graph.node(graph.operands(id)[0]).shape);
        let axes = (0..to.rank()).filter(|&axis| starts[axis] > 0 && steps[axis] == 1);
        let cuts = axes.map(|axis| (to[axis], from[axis]));
        found.extend(cuts.filter(|(to, from)| from - to <= REACH.min(to / 8)));
    }
    found.sort_unstable();
    let mut result: Vec<(usize, usize)> = Vec::new();
    for (least, most) in found {
        match result.last_mut() {
            Some(last) if least <= last.1 => last.1 = last.1.max(most),
            _ => result.push((least, most)),
        }
    }
    result
}

/// Extents along inner axes of what a little is joined to, and of what that becomes.
fn growing(graph: &Graph) -> Vec<usize> {
    /// Where parts begin and end along an axis of an extent, and whether one is cut from something.
    #[derive(Default)]
    struct Join {
        parts: SmallVec<[(usize, usize); 2]>,
        is_cut: bool,
    }
    let mut joins: FxHashMap<(usize, usize), Join> = FxHashMap::default();
    for id in graph.nodes() {
        let Op::View(View::Pad { before, .. }) = &graph.node(id).op else { continue };
        let (shape, operand) = (&graph.node(id).shape, graph.operands(id)[0]);
        let is_cut = matches!(graph.node(operand).op, Op::View(View::Slice { .. }));
        let from = &graph.node(operand).shape;
        let is_inner = |&axis: &usize| first(&shape[..axis]).is_some();
        for axis in (0..shape.rank()).filter(is_inner).filter(|&axis| from[axis] != shape[axis]) {
            let join = joins.entry((axis, shape[axis])).or_default();
            let part = (before[axis], before[axis] + from[axis]);
            if !join.parts.contains(&part) {
                join.parts.push(part);
            }
            join.is_cut |= is_cut;
        }
    }
    let mut extents = Vec::new();
    for (&(_, extent), Join { parts, is_cut }) in &joins {
        let [a, b] = parts[..] else { continue };
        let (first, second) = (a.min(b), a.max(b));
        let is_join = first.0 == 0 && first.1 == second.0 && second.1 == extent && !is_cut;
        let length = (first.1 - first.0).max(second.1 - second.0);
        if is_join && length > 1 && extent - length <= (length / 8).max(1) {
            extents.extend([extent, length]);
        }
    }
    extents
}

/// Extents along inner axes that every operation goes over from the first position to the last. Those of up to four positions
/// are spelled out by kernels, longer rows than these are kept on a chip or not by their length, and multiples of 256 are
/// features, which do not grow.
fn whole(graph: &Graph) -> impl Iterator<Item = usize> {
    let (mut inner, mut others) = (FxHashSet::default(), FxHashSet::default());
    for id in graph.nodes() {
        let node = graph.node(id);
        inner.extend(node.shape.iter().copied().filter(|&extent| extent > 1).skip(1));
        let from = graph.operands(id).first().map_or(&[][..], |&operand| &graph.node(operand).shape);
        let view = match &node.op {
            Op::View(view) => view,
            // Rows along several axes are as long as all of these together.
            Op::Reduce { axes, .. } if axes.iter().map(|&axis| from[axis]).product::<usize>() > LONGEST => {
                others.extend(axes.iter().map(|&axis| from[axis]));
                continue;
            }
            _ => continue,
        };
        match view {
            View::Permute(_) | View::Expand => {}
            View::Slice { .. } | View::Pad { .. } => {
                let changed = from.iter().zip(node.shape.iter()).filter(|(from, to)| from != to);
                others.extend(changed.flat_map(|(&from, &to)| [from, to]));
            }
            View::Reshape | View::Window { .. } => {
                let count =
                    |shape: &[usize], extent: usize| shape.iter().filter(|&&own| own == extent).count();
                let is_kept = |extent: usize| count(from, extent) == count(&node.shape, extent);
                others
                    .extend(from.iter().chain(node.shape.iter()).copied().filter(|&extent| !is_kept(extent)));
            }
        }
    }
    let may_grow = |&extent: &usize| (5..=LONGEST).contains(&extent) && !extent.is_multiple_of(256);
    inner.into_iter().filter(move |extent| !others.contains(extent) && may_grow(extent))
}

/// The outermost extent above 1.
fn first(shape: &[usize]) -> Option<usize> {
    shape.iter().copied().find(|&extent| extent > 1)
}

/// Up to the next power of two, as long as there are few; then to the middle between two powers of four. What would be equal to an
/// extent that stays what it is, such as that of a head's features, is halfway to the next power of two, or from the one before.
fn round(extent: usize, others: &FxHashSet<usize>) -> usize {
    let (rounded, another) = match extent {
        ..=16 => (extent.next_power_of_two(), extent.next_power_of_two() / 4 * 3),
        _ => {
            let middle = 1 << ((extent - 1).ilog2() | 1);
            (middle, middle / 2 * 3)
        }
    };
    if extent > 4 && others.contains(&rounded) && !others.contains(&another) { another } else { rounded }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::sketch::Sketch;
    use crate::{BinaryOp, DType, ReduceOp, Scalar};

    #[test]
    fn extents_round_to_few() {
        let none = FxHashSet::default();
        let rounded: Vec<usize> =
            [1, 2, 3, 5, 8, 9, 16, 17, 64, 65, 256, 257, 1024, 1025].map(|n| round(n, &none)).to_vec();
        assert_eq!(rounded, [1, 2, 4, 8, 8, 16, 16, 32, 32, 128, 128, 512, 512, 2048]);
        let others = FxHashSet::from_iter([8, 32, 128, 192]);
        assert_eq!([5, 8, 9, 40, 64, 65].map(|n| round(n, &others)), [6, 6, 16, 48, 48, 128]);
    }

    /// The sum of each row, or of each column, of n rows of 7.
    fn sums(rows: usize, axis: usize) -> Graph {
        let mut s = Sketch::new();
        let x = s.input([rows, 7], DType::F32);
        let y = s.reduce(ReduceOp::Sum, x, [axis]);
        s.outputs([y])
    }

    #[test]
    fn graphs_of_alike_extents_are_one() {
        let shapes = |graph: Graph| {
            let rounded = rounded(&graph).unwrap_or(graph);
            rounded.nodes().map(|id| rounded.node(id).shape.clone()).collect::<Vec<_>>()
        };
        for axis in [0, 1] {
            assert_eq!(shapes(sums(65, axis)), shapes(sums(256, axis)));
            assert_ne!(shapes(sums(65, axis)), shapes(sums(257, axis)));
            assert!(rounded(&sums(128, axis)).is_some(), "what is round is like what is rounded to it");
        }
    }

    #[test]
    fn rows_of_other_lengths_are_alike() {
        let extents = |rows: usize, axis: usize, columns: usize| {
            let mut s = Sketch::new();
            let x = s.input([rows, columns], DType::F32);
            let y = s.reduce(ReduceOp::Sum, x, [axis]);
            let graph = s.outputs([y]);
            let rounded = rounded(&graph).unwrap_or(graph);
            rounded.nodes().next().map(|id| rounded.node(id).shape.to_vec()).unwrap()
        };
        assert_eq!(extents(6, 1, 70), [8, 128]);
        assert_eq!(extents(6, 1, 70), extents(6, 1, 128));
        assert_ne!(extents(6, 1, 70), extents(6, 1, 129));
        // Spelled out, and features.
        assert_eq!([extents(6, 1, 3), extents(6, 1, 768)], [[8, 3], [8, 768]]);
        // Another extent than the rows stays another one.
        assert_eq!(extents(100, 1, 70), [128, 256]);
        assert_eq!(extents(70, 0, 70), [128, 128]);
    }

    #[test]
    fn what_is_cut_or_divided_is_what_it_is() {
        let columns = |graph: Graph| {
            let rounded = rounded(&graph).unwrap_or(graph);
            rounded.nodes().map(|id| rounded.node(id).shape[1]).collect::<Vec<_>>()
        };
        let mut s = Sketch::new();
        let x = s.input([5, 70], DType::F32);
        let y = s.slice(x, [0, 1], [1, 1], [5, 69]);
        assert_eq!(columns(s.outputs([y])), [70, 69]);
        let mut s = Sketch::new();
        let x = s.input([5, 70, 30], DType::F32);
        let y = s.reshape(x, [5, 35, 60]);
        assert_eq!(columns(s.outputs([y])), [70, 35]);
    }

    /// As if neighbours were one, a stencil would compute nothing anew.
    #[test]
    fn neighbours_stay_neighbours() {
        let of_rows = |rows: usize| {
            let mut s = Sketch::new();
            let x = s.input([rows, 70], DType::F32);
            let padded = s.pad(x, [2, 0], Scalar::from_f64(DType::F32, 0.0), [rows + 4, 70]);
            let [a, b] = [1, 4].map(|first| s.slice(padded, [first, 0], [1, 1], [rows, 70]));
            let y = s.binary(BinaryOp::Sub, b, a);
            let graph = rounded(&s.outputs([y])).unwrap();
            let starts = |id| match &graph.node(id).op {
                Op::View(View::Slice { starts, .. }) => Some(starts[0]),
                _ => None,
            };
            let rows = graph.nodes().map(|id| graph.node(id).shape[0]).collect::<Vec<_>>();
            (rows, graph.nodes().filter_map(starts).collect::<Vec<_>>())
        };
        assert_eq!(of_rows(300), (vec![512, 516, 512, 512, 512], vec![1, 4]));
        assert_eq!(of_rows(300), of_rows(400));
    }

    /// Some columns joined to others, of five rows.
    fn joined(columns: usize, more: usize) -> Graph {
        let mut s = Sketch::new();
        let (a, b) = (s.input([5, columns], DType::F32), s.input([5, more], DType::F32));
        let (zero, shape) = (Scalar::from_f64(DType::F32, 0.0), [5, columns + more]);
        let (a, b) = (s.pad(a, [0, 0], zero, shape), s.pad(b, [0, columns], zero, shape));
        let y = s.binary(BinaryOp::Add, a, b);
        s.outputs([y])
    }

    #[test]
    fn what_grows_along_an_inner_axis_is_alike() {
        let columns = |graph: Graph| {
            let rounded = rounded(&graph).unwrap_or(graph);
            rounded.nodes().map(|id| rounded.node(id).shape[1]).collect::<Vec<_>>()
        };
        assert_eq!(columns(joined(100, 1)), [128, 1, 128, 128, 128]);
        assert_eq!(columns(joined(90, 1)), columns(joined(128, 1)));
        // Two of a size are a join like any other.
        assert_eq!(columns(joined(100, 60)), [100, 60, 160, 160, 160]);
    }
}
