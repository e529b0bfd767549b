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
    ///   of which is 0. Any other order, and rows before the first bag, are an
    ///   [`IndexOutOfRange`](crate::Error::IndexOutOfRange) when the values are asked for; a bag that begins behind the last row
    ///   is empty.
    /// - `factors`, in the integers' shape, multiply the rows that are summed: PyTorch's `per_sample_weights`.
    ///
    /// What pads bags to equal lengths is left out by [`Tensor::embedding_bag_padded`].
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
        weights: impl AsRef<Tensor>,
        offsets: Option<&Tensor>,
        factors: Option<&Tensor>,
        reduce: ScatterReduction,
    ) -> Tensor {
        let weights = weights.as_ref();
        let call = Call::here("embedding_bag");
        call.composed(|| bags(call, [self, weights], offsets, factors, reduce, None))
    }

    /// [`Tensor::embedding_bag`] without the rows that are named by one of the integers, PyTorch's `padding_idx`: they are not
    /// combined and do not count in means, and a bag of nothing else is 0.
    ///
    /// Invalid where `embedding_bag` is, and for a padding that names no row of the weights.
    ///
    /// ```
    /// use lazuli::{ScatterReduction, Tensor};
    /// let weights = Tensor::from_slice(&[9.0f32, 9.0, 1.0, 2.0, 3.0, 4.0], [3, 2]);
    /// let words = Tensor::from_slice(&[1, 2, 1, 0, 0, 0], [3, 2]);
    /// let means = words.embedding_bag_padded(&weights, None, None, ScatterReduction::Mean, 0);
    /// assert_eq!(means.to_vec::<f32>()?, [2.0, 3.0, 1.0, 2.0, 0.0, 0.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn embedding_bag_padded(
        &self,
        weights: impl AsRef<Tensor>,
        offsets: Option<&Tensor>,
        factors: Option<&Tensor>,
        reduce: ScatterReduction,
        padding: usize,
    ) -> Tensor {
        let weights = weights.as_ref();
        let call = Call::here("embedding_bag_padded");
        call.composed(|| bags(call, [self, weights], offsets, factors, reduce, Some(padding)))
    }
}

fn bags(
    call: Call,
    [index, weights]: [&Tensor; 2],
    offsets: Option<&Tensor>,
    factors: Option<&Tensor>,
    reduce: ScatterReduction,
    padding: Option<usize>,
) -> Result<Tensor> {
    needs_index(call, index)?;
    call.needs_float(weights)?;
    let ((shape, _), (table, dtype)) = (index.known()?, weights.known()?);
    let rows = index.embedding(weights);
    let features = rows.known()?.0.last().copied().unwrap_or(1);
    let rows = scaled(call, &rows.cast(dtype.compute()), factors, shape, reduce)?;
    let counts = match padding {
        Some(padding) if padding >= table[0] => {
            return call
                .fail(format!("row {padding} of weights {table} cannot be the padding: there is none"));
        }
        Some(padding) => Some(index.ne(padding as i64)),
        None => None,
    };
    let combined = match (offsets, counts) {
        (Some(offsets), counts) => by_offsets(call, shape, &rows, offsets, reduce, counts.as_ref())?,
        (None, _) if shape.rank() != 2 => {
            return call.fail(format!(
                "without offsets the index must be (bags, rows), got shape {shape}; give offsets, or reshape it"
            ));
        }
        (None, _) if shape[1] == 0 => rows.reshape([0, features]).pad(&[(0, shape[0]), (0, 0)], 0),
        (None, None) => along(&rows, reduce),
        (None, Some(counts)) => {
            let neutral = match reduce {
                ScatterReduction::Sum | ScatterReduction::Mean => 0.0,
                ScatterReduction::Prod => 1.0,
                ScatterReduction::Amax => f64::NEG_INFINITY,
                ScatterReduction::Amin => f64::INFINITY,
            };
            let rows = counts.unsqueeze(2).where_(&rows, neutral);
            let count = counts.count_nonzero_keepdim(1);
            let combined = match reduce {
                ScatterReduction::Mean => rows.sum(1) / count.cast(dtype.compute()),
                _ => along(&rows, reduce),
            };
            count.gt(0).where_(combined, 0.0)
        }
    };
    Ok(combined.cast(dtype))
}

/// The rows of each bag combined.
fn along(rows: &Tensor, reduce: ScatterReduction) -> Tensor {
    match reduce {
        ScatterReduction::Sum => rows.sum(1),
        ScatterReduction::Prod => rows.prod(1),
        ScatterReduction::Mean => rows.mean(1),
        ScatterReduction::Amax => rows.max(1),
        ScatterReduction::Amin => rows.min(1),
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
    counts: Option<&Tensor>,
) -> Result<Tensor> {
    needs_index(call, offsets)?;
    let (own, (all, dtype)) = (offsets.known()?.0, rows.known()?);
    let (&[count], &[bags], &[_, features]) = (&shape[..], &own[..], &all[..]) else {
        return call
            .fail(format!("index and offsets must have one dimension each, got shapes {shape} and {own}"));
    };
    // How many bags have begun where a row is: it belongs to the last of them.
    let offsets = offsets.cast(DType::I64);
    let begun = offsets.searchsorted(&counting(count), true);
    // In no order they say nothing, which is as if no bag had begun.
    let bag = if bags > 1 { offsets.diff(0).ge(0).all(..).where_(begun - 1, -1) } else { begun - 1 };
    // Rows that do not count are in a bag of their own.
    let bag = match counts {
        Some(counts) => counts.logical_or(bag.lt(0)).where_(&bag, bags as i64),
        None => bag,
    };
    let bag = bag.unsqueeze(1).broadcast_to([count, features]);
    let all = Tensor::zeros([bags + usize::from(counts.is_some()), features], dtype);
    Ok(all.scatter_reduce(0, &bag, rows, reduce, false).narrow(0, 0, bags))
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
    fn padding_is_left_out_with_and_without_offsets() {
        let weights = (interpreted([4, 1]) + 1.0).slice_assign(crate::s![3], f64::NAN);
        let words = Tensor::from_slice(&[0i64, 3, 2, 3, 3, 3], [3, 2]).to(&Device::interpreter());
        let offsets = (counting(3) * 2).to(&Device::interpreter());
        for (reduce, expected) in [
            (ScatterReduction::Sum, [1.0f32, 3.0, 0.0]),
            (ScatterReduction::Mean, [1.0, 3.0, 0.0]),
            (ScatterReduction::Prod, [1.0, 3.0, 0.0]),
            (ScatterReduction::Amax, [1.0, 3.0, 0.0]),
            (ScatterReduction::Amin, [1.0, 3.0, 0.0]),
        ] {
            let bags =
                |words: &Tensor, offsets| words.embedding_bag_padded(&weights, offsets, None, reduce, 3);
            assert_eq!(bags(&words, None).to_vec::<f32>().unwrap(), expected, "{reduce:?}");
            assert_eq!(bags(&words.ravel(), Some(&offsets)).to_vec::<f32>().unwrap(), expected, "{reduce:?}");
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
