//! What vectors are made of: their types, loads and stores, and what only the processor has a word for.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use super::accesses;
use super::conversions::{self, AVX2, conversion, in_register, of_register};
use super::kind::{Add, Kind, PASTED};
use crate::DType;
use crate::intrinsics::helpers::words;

const KINDS: [Kind; 6] = [Kind::I32, Kind::U32, Kind::I64, Kind::U64, Kind::F32, Kind::F64];

/// What memory holds, its C type, and the kind that lanes have of it.
const MEMORY: [(DType, &str, Kind); 11] = [
    (DType::Bool, "unsigned char", Kind::Mask),
    (DType::U8, "unsigned char", Kind::I32),
    (DType::I8, "signed char", Kind::I32),
    (DType::I16, "short", Kind::I32),
    (DType::F16, "unsigned short", Kind::Half),
    (DType::BF16, "unsigned short", Kind::Half),
    (DType::I32, "int", Kind::I32),
    (DType::U32, "unsigned", Kind::U32),
    (DType::I64, "long long", Kind::I64),
    (DType::F32, "float", Kind::F32),
    (DType::F64, "double", Kind::F64),
];

/// A text has elements of 8 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wider;

/// The C type of what memory holds, and the kind that lanes have of it.
pub(super) fn memory(dtype: DType) -> (&'static str, Kind) {
    let entry = MEMORY.iter().find(|(own, ..)| *own == dtype);
    entry.map_or(("float", Kind::F32), |&(_, ty, kind)| (ty, kind))
}

/// The primitives that a text needs, each after what it needs itself.
///
/// # Errors
/// If there must be fewer lanes.
pub(super) fn used(width: u32, needed: &BTreeSet<&str>) -> Result<Vec<&'static Primitive>, Wider> {
    let mut wanted = needed.clone();
    let mut used: Vec<&'static Primitive> = Vec::new();
    for primitive in library(width).iter().rev() {
        if wanted.contains(primitive.name.as_str()) {
            wanted.extend(words(&primitive.code));
            used.push(primitive);
        }
    }
    if width == 4 && used.iter().any(|primitive| ["i64v", "u64v", "f64v"].contains(&primitive.name.as_str()))
    {
        return Err(Wider);
    }
    used.reverse();
    Ok(used)
}

/// The text of them.
///
/// # Errors
/// If there must be fewer lanes.
pub(super) fn text(width: u32, needed: &BTreeSet<&str>) -> Result<String, Wider> {
    Ok(used(width, needed)?.iter().map(|primitive| primitive.code.as_str()).collect())
}

/// Their names.
pub(super) fn names(width: u32) -> BTreeSet<&'static str> {
    library(width).iter().map(|primitive| primitive.name.as_str()).collect()
}

/// All of them, made once.
fn library(width: u32) -> &'static [Primitive] {
    static ALL: [OnceLock<Vec<Primitive>>; 2] = [const { OnceLock::new() }; 2];
    ALL[usize::from(width > 4)].get_or_init(|| primitives(width))
}

pub(super) struct Primitive {
    pub(super) name: String,
    pub(super) code: String,
}

