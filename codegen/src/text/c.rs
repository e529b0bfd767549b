//! What is particular to C: a function runs a range of blocks, one after the other.

use super::{Printer, signature};
use crate::Language;
use crate::intrinsics::lanes::{Lanes, WIDTHS, Wider};
use crate::intrinsics::{memory_type, register_type};
use crate::nest::{Function, Nest, Parameter};

/// The text; the condition says whether results are large, see [`streams`](super::streams).
pub(super) fn print(nest: &Nest, condition: Option<&str>) -> String {
    widths(|width| {
        let mut printer = Printer::new(nest, Language::C, 2);
        printer.lanes = Lanes::new(width);
        let functions = all(&mut printer, nest, condition);
        unit(&printer, &functions)
    })
}

/// What is printed with vectors of as many lanes as there can be.
pub(super) fn widths(print: impl Fn(u32) -> Result<String, Wider>) -> String {
    WIDTHS.into_iter().find_map(|width| print(width).ok()).unwrap_or_default()
}

fn all<'a>(printer: &mut Printer<'a>, nest: &'a Nest, condition: Option<&str>) -> String {
    let mut functions = String::new();
    for function in &nest.functions {
        functions.push_str(&blocks(printer, nest, function, condition));
        let name = &function.name;
        functions.push_str(&format!("void {name}(void* const* args, idx first_block, idx end_block) {{\n"));
        let arguments: Vec<String> =
            (0..nest.parameters.len()).map(|number| argument(nest, number)).collect();
        functions.push_str(&format!("  {name}_blocks(\n"));
        for argument in arguments {
            functions.push_str(&format!("      {argument},\n"));
        }
        functions.push_str("      first_block, end_block);\n}\n");
    }
    functions
}

/// What runs a range of blocks, with the kernel's parameters.
pub(super) fn blocks<'a>(
    printer: &mut Printer<'a>,
    nest: &'a Nest,
    function: &'a Function,
    condition: Option<&str>,
) -> String {
    let mut parameters = printer.parameters(nest);
    parameters.extend(["idx first_block".to_string(), "idx end_block".to_string()]);
    let head = signature(&format!("static void {}_blocks", function.name), &parameters);
    printer.streams = condition.is_some();
    printer.function(function);
    let body = std::mem::take(&mut printer.text);
    let (before, after) = match condition.filter(|_| body.contains("lz_stream_")) {
        Some(condition) => (
            format!(
                "  // Results larger than a cache are stored around it.\n  const idx streams = {condition};\n"
            ),
            "  if (streams) lz_fence();\n",
        ),
        None => (String::new(), ""),
    };
    format!(
        "{head}{before}  for (idx block = first_block; block < end_block; ++block) {{\n{body}  }}\n{after}}}\n\n"
    )
}

/// The functions after what they need.
pub(super) fn unit(printer: &Printer, functions: &str) -> Result<String, Wider> {
    let helpers = printer.helpers.text(Language::C) + &printer.lanes.text(functions)?;
    let separator = if helpers.is_empty() { "" } else { "\n" };
    Ok(format!("typedef long long idx;\n\n{helpers}{separator}{functions}"))
}

/// The n-th argument out of the array of pointers to arguments.
fn argument(nest: &Nest, number: usize) -> String {
    let ty = match nest.parameters[number] {
        Parameter::Buffer(id) => {
            let buffer = &nest.kernel.buffers[id.index()];
            format!("{}*", memory_type(Language::C, buffer.dtype))
        }
        Parameter::Argument(id) => {
            register_type(Language::C, nest.kernel.arguments[id.index()].value.dtype()).to_string()
        }
        Parameter::Extent(_) | Parameter::Offset(_) => "idx".to_string(),
        Parameter::Checks | Parameter::Map(_) => "long long*".to_string(),
        Parameter::Workspace(space) => {
            format!("{}*", register_type(Language::C, nest.workspaces[space].dtype))
        }
    };
    format!("*({ty}*)args[{number}]")
}
