//! A text without its numbers, and the numbers.

/// More parameters than these are no gain.
pub(super) const MOST_PARAMETERS: usize = 64;
/// What stands in a skeleton for a number; its [`Kind`] follows.
pub(super) const PLACE: char = '\u{1}';
/// Where a skeleton declares the parameters, and where a call hands them on.
pub(super) const DECLARED: char = '\u{2}';
pub(super) const HANDED_ON: char = '\u{3}';
/// What is before the only number of a position that is a value.
pub(super) const POSITION: &str = "(long long)(";

/// A text whose numbers are taken out.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Skeleton {
    /// Equal for texts that differ in numbers alone.
    pub(super) text: String,
    pub(super) values: Vec<u64>,
    pub(super) kinds: Vec<Kind>,
}

/// How a number is spelled, and so of what type it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// Of C's `idx`.
    Index,
    Int,
    Unsigned,
    Long,
    UnsignedLong,
    Float,
    Double,
}

impl Kind {
    const ALL: [Kind; 7] =
        [Kind::Index, Kind::Int, Kind::Unsigned, Kind::Long, Kind::UnsignedLong, Kind::Float, Kind::Double];

    /// What it is in a skeleton.
    pub(super) fn letter(self) -> char {
        char::from(b'a' + self as u8)
    }

    pub(super) fn of_letter(letter: char) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.letter() == letter)
    }

    /// What follows the digits.
    pub(super) fn suffix(self) -> &'static str {
        match self {
            Kind::Index | Kind::Int => "",
            Kind::Unsigned => "u",
            Kind::Long => "ll",
            Kind::UnsignedLong => "ull",
            Kind::Float => ".0f",
            Kind::Double => ".0",
        }
    }

    /// The largest number that a parameter of that width, converted to the type, is exactly.
    pub(super) fn most(self) -> u64 {
        match self {
            Kind::Index | Kind::Long | Kind::UnsignedLong => i64::MAX as u64,
            Kind::Int | Kind::Unsigned => i32::MAX as u64,
            Kind::Float => 1 << f32::MANTISSA_DIGITS,
            Kind::Double => i32::MAX as u64,
        }
    }

    pub(super) fn is_wide(self) -> bool {
        matches!(self, Kind::Index | Kind::Long | Kind::UnsignedLong)
    }

    /// A parameter as such a number.
    pub(super) fn of_parameter(self, number: usize) -> String {
        match self {
            Kind::Index | Kind::Unsigned | Kind::UnsignedLong => format!("number{number}"),
            Kind::Int => format!("(int)number{number}"),
            Kind::Long => format!("(long long)number{number}"),
            Kind::Float => format!("(float)number{number}"),
            Kind::Double => format!("(double)number{number}"),
        }
    }
}

impl Skeleton {
    pub(super) fn push(&mut self, value: u64, kind: Kind) {
        self.text.push(PLACE);
        self.text.push(kind.letter());
        self.values.push(value);
        self.kinds.push(kind);
    }
}

/// Of each number of a skeleton's text, whether it is an offset: an element, a position that is a value, the last that is added
/// to one, or the first that is added to an input.
pub(super) fn offsets(skeleton: &str) -> Vec<bool> {
    let is_offset = |at: usize| {
        let line = skeleton[..at].rfind('\n').map_or(0, |end| end + 1);
        // The letter of its kind follows.
        let (before, after) = (&skeleton[line..at], &skeleton[at + 2..]);
        // What is declared without a value is an array of that length.
        let is_element = before.ends_with('[') && before.contains(" = ");
        let begins = is_element || before.ends_with("+ ") || before.ends_with(POSITION);
        begins && after.starts_with([']', ')', ',']) || follows_input(before) && after.starts_with(" + ")
    };
    skeleton.match_indices(PLACE).map(|(at, _)| is_offset(at)).collect()
}

/// Whether a text ends with an input that something is added to.
fn follows_input(text: &str) -> bool {
    let input =
        text.strip_suffix(" + ").map(|text| text.trim_end_matches(|letter: char| letter.is_ascii_digit()));
    input.and_then(|text| text.strip_suffix("in")).is_some_and(|before| !is_word(before.as_bytes().last()))
}

/// The digits at a place of a line, if they are a number of their own, and where they end. What is a part of a name, of
/// a fraction or of an exponent is none, and neither is a negative integer: compilers of CUDA 12.6 to 13.3 lose some negations.
pub(super) fn digits(line: &str, at: usize) -> Option<(u64, usize)> {
    let bytes = line.as_bytes();
    let before = at.checked_sub(1).map(|before| bytes[before]);
    let is_exponent = matches!(before, Some(b'-' | b'+'))
        && at >= 3
        && matches!(bytes[at - 2], b'e' | b'E' | b'p')
        && (bytes[at - 3].is_ascii_hexdigit() || bytes[at - 3] == b'.');
    if is_word(before.as_ref()) || is_exponent {
        return None;
    }
    let end = at + bytes[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    if before == Some(b'-') && bytes.get(end) != Some(&b'.') {
        return None;
    }
    let text = &line[at..end];
    // Printed again, it is what it was.
    let is_plain = text.len() == 1 || !text.starts_with('0');
    text.parse().ok().filter(|_| is_plain).map(|value| (value, end))
}

/// Whether the byte is of a name or a number that a digit beside it is a part of.
pub(super) fn is_word(byte: Option<&u8>) -> bool {
    byte.is_some_and(|&byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'.')
}

pub(super) fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

pub(super) fn is_loop(line: &str) -> bool {
    line.trim_start().starts_with("for (")
}
