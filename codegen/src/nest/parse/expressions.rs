//! Expressions of nests from their text.

use super::Reader;
use crate::index::{AxisId, Bound, IndexExpr};
use crate::ir::Kernel;
use crate::nest::stmt::{Arithmetic, Expr, SortPart};
use crate::nest::text::{BUILTINS, precedence};
use crate::syntax::{Cursor, ParseError, Place};
use crate::{BinaryOp, DType, UnaryOp};

impl Reader<'_, '_> {
    fn index(&mut self) -> Result<IndexExpr, ParseError> {
        let kernel = &self.nest.kernel;
        IndexExpr::parse(self.text, &mut |text| axis(kernel, text))
    }

    pub(super) fn expr(&mut self) -> Result<Expr, ParseError> {
        self.operators(0)
    }

    /// Operators that bind at least as tightly, from the left.
    fn operators(&mut self, level: u8) -> Result<Expr, ParseError> {
        let mut left = self.deeper(|reader| reader.primary())?;
        loop {
            let is_next = |op: &Arithmetic| precedence(*op) >= level && self.text.is_at(op.sign());
            let Some(op) = Arithmetic::ALL.into_iter().find(is_next) else { return Ok(left) };
            self.text.expect(op.sign())?;
            let right = self.deeper(|reader| reader.operators(precedence(op) + 1))?;
            left = Expr::Arithmetic(op, Box::new(left), Box::new(right));
        }
    }

    fn primary(&mut self) -> Result<Expr, ParseError> {
        if self.text.eat("(") {
            let inner = self.expr()?;
            self.text.expect(")")?;
            return Ok(inner);
        }
        let place = self.text.place();
        if let Some((name, builtin)) = BUILTINS.iter().find(|(name, _)| self.text.is_at(name)) {
            self.text.expect(name)?;
            return Ok(Expr::Builtin(*builtin));
        }
        if self.text.is_at_number() {
            return Ok(Expr::Int(self.text.number()?));
        }
        let mut ahead = self.text.clone();
        let Ok(word) = ahead.word() else { return Ok(Expr::Int(self.text.number()?)) };
        if ahead.is_at("(") || ahead.is_at(".") {
            self.text.word()?;
            return self.call(word, place);
        }
        let var = self.variable(false)?;
        if !self.text.eat("[") {
            return Ok(Expr::Name(var));
        }
        let index = self.expr()?;
        self.text.expect("]")?;
        // What is written to is an output, though an input that is written over may be called the same.
        let var = if self.text.is_at("=") && !self.text.is_at("==") {
            let written = self.names.get(word).and_then(|same| same.last());
            written.copied().unwrap_or(var)
        } else {
            var
        };
        Ok(Expr::Element(var, Box::new(index)))
    }

