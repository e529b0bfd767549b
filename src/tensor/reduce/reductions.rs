//! Sums, extremes and other combinations of the elements along axes.
//!
//! Every reduction takes its axes as [`Axes`]: `..` for all, one integer, or a list. Its twin with
//! `_keepdim` keeps them with extent 1, so that the result broadcasts back.

use super::moments;
use super::statistics::root;
use crate::graph::op::{self, ConstantRole};
use crate::tensor::arguments::axes::Axes;
use crate::tensor::arguments::call::{Call, kept};
use crate::{DType, ReduceOp, Result, Scalar, Shape, Tensor};

/// A reduction as the user calls it.
#[derive(Clone, Copy)]
enum Reduction {
    Sum,
    Prod,
    Max,
    Min,
    Any,
    All,
    /// By an operation on bits.
    Bits(ReduceOp),
    Mean,
    Var(usize),
    Std(usize),
}

/// The methods of reductions, with examples of such elements.
macro_rules! reduction_methods {
    (of $elements:literal: $($(#[$meta:meta])* $name:ident, $name_keepdim:ident = $reduction:expr $(, $argument:ident: $ty:ty)?;)*) => {
        impl Tensor {
            $(
                $(#[$meta])*
                #[track_caller]
                pub fn $name(&self, axes: impl Into<Axes> $(, $argument: $ty)?) -> Tensor {
                    let call = Call::here(stringify!($name));
                    Tensor::or_invalid(reduce(call, $reduction, self, &axes.into(), false))
                }

                #[doc = concat!(
                    "[`Tensor::", stringify!($name), "`] that keeps the reduced axes, with extent 1.\n\n",
                    "```\n",
                    "use lazuli::{Shape, Tensor};\n",
                    "let x = Tensor::from_slice(&[", $elements, "], [2, 2]);\n",
                    $("let ", stringify!($argument), " = 1;\n",)?
                    "let kept = x.", stringify!($name_keepdim), "(1", $(", ", stringify!($argument),)? ");\n",
                    "assert_eq!(kept.shape()?, Shape::from([2, 1])); // broadcasts with x\n",
                    "let without = x.", stringify!($name), "(1", $(", ", stringify!($argument),)? ");\n",
                    "assert_eq!(kept.squeeze(1).to_string(), without.to_string());\n",
                    "# Ok::<(), lazuli::Error>(())\n",
                    "```"
                )]
                #[track_caller]
                pub fn $name_keepdim(&self, axes: impl Into<Axes> $(, $argument: $ty)?) -> Tensor {
                    let call = Call::here(stringify!($name_keepdim));
                    Tensor::or_invalid(reduce(call, $reduction, self, &axes.into(), true))
                }
            )*
        }
    };
}

reduction_methods! {
    of "1.0f32, 2.0, 3.0, 6.0":
    /// The sum along the axes, which the result no longer has; 0 where there is nothing to sum. Floats keep
    /// their dtype (16-bit floats accumulate in `F32`), integers and bools give `I64` and wrap.
    ///
    /// Invalid for an axis out of range or given twice.
    ///
    /// ```
    /// use lazuli::{Shape, Tensor};
    /// let x = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0], [2, 2]);
    /// assert_eq!(x.sum(0).to_vec::<f32>()?, [4.0, 6.0]);
    /// assert_eq!(x.sum(..).to_vec::<f32>()?, [10.0]);
    /// assert_eq!(x.sum_keepdim(-1).shape()?, Shape::from([2, 1]));
    /// assert_eq!(x.gt(1.5).sum(..).to_vec::<i64>()?, [3]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    sum, sum_keepdim = Reduction::Sum;
    /// The product along the axes, which the result no longer has; 1 where there is nothing to multiply.
    /// Floats keep their dtype, integers and bools give `I64` and wrap.
    ///
    /// Invalid for an axis out of range or given twice.
    ///
    /// ```
    /// use lazuli::{DType, Tensor};
    /// let x = Tensor::from_slice(&[1i32, 2, 3, 4], [2, 2]);
    /// assert_eq!(x.prod(1).to_vec::<i64>()?, [2, 12]);
    /// assert_eq!(Tensor::ones([0], DType::F32).prod(..).item::<f32>()?, 1.0);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    prod, prod_keepdim = Reduction::Prod;
    /// The largest element along the axes, which the result no longer has; NaN if any is NaN. Keeps the dtype.
    /// PyTorch's `amax`; see [`Tensor::maximum`] for the larger of two.
    ///
    /// Invalid for an axis out of range, given twice, or of extent 0.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[1i32, 5, 3, 2], [2, 2]);
    /// assert_eq!(x.max(1).to_vec::<i32>()?, [5, 3]);
    /// assert_eq!(x.min([0, 1]).to_vec::<i32>()?, [1]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    max, max_keepdim = Reduction::Max;
    /// The smallest element along the axes, which the result no longer has; NaN if any is NaN. Keeps the dtype.
    /// PyTorch's `amin`; see [`Tensor::minimum`] for the smaller of two.
    ///
    /// Invalid for an axis out of range, given twice, or of extent 0.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[3.0f32, 1.0, f32::NAN, 2.0], [2, 2]);
    /// let least = x.min(1).to_vec::<f32>()?;
    /// assert!(least[0] == 1.0 && least[1].is_nan());
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    min, min_keepdim = Reduction::Min;
    /// Whether any element along the axes is nonzero: a `Bool` without the axes, false where there are no
    /// elements.
    ///
    /// Invalid for an axis out of range or given twice.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[f32::NAN, 1.0], [2]);
    /// assert_eq!(x.isnan().any(..).to_vec::<bool>()?, [true]);
    /// assert_eq!(x.isnan().all(..).to_vec::<bool>()?, [false]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    any, any_keepdim = Reduction::Any;
    /// Whether all elements along the axes are nonzero: a `Bool` without the axes, true where there are no
    /// elements.
    ///
    /// Invalid for an axis out of range or given twice.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[1i32, -2, 0, 4], [2, 2]);
    /// assert_eq!(x.all(1).to_vec::<bool>()?, [true, false]);
    /// assert_eq!(x.all(..).item::<bool>()?, false);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    all, all_keepdim = Reduction::All;
    /// The arithmetic mean along the axes, which the result no longer has: `sum / count`, NaN of nothing.
    /// Keeps the dtype.
    ///
    /// Invalid for integers and bools (cast them first), and for an axis out of range or given twice.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 6.0], [2, 2]);
    /// assert_eq!(x.mean(1).to_vec::<f32>()?, [1.5, 4.5]);
    /// assert_eq!((&x - x.mean_keepdim(1)).to_vec::<f32>()?, [-0.5, 0.5, -1.5, 1.5]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    mean, mean_keepdim = Reduction::Mean;
    /// The variance along the axes, which the result no longer has: the sum of squared deviations from the
    /// mean over `count - correction`. A correction of 1 estimates the variance of what the elements were drawn
    /// from (Bessel; PyTorch's default), 0 is the variance of the elements. Keeps the dtype.
    ///
    /// B. P. Welford, "Note on a method for calculating corrected sums of squares and products",
    /// Technometrics 4(3), 1962.
    ///
    /// Invalid for integers and bools (cast them first), and for an axis out of range or given twice.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[1.0f32, 3.0], [2]);
    /// assert_eq!(x.var(.., 1).to_vec::<f32>()?, [2.0]);
    /// assert_eq!(x.var(.., 0).to_vec::<f32>()?, [1.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    var, var_keepdim = Reduction::Var(correction), correction: usize;
    /// The standard deviation along the axes, which the result no longer has: the square root of
    /// [`Tensor::var`]. Keeps the dtype.
    ///
    /// Invalid for integers and bools (cast them first), and for an axis out of range or given twice.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[1.0f32, 3.0], [2]);
    /// assert_eq!(x.std(.., 1).item::<f32>()?, 2f32.sqrt());
    /// assert_eq!(x.std(.., 0).item::<f32>()?, 1.0);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    std, std_keepdim = Reduction::Std(correction), correction: usize;
}

reduction_methods! {
    of "1u8, 2, 3, 6":
    /// The bits that all integers along the axes have; of bools whether all are true. All ones where there are no elements.
    /// Keeps the dtype. NumPy's `bitwise_and.reduce`; see [`Tensor::bitwise_and`] for the bits of two.
    ///
    /// Invalid for floats, and for an axis out of range or given twice.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[0b110u8, 0b011, 0b111, 0b101], [2, 2]);
    /// assert_eq!(x.reduce_and(1).to_vec::<u8>()?, [0b010, 0b101]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    reduce_and, reduce_and_keepdim = Reduction::Bits(ReduceOp::And);
    /// The bits that any integer along the axes has; of bools whether any is true. 0 where there are no elements. Keeps the
    /// dtype. NumPy's `bitwise_or.reduce`; see [`Tensor::bitwise_or`] for the bits of two.
    ///
    /// Invalid for floats, and for an axis out of range or given twice.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let flags = Tensor::from_slice(&[0b001u8, 0b100, 0b000, 0b010], [2, 2]);
    /// assert_eq!(flags.reduce_or(1).to_vec::<u8>()?, [0b101, 0b010]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    reduce_or, reduce_or_keepdim = Reduction::Bits(ReduceOp::Or);
    /// The bits that an odd number of integers along the axes has; of bools whether oddly many are true. 0 where there are no
    /// elements. Keeps the dtype. NumPy's `bitwise_xor.reduce`; see [`Tensor::bitwise_xor`] for the bits of two.
    ///
    /// Invalid for floats, and for an axis out of range or given twice.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[7i64, 3, 7], [3]);
    /// assert_eq!(x.reduce_xor(..).item::<i64>()?, 3); // what has no other
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    reduce_xor, reduce_xor_keepdim = Reduction::Bits(ReduceOp::Xor);
}

impl Tensor {
    /// Summed along the axes along which a tensor of that shape broadcasts to this one, so that the result has the shape: what goes back
    /// through a broadcast. PyTorch's `sum_to_size`. Sums have the dtypes of [`Tensor::sum`]; where there is none, the tensor stays.
    ///
    /// Invalid for a shape that does not broadcast to the tensor's.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0], [2, 2]);
    /// assert_eq!(x.sum_to_size([2, 1]).to_vec::<f32>()?, [3.0, 7.0]);
    /// assert_eq!(x.sum_to_size([2]).to_vec::<f32>()?, [4.0, 6.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn sum_to_size(&self, size: impl Into<Shape>) -> Tensor {
        let (call, size) = (Call::here("sum_to_size"), size.into());
        call.composed(|| {
            let (shape, dtype) = self.known()?;
            if !size.broadcasts_to(shape) {
                return call.fail(format!("shape {size} does not broadcast to {dtype} {shape}"));
            }
            let first = shape.rank() - size.rank();
            let is_summed = |&axis: &usize| axis < first || size[axis - first] != shape[axis];
            let axes: Vec<usize> = (0..shape.rank()).filter(is_summed).collect();
            Ok(if axes.is_empty() { self.clone() } else { self.sum(axes).reshape(size) })
        })
    }
}

