//! Element types of buffers, and the types that arithmetic on them is done in.

use std::fmt;

/// The element type of a tensor or of a kernel parameter.
///
/// `F16` and `BF16` are storage types: arithmetic on them is done in `F32` and rounded when stored
/// or explicitly cast (see [`DType::compute`]).
///
/// ```
/// use lazuli_codegen::DType;
/// assert_eq!(DType::F16.size(), 2);
/// assert_eq!(DType::F16.compute(), DType::F32);
/// assert_eq!(DType::I64.to_string(), "i64");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum DType {
    /// One byte, 0 or 1.
    Bool,
    /// Unsigned 8-bit integer.
    U8,
    /// Signed 8-bit integer.
    I8,
    /// Signed 16-bit integer.
    I16,
    /// Signed 32-bit integer.
    I32,
    /// Unsigned 32-bit integer.
    U32,
    /// Signed 64-bit integer.
    I64,
    /// IEEE 754 binary16.
    F16,
    /// bfloat16: the upper half of a binary32.
    BF16,
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary64.
    F64,
}

impl DType {
    /// Every dtype: bools, integers and floats, each kind by size.
    pub const ALL: [DType; 11] = [
        DType::Bool,
        DType::U8,
        DType::I8,
        DType::I16,
        DType::I32,
        DType::U32,
        DType::I64,
        DType::F16,
        DType::BF16,
        DType::F32,
        DType::F64,
    ];

    /// Bytes of one element in memory.
    pub const fn size(self) -> usize {
        match self {
            DType::Bool | DType::U8 | DType::I8 => 1,
            DType::I16 | DType::F16 | DType::BF16 => 2,
            DType::I32 | DType::U32 | DType::F32 => 4,
            DType::I64 | DType::F64 => 8,
        }
    }

    /// Whether this is a floating-point type.
    pub const fn is_float(self) -> bool {
        matches!(self, DType::F16 | DType::BF16 | DType::F32 | DType::F64)
    }

    /// Whether this is an integer type; `Bool` is not.
    pub const fn is_int(self) -> bool {
        matches!(self, DType::U8 | DType::I8 | DType::I16 | DType::I32 | DType::U32 | DType::I64)
    }

    /// Whether this is an integer type without negative numbers; `Bool` is not.
    pub const fn is_unsigned(self) -> bool {
        matches!(self, DType::U8 | DType::U32)
    }

    /// The type that values of this dtype have in registers: `F32` for the 16-bit floats, otherwise itself.
    pub const fn compute(self) -> DType {
        match self {
            DType::F16 | DType::BF16 => DType::F32,
            DType::Bool
            | DType::U8
            | DType::I8
            | DType::I16
            | DType::I32
            | DType::U32
            | DType::I64
            | DType::F32
            | DType::F64 => self,
        }
    }

    /// The short name used in dumps, kernel names and messages, such as `f32`.
    pub const fn name(self) -> &'static str {
        match self {
            DType::Bool => "bool",
            DType::U8 => "u8",
            DType::I8 => "i8",
            DType::I16 => "i16",
            DType::I32 => "i32",
            DType::U32 => "u32",
            DType::I64 => "i64",
            DType::F16 => "f16",
            DType::BF16 => "bf16",
            DType::F32 => "f32",
            DType::F64 => "f64",
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
