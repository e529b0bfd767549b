//! Cross-entropy with all that PyTorch's has: weights of the classes, smoothed labels, probabilities in place of labels.

use super::losses::{ByLabels, IGNORED, Reduction, class_axis, over_labels};
use super::weighted::class_weights;
use crate::tensor::arguments::call::Call;
use crate::tensor::position::gather::looked_up;
use crate::{Result, Shape, Tensor};

/// What [`Tensor::cross_entropy_with`] does beside the logarithm of the softmax.
///
/// ```
/// use lazuli::{CrossEntropy, Tensor};
/// let logits = Tensor::from_slice(&[0.0f32, 0.0, 500.0, -500.0], [2, 2]);
/// let labels = Tensor::from_slice(&[1i64, 0], [2]);
/// let weights = Tensor::from_slice(&[1.0f32, 3.0], [2]);
/// let loss = logits.cross_entropy_with(&labels, &CrossEntropy::new().weights(&weights));
/// assert_eq!(loss.item::<f32>()?, 0.75 * std::f32::consts::LN_2);
/// # Ok::<(), lazuli::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct CrossEntropy {
    weights: Option<Tensor>,
    smoothing: f64,
    ignored: i64,
    reduction: Reduction,
}

impl Default for CrossEntropy {
    fn default() -> CrossEntropy {
        CrossEntropy { weights: None, smoothing: 0.0, ignored: IGNORED, reduction: Reduction::Mean }
    }
}

impl CrossEntropy {
    /// The mean, of classes that weigh the same; labels are not smoothed, and -100 is no label.
    ///
    /// ```
    /// use lazuli::{CrossEntropy, Reduction, Tensor};
    /// let (logits, labels) = (Tensor::rand([3, 5], 1), Tensor::from_slice(&[1i64, -100, 4], [3]));
    /// let plain = logits.cross_entropy(&labels, Reduction::Mean).item::<f32>()?;
    /// let loss = logits.cross_entropy_with(&labels, &CrossEntropy::new()).item::<f32>()?;
    /// assert_eq!(loss, plain);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn new() -> CrossEntropy {
        CrossEntropy::default()
    }

    /// A float for each class, which its terms are multiplied with. The mean is over the weights of the labels.
    ///
    /// ```
    /// use lazuli::{CrossEntropy, Reduction, Tensor};
    /// let (logits, labels) = (Tensor::ones([1, 2], lazuli::DType::F32), Tensor::from_slice(&[1i64], [1]));
    /// let settings = CrossEntropy::new().weights(&Tensor::from_slice(&[1.0f32, 0.0], [2])).reduction(Reduction::Sum);
    /// assert_eq!(logits.cross_entropy_with(&labels, &settings).item::<f32>()?, 0.0);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn weights(mut self, weights: impl AsRef<Tensor>) -> CrossEntropy {
        let weights = weights.as_ref();
        self.weights = Some(weights.clone());
        self
    }

    /// How much of each label all classes share, from 0 to 1.
    ///
    /// ```
    /// use lazuli::{CrossEntropy, Tensor};
    /// let logits = Tensor::from_slice(&[0.0f32, 100.0], [1, 2]);
    /// let labels = Tensor::from_slice(&[1i64], [1]);
    /// let loss = logits.cross_entropy_with(&labels, &CrossEntropy::new().smoothing(0.5));
    /// assert_eq!(loss.item::<f32>()?, 25.0);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn smoothing(mut self, smoothing: f64) -> CrossEntropy {
        self.smoothing = smoothing;
        self
    }

    /// The label whose element has no loss and does not count in the mean.
    ///
    /// ```
    /// use lazuli::{CrossEntropy, Tensor};
    /// let (logits, labels) = (Tensor::zeros([2, 4], lazuli::DType::F32), Tensor::from_slice(&[3i64, -1], [2]));
    /// let loss = logits.cross_entropy_with(&labels, &CrossEntropy::new().ignored(-1));
    /// assert_eq!(loss.item::<f32>()?, 4f32.ln());
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn ignored(mut self, label: i64) -> CrossEntropy {
        self.ignored = label;
        self
    }

    /// What becomes of the losses of all elements.
    ///
    /// ```
    /// use lazuli::{CrossEntropy, Reduction, Tensor};
    /// let (logits, labels) = (Tensor::zeros([2, 4], lazuli::DType::F32), Tensor::from_slice(&[3i64, 0], [2]));
    /// let losses = logits.cross_entropy_with(&labels, &CrossEntropy::new().reduction(Reduction::None));
    /// assert_eq!(losses.to_vec::<f32>()?, [4f32.ln(), 4f32.ln()]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn reduction(mut self, reduction: Reduction) -> CrossEntropy {
        self.reduction = reduction;
        self
    }
}

