//! Losses with all that PyTorch's have: weights of elements and classes, logarithms as targets, means of batches.

use super::losses::{ByLabels, IGNORED, Reduction, class_axis, loss_of, over_labels, probability_loss};
use crate::tensor::arguments::call::Call;
use crate::tensor::map::operands::Rule;
use crate::tensor::map::special::xlogy;
use crate::tensor::position::gather::looked_up;
use crate::{DType, Result, Shape, Tensor};

/// What [`Tensor::kl_div_with`] takes its target for, and what becomes of the terms.
///
/// ```
/// use lazuli::{KlDiv, Tensor};
/// let y = Tensor::from_slice(&[0.5f32, 0.5, 0.25, 0.75], [2, 2]);
/// let settings = KlDiv::new().log_target().batch_mean();
/// assert_eq!(y.log().kl_div_with(&y.log(), &settings).item::<f32>()?, 0.0);
/// # Ok::<(), lazuli::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct KlDiv {
    is_log: bool,
    is_of_batch: bool,
    reduction: Reduction,
}

impl Default for KlDiv {
    fn default() -> KlDiv {
        KlDiv { is_log: false, is_of_batch: false, reduction: Reduction::Mean }
    }
}

impl KlDiv {
    /// The mean of all terms, of a target of probabilities.
    ///
    /// ```
    /// use lazuli::{KlDiv, Reduction, Tensor};
    /// let (x, y) = (Tensor::from_slice(&[-1.0f32, -2.0], [2]), Tensor::from_slice(&[0.5f32, 0.5], [2]));
    /// let plain = x.kl_div(&y, Reduction::Mean).item::<f32>()?;
    /// assert_eq!(x.kl_div_with(&y, &KlDiv::new()).item::<f32>()?, plain);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn new() -> KlDiv {
        KlDiv::default()
    }

    /// The target is the logarithm of probabilities too: PyTorch's `log_target`.
    ///
    /// ```
    /// use lazuli::{KlDiv, Tensor};
    /// let (x, y) = (Tensor::from_slice(&[-1.0f32], [1]), Tensor::from_slice(&[0.0f32], [1]));
    /// assert_eq!(x.kl_div_with(&y, &KlDiv::new().log_target()).item::<f32>()?, 1.0);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn log_target(mut self) -> KlDiv {
        self.is_log = true;
        self
    }

    /// The sum of all terms over the extent of the prediction's first axis: PyTorch's `reduction="batchmean"`, which is the
    /// divergence itself.
    ///
    /// ```
    /// use lazuli::{KlDiv, Tensor};
    /// let x = Tensor::zeros([2, 3], lazuli::DType::F32) - 1.0;
    /// assert_eq!(x.kl_div_with(&x.ones_like(), &KlDiv::new().batch_mean()).item::<f32>()?, 3.0);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn batch_mean(mut self) -> KlDiv {
        self.is_of_batch = true;
        self
    }

    /// What becomes of the terms.
    ///
    /// ```
    /// use lazuli::{KlDiv, Reduction, Tensor};
    /// let (x, y) = (Tensor::from_slice(&[-1.0f32, -2.0], [2]), Tensor::from_slice(&[1.0f32, 1.0], [2]));
    /// let terms = x.kl_div_with(&y, &KlDiv::new().reduction(Reduction::None));
    /// assert_eq!(terms.to_vec::<f32>()?, [1.0, 2.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn reduction(mut self, reduction: Reduction) -> KlDiv {
        (self.reduction, self.is_of_batch) = (reduction, false);
        self
    }
}

/// What [`Tensor::binary_cross_entropy_with_logits_with`] and [`Tensor::binary_cross_entropy_with`] multiply their terms with.
///
/// ```
/// use lazuli::{BinaryCrossEntropy, Tensor};
/// let (x, y) = (Tensor::from_slice(&[0.0f32, 0.0], [2]), Tensor::from_slice(&[1.0f32, 0.0], [2]));
/// let three = Tensor::from_slice(&[3.0f32], [1]);
/// let settings = BinaryCrossEntropy::new().positive_weights(&three); // an answer "yes" counts three times
/// let loss = x.binary_cross_entropy_with_logits_with(&y, &settings);
/// assert_eq!(loss.item::<f32>()?, 2.0 * std::f32::consts::LN_2);
/// # Ok::<(), lazuli::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct BinaryCrossEntropy {
    weights: Option<Tensor>,
    positive: Option<Tensor>,
    reduction: Reduction,
}

impl Default for BinaryCrossEntropy {
    fn default() -> BinaryCrossEntropy {
        BinaryCrossEntropy { weights: None, positive: None, reduction: Reduction::Mean }
    }
}

