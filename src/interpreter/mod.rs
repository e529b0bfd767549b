//! The reference interpreter: evaluates the graph as it was recorded, one plain loop an operation.
//!
//! It is the oracle that the passes, the fusion, the kernels and the devices are tested against, and
//! the fallback where there is no compiler. So it is written for being obviously right, and shares no code
//! with anything below the graph.
//!
//! Every operation's result is rounded to its node's dtype: exactly as stated in
//! [`lazuli_codegen`]'s operations for arithmetic, and from a double-precision value for
//! transcendental functions, sums and products.

mod cast;
mod gather;
pub(crate) mod kernels;
mod operand;
mod random;
mod recurrence;
mod reduce;
mod scalar;
mod scan;
mod scatter;
mod sort;
#[cfg(test)]
mod testing;
mod values;
mod views;

use std::rc::Rc;

use smallvec::SmallVec;

use operand::{Operand, broken, ensure_room};
use recurrence::Recurrence;
use scan::Scan;

use crate::Result;
use crate::graph::op::Op;
use crate::graph::{Graph, Node, NodeId, infer};
use crate::runtime::host::HostBuffer;
use values::Values;

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
    ensure_room(&node.shape, node.dtype).map_err(|error| error.of_operation(node.origin, node.location))?;

    let result = match (&node.op, operands) {
        (Op::Input(slot), []) => {
            let bytes = inputs.get(*slot).ok_or_else(|| context(format!("no input {slot}")))?;
            Values::from_bytes(node.dtype, bytes)
        }
        (Op::Constant(constant), []) => Values::filled(constant.value, 1),
        (Op::Iota, []) => Values::I64((0..node.shape.elements() as i64).collect()),
        (Op::Random { seed }, []) => random::uniform(*seed, node.shape.elements(), node.dtype)?,
        (Op::Unary(op), [x]) => scalar::unary(*op, &x.values)?,
        (Op::Binary(op), [a, b]) => scalar::binary(*op, &a.values, &b.values)?,
        (Op::Select, [condition, a, b]) => scalar::select(&condition.values, &a.values, &b.values)?,
        (Op::Cast, [x]) if x.values.dtype() == node.dtype => return Ok(x.values.clone()),
        (Op::Cast, [x]) => cast::cast(&x.values, node.dtype),
        (Op::View(view), [x]) => match views::view(view, &x.values, x.shape, &node.shape)? {
            Some(values) => values,
            None => return Ok(x.values.clone()),
        },
        (Op::Reduce { op, axes }, [x]) => reduce::reduce(*op, &x.values, x.shape, axes)?,
        (&Op::Scan { op, axis, reverse, exclusive }, [x]) => {
            scan::scan(Scan { op, axis, reverse, exclusive }, &x.values, x.shape)?
        }
        (&Op::Recurrence { axis, reverse, ref body, result }, operands) => {
            let recurrence = Recurrence { axis, reverse, body, result };
            recurrence::recurrence(&recurrence, operands, evaluate)?
        }
        (Op::Gather { axis }, [x, index]) => gather::gather(node, *axis, x, &index.values)?,
        (Op::Scatter { op, axis, .. }, [x, index]) => scatter::scatter(node, *op, *axis, x, &index.values)?,
        (&Op::Sort { axis, extent, descending, result }, [x]) => {
            sort::sort(&x.values, x.shape, sort::Sort { axis, extent, descending, result })
        }
        (op, operands) => return Err(context(format!("{op:?} with {} operands", operands.len()))),
    };
    if result.len() != node.shape.elements() || result.dtype() != node.dtype {
        let (len, dtype) = (result.len(), result.dtype());
        return Err(context(format!("{len} elements of {dtype} for {} {}", node.dtype, node.shape)));
    }
    Ok(Rc::new(result))
}

#[cfg(test)]
mod tests {
    use super::testing::{Builder, bytes_of, constant, tensor};
    use super::*;
    use crate::graph::op::View;
    use crate::{BinaryOp, Scalar, UnaryOp};
    use crate::{DType, Error};

