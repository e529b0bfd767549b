//! Positions along each axis of those that are counted through all axes.

use super::gather::needs_index;
use crate::tensor::arguments::call::Call;
use crate::{DType, Result, Shape, Tensor};

impl Tensor {
    /// Where these positions, counted through all axes of a shape (row-major), are along each of its axes: `I64`s of this
    /// tensor's shape. What is outside of the shape is counted around it, as in PyTorch.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[1.0f32, 5.0, 2.0, 9.0, 0.0, 3.0], [2, 3]);
    /// let place = x.argmax(..).unravel_index([2, 3])?;
    /// assert_eq!((place[0].item::<i64>()?, place[1].item::<i64>()?), (1, 0));
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    ///
    /// # Errors
    /// The first error in the tensor's history; no integers, or a shape without elements.
    #[track_caller]
    pub fn unravel_index(&self, shape: impl Into<Shape>) -> Result<Vec<Tensor>> {
        let (call, shape) = (Call::here("unravel_index"), shape.into());
        call.compose(|| {
            needs_index(call, self)?;
            call.needs_addressable(&shape)?;
            match shape.elements() {
                0 => call.fail(format!("shape {shape} has no positions")),
                _ => Ok(along_each(&self.cast(DType::I64), &shape)),
            }
        })
    }
}

/// `I64` positions through all axes of a shape, along each of them.
fn along_each(flat: &Tensor, shape: &Shape) -> Vec<Tensor> {
    let mut stride = 1;
    let mut columns: Vec<Tensor> = Vec::new();
    for extent in shape.iter().rev().map(|&extent| extent.max(1)) {
        columns.push(flat.floor_divide(stride as i64).remainder(extent as i64));
        stride *= extent;
    }
    columns.reverse();
    columns
}
