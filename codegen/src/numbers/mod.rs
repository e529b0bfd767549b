//! Texts of kernels that differ in numbers alone, as one text that gets those numbers as arguments.
//!
//! An inner extent is part of a kernel's text: as the end of a loop, in strides, in the length of a local array. Where
//! an extent grows from call to call, the texts of the calls are the same but for such numbers. [`Numbers`] takes a
//! text apart; [`General`] is what several texts have in common, with a parameter in the place of each number
//! in which they differ. Whoever launches it passes the numbers of the text as emitted, so that it does, statement by
//! statement, what that text says, and nothing has to be known of where the numbers come from.

mod c;
mod cuda;
mod skeleton;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::Arc;

use self::skeleton::{DECLARED, HANDED_ON, Kind, MOST_PARAMETERS, PLACE, Skeleton, offsets};
use crate::nest::is_verified;
use crate::text::{Filled, Pattern, has_stand_ins, number_of_stand_in};
use crate::{Emitted, Language};

/// A kernel's text, and the numbers in it that may be arguments: what loops, indices, comparisons and lengths of local arrays
/// are made of. What costs speed if it is not known stays: in C divisors of what each step of an innermost loop changes, in
/// CUDA C what registers are named by.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Numbers {
    language: Language,
    values: Vec<u64>,
    /// Arguments of the kernel as it is.
    arguments: usize,
    rest: Arc<Rest>,
}

/// What is left of a text without its numbers.
#[derive(PartialEq, Eq, Debug)]
struct Rest {
    text: String,
    kinds: Vec<Kind>,
    /// Which numbers are added to a position, where it costs nothing not to know them.
    offsets: Vec<bool>,
}

/// What texts of one pattern have in common; `None` where numbers that are no arguments differ between them.
type Common = Option<(Arc<Rest>, Vec<Value>)>;

/// A number of a text.
#[derive(Clone, Copy)]
enum Value {
    Fixed(u64),
    /// Of the pattern's.
    Number(usize),
}

/// Which numbers of a text are arguments.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct General {
    /// Of each number, the parameter that is in its place, or the number.
    places: Vec<Place>,
    /// Whether each parameter has 64 bits.
    parameters: Vec<bool>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    Constant(u64),
    Parameter(usize),
}

impl Rest {
    fn of(skeleton: Skeleton) -> Option<(Arc<Rest>, Vec<u64>)> {
        let Skeleton { text, values, kinds } = skeleton;
        let offsets = offsets(&text);
        let is_any = !values.is_empty() && text.contains(DECLARED);
        is_any.then(|| (Arc::new(Rest { text, kinds, offsets }), values))
    }
}

/// What the texts of a pattern have in common: what is left of that with stand-ins.
fn common(pattern: &Pattern) -> Common {
    let (rest, values) = Rest::of(c::take_apart(&pattern.with_stand_ins())?)?;
    // What stays in a text is that text's own.
    if has_stand_ins(&rest.text) {
        return None;
    }
    let place = |value| number_of_stand_in(value).map_or(Value::Fixed(value), Value::Number);
    Some((rest, values.into_iter().map(place).collect()))
}

impl Numbers {
    /// Those of a kernel; `None` if it has none.
    pub fn of(emitted: &Emitted) -> Option<Numbers> {
        let arguments = match emitted.batch {
            Some(_) => 1,
            None => emitted.parameters.len(),
        };
        let language = emitted.language;
        let numbers = |rest: Arc<Rest>, values| Numbers { language, values, arguments, rest };
        if let Some(Filled { pattern, values }) = &emitted.filled {
            let made = pattern.made.get_or_init(|| Box::new(common(pattern)));
            if let Some((rest, places)) = made.downcast_ref::<Common>()? {
                let value = |place: &Value| match *place {
                    Value::Fixed(value) => Some(value),
                    Value::Number(number) => values.get(number).copied(),
                };
                let found = numbers(rest.clone(), places.iter().map(value).collect::<Option<_>>()?);
                if is_verified() {
                    let text = c::take_apart(&emitted.source).and_then(Rest::of);
                    debug_assert_eq!(text.map(|(rest, values)| numbers(rest, values)).as_ref(), Some(&found));
                }
                return Some(found);
            }
        }
        let (rest, values) = Rest::of(match language {
            Language::C => c::take_apart(&emitted.source)?,
            Language::Cuda => cuda::take_apart(emitted)?,
        })?;
        Some(numbers(rest, values))
    }

