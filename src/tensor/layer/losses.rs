//! Losses: formulas of a prediction and a target, reduced as asked. On the 16-bit floats they are computed in `F32`
//! and rounded once.

use std::f64::consts::TAU;

use crate::graph::op::{Axes, ConstantRole, Op};
use crate::tensor::arguments::call::Call;
use crate::tensor::arguments::promotion::Operand;
use crate::tensor::map::formula::{Argument, Term, formula};
use crate::tensor::map::operands::Rule;
use crate::tensor::map::special::xlogy;
use crate::tensor::reduce::moments::mean;
use crate::{BinaryOp, DType, ReduceOp, Result, Scalar, Shape, Tensor, UnaryOp};

/// What becomes of the losses of all elements.
///
/// ```
/// use lazuli::{Reduction, Tensor};
/// let (x, y) = (Tensor::from_slice(&[1.0f32, 2.0], [2]), Tensor::from_slice(&[0.0f32, 0.0], [2]));
/// assert_eq!(x.mse_loss(&y, Reduction::None).to_vec::<f32>()?, [1.0, 4.0]);
/// assert_eq!(x.mse_loss(&y, Reduction::Mean).item::<f32>()?, 2.5);
/// assert_eq!(x.mse_loss(&y, Reduction::Sum).item::<f32>()?, 5.0);
/// # Ok::<(), lazuli::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Reduction {
    /// They stay.
    None,
    /// Their mean.
    Mean,
    /// Their sum.
    Sum,
}

/// The label whose element has no loss, and does not count in a mean.
pub(super) const IGNORED: i64 = -100;