impl BinaryCrossEntropy {
    /// The mean of terms that weigh the same.
    ///
    /// ```
    /// use lazuli::{BinaryCrossEntropy, Reduction, Tensor};
    /// let (x, y) = (Tensor::from_slice(&[0.5f32, -2.0], [2]), Tensor::from_slice(&[1.0f32, 1.0], [2]));
    /// let loss = x.binary_cross_entropy_with_logits_with(&y, &BinaryCrossEntropy::new());
    /// let plain = x.binary_cross_entropy_with_logits(&y, Reduction::Mean);
    /// assert_eq!(loss.item::<f32>()?, plain.item::<f32>()?);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn new() -> BinaryCrossEntropy {
        BinaryCrossEntropy::default()
    }

    /// What each term is multiplied with, which broadcasts; a mean is over how many terms there are. PyTorch's `weight`.
    ///
    /// ```
    /// use lazuli::{BinaryCrossEntropy, Tensor};
    /// let (x, y) = (Tensor::from_slice(&[0.0f32, 0.0], [2]), Tensor::from_slice(&[1.0f32, 0.0], [2]));
    /// let settings = BinaryCrossEntropy::new().weights(&Tensor::from_slice(&[2.0f32, 0.0], [2]));
    /// let loss = x.binary_cross_entropy_with_logits_with(&y, &settings);
    /// assert_eq!(loss.item::<f32>()?, std::f32::consts::LN_2);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn weights(mut self, weights: impl AsRef<Tensor>) -> BinaryCrossEntropy {
        self.weights = Some(weights.as_ref().clone());
        self
    }

    /// What the part of a term for an answer "yes" is multiplied with, which broadcasts. PyTorch's `pos_weight`.
    ///
    /// ```
    /// use lazuli::{BinaryCrossEntropy, Reduction, Tensor};
    /// let (x, y) = (Tensor::from_slice(&[0.0f32, 0.0], [2]), Tensor::from_slice(&[1.0f32, 0.0], [2]));
    /// let settings = BinaryCrossEntropy::new().positive_weights(&Tensor::scalar(2.0f32)).reduction(Reduction::None);
    /// let terms = x.binary_cross_entropy_with_logits_with(&y, &settings).to_vec::<f32>()?;
    /// assert_eq!(terms[0], 2.0 * terms[1]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn positive_weights(mut self, weights: impl AsRef<Tensor>) -> BinaryCrossEntropy {
        self.positive = Some(weights.as_ref().clone());
        self
    }

    /// What becomes of the terms.
    ///
    /// ```
    /// use lazuli::{BinaryCrossEntropy, Reduction, Tensor};
    /// let x = Tensor::from_slice(&[0.0f32, 0.0], [2]);
    /// let settings = BinaryCrossEntropy::new().reduction(Reduction::Sum);
    /// let loss = x.binary_cross_entropy_with_logits_with(&x, &settings);
    /// assert_eq!(loss.item::<f32>()?, 2.0 * std::f32::consts::LN_2);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn reduction(mut self, reduction: Reduction) -> BinaryCrossEntropy {
        self.reduction = reduction;
        self
    }
}

/// What [`Tensor::nll_loss_with`] does beside choosing an element.
///
/// ```
/// use lazuli::{NllLoss, Tensor};
/// let log_probabilities = Tensor::from_slice(&[-1.0f32, -2.0, -3.0, -4.0], [2, 2]);
/// let labels = Tensor::from_slice(&[0i64, 1], [2]);
/// let settings = NllLoss::new().weights(&Tensor::from_slice(&[1.0f32, 3.0], [2]));
/// assert_eq!(log_probabilities.nll_loss_with(&labels, &settings).item::<f32>()?, 3.25);
/// # Ok::<(), lazuli::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct NllLoss {
    weights: Option<Tensor>,
    ignored: i64,
    reduction: Reduction,
}

impl Default for NllLoss {
    fn default() -> NllLoss {
        NllLoss { weights: None, ignored: IGNORED, reduction: Reduction::Mean }
    }
}

