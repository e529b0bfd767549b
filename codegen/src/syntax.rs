//! Reading what this compiler prints: the words, numbers and signs that its texts are made of, and errors that say where.
//!
//! Between two of them may be any white space, and comments from `//` to the end of the line.

use std::fmt;
use std::str::FromStr;

use crate::{DType, Scalar};

/// Why a text is not understood, and where.
///
/// ```
/// use lazuli_codegen::ir::Kernel;
/// let error = "kernel half\n  map i0 < ten".parse::<Kernel>().unwrap_err();
/// assert_eq!(error.to_string(), "line 2, column 12: expected a number, found `ten`");
/// assert_eq!((error.line, error.column), (2, 12));
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParseError {
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1, in characters.
    pub column: usize,
    /// What was expected, or does not fit.
    pub message: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: {}", self.line, self.column, self.message)
    }
}

impl std::error::Error for ParseError {}

/// A place in a text.
#[derive(Clone, Copy, Debug)]
pub struct Place(usize);

/// A text and how far it has been read. What is there is taken by the methods that begin with `eat`, and demanded by
/// the others.
///
/// ```
/// use lazuli_codegen::syntax::Cursor;
/// let mut text = Cursor::new("tile = 32x8 // rows, columns");
/// assert_eq!(text.word()?, "tile");
/// text.expect("=")?;
/// assert_eq!(text.pair::<u32>()?, [32, 8]);
/// assert!(text.is_at_end());
/// # Ok::<(), lazuli_codegen::ParseError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

impl<'a> Cursor<'a> {
    /// At the beginning of a text.
    pub fn new(text: &'a str) -> Cursor<'a> {
        let mut cursor = Cursor { text, at: 0 };
        cursor.skip();
        cursor
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Over white space and comments.
    fn skip(&mut self) {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start();
            self.at += rest.len() - trimmed.len();
            if !trimmed.starts_with("//") {
                return;
            }
            self.at += trimmed.find('\n').unwrap_or(trimmed.len());
        }
    }

    fn take(&mut self, bytes: usize) -> &'a str {
        let taken = self.rest().get(..bytes).unwrap_or_default();
        self.at += taken.len();
        self.skip();
        taken
    }

    /// Whether nothing is left.
    pub fn is_at_end(&self) -> bool {
        self.rest().is_empty()
    }

    /// Where it is now, for [`Cursor::error_at`].
    pub fn place(&self) -> Place {
        Place(self.at)
    }

    /// An error about what comes next.
    pub fn error(&self, message: impl Into<String>) -> ParseError {
        self.error_at(self.place(), message)
    }

    /// An error about what stands at a place.
    pub fn error_at(&self, place: Place, message: impl Into<String>) -> ParseError {
        let before = self.text.get(..place.0).unwrap_or(self.text);
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        ParseError {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            message: message.into(),
        }
    }

    /// That something else was expected than what comes next.
    pub fn expected(&self, what: &str) -> ParseError {
        let rest = self.rest();
        let word = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        let found = match rest.chars().next() {
            None => "the end".to_string(),
            Some(_) if word > 0 => format!("`{}`", &rest[..word]),
            Some(sign) => format!("`{sign}`"),
        };
        self.error(format!("expected {what}, found {found}"))
    }

    /// Whether a sign or a word comes next. A word is not the beginning of a longer one.
    pub fn is_at(&self, sign: &str) -> bool {
        let Some(after) = self.rest().strip_prefix(sign) else { return false };
        !sign.ends_with(is_word) || !after.starts_with(is_word)
    }

    /// Takes a sign or a word, if it comes next.
    pub fn eat(&mut self, sign: &str) -> bool {
        let is_there = self.is_at(sign);
        if is_there {
            self.take(sign.len());
        }
        is_there
    }

    /// Takes a sign or a word.
    ///
    /// # Errors
    /// If something else comes next.
    pub fn expect(&mut self, sign: &str) -> Result<(), ParseError> {
        match self.eat(sign) {
            true => Ok(()),
            false => Err(self.expected(&format!("`{sign}`"))),
        }
    }