    #[test]
    fn outputs_come_in_the_order_asked_for_and_may_repeat() {
        let mut b = Builder::default();
        let x = b.input(tensor(&[1.0f32, -2.0], [2]));
        let y = b.add(Op::Unary(UnaryOp::Neg), &[x], [2], DType::F32);
        let outputs = b.run(&[y, x, y]);
        assert_eq!(
            outputs,
            [bytes_of(&[-1.0f32, 2.0]), bytes_of(&[1.0f32, -2.0]), bytes_of(&[-1.0f32, 2.0])]
        );
        assert!(b.run(&[]).is_empty());
    }

    #[test]
    fn one_operand_may_be_read_twice() {
        let mut b = Builder::default();
        let x = b.input(tensor(&[3i32, 4], [2]));
        let y = b.add(Op::Binary(BinaryOp::Mul), &[x, x], [2], DType::I32);
        assert_eq!(b.run(&[y]), [bytes_of(&[9i32, 16])]);
    }

    #[test]
    fn operand_order_is_kept() {
        let mut b = Builder::default();
        let x = b.input(tensor(&[3i64], [1]));
        let y = b.input(tensor(&[5i64], [1]));
        let z = b.add(Op::Binary(BinaryOp::Sub), &[y, x], [1], DType::I64);
        assert_eq!(b.run(&[z]), [bytes_of(&[2i64])]);
    }

    #[test]
    fn constants_and_iota() {
        let mut b = Builder::default();
        let c = b.add(constant(Scalar::from_f64(DType::BF16, 1.5)), &[], [], DType::BF16);
        let i = b.add(Op::Iota, &[], [4], DType::I64);
        let none = b.add(Op::Iota, &[], [0], DType::I64);
        let outputs = b.run(&[c, i, none]);
        assert_eq!(outputs, [bytes_of(&[half::bf16::from_f32(1.5)]), bytes_of(&[0i64, 1, 2, 3]), Vec::new()]);
    }

    #[test]
    fn dead_nodes_are_not_evaluated() {
        let mut b = Builder::default();
        let x = b.input(tensor(&[1.0f32], [1]));
        b.add(Op::Input(7), &[], [1 << 50], DType::F64);
        assert_eq!(b.run(&[x]), [bytes_of(&[1.0f32])]);
    }

    #[test]
    fn a_chain_of_a_million_operations() {
        let mut b = Builder::default();
        let mut x = b.input(tensor(&[1.5f32, -2.5], [2]));
        for _ in 0..1_000_000 {
            x = b.add(Op::Unary(UnaryOp::Neg), &[x], [2], DType::F32);
        }
        assert_eq!(b.run(&[x]), [bytes_of(&[1.5f32, -2.5])]);
    }

    #[test]
    fn what_breaks_the_rules_is_an_internal_error() {
        let internal = |b: &Builder, id| matches!(b.try_run(&[id]), Err(Error::Internal { .. }));
        let mut b = Builder::default();
        let x = b.input(tensor(&[1.0f32, 2.0], [2]));
        let wrong_shape = b.add(Op::Unary(UnaryOp::Neg), &[x], [3], DType::F32);
        let wrong_dtype = b.add(Op::Unary(UnaryOp::IsNan), &[x], [2], DType::F32);
        let missing_operand = b.add(Op::Binary(BinaryOp::Add), &[x], [2], DType::F32);
        let missing_input = b.add(Op::Input(9), &[], [2], DType::F32);
        let wrong_size = b.add(Op::Input(0), &[], [3], DType::F32);
        let undefined = b.add(Op::Unary(UnaryOp::Not), &[x], [2], DType::F32);
        for id in [wrong_shape, wrong_dtype, missing_operand, missing_input, wrong_size, undefined] {
            assert!(internal(&b, id));
        }
    }

    #[test]
    fn an_impossible_size_is_out_of_memory() {
        let mut b = Builder::default();
        let x = b.input(tensor(&[1.0f32], []));
        let y = b.add(Op::View(View::Expand), &[x], [1 << 40, 1 << 40], DType::F32);
        assert!(matches!(b.try_run(&[y]), Err(Error::OutOfMemory { .. })));
    }
}
