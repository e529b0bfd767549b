use crate::graph::op::{Op, Sorted};
use crate::interpreter::testing::{apply, same, tensor};

#[test]
fn rows_in_order() {
    let x = tensor(&[3.0f32, f32::NAN, 0.0, -0.0, 3.0, f32::INFINITY, f32::NAN, -1.0], [2, 4]);
    let op = |axis, extent, descending, result| Op::Sort { axis, extent, descending, result };
    let values: Vec<f32> = apply(op(1, 4, false, Sorted::Values), std::slice::from_ref(&x), [2, 4]);
    same(&values, &[0.0, -0.0, 3.0, f32::NAN, -1.0, 3.0, f32::INFINITY, f32::NAN]);
    let places: Vec<i64> = apply(op(1, 3, true, Sorted::Positions), std::slice::from_ref(&x), [2, 3]);
    assert_eq!(places, [1, 0, 2, 2, 1, 0]);
    let columns: Vec<i64> = apply(op(0, 1, false, Sorted::Positions), &[x], [1, 4]);
    assert_eq!(columns, [0, 1, 0, 1]);
}
