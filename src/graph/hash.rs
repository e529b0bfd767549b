//! A key for everything about a graph that decides how it runs: the plan cache looks plans up by it.

use xxhash_rust::xxh3::xxh3_128;

use super::dag::NodeId;
pub(crate) use super::op::StructuralKey;
use super::op::{Composite, Constant, ConstantRole, Graph, NodeRef, Op, Pool2d, StepResult, View};
use super::parameters::{Parameters, Placed, Start};
use crate::{Scalar, SourceLocation};

pub(crate) fn structural_key(graph: &Graph) -> StructuralKey {
    key(graph, None, Places::Matter)
}

/// The same but for the values of the parameters: whatever else decides about kernels.
pub(crate) fn parametric_key(graph: &Graph, parameters: &Parameters) -> StructuralKey {
    key(graph, Some(parameters), Places::Matter)
}

/// The same without what parameters that are places say about kernels: whatever else decides what is one kernel.
pub(crate) fn grouping_key(graph: &Graph, parameters: &Parameters) -> StructuralKey {
    key(graph, Some(parameters), Places::Any)
}

/// Whether it matters how a place follows from its parameter.
#[derive(Clone, Copy, PartialEq)]
enum Places {
    Matter,
    Any,
}

fn key(graph: &Graph, parameters: Option<&Parameters>, places: Places) -> StructuralKey {
    let numbers = graph.numbers();
    // A plan names nodes by their indices: parameters' plans are shared where these are equal too.
    let number = |id: NodeId| match parameters {
        None => numbers[id.index()].map_or(u64::MAX, u64::from),
        Some(_) => id.index() as u64,
    };
    let mut code = Code { bytes: Vec::with_capacity(48 * graph.bound() + 64) };
    for id in graph.nodes().filter(|id| numbers[id.index()].is_some()) {
        let node = graph.node(id);
        code.number(number(id));
        if !parameters.is_some_and(|parameters| code.parametric(id, &node.op, parameters, places)) {
            code.op(&node.op);
        }
        code.result(node.as_ref(), graph.operands(id).iter().map(|&operand| number(operand)));
    }
    code.end(graph.outputs().iter().map(|&output| number(output)))
}

/// The [`structural_key`] of a graph that there is not yet: its nodes are told one by one, operands first, each needed by an
/// output.
pub(crate) struct KeyOfNodes {
    code: Code,
    nodes: u32,
}

impl KeyOfNodes {
    pub(crate) fn with_capacity(nodes: usize) -> KeyOfNodes {
        KeyOfNodes { code: Code { bytes: Vec::with_capacity(48 * nodes + 64) }, nodes: 0 }
    }

    /// The next node.
    pub(crate) fn add(&mut self, node: NodeRef, operands: &[NodeId]) -> NodeId {
        let id = NodeId::from(self.nodes);
        self.nodes += 1;
        self.code.number(id.index() as u64);
        self.code.op(node.op);
        self.code.result(node, operands.iter().map(|operand| operand.index() as u64));
        id
    }

    pub(crate) fn finish(mut self, outputs: &[NodeId]) -> StructuralKey {
        self.code.end(outputs.iter().map(|output| output.index() as u64))
    }
}

/// What a node's code begins with: the compiler gives each a number of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
enum Tag {
    Input,
    Argument,
    Literal,
    Iota,
    Random,
    Unary,
    Binary,
    Select,
    Cast,
    Reduce,
    Scan,
    Recurrence,
    Gather,
    Scatter,
    Sort,
    Reshape,
    Permute,
    Expand,
    Slice,
    Pad,
    Window,
    Mean,
    Var,
    Sigmoid,
    Silu,
    Gelu,
    GeluTanh,
    Softmax,
    LayerNorm,
    MaxPool2d,
    AvgPool2d,
    /// No node: what follows are the outputs.
    End,
    /// What has parameters, which are no part of the code.
    Number,
    Seed,
    SliceFrom,
    PadFrom,
}

/// A byte code that can be read back: every choice has a tag, every list its length, so that different
/// graphs have different codes.
struct Code {
    bytes: Vec<u8>,
}

impl Code {
    /// Everything about a node that follows its operation.
    fn result(&mut self, node: NodeRef, operands: impl ExactSizeIterator<Item = u64>) {
        self.byte(node.dtype as u8);
        self.list(node.shape.iter().map(|&extent| extent as u64));
        self.list(operands);
        self.text(node.origin);
        if let Op::Gather { .. } | Op::Scatter { .. } = node.op {
            let SourceLocation { file, line, column } = node.location;
            self.text(file);
            self.list([line, column].into_iter().map(u64::from));
        }
    }

    /// The outputs, and what all of it comes to.
    fn end(&mut self, outputs: impl ExactSizeIterator<Item = u64>) -> StructuralKey {
        self.tag(Tag::End);
        self.list(outputs);
        StructuralKey(xxh3_128(&self.bytes))
    }

    fn tag(&mut self, tag: Tag) {
        self.byte(tag as u8);
    }

    fn byte(&mut self, byte: u8) {
        self.bytes.push(byte);
    }

