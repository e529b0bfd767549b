//! Texts of C kernels that differ in numbers alone, as one text that gets those numbers as arguments.
//!
//! An inner extent is part of a kernel's text: as the end of a loop, in strides, in the length of a local array. Where
//! an extent grows from call to call, the texts of the calls are the same but for such numbers. [`Numbers`] takes a
//! text apart; [`General`] is what several texts have in common, with a parameter in the place of each number
//! in which they differ. Whoever launches it passes the numbers of the text as emitted, so that it does, statement by
//! statement, what that text says, and nothing has to be known of where the numbers come from.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::{Emitted, Language};

/// More parameters than these are no gain.
const MOST_PARAMETERS: usize = 64;
/// Loops of so many steps are spelled out by compilers.
const SHORT_LOOP: u64 = 8;
/// What stands in a skeleton for a number, followed by what a constant may be but an argument not.
const PLACE: char = '\u{1}';

/// Calls that are given places alone: elements that vectors are loaded from, and how many.
const PLACES: [&str; 3] = ["lz_load_", "lz_gather_", "lz_positions("];
/// Is given a place, then what is stored there.
const STORE: &str = "lz_store_";

/// A C kernel's text, and the numbers in it that may be arguments: what loops, indices, comparisons and lengths of local arrays
/// are made of. Not what elements are computed with, and no divisor in an innermost loop, where a known one is
/// much faster.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Numbers {
    skeleton: String,
    values: Vec<u64>,
    /// Parameters of the kernel as it is.
    parameters: usize,
}

/// Which numbers of a text are arguments.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct General {
    /// Of each number, the parameter that is in its place, or the number.
    places: Vec<Place>,
    parameters: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    Constant(u64),
    Parameter(usize),
}

impl Numbers {
    /// Those of a kernel; `None` if it is not C, is a batch, or has none.
    pub fn of(emitted: &Emitted) -> Option<Numbers> {
        if emitted.language != Language::C || emitted.batch.is_some() {
            return None;
        }
        let parameters = emitted.parameters.len();
        let source = &emitted.source;
        let begin = source.find("typedef ")?;
        let functions = begin + source[begin..].find("\nstatic void ")? + 1;
        let mut numbers =
            Numbers { skeleton: String::with_capacity(source.len()), values: Vec::new(), parameters };
        numbers.skeleton.push_str(&source[begin..functions]);
        let lines: Vec<&str> = source[functions..].lines().collect();
        let mut is_body = false;
        // The indentation of the loop in vectors that the line is in.
        let mut vectors: Option<usize> = None;
        for (at, line) in lines.iter().enumerate() {
            is_body |= line.ends_with("end_block) {") && line.starts_with(' ');
            is_body &= !line.starts_with('}');
            let before = if at == 0 { "" } else { lines[at - 1] };
            if vectors.is_some_and(|depth| indent(line) <= depth && !line.starts_with('#')) {
                vectors = None;
            }
            // Arrays in vectors are of known lengths, and so are short loops there, and what is unrolled.
            let is_array = vectors.is_some() && line.contains("] __attribute__");
            let is_unrolled =
                is_loop(line) && (vectors.is_some() || before.starts_with("#pragma GCC unroll"));
            let least = if is_unrolled { SHORT_LOOP + 1 } else { 0 };
            if before.starts_with("#pragma omp simd") {
                vectors = vectors.or(Some(indent(line)));
            }
            match is_body && indent(line) > 0 && !is_array {
                true => numbers.line(line, &lines[at + 1..], least),
                false => numbers.skeleton.push_str(line),
            }
            numbers.skeleton.push('\n');
        }
        (!numbers.values.is_empty()).then_some(numbers)
    }

    /// The text without the numbers: equal for kernels that differ in them alone.
    pub fn skeleton(&self) -> &str {
        &self.skeleton
    }

    /// Whether the numbers are about as large as the other's: at most half as large again, or by a few more.
    pub fn is_near(&self, other: &Numbers) -> bool {
        let near = |(&a, &b): (&u64, &u64)| {
            let (low, high) = (a.min(b), a.max(b));
            high - low <= (low / 2).max(32)
        };
        self.values.len() == other.values.len() && self.values.iter().zip(&other.values).all(near)
    }