/// All of them, in an order in which each stands after those that it uses.
fn primitives(width: u32) -> Vec<Primitive> {
    let mut all = Vec::new();
    let mut add = |name: &str, code: String| all.push(Primitive { name: name.into(), code });
    add("LANES", lanes(width));
    add("NUMBERS", numbers(width));
    let element =
        [("u8v", "unsigned char"), ("i8v", "signed char"), ("i16v", "short"), ("u16v", "unsigned short")];
    let of_kinds = KINDS.map(|kind| (kind.vector(), kind.scalar()));
    for (name, ty) in element.into_iter().chain(of_kinds) {
        add(name, format!("typedef {ty} {name} __attribute__((vector_size(LANES * sizeof({ty}))));\n"));
        let unaligned = format!("{name}_unaligned");
        add(&unaligned, format!("typedef {name} {unaligned} __attribute__((aligned(1), may_alias));\n"));
    }
    add("wordsv", "typedef int wordsv __attribute__((vector_size(LANES * sizeof(long long))));\n".into());
    add(
        "lz_fence",
        format!(
            "// What was stored around the caches is there for other threads.\n{PASTED}void lz_fence(void) {{\n#ifdef __SSE2__\n    __builtin_ia32_sfence();\n#endif\n}}\n"
        ),
    );
    add("i64x2", "typedef long long i64x2 __attribute__((vector_size(16)));\n".into());
    add("i64x4", "typedef long long i64x4 __attribute__((vector_size(32)));\n".into());
    add("c16v", "typedef char c16v __attribute__((vector_size(16)));\n".into());
    add("c32v", "typedef char c32v __attribute__((vector_size(32)));\n".into());
    let bits = if width == 4 { "unsigned short" } else { "unsigned char" };
    add(
        "mask",
        format!(
            "// Truths: a bit a lane where the processor has registers of such, else all bits of an i32v's elements.\n#ifdef MASKS\ntypedef {bits} mask;\n#else\ntypedef i32v mask;\n#endif\n"
        ),
    );
    for kind in [Kind::Half].into_iter().chain(KINDS) {
        let (vector, scalar) = (kind.vector(), kind.scalar());
        let name = format!("lz_splat_{vector}");
        let code = format!("{PASTED}{vector} {name}({scalar} x) {{\n    return x - ({vector}){{ 0 }};\n}}\n");
        add(&name, code);
    }
    let splat =
        "#ifdef MASKS\n    return (mask)-(x != 0);\n#else\n    return -(x != 0) - (i32v){ 0 };\n#endif\n";
    add("lz_splat_mask", format!("{PASTED}mask lz_splat_mask(int x) {{\n{splat}}}\n"));
    let first = "#ifdef MASKS\n    return (mask)(count >= LANES ? -1 : (1 << count) - 1);\n#else\n    return (i32v){ NUMBERS } < (int)(count < LANES ? count : LANES) - (i32v){ 0 };\n#endif\n";
    add("lz_first_lanes", format!("{PASTED}mask lz_first_lanes(idx count) {{\n{first}}}\n"));
    conversions::define(width, &mut add);
    for kind in KINDS {
        comparisons(kind, width, &mut add);
        select(kind, width, &mut add);
    }
    for kind in KINDS {
        let (vector, integers) = (kind.vector(), if kind.is_wide() { "i64v" } else { "i32v" });
        let name = format!("lz_shift_{vector}");
        add(
            &name,
            format!(
                "// Lane n has what lane n + step had; there is none for the last ones.
{PASTED}{vector} {name}({vector} x, int step) {{
#ifndef __clang__
    return __builtin_shuffle(x, ({integers}){{ NUMBERS }} + step);
#else
    {vector} r;
    for (int lane = 0; lane < LANES; ++lane) r[lane] = x[(lane + step) % LANES];
    return r;
#endif
}}
"
            ),
        );
    }
    for kind in [Kind::F32, Kind::F64] {
        of_floats(kind, width, &mut add);
    }
    of_masks(width, &mut add);
    truths(width, &mut add);
    let positions = "    return first + stride * (i64v){ NUMBERS };\n";
    add("lz_positions", format!("{PASTED}i64v lz_positions(idx first, idx stride) {{\n{positions}}}\n"));
    add("lz_checked_positions", format!("{PASTED}i64v lz_checked_positions(i64v positions, long long extent, long long number, long long* checks, idx count) {{
    if (count < LANES) positions &= ((i64v){{ NUMBERS }} < count);
    if (lz_all(lz_lt_u64v((u64v)positions, lz_splat_u64v(extent)))) return positions;
    for (int lane = 0; lane < LANES; ++lane) positions[lane] = lz_position(positions[lane], extent, number, checks);
    return positions;
}}
"));
    let positions = "    return (int)first + (int)stride * (i32v){ NUMBERS };\n";
    add(
        "lz_short_positions",
        format!("{PASTED}i32v lz_short_positions(idx first, idx stride) {{\n{positions}}}\n"),
    );
    let cut = "    return x > 2147483647 ? 2147483647 : x < -2147483647 ? -2147483647 : x;\n";
    add("lz_cut", format!("// Between, all is as it was.\n{PASTED}int lz_cut(long long x) {{\n{cut}}}\n"));
    accesses::define_parts(&mut add);
    for (dtype, ty, kind) in MEMORY {
        accesses::define(dtype, ty, kind, width, &mut add);
    }
    all
}

