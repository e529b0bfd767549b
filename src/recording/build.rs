//! From tensor handles to a graph: everything recorded that the outputs need.

use rustc_hash::{FxBuildHasher, FxHashMap};
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::loan::Loan;
use super::tensor::reduced_shape;
use super::{Recipe, Sources, State, Tensor, TensorNode};
use crate::graph::op::{Constant, Op, View};
use crate::graph::{Graph, NodeId, NodeRef, Operands};
use crate::runtime::buffer::Buffer;
use crate::{BinaryOp, DType, Error, Result, Shape};

/// Most graphs have no more, and are built without moving their nodes.
const USUAL_NODES: usize = 28;

const STEP_VALUE: &str = "a value of its step was used outside of the step, where it has none";
const CALL_INPUT: &str = "an input of the function was used where it has no values: while the function is recorded, nothing can be \
     evaluated, and nothing moved to another device";
const PLACEHOLDER: &str = "it has no values: kernels of what is made of placeholders can be asked for, with explain and compile_for, and \
     nothing can be evaluated";

/// The data of inputs; `None` for what a copy will bring.
pub(crate) type Inputs = SmallVec<[Option<Buffer>; 4]>;

/// What some outputs need, as a graph or as the key of that graph, with the data of its [`Op::Input`]s.
pub(crate) struct Recording<G = Graph> {
    pub(crate) graph: G,
    pub(crate) inputs: Inputs,
    /// Of which inputs the user has given the values up.
    pub(crate) donated: SmallVec<[bool; 8]>,
    /// The most computed tensors that have kept how they were recorded, behind each other.
    pub(crate) generation: u32,
    /// What earlier evaluations computed on the way to other outputs.
    pub(crate) again: Vec<*const TensorNode>,
}

/// Records the outputs' histories as a graph. Node order follows from the expression alone (operands
/// first, outputs in the order given), not from the order of recording.
///
/// A transfer from another device that has not been carried out, or a join by copies, is an input without data; a transfer
/// from no particular device is looked through.
///
/// # Errors
/// The first error of an invalid tensor.
pub(crate) fn build(outputs: &[Tensor]) -> Result<Recording> {
    build_traced(outputs, &[])
}

/// [`build`] for what a function made of stand-ins for its inputs, which are the recording's first inputs, without data.
pub(crate) fn build_traced(outputs: &[Tensor], stand_ins: &[Tensor]) -> Result<Recording> {
    patiently(|| attempt(outputs, stand_ins, Purpose::Run))
}

/// [`build`] for who looks at kernels: placeholders are inputs without data.
pub(crate) fn build_inspected(outputs: &[Tensor]) -> Result<Recording> {
    patiently(|| attempt(outputs, &[], Purpose::Inspect))
}

/// The same for where no library makes anything: its decomposition is recorded in its place.
pub(crate) fn build_decomposed(outputs: &[Tensor], stand_ins: &[Tensor]) -> Result<Recording> {
    patiently(|| attempt(outputs, stand_ins, Purpose::InspectDecomposed))
}

/// What a graph is built for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Run,
    Inspect,
    InspectDecomposed,
}

/// Tries again when another thread has ended what the attempt met.
pub(super) fn patiently<T>(attempt: impl Fn() -> Result<Result<T, Arc<Loan>>>) -> Result<T> {
    let mut ended: Option<Arc<Loan>> = None;
    loop {
        match attempt()? {
            Ok(recording) => return Ok(recording),
            // What had ended before this attempt began has left no results.
            Err(loan) if ended.as_ref().is_some_and(|ended| Arc::ptr_eq(ended, &loan)) => {
                return Err(Error::internal("graph building", "values were given up and are lost"));
            }
            // Another thread computes some of the outputs, or has done so meanwhile: what led to them is going away.
            Err(loan) => {
                loan.wait();
                ended = Some(loan);
            }
        }
    }
}

