//! The comparison with other systems, without them: our program knows every case of the harness and leaves the
//! reference interpreter's results, and the harness's tests of its own pass.
//!
//! Both need `python3`, but no packages; where there is none, there is nothing to test.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // A failed assumption stops the test.

mod common;
#[allow(dead_code, reason = "its main function runs as a benchmark only")]
#[path = "../benches/peers.rs"]
mod program;

use std::io::ErrorKind;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use common::{Tolerance, mismatch};
use lazuli::{DType, Device, Tensor};
use program::Arguments;
use serde_json::{Map, Value, json};

/// What Python prints that runs in the harness's folder.
fn python(arguments: &[&str]) -> Option<Output> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/peers");
    match Command::new("python3").arg("-B").args(arguments).current_dir(folder).output() {
        Ok(output) => Some(output),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => panic!("{error}"),
    }
}

fn succeeded(output: Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The harness's cases as entries of a manifest, no extent greater than `most`.
fn entries(most: usize) -> Option<Map<String, Value>> {
    let script = "import cases, json; print(json.dumps({case.name: {'dtype': case.dtype, 'tiny': case.tiny, 'inputs': \
                  [{'dtype': case.dtype, 'shape': given.shape, 'distribution': given.distribution} \
                  for given in case.inputs]} for case in cases.CASES.values()}))";
    let mut cases: Map<String, Value> = serde_json::from_str(&succeeded(python(&["-c", script])?)).unwrap();
    for input in cases.values_mut().flat_map(|case| case["inputs"].as_array_mut().unwrap()) {
        for extent in input["shape"].as_array_mut().unwrap() {
            *extent = json!(extent.as_u64().unwrap().min(most as u64));
        }
    }
    Some(cases)
}

/// An input as the manifest describes it.
fn drawn(input: &Value, seed: usize) -> Tensor {
    let shape: Vec<usize> =
        input["shape"].as_array().unwrap().iter().map(|extent| extent.as_u64().unwrap() as usize).collect();
    let (low, dtype) = (if input["distribution"] == "uniform" { 0.0 } else { -2.0 }, &input["dtype"]);
    let values = (0..shape.iter().product()).map(|i: usize| low + ((i + seed) * 37 % 101) as f32 / 50.0);
    let dtype = DType::ALL.into_iter().find(|own| dtype == own.name()).unwrap();
    Tensor::from_vec(values.collect::<Vec<f32>>(), shape).to(&Device::interpreter()).cast(dtype)
}

#[test]
fn our_program_computes_every_case() {
    let Some(entries) = entries(9) else { return };
    assert!(entries.len() > 20, "{} cases", entries.len());
    let folder = tempfile::tempdir().unwrap();
    let (data, out) = (folder.path().join("data"), folder.path().join("out"));
    let path = |path: &Path| path.to_str().unwrap().to_owned();
    let words = ["--data", &path(&data), "--device", "cpu", "--threads", "1", "--out", &path(&out)];
    let arguments = Arguments::parse(words.map(String::from));
    for (case, entry) in &entries {
        let inputs: Vec<Tensor> =
            entry["inputs"].as_array().unwrap().iter().enumerate().map(|(i, x)| drawn(x, i)).collect();
        std::fs::create_dir_all(data.join(case)).unwrap();
        for (i, input) in inputs.iter().enumerate() {
            program::write(&data.join(case).join(format!("in{i}.npy")), input);
        }

        let line = program::run(case, entry, &arguments, Duration::ZERO);
        assert_eq!(line["case"], json!(case));
        for time in ["first_ms", "median_ms", "min_ms"] {
            assert!(line[time].as_f64().is_some_and(|time| time > 0.0), "{case}: {line}");
        }

        let expected = program::pipeline(case).expect("a pipeline of this case")(&inputs);
        let dtype = entry["dtype"].as_str().unwrap();
        for (i, expected) in expected.iter().enumerate() {
            let got = program::read(&out.join(case).join(format!("out{i}.npy")), dtype);
            let eps = expected.dtype().unwrap().finfo().unwrap().eps;
            let tolerance = Tolerance::Near { relative: 32.0 * eps, absolute: 32.0 * eps };
            if let Some(text) = mismatch(&got, expected, tolerance) {
                panic!("{case}, output {i}: {text}");
            }
        }
        assert!(!out.join(case).join(format!("out{}.npy", expected.len())).exists(), "{case}: more outputs");
    }
}

#[test]
fn the_harness_passes_its_own_tests() {
    let Some(output) = python(&["tests.py"]) else { return };
    succeeded(output);
}
