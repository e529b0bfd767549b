//! Classes drawn by their weights or logits.

use crate::tensor::arguments::call::Call;
use crate::tensor::make::create::counting;
use crate::tensor::position::gather::looked_up;
use crate::tensor::reduce::statistics::along;
use crate::{DType, Result, Shape, Tensor};

impl Tensor {
    /// So many classes drawn from each row along the last axis, a class as likely as its weight says: `I64`, in the tensor's
    /// shape with `samples` in the place of the classes. Weights need not add up to 1; what is no finite number above 0 is
    /// never drawn. Without `replacement` no class is drawn twice. PyTorch's `multinomial`, for any rows, with other numbers.
    ///
    /// Where nothing is left to be drawn is an [`IndexOutOfRange`](crate::Error::IndexOutOfRange) when the values are asked for.
    /// Invalid for integers and bools, and for more samples than classes without replacement.
    ///
    /// P. Efraimidis, P. Spirakis, "Weighted random sampling with a reservoir", 2006.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let weights = Tensor::from_slice(&[0.0f32, 1.0, 3.0, 0.0, 0.0, 5.0], [2, 3]);
    /// let drawn = weights.multinomial(4, true, 42).to_vec::<i64>()?;
    /// assert!(drawn[..4].iter().all(|&class| class > 0) && drawn[4..] == [2; 4]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn multinomial(&self, samples: usize, replacement: bool, seed: u64) -> Tensor {
        let call = Call::here("multinomial");
        call.composed(|| multinomial(call, self, samples, replacement, seed))
    }

    /// Along an axis of logits, shares that are near 1 for a class as often as softmax says, and near 0 for the others: the
    /// softmax of the logits with random numbers of Gumbel's distribution added, over the temperature `tau`. The lower that is,
    /// the nearer; with `hard`, 1 for the class of the largest share and 0 for the others. Keeps shape and dtype. PyTorch's
    /// `gumbel_softmax`, with other numbers.
    ///
    /// Invalid for integers and bools, for a `tau` that is not above 0, and for an axis out of range.
    ///
    /// E. Jang, S. Gu, B. Poole, "Categorical reparameterization with Gumbel-softmax", 2017.
    ///
    /// ```
    /// use lazuli::{DType, Tensor};
    /// let drawn = Tensor::zeros([100, 3], DType::F32).gumbel_softmax(1.0, true, -1, 42);
    /// assert_eq!(drawn.sum(1).to_vec::<f32>()?, [1.0; 100]);
    /// assert!(drawn.sum(0).to_vec::<f32>()?.iter().all(|&count| count > 15.0));
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn gumbel_softmax(&self, tau: f64, hard: bool, axis: isize, seed: u64) -> Tensor {
        let call = Call::here("gumbel_softmax");
        call.composed(|| {
            call.needs_float(self)?;
            call.needs(tau > 0.0, "the temperature must be more than 0", tau)?;
            call.along(self, axis, |x, axis| gumbel_softmax(x, tau, hard, axis, seed))
        })
    }
}

fn gumbel_softmax(x: &Tensor, tau: f64, hard: bool, axis: usize, seed: u64) -> Result<Tensor> {
    let (shape, dtype) = x.known()?;
    let wide = dtype.compute();
    // A wait of 0 is as likely as any other, and would be infinite.
    let wait = (-(1.0 - Tensor::rand_with(shape, wide, seed)).log()).maximum(f64::from(f32::MIN_POSITIVE));
    let logits = (x.cast(wide) - wait.log()) / tau;
    if !hard || shape.elements() == 0 {
        return Ok(logits.softmax(axis as isize).cast(dtype));
    }
    let class = counting(shape[axis]).reshape(along(shape.rank(), axis, shape[axis]));
    Ok(class.eq(logits.argmax_keepdim(axis)).cast(dtype))
}

