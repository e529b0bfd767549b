//! Plans without a compiler: one kernel after the other in the interpreter of kernels.

use std::sync::Arc;

use lazuli_codegen::ir::{ArgumentId, Kernel};
use lazuli_codegen::syntax::Cursor;
use rustc_hash::FxHashMap;

use super::timing::{self, Work};
use crate::compiler::{self, Part, Plan};
use crate::graph::text::{Locations, text};
use crate::graph::{Graph, NodeId, hash, parse};
use crate::interpreter::kernels::{Launch, run};
use crate::runtime::buffer::{Buffer, Buffers};
use crate::runtime::checks;
use crate::runtime::host::HostBuffer;
use crate::{Error, Result, Scalar, stats};

/// The outputs of a graph's plan.
///
/// # Errors
/// As [`run`]; [`Error::IndexOutOfRange`].
pub(crate) fn carry_out(graph: &Graph, plan: &Plan, inputs: &[Buffer]) -> Result<Buffers> {
    timing::noting(Work::Interpreting, || interpret(graph, plan, inputs))
}

fn interpret(graph: &Graph, plan: &Plan, inputs: &[Buffer]) -> Result<Buffers> {
    check_graph_text(graph)?;
    check_graph_text(&plan.graph)?;
    let mut values: FxHashMap<NodeId, Arc<HostBuffer>> = FxHashMap::default();
    for (slot, id) in compiler::input_nodes(&plan.graph) {
        let input = inputs.get(slot).ok_or_else(|| Error::internal("execution", "an input is missing"))?;
        values.insert(id, input.to_host()?);
    }
    for kernel in &plan.kernels {
        for part in &kernel.parts {
            stats::add(stats::Counter::Launches);
            for (id, result) in part.lowered.outputs.iter().zip(results(plan, part, &values)?) {
                values.insert(*id, Arc::new(HostBuffer::from_bytes(&result)?));
            }
        }
    }
    let output = |id: &NodeId| {
        let value = values.get(id).cloned().map(Buffer::Host);
        value.ok_or_else(|| Error::internal("execution", "an output was not computed"))
    };
    plan.outputs.iter().map(output).collect()
}

fn results(plan: &Plan, part: &Part, values: &FxHashMap<NodeId, Arc<HostBuffer>>) -> Result<Vec<Vec<u8>>> {
    let kernel = &part.lowered.kernel;
    check_text(kernel)?;
    let mut inputs: Vec<&[u8]> = Vec::new();
    for id in &part.lowered.inputs {
        let value = values.get(id).ok_or_else(|| Error::internal("execution", "a value is missing"))?;
        inputs.push(value.as_slice());
    }
    let argument = |(number, argument): (usize, &lazuli_codegen::ir::Argument)| {
        Scalar::from_bits(argument.value.dtype(), part.argument(plan, ArgumentId(number as u32)))
    };
    let arguments: Vec<Scalar> = kernel.arguments.iter().enumerate().map(argument).collect();
    let offset = |axis| part.offset(plan, axis);
    let results = run(Launch { kernel, arguments: &arguments, offset: &offset, inputs: &inputs })?;
    let note = results.failed.map_or([0, 0], |(check, index)| [i64::from(check) + 1, index]);
    match checks::error_of(note, &part.lowered.checks) {
        Some(error) => Err(error),
        None => Ok(results.outputs),
    }
}

/// Where tests run, every graph that is computed this way is also one that reads back from its text.
fn check_graph_text(graph: &Graph) -> Result<()> {
    if !cfg!(debug_assertions) {
        return Ok(());
    }
    let printed = text(graph, Locations::Shown);
    let read = parse::graph(&mut Cursor::new(&printed));
    let (read, _) = read.map_err(|error| Error::internal("graph text", format!("{error}, in\n{printed}")))?;
    match hash::structural_key(&read) == hash::structural_key(graph) {
        true => Ok(()),
        false => Err(Error::internal("graph text", format!("another graph is read from\n{printed}"))),
    }
}

/// Every kernel as well.
fn check_text(kernel: &Kernel) -> Result<()> {
    if !cfg!(debug_assertions) {
        return Ok(());
    }
    match kernel.to_string().parse::<Kernel>() {
        Ok(read) if read == *kernel => Ok(()),
        Ok(read) => Err(Error::internal("kernel text", format!("another kernel:\n{read}\nfrom\n{kernel}"))),
        Err(error) => Err(Error::internal("kernel text", format!("{error}, in\n{kernel}"))),
    }
}