fn reduce(call: Call, reduction: Reduction, x: &Tensor, axes: &Axes, keepdim: bool) -> Result<Tensor> {
    let (shape, dtype) = x.known()?;
    let axes = call.axes(axes, shape)?;
    let reduced = shape.without(&axes);
    let primitive = |op: ReduceOp, x: &Tensor| call.reduce(op, x, &axes, keepdim);
    let truth = |op: ReduceOp, of_nothing: bool| match axes.iter().any(|&axis| shape[axis] == 0) {
        true => {
            let value = Scalar::from_bool(of_nothing);
            call.filled_on(x.node.device, value, ConstantRole::Literal, &reduced)
        }
        false => primitive(op, &call.cast(x, DType::Bool)?),
    };
    let var = |correction: usize| {
        call.needs_float(x)?;
        // Of no axis: of one element each.
        let (x, axes) = match axes.is_empty() {
            true => {
                let with_one: Shape = shape.iter().copied().chain([1]).collect();
                (call.reshape(x, with_one)?, op::Axes::from_slice(&[shape.rank()]))
            }
            false => (x.clone(), axes.clone()),
        };
        call.rounded_once(&x, |x| moments::variance(call, x, &axes, correction, keepdim))
    };
    let result = match reduction {
        Reduction::Sum => primitive(ReduceOp::Sum, &call.cast(x, accumulator(dtype))?)?,
        Reduction::Prod => primitive(ReduceOp::Prod, &call.cast(x, accumulator(dtype))?)?,
        Reduction::Max => primitive(ReduceOp::Max, x)?,
        Reduction::Min => primitive(ReduceOp::Min, x)?,
        Reduction::Any => truth(ReduceOp::Max, false)?,
        Reduction::All => truth(ReduceOp::Min, true)?,
        Reduction::Bits(op) if op.accepts(dtype) => primitive(op, x)?,
        Reduction::Bits(_) => return call.fail(format!("needs integers or bools, got {dtype} {shape}")),
        Reduction::Mean => {
            call.needs_float(x)?;
            match axes.is_empty() {
                true => x.clone(),
                false => call.rounded_once(x, |x| moments::mean(call, x, &axes, keepdim))?,
            }
        }
        Reduction::Var(correction) => var(correction)?,
        Reduction::Std(correction) => root(call, &var(correction)?)?,
    };
    match keepdim {
        true => call.reshape(&result, kept(shape, &axes)),
        false => Ok(result),
    }
}

