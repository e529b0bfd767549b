//! Every row of the table of operations, with every dtype that it accepts: special values in all pairs, and shapes
//! that are odd, empty, of one element and broadcast.

use lazuli::operations::{self, Accuracy, Operation};
use lazuli::{DType, Device, Tensor};

use crate::common::data::{input, specials};
use crate::common::matrix::{is_fast, is_full_matrix, sampled};
use crate::common::{FUSED, Output, Scope, differences, exact, near, ulps};

/// Other shapes of what NVRTC has compiled already.
const SHAPES: Scope = Scope { nvrtc: false, ..FUSED };

/// Dtypes of which the sample compiles each elementwise operation with one or two, besides `Bool`, `I16`, `F16` and `F32`.
const OTHERS: [DType; 7] =
    [DType::U8, DType::I8, DType::I32, DType::U32, DType::I64, DType::BF16, DType::F64];
/// And of which it interprets each other operation with five, and compiles it with one or two, besides `F32`: these are many
/// kernels each, whose loops are those of any dtype.
const OF_SHAPES: [DType; 10] = [
    DType::U8,
    DType::I8,
    DType::I32,
    DType::U32,
    DType::I64,
    DType::BF16,
    DType::F64,
    DType::Bool,
    DType::I16,
    DType::F16,
];

/// Whether the sample has the operation with the dtype, compiled or in the interpreter.
fn is_sampled(operation: &Operation, dtype: DType, compiled: bool) -> bool {
    let hash = usize::from(blake3::hash(operation.name.as_bytes()).as_bytes()[0]);
    let (chosen_from, every) = match (is_elementwise(operation), compiled) {
        (true, true) => (&OTHERS[..], 4),
        (true, false) => (&OTHERS[..], 1),
        (false, true) => (&OF_SHAPES[..], 6),
        (false, false) => (&OF_SHAPES[..], 2),
    };
    let is_chosen = |number: usize| number % every == hash % every;
    is_full_matrix() || chosen_from.iter().position(|&other| other == dtype).is_none_or(is_chosen)
}

/// Compiled with other shapes, and one kernel an operation: these take the same ways with every dtype.
const SHAPED: [DType; 2] = [DType::I16, DType::F32];

/// Executed as CUDA C.
const EMULATED: [DType; 3] = [DType::I16, DType::F16, DType::F32];

/// Also unfused on the CPU.
const UNFUSED_ON_CPU: Scope = Scope { unfused_on_cpu: true, ..FUSED };

/// The output with the tolerance that the row states.
pub fn output(operation: &Operation, label: String, tensor: Tensor) -> Option<Output> {
    let dtype = tensor.dtype().ok()?;
    let is_16_bit = matches!(dtype, DType::F16 | DType::BF16);
    Some(match operation.accuracy {
        _ if !dtype.is_float() => exact(label, tensor),
        Accuracy::Exact => exact(label, tensor),
        Accuracy::Ulps(_) if is_16_bit => ulps(label, tensor, 1),
        Accuracy::Ulps(steps) => ulps(label, tensor, steps.into()),
        Accuracy::Near { relative, absolute } => {
            let info = dtype.finfo()?;
            near(label, tensor, relative * info.eps, absolute * info.eps + info.smallest_subnormal)
        }
    })
}

/// All cases of an operation, with inputs made by `make` from the input's number.
fn outputs(operation: &Operation, dtype: DType, make: &dyn Fn(usize) -> Tensor) -> Vec<Output> {
    let inputs: Vec<Tensor> = (0..operation.inputs.len()).map(make).collect();
    let of_case = |case: &operations::Case| -> Vec<Output> {
        let results = (case.record)(&inputs, dtype);
        results.into_iter().filter_map(|tensor| output(operation, case.rust.into(), tensor)).collect()
    };
    operation.cases.iter().flat_map(of_case).collect()
}

/// Operations of one evaluation.
const TOGETHER: usize = 32;