    /// What has operands in parentheses.
    fn call(&mut self, word: &str, place: Place) -> Result<Expr, ParseError> {
        let operand = |reader: &mut Self| reader.expr().map(Box::new);
        let next = |reader: &mut Self| {
            reader.text.expect(",")?;
            reader.expr().map(Box::new)
        };
        let expr = match word {
            "index" => self.inside(|reader| Ok(Expr::Index(reader.index()?))),
            "wide" => self.inside(|reader| operand(reader).map(Expr::Wide)),
            "position" => self.inside(|reader| Ok(Expr::Position(reader.index()?))),
            "literal" => self.inside(|reader| {
                let dtype = reader.text.dtype()?;
                Ok(Expr::Literal(reader.text.scalar(dtype)?))
            }),
            "in_bounds" => self.inside(|reader| reader.bounds().map(Expr::InBounds)),
            "random" => {
                let dtype = self.dot_dtype()?;
                self.inside(|reader| {
                    let seed = reader.variable(false)?;
                    reader.text.expect(",")?;
                    Ok(Expr::Random { dtype, seed, index: reader.index()? })
                })
            }
            "to_index" => self.inside(|reader| operand(reader).map(Expr::ToIndex)),
            "checked" => self.inside(|reader| {
                let (position, extent) = (operand(reader)?, next(reader)?);
                reader.text.expect(",")?;
                Ok(Expr::Checked { position, extent, check: Some(reader.text.number()?) })
            }),
            "below" => self.inside(|reader| {
                let (position, extent) = (operand(reader)?, next(reader)?);
                Ok(Expr::Checked { position, extent, check: None })
            }),
            "brief_exp" => self.inside(|reader| operand(reader).map(Expr::BriefExp)),
            "zero_times" => {
                let dtype = self.dot_dtype()?;
                self.inside(|reader| {
                    let first = operand(reader)?;
                    reader.text.expect(",")?;
                    Ok(Expr::ZeroTimes(dtype, first, reader.text.number()?))
                })
            }
            "select" => {
                self.inside(|reader| Ok(Expr::Select(operand(reader)?, next(reader)?, next(reader)?)))
            }
            "mul_add" => {
                let dtype = self.dot_dtype()?;
                self.inside(|reader| {
                    let operands = [reader.expr()?, *next(reader)?, *next(reader)?];
                    Ok(Expr::MulAdd(dtype, Box::new(operands)))
                })
            }
            "quotient" => {
                let dtype = self.dot_dtype()?;
                self.inside(|reader| Ok(Expr::Quotient(dtype, Box::new([reader.expr()?, *next(reader)?]))))
            }
            "cast" => {
                let (from, to) = (self.dot_dtype()?, self.dot_dtype()?);
                self.inside(|reader| Ok(Expr::Cast { from, to, operand: operand(reader)? }))
            }
            "from_memory" => {
                let dtype = self.dot_dtype()?;
                self.inside(|reader| Ok(Expr::FromMemory(dtype, operand(reader)?)))
            }
            "to_memory" => {
                let dtype = self.dot_dtype()?;
                self.inside(|reader| Ok(Expr::ToMemory(dtype, operand(reader)?)))
            }
            "votes" => self.inside(|reader| Ok(Expr::Votes(operand(reader)?))),
            "votes_before" => self.inside(|reader| Ok(Expr::VotesBefore(operand(reader)?))),
            "shuffle_up" => {
                self.inside(|reader| Ok(Expr::ShuffleUp { value: operand(reader)?, delta: next(reader)? }))
            }
            "shuffle_xor" => {
                self.text.expect(".")?;
                let width = self.text.number()?;
                self.inside(|reader| {
                    Ok(Expr::ShuffleXor { value: operand(reader)?, mask: next(reader)?, width })
                })
            }
            _ => self.operation(word, place),
        }?;
        Ok(expr)
    }

    fn operation(&mut self, word: &str, place: Place) -> Result<Expr, ParseError> {
        if let Some(part) = SortPart::ALL.into_iter().find(|part| part.name() == word) {
            let dtype = self.dot_dtype()?;
            let descending = self.text.eat(".descending");
            return self.inside(|reader| {
                let a = reader.expr()?;
                reader.text.expect(",")?;
                Ok(Expr::Sort { part, dtype, descending, operands: Box::new([a, reader.expr()?]) })
            });
        }
        if let Some(op) = UnaryOp::ALL.into_iter().find(|op| op.name() == word) {
            let dtype = self.dot_dtype()?;
            return self.inside(|reader| Ok(Expr::Unary(op, dtype, Box::new(reader.expr()?))));
        }
        let Some(op) = BinaryOp::ALL.into_iter().find(|op| op.name() == word) else {
            return Err(self.text.error_at(place, format!("no operation is called `{word}`")));
        };
        let dtype = self.dot_dtype()?;
        self.inside(|reader| {
            let a = Box::new(reader.expr()?);
            reader.text.expect(",")?;
            Ok(Expr::Binary(op, dtype, a, Box::new(reader.expr()?)))
        })
    }

    /// What is in parentheses.
    fn inside(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<Expr, ParseError>,
    ) -> Result<Expr, ParseError> {
        self.text.expect("(")?;
        let expr = read(self)?;
        self.text.expect(")")?;
        Ok(expr)
    }

    fn dot_dtype(&mut self) -> Result<DType, ParseError> {
        self.text.expect(".")?;
        self.text.dtype()
    }

    fn bounds(&mut self) -> Result<Vec<Bound>, ParseError> {
        let kernel = &self.nest.kernel;
        Bound::parse_all(self.text, &mut |text| axis(kernel, text))
    }
}

fn axis(kernel: &Kernel, text: &mut Cursor<'_>) -> Result<AxisId, ParseError> {
    let place = text.place();
    let name = text.word()?;
    let number = kernel.axes.iter().position(|axis| axis.name == name);
    let axis = number.map(|number| AxisId(number as u32));
    axis.ok_or_else(|| text.error_at(place, format!("no axis is called {name}")))
}
