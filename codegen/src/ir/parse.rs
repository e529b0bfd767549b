//! Kernels from their text.

use std::str::FromStr;

use smallvec::SmallVec;

use super::{
    Argument, ArgumentId, Axis, AxisKind, Buffer, BufferId, Kernel, Recurrence, RecurrenceId, Store, ValueId,
    ValueOp,
};
use crate::index::{AxisId, Bound, IndexExpr};
use crate::syntax::{Cursor, ParseError, Place};
use crate::{BinaryOp, DType, ReduceOp, UnaryOp};

impl FromStr for Kernel {
    type Err = ParseError;

    /// The kernel that prints so.
    ///
    /// ```
    /// use lazuli_codegen::ir::Kernel;
    ///
    /// let text = "\
    /// kernel double
    ///   map i0 < n_i0 = 1000
    ///   input in0: f32 [1000]
    ///   output out0: f32 [1000]
    ///   v0: f32 = load in0[i0]
    ///   v1: f32 = add v0 v0
    ///   store out0[i0] = v1
    /// ";
    /// let kernel: Kernel = text.parse()?;
    /// assert_eq!(kernel.to_string(), text);
    /// # Ok::<(), lazuli_codegen::ParseError>(())
    /// ```
    ///
    /// # Errors
    /// Where the text is none, or of no sound kernel: see [`Kernel::verify`].
    fn from_str(text: &str) -> Result<Kernel, ParseError> {
        let mut text = Cursor::new(text);
        let kernel = Kernel::parse(&mut text)?;
        text.end()?;
        Ok(kernel)
    }
}

impl Kernel {
    /// Takes a kernel up to its last line.
    ///
    /// # Errors
    /// As [`Kernel::from_str`].
    pub fn parse(text: &mut Cursor<'_>) -> Result<Kernel, ParseError> {
        let place = text.place();
        text.expect("kernel")?;
        let mut parser = Parser { kernel: Kernel::new(text.word()?), text };
        while parser.statement()? {}
        let kernel = parser.kernel;
        let fail = |message: String| Err(text.error_at(place, message));
        let loops = kernel.axes.iter().filter(|axis| matches!(axis.kind, AxisKind::Map | AxisKind::Reduce));
        let positions = loops.map(|axis| axis.extent.max(1)).try_fold(1u64, u64::checked_mul);
        if positions.is_none_or(|positions| positions > MOST_POSITIONS) {
            return fail(format!("kernel {} has more than {MOST_POSITIONS} positions", kernel.name));
        }
        if let Err(message) = kernel.verify() {
            return fail(message);
        }
        if kernel.divides_below_zero() {
            return fail(format!("kernel {}: an index divides what may be less than zero", kernel.name));
        }
        Ok(kernel)
    }
}

/// So that products of extents are numbers.
const MOST_POSITIONS: u64 = 1 << 60;

/// What comes after a kernel.
const ENDS: [&str; 5] = ["kernel", "nest", "workspace", "tensor_map", "function"];

struct Parser<'t, 'a> {
    kernel: Kernel,
    text: &'t mut Cursor<'a>,
}

impl Parser<'_, '_> {
    /// Takes the next statement, if one comes.
    fn statement(&mut self) -> Result<bool, ParseError> {
        if ["map", "reduce", "computed", "offset"].iter().any(|kind| self.text.is_at(kind)) {
            self.axis_statement()?;
        } else if self.text.is_at("input") || self.text.is_at("output") {
            self.buffer_statement()?;
        } else if self.text.is_at("argument") {
            self.argument_statement()?;
        } else if self.text.is_at("recurrence") {
            self.recurrence_statement()?;
        } else if self.text.eat("store") {
            let buffer = self.buffer(true)?;
            self.text.expect("[")?;
            let index = self.index()?;
            self.text.expect("]")?;
            self.text.expect("=")?;
            let value = self.value()?;
            self.kernel.stores.push(Store { buffer, index, value });
        } else if ENDS.iter().any(|word| self.text.is_at(word)) || self.text.is_at_end() {
            return Ok(false);
        } else {
            self.value_statement()?;
        }
        Ok(true)
    }