/// How many lanes there are.
fn lanes(width: u32) -> String {
    let [widest, wide, narrow] = [64, 32, 16].map(|bytes| bytes / width);
    format!(
        "// Lanes of a vector.
#if defined(__AVX512VL__) && defined(__AVX512BW__) && defined(__AVX512DQ__)
#define LANES {widest}
#ifndef __clang__
#define MASKS
#endif
#elif defined(__AVX2__)
#define LANES {wide}
#else
#define LANES {narrow}
#endif
"
    )
}

/// The lanes' numbers.
fn numbers(width: u32) -> String {
    let list = |lanes: u32| (0..lanes).map(|lane| lane.to_string()).collect::<Vec<_>>().join(", ");
    let [widest, wide, narrow] = [64, 32, 16].map(|bytes| bytes / width);
    format!(
        "#if LANES == {widest}\n#define NUMBERS {}\n#elif LANES == {wide}\n#define NUMBERS {}\n#else\n#define NUMBERS {}\n#endif\n",
        list(widest),
        list(wide),
        list(narrow)
    )
}

/// Bits of a register of such elements with AVX-512, and with AVX2.
fn registers(kind: Kind, width: u32) -> [u32; 2] {
    [64 / width * kind.bytes() * 8, 32 / width * kind.bytes() * 8]
}

fn comparisons(kind: Kind, width: u32, add: Add) {
    let vector = kind.vector();
    let [bits, _] = registers(kind, width);
    for (name, operator, code, quiet) in
        [("eq", "==", 0, 0), ("ne", "!=", 4, 4), ("lt", "<", 1, 17), ("le", "<=", 2, 18)]
    {
        let builtin = match kind {
            Kind::F32 | Kind::F64 => {
                let rounding = if bits == 512 { ", 4" } else { "" };
                let letter = if kind == Kind::F32 { "s" } else { "d" };
                format!("__builtin_ia32_cmpp{letter}{bits}_mask(a, b, {quiet}, -1{rounding})")
            }
            _ => {
                let unsigned = if matches!(kind, Kind::U32 | Kind::U64) { "u" } else { "" };
                let letter = if kind.is_wide() { "q" } else { "d" };
                let signed = if kind.is_wide() { "i64v" } else { "i32v" };
                format!(
                    "__builtin_ia32_{unsigned}cmp{letter}{bits}_mask(({signed})a, ({signed})b, {code}, -1)"
                )
            }
        };
        let plain = match kind.is_wide() {
            true => conversion(&format!("(i64v)(a {operator} b)"), "i64v", "i32v"),
            false => format!("a {operator} b"),
        };
        let name = format!("lz_{name}_{vector}");
        add(
            &name,
            format!(
                "{PASTED}mask {name}({vector} a, {vector} b) {{\n#ifdef MASKS\n    return {builtin};\n#else\n    return {plain};\n#endif\n}}\n"
            ),
        );
    }
}

fn select(kind: Kind, width: u32, add: Add) {
    let vector = kind.vector();
    let [bits, _] = registers(kind, width);
    let (integers, letter) = if kind.is_wide() { ("i64v", "q") } else { ("i32v", "d") };
    let mask = match kind.is_wide() {
        true => conversion("condition", "i32v", "i64v"),
        false => "condition".to_string(),
    };
    // By the signs, of as many bytes as a register has with AVX2.
    let (blended, name) = match (kind.is_wide(), width) {
        (true, 8) => ("f64v", "pd256"),
        (false, 4) => ("f32v", "ps256"),
        (false, _) => ("f32v", "ps"),
        (true, _) => ("", ""),
    };
    let blend = match blended {
        "" => String::new(),
        _ => format!(
            "#elif {AVX2}\n    return ({vector})__builtin_ia32_blendv{name}(({blended})b, ({blended})a, ({blended}){mask});\n"
        ),
    };
    let name = format!("lz_select_{vector}");
    add(
        &name,
        format!(
            "{PASTED}{vector} {name}(mask condition, {vector} a, {vector} b) {{
#ifdef MASKS
    return ({vector})__builtin_ia32_blendm{letter}_{bits}_mask(({integers})b, ({integers})a, condition);
{blend}#else
    const {integers} bits = {mask};
    return ({vector})((bits & ({integers})a) | (~bits & ({integers})b));
#endif
}}
"
        ),
    );
}

