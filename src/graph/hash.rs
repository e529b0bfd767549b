//! A key for everything about a graph that decides how it runs: the plan cache looks plans up by it.

use std::hash::{Hash, Hasher};

use smallvec::SmallVec;
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use super::dag::NodeId;
use super::numbers::{Numbered, Numbers};
pub(crate) use super::op::StructuralKey;
use super::op::{Graph, Node, NodeRef, Op, View};
use super::parameters::{Parameters, Placed, Start};
use crate::{Scalar, SourceLocation};

/// What plans of a graph are found by.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Keys {
    /// Of all of it.
    pub(crate) exact: StructuralKey,
    /// Of all but the values of its numbers.
    pub(crate) general: StructuralKey,
    pub(crate) numbers: Numbers,
}

pub(crate) fn structural_key(graph: &Graph) -> StructuralKey {
    keys(graph).exact
}

/// Follows from what the outputs need, and not from the order of nodes.
pub(crate) fn keys(graph: &Graph) -> Keys {
    let mut key = KeyOfNodes::new(graph.outputs().len());
    let mut numbers: Vec<Option<u32>> = vec![None; graph.bound()];
    let mut pending: Vec<NodeId> = graph.outputs().iter().rev().copied().collect();
    while let Some(id) = pending.pop() {
        if let Some(number) = numbers[id.index()] {
            key.again(number);
            continue;
        }
        let operands = graph.operands(id);
        numbers[id.index()] = Some(key.node(graph.node(id).as_ref(), operands.len()));
        pending.extend(operands.into_iter().rev());
    }
    key.finish()
}

/// The same but for the values of the parameters: whatever else decides about kernels.
pub(crate) fn parametric_key(graph: &Graph, parameters: &Parameters) -> StructuralKey {
    key(graph, parameters, Places::Matter)
}

/// The same without what parameters that are places say about kernels: whatever else decides what is one kernel.
pub(crate) fn grouping_key(graph: &Graph, parameters: &Parameters) -> StructuralKey {
    key(graph, parameters, Places::Any)
}

/// Whether it matters how a place follows from its parameter.
#[derive(Clone, Copy, PartialEq)]
enum Places {
    Matter,
    Any,
}

/// A plan names nodes by their indices: parameters' plans are shared where these are equal too.
fn key(graph: &Graph, parameters: &Parameters, places: Places) -> StructuralKey {
    let live = graph.live();
    let mut code = Code::with_capacity(48 * graph.bound() + 64);
    for id in graph.nodes().filter(|id| live[id.index()]) {
        let node = graph.node(id);
        code.number(id.index() as u64);
        Parametric::of(id, &node.op, parameters, places).hash(&mut code);
        let operands = graph.operands(id);
        code.result(node.as_ref(), operands.len());
        operands.iter().for_each(|operand| code.number(operand.index() as u64));
    }
    code.end(graph.outputs().iter().map(|output| output.index() as u64))
}

/// The key of a graph by what `code_of` makes of each node's operation and shape, and by all else.
pub(super) fn coded(graph: &Graph, mut code_of: impl FnMut(NodeId, &Node, &mut Code)) -> StructuralKey {
    let mut code = Code::with_capacity(48 * graph.bound() + 64);
    for id in graph.nodes() {
        let node = graph.node(id);
        code.number(id.index() as u64);
        code_of(id, node, &mut code);
        (node.dtype, node.shape.rank()).hash(&mut code);
        code.origin(node.as_ref());
        code.list(graph.operands(id).iter().map(|operand| operand.index() as u64));
    }
    code.end(graph.outputs().iter().map(|output| output.index() as u64))
}

/// Bytes of the code of most graphs: no more than what allocators have at hand.
const USUAL_BYTES: usize = 1000;

/// The [`keys`] of a graph that there need not be: its nodes are told one by one, each before its operands, these in
/// their order, and each with all that it needs before the next one.
pub(crate) struct KeyOfNodes {
    code: Code,
    nodes: u32,
    numbers: Numbers,
}

