//! What of a graph its kernels get as arguments, so that another value is the same plan: the user's numbers, seeds, and
//! where slices begin.
//!
//! The slices of one tensor along one axis begin at one parameter, the least position that any of them reads, each at a
//! fixed distance from there. So the distances between the elements that a kernel reads of a tensor are part of its
//! text, as a stencil needs it; and where that least position is 0, as in halves, stencils, and everything that is only
//! cut at its end, there is no parameter. Neither is there one for slices of what follows from such a slice: indices with
//! many unknown positions grow with each view, and nothing in them simplifies.

use lazuli_codegen::Language;
use rustc_hash::FxHashMap;

use super::op::{ConstantRole, Op, View};
use super::{Graph, NodeId};
use crate::{Scalar, Shape};

/// Bytes of an access of several elements.
const ACCESS_BYTES: i64 = 16;

/// The parameters of a graph, in the order of its nodes.
#[derive(Clone, Default, Debug)]
pub(crate) struct Parameters {
    /// The bits of each one's value: of a scalar of its compute dtype, or a position.
    pub(crate) values: Vec<u64>,
    of_nodes: FxHashMap<NodeId, usize>,
    starts: FxHashMap<(NodeId, usize), Start>,
}

/// Where a view begins along an axis: at `unit * parameter + rest`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Start {
    pub(crate) parameter: usize,
    /// More than 1 where accesses of several elements are possible as the position is a multiple of it.
    pub(crate) unit: i64,
    pub(crate) rest: i64,
    /// The parameter is less than this.
    pub(crate) extent: usize,
    /// Whether the axis is the outermost, so that the extent does not matter.
    pub(crate) is_outermost: bool,
}

/// What slices of one tensor along one axis read: from the least position up to one after the largest.
struct Span {
    low: i64,
    high: i64,
    parameter: Option<usize>,
}

impl Parameters {
    pub(crate) fn of(graph: &Graph, language: Language) -> Parameters {
        let mut spans: FxHashMap<(NodeId, usize), Span> = FxHashMap::default();
        for id in graph.nodes() {
            for (operand, axis, (low, high), _) in slices(graph, id) {
                let span = spans.entry((operand, axis)).or_insert(Span { low, high, parameter: None });
                (span.low, span.high) = (span.low.min(low), span.high.max(high));
            }
        }
        let mut parameters = Parameters::default();
        let mut follows = vec![false; graph.bound()];
        for id in graph.nodes() {
            let is_cut_before = graph.operands(id).iter().any(|operand| follows[operand.index()]);
            follows[id.index()] = is_cut_before;
            if let Some(value) = number(&graph.node(id).op) {
                parameters.of_nodes.insert(id, parameters.values.len());
                parameters.values.push(value.cast(value.dtype().compute()).to_bits());
            }
            for (operand, axis, _, start) in slices(graph, id).filter(|_| !is_cut_before) {
                let Some(span) = spans.get_mut(&(operand, axis)).filter(|span| span.low > 0) else {
                    continue;
                };
                let node = graph.node(operand);
                let unit = unit(&node.shape, axis, span.low, node.dtype.size() as i64, language);
                let parameter = *span.parameter.get_or_insert_with(|| {
                    parameters.values.push((span.low / unit) as u64);
                    parameters.values.len() - 1
                });
                let extent = (node.shape[axis] as i64 - (span.high - span.low)) / unit + 1;
                let start = Start {
                    parameter,
                    unit,
                    rest: start - span.low,
                    extent: extent as usize,
                    is_outermost: node.shape[..axis].iter().all(|&extent| extent == 1),
                };
                parameters.starts.insert((id, axis), start);
                follows[id.index()] = true;
            }
        }
        parameters
    }

    /// The parameter that is the number of a constant, or the seed of a random tensor.
    pub(crate) fn of_node(&self, id: NodeId) -> Option<usize> {
        self.of_nodes.get(&id).copied()
    }

    /// Where a slice begins along an axis, unless that is part of the text.
    pub(crate) fn start(&self, id: NodeId, axis: usize) -> Option<&Start> {
        self.starts.get(&(id, axis))
    }
}

fn number(op: &Op) -> Option<Scalar> {
    match op {
        Op::Constant(constant) if constant.role == ConstantRole::Argument => Some(constant.value),
        Op::Random { seed } => Some(Scalar::from_i64(crate::DType::I64, *seed as i64)),
        _ => None,
    }
}

/// Of each axis that a slice cuts: the operand, the axis, the positions that it reads, and where it begins.
fn slices(graph: &Graph, id: NodeId) -> impl Iterator<Item = (NodeId, usize, (i64, i64), i64)> + '_ {
    let node = graph.node(id);
    let cut = match &node.op {
        Op::View(View::Slice { starts, steps }) if node.shape.elements() > 0 => Some((starts, steps)),
        _ => None,
    };
    cut.into_iter().flat_map(move |(starts, steps)| {
        let operand = graph.operands(id)[0];
        starts.iter().zip(steps).enumerate().map(move |(axis, (&start, &step))| {
            let last = start + step * (node.shape[axis] as i64 - 1);
            (operand, axis, (start.min(last), start.max(last) + 1), start)
        })
    })
}

/// On CUDA a position that is a multiple of what one access reads is a multiple in the text too, unless all positions
/// along the axis are.
fn unit(shape: &Shape, axis: usize, low: i64, bytes: i64, language: Language) -> i64 {
    let width = ACCESS_BYTES / bytes;
    let inner: i64 = shape[axis + 1..].iter().map(|&extent| extent as i64).product();
    match language {
        Language::Cuda if inner % width != 0 && low % width == 0 => width,
        Language::Cuda | Language::C => 1,
    }
}