    /// Takes the numbers from `least` on out of a line.
    fn line(&mut self, line: &str, following: &[&str], least: u64) {
        let text = line.trim_start();
        if text.starts_with('#') || text.starts_with("static ") || text.contains("= {") {
            self.skeleton.push_str(line);
            return;
        }
        let is_of_indices =
            ["for (", "if (", "} else if (", "const idx ", "const unsigned char inside", "lz_"]
                .iter()
                .any(|start| text.starts_with(start))
                && !text.starts_with(STORE);
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
                b'l' if !is_word(bytes.get(at.wrapping_sub(1))) => {
                    let is_store = line[at..].starts_with(STORE);
                    if is_store || PLACES.iter().any(|call| line[at..].starts_with(call)) {
                        places.push((depth, is_store));
                    }
                }
                b'[' => brackets += 1,
                b']' => brackets = brackets.saturating_sub(1),
                byte if byte.is_ascii_digit() && !is_word(bytes.get(at.wrapping_sub(1))) => {
                    let end = at + bytes[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
                    let before = line[..at].trim_end();
                    let is_compared = ["<", "<=", ">", ">="].iter().any(|sign| before.ends_with(sign))
                        && !before.ends_with("<<")
                        && !before.ends_with(">>");
                    let divides = before.ends_with('/') || before.ends_with('%');
                    let number = line[at..end]
                        .parse::<u64>()
                        .ok()
                        .filter(|number| (least..=i64::MAX as u64).contains(number));
                    if let Some(number) = number
                        && !is_word(bytes.get(end))
                        && (is_of_indices || is_compared || brackets > 0 || !places.is_empty())
                        && !(divides && is_innermost(line, following))
                    {
                        self.skeleton.push_str(&line[done..at]);
                        self.skeleton.push(PLACE);
                        self.values.push(number);
                        done = end;
                    }
                    at = end;
                    continue;
                }
                _ => {}
            }
            at += 1;
        }
        self.skeleton.push_str(&line[done..]);
    }
}

