//! Reductions that are made of others: norms, counts, several at once.
//!
//! As with all reductions, the axes are [`Axes`], and the twin with `_keepdim` keeps them with extent 1.

use crate::tensor::arguments::axes::Axes;
use crate::tensor::arguments::call::Call;
use crate::tensor::map::operands::float_for;
use crate::{DType, Result, Shape, Tensor, UnaryOp};

/// Methods of reductions that keep the axes, and their twins that do not. An argument is given with one for an example.
macro_rules! composed_reduction_methods {
    ($($(#[$meta:meta])* $name:ident, $name_keepdim:ident = $reduction:path $(, $argument:ident: $ty:ty = $example:literal)?;)*) => {
        impl Tensor {
            $(
                $(#[$meta])*
                #[track_caller]
                pub fn $name(&self, axes: impl Into<Axes> $(, $argument: $ty)?) -> Tensor {
                    let (call, axes) = (Call::here(stringify!($name)), axes.into());
                    call.composed(|| {
                        let kept = $reduction(call, self, &axes $(, $argument)?)?;
                        without(call, self, &kept, &axes)
                    })
                }

                #[doc = concat!(
                    "[`Tensor::", stringify!($name), "`] that keeps the reduced axes, with extent 1.\n\n",
                    "```\n",
                    "use lazuli::{Shape, Tensor};\n",
                    "let x = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 6.0], [2, 2]);\n",
                    $("let ", stringify!($argument), " = ", stringify!($example), ";\n",)?
                    "let kept = x.", stringify!($name_keepdim), "(1", $(", ", stringify!($argument),)? ");\n",
                    "assert_eq!(kept.shape()?, Shape::from([2, 1])); // broadcasts with x\n",
                    "let without = x.", stringify!($name), "(1", $(", ", stringify!($argument),)? ");\n",
                    "assert_eq!(kept.squeeze(1).to_string(), without.to_string());\n",
                    "# Ok::<(), lazuli::Error>(())\n",
                    "```"
                )]
                #[track_caller]
                pub fn $name_keepdim(&self, axes: impl Into<Axes> $(, $argument: $ty)?) -> Tensor {
                    let (call, axes) = (Call::here(stringify!($name_keepdim)), axes.into());
                    call.composed(|| $reduction(call, self, &axes $(, $argument)?))
                }
            )*
        }
    };
}
pub(super) use composed_reduction_methods;

composed_reduction_methods! {
    /// The p-norm along the axes, which the result no longer has: `sum(|x|^p)^(1/p)`, the largest magnitude for
    /// infinity, the smallest for minus infinity, and the number of elements that are not 0 for `p` = 0. Keeps
    /// the dtype. PyTorch's `vector_norm`.
    ///
    /// Invalid for integers and bools, for a `p` that is NaN, for an axis out of range or given twice, and for
    /// an infinite `p` along an axis of extent 0.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[3.0f32, -4.0], [2]);
    /// assert_eq!(x.norm(.., 2.0).to_vec::<f32>()?, [5.0]);
    /// assert_eq!(x.norm(.., 1.0).to_vec::<f32>()?, [7.0]);
    /// assert_eq!(x.norm(.., f64::INFINITY).to_vec::<f32>()?, [4.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    norm, norm_keepdim = norm, p: f64 = 2.0;
    /// `log(sum(exp(x)))` along the axes, which the result no longer has, without overflow on the way; minus
    /// infinity of nothing. Floats keep their dtype, integers and bools give `F32`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[1000.0f32, 1000.0], [2]);
    /// assert_eq!(x.logsumexp(..).to_vec::<f32>()?, [1000.0 + 2f32.ln()]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    logsumexp, logsumexp_keepdim = logsumexp;
    /// How many elements along the axes are not 0 (NaN is not): `I64`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[1.0f32, 0.0, f32::NAN], [3]);
    /// assert_eq!(x.count_nonzero(..).to_vec::<i64>()?, [2]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    count_nonzero, count_nonzero_keepdim = count_nonzero;
}

impl Tensor {
    /// The smallest and the largest element along the axes: [`Tensor::min`] and [`Tensor::max`], which share
    /// their kernel if they are evaluated together.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let (least, most) = Tensor::from_slice(&[3i32, -1, 2], [3]).aminmax(..);
    /// lazuli::eval([&least, &most])?;
    /// assert_eq!((least.item::<i32>()?, most.item::<i32>()?), (-1, 3));
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn aminmax(&self, axes: impl Into<Axes>) -> (Tensor, Tensor) {
        let axes = axes.into();
        Call::here("aminmax").compose(|| (self.min(axes.clone()), self.max(axes)))
    }

    /// [`Tensor::aminmax`] that keeps the reduced axes, with extent 1.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[1.0f32, 3.0, 2.0, 4.0, 4.0, 8.0], [2, 3]);
    /// let (least, most) = x.aminmax_keepdim(1);
    /// let scaled = (x - &least) / (most - &least); // each row from 0 to 1
    /// assert_eq!(scaled.to_vec::<f32>()?, [0.0, 1.0, 0.5, 0.0, 0.0, 1.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn aminmax_keepdim(&self, axes: impl Into<Axes>) -> (Tensor, Tensor) {
        let axes = axes.into();
        Call::here("aminmax_keepdim").compose(|| (self.min_keepdim(axes.clone()), self.max_keepdim(axes)))
    }

    /// The variance and the mean along the axes: [`Tensor::var`] and [`Tensor::mean`], which share their
    /// kernel if they are evaluated together.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let (variance, mean) = Tensor::from_slice(&[1.0f32, 3.0], [2]).var_mean(.., 1);
    /// lazuli::eval([&variance, &mean])?;
    /// assert_eq!((variance.item::<f32>()?, mean.item::<f32>()?), (2.0, 2.0));
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn var_mean(&self, axes: impl Into<Axes>, correction: usize) -> (Tensor, Tensor) {
        let axes = axes.into();
        Call::here("var_mean").compose(|| (self.var(axes.clone(), correction), self.mean(axes)))
    }

    /// [`Tensor::var_mean`] that keeps the reduced axes, with extent 1.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[1.0f32, 3.0, 2.0, 6.0], [2, 2]);
    /// let (variance, mean) = x.var_mean_keepdim(1, 0);
    /// let normal = (x - mean) / variance.sqrt();
    /// assert_eq!(normal.to_vec::<f32>()?, [-1.0, 1.0, -1.0, 1.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn var_mean_keepdim(&self, axes: impl Into<Axes>, correction: usize) -> (Tensor, Tensor) {
        let axes = axes.into();
        let call = Call::here("var_mean_keepdim");
        call.compose(|| (self.var_keepdim(axes.clone(), correction), self.mean_keepdim(axes)))
    }
}

