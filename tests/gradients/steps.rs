//! Operations in the steps of scans: their gradients are those that they have outside.

use lazuli::operations::{self, Case, Group};
use lazuli::{DType, ScanOrder, Tensor};

use super::{Call, RANGES};

/// The sum of a case's first float result, recorded in the step of a scan with one step.
fn sum_in_a_step(case: &Case, inputs: &[Tensor]) -> Option<Tensor> {
    let sole = |results: Vec<Tensor>| {
        results.into_iter().find(|result| result.dtype().is_ok_and(|dtype| dtype.is_float()))
    };
    let _ = sole((case.record)(inputs, DType::F64))?;
    let all: Vec<Tensor> = inputs.iter().map(|input| input.unsqueeze(0)).collect();
    let record = |elements: &[&Tensor]| {
        let elements: Vec<Tensor> = elements.iter().map(|&x| x.clone()).collect();
        sole((case.record)(&elements, DType::F64)).unwrap().cast(DType::F64)
    };
    let order = ScanOrder::new();
    let ([last], []) = match &all[..] {
        [a] => lazuli::scan([a], 0, order, [0.0], |[sum], [a]| ([sum + record(&[a])], [])),
        [a, b] => lazuli::scan([a, b], 0, order, [0.0], |[sum], [a, b]| ([sum + record(&[a, b])], [])),
        [a, b, c] => {
            lazuli::scan([a, b, c], 0, order, [0.0], |[sum], [a, b, c]| ([sum + record(&[a, b, c])], []))
        }
        _ => return None,
    };
    Some(last.sum(..))
}

/// Whether its formula is one of steps or of whole tensors, an operation has one gradient.
#[test]
fn operations_go_back_in_steps_as_they_do_outside() {
    let (mut compared, mut wrong) = (0, Vec::new());
    for operation in operations::all() {
        let is_elementwise = operation.inputs.iter().all(|input| input.shape.is_none());
        let groups = [Group::Unary, Group::Binary, Group::Logic, Group::Activation];
        if !is_elementwise || !groups.contains(&operation.group) || !operation.accepts.accepts(DType::F64) {
            continue;
        }
        for (case, &range) in
            operation.cases.iter().flat_map(|case| RANGES.iter().map(move |range| (case, range)))
        {
            let call = Call::new(operation, case, range);
            let inputs = call.inputs(&call.values);
            let Some(loss) = sum_in_a_step(case, &inputs) else { continue };
            let whole = (case.record)(&inputs, DType::F64);
            let whole = whole.into_iter().find(|result| result.dtype().is_ok_and(|dtype| dtype.is_float()));
            let whole = whole.unwrap().cast(DType::F64).sum(..);
            for input in inputs.iter().filter(|input| input.dtype().unwrap() == DType::F64) {
                let of = |loss: &Tensor| lazuli::grad(loss, input).to_vec::<f64>();
                // What has no gradient outside has none.
                let Ok(own) = of(&whole) else { continue };
                let in_step = match of(&loss) {
                    Ok(in_step) => in_step,
                    Err(error) => {
                        wrong.push(format!("{}: {error}", case.rust));
                        continue;
                    }
                };
                let is_near = |(a, b): (&f64, &f64)| {
                    a.is_nan() && b.is_nan() || a == b || (a - b).abs() <= 1e-12 * (1.0 + a.abs())
                };
                if !own.iter().zip(&in_step).all(is_near) {
                    wrong.push(format!("{}: {in_step:?}, not {own:?}", case.rust));
                }
                compared += 1;
            }
        }
    }
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(compared > 200, "{compared} only");
}