    fn axis_statement(&mut self) -> Result<(), ParseError> {
        let word = self.text.word()?;
        let place = self.text.place();
        let name = self.text.word()?.to_string();
        if self.kernel.axes.iter().any(|axis| axis.name == name) {
            return Err(self.text.error_at(place, format!("there are two axes {name}")));
        }
        self.text.expect("<")?;
        let of = |number: usize| AxisId(number as u32);
        let outer = (0..self.kernel.axes.len())
            .find(|&number| self.text.eat(&format!("{} *", self.kernel.extent_name(of(number)))));
        let positions_of = match outer {
            Some(number) => Some((of(number), self.text.number()?)),
            None => None,
        };
        let is_argument = outer.is_some() || self.text.eat(&format!("n_{name}"));
        if is_argument {
            self.text.expect("=")?;
        }
        let extent = self.text.number()?;
        let is_lane = self.text.eat("lane");
        let kind = match word {
            "map" => AxisKind::Map,
            "reduce" => AxisKind::Reduce,
            "computed" => {
                self.text.expect("is")?;
                let value = ValueId(self.value_number()?);
                let is_checked = self.text.is_at("check");
                AxisKind::Computed { value, check: is_checked.then(|| self.check()).transpose()? }
            }
            _ => {
                self.text.expect("number")?;
                AxisKind::Offset { number: self.text.number()? }
            }
        };
        self.kernel.axes.push(Axis { name, kind, extent, is_argument, positions_of, is_lane });
        Ok(())
    }

    fn buffer_statement(&mut self) -> Result<(), ParseError> {
        let is_output = self.text.word()? == "output";
        let place = self.text.place();
        let name = self.text.word()?.to_string();
        if self.kernel.buffers.iter().any(|buffer| buffer.is_output == is_output && buffer.name == name) {
            return Err(self.text.error_at(place, format!("there are two buffers {name}")));
        }
        if !is_output && self.kernel.buffers.iter().any(|buffer| buffer.is_output) {
            return Err(self.text.error_at(place, "inputs come before outputs"));
        }
        self.text.expect(":")?;
        let dtype = self.text.dtype()?;
        self.text.expect("[")?;
        let elements = self.text.number()?;
        self.text.expect("]")?;
        self.kernel.buffers.push(Buffer { name, dtype, elements, is_output });
        Ok(())
    }

    fn argument_statement(&mut self) -> Result<(), ParseError> {
        self.text.expect("argument")?;
        let place = self.text.place();
        let name = self.text.word()?.to_string();
        if self.kernel.arguments.iter().any(|argument| argument.name == name) {
            return Err(self.text.error_at(place, format!("there are two arguments {name}")));
        }
        self.text.expect(":")?;
        let dtype = self.text.dtype()?;
        self.text.expect("=")?;
        let value = self.text.scalar(dtype)?;
        self.kernel.arguments.push(Argument { name, value });
        Ok(())
    }

    fn recurrence_statement(&mut self) -> Result<(), ParseError> {
        self.text.expect("recurrence")?;
        self.text.expect("along")?;
        let axis = self.axis()?;
        let reverse = self.text.eat("reverse");
        self.text.expect(":")?;
        let carry = ValueId(self.value_number()?);
        self.text.expect("becomes")?;
        let next = ValueId(self.value_number()?);
        self.kernel.recurrences.push(Recurrence { axis, reverse, carry, next });
        Ok(())
    }

