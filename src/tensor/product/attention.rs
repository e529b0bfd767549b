//! Attention.

use super::matmul::matmul;
use crate::graph::op::ConstantRole;
use crate::tensor::arguments::call::Call;
use crate::tensor::arguments::promotion::{Operand, result_type};
use crate::{DType, Result, Scalar, Shape, Tensor};

/// What [`Tensor::scaled_dot_product_attention`] does beside its products.
///
/// ```
/// use lazuli::{Attention, DType, Tensor};
/// let x = Tensor::rand([2, 4, 16, 8], 1);
/// let y = x.scaled_dot_product_attention(&x, &x, &Attention::new().causal(true).scale(0.5));
/// assert_eq!(y.shape()?, x.shape()?);
/// # Ok::<(), lazuli::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Attention {
    mask: Option<Tensor>,
    causal: Option<Causal>,
    softcap: Option<f64>,
    scale: Option<f64>,
    dropout: Option<(f64, u64)>,
    grouped: bool,
}

/// Which keys a query sees of those before it.
#[derive(Clone, Copy, Debug)]
enum Causal {
    /// Up to its own number.
    FromTheFirst,
    /// The last query sees all.
    FromTheLast,
}

impl Attention {
    /// No mask, no dropout, scores divided by the root of the queries' length, as many heads of keys as of queries.
    ///
    /// ```
    /// use lazuli::{Attention, Tensor};
    /// let (q, k) = (Tensor::zeros([1, 2], lazuli::DType::F32), Tensor::rand([3, 2], 1));
    /// let v = Tensor::from_slice(&[3.0f32, 6.0, 9.0], [3, 1]);
    /// let mean = q.scaled_dot_product_attention(&k, &v, &Attention::new());
    /// assert_eq!(mean.to_vec::<f32>()?, [6.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn new() -> Attention {
        Attention::default()
    }

    /// What the scores `[…, queries, keys]` are masked with; it broadcasts to them. Bools say which take part, numbers
    /// are added. Queries for which nothing takes part give zeros.
    ///
    /// ```
    /// use lazuli::{Attention, Tensor};
    /// let (q, k) = (Tensor::rand([2, 4], 1), Tensor::rand([2, 4], 2));
    /// let v = Tensor::from_slice(&[1.0f32, 5.0], [2, 1]);
    /// let mask = Tensor::from_slice(&[true, false, false, false], [2, 2]);
    /// let y = q.scaled_dot_product_attention(&k, &v, &Attention::new().mask(&mask));
    /// assert_eq!(y.to_vec::<f32>()?, [1.0, 0.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn mask(mut self, mask: impl AsRef<Tensor>) -> Attention {
        let mask = mask.as_ref();
        self.mask = Some(mask.clone());
        self
    }

    /// Whether a query sees only the keys up to its own position, counted from the first ones: PyTorch's `is_causal`.
    ///
    /// ```
    /// use lazuli::{Attention, Tensor};
    /// let (x, v) = (Tensor::rand([2, 4], 1), Tensor::from_slice(&[1.0f32, 5.0], [2, 1]));
    /// let y = x.scaled_dot_product_attention(&x, &v, &Attention::new().causal(true));
    /// assert_eq!(y.select(0, 0).to_vec::<f32>()?, [1.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn causal(mut self, causal: bool) -> Attention {
        self.causal = causal.then_some(Causal::FromTheFirst);
        self
    }

    /// Whether a query sees only the keys up to its own position, counted from the last ones: the last query sees all. So queries
    /// follow the keys of a cache. PyTorch's `causal_lower_right`; queries before the first key give zeros.
    ///
    /// ```
    /// use lazuli::{Attention, Tensor};
    /// let (q, k) = (Tensor::zeros([2, 4], lazuli::DType::F32), Tensor::rand([3, 4], 2));
    /// let v = Tensor::from_slice(&[1.0f32, 5.0, 9.0], [3, 1]);
    /// let y = q.scaled_dot_product_attention(&k, &v, &Attention::new().causal_lower_right(true));
    /// assert_eq!(y.round().to_vec::<f32>()?, [3.0, 5.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn causal_lower_right(mut self, causal: bool) -> Attention {
        self.causal = causal.then_some(Causal::FromTheLast);
        self
    }

    /// A bound of the scores, before masks: `cap * tanh(scores / cap)`, as ONNX's `softcap`. Invalid unless it is positive and finite.
    ///
    /// Gemma Team, "Gemma 2: improving open language models at a practical size", 2024.
    ///
    /// ```
    /// use lazuli::{Attention, Tensor};
    /// let q = Tensor::from_slice(&[100.0f32, 0.0, 0.0, 100.0], [2, 2]);
    /// let values = Tensor::from_slice(&[1.0f32, 2.0], [2, 1]);
    /// let y = q.scaled_dot_product_attention(&q, &values, &Attention::new().softcap(1.0));
    /// let most = 1f32.exp() / (1f32.exp() + 1.0); // tanh of much is 1, of nothing 0
    /// assert!((y.select(0, 0).item::<f32>()? - (2.0 - most)).abs() < 1e-6);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn softcap(mut self, cap: f64) -> Attention {
        self.softcap = Some(cap);
        self
    }

    /// What the scores are multiplied with, in place of `1 / sqrt(length)` of a query.
    ///
    /// ```
    /// use lazuli::{Attention, Tensor};
    /// let (x, v) = (Tensor::rand([2, 4], 1), Tensor::from_slice(&[1.0f32, 5.0], [2, 1]));
    /// let y = x.scaled_dot_product_attention(&x, &v, &Attention::new().scale(0.0));
    /// assert_eq!(y.to_vec::<f32>()?, [3.0, 3.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn scale(mut self, scale: f64) -> Attention {
        self.scale = Some(scale);
        self
    }

    /// [`Tensor::dropout`] of the weights, with that probability and seed.
    ///
    /// ```
    /// use lazuli::{Attention, Tensor};
    /// let x = Tensor::rand([2, 4], 1);
    /// let y = x.scaled_dot_product_attention(&x, &x, &Attention::new().dropout(1.0, 7));
    /// assert_eq!(y.to_vec::<f32>()?, [0.0; 8]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn dropout(mut self, p: f64, seed: u64) -> Attention {
        self.dropout = Some((p, seed));
        self
    }

    /// Whether several heads of queries share a head of keys and values: their number, third from the end, is a multiple
    /// of that of the keys. PyTorch's `enable_gqa`.
    ///
    /// ```
    /// use lazuli::{Attention, Shape, Tensor};
    /// let (q, k) = (Tensor::rand([8, 5, 4], 1), Tensor::rand([2, 6, 4], 2));
    /// let y = q.scaled_dot_product_attention(&k, &k, &Attention::new().grouped(true));
    /// assert_eq!(y.shape()?, Shape::from([8, 5, 4]));
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn grouped(mut self, grouped: bool) -> Attention {
        self.grouped = grouped;
        self
    }
}

