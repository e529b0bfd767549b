//! Questions about signs.

use super::formula::{Term, formula};
use super::operands::Rule;
use crate::tensor::arguments::call::Call;
use crate::{BinaryOp, Tensor};

impl Tensor {
    /// Whether each element has a minus sign, -0 and the NaN that has one too: a `Bool`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[-1.5f32, -0.0, 0.0, 2.0], [4]);
    /// assert_eq!(x.signbit().to_vec::<bool>()?, [true, true, false, false]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn signbit(&self) -> Tensor {
        let is_float = self.node.dtype.is_float();
        let sign = |[x]: [Term; 1]| match is_float {
            true => x.like(1.0).binary(BinaryOp::Copysign, x).lt(0.0),
            false => x.lt(0.0),
        };
        Tensor::or_invalid(formula(Call::here("signbit"), Rule::Promoted, [self.into()], sign))
    }

    /// Whether each element is +∞: a `Bool`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[f32::INFINITY, f32::NEG_INFINITY, f32::NAN], [3]);
    /// assert_eq!(x.isposinf().to_vec::<bool>()?, [true, false, false]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn isposinf(&self) -> Tensor {
        infinite(Call::here("isposinf"), self, f64::INFINITY)
    }

    /// Whether each element is -∞: a `Bool`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[f32::INFINITY, f32::NEG_INFINITY, f32::NAN], [3]);
    /// assert_eq!(x.isneginf().to_vec::<bool>()?, [false, true, false]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn isneginf(&self) -> Tensor {
        infinite(Call::here("isneginf"), self, f64::NEG_INFINITY)
    }
}

/// Whether each element is that infinity, which no integer is.
fn infinite(call: Call, x: &Tensor, limit: f64) -> Tensor {
    let is_float = x.node.dtype.is_float();
    let question = |[x]: [Term; 1]| if is_float { x.eq(limit) } else { x.binary(BinaryOp::Ne, &x) };
    Tensor::or_invalid(formula(call, Rule::Promoted, [x.into()], question))
}
