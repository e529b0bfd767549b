//! From the exact text of a CUDA C kernel to C++ that a host compiler takes.
//!
//! The shim header makes nearly everything of CUDA C valid C++. What it cannot is found here, in the
//! text: dynamic shared memory and inline PTX. Lines keep their numbers.

use std::ops::Range;

/// The inline PTX that has a counterpart in the shim, and that counterpart.
const PTX: [(&str, &str); 37] = [
    (
        r#"asm("{ .reg .b32 t; not.b32 t, %1; add.s32 %0, t, 1; }" : "=r"(y) : "r"(x));"#,
        "y = (int)(0U - (unsigned)x);",
    ),
    (r#"asm("{ .reg .b32 t; not.b32 t, %1; add.u32 %0, t, 1; }" : "=r"(y) : "r"(x));"#, "y = 0U - x;"),
    (
        r#"asm("max.NaN.f32 %0, %1, %2;" : "=f"(c) : "f"(a), "f"(b));"#,
        "c = a != a || b != b ? a + b : fmaxf(a, b);",
    ),
    (
        r#"asm("min.NaN.f32 %0, %1, %2;" : "=f"(c) : "f"(a), "f"(b));"#,
        "c = a != a || b != b ? a + b : fminf(a, b);",
    ),
    (r#"asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x * 1.44269504f));"#, "y = exp2f(x * 1.44269504f);"),
    (r#"asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h));"#, "f = lz_emu_f16_to_f32(h);"),
    (r#"asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(f));"#, "h = lz_emu_f32_to_f16(f);"),
    (r#"asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h) : "f"(f));"#, "h = lz_emu_f32_to_bf16(f);"),
    (
        r#"asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(parts[0]), "=r"(parts[1]), "=r"(parts[2]), "=r"(parts[3]) : "r"(at));"#,
        "lz_emu_load_matrices<false>(parts, row);",
    ),
    (
        r#"asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(parts[0]), "=r"(parts[1]), "=r"(parts[2]), "=r"(parts[3]) : "r"(at));"#,
        "lz_emu_load_matrices<true>(parts, row);",
    ),
    (
        r#"asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));"#,
        "lz_emu_multiply<lz_emu_f16>(sums, a, b);",
    ),
    (
        r#"asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));"#,
        "lz_emu_multiply<lz_emu_bf16>(sums, a, b);",
    ),
    (
        r#"asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" :: "r"(at), "l"(from), "r"(bytes) : "memory");"#,
        "lz_emu_copy(to, from, 4, bytes, at);",
    ),
    (
        r#"asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" :: "r"(at), "l"(from), "r"(bytes) : "memory");"#,
        "lz_emu_copy(to, from, 8, bytes, at);",
    ),
    (
        r#"asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" :: "r"(at), "l"(from), "r"(bytes) : "memory");"#,
        "lz_emu_copy(to, from, 16, bytes, at);",
    ),
    (
        r#"asm("fma.rn.f16x2 %0, %1, %2, %0;" : "+r"(sum) : "r"(*(const unsigned*)(first + n)), "r"(0u));"#,
        "sum = lz_emu_add_zeros(sum, lz_emu_f16_to_f32(first[n]), lz_emu_f16_to_f32(first[n + 1u]), 0x7e00u);",
    ),
    (
        r#"asm("fma.rn.bf16x2 %0, %1, %2, %0;" : "+r"(sum) : "r"(*(const unsigned*)(first + n)), "r"(0u));"#,
        "sum = lz_emu_add_zeros(sum, __uint_as_float((unsigned)first[n] << 16), __uint_as_float((unsigned)first[n + 1u] << 16), 0x7fc0u);",
    ),
    // Launches come one after the other.
    (r#"asm volatile("griddepcontrol.wait;" ::: "memory");"#, ""),
    (r#"asm volatile("cp.async.commit_group;" ::: "memory");"#, "lz_emu_commit_copies();"),
    (r#"asm volatile("cp.async.wait_group 0;" ::: "memory");"#, "lz_emu_await_copies(0);"),
    (r#"asm volatile("cp.async.wait_group 1;" ::: "memory");"#, "lz_emu_await_copies(1);"),
    (r#"asm volatile("cp.async.wait_group 2;" ::: "memory");"#, "lz_emu_await_copies(2);"),
    (r#"asm volatile("fence.proxy.async.shared::cta;" ::: "memory");"#, "lz_emu_publish();"),
    (r#"asm volatile("wgmma.fence.sync.aligned;" ::: "memory");"#, "lz_emu_begin_products();"),
    (r#"asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");"#, "lz_emu_commit_products();"),
    (r#"asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");"#, "lz_emu_await_products(0);"),
    (r#"asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");"#, "lz_emu_await_products(1);"),
    (
        r#"asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(at), "r"(copies) : "memory");"#,
        "lz_emu_expect_tiles(arrived + slot, copies, at);",
    ),
    (r#"asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");"#, ";"),
    (
        r#"asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }" : "=r"(is_there) : "r"(at), "r"(parity) : "memory");"#,
        "is_there = lz_emu_await_tiles(arrived, parity, at);",
    ),
    (
        r#"asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(slot), "r"(bytes) : "memory");"#,
        "(void)at, (void)slot, (void)bytes;",
    ),
    (
        r#"asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" :: "r"(at), "l"(map), "r"(x), "r"(y), "r"(slot) : "memory");"#,
        "lz_emu_begin_tile(to, map, arrived, x, y);",
    ),
    (
        r#"asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];" :: "r"(at), "l"(map), "r"(x), "r"(y), "r"(z), "r"(slot) : "memory");"#,
        "lz_emu_begin_tile(to, map, arrived, x, y, z);",
    ),
    (
        r#"asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, %5}], [%6];" :: "r"(at), "l"(map), "r"(x), "r"(y), "r"(z), "r"(u), "r"(slot) : "memory");"#,
        "lz_emu_begin_tile(to, map, arrived, x, y, z, u);",
    ),
    (
        r#"asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, %5, %6}], [%7];" :: "r"(at), "l"(map), "r"(x), "r"(y), "r"(z), "r"(u), "r"(v), "r"(slot) : "memory");"#,
        "lz_emu_begin_tile(to, map, arrived, x, y, z, u, v);",
    ),
    // For older processors than the shim is.
    (
        r#"asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};" : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3]) : "r"(a[0]), "r"(a[1]), "r"(b[0]));"#,
        "__trap();",
    ),
    (
        r#"asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};" : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3]) : "r"(a[2]), "r"(a[3]), "r"(b[1]));"#,
        "__trap();",
    ),
];

/// The C++ for a CUDA C file whose kernel is `kernel_name`, to stand behind the shim; the error says what stands in the
/// way, and on which line.
pub(super) fn translate(kernel_name: &str, source: &str) -> Result<String, String> {
    if !is_identifier(kernel_name) {
        return Err(format!("{kernel_name:?} cannot be the name of a kernel"));
    }
    let tokens = tokens(source);
    let word = |i: usize| tokens.get(i).map_or("", |token| &source[token.clone()]);
    let line = |i: usize| {
        let start = tokens.get(i).map_or(source.len(), |token| token.start);
        source[..start].matches('\n').count() + 1
    };

    let mut edits: Vec<(Range<usize>, String)> = Vec::new();
    let mut launch_bounds = String::new();
    let mut pending_bounds = None;
    let mut depth = 0usize;
    let mut i = 0;
    while i < tokens.len() {
        let start = tokens[i].start;
        match word(i) {
            "{" => depth += 1,
            "}" => depth = depth.saturating_sub(1),
            "asm" | "__asm" | "__asm__" => {
                if let Some((length, call)) = group_product(&source[start..]) {
                    edits.push((start..start + length, call));
                    i += 1;
                    continue;
                }
                let Some((ptx, call)) = PTX.iter().find(|(ptx, _)| source[start..].starts_with(ptx)) else {
                    let text = source[start..].lines().next().unwrap_or_default();
                    return Err(format!("line {}: no counterpart for this inline assembly: {text}", line(i)));
                };
                edits.push((start..start + ptx.len(), (*call).to_owned()));
            }
            "extern" if word(i + 1) == "__shared__" => {
                let end = (i..tokens.len()).find(|&k| word(k) == ";");
                let declaration = end.and_then(|end| dynamic_shared(source, &tokens[i + 2..end]));
                let (Some(end), Some((element, name))) = (end, declaration) else {
                    return Err(format!("line {}: expected `extern __shared__ T name[];`", line(i)));
                };
                if depth == 0 {
                    return Err(format!(
                        "line {}: dynamic shared memory is declared outside of a function",
                        line(i)
                    ));
                }
                let range = start..tokens[end].end;
                let breaks = "\n".repeat(source[range.clone()].matches('\n').count());
                let pointer = format!(
                    "{element}* const {name} = static_cast<{element}*>(lz_emu_current->dynamic_shared);"
                );
                edits.push((range, pointer + &breaks));
                i = end;
            }
            "__launch_bounds__" if word(i + 1) == "(" => {
                let close = closing(source, &tokens, i + 1);
                pending_bounds = Some(source[tokens[i + 1].end..tokens[close].start].to_owned());
                i = close;
            }
            // The next function after a bound is the one that it is about.
            function if word(i + 1) == "(" && is_identifier(function) => {
                if let Some(bounds) = pending_bounds.take().filter(|_| function == kernel_name) {
                    launch_bounds = bounds;
                }
            }
            _ => {}
        }
        i += 1;
    }

    let mut text = format!("namespace {{\n#line 1 \"{kernel_name}.cu\"\n");
    let mut copied = 0;
    for (range, replacement) in edits {
        text.push_str(&source[copied..range.start]);
        text.push_str(&replacement);
        copied = range.end;
    }
    text.push_str(&source[copied..]);
    text.push_str(&format!(
        "\n}}\n#line 1 \"export of {kernel_name}\"\nLZ_EMU_EXPORT({kernel_name}, {launch_bounds})\n"
    ));
    Ok(text)
}

/// The call in the place of a product of a group of warps, and how long its text is: which dtypes, columns and turned lines are in
/// the instruction.
fn group_product(source: &str) -> Option<(usize, String)> {
    const HEAD: &str =
        r#"asm volatile("{ .reg .pred p; setp.ne.b32 p, 1, 0; wgmma.mma_async.sync.aligned.m64n"#;
    let rest = source.strip_prefix(HEAD)?;
    let end = source.find("));\n")? + 3;
    let (columns, rest) = rest.split_once("k16.f32.")?;
    let (dtype, _) = rest.split_once('.')?;
    let (_, turned) = source[..end].split_once(", p, 1, 1, ")?;
    let (turned, _) = turned.split_once(';')?;
    let (own, turned) = match turned.contains(", ") {
        true => ("", turned.to_owned()),
        false => ("own_", format!("0, {turned}")),
    };
    let factors = "(const unsigned short*)left, right";
    let call = format!(
        "lz_emu_begin_product(lz_add_{own}lines_{dtype}, sums, {factors}, {columns}, {turned}, __LINE__);"
    );
    let breaks = "\n".repeat(source[..end].matches('\n').count());
    Some((end, call + &breaks))
}

fn is_identifier(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && word.chars().all(is_word)
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Where the words, literals and signs stand; comments and white space are left out.
fn tokens(source: &str) -> Vec<Range<usize>> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(first) = source[at..].chars().next() {
        let rest = &source[at..];
        let (length, is_token) = if rest.starts_with("//") {
            (rest.find('\n').unwrap_or(rest.len()), false)
        } else if let Some(comment) = rest.strip_prefix("/*") {
            (comment.find("*/").map_or(rest.len(), |end| end + 4), false)
        } else if first == '"' || first == '\'' {
            (literal_length(rest, first), true)
        } else if is_word(first) {
            (rest.find(|c| !is_word(c)).unwrap_or(rest.len()), true)
        } else {
            (first.len_utf8(), !first.is_whitespace())
        };
        if is_token {
            tokens.push(at..at + length);
        }
        at += length;
    }
    tokens
}

/// The length of the string or character literal that `rest` begins with, quotes included.
fn literal_length(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        if c == quote && !escaped {
            return at + 1;
        }
        escaped = c == '\\' && !escaped;
    }
    rest.len()
}

/// The token that closes the parenthesis `open`; the last one if none does.
fn closing(source: &str, tokens: &[Range<usize>], open: usize) -> usize {
    let mut depth = 0;
    for (i, token) in tokens.iter().enumerate().skip(open) {
        match &source[token.clone()] {
            "(" => depth += 1,
            ")" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return i;
        }
    }
    tokens.len() - 1
}

/// The element type and the name in `[__align__(n)] T name[]`.
fn dynamic_shared(source: &str, declaration: &[Range<usize>]) -> Option<(String, String)> {
    let words: Vec<&str> = declaration.iter().map(|token| &source[token.clone()]).collect();
    let [element @ .., name, "[", "]"] = words.as_slice() else { return None };
    let mut types = Vec::new();
    let mut i = 0;
    while i < element.len() {
        if matches!(element[i], "__align__" | "alignas") {
            // Dynamic shared memory is aligned to 1024 bytes here.
            i = closing(source, declaration, i + 1);
        } else {
            types.push(element[i]);
        }
        i += 1;
    }
    (is_identifier(name) && !types.is_empty()).then(|| (types.join(" "), (*name).to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(source: &str) -> String {
        let text = translate("k", source).unwrap();
        let begin = text.find("\"k.cu\"\n").unwrap() + 7;
        text[begin..text.rfind("\n}\n#line").unwrap()].to_owned()
    }

    fn bounds(source: &str) -> String {
        translate("k", source).unwrap().lines().last().unwrap().to_owned()
    }

    #[test]
    fn text_that_is_valid_cpp_stays_as_it_is() {
        let source =
            "// asm(\"x\") in a comment\nextern \"C\" __global__ void k(int* p) { *p = 'a'; /* asm( */ }\n";
        assert_eq!(body(source), source);
    }

    #[test]
    fn known_ptx_becomes_calls_and_other_assembly_is_refused() {
        for (ptx, call) in PTX {
            assert_eq!(body(&format!("float g() {{ {ptx} }}")), format!("float g() {{ {call} }}"));
        }
        let error = translate("k", "int x;\n  asm volatile(\"bar.sync 0;\");\n").unwrap_err();
        assert_eq!(error, "line 2: no counterpart for this inline assembly: asm volatile(\"bar.sync 0;\");");
    }

    #[test]
    fn dynamic_shared_memory_becomes_a_pointer() {
        assert_eq!(
            body("void k() { extern __shared__ __align__(16) unsigned char\n  bytes[]; }"),
            "void k() { unsigned char* const bytes = static_cast<unsigned char*>(lz_emu_current->dynamic_shared);\n }"
        );
        assert!(
            translate("k", "extern __shared__ float tile[];").unwrap_err().contains("outside of a function")
        );
        assert!(
            translate("k", "void k() { extern __shared__ float x; }")
                .unwrap_err()
                .starts_with("line 1: expected")
        );
    }

    #[test]
    fn launch_bounds_are_those_of_the_kernel() {
        assert_eq!(
            bounds("__global__ void __launch_bounds__(64) other(); void k(int);"),
            "LZ_EMU_EXPORT(k, )"
        );
        assert_eq!(
            bounds(
                "__global__ void __launch_bounds__(64) other();\n__global__ void __launch_bounds__(4 * (8), 2) k();"
            ),
            "LZ_EMU_EXPORT(k, 4 * (8), 2)"
        );
        assert_eq!(bounds("__launch_bounds__(64) __global__ void k(int a);"), "LZ_EMU_EXPORT(k, 64)");
    }

    #[test]
    fn a_kernel_name_must_be_a_name() {
        assert!(translate("a b", "").is_err());
        assert!(translate("", "").is_err());
        assert!(translate("1st", "").is_err());
    }
}
