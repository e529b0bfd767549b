//! Running kernels in the interpreter of kernels.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use lazuli_codegen::intrinsics::philox_uniform_f64;
use lazuli_codegen::ir::Kernel;
use lazuli_codegen::nest::Nest;
use lazuli_codegen::{Language, interpreter as nests};

use crate::compiler::{Plan, input_nodes};
use crate::executor::interpreted;
use crate::graph::Graph;
use crate::interpreter;
use crate::interpreter::kernels::{Launch, Results, run};
use crate::runtime::buffer::Buffer;
use crate::runtime::host::HostBuffer;
use crate::{DType, Error, Scalar, Shape};

/// What is computed with.
#[derive(Clone, Debug)]
pub(super) struct Data {
    /// Elements as text, by the input's number.
    pub(super) inputs: BTreeMap<usize, Vec<String>>,
    pub(super) seed: u64,
    pub(super) offsets: BTreeMap<String, u64>,
    /// In relation to the reference.
    pub(super) tolerance: f64,
}

/// More elements are not made.
const MOST_ELEMENTS: usize = 1 << 26;

/// Elements of an output that are printed.
const MOST_PRINTED: usize = 32;

impl Data {
    /// The elements of an input, as bytes.
    fn input(&self, number: usize, dtype: DType, elements: usize) -> Result<Vec<u8>, String> {
        if elements > MOST_ELEMENTS {
            return Err(format!("input {number} has {elements} elements, more than {MOST_ELEMENTS}"));
        }
        let scalars: Vec<Scalar> = match self.inputs.get(&number) {
            Some(values) => {
                let parsed = values.iter().map(|value| {
                    let scalar = Scalar::from_text(dtype, value);
                    scalar.ok_or_else(|| format!("input {number}: {value} is no {dtype}"))
                });
                let parsed: Vec<Scalar> = parsed.collect::<Result<_, _>>()?;
                match parsed.as_slice() {
                    [one] => vec![*one; elements],
                    _ if parsed.len() == elements => parsed,
                    _ => return Err(format!("input {number} has {elements} elements, not {}", parsed.len())),
                }
            }
            None => (0..elements).map(|n| random(self.seed.wrapping_add(number as u64), n, dtype)).collect(),
        };
        let bytes =
            scalars.iter().flat_map(|scalar| scalar.to_bits().to_le_bytes().into_iter().take(dtype.size()));
        Ok(bytes.collect())
    }
}

/// Floats are multiples of 1/64 from -2 to 2, exact in every dtype; integers from 0 to 7.
fn random(seed: u64, number: usize, dtype: DType) -> Scalar {
    let uniform = philox_uniform_f64(seed, number as u64);
    match dtype {
        DType::Bool => Scalar::from_bool(uniform < 0.5),
        _ if dtype.is_float() => Scalar::from_f64(dtype, (uniform * 256.0).floor() / 64.0 - 2.0),
        _ => Scalar::from_f64(dtype, (uniform * 8.0).floor()),
    }
}

fn scalars(dtype: DType, bytes: &[u8]) -> Vec<Scalar> {
    let bits = |bytes: &[u8]| bytes.iter().rev().fold(0, |bits: u64, &byte| bits << 8 | u64::from(byte));
    bytes.chunks_exact(dtype.size()).map(|bytes| Scalar::from_bits(dtype, bits(bytes))).collect()
}

fn line(out: &mut String, number: usize, dtype: DType, shape: &Shape, values: &[Scalar]) {
    let shown: Vec<String> = values.iter().take(MOST_PRINTED).map(Scalar::to_string).collect();
    let more = if values.len() > MOST_PRINTED { ", …" } else { "" };
    let _ = writeln!(out, "output {number}: {dtype} {shape} = {}{more}", shown.join(", "));
}