    fn value_statement(&mut self) -> Result<(), ParseError> {
        let place = self.text.place();
        let expected = self.kernel.values.len();
        let is_next = self.text.clone().word().is_ok_and(|word| word == format!("v{expected}"));
        if !is_next {
            return Err(self.text.expected(&format!("`v{expected}` or another statement")));
        }
        self.text.word()?;
        self.text.expect(":")?;
        let dtype = self.text.dtype()?;
        self.text.expect("=")?;
        let op = self.op(dtype)?;
        self.kernel.add(op, dtype);
        self.kernel.verify_value(expected).map_err(|message| self.text.error_at(place, message))
    }

    fn op(&mut self, dtype: DType) -> Result<ValueOp, ParseError> {
        let place = self.text.place();
        let word = self.text.word()?;
        Ok(match word {
            "load" => {
                let buffer = self.buffer(false)?;
                self.text.expect("[")?;
                let index = self.index()?;
                self.text.expect("]")?;
                let guard = if self.text.eat("if") { Some(self.value()?) } else { None };
                ValueOp::Load { buffer, index, guard }
            }
            "literal" => ValueOp::Literal(self.text.scalar(dtype)?),
            "argument" => ValueOp::Argument(self.argument()?),
            "position" => ValueOp::Position(self.index()?),
            "in_bounds" => {
                let kernel = &self.kernel;
                ValueOp::InBounds(Bound::parse_all(self.text, &mut |text| known_axis(kernel, text))?.into())
            }
            "random" => {
                let seed = self.argument()?;
                self.text.expect("[")?;
                let index = self.index()?;
                self.text.expect("]")?;
                ValueOp::Random { seed, index }
            }
            "select" => ValueOp::Select(self.value()?, self.value()?, self.value()?),
            "cast" => {
                let operand = self.value()?;
                self.text.expect("to")?;
                ValueOp::Cast(self.text.dtype()?, operand)
            }
            "carry" => {
                let number = self.text.number()?;
                self.text.expect("of")?;
                self.text.expect("row")?;
                let row = self.index()?;
                self.text.expect("from")?;
                ValueOp::Carry { recurrence: RecurrenceId(number), init: self.value()?, row }
            }
            "last" => {
                self.text.expect("of")?;
                ValueOp::Last { carry: self.value()? }
            }
            "scatter" => self.scatter(place)?,
            "sort" | "argsort" => self.sort(word == "argsort")?,
            "reduce" => self.reduce(place)?,
            _ => self.named(word, place)?,
        })
    }

    fn scatter(&mut self, place: Place) -> Result<ValueOp, ParseError> {
        let op = self.reduce_op(place)?;
        self.text.expect("over")?;
        let over = self.axis()?;
        self.text.expect("of")?;
        let operand = self.value()?;
        self.text.expect("to")?;
        let axis = self.axis()?;
        self.text.expect("at")?;
        let index = self.value()?;
        Ok(ValueOp::Scatter { op, axis, over, index, check: self.check()?, operand })
    }

    fn sort(&mut self, is_position: bool) -> Result<ValueOp, ParseError> {
        let descending = self.text.eat("descending");
        self.text.expect("over")?;
        let over = self.axis()?;
        self.text.expect("of")?;
        let operand = self.value()?;
        self.text.expect("to")?;
        Ok(ValueOp::Sort { axis: self.axis()?, over, descending, is_position, operand })
    }

    fn reduce(&mut self, place: Place) -> Result<ValueOp, ParseError> {
        let op = self.reduce_op(place)?;
        self.text.expect("over")?;
        let mut axes = SmallVec::new();
        loop {
            axes.push(self.axis()?);
            if !self.text.eat(",") {
                break;
            }
        }
        self.text.expect("of")?;
        let operand = self.value()?;
        let position = if self.text.eat("at") { Some(self.value()?) } else { None };
        Ok(ValueOp::Reduce { op, axes, operand, position })
    }

