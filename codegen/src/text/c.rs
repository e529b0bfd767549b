//! What is particular to C: a function runs a range of blocks, one after the other.

use super::{Printer, signature};
use crate::Language;
use crate::intrinsics::{memory_type, register_type};
use crate::nest::{Nest, Parameter};

pub(super) fn print(nest: &Nest) -> String {
    let mut functions = String::new();
    let mut printer = Printer::new(nest, Language::C, 2);
    for function in &nest.functions {
        let mut parameters = printer.parameters(nest);
        parameters.extend(["idx first_block".to_string(), "idx end_block".to_string()]);
        let name = &function.name;
        functions.push_str(&signature(&format!("static void {name}_blocks"), &parameters));
        functions.push_str("  for (idx block = first_block; block < end_block; ++block) {\n");
        printer.statements(&function.body);
        functions.push_str(&std::mem::take(&mut printer.text));
        functions.push_str("  }\n}\n\n");
        functions.push_str(&format!("void {name}(void* const* args, idx first_block, idx end_block) {{\n"));
        let arguments: Vec<String> =
            (0..nest.parameters.len()).map(|number| argument(nest, number)).collect();
        functions.push_str(&format!("  {name}_blocks(\n"));
        for argument in arguments {
            functions.push_str(&format!("      {argument},\n"));
        }
        functions.push_str("      first_block, end_block);\n}\n");
    }
    let helpers = printer.helpers.text(Language::C);
    let separator = if helpers.is_empty() { "" } else { "\n" };
    format!("typedef long long idx;\n\n{helpers}{separator}{functions}")
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
        Parameter::Extent(_) => "idx".to_string(),
        Parameter::Checks => "long long*".to_string(),
        Parameter::Workspace(space) => {
            format!("{}*", register_type(Language::C, nest.workspaces[space].dtype))
        }
    };
    format!("*({ty}*)args[{number}]")
}
