//! The names of types.

use crate::{DType, Language};

/// The type of a value of `dtype` in a register. The 16-bit floats are floats there.
pub fn register_type(language: Language, dtype: DType) -> &'static str {
    match dtype {
        // In C, comparisons stored in bytes vectorise as well as `_Bool`, and need no conversion from memory.
        DType::Bool => match language {
            Language::Cuda => "bool",
            Language::C => "unsigned char",
        },
        DType::U8 => "unsigned char",
        DType::I8 => "signed char",
        DType::I16 => "short",
        DType::I32 => "int",
        DType::U32 => "unsigned int",
        DType::I64 => "long long",
        DType::F16 | DType::BF16 | DType::F32 => "float",
        DType::F64 => "double",
    }
}

/// The type of an element of `dtype` in memory. A `Bool` is a byte, 0 or 1; 16-bit floats are their bits.
pub fn memory_type(_language: Language, dtype: DType) -> &'static str {
    match dtype {
        DType::Bool | DType::U8 => "unsigned char",
        DType::I8 => "signed char",
        DType::I16 => "short",
        DType::I32 => "int",
        DType::U32 => "unsigned int",
        DType::I64 => "long long",
        DType::F16 | DType::BF16 => "unsigned short",
        DType::F32 => "float",
        DType::F64 => "double",
    }
}
