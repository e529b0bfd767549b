//! Conversions between vectors of as many lanes. What gcc makes of its general word for them takes apart and puts together
//! what the processor widens or narrows in one instruction.

use super::kind::{Add, PASTED};
use crate::intrinsics::call;

/// With AVX-512, and with AVX2.
type Instructions = [Option<&'static str>; 2];

/// From a kind of vector to another one: the instructions with AVX-512 and with AVX2, where lanes have 4 bytes, and where
/// they have 8. `x` is the operand, and `w` the same in a register of 16 bytes.
const CONVERSIONS: [(&str, &str, Instructions, Instructions); 19] = [
    ("u8v", "i32v", [ZXBD512, ZXBD256], [ZXBD256, None]),
    ("i8v", "i32v", [SXBD512, SXBD256], [SXBD256, None]),
    ("u16v", "i32v", [ZXWD512, ZXWD256], [ZXWD256, None]),
    ("i16v", "i32v", [SXWD512, SXWD256], [SXWD256, None]),
    ("i32v", "u8v", [DB512, BYTES256], [DB256, BYTES128]),
    ("i32v", "i8v", [DB512, BYTES256], [DB256, BYTES128]),
    ("i32v", "u16v", [DW512, WORDS256], [DW256, WORDS128]),
    ("i32v", "i16v", [DW512, WORDS256], [DW256, WORDS128]),
    ("i32v", "i64v", [None, None], [SXDQ512, SXDQ256]),
    ("i32v", "u64v", [None, None], [SXDQ512, SXDQ256]),
    ("u32v", "i64v", [None, None], [ZXDQ512, ZXDQ256]),
    ("u32v", "u64v", [None, None], [ZXDQ512, ZXDQ256]),
    ("i64v", "i32v", [None, None], [QD512, QD256]),
    ("u64v", "i32v", [None, None], [QD512, QD256]),
    ("i64v", "u32v", [None, None], [QD512, QD256]),
    ("u64v", "u32v", [None, None], [QD512, QD256]),
    ("i32v", "f64v", [None, None], [DQ2PD512, DQ2PD256]),
    ("u32v", "f64v", [None, None], [UDQ2PD512, None]),
    ("f32v", "f64v", [None, None], [PS2PD512, PS2PD256]),
];

const ZXBD512: Option<&str> = Some("__builtin_ia32_pmovzxbd512_mask(w, (i32v){ 0 }, -1)");
const ZXBD256: Option<&str> = Some("__builtin_ia32_pmovzxbd256(w)");
const SXBD512: Option<&str> = Some("__builtin_ia32_pmovsxbd512_mask(w, (i32v){ 0 }, -1)");
const SXBD256: Option<&str> = Some("__builtin_ia32_pmovsxbd256(w)");
const ZXWD512: Option<&str> = Some("__builtin_ia32_pmovzxwd512_mask((i16v)x, (i32v){ 0 }, -1)");
const ZXWD256: Option<&str> = Some("__builtin_ia32_pmovzxwd256((i16v)x)");
const SXWD512: Option<&str> = Some("__builtin_ia32_pmovsxwd512_mask((i16v)x, (i32v){ 0 }, -1)");
const SXWD256: Option<&str> = Some("__builtin_ia32_pmovsxwd256((i16v)x)");
const DB512: Option<&str> = Some("__builtin_ia32_pmovdb512_mask(x, (c16v){ 0 }, -1)");
const DB256: Option<&str> = Some("__builtin_ia32_pmovdb256_mask(x, (c16v){ 0 }, -1)");
const DW512: Option<&str> = Some("__builtin_ia32_pmovdw512_mask(x, (i16v){ 0 }, -1)");
const DW256: Option<&str> = Some("__builtin_ia32_pmovdw256_mask(x, (i16v){ 0 }, -1)");
// The bytes that stay, of both halves of a register, and of one.
const BYTES256: Option<&str> = Some(
    "lz_picked((c32v)x, (c32v){ 0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1 })",
);
const WORDS256: Option<&str> = Some(
    "lz_picked((c32v)x, (c32v){ 0, 1, 4, 5, 8, 9, 12, 13, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 0, 1, 4, 5, 8, 9, 12, 13 })",
);
const BYTES128: Option<&str> = Some("(c16v)__builtin_ia32_pshufb128((c16v)x, (c16v){ 0, 4, 8, 12 })");
const WORDS128: Option<&str> =
    Some("(c16v)__builtin_ia32_pshufb128((c16v)x, (c16v){ 0, 1, 4, 5, 8, 9, 12, 13 })");
const SXDQ512: Option<&str> = Some("__builtin_ia32_pmovsxdq512_mask(x, (i64v){ 0 }, -1)");
const SXDQ256: Option<&str> = Some("__builtin_ia32_pmovsxdq256(x)");
const ZXDQ512: Option<&str> = Some("__builtin_ia32_pmovzxdq512_mask((i32v)x, (i64v){ 0 }, -1)");
const ZXDQ256: Option<&str> = Some("__builtin_ia32_pmovzxdq256((i32v)x)");
const QD512: Option<&str> = Some("__builtin_ia32_pmovqd512_mask((i64v)x, (i32v){ 0 }, -1)");
const QD256: Option<&str> = Some(
    "__builtin_ia32_shufps((f32v)__builtin_ia32_extract128i256((i64v)x, 0), (f32v)__builtin_ia32_extract128i256((i64v)x, 1), 0x88)",
);
const DQ2PD512: Option<&str> = Some("__builtin_ia32_cvtdq2pd512_mask(x, (f64v){ 0 }, -1)");
const DQ2PD256: Option<&str> = Some("__builtin_ia32_cvtdq2pd256(x)");
const UDQ2PD512: Option<&str> = Some("__builtin_ia32_cvtudq2pd512_mask((i32v)x, (f64v){ 0 }, -1)");
const PS2PD512: Option<&str> = Some("__builtin_ia32_cvtps2pd512_mask(x, (f64v){ 0 }, -1, 4)");
const PS2PD256: Option<&str> = Some("__builtin_ia32_cvtps2pd256(x)");

/// A conversion of a primary expression.
pub(super) fn conversion(text: &str, from: &str, to: &str) -> String {
    let is_listed = CONVERSIONS.iter().any(|(own, other, ..)| (*own, *other) == (from, to));
    match is_listed {
        true => call(&name(from, to), &[text]),
        false => call("__builtin_convertvector", &[text, to]),
    }
}

fn name(from: &str, to: &str) -> String {
    format!("lz_{}_{to}", from.trim_end_matches('v'))
}

/// The functions of the list.
pub(super) fn define(width: u32, add: Add) {
    if width == 4 {
        let code = "// Bytes of each half by their numbers there, or zeros; one half over the other.
PASTEDc16v lz_picked(c32v x, c32v at) {
    const i64x4 picked = (i64x4)__builtin_ia32_pshufb256(x, at);
    return (c16v)(__builtin_ia32_extract128i256(picked, 0) | __builtin_ia32_extract128i256(picked, 1));
}
";
        add("lz_picked", format!("#if {AVX2}\n{}#endif\n", code.replace("PASTED", PASTED)));
    }
    for (from, to, of_four, of_eight) in CONVERSIONS {
        let [wide, narrow] = if width == 4 { of_four } else { of_eight };
        let plain = format!("    return __builtin_convertvector(x, {to});\n");
        let body = |instruction: &str, lanes: u32| {
            let before = if instruction.contains("(w") { in_register("x", lanes) } else { String::new() };
            match instruction.contains("(c16v)") || instruction.contains("lz_picked") {
                true => {
                    let bytes = if to.contains("16") { 2 * lanes } else { lanes };
                    format!("    const c16v w = {instruction};\n{}    return r;\n", of_register(to, bytes))
                }
                false => format!("{before}    return ({to}){instruction};\n"),
            }
        };
        let (wide, narrow) =
            (wide.map(|text| body(text, 64 / width)), narrow.map(|text| body(text, 32 / width)));
        let body = match (wide, narrow) {
            (None, None) => plain,
            (Some(wide), None) => format!("#ifdef MASKS\n{wide}#else\n{plain}#endif\n"),
            (None, Some(narrow)) => format!("#if {AVX2}\n{narrow}#else\n{plain}#endif\n"),
            (Some(wide), Some(narrow)) => {
                format!("#ifdef MASKS\n{wide}#elif {AVX2}\n{narrow}#else\n{plain}#endif\n")
            }
        };
        let name = name(from, to);
        add(&name, format!("{PASTED}{to} {name}({from} x) {{\n{body}}}\n"));
    }
}

/// Puts so many bytes into a register: not by way of memory, where eight of them would be waited for. What is read must be
/// in the register then: gcc 12 fails over a load that it has made one instruction with a conversion under a mask.
pub(super) fn in_register(x: &str, bytes: u32) -> String {
    match bytes {
        16 => format!("    const c16v w = (c16v){x};\n"),
        _ => format!(
            "    long long bits;\n    __builtin_memcpy(&bits, &{x}, sizeof bits);\n    c16v w = (c16v)(i64x2){{ bits, 0 }};\n    __asm__(\"\" : \"+x\"(w));\n"
        ),
    }
}

/// Takes so many bytes out of it.
pub(super) fn of_register(to: &str, bytes: u32) -> String {
    match bytes {
        16 => format!("    const {to} r = ({to})w;\n"),
        _ => format!(
            "    const long long bits = ((i64x2)w)[0];\n    {to} r;\n    __builtin_memcpy(&r, &bits, sizeof r);\n"
        ),
    }
}

/// clang knows better what its general word comes to.
pub(super) const AVX2: &str = "defined(__AVX2__) && !defined(__clang__) && !defined(__AVX512VL__)";
