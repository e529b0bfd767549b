//! How one value reads another: an edge of the graph, the views on it included, as an index expression over the reader's
//! positions.
//!
//! A [`Map`] says at which element, in row-major order, and is over as few axes as it can do with. So it is the same for
//! readers of [3], [3, 1] and [1, 3], and for rows whose axes are one or several.

use std::cell::RefCell;

use lazuli_codegen::index::{Atom, AxisId, AxisRanges, IndexExpr};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::op::View;
use crate::Shape;

/// Index expressions, one a dimension.
pub(crate) type Indices = SmallVec<[IndexExpr; 4]>;

/// The row-major position of an element.
pub(crate) fn flatten(indices: &[IndexExpr], shape: &Shape) -> IndexExpr {
    let strides = shape.strides();
    indices
        .iter()
        .zip(&strides)
        .fold(IndexExpr::zero(), |position, (index, &stride)| position.add(&index.scale(stride as i64)))
}

/// The indices of the element at a row-major position.
pub(crate) fn unflatten(position: &IndexExpr, shape: &Shape, ranges: &AxisRanges) -> Indices {
    let position = position.simplify(ranges);
    let strides = shape.strides();
    let mut indices = Indices::new();
    // The outermost dimension needs no remainder, unless everything before it is 1 as well.
    let first = shape.iter().position(|&extent| extent > 1);
    for (axis, (&extent, &stride)) in shape.iter().zip(&strides).enumerate() {
        indices.push(match extent {
            0 | 1 => IndexExpr::zero(),
            _ => {
                let quotient = position.div(stride as i64, ranges);
                if first == Some(axis) { quotient } else { quotient.modulo(extent as i64, ranges) }
            }
        });
    }
    indices
}

/// The indices at which a view's result, of shape `to`, reads its operand, of shape `from`. `starts` is where the operand
/// begins that the result has a part of, or that has a part of the result.
pub(crate) fn through(
    view: &View,
    (to, from): (&Shape, &Shape),
    indices: &Indices,
    starts: &[IndexExpr],
    ranges: &AxisRanges,
) -> Indices {
    match view {
        View::Reshape => reshape(indices, to, from, ranges),
        View::Permute(perm) => {
            let mut inner: Indices = SmallVec::from_elem(IndexExpr::zero(), perm.len());
            for (index, &source) in indices.iter().zip(perm) {
                inner[source] = index.clone();
            }
            inner
        }
        View::Expand => {
            let lead = to.rank() - from.rank();
            let index = |(axis, &extent): (usize, &usize)| match extent {
                1 => IndexExpr::zero(),
                _ => indices[lead + axis].clone(),
            };
            from.iter().enumerate().map(index).collect()
        }
        View::Slice { steps, .. } => {
            let index = |axis: usize| indices[axis].scale(steps[axis]).add(&starts[axis]);
            (0..steps.len()).map(index).collect()
        }
        View::Window { axis, stride, dilation, .. } => {
            let mut inner = indices.clone();
            if let Some(within) = inner.pop() {
                inner[*axis] = inner[*axis].scale(*stride as i64).add(&within.scale(*dilation as i64));
            }
            inner
        }
        View::Pad { .. } => indices.iter().zip(starts).map(|(index, start)| index.sub(start)).collect(),
    }
}

/// Whether a reshape divides positions: it does more than add or leave out axes of one element.
pub(crate) fn divides(to: &Shape, from: &Shape) -> bool {
    let is_long = |extent: &&usize| **extent != 1;
    !to.iter().filter(is_long).eq(from.iter().filter(is_long))
}

