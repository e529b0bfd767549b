//! Products of vectors, matrices and batches of them.

use super::contraction::{Factor, Label, contract};
use crate::tensor::arguments::axes::Dims;
use crate::tensor::arguments::call::Call;
use crate::tensor::arguments::promotion::result_type;
use crate::tensor::make::create::counting;
use crate::tensor::position::counted::Triangle;
use crate::{DType, Operand, Result, Shape, Tensor};

/// Labels of the axes of matrices; those of batches, counted from the last, are above.
const ROW: Label = 0;
const COLUMN: Label = 1;
const INNER: Label = 2;
const BATCH: Label = 8;

impl Tensor {
    /// The product of matrices, which are the last two dimensions; the ones before broadcast. A vector on the left is one
    /// row, a vector on the right one column, and that dimension is not in the result: two vectors give a 0-d tensor.
    ///
    /// Dtypes are promoted. 16-bit floats are summed in `F32` and rounded once; integers wrap. A sum of no elements is 0.
    /// A sum of `n` products in `F32` is within `n * F32::EPSILON` of the sum of their magnitudes. Where the processor
    /// multiplies pairs of BF16 (AVX512_BF16), so do products of two such, as in PyTorch; numbers below the least normal
    /// one, 1.2e-38, then count as 0.
    ///
    /// Invalid for bools, 0-d tensors, and inner extents that differ.
    ///
    /// ```
    /// use lazuli::{DType, Shape, Tensor};
    /// let a = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0], [2, 2]);
    /// let x = Tensor::from_slice(&[1.0f32, 10.0], [2]);
    /// assert_eq!(a.matmul(&a).to_vec::<f32>()?, [7.0, 10.0, 15.0, 22.0]);
    /// assert_eq!(a.matmul(&x).to_vec::<f32>()?, [21.0, 43.0]);
    /// assert_eq!(x.matmul(&x).item::<f32>()?, 101.0);
    /// let batch = Tensor::ones([8, 1, 3, 4], DType::F32).matmul(&Tensor::ones([5, 4, 2], DType::F32));
    /// assert_eq!(batch.shape()?, Shape::from([8, 5, 3, 2]));
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn matmul(&self, other: impl AsRef<Tensor>) -> Tensor {
        let (call, other) = (Call::here("matmul"), other.as_ref());
        call.composed(|| {
            let (product, dtype) = matmul(call, self, other)?;
            Ok(product.cast(dtype))
        })
    }

