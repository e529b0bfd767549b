//! Graphs of one operation or of a few, by hand.

mod cast;
mod random;
mod reduce;
mod scalar;
mod scatter;
mod sort;

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
    assert_eq!(outputs, [bytes_of(&[-1.0f32, 2.0]), bytes_of(&[1.0f32, -2.0]), bytes_of(&[-1.0f32, 2.0])]);
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