    /// A scalar operation, or a scan.
    fn named(&mut self, word: &str, place: Place) -> Result<ValueOp, ParseError> {
        if let Some(op) = UnaryOp::ALL.into_iter().find(|op| op.name() == word) {
            return Ok(ValueOp::Unary(op, self.value()?));
        }
        if let Some(op) = BinaryOp::ALL.into_iter().find(|op| op.name() == word) {
            return Ok(ValueOp::Binary(op, self.value()?, self.value()?));
        }
        let Some(op) = ReduceOp::ALL.into_iter().find(|op| op.is_scan() && op.scan_name() == word) else {
            return Err(self.text.error_at(place, format!("no operation is called `{word}`")));
        };
        let (reverse, exclusive) = (self.text.eat("reverse"), self.text.eat("exclusive"));
        self.text.expect("along")?;
        let axis = self.axis()?;
        self.text.expect("of")?;
        Ok(ValueOp::Scan { op, axis, reverse, exclusive, operand: self.value()? })
    }

    fn reduce_op(&mut self, place: Place) -> Result<ReduceOp, ParseError> {
        let word = self.text.word()?;
        let known = ReduceOp::ALL.into_iter().find(|op| op.name() == word);
        known.ok_or_else(|| self.text.error_at(place, format!("no reduction is called `{word}`")))
    }

    fn check(&mut self) -> Result<u32, ParseError> {
        self.text.expect("check")?;
        self.text.number()
    }

    /// The number of a value, which may come later.
    fn value_number(&mut self) -> Result<u32, ParseError> {
        let place = self.text.place();
        let word = self.text.word()?;
        let number = word.strip_prefix('v').and_then(|number| number.parse().ok());
        number.ok_or_else(|| self.text.error_at(place, format!("`{word}` is no value")))
    }

    fn value(&mut self) -> Result<ValueId, ParseError> {
        let place = self.text.place();
        let id = ValueId(self.value_number()?);
        match id.index() < self.kernel.values.len() {
            true => Ok(id),
            false => Err(self.text.error_at(place, format!("v{} is not there yet", id.0))),
        }
    }

    fn axis(&mut self) -> Result<AxisId, ParseError> {
        axis(&self.kernel, self.text)
    }

    fn index(&mut self) -> Result<IndexExpr, ParseError> {
        let kernel = &self.kernel;
        IndexExpr::parse(self.text, &mut |text| known_axis(kernel, text))
    }

    fn buffer(&mut self, is_output: bool) -> Result<BufferId, ParseError> {
        let place = self.text.place();
        let name = self.text.word()?;
        let is_it = |buffer: &Buffer| buffer.name == name && buffer.is_output == is_output;
        let position = self.kernel.buffers.iter().position(is_it);
        let kind = if is_output { "output" } else { "input" };
        let id = position.map(|number| BufferId(number as u32));
        id.ok_or_else(|| self.text.error_at(place, format!("no {kind} is called {name}")))
    }

    fn argument(&mut self) -> Result<ArgumentId, ParseError> {
        let place = self.text.place();
        let name = self.text.word()?;
        let position = self.kernel.arguments.iter().position(|argument| argument.name == name);
        let id = position.map(|number| ArgumentId(number as u32));
        id.ok_or_else(|| self.text.error_at(place, format!("no argument is called {name}")))
    }
}

/// Takes the name of an axis that has positions where the text is.
fn known_axis(kernel: &Kernel, text: &mut Cursor<'_>) -> Result<AxisId, ParseError> {
    let place = text.place();
    let id = axis(kernel, text)?;
    match kernel.computed_by(id).filter(|value| value.index() >= kernel.values.len()) {
        Some(value) => {
            let name = &kernel.axis(id).name;
            Err(text.error_at(place, format!("{name} is v{}, which is not there yet", value.0)))
        }
        None => Ok(id),
    }
}

fn axis(kernel: &Kernel, text: &mut Cursor<'_>) -> Result<AxisId, ParseError> {
    let place = text.place();
    let name = text.word()?;
    let position = kernel.axes.iter().position(|axis| axis.name == name);
    let id = position.map(|number| AxisId(number as u32));
    id.ok_or_else(|| text.error_at(place, format!("no axis is called {name}")))
}