    /// [`Tensor::matmul`] of two matrices.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let a = Tensor::from_slice(&[1i32, 2, 3, 4], [2, 2]);
    /// assert_eq!(a.mm(a.t()).to_vec::<i32>()?, [5, 11, 11, 25]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn mm(&self, other: impl AsRef<Tensor>) -> Tensor {
        ranked(Call::here("mm"), [self, other.as_ref()], [2, 2])
    }

    /// [`Tensor::matmul`] of two batches of matrices: equally many, 3 dimensions each.
    ///
    /// ```
    /// use lazuli::{DType, Shape, Tensor};
    /// let (a, b) = (Tensor::ones([7, 2, 3], DType::F32), Tensor::ones([7, 3, 4], DType::F32));
    /// assert_eq!(a.bmm(&b).shape()?, Shape::from([7, 2, 4]));
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn bmm(&self, other: impl AsRef<Tensor>) -> Tensor {
        let (call, other) = (Call::here("bmm"), other.as_ref());
        call.composed(|| {
            same_batches(call, self, other)?;
            Ok(ranked(call, [self, other], [3, 3]))
        })
    }

    /// [`Tensor::matmul`] of a matrix and a vector.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let a = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0], [2, 2]);
    /// assert_eq!(a.mv(&Tensor::from_slice(&[1.0f32, -1.0], [2])).to_vec::<f32>()?, [-1.0, -1.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn mv(&self, vector: impl AsRef<Tensor>) -> Tensor {
        ranked(Call::here("mv"), [self, vector.as_ref()], [2, 1])
    }

    /// The sum of the products of two vectors' elements: 0-d.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[1.0f32, 2.0, 3.0], [3]);
    /// assert_eq!(x.dot(&x).item::<f32>()?, 14.0);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn dot(&self, other: impl AsRef<Tensor>) -> Tensor {
        ranked(Call::here("dot"), [self, other.as_ref()], [1, 1])
    }

    /// The sum of products over the last axes, which are as long: the result has the other axes of this tensor, then those of the
    /// other. With a 0-d tensor, the product. Dtypes as [`Tensor::matmul`].
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let (x, y) = (Tensor::from([[1i32, 2], [3, 4]]), Tensor::from([[1i32, 0], [0, 1], [1, 1]]));
    /// assert_eq!(x.inner(&y).to_vec::<i32>()?, [1, 2, 3, 3, 4, 7]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn inner(&self, other: impl AsRef<Tensor>) -> Tensor {
        let (call, other) = (Call::here("inner"), other.as_ref());
        call.composed(|| match self.ndim()? == 0 || other.ndim()? == 0 {
            true => Ok(self * other),
            false => tensordot(call, [self, other], [[-1].into(), [-1].into()]),
        })
    }

    /// The sum of products along an axis of both, whose shapes broadcast: rows times rows, one by one. Dtypes as
    /// [`Tensor::matmul`]. PyTorch's `torch.linalg.vecdot`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let (x, y) = (Tensor::from([[1i32, 2], [3, 4]]), Tensor::from([10i32, 1]));
    /// assert_eq!(x.vecdot(&y, -1).to_vec::<i32>()?, [12, 34]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn vecdot(&self, other: impl AsRef<Tensor>, axis: isize) -> Tensor {
        let (call, other) = (Call::here("vecdot"), other.as_ref());
        call.composed(|| vecdot(call, [self, other], axis))
    }

    /// All products of the elements of two vectors: a matrix with a row for each element of this one.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let (x, y) = (Tensor::from_slice(&[1i32, 2], [2]), Tensor::from_slice(&[3i32, 4, 5], [3]));
    /// assert_eq!(x.outer(&y).to_vec::<i32>()?, [3, 4, 5, 6, 8, 10]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn outer(&self, other: impl AsRef<Tensor>) -> Tensor {
        let (call, other) = (Call::here("outer"), other.as_ref());
        call.composed(|| {
            has_ranks(call, [self, other], [1, 1])?;
            Ok(self.unsqueeze(1) * other)
        })
    }

    /// So many factors of a square matrix multiplied, or of each of a batch; the identity for none, and factors of the inverse
    /// ([`Tensor::inv`]) for a number below 0. Keeps the dtype; invalid for bools, unless the last two dimensions are equal, and
    /// where there is no inverse of the dtype.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let steps = Tensor::from_slice(&[1i64, 1, 1, 0], [2, 2]);
    /// assert_eq!(steps.matrix_power(10).to_vec::<i64>()?, [89, 55, 55, 34]); // Fibonacci's
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn matrix_power(&self, n: isize) -> Tensor {
        let call = Call::here("matrix_power");
        call.composed(|| {
            let (shape, dtype) = self.known()?;
            let (&[.., rows, columns], true) = (&shape[..], dtype != DType::Bool) else {
                return call.fail(format!("needs square matrices of numbers, got {dtype} {shape}"));
            };
            if rows != columns {
                return call.fail(format!("needs square matrices, got shape {shape}"));
            }
            let factor = if n < 0 { self.inv() } else { self.clone() };
            let (mut result, mut square, mut rest) = (None, factor, n.unsigned_abs());
            while rest > 0 {
                if rest % 2 == 1 {
                    result = Some(result.map_or(square.clone(), |result: Tensor| result.matmul(&square)));
                }
                rest /= 2;
                if rest > 0 {
                    square = square.matmul(&square);
                }
            }
            let is_diagonal = || counting(rows).eq(counting(rows).unsqueeze(1));
            let identity = || is_diagonal().where_(self.ones_like(), self.zeros_like());
            Ok(result.unwrap_or_else(|| call.following(&identity(), &[self])))
        })
    }

    /// The sum of the diagonal of a matrix; dtypes as by [`Tensor::sum`]. Invalid for anything but two dimensions.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// assert_eq!(Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0], [2, 2]).trace().item::<f32>()?, 5.0);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn trace(&self) -> Tensor {
        let call = Call::here("trace");
        call.composed(|| {
            let (shape, dtype) = self.known()?;
            match shape.rank() {
                2 => Ok(self.diagonal(0, 0, 1).sum(..)),
                _ => call.fail(format!("needs a matrix, got {dtype} {shape}")),
            }
        })
    }

    /// The vectors that are perpendicular to both along an axis of 3. Shapes broadcast; invalid for bools, and where the
    /// axis has another extent.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let (x, y) = (Tensor::from([1.0f32, 0.0, 0.0]), Tensor::from([0.0f32, 1.0, 0.0]));
    /// assert_eq!(x.cross(&y, 0).to_vec::<f32>()?, [0.0, 0.0, 1.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn cross(&self, other: impl AsRef<Tensor>, axis: isize) -> Tensor {
        let other = other.as_ref();
        let call = Call::here("cross");
        call.composed(|| {
            for x in [self, other] {
                let (shape, dtype) = x.known()?;
                let own = call.axis(axis, shape)?;
                if shape[own] != 3 || dtype == DType::Bool {
                    return call.fail(format!("needs numbers, 3 along axis {axis}, got {dtype} {shape}"));
                }
            }
            let next = |x: &Tensor| x.roll(-1, axis);
            let after = |x: &Tensor| x.roll(-2, axis);
            Ok(next(self) * after(other) - after(self) * next(other))
        })
    }

    /// `x @ weightᵀ + bias` along the last dimension: what a fully connected layer computes. The weight has a row for each
    /// output, or is one vector, for one output that is not a dimension of the result.
    ///
    /// Dtypes and errors are those of [`Tensor::matmul`], but that the bias is promoted with the others: `F32` beside halves gives
    /// `F32`. 16-bit floats are rounded once, after the bias.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[1.0f32, 2.0], [1, 2]);
    /// let weight = Tensor::from_slice(&[1.0f32, 0.0, 0.0, 1.0, 1.0, 1.0], [3, 2]);
    /// let bias = Tensor::from_slice(&[0.0f32, 0.0, 10.0], [3]);
    /// assert_eq!(x.linear(&weight, Some(&bias)).to_vec::<f32>()?, [1.0, 2.0, 13.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn linear(&self, weight: impl AsRef<Tensor>, bias: Option<&Tensor>) -> Tensor {
        let call = Call::here("linear");
        call.composed(|| linear(call, self, weight.as_ref(), bias))
    }

    /// The sum of products over these axes of this tensor and those of the other, one by one: the result has the other
    /// axes of this tensor, then those of the other. Dtypes as [`Tensor::matmul`].
    ///
    /// Invalid if the lists have different lengths, or the extents differ.
    ///
    /// ```
    /// use lazuli::{DType, Shape, Tensor};
    /// let (a, b) = (Tensor::ones([3, 4, 5], DType::F32), Tensor::ones([4, 3, 2], DType::F32));
    /// let c = a.tensordot(&b, [1, 0], [0, 1]);
    /// assert_eq!((c.shape()?, c.to_vec::<f32>()?), (Shape::from([5, 2]), vec![12.0; 10]));
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn tensordot(
        &self,
        other: impl AsRef<Tensor>,
        axes: impl Into<Dims>,
        of_other: impl Into<Dims>,
    ) -> Tensor {
        let other = other.as_ref();
        let (call, axes, of_other) = (Call::here("tensordot"), axes.into(), of_other.into());
        call.composed(|| tensordot(call, [self, other], [axes, of_other]))
    }

    /// `x1ᵀ @ weight[o] @ x2 + bias[o]` for each output `o`, of the last dimensions: `x1` is this tensor, and the weight is
    /// `[outputs, x1's, x2's]`. Dtypes as [`Tensor::matmul`]; 16-bit floats are rounded once.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let (x, y) = (Tensor::from_slice(&[1.0f32, 2.0], [2]), Tensor::from_slice(&[10.0f32, 1.0], [2]));
    /// let weight = Tensor::from_slice(&[1.0f32, 0.0, 0.0, 1.0], [1, 2, 2]);
    /// assert_eq!(x.bilinear(&y, &weight, None).to_vec::<f32>()?, [12.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn bilinear(
        &self,
        other: impl AsRef<Tensor>,
        weight: impl AsRef<Tensor>,
        bias: Option<&Tensor>,
    ) -> Tensor {
        let (other, weight) = (other.as_ref(), weight.as_ref());
        let call = Call::here("bilinear");
        call.composed(|| bilinear(call, [self, other], weight, bias))
    }

    /// The distances between all rows of this tensor and all rows of the other, by the p-norm: from `[…, n, d]` and
    /// `[…, m, d]`, `[…, n, m]`. The dimensions before broadcast; dtypes are promoted. Each distance is computed from the
    /// differences, so that near rows lose no digits.
    ///
    /// Invalid for integers and bools, and for a `p` below 0.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[0.0f32, 0.0, 3.0, 4.0], [2, 2]);
    /// assert_eq!(x.cdist(&x, 2.0).to_vec::<f32>()?, [0.0, 5.0, 5.0, 0.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn cdist(&self, other: impl AsRef<Tensor>, p: f64) -> Tensor {
        let other = other.as_ref();
        let call = Call::here("cdist");
        call.composed(|| {
            call.needs_float(self)?;
            call.needs_float(other)?;
            call.needs(p >= 0.0, "the order p must be 0 or more", p)?;
            let (own, others) = (&self.node.shape, &other.node.shape);
            if own.rank() < 2 || others.rank() < 2 || own.last() != others.last() {
                return call.fail(format!(
                    "needs rows of equal length in two matrices, got shapes {own} and {others}"
                ));
            }
            Ok((self.unsqueeze(-2) - other.unsqueeze(-3)).norm(-1, p))
        })
    }

    /// The distances between all pairs of different rows of a matrix, by the p-norm, in one dimension: from the first row to
    /// those after it, from the second to those after that, and so on. PyTorch's `pdist`; see [`Tensor::cdist`].
    ///
    /// Invalid for integers and bools, for another number of dimensions, and for a `p` below 0.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[0.0f32, 0.0, 3.0, 4.0, 3.0, 0.0], [3, 2]);
    /// assert_eq!(x.pdist(2.0).to_vec::<f32>()?, [5.0, 3.0, 4.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn pdist(&self, p: f64) -> Tensor {
        let call = Call::here("pdist");
        call.composed(|| {
            call.needs_float(self)?;
            call.needs(p >= 0.0, "the order p must be 0 or more", p)?;
            let (shape, dtype) = self.known()?;
            let [rows, _] = shape[..] else {
                return call.fail(format!("needs the rows of a matrix, got {dtype} {shape}"));
            };
            let pairs = Triangle { rows, columns: rows, offset: 1, is_lower: false }.places(call)?;
            let [first, second] = pairs.map(|pair| self.index_select(0, pair));
            Ok((first - second).norm(-1, p))
        })
    }
}

