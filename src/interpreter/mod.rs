//! The reference interpreter: evaluates the graph as it was recorded, one plain loop an operation.
//!
//! It is the oracle that the passes, the fusion, the kernels and the devices are tested against, and
//! the fallback where there is no compiler. So it is written for being obviously right, and shares no code
//! with anything below the graph. What follows from the graph is here; the loops over elements are
//! [`lazuli_reference`]'s, which tests compile optimised.
//!
//! Every operation's result is rounded to its node's dtype: exactly as stated in
//! [`lazuli_codegen`]'s operations for arithmetic, and from a double-precision value for
//! transcendental functions, sums and products.

pub(crate) mod kernels;
mod operand;
mod recurrence;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod views;

use std::rc::Rc;

use lazuli_reference::{self as reference, Scan, Sort, Values};
use smallvec::SmallVec;

use operand::{Operand, broken, reported};
use recurrence::Recurrence;

use crate::graph::op::{Op, Sorted};
use crate::graph::{Graph, Node, NodeId, infer};
use crate::runtime::host::HostBuffer;
use crate::{Error, Result};

/// Values of the graph's outputs, each contiguous and row-major in its dtype. `inputs` are the
/// contiguous data of the graph's [`Op::Input`]s.
///
/// # Errors
/// [`Error::OutOfMemory`], or [`Error::Internal`] if the graph is not well-formed or an input's size is wrong.
pub(crate) fn evaluate(graph: &Graph, inputs: &[&[u8]]) -> Result<Vec<HostBuffer>> {
    let live = graph.live();
    let needed = || graph.nodes().filter(|id| live[id.index()]);
    let mut uses = vec![0u32; graph.bound()];
    for id in needed() {
        graph.operands(id).iter().for_each(|operand| uses[operand.index()] += 1);
    }
    graph.outputs().iter().for_each(|output| uses[output.index()] += 1);

    let mut values: Vec<Option<Rc<Values>>> = vec![None; graph.bound()];
    for id in needed() {
        let sources = graph.operands(id);
        let mut operands = SmallVec::<[Operand<'_>; 3]>::new();
        for &source in &sources {
            operands.push(Operand { values: value(&values, source)?, shape: &graph.node(source).shape });
        }
        let result = compute(graph.node(id), &operands, inputs)?;
        drop(operands);
        values[id.index()] = Some(result);
        for source in sources {
            uses[source.index()] -= 1;
            if uses[source.index()] == 0 {
                values[source.index()] = None;
            }
        }
    }
    graph.outputs().iter().map(|&output| HostBuffer::from_bytes(value(&values, output)?.bytes())).collect()
}

fn value(values: &[Option<Rc<Values>>], id: NodeId) -> Result<Rc<Values>> {
    values[id.index()].clone().ok_or_else(|| broken(format!("node {} has no value yet", id.index())))
}

/// The node's value, after checking that its recorded type is what the operation gives.
fn compute(node: &Node, operands: &[Operand<'_>], inputs: &[&[u8]]) -> Result<Rc<Values>> {
    let context = |message: String| broken(format!("{} at {}: {message}", node.op.name(), node.location));
    let types: SmallVec<[infer::Type; 3]> =
        operands.iter().map(|operand| (operand.shape, operand.values.dtype())).collect();
    infer::check(&node.op, &types, (&node.shape, node.dtype)).map_err(context)?;
    let room = reference::ensure_room(&node.shape, node.dtype).map_err(reported);
    room.map_err(|error| error.of_operation(node.origin, node.location))?;

    let result = match (&node.op, operands) {
        (Op::Input(slot), []) => {
            let bytes = inputs.get(*slot).ok_or_else(|| context(format!("no input {slot}")))?;
            Values::from_bytes(node.dtype, bytes)
        }
        (Op::Constant(constant), []) => Values::filled(constant.value, 1),
        (Op::Iota, []) => Values::counting(node.shape.elements()),
        (Op::Random { seed }, []) => {
            reference::uniform(*seed, node.shape.elements(), node.dtype).map_err(reported)?
        }
        (Op::Unary(op), [x]) => reference::unary(*op, &x.values).map_err(reported)?,
        (Op::Binary(op), [a, b]) => reference::binary(*op, &a.values, &b.values).map_err(reported)?,
        (Op::Select, [condition, a, b]) => {
            reference::select(&condition.values, &a.values, &b.values).map_err(reported)?
        }
        (Op::Cast, [x]) if x.values.dtype() == node.dtype => return Ok(x.values.clone()),
        (Op::Cast, [x]) => reference::cast(&x.values, node.dtype),
        (Op::View(view), [x]) => match views::view(view, &x.values, x.shape, &node.shape)? {
            Some(values) => values,
            None => return Ok(x.values.clone()),
        },
        (Op::Reduce { op, axes }, [x]) => {
            reference::reduce(*op, &x.values, x.shape, axes).map_err(reported)?
        }
        (&Op::Scan { op, axis, reverse, exclusive }, [x]) => {
            reference::scan(Scan { op, axis, reverse, exclusive }, &x.values, x.shape).map_err(reported)?
        }
        (&Op::Recurrence { axis, reverse, ref body, result }, operands) => {
            let recurrence = Recurrence { axis, reverse, body, result };
            recurrence::recurrence(&recurrence, operands, evaluate)?
        }
        (Op::Gather { axis, .. }, [x, index]) => {
            let gathered = reference::gather(&x.values, x.shape, &index.values, &node.shape, *axis);
            gathered.map_err(|error| reported_at(error, node))?
        }
        (Op::Scatter { op, axis, .. }, [x, index]) => {
            let scattered = reference::scatter(*op, &x.values, x.shape, &index.values, &node.shape, *axis);
            scattered.map_err(|error| reported_at(error, node))?
        }
        (&Op::Sort { axis, extent, descending, result }, [x]) => {
            let is_position = result == Sorted::Positions;
            reference::sort(&x.values, x.shape, Sort { axis, extent, descending, is_position })
        }
        (op, operands) => return Err(context(format!("{op:?} with {} operands", operands.len()))),
    };
    if result.len() != node.shape.elements() || result.dtype() != node.dtype {
        let (len, dtype) = (result.len(), result.dtype());
        return Err(context(format!("{len} elements of {dtype} for {} {}", node.dtype, node.shape)));
    }
    Ok(Rc::new(result))
}

/// The same of an operation whose indices may be no positions.
fn reported_at(error: reference::Error, node: &Node) -> Error {
    match error {
        reference::Error::IndexOutOfRange { index, axis, extent } => {
            Error::IndexOutOfRange { op: node.origin, index, axis, extent, location: node.location }
        }
        other => reported(other),
    }
}