/// The operand's indices of a reshape, stretch by stretch of dimensions that have as many elements before and after: what is on one side
/// of a stretch's border stays there. So an index that a border has moved is divided only where its own dimension is.
fn reshape_apart(indices: &Indices, to: &Shape, from: &Shape, ranges: &AxisRanges) -> Indices {
    if to.elements() == 0 {
        return unflatten(&flatten(indices, to), from, ranges);
    }
    let mut result = Indices::new();
    let (mut at, mut from_at) = (0, 0);
    while from_at < from.rank() {
        let (first, from_first) = (at, from_at);
        let (mut all, mut from_all) = (1, 1);
        // At least one dimension of each, and as many as it takes.
        loop {
            if all <= from_all && at < to.rank() && (all < from_all || at == first) {
                all *= to[at];
                at += 1;
            } else if from_at < from.rank() && (from_all < all || from_at == from_first) {
                from_all *= from[from_at];
                from_at += 1;
            } else {
                break;
            }
        }
        let (to, from): (Shape, Shape) = (to[first..at].into(), from[from_first..from_at].into());
        result.extend(match divides(&to, &from) {
            true => unflatten(&flatten(&indices[first..at], &to), &from, ranges),
            false => reshape(&indices[first..at].into(), &to, &from, ranges),
        });
    }
    result
}

/// The operand's indices of a reshape; dimensions that only gain or lose 1s pass through.
fn reshape(indices: &Indices, to: &Shape, from: &Shape, ranges: &AxisRanges) -> Indices {
    if divides(to, from) {
        return reshape_apart(indices, to, from, ranges);
    }
    let mut moved = to.iter().zip(indices).filter(|(extent, _)| **extent != 1).map(|(_, index)| index);
    let index = |&extent: &usize| match extent {
        1 => IndexExpr::zero(),
        _ => moved.next().cloned().unwrap_or_else(IndexExpr::zero),
    };
    from.iter().map(index).collect()
}

/// Where views begin that begin at constants.
pub(crate) fn starts(view: &View) -> Indices {
    match view {
        View::Slice { starts, .. } => starts.iter().map(|&start| IndexExpr::constant(start)).collect(),
        View::Pad { before, .. } => before.iter().map(|&before| IndexExpr::constant(before as i64)).collect(),
        View::Reshape | View::Permute(_) | View::Expand | View::Window { .. } => Indices::new(),
    }
}

/// Which element of a value each position of a reader reads.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Map {
    /// Of the reader's positions, outermost first; none is 1, and no two neighbours could be one. The n-th is
    /// `AxisId(n)`.
    extents: SmallVec<[u64; 4]>,
    /// The element, in row-major order.
    position: IndexExpr,
}

fn axis(number: usize) -> AxisId {
    AxisId(number as u32)
}

/// Axes, outermost first, and their extents.
type Axes = SmallVec<[(AxisId, u64); 4]>;

fn numbered_axes(extents: &[u64]) -> Axes {
    extents.iter().enumerate().map(|(number, &extent)| (axis(number), extent)).collect()
}

fn ranges(axes: &[(AxisId, u64)]) -> AxisRanges {
    let mut ranges = AxisRanges::new();
    axes.iter().for_each(|&(axis, extent)| ranges.set(axis, extent));
    ranges
}

/// The place of an axis that is divided as a whole, and by what.
fn divided(position: &IndexExpr, axes: &[(AxisId, u64)]) -> Option<(usize, u64)> {
    position.terms().iter().find_map(|(atom, _)| {
        let (Atom::Div(inner, by) | Atom::Mod(inner, by)) = atom else { return None };
        let [(Atom::Axis(own), 1)] = inner.terms() else { return divided(inner, axes) };
        let place = axes.iter().position(|(axis, _)| axis == own)?;
        let (by, extent) = (u64::try_from(*by).ok()?, axes[place].1);
        (inner.constant_term() == 0 && by > 1 && by < extent && extent % by == 0).then_some((place, by))
    })
}

/// Axes are taken apart at most so often.
const MOST_SPLITS: u32 = 8;

/// Axes that stand for others while these are replaced have numbers from here on.
const ASIDE: u32 = 1 << 16;