/// The product in the dtype of its arithmetic, and the dtype of the result.
pub(super) fn matmul(call: Call, a: &Tensor, b: &Tensor) -> Result<(Tensor, DType)> {
    let ((left, _), (right, _)) = (a.known()?, b.known()?);
    let (Some(&inner), false) = (left.last(), right.rank() == 0) else {
        return call.fail(format!("a 0-d tensor is no matrix: shapes {left} and {right}; multiply with `*`"));
    };
    let rows = right[right.rank().saturating_sub(2)];
    if inner != rows {
        return call.fail(format!(
            "shapes {left} and {right} do not fit: the last dimension of the first has {inner} elements, {} of the second {rows}",
            if right.rank() == 1 { "that" } else { "the last but one" }
        ));
    }
    let mut labels = [axes_of(left, &[ROW, INNER]), axes_of(right, &[INNER, COLUMN])];
    if left.rank() == 1 {
        labels[0] = vec![INNER];
    }
    if right.rank() == 1 {
        labels[1] = vec![INNER];
    }
    let batches = |shape: &Shape| Shape::from(&shape[..shape.rank().saturating_sub(2)]);
    let rank = call.broadcast(&[&batches(left), &batches(right)])?.rank();
    let output: Vec<Label> = (0..rank as Label)
        .rev()
        .map(|back| BATCH + back)
        .chain([ROW, COLUMN].into_iter().filter(|label| labels.iter().any(|own| own.contains(label))))
        .collect();
    contract(call, &[Factor::new(a, &labels[0]), Factor::new(b, &labels[1])], &output)
}

