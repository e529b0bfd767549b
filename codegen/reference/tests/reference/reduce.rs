use lazuli_codegen::{DType, ReduceOp};
use lazuli_reference::{Element, Values, reduce, with_type};

#[test]
fn extremes_of_nothing_are_none() {
    assert!(reduce(ReduceOp::Min, &Values::F32(vec![]), &[2, 0], &[1]).is_err());
    assert!(reduce(ReduceOp::ArgMax, &Values::F32(vec![]), &[0], &[0]).is_err());
}

#[test]
fn every_reduction_is_defined_exactly_where_it_says() {
    for dtype in DType::ALL {
        let x = with_type!(dtype, T => T::wrap(vec![T::from_int(1)]));
        for op in ReduceOp::ALL {
            let result = reduce(op, &x, &[1], &[0]);
            assert_eq!(result.is_ok(), op.accepts(dtype), "{op} of {dtype}");
        }
    }
}
