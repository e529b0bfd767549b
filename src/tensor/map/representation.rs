//! Floats as they are represented: their exponents, and their neighbours.

use super::formula::{Term, formula};
use super::operands::Rule;
use crate::tensor::arguments::call::Call;
use crate::{DType, Operand, Result, Tensor};

impl Tensor {
    /// Mantissas and exponents: `(m, e)` with `self = m * 2^e` and `m` from 0.5 up to, but without, 1 in magnitude; `m` in the tensor's
    /// dtype, `e` as `I32`. Zeros, infinities and NaN are their own mantissas, with an exponent of 0. The inverse is
    /// [`Tensor::ldexp`]. PyTorch's `frexp`, with its gradient, that of a division by `2^e`.
    ///
    /// Both are invalid for integers and bools.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let (m, e) = Tensor::from_slice(&[6.0f32, -0.25, 0.0], [3]).frexp();
    /// assert_eq!((m.to_vec::<f32>()?, e.to_vec::<i32>()?), (vec![0.75, -0.5, 0.0], vec![3, -1, 0]));
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn frexp(&self) -> (Tensor, Tensor) {
        let call = Call::here("frexp");
        let both = call.compose(|| frexp(call, self));
        both.unwrap_or_else(|error| (Tensor::invalid(error.clone()), Tensor::invalid(error)))
    }

    /// The next number of the dtype on the way to `other`: `other` itself where both are equal, NaN where either is. It is the
    /// promoted dtype's, which must be a float; shapes broadcast. PyTorch's and NumPy's `nextafter`; its slope by `self` is 1.
    ///
    /// S. M. Rump, P. Zimmermann, S. Boldo, G. Melquiond, "Computing predecessor and successor in rounding to nearest", 2009.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[1.0f32, 0.0], [2]);
    /// assert_eq!(x.nextafter(2.0).to_vec::<f32>()?, [1.0 + f32::EPSILON, 1e-45]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn nextafter(&self, other: impl Into<Operand>) -> Tensor {
        let (call, operands) = (Call::here("nextafter"), [self.into(), other.into()]);
        call.composed(|| {
            let grid = Grid::of(Rule::Floats.dtype(call, &operands)?);
            formula(call, Rule::Floats, operands, |[x, to]| grid.neighbour(&x, &to))
        })
    }
}

fn frexp(call: Call, x: &Tensor) -> Result<(Tensor, Tensor)> {
    call.needs_float(x)?;
    let dtype = x.known()?.1;
    let own = call.detached(x).cast(dtype.compute());
    // What is not a normal number becomes one.
    let is_small = own.abs().lt(if dtype.compute() == DType::F64 {
        f64::MIN_POSITIVE
    } else {
        f32::MIN_POSITIVE.into()
    });
    let is_number = own.isfinite() & own.ne(0.0);
    let scaled = is_number.where_(is_small.where_(&own * UP.exp2(), &own), 1.0);
    let logarithm = scaled.abs().log2().floor() + 1.0;
    // In two steps: a single one would overflow or underflow for the extreme exponents.
    let half = (&logarithm * 0.5).floor();
    let mantissa = scaled * (-&half).exp2() * (&half - &logarithm).exp2();
    // A rounded logarithm may be on the other side of a whole number.
    let (is_large, is_short) = (mantissa.abs().ge(1.0), mantissa.abs().lt(0.5));
    let mantissa = is_large.where_(&mantissa * 0.5, is_short.where_(&mantissa * 2.0, &mantissa));
    let exponent = logarithm + is_large.where_(1.0, is_short.where_(-1.0, 0.0)) - is_small.where_(UP, 0.0);
    let exponent = is_number.where_(exponent, 0.0).cast(DType::I32);
    let mantissa = is_number.where_(mantissa, &own).cast(dtype);
    // The exponent is a source, and not the rule's own: in the step of a scan there is one for each position.
    let mantissa = call.derived(&mantissa, &[x, &exponent], |g, all| Ok(vec![g.ldexp(-&all[2])]));
    mantissa.validity()?;
    exponent.validity()?;
    Ok((mantissa, exponent))
}