    /// Takes a word: letters, digits and `_`, no digit first.
    ///
    /// # Errors
    /// If none comes next.
    pub fn word(&mut self) -> Result<&'a str, ParseError> {
        let rest = self.rest();
        let length = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        match rest.starts_with(|c: char| is_word(c) && !c.is_ascii_digit()) {
            true => Ok(self.take(length)),
            false => Err(self.expected("a name")),
        }
    }

    /// Whether an integer comes next. Who asks first needs no error, which counts the lines of the text.
    pub fn is_at_number(&self) -> bool {
        let rest = self.rest();
        rest.strip_prefix('-').unwrap_or(rest).starts_with(|c: char| c.is_ascii_digit())
    }

    /// Takes an integer.
    ///
    /// # Errors
    /// If none comes next, or one that is too large for the type.
    pub fn number<T: FromStr>(&mut self) -> Result<T, ParseError> {
        let rest = self.rest();
        let digits = rest.strip_prefix('-').unwrap_or(rest);
        let length = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        if length == 0 {
            return Err(self.expected("a number"));
        }
        let length = rest.len() - digits.len() + length;
        let number =
            rest[..length].parse().map_err(|_| self.error(format!("{} is out of range", &rest[..length])))?;
        self.take(length);
        Ok(number)
    }

    /// Takes `NUMBERxNUMBER`.
    ///
    /// # Errors
    /// As [`Cursor::number`].
    pub fn pair<T: FromStr>(&mut self) -> Result<[T; 2], ParseError> {
        let first = self.number()?;
        if !self.rest().starts_with('x') {
            return Err(self.expected("`x`"));
        }
        self.take(1);
        Ok([first, self.number()?])
    }

    /// Takes a list in brackets, `[1, 2]`.
    ///
    /// # Errors
    /// If there is none, or its elements are not what `element` takes.
    pub fn list<T>(
        &mut self,
        mut element: impl FnMut(&mut Self) -> Result<T, ParseError>,
    ) -> Result<Vec<T>, ParseError> {
        self.expect("[")?;
        let mut list = Vec::new();
        if self.eat("]") {
            return Ok(list);
        }
        loop {
            list.push(element(self)?);
            if self.eat("]") {
                return Ok(list);
            }
            if !self.eat(",") {
                return Err(self.expected("`,` or `]`"));
            }
        }
    }

    /// Takes the text of a constant, whose dtype may follow later: see [`Scalar::from_text`].
    ///
    /// # Errors
    /// If none comes next.
    pub fn constant(&mut self) -> Result<&'a str, ParseError> {
        let rest = self.rest();
        let mut length = 0;
        for c in rest.chars() {
            let is_sign = c == '-' && (length == 0 || rest[..length].ends_with('e'));
            let is_bits = c == '(' && rest[..length].ends_with("NaN")
                || c == ')' && rest[..length].contains('(') && !rest[..length].contains(')');
            if !(is_word(c) || c == '.' || is_sign || is_bits) {
                break;
            }
            length += c.len_utf8();
        }
        match length {
            0 => Err(self.expected("a constant")),
            _ => Ok(self.take(length)),
        }
    }

    /// Takes a constant of a dtype.
    ///
    /// # Errors
    /// If there is none of this dtype.
    pub fn scalar(&mut self, dtype: DType) -> Result<Scalar, ParseError> {
        let place = self.place();
        let text = self.constant()?;
        Scalar::from_text(dtype, text).ok_or_else(|| self.error_at(place, format!("{text} is no {dtype}")))
    }

    /// Takes the name of a dtype.
    ///
    /// # Errors
    /// If it is none.
    pub fn dtype(&mut self) -> Result<DType, ParseError> {
        let place = self.place();
        let name = self.word()?;
        let known = DType::ALL.into_iter().find(|dtype| dtype.name() == name);
        known.ok_or_else(|| self.error_at(place, format!("no dtype is called `{name}`")))
    }

    /// Takes what is left of the line, without the space around it.
    pub fn line(&mut self) -> &'a str {
        let rest = self.rest();
        self.take(rest.find('\n').unwrap_or(rest.len())).trim()
    }

    /// That nothing is left.
    ///
    /// # Errors
    /// If something is.
    pub fn end(&self) -> Result<(), ParseError> {
        if self.is_at_end() { Ok(()) } else { Err(self.expected("the end")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_count_lines_and_characters() {
        let mut text = Cursor::new("// prélude\n  é");
        let error = text.word().unwrap_err();
        assert_eq!((error.line, error.column), (2, 3));
        assert_eq!(error.message, "expected a name, found `é`");
        assert_eq!(
            Cursor::new("").expected("more").to_string(),
            "line 1, column 1: expected more, found the end"
        );
    }

    #[test]
    fn a_word_is_not_the_beginning_of_another() {
        let mut text = Cursor::new("reduced reduce");
        assert!(!text.eat("reduce") && text.eat("reduced") && text.eat("reduce") && text.is_at_end());
    }

    #[test]
    fn integers_are_seen_before_they_are_taken() {
        for (text, is_number) in
            [("-7", true), ("0x", true), ("-", false), ("x0", false), ("", false), ("٣", false)]
        {
            let mut cursor = Cursor::new(text);
            assert_eq!(
                (cursor.is_at_number(), cursor.number::<i64>().is_ok()),
                (is_number, is_number),
                "{text}"
            );
        }
    }

    #[test]
    fn constants_end_where_they_end() {
        for (text, rest) in
            [("1e-45 argument", "argument"), ("-inf]", "]"), ("NaN(0x7fc00001), x", ", x"), ("2 - 1", "- 1")]
        {
            let mut cursor = Cursor::new(text);
            cursor.constant().unwrap();
            assert_eq!(cursor.rest(), rest);
        }
        assert!(Cursor::new("300").scalar(DType::U8).is_err());
        assert!(Cursor::new("99999999999999999999").number::<u64>().is_err());
    }
}