impl Tensor {
    /// The squared difference from the target. Keeps the dtype; shapes broadcast; invalid for integers and bools.
    ///
    /// ```
    /// use lazuli::{Reduction, Tensor};
    /// let x = Tensor::from_slice(&[1.0f32, 2.0], [2]);
    /// assert_eq!(x.mse_loss(&x, Reduction::Mean).item::<f32>()?, 0.0);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn mse_loss(&self, target: impl AsRef<Tensor>, reduction: Reduction) -> Tensor {
        let target = target.as_ref();
        loss(Call::here("mse_loss"), self, target, reduction, |x, y| (x - y).square())
    }

    /// The distance from the target. Keeps the dtype; shapes broadcast; invalid for integers and bools.
    ///
    /// ```
    /// use lazuli::{Reduction, Tensor};
    /// let (x, y) = (Tensor::from_slice(&[1.0f32], [1]), Tensor::from_slice(&[3.0f32], [1]));
    /// assert_eq!(x.l1_loss(&y, Reduction::Mean).item::<f32>()?, 2.0);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn l1_loss(&self, target: impl AsRef<Tensor>, reduction: Reduction) -> Tensor {
        let target = target.as_ref();
        loss(Call::here("l1_loss"), self, target, reduction, |x, y| (x - y).abs())
    }

    /// `d² / (2 beta)` of the distance d from the target where that is below beta, `d - beta / 2` elsewhere. Keeps the
    /// dtype; shapes broadcast; invalid for integers and bools, and for a negative beta. PyTorch's beta is 1.
    ///
    /// ```
    /// use lazuli::{Reduction, Tensor};
    /// let (x, y) = (Tensor::from_slice(&[1.0f32, 3.0], [2]), Tensor::from_slice(&[0.5f32, 0.0], [2]));
    /// assert_eq!(x.smooth_l1_loss(&y, 1.0, Reduction::None).to_vec::<f32>()?, [0.125, 2.5]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn smooth_l1_loss(&self, target: impl AsRef<Tensor>, beta: f64, reduction: Reduction) -> Tensor {
        let target = target.as_ref();
        let call = Call::here("smooth_l1_loss");
        call.composed(|| {
            call.needs(beta >= 0.0, "beta must be 0 or more", beta)?;
            Ok(loss(call, self, target, reduction, |x, y| {
                let distance = (x - y).abs();
                if beta == 0.0 {
                    return distance;
                }
                let square = &distance * &distance * 0.5 / Argument(beta);
                distance.lt(Argument(beta)).select(square, &distance - Argument(0.5 * beta))
            }))
        })
    }

    /// `d² / 2` of the distance d from the target where that is below delta, `delta * (d - delta / 2)` elsewhere. Keeps
    /// the dtype; shapes broadcast; invalid for integers and bools, and unless delta is positive. PyTorch's delta is 1.
    ///
    /// P. J. Huber, "Robust estimation of a location parameter", 1964.
    ///
    /// ```
    /// use lazuli::{Reduction, Tensor};
    /// let (x, y) = (Tensor::from_slice(&[1.0f32, 3.0], [2]), Tensor::from_slice(&[0.0f32, 0.0], [2]));
    /// assert_eq!(x.huber_loss(&y, 2.0, Reduction::None).to_vec::<f32>()?, [0.5, 4.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn huber_loss(&self, target: impl AsRef<Tensor>, delta: f64, reduction: Reduction) -> Tensor {
        let target = target.as_ref();
        let call = Call::here("huber_loss");
        call.composed(|| {
            call.needs(delta > 0.0, "delta must be more than 0", delta)?;
            Ok(loss(call, self, target, reduction, |x, y| {
                let distance = (x - y).abs();
                let square = &distance * &distance * 0.5;
                let line = (&distance - Argument(0.5 * delta)) * Argument(delta);
                distance.lt(Argument(delta)).select(square, line)
            }))
        })
    }

    /// The cross-entropy of probabilities that are given as logits: `(1 - y) * x - log(sigmoid(x))`, without overflow.
    /// Keeps the dtype; shapes broadcast; invalid for integers and bools.
    ///
    /// ```
    /// use lazuli::{Reduction, Tensor};
    /// let (x, y) = (Tensor::from_slice(&[200.0f32], [1]), Tensor::from_slice(&[1.0f32], [1]));
    /// assert_eq!(x.binary_cross_entropy_with_logits(&y, Reduction::Mean).item::<f32>()?, 0.0);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn binary_cross_entropy_with_logits(
        &self,
        target: impl AsRef<Tensor>,
        reduction: Reduction,
    ) -> Tensor {
        let target = target.as_ref();
        let call = Call::here("binary_cross_entropy_with_logits");
        loss(call, self, target, reduction, |x, y| (-y + 1.0) * x - x.logsigmoid())
    }

    /// The cross-entropy of probabilities: `-(y * log(x) + (1 - y) * log(1 - x))`, where no logarithm is below -100, as in
    /// PyTorch. Keeps the dtype; shapes broadcast; invalid for integers and bools. Of logits,
    /// [`Tensor::binary_cross_entropy_with_logits`] loses no digits.
    ///
    /// ```
    /// use lazuli::{Reduction, Tensor};
    /// let (x, y) = (Tensor::from_slice(&[0.5f32, 0.0], [2]), Tensor::from_slice(&[1.0f32, 1.0], [2]));
    /// let losses = x.binary_cross_entropy(&y, Reduction::None);
    /// assert_eq!(losses.to_vec::<f32>()?, [std::f32::consts::LN_2, 100.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn binary_cross_entropy(&self, target: impl AsRef<Tensor>, reduction: Reduction) -> Tensor {
        let target = target.as_ref();
        loss(Call::here("binary_cross_entropy"), self, target, reduction, probability_loss)
    }

    /// `y * (log(y) - x)` of a target y and the logarithm x of a prediction, 0 where y is: the terms of the
    /// Kullback-Leibler divergence. Keeps the dtype; shapes broadcast; invalid for integers and bools.
    ///
    /// The mean is that of all elements; the mean of a batch is `Reduction::Sum` over its size.
    ///
    /// ```
    /// use lazuli::{Reduction, Tensor};
    /// let y = Tensor::from_slice(&[0.5f32, 0.5], [2]);
    /// assert_eq!(y.log().kl_div(&y, Reduction::Sum).item::<f32>()?, 0.0);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn kl_div(&self, target: impl AsRef<Tensor>, reduction: Reduction) -> Tensor {
        let target = target.as_ref();
        loss(Call::here("kl_div"), self, target, reduction, |x, y| xlogy(y, y) - y * x)
    }

    /// The negative logarithm of the probability that Poisson's distribution has of a target y, but for what does not depend
    /// on its mean: `exp(x) - y * x` of the mean's logarithm x, or, unless `log_input`, `x - y * log(x + eps)` of the mean
    /// itself. With `full`, `y * log(y) - y + log(2πy) / 2` is added where y is above 1: Stirling's approximation of the rest.
    /// Keeps the dtype; shapes broadcast; invalid for integers and bools. PyTorch's `eps` is 1e-8.
    ///
    /// ```
    /// use lazuli::{Reduction, Tensor};
    /// let (x, y) = (Tensor::from_slice(&[0.0f32, 0.0], [2]), Tensor::from_slice(&[3.0f32, 0.0], [2]));
    /// assert_eq!(x.poisson_nll_loss(&y, true, false, 1e-8, Reduction::Mean).item::<f32>()?, 1.0);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn poisson_nll_loss(
        &self,
        target: impl AsRef<Tensor>,
        log_input: bool,
        full: bool,
        eps: f64,
        reduction: Reduction,
    ) -> Tensor {
        let target = target.as_ref();
        loss(Call::here("poisson_nll_loss"), self, target, reduction, |x, y| {
            let own = if log_input { x.exp() - y * x } else { x - y * (x + Argument(eps)).log() };
            if !full {
                return own;
            }
            // Nor is there a logarithm where it does not count: its slope would.
            let large = y.gt(1.0).select(y, 1.0);
            let rest = &large * large.log() - &large + (&large * TAU).log() * 0.5;
            own + y.gt(1.0).select(rest, 0.0)
        })
    }

    /// The negative logarithm of the density that the normal distribution has at a target, but for a constant:
    /// `(log(v) + (x - y)² / v) / 2` of the mean x and the variance v, which is taken to be at least `eps`. With `full`, the
    /// constant `log(2π) / 2` is added. PyTorch's `eps` is 1e-6.
    ///
    /// In the promoted dtype, which must be a float; shapes broadcast, and a variance of all axes but the last is one for each
    /// row. Invalid for a negative `eps`.
    ///
    /// D. A. Nix and A. S. Weigend, "Estimating the mean and variance of the target probability distribution", 1994.
    ///
    /// ```
    /// use lazuli::{Reduction, Tensor};
    /// let (x, y) = (Tensor::from_slice(&[1.0f32, 2.0], [2]), Tensor::from_slice(&[3.0f32, 2.0], [2]));
    /// let losses = x.gaussian_nll_loss(&y, &x.ones_like(), false, 1e-6, Reduction::None);
    /// assert_eq!(losses.to_vec::<f32>()?, [2.0, 0.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn gaussian_nll_loss(
        &self,
        target: impl AsRef<Tensor>,
        var: impl AsRef<Tensor>,
        full: bool,
        eps: f64,
        reduction: Reduction,
    ) -> Tensor {
        let (target, var) = (target.as_ref(), var.as_ref());
        let call = Call::here("gaussian_nll_loss");
        call.composed(|| {
            call.needs(eps >= 0.0, "eps must be 0 or more", eps)?;
            let (shape, own) = (self.known()?.0, var.known()?.0);
            let of_rows = own != shape && shape.split_last().is_some_and(|(_, rows)| own[..] == *rows);
            let var = if of_rows { var.unsqueeze(-1) } else { var.clone() };
            Ok(loss_of(call, [self, target, &var], reduction, |[x, y, var]| {
                let var = var.maximum(Argument(eps));
                let own = (var.log() + (x - y).square() / &var) * 0.5;
                if full { own + 0.5 * TAU.ln() } else { own }
            }))
        })
    }

    /// The negative element that the label chooses along the classes. Classes are dimension 1 of two or more, or the
    /// only one; the labels are integers and have all other dimensions. Keeps the dtype.
    ///
    /// A label of -100 has the loss 0 and does not count in the mean. Any other that is no class is an
    /// [`IndexOutOfRange`](crate::Error::IndexOutOfRange) when the values are asked for.
    ///
    /// Invalid for integers and bools, and if the labels' shape or dtype does not fit.
    ///
    /// ```
    /// use lazuli::{Reduction, Tensor};
    /// let log_probabilities = Tensor::from_slice(&[-1.0f32, -2.0, -3.0, -4.0], [2, 2]);
    /// let labels = Tensor::from_slice(&[0i64, 1], [2]);
    /// assert_eq!(log_probabilities.nll_loss(&labels, Reduction::None).to_vec::<f32>()?, [1.0, 4.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn nll_loss(&self, labels: impl AsRef<Tensor>, reduction: Reduction) -> Tensor {
        let labels = labels.as_ref();
        Tensor::or_invalid(labelled(Call::here("nll_loss"), self, labels, reduction, false))
    }

    /// [`Tensor::nll_loss`] of the logarithm of [`Tensor::softmax`] along the classes: the cross-entropy of logits with
    /// labels, which are those of [`Tensor::nll_loss`]. `log(sum(exp(x - max))) - (x[label] - max)`: one pass over the logits.
    ///
    /// ```
    /// use lazuli::{Reduction, Tensor};
    /// let logits = Tensor::from_slice(&[0.0f32, 0.0, 500.0, -500.0], [2, 2]);
    /// let labels = Tensor::from_slice(&[1i64, 0], [2]);
    /// let losses = logits.cross_entropy(&labels, Reduction::None);
    /// assert_eq!(losses.to_vec::<f32>()?, [std::f32::consts::LN_2, 0.0]);
    ///
    /// let wrong = logits.cross_entropy(&(labels + 1), Reduction::Mean).item::<f32>().unwrap_err().to_string();
    /// assert!(wrong.starts_with("cross_entropy: index 2 is out of range for axis 1 of extent 2, at "), "{wrong}");
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn cross_entropy(&self, labels: impl AsRef<Tensor>, reduction: Reduction) -> Tensor {
        let labels = labels.as_ref();
        Tensor::or_invalid(labelled(Call::here("cross_entropy"), self, labels, reduction, true))
    }
}