/// Whether all lanes are true, and what AVX-512 alone has an instruction for; only asked for where there is that.
fn of_masks(width: u32, add: Add) {
    let all = "#ifdef MASKS\n    return (mask)~x == 0;\n#elif AVX2\n    return __builtin_ia32_movmskpsREGISTER((f32v)x) == (1 << LANES) - 1;\n#else\n    int all = -1;\n    for (int lane = 0; lane < LANES; ++lane) all &= x[lane];\n    return all;\n#endif\n";
    let all = all.replace("AVX2", AVX2).replace("REGISTER", if width == 4 { "256" } else { "" });
    add("lz_all", format!("{PASTED}int lz_all(mask x) {{\n{all}}}\n"));
    let single = registers(Kind::F32, width)[0];
    let rounding = if single == 512 { ", 4" } else { "" };
    let mut function = |name: &str, vector: &str, parameters: &[&str], instruction: String| {
        let list: Vec<String> = parameters.iter().map(|parameter| format!("{vector} {parameter}")).collect();
        let (list, first) = (list.join(", "), parameters[0]);
        add(
            name,
            format!(
                "{PASTED}{vector} {name}({list}) {{\n#ifdef MASKS\n    return {instruction};\n#else\n    return {first};\n#endif\n}}\n"
            ),
        );
    };
    let scalef = format!("__builtin_ia32_scalefps{single}_mask(x, n, x, -1{rounding})");
    function("lz_scalef", "f32v", &["x", "n"], scalef);
    if width == 8 {
        let scalef = "__builtin_ia32_scalefpd512_mask(x, n, x, -1, 4)";
        function("lz_scalef_wide", "f64v", &["x", "n"], scalef.into());
    }
    for kind in [Kind::I32, Kind::I64] {
        let letter = if kind.is_wide() { "q" } else { "d" };
        let [bits, _] = registers(kind, width);
        if bits > 512 {
            continue;
        }
        let majority = format!("__builtin_ia32_pternlog{letter}{bits}_mask(a, b, c, 0xe8, -1)");
        let vector = kind.vector();
        function(&format!("lz_majority_{vector}"), vector, &["a", "b", "c"], majority);
    }
    if width == 8 {
        let code = format!(
            "{PASTED}u64v lz_low_product(u64v a, u64v b) {{
#ifdef MASKS
    return (u64v)__builtin_ia32_pmuludq512_mask((wordsv)a, (wordsv)b, (i64v){{ 0 }}, -1);
#elif {AVX2}
    return (u64v)__builtin_ia32_pmuludq256((wordsv)a, (wordsv)b);
#else
    return a;
#endif
}}
"
        );
        add("lz_low_product", code);
    }
}

/// Truths of bytes, and bytes of truths.
fn truths(width: u32, add: Add) {
    let (convert, back) = (conversion("x", "u8v", "i32v"), conversion("x & 1", "i32v", "u8v"));
    let [before, after] = [in_register("x", 64 / width), of_register("u8v", 64 / width)];
    add(
        "lz_truths",
        format!(
            "{PASTED}mask lz_truths(u8v x) {{
#ifdef MASKS
{before}    return __builtin_ia32_ptestmb128(w, w, -1);
#else
    return lz_ne_i32v({convert}, lz_splat_i32v(0));
#endif
}}
"
        ),
    );
    add(
        "lz_bytes",
        format!(
            "{PASTED}u8v lz_bytes(mask x) {{
#ifdef MASKS
    const c16v w = (c16v)__builtin_ia32_cvtmask2b128(x) & 1;
{after}    return r;
#else
    return {back};
#endif
}}
"
        ),
    );
}