fn multinomial(call: Call, x: &Tensor, samples: usize, replacement: bool, seed: u64) -> Result<Tensor> {
    call.needs_float(x)?;
    let (shape, _) = x.known()?;
    let Some(&classes) = shape.last() else {
        return call.fail("weights have at least one dimension, whose elements are classes");
    };
    let result = shape.with_extent(shape.rank() - 1, samples);
    if !replacement && samples > classes {
        return call.fail(format!(
            "{samples} different ones of {classes} classes, which shape {shape} has along its last axis"
        ));
    }
    call.needs_addressable(&result)?;
    if result.elements() == 0 {
        return Ok(Tensor::zeros(result, DType::I64));
    }
    if classes == 0 {
        return call.fail(format!("no classes to draw from: shape {shape} has none along its last axis"));
    }
    // Sums of many weights, and chances of the least likely class, need more than 24 bits.
    let weights = x.cast(DType::F64);
    let is_drawn = weights.gt(0.0) & weights.isfinite();
    let drawn = match replacement {
        true => by_sums(&is_drawn, &is_drawn.where_(&weights, 0.0), result, seed),
        false => {
            // Each class waits for an exponentially distributed time, shorter by its weight; the first come first.
            let waits = (1.0 - Tensor::rand_with(shape, DType::F64, seed)).log() / -weights;
            let (first, order) = is_drawn.where_(waits, f64::INFINITY).topk(samples, -1, false);
            first.isfinite().where_(order, classes as i64)
        }
    };
    // Refuses what is behind the last class.
    looked_up(call, &counting(classes), &drawn)
}

/// The classes among whose running sums random parts of the whole are.
fn by_sums(is_drawn: &Tensor, weights: &Tensor, result: Shape, seed: u64) -> Tensor {
    // Sums in parts can be rounded otherwise than those before them: they never become less, and grow only where a class is
    // drawn, so that no part falls upon another.
    let sums = is_drawn.where_(weights.cumsum(-1), 0.0).cummax(-1);
    let parts = Tensor::rand_with(result, DType::F64, seed) * sums.slice(-1, -1..);
    sums.searchsorted(&parts, true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Device;

    fn weights() -> Tensor {
        Tensor::from([1.0f32, 0.0, 2.0, f32::NAN, 5.0, -3.0]).to(&Device::interpreter())
    }

    #[test]
    fn classes_come_as_often_as_they_weigh() {
        let drawn = weights().multinomial(8000, true, 1).bincount(6).to_vec::<i64>().unwrap();
        let first = weights().expand([8000, 6]).multinomial(1, false, 2).ravel();
        for counts in [drawn, first.bincount(6).to_vec::<i64>().unwrap()] {
            // Four standard deviations.
            for (count, expected) in counts.iter().zip([1000i64, 0, 2000, 0, 5000, 0]) {
                assert!((count - expected).abs() <= expected.min(1) * 180, "{counts:?}");
            }
        }
    }

    #[test]
    fn shares_are_near_the_classes_that_are_drawn() {
        let logits = Tensor::from([1.0f32, 0.0, 3.0]).to(&Device::interpreter()).expand([4000, 3]);
        let softmax = logits.select(0, 0).softmax(0).to_vec::<f32>().unwrap();
        let hard = logits.gumbel_softmax(0.5, true, 1, 7);
        for (count, share) in hard.sum(0).to_vec::<f32>().unwrap().iter().zip(softmax) {
            let deviation = (4000.0 * share * (1.0 - share)).sqrt();
            assert!((count - 4000.0 * share).abs() < 4.0 * deviation, "{count} {share}");
        }
        let soft = logits.gumbel_softmax(0.5, false, 1, 7);
        assert!((soft.sum(1) - 1.0).abs().max(..).item::<f32>().unwrap() < 1e-6);
        assert_eq!(soft.argmax(1).to_vec::<i64>().unwrap(), hard.argmax(1).to_vec::<i64>().unwrap());
        let columns = logits.t().gumbel_softmax(1e-3, true, 0, 7);
        assert_eq!(columns.sum(0).to_vec::<f32>().unwrap(), [1.0; 4000]);
        let (half, none) = (Tensor::zeros([2, 0], DType::F16), Tensor::scalar(0.5f32));
        assert_eq!(half.gumbel_softmax(1.0, true, 1, 7).dtype().unwrap(), DType::F16);
        assert_eq!(
            none.to(&Device::interpreter()).gumbel_softmax(1.0, false, 0, 7).item::<f32>().unwrap(),
            1.0
        );
    }

    #[test]
    fn without_replacement_none_comes_twice() {
        let drawn = weights().expand([50, 6]).multinomial(3, false, 3);
        assert_eq!(drawn.sort(1, false).0.select(0, 0).to_vec::<i64>().unwrap(), [0, 2, 4]);
        let counts = drawn.ravel().bincount(6).to_vec::<i64>().unwrap();
        assert_eq!(counts, [50, 0, 50, 0, 50, 0]);
    }
}
