use lazuli_codegen::Scalar;
use lazuli_codegen::ir::Kernel;
use lazuli_reference::Result;
use lazuli_reference::kernels::{Launch, run};

/// The outputs, and the check that failed.
type Outcome = (Vec<Vec<f32>>, Option<(u32, i64)>);

/// Runs a kernel whose inputs and outputs are `F32`, with offsets of 1.
fn outputs(text: &str, inputs: &[&[f32]]) -> Result<Outcome> {
    let kernel: Kernel = text.parse().unwrap_or_else(|error| panic!("{error}"));
    let arguments: Vec<Scalar> = kernel.arguments.iter().map(|argument| argument.value).collect();
    let inputs: Vec<&[u8]> = inputs.iter().map(|input| bytemuck::cast_slice(input)).collect();
    let results = run(Launch { kernel: &kernel, arguments: &arguments, offset: &|_| 1, inputs: &inputs })?;
    let floats = results.outputs.iter().map(|output| bytemuck::pod_collect_to_vec(output)).collect();
    Ok((floats, results.failed))
}

const SUMS: &str = "\
kernel sums
  map i0 < 2
  reduce r0 < 3
  offset o0 < 2 number 0
  input in0: f32 [7]
  output out0: f32 [2]
  argument c0: f32 = 10.0
  v0: f32 = load in0[i0 * 3 + r0 + o0]
  v1: f32 = reduce sum over r0 of v0
  v2: f32 = argument c0
  v3: f32 = mul v1 v2
  store out0[i0] = v3
";

const X: [f32; 7] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0];

#[test]
fn reductions_offsets_and_arguments() {
    assert_eq!(outputs(SUMS, &[&X]).unwrap(), (vec![vec![140.0, 1120.0]], None));
}

#[test]
fn every_access_is_checked() {
    for (from, to, message) in [
        ("i0 * 3", "i0 * 4", "element 7 of in0 is read, which has 7"),
        ("out0[i0]", "out0[i0 + 1]", "element 2 of 2 is written"),
        ("out0: f32 [2]", "out0: f32 [3]", "not all elements of out0 are written"),
    ] {
        let error = outputs(&SUMS.replace(from, to), &[&X]).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
    assert!(outputs(SUMS, &[&X[1..]]).is_err());
}

#[test]
fn loops_give_to_each_other_in_order() {
    let kernel = "\
kernel loops
  map i0 < 4
  input in0: f32 [4]
  output out0: f32 [4]
  output out1: f32 [4]
  output out2: f32 [1]
  recurrence along i0: v2 becomes v5
  recurrence along i0: v3 becomes v2
  v0: f32 = literal 0.0
  v1: f32 = load in0[i0]
  v2: f32 = carry 0 of row 0 from v0
  v3: f32 = carry 1 of row 0 from v0
  v4: f32 = add v1 v2
  v5: f32 = add v4 v3
  v6: f32 = last of v3
  v7: f32 = cumsum reverse along i0 of v5
  store out0[i0] = v5
  store out1[i0] = v7
  store out2[0] = v6
";
    // Each step adds what the two before it have come to.
    let ones = [1.0f32; 4];
    let sums = vec![vec![1.0, 2.0, 4.0, 7.0], vec![14.0, 13.0, 11.0, 7.0], vec![4.0]];
    assert_eq!(outputs(kernel, &[&ones]).unwrap().0, sums);
    let back = kernel.replace("along i0:", "along i0 reverse:");
    assert_eq!(outputs(&back, &[&ones]).unwrap().0[0], [7.0, 4.0, 2.0, 1.0]);
}

#[test]
fn positions_are_checked_and_the_nearest_is_taken() {
    let kernel = "\
kernel take
  map i0 < 3
  computed g0 < 7 is v1 check 5
  input in0: f32 [7]
  input in1: f32 [3]
  output out0: f32 [3]
  v0: f32 = load in1[i0]
  v1: i64 = cast v0 to i64
  v2: f32 = load in0[g0]
  store out0[i0] = v2
";
    assert_eq!(outputs(kernel, &[&X, &[6.0, 0.0, 2.0]]).unwrap(), (vec![vec![64.0, 1.0, 4.0]], None));
    let (taken, failed) = outputs(kernel, &[&X, &[3.0, 9.0, -1.0]]).unwrap();
    assert_eq!((taken, failed), (vec![vec![8.0, 64.0, 1.0]], Some((5, 9))));
}

#[test]
fn guards_and_roundings() {
    let kernel = "\
kernel pad
  map i0 < 4
  input in0: f32 [2]
  output out0: f32 [4]
  v0: bool = in_bounds 0 <= i0 - 1 < 2
  v1: f32 = load in0[i0 - 1] if v0
  v2: f32 = cast v1 to f16
  v3: f32 = literal 7.0
  v4: f32 = select v0 v2 v3
  store out0[i0] = v4
";
    let rounded = half::f16::from_f32(0.1).to_f32();
    assert_eq!(outputs(kernel, &[&[0.1, 1.0]]).unwrap().0, [[7.0, rounded, 1.0, 7.0]]);
}