/// Whether the byte is of a name or a number that a digit beside it is a part of.
fn is_word(byte: Option<&u8>) -> bool {
    byte.is_some_and(|&byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'.')
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

fn is_loop(line: &str) -> bool {
    line.trim_start().starts_with("for (")
}

/// Whether no loop follows the line in its block.
fn is_innermost(line: &str, following: &[&str]) -> bool {
    let depth = indent(line);
    let block = following.iter().take_while(|line| indent(line) >= depth || line.starts_with('#'));
    !block.into_iter().any(|line| is_loop(line))
}

impl General {
    /// What texts of one skeleton have in common; `None` if they differ in too much, or in nothing. It does not matter in
    /// which order they come.
    pub fn of(texts: &[&Numbers]) -> Option<General> {
        let first = texts.first()?;
        if texts.iter().any(|text| text.skeleton != first.skeleton || text.parameters != first.parameters) {
            return None;
        }
        // Numbers that are equal in each of the texts are one parameter.
        let mut known: BTreeMap<Vec<u64>, usize> = BTreeMap::new();
        let mut sorted: Vec<&&Numbers> = texts.iter().collect();
        sorted.sort_by(|a, b| a.values.cmp(&b.values));
        let mut places = Vec::with_capacity(first.values.len());
        for (at, &value) in first.values.iter().enumerate() {
            let values: Vec<u64> = sorted.iter().map(|text| text.values[at]).collect();
            places.push(match values.iter().all(|&other| other == value) {
                true => Place::Constant(value),
                false => {
                    let next = known.len();
                    Place::Parameter(*known.entry(values).or_insert(next))
                }
            });
        }
        let parameters = known.len();
        (parameters > 0 && parameters <= MOST_PARAMETERS).then_some(General { places, parameters })
    }

    /// What the parameters are for a text of the skeleton; `None` if it is not one of those that this serves.
    pub fn arguments(&self, text: &Numbers) -> Option<Vec<u64>> {
        let mut arguments: Vec<Option<u64>> = vec![None; self.parameters];
        if text.values.len() != self.places.len() {
            return None;
        }
        for (place, &value) in self.places.iter().zip(&text.values) {
            let fits = match *place {
                Place::Constant(constant) => constant == value,
                Place::Parameter(number) => *arguments[number].get_or_insert(value) == value,
            };
            if !fits {
                return None;
            }
        }
        arguments.into_iter().collect()
    }

    /// The source, for which these parameters follow the kernel's own; `text` is one of those that it serves.
    pub fn source(&self, text: &Numbers) -> String {
        let mut source = String::with_capacity(text.skeleton.len() + 64 * self.parameters);
        let mut places = self.places.iter();
        for line in text.skeleton.split_inclusive('\n') {
            match line {
                "    idx first_block,\n" => {
                    (0..self.parameters).for_each(|number| {
                        let _ = writeln!(source, "    idx number{number},");
                    });
                    source.push_str(line);
                }
                "      first_block, end_block);\n" => {
                    (0..self.parameters).for_each(|number| {
                        let _ = writeln!(source, "      *(idx*)args[{}],", text.parameters + number);
                    });
                    source.push_str(line);
                }
                _ => {
                    let mut pieces = line.split(PLACE);
                    source.push_str(pieces.next().unwrap_or_default());
                    for piece in pieces {
                        let _ = match places.next() {
                            Some(Place::Constant(value)) => write!(source, "{value}"),
                            Some(Place::Parameter(number)) => write!(source, "number{number}"),
                            None => Ok(()),
                        };
                        source.push_str(piece);
                    }
                }
            }
        }
        source
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emit;
    use crate::ir::Kernel;
    use crate::schedule::Figures;

    fn emitted(kernel: &str) -> Emitted {
        let kernel: Kernel = kernel.parse().unwrap();
        emit(&kernel, Language::C, &Figures { processors: 2, is_frugal: false, shared_bytes: 0 }).unwrap()
    }

    /// Softmax-like rows of `n` elements: a maximum, and the exponentials of the differences.
    fn rows(n: usize) -> Emitted {
        emitted(&format!(
            "\
kernel rows
  map i0 < n_i0 = 10
  reduce r0 < {n}
  input in0: f32 [{all}]
  output out0: f32 [{all}]
  output out1: f32 [10]
  v0: f32 = load in0[i0 * {n} + r0]
  v1: f32 = reduce max over r0 of v0
  v2: f32 = sub v0 v1
  v3: f32 = exp v2
  v4: f32 = reduce sum over r0 of v3
  store out0[i0 * {n} + r0] = v3
  store out1[i0] = v4
",
            all = 10 * n
        ))
    }

    /// A column of the middle axis of [10, n, 7] is shifted.
    fn middle(n: usize) -> Emitted {
        emitted(&format!(
            "\
kernel middle
  map i0 < n_i0 = 10
  map i1 < {n}
  map i2 < 7
  input in0: f32 [{from}]
  output out0: f32 [{all}]
  v0: f32 = load in0[i0 * {row} + i1 * 7 + i2 + 7]
  v1: f32 = literal 3.0
  v2: f32 = mul v0 v1
  store out0[i0 * {row_out} + i1 * 7 + i2] = v2
",
            from = 70 * (n + 1),
            all = 70 * n,
            row = 7 * (n + 1),
            row_out = 7 * n,
        ))
    }

    #[test]
    fn texts_that_differ_in_numbers_have_one_skeleton() {
        for kernel in [rows, middle] {
            let [a, b, c] = [101, 102, 301].map(|n| Numbers::of(&kernel(n)).unwrap());
            assert_eq!(a.skeleton(), b.skeleton());
            assert_eq!(a.skeleton(), c.skeleton());
            assert!(a.is_near(&b) && !a.is_near(&c));
        }
        // Without a remainder a loop is missing, and other operations are others.
        let [a, b] = [rows(101), rows(128)].map(|emitted| Numbers::of(&emitted).unwrap());
        assert_ne!(a.skeleton(), b.skeleton());
        assert_ne!(
            Numbers::of(&rows(101)).unwrap().skeleton(),
            Numbers::of(&middle(101)).unwrap().skeleton()
        );
    }

    #[test]
    fn the_numbers_as_arguments_give_each_text_back() {
        for kernel in [rows, middle] {
            let texts = [101, 102, 301, 577].map(kernel);
            let numbers = texts.each_ref().map(|emitted| Numbers::of(emitted).unwrap());
            let general = General::of(&[&numbers[0], &numbers[2]]).unwrap();
            let source = general.source(&numbers[0]);
            assert_eq!(source, general.source(&numbers[2]));
            assert_eq!(General::of(&[&numbers[2], &numbers[0]]).unwrap().source(&numbers[0]), source);
            for (emitted, numbers) in texts.iter().zip(&numbers) {
                let arguments = general.arguments(numbers).unwrap();
                let mut text = source.clone();
                for (number, value) in arguments.iter().enumerate().rev() {
                    let parameter = format!("    idx number{number},\n");
                    let argument = format!("      *(idx*)args[{}],\n", emitted.parameters.len() + number);
                    assert!(text.contains(&parameter) && text.contains(&argument), "{text}");
                    text = text.replace(&parameter, "").replace(&argument, "");
                    text = text.replace(&format!("number{number}"), &value.to_string());
                }
                let functions = emitted.source.find("typedef ").unwrap();
                assert_eq!(text, emitted.source[functions..]);
            }
        }
    }

    #[test]
    fn other_texts_are_refused() {
        let [a, b, c] = [101, 102, 103].map(|n| Numbers::of(&rows(n)).unwrap());
        let mut general = General::of(&[&a, &b]).unwrap();
        assert!(general.arguments(&c).is_some());
        // What was equal must be.
        let constant = general.places.iter().position(|place| matches!(place, Place::Constant(_))).unwrap();
        let mut other = c.clone();
        other.values[constant] += 1;
        assert!(general.arguments(&other).is_none());
        let places: Vec<usize> = (0..general.places.len())
            .filter(|&at| matches!(general.places[at], Place::Parameter(_)))
            .collect();
        let mut other = c.clone();
        let twin =
            places.iter().find(|&&at| at != places[0] && general.places[at] == general.places[places[0]]);
        other.values[*twin.unwrap()] += 1;
        assert!(general.arguments(&other).is_none());
        general.places.pop();
        assert!(general.arguments(&c).is_none());
        assert!(General::of(&[&a, &a]).is_none() && General::of(&[]).is_none());
        assert!(General::of(&[&a, &Numbers::of(&middle(101)).unwrap()]).is_none());
    }

    #[test]
    fn what_elements_are_computed_with_stays() {
        let numbers = Numbers::of(&middle(101)).unwrap();
        assert!(numbers.skeleton().contains("3.0f"));
        // Divisors in an innermost loop are much faster if they are known.
        let mut emitted = middle(101);
        emitted.source = "typedef long long idx;\n\nstatic void f_blocks(\n    idx first_block,\n    idx end_block) {\n  \
                          for (idx block = first_block; block < end_block; ++block) {\n    const idx i0 = block / 12;\n    \
                          for (idx l = 0; l < 34; ++l) {\n      const idx i1 = l % 56;\n      const unsigned v0 = v1 \
                          * 78u + 91;\n    }\n  }\n}\n"
            .into();
        let numbers = Numbers::of(&emitted).unwrap();
        assert_eq!(numbers.values, [12, 0, 34]);
        // Arrays in a loop in vectors are of known lengths, and so are short loops there.
        emitted.source = "typedef long long idx;\n\nstatic void f_blocks(\n    idx first_block,\n    idx end_block) {\n    \
                          float a[12] __attribute__((aligned(64)));\n#pragma omp simd\n    for (idx l = 0; l < 34; ++l) {\n      \
                          float b[56] __attribute__((aligned(64)));\n      for (idx r = 0; r < 6; ++r) {\n        b[r] = a[l * 78];\n      \
                          }\n    }\n#pragma GCC unroll 32\n    for (idx r = 0; r < 91; ++r) {\n    }\n}\n"
            .into();
        assert_eq!(Numbers::of(&emitted).unwrap().values, [12, 0, 34, 78, 91]);
    }
}
