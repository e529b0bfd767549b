//! Tensors from and to bytes, where the dtype is known when the program runs.

use std::sync::Arc;

use crate::runtime::buffer::Buffer;
use crate::runtime::host::HostBuffer;
use crate::tensor::arguments::call::Call;
use crate::{DType, Device, Result, Shape, Tensor};

impl Tensor {
    /// A tensor of a copy of these bytes on the CPU: the elements as they lie in memory, little-endian and row-major.
    /// They need not be aligned.
    ///
    /// Invalid if there are not exactly as many bytes as elements of that dtype and shape take, or if a `Bool` is
    /// neither 0 nor 1.
    ///
    /// ```
    /// use lazuli::{DType, Tensor};
    /// let dtype: DType = "i16".parse()?; // such as a file says
    /// let x = Tensor::from_bytes(&[1, 0, 255, 255], dtype, [2]);
    /// assert_eq!(x.to_vec::<i16>()?, [1, -1]);
    /// assert!(Tensor::from_bytes(&[1, 0, 255], dtype, [2]).eval().is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn from_bytes(bytes: &[u8], dtype: DType, shape: impl Into<Shape>) -> Tensor {
        let call = Call::here("from_bytes");
        Tensor::or_invalid(of_bytes(call, bytes, dtype, shape.into()).or_else(|message| call.fail(message)))
    }

    /// The elements as bytes, little-endian and row-major, computed if they are not there yet.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let x = Tensor::from_slice(&[1i16, -1], [2]);
    /// assert_eq!(x.to_bytes()?, [1, 0, 255, 255]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`eval`](crate::eval); an index out of range that a GPU has met meanwhile.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        self.compute()?;
        Ok(self.buffer()?.to_host()?.as_slice().to_vec())
    }
}

/// A tensor of elements as they lie in memory, little-endian and row-major.
pub(crate) fn of_bytes(call: Call, bytes: &[u8], dtype: DType, shape: Shape) -> Result<Tensor, String> {
    let expected = shape.elements().checked_mul(dtype.size());
    if expected != Some(bytes.len()) {
        return Err(format!("{} bytes are not the elements of {dtype} {shape}", bytes.len()));
    }
    if dtype == DType::Bool && bytes.iter().any(|&byte| byte > 1) {
        return Err("a bool is neither 0 nor 1".into());
    }
    call.needs_addressable(&shape).map_err(|error| error.to_string())?;
    let buffer = HostBuffer::from_bytes(bytes).map_err(|error| error.to_string())?;
    let buffer = Buffer::Host(Arc::new(buffer));
    let tensor = Tensor::from_buffer(buffer, shape, dtype, Device::cpu(), call.name(), call.location());
    call.placed(&tensor).map_err(|error| error.to_string())
}
