//! Losses of many classes, one or several of which are right.

use super::losses::{Reduction, loss};
use super::weighted::class_weights;
use crate::tensor::arguments::call::Call;
use crate::tensor::make::create::counting;
use crate::tensor::map::operands::Rule;
use crate::tensor::position::gather::{looked_up, needs_index};
use crate::{DType, Operand, Result, Shape, Tensor};

impl Tensor {
    /// By how much classes fail to be below that of the label by a margin, `max(margin - x[label] + x[i], 0)` to the power `p`, 1 or 2,
    /// summed over all others and over how many classes there are. Of `[batch, classes]` and a label for each row, or of one row.
    /// `weights` has a float for each class, which the losses of its labels are multiplied with. Keeps the dtype; the 16-bit floats
    /// are computed in `F32` and rounded once. PyTorch's `p` and margin are 1.
    ///
    /// A label that is no class is an [`IndexOutOfRange`](crate::Error::IndexOutOfRange) when the values are asked for. Invalid for
    /// integers and bools, for another `p`, and if labels or weights do not fit.
    ///
    /// ```
    /// use lazuli::{Reduction, Tensor};
    /// let x = Tensor::from_slice(&[3.0f32, 2.5, 0.0, 0.0], [1, 4]);
    /// let labels = Tensor::from_slice(&[0i64], [1]);
    /// assert_eq!(x.multi_margin_loss(&labels, 1, 1.0, None, Reduction::Mean).item::<f32>()?, 0.125);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn multi_margin_loss(
        &self,
        labels: impl AsRef<Tensor>,
        p: u32,
        margin: f64,
        weights: Option<&Tensor>,
        reduction: Reduction,
    ) -> Tensor {
        let (call, labels) = (Call::here("multi_margin_loss"), labels.as_ref());
        call.composed(|| {
            call.needs(matches!(p, 1 | 2), "p must be 1 or 2", p)?;
            let (shape, dtype, classes) = rows(call, self)?;
            let expected = Shape::from(&shape[..shape.rank() - 1]);
            needs_labels(call, labels, &expected, shape)?;
            let x = self.cast(dtype.compute());
            let labels = labels.cast(DType::I64);
            let places = labels.unsqueeze(-1);
            let short = &x - x.gather(-1, &places) + margin;
            let is_other = counting(classes).ne(&places);
            let counts = short.gt(0.0).logical_and(is_other);
            let short = counts.where_(&short, 0.0);
            let losses = (if p == 1 { short } else { short.square() }).sum(-1) / classes as f64;
            let losses = match weights {
                None => losses,
                Some(weights) => {
                    losses
                        * looked_up(call, &class_weights(call, weights, classes, dtype.compute())?, &labels)?
                }
            };
            Ok(reduced(&losses, reduction).cast(dtype))
        })
    }

    /// By how much classes that are not among a row's labels fail to be below each that is by 1, `max(1 - x[label] + x[i], 0)`, summed,
    /// over how many classes there are. Labels are integers of this shape, `[batch, classes]` or one row, and end at the first -1.
    /// Keeps the dtype; the 16-bit floats are computed in `F32` and rounded once. PyTorch's `multilabel_margin_loss`.
    ///
    /// A label that is no class is an [`IndexOutOfRange`](crate::Error::IndexOutOfRange) when the values are asked for. Invalid for
    /// integers and bools, and if the labels do not fit.
    ///
    /// ```
    /// use lazuli::{Reduction, Tensor};
    /// let x = Tensor::from_slice(&[0.1f32, 0.2, 0.4, 0.8], [4]);
    /// let labels = Tensor::from_slice(&[3i64, 0, -1, 1], [4]);
    /// let loss = x.multilabel_margin_loss(&labels, Reduction::Mean).item::<f32>()?;
    /// assert!((loss - 0.85).abs() < 1e-6);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn multilabel_margin_loss(&self, labels: impl AsRef<Tensor>, reduction: Reduction) -> Tensor {
        let (call, labels) = (Call::here("multilabel_margin_loss"), labels.as_ref());
        call.composed(|| {
            let (shape, dtype, classes) = rows(call, self)?;
            needs_labels(call, labels, shape, shape)?;
            let (x, labels) = (self.cast(dtype.compute()), labels.cast(DType::I64));
            let is_label = labels.eq(-1).cumsum(-1).eq(0);
            let labels = is_label.where_(&labels, 0);
            // Labels along the last axis but one, classes along the last.
            let is_named = labels.unsqueeze(-1).eq(counting(classes)).logical_and(is_label.unsqueeze(-1));
            let is_other = is_named.any(-2).logical_not();
            let short = x.unsqueeze(-2) - x.gather(-1, &labels).unsqueeze(-1) + 1.0;
            let counts =
                short.gt(0.0).logical_and(is_label.unsqueeze(-1)).logical_and(is_other.unsqueeze(-2));
            let losses = counts.where_(short, 0.0).sum([-2, -1]) / classes as f64;
            Ok(reduced(&losses, reduction).cast(dtype))
        })
    }

    /// The mean over the last axis, the classes, of the cross-entropy of logits with whether each class is right:
    /// `-(y * log(sigmoid(x)) + (1 - y) * log(sigmoid(-x)))`. `weights`, which broadcast, multiply the terms. In the promoted dtype, which
    /// must be a float; shapes broadcast. PyTorch's `multilabel_soft_margin_loss`.
    ///
    /// ```
    /// use lazuli::{Reduction, Tensor};
    /// let x = Tensor::from_slice(&[0.0f32, 0.0, 500.0, -500.0], [2, 2]);
    /// let y = Tensor::from_slice(&[1.0f32, 0.0, 1.0, 0.0], [2, 2]);
    /// let losses = x.multilabel_soft_margin_loss(&y, None, Reduction::None);
    /// assert_eq!(losses.to_vec::<f32>()?, [std::f32::consts::LN_2, 0.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn multilabel_soft_margin_loss(
        &self,
        target: impl AsRef<Tensor>,
        weights: Option<&Tensor>,
        reduction: Reduction,
    ) -> Tensor {
        let (call, target) = (Call::here("multilabel_soft_margin_loss"), target.as_ref());
        call.composed(|| {
            let together = call.broadcast(&[self.known()?.0, target.known()?.0])?;
            if together.rank() == 0 {
                return call.fail("needs a dimension of classes, got 0-d tensors");
            }
            let operands: Vec<Operand> =
                [self, target].into_iter().chain(weights).map(Operand::from).collect();
            let dtype = Rule::Floats.dtype(call, &operands)?;
            let [x, y] = [self, target].map(|x| x.cast(dtype.compute()));
            let terms = loss(call, &x, &y, Reduction::None, |x, y| {
                -(y * x.logsigmoid() + (-y + 1.0) * (-x).logsigmoid())
            });
            let terms = weights.map_or(terms.clone(), |weights| terms * weights);
            Ok(reduced(&terms.mean(-1), reduction).cast(dtype))
        })
    }
}

/// The shape, of a batch of rows or of one, the dtype, and how many classes there are.
fn rows(call: Call, x: &Tensor) -> Result<(&Shape, DType, usize)> {
    call.needs_float(x)?;
    let (shape, dtype) = x.known()?;
    match shape[..] {
        [classes] | [_, classes] if classes > 0 => Ok((shape, dtype, classes)),
        _ => call.fail(format!("needs [batch, classes] or [classes], got {dtype} {shape}")),
    }
}

fn needs_labels(call: Call, labels: &Tensor, expected: &Shape, shape: &Shape) -> Result<()> {
    needs_index(call, labels)?;
    let (own, _) = labels.known()?;
    match own == expected {
        true => Ok(()),
        false => call.fail(format!("labels of shape {own} do not fit {shape}: they are {expected}")),
    }
}

fn reduced(losses: &Tensor, reduction: Reduction) -> Tensor {
    match reduction {
        Reduction::None => losses.clone(),
        Reduction::Sum => losses.sum(..),
        Reduction::Mean => losses.mean(..),
    }
}
