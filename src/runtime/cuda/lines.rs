//! Kernels' texts as files, for tools that show what a GPU does line by line: Nsight Compute, Compute Sanitizer, cuda-gdb.

use std::path::{Path, PathBuf};
use std::sync::{Once, OnceLock};

use crate::{settings, stderr};

/// What NVRTC is told, so that a CUBIN names the lines of its text. The instructions stay the same.
pub(crate) const OPTION: &str = "--generate-line-info";

/// The folder that the user wants the texts in.
pub(crate) fn folder() -> Option<&'static Path> {
    static FOLDER: OnceLock<Option<PathBuf>> = OnceLock::new();
    let folder = || {
        let folder = settings::variable("LAZULI_LINE_INFO").filter(|folder| !folder.is_empty())?;
        // A tool has a working directory of its own.
        Some(std::path::absolute(&folder).unwrap_or_else(|_| folder.into()))
    };
    FOLDER.get_or_init(folder).as_deref()
}

/// The file of a kernel's text in that folder. Kernels of one name have files of their own.
pub(crate) fn file(kernel_name: &str, source: &str) -> Option<PathBuf> {
    let hash = blake3::hash(source.as_bytes()).to_hex();
    Some(folder()?.join(format!("{kernel_name}-{}.cu", &hash[..8])))
}

/// Writes that file where it is not there yet: the CUBIN may have been compiled by a program before.
pub(crate) fn write(kernel_name: &str, source: &str) {
    static WARN: Once = Once::new();
    let Some(file) = file(kernel_name, source) else { return };
    if std::fs::read(&file).is_ok_and(|there| there == source.as_bytes()) {
        return;
    }
    let written =
        file.parent().map_or(Ok(()), std::fs::create_dir_all).and_then(|()| std::fs::write(&file, source));
    if let Err(error) = written {
        let warning = || format!("LAZULI_LINE_INFO: {} is not written: {error}", file.display());
        WARN.call_once(|| stderr::warn(&warning()));
    }
}
