//! Tensors in the memory of others, and others in the memory of tensors: addresses, without a copy.

use std::any::Any;
use std::ffi::c_void;
use std::sync::Arc;

use crate::runtime::backend::Backend;
use crate::runtime::buffer::Buffer;
use crate::runtime::host::HostBuffer;
use crate::tensor::arguments::call::Call;
use crate::{DType, Device, Result, Shape, Tensor};

/// GPUs read up to so many bytes at once, from addresses that are multiples of it.
#[cfg(feature = "cuda")]
const WIDEST_ACCESS: u64 = 16;

impl Tensor {
    /// A tensor of elements that are there already, row-major and contiguous, without a copy: of `device`'s memory, which for
    /// all but GPUs is that of this process. `keeper` is dropped when nothing uses the memory any more; on a GPU that is when
    /// the kernels are done, which is waited for unless the tensor was made in the scope of an
    /// [external stream](crate::Stream::external).
    ///
    /// An address that is no multiple of the element's size (on a GPU, of 16 bytes) is copied.
    ///
    /// Invalid if the device is not there or the address is null where there are elements.
    ///
    /// # Safety
    /// There are as many elements as the shape says, written before (on a GPU: before, in the order of the current
    /// [`Stream`](crate::Stream)), a `Bool` is 0 or 1, and nobody writes or releases them until `keeper` is dropped.
    ///
    /// ```
    /// use lazuli::{DType, Device, Tensor};
    /// let image = vec![1.0f32; 640 * 480].into_boxed_slice();
    /// let pixels = image.as_ptr().cast();
    /// // SAFETY: the box is what keeps the elements, and nobody else has it.
    /// let x = unsafe { Tensor::from_raw_parts(pixels, DType::F32, [480, 640], &Device::cpu(), image) };
    /// assert_eq!(x.as_ptr()?, pixels);
    /// assert_eq!(x.sum(..).item::<f32>()?, 307_200.0);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub unsafe fn from_raw_parts(
        pointer: *const c_void,
        dtype: DType,
        shape: impl Into<Shape>,
        device: &Device,
        keeper: impl Any + Send + Sync,
    ) -> Tensor {
        let call = Call::here("from_raw_parts");
        // SAFETY: the caller's promise.
        Tensor::or_invalid(unsafe {
            of_others(call, pointer, dtype, shape.into(), *device, Box::new(keeper))
        })
    }

    /// The address of the elements, computed if they are not there yet: row-major and contiguous, in the memory of the
    /// tensor's device. It is good for reading as long as a handle of the tensor is there that is not given away; on a GPU,
    /// for what is started on the current [`Stream`](crate::Stream) from now on. Null if there are no elements.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from([1.0f32, 2.0]) * 2.0;
    /// let elements = x.as_ptr()?.cast::<f32>();
    /// // SAFETY: x is on the CPU, has two elements, and is there.
    /// assert_eq!(unsafe { *elements.add(1) }, 4.0);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`eval`](crate::eval).
    pub fn as_ptr(&self) -> Result<*const c_void> {
        self.compute()?;
        let buffer = self.buffer()?;
        Backend::open(self.device()?)?.order(std::iter::once(&buffer), std::iter::empty())?;
        Ok(if buffer.bytes() == 0 { std::ptr::null() } else { buffer.pointer() })
    }
}