impl Map {
    /// Of a reader of this shape, whose axes are the expression's.
    pub(crate) fn new(extents: impl IntoIterator<Item = u64>, position: &IndexExpr) -> Map {
        let numbered = extents.into_iter().enumerate();
        let mut axes: Axes = numbered.map(|(number, extent)| (axis(number), extent)).collect();
        if axes.iter().any(|&(_, extent)| extent == 0) {
            return Map { extents: SmallVec::from_slice(&[0]), position: IndexExpr::zero() };
        }
        let mut position = position.simplify(&ranges(&axes));
        // What is divided is two axes.
        for fresh in ASIDE..ASIDE + MOST_SPLITS {
            let Some((place, by)) = divided(&position, &axes) else { break };
            let (outer, inner) = (axes[place].0, AxisId(fresh));
            axes[place].1 /= by;
            axes.insert(place + 1, (inner, by));
            let both = IndexExpr::axis(outer).scale(by as i64).add(&IndexExpr::axis(inner));
            position = position.substitute(outer, &both, &ranges(&axes));
        }
        // Axes of one position occur nowhere now.
        axes.retain(|(_, extent)| *extent != 1);
        for outer in (0..axes.len().saturating_sub(1)).rev() {
            let ((a, _), (b, extent)) = (axes[outer], axes[outer + 1]);
            if let Ok(inner) = i64::try_from(extent)
                && let Some(merged) = position.merged(a, b, inner, a)
            {
                position = merged;
                axes[outer].1 = axes[outer].1.saturating_mul(extent);
                axes.remove(outer + 1);
            }
        }
        let number = |old: AxisId| axis(axes.iter().position(|&(own, _)| own == old).unwrap_or(0));
        let position = position.renamed(&number);
        let extents: SmallVec<[u64; 4]> = axes.iter().map(|&(_, extent)| extent).collect();
        let position = position.simplify(&ranges(&numbered_axes(&extents)));
        Map { extents, position }
    }

    /// Each position of so many reads its own element.
    pub(crate) fn identity(elements: u64) -> Map {
        Map::new([elements], &IndexExpr::axis(axis(0)))
    }

    /// How many neighbours along the reader's innermost axis, of this extent, have one quotient where positions are divided. Where
    /// what is divided begins elsewhere than the axis does, up to `near` of them do, or one.
    fn stretch(&self, extent: u64, near: u64) -> u64 {
        let by = |(atom, _): &(Atom, i64)| match atom {
            Atom::Axis(_) => None,
            Atom::Div(_, by) | Atom::Mod(_, by) => Some(by.unsigned_abs()),
        };
        match self.position.terms().iter().filter_map(by).max() {
            None => self.extents.last().map_or(extent, |&own| own.min(extent)),
            Some(by) if by <= near => by,
            Some(_) => 1,
        }
    }

    /// Whether each position reads the element in its own place.
    pub(crate) fn is_identity(&self) -> bool {
        match self.extents[..] {
            [] => self.position == IndexExpr::zero(),
            [0] => true,
            [_] => self.position == IndexExpr::axis(axis(0)),
            _ => false,
        }
    }

    /// The map from this one's reader to what `next` reads, `next` being over the elements that this one reads.
    fn then(&self, next: &Map) -> Map {
        let own = ranges(&numbered_axes(&self.extents));
        let aside = |number: usize| AxisId(ASIDE + number as u32);
        let mut all = own.clone();
        next.extents.iter().enumerate().for_each(|(n, &extent)| all.set(aside(n), extent));
        let shape: Shape = next.extents.iter().map(|&extent| extent as usize).collect();
        let indices = unflatten(&self.position, &shape, &own);
        let mut position = next.position.renamed(&|old| AxisId(ASIDE + old.0));
        for (number, index) in indices.iter().enumerate() {
            position = position.substitute(aside(number), index, &all);
        }
        Map::new(self.extents.iter().copied(), &position)
    }

    /// How far apart the elements are that an axis reads at its first two positions.
    fn step(&self, along: usize) -> u64 {
        let at = |value: i64| self.position.evaluate(&|other| if other == axis(along) { value } else { 0 });
        at(1).abs_diff(at(0))
    }

    /// Whether neighbouring positions read different elements.
    pub(crate) fn varies_inside(&self) -> bool {
        self.extents.len().checked_sub(1).is_some_and(|inner| self.step(inner) > 0)
    }

    /// Whether neighbouring positions read elements that are apart, while those of another axis are neighbours.
    pub(crate) fn is_transposed(&self) -> bool {
        let Some(inner) = self.extents.len().checked_sub(1) else { return false };
        self.step(inner) > 1 && (0..inner).any(|outer| self.step(outer) == 1)
    }
}

/// A map by number: equal ones have the same.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct MapId(u32);

/// Maps, each once, and what two come to.
#[derive(Default, Debug)]
pub(crate) struct Maps(RefCell<Table>);

