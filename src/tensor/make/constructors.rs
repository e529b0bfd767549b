//! Tensors from data, numbers and seeds, and their move to a device.

use std::sync::Arc;

use crate::graph::op::{ConstantRole, Op};
use crate::recording::{Recipe, Sources, State, is_addressable};
use crate::runtime::buffer::Buffer;
use crate::runtime::host::HostBuffer;
use crate::tensor::arguments::call::Call;
use crate::tensor::arguments::element::{self, Element};
use crate::tensor::scan::step::random;
use crate::{BinaryOp, DType, Device, Number, Result, Scalar, Shape, Tensor};

impl Tensor {
    /// A tensor of these elements in row-major order, on the thread's [default device](Device::set_default), which is the CPU
    /// unless it was set; see [`Tensor::to`] for others.
    ///
    /// Invalid if the shape does not take exactly as many elements.
    ///
    /// ```
    /// use lazuli::{DType, Shape, Tensor};
    /// let x = Tensor::from_vec(vec![1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], [2, 3]);
    /// assert_eq!(x.dtype()?, DType::F32);
    /// assert_eq!(x.t().to_vec::<f32>()?, [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
    ///
    /// let wrong = Tensor::from_vec(vec![1.0f32, 2.0], [2, 3]);
    /// assert!(wrong.shape().unwrap_err().to_string().starts_with("from_vec: 2 elements do not fill"));
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn from_vec<T: Element>(data: Vec<T>, shape: impl Into<Shape>) -> Tensor {
        Tensor::or_invalid(from_elements(Call::here("from_vec"), &data, shape.into()))
    }