impl Tensor {
    /// [`Tensor::cross_entropy`] with weights, smoothing or probabilities. The target is integers, labels as those of
    /// [`Tensor::nll_loss`], or floats of the logits' shape, the probabilities of all classes; of these the mean is over all
    /// elements, whatever they weigh. Keeps the dtype; the 16-bit floats are computed in `F32` and rounded once.
    ///
    /// Invalid for logits of integers and bools, if the target or the weights do not fit, and for a smoothing that is not
    /// from 0 to 1.
    ///
    /// ```
    /// use lazuli::{CrossEntropy, DType, Tensor};
    /// let logits = Tensor::zeros([2, 4], DType::F32);
    /// let probabilities = Tensor::from_slice(&[0.25f32, 0.25, 0.5, 0.0, 0.0, 0.0, 1.0, 0.0], [2, 4]);
    /// let loss = logits.cross_entropy_with(&probabilities, &CrossEntropy::new());
    /// assert_eq!(loss.item::<f32>()?, 4f32.ln());
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn cross_entropy_with(&self, target: impl AsRef<Tensor>, settings: &CrossEntropy) -> Tensor {
        let target = target.as_ref();
        let call = Call::here("cross_entropy_with");
        call.composed(|| cross_entropy(call, self, target, settings))
    }
}

fn cross_entropy(call: Call, x: &Tensor, target: &Tensor, settings: &CrossEntropy) -> Result<Tensor> {
    let CrossEntropy { weights, smoothing, ignored, reduction } = settings;
    let (shape, dtype) = x.known()?;
    let axis = class_axis(call, x)?;
    let classes = shape[axis];
    if !(0.0..=1.0).contains(smoothing) {
        return call.fail(format!("the smoothing must be from 0 to 1, got {smoothing}"));
    }
    let weights = match weights {
        None => None,
        Some(weights) => Some(class_weights(call, weights, classes, dtype.compute())?),
    };
    // Of all classes, each with its weight.
    let weighted = || {
        let logarithms = x.cast(dtype.compute()).log_softmax(axis as isize);
        let along: Shape = (0..shape.rank()).map(|n| if n == axis { classes } else { 1 }).collect();
        match &weights {
            None => logarithms,
            Some(weights) => logarithms * weights.reshape(&along),
        }
    };
    let (given, target_dtype) = target.known()?;
    let result = if target_dtype.is_float() {
        if given != shape {
            return call.fail(format!("probabilities of shape {given} do not fit {shape}"));
        }
        let mut probabilities = target.cast(dtype.compute());
        if *smoothing > 0.0 {
            probabilities = probabilities * (1.0 - smoothing) + smoothing / classes as f64;
        }
        let losses = -(weighted() * probabilities).sum(axis);
        match reduction {
            Reduction::None => losses,
            Reduction::Sum => losses.sum(..),
            Reduction::Mean => losses.mean(..),
        }
    } else {
        let ByLabels { mut losses, counts, labels } = ByLabels::of(call, x, target, *ignored, true)?;
        let own = match &weights {
            None => counts.cast(dtype.compute()),
            Some(weights) => {
                let own = counts.where_(looked_up(call, weights, &labels)?, 0.0);
                losses = losses * &own;
                own
            }
        };
        if *smoothing > 0.0 {
            let all = counts.where_(weighted().sum(axis), 0.0);
            losses = losses * (1.0 - smoothing) - all * (smoothing / classes as f64);
        }
        over_labels(call, &losses, &own, *reduction)?
    };
    Ok(result.cast(dtype))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DType;
    use crate::tensor::tests::mistake;

    #[test]
    fn mistakes_say_what_does_not_fit() {
        let (x, labels) = (Tensor::ones([2, 3], DType::F32), Tensor::ones([2], DType::I64));
        mistake!(
            x.cross_entropy_with(&labels, &CrossEntropy::new().smoothing(1.5)),
            "cross_entropy_with: the smoothing must be from 0 to 1, got 1.5"
        );
        mistake!(
            x.cross_entropy_with(&labels, &CrossEntropy::new().weights(&Tensor::ones([2], DType::F32))),
            "cross_entropy_with: the weights must be 3 floats, one a class, got f32 [2]"
        );
        mistake!(
            x.cross_entropy_with(&Tensor::ones([2], DType::F32), &CrossEntropy::new()),
            "cross_entropy_with: probabilities of shape [2] do not fit [2, 3]"
        );
    }
}