impl Tensor {
    /// The standard deviation and the mean along the axes: [`Tensor::std`] and [`Tensor::mean`], which share their
    /// kernel if they are evaluated together.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let (deviation, mean) = Tensor::from_slice(&[1.0f32, 5.0], [2]).std_mean(.., 0);
    /// lazuli::eval([&deviation, &mean])?;
    /// assert_eq!((deviation.item::<f32>()?, mean.item::<f32>()?), (2.0, 3.0));
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn std_mean(&self, axes: impl Into<Axes>, correction: usize) -> (Tensor, Tensor) {
        let axes = axes.into();
        Call::here("std_mean").compose(|| (self.std(axes.clone(), correction), self.mean(axes)))
    }

    /// [`Tensor::std_mean`] that keeps the reduced axes, with extent 1.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[1.0f32, 3.0, 2.0, 6.0], [2, 2]);
    /// let (deviation, mean) = x.std_mean_keepdim(1, 0);
    /// assert_eq!(((x - mean) / deviation).to_vec::<f32>()?, [-1.0, 1.0, -1.0, 1.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn std_mean_keepdim(&self, axes: impl Into<Axes>, correction: usize) -> (Tensor, Tensor) {
        let axes = axes.into();
        let call = Call::here("std_mean_keepdim");
        call.compose(|| (self.std_keepdim(axes.clone(), correction), self.mean_keepdim(axes)))
    }
}

