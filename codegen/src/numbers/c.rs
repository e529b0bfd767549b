//! The numbers of C.

use std::fmt::Write;

use super::skeleton::{DECLARED, HANDED_ON, Kind, POSITION, Skeleton, digits, indent, is_loop, is_word};

/// Loops of so many steps are spelled out by compilers.
const SHORT_LOOP: u64 = 8;

/// Calls that are given places alone: elements that vectors are loaded from, and how many; those of random numbers.
const PLACES: [&str; 9] = [
    "lz_load_",
    "lz_inside_",
    "lz_any_inside_",
    "lz_gather_",
    "lz_pick_",
    "lz_random_",
    "lz_positions(",
    "lz_checked_positions(",
    "__builtin_prefetch(",
];
/// Is given a place, then what is stored there.
const STORES: [&str; 2] = ["lz_store_", "lz_stream_"];
/// Is given the place of the first lane, then how far it is from lane to lane; and what precedes the extent that such places are
/// compared with.
const SHORT_POSITIONS: &str = "lz_short_positions(";
const COMPARED: &str = "), lz_splat_u32v(";
/// Of a store that may go around the caches, precedes how many elements its loop has stored.
const STREAMED: &str = ", streams, ";
/// Lines of positions, lengths and what these are compared with.
const INDICES: [&str; 9] = [
    "for (",
    "if (",
    "} else if (",
    "const idx ",
    "idx ",
    "const unsigned char inside",
    "const mask inside",
    "const mask_half inside",
    "lz_",
];

/// The end of a kernel's signature, and of the calls that hand its parameters on.
const RANGE: &str = "idx first_block,";
const CALLS: [&str; 2] = ["first_block, end_block);", "from - first, to - first);"];

pub(super) fn declare(source: &mut String, number: usize) {
    let _ = write!(source, "idx number{number}, ");
}

pub(super) fn hand_on(source: &mut String, number: usize, arguments: usize) {
    let _ = write!(source, "*(idx*)args[{}], ", arguments + number);
}

pub(super) fn take_apart(source: &str) -> Option<Skeleton> {
    let mut skeleton = Skeleton::default();
    let begin = source.find("typedef ")?;
    let functions = begin + source[begin..].find("\nstatic void ")? + 1;
    skeleton.text.push_str(&source[begin..functions]);
    let lines: Vec<&str> = source[functions..].lines().collect();
    let mut is_body = false;
    // The indentation of the loop in vectors that the line is in.
    let mut vectors: Option<usize> = None;
    for (at, line) in lines.iter().enumerate() {
        let is_signature_end = line.ends_with("idx end_block) {") && !line.starts_with("void ");
        is_body &= !line.starts_with('}');
        let before = if at == 0 { "" } else { lines[at - 1] };
        if vectors.is_some_and(|depth| indent(line) <= depth && !line.starts_with('#')) {
            vectors = None;
        }
        // Arrays in vectors are of known lengths, and so are short loops there, and what is unrolled.
        let is_array = vectors.is_some() && line.contains("] __attribute__");
        let is_unrolled = is_loop(line) && (vectors.is_some() || before.starts_with("#pragma GCC unroll"));
        let least = if is_unrolled { SHORT_LOOP + 1 } else { 0 };
        if before.starts_with("#pragma omp simd") {
            vectors = vectors.or(Some(indent(line)));
        }
        match is_body && indent(line) > 0 && !is_array {
            true => skeleton.line(&lines, at, least),
            false => skeleton.outside(line),
        }
        skeleton.text.push('\n');
        is_body |= is_signature_end;
    }
    Some(skeleton)
}

impl Skeleton {
    /// A line of no body.
    fn outside(&mut self, line: &str) {
        let call = CALLS.iter().find_map(|call| line.strip_suffix(call).map(|before| (before, *call)));
        let signature = (!line.starts_with("void ")).then(|| line.find(RANGE)).flatten();
        match (call, signature) {
            (Some((before, call)), _) => {
                self.text.push_str(before);
                self.text.push(HANDED_ON);
                self.text.push_str(call);
            }
            (None, Some(at)) => {
                self.text.push_str(&line[..at]);
                self.text.push(DECLARED);
                self.text.push_str(&line[at..]);
            }
            (None, None) => self.text.push_str(line),
        }
    }

