//! What expressions are worth to a thread.

use crate::index::{Atom, Bound, IndexExpr};
use crate::intrinsics::{philox_uniform_f32, philox_uniform_f64};
use crate::nest::stmt::{Arithmetic, Builtin, Expr, SortPart};
use crate::nest::variable::Var;
use crate::{BinaryOp, DType, Language};

use super::{Machine, Value};
use super::{Result, broken};
use crate::Scalar;

/// Lanes of a warp.
pub(super) const WARP: usize = 32;

impl Machine<'_> {
    /// What an expression is worth to a thread; `active` are those that compute it.
    pub(super) fn value(&mut self, expr: &Expr, thread: usize, active: &[usize]) -> Result<Value> {
        Ok(match expr {
            Expr::Name(var) => self.value_of(*var, thread)?,
            Expr::Int(value) => Value::Index(*value as i64),
            Expr::Index(index) => Value::Index(self.place(index, thread)?),
            Expr::Wide(a) => return self.value(a, thread, active),
            Expr::Position(index) => Value::Number(Scalar::from_i64(DType::I64, self.place(index, thread)?)),
            Expr::Arithmetic(op, a, b) => {
                let a = self.value(a, thread, active)?.index();
                // What follows is not looked at.
                if *op == Arithmetic::And && a == 0 {
                    return Ok(Value::Index(0));
                }
                let b = self.value(b, thread, active)?.index();
                Value::Index(
                    arithmetic(*op, a, b).ok_or_else(|| broken("a division by zero, or an overflow"))?,
                )
            }
            Expr::Builtin(builtin) => Value::Index(self.builtin(*builtin, thread)),
            Expr::Literal(value) => Value::Number(value.cast(value.dtype().compute())),
            Expr::InBounds(bounds) => self.in_bounds(bounds, thread)?,
            Expr::Random { dtype, seed, index } => self.random(*dtype, *seed, index, thread)?,
            Expr::Checked { position, extent, check } => {
                let position = self.value(position, thread, active)?.index();
                let extent = self.value(extent, thread, active)?.index();
                match check {
                    Some(check) => Value::Index(self.checked(position, extent, *check)),
                    None if (0..extent).contains(&position) => Value::Index(position),
                    None => {
                        return Err(broken(format!("position {position} of {extent}, which nothing checks")));
                    }
                }
            }
            Expr::ToIndex(a) => Value::Index(self.value(a, thread, active)?.index()),
            Expr::Unary(op, dtype, a) => {
                let a = self.number(a, *dtype, thread, active)?;
                Value::Number(op.apply(a).ok_or_else(|| broken(format!("{op} is not defined for {dtype}")))?)
            }
            Expr::Binary(op, dtype, a, b) => {
                let a = self.number(a, *dtype, thread, active)?;
                let b = self.number(b, *dtype, thread, active)?;
                Value::Number(
                    op.apply(a, b).ok_or_else(|| broken(format!("{op} is not defined for {dtype}")))?,
                )
            }
            Expr::BriefExp(a) => {
                let a = self.number(a, DType::F32, thread, active)?;
                Value::Number(crate::UnaryOp::Exp.apply(a).ok_or_else(|| broken("exp is not defined"))?)
            }
            Expr::ZeroTimes(dtype, first, count) => {
                let Expr::Element(array, at) = &**first else { return Err(broken("zero_times of no array")) };
                let at = self.value(at, thread, active)?.index();
                let mut sum = 0.0;
                for n in 0..*count as i64 {
                    sum += 0.0 * self.read(*array, at + n, thread)?.number(*dtype).as_f64();
                }
                Value::Number(Scalar::from_f64(DType::F32, sum))
            }
            Expr::MulAdd(dtype, operands) => {
                let [a, b, c] = &**operands;
                let a = self.number(a, *dtype, thread, active)?;
                let b = self.number(b, *dtype, thread, active)?;
                let c = self.number(c, *dtype, thread, active)?;
                Value::Number(mul_add(dtype.compute(), a, b, c))
            }
            Expr::Quotient(dtype, operands) => {
                let [a, b] = &**operands;
                let a = self.number(a, *dtype, thread, active)?;
                let b = self.number(b, *dtype, thread, active)?;
                let quotient = BinaryOp::Div.apply(a, b);
                Value::Number(quotient.ok_or_else(|| broken(format!("div is not defined for {dtype}")))?)
            }
            Expr::Select(condition, a, b) => {
                let chosen = if self.value(condition, thread, active)?.truth() { a } else { b };
                self.value(chosen, thread, active)?
            }
            Expr::Cast { from, to, operand } => {
                let operand = self.number(operand, *from, thread, active)?;
                Value::Number(operand.cast(*to).cast(to.compute()))
            }
            Expr::Element(array, index) => {
                let at = self.value(index, thread, active)?.index();
                self.read(*array, at, thread)?
            }
            Expr::FromMemory(dtype, raw) => {
                let raw = self.value(raw, thread, active)?;
                Value::Number(raw.number(*dtype).cast(dtype.compute()))
            }
            Expr::ToMemory(dtype, value) => Value::Number(self.value(value, thread, active)?.number(*dtype)),
            Expr::Sort { part, dtype, descending, operands } => {
                let [a, b] = &**operands;
                self.sort_part(*part, (*dtype, *descending), [a, b], thread, active)?
            }
            Expr::Votes(_) | Expr::VotesBefore(_) | Expr::ShuffleUp { .. } | Expr::ShuffleXor { .. } => {
                self.exchange(expr, thread, active)?
            }
        })
    }

    /// The position that is read; one beyond its axis fails the check, and is read at the end.
    fn checked(&mut self, position: i64, extent: i64, check: u32) -> i64 {
        if !(0..extent).contains(&position) {
            self.failed.get_or_insert((check, position));
        }
        position.min(extent - 1).max(0)
    }

    fn in_bounds(&self, bounds: &[Bound], thread: usize) -> Result<Value> {
        for bound in bounds {
            let place = self.place(&bound.expr, thread)?;
            if bound.has_lo() && place < bound.lo || bound.has_hi() && place >= bound.hi {
                return Ok(Value::Index(0));
            }
        }
        Ok(Value::Index(1))
    }

    fn random(&self, dtype: DType, seed: Var, index: &IndexExpr, thread: usize) -> Result<Value> {
        let seed = self.value_of(seed, thread)?;
        let seed = match seed {
            Value::Number(seed) => seed.to_bits(),
            Value::Index(seed) => seed as u64,
        };
        let index = self.place(index, thread)? as u64;
        Ok(Value::Number(match dtype {
            DType::F64 => Scalar::from_f64(DType::F64, philox_uniform_f64(seed, index)),
            _ => Scalar::from_f64(DType::F32, philox_uniform_f32(seed, index).into()),
        }))
    }

    /// What lanes of a warp tell each other.
    fn exchange(&mut self, expr: &Expr, thread: usize, active: &[usize]) -> Result<Value> {
        Ok(match expr {
            Expr::Votes(condition) => Value::Index(self.votes(condition, thread, active, WARP)?),
            Expr::VotesBefore(condition) => {
                Value::Index(self.votes(condition, thread, active, thread % WARP)?)
            }
            Expr::ShuffleUp { value, delta } => {
                let delta = self.value(delta, thread, active)?.index() as usize;
                let source = if delta <= thread % WARP { thread - delta } else { thread };
                self.of_lane(value, source, active)?
            }
            Expr::ShuffleXor { value, mask, width } => {
                let mask = self.value(mask, thread, active)?.index() as usize;
                if mask >= *width as usize {
                    return Err(broken(format!("an exchange over {mask} lanes of {width}")));
                }
                self.of_lane(value, thread ^ mask, active)?
            }
            _ => return Err(broken("no exchange")),
        })
    }

    fn number(&mut self, expr: &Expr, dtype: DType, thread: usize, active: &[usize]) -> Result<Scalar> {
        Ok(self.value(expr, thread, active)?.number(dtype.compute()))
    }

    /// What another lane of the warp has.
    fn of_lane(&mut self, expr: &Expr, lane: usize, active: &[usize]) -> Result<Value> {
        match active.binary_search(&lane) {
            Ok(_) => self.value(expr, lane, active),
            Err(_) => Err(broken(format!("thread {lane} does not take part in an exchange"))),
        }
    }

    /// In how many of the first lanes of the thread's warp a condition holds.
    fn votes(&mut self, condition: &Expr, thread: usize, active: &[usize], lanes: usize) -> Result<i64> {
        let first = thread / WARP * WARP;
        let mut votes = 0;
        for lane in first..first + lanes {
            if active.binary_search(&lane).is_ok() && self.value(condition, lane, active)?.truth() {
                votes += 1;
            }
        }
        Ok(votes)
    }

    /// An index at a thread's positions.
    pub(super) fn place(&self, index: &IndexExpr, thread: usize) -> Result<i64> {
        let mut sum = index.constant_term();
        for (atom, factor) in index.terms() {
            let value = match atom {
                Atom::Axis(axis) => self.position(*axis, thread).ok_or_else(|| {
                    broken(format!("no position along {}", self.nest.kernel.axis(*axis).name))
                })?,
                Atom::Div(inner, by) => self.place(inner, thread)?.div_euclid(*by),
                Atom::Mod(inner, by) => self.place(inner, thread)?.rem_euclid(*by),
            };
            sum = sum.wrapping_add(factor.wrapping_mul(value));
        }
        Ok(sum)
    }

    fn builtin(&self, builtin: Builtin, thread: usize) -> i64 {
        let of_thread = &self.threads[thread];
        match (self.language, builtin) {
            (_, Builtin::BlockX) => self.block[0] as i64,
            (Language::Cuda, Builtin::ThreadX) => of_thread.x.into(),
            (Language::Cuda, Builtin::ThreadY) => of_thread.y.into(),
            (Language::Cuda, Builtin::BlockY) => self.block[1] as i64,
            (Language::Cuda, Builtin::GridY) => self.blocks_y as i64,
            (Language::C, Builtin::GridY) => 1,
            (Language::C, Builtin::ThreadX | Builtin::ThreadY | Builtin::BlockY) => 0,
        }
    }

    /// As the helpers of the languages have it.
    fn sort_part(
        &mut self,
        part: SortPart,
        (dtype, descending): (DType, bool),
        [a, b]: [&Expr; 2],
        thread: usize,
        active: &[usize],
    ) -> Result<Value> {
        let dtype = dtype.compute();
        let is_wide = matches!(dtype, DType::I64 | DType::F64);
        let turned = |key: i64| if descending { !key } else { key };
        let number = |value: i64| Value::Number(Scalar::from_i64(DType::I64, value));
        Ok(match part {
            SortPart::Item | SortPart::Key | SortPart::Place => {
                let value = self.number(a, dtype, thread, active)?;
                let is_negative_zero =
                    dtype.is_float() && value.as_f64() == 0.0 && value.as_f64().is_sign_negative();
                let place = |machine: &mut Self| -> Result<i64> {
                    Ok(machine.value(b, thread, active)?.index() * 2 + i64::from(is_negative_zero))
                };
                match part {
                    SortPart::Key => number(turned(key(value))),
                    SortPart::Place => number(place(self)?),
                    _ => number((turned(key(value)) << 32) | place(self)?),
                }
            }
            SortPart::Value => {
                let item = self.value(a, thread, active)?.index();
                let key = turned(if is_wide { item } else { item >> 32 });
                let sign =
                    if is_wide && dtype.is_float() { self.value(b, thread, active)?.index() } else { item };
                Value::Number(of_key(dtype, key, sign & 1 == 1))
            }
            SortPart::Position => number((self.value(a, thread, active)?.index() >> 1) & 0x7fff_ffff),
        })
    }
}

