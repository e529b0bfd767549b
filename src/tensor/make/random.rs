//! Random numbers beyond the uniform ones: functions of seed and position, so the same in every run, on every
//! device and however the program is fused.

use std::f64::consts::TAU;

use crate::tensor::arguments::call::Call;
use crate::tensor::map::operands::cast;
use crate::{DType, Operand, Result, Scalar, Shape, Tensor};

impl Tensor {
    /// Random `F32` numbers of the standard normal distribution, from the seed and the element's index; see
    /// [`Tensor::randn_with`] for other dtypes.
    ///
    /// G. E. P. Box, M. E. Muller, "A note on the generation of random normal deviates", 1958.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let noise = Tensor::randn([1000], 42);
    /// assert!(noise.mean(..).item::<f32>()?.abs() < 0.1);
    /// assert!((noise.std(.., 1).item::<f32>()? - 1.0).abs() < 0.1);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn randn(shape: impl Into<Shape>, seed: u64) -> Tensor {
        let (call, shape) = (Call::here("randn"), shape.into());
        call.composed(|| randn(call, shape, DType::F32, seed))
    }

    /// Random numbers of the standard normal distribution in a float dtype; 16-bit floats are rounded `F32`.
    ///
    /// Invalid for a dtype that is not a float.
    ///
    /// ```
    /// use lazuli::{DType, Tensor};
    /// assert_eq!(Tensor::randn_with([2, 3], DType::F64, 7).dtype()?, DType::F64);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn randn_with(shape: impl Into<Shape>, dtype: DType, seed: u64) -> Tensor {
        let (call, shape) = (Call::here("randn_with"), shape.into());
        call.composed(|| randn(call, shape, dtype, seed))
    }

    /// Random integers from `low` up to, but without, `high`, all equally likely: `I64`.
    ///
    /// Invalid if there is no integer between them, or more than 2^53.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let dice = Tensor::randint(1, 7, [100], 42);
    /// assert!(dice.to_vec::<i64>()?.iter().all(|eyes| (1..=6).contains(eyes)));
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn randint(low: i64, high: i64, shape: impl Into<Shape>, seed: u64) -> Tensor {
        let (call, shape) = (Call::here("randint"), shape.into());
        call.composed(|| match high as i128 - low as i128 {
            ..=0 => call.fail(format!("there is no integer from {low} up to, but without, {high}")),
            // A uniform F64 has so many values.
            count if count > 1 << 53 => call.fail(format!(
                "{count} integers from {low} to {high} are more than the 2^53 that can be told apart"
            )),
            count => {
                let uniform = Tensor::rand_with(shape, DType::F64, seed);
                Ok((uniform * count as f64).floor().cast(DType::I64) + low)
            }
        })
    }

    /// Random integers from `low` up to, but without, `high`, as [`Tensor::randint`] draws them, with this tensor's shape, dtype and
    /// device. PyTorch's `randint_like`.
    ///
    /// Invalid for bools, for integers that the dtype does not have, and for what [`Tensor::randint`] is.
    ///
    /// ```
    /// use lazuli::{DType, Tensor};
    /// let x = Tensor::zeros([2, 3], DType::U8).randint_like(0, 256, 42);
    /// assert_eq!(x.dtype()?, DType::U8);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn randint_like(&self, low: i64, high: i64, seed: u64) -> Tensor {
        let call = Call::here("randint_like");
        call.composed(|| {
            let (shape, dtype) = self.known()?;
            if dtype == DType::Bool {
                return call.fail(format!("integers are not bools, got {dtype} {shape}"));
            }
            let is_in = |number: i64| !dtype.is_int() || Scalar::from_i64(dtype, number).as_i64() == number;
            if !is_in(low) || !is_in(high.saturating_sub(1)) {
                return call
                    .fail(format!("not all integers from {low} up to, but without, {high} are {dtype}"));
            }
            on_its_device(call, self, Tensor::randint(low, high, shape, seed).cast(dtype))
        })
    }

    /// Random numbers of normal distributions, each with its own mean and standard deviation, of which one may be a number; the others
    /// broadcast. In the dtype of the mean, or else of the deviation, which must be a float. PyTorch's `normal`.
    ///
    /// Invalid for two numbers: see [`Tensor::randn`]. A negative deviation, which PyTorch refuses, is like a positive one.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let means = Tensor::from([0.0f32, 100.0]);
    /// let x = Tensor::normal(&means, 0.5, 42).to_vec::<f32>()?;
    /// assert!(x[0].abs() < 10.0 && (x[1] - 100.0).abs() < 10.0);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn normal(mean: impl Into<Operand>, std: impl Into<Operand>, seed: u64) -> Tensor {
        let (call, mean, std) = (Call::here("normal"), mean.into(), std.into());
        call.composed(|| {
            let first = match (&mean, &std) {
                (Operand::Tensor(first), _) | (_, Operand::Tensor(first)) => first.clone(),
                _ => return call.fail("takes a tensor of means or of deviations, got two numbers"),
            };
            let dtype = first.known()?.1;
            call.needs_float(&first)?;
            let shape = call.broadcast(&[&mean.shape(), &std.shape()])?;
            let wide = dtype.compute();
            let random = on_its_device(call, &first, randn(call, shape, wide, seed)?)?;
            let of = |operand: Operand| cast(call, operand, wide);
            Ok((random * of(std)? + of(mean)?).cast(dtype))
        })
    }

    /// 1 with the probability that the element says, else 0, in this tensor's dtype. What is 0 or less, or NaN, is never
    /// 1, and what is 1 or more always: PyTorch refuses probabilities outside of 0 to 1, which here are not looked at
    /// when this is recorded.
    ///
    /// Invalid for integers and bools.
    ///
    /// ```
    /// use lazuli::{DType, Tensor};
    /// let coins = Tensor::full([1000], 0.5, DType::F32).bernoulli(42);
    /// assert!((coins.mean(..).item::<f32>()? - 0.5).abs() < 0.1);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn bernoulli(&self, seed: u64) -> Tensor {
        let call = Call::here("bernoulli");
        call.composed(|| {
            let (shape, dtype) = self.known()?;
            call.needs_float(self)?;
            Ok(Tensor::rand_with(shape, wide(dtype), seed).lt(self.cast(wide(dtype))).cast(dtype))
        })
    }

    /// Each element is zero with probability `p`, else divided by `1 - p`: what PyTorch's `dropout` does in
    /// training. Another step of training takes another seed; the steps of a scan draw by their position.
    ///
    /// N. Srivastava et al., "Dropout: a simple way to prevent neural networks from overfitting", 2014.
    ///
    /// Invalid for integers and bools, and for a `p` outside of 0 to 1.
    ///
    /// ```
    /// use lazuli::{DType, Tensor};
    /// let x = Tensor::ones([1000], DType::F32).dropout(0.2, 42);
    /// assert!(x.to_vec::<f32>()?.iter().all(|&x| x == 0.0 || x == 1.25));
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn dropout(&self, p: f64, seed: u64) -> Tensor {
        let call = Call::here("dropout");
        call.composed(|| {
            let kept = kept(call, self, p, seed)?;
            Ok(dropped(self, &kept, p))
        })
    }

    /// [`Tensor::dropout`] of whole channels, of `[batch, channels, length]` or `[channels, length]`. PyTorch's `dropout1d`.
    ///
    /// ```
    /// use lazuli::{DType, Tensor};
    /// let x = Tensor::ones([8, 3, 5], DType::F32).dropout1d(0.5, 42);
    /// assert!(x.sum(-1).to_vec::<f32>()?.iter().all(|&sum| sum == 0.0 || sum == 10.0));
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn dropout1d(&self, p: f64, seed: u64) -> Tensor {
        let call = Call::here("dropout1d");
        call.composed(|| channels_dropped(call, self, p, seed, [(2, 1), (3, 2)]))
    }

    /// [`Tensor::dropout`] of whole channels, of images `[batch, channels, height, width]` or, as in PyTorch, of
    /// `[batch, channels, length]`. PyTorch's `dropout2d`.
    ///
    /// J. Tompson et al., "Efficient object localization using convolutional networks", 2015.
    ///
    /// ```
    /// use lazuli::{DType, Tensor};
    /// let x = Tensor::ones([8, 3, 2, 2], DType::F32).dropout2d(0.5, 42);
    /// assert!(x.sum([-2, -1]).to_vec::<f32>()?.iter().all(|&sum| sum == 0.0 || sum == 8.0));
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn dropout2d(&self, p: f64, seed: u64) -> Tensor {
        let call = Call::here("dropout2d");
        call.composed(|| channels_dropped(call, self, p, seed, [(3, 2), (4, 2)]))
    }

    /// [`Tensor::dropout`] of whole channels, of volumes `[batch, channels, depth, height, width]` or
    /// `[channels, depth, height, width]`. PyTorch's `dropout3d`.
    ///
    /// ```
    /// use lazuli::{DType, Tensor};
    /// let x = Tensor::ones([3, 2, 2, 2], DType::F32).dropout3d(0.5, 42);
    /// assert!(x.sum([-3, -2, -1]).to_vec::<f32>()?.iter().all(|&sum| sum == 0.0 || sum == 16.0));
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn dropout3d(&self, p: f64, seed: u64) -> Tensor {
        let call = Call::here("dropout3d");
        call.composed(|| channels_dropped(call, self, p, seed, [(4, 1), (5, 2)]))
    }

    /// Dropout for [`Tensor::selu`]: each element has the value that is selu's limit with probability `p`, and all are scaled
    /// and moved so that mean 0 and variance 1 stay. What PyTorch's `alpha_dropout` does in training; seeds as for
    /// [`Tensor::dropout`].
    ///
    /// G. Klambauer et al., "Self-normalizing neural networks", 2017.
    ///
    /// Invalid for integers and bools, and for a `p` outside of 0 to 1.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::randn([2000], 1).alpha_dropout(0.2, 42);
    /// assert!(x.mean(..).item::<f32>()?.abs() < 0.1 && (x.std(.., 1).item::<f32>()? - 1.0).abs() < 0.1);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn alpha_dropout(&self, p: f64, seed: u64) -> Tensor {
        let call = Call::here("alpha_dropout");
        call.composed(|| {
            let (kept, dtype) = (kept(call, self, p, seed)?, self.known()?.1);
            // Of nothing that is kept, nothing is left.
            let scale =
                if p == 1.0 { 0.0 } else { 1.0 / ((SELU_LIMIT * SELU_LIMIT * p + 1.0) * (1.0 - p)).sqrt() };
            let moved = SELU_LIMIT * scale * p;
            let none = Tensor::zeros([], wide(dtype));
            let number = |number: f64| none.full_like(number);
            // A product, as of dropout.
            let scaled = self.cast(wide(dtype)) * kept.where_(number(scale), &none);
            Ok((scaled + kept.where_(number(moved), number(moved - SELU_LIMIT * scale))).cast(dtype))
        })
    }

    /// Uniform random numbers in [0, 1) with this tensor's shape, float dtype and device.
    ///
    /// ```
    /// use lazuli::{DType, Tensor};
    /// let x = Tensor::zeros([2, 3], DType::F16);
    /// assert_eq!(x.rand_like(42).dtype()?, DType::F16);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn rand_like(&self, seed: u64) -> Tensor {
        let call = Call::here("rand_like");
        call.composed(|| {
            let (shape, dtype) = self.known()?;
            call.needs_float(self)?;
            on_its_device(call, self, Tensor::rand_with(shape, dtype, seed))
        })
    }

    /// Random numbers of the standard normal distribution with this tensor's shape, float dtype and device.
    ///
    /// ```
    /// use lazuli::{DType, Tensor};
    /// let x = Tensor::zeros([2, 3], DType::F16);
    /// assert_eq!((&x + x.randn_like(42)).dtype()?, DType::F16);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn randn_like(&self, seed: u64) -> Tensor {
        let call = Call::here("randn_like");
        call.composed(|| {
            let (shape, dtype) = self.known()?;
            call.needs_float(self)?;
            on_its_device(call, self, randn(call, shape.clone(), dtype, seed)?)
        })
    }
}

