//! A product of many matrices, in the order that takes the fewest multiplications.

use std::borrow::Borrow;

use crate::tensor::arguments::call::Call;
use crate::tensor::view::join::borrowed;
use crate::{Result, Tensor};

impl Tensor {
    /// The product of two matrices or more, in the order that takes the fewest multiplications. The first and the last may be
    /// vectors, as of [`Tensor::matmul`]. In the promoted dtype. PyTorch's `torch.linalg.multi_dot`.
    ///
    /// Invalid for fewer than two tensors, for other numbers of dimensions, and where neighbours do not fit.
    ///
    /// ```
    /// use lazuli::{DType, Shape, Tensor};
    /// let (a, b) = (Tensor::ones([100, 2], DType::F32), Tensor::ones([2, 100], DType::F32));
    /// // `b @ v` first, and not `a @ b`.
    /// let product = Tensor::multi_dot(&[&a, &b, &Tensor::ones([100], DType::F32)]);
    /// assert_eq!(product.to_vec::<f32>()?, [200.0; 100]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn multi_dot<T: Borrow<Tensor>>(tensors: impl AsRef<[T]>) -> Tensor {
        let (call, tensors) = (Call::here("multi_dot"), tensors.as_ref());
        call.composed(|| multi_dot(call, &borrowed(tensors)))
    }
}

fn multi_dot(call: Call, tensors: &[&Tensor]) -> Result<Tensor> {
    let count = tensors.len();
    if count < 2 {
        return call.fail(format!("needs at least two tensors, got {count}"));
    }
    // The extents between which the matrices go.
    let mut extents = Vec::with_capacity(count + 1);
    for (number, tensor) in tensors.iter().enumerate() {
        let (shape, dtype) = tensor.known()?;
        let (rows, columns) = match shape[..] {
            [rows, columns] => (rows, columns),
            [length] if number == 0 => (1, length),
            [length] if number + 1 == count => (length, 1),
            _ => {
                let may =
                    if number == 0 || number + 1 == count { "1 or 2 dimensions" } else { "2 dimensions" };
                return call.fail(format!("tensor {number} must have {may}, got {dtype} {shape}"));
            }
        };
        match extents.last() {
            None => extents.push(rows),
            Some(&before) if before == rows => {}
            Some(_) => {
                let before = tensors[number - 1].known()?.0;
                return call.fail(format!(
                    "shapes {before} and {shape} of tensors {} and {number} do not fit",
                    number - 1
                ));
            }
        }
        extents.push(columns);
    }
    let breaks = fewest(&extents);
    product(tensors, &breaks, 0, count - 1)
}

/// Where the product of the matrices from i to j is divided. S. Godbole, "On efficient computation of matrix chain products",
/// 1973.
fn fewest(extents: &[usize]) -> Vec<Vec<usize>> {
    let count = extents.len() - 1;
    let mut costs = vec![vec![0u128; count]; count];
    let mut breaks = vec![vec![0; count]; count];
    for span in 1..count {
        for i in 0..count - span {
            let j = i + span;
            let cost = |at: usize| {
                let own = [extents[i], extents[at + 1], extents[j + 1]];
                let own = own.iter().fold(1u128, |product, &extent| product.saturating_mul(extent as u128));
                costs[i][at].saturating_add(costs[at + 1][j]).saturating_add(own)
            };
            let best = (i..j).min_by_key(|&at| cost(at)).unwrap_or(i);
            (costs[i][j], breaks[i][j]) = (cost(best), best);
        }
    }
    breaks
}

fn product(tensors: &[&Tensor], breaks: &[Vec<usize>], from: usize, to: usize) -> Result<Tensor> {
    if from == to {
        return Ok(tensors[from].clone());
    }
    let at = breaks[from][to];
    let product = product(tensors, breaks, from, at)?.matmul(product(tensors, breaks, at + 1, to)?);
    product.validity().map(|()| product)
}

#[cfg(test)]
mod tests {
    use super::fewest;

    #[test]
    fn the_order_has_the_fewest_multiplications() {
        // The example of T. Cormen et al., "Introduction to Algorithms": ((A (B C)) ((D E) F)).
        let breaks = fewest(&[30, 35, 15, 5, 10, 20, 25]);
        assert_eq!((breaks[0][5], breaks[0][2], breaks[3][5]), (2, 0, 4));
        // `B @ C` has no terms, `(A @ B) @ C` more multiplications than a number holds.
        assert_eq!(fewest(&[7, 0, usize::MAX, usize::MAX])[0][2], 0);
    }
}