/// A number with the order of the value; zeros alike, NaN above infinity.
fn key(value: Scalar) -> i64 {
    let ordered = |bits: i64, magnitude: i64| bits ^ ((bits >> 63) & magnitude);
    match value.dtype() {
        dtype if dtype.is_float() && value.as_f64().is_nan() => {
            if dtype == DType::F64 {
                i64::MAX
            } else {
                i32::MAX.into()
            }
        }
        dtype if dtype.is_float() && value.as_f64() == 0.0 => 0,
        DType::F64 => ordered(value.to_bits() as i64, i64::MAX),
        DType::F32 => ordered((value.to_bits() as i32).into(), i32::MAX.into()),
        // Its order as that of signed numbers.
        DType::U32 => value.as_i64() + i64::from(i32::MIN),
        _ => value.as_i64(),
    }
}

/// The value of a key.
fn of_key(dtype: DType, key: i64, is_negative: bool) -> Scalar {
    match dtype {
        DType::F64 | DType::F32 if key == 0 && is_negative => Scalar::from_f64(dtype, -0.0),
        DType::F64 => Scalar::from_bits(dtype, (key ^ ((key >> 63) & i64::MAX)) as u64),
        DType::F32 => Scalar::from_bits(dtype, ((key ^ ((key >> 63) & i64::from(i32::MAX))) as u32).into()),
        DType::U32 => Scalar::from_i64(dtype, key - i64::from(i32::MIN)),
        _ => Scalar::from_i64(dtype, key),
    }
}

