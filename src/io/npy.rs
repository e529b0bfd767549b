//! NumPy's format of one array: a magic number, a header in Python's syntax, and the elements.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use super::{failure, parts};
use crate::runtime::host::{self, HostBuffer};
use crate::tensor::arguments::call::Call;
use crate::tensor::make::bytes::of_bytes as tensor;
use crate::{DType, Error, Result, Shape, Tensor};

const MAGIC: &[u8] = b"\x93NUMPY";

/// The tensor of an `.npy` file.
///
/// ```
/// use lazuli::{Tensor, io};
/// let folder = tempfile::tempdir().unwrap();
/// let path = folder.path().join("x.npy");
/// io::write_npy(&path, &Tensor::arange(0, 6, 1).reshape([2, 3]))?;
/// let x = io::read_npy(&path)?;
/// assert_eq!(x.t().to_vec::<i32>()?, [0, 3, 1, 4, 2, 5]);
/// # Ok::<(), lazuli::Error>(())
/// ```
///
/// # Errors
/// [`Error::Io`](crate::Error::Io) if the file cannot be read, is not in this format, or has a dtype that tensors
/// do not have.
#[track_caller]
pub fn read_npy(path: impl AsRef<Path>) -> Result<Tensor> {
    let (call, path) = (Call::here("read_npy"), path.as_ref());
    let bytes = fs::read(path).map_err(|error| Error::io("read", path, error))?;
    decode(call, &bytes).map_err(|message| failure("read", path, message))
}

/// Writes a tensor as an `.npy` file; an existing one is replaced.
///
/// ```
/// use lazuli::{Tensor, io};
/// let folder = tempfile::tempdir().unwrap();
/// let path = folder.path().join("x.npy");
/// io::write_npy(&path, &(Tensor::arange(0, 3, 1) * 2))?; // evaluated first
/// assert_eq!(io::read_npy(&path)?.to_vec::<i32>()?, [0, 2, 4]);
/// # Ok::<(), lazuli::Error>(())
/// ```
///
/// # Errors
/// As [`Tensor::eval`]; [`Error::Io`](crate::Error::Io) if the file cannot be written; for `BF16`, which NumPy does
/// not have.
#[track_caller]
pub fn write_npy(path: impl AsRef<Path>, x: &Tensor) -> Result<()> {
    let path = path.as_ref();
    let (header, elements) = encode(Call::here("write_npy"), x)?;
    let write = || -> io::Result<()> {
        let mut file = fs::File::create(path)?;
        file.write_all(&header)?;
        file.write_all(elements.as_slice())
    };
    write().map_err(|error| Error::io("write", path, error))
}

/// NumPy's code, such as `f4`; `None` for what it does not have.
fn code(dtype: DType) -> Option<String> {
    let kind = match dtype {
        DType::Bool => 'b',
        DType::BF16 => return None,
        _ if dtype.is_float() => 'f',
        _ if dtype.name().starts_with('u') => 'u',
        _ => 'i',
    };
    Some(format!("{kind}{}", dtype.size()))
}

/// The file in two parts: its header, and the elements as they lie in memory.
pub(super) fn encode(call: Call, x: &Tensor) -> Result<(Vec<u8>, Arc<HostBuffer>)> {
    let (shape, dtype) = x.known()?;
    let Some(code) = code(dtype) else {
        return call.fail(format!("NumPy has no {dtype}, got {dtype} {shape}; use .cast(DType::F32)"));
    };
    let (_, _, elements) = parts(x)?;
    let order = if dtype.size() == 1 { '|' } else { '<' };
    let extents: String = shape.iter().map(|extent| format!("{extent}, ")).collect();
    // A list of one needs its comma, a longer one must not end with one for the sake of the oldest readers.
    let extents = if shape.rank() == 1 { extents.trim_end() } else { extents.trim_end_matches(", ") };
    let mut header = format!("{{'descr': '{order}{code}', 'fortran_order': False, 'shape': ({extents}), }}");
    let before = MAGIC.len() + 4;
    let length = (before + header.len() + 1).next_multiple_of(64) - before;
    header.extend(std::iter::repeat_n(' ', length - header.len() - 1));
    header.push('\n');
    // 64 axes of 20 digits fit twice.
    Ok(([MAGIC, &[1, 0], &(length as u16).to_le_bytes(), header.as_bytes()].concat(), elements))
}

