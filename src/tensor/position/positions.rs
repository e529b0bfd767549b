//! Where the extreme elements are.
//!
//! Along axes a position is a reduction of its own, and shares a kernel with the extreme value itself. In a window it is
//! found as the least index at which the element is the extreme one. No schedule can find another one.

use crate::graph::op::{self, ConstantRole, Op};
use crate::tensor::arguments::axes::Axes;
use crate::tensor::arguments::call::Call;
use crate::tensor::layer::pool::{Pool, last, max_pool, pooled_shape, windows};
use crate::tensor::make::create::counting;
use crate::tensor::reduce::statistics::without;
use crate::{DType, Number, ReduceOp, Result, Scalar, Shape, Tensor};

macro_rules! position_methods {
    ($($(#[$meta:meta])* $name:ident, $name_keepdim:ident, $with_values:ident = $position:ident, $extreme:ident;)*) => {
        impl Tensor {
            $(
                $(#[$meta])*
                #[track_caller]
                pub fn $name(&self, axes: impl Into<Axes>) -> Tensor {
                    let (call, axes) = (Call::here(stringify!($name)), axes.into());
                    call.composed(|| {
                        let kept = position(call, self, &axes, ReduceOp::$position)?;
                        without(call, self, &kept, &axes)
                    })
                }

                #[doc = concat!(
                    "[`Tensor::", stringify!($name), "`] that keeps the reduced axes, with extent 1.\n\n",
                    "```\n",
                    "use lazuli::{Shape, Tensor};\n",
                    "let x = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 6.0], [2, 2]);\n",
                    "let kept = x.", stringify!($name_keepdim), "(1);\n",
                    "assert_eq!(kept.shape()?, Shape::from([2, 1])); // broadcasts with x\n",
                    "let without = x.", stringify!($name), "(1);\n",
                    "assert_eq!(kept.squeeze(1).to_string(), without.to_string());\n",
                    "# Ok::<(), lazuli::Error>(())\n",
                    "```"
                )]
                #[track_caller]
                pub fn $name_keepdim(&self, axes: impl Into<Axes>) -> Tensor {
                    let (call, axes) = (Call::here(stringify!($name_keepdim)), axes.into());
                    call.composed(|| position(call, self, &axes, ReduceOp::$position))
                }

                #[doc = concat!(
                    "The extreme values and their positions, [`Tensor::", stringify!($name), "`]: one kernel if they \
                     are evaluated together.\n\n",
                    "```\n",
                    "use lazuli::Tensor;\n",
                    "let x = Tensor::from_slice(&[7.0f32, 7.0, 7.0], [3]);\n",
                    "let (value, index) = x.", stringify!($with_values), "(0);\n",
                    "lazuli::eval([&value, &index])?;\n",
                    "assert_eq!((value.item::<f32>()?, index.item::<i64>()?), (7.0, 0));\n",
                    "# Ok::<(), lazuli::Error>(())\n",
                    "```"
                )]
                #[track_caller]
                pub fn $with_values(&self, axes: impl Into<Axes>) -> (Tensor, Tensor) {
                    let (call, axes) = (Call::here(stringify!($with_values)), axes.into());
                    let both: Result<(Tensor, Tensor)> = call.compose(|| {
                        let index = position(call, self, &axes, ReduceOp::$position)?;
                        let extreme = self.$extreme(axes.clone());
                        let own = call.axes(&axes, self.known()?.0)?;
                        Ok((derived_by_position(call, &extreme, self, &index, own), index))
                    });
                    let part = |kept: Result<Tensor>| {
                        call.composed(|| without(call, self, &kept?, &axes))
                    };
                    match both {
                        Ok((value, index)) => (part(Ok(value)), part(Ok(index))),
                        Err(error) => (part(Err(error.clone())), part(Err(error))),
                    }
                }
            )*
        }
    };
}

position_methods! {
    /// The index of the largest element along the axes, which the result no longer has: `I64`. Of equal ones the
    /// first counts, and the first NaN before all numbers. Along several axes the index counts their positions in
    /// row-major order; all axes (`..`) give the index into the flattened tensor.
    ///
    /// Invalid along an axis of extent 0, for an axis out of range or given twice.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[1.0f32, 5.0, 5.0, 2.0, f32::NAN, 9.0], [2, 3]);
    /// assert_eq!(x.argmax(-1).to_vec::<i64>()?, [1, 1]);
    /// assert_eq!(x.argmax(..).item::<i64>()?, 4);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    argmax, argmax_keepdim, max_with_indices = ArgMax, max_keepdim;
    /// The index of the smallest element along the axes, which the result no longer has: `I64`. Of equal ones the
    /// first counts, and the first NaN before all numbers. Along several axes the index counts their positions in
    /// row-major order; all axes (`..`) give the index into the flattened tensor.
    ///
    /// Invalid along an axis of extent 0, for an axis out of range or given twice.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[4i32, 1, 1, 3, 0, 2], [2, 3]);
    /// assert_eq!(x.argmin(-1).to_vec::<i64>()?, [1, 1]);
    /// assert_eq!(x.argmin(0).to_vec::<i64>()?, [1, 1, 0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    argmin, argmin_keepdim, min_with_indices = ArgMin, min_keepdim;
}