/// What a code goes on with: a node, as [`Numbered`] has it, or one that was told before.
const NODE: u64 = 0;
const VALUE: u64 = 1;
const SEED: u64 = 2;
const PADDED: u64 = 3;
const AGAIN: u64 = 4;

impl KeyOfNodes {
    /// The outputs follow as operands do.
    pub(crate) fn new(outputs: usize) -> KeyOfNodes {
        let mut code = Code::with_capacity(USUAL_BYTES);
        code.number(outputs as u64);
        KeyOfNodes { code, nodes: 0, numbers: Numbers::default() }
    }

    /// The next node, with how many operands it has. Gives its number.
    pub(crate) fn node(&mut self, node: NodeRef, operands: usize) -> u32 {
        let number = self.nodes;
        self.nodes += 1;
        match self.numbers.note(node.op) {
            Numbered::Fixed => {
                self.code.number(NODE);
                node.op.hash(&mut self.code);
            }
            // The dtype of a value is the node's.
            Numbered::Argument(place) => {
                let is_seed = matches!(node.op, Op::Random { .. });
                self.code.number(if is_seed { SEED } else { VALUE });
                self.code.number(place as u64);
            }
            Numbered::Padded(place) => {
                self.code.number(PADDED);
                self.code.number(place as u64);
                node.op.hash(&mut self.code);
            }
        }
        self.code.result(node, operands);
        number
    }

    /// A node that was told before, by its number.
    #[inline]
    pub(crate) fn again(&mut self, number: u32) {
        self.code.number(AGAIN + u64::from(number));
    }

    pub(crate) fn finish(self) -> Keys {
        let KeyOfNodes { mut code, numbers, .. } = self;
        let general = code.key();
        if numbers.is_empty() {
            return Keys { exact: general, general, numbers };
        }
        code.bytes.clear();
        code.bytes.extend_from_slice(&general.0.to_le_bytes());
        for number in numbers.iter() {
            code.bytes.extend_from_slice(&number.bits().to_le_bytes());
        }
        Keys { exact: code.key(), general, numbers }
    }
}