    /// The text without the numbers: equal for kernels that differ in them alone.
    pub fn skeleton(&self) -> &str {
        &self.rest.text
    }

    /// Whether the numbers are about as large as the other's: at most half as large again, or by a few more. Offsets may
    /// differ by any distance.
    pub fn is_near(&self, other: &Numbers) -> bool {
        let near = |((&a, &b), &is_offset): ((&u64, &u64), &bool)| {
            let (low, high) = (a.min(b), a.max(b));
            is_offset || high - low <= (low / 2).max(32)
        };
        self.values.len() == other.values.len()
            && self.values.iter().zip(&other.values).zip(&self.rest.offsets).all(near)
    }
}

impl General {
    /// What texts of one skeleton have in common; `None` if they differ in too much, or in nothing. It does not matter in
    /// which order they come.
    pub fn of(texts: &[&Numbers]) -> Option<General> {
        let first = texts.first()?;
        if texts.iter().any(|text| text.rest.text != first.rest.text || text.arguments != first.arguments) {
            return None;
        }
        // Numbers that are equal in each of the texts are one parameter.
        let mut known: BTreeMap<(Vec<u64>, bool), usize> = BTreeMap::new();
        let mut sorted: Vec<&&Numbers> = texts.iter().collect();
        sorted.sort_by(|a, b| a.values.cmp(&b.values));
        let mut places = Vec::with_capacity(first.values.len());
        let mut parameters = Vec::new();
        for (at, (&value, kind)) in first.values.iter().zip(&first.rest.kinds).enumerate() {
            let values: Vec<u64> = sorted.iter().map(|text| text.values[at]).collect();
            places.push(match values.iter().all(|&other| other == value) {
                true => Place::Constant(value),
                false => {
                    let is_wide = kind.is_wide();
                    let parameter = *known.entry((values, is_wide)).or_insert(parameters.len());
                    if parameter == parameters.len() {
                        parameters.push(is_wide);
                    }
                    Place::Parameter(parameter)
                }
            });
        }
        (!parameters.is_empty() && parameters.len() <= MOST_PARAMETERS)
            .then_some(General { places, parameters })
    }

    /// What is to be expected of a text that is the first of its skeleton, where others of its kernel have shown which numbers
    /// are the same for all: all others are parameters.
    pub fn expected(text: &Numbers, constants: &BTreeSet<u64>) -> Option<General> {
        let is_constant = |value: u64| {
            // Lanes, threads and sizes of elements.
            let is_plain = value <= 1024 && (value < 8 || value.is_power_of_two());
            is_plain || constants.contains(&value)
        };
        let mut known: BTreeMap<(u64, bool), usize> = BTreeMap::new();
        let mut parameters = Vec::new();
        let place = |(&value, kind): (&u64, &Kind)| match is_constant(value) {
            true => Place::Constant(value),
            false => {
                let next = known.len();
                let number = *known.entry((value, kind.is_wide())).or_insert(next);
                if number == next {
                    parameters.push(kind.is_wide());
                }
                Place::Parameter(number)
            }
        };
        let places = text.values.iter().zip(&text.rest.kinds).map(place).collect();
        (!parameters.is_empty() && parameters.len() <= MOST_PARAMETERS)
            .then_some(General { places, parameters })
    }

    /// Whether the parameters are offsets in a text that this serves, and so in all.
    pub fn is_of_offsets(&self, text: &Numbers) -> bool {
        let places = self.places.iter().zip(&text.rest.offsets);
        places.into_iter().all(|(place, &is_offset)| is_offset || matches!(place, Place::Constant(_)))
    }