/// A loss of each element of prediction and target, reduced.
pub(super) fn loss(
    call: Call,
    x: &Tensor,
    target: &Tensor,
    reduction: Reduction,
    compute: impl FnOnce(&Term, &Term) -> Term,
) -> Tensor {
    loss_of(call, [x, target], reduction, |[x, y]| compute(&x, &y))
}

/// A loss of each element of several tensors, reduced.
pub(super) fn loss_of<const N: usize>(
    call: Call,
    operands: [&Tensor; N],
    reduction: Reduction,
    compute: impl FnOnce([Term; N]) -> Term,
) -> Tensor {
    let reduced = formula(call, Rule::Floats, operands.map(Operand::from), |terms| {
        let losses = compute(terms);
        Term { call, value: losses.value.and_then(|losses| reduced(call, &losses, reduction)) }
    });
    Tensor::or_invalid(reduced)
}

/// The cross-entropy of a probability.
pub(super) fn probability_loss(x: &Term, y: &Term) -> Term {
    let (own, other) = (x.log().maximum(-100.0), (-x).log1p().maximum(-100.0));
    // PyTorch's slopes: those of the logarithms are infinite where the losses are limited.
    ((y - 1.0) * other - y * own).derived([x, y], |g, [x, y], _| {
        let slope = (&x - y) / ((-&x + 1.0) * &x).maximum(1e-12);
        let (own, other) = (x.log().maximum(-100.0), (-x).log1p().maximum(-100.0));
        [&g * slope, g * (other - own)]
    })
}