pub(super) fn decode(call: Call, bytes: &[u8]) -> Result<Tensor, String> {
    let not_npy = || "it does not begin as an .npy file".to_string();
    let rest = bytes.strip_prefix(MAGIC).ok_or_else(not_npy)?;
    let (length, rest) = match rest {
        [1, _, a, b, rest @ ..] => (u16::from_le_bytes([*a, *b]) as usize, rest),
        [2 | 3, _, a, b, c, d, rest @ ..] => (u32::from_le_bytes([*a, *b, *c, *d]) as usize, rest),
        _ => return Err(not_npy()),
    };
    let (header, elements) = rest.split_at_checked(length).ok_or("it ends within its header")?;
    let header = String::from_utf8_lossy(header);
    let field = |name: &str| {
        let (_, value) = header.split_once(&format!("'{name}':"))?;
        Some(value.trim_start())
    };
    let missing = |name: &str| format!("its header has no {name}: {header}");
    let descr = field("descr").ok_or_else(|| missing("descr"))?;
    let descr = descr.strip_prefix('\'').and_then(|text| text.split_once('\''));
    let descr = descr.ok_or("it has several fields, as a structured array")?.0;
    let (order, kind) = descr.split_at_checked(1).ok_or_else(|| missing("dtype"))?;
    let dtype = DType::ALL.into_iter().find(|&dtype| code(dtype).as_deref() == Some(kind));
    let dtype = dtype.ok_or_else(|| format!("its dtype {descr} is none that tensors have"))?;
    let shape = field("shape").and_then(|text| text.strip_prefix('(')?.split_once(')'));
    let shape = shape.ok_or_else(|| missing("shape"))?.0;
    let extents =
        shape.split(',').map(str::trim).filter(|extent| !extent.is_empty()).map(str::parse::<usize>);
    let extents = extents.collect::<Result<Vec<_>, _>>().map_err(|_| format!("its shape is ({shape})"))?;
    let is_fortran = field("fortran_order").is_some_and(|text| text.starts_with("True"));
    let mut swapped = Vec::new();
    let elements = match order {
        ">" => {
            host::reserve(&mut swapped, elements.len()).map_err(|error| error.to_string())?;
            swapped.extend_from_slice(elements);
            swapped.chunks_mut(dtype.size()).for_each(<[u8]>::reverse);
            &swapped[..]
        }
        _ => elements,
    };
    if !is_fortran {
        return tensor(call, elements, dtype, Shape::from(extents));
    }
    // The same elements, the first axis innermost.
    let reversed: Shape = extents.iter().rev().copied().collect();
    let axes: Vec<usize> = (0..extents.len()).rev().collect();
    Ok(tensor(call, elements, dtype, reversed)?.permute(axes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Device, bf16, f16};

    fn read(bytes: &[u8]) -> Result<Tensor, String> {
        decode(Call::here("read_npy"), bytes)
    }

    fn written(x: &Tensor) -> Vec<u8> {
        let (header, elements) = encode(Call::here("write_npy"), x).unwrap();
        [&header, elements.as_slice()].concat()
    }

    /// A file with that header.
    fn file(header: &str, elements: &[u8]) -> Vec<u8> {
        [MAGIC, &[1, 0], &(header.len() as u16).to_le_bytes(), header.as_bytes(), elements].concat()
    }

    #[test]
    fn every_dtype_and_shape_comes_back() {
        for shape in [&[][..], &[1], &[5], &[2, 3], &[0, 4], &[2, 1, 3]] {
            for dtype in DType::ALL.into_iter().filter(|&dtype| dtype != DType::BF16) {
                let count: usize = shape.iter().product();
                let x = (Tensor::arange(0, count as i64, 1) - 2).reshape(shape).cast(dtype);
                let bytes = written(&x);
                let y = read(&bytes).unwrap();
                assert_eq!(y.shape().unwrap(), x.shape().unwrap());
                assert_eq!(y.dtype().unwrap(), dtype);
                assert_eq!(
                    y.cast(DType::F64).to_vec::<f64>().unwrap(),
                    x.cast(DType::F64).to_vec::<f64>().unwrap()
                );
                let header = bytes.len() - count * dtype.size();
                assert!(header.is_multiple_of(64) && bytes[header - 1] == b'\n');
            }
        }
        let special = [f16::NAN, f16::INFINITY, f16::NEG_ZERO];
        let back = read(&written(&Tensor::from_slice(&special, [3]))).unwrap().to_vec::<f16>().unwrap();
        assert_eq!(back.iter().map(|x| x.to_bits()).collect::<Vec<_>>(), special.map(f16::to_bits));
    }

    /// Written by NumPy: `np.save` of `np.array([[1, 2, 3], [4, 5, 6]])` in other orders.
    #[test]
    fn other_orders_are_read() {
        let bytes: Vec<u8> = [1i16, 4, 2, 5, 3, 6].iter().flat_map(|&x| i32::from(x).to_le_bytes()).collect();
        let fortran = file("{'descr': '<i4', 'fortran_order': True, 'shape': (2, 3), }", &bytes);
        assert_eq!(read(&fortran).unwrap().to_vec::<i32>().unwrap(), [1, 2, 3, 4, 5, 6]);
        let bytes: Vec<u8> = [1.5f32, -2.0].iter().flat_map(|x| x.to_be_bytes()).collect();
        let big = file("{'descr': '>f4', 'fortran_order': False, 'shape': (2,), }", &bytes);
        assert_eq!(read(&big).unwrap().to_vec::<f32>().unwrap(), [1.5, -2.0]);
    }

    #[test]
    fn what_is_no_array_of_ours_says_so() {
        let message = |bytes: &[u8]| read(bytes).unwrap_err();
        let f4 = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }";
        assert_eq!(message(b"PNG"), "it does not begin as an .npy file");
        assert_eq!(message(b"\x93NUMPY\x09\x00"), "it does not begin as an .npy file");
        assert_eq!(message(b"\x93NUMPY\x01\x00\xff\xff{"), "it ends within its header");
        assert_eq!(message(&file(f4, &[0; 7])), "7 bytes are not the elements of f32 [2]");
        assert_eq!(message(&file(&f4.replace("<f4", "<c8"), &[])), "its dtype <c8 is none that tensors have");
        assert_eq!(
            message(&file(&f4.replace("'<f4'", "[('a', '<f4')]"), &[])),
            "it has several fields, as a structured array"
        );
        assert_eq!(message(&file(&f4.replace("(2,)", "(-2,)"), &[])), "its shape is (-2,)");
        assert_eq!(message(&file(&f4.replace("<f4", "|b1"), &[0, 2])), "a bool is neither 0 nor 1");
        assert_eq!(
            message(&file(&f4.replace("(2,)", "(9999999999, 9999999999999)"), &[])),
            "0 bytes are not the elements of f32 [9999999999, 9999999999999]"
        );
        assert!(message(&file("{}", &[])).starts_with("its header has no descr"));
        let error = read_npy("/nonexistent/x.npy").unwrap_err();
        assert!(error.to_string().starts_with("could not read /nonexistent/x.npy: "), "{error}");
        let source =
            std::error::Error::source(&error).and_then(|source| source.downcast_ref::<Arc<io::Error>>());
        assert_eq!(source.map(|source| source.kind()), Some(io::ErrorKind::NotFound));
        let x = Tensor::from_slice(&[bf16::ONE], [1]);
        let error = write_npy("x.npy", &x).unwrap_err();
        assert!(matches!(error, Error::InvalidOperation { .. }));
        assert!(error.to_string().starts_with(
            "write_npy: NumPy has no bf16, got bf16 [1]; use .cast(DType::F32), at src/io/npy.rs:"
        ));
    }

    #[test]
    fn what_is_written_is_evaluated() {
        let x = Tensor::arange(0, 3, 1).to(&Device::interpreter()) * 2;
        let y = read(&written(&x)).unwrap();
        assert!(x.is_evaluated());
        assert_eq!((y.device().unwrap(), y.to_vec::<i32>().unwrap()), (Device::cpu(), vec![0, 2, 4]));
    }
}
