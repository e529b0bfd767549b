//! What values and reductions go over, in its simplest form: the same is the same whatever its shape looks like.

use smallvec::SmallVec;

use super::NodeId;
use crate::Shape;

/// The operation that decides what a kernel goes over; whatever feeds it is its prologue, and what follows its epilogue.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum Hero {
    /// None does: each result is computed by itself.
    #[default]
    Elements,
    /// A reduction that threads share: rows.
    Reduction(NodeId),
    /// A scan or a recurrence: lines, in order.
    Scan(NodeId),
    /// A scatter: what is combined, and the results.
    Scatter(NodeId),
}

impl Hero {
    /// The reduction that threads share.
    pub(crate) fn reduction(self) -> Option<NodeId> {
        match self {
            Hero::Reduction(id) => Some(id),
            Hero::Elements | Hero::Scan(_) | Hero::Scatter(_) => None,
        }
    }

    /// The scan or recurrence.
    pub(crate) fn scan(self) -> Option<NodeId> {
        match self {
            Hero::Scan(id) => Some(id),
            Hero::Elements | Hero::Reduction(_) | Hero::Scatter(_) => None,
        }
    }
}

/// Positions in row-major order, as their axes divide them.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Domain {
    elements: usize,
    /// How far apart neighbours of each axis of more than one position are, outermost first.
    strides: SmallVec<[usize; 6]>,
}

impl Domain {
    pub(crate) fn new(shape: &Shape) -> Domain {
        let strides = shape.strides();
        let long = shape.iter().zip(&strides).filter(|(extent, _)| **extent != 1);
        Domain { elements: shape.elements(), strides: long.map(|(_, &stride)| stride).collect() }
    }

    /// Whether loops over some axes are loops over either's: the axes of the one divide those of the other.
    pub(crate) fn fits(&self, other: &Domain) -> bool {
        if self.elements != other.elements {
            return false;
        }
        let (mut a, mut b) = (self.strides.iter().peekable(), other.strides.iter().peekable());
        let mut before = usize::MAX;
        loop {
            let largest = match (a.peek(), b.peek()) {
                (None, None) => return true,
                (Some(&&x), Some(&&y)) => x.max(y),
                (Some(&&x), None) | (None, Some(&&x)) => x,
            };
            if before != usize::MAX && largest > 0 && before % largest != 0 {
                return false;
            }
            a.next_if(|&&x| x == largest);
            b.next_if(|&&x| x == largest);
            before = largest;
        }
    }
}

/// A shape whose axes divide those of all of these, which fit each other.
pub(crate) fn common<'a>(shapes: impl IntoIterator<Item = &'a Shape>) -> Shape {
    let mut shapes = shapes.into_iter();
    let Some(first) = shapes.next() else { return Shape::scalar() };
    let own = Domain::new(first);
    let mut strides = own.strides.clone();
    shapes.for_each(|shape| strides.extend(Domain::new(shape).strides));
    strides.sort_unstable_by(|a, b| b.cmp(a));
    strides.dedup();
    if strides == own.strides || own.elements == 0 {
        return first.clone();
    }
    let outer = std::iter::once(own.elements).chain(strides.iter().copied());
    outer.zip(&strides).map(|(outer, &inner)| outer / inner).collect()
}

/// The extents of rows in their simplest form, outermost first, and whether each is reduced.
pub(crate) type Roles = SmallVec<[(u64, bool); 4]>;

/// The axes of a shape some of which are reduced, neighbours of one role as one.
pub(crate) fn roles(full: &Shape, axes: &[usize]) -> Roles {
    let mut roles = Roles::new();
    for (axis, &extent) in full.iter().enumerate().filter(|(_, extent)| **extent != 1) {
        let is_reduced = axes.contains(&axis);
        match roles.last_mut() {
            Some((last, role)) if *role == is_reduced => *last = last.saturating_mul(extent as u64),
            _ => roles.push((extent as u64, is_reduced)),
        }
    }
    roles
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn domains_fit_whose_axes_divide_each_other() {
        let fits = |a: &[usize], b: &[usize]| {
            let (a, b) = (Domain::new(&Shape::from(a)), Domain::new(&Shape::from(b)));
            assert_eq!(a.fits(&b), b.fits(&a));
            a.fits(&b)
        };
        assert!(
            fits(&[3], &[3, 1]) && fits(&[1, 3], &[3]) && fits(&[6, 4], &[24]) && fits(&[6, 4], &[2, 12])
        );
        assert!(fits(&[0, 4], &[4, 0]) && fits(&[], &[1, 1]) && fits(&[100, 200], &[200, 100]));
        assert!(!fits(&[3, 7], &[7, 3]) && !fits(&[6, 4], &[4, 5]));
    }

    #[test]
    fn the_common_shape_has_the_axes_of_all() {
        let of = |shapes: &[&[usize]]| common(&shapes.iter().map(|&s| Shape::from(s)).collect::<Vec<_>>());
        assert_eq!(of(&[&[3, 1], &[1, 3]]), Shape::from([3, 1]));
        assert_eq!(of(&[&[24], &[6, 1, 4], &[2, 12]]), Shape::from([2, 3, 4]));
        assert_eq!(of(&[&[], &[1]]), Shape::scalar());
    }

    #[test]
    fn rows_are_found_in_their_simplest_form() {
        let of = |shape: &[usize], axes: &[usize]| roles(&Shape::from(shape), axes).to_vec();
        assert_eq!(of(&[6, 4], &[1]), [(6, false), (4, true)]);
        assert_eq!(of(&[2, 3, 1, 2, 2], &[2, 3, 4]), of(&[6, 4], &[1]));
        assert_eq!(of(&[2, 3, 4], &[0, 2]), [(2, true), (3, false), (4, true)]);
        assert_eq!(of(&[1, 1], &[0]), []);
    }
}
