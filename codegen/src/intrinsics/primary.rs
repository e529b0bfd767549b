//! Parentheses around expressions, where they are needed.

/// The text, in parentheses unless it is a primary expression already: an identifier, a literal without a sign, a
/// call, a subscript, a member, or text that is in parentheses as a whole.
///
/// ```
/// use lazuli_codegen::intrinsics::parenthesise;
/// assert_eq!(parenthesise("a + b"), "(a + b)");
/// assert_eq!(parenthesise("f(a + b)[i]"), "f(a + b)[i]");
/// assert_eq!(parenthesise("(a) + (b)"), "((a) + (b))");
/// assert_eq!(parenthesise("1e-5f"), "1e-5f");
/// assert_eq!(parenthesise("-1.0f"), "(-1.0f)");
/// ```
pub fn parenthesise(text: &str) -> String {
    if is_primary(text) { text.to_string() } else { format!("({text})") }
}

/// The text of a call, with no parentheses around a whole argument.
pub(crate) fn call<S: AsRef<str>>(function: &str, arguments: &[S]) -> String {
    let arguments: Vec<&str> = arguments.iter().map(|argument| bare(argument.as_ref())).collect();
    format!("{function}({})", arguments.join(", "))
}

/// The text without parentheses around the whole of it.
fn bare(text: &str) -> &str {
    let is_whole = text.starts_with('(') && closing(text.as_bytes(), 0) == Some(text.len());
    if is_whole { bare(&text[1..text.len() - 1]) } else { text }
}

fn is_primary(text: &str) -> bool {
    let bytes = text.as_bytes();
    let (mut at, callable) = match bytes.first() {
        Some(b'(') => (closing(bytes, 0), false),
        Some(c) if c.is_ascii_digit() => (number(bytes), false),
        Some(_) => (Some(identifier(bytes, 0)).filter(|end| *end > 0), true),
        None => (None, false),
    };
    while let Some(position) = at {
        at = match bytes.get(position) {
            None => return true,
            Some(b'(') if callable => closing(bytes, position),
            Some(b'[') => closing(bytes, position),
            Some(b'.') => Some(identifier(bytes, position + 1)),
            Some(_) => None,
        };
    }
    false
}

/// The position behind the bracket that closes the one at `start`.
fn closing(bytes: &[u8], start: usize) -> Option<usize> {
    let mut depth = 0usize;
    for (position, byte) in bytes.iter().enumerate().skip(start) {
        match byte {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth = depth.checked_sub(1)?,
            _ => {}
        }
        if depth == 0 {
            return Some(position + 1);
        }
    }
    None
}

fn identifier(bytes: &[u8], start: usize) -> usize {
    let length = bytes.iter().skip(start).take_while(|c| c.is_ascii_alphanumeric() || **c == b'_').count();
    start + length
}

/// The end of the number at the start: a sign belongs to it behind an exponent's letter.
fn number(bytes: &[u8]) -> Option<usize> {
    let hexadecimal = bytes.starts_with(b"0x");
    let mut previous = 0;
    for (position, &byte) in bytes.iter().enumerate() {
        let exponent = matches!(previous, b'p' | b'P') || !hexadecimal && matches!(previous, b'e' | b'E');
        if !(byte.is_ascii_alphanumeric() || byte == b'.' || exponent && matches!(byte, b'+' | b'-')) {
            return Some(position);
        }
        previous = byte;
    }
    Some(bytes.len())
}

#[cfg(test)]
mod tests {
    use super::{call, is_primary};

    #[test]
    fn parentheses_around_whole_arguments_go() {
        assert_eq!(call("f", &["(a + b)", "((c * d))"]), "f(a + b, c * d)");
        assert_eq!(call("f", &["(a) + (b)", "((float)c)"]), "f((a) + (b), (float)c)");
        assert_eq!(call::<&str>("f", &[]), "f()");
    }

    #[test]
    fn primary_texts_are_told_from_others() {
        for text in [
            "x",
            "x_1",
            "12",
            "0.5f",
            "1e-5f",
            "0x1p-3f",
            "7LL",
            "f()",
            "f(a)(b)",
            "p[i + 1].x",
            "(a + b)",
            "((a))",
        ] {
            assert!(is_primary(text), "{text}");
        }
        for text in [
            "",
            "-x",
            "-1",
            "a + b",
            "(a) + (b)",
            "(float)x",
            "(float)(x)",
            "a ? b : c",
            "1-e",
            "0xe-5",
            "(a",
            "f(a) ",
        ] {
            assert!(!is_primary(text), "{text}");
        }
    }
}
