//! DLPack both ways: the memory of PyTorch, NumPy, JAX, candle or CuPy as a tensor, and a tensor as theirs, without a copy.

use std::ffi::c_void;

use dlpark::ffi::{DLDataType, DLDevice, DLDeviceType};
use dlpark::metadata::Dynamic;
use dlpark::{DlpackFlags, Managed, ManagedTensorBase, legacy, versioned};

use crate::recording::Tensor;
use crate::runtime::backend::Backend;
use crate::runtime::buffer::Buffer;
use crate::runtime::device::DeviceKind;
use crate::runtime::stream::Stream;
use crate::tensor::arguments::call::Call;
use crate::tensor::make::foreign;
use crate::{DType, Device, Result, Shape};

/// What an exported tensor keeps until its consumer lets go of it.
struct Export {
    buffer: Buffer,
    backend: Backend,
    /// The one on which the consumer uses the memory.
    stream: Stream,
}

impl Drop for Export {
    fn drop(&mut self) {
        // The memory is released after what the consumer has started meanwhile. An error comes with the next call.
        let _ = self.stream.scope(|| self.backend.order(std::iter::once(&self.buffer), std::iter::empty()));
    }
}

impl Tensor {
    /// The elements as a DLPack tensor, computed if they are not there yet: of this tensor's memory, which is kept until the
    /// consumer lets go of it, contiguous and row-major. It is marked as read-only, because other tensors may follow
    /// from this one. Needs the feature `dlpack`.
    ///
    /// On a GPU, the consumer may use it on the current [`Stream`]: that of the consumer's in the
    /// scope of [`Stream::external`]. The `PyCapsule` of a versioned tensor is named `dltensor_versioned`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from([[1.0f32, 2.0], [3.0, 4.0]]).exp();
    /// let shared = x.to_dlpack()?; // .into_raw() is what C and Python take
    /// let view = shared.validate()?;
    /// assert_eq!((view.shape(), view.strides()), (&[2, 2][..], Some(&[2, 1][..])));
    /// assert_eq!(view.data_ptr(), x.as_ptr()?);
    ///
    /// // SAFETY: the memory is x's, and nobody writes to it.
    /// let y = unsafe { Tensor::from_dlpack(shared) };
    /// assert_eq!(y.as_ptr()?, x.as_ptr()?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`eval`](crate::eval).
    #[track_caller]
    pub fn to_dlpack(&self) -> Result<versioned::Dlpack> {
        export(Call::here("to_dlpack"), self)
    }

    /// As [`Tensor::to_dlpack`], in the form from before DLPack 1.0, which cannot be marked as read-only: do not write to it.
    /// Its `PyCapsule` is named `dltensor`. Needs the feature `dlpack`.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from([1.0f32, 2.0]);
    /// let capsule = x.to_dlpack_legacy()?.into_raw(); // *mut DLManagedTensor, for a library of before 2023
    /// // SAFETY: the pointer is of to_dlpack_legacy.
    /// let shared = unsafe { dlpark::legacy::Dlpack::from_raw(capsule) }?;
    /// // SAFETY: the memory is x's, and nobody writes to it.
    /// assert_eq!(unsafe { Tensor::from_dlpack(shared) }.to_vec::<f32>()?, [1.0, 2.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::to_dlpack`].
    #[track_caller]
    pub fn to_dlpack_legacy(&self) -> Result<legacy::Dlpack> {
        export(Call::here("to_dlpack_legacy"), self)
    }