/// What `f` makes of the tensor in the dtype of its arithmetic, rounded once to its own dtype.
pub(crate) fn widened(x: &Tensor, f: impl FnOnce(&Tensor) -> Tensor) -> Result<Tensor> {
    let (_, dtype) = x.known()?;
    Ok(f(&x.cast(dtype.compute())).cast(dtype))
}

/// A result with kept axes, without them.
pub(crate) fn without(call: Call, x: &Tensor, kept: &Tensor, axes: &Axes) -> Result<Tensor> {
    let (shape, _) = x.known()?;
    call.reshape(kept, shape.without(&call.axes(axes, shape)?))
}

fn norm(call: Call, x: &Tensor, axes: &Axes, p: f64) -> Result<Tensor> {
    call.needs_float(x)?;
    if p.is_nan() {
        return call.fail("the order p of a norm must be a number, got NaN");
    }
    let (axes, nonzero) = (axes.clone(), x.ne(0.0));
    widened(x, |x| match p {
        f64::INFINITY => x.abs().max_keepdim(axes),
        f64::NEG_INFINITY => x.abs().min_keepdim(axes),
        0.0 => nonzero.sum_keepdim(axes).cast(x.node.dtype),
        1.0 => x.abs().sum_keepdim(axes),
        2.0 => Tensor::or_invalid(root(call, &x.square().sum_keepdim(axes))),
        p => {
            let norm = x.abs().pow(p).sum_keepdim(axes).pow(1.0 / p);
            call.derived(&norm, &[x], move |g, all| {
                let (norm, x) = (&all[0], &all[1]);
                let powers = x.sign() * x.abs().pow(p - 1.0);
                Ok(vec![match p < 1.0 {
                    true => x.eq(0.0).where_(0.0, powers) * g * norm.pow(1.0 - p),
                    false => powers * norm.eq(0.0).where_(0.0, g / norm.pow(p - 1.0)),
                }])
            })
        }
    })
}

/// The root of a sum of squares. Where all are 0, what reaches it reaches none of them, as in PyTorch, though the root has an
/// infinite slope.
pub(crate) fn root(call: Call, squares: &Tensor) -> Result<Tensor> {
    let root = call.unary(UnaryOp::Sqrt, squares)?;
    Ok(call.derived(&root, &[squares], |g, all| {
        let (dtype, wide) = (g.node.dtype, g.node.dtype.compute());
        let (g, root) = (g.cast(wide), all[0].cast(wide));
        Ok(vec![root.eq(0.0).where_(0.0, g * 0.5 / &root).cast(dtype)])
    }))
}

fn logsumexp(call: Call, x: &Tensor, axes: &Axes) -> Result<Tensor> {
    let (shape, dtype) = x.known()?;
    let is_empty = call.axes(axes, shape)?.iter().any(|&axis| shape[axis] == 0);
    widened(&x.cast(float_for(dtype)), |x| {
        if is_empty {
            return x.sum_keepdim(axes.clone()).log();
        }
        let max = x.max_keepdim(axes.clone()).detach();
        let log = (x - &max).exp().sum_keepdim(axes.clone()).log();
        // An infinite maximum minus itself is NaN.
        max.isinf().where_(&max, log + &max)
    })
}

fn count_nonzero(_: Call, x: &Tensor, axes: &Axes) -> Result<Tensor> {
    Ok(x.cast(DType::Bool).sum_keepdim(axes.clone()))
}

/// The shape with extents of 1 but at one axis.
pub(crate) fn along(rank: usize, axis: usize, extent: usize) -> Shape {
    (0..rank).map(|own| if own == axis { extent } else { 1 }).collect()
}
