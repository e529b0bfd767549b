//! The safetensors format: a header in JSON, and the elements.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use safetensors::tensor::{Dtype, SafeTensors, View};

use super::{failure, parts};
use crate::runtime::host::{self, HostBuffer};
use crate::tensor::arguments::call::Call;
use crate::tensor::make::bytes::of_bytes as tensor;
use crate::{DType, Error, Result, Shape, Tensor};

/// The tensors of a safetensors file with their names, in the order of the names.
///
/// ```
/// use lazuli::{Tensor, io};
/// let folder = tempfile::tempdir().unwrap();
/// let path = folder.path().join("layer.safetensors");
/// io::write_safetensors(&path, [("weight", &Tensor::rand([2, 3], 1)), ("bias", &Tensor::rand([2], 2))])?;
/// let tensors = io::read_safetensors(&path)?;
/// assert_eq!(tensors[0].0, "bias");
/// # Ok::<(), lazuli::Error>(())
/// ```
///
/// # Errors
/// [`Error::Io`](crate::Error::Io) if the file cannot be read, is not in this format, or has a dtype that tensors
/// do not have.
#[track_caller]
pub fn read_safetensors(path: impl AsRef<Path>) -> Result<Vec<(String, Tensor)>> {
    let (call, path) = (Call::here("read_safetensors"), path.as_ref());
    let bytes = fs::read(path).map_err(|error| Error::io("read", path, error))?;
    let file = SafeTensors::deserialize(&bytes).map_err(|error| failure("read", path, error))?;
    let mut tensors = Vec::new();
    for (name, view) in file.tensors() {
        let code = format!("{:?}", view.dtype());
        let dtype = DType::ALL.into_iter().find(|&dtype| dtype.name().to_uppercase() == code);
        let result = match dtype {
            Some(dtype) => tensor(call, view.data(), dtype, Shape::from(view.shape())),
            None => Err(format!("its dtype {code} is none that tensors have")),
        };
        tensors.push((
            name.clone(),
            result.map_err(|message| failure("read", path, format!("{name}: {message}")))?,
        ));
    }
    tensors.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(tensors)
}

/// Writes tensors as a safetensors file; an existing one is replaced.
///
/// ```
/// use lazuli::{DType, Tensor, io};
/// let folder = tempfile::tempdir().unwrap();
/// let path = folder.path().join("layer.safetensors");
/// let bias = Tensor::ones([2], DType::BF16);
/// io::write_safetensors(&path, [("bias", &bias)])?;
/// assert_eq!(io::read_safetensors(&path)?[0].1.dtype()?, DType::BF16);
/// # Ok::<(), lazuli::Error>(())
/// ```
///
/// # Errors
/// As [`eval`](crate::eval); [`Error::Io`](crate::Error::Io) if the file cannot be written.
#[track_caller]
pub fn write_safetensors<'a>(
    path: impl AsRef<Path>,
    tensors: impl IntoIterator<Item = (impl AsRef<str>, &'a Tensor)>,
) -> Result<()> {
    let (call, path) = (Call::here("write_safetensors"), path.as_ref());
    let tensors: Vec<_> = tensors.into_iter().collect();
    crate::eval(tensors.iter().map(|(_, tensor)| *tensor))?;
    let mut views = Vec::new();
    for (name, tensor) in &tensors {
        let (shape, dtype, elements) = parts(tensor)?;
        let Some(code) = code(dtype) else {
            return call.fail(format!("safetensors has no {dtype}, got {dtype} {shape}"));
        };
        views.push((name.as_ref().to_owned(), Elements { code, shape: shape.to_vec(), elements }));
    }
    // The crate's own vector of the whole file would end the process where it does not fit.
    host::reserve(&mut Vec::<u8>::new(), views.iter().map(|(_, view)| view.data_len()).sum())?;
    let bytes = safetensors::serialize(views, None).map_err(|error| failure("write", path, error))?;
    fs::write(path, bytes).map_err(|error| Error::io("write", path, error))
}

fn code(dtype: DType) -> Option<Dtype> {
    let all = [
        Dtype::BOOL,
        Dtype::U8,
        Dtype::I8,
        Dtype::I16,
        Dtype::U16,
        Dtype::I32,
        Dtype::U32,
        Dtype::I64,
        Dtype::U64,
        Dtype::F16,
        Dtype::BF16,
        Dtype::F32,
        Dtype::F64,
    ];
    all.into_iter().find(|code| format!("{code:?}") == dtype.name().to_uppercase())
}

/// One tensor as the crate wants to see it.
struct Elements {
    code: Dtype,
    shape: Vec<usize>,
    elements: Arc<HostBuffer>,
}

impl View for Elements {
    fn dtype(&self) -> Dtype {
        self.code
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn data(&self) -> std::borrow::Cow<'_, [u8]> {
        self.elements.as_slice().into()
    }

    fn data_len(&self) -> usize {
        self.elements.as_slice().len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_dtype_comes_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.safetensors");
        let all = DType::ALL.map(|dtype| (dtype.name(), Tensor::arange(0, 6, 1).reshape([2, 3]).cast(dtype)));
        write_safetensors(&path, all.iter().map(|(name, tensor)| (*name, tensor))).unwrap();
        let read = read_safetensors(&path).unwrap();
        assert_eq!(read.len(), all.len());
        for (name, tensor) in &read {
            assert_eq!(tensor.dtype().unwrap().name(), name);
            let expected = &all.iter().find(|(own, _)| own == name).unwrap().1;
            let values = |x: &Tensor| x.cast(DType::F64).to_vec::<f64>().unwrap();
            assert_eq!(values(tensor), values(expected));
        }
        let none: [(&str, &Tensor); 0] = [];
        write_safetensors(&path, none).unwrap();
        assert!(read_safetensors(&path).unwrap().is_empty());
        fs::write(&path, "no tensors").unwrap();
        assert!(read_safetensors(&path).unwrap_err().to_string().starts_with("could not read "));
    }
}