/// How far [`Tensor::selu`] goes below 0: the product of its two constants.
const SELU_LIMIT: f64 = 1.758_099_340_847_376_6;

pub(super) fn on_its_device(call: Call, x: &Tensor, like: Tensor) -> Result<Tensor> {
    match x.node.device {
        // In a scan's step they are wherever the step is.
        Some(device) if !like.node.is_of_step => call.transfer(&like, device),
        _ => Ok(like),
    }
}

/// The float dtype in which probabilities are compared: 16 bits are too few.
fn wide(dtype: DType) -> DType {
    dtype.compute()
}

/// What a dropout leaves.
fn dropped(x: &Tensor, kept: &Tensor, p: f64) -> Tensor {
    let scale = if p == 1.0 { 0.0 } else { 1.0 / (1.0 - p) };
    let none = Tensor::zeros([], x.node.dtype);
    // A product, as in PyTorch: what is not finite stays visible.
    x * kept.where_(none.full_like(scale), none)
}

/// A dropout of whole channels. `first` says for two numbers of dimensions along how many first axes they are.
fn channels_dropped(call: Call, x: &Tensor, p: f64, seed: u64, first: [(usize, usize); 2]) -> Result<Tensor> {
    let (shape, dtype) = x.known()?;
    let rank = shape.rank();
    let Some(&(_, first)) = first.iter().find(|(own, _)| *own == rank) else {
        let [(fewer, _), (more, _)] = first;
        return call.fail(format!("takes {fewer} or {more} dimensions, got {dtype} {shape}"));
    };
    let channels: Shape = (0..rank).map(|axis| if axis < first { shape[axis] } else { 1 }).collect();
    let kept = kept(call, &Tensor::zeros(channels, dtype), p, seed)?;
    Ok(dropped(x, &kept, p))
}

