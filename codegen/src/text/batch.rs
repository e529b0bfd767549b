//! A kernel for several parts: a function with the parameters of one of them, and one that is launched, finds the
//! part of each block in the table, and calls it.

use super::{Printer, c, cuda, signature, streams};
use crate::Language;
use crate::batch::Batch;
use crate::intrinsics::lanes::{Lanes, Wider};
use crate::nest::{Nest, parameter_name};

/// The record of a part and the table of all, under the names that the languages call types by.
fn types(printer: &Printer, nest: &Nest, batch: &Batch) -> String {
    let index = printer.type_name(crate::nest::INDEX);
    let fields: Vec<String> = printer.declarations(nest, "*");
    let assert = match printer.language {
        Language::Cuda => "static_assert",
        Language::C => "_Static_assert",
    };
    format!(
        "// The parameters of one part, whose blocks go on from `first_block`.\nstruct Part {{\n  {};\n  {index} first_block;\n}};\n{assert}(sizeof(struct Part) == {}, \"what the launch fills\");\n\nstruct Parts {{\n  struct Part part[{}];\n}};\n\n",
        fields.join(";\n  "),
        batch.record_bytes(),
        batch.records,
    )
}

/// The function's arguments out of the record at `part`.
fn arguments(nest: &Nest, part: &str, indent: usize) -> String {
    let of = |parameter| format!("{:indent$}{part}.{},\n", "", parameter_name(nest, parameter));
    nest.parameters.iter().map(|&parameter| of(parameter)).collect()
}

pub(super) fn print_cuda(nest: &Nest, batch: &Batch) -> String {
    let mut printer = Printer::new(nest, Language::Cuda, 1);
    printer.block = "block";
    let mut functions = types(&printer, nest, batch);
    for function in &nest.functions {
        let name = &function.name;
        let mut parameters = printer.parameters(nest);
        parameters.push("unsigned block".into());
        let head = format!("static __device__ __forceinline__ void {name}_block");
        functions.push_str(&signature(&head, &parameters));
        functions.push_str(&cuda::body(&mut printer, function));
        let bounds = function.launch.bounds();
        // As a grid constant the table stays where the launch put it; else each thread would copy it to index it.
        let head = format!("extern \"C\" __global__ void {bounds} {name}");
        functions.push_str("}\n\n");
        functions.push_str(&signature(&head, &["const __grid_constant__ Parts parts".into()]));
        let records = batch.records;
        let mut step = records.next_power_of_two();
        functions.push_str("  // The last part that begins at this block or before.\n  unsigned p = 0;\n");
        while step > 1 {
            step /= 2;
            // Where the table is full to the step, there is no record beyond it.
            let inside =
                if records.is_power_of_two() { String::new() } else { format!("p + {step} < {records} && ") };
            functions.push_str(&format!(
                "  if ({inside}parts.part[p + {step}].first_block <= blockIdx.x) p += {step};\n"
            ));
        }
        functions.push_str(&format!("  {name}_block(\n{}", arguments(nest, "parts.part[p]", 6)));
        functions.push_str("      blockIdx.x - parts.part[p].first_block);\n}\n");
    }
    cuda::unit(&printer, &functions)
}

pub(super) fn print_c(nest: &Nest, batch: &Batch) -> String {
    c::widths(|width| print_c_in(nest, batch, width))
}

fn print_c_in(nest: &Nest, batch: &Batch, width: u32) -> Result<String, Wider> {
    let mut printer = Printer::new(nest, Language::C, 2);
    printer.lanes = Lanes::new(width);
    let mut functions = types(&printer, nest, batch);
    let condition = streams::condition(nest);
    for function in &nest.functions {
        functions.push_str(&c::blocks(&mut printer, nest, function, condition.as_deref()));
        let (name, records) = (&function.name, batch.records);
        functions.push_str(&format!(
            "void {name}(void* const* args, idx first_block, idx end_block) {{
  const struct Part* part = ((const struct Parts*)args[0])->part;
  for (idx p = 0; p < {records}; ++p) {{
    const idx first = part[p].first_block;
    const idx end = p + 1 < {records} ? part[p + 1].first_block : end_block;
    const idx from = first_block > first ? first_block : first;
    const idx to = end_block < end ? end_block : end;
    if (from < to) {{
      {name}_blocks(
{}          from - first, to - first);
    }}
  }}
}}
",
            arguments(nest, "part[p]", 10)
        ));
    }
    c::unit(&printer, &functions)
}