/// Checks a part of the table: in the interpreter of kernels, with fewer dtypes compiled. Reports all that
/// differs at once.
fn check(
    scope: Scope,
    compiled: &[DType],
    part: fn(&Operation) -> bool,
    make: fn(&Operation, usize, DType, &Device) -> Tensor,
) {
    let mut report = String::new();
    let mut compare = |scope: Scope, dtype: DType, compiled: bool| {
        let is_chosen = |operation: &&Operation| part(operation) && is_sampled(operation, dtype, compiled);
        let rows: Vec<&Operation> = operations::all().filter(is_chosen).collect();
        for rows in rows.chunks(TOGETHER) {
            report += &differences(&format!("table {dtype}"), scope, |device| {
                let moved = |outputs: Vec<Output>| outputs.into_iter().map(|output| output.to(device));
                let rows = rows.iter().copied();
                rows.flat_map(|row| moved(outputs(row, dtype, &|n| make(row, n, dtype, device)))).collect()
            });
        }
    };
    for dtype in DType::ALL {
        compare(scope.interpreted(), dtype, false);
    }
    for &dtype in compiled.iter().filter(|_| !is_fast()) {
        let scope = Scope {
            unfused_on_cpu: scope.unfused_on_cpu && (is_full_matrix() || SHAPED.contains(&dtype)),
            emulated: scope.emulated && (is_full_matrix() || EMULATED.contains(&dtype)),
            ..scope.compiled()
        };
        compare(scope, dtype, true);
    }
    assert!(report.is_empty(), "\n{report}");
}

/// Whether inputs may have any shape.
fn is_elementwise(operation: &Operation) -> bool {
    !operation.inputs.is_empty() && operation.inputs.iter().all(|input| input.shape.is_none())
}

/// Every input along a dimension of its own: all combinations of two inputs; of three, some.
#[test]
fn special_values_in_all_pairs() {
    check(
        UNFUSED_ON_CPU,
        &DType::ALL,
        |row| is_elementwise(row) && row.inputs.len() <= 2,
        |row, n, dtype, device| {
            let own = row.inputs[n].dtype.unwrap_or(dtype);
            match (row.inputs.len(), n) {
                (1, _) => specials(device, own),
                (_, 0) => specials(device, own).unsqueeze(1),
                (_, _) => specials(device, own).unsqueeze(0),
            }
        },
    );
    check(
        FUSED,
        &DType::ALL,
        |row| is_elementwise(row) && row.inputs.len() > 2,
        |row, n, dtype, device| {
            let shapes: [&[usize]; 3] = [&[13, 1, 1], &[1, 17, 1], &[61]];
            input(device, &row.inputs[n], dtype, shapes[n % 3], 7 * n)
        },
    );
}

#[test]
fn shapes_that_broadcast() {
    check(SHAPES, &sampled(&DType::ALL, &SHAPED), is_elementwise, |row, n, dtype, device| {
        input(device, &row.inputs[n], dtype, [&[13, 5][..], &[5], &[13, 1]][n % 3], 3 * n)
    });
}

#[test]
fn shapes_of_few_elements() {
    check(SHAPES, &sampled(&DType::ALL, &SHAPED), is_elementwise, |row, n, dtype, device| {
        input(device, &row.inputs[n], dtype, [&[][..], &[1, 1], &[1]][n % 3], 5 + n)
    });
    check(SHAPES, &sampled(&DType::ALL, &SHAPED), is_elementwise, |row, n, dtype, device| {
        input(device, &row.inputs[n], dtype, [&[3, 0, 2][..], &[1, 2], &[]][n % 3], 1)
    });
}

#[test]
fn shapes_of_their_own() {
    check(
        UNFUSED_ON_CPU,
        &DType::ALL,
        |row| !is_elementwise(row),
        |row, n, dtype, device| input(device, &row.inputs[n], dtype, &[13, 5], 11 * n),
    );
}