    /// A tensor of a copy of these elements in row-major order, on the thread's [default device](Device::set_default).
    ///
    /// Invalid if the shape does not take exactly as many elements.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[true, false, true], [3]);
    /// assert_eq!(x.logical_not().to_vec::<bool>()?, [false, true, false]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn from_slice<T: Element>(data: &[T], shape: impl Into<Shape>) -> Tensor {
        Tensor::or_invalid(from_elements(Call::here("from_slice"), data, shape.into()))
    }

    /// A 0-d tensor with the value's dtype (`2.0` alone is an `f64`, and `2` an `i32`). Beside tensors with
    /// dimensions its dtype counts only if it is of a higher kind, as in PyTorch; so does a plain number.
    ///
    /// ```
    /// use lazuli::{DType, Tensor};
    /// let two = Tensor::scalar(2.0f64);
    /// assert_eq!(two.dtype()?, DType::F64);
    /// assert_eq!((Tensor::ones([3], DType::F32) * &two).dtype()?, DType::F32);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn scalar(value: impl Element) -> Tensor {
        let call = Call::here("scalar");
        Tensor::or_invalid(call.constant(element::to_scalar(value), ConstantRole::Argument))
    }

    /// A tensor without values: what is made of it can be asked for its kernels, by [`Tensor::explain`], [`Tensor::compile_for`] and
    /// their like, which are those of a tensor with data, of whatever size. To evaluate it is an error. It is on the thread's
    /// [default device](Device::set_default).
    ///
    /// ```
    /// use lazuli::{DType, Target, Tensor};
    /// let x = Tensor::placeholder([1 << 20, 1 << 18], DType::BF16); // 550 GB
    /// let y = x.softmax(1);
    /// let program = y.compile_for(&Target::cuda("sm_90"))?;
    /// assert_eq!(program.kernels()[0].bytes_read(), 2 << 38);
    /// let error = y.eval().unwrap_err();
    /// assert!(error.to_string().starts_with("placeholder: it has no values"), "{error}");
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn placeholder(shape: impl Into<Shape>, dtype: DType) -> Tensor {
        let (call, shape) = (Call::here("placeholder"), shape.into());
        let made = call.needs_addressable(&shape).map(|()| {
            let state = State::Recorded(Recipe::Placeholder, Sources::new());
            let device = Some(Device::default());
            Tensor::from_parts(shape, dtype, device, call.name(), call.location(), state)
        });
        Tensor::or_invalid(made)
    }

    /// Zeros (`false` for `Bool`).
    ///
    /// ```
    /// use lazuli::{DType, Tensor};
    /// assert_eq!(Tensor::zeros([2, 2], DType::I32).to_vec::<i32>()?, [0; 4]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn zeros(shape: impl Into<Shape>, dtype: DType) -> Tensor {
        let (call, zero) = (Call::here("zeros"), Scalar::from_i64(dtype, 0));
        Tensor::or_invalid(call.filled(zero, ConstantRole::Literal, &shape.into()))
    }

    /// Ones (`true` for `Bool`).
    ///
    /// ```
    /// use lazuli::{DType, Tensor};
    /// assert_eq!(Tensor::ones([2], DType::F32).to_vec::<f32>()?, [1.0, 1.0]);
    /// assert_eq!(Tensor::ones([2], DType::Bool).to_vec::<bool>()?, [true, true]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn ones(shape: impl Into<Shape>, dtype: DType) -> Tensor {
        let (call, one) = (Call::here("ones"), Scalar::from_i64(dtype, 1));
        Tensor::or_invalid(call.filled(one, ConstantRole::Literal, &shape.into()))
    }

    /// The value at every position, converted to `dtype`. Of a float, integers keep what is before the point.
    ///
    /// Invalid for a number beyond an integer `dtype`, and for NaN. As in PyTorch, unsigned integers hold negative ones
    /// that they wrap to no more than once: -1 is the greatest.
    ///
    /// ```
    /// use lazuli::{DType, Tensor};
    /// assert_eq!(Tensor::full([3], 7, DType::F32).to_vec::<f32>()?, [7.0; 3]);
    /// assert_eq!(Tensor::full([1], -1, DType::U8).to_vec::<u8>()?, [255]);
    /// assert!(Tensor::full([1], 300, DType::U8).eval().is_err());
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn full(shape: impl Into<Shape>, value: impl Into<Number>, dtype: DType) -> Tensor {
        let call = Call::here("full");
        let value = value.into().held(call, dtype);
        Tensor::or_invalid(value.and_then(|value| call.filled(value, ConstantRole::Argument, &shape.into())))
    }

    /// Zeros of this tensor's shape and dtype, on its device.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[3u8, 4], [2]);
    /// assert_eq!(x.zeros_like().to_vec::<u8>()?, [0, 0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn zeros_like(&self) -> Tensor {
        Tensor::or_invalid(like(Call::here("zeros_like"), self, Number::Int(0), ConstantRole::Literal))
    }

    /// Ones of this tensor's shape and dtype, on its device.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[0.5f32, 2.0], [2]);
    /// assert_eq!(x.gt(1.0).where_(x.ones_like(), &x).to_vec::<f32>()?, [0.5, 1.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn ones_like(&self) -> Tensor {
        Tensor::or_invalid(like(Call::here("ones_like"), self, Number::Int(1), ConstantRole::Literal))
    }

    /// The value at every position, with this tensor's shape, dtype and device. The dtype must hold it, as
    /// [`Tensor::full`] says.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[3u8, 4], [2]);
    /// assert_eq!(x.full_like(7.9).to_vec::<u8>()?, [7, 7]);
    /// assert!(x.full_like(300).eval().is_err());
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn full_like(&self, value: impl Into<Number>) -> Tensor {
        Tensor::or_invalid(like(Call::here("full_like"), self, value.into(), ConstantRole::Argument))
    }

    /// `start, start + step, …` up to, but without, `end`: a 1-d tensor of `ceil((end - start) / step)`
    /// elements, as PyTorch's `arange`. The dtype is the arguments'. `0.0` alone is an `f64` in Rust: what is computed with
    /// `arange(0.0, …)` is `F64` from there on, and slower. `0.0f32` is what PyTorch's floats are by default.
    ///
    /// Element i is `start + step * i`: exact for integers, and for floats computed in `F64`, then rounded. The
    /// arguments are what they are: 0.1 as an [`f16`](crate::f16) is less, and goes 11 times between 0 and 1. For other
    /// dtypes than the arguments', see [`Tensor::arange_with`].
    ///
    /// Invalid if the step is zero or leads away from the end, for floats that are not finite, and for `bool`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// assert_eq!(Tensor::arange(0, 5, 2).to_vec::<i32>()?, [0, 2, 4]);
    /// assert_eq!(Tensor::arange(1.0f32, 0.0, -0.25).to_vec::<f32>()?, [1.0, 0.75, 0.5, 0.25]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn arange<T: Element>(start: T, end: T, step: T) -> Tensor {
        Tensor::or_invalid(arange(Call::here("arange"), [start, end, step].map(element::to_scalar), T::DTYPE))
    }

    /// [`Tensor::arange`] of a dtype that is known when the program runs. How many elements there are follows from the
    /// numbers themselves. Element i is `start + step * i`: exact if all three are integers, else computed in `F64`;
    /// then it is converted to the dtype as Rust's `as` converts.
    ///
    /// Invalid if the step is zero or leads away from the end, for floats that are not finite, and for `Bool`.
    ///
    /// ```
    /// use lazuli::{DType, Shape, Tensor};
    /// for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64] {
    ///     assert_eq!(Tensor::arange_with(0, 1, 0.1, dtype).shape()?, Shape::from([10]));
    /// }
    /// assert_eq!(Tensor::arange_with(5, 0, -2, DType::U8).to_vec::<u8>()?, [5, 3, 1]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn arange_with(
        start: impl Into<Number>,
        end: impl Into<Number>,
        step: impl Into<Number>,
        dtype: DType,
    ) -> Tensor {
        let numbers = [start.into(), end.into(), step.into()];
        let is_float = numbers.iter().any(|number| matches!(number, Number::Float(_)));
        let computed = if is_float { DType::F64 } else { DType::I64 };
        let numbers = numbers.map(|number| number.to_scalar(computed));
        Tensor::or_invalid(arange(Call::here("arange_with"), numbers, dtype))
    }

    /// Uniform random `F32` numbers in [0, 1): Philox of the seed and the element's index, so the same on
    /// every device and however the program is fused. See [`Tensor::rand_with`] for other dtypes.
    ///
    /// J. K. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
    ///
    /// ```
    /// use lazuli::{Shape, Tensor};
    /// let noise = Tensor::rand([2, 3], 42);
    /// assert_eq!(noise.shape()?, Shape::from([2, 3]));
    /// assert_eq!(noise.to_vec::<f32>()?, Tensor::rand([2, 3], 42).to_vec::<f32>()?);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn rand(shape: impl Into<Shape>, seed: u64) -> Tensor {
        Tensor::or_invalid(rand(Call::here("rand"), shape.into(), DType::F32, seed))
    }

    /// Uniform random numbers in [0, 1) of a float dtype; see [`Tensor::rand`].
    ///
    /// Invalid for a dtype that is not a float.
    ///
    /// ```
    /// use lazuli::{DType, Tensor};
    /// let x = Tensor::rand_with([1000], DType::F64, 42);
    /// assert!(x.to_vec::<f64>()?.iter().all(|number| (0.0..1.0).contains(number)));
    /// assert!(Tensor::rand_with([1000], DType::I32, 42).eval().is_err());
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn rand_with(shape: impl Into<Shape>, dtype: DType, seed: u64) -> Tensor {
        Tensor::or_invalid(rand(Call::here("rand_with"), shape.into(), dtype, seed))
    }

    /// The tensor on a device: itself if it is there, else recorded as a copy. What follows from constants
    /// alone is computed on the device instead of copied.
    ///
    /// ```
    /// use lazuli::{Device, DType, Tensor};
    /// let x = Tensor::ones([2], DType::F32).to(&Device::interpreter());
    /// assert_eq!(x.device()?, Device::interpreter());
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn to(&self, device: &Device) -> Tensor {
        Tensor::or_invalid(Call::here("to").transfer(self, *device))
    }
}