    /// LEB128: small numbers, which are nearly all, take one byte.
    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }

    fn list(&mut self, numbers: impl ExactSizeIterator<Item = u64>) {
        self.number(numbers.len() as u64);
        numbers.for_each(|number| self.number(number));
    }

    fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.bytes.extend_from_slice(text.as_bytes());
    }

    fn sizes(&mut self, sizes: &[usize]) {
        self.list(sizes.iter().map(|&size| size as u64));
    }

    fn scalar(&mut self, scalar: Scalar) {
        self.byte(scalar.dtype() as u8);
        self.bytes.extend_from_slice(&scalar.to_bits().to_le_bytes());
    }

    /// An operation with parameters, without their values; false, and nothing written, if it has none.
    fn parametric(&mut self, id: NodeId, op: &Op, parameters: &Parameters, places: Places) -> bool {
        if let Some(parameter) = parameters.of_node(id) {
            self.tag(if matches!(op, Op::Random { .. }) { Tag::Seed } else { Tag::Number });
            self.number(parameter as u64);
            return true;
        }
        match op {
            Op::View(View::Slice { starts, steps })
                if (0..starts.len()).any(|axis| parameters.start(id, axis).is_some()) =>
            {
                self.tag(Tag::SliceFrom);
                self.list(steps.iter().map(|&step| step as u64));
                for (axis, &start) in starts.iter().enumerate() {
                    match (parameters.start(id, axis), places) {
                        (None, _) => self.list([start as u64].into_iter()),
                        (Some(_), Places::Any) => self.list([].into_iter()),
                        (Some(&Start { parameter, unit, rest, extent, is_outermost }), Places::Matter) => {
                            let is_outermost = u64::from(is_outermost);
                            let numbers =
                                [parameter as u64, unit as u64, rest as u64, extent as u64, is_outermost];
                            self.list(numbers.into_iter());
                        }
                    }
                }
                true
            }
            Op::View(View::Pad { before, value })
                if (0..before.len()).any(|axis| parameters.placed(id, axis).is_some()) =>
            {
                self.tag(Tag::PadFrom);
                self.scalar(*value);
                for (axis, &before) in before.iter().enumerate() {
                    match (parameters.placed(id, axis), places) {
                        (None, _) => self.list([before as u64].into_iter()),
                        (Some(_), Places::Any) => self.list([].into_iter()),
                        (Some(&Placed { parameter, place, extent, is_outermost }), Places::Matter) => {
                            let is_outermost = u64::from(is_outermost);
                            let numbers = [parameter as u64, place as u64, extent as u64, is_outermost];
                            self.list(numbers.into_iter());
                        }
                    }
                }
                true
            }
            _ => false,
        }
    }

    fn op(&mut self, op: &Op) {
        match op {
            Op::Input(slot) => {
                self.tag(Tag::Input);
                self.number(*slot as u64);
            }
            Op::Constant(Constant { value, role }) => {
                self.tag(match role {
                    ConstantRole::Argument => Tag::Argument,
                    ConstantRole::Literal => Tag::Literal,
                });
                self.scalar(*value);
            }
            Op::Iota => self.tag(Tag::Iota),
            Op::Random { seed } => {
                self.tag(Tag::Random);
                self.number(*seed);
            }
            Op::Unary(op) => self.bytes.extend([Tag::Unary as u8, *op as u8]),
            Op::Binary(op) => self.bytes.extend([Tag::Binary as u8, *op as u8]),
            Op::Select => self.tag(Tag::Select),
            Op::Cast => self.tag(Tag::Cast),
            Op::View(view) => self.view(view),
            Op::Reduce { op, axes } => {
                self.bytes.extend([Tag::Reduce as u8, *op as u8]);
                self.sizes(axes);
            }
            Op::Scan { op, axis, reverse, exclusive } => {
                self.bytes.extend([Tag::Scan as u8, *op as u8, u8::from(*reverse), u8::from(*exclusive)]);
                self.number(*axis as u64);
            }
            Op::Recurrence { axis, reverse, body, result } => {
                let (which, number) = match *result {
                    StepResult::Each(number) => (0, number),
                    StepResult::Last(number) => (1, number),
                };
                self.bytes.extend([Tag::Recurrence as u8, u8::from(*reverse), which]);
                self.sizes(&[*axis, number, body.carries]);
                self.bytes.extend(body.key().0.to_le_bytes());
                self.list(body.inputs.iter().map(|&dtype| dtype as u64));
            }
            Op::Gather { axis } => {
                self.tag(Tag::Gather);
                self.number(*axis as u64);
            }
            Op::Scatter { op, axis, extent } => {
                self.bytes.extend([Tag::Scatter as u8, *op as u8]);
                self.sizes(&[*axis, *extent]);
            }
            Op::Sort { axis, extent, descending, result } => {
                self.bytes.extend([Tag::Sort as u8, u8::from(*descending), *result as u8]);
                self.sizes(&[*axis, *extent]);
            }
            Op::Composite(composite) => self.composite(composite),
        }
    }

    fn view(&mut self, view: &View) {
        match view {
            View::Reshape => self.tag(Tag::Reshape),
            View::Permute(perm) => {
                self.tag(Tag::Permute);
                self.sizes(perm);
            }
            View::Expand => self.tag(Tag::Expand),
            View::Slice { starts, steps } => {
                self.tag(Tag::Slice);
                self.list(starts.iter().map(|&start| start as u64));
                self.list(steps.iter().map(|&step| step as u64));
            }
            View::Pad { before, value } => {
                self.tag(Tag::Pad);
                self.sizes(before);
                self.scalar(*value);
            }
            View::Window { axis, size, stride, dilation } => {
                self.tag(Tag::Window);
                self.sizes(&[*axis, *size, *stride, *dilation]);
            }
        }
    }

    fn composite(&mut self, composite: &Composite) {
        match composite {
            Composite::Mean { axes } => {
                self.tag(Tag::Mean);
                self.sizes(axes);
            }
            Composite::Var { axes, correction } => {
                self.tag(Tag::Var);
                self.sizes(axes);
                self.number(*correction as u64);
            }
            Composite::Sigmoid => self.tag(Tag::Sigmoid),
            Composite::Silu => self.tag(Tag::Silu),
            Composite::Gelu => self.tag(Tag::Gelu),
            Composite::GeluTanh => self.tag(Tag::GeluTanh),
            Composite::Softmax { axis } => {
                self.tag(Tag::Softmax);
                self.number(*axis as u64);
            }
            Composite::LayerNorm { dims, eps_bits } => {
                self.tag(Tag::LayerNorm);
                self.number(*dims as u64);
                self.number(*eps_bits);
            }
            Composite::MaxPool2d(pool) => self.pool(Tag::MaxPool2d, pool),
            Composite::AvgPool2d(pool) => self.pool(Tag::AvgPool2d, pool),
        }
    }

    fn pool(&mut self, tag: Tag, Pool2d { kernel, stride, padding, dilation }: &Pool2d) {
        self.tag(tag);
        for pair in [kernel, stride, padding, dilation] {
            self.sizes(pair);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use smallvec::SmallVec;

    use super::*;
    use crate::graph::body::Body;
    use crate::graph::op::Sorted;
    use crate::graph::sketch::Sketch;
    use crate::{BinaryOp, DType, ReduceOp, SourceLocation, UnaryOp};

    impl Code {
        fn of(op: &Op) -> Vec<u8> {
            let mut code = Code { bytes: Vec::new() };
            code.op(op);
            code.bytes
        }
    }

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

    #[test]
    fn every_operation_begins_its_code_with_another_byte() {
        let mut body = Sketch::new();
        let x = body.input([], DType::F32);
        let body = Arc::new(Body::new(body.outputs([x]), 1, vec![DType::F32]));
        let pool = Pool2d { kernel: [1, 1], stride: [1, 1], padding: [0, 0], dilation: [1, 1] };
        let constant = |role| Op::Constant(Constant { value: Scalar::from_bool(true), role });
        let (starts, steps, axes) = (SmallVec::new(), SmallVec::new(), SmallVec::new());
        let views = [
            View::Reshape,
            View::Permute(axes.clone()),
            View::Expand,
            View::Slice { starts, steps },
            View::Pad { before: SmallVec::new(), value: Scalar::from_bool(false) },
            View::Window { axis: 0, size: 1, stride: 1, dilation: 1 },
        ];
        let composites = [
            Composite::Mean { axes: axes.clone() },
            Composite::Var { axes: axes.clone(), correction: 0 },
            Composite::Sigmoid,
            Composite::Silu,
            Composite::Gelu,
            Composite::GeluTanh,
            Composite::Softmax { axis: 0 },
            Composite::LayerNorm { dims: 1, eps_bits: 0 },
            Composite::MaxPool2d(pool),
            Composite::AvgPool2d(pool),
        ];
        let ops = [
            Op::Input(0),
            constant(ConstantRole::Argument),
            constant(ConstantRole::Literal),
            Op::Iota,
            Op::Random { seed: 0 },
            Op::Unary(UnaryOp::Exp),
            Op::Binary(BinaryOp::Add),
            Op::Select,
            Op::Cast,
            Op::Reduce { op: ReduceOp::Sum, axes },
            Op::Scan { op: ReduceOp::Sum, axis: 0, reverse: false, exclusive: false },
            Op::Recurrence { axis: 0, reverse: false, body, result: StepResult::Each(0) },
            Op::Gather { axis: 0 },
            Op::Scatter { op: ReduceOp::Sum, axis: 0, extent: 1 },
            Op::Sort { axis: 0, extent: 1, descending: false, result: Sorted::Values },
        ];
        let ops = ops.into_iter().chain(views.map(Op::View)).chain(composites.map(Op::Composite));
        let mut first: Vec<u8> = ops.map(|op| Code::of(&op)[0]).collect();
        assert_eq!(first.len(), usize::from(Tag::End as u8), "an operation without a row here");
        first.push(Tag::End as u8);
        first.sort_unstable();
        first.dedup();
        assert_eq!(first.len(), usize::from(Tag::End as u8) + 1);
    }
}
