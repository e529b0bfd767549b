//! Index expressions as C text.

use std::fmt;

use super::{Atom, AxisId, IndexExpr};

impl IndexExpr {
    /// The expression in C, such as `i0 * 128u + i1 + 3u`, with `suffix` after every literal.
    ///
    /// What is added comes before what is subtracted. The text has the lowest precedence of a sum:
    /// put it in parentheses before multiplying it. Its divisions agree with floor division where
    /// numerators are not negative; see [`IndexExpr`].
    pub fn to_text(&self, name: &dyn Fn(AxisId) -> String, suffix: &str) -> String {
        let mut text = String::new();
        self.print(&mut text, name, suffix);
        text
    }

    fn print(&self, text: &mut String, name: &dyn Fn(AxisId) -> String, suffix: &str) {
        let start = text.len();
        for (atom, k) in self.terms.iter().filter(|(_, k)| *k > 0) {
            if text.len() > start {
                text.push_str(" + ");
            }
            print_term(atom, *k, text, name, suffix);
        }
        if self.constant > 0 || self.terms.is_empty() && self.constant == 0 {
            if text.len() > start {
                text.push_str(" + ");
            }
            print_literal(self.constant, text, suffix);
        }
        for (atom, k) in self.terms.iter().filter(|(_, k)| *k < 0) {
            if text.len() > start {
                text.push_str(" - ");
                print_term(atom, *k, text, name, suffix);
            } else if matches!(atom, Atom::Axis(_)) {
                text.push('-');
                print_term(atom, *k, text, name, suffix);
            } else {
                // The sign would bind to the numerator.
                text.push_str("-(");
                print_term(atom, *k, text, name, suffix);
                text.push(')');
            }
        }
        if self.constant < 0 {
            text.push_str(if text.len() > start { " - " } else { "-" });
            print_literal(self.constant, text, suffix);
        }
    }
}

/// The magnitude of a literal.
fn print_literal(value: i64, text: &mut String, suffix: &str) {
    text.push_str(&value.unsigned_abs().to_string());
    text.push_str(suffix);
}

/// The magnitude of a term. `*`, `/` and `%` associate to the left, so that only sums need parentheses.
fn print_term(atom: &Atom, k: i64, text: &mut String, name: &dyn Fn(AxisId) -> String, suffix: &str) {
    match atom {
        Atom::Axis(a) => text.push_str(&name(*a)),
        Atom::Div(e, by) | Atom::Mod(e, by) => {
            let product = e.constant == 0 && matches!(&e.terms[..], [(_, k)] if *k > 0);
            if product {
                e.print(text, name, suffix);
            } else {
                text.push('(');
                e.print(text, name, suffix);
                text.push(')');
            }
            text.push_str(if matches!(atom, Atom::Div(..)) { " / " } else { " % " });
            print_literal(*by, text, suffix);
        }
    }
    if k.unsigned_abs() != 1 {
        text.push_str(" * ");
        print_literal(k, text, suffix);
    }
}

impl fmt::Display for IndexExpr {
    /// The text with axes called `a0`, `a1` and so on.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.to_text(&|axis| axis.to_string(), ""))
    }
}

impl fmt::Display for AxisId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a{}", self.0)
    }
}
