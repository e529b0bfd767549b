//! Rows along several axes as rows along one.

use crate::tensor::arguments::axes::Axes;
use crate::tensor::arguments::call::{Call, kept};
use crate::{Result, Shape, Tensor};

/// A tensor whose rows are along one axis: several axes are one, row-major, and no axis is one of extent 1.
pub(super) struct Rows {
    pub(super) x: Tensor,
    pub(super) axis: isize,
    /// The shape of a result that keeps the axes.
    pub(super) kept: Shape,
}

impl Rows {
    pub(super) fn of(call: Call, x: &Tensor, axes: &Axes) -> Result<Rows> {
        let (shape, _) = x.known()?;
        let axes = call.axes(axes, shape)?;
        let kept = kept(shape, &axes);
        if let [axis] = axes[..] {
            return Ok(Rows { x: x.clone(), axis: axis as isize, kept });
        }
        let last: Vec<isize> = (0..axes.len()).map(|n| n as isize - axes.len() as isize).collect();
        let rest = shape.without(&axes);
        let count = axes.iter().map(|&axis| shape[axis]).product();
        let rows: Shape = rest.iter().copied().chain([count]).collect();
        let x = x.movedim(&axes[..], last).reshape(rows);
        Ok(Rows { x, axis: rest.rank() as isize, kept })
    }

    /// A result with the axes.
    pub(super) fn with_axes(&self, result: &Tensor) -> Tensor {
        result.reshape(&self.kept)
    }
}
