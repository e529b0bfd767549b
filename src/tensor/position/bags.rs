//! Rows of a table that are named in bags, combined.

use super::gather::needs_index;
use crate::tensor::arguments::call::Call;
use crate::tensor::make::create::counting;
use crate::{DType, Result, ScatterReduction, Shape, Tensor};

impl Tensor {
    /// The rows of a table of `weights` that these integers name, combined bag by bag: `[bags, features]` in the weights'
    /// dtype, 0 for an empty bag. [`Tensor::embedding`] and a reduction, as PyTorch's `functional.embedding_bag`, whose mode is
    /// [`ScatterReduction::Mean`] unless another is given.
    ///
    /// - Without `offsets` these integers are `[bags, rows]`.
    /// - With them they have one dimension, and bag `i` begins at element `offsets[i]`: integers in ascending order, the first
    ///   of which is 0. Rows before the first bag are an [`IndexOutOfRange`](crate::Error::IndexOutOfRange) when the values are
    ///   asked for; a bag that begins behind the last row is empty.
    /// - `factors`, in the integers' shape, multiply the rows that are summed: PyTorch's `per_sample_weights`.
    ///
    /// Index out of range: as [`Tensor::index_select`]. Invalid for weights of integers or bools, for factors beside anything
    /// but [`ScatterReduction::Sum`], and where a shape does not fit.
    ///
    /// ```
    /// use lazuli::{ScatterReduction, Tensor};
    /// let weights = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], [3, 2]);
    /// let (words, offsets) = (Tensor::from_slice(&[2, 0, 1], [3]), Tensor::from_slice(&[0, 2, 2], [3]));
    /// let sums = words.embedding_bag(&weights, Some(&offsets), None, ScatterReduction::Sum);
    /// assert_eq!(sums.to_vec::<f32>()?, [6.0, 8.0, 0.0, 0.0, 3.0, 4.0]);
    /// let means = words.unsqueeze(0).embedding_bag(&weights, None, None, ScatterReduction::Mean);
    /// assert_eq!(means.to_vec::<f32>()?, [3.0, 4.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn embedding_bag(
        &self,
        weights: &Tensor,
        offsets: Option<&Tensor>,
        factors: Option<&Tensor>,
        reduce: ScatterReduction,
    ) -> Tensor {
        let call = Call::here("embedding_bag");
        call.composed(|| {
            needs_index(call, self)?;
            call.needs_float(weights)?;
            let (shape, dtype) = (&self.node.shape, weights.node.dtype);
            let rows = self.embedding(weights);
            let features = match rows.known()?.0[..] {
                [.., features] => features,
                [] => 1,
            };
            let rows = scaled(call, &rows.cast(dtype.compute()), factors, shape, reduce)?;
            let combined = match offsets {
                Some(offsets) => by_offsets(call, shape, &rows, offsets, reduce),
                None if shape.rank() != 2 => call.fail(format!(
                    "without offsets the index must be (bags, rows), got shape {shape}; give offsets, or reshape it"
                )),
                None if shape[1] == 0 => Ok(rows.reshape([0, features]).pad(&[(0, shape[0]), (0, 0)], 0)),
                None => Ok(match reduce {
                    ScatterReduction::Sum => rows.sum(1),
                    ScatterReduction::Prod => rows.prod(1),
                    ScatterReduction::Mean => rows.mean(1),
                    ScatterReduction::Amax => rows.max(1),
                    ScatterReduction::Amin => rows.min(1),
                }),
            };
            Ok(combined?.cast(dtype))
        })
    }
}

/// The rows times their factors.
fn scaled(
    call: Call,
    rows: &Tensor,
    factors: Option<&Tensor>,
    shape: &Shape,
    reduce: ScatterReduction,
) -> Result<Tensor> {
    let Some(factors) = factors else { return Ok(rows.clone()) };
    let (own, dtype) = factors.known()?;
    if reduce != ScatterReduction::Sum {
        return call.fail(format!("factors are for sums, not for {reduce:?}"));
    }
    if own != shape || !dtype.is_float() {
        return call
            .fail(format!("the factors must be floats of the index's shape {shape}, got {dtype} {own}"));
    }
    Ok(rows * factors.cast(rows.known()?.1).unsqueeze(-1))
}

fn by_offsets(
    call: Call,
    shape: &Shape,
    rows: &Tensor,
    offsets: &Tensor,
    reduce: ScatterReduction,
) -> Result<Tensor> {
    needs_index(call, offsets)?;
    let (own, (all, dtype)) = (offsets.known()?.0, rows.known()?);
    let (&[count], &[bags], &[_, features]) = (&shape[..], &own[..], &all[..]) else {
        return call
            .fail(format!("index and offsets must have one dimension each, got shapes {shape} and {own}"));
    };
    // How many bags have begun where a row is: it belongs to the last of them.
    let begun = offsets.cast(DType::I64).searchsorted(&counting(count), true);
    let bag = (begun - 1).unsqueeze(1).broadcast_to([count, features]);
    Ok(Tensor::zeros([bags, features], dtype).scatter_reduce(0, &bag, rows, reduce, false))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Device, bf16};

    fn interpreted(shape: [usize; 2]) -> Tensor {
        counting(shape[0] * shape[1]).cast(DType::F32).reshape(shape).to(&Device::interpreter())
    }

    #[test]
    fn empty_bags_are_zero() {
        let weights = interpreted([3, 2]);
        let none = Tensor::zeros([2, 0], DType::I64).to(&Device::interpreter());
        for reduce in [ScatterReduction::Sum, ScatterReduction::Mean, ScatterReduction::Amax] {
            let bags = |words: &Tensor, offsets| words.embedding_bag(&weights, offsets, None, reduce);
            assert_eq!(bags(&none, None).to_vec::<f32>().unwrap(), [0.0; 4], "{reduce:?}");
            let offsets = Tensor::zeros([2], DType::I32).to(&Device::interpreter());
            assert_eq!(bags(&none.ravel(), Some(&offsets)).to_vec::<f32>().unwrap(), [0.0; 4], "{reduce:?}");
            // The last bag begins behind the only word.
            let (word, offsets) = (offsets.narrow(0, 0, 1) + 2, counting(2).to(&Device::interpreter()));
            let found = bags(&word, Some(&offsets)).to_vec::<f32>().unwrap();
            assert_eq!(found, [4.0, 5.0, 0.0, 0.0], "{reduce:?}");
        }
    }

    #[test]
    fn sums_of_16_bits_are_rounded_once() {
        let weights = (interpreted([2, 1]) * 255.0 + 1.0).cast(DType::BF16);
        // 256 + 1 + 1: in steps, each sum would be 256.
        let words = Tensor::from_slice(&[1i64, 0, 0], [1, 3]).to(&Device::interpreter());
        let sum = words.embedding_bag(&weights, None, None, ScatterReduction::Sum);
        assert_eq!(sum.to_vec::<bf16>().unwrap(), [bf16::from_f32(258.0)]);
    }
}
