//! Random numbers of distributions that have names: what PyTorch's `x.exponential_()` and its like write into a tensor, as a new one of its
//! shape, dtype and device. From the seed and the element's index, as all random numbers.

use std::f64::consts::PI;

use super::random::{another, on_its_device, randn};
use crate::tensor::arguments::call::Call;
use crate::tensor::make::create::counting;
use crate::{DType, Result, ScanOrder, Tensor};

impl Tensor {
    /// Random numbers of exponential distributions, whose mean is `1 / rate`: with this tensor's shape, float dtype and device. Above 0,
    /// before they are rounded to 16 bits. PyTorch's `exponential_`, with other numbers.
    ///
    /// Invalid for integers and bools, and for a rate that is not above 0.
    ///
    /// ```
    /// use lazuli::{DType, Tensor};
    /// let waits = Tensor::zeros([2000], DType::F32).exponential(4.0, 42);
    /// assert!((waits.mean(..).item::<f32>()? - 0.25).abs() < 0.03);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn exponential(&self, rate: f64, seed: u64) -> Tensor {
        let call = Call::here("exponential");
        call.composed(|| {
            call.needs(rate > 0.0, "the rate must be more than 0", rate)?;
            drawn(
                call,
                self,
                |uniform| {
                    // A wait of 0 is as likely as any other.
                    Ok((1.0 - uniform).log().abs().maximum(f64::from(f32::MIN_POSITIVE)) / rate)
                },
                seed,
            )
        })
    }

    /// How many trials it takes until one succeeds, each with the probability `p`: at least 1, with this tensor's shape, dtype and device.
    /// PyTorch's `geometric_`, with other numbers.
    ///
    /// Invalid for bools, and for a `p` that is not above 0, or above 1. What the dtype does not hold is converted as by
    /// [`Tensor::cast`].
    ///
    /// ```
    /// use lazuli::{DType, Tensor};
    /// let trials = Tensor::zeros([2000], DType::I32).geometric(0.5, 42);
    /// assert_eq!(trials.min(..).item::<i32>()?, 1);
    /// assert!((trials.cast(DType::F32).mean(..).item::<f32>()? - 2.0).abs() < 0.2);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn geometric(&self, p: f64, seed: u64) -> Tensor {
        let call = Call::here("geometric");
        call.composed(|| {
            call.needs(p > 0.0 && p <= 1.0, "the probability must be more than 0, and 1 at most", p)?;
            let (shape, dtype) = self.known()?;
            if dtype == DType::Bool {
                return call.fail(format!("numbers of trials are not bools, got {dtype} {shape}"));
            }
            let uniform = on_its_device(call, self, Tensor::rand_with(shape, DType::F64, seed))?;
            let trials = ((1.0 - uniform).log() / (-p).ln_1p()).ceil();
            Ok(trials.maximum(1.0).cast(dtype))
        })
    }

    /// Random numbers of Cauchy's distribution around `median`, half of which are within `scale` of it: with this tensor's shape, float
    /// dtype and device. PyTorch's `cauchy_`, with other numbers.
    ///
    /// Invalid for integers and bools, and for a scale that is not above 0.
    ///
    /// ```
    /// use lazuli::{DType, Tensor};
    /// let x = Tensor::zeros([2000], DType::F32).cauchy(3.0, 0.5, 42);
    /// let share = (x - 3.0).abs().lt(0.5).cast(DType::F32).mean(..);
    /// assert!((share.item::<f32>()? - 0.5).abs() < 0.05);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn cauchy(&self, median: f64, scale: f64, seed: u64) -> Tensor {
        let call = Call::here("cauchy");
        call.composed(|| {
            call.needs(scale > 0.0, "the scale must be more than 0", scale)?;
            drawn(call, self, |uniform| Ok(((uniform - 0.5) * PI).tan() * scale + median), seed)
        })
    }

    /// Random numbers whose logarithms have a normal distribution of that mean and standard deviation: with this tensor's shape, float
    /// dtype and device. PyTorch's `log_normal_`, with other numbers.
    ///
    /// Invalid for integers and bools, and for a deviation that is not above 0.
    ///
    /// ```
    /// use lazuli::{DType, Tensor};
    /// let x = Tensor::zeros([2000], DType::F32).log_normal(1.0, 0.5, 42).log();
    /// assert!((x.mean(..).item::<f32>()? - 1.0).abs() < 0.05 && (x.std(.., 1).item::<f32>()? - 0.5).abs() < 0.05);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn log_normal(&self, mean: f64, std: f64, seed: u64) -> Tensor {
        let call = Call::here("log_normal");
        call.composed(|| {
            call.needs(std > 0.0, "the standard deviation must be more than 0", std)?;
            call.needs_float(self)?;
            let (shape, dtype) = self.known()?;
            let normal = on_its_device(call, self, randn(call, shape.clone(), dtype.compute(), seed)?)?;
            Ok((normal * std + mean).exp().cast(dtype))
        })
    }

    /// Random counts of Poisson's distribution, of the mean that each element is, in its dtype. NaN for a mean below 0, which PyTorch
    /// refuses. PyTorch's `torch.poisson`, with other numbers.
    ///
    /// Up to a mean of 10 by inversion, above by rejection; of 8 candidates one is accepted but for once in 10⁶ times, when a rounded
    /// normal number takes its place.
    ///
    /// W. Hörmann, "The transformed rejection method for generating Poisson random variables", 1993.
    ///
    /// Invalid for integers and bools.
    ///
    /// ```
    /// use lazuli::{DType, Tensor};
    /// let counts = Tensor::full([2000], 4.0, DType::F32).poisson(42);
    /// assert!((counts.mean(..).item::<f32>()? - 4.0).abs() < 0.2);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn poisson(&self, seed: u64) -> Tensor {
        let call = Call::here("poisson");
        call.composed(|| {
            call.needs_float(self)?;
            let (shape, dtype) = self.known()?;
            if shape.elements() == 0 {
                return Ok(self.clone());
            }
            let rate = call.detached(self).cast(DType::F64);
            let is_few = rate.lt(10.0);
            let few = by_inversion(&is_few.where_(&rate, 1.0), seed);
            let many = by_rejection(&is_few.where_(10.0, &rate), seed);
            let counts = is_few.where_(few, rate.isfinite().where_(many, &rate));
            Ok(rate.ge(0.0).where_(counts, f64::NAN).cast(dtype))
        })
    }

    /// `x` if positive, else `slope * x` with a slope that is drawn for each element, uniformly from `lower` up to `upper`: what PyTorch's
    /// `rrelu` does in training, where these are 1/8 and 1/3. In inference it is [`Tensor::leaky_relu`] with the mean of both. Keeps
    /// shape and dtype.
    ///
    /// B. Xu, N. Wang, T. Chen, M. Li, "Empirical evaluation of rectified activations in convolutional network", 2015.
    ///
    /// Invalid for integers and bools, and for a `lower` above `upper`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[4.0f32, -4.0], [2]).rrelu(0.125, 0.25, 42).to_vec::<f32>()?;
    /// assert!(x[0] == 4.0 && (-1.0..=-0.5).contains(&x[1]));
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn rrelu(&self, lower: f64, upper: f64, seed: u64) -> Tensor {
        let call = Call::here("rrelu");
        call.composed(|| {
            call.needs_float(self)?;
            if !(lower <= upper && lower.is_finite() && upper.is_finite()) {
                return call.fail(format!(
                    "the lower slope must not be above the upper one, and both finite, got {lower} and {upper}"
                ));
            }
            let (shape, dtype) = self.known()?;
            let slope = Tensor::rand_with(shape, dtype.compute(), seed) * (upper - lower) + lower;
            let x = self.cast(dtype.compute());
            Ok(x.gt(0.0).where_(&x, &x * slope).cast(dtype))
        })
    }
}

