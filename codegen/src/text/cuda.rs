//! What is particular to CUDA C.

use super::{BLOCK_MEMORY, Printer, signature};
use crate::nest::stmt::Stmt;
use crate::nest::{Function, Nest};
use crate::{DType, Language};

pub(super) fn print(nest: &Nest) -> String {
    let mut functions = String::new();
    let mut printer = Printer::new(nest, Language::Cuda, 1);
    for function in &nest.functions {
        let bounds = function.launch.bounds();
        let head = format!("extern \"C\" __global__ void {bounds} {}", function.name);
        functions.push_str(&signature(&head, &printer.parameters(nest)));
        functions.push_str(&body(&mut printer, function));
        functions.push_str("}\n");
    }
    unit(&printer, &functions)
}

/// The statements of a function, after the declaration of the shared memory that its launch provides.
pub(super) fn body<'a>(printer: &mut Printer<'a>, function: &'a Function) -> String {
    if function.launch.shared_bytes > 0 {
        let alignment = if function.body.statements.iter().any(has_groups) { GROUP_ALIGNMENT } else { 16 };
        printer.line(&format!("extern __shared__ __align__({alignment}) unsigned char {BLOCK_MEMORY}[];"));
    }
    printer.function(function);
    std::mem::take(&mut printer.text)
}

/// Bytes at a multiple of which lines of products of groups begin.
const GROUP_ALIGNMENT: u32 = 1024;

fn has_groups(stmt: &Stmt) -> bool {
    matches!(stmt, Stmt::MultiplyGroup(_))
        || stmt.bodies().into_iter().any(|body| body.iter().any(has_groups))
}

/// The functions after what they need.
pub(super) fn unit(printer: &Printer, functions: &str) -> String {
    let helpers = printer.helpers.text(Language::Cuda);
    let separator = if helpers.is_empty() { "" } else { "\n" };
    format!("{helpers}{separator}{functions}")
}

/// The built-in vector type for an access of `width` elements.
pub(super) fn vector_type(dtype: DType, width: u64) -> &'static str {
    match (dtype, width) {
        (DType::F32, 2) => "float2",
        (DType::F32, 4) => "float4",
        (DType::F64, 2) => "double2",
        (DType::I32, 2) => "int2",
        (DType::I32, 4) => "int4",
        (DType::U32, 2) => "uint2",
        (DType::U32, 4) => "uint4",
        (DType::I64, 2) => "longlong2",
        (DType::F16 | DType::BF16, 2) => "ushort2",
        (DType::F16 | DType::BF16, 4) => "ushort4",
        (DType::I16, 2) => "short2",
        (DType::I16, 4) => "short4",
        (DType::I16 | DType::F16 | DType::BF16, 8) => "uint4",
        (DType::Bool | DType::U8, 2) => "uchar2",
        (DType::Bool | DType::U8, 4) => "uchar4",
        (DType::I8, 2) => "char2",
        (DType::I8, 4) => "char4",
        (DType::Bool | DType::U8 | DType::I8, 8) => "uint2",
        (DType::Bool | DType::U8 | DType::I8, 16) => "uint4",
        (DType::F32, _) => "float",
        (DType::F64, _) => "double",
        (DType::I8, _) => "signed char",
        (DType::I16, _) => "short",
        (DType::I32, _) => "int",
        (DType::U32, _) => "unsigned int",
        (DType::I64, _) => "long long",
        (DType::F16 | DType::BF16, _) => "unsigned short",
        (DType::Bool | DType::U8, _) => "unsigned char",
    }
}