fn reduced(call: Call, losses: &Tensor, reduction: Reduction) -> Result<Tensor> {
    let rank = losses.known()?.0.rank();
    match reduction {
        _ if rank == 0 => Ok(losses.clone()),
        Reduction::None => Ok(losses.clone()),
        Reduction::Mean => {
            call.rounded_once(losses, |losses| mean(call, losses, &(0..rank).collect(), false))
        }
        Reduction::Sum => call.reduce(ReduceOp::Sum, losses, &(0..rank).collect(), false),
    }
}

/// The loss by labels; of logits if `normalise`, else of logarithms of probabilities.
fn labelled(
    call: Call,
    x: &Tensor,
    labels: &Tensor,
    reduction: Reduction,
    normalise: bool,
) -> Result<Tensor> {
    let dtype = x.known()?.1;
    let ByLabels { losses, counts, .. } = ByLabels::of(call, x, labels, IGNORED, normalise)?;
    call.cast(&over_labels(call, &losses, &call.cast(&counts, dtype.compute())?, reduction)?, dtype)
}

/// What a loss by labels is made of, for each label.
pub(super) struct ByLabels {
    /// In the dtype that computes; 0 for those that are ignored.
    pub(super) losses: Tensor,
    /// Whether it is not ignored.
    pub(super) counts: Tensor,
    /// Classes; 0 for those that are ignored.
    pub(super) labels: Tensor,
}