impl Tensor {
    /// `softmax(self @ keysᵀ * scale + mask) @ values`: queries `[…, queries, length]`, keys `[…, keys, length]`, values
    /// `[…, keys, width]`. The dimensions before broadcast; dtypes are promoted. 16-bit floats are computed in `F32` and
    /// rounded once, but that a fused kernel may round the weights of 16-bit results too, as PyTorch does.
    ///
    /// A. Vaswani et al., "Attention is all you need", 2017.
    ///
    /// Invalid for integers and bools, for lengths that differ, and for a mask that does not fit.
    ///
    /// ```
    /// use lazuli::{Attention, Tensor};
    /// let q = Tensor::from_slice(&[100.0f32, 0.0, 0.0, 100.0], [2, 2]);
    /// let values = Tensor::from_slice(&[1.0f32, 2.0], [2, 1]);
    /// let y = q.scaled_dot_product_attention(&q, &values, &Attention::new());
    /// assert_eq!(y.to_vec::<f32>()?, [1.0, 2.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn scaled_dot_product_attention(
        &self,
        keys: impl AsRef<Tensor>,
        values: impl AsRef<Tensor>,
        attention: &Attention,
    ) -> Tensor {
        let (keys, values) = (keys.as_ref(), values.as_ref());
        let call = Call::here("scaled_dot_product_attention");
        call.composed(|| attend(call, [self, keys, values], attention))
    }
}