    /// A tensor of the elements of a DLPack tensor, versioned or not, without a copy: those of the CPU (pinned ones too) on
    /// [`Device::cpu`], those of CUDA device N on [`Device::cuda`]`(N)`. Strides may be any, negative ones and zeros included;
    /// kernels read with them. The producer's memory is let go of when no kernel uses it any more; see
    /// [`Tensor::from_raw_parts`] for when that is, and for which addresses are copied. Needs the feature `dlpack`.
    ///
    /// Invalid for dtypes that there are none of here, several lanes, other devices, and a descriptor that contradicts itself.
    ///
    /// # Safety
    /// The descriptor is right, and nobody writes to the elements until the producer's deleter is called. On a GPU, they were
    /// written before, in the order of the current [`Stream`]: that of the producer's in the scope of [`Stream::external`].
    ///
    /// ```
    /// use dlpark::ffi::{DLDataType, DLDevice};
    /// use dlpark::{metadata::Dynamic, versioned};
    /// use lazuli::Tensor;
    /// // A matrix of another library, column by column.
    /// let elements = vec![1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0];
    /// let data = elements.as_ptr().cast_mut().cast();
    /// let mut matrix = Dynamic::new([2, 3], [1, 2]).initialize(Box::new(elements))?;
    /// matrix.set_data(data).set_dtype(DLDataType::F32).set_device(DLDevice::CPU);
    /// // SAFETY: the vector, which is kept, has these elements.
    /// let matrix: versioned::Dlpack = unsafe { matrix.finish() };
    ///
    /// // SAFETY: nobody else has the vector.
    /// let x = unsafe { Tensor::from_dlpack(matrix) };
    /// assert_eq!(x.to_vec::<f32>()?, [1.0, 3.0, 5.0, 2.0, 4.0, 6.0]);
    /// assert_eq!((x.t() * 2.0).to_vec::<f32>()?, [2.0, 4.0, 6.0, 8.0, 10.0, 12.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub unsafe fn from_dlpack<M: ManagedTensorBase + 'static>(tensor: Managed<M>) -> Tensor {
        let call = Call::here("from_dlpack");
        // SAFETY: the caller's promise.
        call.composed(|| unsafe { import(call, tensor) })
    }
}

fn export<M: ManagedTensorBase>(call: Call, x: &Tensor) -> Result<Managed<M>> {
    x.compute()?;
    let (shape, dtype) = x.known()?;
    let (device, buffer) = (x.device()?, x.buffer()?);
    let backend = Backend::open(device)?;
    // What the consumer starts on this thread's stream comes after what computes the elements.
    backend.order(std::iter::once(&buffer), std::iter::empty())?;
    let data = if buffer.bytes() == 0 { std::ptr::null_mut() } else { buffer.pointer() };
    let mut strides = vec![1i64; shape.rank()];
    for axis in (1..shape.rank()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis].max(1) as i64;
    }
    let extents: Vec<i64> = shape.iter().map(|&extent| extent as i64).collect();
    let export = Box::new(Export { buffer, backend, stream: Stream::current(&device)? });
    let failed = |error: &dyn std::fmt::Display| call.error(error.to_string());
    let metadata = Dynamic::new(extents, strides);
    let mut tensor = metadata.initialize_as::<M>(export).map_err(|error| failed(&error))?;
    tensor.set_data(data).set_dtype(dtype_to(dtype)).set_device(device_to(device));
    tensor.set_flags(DlpackFlags::READ_ONLY).map_err(|error| failed(&error))?;
    // SAFETY: the buffer, which the export keeps, holds such elements, contiguous and row-major.
    Ok(unsafe { tensor.finish() })
}

