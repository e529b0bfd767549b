//! Operations by the other names that PyTorch and NumPy have for them.

use std::borrow::Borrow;

use super::arguments::call::Call;
use crate::graph::op::ConstantRole;
use crate::{Axes, Dims, Number, Operand, Shape, Tensor};

/// `renamed_methods! { docs name(parameters) = operation; … }`: the operation, whose errors and kernels have the other name.
macro_rules! renamed_methods {
    ($($(#[$meta:meta])* $name:ident($($argument:ident: $ty:ty),*) = $of:ident;)*) => {
        impl Tensor {
            $(
                $(#[$meta])*
                #[track_caller]
                pub fn $name(&self, $($argument: $ty),*) -> Tensor {
                    Call::here(stringify!($name)).composed(|| Ok(self.$of($($argument),*)))
                }
            )*
        }
    };
}

renamed_methods! {
    /// [`Tensor::neg`] by another name.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// assert_eq!(Tensor::from([1, -2]).negative().to_vec::<i32>()?, [-1, 2]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    negative() = neg;
    /// [`Tensor::abs`] by another name.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// assert_eq!(Tensor::from([-1.5f32]).absolute().to_vec::<f32>()?, [1.5]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    absolute() = abs;
    /// [`Tensor::trunc`] by another name.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// assert_eq!(Tensor::from([-1.5f32]).fix().to_vec::<f32>()?, [-1.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    fix() = trunc;
    /// [`Tensor::asin`] by another name.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// assert_eq!(Tensor::from([0.0f32]).arcsin().to_vec::<f32>()?, [0.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    arcsin() = asin;
    /// [`Tensor::acos`] by another name.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// assert_eq!(Tensor::from([1.0f32]).arccos().to_vec::<f32>()?, [0.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    arccos() = acos;
    /// [`Tensor::atan`] by another name.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// assert_eq!(Tensor::from([0.0f32]).arctan().to_vec::<f32>()?, [0.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    arctan() = atan;
    /// [`Tensor::asinh`] by another name.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// assert_eq!(Tensor::from([0.0f32]).arcsinh().to_vec::<f32>()?, [0.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    arcsinh() = asinh;
    /// [`Tensor::acosh`] by another name.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// assert_eq!(Tensor::from([1.0f32]).arccosh().to_vec::<f32>()?, [0.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    arccosh() = acosh;
    /// [`Tensor::atanh`] by another name.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// assert_eq!(Tensor::from([0.0f32]).arctanh().to_vec::<f32>()?, [0.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    arctanh() = atanh;
    /// [`Tensor::atan2`] by another name.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// assert_eq!(Tensor::from([0.0f32]).arctan2(1.0).to_vec::<f32>()?, [0.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    arctan2(other: impl Into<Operand>) = atan2;
    /// [`Tensor::sub`] by another name.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// assert_eq!(Tensor::from([3, 1]).subtract(1).to_vec::<i32>()?, [2, 0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    subtract(other: impl Into<Operand>) = sub;
    /// [`Tensor::mul`] by another name.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// assert_eq!(Tensor::from([3, 1]).multiply(2).to_vec::<i32>()?, [6, 2]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    multiply(other: impl Into<Operand>) = mul;
    /// [`Tensor::div`] by another name.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// assert_eq!(Tensor::from([3, 1]).divide(2).to_vec::<f32>()?, [1.5, 0.5]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    divide(other: impl Into<Operand>) = div;
    /// [`Tensor::div`] by another name.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// assert_eq!(Tensor::from([3, 1]).true_divide(2).to_vec::<f32>()?, [1.5, 0.5]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    true_divide(other: impl Into<Operand>) = div;
    /// [`Tensor::lt`] by another name.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// assert_eq!(Tensor::from([1, 2, 3]).less(2).to_vec::<bool>()?, [true, false, false]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    less(other: impl Into<Operand>) = lt;
    /// [`Tensor::le`] by another name.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// assert_eq!(Tensor::from([1, 2, 3]).less_equal(2).to_vec::<bool>()?, [true, true, false]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    less_equal(other: impl Into<Operand>) = le;
    /// [`Tensor::gt`] by another name.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// assert_eq!(Tensor::from([1, 2, 3]).greater(2).to_vec::<bool>()?, [false, false, true]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    greater(other: impl Into<Operand>) = gt;
    /// [`Tensor::ge`] by another name.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// assert_eq!(Tensor::from([1, 2, 3]).greater_equal(2).to_vec::<bool>()?, [false, true, true]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    greater_equal(other: impl Into<Operand>) = ge;
    /// [`Tensor::ne`] by another name.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// assert_eq!(Tensor::from([1, 2, 3]).not_equal(2).to_vec::<bool>()?, [true, false, true]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    not_equal(other: impl Into<Operand>) = ne;
    /// [`Tensor::clamp`] by another name.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// assert_eq!(Tensor::from([-1, 2, 3]).clip(0, 2).to_vec::<i32>()?, [0, 2, 2]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    clip(low: impl Into<Operand>, high: impl Into<Operand>) = clamp;
    /// [`Tensor::max`] by another name.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// assert_eq!(Tensor::from([[1, 5], [3, 2]]).amax(1).to_vec::<i32>()?, [5, 3]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    amax(axes: impl Into<Axes>) = max;
    /// [`Tensor::min`] by another name.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// assert_eq!(Tensor::from([[1, 5], [3, 2]]).amin(1).to_vec::<i32>()?, [1, 2]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    amin(axes: impl Into<Axes>) = min;
    /// [`Tensor::norm`] by another name.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// assert_eq!(Tensor::from([3.0f32, 4.0]).vector_norm(.., 2.0).item::<f32>()?, 5.0);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    vector_norm(axes: impl Into<Axes>, p: f64) = norm;
    /// [`Tensor::take_along_axis`] by another name.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// assert_eq!(Tensor::from([5, 7]).take_along_dim(Tensor::from([-1, 0]), 0).to_vec::<i32>()?, [7, 5]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    take_along_dim(index: impl AsRef<Tensor>, axis: isize) = take_along_axis;
    /// [`Tensor::reshape`] by another name.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// assert_eq!(Tensor::arange(0, 6, 1).view([2, -1]).shape()?, lazuli::Shape::from([2, 3]));
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    view(shape: impl Into<Dims>) = reshape;
    /// [`Tensor::transpose`] by another name.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// assert_eq!(Tensor::arange(0, 6, 1).reshape([2, 3]).swapdims(0, 1).shape()?, lazuli::Shape::from([3, 2]));
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    swapdims(a: isize, b: isize) = transpose;
    /// [`Tensor::movedim`] by another name.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// assert_eq!(Tensor::arange(0, 6, 1).reshape([1, 2, 3]).moveaxis(0, -1).shape()?, lazuli::Shape::from([2, 3, 1]));
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    moveaxis(source: impl Into<Axes>, destination: impl Into<Axes>) = movedim;
    /// [`Tensor::unsqueeze`] by another name.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// assert_eq!(Tensor::arange(0, 3, 1).expand_dims(0).shape()?, lazuli::Shape::from([1, 3]));
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    expand_dims(axis: isize) = unsqueeze;
}

impl Tensor {
    /// [`Tensor::cat`] by another name.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// assert_eq!(Tensor::concat([Tensor::from([1]), Tensor::from([2, 3])], 0).to_vec::<i32>()?, [1, 2, 3]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn concat<T: Borrow<Tensor>>(tensors: impl AsRef<[T]>, axis: isize) -> Tensor {
        Call::here("concat").composed(|| Ok(Tensor::cat(tensors, axis)))
    }

    /// [`Tensor::cat`] by another name.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// assert_eq!(Tensor::concatenate([Tensor::from([1]), Tensor::from([2, 3])], 0).to_vec::<i32>()?, [1, 2, 3]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn concatenate<T: Borrow<Tensor>>(tensors: impl AsRef<[T]>, axis: isize) -> Tensor {
        Call::here("concatenate").composed(|| Ok(Tensor::cat(tensors, axis)))
    }

    /// Zeros of another shape, of this tensor's dtype and on its device.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// assert_eq!(Tensor::from([1.5f32]).new_zeros([2]).to_vec::<f32>()?, [0.0, 0.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn new_zeros(&self, shape: impl Into<Shape>) -> Tensor {
        filled(Call::here("new_zeros"), self, shape.into(), 0.into(), ConstantRole::Literal)
    }

    /// Ones of another shape, of this tensor's dtype and on its device.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// assert_eq!(Tensor::from([1.5f32]).new_ones([2]).to_vec::<f32>()?, [1.0, 1.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn new_ones(&self, shape: impl Into<Shape>) -> Tensor {
        filled(Call::here("new_ones"), self, shape.into(), 1.into(), ConstantRole::Literal)
    }

    /// A number everywhere in another shape, of this tensor's dtype and on its device, as [`Tensor::full`].
    ///
    /// ```
    /// use lazuli::Tensor;
    /// assert_eq!(Tensor::from([1.5f32]).new_full([2], 7).to_vec::<f32>()?, [7.0, 7.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn new_full(&self, shape: impl Into<Shape>, value: impl Into<Number>) -> Tensor {
        filled(Call::here("new_full"), self, shape.into(), value.into(), ConstantRole::Argument)
    }
}