fn attend(call: Call, tensors: [&Tensor; 3], attention: &Attention) -> Result<Tensor> {
    for tensor in tensors {
        call.needs_float(tensor)?;
        if tensor.node.shape.rank() < 2 {
            return call.fail(format!("needs at least 2 dimensions, got shape {}", tensor.node.shape));
        }
    }
    let dtype = result_type(&tensors.map(Operand::from))?;
    let [q, k, v] = tensors.map(|tensor| tensor.cast(dtype.compute()));
    let [queries, keys, values] = tensors.map(|tensor| &tensor.node.shape);
    let length = queries[queries.rank() - 1];
    if length != keys[keys.rank() - 1] || keys[keys.rank() - 2] != values[values.rank() - 2] {
        return call.fail(format!(
            "queries and keys must be equally long, and keys and values equally many, got shapes {queries}, {keys} and {values}"
        ));
    }
    let heads = if attention.grouped { Some(heads(call, [queries, keys, values])?) } else { None };
    // Heads that share keys are a dimension of their own, along which the keys broadcast.
    let apart = |x: &Tensor| heads.map_or(x.clone(), |(shared, each)| x.unflatten(-3, [shared, each]));
    let together = |x: Tensor| if heads.is_some() { x.flatten(-4..-2) } else { x };
    let beside = |x: &Tensor| if heads.is_some() { x.unsqueeze(-3) } else { x.clone() };
    let (scores, _) = matmul(call, &apart(&q), &beside(&k).transpose(-2, -1))?;
    let scale = attention.scale.unwrap_or(1.0 / (length as f64).sqrt());
    let mut scores = together(scores) * scale;
    if let Some(cap) = attention.softcap {
        call.needs(cap > 0.0 && cap.is_finite(), "the cap of scores must be positive and finite", cap)?;
        scores = (scores * (1.0 / cap)).tanh() * cap;
    }
    let scores = masked(call, scores, attention)?;
    let mut weights = scores.softmax(-1);
    let may_see_nothing = matches!(attention.causal, Some(Causal::FromTheLast))
        && queries[queries.rank() - 2] > keys[keys.rank() - 2];
    if attention.mask.is_some() || may_see_nothing {
        let none = scores.max_keepdim(-1).eq(f64::NEG_INFINITY);
        weights = filled(call, &weights, &none, 0.0)?;
    }
    if let Some((p, seed)) = attention.dropout {
        weights = weights.dropout(p, seed);
    }
    weights.validity()?;
    let (sum, _) = matmul(call, &apart(&weights), &beside(&v))?;
    Ok(together(sum).cast(dtype))
}

/// How many heads of keys there are, and heads of queries for each.
fn heads(call: Call, [queries, keys, values]: [&Shape; 3]) -> Result<(usize, usize)> {
    let fail = || {
        call.fail(format!(
            "the heads of queries must be a multiple of those of keys and values, got shapes {queries}, {keys} and {values}"
        ))
    };
    let head = |shape: &Shape| shape.rank().checked_sub(3).map(|axis| shape[axis]);
    let (Some(all), Some(shared), Some(others)) = (head(queries), head(keys), head(values)) else {
        return fail();
    };
    match all.checked_rem(shared) {
        Some(0) if shared == others => Ok((shared, all / shared)),
        _ => fail(),
    }
}