/// The labels of batches, then these.
fn axes_of(shape: &Shape, last: &[Label]) -> Vec<Label> {
    let batches = shape.rank().saturating_sub(last.len()) as Label;
    (0..batches).rev().map(|back| BATCH + back).chain(last.iter().copied()).collect()
}

pub(super) fn has_ranks(call: Call, tensors: [&Tensor; 2], ranks: [usize; 2]) -> Result<()> {
    let ((a, _), (b, _)) = (tensors[0].known()?, tensors[1].known()?);
    match [a.rank(), b.rank()] == ranks {
        true => Ok(()),
        false => call.fail(format!("needs {} and {} dimensions, got shapes {a} and {b}", ranks[0], ranks[1])),
    }
}

pub(super) fn same_batches(call: Call, a: &Tensor, b: &Tensor) -> Result<()> {
    let ((own, _), (other, _)) = (a.known()?, b.known()?);
    match own.first() == other.first() {
        true => Ok(()),
        false => call.fail(format!("needs equally many matrices, got shapes {own} and {other}")),
    }
}

fn ranked(call: Call, [a, b]: [&Tensor; 2], ranks: [usize; 2]) -> Tensor {
    call.composed(|| {
        has_ranks(call, [a, b], ranks)?;
        let (product, dtype) = matmul(call, a, b)?;
        Ok(product.cast(dtype))
    })
}

