//! From a group of graph nodes to one kernel: views become index expressions, pads become guards.
//!
//! A value is lowered at the index expressions at which its user wants it, so that a view costs
//! nothing: a permute swaps them, a slice scales and shifts them, a reshape flattens and unflattens
//! them. The codegen crate takes over from there; it never sees a tensor.

mod gather;
mod indices;
mod product;
mod recurrence;
mod reduction;
mod refusal;
mod scatter;
mod sort;
mod space;
mod views;

use std::sync::Arc;

use indices::{Guards, Indices};
use lazuli_codegen::index::{AxisId, AxisRanges, IndexExpr};
use lazuli_codegen::ir::{ArgumentId, AxisKind, BufferId, Kernel, ValueId, ValueOp};
use lazuli_codegen::schedule::neighbours;
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};
use smallvec::SmallVec;

use crate::error::IndexCheck;
use crate::graph::domain::Hero;
use crate::graph::maps;
use crate::graph::op::{Body, ConstantRole, Op};
use crate::graph::parameters::{Parameters, Start};
use crate::graph::{Graph, Node, NodeId, Operands};
use crate::{BinaryOp, DType, Scalar, UnaryOp};
pub(crate) use refusal::Refusal;
use refusal::{MAX_VALUES, Result};

/// Extents of reduced dimensions.
type Extents = SmallVec<[usize; 4]>;

/// A group as a kernel, and which graph nodes its buffers are.
#[derive(Clone, Debug)]
pub(crate) struct Lowered {
    pub(crate) kernel: Kernel,
    /// The node behind each input buffer, in order.
    pub(crate) inputs: Vec<NodeId>,
    /// The node behind each output buffer, in order.
    pub(crate) outputs: Vec<NodeId>,
    /// Which of the graph's parameters each argument is.
    pub(crate) arguments: Vec<usize>,
    /// What the kernel checks, by number.
    pub(crate) checks: Arc<[IndexCheck]>,
}

/// What to lower: nodes that are computed inside, and those of them that are stored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request<'a> {
    pub(crate) graph: &'a Graph,
    pub(crate) parameters: &'a Parameters,
    /// Computed nodes; free nodes (views, constants) between them need not be listed.
    pub(crate) nodes: &'a FxHashSet<NodeId>,
    /// Nodes that other kernels store and this one reads.
    pub(crate) reads: &'a [NodeId],
    /// Stored nodes, ascending.
    pub(crate) outputs: &'a [NodeId],
    /// What decides the iteration space.
    pub(crate) hero: Hero,
    pub(crate) name: &'a str,
}

/// Lowers a group.
///
/// # Errors
/// If one kernel cannot have all of it.
pub(crate) fn lower(request: &Request) -> Result<Lowered> {
    let attempt = |has_argument: bool| -> Result<Lowered> {
        let mut lowering = Lowering::new(request, has_argument);
        lowering.run()?;
        let Lowering { mut kernel, inputs, argument_parameters: arguments, checks, .. } = lowering;
        kernel.split_axes();
        kernel.unroll_stacks();
        kernel.order_rows();
        kernel.merge_axes();
        kernel.move_bits();
        Ok(Lowered { kernel, inputs, outputs: request.outputs.to_vec(), arguments, checks: checks.into() })
    };
    let mut lowered = attempt(true)?;
    if lowered.kernel.divides_below_zero() || needs_extents(&lowered.kernel) {
        // Backwards along the outermost axis, divisions stay above zero only with a known end.
        lowered = attempt(false)?;
        if lowered.kernel.divides_below_zero() {
            return Err(Refusal::DividesBelowZero);
        }
    }
    if cfg!(debug_assertions) && lowered.kernel.verify().is_err() {
        return Err(Refusal::Broken("the kernel is not well formed"));
    }
    Ok(lowered)
}

/// Whether loops are better unrolled along an axis whose extent is an argument, which only those of known extents are.
fn needs_extents(kernel: &Kernel) -> bool {
    let is_argument = |axis: &AxisId| kernel.axis(*axis).is_argument;
    let rows = kernel.axes_of_kind(AxisKind::Reduce).into_iter();
    let results = kernel.axes_of_kind(AxisKind::Map).pop();
    rows.filter(is_argument).any(|row| !kernel.divisors(row).is_empty())
        || kernel.stacked_axis(true).is_some()
        || results.filter(is_argument).is_some_and(|axis| neighbours(kernel, axis).is_some())
}