fn attempt(
    outputs: &[Tensor],
    stand_ins: &[Tensor],
    purpose: Purpose,
) -> Result<Result<Recording, Arc<Loan>>> {
    let mut graph = Graph::with_capacity(USUAL_NODES);
    let (mut inputs, mut donated) = (Inputs::new(), SmallVec::new());
    // What stands before an operand that is not there yet.
    let mut numbers: FxHashMap<*const TensorNode, NodeId> = FxHashMap::default();
    // Holds the tensors too, so that an address cannot be given to another one meanwhile.
    let mut done: FxHashMap<*const TensorNode, (NodeId, Tensor)> =
        FxHashMap::with_capacity_and_hasher(USUAL_NODES, FxBuildHasher);
    for stand_in in stand_ins {
        inputs.push(None);
        donated.push(false);
        let id = graph.add(node_of(&stand_in.node, &Op::Input(inputs.len() - 1)).into(), &[]);
        done.insert(Arc::as_ptr(&stand_in.node), (id, stand_in.clone()));
    }
    for output in outputs {
        let mut pending = vec![output.clone()];
        while let Some(tensor) = pending.pop() {
            let key = Arc::as_ptr(&tensor.node);
            if done.contains_key(&key) {
                continue;
            }
            let place = pending.len();
            let state = tensor.node.state();
            let id = match &*state {
                State::Invalid(error) => return Err(error.clone()),
                State::Lent(loan) => return Ok(Err(loan.clone())),
                State::Evaluated(buffer, _) => {
                    inputs.push(Some(buffer.clone()));
                    donated.push(tensor.node.is_donated.load(Ordering::Relaxed));
                    graph.add(node_of(&tensor.node, &Op::Input(inputs.len() - 1)).into(), &[])
                }
                State::Recorded(recipe, sources)
                    if recipe.is_external(sources)
                        && !(purpose == Purpose::InspectDecomposed && recipe.is_routine())
                        || matches!(recipe, Recipe::Placeholder) && purpose != Purpose::Run =>
                {
                    inputs.push(None);
                    donated.push(false);
                    graph.add(node_of(&tensor.node, &Op::Input(inputs.len() - 1)).into(), &[])
                }
                State::Recorded(
                    recipe @ (Recipe::StepValue | Recipe::CallInput | Recipe::Placeholder),
                    _,
                ) => {
                    return Err(without_values(&tensor.node, recipe));
                }
                State::Recorded(recipe, sources) => {
                    if let Recipe::WithNumber { number, is_first: true, .. } = recipe {
                        numbers.entry(key).or_insert_with(|| constant(&mut graph, &tensor.node, *number));
                    }
                    let result;
                    let read = match recipe {
                        Recipe::Derived(_) => &sources[..sources.len().min(1)],
                        Recipe::Routine { number, decomposition, .. } => {
                            result = decomposition.result(*number, sources)?;
                            std::slice::from_ref(&result)
                        }
                        _ => sources,
                    };
                    let Some(operands) = finished(read, &done, &mut pending) else {
                        drop(state);
                        pending.insert(place, tensor);
                        continue;
                    };
                    match recipe {
                        Recipe::Op(op) => operation(&mut graph, &tensor.node, op, sources, operands),
                        Recipe::WithNumber { op, number, is_first } => {
                            let number = match numbers.remove(&key) {
                                Some(added) => added,
                                None => constant(&mut graph, &tensor.node, *number),
                            };
                            with_number(&mut graph, &tensor.node, *op, &operands, (number, *is_first))
                        }
                        Recipe::Filled(constant) => filled(&mut graph, &tensor.node, *constant),
                        // Stand-ins have no sources, and joins and totals are apart.
                        Recipe::Transfer
                        | Recipe::Derived(_)
                        | Recipe::Join { .. }
                        | Recipe::Total
                        | Recipe::Routine { .. }
                        | Recipe::StepValue
                        | Recipe::CallInput
                        | Recipe::Placeholder => match operands.first() {
                            Some(&source) => source,
                            None => {
                                return Err(Error::internal("graph building", "a transfer of nothing"));
                            }
                        },
                    }
                }
            };
            drop(state);
            done.insert(key, (id, tensor));
        }
    }
    let ids =
        outputs.iter().filter_map(|output| done.get(&Arc::as_ptr(&output.node)).map(|(id, _)| *id)).collect();
    graph.set_outputs(ids);
    Ok(Ok(Recording { graph, inputs, donated, generation: 0, again: Vec::new() }))
}

