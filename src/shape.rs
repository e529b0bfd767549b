//! Tensor shapes: extents, strides and broadcasting.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;

use smallvec::SmallVec;

/// The extents of a tensor, outermost dimension first. A 0-d tensor has no extents and one element.
///
/// ```
/// use lazuli::Shape;
/// let shape = Shape::from([2, 3, 4]);
/// assert_eq!(shape.elements(), 24);
/// assert_eq!(shape.broadcast(&Shape::from([3, 1])), Some(Shape::from([2, 3, 4])));
/// assert_eq!(shape.to_string(), "[2, 3, 4]");
/// ```
#[derive(Eq, PartialOrd, Ord, Default)]
pub struct Shape(SmallVec<[usize; 6]>);

/// Recording and planning copy shapes all the time: few extents in registers, where the derived code calls functions.
impl Clone for Shape {
    #[inline]
    fn clone(&self) -> Shape {
        let few = |extents, rank| Shape(SmallVec::from_buf_and_len(extents, rank));
        match self.0[..] {
            [] => few([0; 6], 0),
            [a] => few([a, 0, 0, 0, 0, 0], 1),
            [a, b] => few([a, b, 0, 0, 0, 0], 2),
            [a, b, c] => few([a, b, c, 0, 0, 0], 3),
            [a, b, c, d] => few([a, b, c, d, 0, 0], 4),
            _ => Shape(SmallVec::from_slice(&self.0)),
        }
    }
}

/// Compared as often: a loop over few extents, where the derived code calls a function.
impl PartialEq for Shape {
    #[inline]
    fn eq(&self, other: &Shape) -> bool {
        self.0.len() == other.0.len() && self.0.iter().zip(&other.0).all(|(own, other)| own == other)
    }
}

impl Hash for Shape {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl Shape {
    /// The shape of a 0-d tensor.
    ///
    /// ```
    /// use lazuli::Shape;
    /// assert_eq!((Shape::scalar().rank(), Shape::scalar().elements()), (0, 1));
    /// ```
    pub fn scalar() -> Shape {
        Shape::default()
    }

    /// How many elements a tensor of this shape has; saturates at `usize::MAX`.
    ///
    /// ```
    /// use lazuli::Shape;
    /// assert_eq!(Shape::from([2, 3, 4]).elements(), 24);
    /// assert_eq!(Shape::from([2, 0, usize::MAX]).elements(), 0);
    /// ```
    pub fn elements(&self) -> usize {
        if self.contains(&0) {
            return 0;
        }
        self.iter().fold(1, |product: usize, &extent| product.saturating_mul(extent))
    }

    /// The number of dimensions.
    ///
    /// ```
    /// use lazuli::Shape;
    /// assert_eq!(Shape::from([2, 3, 4]).rank(), 3);
    /// ```
    pub fn rank(&self) -> usize {
        self.len()
    }

    /// Row-major strides, in elements.
    ///
    /// ```
    /// use lazuli::Shape;
    /// assert_eq!(Shape::from([2, 3, 4]).strides()[..], [12, 4, 1]);
    /// ```
    pub fn strides(&self) -> SmallVec<[usize; 6]> {
        let mut strides = SmallVec::from_elem(1, self.len());
        for axis in (0..self.len().saturating_sub(1)).rev() {
            strides[axis] = self[axis + 1].max(1).saturating_mul(strides[axis + 1]);
        }
        strides
    }

    /// The shape that both broadcast to by NumPy's rules: dimensions align at the last one, and 1 stretches.
    ///
    /// ```
    /// use lazuli::Shape;
    /// let column = Shape::from([3, 1]);
    /// assert_eq!(column.broadcast(&Shape::from([2, 1, 4])), Some(Shape::from([2, 3, 4])));
    /// assert_eq!(column.broadcast(&Shape::from([2, 4])), None); // 3 against 2
    /// ```
    pub fn broadcast(&self, other: &Shape) -> Option<Shape> {
        if self.broadcasts_to(other) {
            return Some(other.clone());
        }
        let rank = self.rank().max(other.rank());
        let extent = |shape: &Shape, axis: usize| match (axis + shape.rank()).checked_sub(rank) {
            Some(own) => shape[own],
            None => 1,
        };
        (0..rank)
            .map(|axis| match (extent(self, axis), extent(other, axis)) {
                (a, b) if a == b => Some(a),
                (1, b) => Some(b),
                (a, 1) => Some(a),
                _ => None,
            })
            .collect::<Option<SmallVec<_>>>()
            .map(Shape)
    }

    /// Whether [`Shape::broadcast`] gives the other.
    pub(crate) fn broadcasts_to(&self, other: &Shape) -> bool {
        let own = self.iter().rev().zip(other.iter().rev());
        self.rank() <= other.rank() && own.into_iter().all(|(&own, &extent)| own == extent || own == 1)
    }

    /// The extents without the given axes.
    ///
    /// ```
    /// use lazuli::Shape;
    /// assert_eq!(Shape::from([2, 3, 4]).without(&[0, 2]), Shape::from([3]));
    /// ```
    pub fn without(&self, axes: &[usize]) -> Shape {
        Shape(self.iter().enumerate().filter(|(axis, _)| !axes.contains(axis)).map(|(_, &e)| e).collect())
    }

    /// The extents with another one at `axis`.
    pub(crate) fn with_extent(&self, axis: usize, extent: usize) -> Shape {
        self.iter().enumerate().map(|(at, &own)| if at == axis { extent } else { own }).collect()
    }
}

impl Deref for Shape {
    type Target = [usize];
    fn deref(&self) -> &[usize] {
        &self.0
    }
}

/// A number's shape.
impl From<()> for Shape {
    fn from((): ()) -> Shape {
        Shape::scalar()
    }
}

impl<const N: usize> From<[usize; N]> for Shape {
    fn from(extents: [usize; N]) -> Shape {
        Shape(SmallVec::from_slice(&extents))
    }
}

impl<const N: usize> From<&[usize; N]> for Shape {
    fn from(extents: &[usize; N]) -> Shape {
        Shape(SmallVec::from_slice(extents))
    }
}

impl From<&[usize]> for Shape {
    fn from(extents: &[usize]) -> Shape {
        Shape(SmallVec::from_slice(extents))
    }
}

impl From<Vec<usize>> for Shape {
    fn from(extents: Vec<usize>) -> Shape {
        Shape(SmallVec::from_vec(extents))
    }
}

impl From<&Shape> for Shape {
    fn from(shape: &Shape) -> Shape {
        shape.clone()
    }
}

impl FromIterator<usize> for Shape {
    fn from_iter<I: IntoIterator<Item = usize>>(extents: I) -> Shape {
        Shape(extents.into_iter().collect())
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}