/// A tensor in the memory of others.
///
/// # Safety
/// As for [`Tensor::from_raw_parts`].
pub(crate) unsafe fn of_others(
    call: Call,
    pointer: *const c_void,
    dtype: DType,
    shape: Shape,
    device: Device,
    keeper: Box<dyn Any + Send + Sync>,
) -> Result<Tensor> {
    call.needs_addressable(&shape)?;
    let bytes = shape.elements() * dtype.size();
    if bytes > 0 && pointer.is_null() {
        return call.fail(format!("the address of {dtype} {shape} is null"));
    }
    let backend = Backend::open(device)?;
    let buffer = match &backend {
        _ if bytes == 0 => backend.allocate(0)?,
        #[cfg(feature = "cuda")]
        Backend::Cuda(cuda) => {
            use crate::runtime::cuda::driver::CudaBuffer;
            // SAFETY: the caller's promise.
            let own = unsafe { CudaBuffer::of_others(cuda, pointer as u64, bytes, keeper) };
            let own = Buffer::Cuda(Arc::new(own));
            if (pointer as u64).is_multiple_of(WIDEST_ACCESS) { own } else { backend.import(&own)? }
        }
        _ if !(pointer as usize).is_multiple_of(dtype.size()) => {
            // SAFETY: the caller's promise.
            let elements = unsafe { std::slice::from_raw_parts(pointer.cast::<u8>(), bytes) };
            Buffer::Host(Arc::new(HostBuffer::from_bytes(elements)?))
        }
        // SAFETY: the caller's promise.
        _ => Buffer::Host(Arc::new(unsafe { HostBuffer::of_others(pointer.cast::<u8>(), bytes, keeper) })),
    };
    Ok(Tensor::from_buffer(buffer, shape, dtype, device, call.name(), call.location()))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    struct Keeper {
        elements: Vec<f32>,
        is_dropped: Arc<AtomicBool>,
    }

    impl Drop for Keeper {
        fn drop(&mut self) {
            self.is_dropped.store(true, Ordering::Relaxed);
        }
    }

    fn given(elements: usize) -> (Tensor, *const c_void, Arc<AtomicBool>) {
        let is_dropped = Arc::<AtomicBool>::default();
        let keeper = Keeper { elements: vec![1.0; elements], is_dropped: is_dropped.clone() };
        let pointer = keeper.elements.as_ptr().cast();
        // SAFETY: the keeper has the elements.
        let x = unsafe { Tensor::from_raw_parts(pointer, DType::F32, [elements], &Device::cpu(), keeper) };
        (x, pointer, is_dropped)
    }

    #[test]
    fn what_others_have_is_used_in_its_place_and_let_go_of() {
        let (x, pointer, is_dropped) = given(1000);
        assert_eq!(x.as_ptr().unwrap(), pointer);
        let y = &x + 1.0;
        drop(x);
        assert!(!is_dropped.load(Ordering::Relaxed), "y needs it");
        assert_eq!(y.to_vec::<f32>().unwrap(), vec![2.0; 1000]);
        // For who may want gradients, until y is data.
        y.eval().unwrap();
        assert!(is_dropped.load(Ordering::Relaxed));
    }

    #[test]
    fn what_others_have_is_never_written() {
        let (x, pointer, _is_dropped) = given(1 << 20);
        let y = x.donate() * 3.0;
        y.eval().unwrap();
        assert_ne!(y.as_ptr().unwrap(), pointer);
        let (x, pointer, is_dropped) = given(1 << 20);
        let f = crate::compile(|x: Tensor| x * 3.0);
        assert_ne!(f.call(x.clone().donate()).unwrap().as_ptr().unwrap(), pointer);
        assert_ne!(f.call_into(&y, x).unwrap().as_ptr().unwrap(), pointer);
        assert!(is_dropped.load(Ordering::Relaxed));
    }

    #[test]
    fn addresses_are_checked() {
        let bytes: Arc<Vec<u8>> = Arc::new((0..16).collect());
        // SAFETY: the vector has the bytes, and is kept.
        let of = |pointer| unsafe {
            Tensor::from_raw_parts(pointer, DType::I32, [2], &Device::cpu(), bytes.clone())
        };
        let odd = bytes[1..].as_ptr().cast::<c_void>();
        let odd = if (odd as usize).is_multiple_of(4) { bytes[2..].as_ptr().cast() } else { odd };
        let x = of(odd);
        assert_ne!(x.as_ptr().unwrap(), odd);
        assert_eq!(x.to_bytes().unwrap()[0], bytes[1]);
        let error = of(std::ptr::null()).eval().unwrap_err().to_string();
        assert!(error.starts_with("from_raw_parts: the address of i32 [2] is null, at "), "{error}");
        // SAFETY: there are no elements.
        let none =
            unsafe { Tensor::from_raw_parts(std::ptr::null(), DType::F64, [0, 3], &Device::cpu(), ()) };
        assert_eq!(none.sum(0).to_vec::<f64>().unwrap(), [0.0; 3]);
        assert!(none.as_ptr().unwrap().is_null());
    }
}