/// The guards of what is swept along some axes, all of it, though its reader may want a part: those of other axes.
///
/// # Errors
/// If one is of both: what it keeps inside along the others could not be told.
fn without(kernel: &Kernel, guards: &Guards, swept: &[AxisId]) -> Result<Guards> {
    let mut others = Guards::new();
    for guard in guards {
        let mut axes = guard.expr.axes();
        axes.retain(|axis| !kernel.is_offset(*axis));
        match axes.iter().filter(|axis| swept.contains(axis)).count() {
            0 => others.push(guard.clone()),
            count if count == axes.len() => {}
            _ => return Err(Refusal::ConditionAlong),
        }
    }
    Ok(others)
}

struct Lowering<'a> {
    request: &'a Request<'a>,
    kernel: Kernel,
    ranges: AxisRanges,
    inputs: Vec<NodeId>,
    buffers: FxHashMap<NodeId, BufferId>,
    arguments: FxHashMap<NodeId, ArgumentId>,
    argument_parameters: Vec<usize>,
    /// Where views begin, by parameter.
    offsets: FxHashMap<usize, AxisId>,
    literals: FxHashMap<Scalar, ValueId>,
    /// What was said of each check, in order of their numbers.
    checks: Vec<IndexCheck>,
    /// Computed axes by the value that says their position, and their extent.
    computed: FxHashMap<(ValueId, usize, bool), AxisId>,
    values: FxHashMap<(NodeId, Indices, Guards), ValueId>,
    guards: FxHashMap<Guards, ValueId>,
    /// Casts of factors of contractions, see [`product`].
    rounded: FxHashSet<NodeId>,
    /// Reduce axes by extents and by how many reductions they are inside of.
    reduce_axes: FxHashMap<(Extents, usize), SmallVec<[AxisId; 4]>>,
    /// The axes of the reductions around, outermost first.
    enclosing: Vec<SmallVec<[AxisId; 4]>>,
    /// The axis of the scans.
    scan_axis: Option<AxisId>,
    /// Recurrences so far.
    loops: Vec<Loop>,
    /// What the scatters share, once one is lowered.
    scattered: Option<Scattered>,
    /// The axis along which rows that are sorted are computed.
    sorted: Option<AxisId>,
    /// Whether the outermost extent is an argument of the kernel, and no constant.
    has_argument: bool,
}

/// One loop; all nodes that are results of it share it.
struct Loop {
    operands: Operands,
    body: Arc<Body>,
    reverse: bool,
    /// The position of a step.
    indices: Indices,
    /// Where in the indices the axis is.
    axis: usize,
    /// Of the body's nodes.
    values: FxHashMap<NodeId, ValueId>,
    /// What the carries are at the start of a step and at its end, where that was asked for.
    carries: Vec<Option<ValueId>>,
    next: Vec<Option<ValueId>>,
}

/// What the scatters of a kernel share.
#[derive(Clone, Copy)]
struct Scattered {
    over: AxisId,
    index: ValueId,
    check: u32,
}

