//! Products that are added to what is there.

use super::matmul::{has_ranks, matmul, same_batches};
use crate::tensor::arguments::call::Call;
use crate::tensor::arguments::promotion::result_type;
use crate::{DType, Number, Operand, Result, Tensor};

/// Methods by what they make of their operands: the factors of a product, as [`Tensor::matmul`] takes them.
macro_rules! added_methods {
    ($($(#[$meta:meta])* $name:ident = $factors:expr;)*) => {
        impl Tensor {
            $(
                $(#[$meta])*
                #[track_caller]
                pub fn $name(
                    &self,
                    a: impl AsRef<Tensor>,
                    b: impl AsRef<Tensor>,
                    beta: impl Into<Number>,
                    alpha: impl Into<Number>,
                ) -> Tensor {
                    let (call, numbers) = (Call::here(stringify!($name)), [beta.into(), alpha.into()]);
                    let factors: fn(Call, &Tensor, &Tensor) -> Result<[Tensor; 2]> = $factors;
                    call.composed(|| added(call, self, factors(call, a.as_ref(), b.as_ref())?, numbers))
                }
            )*
        }
    };
}

added_methods! {
    /// `beta * self + alpha * (a @ b)` of two matrices; `self` broadcasts. With a `beta` of 0, what `self` has does not
    /// count, NaN neither. Dtypes as [`Tensor::matmul`]; 16-bit floats are rounded once. For integers, `beta` and `alpha`
    /// must be integers. PyTorch's `beta` and `alpha` are 1.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let a = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0], [2, 2]);
    /// let x = Tensor::from_slice(&[100.0f32, 200.0], [2]);
    /// assert_eq!(x.addmm(&a, &a, 1.0, 2.0).to_vec::<f32>()?, [114.0, 220.0, 130.0, 244.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    addmm = |call, a, b| of_ranks(call, [a, b], [2, 2]);
    /// [`Tensor::addmm`] of batches of matrices, as [`Tensor::bmm`] takes them.
    ///
    /// ```
    /// use lazuli::{DType, Tensor};
    /// let a = Tensor::ones([2, 3, 3], DType::F32);
    /// assert_eq!(Tensor::ones([1], DType::F32).baddbmm(&a, &a, 0.5, 1.0).to_vec::<f32>()?, [3.5; 18]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    baddbmm = |call, a, b| {
        let factors = of_ranks(call, [a, b], [3, 3])?;
        same_batches(call, a, b).map(|()| factors)
    };
    /// `beta * self + alpha * (a @ b)`, as [`Tensor::addmm`], of a matrix and a vector. PyTorch's `addmv`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let (m, v) = (Tensor::from([[1.0f32, 2.0], [3.0, 4.0]]), Tensor::from([1.0f32, 1.0]));
    /// assert_eq!(v.addmv(&m, &v, 1.0, 2.0).to_vec::<f32>()?, [7.0, 15.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    addmv = |call, a, b| of_ranks(call, [a, b], [2, 1]);
    /// `beta * self + alpha * (a ⊗ b)` of two vectors, whose outer product has the first one's elements along its rows: as
    /// [`Tensor::addmm`]. PyTorch's `addr`, of numbers.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let (a, b) = (Tensor::from([1.0f32, 2.0]), Tensor::from([3.0f32, 4.0]));
    /// assert_eq!(Tensor::scalar(1.0f32).addr(&a, &b, 10.0, 1.0).to_vec::<f32>()?, [13.0, 14.0, 16.0, 18.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    addr = |call, a, b| {
        let [a, b] = of_ranks(call, [a, b], [1, 1])?;
        Ok([a.unsqueeze(1), b.unsqueeze(0)])
    };
    /// `beta * self + alpha * Σ (a[i] @ b[i])` over a batch of matrices, as [`Tensor::addmm`]; as one product. PyTorch's `addbmm`.
    ///
    /// ```
    /// use lazuli::{DType, Tensor};
    /// let a = Tensor::ones([4, 2, 3], DType::F32);
    /// let sum = Tensor::zeros([2, 2], DType::F32).addbmm(&a, a.transpose(1, 2), 1.0, 1.0);
    /// assert_eq!(sum.to_vec::<f32>()?, [12.0; 4]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    addbmm = |call, a, b| {
        let [a, b] = of_ranks(call, [a, b], [3, 3])?;
        same_batches(call, &a, &b)?;
        let ((of_a, _), (of_b, _)) = (a.known()?, b.known()?);
        if of_a[2] != of_b[1] {
            return call
                .fail(format!("shapes {of_a} and {of_b} do not fit: {} terms and {}", of_a[2], of_b[1]));
        }
        // A sum over the batch and the terms of each.
        let rows = a.transpose(0, 1).reshape([of_a[1], of_a[0] * of_a[2]]);
        Ok([rows, b.reshape([of_b[0] * of_b[1], of_b[2]])])
    };
}

/// The tensors, if they have so many dimensions.
fn of_ranks(call: Call, tensors: [&Tensor; 2], ranks: [usize; 2]) -> Result<[Tensor; 2]> {
    has_ranks(call, tensors, ranks).map(|()| tensors.map(Tensor::clone))
}

fn added(call: Call, x: &Tensor, [a, b]: [Tensor; 2], [beta, alpha]: [Number; 2]) -> Result<Tensor> {
    let dtype = result_type(&[Operand::from(x), Operand::from(&a), Operand::from(&b)])?;
    for factor in [beta, alpha] {
        if matches!(factor, Number::Float(number) if !dtype.is_float() && number.fract() != 0.0) {
            return call.fail(format!("beta and alpha must be integers for {dtype} tensors, got {factor:?}"));
        }
    }
    let (product, _) = matmul(call, &a, &b)?;
    let is = |factor: Number, number: i64| {
        factor.to_scalar(DType::F64) == Number::Int(number).to_scalar(DType::F64)
    };
    let scaled = |x: Tensor, factor: Number| match is(factor, 1) {
        true => x,
        false => {
            let factor = Tensor::full([], factor, dtype.compute());
            x * factor
        }
    };
    let product = scaled(product.cast(dtype.compute()), alpha);
    let (shape, own) = x.known()?;
    if call.broadcast(&[&product.node.shape, shape])? != product.node.shape {
        let result = &product.node.shape;
        return call.fail(format!("{own} {shape} does not broadcast to the product's shape {result}"));
    }
    match is(beta, 0) {
        true => Ok(call.following(&product.cast(dtype), &[x])),
        false => Ok((scaled(x.cast(dtype.compute()), beta) + product).cast(dtype)),
    }
}