impl NllLoss {
    /// The mean, of classes that weigh the same; -100 is no label.
    ///
    /// ```
    /// use lazuli::{NllLoss, Reduction, Tensor};
    /// let (x, labels) = (Tensor::rand([3, 5], 1), Tensor::from_slice(&[1i64, -100, 4], [3]));
    /// let plain = x.nll_loss(&labels, Reduction::Mean).item::<f32>()?;
    /// assert_eq!(x.nll_loss_with(&labels, &NllLoss::new()).item::<f32>()?, plain);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn new() -> NllLoss {
        NllLoss::default()
    }

    /// A float for each class, which its losses are multiplied with. The mean is over the weights of the labels.
    ///
    /// ```
    /// use lazuli::{NllLoss, Reduction, Tensor};
    /// let (x, labels) = (Tensor::from_slice(&[-1.0f32, -2.0], [1, 2]), Tensor::from_slice(&[1i64], [1]));
    /// let settings = NllLoss::new().weights(&Tensor::from_slice(&[1.0f32, 0.5], [2])).reduction(Reduction::Sum);
    /// assert_eq!(x.nll_loss_with(&labels, &settings).item::<f32>()?, 1.0);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn weights(mut self, weights: impl AsRef<Tensor>) -> NllLoss {
        self.weights = Some(weights.as_ref().clone());
        self
    }

    /// The label whose element has no loss and does not count in the mean: PyTorch's `ignore_index`.
    ///
    /// ```
    /// use lazuli::{NllLoss, Tensor};
    /// let x = Tensor::from_slice(&[-1.0f32, -2.0, -3.0, -4.0], [2, 2]);
    /// let labels = Tensor::from_slice(&[0i64, 1], [2]);
    /// assert_eq!(x.nll_loss_with(&labels, &NllLoss::new().ignored(0)).item::<f32>()?, 4.0);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn ignored(mut self, label: i64) -> NllLoss {
        self.ignored = label;
        self
    }

    /// What becomes of the losses of all elements.
    ///
    /// ```
    /// use lazuli::{NllLoss, Reduction, Tensor};
    /// let x = Tensor::from_slice(&[-1.0f32, -2.0, -3.0, -4.0], [2, 2]);
    /// let labels = Tensor::from_slice(&[0i64, 1], [2]);
    /// let losses = x.nll_loss_with(&labels, &NllLoss::new().reduction(Reduction::None));
    /// assert_eq!(losses.to_vec::<f32>()?, [1.0, 4.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn reduction(mut self, reduction: Reduction) -> NllLoss {
        self.reduction = reduction;
        self
    }
}

