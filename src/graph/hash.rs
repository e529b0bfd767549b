//! A key for everything about a graph that decides how it runs: the plan cache looks plans up by it.

use super::Graph;
use super::op::{Composite, Constant, ConstantRole, Op, Pool2d, StepResult, View};
use crate::{Scalar, SourceLocation};

/// 128 bits that are equal for two graphs if, and for all practical purposes only if, their live nodes
/// agree in operation, attributes (constants by their bits), shape, dtype, operands and origin, and
/// their outputs agree. Locations do not count: another call of the same function is the same graph. Only those of
/// gathers and scatters do, because running a plan may report them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) struct StructuralKey(pub(crate) u128);

pub(crate) fn structural_key(graph: &Graph) -> StructuralKey {
    let numbers = graph.numbers();
    let number = |id: super::NodeId| numbers[id.index()].map_or(u64::MAX, u64::from);
    let mut code = Code { bytes: Vec::with_capacity(48 * graph.bound() + 64) };
    for id in graph.nodes().filter(|id| numbers[id.index()].is_some()) {
        let node = graph.node(id);
        code.op(&node.op);
        code.byte(node.dtype as u8);
        code.list(node.shape.iter().map(|&extent| extent as u64));
        code.list(graph.operands(id).iter().map(|&operand| number(operand)));
        code.list(node.origin.bytes().map(u64::from));
        if let Op::Gather { .. } | Op::Scatter { .. } = node.op {
            let SourceLocation { file, line, column } = node.location;
            code.list(file.bytes().map(u64::from));
            code.list([line, column].into_iter().map(u64::from));
        }
    }
    code.byte(END);
    code.list(graph.outputs().iter().map(|&output| number(output)));
    let hash = blake3::hash(&code.bytes);
    let mut key = [0; 16];
    key.copy_from_slice(&hash.as_bytes()[..16]);
    StructuralKey(u128::from_le_bytes(key))
}

/// No operation starts with this byte.
const END: u8 = 0xff;

/// A byte code that can be read back: every choice has a tag, every list its length, so that different
/// graphs have different codes.
struct Code {
    bytes: Vec<u8>,
}

impl Code {
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

    fn sizes(&mut self, sizes: &[usize]) {
        self.list(sizes.iter().map(|&size| size as u64));
    }

    fn scalar(&mut self, scalar: Scalar) {
        self.byte(scalar.dtype() as u8);
        self.bytes.extend_from_slice(&scalar.to_bits().to_le_bytes());
    }

    fn op(&mut self, op: &Op) {
        match op {
            Op::Input(slot) => {
                self.byte(0);
                self.number(*slot as u64);
            }
            Op::Constant(Constant { value, role }) => {
                self.byte(match role {
                    ConstantRole::Argument => 1,
                    ConstantRole::Literal => 2,
                });
                self.scalar(*value);
            }
            Op::Iota => self.byte(3),
            Op::Random { seed } => {
                self.byte(4);
                self.number(*seed);
            }
            Op::Unary(op) => self.bytes.extend([5, *op as u8]),
            Op::Binary(op) => self.bytes.extend([6, *op as u8]),
            Op::Select => self.byte(7),
            Op::Cast => self.byte(8),
            Op::View(view) => self.view(view),
            Op::Reduce { op, axes } => {
                self.bytes.extend([9, *op as u8]);
                self.sizes(axes);
            }
            Op::Scan { op, axis, reverse, exclusive } => {
                self.bytes.extend([10, *op as u8, u8::from(*reverse), u8::from(*exclusive)]);
                self.number(*axis as u64);
            }
            Op::Recurrence { axis, reverse, body, result } => {
                let (which, number) = match *result {
                    StepResult::Each(number) => (0, number),
                    StepResult::Last(number) => (1, number),
                };
                self.bytes.extend([13, u8::from(*reverse), which]);
                self.sizes(&[*axis, number, body.carries]);
                self.bytes.extend(body.key().0.to_le_bytes());
                self.list(body.inputs.iter().map(|&dtype| dtype as u64));
            }
            Op::Gather { axis } => {
                self.byte(12);
                self.number(*axis as u64);
            }
            Op::Scatter { op, axis, extent } => {
                self.bytes.extend([13, *op as u8]);
                self.sizes(&[*axis, *extent]);
            }
            Op::Composite(composite) => self.composite(composite),
        }
    }

    fn view(&mut self, view: &View) {
        match view {
            View::Reshape => self.byte(16),
            View::Permute(perm) => {
                self.byte(17);
                self.sizes(perm);
            }
            View::Expand => self.byte(18),
            View::Slice { starts, steps } => {
                self.byte(19);
                self.list(starts.iter().map(|&start| start as u64));
                self.list(steps.iter().map(|&step| step as u64));
            }
            View::Pad { before, value } => {
                self.byte(20);
                self.sizes(before);
                self.scalar(*value);
            }
            View::Window { axis, size, stride, dilation } => {
                self.byte(21);
                self.sizes(&[*axis, *size, *stride, *dilation]);
            }
        }
    }

    fn composite(&mut self, composite: &Composite) {
        match composite {
            Composite::Mean { axes } => {
                self.byte(32);
                self.sizes(axes);
            }
            Composite::Var { axes, correction } => {
                self.byte(33);
                self.sizes(axes);
                self.number(*correction as u64);
            }
            Composite::Sigmoid => self.byte(34),
            Composite::Silu => self.byte(35),
            Composite::Gelu => self.byte(36),
            Composite::GeluTanh => self.byte(37),
            Composite::Softmax { axis } => {
                self.byte(38);
                self.number(*axis as u64);
            }
            Composite::LayerNorm { dims, eps_bits } => {
                self.byte(39);
                self.number(*dims as u64);
                self.number(*eps_bits);
            }
            Composite::MaxPool2d(pool) => self.pool(40, pool),
            Composite::AvgPool2d(pool) => self.pool(41, pool),
        }
    }

    fn pool(&mut self, tag: u8, Pool2d { kernel, stride, padding, dilation }: &Pool2d) {
        self.byte(tag);
        for pair in [kernel, stride, padding, dilation] {
            self.sizes(pair);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
}
