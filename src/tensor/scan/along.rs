//! What a scan goes along: its inputs, and the axis in each of them.

use crate::recording::Tensor;
use crate::tensor::arguments::call::{Call, list};
use crate::tensor::arguments::promotion::Operand;
use crate::{Result, Shape};

/// What a scan goes along.
pub(super) struct Along {
    pub(super) inputs: Vec<Input>,
    /// The axis as it was given, of a tensor of all steps.
    axis: isize,
    pub(super) length: usize,
    /// The inputs' shape together, and the axis in it, if they broadcast as they are.
    together: Option<(Shape, usize)>,
}

/// An input of all steps.
pub(super) struct Input {
    pub(super) tensor: Tensor,
    /// The axis, if it has it: else it is the same in each step.
    axis: Option<usize>,
    /// The shape of an element.
    pub(super) shape: Shape,
}

impl Input {
    /// The element of a step.
    pub(super) fn at(&self, call: Call, position: usize) -> Result<Tensor> {
        match self.axis {
            Some(axis) if self.tensor.node.shape[axis] != 1 => at(call, &self.tensor, axis, position),
            _ => call.reshape(&self.tensor, self.shape.clone()),
        }
    }
}

impl Along {
    /// Each input has the axis, counted among its own, with as many positions as the others, or one. Only one of too few axes for
    /// that has it where the input of most axes does, both aligned at their ends, or has none. So what an input is does not
    /// follow from how long it is.
    pub(super) fn of(call: Call, inputs: &[&Tensor], axis: isize) -> Result<Along> {
        let shapes: Vec<&Shape> = inputs.iter().map(|x| Ok(x.known()?.0)).collect::<Result<_>>()?;
        let Some(&longest) = shapes.iter().max_by_key(|shape| shape.rank()) else {
            return call.fail(
                "goes along its inputs, and there are none; for a number of steps alone use `iterate`",
            );
        };
        let number = call.axis(axis, longest)?;
        let aligned = |shape: &Shape| (number + shape.rank()).checked_sub(longest.rank());
        let own = |shape: &&Shape| {
            let has_it = match usize::try_from(axis) {
                Ok(axis) => axis < shape.rank(),
                Err(_) => axis.unsigned_abs() <= shape.rank(),
            };
            if has_it { call.axis(axis, shape).map(Some) } else { Ok(aligned(shape)) }
        };
        let axes: Vec<Option<usize>> = shapes.iter().map(own).collect::<Result<_>>()?;
        let extents = || shapes.iter().zip(&axes).filter_map(|(shape, axis)| Some(shape[(*axis)?]));
        let length = extents().find(|&extent| extent != 1).unwrap_or(1);
        if let Some(other) = extents().find(|&extent| extent != 1 && extent != length) {
            return call.fail(format!(
                "inputs have {length} and {other} positions along axis {axis} (shapes {}): each has that axis as one of its own; what \
                 is the same in each step is no input, the step uses it as it is",
                list(&shapes)
            ));
        }
        let is_together = shapes.iter().zip(&axes).all(|(shape, &axis)| aligned(shape) == axis);
        let input = |(x, &axis): (&&Tensor, &Option<usize>)| {
            let shape = &x.node.shape;
            let of_element = axis.map_or_else(|| shape.clone(), |axis| shape.without(&[axis]));
            Input { tensor: (*x).clone(), axis, shape: of_element }
        };
        let inputs = inputs.iter().zip(&axes).map(input).collect();
        let together = shapes.iter().try_fold(Shape::scalar(), |together, shape| together.broadcast(shape));
        let together = together.filter(|_| is_together).map(|full| (full, number));
        Ok(Along { inputs, axis, length, together })
    }

    /// The shape of a step, if its elements and carries broadcast.
    pub(super) fn with_carries(&self, inits: &[Operand]) -> Result<Option<Shape>> {
        let mut slice = Some(Shape::scalar());
        for input in &self.inputs {
            slice = slice.and_then(|slice| slice.broadcast(&input.shape));
        }
        for init in inits {
            if let Operand::Tensor(tensor) = init {
                let shape = tensor.known()?.0;
                slice = slice.and_then(|slice| slice.broadcast(shape));
            }
        }
        Ok(slice)
    }

    /// Where the axis is beside so many others.
    pub(super) fn axis_beside(&self, rank: usize) -> usize {
        match usize::try_from(self.axis) {
            Ok(axis) => axis.min(rank),
            Err(_) => (rank + 1).saturating_sub(self.axis.unsigned_abs()),
        }
    }

    /// The shape of all steps, where one has this.
    pub(super) fn of_all_steps(&self, shape: &Shape) -> Shape {
        let (before, after) = shape.split_at(self.axis_beside(shape.rank()));
        [before, &[self.length], after].concat().into()
    }

    /// The elements of all steps, each of the shape of a step.
    pub(super) fn elements(
        &self,
        call: Call,
        slice: &Shape,
        (axis, full): (usize, &Shape),
    ) -> Result<Vec<Tensor>> {
        if let Some((together, number)) = &self.together {
            let elements = self.inputs.iter().map(|input| call.expand(&input.tensor, together));
            let elements: Vec<Tensor> = elements.collect::<Result<_>>()?;
            if together == full {
                return Ok(elements);
            }
            let narrow = together.without(&[*number]);
            let wide = |x: &Tensor| repeated(x, (*number, axis), &narrow, slice);
            return Ok(call.compose(|| elements.iter().map(wide).collect()));
        }
        let wide = |input: &Input| match input.axis {
            Some(own) => repeated(&input.tensor, (own, axis), &input.shape, slice),
            None => input.tensor.broadcast_to(slice.clone()).unsqueeze(axis as isize),
        };
        let each: Vec<Tensor> = call.compose(|| self.inputs.iter().map(wide).collect());
        each.iter().map(|x| call.expand(x, full)).collect()
    }
}

/// Elements of steps of one shape for steps of a wider one, and the axis elsewhere. May only be called while a call is composed.
fn repeated(x: &Tensor, (from, to): (usize, usize), narrow: &Shape, wide: &Shape) -> Tensor {
    let ones = std::iter::repeat_n(1, wide.rank() - narrow.rank());
    let steps = x.node.shape[from];
    let apart: Vec<usize> = [steps].into_iter().chain(ones).chain(narrow.iter().copied()).collect();
    let all: Vec<usize> = [steps].into_iter().chain(wide.iter().copied()).collect();
    x.movedim(from as isize, 0).reshape(apart).broadcast_to(all).movedim(0, to as isize)
}

/// A tensor's elements at a position of an axis.
pub(super) fn at(call: Call, x: &Tensor, axis: usize, position: usize) -> Result<Tensor> {
    let slice = call.slice(x, &[(axis, (position, 1, 1))])?;
    call.reshape(&slice, x.node.shape.without(&[axis]))
}