    /// The numbers that are no parameters.
    pub fn constants(&self) -> impl Iterator<Item = u64> + '_ {
        self.places.iter().filter_map(|place| match *place {
            Place::Constant(value) => Some(value),
            Place::Parameter(_) => None,
        })
    }

    /// What the parameters are for a text of the skeleton; `None` if it is not one of those that this serves.
    pub fn arguments(&self, text: &Numbers) -> Option<Vec<u64>> {
        let mut arguments: Vec<Option<u64>> = vec![None; self.parameters.len()];
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
        let mut source = String::with_capacity(text.rest.text.len() + 64 * self.parameters.len());
        let mut places = self.places.iter();
        let mut letters = text.rest.text.chars();
        while let Some(letter) = letters.next() {
            // Writing to a string does not fail.
            let _ = match letter {
                PLACE => match (places.next(), letters.next().and_then(Kind::of_letter)) {
                    (Some(Place::Constant(value)), Some(kind)) => write!(source, "{value}{}", kind.suffix()),
                    (Some(&Place::Parameter(number)), Some(kind)) => {
                        source.push_str(&kind.of_parameter(number));
                        Ok(())
                    }
                    _ => Ok(()),
                },
                DECLARED => {
                    let parameters = self.parameters.iter().enumerate();
                    parameters.for_each(|(number, &is_wide)| match text.language {
                        Language::C => c::declare(&mut source, number),
                        Language::Cuda => cuda::declare(&mut source, number, is_wide),
                    });
                    Ok(())
                }
                HANDED_ON => {
                    (0..self.parameters.len()).for_each(|number| match text.language {
                        Language::C => c::hand_on(&mut source, number, text.arguments),
                        Language::Cuda => cuda::hand_on(&mut source, number),
                    });
                    Ok(())
                }
                letter => {
                    source.push(letter);
                    Ok(())
                }
            };
        }
        source
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emit;
    use crate::ir::Kernel;
    use crate::schedule::{Figures, Matrices};

    fn emitted(kernel: &str, language: Language) -> Emitted {
        let kernel: Kernel = kernel.parse().unwrap();
        emit(
            &kernel,
            language,
            &Figures { processors: 2, is_low_pressure: false, shared_bytes: 0, matrices: Matrices::Warps },
        )
        .unwrap()
    }

    /// Softmax-like rows of `n` elements: a maximum, and the exponentials of the differences.
    fn rows(n: usize, language: Language) -> Emitted {
        let text = format!(
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
        );
        emitted(&text, language)
    }

    /// A column of the middle axis of [10, n, 7] is shifted.
    fn middle(n: usize, language: Language) -> Emitted {
        let text = format!(
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
        );
        emitted(&text, language)
    }

    #[test]
    fn negative_integers_stay() {
        let number = |line: &str, at| skeleton::digits(line, at).map(|(value, _)| value);
        assert_eq!(number("short max0 = -32768;", 14), None);
        assert_eq!(number("a - 32768", 4), Some(32768));
        assert_eq!(number("x * -3.0f", 5), Some(3));
    }

    #[test]
    fn texts_that_differ_in_numbers_have_one_skeleton() {
        for kernel in [rows, middle] {
            let [a, b, c] = [101, 102, 301].map(|n| Numbers::of(&kernel(n, Language::C)).unwrap());
            assert_eq!(a.skeleton(), b.skeleton());
            assert_eq!(a.skeleton(), c.skeleton());
            assert!(a.is_near(&b) && !a.is_near(&c));
        }
        let skeleton = |emitted: Emitted| Numbers::of(&emitted).unwrap().skeleton().to_owned();
        // Without a remainder a loop is missing, and other operations are others.
        assert_ne!(skeleton(rows(101, Language::C)), skeleton(rows(128, Language::C)));
        assert_ne!(skeleton(rows(101, Language::C)), skeleton(middle(101, Language::C)));
        // CUDA's accesses are as wide as they are aligned, and its unrolled loops as long as they are.
        let [a, b, c, d] = [101, 103, 102, 301].map(|n| skeleton(rows(n, Language::Cuda)));
        assert!(a == b && a != c && a != d);
    }

    /// The source with its parameters replaced by what they are; the parameters themselves are taken out.
    fn without_parameters(source: &str, emitted: &Emitted, arguments: &[u64]) -> String {
        let mut text = source.to_owned();
        for (number, value) in arguments.iter().enumerate().rev() {
            let name = format!("number{number}");
            let (declared, handed_on) = match emitted.language {
                Language::C => {
                    let argument = emitted.parameters.len() + number;
                    (vec![format!("idx {name}, ")], format!("*(idx*)args[{argument}], "))
                }
                Language::Cuda => (
                    vec![format!(", unsigned {name}"), format!(", unsigned long long {name}")],
                    format!(", {name}"),
                ),
            };
            assert!(declared.iter().any(|declared| text.contains(declared)), "{text}");
            declared.iter().for_each(|declared| text = text.replace(declared, ""));
            text = text.replace(&handed_on, "");
            text = text.replace(&format!("(float){name}"), &format!("{value}.0f"));
            text = text.replace(&format!("(int){name}"), &value.to_string());
            let suffix = if emitted.language == Language::C { "" } else { "u" };
            text = text.replace(&name, &format!("{value}{suffix}"));
        }
        text
    }

    #[test]
    fn the_numbers_as_arguments_give_each_text_back() {
        for (language, kernel) in [
            (Language::C, rows as fn(usize, Language) -> Emitted),
            (Language::C, middle),
            (Language::Cuda, rows),
            (Language::Cuda, middle),
        ] {
            let texts = [101, 97, 103, 99].map(|n| kernel(n, language));
            let numbers = texts.each_ref().map(|emitted| Numbers::of(emitted).unwrap());
            let general = General::of(&[&numbers[0], &numbers[2]]).unwrap();
            let source = general.source(&numbers[0]);
            assert_eq!(source, general.source(&numbers[2]));
            assert_eq!(General::of(&[&numbers[2], &numbers[0]]).unwrap().source(&numbers[0]), source);
            for (emitted, numbers) in texts.iter().zip(&numbers) {
                let arguments = general.arguments(numbers).unwrap();
                let functions = emitted.source.find("typedef ").unwrap_or(0);
                assert_eq!(without_parameters(&source, emitted, &arguments), emitted.source[functions..]);
            }
        }
    }

    #[test]
    fn what_is_expected_of_a_first_text_serves_the_next() {
        let [a, b] = [101, 103].map(|n| Numbers::of(&rows(n, Language::Cuda)).unwrap());
        let constants: BTreeSet<u64> = General::of(&[&a, &b]).unwrap().constants().collect();
        // Twice as many threads: another skeleton.
        let texts = [201, 203].map(|n| rows(n, Language::Cuda));
        let [c, d] = texts.each_ref().map(|emitted| Numbers::of(emitted).unwrap());
        assert_ne!(a.skeleton(), c.skeleton());
        let general = General::expected(&c, &constants).unwrap();
        for (emitted, numbers) in texts.iter().zip([&c, &d]) {
            let arguments = general.arguments(numbers).unwrap();
            assert_eq!(without_parameters(&general.source(numbers), emitted, &arguments), *emitted.source);
        }
        let all: BTreeSet<u64> = c.values.iter().copied().collect();
        assert!(General::expected(&c, &all).is_none());
    }

    #[test]
    fn other_texts_are_refused() {
        let [a, b, c] = [101, 102, 103].map(|n| Numbers::of(&rows(n, Language::C)).unwrap());
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
        let is_twin =
            |at: usize| places.iter().any(|&one| one < at && general.places[one] == general.places[at]);
        let twin = places.iter().find(|&&at| is_twin(at));
        other.values[*twin.unwrap()] += 1;
        assert!(general.arguments(&other).is_none());
        general.places.pop();
        assert!(general.arguments(&c).is_none());
        assert!(General::of(&[&a, &a]).is_none() && General::of(&[]).is_none());
        assert!(General::of(&[&a, &Numbers::of(&middle(101, Language::C)).unwrap()]).is_none());
    }

    #[test]
    fn offsets_may_be_far_from_each_other() {
        let shifted = |by: usize, extent: usize| {
            let text = format!(
                "\
kernel shifted
  map i0 < 70
  map i1 < {extent}
  input in0: f32 [90000]
  output out0: f32 [{all}]
  v0: f32 = load in0[i0 * {extent} + i1 + {by}]
  v1: f32 = load in0[{by}]
  v2: f32 = mul v0 v1
  store out0[i0 * {extent} + i1] = v2
",
                all = 70 * extent,
            );
            text
        };
        for language in [Language::C, Language::Cuda] {
            let numbers =
                |by: usize, extent: usize| Numbers::of(&emitted(&shifted(by, extent), language)).unwrap();
            let [a, b, c] = [(101, 53), (6001, 53), (6001, 157)].map(|(by, extent)| numbers(by, extent));
            assert!(a.is_near(&b) && !b.is_near(&c), "{}", a.skeleton());
            assert!(General::of(&[&a, &b]).unwrap().is_of_offsets(&a));
            assert!(!General::of(&[&a, &numbers(101, 55)]).unwrap().is_of_offsets(&a));
        }
        // Lengths of arrays and ends of loops are none.
        let skeleton = "float a[\u{1}a] __attribute__;\nfloat b[\u{1}a];\nfor (idx l = 0; l < \u{1}a; ++l) {\nx = b[\u{1}a];\n";
        assert_eq!(offsets(skeleton), [false, false, false, true]);
        // Where an input's tile begins, but not what its rows are counted by.
        let skeleton = "f(in0 + \u{1}a + (row * \u{1}a + \u{1}a), min0 + \u{1}a + i);\n";
        assert_eq!(offsets(skeleton), [true, false, true, false]);
    }

    /// [4, n, 3] with its axes reversed: the extent of a row of results is a divisor in the innermost loop.
    fn reversed_axes(n: usize, language: Language) -> Emitted {
        let text = format!(
            "\
kernel reversed
  map i0 < n_i0 = 3
  map i1 < {n}
  map i2 < 4
  input in0: f32 [{all}]
  output out0: f32 [{all}]
  v0: f32 = load in0[i0 + i1 * 3 + i2 * {plane}]
  v1: f32 = exp v0
  store out0[i0 * {row} + i1 * 4 + i2] = v1
",
            all = 12 * n,
            plane = 3 * n,
            row = 4 * n,
        );
        emitted(&text, language)
    }

    #[test]
    fn the_numbers_of_a_pattern_are_those_of_its_text() {
        for kernel in [rows, middle, reversed_axes] {
            for n in (3..15).chain(90..140).chain([700, 1001, 4096, 5000]) {
                let emitted = kernel(n, Language::C);
                assert!(n < 90 || emitted.filled.is_some(), "{}", emitted.source);
                let plain = Emitted { filled: None, ..emitted.clone() };
                assert_eq!(Numbers::of(&emitted), Numbers::of(&plain));
            }
        }
    }

    #[test]
    fn what_elements_are_computed_with_stays() {
        let numbers = Numbers::of(&middle(101, Language::C)).unwrap();
        assert!(numbers.skeleton().contains("3.0f"));
        // Divisors in an innermost loop are much faster if they are known.
        let mut emitted = Emitted { filled: None, ..middle(101, Language::C) };
        emitted.source = "typedef long long idx;\n\nstatic void f_blocks(\n    idx first_block,\n    idx end_block) {\n  \
                          for (idx block = first_block; block < end_block; ++block) {\n    const idx i0 = block / 12;\n    \
                          for (idx l = 0; l < 34; ++l) {\n      const idx i1 = l % 56;\n      const unsigned v0 = v1 \
                          * 78u + 91;\n    }\n  }\n}\n"
            .into();
        let numbers = Numbers::of(&emitted).unwrap();
        assert_eq!(numbers.values, [12, 0, 34]);
        // But for what is the same in all steps, and not what follows from a step's own.
        emitted.source = "typedef long long idx;\n\nstatic void f_blocks(\n    idx first_block,\n    idx end_block) {\n  \
                          for (idx t = 0; t < 56; ++t) {\n    const idx r0 = term + t;\n    for (idx l = 0; l < 34; ++l) {\n      \
                          const idx i1 = row + l;\n      x = in0[i1 / 78 * 91 + (r0 + 12) / 57 % 43 + r0 * i1 / 21];\n    \
                          }\n  }\n}\n"
            .into();
        let numbers = Numbers::of(&emitted).unwrap();
        assert_eq!(numbers.values, [0, 56, 0, 34, 91, 12, 57, 43]);
        // Positions that are values, but not what else becomes wider.
        emitted.source = "typedef long long idx;\n\nstatic void f_blocks(\n    idx first_block,\n    idx end_block) {\n    \
                          const unsigned char v1 = (long long)(135) >= x11;\n    const long long v2 = (long long)(v0 + 57) * 3;\n}\n"
            .into();
        assert_eq!(Numbers::of(&emitted).unwrap().values, [135]);
        // Arrays in a loop in vectors are of known lengths, and so are short loops there.
        emitted.source = "typedef long long idx;\n\nstatic void f_blocks(\n    idx first_block,\n    idx end_block) {\n    \
                          float a[12] __attribute__((aligned(64)));\n#pragma omp simd\n    for (idx l = 0; l < 34; ++l) {\n      \
                          float b[56] __attribute__((aligned(64)));\n      for (idx r = 0; r < 6; ++r) {\n        b[r] = a[l * 78];\n      \
                          }\n    }\n#pragma GCC unroll 32\n    for (idx r = 0; r < 91; ++r) {\n    }\n}\n"
            .into();
        assert_eq!(Numbers::of(&emitted).unwrap().values, [12, 0, 34, 78, 91]);
    }
}
