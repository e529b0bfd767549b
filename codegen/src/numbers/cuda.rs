//! The numbers of CUDA C. Any number of a kernel's body may be an argument: it is converted to the type that it had. What
//! stays is what a compiler must know to keep arrays of a thread in registers, and the ends of loops that it unrolls.

use std::fmt::Write;

use super::skeleton::{DECLARED, HANDED_ON, Kind, MOST_PARAMETERS, Skeleton, digits, is_loop, is_word};
use crate::Emitted;
use crate::nest::PARAMETER_BYTES;

/// How a batch hands the parameters of a part on.
const CALL: &str = "blockIdx.x - parts.part[p].first_block";

pub(super) fn declare(source: &mut String, number: usize, is_wide: bool) {
    let ty = if is_wide { "unsigned long long" } else { "unsigned" };
    let _ = write!(source, ", {ty} number{number}");
}

pub(super) fn hand_on(source: &mut String, number: usize) {
    let _ = write!(source, ", number{number}");
}

pub(super) fn take_apart(emitted: &Emitted) -> Option<Skeleton> {
    let mut skeleton = Skeleton::default();
    let bytes = match &emitted.batch {
        Some(batch) => batch.records * batch.record_bytes(),
        None => 8 * emitted.parameters.len(),
    };
    if bytes + 8 * MOST_PARAMETERS > PARAMETER_BYTES as usize {
        return None;
    }
    // Arrays of a thread, which are in registers where it is known what is read of them.
    let mut arrays: Vec<&str> = Vec::new();
    let (mut is_signature, mut is_body, mut is_unrolled) = (false, false, false);
    for line in emitted.source.lines() {
        is_signature |= line.starts_with("extern \"C\" __global__ ") || is_part(line);
        is_body &= !line.starts_with('}');
        match () {
            () if is_signature && line.ends_with(") {") => {
                skeleton.text.push_str(&line[..line.len() - 3]);
                skeleton.text.push(DECLARED);
                skeleton.text.push_str(") {");
                (is_signature, is_body) = (false, true);
                arrays.clear();
            }
            () if is_body && line.contains(CALL) => {
                skeleton.text.push_str(line.trim_end_matches(");"));
                skeleton.text.push(HANDED_ON);
                skeleton.text.push_str(");");
            }
            () if is_body && !is_fixed(line) && !(is_unrolled && is_loop(line)) => {
                skeleton.body_line(line, &arrays);
            }
            () => {
                if is_body && !line.contains("__shared__") {
                    arrays.extend(array(line));
                }
                skeleton.text.push_str(line);
            }
        }
        is_unrolled = line == "#pragma unroll";
        skeleton.text.push('\n');
    }
    Some(skeleton)
}

/// Whether the line begins the function of a batch's parts.
fn is_part(line: &str) -> bool {
    line.starts_with("static __device__ __forceinline__ void ") && line.contains("_block(")
}

/// Whether a line is no statement with numbers that may be arguments: directives, declarations of arrays, text in quotes, how
/// a batch finds its part, and which lane comes, as it is a place in arrays.
fn is_fixed(line: &str) -> bool {
    let is_lane = line.trim_start().starts_with("const unsigned") && line.contains(" l = ");
    let is_part = line.contains("parts.part[");
    line.starts_with('#') || line.contains('"') || is_part || is_lane || array(line).is_some()
}

/// The name of the array that a line declares.
fn array(line: &str) -> Option<&str> {
    let declared = line.strip_suffix("];").filter(|_| !line.contains('='))?;
    let name = declared.rsplit_once('[')?.0.rsplit(' ').next()?;
    (line.trim_start() != line && !name.contains([')', ']', '>', '.'])).then_some(name)
}

impl Skeleton {
    fn body_line(&mut self, line: &str, arrays: &[&str]) {
        let bytes = line.as_bytes();
        let (mut at, mut done) = (0, 0);
        while at < bytes.len() {
            if is_word(Some(&bytes[at])) && !bytes[at].is_ascii_digit() {
                let end = at + bytes[at..].iter().take_while(|byte| is_word(Some(byte))).count();
                at = match arrays.contains(&&line[at..end]) {
                    true => element_end(line, end),
                    false => end,
                };
                continue;
            }
            match digits(line, at).and_then(|(value, end)| number(line, at, value, end)) {
                Some((value, kind, end)) => {
                    self.text.push_str(&line[done..at]);
                    self.push(value, kind);
                    (at, done) = (end, end);
                }
                // The rest of what begins with a digit and is no such number.
                None if bytes[at].is_ascii_digit() => {
                    at += bytes[at..].iter().take_while(|byte| is_word(Some(byte))).count();
                }
                None => at += 1,
            }
        }
        self.text.push_str(&line[done..]);
    }
}

/// Where what is said of an array ends whose name ends here: after the index of an element, or before the parenthesis that
/// closes around a place.
fn element_end(line: &str, name_end: usize) -> usize {
    let is_place = line[name_end..].starts_with(" + ");
    if !is_place && !line[name_end..].starts_with('[') {
        return name_end;
    }
    let mut depth = 0usize;
    for (at, byte) in line.bytes().enumerate().skip(name_end) {
        match byte {
            b'[' | b'(' => depth += 1,
            b']' | b')' | b',' if depth == 0 => return at,
            b']' | b')' => depth -= 1,
            _ => {}
        }
        if depth == 0 && !is_place {
            return at + 1;
        }
    }
    line.len()
}

/// A number by its digits and what follows them; a float only as a divisor, where it is how many there are of something.
fn number(line: &str, at: usize, value: u64, digits_end: usize) -> Option<(u64, Kind, usize)> {
    let rest = &line[digits_end..];
    let divides = line[..at].trim_end().ends_with('/');
    let (kind, length) = if let (true, Some(fraction)) = (divides, rest.strip_prefix(".0")) {
        if fraction.starts_with('f') { (Kind::Float, 3) } else { (Kind::Double, 2) }
    } else {
        let kinds = [Kind::UnsignedLong, Kind::Long, Kind::Unsigned, Kind::Int];
        let kind = kinds.into_iter().find(|kind| rest.starts_with(kind.suffix()))?;
        (kind, kind.suffix().len())
    };
    let end = digits_end + length;
    let is_whole = !is_word(line.as_bytes().get(end));
    (is_whole && value <= kind.most()).then_some((value, kind, end))
}