/// The outputs of a plan of a graph.
///
/// # Errors
/// How they differ from the reference's.
pub(super) fn compared(graph: &Graph, plan: &Plan, data: &Data) -> Result<String, String> {
    let mut inputs: Vec<Vec<u8>> = Vec::new();
    for (slot, id) in input_nodes(graph) {
        let node = graph.node(id);
        inputs.resize(inputs.len().max(slot + 1), Vec::new());
        inputs[slot] = data.input(slot, node.dtype, node.shape.elements())?;
    }
    let slices: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
    let expected = interpreter::evaluate(graph, &slices).map_err(|error| error.to_string())?;
    let buffer = |bytes: &&[u8]| HostBuffer::from_bytes(bytes).map(|buffer| Buffer::Host(Arc::new(buffer)));
    let buffers: Result<Vec<Buffer>, _> = slices.iter().map(buffer).collect();
    let got = buffers.and_then(|buffers| interpreted::carry_out(graph, plan, &buffers));
    let got = got.map_err(|error| error.to_string())?;
    let (mut out, mut differences) = (String::new(), String::new());
    for (number, (&id, (got, expected))) in graph.outputs().iter().zip(got.iter().zip(&expected)).enumerate()
    {
        let node = graph.node(id);
        let got = got.to_host().map_err(|error| error.to_string())?;
        let got = scalars(node.dtype, got.as_slice());
        let expected = scalars(node.dtype, expected.as_slice());
        line(&mut out, number, node.dtype, &node.shape, &got);
        let differs = |(a, b): &(Scalar, Scalar)| !is_near(*a, *b, data.tolerance);
        let pairs = || got.iter().copied().zip(expected.iter().copied());
        if let Some((at, (got, expected))) = pairs().enumerate().find(|(_, pair)| differs(pair)) {
            let count = pairs().filter(differs).count();
            let all = pairs().count();
            let _ = writeln!(
                differences,
                "output {number}: {count} of {all} differ: [{at}] is {got}, not {expected}"
            );
        }
    }
    if differences.is_empty() {
        Ok(out)
    } else {
        Err(format!("not what the reference gives\n{out}{differences}"))
    }
}

fn is_near(a: Scalar, b: Scalar, tolerance: f64) -> bool {
    let (x, y) = (a.as_f64(), b.as_f64());
    a == b || x.is_nan() && y.is_nan() || tolerance > 0.0 && (x - y).abs() <= tolerance * y.abs()
}

/// What runs: a kernel as it is, or under a schedule.
#[derive(Clone, Copy)]
pub(super) enum Code<'a> {
    Kernel(&'a Kernel),
    Nest(&'a Nest, Language),
}

/// The outputs of a kernel.
pub(super) fn results(code: Code<'_>, data: &Data) -> Result<String, String> {
    let kernel = match code {
        Code::Kernel(kernel) => kernel,
        Code::Nest(nest, _) => &nest.kernel,
    };
    let buffers = kernel.buffers.iter().filter(|buffer| !buffer.is_output).enumerate();
    let inputs: Vec<Vec<u8>> = buffers
        .map(|(number, buffer)| data.input(number, buffer.dtype, buffer.elements as usize))
        .collect::<Result<_, _>>()?;
    let slices: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
    let arguments: Vec<Scalar> = kernel.arguments.iter().map(|argument| argument.value).collect();
    let offset = |axis| data.offsets.get(&kernel.axis(axis).name).copied().unwrap_or(0);
    let (arguments, inputs, offset) = (&arguments, &slices, &offset);
    let results = match code {
        Code::Kernel(_) => {
            run(Launch { kernel, arguments, offset, inputs }).map_err(|error| match error {
                // The kernel is whoever's wrote it.
                Error::Internal { message, .. } => message,
                other => other.to_string(),
            })?
        }
        Code::Nest(nest, language) => {
            let results = nests::run(nest, language, &nests::Call { arguments, offset, inputs });
            let nests::Results { outputs, failed } = results.map_err(|fault| fault.to_string())?;
            Results { outputs, failed }
        }
    };
    if let Some((check, position)) = results.failed {
        return Err(format!("kernel {}: check {check}: {position} is no position", kernel.name));
    }
    let mut out = String::new();
    let outputs = kernel.buffers.iter().filter(|buffer| buffer.is_output);
    for (number, (buffer, bytes)) in outputs.zip(&results.outputs).enumerate() {
        let values = scalars(buffer.dtype, bytes);
        line(&mut out, number, buffer.dtype, &Shape::from([buffer.elements as usize]), &values);
    }
    Ok(out)
}