#[derive(Default, Debug)]
struct Table {
    maps: Vec<Map>,
    ids: FxHashMap<Map, MapId>,
    identities: FxHashMap<u64, MapId>,
    composed: FxHashMap<(MapId, MapId), MapId>,
}

impl Table {
    fn add(&mut self, map: Map) -> MapId {
        let next = MapId(self.maps.len() as u32);
        let id = *self.ids.entry(map.clone()).or_insert(next);
        if id == next {
            self.maps.push(map);
        }
        id
    }
}

impl Maps {
    pub(crate) fn add(&self, map: Map) -> MapId {
        self.0.borrow_mut().add(map)
    }

    pub(crate) fn identity(&self, elements: u64) -> MapId {
        let table = &mut *self.0.borrow_mut();
        if let Some(&id) = table.identities.get(&elements) {
            return id;
        }
        let id = table.add(Map::identity(elements));
        table.identities.insert(elements, id);
        id
    }

    pub(crate) fn is_identity(&self, id: MapId) -> bool {
        self.0.borrow().maps[id.0 as usize].is_identity()
    }

    pub(crate) fn stretch(&self, id: MapId, extent: u64, near: u64) -> u64 {
        self.0.borrow().maps[id.0 as usize].stretch(extent, near)
    }

    pub(crate) fn varies_inside(&self, id: MapId) -> bool {
        self.0.borrow().maps[id.0 as usize].varies_inside()
    }

    pub(crate) fn is_transposed(&self, id: MapId) -> bool {
        self.0.borrow().maps[id.0 as usize].is_transposed()
    }

    /// The map of who reads by `first` what reads by `next`.
    pub(crate) fn then(&self, first: MapId, next: MapId) -> MapId {
        let table = &mut *self.0.borrow_mut();
        if let Some(&id) = table.composed.get(&(first, next)) {
            return id;
        }
        let map = table.maps[first.0 as usize].then(&table.maps[next.0 as usize]);
        let id = table.add(map);
        table.composed.insert((first, next), id);
        id
    }
}

/// Whether a pad puts a border round an image: at both ends of several axes. What goes back to a part of a join is padded along one.
pub(crate) fn is_bordered_image(before: &[usize], lengths: &[usize], extents: &[usize]) -> bool {
    let has_both = |&axis: &usize| before[axis] > 0 && before[axis] + lengths[axis] < extents[axis];
    (0..before.len()).filter(has_both).count() > 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(extents: &[u64], coefficients: &[i64]) -> Map {
        let term = |(n, &k): (usize, &i64)| IndexExpr::axis(axis(n)).scale(k);
        let position = coefficients.iter().enumerate().map(term).fold(IndexExpr::zero(), |a, b| a.add(&b));
        Map::new(extents.iter().copied(), &position)
    }

    #[test]
    fn the_same_rows_are_the_same_whatever_their_shapes_look_like() {
        let rows = map(&[6, 4], &[1, 0]);
        assert_eq!(map(&[2, 3, 4], &[3, 1, 0]), rows);
        assert_eq!(map(&[6, 1, 2, 2], &[1, 0, 0, 0]), rows);
        assert_ne!(map(&[6, 4], &[0, 1]), rows);
        assert!(map(&[3, 1, 5], &[5, 5, 1]).is_identity() && map(&[1], &[7]).is_identity());
        assert!(!rows.is_identity() && map(&[0, 4], &[9, 9]).is_identity());
    }

    #[test]
    fn maps_compose() {
        let transposed = |rows: u64, columns: u64| map(&[rows, columns], &[1, rows as i64]);
        assert!(transposed(6, 4).then(&transposed(4, 6)).is_identity());
        // The rows of what is read in another order are its columns.
        assert_eq!(transposed(6, 4).then(&map(&[4, 6], &[1, 0])), map(&[6, 4], &[0, 1]));
        assert!(transposed(6, 4).is_transposed() && !map(&[6, 4], &[8, 2]).is_transposed());
        let identity = Map::identity(24);
        assert_eq!(identity.then(&transposed(6, 4)), transposed(6, 4));
        assert_eq!(transposed(6, 4).then(&identity), transposed(6, 4));
    }
}
