//! Averages with weights, and how far elements reach, by NumPy's names.

use crate::tensor::arguments::axes::Axes;
use crate::tensor::arguments::call::Call;
use crate::tensor::arguments::promotion::Operand;
use crate::tensor::map::operands::Rule;
use crate::{Result, Shape, Tensor};

impl Tensor {
    /// The mean along the axes, which the result no longer has, in which each element counts as much as its weight:
    /// `sum(x * weights) / sum(weights)`, NaN or an infinity where the weights' sum is 0. The weights have the tensor's shape, or along one
    /// axis its extent alone. In the promoted dtype, or `F32` for integers and bools; 16-bit floats are computed in `F32`.
    /// NumPy's `average`; without weights it is [`Tensor::mean`].
    ///
    /// Invalid for weights of another shape, and for an axis out of range or given twice.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from([[1.0f32, 2.0], [3.0, 4.0]]);
    /// assert_eq!(x.average(1, Tensor::from([3.0f32, 1.0])).to_vec::<f32>()?, [1.25, 3.25]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn average(&self, axes: impl Into<Axes>, weights: impl AsRef<Tensor>) -> Tensor {
        let (call, axes, weights) = (Call::here("average"), axes.into(), weights.as_ref());
        call.composed(|| average(call, self, &axes, weights))
    }

    /// The largest less the smallest element along the axes, which the result no longer has; NaN if any is NaN. Keeps the dtype;
    /// integers wrap. NumPy's `ptp`.
    ///
    /// Invalid for bools, and for an axis out of range, given twice, or of extent 0.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from([[1, 5], [7, 4]]);
    /// assert_eq!(x.ptp(1).to_vec::<i32>()?, [4, 3]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn ptp(&self, axes: impl Into<Axes>) -> Tensor {
        let (call, axes) = (Call::here("ptp"), axes.into());
        call.composed(|| {
            Rule::Numbers.dtype(call, &[Operand::from(self)])?;
            let (least, most) = self.aminmax(axes);
            Ok(most - least)
        })
    }
}

fn average(call: Call, x: &Tensor, axes: &Axes, weights: &Tensor) -> Result<Tensor> {
    let dtype = Rule::Float.dtype(call, &[Operand::from(x), Operand::from(weights)])?;
    let (shape, own) = (x.known()?.0, weights.known()?.0);
    let axes = call.axes(axes, shape)?;
    let along = match axes[..] {
        [axis] if own != shape && own[..] == shape[axis..=axis] => {
            let extents = (0..shape.rank()).map(|n| if n == axis { shape[n] } else { 1 });
            weights.reshape(extents.collect::<Shape>())
        }
        _ if own == shape => weights.clone(),
        _ => {
            return call.fail(format!(
                "weights of shape {own} for shape {shape}: they have the same shape, or along one axis its extent alone"
            ));
        }
    };
    let [x, weights] = [x, &along].map(|x| x.cast(dtype.compute()));
    let list: Vec<isize> = axes.iter().map(|&axis| axis as isize).collect();
    Ok(((x * &weights).sum(list.clone()) / weights.sum(list)).cast(dtype))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::tests::mistake;
    use crate::{DType, Device};

    #[test]
    fn weights_count() {
        let x = Tensor::arange(0, 6, 1).reshape([2, 3]).to(&Device::interpreter());
        let of = |axes: Axes, weights: Tensor| {
            x.average(axes, weights.to(&Device::interpreter())).to_vec::<f32>().unwrap()
        };
        assert_eq!(of(0.into(), Tensor::from([1, 3])), [2.25, 3.25, 4.25]);
        assert_eq!(of((-1).into(), Tensor::from([1.0f32, 0.0, 1.0])), [1.0, 4.0]);
        assert_eq!(of((..).into(), Tensor::from([[1, 0, 0], [0, 0, 3]])), [3.75]);
        assert!(of(0.into(), Tensor::from([0, 0]))[0].is_nan());
        let none = Tensor::zeros([0, 2], DType::F64).average(0, Tensor::zeros([0], DType::F64));
        assert!(none.to_vec::<f64>().unwrap().iter().all(|x| x.is_nan()));
        // Of a square, weights along one axis are along that one.
        let square = Tensor::from([[1.0f32, 2.0], [3.0, 5.0]]);
        assert_eq!(square.average(0, Tensor::from([0.0f32, 1.0])).to_vec::<f32>().unwrap(), [3.0, 5.0]);
    }

    #[test]
    fn mistakes() {
        let x = Tensor::ones([2, 3], DType::F32);
        mistake!(
            x.average(0, Tensor::ones([3], DType::F32)),
            "average: weights of shape [3] for shape [2, 3]: they have the same shape, or along one axis its extent alone"
        );
        mistake!(
            x.gt(0).ptp(0),
            "ptp: not defined for bools, got bool [2, 3]; cast first, such as with .cast(DType::I64)"
        );
    }
}
