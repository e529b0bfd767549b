//! Pooling over windows of the last one, two or three dimensions.

mod settings;
mod shape;

use crate::graph::op::ConstantRole;
use crate::tensor::arguments::call::Call;
use crate::tensor::make::create::counting;
use crate::tensor::reduce::statistics::{along, widened};
use crate::{DType, Number, ReduceOp, Result, Scalar, Shape, Tensor};
pub use settings::{Pair, PerAxis, Pool, Pool1d, Pool2d, Pool3d};

macro_rules! pool_methods {
    ($($(#[$meta:meta])* $name:ident = $pool:ident, $n:literal $(, $with:ident)?;)*) => {
        impl Tensor {
            $(pool_methods!(@method $(#[$meta])* $name, $pool, $n $(, $with)?);)*
        }
    };
    (@method $(#[$meta:meta])* $name:ident, $pool:ident, $n:literal) => {
        $(#[$meta])*
        #[track_caller]
        pub fn $name(&self, kernel: impl Into<PerAxis<$n>>, stride: impl Into<PerAxis<$n>>) -> Tensor {
            let call = Call::here(stringify!($name));
            let pool = Pool::new(kernel).stride(stride);
            call.composed(|| $pool(call, self, &pool))
        }
    };
    (@method $(#[$meta:meta])* $name:ident, $pool:ident, $n:literal, with) => {
        $(#[$meta])*
        #[track_caller]
        pub fn $name(&self, pool: Pool<$n>) -> Tensor {
            let call = Call::here(stringify!($name));
            call.composed(|| $pool(call, self, &pool))
        }
    };
}

pool_methods! {
    /// The largest element of each window of the last dimension; see [`Tensor::max_pool2d`].
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[1i32, 5, 2, 4], [4]);
    /// assert_eq!(x.max_pool1d(2, 2).to_vec::<i32>()?, [5, 4]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    max_pool1d = max_pool, 1;
    /// [`Tensor::max_pool1d`] with padding, dilation and more; see [`Tensor::max_pool2d_with`].
    ///
    /// ```
    /// use lazuli::{Pool1d, Tensor};
    /// let x = Tensor::from_slice(&[-1i32, -5, -2, -4], [4]);
    /// let pool = Pool1d::new(3).stride(2).padding(1);
    /// assert_eq!(x.max_pool1d_with(pool).to_vec::<i32>()?, [-1, -2]); // no 0 comes from the padding
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    max_pool1d_with = max_pool, 1, with;
    /// The largest element of each window of the last two dimensions; NaN if any is NaN. Any dimensions may
    /// come before, such as `[batch, channels, height, width]`; an extent becomes
    /// `(extent - kernel) / stride + 1`, rounded down. Keeps the dtype.
    ///
    /// Invalid for fewer than two dimensions, for `Bool`, and where no window fits.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0], [2, 4]);
    /// assert_eq!(x.max_pool2d(2, 2).to_vec::<f32>()?, [6.0, 8.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    max_pool2d = max_pool, 2;
    /// [`Tensor::max_pool2d`] with padding and dilation. The padding is below every number. An extent becomes
    /// `(extent + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1`, rounded down, or up with
    /// [`Pool::ceil_mode`].
    ///
    /// ```
    /// use lazuli::{Pool2d, Tensor};
    /// let x = Tensor::arange(0, 16, 1).reshape([4, 4]);
    /// let pool = Pool2d::new(2).stride(1).dilation(2); // the first window has 0, 2, 8 and 10
    /// assert_eq!(x.max_pool2d_with(pool).to_vec::<i32>()?, [10, 11, 14, 15]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    max_pool2d_with = max_pool, 2, with;
    /// The largest element of each window of the last three dimensions; see [`Tensor::max_pool2d`].
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::arange(0, 8, 1).reshape([2, 2, 2]);
    /// assert_eq!(x.max_pool3d(2, 2).to_vec::<i32>()?, [7]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    max_pool3d = max_pool, 3;
    /// [`Tensor::max_pool3d`] with padding, dilation and more; see [`Tensor::max_pool2d_with`].
    ///
    /// ```
    /// use lazuli::{Pool3d, Tensor};
    /// let x = Tensor::arange(0, 8, 1).reshape([2, 2, 2]);
    /// assert_eq!(x.max_pool3d_with(Pool3d::new((1, 2, 2))).to_vec::<i32>()?, [3, 7]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    max_pool3d_with = max_pool, 3, with;
    /// The mean of each window of the last dimension; see [`Tensor::avg_pool2d`].
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[1.0f32, 5.0, 2.0, 4.0], [4]);
    /// assert_eq!(x.avg_pool1d(2, 2).to_vec::<f32>()?, [3.0, 3.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    avg_pool1d = avg_pool, 1;
    /// [`Tensor::avg_pool1d`] with padding, dilation and more; see [`Tensor::avg_pool2d_with`].
    ///
    /// ```
    /// use lazuli::{Pool1d, Tensor};
    /// let x = Tensor::from_slice(&[1.0f32, 5.0, 2.0], [3]);
    /// let pool = Pool1d::new(2).ceil_mode(true); // the last window has one element
    /// assert_eq!(x.avg_pool1d_with(pool).to_vec::<f32>()?, [3.0, 2.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    avg_pool1d_with = avg_pool, 1, with;
    /// The mean of each window of the last two dimensions; shapes as by [`Tensor::max_pool2d`]. Keeps the
    /// dtype.
    ///
    /// Invalid for fewer than two dimensions, for integers and bools, and where no window fits.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0], [2, 4]);
    /// assert_eq!(x.avg_pool2d(2, 2).to_vec::<f32>()?, [3.5, 5.5]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    avg_pool2d = avg_pool, 2;
    /// [`Tensor::avg_pool2d`] with padding and dilation. The padding is zeros, which count in the mean unless
    /// [`Pool::count_include_pad`] says otherwise; what a window of [`Pool::ceil_mode`] has beyond it does not.
    ///
    /// ```
    /// use lazuli::{Pool2d, Tensor};
    /// let x = Tensor::from_slice(&[8.0f32], [1, 1]);
    /// let pool = Pool2d::new(2).padding(1).stride(1);
    /// assert_eq!(x.avg_pool2d_with(pool).to_vec::<f32>()?, [2.0; 4]);
    /// assert_eq!(x.avg_pool2d_with(pool.count_include_pad(false)).to_vec::<f32>()?, [8.0; 4]);
    /// assert_eq!(x.avg_pool2d_with(pool.divisor_override(1)).to_vec::<f32>()?, [8.0; 4]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    avg_pool2d_with = avg_pool, 2, with;
    /// The mean of each window of the last three dimensions; see [`Tensor::avg_pool2d`].
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::arange(0.0f32, 8.0, 1.0).reshape([2, 2, 2]);
    /// assert_eq!(x.avg_pool3d(2, 2).to_vec::<f32>()?, [3.5]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    avg_pool3d = avg_pool, 3;
    /// [`Tensor::avg_pool3d`] with padding, dilation and more; see [`Tensor::avg_pool2d_with`].
    ///
    /// ```
    /// use lazuli::{Pool3d, Tensor};
    /// let x = Tensor::arange(0.0f32, 8.0, 1.0).reshape([2, 2, 2]);
    /// assert_eq!(x.avg_pool3d_with(Pool3d::new((1, 2, 2))).to_vec::<f32>()?, [1.5, 5.5]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    avg_pool3d_with = avg_pool, 3, with;
}

macro_rules! power_methods {
    ($($name:ident = $n:literal;)*) => {
        impl Tensor {
            $(
                #[doc = concat!(
                    "The p-norm of each window of the last ", stringify!($n), " dimension(s), `sum(x^p)^(1/p)`, as \
                     PyTorch's: so NaN for an odd `p` and a negative sum. Keeps the dtype.\n\n\
                     Invalid for integers and bools, for a `p` that is 0 or NaN, and where no window fits."
                )]
                ///
                /// ```
                /// use lazuli::{DType, Tensor};
                /// let x = Tensor::from_slice(&[3.0f32, 4.0], [2]);
                /// assert_eq!(x.lp_pool1d(2.0, 2, 2).to_vec::<f32>()?, [5.0]);
                /// # Ok::<(), lazuli::Error>(())
                /// ```
                #[track_caller]
                pub fn $name(
                    &self,
                    p: f64,
                    kernel: impl Into<PerAxis<$n>>,
                    stride: impl Into<PerAxis<$n>>,
                ) -> Tensor {
                    let call = Call::here(stringify!($name));
                    let pool = Pool::new(kernel).stride(stride);
                    call.composed(|| lp_pool(call, self, p, &pool))
                }
            )*
        }
    };
}

power_methods! {
    lp_pool1d = 1;
    lp_pool2d = 2;
    lp_pool3d = 3;
}

pub(crate) fn not_bool(call: Call, x: &Tensor) -> Result<()> {
    match x.known()? {
        (shape, DType::Bool) => {
            call.fail(format!("not defined for bool {shape}; cast it first, such as with .cast(DType::U8)"))
        }
        _ => Ok(()),
    }
}

pub(crate) fn max_pool<const N: usize>(call: Call, x: &Tensor, pool: &Pool<N>) -> Result<Tensor> {
    not_bool(call, x)?;
    let pooled = pooled_shape(call, x, pool)?;
    let nothing = Number::of(ReduceOp::Max.identity(x.known()?.1));
    let windows = windows(x, pool, &pooled, nothing)?;
    // Of equal elements the gradient is the first one's, as in PyTorch: the reduction alone would share it.
    let kernel = pool.kernel;
    Ok(call.derived(&windows.max(last::<N>()), &[&windows], move |g, all| {
        let [largest, windows] = all else { return Ok(Vec::new()) };
        let apart = |x: &Tensor| (0..N).fold(x.clone(), |x, _| x.unsqueeze(-1));
        let area = kernel.iter().product::<usize>();
        let places = counting(area).reshape(kernel.to_vec());
        let first = windows.eq(apart(largest)).where_(&places, area as i64).min_keepdim(last::<N>());
        Ok(vec![first.eq(places).where_(apart(g), 0)])
    }))
}

pub(crate) fn avg_pool<const N: usize>(call: Call, x: &Tensor, pool: &Pool<N>) -> Result<Tensor> {
    call.needs_float(x)?;
    if pool.divisor == Some(0) {
        return call.fail("the divisor must be at least 1, got 0");
    }
    let pooled = pooled_shape(call, x, pool)?;
    let (shape, rank) = (x.known()?.0, pooled.rank());
    widened(x, |x| {
        let sum = Tensor::or_invalid(windows(x, pool, &pooled, 0.0)).sum(last::<N>());
        if let Some(divisor) = pool.divisor {
            return sum / divisor as f64;
        }
        if pool.is_even() {
            let area = Scalar::from_f64(x.node.dtype, pool.kernel.iter().product::<usize>() as f64);
            return sum / Tensor::or_invalid(call.constant(area, ConstantRole::Literal));
        }
        (0..N).fold(sum, |sum, d| {
            let axis = rank - N + d;
            let count = elements_of_windows(pool, d, shape[axis], pooled[axis]);
            sum / count.cast(x.node.dtype).reshape(along(rank, axis, pooled[axis]))
        })
    })
}

/// How many elements that count each window has along one dimension.
fn elements_of_windows<const N: usize>(pool: &Pool<N>, d: usize, extent: usize, count: usize) -> Tensor {
    let [size, stride, padding, dilation] =
        [pool.kernel[d], pool.stride[d], pool.padding[d], pool.dilation[d]].map(|number| number as i64);
    // Of a single position no dilation matters, and it may be any number.
    let dilation = if size == 1 { 1 } else { dilation };
    let border = if pool.count_padding { padding } else { 0 };
    let start = counting(count) * stride - padding;
    // Positions of the window from which on, and before which, its elements lie inside: quotients rounded up.
    let first = ((-&start - border + (dilation - 1)).floor_divide(dilation)).maximum(0);
    let end = ((-start + (extent as i64 + border + dilation - 1)).floor_divide(dilation)).minimum(size);
    (end - first).maximum(0)
}

pub(crate) fn pooled_shape<const N: usize>(call: Call, x: &Tensor, pool: &Pool<N>) -> Result<Shape> {
    let (shape, _) = x.known()?;
    let pooled = shape::pooled(shape, pool).map_err(|message| call.error(message))?;
    // What it consists of must be addressable as well: the padded input, and all windows of it.
    let mut padded = shape.to_vec();
    for (extent, padding) in padded.iter_mut().rev().zip(pool.padding.into_iter().rev()) {
        *extent = extent.saturating_add(padding.saturating_mul(2));
    }
    call.needs_addressable(&padded.into())?;
    call.needs_addressable(&pooled.iter().copied().chain(pool.kernel).collect())?;
    Ok(pooled)
}

/// The last `N` axes.
pub(crate) fn last<const N: usize>() -> Vec<isize> {
    (1..=N as isize).map(|back| -back).collect()
}

/// All windows of the last `N` dimensions, as `N` new last dimensions.
pub(crate) fn windows<const N: usize>(
    x: &Tensor,
    pool: &Pool<N>,
    pooled: &Shape,
    edge: impl Into<Number>,
) -> Result<Tensor> {
    let (shape, _) = x.known()?;
    let first = shape.rank() - N;
    let mut border = vec![(0, 0); shape.rank()];
    for d in 0..N {
        let padding = pool.padding[d];
        // Up to the end of the last window, which may be beyond the padding.
        let reach = (pooled[first + d] - 1) * pool.stride[d] + pool.dilation[d] * (pool.kernel[d] - 1) + 1;
        border[first + d] = (padding, padding.max(reach.saturating_sub(shape[first + d] + padding)));
    }
    let mut result =
        if border.iter().all(|&sides| sides == (0, 0)) { x.clone() } else { x.pad(&border, edge) };
    for d in 0..N {
        result = result.window((first + d) as isize, pool.kernel[d], pool.stride[d], pool.dilation[d]);
    }
    Ok(result)
}

pub(crate) fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

fn lp_pool<const N: usize>(call: Call, x: &Tensor, p: f64, pool: &Pool<N>) -> Result<Tensor> {
    call.needs_float(x)?;
    if p == 0.0 || p.is_nan() {
        return call.fail(format!("the order p of a norm must be a number other than 0, got {p}"));
    }
    if p == f64::INFINITY {
        return max_pool(call, x, pool);
    }
    let pooled = pooled_shape(call, x, pool)?;
    widened(x, |x| match Tensor::or_invalid(windows(x, pool, &pooled, 0.0)) {
        all if p == 2.0 => rooted(call, &all.square().sum(last::<N>()), p),
        all if p == 1.0 => all.sum(last::<N>()),
        all => rooted(call, &all.pow(p).sum(last::<N>()), p),
    })
}

/// The p-th root. Where it is 0, what reaches it reaches nothing, as in PyTorch, though it has an infinite slope.
fn rooted(call: Call, x: &Tensor, p: f64) -> Tensor {
    let root = if p == 2.0 { x.sqrt() } else { x.pow(1.0 / p) };
    call.derived(&root, &[x], move |g, all| {
        let is_zero = all[0].eq(0.0);
        // No power is computed where it does not count: its slope would be.
        let own = is_zero.where_(1.0, &all[0]);
        let slope = if p == 2.0 { own * 2.0 } else { own.pow(p - 1.0) * p };
        Ok(vec![is_zero.where_(0.0, g / slope)])
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::tests::{mistake, recorded};

    #[test]
    fn pooling_shapes_are_pytorchs() {
        let x = Tensor::zeros([2, 3, 7, 9], DType::F32);
        let shape = |x: Tensor| x.shape().unwrap();
        assert_eq!(shape(x.max_pool2d(2, 2)), Shape::from([2, 3, 3, 4]));
        assert_eq!(shape(x.avg_pool2d((3, 2), [1, 3])), Shape::from([2, 3, 5, 3]));
        let pool = Pool2d::new(3).stride(2).padding(1).dilation((1, 2));
        assert_eq!(shape(x.max_pool2d_with(pool)), Shape::from([2, 3, 4, 4]));
        assert_eq!(shape(x.avg_pool2d_with(Pool2d::new(3))), Shape::from([2, 3, 2, 3]));
        assert_eq!(shape(x.select(0, 0).max_pool2d(2, 1)), Shape::from([3, 6, 8]));
        assert_eq!(shape(x.select(0, 0).select(0, 0).max_pool2d(2, 1)), Shape::from([6, 8]));
        assert_eq!(
            shape(Tensor::zeros([0, 3, 4, 4], DType::F32).max_pool2d(2, 2)),
            Shape::from([0, 3, 2, 2])
        );
        // Rounded up: 7 has a fourth window of 2, but none that starts in the padding after.
        assert_eq!(shape(x.max_pool2d_with(Pool2d::new(2).ceil_mode(true))), Shape::from([2, 3, 4, 5]));
        let padded = Pool2d::new(3).stride(2).padding(1).ceil_mode(true);
        assert_eq!(shape(x.max_pool2d_with(padded)), Shape::from([2, 3, 4, 5]));
        assert_eq!(shape(x.max_pool1d(3, 3)), Shape::from([2, 3, 7, 3]));
        assert_eq!(shape(x.avg_pool3d(3, 2)), Shape::from([2, 1, 3, 4]));
        assert_eq!(shape(x.adaptive_avg_pool2d((3, 20))), Shape::from([2, 3, 3, 20]));
        let short = Tensor::zeros([1], DType::F32).max_pool1d_with(Pool1d::new(2).ceil_mode(true));
        assert_eq!(shape(short), Shape::from([1]));
    }

    #[test]
    fn pooling_is_pad_windows_and_a_reduction() {
        let x = Tensor::from_slice(&[1.0f32; 16], [4, 4]);
        let padded = Pool2d::new(2).padding(1);
        assert_eq!(recorded(&x.max_pool2d_with(padded)), ["input", "pad", "window", "window", "max"]);
        let expected = ["input", "window", "window", "sum", "constant 4.0f32 literal", "expand", "div"];
        assert_eq!(recorded(&x.avg_pool2d(2, 2)), expected);
    }

    #[test]
    fn dtypes_follow_pytorch() {
        for dtype in DType::ALL {
            let x = Tensor::zeros([1, 4, 4], dtype);
            let float = dtype.is_float().then_some(dtype);
            for y in [
                x.avg_pool2d(2, 2),
                x.avg_pool3d((1, 2, 2), 1),
                x.adaptive_avg_pool2d(3),
                x.lp_pool2d(2.0, 2, 2),
            ] {
                assert_eq!(y.dtype().ok(), float, "{dtype}");
            }
            let number = (dtype != DType::Bool).then_some(dtype);
            for y in [x.max_pool2d(2, 2), x.max_pool3d((1, 2, 2), 1), x.adaptive_max_pool1d(3)] {
                assert_eq!(y.dtype().ok(), number, "{dtype}");
            }
        }
    }

    #[test]
    fn mistakes_say_what_does_not_fit() {
        let x = Tensor::ones([1, 2, 3], DType::F32);
        mistake!(
            x.max_pool2d(4, 1),
            "max_pool2d: kernel 4 exceeds the padded input 2×3 (input [1, 2, 3], padding 0)"
        );
        mistake!(
            x.max_pool2d_with(Pool2d::new((2, 3)).dilation((4, 1)).padding((1, 0))),
            "max_pool2d_with: kernel 2×3 with dilation 4×1 exceeds the padded input 4×3 (input [1, 2, 3], padding 1×0)"
        );
        mistake!(
            x.avg_pool2d_with(Pool2d::new(2).padding(2)),
            "avg_pool2d_with: padding 2 is more than half of the kernel 2"
        );
        mistake!(
            x.max_pool2d(2, 0),
            "max_pool2d: kernel, stride and dilation must be at least 1, got 2, 0, 1"
        );
        mistake!(
            Tensor::ones([3], DType::F32).max_pool2d(2, 2),
            "max_pool2d: needs at least 2 dimensions (height, width), got shape [3]"
        );
        mistake!(
            x.cast(DType::U8).avg_pool2d(2, 2),
            "avg_pool2d: needs a float tensor, got u8 [1, 2, 3]; cast it first, such as with .cast(DType::F32)"
        );
        let huge = Tensor::ones([1 << 29, 1 << 29], DType::U8);
        mistake!(
            huge.max_pool2d(1 << 28, 1),
            "max_pool2d: shape [268435457, 268435457, 268435456, 268435456] has more elements than can be addressed"
        );
    }
}