fn linear(call: Call, x: &Tensor, weight: &Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
    let ((shape, _), (rows, _)) = (x.known()?, weight.known()?);
    if !(1..=2).contains(&rows.rank()) || shape.rank() == 0 || shape.last() != rows.last() {
        return call.fail(format!(
            "the weight must be [outputs, inputs] or [inputs], and the input end with the inputs, got shapes {rows} and {shape}"
        ));
    }
    let weight = if rows.rank() == 2 { weight.t() } else { weight.clone() };
    let [x, weight] = beside_bias([x, &weight], bias)?;
    let (product, dtype) = matmul(call, &x, &weight)?;
    biased(call, product, dtype, bias)
}

/// The factors of a sum in the dtype in which they and its bias meet, if that is another than their own.
pub(super) fn beside_bias<const N: usize>(
    factors: [&Tensor; N],
    bias: Option<&Tensor>,
) -> Result<[Tensor; N]> {
    let mut operands: Vec<Operand> = factors.iter().map(|factor| Operand::from(*factor)).collect();
    let own = result_type(&operands)?;
    operands.extend(bias.map(Operand::from));
    let all = result_type(&operands)?;
    Ok(factors.map(|factor| if all == own { factor.clone() } else { factor.cast(all) }))
}

/// With the bias, which broadcasts, rounded to the dtype.
pub(super) fn biased(call: Call, x: Tensor, dtype: DType, bias: Option<&Tensor>) -> Result<Tensor> {
    let Some(bias) = bias else { return Ok(x.cast(dtype)) };
    let (shape, own) = bias.known()?;
    if call.broadcast(&[&x.node.shape, shape])? != x.node.shape {
        return call.fail(format!(
            "the bias {own} {shape} does not broadcast to the result's shape {}",
            x.node.shape
        ));
    }
    Ok((x + bias.cast(dtype.compute())).cast(dtype))
}

