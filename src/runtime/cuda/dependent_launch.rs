//! Programmatic dependent launch, of compute capability 9.0 and later: a kernel is launched before the one before it on the stream, or in
//! the graph, has ended.
//!
//! Launching a kernel takes 0.7 to 0.9 µs on an H200. That overlaps with the end of the kernel before: when all its blocks have come to
//! their end, this one's may begin, and wait there. The first statement of every kernel, `griddepcontrol.wait`, is over when the
//! kernel before has ended and its writes are seen. All threads wait, so the end of a kernel stands for the end of all before it.
//! Texts do not show the statement: it is no part of what a kernel computes.
//!
//! No kernel triggers the next one sooner (`griddepcontrol.launch_dependents`): its blocks would be placed where this one's leave
//! room, two on one multiprocessor and none on others (attention of 128 blocks took 36 µs for 24), and small kernels gain nothing.

use std::borrow::Cow;

const WAIT: &str = r#" asm volatile("griddepcontrol.wait;" ::: "memory");"#;

/// Whether kernels compiled for the architecture, `sm_90` or `compute_90`, wait for the one before.
pub(crate) fn begins_early(architecture: &str) -> bool {
    let number = architecture.strip_prefix("sm_").or_else(|| architecture.strip_prefix("compute_"));
    let digits = number.map(|number| number.trim_end_matches(|suffix: char| suffix.is_ascii_alphabetic()));
    digits.and_then(|digits| digits.parse::<u32>().ok()).is_some_and(|number| number >= 90)
}

/// What is compiled of a text. Lines keep their numbers.
pub(crate) fn source<'a>(text: &'a str, architecture: &str) -> Cow<'a, str> {
    if !begins_early(architecture) {
        return Cow::Borrowed(text);
    }
    let mut waiting = String::with_capacity(text.len() + WAIT.len());
    let mut is_signature = false;
    for line in text.split_inclusive('\n') {
        is_signature |= line.starts_with("extern \"C\" __global__ ");
        match line.strip_suffix("{\n").filter(|_| is_signature) {
            Some(head) => {
                waiting.extend([head, "{", WAIT, "\n"]);
                is_signature = false;
            }
            None => waiting.push_str(line),
        }
    }
    Cow::Owned(waiting)
}

/// Whether nothing in the machine code of a kernel reads memory before the wait. Loads of what a kernel only reads are free to move
/// in what the compiler knows, so this is asked of the code of each: one that reads first is launched when all before it has ended.
pub(crate) fn waits_first(code: &[u8]) -> bool {
    /// The low 12 bits of instructions, as of sm_90 to sm_120: `ACQBULK`, and `LD`, `LDG` and `LDGSTS`.
    const WAIT: u16 = 0x82e;
    const LOADS: [u16; 3] = [0x980, 0x981, 0xfae];
    let instructions = code.chunks_exact(16).map(|words| u16::from_le_bytes([words[0], words[1]]) & 0xfff);
    instructions.take_while(|operation| !LOADS.contains(operation)).any(|operation| operation == WAIT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kernel_waits_first() {
        let text = "__device__ int f() {\n  return 1;\n}\nextern \"C\" __global__ void __launch_bounds__(32) a(\n    int* x) {\n  if (f()) {\n  }\n}\n";
        let text = format!("{text}extern \"C\" __global__ void b() {{\n}}\n");
        let expected = text.replace("int* x) {\n", &format!("int* x) {{{WAIT}\n"));
        let expected = expected.replace("b() {\n", &format!("b() {{{WAIT}\n"));
        assert_eq!(source(&text, "sm_90"), expected);
        assert_eq!(source(&text, "sm_89"), text);
    }

    #[test]
    fn a_kernel_that_reads_first_does_not_wait_first() {
        let code = |operations: &[u16]| -> Vec<u8> {
            operations
                .iter()
                .flat_map(|operation| [*operation, 0, 0, 0, 0, 0, 0, 0])
                .flat_map(u16::to_le_bytes)
                .collect()
        };
        // `MOV`, `ACQBULK`, `LDG`: the upper four bits are a predicate.
        assert!(waits_first(&code(&[0x7202, 0x782e, 0x7981])));
        assert!(!waits_first(&code(&[0x7202, 0x7981, 0x782e])));
        assert!(!waits_first(&code(&[0x7202])));
    }

    #[test]
    fn architectures_that_have_it() {
        for (architecture, expected) in
            [("sm_75", false), ("sm_89", false), ("sm_90", true), ("sm_90a", true), ("sm_121", true)]
        {
            assert_eq!(begins_early(architecture), expected, "{architecture}");
        }
        assert!(begins_early("compute_90") && !begins_early("compute_80") && !begins_early("other"));
    }
}
