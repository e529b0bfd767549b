//! Derivatives of many results: made of one gradient for each.

use super::sweep;
use crate::graph::op::ConstantRole;
use crate::tensor::arguments::call::Call;
use crate::tensor::make::create::counting;
use crate::{Result, Scalar, Shape, Tensor};

/// A Jacobian has so many rows at most, each of which is a gradient of its own.
const MOST_ROWS: usize = 4096;

/// The derivatives of each element of `output` by each element of `by`, along the axes of the output and then those of `by`, in the
/// dtype of `by`. PyTorch's and JAX's `jacobian`, but of what was recorded, as [`grad`](crate::grad), whose words on `by` hold.
///
/// **Cost**: one gradient for each element of the output, recorded and computed. It is for small outputs. A product with a vector
/// needs no Jacobian: see [`vjp`](crate::vjp) and [`jvp`].
///
/// ```
/// use lazuli::{Shape, Tensor};
/// let x = Tensor::from([1.0f32, 2.0, 3.0]);
/// let y = Tensor::stack(&[x.square().sum(0), x.prod(0)], 0);
/// let jacobian = lazuli::jacobian(&y, &x);
/// assert_eq!(jacobian.shape()?, Shape::from([2, 3]));
/// assert_eq!(jacobian.to_vec::<f32>()?, [2.0, 4.0, 6.0, 6.0, 3.0, 2.0]);
/// # Ok::<(), lazuli::Error>(())
/// ```
///
/// Invalid if either is no float, if the output does not follow from `by` as [`grad`](crate::grad) says, and for more than 4,096 elements
/// of the output.
#[track_caller]
pub fn jacobian(output: &Tensor, by: &Tensor) -> Tensor {
    let call = Call::here("jacobian");
    Tensor::or_invalid(rows(call, output, by))
}

/// The second derivatives of a 0-d tensor by each two elements of `by`, along the axes of `by` twice: the [`jacobian`] of the
/// gradient. PyTorch's and JAX's `hessian`. Zeros where the gradient is constant, that of a line too.
///
/// **Cost**: one gradient of the gradient for each element of `by`, recorded and computed. For the product with a vector, take
/// [`vjp`](crate::vjp) of the gradient.
///
/// ```
/// use lazuli::Tensor;
/// let x = Tensor::from([1.0f32, 2.0]);
/// let loss = x.select(0, 0).square() * x.select(0, 1);
/// assert_eq!(lazuli::hessian(&loss, &x).to_vec::<f32>()?, [4.0, 2.0, 2.0, 0.0]);
/// # Ok::<(), lazuli::Error>(())
/// ```
///
/// Invalid as [`grad`](crate::grad), and for more than 4,096 elements of `by`.
#[track_caller]
pub fn hessian(loss: &Tensor, by: &Tensor) -> Tensor {
    let call = Call::here("hessian");
    let second = || {
        let gradient = super::grad(loss, by);
        match sweep::follow(&[(gradient.clone(), gradient.clone())], by)? {
            true => rows(call, &gradient, by),
            // Of a line.
            false => {
                let shape = gradient.known()?.0;
                Ok(gradient.new_zeros(Shape::from([&shape[..], shape].concat())))
            }
        }
    };
    call.composed(second)
}

/// How `output` changes where `by` does by the tangent: the sum over all elements of `by` of the derivatives by each times its
/// tangent, of the output's shape and dtype. JAX's and PyTorch's `jvp`, but of what was recorded, as [`grad`](crate::grad), whose words
/// on `by` hold. It is the derivative of a gradient by what reaches it, which takes about twice as long as a gradient.
///
/// ```
/// use lazuli::Tensor;
/// let x = Tensor::from([1.0f32, 2.0, 3.0]);
/// let change = lazuli::jvp(&x.square(), &x, &Tensor::from([1.0f32, 0.0, -1.0]));
/// assert_eq!(change.to_vec::<f32>()?, [2.0, 0.0, -6.0]);
/// # Ok::<(), lazuli::Error>(())
/// ```
///
/// Zeros where the output is constant but for jumps. Invalid if the output or `by` is no float, if the output does not follow from `by`
/// as [`grad`](crate::grad) says, or if the tangent has another shape.
#[track_caller]
pub fn jvp(output: &Tensor, by: &Tensor, tangent: &Tensor) -> Tensor {
    let call = Call::here("jvp");
    let forward = || {
        let ((shape, dtype), (given, _)) = (by.known()?, tangent.known()?);
        if shape != given {
            return call.fail(format!("`by` has shape {shape}, its tangent {given}: they must be equal"));
        }
        // Its values do not matter: the gradient is linear in it.
        let cotangent = output.zeros_like();
        let gradient = super::vjp(&[output], &[&cotangent], by);
        gradient.validity()?;
        let pair = (gradient, call.cast(tangent, dtype)?);
        let found = sweep::sweep(std::slice::from_ref(&pair), std::slice::from_ref(&cotangent))?;
        // What is constant but for jumps does not change.
        Ok(found.into_iter().next().flatten().unwrap_or_else(|| output.zeros_like()))
    };
    call.composed(forward)
}

fn rows(call: Call, output: &Tensor, by: &Tensor) -> Result<Tensor> {
    let ((shape, dtype), (of, own)) = (output.known()?, by.known()?);
    let count = shape.elements();
    if count > MOST_ROWS {
        return call.fail(format!(
            "records a gradient for each element of shape {shape}: there are more than {MOST_ROWS}"
        ));
    }
    let whole = Shape::from([&shape[..], of].concat());
    call.compose(|| {
        let places = counting(count).reshape(shape);
        let row = |number: usize| {
            let cotangent = places.eq(number as i64).cast(dtype);
            super::vjp(&[output], &[cotangent], by).ravel()
        };
        let rows: Vec<Tensor> = (0..count).map(row).collect();
        match rows.is_empty() {
            // Whether it is one at all.
            true => {
                let checked = super::vjp(&[output], &[output.zeros_like()], by);
                checked.validity()?;
                call.needs_addressable(&whole)?;
                call.filled_on(by.node.device, Scalar::from_i64(own, 0), ConstantRole::Literal, &whole)
            }
            false => Ok(Tensor::stack(&rows, 0).reshape(whole)),
        }
    })
}