/// # Safety
/// As for [`Tensor::from_dlpack`].
unsafe fn import<M: ManagedTensorBase + 'static>(call: Call, tensor: Managed<M>) -> Result<Tensor> {
    let (layout, data, dtype, device) = {
        let view = tensor.validate().map_err(|error| call.error(error.to_string()))?;
        let dtype = dtype_of(view.dtype()).ok_or_else(|| {
            let DLDataType { code, bits, lanes } = view.dtype();
            call.error(format!(
                "there is no dtype for {lanes} lanes of {bits} bits of DLPack's code {}",
                code.0
            ))
        })?;
        let device = device_of(view.device()).ok_or_else(|| {
            let DLDevice { device_type, device_id } = view.device();
            call.error(format!(
                "there is no device for number {device_id} of DLPack's type {}",
                device_type.0
            ))
        })?;
        let strides = view.strides_or_compact().map_err(|error| call.error(error.to_string()))?;
        let layout = Layout::new(view.shape(), &strides).ok_or_else(|| {
            call.error(format!("strides {strides:?} of {:?} leave the address space", view.shape()))
        })?;
        (layout, view.data_ptr().cast::<u8>().wrapping_add(view.byte_offset() as usize), dtype, device)
    };
    let first = data.wrapping_offset(layout.first * dtype.size() as isize).cast::<c_void>();
    let memory = |shape: Shape| {
        // SAFETY: the caller's promise; the layout's elements are from the first one on.
        unsafe { foreign::of_others(call, first, dtype, shape, device, Box::new(tensor)) }
    };
    Ok(match layout.outermost_first() {
        Some(order) => {
            let shape: Vec<usize> = order.iter().map(|&axis| layout.shape[axis]).collect();
            let mut back = vec![0isize; order.len()];
            order.iter().enumerate().for_each(|(place, &axis)| back[axis] = place as isize);
            let x = memory(shape.into())?;
            if back.is_sorted() { x } else { x.permute(&back[..]) }
        }
        None => layout.view(&memory([layout.elements].into())?),
    })
}

/// Where the elements of a strided tensor are.
struct Layout {
    shape: Vec<usize>,
    strides: Vec<isize>,
    /// The element of the lowest address, from that at position zero.
    first: isize,
    /// From there to the highest.
    elements: usize,
}

impl Layout {
    fn new(shape: &[i64], strides: &[i64]) -> Option<Layout> {
        let shape: Vec<usize> =
            shape.iter().map(|&extent| usize::try_from(extent).ok()).collect::<Option<_>>()?;
        let strides: Vec<isize> = strides.iter().map(|&stride| stride as isize).collect();
        let (mut first, mut last) = (0isize, 0isize);
        for (&extent, &stride) in shape.iter().zip(&strides) {
            let far = stride.checked_mul(isize::try_from(extent.max(1) - 1).ok()?)?;
            let end = if stride < 0 { &mut first } else { &mut last };
            *end = end.checked_add(far)?;
        }
        let elements = match shape.contains(&0) {
            true => 0,
            false => usize::try_from(last.checked_sub(first)?).ok()?.checked_add(1)?,
        };
        // Bytes fit as well.
        elements.checked_mul(16)?;
        Some(Layout { shape, strides, first, elements })
    }

    /// The axes, if the elements are contiguous in this order of them.
    fn outermost_first(&self) -> Option<Vec<usize>> {
        let mut order: Vec<usize> = (0..self.shape.len()).collect();
        if self.elements == 0 {
            return Some(order);
        }
        order.sort_by_key(|&axis| (self.shape[axis] > 1).then_some(std::cmp::Reverse(self.strides[axis])));
        let mut next = 1;
        let is_next = |&axis: &usize| {
            let is_it = self.shape[axis] == 1 || self.strides[axis] == next;
            next *= self.shape[axis] as isize;
            is_it
        };
        order.iter().rev().all(is_next).then_some(order)
    }

    /// The view of the elements from the first one on: windows into windows, the innermost of one element.
    fn view(&self, elements: &Tensor) -> Tensor {
        let mut x = elements.clone();
        let mut size = self.elements;
        for (axis, (&extent, &stride)) in self.shape.iter().zip(&self.strides).enumerate() {
            let axis = axis as isize;
            x = match (extent, stride) {
                (1, _) => x.unsqueeze(axis),
                (_, 0) => {
                    let mut shape: Vec<isize> =
                        self.shape[..=axis as usize].iter().map(|&n| n as isize).collect();
                    shape.push(size as isize);
                    x.unsqueeze(axis).expand(shape)
                }
                _ => {
                    let step = stride.unsigned_abs();
                    size -= (extent - 1) * step;
                    let windows = x.unfold(axis, size, step);
                    if stride < 0 { windows.flip(axis) } else { windows }
                }
            };
        }
        x.squeeze(-1)
    }
}