/// An operation without the values of its parameters.
#[derive(Hash)]
enum Parametric<'a> {
    /// It has none.
    No(&'a Op),
    Number(usize),
    Seed(usize),
    Slice(SmallVec<[Begin<'a>; 6]>, &'a [i64]),
    Pad(SmallVec<[Begin<'a>; 6]>, Scalar),
}

/// Where a slice begins along an axis, or what is padded.
#[derive(Hash)]
enum Begin<'a> {
    At(i64),
    Any,
    From(&'a Start),
    Placed(&'a Placed),
}

impl<'a> Parametric<'a> {
    fn of(id: NodeId, op: &'a Op, parameters: &'a Parameters, places: Places) -> Parametric<'a> {
        if let Some(parameter) = parameters.of_node(id) {
            return match op {
                Op::Random { .. } => Parametric::Seed(parameter),
                _ => Parametric::Number(parameter),
            };
        }
        let unless_any = |begin: Begin<'a>| if places == Places::Any { Begin::Any } else { begin };
        match op {
            Op::View(View::Slice { starts, steps })
                if (0..starts.len()).any(|axis| parameters.start(id, axis).is_some()) =>
            {
                let begin = |(axis, &start)| match parameters.start(id, axis) {
                    None => Begin::At(start),
                    Some(start) => unless_any(Begin::From(start)),
                };
                Parametric::Slice(starts.iter().enumerate().map(begin).collect(), steps)
            }
            Op::View(View::Pad { before, value })
                if (0..before.len()).any(|axis| parameters.placed(id, axis).is_some()) =>
            {
                let begin = |(axis, &before)| match parameters.placed(id, axis) {
                    None => Begin::At(before as i64),
                    Some(placed) => unless_any(Begin::Placed(placed)),
                };
                Parametric::Pad(before.iter().enumerate().map(begin).collect(), *value)
            }
            _ => Parametric::No(op),
        }
    }
}

/// Where the outputs follow: no node has this number.
const END: u64 = u64::MAX;

/// A byte code that can be read back: every choice has its number, every list its length, so that different graphs have
/// different codes. What an operation is made of comes from its derived `Hash`.
pub(super) struct Code {
    bytes: Vec<u8>,
}

impl Code {
    fn with_capacity(bytes: usize) -> Code {
        Code { bytes: Vec::with_capacity(bytes) }
    }

    /// Everything about a node between its operation and its operands.
    fn result(&mut self, node: NodeRef, operands: usize) {
        let lengths = [operands, node.shape.rank(), node.origin.len()];
        // Each a byte, which is less than this one, or after it a number.
        const LONG: u8 = u8::MAX;
        match lengths.map(u8::try_from) {
            [Ok(operands), Ok(rank), Ok(name)] if operands != LONG => {
                self.bytes.extend_from_slice(&[operands, rank, name, node.dtype as u8]);
            }
            _ => {
                self.bytes.extend_from_slice(&[LONG, node.dtype as u8]);
                lengths.into_iter().for_each(|length| self.number(length as u64));
            }
        }
        node.shape.iter().for_each(|&extent| self.number(extent as u64));
        self.place(node);
    }

    /// Where a node comes from.
    fn origin(&mut self, node: NodeRef) {
        self.number(node.origin.len() as u64);
        self.place(node);
    }

    /// The same after the name's length.
    fn place(&mut self, node: NodeRef) {
        self.name(node.origin.as_bytes());
        if let Op::Gather { is_checked: true, .. } | Op::Scatter { .. } = node.op {
            let SourceLocation { file, line, column } = node.location;
            (file, line, column).hash(self);
        }
    }

    /// The outputs, and what all of it comes to.
    fn end(mut self, outputs: impl ExactSizeIterator<Item = u64>) -> StructuralKey {
        self.number(END);
        self.list(outputs);
        self.key()
    }

    fn key(&self) -> StructuralKey {
        StructuralKey(xxh3_128(&self.bytes))
    }

    /// LEB128: small numbers, which are nearly all, take one byte.
    #[inline]
    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }

    /// Few bytes as two words that overlap: that takes no call of a function.
    fn name(&mut self, name: &[u8]) {
        match name.len() {
            2..4 => self.ends::<2>(name),
            4..8 => self.ends::<4>(name),
            8..=16 => self.ends::<8>(name),
            _ => self.bytes.extend_from_slice(name),
        }
    }

    #[inline]
    fn ends<const N: usize>(&mut self, name: &[u8]) {
        if let (Some(first), Some(last)) = (name.first_chunk::<N>(), name.last_chunk::<N>()) {
            self.bytes.extend_from_slice(first);
            self.bytes.extend_from_slice(last);
        }
    }

    fn list(&mut self, numbers: impl ExactSizeIterator<Item = u64>) {
        self.number(numbers.len() as u64);
        numbers.for_each(|number| self.number(number));
    }
}

impl Hasher for Code {
    fn write(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    fn write_u64(&mut self, number: u64) {
        self.number(number);
    }

    /// Lengths.
    fn write_usize(&mut self, number: usize) {
        self.number(number as u64);
    }

    /// Which choice of several.
    fn write_isize(&mut self, number: isize) {
        self.number(number as u64);
    }

    fn finish(&self) -> u64 {
        xxh3_64(&self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use smallvec::smallvec;

    use super::*;
    use crate::graph::body::Body;
    use crate::graph::op::{Constant, ConstantRole, Sorted, StepResult};
    use crate::graph::sketch::Sketch;
    use crate::{BinaryOp, DType, ReduceOp, SourceLocation, UnaryOp};

    /// x + constant, summed; each parameter is something that must change the key, or must not.
    fn key(change: &str) -> StructuralKey {
        let mut s = Sketch::new();
        let shape = if change == "shape" { [2, 4] } else { [2, 3] };
        let dtype = if change == "dtype" { DType::F64 } else { DType::F32 };
        let x = s.input(shape, dtype);
        if change == "dead node" {
            s.unary(UnaryOp::Exp, x);
        }
        let value = if change == "constant" { -0.0 } else { 0.0 };
        let c = s.splat(Scalar::from_f64(dtype, value), shape);
        let mut node = Sketch::node(Op::Binary(BinaryOp::Sub), shape, dtype);
        if change == "origin" {
            node.origin = "other";
        }
        if change == "location" {
            node.location = SourceLocation { file: "elsewhere.rs", line: 9, column: 9 };
        }
        let operands = if change == "operand order" { [c, x] } else { [x, c] };
        let y = s.graph.add(node, &operands);
        let z =
            if change == "axes" { s.reduce(ReduceOp::Sum, y, [0]) } else { s.reduce(ReduceOp::Sum, y, [1]) };
        let graph = if change == "outputs" { s.outputs([z, z]) } else { s.outputs([z]) };
        structural_key(&graph)
    }

    #[test]
    fn the_key_tells_apart_what_runs_differently_and_nothing_else() {
        let base = key("");
        for same in ["location", "dead node"] {
            assert_eq!(base, key(same), "{same}");
        }
        let different = ["shape", "dtype", "constant", "origin", "operand order", "axes", "outputs"];
        let mut keys: Vec<StructuralKey> = different.iter().map(|change| key(change)).collect();
        keys.push(base);
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), different.len() + 1);
    }

    /// Choices and attributes that could be taken for each other.
    #[test]
    fn operations_have_codes_of_their_own() {
        let mut body = Sketch::new();
        let x = body.input([], DType::F32);
        let graph = body.outputs([x]);
        let step = |dtypes: &[DType], result| {
            let body = Arc::new(Body::new(graph.clone(), 1, dtypes.to_vec()));
            Op::Recurrence { axis: 0, reverse: false, body, result }
        };
        let constant = |role| Op::Constant(Constant { value: Scalar::from_bool(true), role });
        let slice =
            |starts: &[i64], steps: &[i64]| View::Slice { starts: starts.into(), steps: steps.into() };
        let pad = |before: &[usize]| View::Pad { before: before.into(), value: Scalar::from_bool(false) };
        let views = [
            View::Reshape,
            View::Expand,
            View::Permute(smallvec![0, 1]),
            View::Permute(smallvec![1, 0]),
            slice(&[0, 1], &[1, 1]),
            slice(&[0, 1], &[1, -1]),
            slice(&[0], &[1]),
            pad(&[0, 1]),
            pad(&[1]),
        ];
        let scan = |reverse, exclusive| Op::Scan { op: ReduceOp::Sum, axis: 0, reverse, exclusive };
        let sort = |descending, result| Op::Sort { axis: 0, extent: 1, descending, result };
        let ops = [
            Op::Input(0),
            Op::Input(1),
            constant(ConstantRole::Argument),
            constant(ConstantRole::Literal),
            Op::Iota,
            Op::Random { seed: 0 },
            Op::Unary(UnaryOp::Exp),
            Op::Binary(BinaryOp::Add),
            Op::Select,
            Op::Cast,
            Op::Reduce { op: ReduceOp::Sum, axes: smallvec![0] },
            Op::Reduce { op: ReduceOp::Max, axes: smallvec![0] },
            scan(false, false),
            scan(true, false),
            scan(false, true),
            step(&[DType::F32], StepResult::Each(0)),
            step(&[DType::F32], StepResult::Last(0)),
            step(&[DType::F32, DType::F16], StepResult::Last(0)),
            Op::Gather { axis: 0, is_checked: true },
            Op::Gather { axis: 0, is_checked: false },
            Op::Scatter { op: ReduceOp::Sum, axis: 0, extent: 1 },
            sort(false, Sorted::Values),
            sort(false, Sorted::Positions),
            sort(true, Sorted::Values),
        ];
        let mut codes: Vec<Vec<u8>> = ops
            .into_iter()
            .chain(views.map(Op::View))
            .map(|op| {
                let mut code = Code { bytes: Vec::new() };
                op.hash(&mut code);
                code.bytes
            })
            .collect();
        let count = codes.len();
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), count);
    }
}