fn filled(call: Call, x: &Tensor, shape: Shape, value: Number, role: ConstantRole) -> Tensor {
    let of = |x: &Tensor| call.filled_on(x.node.device, value.held(call, x.known()?.1)?, role, &shape);
    Tensor::or_invalid(of(x))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::tests::mistake;
    use crate::{DType, Device};

    #[test]
    fn filled_tensors_are_of_the_dtype_and_on_the_device() {
        let x = Tensor::from([1u8, 2]).to(&Device::interpreter());
        for filled in [x.new_zeros([3]), x.new_ones([3]), x.new_full([3], 7)] {
            assert_eq!(
                (filled.dtype().unwrap(), filled.device().unwrap()),
                (DType::U8, Device::interpreter())
            );
            assert_eq!(filled.shape().unwrap(), Shape::from([3]));
        }
    }

    #[test]
    fn mistakes_have_the_name_that_was_called() {
        let x = Tensor::ones([2, 3], DType::Bool);
        mistake!(
            x.absolute(),
            "absolute: not defined for bool [2, 3]; cast it first, such as with .cast(DType::I64)"
        );
        mistake!(
            x.swapdims(0, 2),
            "swapdims: axis 2 is out of range for shape [2, 3]: it must be from -2 to 1"
        );
    }
}