/// The dtype of a sum or product.
pub(crate) fn accumulator(dtype: DType) -> DType {
    if dtype.is_float() { dtype } else { DType::I64 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Device;
    use crate::tensor::tests::{mistake, recorded};

    type Method = fn(&Tensor) -> Tensor;

    /// Plain method, its twin, and the dtypes for bool, u8, f16 and f64 (`None`: invalid).
    #[test]
    fn dtypes_follow_pytorch_and_keepdim_keeps_axes() {
        use DType::{Bool, F16, F64, I64, U8};
        let sums = [Some(I64), Some(I64), Some(F16), Some(F64)];
        let same = [Some(Bool), Some(U8), Some(F16), Some(F64)];
        let truth = [Some(Bool); 4];
        let floats = [None, None, Some(F16), Some(F64)];
        let cases: [(&str, Method, Method, [Option<DType>; 4]); 9] = [
            ("sum", |x| x.sum([0, -1]), |x| x.sum_keepdim([0, -1]), sums),
            ("prod", |x| x.prod([0, -1]), |x| x.prod_keepdim([0, -1]), sums),
            ("max", |x| x.max([0, -1]), |x| x.max_keepdim([0, -1]), same),
            ("min", |x| x.min([0, -1]), |x| x.min_keepdim([0, -1]), same),
            ("any", |x| x.any([0, -1]), |x| x.any_keepdim([0, -1]), truth),
            ("all", |x| x.all([0, -1]), |x| x.all_keepdim([0, -1]), truth),
            ("mean", |x| x.mean([0, -1]), |x| x.mean_keepdim([0, -1]), floats),
            ("var", |x| x.var([0, -1], 1), |x| x.var_keepdim([0, -1], 1), floats),
            ("std", |x| x.std([0, -1], 0), |x| x.std_keepdim([0, -1], 0), floats),
        ];
        for (name, plain, keepdim, results) in cases {
            for (dtype, expected) in [Bool, U8, F16, F64].into_iter().zip(results) {
                let x = Tensor::ones([2, 3, 4], dtype);
                assert_eq!(plain(&x).dtype().ok(), expected, "{name} of {dtype}");
                assert_eq!(keepdim(&x).dtype().ok(), expected, "{name}_keepdim of {dtype}");
                if expected.is_some() {
                    assert_eq!(plain(&x).shape().unwrap(), Shape::from([3]), "{name}");
                    assert_eq!(keepdim(&x).shape().unwrap(), Shape::from([1, 3, 1]), "{name}");
                }
            }
        }
    }

    #[test]
    fn reductions_record_one_operation_and_the_quotients_of_moments() {
        let x = Tensor::from_slice(&[1.0f32; 6], [2, 3]);
        assert_eq!(recorded(&x.sum(..)), ["input", "sum"]);
        assert_eq!(recorded(&x.sum_keepdim(1)), ["input", "sum", "reshape"]);
        assert_eq!(recorded(&x.any(0)), ["input", "cast", "max"]);
        let divided = ["constant 1.0f32 argument", "expand", "div"];
        assert_eq!(
            recorded(&x.std(0, 1)),
            [&["input", "squared_deviations"], &divided[..], &["sqrt"]].concat()
        );
        assert_eq!(recorded(&x.cast(DType::I32).prod(0)), ["input", "cast", "cast", "prod"]);
    }

    #[test]
    fn axes_come_in_every_form() {
        let x = Tensor::ones([2, 3, 4], DType::F32);
        let shape = |x: Tensor| x.shape().unwrap();
        assert_eq!(shape(x.sum(())), Shape::scalar());
        assert_eq!(shape(x.sum(1usize)), Shape::from([2, 4]));
        assert_eq!(shape(x.sum(-3isize)), Shape::from([3, 4]));
        assert_eq!(shape(x.sum([-1, 0])), Shape::from([3]));
        assert_eq!(shape(x.sum(Vec::from([0usize, 1]).as_slice())), Shape::from([4]));
        assert_eq!(shape(x.sum(vec![0isize])), Shape::from([3, 4]));
        assert_eq!(shape(x.sum(&[0i64][..])), Shape::from([3, 4]));
    }

    #[test]
    fn no_axis_leaves_every_element_alone() {
        let x = Tensor::from_slice(&[1.0f32], []);
        for plain in [x.sum(..), x.prod(..), x.max(..), x.min(..), x.mean(..), x.sum(Vec::<isize>::new())] {
            assert_eq!(recorded(&plain), ["input"]);
        }
        // A 0-d tensor has an axis 0, as in PyTorch.
        for plain in [x.sum(0), x.max_keepdim(-1), x.mean([0]), x.squeeze(0)] {
            assert_eq!(recorded(&plain), ["input"]);
        }
        assert_eq!(recorded(&x.var(.., 0))[..3], ["input", "reshape", "squared_deviations"]);
        assert_eq!(x.var_keepdim(.., 0).shape().unwrap(), Shape::scalar());
    }

    #[test]
    fn reductions_of_nothing() {
        let x = Tensor::from_slice::<f32>(&[], [0, 3]);
        assert_eq!(x.sum(0).shape().unwrap(), Shape::from([3]));
        assert_eq!(x.mean(0).shape().unwrap(), Shape::from([3]));
        assert_eq!(x.max(1).shape().unwrap(), Shape::from([0]));
        assert_eq!(recorded(&x.any(0)), ["constant falsebool literal", "expand"]);
        assert_eq!(recorded(&x.all(0)), ["constant truebool literal", "expand"]);
        assert_eq!(x.all(0).device().unwrap(), Device::cpu());
        mistake!(x.max(0), "max: no largest or smallest of nothing: shape [0, 3] is empty along [0]");
    }

    #[test]
    fn mistakes_say_what_does_not_fit() {
        let x = Tensor::ones([2, 3], DType::F32);
        mistake!(x.sum(2), "sum: axis 2 is out of range for shape [2, 3]: it must be from -2 to 1");
        mistake!(
            x.sum_keepdim(-3),
            "sum_keepdim: axis -3 is out of range for shape [2, 3]: it must be from -2 to 1"
        );
        mistake!(x.max([1, -1]), "max: axis 1 of shape [2, 3] is given twice in [1, -1]");
        mistake!(
            x.cast(DType::I64).mean(..),
            "mean: needs a float tensor, got i64 [2, 3]; cast it first, such as with .cast(DType::F32)"
        );
        mistake!(
            x.gt(0.0).var(0, 1),
            "var: needs a float tensor, got bool [2, 3]; cast it first, such as with .cast(DType::F32)"
        );
        mistake!(Tensor::scalar(1.0).sum(1), "sum: axis 1 is out of range: a 0-d tensor has no axes");
        mistake!(Tensor::scalar(1.0).sum([0, 0]), "sum: axis 0 is out of range: a 0-d tensor has no axes");
    }
}
