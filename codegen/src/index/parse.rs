//! Index expressions from their text.

use super::{Atom, AxisId, Bound, IndexExpr};
use crate::syntax::{Cursor, ParseError};

impl IndexExpr {
    /// Takes an expression as [`IndexExpr::to_text`] prints it, without a suffix. Nothing but the order of its terms is
    /// changed. `axis` takes an axis by its name.
    ///
    /// ```
    /// use lazuli_codegen::index::{AxisId, IndexExpr};
    /// use lazuli_codegen::syntax::Cursor;
    /// let text = "(a1 + 1) / 2 * 8 + a0 * 4 % 3 - 5";
    /// let index = IndexExpr::parse(&mut Cursor::new(text), &mut |text| {
    ///     Ok(AxisId(if text.word()? == "a0" { 0 } else { 1 }))
    /// })?;
    /// assert_eq!(index.to_string(), text);
    /// # Ok::<(), lazuli_codegen::ParseError>(())
    /// ```
    ///
    /// # Errors
    /// Where the text is no expression.
    pub fn parse<'a>(
        text: &mut Cursor<'a>,
        axis: &mut dyn FnMut(&mut Cursor<'a>) -> Result<AxisId, ParseError>,
    ) -> Result<IndexExpr, ParseError> {
        sum(text, axis, 0)
    }
}

impl Bound {
    /// Takes conditions as kernels and nests print them: `0 <= i0 - 1 < 8, 2 <= i1 < 4`.
    pub(crate) fn parse_all<'a>(
        text: &mut Cursor<'a>,
        axis: &mut dyn FnMut(&mut Cursor<'a>) -> Result<AxisId, ParseError>,
    ) -> Result<Vec<Bound>, ParseError> {
        let mut bounds = Vec::new();
        loop {
            let lo = text.number()?;
            text.expect("<=")?;
            let expr = IndexExpr::parse(text, axis)?;
            text.expect("<")?;
            bounds.push(Bound { expr, lo, hi: text.number()? });
            if !text.eat(",") {
                return Ok(bounds);
            }
        }
    }
}

/// More parentheses within each other than any index has.
const DEEPEST: usize = 64;

type Axis<'p, 'a> = &'p mut dyn FnMut(&mut Cursor<'a>) -> Result<AxisId, ParseError>;

fn sum<'a>(text: &mut Cursor<'a>, axis: Axis<'_, 'a>, depth: usize) -> Result<IndexExpr, ParseError> {
    let mut sum = match text.eat("-") {
        true => product(text, axis, depth)?.scale(-1),
        false => product(text, axis, depth)?,
    };
    loop {
        if text.eat("+") {
            sum = sum.add(&product(text, axis, depth)?);
        } else if text.eat("-") {
            sum = sum.sub(&product(text, axis, depth)?);
        } else {
            return Ok(sum);
        }
    }
}

/// `*`, `/` and `%` by constants, from the left.
fn product<'a>(text: &mut Cursor<'a>, axis: Axis<'_, 'a>, depth: usize) -> Result<IndexExpr, ParseError> {
    let mut product = if text.is_at("(") {
        if depth == DEEPEST {
            return Err(text.error("too many parentheses within each other"));
        }
        text.expect("(")?;
        let inner = sum(text, axis, depth + 1)?;
        text.expect(")")?;
        inner
    } else if text.is_at_number() {
        IndexExpr::constant(text.number()?)
    } else {
        IndexExpr::axis(axis(text)?)
    };
    let mut divisions = 0;
    loop {
        if text.eat("*") {
            product = product.scale(text.number()?);
            continue;
        }
        let is_quotient = match (text.eat("/"), text.is_at("%")) {
            (true, _) => true,
            (false, true) => !text.eat("%"),
            (false, false) => return Ok(product),
        };
        let place = text.place();
        let by: i64 = text.number()?;
        divisions += 1;
        if by < 1 || divisions > DEEPEST {
            return Err(text.error_at(place, "indices are divided by positive constants, not too often"));
        }
        let operand = Box::new(product);
        product = IndexExpr::atom(if is_quotient { Atom::Div(operand, by) } else { Atom::Mod(operand, by) });
    }
}