/// What has one instruction, or is about signs.
fn of_floats(kind: Kind, width: u32, add: Add) {
    let vector = kind.vector();
    let (letter, f) = if kind == Kind::F32 { ("s", "f") } else { ("d", "") };
    let (integers, sign) = match kind {
        Kind::F32 => ("i32v", "(-2147483647 - 1)"),
        _ => ("i64v", "(-9223372036854775807LL - 1)"),
    };
    let [bits, bits2] = registers(kind, width);
    // The narrowest registers have no number in the name.
    let suffix = |bits: u32| if bits == 256 { "256" } else { "" };
    let mut function = |name: &str,
                        parameters: &[&str],
                        wide: String,
                        narrow: String,
                        plain: String,
                        with: &str| {
        let name = format!("lz_{name}_{vector}");
        let list: Vec<String> = parameters.iter().map(|parameter| format!("{vector} {parameter}")).collect();
        add(
            &name,
            format!(
                "{PASTED}{vector} {name}({}) {{\n#ifdef MASKS\n    return {wide};\n#elif {with}LANES == {}\n    return {narrow};\n#else\n{plain}#endif\n}}\n",
                list.join(", "),
                32 / width,
            ),
        );
    };
    for (name, compare, a, b) in [("min", "lt", "a", "b"), ("max", "lt", "b", "a")] {
        let wide = match bits {
            512 => format!("__builtin_ia32_{name}p{letter}512_mask(a, b, a, -1, 4)"),
            _ => format!("__builtin_ia32_{name}p{letter}{}(a, b)", suffix(bits)),
        };
        let narrow = format!("__builtin_ia32_{name}p{letter}{}(a, b)", suffix(bits2));
        let plain = format!("    return lz_select_{vector}(lz_{compare}_{vector}({a}, {b}), a, b);\n");
        function(name, &["a", "b"], wide, narrow, plain, "");
    }
    let by_lane = |call: &str| {
        format!(
            "    {vector} r;\n    for (int lane = 0; lane < LANES; ++lane) r[lane] = {call};\n    return r;\n"
        )
    };
    let wide = match bits {
        512 => format!("__builtin_ia32_vfmaddp{letter}512_mask(a, b, c, -1, 4)"),
        _ => format!("__builtin_ia32_vfmaddp{letter}{}(a, b, c)", suffix(bits)),
    };
    let narrow = format!("__builtin_ia32_vfmaddp{letter}{}(a, b, c)", suffix(bits2));
    let plain = by_lane(&format!("__builtin_fma{f}(a[lane], b[lane], c[lane])"));
    function("fma", &["a", "b", "c"], wide, narrow, plain, "defined(__FMA__) && ");
    let wide = match bits {
        512 => format!("__builtin_ia32_sqrtp{letter}512_mask(x, x, -1, 4)"),
        _ => format!("__builtin_ia32_sqrtp{letter}{}(x)", suffix(bits)),
    };
    let narrow = format!("__builtin_ia32_sqrtp{letter}{}(x)", suffix(bits2));
    let plain = by_lane(&format!("__builtin_sqrt{f}(x[lane])"));
    function("sqrt", &["x"], wide, narrow, plain, "");
    for (name, code) in [("floor", 9), ("ceil", 10), ("trunc", 11), ("rint", 12)] {
        let wide = match bits {
            512 => format!("__builtin_ia32_rndscalep{letter}_mask(x, {code}, x, -1, 4)"),
            _ => format!("__builtin_ia32_roundp{letter}{}(x, {code})", suffix(bits)),
        };
        let narrow = format!("__builtin_ia32_roundp{letter}{}(x, {code})", suffix(bits2));
        let plain = by_lane(&format!("__builtin_{name}{f}(x[lane])"));
        function(name, &["x"], wide, narrow, plain, "");
    }
    let name = format!("lz_fabs_{vector}");
    let body = format!("return ({vector})(({integers})x & ~{sign});");
    add(&name, format!("{PASTED}{vector} {name}({vector} x) {{\n    {body}\n}}\n"));
    let name = format!("lz_copysign_{vector}");
    let body = format!("return ({vector})((({integers})x & ~{sign}) | (({integers})y & {sign}));");
    add(&name, format!("{PASTED}{vector} {name}({vector} x, {vector} y) {{\n    {body}\n}}\n"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_primitive_stands_once_and_after_what_it_uses() {
        for width in super::super::WIDTHS {
            let all = primitives(width);
            let mut seen = BTreeSet::new();
            for Primitive { name, code } in &all {
                for word in words(code).filter(|word| word != name) {
                    let is_known = all.iter().any(|other| other.name == word);
                    assert!(!is_known || seen.contains(word), "{name} uses {word}, which follows it");
                    let is_helper = word == "lz_position";
                    assert!(
                        is_known || is_helper || !word.starts_with("lz_"),
                        "{name}: {word} is not defined"
                    );
                }
                assert!(seen.insert(name.as_str()), "{name} is defined twice");
            }
        }
    }
}