fn masked(call: Call, scores: Tensor, attention: &Attention) -> Result<Tensor> {
    scores.validity()?;
    let shape = scores.node.shape.clone();
    let [queries, keys] = [shape[shape.rank() - 2], shape[shape.rank() - 1]];
    let mut scores = scores;
    if let Some(causal) = attention.causal {
        let before = match causal {
            Causal::FromTheFirst => 0,
            Causal::FromTheLast => keys as i64 - queries as i64,
        };
        let position = |first: i64, count: usize| Tensor::arange(first, first + count as i64, 1);
        let later = position(0, keys).gt(position(before, queries).unsqueeze(1));
        scores = filled(call, &scores, &later, f64::NEG_INFINITY)?;
    }
    if let Some(mask) = &attention.mask {
        let (own, dtype) = mask.known()?;
        if call.broadcast(&[own, &shape])? != shape {
            return call.fail(format!("the mask {own} does not broadcast to the scores {shape}"));
        }
        scores = match dtype {
            DType::Bool => filled(call, &scores, &mask.logical_not(), f64::NEG_INFINITY)?,
            _ if dtype.is_float() => &scores + mask.cast(scores.node.dtype),
            _ => return call.fail(format!("the mask must be bool or float, got {dtype}")),
        };
    }
    Ok(scores)
}

/// A number where a mask holds: part of the kernel's text, so that what follows from it is known there.
fn filled(call: Call, x: &Tensor, mask: &Tensor, value: f64) -> Result<Tensor> {
    let (shape, dtype) = x.known()?;
    let value = call.filled(Scalar::from_f64(dtype, value), ConstantRole::Literal, shape)?;
    Ok(mask.where_(value, x))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Device;
    use crate::tensor::tests::mistake;

    fn numbers(shape: [usize; 2], seed: u64) -> Tensor {
        Tensor::rand(shape, seed).cast(DType::F64).to(&Device::interpreter())
    }

    #[test]
    fn queries_follow_a_cache() {
        let (k, v) = (numbers([5, 4], 1), numbers([5, 3], 2));
        let all = numbers([5, 4], 3);
        let whole = all.scaled_dot_product_attention(&k, &v, &Attention::new().causal(true));
        let lower = Attention::new().causal_lower_right(true);
        // The last queries alone give what they give among all.
        let last = all.slice(0, 3..).scaled_dot_product_attention(&k, &v, &lower);
        assert!((last - whole.slice(0, 3..)).abs().max(..).item::<f64>().unwrap() < 1e-15);
        // Of more queries than keys, the first see nothing.
        let few = all.scaled_dot_product_attention(k.slice(0, ..2), v.slice(0, ..2), &lower);
        let few = few.to_vec::<f64>().unwrap();
        assert_eq!(few[..9], [0.0; 9]);
        assert_eq!(few[9..12], v.slice(0, ..1).ravel().to_vec::<f64>().unwrap());
    }

    #[test]
    fn a_cap_bounds_scores_before_masks() {
        let (q, k, v) = (numbers([3, 4], 1) * 50.0, numbers([5, 4], 2) * 50.0, numbers([5, 3], 3));
        let y = q.scaled_dot_product_attention(&k, &v, &Attention::new().softcap(2.0).causal(true));
        let scores = (q.matmul(k.t()) / 2.0 / 2.0).tanh() * 2.0;
        let later = Tensor::tri(3, 5, 0, DType::Bool).to(&Device::interpreter()).logical_not();
        let expected = later.where_(f64::NEG_INFINITY, scores).softmax(-1).matmul(&v);
        assert!((y - expected).abs().max(..).item::<f64>().unwrap() < 1e-14);
        for cap in [0.0, -1.0, f64::INFINITY] {
            mistake!(
                q.scaled_dot_product_attention(&k, &v, &Attention::new().softcap(cap)),
                &format!(
                    "scaled_dot_product_attention: the cap of scores must be positive and finite, got {cap}"
                )
            );
        }
    }
}
