//! How much the C compiler is asked to optimise a text: it follows from the text, and from whether the compiler is gcc.
//! `benches/flags` measures sets of flags.

/// What makes loops over short texts faster takes much time over long ones, whose loops it makes no faster. A loop that asks for
/// vectors gets them at any price from gcc, unless it is told to compare: it would read whole rows for two columns of each.
pub(super) fn effort(source: &str, is_gcc: bool) -> Effort {
    // Several kernels may be in one text.
    let is_long = source.split("\nstatic void ").skip(1).any(|function| function.len() > LONG_TEXT);
    match (source.contains("#pragma omp simd"), is_long) {
        (true, true) if is_gcc => &["-O1", RANGES, "-ftree-vectorize", NO_SLP, COMPARES],
        (true, false) if is_gcc => &["-O3", "-ftree-vectorize", COMPARES, FEW_TIMES],
        (true, true) => &["-O1", "-ftree-vectorize"],
        (true, false) => &["-O3", "-ftree-vectorize"],
        (false, true) if is_gcc => &["-O1", RANGES, "-fno-tree-vectorize"],
        (false, true) => &["-O1", "-fno-tree-vectorize"],
        (false, false) => &["-O2", "-fno-tree-vectorize"],
    }
}
const COMPARES: &str = "-fsimd-cost-model=dynamic";
/// Loops of a known length inside of one that asks for vectors are unrolled up to here: of sixteen bytes that are added up in 64 bits
/// gcc 12 made vectors for 3.0 s, and takes 0.15 s with the loop.
const FEW_TIMES: &str = "--param=max-completely-peel-times=8";
/// No superword-level parallelism, vectors of neighbouring statements: to find none among 130 stores of a loop took gcc 12 more than a minute.
const NO_SLP: &str = "-fno-tree-slp-vectorize";
/// Ranges of values say which lanes of an unrolled loop are there. Without, each is asked for, and to combine these instructions took gcc
/// 4.9 of 5.4 s for a sum of 64 products of 8 terms, which takes 0.36 s with it; texts without unrolled loops take as long either way.
const RANGES: &str = "-ftree-vrp";
const LONG_TEXT: usize = 8 << 10;
pub(super) type Effort = &'static [&'static str];
/// For a text over which the compiler itself fails, one after the other: fewer of its passes see it.
pub(super) const LESS: [Effort; 2] = [&["-O1", "-fno-tree-vectorize"], &["-O0", "-fno-tree-vectorize"]];
/// How compilers say that it was they who failed, not the text.
pub(super) const FAULTS: [&str; 4] =
    ["internal compiler error", "submit a bug report", "error in backend", "Segmentation fault"];
/// The choice, as a part of the identity.
pub(super) const EFFORTS: &str = "-O1 for functions of more than 8 KiB, with ranges of values and without SLP, else -O3 to find vectors that pay, loops of up to 8 steps unrolled, -O2 where they are written";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_compiler_is_asked_for_what_a_text_is_faster_with() {
        let text = |body: &str| format!("\nstatic void a_blocks(float* out0) {{\n{body}}}\n");
        let vectors = "  lz_store_f32(out0, x0, lanes);\n";
        assert_eq!(effort(&text(vectors), true)[0], "-O2");
        assert_eq!(effort(&text(&vectors.repeat(300)), true), ["-O1", RANGES, "-fno-tree-vectorize"]);
        assert_eq!(effort(&text(&vectors.repeat(300)), false), ["-O1", "-fno-tree-vectorize"]);
        assert_eq!(effort(&text("#pragma omp simd\n"), false), ["-O3", "-ftree-vectorize"]);
        assert_eq!(effort(&text("#pragma omp simd\n"), true)[2], COMPARES);
        assert!(effort(&text(&"#pragma omp simd\n".repeat(500)), true).contains(&NO_SLP));
    }
}