/// An exponent that makes normal numbers of all others.
const UP: f64 = 64.0;

/// Where the numbers of a dtype are.
struct Grid {
    /// Half of what is between 1 and the next number.
    unit: f64,
    /// The least number above 0, which is what is between any two up to `even`.
    least: f64,
    even: f64,
    largest: f64,
    /// Whether numbers are rounded to the dtype in each step, and not only at the end.
    is_computed: bool,
}

impl Grid {
    fn of(dtype: DType) -> Grid {
        let (digits, least, largest) = match dtype {
            DType::F16 => (11, 2f64.powi(-24), 65504.0),
            DType::BF16 => (8, 2f64.powi(-133), (2.0 - 2f64.powi(-7)) * 2f64.powi(127)),
            DType::F64 => (53, f64::from_bits(1), f64::MAX),
            _ => (24, 2f64.powi(-149), f64::from(f32::MAX)),
        };
        let unit = 2f64.powi(-digits);
        Grid { unit, least, even: least / unit, largest, is_computed: dtype == dtype.compute() }
    }

    fn neighbour(&self, x: &Term, to: &Term) -> Term {
        let a = x.abs();
        let direction = to.gt(x).select(x.like(1.0), -1.0);
        // More than half of what is between two numbers, and less than one and a half: the sum is rounded to the neighbour.
        let share = self.unit * (1.0 + 2.0 * self.unit);
        let step = |a: &Term| &direction * (a * share);
        let far = x + step(&a);
        // Where the step would be rounded itself, everything is so much larger.
        let far = match self.is_computed {
            true => {
                let scaled = x * self.unit.recip();
                let near = (&scaled + step(&scaled.abs())) * self.unit;
                a.lt(self.even * 2.0 / self.unit).select(near, far)
            }
            false => far,
        };
        let next = a.lt(self.even).select(x + &direction * self.least, far);
        let next = x.lt(0.0).and(next.eq(0.0)).select(-0.0, next);
        let next = a.eq(f64::INFINITY).select(direction * -self.largest, next);
        let next = x.eq(to).select(to, next);
        // Of NaN as well.
        let is_nan = x.isnan().or(to.isnan());
        is_nan.select(x + to, next).derived([x, to], |g, [x, to], _| {
            let is_other = x.eq(&to);
            [is_other.select(0.0, &g), is_other.select(&g, 0.0)]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Device;
    use crate::tensor::tests::mistake;

    /// Numbers where neighbours are of several kinds, with all signs.
    fn cases() -> Vec<f64> {
        let mut all = vec![0.0, 1.0, 1.5, f64::INFINITY, f64::MAX, f64::MIN_POSITIVE, 1e300, 0.1, 7.0];
        for power in
            [-1074, -1073, -1050, -1022, -1021, -970, -969, -968, -960, -900, -149, -126, -1, 3, 52, 1023]
        {
            let base = 2f64.powi(power / 2) * 2f64.powi(power - power / 2);
            all.extend([base, base.next_up(), base.next_down(), base * 1.75]);
        }
        let negative: Vec<f64> = all.iter().map(|x| -x).collect();
        [all, negative].concat()
    }

    #[test]
    fn neighbours_of_f64() {
        let cases = cases();
        let x = Tensor::from_slice(&cases, [cases.len()]).to(&Device::interpreter());
        let up = x.nextafter(f64::INFINITY).to_vec::<f64>().unwrap();
        let down = x.nextafter(f64::NEG_INFINITY).to_vec::<f64>().unwrap();
        for ((x, up), down) in cases.into_iter().zip(up).zip(down) {
            assert_eq!(up.to_bits(), x.next_up().to_bits(), "{up:e} above {x:e}");
            let expected = if x == 0.0 { -f64::from_bits(1) } else { x.next_down() };
            assert_eq!(down.to_bits(), expected.to_bits(), "{down:e} below {x:e}");
        }
    }

    #[test]
    fn neighbours_of_f32() {
        let cases: Vec<f32> = (0..=255u32)
            .flat_map(|exponent| {
                [0, 1, 0x7f_fffe, 0x7f_ffff, 0x2a_aaaa].map(|m| f32::from_bits(exponent << 23 | m))
            })
            .filter(|x| !x.is_nan())
            .flat_map(|x| [x, -x])
            .collect();
        let x = Tensor::from_slice(&cases, [cases.len()]).to(&Device::interpreter());
        let up = x.nextafter(f32::INFINITY).to_vec::<f32>().unwrap();
        let down = x.nextafter(f32::NEG_INFINITY).to_vec::<f32>().unwrap();
        for ((x, up), down) in cases.into_iter().zip(up).zip(down) {
            assert_eq!(up.to_bits(), x.next_up().to_bits(), "{up:e} above {x:e}");
            let expected = if x == 0.0 { -f32::from_bits(1) } else { x.next_down() };
            assert_eq!(down.to_bits(), expected.to_bits(), "{down:e} below {x:e}");
        }
    }

    /// Every number of 16 bits, in their order.
    #[test]
    fn neighbours_of_16_bits() {
        for (dtype, infinite) in [(DType::F16, 0x7c00u16), (DType::BF16, 0x7f80)] {
            let all: Vec<u8> = (0..=infinite).flat_map(u16::to_le_bytes).collect();
            let x = Tensor::from_bytes(&all, dtype, [usize::from(infinite) + 1]);
            let x = x.to(&Device::interpreter());
            let above: Vec<u8> =
                (0..=infinite).map(|bits| (bits + 1).min(infinite)).flat_map(u16::to_le_bytes).collect();
            assert_eq!(x.nextafter(x.full_like(f64::INFINITY)).to_bytes().unwrap(), above, "{dtype}");
            let below = x.nextafter(x.full_like(f64::NEG_INFINITY)).to_bytes().unwrap();
            let first = [0x01u8, 0x80];
            let expected: Vec<u8> =
                first.into_iter().chain((0..infinite).flat_map(u16::to_le_bytes)).collect();
            assert_eq!(below, expected, "{dtype}");
        }
    }

    #[test]
    fn equal_and_nan() {
        let of = |x: f32, to: f32| {
            let x = Tensor::scalar(x).to(&Device::interpreter());
            x.nextafter(Tensor::scalar(to).to(&Device::interpreter())).item::<f32>().unwrap()
        };
        assert_eq!(of(0.0, -0.0).to_bits(), (-0.0f32).to_bits());
        assert_eq!(of(f32::INFINITY, f32::INFINITY), f32::INFINITY);
        assert!(of(f32::NAN, 1.0).is_nan() && of(f32::INFINITY, f32::NAN).is_nan());
        mistake!(
            Tensor::scalar(1i32).nextafter(2),
            "nextafter: needs float tensors, got i32 [] and the number 2; cast one first, such as with .cast(DType::F32)"
        );
    }

    #[test]
    fn mantissas_and_exponents() {
        let cases = cases();
        let x = Tensor::from_slice(&cases, [cases.len()]).to(&Device::interpreter());
        let (m, e) = x.frexp();
        let back = m.ldexp(&e).to_vec::<f64>().unwrap();
        let (m, e) = (m.to_vec::<f64>().unwrap(), e.to_vec::<i32>().unwrap());
        for (((x, m), e), back) in cases.into_iter().zip(m).zip(e).zip(back) {
            let is_special = x == 0.0 || x.is_infinite();
            assert!(is_special || (0.5..1.0).contains(&m.abs()), "{x:e} is {m} × 2^{e}");
            assert_eq!(back.to_bits(), x.to_bits(), "{x:e} is {m} × 2^{e}");
            assert!(!is_special || e == 0, "{x} has exponent {e}");
        }
        let halves = Tensor::from_slice(&[1i32, 2], [2]).frexp().0;
        mistake!(
            halves,
            "frexp: needs a float tensor, got i32 [2]; cast it first, such as with .cast(DType::F32)"
        );
        let x = Tensor::from([3.0f64, -0.1]).to(&Device::interpreter());
        let slopes = crate::grad(&x.frexp().0.sum(..), &x).to_vec::<f64>().unwrap();
        assert_eq!(slopes, [0.25, 8.0]);
    }
}