fn arithmetic(op: Arithmetic, a: i64, b: i64) -> Option<i64> {
    match op {
        Arithmetic::Add => a.checked_add(b),
        Arithmetic::Sub => a.checked_sub(b),
        Arithmetic::Mul => a.checked_mul(b),
        Arithmetic::Div => a.checked_div(b),
        Arithmetic::Rem => a.checked_rem(b),
        Arithmetic::Min => Some(a.min(b)),
        Arithmetic::Max => Some(a.max(b)),
        Arithmetic::Less => Some((a < b).into()),
        Arithmetic::LessEqual => Some((a <= b).into()),
        Arithmetic::Equal => Some((a == b).into()),
        Arithmetic::Xor => Some(a ^ b),
        Arithmetic::And => Some((a != 0 && b != 0).into()),
    }
}

/// `a * b + c`, rounded once.
pub(super) fn mul_add(dtype: DType, a: Scalar, b: Scalar, c: Scalar) -> Scalar {
    match dtype {
        DType::F64 => Scalar::from_f64(dtype, a.as_f64().mul_add(b.as_f64(), c.as_f64())),
        DType::F32 | DType::F16 | DType::BF16 => {
            let [a, b, c] = [a, b, c].map(|x| x.as_f64() as f32);
            Scalar::from_f64(DType::F32, a.mul_add(b, c).into())
        }
        _ => Scalar::from_i64(dtype, a.as_i64().wrapping_mul(b.as_i64()).wrapping_add(c.as_i64())),
    }
}