/// What is made of uniform numbers, in the dtype of the arithmetic, and rounded once.
fn drawn(call: Call, like: &Tensor, f: impl FnOnce(Tensor) -> Result<Tensor>, seed: u64) -> Result<Tensor> {
    call.needs_float(like)?;
    let (shape, dtype) = like.known()?;
    let uniform = on_its_device(call, like, Tensor::rand_with(shape, dtype.compute(), seed))?;
    Ok(f(uniform)?.cast(dtype))
}

/// Of means below 10: how many of the distribution's sums a uniform number is above. More than 60 come once in 10²⁶ times.
fn by_inversion(rate: &Tensor, seed: u64) -> Tensor {
    let uniform = Tensor::rand_with(&rate.node.shape, DType::F64, seed);
    let term = (-rate).exp();
    let counts = counting(60).cast(DType::F64) + 1.0;
    let begin = [term.clone(), term, rate.zeros_like()];
    let ([.., count], []) = crate::scan([&counts], 0, ScanOrder::new(), begin, |[term, sum, count], [k]| {
        let next = term * rate / k;
        let is_above = uniform.ge(sum);
        ([next.clone(), sum + next, count + is_above.cast(DType::F64)], [])
    });
    count
}

/// Of means from 10 on: the first of some candidates that is accepted.
fn by_rejection(rate: &Tensor, seed: u64) -> Tensor {
    let shape = &rate.node.shape;
    let root = rate.sqrt();
    let b = &root * 2.53 + 0.931;
    let a = &b * 0.02483 - 0.059;
    let (scale, limit) = (1.1239 + 1.1328 / (&b - 3.4), 0.9277 - 3.6224 / (&b - 2.0));
    let logarithm = rate.log();
    let normal = (Tensor::randn_with(shape, DType::F64, seed) * &root + rate + 0.5).floor().maximum(0.0);
    let begin = [normal, rate.zeros_like()];
    let rounds = counting(8).cast(DType::F64);
    let ([count, _], []) = crate::scan([&rounds], 0, ScanOrder::new(), begin, |[count, is_found], [_]| {
        let u = Tensor::rand_with(shape, DType::F64, another(seed)) - 0.5;
        let v = 1.0 - Tensor::rand_with(shape, DType::F64, another(another(seed)));
        let edge = 0.5 - u.abs();
        let k = ((&a * 2.0 / &edge + &b) * u + rate + 0.43).floor();
        let is_sure = edge.ge(0.07) & v.le(&limit);
        let is_out = k.lt(0.0) | (edge.lt(0.013) & v.gt(&edge));
        let ratio = (&v * &scale / (&a / edge.square() + &b)).log();
        let is_below = ratio.le(&k * &logarithm - rate - (&k + 1.0).lgamma());
        let is_accepted = is_sure | (!is_out & is_below);
        let is_new = &is_accepted & is_found.eq(0.0);
        ([is_new.where_(k, count), is_accepted.where_(1.0, is_found)], [])
    });
    count
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Device;
    use crate::tensor::tests::mistake;

    fn here(x: Tensor) -> Tensor {
        x.to(&Device::interpreter())
    }

    const COUNT: usize = 4000;

    /// Whether counts of 0, 1, … have these probabilities, within 4.5 standard deviations.
    fn assert_probable(x: &Tensor, probability: impl Fn(usize) -> f64) {
        let counts = x.cast(DType::I64).clamp_max(199).bincount(200).to_vec::<i64>().unwrap();
        for (k, &count) in counts.iter().enumerate().take(199) {
            let expected = COUNT as f64 * probability(k);
            let deviation = (expected * (1.0 - probability(k))).sqrt();
            assert!(
                (count as f64 - expected).abs() <= 4.5 * deviation + 1.0,
                "{count} of {k}, not {expected}"
            );
        }
    }

    #[test]
    fn counts_have_poissons_probabilities() {
        for rate in [0.0, 0.3, 4.0, 9.99, 10.0, 57.5] {
            let counts = here(Tensor::full([COUNT], rate, DType::F64)).poisson(7);
            assert_probable(&counts, |k| {
                let logarithm: f64 = (1..=k).map(|factor| (rate / factor as f64).ln()).sum();
                (logarithm - rate).exp()
            });
        }
        let x = here(Tensor::full([COUNT], 1e6, DType::F64)).poisson(3);
        let (var, mean) = x.var_mean(.., 1);
        assert!((mean.item::<f64>().unwrap() - 1e6).abs() < 4.0 * 1e3 / (COUNT as f64).sqrt());
        assert!((var.item::<f64>().unwrap() / 1e6 - 1.0).abs() < 0.1);
        let ends = here(Tensor::from([-1.0f32, f32::NAN, f32::INFINITY])).poisson(1).to_vec::<f32>().unwrap();
        assert!(ends[0].is_nan() && ends[1].is_nan() && ends[2] == f32::INFINITY, "{ends:?}");
        assert_eq!(here(Tensor::ones([0, 2], DType::F16)).poisson(1).dtype().unwrap(), DType::F16);
        mistake!(
            Tensor::ones([2], DType::I32).poisson(1),
            "poisson: needs a float tensor, got i32 [2]; cast it first, such as with .cast(DType::F32)"
        );
    }

    #[test]
    fn trials_have_geometric_probabilities() {
        let trials = here(Tensor::zeros([COUNT], DType::U8)).geometric(0.3, 5);
        assert_probable(&trials, |k| if k == 0 { 0.0 } else { 0.3 * 0.7f64.powi(k as i32 - 1) });
        let sure = here(Tensor::zeros([9], DType::F16)).geometric(1.0, 5);
        assert_eq!(sure.cast(DType::F32).to_vec::<f32>().unwrap(), [1.0; 9]);
        mistake!(
            Tensor::zeros([2], DType::F32).geometric(0.0, 1),
            "geometric: the probability must be more than 0, and 1 at most, got 0"
        );
    }

    /// Where quarters of the numbers should be, within 5 standard deviations.
    fn assert_quarters(x: &Tensor, quarters: [f64; 3]) {
        for (number, limit) in quarters.into_iter().enumerate() {
            let share = x.lt(limit).cast(DType::F64).mean(..).item::<f64>().unwrap();
            let expected = (number + 1) as f64 / 4.0;
            let deviation = (expected * (1.0 - expected) / COUNT as f64).sqrt();
            assert!((share - expected).abs() < 5.0 * deviation, "{share} below {limit}, not {expected}");
        }
    }

    #[test]
    fn numbers_have_their_quarters() {
        for dtype in [DType::F32, DType::F64] {
            let like = here(Tensor::zeros([COUNT], dtype));
            let waits = like.exponential(2.0, 1);
            assert!(waits.min(..).cast(DType::F64).item::<f64>().unwrap() > 0.0);
            assert_quarters(&waits, [0.75f64, 0.5, 0.25].map(|rest| -rest.ln() / 2.0));
            assert_quarters(&like.cauchy(-1.0, 3.0, 2), [-4.0, -1.0, 2.0]);
            let quarter = 0.674_489_750_196_081_7f64 * 0.5;
            assert_quarters(&like.log_normal(1.0, 0.5, 3), [-quarter, 0.0, quarter].map(|x| (1.0 + x).exp()));
        }
        mistake!(
            Tensor::zeros([2], DType::F32).exponential(-1.0, 1),
            "exponential: the rate must be more than 0, got -1"
        );
    }
}
