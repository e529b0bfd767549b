//! Graphs built by hand for this module's tests.

use std::fmt::Debug;

use lazuli_reference::{Element, Values};

use super::evaluate;
use crate::graph::op::{Constant, ConstantRole, Op};
use crate::graph::{Graph, Node, NodeId};
use crate::{DType, Result, Scalar, Shape, SourceLocation};

/// Data with a shape.
#[derive(Clone)]
pub(super) struct Data {
    values: Values,
    shape: Shape,
}

pub(super) fn tensor<T: Element>(elements: &[T], shape: impl Into<Shape>) -> Data {
    Data { values: T::wrap(elements.to_vec()), shape: shape.into() }
}

pub(super) fn bytes_of<T: Element>(elements: &[T]) -> Vec<u8> {
    T::wrap(elements.to_vec()).bytes().to_vec()
}

pub(super) fn constant(value: Scalar) -> Op {
    Op::Constant(Constant { value, role: ConstantRole::Argument })
}

#[derive(Default)]
pub(super) struct Builder {
    graph: Graph,
    inputs: Vec<Vec<u8>>,
}

impl Builder {
    pub(super) fn input(&mut self, data: Data) -> NodeId {
        self.inputs.push(data.values.bytes().to_vec());
        self.add(Op::Input(self.inputs.len() - 1), &[], data.shape, data.values.dtype())
    }

    pub(super) fn add(
        &mut self,
        op: Op,
        operands: &[NodeId],
        shape: impl Into<Shape>,
        dtype: DType,
    ) -> NodeId {
        let (shape, origin, location) = (shape.into(), op.name(), SourceLocation::caller());
        self.graph.add(Node { op, shape, dtype, origin, location }, operands)
    }

    pub(super) fn try_run(&self, outputs: &[NodeId]) -> Result<Vec<Vec<u8>>> {
        let mut graph = self.graph.clone();
        graph.set_outputs(outputs.to_vec());
        let inputs: Vec<&[u8]> = self.inputs.iter().map(Vec::as_slice).collect();
        Ok(evaluate(&graph, &inputs)?.iter().map(|buffer| buffer.as_slice().to_vec()).collect())
    }

    pub(super) fn run(&self, outputs: &[NodeId]) -> Vec<Vec<u8>> {
        self.try_run(outputs).unwrap()
    }
}

/// One operation's result as elements of type `U`, which gives its dtype.
pub(super) fn try_apply<U: Element>(op: Op, operands: &[Data], shape: impl Into<Shape>) -> Result<Vec<U>> {
    let dtype = U::wrap(Vec::new()).dtype();
    let mut builder = Builder::default();
    let operands: Vec<NodeId> = operands.iter().map(|operand| builder.input(operand.clone())).collect();
    let result = builder.add(op, &operands, shape, dtype);
    let bytes = builder.try_run(&[result])?.remove(0);
    Ok(U::unwrap(&Values::from_bytes(dtype, &bytes)).unwrap().to_vec())
}

pub(super) fn apply<U: Element>(op: Op, operands: &[Data], shape: impl Into<Shape>) -> Vec<U> {
    try_apply(op, operands, shape).unwrap()
}

pub(super) fn generate<U: Element>(op: Op, shape: impl Into<Shape>) -> Vec<U> {
    apply(op, &[], shape)
}

/// Asserts equality to the sign of zero, with NaN equal to NaN.
#[track_caller]
pub(super) fn same<T: Debug>(actual: &[T], expected: &[T]) {
    assert_eq!(format!("{actual:?}"), format!("{expected:?}"));
}

/// Asserts a relative difference of no more than a few units of the last place of an f64.
#[track_caller]
pub(super) fn close(actual: &[f64], expected: &[f64]) {
    assert_eq!(actual.len(), expected.len());
    for (a, e) in actual.iter().zip(expected) {
        assert!((a - e).abs() <= 1e-15 * e.abs().max(1e-3), "{actual:?} is not {expected:?}");
    }
}