impl ByLabels {
    pub(super) fn of(
        call: Call,
        x: &Tensor,
        labels: &Tensor,
        ignored: i64,
        normalise: bool,
    ) -> Result<ByLabels> {
        let (shape, dtype) = x.known()?;
        let axis = class_axis(call, x)?;
        let labels = fitting_labels(call, x, labels, axis)?;
        let axes = Axes::from_slice(&[axis]);
        let expected = shape.without(&axes);
        let kept: Shape =
            shape.iter().enumerate().map(|(n, &extent)| if n == axis { 1 } else { extent }).collect();
        let ignored = call.filled(Scalar::from_i64(DType::I64, ignored), ConstantRole::Literal, &expected)?;
        let counts = call.binary(BinaryOp::Ne, &labels, &ignored)?;
        let first = call.filled(Scalar::from_i64(DType::I64, 0), ConstantRole::Literal, &expected)?;
        let labels = call.record(Op::Select, &[&counts, &labels, &first], expected.clone(), DType::I64)?;
        let places = call.reshape(&labels, kept.clone())?;
        // Read, and checked, once a label, beside the sum over all classes.
        let x = call.cast(x, dtype.compute())?;
        let chosen = call.record(
            Op::Gather { axis, is_checked: true },
            &[&x, &places],
            kept.clone(),
            dtype.compute(),
        )?;
        let chosen = call.reshape(&chosen, expected.clone())?;
        let losses = match normalise {
            false => call.unary(UnaryOp::Neg, &chosen)?,
            true => {
                let largest = call.detached(&call.reduce(ReduceOp::Max, &x, &axes, false)?);
                let shifted = call.binary(BinaryOp::Sub, &x, &call.reshape(&largest, kept)?)?;
                let total = call.reduce(ReduceOp::Sum, &call.unary(UnaryOp::Exp, &shifted)?, &axes, false)?;
                let chosen = call.binary(BinaryOp::Sub, &chosen, &largest)?;
                call.binary(BinaryOp::Sub, &call.unary(UnaryOp::Log, &total)?, &chosen)?
            }
        };
        let zero = call.filled(Scalar::from_i64(dtype.compute(), 0), ConstantRole::Literal, &expected)?;
        let losses = call.record(Op::Select, &[&counts, &losses, &zero], expected, dtype.compute())?;
        Ok(ByLabels { losses, counts, labels })
    }
}

/// Losses by labels, reduced; their mean is over the weights of the labels.
pub(super) fn over_labels(
    call: Call,
    losses: &Tensor,
    weights: &Tensor,
    reduction: Reduction,
) -> Result<Tensor> {
    let all: Axes = (0..losses.known()?.0.rank()).collect();
    match reduction {
        Reduction::None => Ok(losses.clone()),
        Reduction::Sum => call.reduce(ReduceOp::Sum, losses, &all, false),
        Reduction::Mean => {
            let weight = call.reduce(ReduceOp::Sum, weights, &all, false)?;
            call.binary(BinaryOp::Div, &call.reduce(ReduceOp::Sum, losses, &all, false)?, &weight)
        }
    }
}