macro_rules! pooled_position_methods {
    ($($name:ident = $n:literal;)*) => {
        impl Tensor {
            $(
                #[doc = concat!(
                    "The largest element of each window over the last ", stringify!($n), " dimension(s), and its \
                     position: the index into these dimensions, flattened, as `I64`. Of equal ones the first counts, \
                     and the last NaN before all numbers, as in PyTorch.\n\nInvalid where pooling is."
                )]
                ///
                /// ```
                /// use lazuli::{Pool1d, Tensor};
                /// let x = Tensor::from_slice(&[1i32, 5, 5, 2, 0, 9], [1, 6]);
                /// let (value, index) = x.max_pool1d_with_indices(Pool1d::new(3));
                /// lazuli::eval([&value, &index])?;
                /// assert_eq!(value.to_vec::<i32>()?, [5, 9]);
                /// assert_eq!(index.to_vec::<i64>()?, [1, 5]);
                /// # Ok::<(), lazuli::Error>(())
                /// ```
                #[track_caller]
                pub fn $name(&self, pool: Pool<$n>) -> (Tensor, Tensor) {
                    let call = Call::here(stringify!($name));
                    match call.compose(|| pooled_positions(call, self, &pool)) {
                        Ok((value, index)) => (value, index),
                        Err(error) => {
                            (Tensor::or_invalid(Err(error.clone())), Tensor::or_invalid(Err(error)))
                        }
                    }
                }
            )*
        }
    };
}

pooled_position_methods! {
    max_pool1d_with_indices = 1;
    max_pool2d_with_indices = 2;
    max_pool3d_with_indices = 3;
}

fn pooled_positions<const N: usize>(call: Call, x: &Tensor, pool: &Pool<N>) -> Result<(Tensor, Tensor)> {
    let best = max_pool(call, x, pool)?;
    let pooled = pooled_shape(call, x, pool)?;
    let (shape, dtype) = x.known()?;
    let first = shape.rank() - N;
    let plane: Shape = (0..shape.rank()).map(|axis| if axis < first { 1 } else { shape[axis] }).collect();
    let count = plane.elements();
    // The border is no element: its index is after all others.
    let indices = windows(&counting(count).reshape(plane), pool, &pooled, count)?;
    let elements = windows(x, pool, &pooled, Number::of(ReduceOp::Max.identity(dtype)))?;
    let kept = best.reshape(pooled.iter().copied().chain([1; N]).collect::<Shape>());
    let first = elements.eq(&kept).where_(&indices, count as i64);
    if !dtype.is_float() {
        return Ok((best, first.min(last::<N>())));
    }
    // Below all indices, and the lower the later: the last NaN is before all others.
    let least = elements.isnan().where_(indices.bitwise_not(), first).min(last::<N>());
    Ok((best, least.lt(0).where_(least.bitwise_not(), &least)))
}

/// An extreme whose gradient is that element's which its position says.
fn derived_by_position(call: Call, extreme: &Tensor, x: &Tensor, index: &Tensor, axes: op::Axes) -> Tensor {
    call.derived(extreme, &[x, index], move |g, all| {
        let [_, x, index] = all else { return Ok(Vec::new()) };
        let along = |(axis, &extent): (usize, &usize)| if axes.contains(&axis) { extent } else { 1 };
        let row: Shape = x.node.shape.iter().enumerate().map(along).collect();
        Ok(vec![counting(row.elements()).reshape(row).eq(index).where_(g, 0)])
    })
}

/// The first position of the extreme along the axes, which are kept.
fn position(call: Call, x: &Tensor, axes: &Axes, op: ReduceOp) -> Result<Tensor> {
    let (shape, dtype) = x.known()?;
    let axes = call.axes(axes, shape)?;
    if let Some(&axis) = axes.iter().find(|&&axis| shape[axis] == 0) {
        return call.fail(format!("axis {axis} of {dtype} {shape} has no elements to choose from"));
    }
    if axes.is_empty() {
        let first = Scalar::from_i64(DType::I64, 0);
        return call.filled_on(x.node.device, first, ConstantRole::Literal, shape);
    }
    let kept = shape.iter().enumerate().map(|(axis, &extent)| if axes.contains(&axis) { 1 } else { extent });
    let kept: Shape = kept.collect();
    let reduced = shape.without(&axes);
    let position = call.record(Op::Reduce { op, axes }, &[x], reduced, DType::I64)?;
    call.reshape(&position, kept)
}