/// Which elements a dropout keeps.
fn kept(call: Call, x: &Tensor, p: f64, seed: u64) -> Result<Tensor> {
    let (shape, dtype) = x.known()?;
    call.needs_float(x)?;
    if !(0.0..=1.0).contains(&p) {
        return call.fail(format!("the probability must be from 0 to 1, got {p}"));
    }
    Ok(Tensor::rand_with(shape, wide(dtype), seed).ge(p))
}

pub(super) fn randn(call: Call, shape: Shape, dtype: DType, seed: u64) -> Result<Tensor> {
    if !dtype.is_float() {
        return call.fail(format!("random numbers are floats, not {dtype}; cast them after scaling"));
    }
    let radius = Tensor::rand_with(&shape, wide(dtype), seed);
    let angle = Tensor::rand_with(&shape, wide(dtype), another(seed));
    // 1 - u is in (0, 1], whose logarithm is finite.
    let radius = ((1.0 - radius).log() * -2.0).sqrt();
    Ok((radius * (angle * TAU).cos()).cast(dtype))
}

/// The seed of a second, independent sequence: a step of SplitMix64, which no user counts by.
/// G. L. Steele, D. Lea, C. H. Flood, "Fast splittable pseudorandom number generators", 2014.
pub(super) fn another(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Device;

    /// PyTorch's constants: `a = 1 / sqrt((alpha² * p + 1) * (1 - p))`, and what is left out is `-alpha * a * (1 - p)`.
    #[test]
    fn what_alpha_dropout_leaves_out_is_at_selus_limit() {
        let x = Tensor::ones([1000], DType::F64).to(&Device::interpreter());
        let values: Vec<f64> = x.alpha_dropout(0.3, 5).to_vec().unwrap();
        let alpha: f64 = 1.0507009873554805 * 1.6732632423543772;
        let a = 1.0 / ((alpha * alpha * 0.3 + 1.0) * 0.7).sqrt();
        let (kept, left_out) = (a + alpha * a * 0.3, -alpha * a * 0.7);
        let is = |value: f64, expected: f64| (value - expected).abs() < 1e-12;
        assert!(values.iter().all(|&value| is(value, kept) || is(value, left_out)), "{:?}", &values[..9]);
        let count = values.iter().filter(|&&value| is(value, left_out)).count();
        assert!(count.abs_diff(300) < 60, "{count}");
        // The same elements as dropout leaves out.
        let plain: Vec<f64> = x.dropout(0.3, 5).to_vec().unwrap();
        assert!(plain.iter().zip(&values).all(|(&plain, &value)| (plain == 0.0) == is(value, left_out)));
        assert_eq!(x.alpha_dropout(0.0, 5).to_vec::<f64>().unwrap(), [1.0; 1000]);
        assert_eq!(x.alpha_dropout(1.0, 5).to_vec::<f64>().unwrap(), [0.0; 1000]);
    }
}