/// The dimension of the classes of a prediction.
pub(super) fn class_axis(call: Call, x: &Tensor) -> Result<usize> {
    call.needs_float(x)?;
    match x.known()?.0.rank() {
        0 => call.fail("needs a dimension of classes, got a 0-d tensor"),
        rank => Ok(usize::from(rank > 1)),
    }
}

/// The labels as `I64`, if there is one for each element of the prediction.
fn fitting_labels(call: Call, x: &Tensor, labels: &Tensor, axis: usize) -> Result<Tensor> {
    let ((shape, _), (own, dtype)) = (x.known()?, labels.known()?);
    let expected = shape.without(&Axes::from_slice(&[axis]));
    if !dtype.is_int() {
        let hint = match call.name() {
            "cross_entropy" => "; with the probabilities of all classes use .cross_entropy_with",
            _ => "",
        };
        return call.fail(format!("labels must be integers, got {dtype} {own}{hint}"));
    }
    if *own != expected {
        return call.fail(format!(
            "labels of shape {own} do not fit {shape}: with classes along axis {axis} they are {expected}"
        ));
    }
    if shape[axis] == 0 && expected.elements() > 0 {
        return call.fail(format!("shape {shape} has no classes along axis {axis}"));
    }
    call.cast(labels, DType::I64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::tests::mistake;

    #[test]
    fn a_cross_entropy_is_one_kernel() {
        let logits = Tensor::from_slice(&[0.5f32; 6], [2, 3]);
        let labels = Tensor::from_slice(&[0i64, 2], [2]);
        let losses = logits.cross_entropy(&labels, Reduction::None);
        assert_eq!(losses.explain().unwrap().kernels(), 1, "{}", losses.explain().unwrap());
    }

    #[test]
    fn many_classes_are_read_once() {
        let logits = Tensor::zeros([4, 128_256], DType::BF16).to(&crate::Device::cpu());
        let labels = Tensor::zeros([4], DType::I64);
        let losses = logits.cross_entropy(&labels, Reduction::None);
        let program = losses.compile_for(&crate::Target::cuda("sm_90")).unwrap();
        let explanation = program.explain();
        assert_eq!(explanation.kernels(), 1, "{explanation}");
        assert_eq!(explanation.bytes_moved(), explanation.least_bytes(), "{explanation}");
    }

    #[test]
    fn ignored_labels_do_not_count() {
        let x = Tensor::from_slice(&[-1.0f32, -2.0, -3.0, -4.0], [2, 2]);
        let labels = Tensor::from_slice(&[0i32, -100], [2]);
        assert_eq!(x.nll_loss(&labels, Reduction::None).to_vec::<f32>().unwrap(), [1.0, 0.0]);
        assert_eq!(x.nll_loss(&labels, Reduction::Mean).item::<f32>().unwrap(), 1.0);
        assert_eq!(x.nll_loss(&labels, Reduction::Sum).item::<f32>().unwrap(), 1.0);
    }

    #[test]
    fn mistakes_say_what_does_not_fit() {
        let x = Tensor::ones([2, 3], DType::F32);
        let labels = Tensor::ones([3], DType::I64);
        mistake!(
            x.cross_entropy(&labels, Reduction::Mean),
            "cross_entropy: labels of shape [3] do not fit [2, 3]: with classes along axis 1 they are [2]"
        );
        mistake!(
            x.nll_loss(&Tensor::ones([2], DType::F32), Reduction::Mean),
            "nll_loss: labels must be integers, got f32 [2]"
        );
        mistake!(
            Tensor::ones([], DType::F32).nll_loss(&labels, Reduction::Mean),
            "nll_loss: needs a dimension of classes, got a 0-d tensor"
        );
        mistake!(
            labels.mse_loss(&labels, Reduction::Sum),
            "mse_loss: needs float tensors, got i64 [3] and i64 [3]; cast one first, such as with .cast(DType::F32)"
        );
    }
}
