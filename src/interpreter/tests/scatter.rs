use crate::ReduceOp;
use crate::graph::op::Op;
use crate::interpreter::testing::{apply, same, tensor, try_apply};

fn op(op: ReduceOp, axis: usize, extent: usize) -> Op {
    Op::Scatter { op, axis, extent }
}

#[test]
fn sums_by_position() {
    let x = tensor(&[1.0f32, 2.0, 4.0, 8.0, 16.0, 32.0], [3, 2]);
    let rows = tensor(&[2i64, 2, 0, 2, 2, 0], [3, 2]);
    let sums: Vec<f32> = apply(op(ReduceOp::Sum, 0, 3), &[x.clone(), rows], [3, 2]);
    assert_eq!(sums, [4.0, 32.0, 0.0, 0.0, 17.0, 10.0]);
    let columns = tensor(&[3u8, 3, 0, 1, 1, 1], [3, 2]);
    let products: Vec<f32> = apply(op(ReduceOp::Prod, 1, 4), &[x, columns], [3, 4]);
    assert_eq!(products, [1.0, 1.0, 1.0, 2.0, 4.0, 8.0, 1.0, 1.0, 1.0, 512.0, 1.0, 1.0]);
}

#[test]
fn extremes_of_some_and_of_none() {
    let index = tensor(&[1i32, 1, 2], [3]);
    let x = tensor(&[1.0f32, f32::NAN, -3.0], [3]);
    let most: Vec<f32> = apply(op(ReduceOp::Max, 0, 3), &[x, index.clone()], [3]);
    same(&most, &[f32::NEG_INFINITY, f32::NAN, -3.0]);
    let bools = tensor(&[true, false, true], [3]);
    let any: Vec<bool> = apply(op(ReduceOp::Max, 0, 3), &[bools.clone(), index.clone()], [3]);
    assert_eq!(any, [false, true, true]);
    let all: Vec<bool> = apply(op(ReduceOp::Min, 0, 3), &[bools, index.clone()], [3]);
    assert_eq!(all, [true, false, true]);
    let least: Vec<i8> = apply(op(ReduceOp::Min, 0, 3), &[tensor(&[5i8, -7, 9], [3]), index], [3]);
    assert_eq!(least, [127, -7, 9]);
}

#[test]
fn integers_wrap_and_positions_are_checked() {
    let x = tensor(&[i64::MAX, 2], [2]);
    let sums: Vec<i64> = apply(op(ReduceOp::Sum, 0, 1), &[x.clone(), tensor(&[0i64, 0], [2])], [1]);
    assert_eq!(sums, [i64::MIN + 1]);
    for wrong in [-1i64, 1] {
        let index = tensor(&[0, wrong], [2]);
        assert!(try_apply::<i64>(op(ReduceOp::Sum, 0, 1), &[x.clone(), index], [1]).is_err());
    }
}