/// A stand-in was used where it stands for nothing.
pub(super) fn without_values(node: &TensorNode, stand_in: &Recipe) -> Error {
    let message = match stand_in {
        Recipe::StepValue => STEP_VALUE,
        Recipe::Placeholder => PLACEHOLDER,
        _ => CALL_INPUT,
    };
    Error::InvalidOperation { op: node.origin, message: message.into(), location: node.location }
}

/// The sources' nodes, or `None` after queueing those that are not there yet, the first on top.
fn finished(
    sources: &[Tensor],
    done: &FxHashMap<*const TensorNode, (NodeId, Tensor)>,
    pending: &mut Vec<Tensor>,
) -> Option<Operands> {
    let before = pending.len();
    let mut operands = Operands::new();
    for source in sources.iter().rev() {
        match done.get(&Arc::as_ptr(&source.node)) {
            Some((id, _)) => operands.push(*id),
            None => pending.push(source.clone()),
        }
    }
    operands.reverse();
    (pending.len() == before).then_some(operands)
}

/// An operation with the views that it was recorded without.
fn operation(
    graph: &mut Graph,
    tensor: &TensorNode,
    op: &Op,
    sources: &Sources,
    mut operands: Operands,
) -> NodeId {
    let node = node_of(tensor, op);
    if op.is_elementwise() {
        for (operand, source) in operands.iter_mut().zip(sources) {
            if source.node.shape != tensor.shape {
                *operand = graph.add(expansion(tensor, source.node.dtype).into(), &[*operand]);
            }
        }
    }
    match sources.first().and_then(|source| reduced_shape(op, &source.node.shape, &tensor.shape)) {
        Some(shape) => {
            let reduced = graph.add(NodeRef { shape: &shape, ..node }.into(), &operands);
            graph.add(NodeRef { op: &Op::View(View::Reshape), ..node }.into(), &[reduced])
        }
        None => graph.add(node.into(), &operands),
    }
}

/// An operation of a tensor and a number, which stands before or after it.
fn with_number(
    graph: &mut Graph,
    tensor: &TensorNode,
    op: BinaryOp,
    operands: &[NodeId],
    (number, is_first): (NodeId, bool),
) -> NodeId {
    let op = Op::Binary(op);
    let node = node_of(tensor, &op);
    let number = match tensor.shape.rank() {
        0 => number,
        _ => {
            let dtype = graph.node(number).dtype;
            graph.add(expansion(tensor, dtype).into(), &[number])
        }
    };
    let mut all = Operands::from_slice(operands);
    all.insert(if is_first { 0 } else { operands.len() }, number);
    graph.add(node.into(), &all)
}

/// A constant of the tensor's line.
fn constant(graph: &mut Graph, tensor: &TensorNode, constant: Constant) -> NodeId {
    let (shape, op) = (Shape::scalar(), Op::Constant(constant));
    let dtype = constant.value.dtype();
    graph.add(NodeRef { shape: &shape, dtype, ..node_of(tensor, &op) }.into(), &[])
}

fn filled(graph: &mut Graph, tensor: &TensorNode, number: Constant) -> NodeId {
    let id = constant(graph, tensor, number);
    match tensor.shape.rank() {
        0 => id,
        _ => graph.add(expansion(tensor, tensor.dtype).into(), &[id]),
    }
}

/// The view that reads an operand of that dtype in the tensor's shape.
pub(super) fn expansion(tensor: &TensorNode, dtype: DType) -> NodeRef<'_> {
    NodeRef { dtype, ..node_of(tensor, &Op::View(View::Expand)) }
}

pub(super) fn node_of<'a>(tensor: &'a TensorNode, op: &'a Op) -> NodeRef<'a> {
    NodeRef {
        op,
        shape: &tensor.shape,
        dtype: tensor.dtype,
        origin: tensor.origin,
        location: tensor.location,
    }
}