fn from_elements<T: Element>(call: Call, data: &[T], shape: Shape) -> Result<Tensor> {
    call.needs_addressable(&shape)?;
    if data.len() != shape.elements() {
        let (given, taken) = (data.len(), shape.elements());
        return call.fail(format!("{given} elements do not fill shape {shape}, which takes {taken}"));
    }
    let buffer = Buffer::Host(Arc::new(HostBuffer::from_bytes(element::to_bytes(data))?));
    let tensor = Tensor::from_buffer(buffer, shape, T::DTYPE, Device::cpu(), call.name(), call.location());
    call.placed(&tensor)
}

fn like(call: Call, x: &Tensor, value: Number, role: ConstantRole) -> Result<Tensor> {
    let (shape, dtype) = x.known()?;
    call.filled_on(x.node.device, value.held(call, dtype)?, role, shape)
}

fn rand(call: Call, shape: Shape, dtype: DType, seed: u64) -> Result<Tensor> {
    match dtype.is_float() {
        true => random(call, shape, dtype, seed),
        false => call.fail(format!("random numbers are floats, not {dtype}; cast them after scaling")),
    }
}

/// The numbers have one dtype, the result any.
fn arange(call: Call, [start, end, step]: [Scalar; 3], dtype: DType) -> Result<Tensor> {
    if dtype == DType::Bool {
        return call.fail("not defined for bool; use integers or floats");
    }
    let between = || format!("from {start} to {end} by {step}");
    let (computed, count) = match start.dtype() {
        DType::Bool | DType::U8 | DType::I8 | DType::I16 | DType::I32 | DType::U32 | DType::I64 => {
            let (from, to, by) = (start.as_i64() as i128, end.as_i64() as i128, step.as_i64() as i128);
            let count = match by.signum() * (to - from) {
                _ if by == 0 => return call.fail(format!("the step is zero, {}", between())),
                distance if distance >= 0 => (distance + by.abs() - 1) / by.abs(),
                _ => return call.fail(format!("the step leads away from the end, {}", between())),
            };
            (DType::I64, usize::try_from(count).unwrap_or(usize::MAX))
        }
        DType::F16 | DType::BF16 | DType::F32 | DType::F64 => {
            let (from, to, by) = (start.as_f64(), end.as_f64(), step.as_f64());
            if ![from, to, by].iter().all(|value| value.is_finite()) {
                return call.fail(format!("needs finite numbers, got {}", between()));
            }
            if by == 0.0 {
                return call.fail(format!("the step is zero, {}", between()));
            }
            if by.signum() * (to - from) < 0.0 {
                return call.fail(format!("the step leads away from the end, {}", between()));
            }
            // Saturates; what is too long is refused below.
            (DType::F64, ((to - from) / by).ceil() as usize)
        }
    };
    let shape = Shape::from([count]);
    if !is_addressable(&shape) {
        return call.fail(format!("more elements than can be addressed, {}", between()));
    }
    let number = |value: Scalar| call.filled(value.cast(computed), ConstantRole::Argument, &shape);
    let mut values = call.cast(&call.record(Op::Iota, &[], shape.clone(), DType::I64)?, computed)?;
    if step != Scalar::from_i64(step.dtype(), 1) {
        values = call.binary(BinaryOp::Mul, &values, &number(step)?)?;
    }
    // Adding zero is left out only where no -0 can come from it.
    if start.is_nonzero() || step.as_f64() < 0.0 {
        values = call.binary(BinaryOp::Add, &values, &number(start)?)?;
    }
    call.cast(&values, dtype)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::State;
    use crate::tensor::tests::{mistake, recorded};
    use half::f16;

    #[test]
    fn data_goes_into_a_buffer_at_once() {
        let x = Tensor::from_vec(vec![1i32, 2, 3, 4, 5, 6], [2, 3]);
        assert!(x.is_evaluated());
        assert_eq!(x.shape().unwrap(), Shape::from([2, 3]));
        assert_eq!(x.dtype().unwrap(), DType::I32);
        assert_eq!(x.device().unwrap(), Device::cpu());
        let state = x.node.state();
        let State::Evaluated(Buffer::Host(buffer), _) = &*state else { panic!("not on the host") };
        assert_eq!(element::from_bytes::<i32>(buffer.as_slice()).unwrap(), [1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn empty_and_0d_data_fit() {
        assert_eq!(Tensor::from_slice::<f32>(&[], [0, 3]).shape().unwrap(), Shape::from([0, 3]));
        assert_eq!(Tensor::from_slice(&[1.0f32], []).shape().unwrap(), Shape::scalar());
    }

    #[test]
    fn constants_are_expanded_scalars() {
        assert_eq!(recorded(&Tensor::zeros([2, 3], DType::F16)), ["constant 0.0f16 literal", "expand"]);
        assert_eq!(recorded(&Tensor::ones([], DType::Bool)), ["constant truebool literal"]);
        assert_eq!(recorded(&Tensor::full([2], 7, DType::F32)), ["constant 7.0f32 argument", "expand"]);
        assert_eq!(recorded(&Tensor::scalar(2.5f32)), ["constant 2.5f32 argument"]);
        assert_eq!(Tensor::scalar(f16::ONE).dtype().unwrap(), DType::F16);
    }

    #[test]
    fn arange_counts_as_pytorch() {
        let count = |x: Tensor| x.shape().unwrap()[0];
        assert_eq!(count(Tensor::arange(0, 10, 3)), 4);
        assert_eq!(count(Tensor::arange(0, 9, 3)), 3);
        assert_eq!(count(Tensor::arange(10, 0, -3)), 4);
        assert_eq!(count(Tensor::arange(3, 3, 1)), 0);
        assert_eq!(count(Tensor::arange(0.0, 1.0, 0.1)), 10);
        assert_eq!(count(Tensor::arange(1.0f32, 2.5, 0.5)), 3);
        assert_eq!(count(Tensor::arange(1.0f32, -1.0, -0.75)), 3);
        assert_eq!(count(Tensor::arange(i64::MIN, i64::MAX, i64::MAX)), 3);
        assert_eq!(count(Tensor::arange(0u8, 255, 100)), 3);
    }

    #[test]
    fn arange_takes_the_dtype_of_its_arguments() {
        assert_eq!(recorded(&Tensor::arange(0i64, 4, 1)), ["iota"]);
        assert_eq!(
            recorded(&Tensor::arange(1i32, 9, 2)),
            [
                "iota",
                "constant 2i64 argument",
                "expand",
                "mul",
                "constant 1i64 argument",
                "expand",
                "add",
                "cast"
            ]
        );
        assert_eq!(recorded(&Tensor::arange(0.0f32, 4.0, 1.0)), ["iota", "cast", "cast"]);
        for (x, dtype) in [
            (Tensor::arange(0u8, 4, 1), DType::U8),
            (Tensor::arange(f16::ZERO, f16::ONE, f16::ONE), DType::F16),
            (Tensor::arange(0.0, 4.0, 1.0), DType::F64),
        ] {
            assert_eq!(x.dtype().unwrap(), dtype);
        }
    }

    #[test]
    fn likes_follow_shape_dtype_and_device() {
        let x = Tensor::from_slice(&[1u8, 2], [2]).to(&Device::interpreter());
        for like in [x.zeros_like(), x.ones_like(), x.full_like(3)] {
            assert_eq!(like.shape().unwrap(), Shape::from([2]));
            assert_eq!(like.dtype().unwrap(), DType::U8);
            assert_eq!(like.device().unwrap(), Device::interpreter());
            assert!((&x + &like).validity().is_ok());
        }
        assert_eq!(Tensor::rand([2], 1).zeros_like().node.device, None);
    }

    #[test]
    fn moving_is_recorded_once() {
        let x = Tensor::from_slice(&[1.0f32], [1]);
        assert!(Arc::ptr_eq(&x.to(&Device::cpu()).node, &x.node));
        let there = x.to(&Device::cuda(0));
        assert_eq!(there.device().unwrap(), Device::cuda(0));
        assert!(Arc::ptr_eq(&there.to(&Device::cuda(0)).node, &there.node));
        assert_eq!(Tensor::rand([2], 1).to(&Device::cuda(1)).device().unwrap(), Device::cuda(1));
    }

    #[test]
    fn mistakes_say_what_does_not_fit() {
        mistake!(
            Tensor::from_vec(vec![1.0f32; 5], [2, 3]),
            "from_vec: 5 elements do not fill shape [2, 3], which takes 6"
        );
        mistake!(
            Tensor::from_slice::<f32>(&[], [0, usize::MAX]),
            "from_slice: shape [0, 18446744073709551615] has more elements than can be addressed"
        );
        mistake!(
            Tensor::zeros([usize::MAX, 2], DType::U8),
            "zeros: shape [18446744073709551615, 2] has more elements than can be addressed"
        );
        mistake!(
            Tensor::rand_with([2], DType::I32, 1),
            "rand_with: random numbers are floats, not i32; cast them after scaling"
        );
        mistake!(Tensor::arange(0, 4, 0), "arange: the step is zero, from 0 to 4 by 0");
        mistake!(
            Tensor::arange(0.0, 4.0, -1.0),
            "arange: the step leads away from the end, from 0.0 to 4.0 by -1.0"
        );
        mistake!(Tensor::arange(0, 4, -1), "arange: the step leads away from the end, from 0 to 4 by -1");
        mistake!(
            Tensor::arange(0.0, f64::INFINITY, 1.0),
            "arange: needs finite numbers, got from 0.0 to inf by 1.0"
        );
        mistake!(
            Tensor::arange(f64::MIN, f64::MAX, f64::MIN_POSITIVE),
            "arange: more elements than can be addressed, from -1.7976931348623157e308 to 1.7976931348623157e308 by 2.2250738585072014e-308"
        );
        mistake!(Tensor::arange(false, true, true), "arange: not defined for bool; use integers or floats");
        let both = Tensor::from_slice(&[1i32], [1]) + Tensor::from_slice(&[1i32], [1]).to(&Device::cuda(0));
        mistake!(both, "add: operands are on cpu and cuda:0; move one with .to(&device)");
    }
}