    /// Takes the numbers from `least` on out of one of the lines.
    fn line(&mut self, lines: &[&str], line_number: usize, least: u64) {
        let line = lines[line_number];
        let text = line.trim_start();
        if text.starts_with('#') || text.starts_with("static ") || text.contains("= {") {
            self.text.push_str(line);
            return;
        }
        let is_of_indices = INDICES.iter().any(|start| text.starts_with(start))
            && !STORES.iter().any(|start| text.starts_with(start));
        let streamed = line.find(STREAMED).unwrap_or(line.len());
        let (bytes, mut at, mut brackets) = (line.as_bytes(), 0, 0usize);
        let mut done = 0;
        // Calls whose operands are places, by the parentheses around them.
        let (mut depth, mut places): (usize, Vec<(usize, bool)>) = (0, Vec::new());
        while at < bytes.len() {
            match bytes[at] {
                b'(' => depth += 1,
                b')' => {
                    depth = depth.saturating_sub(1);
                    places.retain(|&(outside, _)| outside < depth);
                }
                b',' => places.retain(|&(outside, is_first)| !is_first || outside + 1 < depth),
                b'l' | b'_' if !is_word(bytes.get(at.wrapping_sub(1))) => {
                    let is_store = STORES.iter().any(|call| line[at..].starts_with(call));
                    let is_first = is_store || line[at..].starts_with(SHORT_POSITIONS);
                    if is_first || PLACES.iter().any(|call| line[at..].starts_with(call)) {
                        places.push((depth, is_first));
                    }
                }
                b'[' => brackets += 1,
                b']' => brackets = brackets.saturating_sub(1),
                byte if byte.is_ascii_digit() => {
                    let Some((number, end)) = digits(line, at) else {
                        at += 1;
                        continue;
                    };
                    let before = line[..at].trim_end();
                    let is_compared = ["<", "<=", ">", ">="].iter().any(|sign| before.ends_with(sign))
                        && !before.ends_with("<<")
                        && !before.ends_with(">>");
                    // More than one number may be arithmetic of fewer bits.
                    let is_position = before.ends_with(POSITION) && bytes.get(end) == Some(&b')');
                    let divides = before.ends_with('/') || before.ends_with('%');
                    if (least..=Kind::Index.most()).contains(&number)
                        && !is_word(bytes.get(end))
                        && (is_of_indices
                            || is_compared
                            || is_position
                            || before.ends_with(COMPARED)
                            || brackets > 0
                            || at > streamed
                            || !places.is_empty())
                        && !(divides && varies_innermost(lines, line_number, before))
                    {
                        self.text.push_str(&line[done..at]);
                        self.push(number, if is_short(before) { Kind::Int } else { Kind::Index });
                        done = end;
                    }
                    at = end;
                    continue;
                }
                _ => {}
            }
            at += 1;
        }
        self.text.push_str(&line[done..]);
    }
}

/// Whether a text before `/` or `%` ends with a dividend that varies in an innermost loop: no loop follows its line in the block,
/// and the loop around it gives one of the dividend's variables its value.
fn varies_innermost(lines: &[&str], at: usize, before: &str) -> bool {
    let depth = indent(lines[at]);
    let mut rest = lines[at + 1..].iter().take_while(|line| indent(line) >= depth || line.starts_with('#'));
    if rest.any(|line| is_loop(line)) {
        return false;
    }
    let Some(header) = lines[..at].iter().rposition(|line| is_loop(line) && indent(line) < depth) else {
        return true;
    };
    let outside = indent(lines[header]);
    let inside = |line: &&&str| indent(line) > outside || line.starts_with('#');
    let body = || lines[header..].iter().take(1).chain(lines[header + 1..].iter().take_while(inside));
    names(dividend(before)).any(|name| body().any(|line| sets(line, name)))
}

/// The last factor of a text that ends with `/` or `%`, without that sign: `a * b / 3` of `c + a * b / 3 %`.
fn dividend(before: &str) -> &str {
    let text = before.trim_end_matches(['/', '%']).trim_end();
    let mut depth = 0usize;
    let begins = text.rfind(|byte: char| {
        match byte {
            ')' | ']' => depth += 1,
            '(' | '[' if depth == 0 => return true,
            '(' | '[' => depth -= 1,
            '+' | '-' | ',' | '<' | '>' | '=' | '?' | ':' | '&' | '|' => return depth == 0,
            _ => {}
        }
        false
    });
    begins.map_or(text, |at| &text[at + 1..])
}

/// The names in an expression.
fn names(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_'));
    words.filter(|word| word.starts_with(|letter: char| letter.is_ascii_alphabetic()))
}

/// Whether a line gives a variable a value.
fn sets(line: &str, name: &str) -> bool {
    line.match_indices(name).any(|(at, _)| {
        let (before, after) = (&line[..at], &line[at + name.len()..]);
        let is_name = !is_word(before.as_bytes().last()) && !is_word(after.as_bytes().first());
        let after = after.trim_start().trim_start_matches(['+', '-', '*']);
        let assigns = after.starts_with('=') && !after.starts_with("==");
        is_name && (assigns || before.ends_with("++") || before.ends_with("--"))
    })
}

/// Whether a number behind this is compared with one of 32 bits: `(unsigned)(i0 - 4) <`.
fn is_short(before: &str) -> bool {
    let Some(compared) = before.trim_end_matches(['<', '>', '=']).trim_end().strip_suffix(')') else {
        return false;
    };
    let mut depth = 1usize;
    let opens = compared.rfind(|byte: char| {
        match byte {
            ')' => depth += 1,
            '(' => depth -= 1,
            _ => {}
        }
        depth == 0
    });
    opens.is_some_and(|at| ["(unsigned)", "(int)"].iter().any(|cast| compared[..at].ends_with(cast)))
}
