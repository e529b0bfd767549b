//! Values limited to a range. Its ends belong to it: there all of a gradient reaches the value, not half of it, as in PyTorch.

use super::formula::{Term, formula};
use super::operands::{Rule, unified};
use crate::tensor::arguments::call::Call;
use crate::tensor::arguments::promotion::Operand;
use crate::{Result, Tensor};

impl Tensor {
    /// `min(max(self, low), high)`, in the promoted dtype of all three: `high` if the bounds are the wrong
    /// way round, NaN if any is NaN. All three broadcast; the bounds may be numbers, which the dtype must hold
    /// ([`Tensor::full`] says which it does).
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[-2.0f32, 0.5, 3.0], [3]);
    /// assert_eq!(x.clamp(0.0, 1.0).to_vec::<f32>()?, [0.0, 0.5, 1.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn clamp(&self, low: impl Into<Operand>, high: impl Into<Operand>) -> Tensor {
        Tensor::or_invalid(clamp(Call::here("clamp"), [self.into(), low.into(), high.into()]))
    }

    /// `max(self, low)`, NaN if either is, in the promoted dtype, which must hold a number. Shapes broadcast.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// assert_eq!(Tensor::from_slice(&[-2.0f32, 3.0], [2]).clamp_min(0.0).to_vec::<f32>()?, [0.0, 3.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn clamp_min(&self, low: impl Into<Operand>) -> Tensor {
        let operands = [self.into(), low.into()];
        let larger = |[x, low]: [Term; 2]| x.at_least(&low);
        Tensor::or_invalid(formula(Call::here("clamp_min"), Rule::Held, operands, larger))
    }

    /// `min(self, high)`, NaN if either is, in the promoted dtype, which must hold a number. Shapes broadcast.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// assert_eq!(Tensor::from_slice(&[-2.0f32, 3.0], [2]).clamp_max(1.0).to_vec::<f32>()?, [-2.0, 1.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn clamp_max(&self, high: impl Into<Operand>) -> Tensor {
        let operands = [self.into(), high.into()];
        let smaller = |[x, high]: [Term; 2]| x.at_most(&high);
        Tensor::or_invalid(formula(Call::here("clamp_max"), Rule::Held, operands, smaller))
    }
}

fn clamp(call: Call, operands: [Operand; 3]) -> Result<Tensor> {
    let dtype = Rule::Held.dtype(call, &operands)?;
    let shapes = operands.each_ref().map(Operand::shape);
    let shape = call.broadcast(&shapes.each_ref())?;
    let [x, low, high] = operands.map(|o| Term { call, value: unified(call, o, dtype, &shape) });
    x.at_least(&low).at_most(&high).value
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::tests::{mistake, recorded};
    use crate::{DType, Shape};

    #[test]
    fn clamp_is_two_operations() {
        let x = Tensor::from_slice(&[1i32, 2], [2]);
        let clamped = x.clamp(0, Tensor::ones([3, 1], DType::I32));
        assert_eq!(clamped.shape().unwrap(), Shape::from([3, 2]));
        assert_eq!(clamped.dtype().unwrap(), DType::I32);
        assert_eq!(x.clamp(0.5, 1).dtype().unwrap(), DType::F32);
        assert_eq!(recorded(&x.clamp(0, 1)).last().map(String::as_str), Some("minimum"));
        let bytes = x.cast(DType::U8);
        assert_eq!(bytes.clamp(-5, 255).dtype().unwrap(), DType::U8);
        mistake!(
            bytes.clamp(0, 300),
            "clamp: the number 300 does not fit u8, whose numbers go from 0 to 255; use a dtype that has it, such as DType::I64"
        );
    }
}