impl Tensor {
    /// [`Tensor::kl_div`] of a target that may be logarithms, `exp(y) * (y - x)`, and with the mean of a batch. Keeps the dtype;
    /// shapes broadcast; invalid for integers and bools.
    ///
    /// ```
    /// use lazuli::{KlDiv, Tensor};
    /// let (x, y) = (Tensor::from_slice(&[-1.0f32, -1.0], [1, 2]), Tensor::from_slice(&[0.0f32, 0.0], [1, 2]));
    /// assert_eq!(x.kl_div_with(&y, &KlDiv::new().log_target().batch_mean()).item::<f32>()?, 2.0);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn kl_div_with(&self, target: impl AsRef<Tensor>, settings: &KlDiv) -> Tensor {
        let (call, target) = (Call::here("kl_div_with"), target.as_ref());
        call.composed(|| {
            let batch = self.known()?.0.first().copied().unwrap_or(1);
            let dtype = Rule::Floats.dtype(call, &[self.into(), target.into()])?;
            // The sum of a batch is rounded once.
            let wide = if settings.is_of_batch { dtype.compute() } else { dtype };
            let [x, y] = [self, target].map(|x| x.cast(wide));
            let reduction = if settings.is_of_batch { Reduction::Sum } else { settings.reduction };
            let losses = loss_of(call, [&x, &y], reduction, |[x, y]| match settings.is_log {
                true => y.exp() * (&y - x),
                false => xlogy(&y, &y) - y * x,
            });
            Ok(if settings.is_of_batch { (losses / batch as f64).cast(dtype) } else { losses })
        })
    }

    /// [`Tensor::binary_cross_entropy_with_logits`] whose terms have weights: `w * ((1 - y) * x - (1 + (p - 1) * y) *
    /// log(sigmoid(x)))`. In the promoted dtype, which must be a float; shapes broadcast to that of prediction and target.
    ///
    /// ```
    /// use lazuli::{BinaryCrossEntropy, Tensor};
    /// let (x, y) = (Tensor::from_slice(&[-500.0f32], [1]), Tensor::from_slice(&[1.0f32], [1]));
    /// let settings = BinaryCrossEntropy::new().positive_weights(&Tensor::scalar(2.0f32));
    /// assert_eq!(x.binary_cross_entropy_with_logits_with(&y, &settings).item::<f32>()?, 1000.0);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn binary_cross_entropy_with_logits_with(
        &self,
        target: impl AsRef<Tensor>,
        settings: &BinaryCrossEntropy,
    ) -> Tensor {
        let (call, target) = (Call::here("binary_cross_entropy_with_logits_with"), target.as_ref());
        call.composed(|| {
            Rule::Floats.dtype(call, &[self.into(), target.into()])?;
            let together = call.broadcast(&[self.known()?.0, target.known()?.0])?;
            let one = Tensor::ones([], self.known()?.1);
            let weights = settings.weights.as_ref().unwrap_or(&one);
            let positive = settings.positive.as_ref().unwrap_or(&one);
            fits(call, weights, &together)?;
            fits(call, positive, &together)?;
            let BinaryCrossEntropy { reduction, .. } = *settings;
            Ok(loss_of(call, [self, target, positive, weights], reduction, |[x, y, positive, weights]| {
                let share = (positive - 1.0) * &y + 1.0;
                ((-y + 1.0) * &x - share * x.logsigmoid()) * weights
            }))
        })
    }

    /// [`Tensor::binary_cross_entropy`] whose terms have weights, which broadcast to the shape of prediction and target. In the promoted
    /// dtype, which must be a float. PyTorch's `binary_cross_entropy` with `weight`.
    ///
    /// Invalid for settings with positive weights, which are of logits.
    ///
    /// ```
    /// use lazuli::{BinaryCrossEntropy, Reduction, Tensor};
    /// let (x, y) = (Tensor::from_slice(&[0.5f32, 0.0], [2]), Tensor::from_slice(&[1.0f32, 1.0], [2]));
    /// let settings = BinaryCrossEntropy::new().weights(&Tensor::scalar(2.0f32)).reduction(Reduction::None);
    /// let losses = x.binary_cross_entropy_with(&y, &settings);
    /// assert_eq!(losses.to_vec::<f32>()?, [2.0 * std::f32::consts::LN_2, 200.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn binary_cross_entropy_with(
        &self,
        target: impl AsRef<Tensor>,
        settings: &BinaryCrossEntropy,
    ) -> Tensor {
        let (call, target) = (Call::here("binary_cross_entropy_with"), target.as_ref());
        call.composed(|| {
            let BinaryCrossEntropy { weights, positive, reduction } = settings;
            if positive.is_some() {
                return call
                    .fail("positive weights are of logits: use .binary_cross_entropy_with_logits_with");
            }
            Rule::Floats.dtype(call, &[self.into(), target.into()])?;
            let one = Tensor::ones([], self.known()?.1);
            let weights = weights.as_ref().unwrap_or(&one);
            fits(call, weights, &call.broadcast(&[self.known()?.0, target.known()?.0])?)?;
            Ok(loss_of(call, [self, target, weights], *reduction, |[x, y, weights]| {
                probability_loss(&x, &y) * weights
            }))
        })
    }

    /// [`Tensor::nll_loss`] with weights of the classes, and with another label that is none. Keeps the dtype; the 16-bit floats
    /// are computed in `F32` and rounded once.
    ///
    /// Invalid for what [`Tensor::nll_loss`] is, and if the weights are not one float a class.
    ///
    /// ```
    /// use lazuli::{NllLoss, Tensor};
    /// let x = Tensor::from_slice(&[-1.0f32, -2.0, -3.0, -4.0], [2, 2]);
    /// let labels = Tensor::from_slice(&[0i64, 1], [2]);
    /// let settings = NllLoss::new().weights(&Tensor::from_slice(&[3.0f32, 1.0], [2]));
    /// assert_eq!(x.nll_loss_with(&labels, &settings).item::<f32>()?, 1.75);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn nll_loss_with(&self, labels: impl AsRef<Tensor>, settings: &NllLoss) -> Tensor {
        let (call, labels) = (Call::here("nll_loss_with"), labels.as_ref());
        call.composed(|| nll_loss(call, self, labels, settings))
    }
}

/// An error unless weights broadcast to that shape.
fn fits(call: Call, weights: &Tensor, together: &Shape) -> Result<()> {
    let (own, dtype) = weights.known()?;
    match own.broadcast(together).as_ref() == Some(together) {
        true => Ok(()),
        false => call.fail(format!("weights of {dtype} {own} do not broadcast to {together}")),
    }
}

fn nll_loss(call: Call, x: &Tensor, labels: &Tensor, settings: &NllLoss) -> Result<Tensor> {
    let (shape, dtype) = x.known()?;
    let classes = shape[class_axis(call, x)?];
    let ByLabels { losses, counts, labels } = ByLabels::of(call, x, labels, settings.ignored, false)?;
    let (losses, own) = match &settings.weights {
        None => (losses, counts.cast(dtype.compute())),
        Some(weights) => {
            let weights = class_weights(call, weights, classes, dtype.compute())?;
            let own = counts.where_(looked_up(call, &weights, &labels)?, 0.0);
            (losses * &own, own)
        }
    };
    Ok(over_labels(call, &losses, &own, settings.reduction)?.cast(dtype))
}

/// The weights of so many classes in that dtype.
pub(super) fn class_weights(call: Call, weights: &Tensor, classes: usize, dtype: DType) -> Result<Tensor> {
    let (own, own_dtype) = weights.known()?;
    if *own != Shape::from([classes]) || !own_dtype.is_float() {
        return call
            .fail(format!("the weights must be {classes} floats, one a class, got {own_dtype} {own}"));
    }
    Ok(weights.cast(dtype))
}
