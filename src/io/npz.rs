//! NumPy's format of several arrays with names: a zip archive of `.npy` files.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::Path;

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use super::{failure, npy};
use crate::tensor::arguments::call::Call;
use crate::{Error, Result, Tensor};

/// The tensors of an `.npz` file with their names, in the file's order.
///
/// ```
/// use lazuli::{Tensor, io};
/// let folder = tempfile::tempdir().unwrap();
/// let path = folder.path().join("layer.npz");
/// io::write_npz(&path, [("weight", &Tensor::rand([2, 3], 1)), ("bias", &Tensor::rand([2], 2))])?;
/// let tensors = io::read_npz(&path)?;
/// assert_eq!(tensors[1].0, "bias");
/// # Ok::<(), lazuli::Error>(())
/// ```
///
/// # Errors
/// [`Error::Io`](crate::Error::Io) if the file cannot be read, is not in this format, or has a dtype that tensors
/// do not have.
#[track_caller]
pub fn read_npz(path: impl AsRef<Path>) -> Result<Vec<(String, Tensor)>> {
    let (call, path) = (Call::here("read_npz"), path.as_ref());
    let file = File::open(path).map_err(|error| Error::io("read", path, error))?;
    let mut archive = ZipArchive::new(BufReader::new(file)).map_err(|error| failure("read", path, error))?;
    let mut tensors = Vec::new();
    for number in 0..archive.len() {
        let mut entry = archive.by_index(number).map_err(|error| failure("read", path, error))?;
        let name = entry.name().map_err(|error| failure("read", path, error))?.into_owned();
        let Some(name) = name.strip_suffix(".npy").map(str::to_owned) else { continue };
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).map_err(|error| Error::io("read", path, error))?;
        let tensor = npy::decode(call, &bytes)
            .map_err(|message| failure("read", path, format!("{name}: {message}")))?;
        tensors.push((name, tensor));
    }
    Ok(tensors)
}

/// Writes tensors as an `.npz` file, uncompressed as NumPy's `savez`; an existing file is replaced.
///
/// ```
/// use lazuli::{DType, Tensor, io};
/// let folder = tempfile::tempdir().unwrap();
/// let path = folder.path().join("layer.npz");
/// let layer = [("weight", Tensor::rand([2, 3], 1)), ("bias", Tensor::zeros([2], DType::F32))];
/// io::write_npz(&path, layer.iter().map(|(name, tensor)| (name, tensor)))?;
/// assert_eq!(io::read_npz(&path)?[1].1.to_vec::<f32>()?, [0.0, 0.0]);
/// # Ok::<(), lazuli::Error>(())
/// ```
///
/// # Errors
/// As [`write_npy`](crate::io::write_npy).
#[track_caller]
pub fn write_npz<'a>(
    path: impl AsRef<Path>,
    tensors: impl IntoIterator<Item = (impl AsRef<str>, &'a Tensor)>,
) -> Result<()> {
    let (call, path) = (Call::here("write_npz"), path.as_ref());
    let tensors: Vec<_> = tensors.into_iter().collect();
    crate::eval(tensors.iter().map(|(_, tensor)| *tensor))?;
    let file = File::create(path).map_err(|error| Error::io("write", path, error))?;
    let mut archive = ZipWriter::new(BufWriter::new(file));
    for (name, tensor) in tensors {
        let (header, elements) = npy::encode(call, tensor)?;
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Stored)
            .large_file(header.len() + elements.bytes() >= u32::MAX as usize);
        let started = archive.start_file(format!("{}.npy", name.as_ref()), options);
        started.map_err(|error| failure("write", path, error))?;
        let written = archive.write_all(&header).and_then(|()| archive.write_all(elements.as_slice()));
        written.map_err(|error| Error::io("write", path, error))?;
    }
    let mut file = archive.finish().map_err(|error| failure("write", path, error))?;
    file.flush().map_err(|error| Error::io("write", path, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_order_and_values_come_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.npz");
        let (x, y) = (Tensor::arange(0, 6, 1).reshape([2, 3]), Tensor::scalar(2.5f64));
        write_npz(&path, [("weights/x", &x), ("y", &y)]).unwrap();
        let read = read_npz(&path).unwrap();
        assert_eq!(read.iter().map(|(name, _)| &name[..]).collect::<Vec<_>>(), ["weights/x", "y"]);
        assert_eq!(read[0].1.to_vec::<i32>().unwrap(), [0, 1, 2, 3, 4, 5]);
        assert_eq!(read[1].1.item::<f64>().unwrap(), 2.5);
        std::fs::write(&path, "no archive").unwrap();
        assert!(read_npz(&path).unwrap_err().to_string().starts_with("could not read "));
        let same = [("y", &y), ("y", &y)];
        assert!(write_npz(&path, same).unwrap_err().to_string().starts_with("could not write "));
    }
}
