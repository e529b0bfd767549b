//! The adjoints of scalar operations, from the formulas that they are declared with.

use lazuli_codegen::Formula;
use smallvec::SmallVec;

use super::site::{Adjoints, Site};
use crate::graph::op::{Constant, ConstantRole};
use crate::tensor::map::bessel::trigamma;
use crate::{BinaryOp, DType, Result, Scalar, Tensor, UnaryOp};

/// What a formula is over, in the dtype that the operation computes in.
struct Terms<'a> {
    site: &'a Site<'a>,
    cotangent: Tensor,
    operands: SmallVec<[Tensor; 2]>,
    result: Tensor,
    dtype: DType,
}

/// What a formula or a part of it is.
enum Value {
    Number(f64),
    Tensor(Tensor),
}

impl Site<'_> {
    pub(super) fn unary(&self, op: UnaryOp) -> Result<Adjoints> {
        let Some(adjoint) = op.adjoint() else { return Ok(Adjoints::new()) };
        let formula = adjoint(Formula::Cotangent, Formula::Operand(0), Formula::Result);
        let terms = self.terms(self.sources)?;
        // These are longer than a formula.
        let slope = match op {
            UnaryOp::I0 => Some(terms.operands[0].i1()),
            UnaryOp::Digamma => Some(trigamma(&terms.operands[0])),
            _ => None,
        };
        if let Some(slope) = slope {
            let adjoint = self.call.binary_of(BinaryOp::Mul, terms.cotangent, slope)?;
            return Ok(Adjoints::from_iter([Some(self.call.cast(&adjoint, self.cotangent.node.dtype)?)]));
        }
        Ok(Adjoints::from_iter([terms.adjoint(&formula)?]))
    }

    pub(super) fn binary(
        &self,
        op: BinaryOp,
        operands: &[Tensor],
        place: impl Fn(usize) -> bool,
    ) -> Result<Adjoints> {
        let Some(adjoint) = op.adjoint() else { return Ok(Adjoints::new()) };
        let (g, y) = (Formula::Cotangent, Formula::Result);
        let formulas = adjoint(g, Formula::Operand(0), Formula::Operand(1), y);
        let terms = self.terms(operands)?;
        let mut adjoints = Adjoints::from_elem(None, 2);
        for (number, formula) in formulas.iter().enumerate().filter(|(number, _)| place(*number)) {
            adjoints[number] = terms.adjoint(formula)?;
        }
        Ok(adjoints)
    }

    fn terms(&self, operands: &[Tensor]) -> Result<Terms<'_>> {
        let dtype = self.cotangent.node.dtype.compute();
        let cast = |x: &Tensor| self.call.cast(x, dtype);
        Ok(Terms {
            site: self,
            cotangent: cast(self.cotangent)?,
            operands: operands.iter().map(cast).collect::<Result<_>>()?,
            result: cast(self.result)?,
            dtype,
        })
    }
}

impl Terms<'_> {
    /// The formula in the cotangent's dtype; 16-bit floats are rounded once.
    fn adjoint(&self, formula: &Formula) -> Result<Option<Tensor>> {
        let own = self.site.cotangent.node.dtype;
        Ok(match self.value(formula)? {
            // No other number is a whole adjoint.
            Value::Number(_) => None,
            Value::Tensor(tensor) => Some(self.site.call.cast(&tensor, own)?),
        })
    }

    fn value(&self, formula: &Formula) -> Result<Value> {
        let call = self.site.call;
        Ok(Value::Tensor(match formula {
            Formula::Cotangent => self.cotangent.clone(),
            Formula::Operand(number) => self.operands[*number].clone(),
            Formula::Result => self.result.clone(),
            Formula::Number(number) => return Ok(Value::Number(*number)),
            Formula::Unary(op, x) => call.unary(*op, &self.tensor(x)?)?,
            Formula::Binary(op, a, b) => match (self.value(a)?, self.value(b)?) {
                (Value::Tensor(a), Value::Tensor(b)) => call.binary_of(*op, a, b)?,
                (Value::Tensor(a), Value::Number(b)) => self.beside(*op, a, b, false)?,
                (Value::Number(a), Value::Tensor(b)) => self.beside(*op, b, a, true)?,
                (Value::Number(_), b @ Value::Number(_)) => return Ok(b),
            },
            Formula::Select(parts) => {
                let [condition, a, b] = parts.as_ref();
                self.site.choice(&self.tensor(condition)?, &self.tensor(a)?, &self.tensor(b)?)?
            }
            _ => {
                let name = self.site.result.node.origin;
                return call
                    .fail(format!("`{name}` has a derivative that is made of no operation that there is"));
            }
        }))
    }

    fn tensor(&self, formula: &Formula) -> Result<Tensor> {
        match self.value(formula)? {
            Value::Tensor(tensor) => Ok(tensor),
            Value::Number(number) => self.filled(number),
        }
    }

    fn filled(&self, number: f64) -> Result<Tensor> {
        let value = Scalar::from_f64(self.dtype, number);
        self.site.call.filled(value, ConstantRole::Literal, &self.site.result.node.shape)
    }

    fn beside(&self, op: BinaryOp, x: Tensor, number: f64, is_first: bool) -> Result<Tensor> {
        if x.node.is_of_step {
            let number = self.filled(number)?;
            let [a, b] = if is_first { [number, x] } else { [x, number] };
            return self.site.call.binary_of(op, a, b);
        }
        let value = Scalar::from_f64(self.dtype, number);
        let number = Constant { value, role: ConstantRole::Literal };
        Ok(self.site.call.with_number(op, x, number, is_first))
    }
}