fn dtype_to(dtype: DType) -> DLDataType {
    match dtype {
        DType::Bool => DLDataType::BOOL,
        DType::U8 => DLDataType::U8,
        DType::I8 => DLDataType::I8,
        DType::I16 => DLDataType::I16,
        DType::I32 => DLDataType::I32,
        DType::U32 => DLDataType::U32,
        DType::I64 => DLDataType::I64,
        DType::F16 => DLDataType::F16,
        DType::BF16 => DLDataType::BF16,
        DType::F32 => DLDataType::F32,
        DType::F64 => DLDataType::F64,
    }
}

fn dtype_of(dtype: DLDataType) -> Option<DType> {
    DType::ALL.into_iter().find(|&own| dtype_to(own) == dtype)
}

fn device_to(device: Device) -> DLDevice {
    match device.0 {
        DeviceKind::Cuda(ordinal) => DLDevice::cuda(i32::try_from(ordinal).unwrap_or(i32::MAX)),
        // Their memory is the process's.
        DeviceKind::Cpu(_) | DeviceKind::Emulated | DeviceKind::Interpreter | DeviceKind::Interpreted(_) => {
            DLDevice::CPU
        }
    }
}

fn device_of(device: DLDevice) -> Option<Device> {
    match device.device_type {
        DLDeviceType::CPU | DLDeviceType::CUDAHOST => Some(Device::cpu()),
        DLDeviceType::CUDA => usize::try_from(device.device_id).ok().map(Device::cuda),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// A tensor of others over these elements, from the one at `offset` on.
    fn given(elements: &Arc<Vec<i32>>, offset: usize, shape: &[i64], strides: &[i64]) -> versioned::Dlpack {
        let data = elements.as_ptr().cast_mut().cast();
        let mut tensor = Dynamic::new(shape.to_vec(), strides.to_vec()).initialize(elements.clone()).unwrap();
        tensor.set_data(data).set_dtype(DLDataType::I32).set_device(DLDevice::CPU);
        tensor.set_byte_offset(4 * offset as u64);
        // SAFETY: the vector has these elements.
        unsafe { tensor.finish() }
    }

    #[test]
    fn any_strides_are_views_of_the_same_memory() {
        let elements: Arc<Vec<i32>> = Arc::new((0..1000).collect());
        let cases: [(usize, &[i64], &[i64]); 14] = [
            (0, &[], &[]),
            (7, &[], &[]),
            (0, &[2, 3, 4], &[12, 4, 1]),
            (5, &[2, 3, 4], &[1, 8, 2]),
            (5, &[3, 4], &[1, 3]),
            (3, &[4, 5], &[10, 2]),
            (20, &[4, 5], &[7, -3]),
            (900, &[3, 2, 5], &[-100, 1, -7]),
            (2, &[3, 4], &[0, 1]),
            (2, &[3, 4, 2], &[5, 0, 1]),
            (1, &[5, 4], &[1, 1]), // windows
            (4, &[1, 6, 1], &[17, 3, -900]),
            (0, &[3, 0, 2], &[9, -4, 1]),
            (1, &[2, 2, 2, 2, 2], &[3, 50, -1, 7, 200]),
        ];
        for (offset, shape, strides) in cases {
            // SAFETY: the vector has these elements, and is not written.
            let x = unsafe { Tensor::from_dlpack(given(&elements, offset, shape, strides)) };
            let mut expected = vec![offset as i64];
            for (&extent, &stride) in shape.iter().zip(strides) {
                let along = |&first: &i64| (0..extent).map(move |at| first + at * stride);
                expected = expected.iter().flat_map(along).collect();
            }
            let expected: Vec<i32> = expected.iter().map(|&n| n as i32).collect();
            assert_eq!(x.shape().unwrap().iter().map(|&n| n as i64).collect::<Vec<_>>(), shape);
            assert_eq!(x.to_vec::<i32>().unwrap(), expected, "{shape:?} {strides:?}");
            assert_eq!((&x + 1).to_vec::<i32>().unwrap().len(), expected.len());
        }
        assert_eq!(Arc::strong_count(&elements), 1, "all are let go of");
    }

    #[test]
    fn what_does_not_fit_is_an_error_that_says_so() {
        type Change = fn(&mut dlpark::ffi::DLTensor);
        let elements: Arc<Vec<i32>> = Arc::new((0..10).collect());
        let message = |change: Change| {
            let tensor = given(&elements, 0, &[2, 2], &[2, 1]).into_raw();
            // SAFETY: the pointer is of a whole tensor, whose elements are not read.
            let x = unsafe {
                change(&mut (*tensor).dl_tensor);
                Tensor::from_dlpack(versioned::Dlpack::from_raw(tensor).unwrap())
            };
            x.eval().unwrap_err().to_string()
        };
        let cases: [(Change, &str); 5] = [
            (|t| t.dtype = DLDataType::C64, "there is no dtype for 1 lanes of 64 bits of DLPack's code 5"),
            (|t| t.dtype.lanes = 4, "there is no dtype for 4 lanes of 32 bits of DLPack's code 0"),
            (|t| t.device = DLDevice::metal(0), "there is no device for number 0 of DLPack's type 8"),
            (|t| t.data = std::ptr::null_mut(), "null"),
            // SAFETY: the shape has two extents.
            (|t| unsafe { *t.shape = -1 }, "-1"),
        ];
        for (change, expected) in cases {
            let message = message(change);
            assert!(message.starts_with("from_dlpack: ") && message.contains(expected), "{message}");
        }
        assert_eq!(Arc::strong_count(&elements), 1, "all are let go of");
    }

    #[test]
    fn every_dtype_goes_there_and_back() {
        for dtype in DType::ALL {
            let x = Tensor::arange(0.0f64, 6.0, 1.0).cast(dtype).reshape([2, 3]);
            let shared = x.to_dlpack().unwrap();
            assert_eq!(shared.flags(), DlpackFlags::READ_ONLY);
            // SAFETY: the memory is x's, which nobody writes.
            let y = unsafe { Tensor::from_dlpack(shared) };
            assert_eq!((y.dtype().unwrap(), y.as_ptr().unwrap()), (dtype, x.as_ptr().unwrap()));
            // SAFETY: as above.
            let z = unsafe { Tensor::from_dlpack(y.to_dlpack_legacy().unwrap()) };
            let bytes = x.to_bytes().unwrap();
            drop((x, y));
            assert_eq!(z.to_bytes().unwrap(), bytes);
        }
        let empty = Tensor::zeros([0, 3], DType::F32);
        // SAFETY: there are no elements.
        let empty = unsafe { Tensor::from_dlpack(empty.to_dlpack().unwrap()) };
        assert_eq!(empty.sum(0).to_vec::<f32>().unwrap(), [0.0; 3]);
        let wrong = Tensor::zeros([2], DType::F32).reshape([3]).to_dlpack();
        assert!(wrong.is_err());
    }

    #[test]
    fn what_is_shared_is_not_written() {
        let x = Tensor::from_vec(vec![1.0f32; 1 << 20], [1 << 20]);
        let shared = x.to_dlpack().unwrap();
        let y = x.donate() * 2.0;
        y.eval().unwrap();
        // SAFETY: the memory is kept by the export.
        assert_eq!(unsafe { shared.tensor().cpu_slice::<f32>() }.unwrap()[0], 1.0);
        // SAFETY: nobody writes to it.
        let z = unsafe { Tensor::from_dlpack(shared) };
        let address = z.as_ptr().unwrap();
        let twice = z.donate() * 2.0;
        assert_ne!(twice.as_ptr().unwrap(), address);
    }
}
