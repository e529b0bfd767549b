//! Vectors of half the lanes, for elements of 64 bits in a text of others. Functions of 32-bit numbers that compute in 64
//! bits, as sines and some logarithms do, take one half of a vector after the other; loops with wide numbers of their own are
//! loops of halves. Everything else of the text has all lanes that a register has.

use std::collections::BTreeSet;

use super::kind::{Kind, PASTED, SLOW_PATH};
use super::primitives::{self, Wider};
use crate::intrinsics::helpers::words;

/// Vectors of wide elements.
const WIDE: [&str; 3] = ["i64v", "u64v", "f64v"];

/// Functions of a library in which each stands after those that it calls.
type Functions<'a> = [(&'a str, &'a str)];

/// Those that have wide elements inside, or call one that has. A slow path is none for what it seldom calls.
pub(super) fn wide<'a>(functions: &Functions<'a>) -> BTreeSet<&'a str> {
    let mut wide = BTreeSet::new();
    for (name, code) in functions {
        let calls_wide = |word| wide.contains(word) && !name.starts_with(SLOW_PATH);
        if words(code).any(|word| WIDE.contains(&word) || calls_wide(word)) {
            wide.insert(*name);
        }
    }
    wide
}

/// The name of the same for half a vector.
pub(super) fn halved_name(name: &str) -> String {
    match name {
        "LANES" => "HALF".into(),
        name => format!("{}_half", name.strip_suffix('v').unwrap_or(name)),
    }
}

/// A text for half a vector: the names of which so much is known are those of halves.
pub(super) fn halved(code: &str, is_known: impl Fn(&str) -> bool) -> String {
    let mut result = String::with_capacity(code.len());
    let mut rest = code;
    while let Some(word) = words(rest).next() {
        let start = rest.find(word).unwrap_or(0);
        let (before, after) = (&rest[..start], &rest[start + word.len()..]);
        result.push_str(before);
        match is_known(word) {
            true => result.push_str(&halved_name(word)),
            false => result.push_str(word),
        }
        rest = after;
    }
    result + rest
}

/// What is halved, by its name in a text of halves.
pub(super) fn original<'a>(name: &str, known: &BTreeSet<&'a str>) -> Option<&'a str> {
    let whole = match name {
        "HALF" => "LANES",
        name => name.strip_suffix("_half")?,
    };
    known.get(whole).or_else(|| known.get(format!("{whole}v").as_str())).copied()
}

/// What halves are made of, for texts that need so much.
pub(super) fn primitives(needed: &BTreeSet<&str>) -> Result<String, Wider> {
    let used = primitives::used(8, needed)?;
    let known: BTreeSet<&str> = used.iter().map(|primitive| primitive.name.as_str()).collect();
    let code = |primitive: &&primitives::Primitive| match primitive.name.as_str() {
        "LANES" => "#define HALF (LANES / 2)\n".to_string(),
        _ => halved(&primitive.code, |word| known.contains(word)),
    };
    Ok(used.iter().map(code).collect())
}

/// The names of what halves are made of.
pub(super) fn names() -> BTreeSet<&'static str> {
    primitives::names(8)
}

/// A function of whole vectors that does its halves one after the other.
pub(super) fn both(name: &str, kinds: &[Kind], result: Kind) -> String {
    let names = ["a", "b", "c", "d"];
    let parameters: Vec<String> =
        kinds.iter().zip(names).map(|(kind, name)| format!("{} {name}", kind.vector())).collect();
    let half = |which: &str| {
        let arguments: Vec<String> = kinds
            .iter()
            .zip(names)
            .map(|(kind, name)| match kind {
                Kind::Same => name.to_string(),
                kind => format!("lz_{which}_{}({name})", kind.vector()),
            })
            .collect();
        format!("{}({})", halved_name(name), arguments.join(", "))
    };
    format!(
        "{result} {name}({}) {{\n    return lz_join_{result}({}, {});\n}}\n",
        parameters.join(", "),
        half("low"),
        half("high"),
        result = result.vector(),
    )
}

/// How vectors are taken apart and put together that a text needs.
pub(super) fn parts(needed: &BTreeSet<&str>) -> String {
    let kinds = [Kind::Mask, Kind::I32, Kind::U32, Kind::F32];
    let is_needed = |name: &str, kind: Kind| needed.contains(format!("lz_{name}_{}", kind.vector()).as_str());
    let mut code = String::new();
    if !kinds.iter().any(|&kind| ["low", "high", "join"].iter().any(|name| is_needed(name, kind))) {
        return code;
    }
    let list = |from: u32, to: u32| (from..to).map(|lane| lane.to_string()).collect::<Vec<_>>().join(", ");
    let lists =
        |lanes: u32| format!("#define LOW {}\n#define HIGH {}\n", list(0, lanes / 2), list(lanes / 2, lanes));
    code.push_str(&format!(
        "#if LANES == 16\n{}#elif LANES == 8\n{}#else\n{}#endif\n",
        lists(16),
        lists(8),
        lists(4)
    ));
    for kind in kinds {
        let (vector, half) = (kind.vector(), halved_name(kind.vector()));
        let shuffles = |shuffled: &str, bits: &str, copied: &str| {
            let masks = match kind {
                Kind::Mask => format!("#ifdef MASKS\n    return {bits};\n#elif"),
                _ => "#if".to_string(),
            };
            format!(
                "{{\n{masks} defined(__clang__) || __GNUC__ >= 12\n    return {shuffled};\n#else\n{copied}#endif\n}}\n"
            )
        };
        for (which, list, bits, place) in [("low", "LOW", "x", 0), ("high", "HIGH", "x >> HALF", 1)] {
            if is_needed(which, kind) {
                let copied = format!(
                    "    {half} r;\n    __builtin_memcpy(&r, (const char*)&x + {place} * sizeof r, sizeof r);\n    return r;\n"
                );
                let body = shuffles(&format!("__builtin_shufflevector(x, x, {list})"), bits, &copied);
                code.push_str(&format!("{PASTED}{half} lz_{which}_{vector}({vector} x) {body}"));
            }
        }
        if is_needed("join", kind) {
            let copied = format!(
                "    {vector} r;\n    __builtin_memcpy(&r, &a, sizeof a);\n    __builtin_memcpy((char*)&r + sizeof a, &b, sizeof b);\n    return r;\n"
            );
            let body = shuffles("__builtin_shufflevector(a, b, LOW, HIGH)", "a | b << HALF", &copied);
            code.push_str(&format!("{PASTED}{vector} lz_join_{vector}({half} a, {half} b) {body}"));
        }
    }
    code
}
