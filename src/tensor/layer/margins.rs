//! Losses of pairs and triples, which are to be on one side of a margin. On the 16-bit floats they are computed in `F32` and
//! rounded once.

use super::losses::{loss, loss_of};
use crate::tensor::arguments::call::Call;
use crate::tensor::arguments::promotion::Operand;
use crate::tensor::map::formula::Argument;
use crate::tensor::map::operands::Rule;
use crate::{DType, Reduction, Result, Tensor};

/// What PyTorch adds to differences whose norm it takes.
const APART: f64 = 1e-6;
/// What PyTorch adds to the squares of a cosine.
const SQUARES: f64 = 1e-12;

impl Tensor {
    /// The p-norm, along the last axis, of the difference from another tensor, with `eps` added to each element of it. In the
    /// promoted dtype, which must be a float; shapes broadcast. PyTorch's `p` is 2, its `eps` 1e-6. For all pairs of rows,
    /// see [`Tensor::cdist`].
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[3.0f32, 4.0, 0.0, 1.0], [2, 2]);
    /// assert_eq!(x.pairwise_distance(&x.zeros_like(), 2.0, 0.0).to_vec::<f32>()?, [5.0, 1.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn pairwise_distance(&self, other: impl AsRef<Tensor>, p: f64, eps: f64) -> Tensor {
        let other = other.as_ref();
        let call = Call::here("pairwise_distance");
        call.composed(|| {
            let (dtype, [x, y]) = together(call, [self, other])?;
            Ok(distance(&x, &y, p, eps).cast(dtype))
        })
    }

    /// By how much a triple fails to be farther apart from the negative than from the positive, by a margin:
    /// `max(d(x, positive) - d(x, negative) + margin, 0)` of the distances along the last axis, [`Tensor::pairwise_distance`]
    /// with a norm p and PyTorch's eps. With `swap`, d(positive, negative) stands for d(x, negative) where it is less. PyTorch's
    /// margin is 1, its `p` 2.
    ///
    /// V. Balntas et al., "Learning shallow convolutional feature descriptors with triplet losses", 2016.
    ///
    /// In the promoted dtype, which must be a float; shapes broadcast. Invalid unless the margin is positive.
    ///
    /// ```
    /// use lazuli::{Reduction, Tensor};
    /// let (x, far) = (Tensor::from_slice(&[0.0f32, 0.0], [1, 2]), Tensor::from_slice(&[3.0f32, 4.0], [1, 2]));
    /// let loss = |margin: f64| x.triplet_margin_loss(&x, &far, margin, 2.0, false, Reduction::Mean);
    /// assert_eq!(loss(1.0).item::<f32>()?, 0.0);
    /// assert_eq!(loss(7.0).round_decimals(3).item::<f32>()?, 2.0);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn triplet_margin_loss(
        &self,
        positive: impl AsRef<Tensor>,
        negative: impl AsRef<Tensor>,
        margin: f64,
        p: f64,
        swap: bool,
        reduction: Reduction,
    ) -> Tensor {
        let (positive, negative) = (positive.as_ref(), negative.as_ref());
        let call = Call::here("triplet_margin_loss");
        call.composed(|| {
            call.needs(margin > 0.0, "margin must be more than 0", margin)?;
            let (dtype, [x, positive, negative]) = together(call, [self, positive, negative])?;
            let near = distance(&x, &positive, p, APART);
            let own = distance(&x, &negative, p, APART);
            let far = if swap { own.minimum(distance(&positive, &negative, p, APART)) } else { own };
            let losses = loss_of(call, [&near, &far], reduction, |[near, far]| {
                (near - far + Argument(margin)).maximum(0.0)
            });
            Ok(losses.cast(dtype))
        })
    }

    /// [`Tensor::triplet_margin_loss`] by another distance, which is given two of the tensors, as they are. What it makes of them
    /// must be a float; shapes broadcast. PyTorch's `triplet_margin_with_distance_loss`.
    ///
    /// ```
    /// use lazuli::{Reduction, Tensor};
    /// let (x, far) = (Tensor::from_slice(&[0.0f32, 0.0], [1, 2]), Tensor::from_slice(&[3.0f32, 4.0], [1, 2]));
    /// let steps = |x: &Tensor, y: &Tensor| (x - y).abs().sum(-1);
    /// let loss = x.triplet_margin_with_distance_loss(&x, &far, steps, 9.0, false, Reduction::Mean);
    /// assert_eq!(loss.item::<f32>()?, 2.0);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn triplet_margin_with_distance_loss(
        &self,
        positive: impl AsRef<Tensor>,
        negative: impl AsRef<Tensor>,
        distance: impl Fn(&Tensor, &Tensor) -> Tensor,
        margin: f64,
        swap: bool,
        reduction: Reduction,
    ) -> Tensor {
        let (positive, negative) = (positive.as_ref(), negative.as_ref());
        // The user's own operations carry their own names and lines.
        let (near, own) = (distance(self, positive), distance(self, negative));
        let other = swap.then(|| distance(positive, negative));
        let call = Call::here("triplet_margin_with_distance_loss");
        call.composed(|| {
            call.needs(margin > 0.0, "margin must be more than 0", margin)?;
            let far = other.map_or(own.clone(), |other| own.minimum(other));
            let (dtype, [near, far]) = together(call, [&near, &far])?;
            let losses = loss_of(call, [&near, &far], reduction, |[near, far]| {
                (near - far + Argument(margin)).maximum(0.0)
            });
            Ok(losses.cast(dtype))
        })
    }

    /// `max(-y * (x - other) + margin, 0)`: 0 where x is the larger by the margin for a target y of 1, the smaller for one of
    /// -1. In the promoted dtype, which must be a float; shapes broadcast. PyTorch's margin is 0.
    ///
    /// ```
    /// use lazuli::{Reduction, Tensor};
    /// let (x, y) = (Tensor::from_slice(&[1.0f32, 1.0], [2]), Tensor::from_slice(&[3.0f32, 3.0], [2]));
    /// let target = Tensor::from_slice(&[1, -1], [2]);
    /// assert_eq!(x.margin_ranking_loss(&y, &target, 0.5, Reduction::None).to_vec::<f32>()?, [2.5, 0.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn margin_ranking_loss(
        &self,
        other: impl AsRef<Tensor>,
        target: impl AsRef<Tensor>,
        margin: f64,
        reduction: Reduction,
    ) -> Tensor {
        let (other, target) = (other.as_ref(), target.as_ref());
        let call = Call::here("margin_ranking_loss");
        loss_of(call, [self, other, target], reduction, |[x, other, y]| {
            (-y * (x - other) + Argument(margin)).maximum(0.0)
        })
    }

    /// Of the cosine of the angle between two tensors along the last axis, `1 - cos` where the target is 1, and
    /// `max(cos - margin, 0)` where it is -1. The target has the other axes. In the promoted dtype, which must be a float;
    /// shapes broadcast. PyTorch's margin is 0.
    ///
    /// ```
    /// use lazuli::{Reduction, Tensor};
    /// let x = Tensor::from_slice(&[1.0f32, 0.0, 0.0, 1.0], [2, 2]);
    /// let target = Tensor::from_slice(&[1, -1], [2]);
    /// let losses = x.cosine_embedding_loss(&x, &target, 0.25, Reduction::None);
    /// assert_eq!(losses.to_vec::<f32>()?, [0.0, 0.75]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn cosine_embedding_loss(
        &self,
        other: impl AsRef<Tensor>,
        target: impl AsRef<Tensor>,
        margin: f64,
        reduction: Reduction,
    ) -> Tensor {
        let (other, target) = (other.as_ref(), target.as_ref());
        let call = Call::here("cosine_embedding_loss");
        call.composed(|| {
            let (dtype, [x, y, target]) = together(call, [self, other, target])?;
            let squares = |x: &Tensor| (x * x).sum(-1) + SQUARES;
            let cosine = (&x * &y).sum(-1) / (squares(&x) * squares(&y)).sqrt();
            let losses = loss_of(call, [&cosine, &target], reduction, |[cosine, y]| {
                let near = y.eq(1.0).select(-&cosine + 1.0, 0.0);
                near + y.eq(-1.0).select((cosine - Argument(margin)).maximum(0.0), 0.0)
            });
            Ok(losses.cast(dtype))
        })
    }

    /// A distance itself where the target is 1, and what it falls short of a margin, `max(margin - x, 0)`, where it is -1; of
    /// any other target the sum of both. Keeps the dtype; shapes broadcast; invalid for integers and bools. PyTorch's margin
    /// is 1.
    ///
    /// ```
    /// use lazuli::{Reduction, Tensor};
    /// let x = Tensor::from_slice(&[0.25f32, 0.25, 3.0], [3]);
    /// let target = Tensor::from_slice(&[1, -1, -1], [3]);
    /// assert_eq!(x.hinge_embedding_loss(&target, 1.0, Reduction::None).to_vec::<f32>()?, [0.25, 0.75, 0.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn hinge_embedding_loss(
        &self,
        target: impl AsRef<Tensor>,
        margin: f64,
        reduction: Reduction,
    ) -> Tensor {
        let target = target.as_ref();
        loss(Call::here("hinge_embedding_loss"), self, target, reduction, |x, y| {
            let short = (-x + Argument(margin)).maximum(0.0);
            y.eq(1.0).select(0.0, short) + y.eq(-1.0).select(0.0, x)
        })
    }

    /// `log(1 + exp(-y * x))` of a target y of 1 or -1, without overflow. Keeps the dtype; shapes broadcast; invalid for
    /// integers and bools.
    ///
    /// ```
    /// use lazuli::{Reduction, Tensor};
    /// let (x, y) = (Tensor::from_slice(&[0.0f32, -500.0], [2]), Tensor::from_slice(&[1, 1], [2]));
    /// let losses = x.soft_margin_loss(&y, Reduction::None);
    /// assert_eq!(losses.to_vec::<f32>()?, [std::f32::consts::LN_2, 500.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn soft_margin_loss(&self, target: impl AsRef<Tensor>, reduction: Reduction) -> Tensor {
        let target = target.as_ref();
        let call = Call::here("soft_margin_loss");
        loss(call, self, target, reduction, |x, y| -(y * x).logsigmoid())
    }
}

/// The dtype in which tensors meet, which must be a float, and the tensors in that of its arithmetic.
fn together<const N: usize>(call: Call, tensors: [&Tensor; N]) -> Result<(DType, [Tensor; N])> {
    let dtype = Rule::Floats.dtype(call, &tensors.map(Operand::from))?;
    Ok((dtype, tensors.map(|tensor| tensor.cast(dtype.compute()))))
}

fn distance(x: &Tensor, y: &Tensor, p: f64, eps: f64) -> Tensor {
    (x - y + eps).norm(-1, p)
}