fn tensordot(call: Call, [a, b]: [&Tensor; 2], [axes, of_other]: [Dims; 2]) -> Result<Tensor> {
    let ((left, _), (right, _)) = (a.known()?, b.known()?);
    let [first, second] = [call.axes_in_order(&axes.0, left)?, call.axes_in_order(&of_other.0, right)?];
    if first.len() != second.len() {
        return call.fail(format!("needs equally many axes of both, got {:?} and {:?}", axes.0, of_other.0));
    }
    let mut labels = [(0..left.rank() as Label).collect::<Vec<_>>(), Vec::new()];
    labels[1] = (0..right.rank() as Label).map(|axis| left.rank() as Label + axis).collect();
    for (&own, &other) in first.iter().zip(&second) {
        if left[own] != right[other] {
            return call.fail(format!(
                "axis {own} of shape {left} has {} elements, axis {other} of shape {right} {}",
                left[own], right[other]
            ));
        }
        labels[1][other] = own as Label;
    }
    let output: Vec<Label> = labels
        .iter()
        .zip([&first, &second])
        .flat_map(|(labels, gone)| labels.iter().enumerate().filter(|(axis, _)| !gone.contains(axis)))
        .map(|(_, &label)| label)
        .collect();
    let (sum, dtype) = contract(call, &[Factor::new(a, &labels[0]), Factor::new(b, &labels[1])], &output)?;
    Ok(sum.cast(dtype))
}

fn vecdot(call: Call, [a, b]: [&Tensor; 2], axis: isize) -> Result<Tensor> {
    // Recorded for its shape, and the error of shapes that do not broadcast; nothing computes it.
    let products = a * b;
    let (shape, _) = products.known()?;
    let summed = call.axis(axis, shape)? as Label;
    let factor = |x: &Tensor| {
        let rank = x.known()?.0.rank();
        let labels: Vec<Label> = ((shape.rank() - rank) as Label..shape.rank() as Label).collect();
        Ok(Factor::new(x, &labels))
    };
    let output: Vec<Label> = (0..shape.rank() as Label).filter(|&label| label != summed).collect();
    let (sum, dtype) = contract(call, &[factor(a)?, factor(b)?], &output)?;
    Ok(sum.cast(dtype))
}

fn bilinear(call: Call, [x, y]: [&Tensor; 2], weight: &Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
    let ((left, _), (right, _), (shape, _)) = (x.known()?, y.known()?, weight.known()?);
    let fits = shape.rank() == 3
        && left.rank() > 0
        && left.rank() == right.rank()
        && left[..left.rank() - 1] == right[..right.rank() - 1]
        && [left[left.rank() - 1], right[right.rank() - 1]] == shape[1..];
    if !fits {
        return call.fail(format!(
            "needs [n…, i], [n…, j] and a weight [outputs, i, j], got shapes {left}, {right} and {shape}"
        ));
    }
    let (own, others) = (axes_of(left, &[ROW]), axes_of(right, &[COLUMN]));
    let mut output = axes_of(left, &[INNER]);
    output.truncate(left.rank());
    let [x, y, weight] = beside_bias([x, y, weight], bias)?;
    let factors =
        [Factor::new(&x, &own), Factor::new(&y, &others), Factor::new(&weight, &[INNER, ROW, COLUMN])];
    let (sum, dtype) = contract(call, &factors, &output)?;
    biased(call, sum, dtype, bias)
}
