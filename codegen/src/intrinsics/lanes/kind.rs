//! What lanes of a vector hold.

use crate::DType;

/// How the names of slow paths begin, which return early where no lane needs them.
pub(super) const SLOW_PATH: &str = "lz_slow_";
/// How a function begins that is pasted where it is called.
pub(super) const PASTED: &str = "static inline __attribute__((always_inline)) ";

/// Elements of an array that are spread over lanes.
pub const SPREAD: u64 = 16;

pub(super) type Add<'a> = &'a mut dyn FnMut(&str, String);

/// The numbers in the lanes of a vector. Narrower integers are `I32` there, sixteen-bit floats `F32`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kind {
    /// 64 bits, unsigned, the same in all lanes: what a function is told that goes for each of them.
    Same,
    /// The bits of sixteen-bit floats, as memory has them: widened before anything is done with them.
    Half,
    /// Truths: a bit or an element of all ones or zeros for each lane.
    Mask,
    /// 32 bits, signed.
    I32,
    /// 32 bits, unsigned.
    U32,
    /// 64 bits, signed.
    I64,
    /// 64 bits, unsigned.
    U64,
    /// Single precision.
    F32,
    /// Double precision.
    F64,
}

impl Kind {
    /// Of values of a dtype in registers.
    pub fn of(dtype: DType) -> Kind {
        match dtype {
            DType::Bool => Kind::Mask,
            DType::U8 | DType::I8 | DType::I16 | DType::I32 => Kind::I32,
            DType::U32 => Kind::U32,
            DType::I64 => Kind::I64,
            DType::F16 | DType::BF16 | DType::F32 => Kind::F32,
            DType::F64 => Kind::F64,
        }
    }

    /// Of a C type; that of narrow integers with how they are cut off.
    pub(super) fn of_type(name: &str) -> Option<(Kind, Option<Narrow>)> {
        Some(match name {
            "float" => (Kind::F32, None),
            "double" => (Kind::F64, None),
            "int" => (Kind::I32, None),
            "unsigned" | "unsigned int" => (Kind::U32, None),
            "long long" => (Kind::I64, None),
            "unsigned long long" => (Kind::U64, None),
            "const unsigned long long" => (Kind::Same, None),
            "unsigned char" => (Kind::I32, Some(Narrow::Unsigned(8))),
            "signed char" => (Kind::I32, Some(Narrow::Signed(8))),
            "short" => (Kind::I32, Some(Narrow::Signed(16))),
            "unsigned short" => (Kind::I32, Some(Narrow::Unsigned(16))),
            _ => return None,
        })
    }

    /// Of a literal, as it is written.
    pub(super) fn of_number(text: &str) -> Kind {
        let lower = text.to_ascii_lowercase();
        let is_hexadecimal = lower.starts_with("0x");
        let is_float = match is_hexadecimal {
            true => lower.contains('p'),
            false => lower.contains(['.', 'e']) || lower.starts_with("__builtin"),
        };
        match () {
            _ if lower.starts_with("__builtin_inff") || lower.starts_with("__builtin_nanf") => Kind::F32,
            _ if is_float && lower.ends_with('f') => Kind::F32,
            _ if is_float => Kind::F64,
            _ if lower.ends_with("ull") => Kind::U64,
            _ if lower.ends_with("ll") => Kind::I64,
            _ if lower.ends_with('u') => Kind::U32,
            _ => Kind::I32,
        }
    }

    /// What an operation on two kinds computes with.
    pub(super) fn common(self, other: Kind) -> Kind {
        self.max(other).max(Kind::I32)
    }

    /// Bytes of an element.
    pub fn bytes(self) -> u32 {
        match self {
            Kind::Half => 2,
            Kind::Mask | Kind::I32 | Kind::U32 | Kind::F32 => 4,
            Kind::Same | Kind::I64 | Kind::U64 | Kind::F64 => 8,
        }
    }

    pub(super) fn is_wide(self) -> bool {
        matches!(self, Kind::I64 | Kind::U64 | Kind::F64)
    }

    pub(super) fn is_float(self) -> bool {
        matches!(self, Kind::F32 | Kind::F64)
    }

    /// The type of one element.
    pub(super) fn scalar(self) -> &'static str {
        match self {
            Kind::Half => "unsigned short",
            Kind::Mask | Kind::I32 => "int",
            Kind::U32 => "unsigned",
            Kind::I64 => "long long",
            Kind::Same | Kind::U64 => "unsigned long long",
            Kind::F32 => "float",
            Kind::F64 => "double",
        }
    }

    /// The type of a vector.
    pub fn vector(self) -> &'static str {
        match self {
            Kind::Same => self.scalar(),
            Kind::Half => "u16v",
            Kind::Mask => "mask",
            Kind::I32 => "i32v",
            Kind::U32 => "u32v",
            Kind::I64 => "i64v",
            Kind::U64 => "u64v",
            Kind::F32 => "f32v",
            Kind::F64 => "f64v",
        }
    }
}

/// How the result of integer arithmetic becomes that of a narrower type.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Narrow {
    Unsigned(u32),
    Signed(u32),
}
