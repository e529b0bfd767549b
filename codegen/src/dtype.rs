//! Element types of buffers, and the types that arithmetic on them is done in.

use std::fmt;
use std::str::FromStr;

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
            _ => self,
        }
    }

    /// What the bits of registers of this dtype are seen as by a bit cast: the signed integer of a float's size, and the float of an
    /// integer's; `None` for dtypes that have no other of their size to compute with.
    ///
    /// ```
    /// use lazuli_codegen::DType;
    /// assert_eq!(DType::F32.bitcast(), Some(DType::I32));
    /// assert_eq!((DType::I64.bitcast(), DType::F16.bitcast()), (Some(DType::F64), None));
    /// ```
    pub const fn bitcast(self) -> Option<DType> {
        match self {
            DType::F32 => Some(DType::I32),
            DType::I32 => Some(DType::F32),
            DType::F64 => Some(DType::I64),
            DType::I64 => Some(DType::F64),
            DType::Bool | DType::U8 | DType::I8 | DType::I16 | DType::U32 | DType::F16 | DType::BF16 => None,
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

impl FromStr for DType {
    type Err = UnknownDType;

    /// Understands the short names (`f32`), and those of NumPy and PyTorch (`float32`, `torch.half`).
    fn from_str(name: &str) -> Result<DType, UnknownDType> {
        let bare = name.trim();
        let bare = bare.strip_prefix("torch.").unwrap_or(bare);
        let other = |dtype: DType| match dtype {
            DType::Bool => ["bool_", "bool8"],
            DType::U8 => ["uint8", "byte"],
            DType::I8 => ["int8", "char"],
            DType::I16 => ["int16", "short"],
            DType::I32 => ["int32", "int"],
            DType::U32 => ["uint32", "uint"],
            DType::I64 => ["int64", "long"],
            DType::F16 => ["float16", "half"],
            DType::BF16 => ["bfloat16", "bfloat"],
            DType::F32 => ["float32", "float"],
            DType::F64 => ["float64", "double"],
        };
        let found =
            DType::ALL.into_iter().find(|dtype| dtype.name() == bare || other(*dtype).contains(&bare));
        found.ok_or_else(|| UnknownDType(name.to_owned()))
    }
}

/// A name that is none of a dtype.
///
/// ```
/// use lazuli_codegen::DType;
/// assert_eq!("f16".parse(), Ok(DType::F16));
/// assert_eq!("torch.bfloat16".parse(), Ok(DType::BF16));
/// let error = "complex64".parse::<DType>().unwrap_err();
/// assert!(error.to_string().starts_with("no dtype is called `complex64`"));
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnknownDType(String);

impl fmt::Display for UnknownDType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = DType::ALL.map(DType::name).join(", ");
        write!(f, "no dtype is called `{}`; there are {names}", self.0)
    }
}

impl std::error::Error for UnknownDType {}
