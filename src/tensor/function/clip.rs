//! A bound on gradients.

use super::tree::{Tensors, tree_map};
use crate::tensor::arguments::call::Call;
use crate::{DType, Tensor};

/// Gradients scaled so that their norm of order `p`, as of one vector, is at most `max_norm`, and the norm that they have had, a 0-d
/// tensor: each is multiplied with `min(max_norm / (norm + 1e-6), 1)`. They are any value of tensors, as to
/// [`tree_map`]. PyTorch's `nn.utils.clip_grad_norm_`, whose `p` is 2.
///
/// All are invalid if one is, for integers and bools, and for a `p` that is NaN. Of none, the norm is 0.
///
/// ```
/// use lazuli::{Tensor, clip_grad_norm};
/// let gradients = (Tensor::from([3.0f32, 0.0]), vec![Tensor::from([[4.0f32]])]);
/// let (clipped, norm) = clip_grad_norm(&gradients, 1.0, 2.0);
/// assert_eq!(norm.item::<f32>()?, 5.0);
/// assert!((clipped.1[0].item::<f32>()? - 0.8).abs() < 1e-6);
/// # Ok::<(), lazuli::Error>(())
/// ```
#[track_caller]
pub fn clip_grad_norm<T: Tensors>(gradients: &T, max_norm: f64, p: f64) -> (T, Tensor) {
    let call = Call::here("clip_grad_norm");
    let mut norms = Vec::new();
    tree_map([gradients], |[gradient]| {
        norms.push(call.compose(|| gradient.norm(.., p)));
        gradient.clone()
    });
    let norm = call.compose(|| match norms.is_empty() {
        true => Tensor::zeros([], DType::F32),
        false => Tensor::stack(&norms, 0).norm(.., p),
    });
    let factor = call.compose(|| ((&norm + 1e-6).reciprocal() * max_norm).clamp_max(1.0));
    let clipped = tree_map([gradients], |[gradient]| {
        call.composed(|| Ok((gradient * &factor).cast(gradient.known()?.1)))
    });
    (clipped, norm)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Device;

    #[test]
    fn what_is_small_stays_and_what_is_wrong_says_so() {
        let x = Tensor::from_slice(&[0.25f64, -0.5], [2]).to(&Device::interpreter());
        let small = [x.clone()];
        let ([same], norm) = clip_grad_norm(&small, 1.0, 1.0);
        assert_eq!((same.to_vec::<f64>().unwrap(), norm.item::<f64>().unwrap()), (vec![0.25, -0.5], 0.75));
        let ([half], _) = clip_grad_norm(&[x.clone() * 4], 1.0, f64::INFINITY);
        assert!((half * 2 - &x * 4).abs().max(..).item::<f64>().unwrap() < 1e-5);
        let (_, norm) = clip_grad_norm(&[x.cast(DType::I32)], 1.0, 2.0);
        assert!(norm.item::<f64>().unwrap_err().to_string().starts_with("clip_grad_norm: needs a float"));
        assert_eq!(clip_grad_norm(&Vec::<Tensor>::new(), 1.0, 2.0).1.item::<f32>().unwrap(), 0.0);
    }
}