impl<'a> Lowering<'a> {
    fn new(request: &'a Request<'a>, has_argument: bool) -> Lowering<'a> {
        Lowering {
            request,
            kernel: Kernel::new(request.name),
            ranges: AxisRanges::new(),
            inputs: Vec::new(),
            buffers: FxHashMap::default(),
            arguments: FxHashMap::default(),
            argument_parameters: Vec::new(),
            offsets: FxHashMap::default(),
            literals: FxHashMap::default(),
            checks: Vec::new(),
            computed: FxHashMap::default(),
            values: FxHashMap::with_capacity_and_hasher(2 * request.nodes.len(), FxBuildHasher),
            guards: FxHashMap::default(),
            rounded: FxHashSet::default(),
            reduce_axes: FxHashMap::default(),
            enclosing: Vec::new(),
            scan_axis: None,
            loops: Vec::new(),
            scattered: None,
            sorted: None,
            has_argument,
        }
    }

    fn axis(&mut self, kind: AxisKind, extent: usize, is_argument: bool) -> AxisId {
        let is_argument = is_argument && self.has_argument;
        let id = self.kernel.add_axis(kind, extent as u64, is_argument);
        match is_argument {
            true => self.ranges.set_unbounded(id),
            false => self.ranges.set(id, self.kernel.axis(id).range()),
        }
        id
    }

    fn run(&mut self) -> Result<()> {
        let graph = self.request.graph;
        let space = self.space()?;
        let mut stores = Vec::new();
        // What is stored of a row's elements is computed where the row is swept: reductions inside are the same there.
        let along = space.along(&self.kernel);
        self.enclosing.extend((!along.is_empty()).then_some(along));
        for &output in self.request.outputs {
            let own = &graph.node(output).shape;
            let (indices, shape) =
                space.of(own).ok_or(Refusal::Broken("an output does not fit the iteration space"))?;
            let position = maps::flatten(indices, shape);
            let own_indices = match own == shape {
                true => indices.clone(),
                false => maps::unflatten(&position, own, &self.ranges),
            };
            let value = self.value(output, &own_indices, &Guards::new())?;
            stores.push((output, position, value));
        }
        self.enclosing.clear();
        for (output, position, value) in stores {
            let node = graph.node(output);
            let buffer = self.kernel.add_output(node.dtype, node.shape.elements() as u64);
            self.kernel.store(buffer, position, value);
        }
        Ok(())
    }

    /// The node's value at some indices, where the guards hold.
    fn value(&mut self, id: NodeId, indices: &Indices, guards: &Guards) -> Result<ValueId> {
        let key = (id, indices.clone(), guards.clone());
        if let Some(&value) = self.values.get(&key) {
            return Ok(value);
        }
        if self.kernel.values.len() > MAX_VALUES {
            return Err(Refusal::TooManyValues);
        }
        // As deep as the group's longest chain, views included: on whatever stack the caller has.
        let value = stacker::maybe_grow(128 << 10, 2 << 20, || self.lower_node(id, indices, guards))?;
        self.values.insert(key, value);
        Ok(value)
    }

    fn lower_node(&mut self, id: NodeId, indices: &Indices, guards: &Guards) -> Result<ValueId> {
        let graph = self.request.graph;
        let node = graph.node(id);
        // A view that is an output of its own is read like any other stored value.
        let is_view = node.op.is_free() && !self.request.reads.contains(&id);
        let is_inside = self.request.nodes.contains(&id) || is_view;
        if !is_inside || matches!(node.op, Op::Input(_)) {
            return Ok(self.load(id, node, indices, guards));
        }
        let operands = graph.operands(id);
        Ok(match &node.op {
            Op::Input(_) => self.load(id, node, indices, guards),
            Op::Constant(constant) => match constant.role {
                ConstantRole::Literal => self.literal(constant.value),
                ConstantRole::Argument => {
                    let argument = self.argument(id, "c", constant.value)?;
                    let dtype = self.kernel.arguments[argument.index()].value.dtype();
                    self.kernel.add(ValueOp::Argument(argument), dtype)
                }
            },
            Op::Iota => self.kernel.add(ValueOp::Position(indices[0].clone()), DType::I64),
            Op::Random { seed } => self.random(id, *seed, node, indices)?,
            Op::Unary(op) => {
                let operand = self.value(operands[0], indices, guards)?;
                self.kernel.unary(*op, operand)
            }
            Op::Binary(op) => {
                let a = self.value(operands[0], indices, guards)?;
                let b = self.value(operands[1], indices, guards)?;
                self.kernel.binary(*op, a, b)
            }
            Op::Select => {
                let condition = self.value(operands[0], indices, guards)?;
                // Where an index decides, as in a part of a join, the other one is not computed.
                if let ValueOp::Literal(truth) = self.kernel.value(condition).op {
                    let chosen = operands[if truth.is_nonzero() { 1 } else { 2 }];
                    return self.value(chosen, indices, guards);
                }
                let a = self.value(operands[1], indices, guards)?;
                let b = self.value(operands[2], indices, guards)?;
                self.kernel.select(condition, a, b)
            }
            Op::Cast => {
                let operand = self.value(operands[0], indices, guards)?;
                let operand = self.rounded_operand(id, operand);
                self.cast(node.dtype, operand)
            }
            Op::View(view) => self.view(view, id, operands[0], indices, guards)?,
            Op::Scan { op, axis, reverse, exclusive } => {
                // Where it is computed.
                let along = self.scan_axis(&indices[*axis])?;
                let operand = self.value(operands[0], indices, &without(&self.kernel, guards, &[along])?)?;
                let dtype = self.kernel.value(operand).dtype;
                let (op, reverse, exclusive) = (*op, *reverse, *exclusive);
                self.kernel.add(ValueOp::Scan { op, axis: along, reverse, exclusive, operand }, dtype)
            }
            Op::Reduce { op, axes } => self.reduction(operands[0], *op, axes, indices, guards)?,
            Op::Recurrence { .. } | Op::Scatter { .. } | Op::Sort { .. } if !guards.is_empty() => {
                return Err(Refusal::Conditional(node.op.name()));
            }
            Op::Recurrence { .. } => self.recurrence(id, indices)?,
            Op::Gather { axis, is_checked } => self.gather(id, (*axis, *is_checked), indices, guards)?,
            Op::Scatter { op, axis, .. } => self.scatter(id, *op, *axis, indices)?,
            Op::Sort { axis, descending, result, .. } => {
                self.sort(id, (*axis, *descending), *result, indices)?
            }
        })
    }

    fn load(&mut self, id: NodeId, node: &Node, indices: &Indices, guards: &Guards) -> ValueId {
        let buffer = match self.buffers.get(&id) {
            Some(&buffer) => buffer,
            None => {
                let buffer = self.kernel.add_input(node.dtype, node.shape.elements() as u64);
                self.buffers.insert(id, buffer);
                self.inputs.push(id);
                buffer
            }
        };
        let position = maps::flatten(indices, &node.shape).simplify(&self.ranges);
        let guard = self.guard(guards);
        self.kernel.load(buffer, position, guard)
    }

    /// The value converted, where it is of another dtype.
    fn cast(&mut self, to: DType, value: ValueId) -> ValueId {
        if self.kernel.value(value).dtype == to { value } else { self.kernel.cast(to, value) }
    }

    /// A value that says whether all guards hold; `None` if there are none.
    fn guard(&mut self, guards: &Guards) -> Option<ValueId> {
        if guards.is_empty() {
            return None;
        }
        if let Some(&value) = self.guards.get(guards) {
            return Some(value);
        }
        let value = self.kernel.add(ValueOp::InBounds(guards.iter().cloned().collect()), DType::Bool);
        self.guards.insert(guards.clone(), value);
        Some(value)
    }

    fn literal(&mut self, value: Scalar) -> ValueId {
        if let Some(&id) = self.literals.get(&value) {
            return id;
        }
        let id = self.kernel.literal(value);
        self.literals.insert(value, id);
        id
    }

    /// Uniform numbers of the node's dtype; 16-bit ones have as many random bits as fit exactly.
    fn random(&mut self, id: NodeId, seed: u64, node: &Node, indices: &Indices) -> Result<ValueId> {
        let argument = self.argument(id, "seed", Scalar::from_i64(DType::I64, seed as i64))?;
        let index = maps::flatten(indices, &node.shape).simplify(&self.ranges);
        let dtype = node.dtype.compute();
        let uniform = self.kernel.add(ValueOp::Random { seed: argument, index }, dtype);
        let bits = match node.dtype {
            DType::F16 => 11,
            DType::BF16 => 8,
            _ => return Ok(uniform),
        };
        let scale = self.literal(Scalar::from_f64(DType::F32, f64::from(1u32 << bits)));
        let scaled = self.kernel.binary(BinaryOp::Mul, uniform, scale);
        let whole = self.kernel.unary(UnaryOp::Floor, scaled);
        let back = self.literal(Scalar::from_f64(DType::F32, 1.0 / f64::from(1u32 << bits)));
        Ok(self.kernel.binary(BinaryOp::Mul, whole, back))
    }

    /// The argument that is a node's number.
    fn argument(&mut self, id: NodeId, prefix: &str, value: Scalar) -> Result<ArgumentId> {
        if let Some(&argument) = self.arguments.get(&id) {
            return Ok(argument);
        }
        let parameter = self.request.parameters.of_node(id);
        let parameter = parameter.ok_or(Refusal::Broken("a number is no parameter"))?;
        let argument = self.kernel.add_argument(prefix, value);
        self.arguments.insert(id, argument);
        self.argument_parameters.push(parameter);
        Ok(argument)
    }

    /// Where a view begins along an axis of its operand.
    fn start(&mut self, id: NodeId, axis: usize, start: i64) -> IndexExpr {
        let Some(&Start { parameter, unit, rest, extent, is_outermost }) =
            self.request.parameters.start(id, axis)
        else {
            return IndexExpr::constant(start);
        };
        self.offset(parameter, extent, is_outermost).scale(unit).offset(rest)
    }

    /// A parameter that is a position.
    fn offset(&mut self, parameter: usize, extent: usize, is_outermost: bool) -> IndexExpr {
        let offset = match self.offsets.get(&parameter) {
            Some(&offset) => offset,
            None => {
                let kind = AxisKind::Offset { number: parameter as u32 };
                let offset = self.axis(kind, extent, is_outermost);
                self.offsets.insert(parameter, offset);
                offset
            }
        };
        IndexExpr::axis(offset)
    }
}
