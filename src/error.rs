//! The one error type: every variant says what failed, where, and what the user can do about it.

use std::fmt;
use std::panic::Location;
use std::path::Path;
use std::sync::Arc;

/// A `Result` with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The place in the user's source that recorded an operation.
///
/// ```
/// use lazuli::{DType, Error, Tensor};
/// let wrong = Tensor::ones([2, 3], DType::F32).reshape([7]); // this line
/// let Err(Error::InvalidOperation { location, .. }) = wrong.eval() else { panic!("it should be invalid") };
/// assert!(location.file.ends_with(".rs") && location.line > 0);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SourceLocation {
    /// The file as the compiler names it.
    pub file: &'static str,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1.
    pub column: u32,
}

impl SourceLocation {
    /// The caller of the function that is marked `#[track_caller]`.
    ///
    /// ```
    /// use lazuli::SourceLocation;
    /// #[track_caller]
    /// fn place() -> SourceLocation {
    ///     SourceLocation::caller()
    /// }
    /// assert_eq!(place().line, line!());
    /// ```
    #[track_caller]
    pub fn caller() -> SourceLocation {
        let location = Location::caller();
        SourceLocation { file: location.file(), line: location.line(), column: location.column() }
    }
}

impl fmt::Display for SourceLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

impl fmt::Debug for SourceLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What it means that a check of a kernel fails: who asked for a position that an axis does not have, which is an
/// [`Error::IndexOutOfRange`].
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct IndexCheck {
    pub(crate) op: &'static str,
    pub(crate) axis: usize,
    pub(crate) extent: usize,
    pub(crate) location: SourceLocation,
}

/// Why a tensor cannot be evaluated, inspected or compiled.
///
/// ```
/// use lazuli::{DType, Error, Tensor};
/// let a = Tensor::zeros([3, 4], DType::F32);
/// let b = Tensor::zeros([5], DType::F32);
/// let error = (&a * &b).eval().unwrap_err();
/// assert!(matches!(error, Error::InvalidOperation { op: "mul", .. }));
/// assert!(error.to_string().starts_with("mul: shapes [3, 4] and [5] do not broadcast"));
/// ```
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An operation was recorded with shapes, dtypes or arguments that do not fit.
    #[error("{op}: {message}, at {location}")]
    InvalidOperation {
        /// The operation as the user called it.
        op: &'static str,
        /// What does not fit, with shapes and dtypes, and how to mend it where that is known.
        message: String,
        /// Where the user called it.
        location: SourceLocation,
    },
    /// An index that was computed is no position of the axis that it was to be read at. On the CPU the evaluation
    /// fails; on a GPU, which is not waited for, so does whoever asks for values that follow from it (such as [`Tensor::to_vec`]).
    ///
    /// [`Tensor::to_vec`]: crate::Tensor::to_vec
    #[error("{op}: index {index} is out of range for axis {axis} of extent {extent}, at {location}")]
    IndexOutOfRange {
        /// The operation as the user called it.
        op: &'static str,
        /// The index; of several, one of them.
        index: i64,
        /// The axis that is read.
        axis: usize,
        /// How many positions it has.
        extent: usize,
        /// Where the user called the operation.
        location: SourceLocation,
    },
    /// A device, driver, library or compiler that was asked for is not there.
    #[error("{what} is not available: {reason}. {hint}")]
    Unavailable {
        /// What is missing, such as `cuda:0` or `NVRTC`.
        what: String,
        /// How that was found out.
        reason: String,
        /// What the user can do.
        hint: String,
    },
    /// A compiler refused an emitted kernel: a bug in Lazuli, reported with all that is needed to see it.
    #[error("{compiler} could not compile kernel {kernel}:\n{log}\n--- source ---\n{source_text}")]
    Compilation {
        /// The kernel's name.
        kernel: String,
        /// The compiler and its version or path.
        compiler: String,
        /// The compiler's messages.
        log: String,
        /// The text that was compiled.
        source_text: Arc<str>,
    },
    /// The device has no room for a buffer, also after everything that was kept for later had been given back.
    #[error(
        "{}out of memory on {device}: {requested} bytes requested{}. {usage}. Evaluate in smaller parts, or drop tensors that are no longer needed",
        op.map(|op| format!("{op}: ")).unwrap_or_default(),
        location.map(|location| format!(", at {location}")).unwrap_or_default()
    )]
    OutOfMemory {
        /// The device's name.
        device: String,
        /// Bytes asked for.
        requested: u64,
        /// What tensors have, the largest by the lines that made them, and how much is allowed.
        usage: Arc<str>,
        /// The operation whose result had no room, as the user called it.
        op: Option<&'static str>,
        /// Where the user called it.
        location: Option<SourceLocation>,
    },
    /// The device reported a failure while copying or running a kernel.
    #[error("{device}: {operation} failed: {message}")]
    Device {
        /// The device's name.
        device: String,
        /// What was being done.
        operation: String,
        /// The driver's own words.
        message: String,
    },
    /// A file could not be read or written.
    #[error("could not {action} {path}: {message}")]
    Io {
        /// What was being done, such as `write`.
        action: &'static str,
        /// The file or folder.
        path: String,
        /// The operating system's reason, or what is wrong with the content.
        message: String,
        /// The operating system's error, where there is one.
        source: Option<Arc<std::io::Error>>,
    },
    /// The compiler broke one of its own rules: please report it.
    #[error("internal error in {stage}: {message}. This is a bug in Lazuli")]
    Internal {
        /// The pass or stage.
        stage: &'static str,
        /// Which rule was broken.
        message: String,
    },
}

impl Error {
    /// The line of the user's that the error is about, where there is one.
    ///
    /// ```
    /// use lazuli::{DType, Tensor};
    /// let error = Tensor::ones([2, 3], DType::F32).reshape([7]).eval().unwrap_err(); // this line
    /// assert!(error.location().is_some_and(|location| location.line > 0));
    /// ```
    pub fn location(&self) -> Option<SourceLocation> {
        match self {
            Error::InvalidOperation { location, .. } | Error::IndexOutOfRange { location, .. } => {
                Some(*location)
            }
            Error::OutOfMemory { location, .. } => *location,
            Error::Unavailable { .. }
            | Error::Compilation { .. }
            | Error::Device { .. }
            | Error::Io { .. }
            | Error::Internal { .. } => None,
        }
    }

    /// With the operation that it happened to, where it tells none and is one that may.
    pub(crate) fn of_operation(mut self, of: &'static str, at: SourceLocation) -> Error {
        if let Error::OutOfMemory { op: op @ None, location, .. } = &mut self {
            (*op, *location) = (Some(of), Some(at));
        }
        self
    }

    /// An [`Error::Internal`].
    pub(crate) fn internal(stage: &'static str, message: impl Into<String>) -> Error {
        Error::Internal { stage, message: message.into() }
    }

    /// An [`Error::Io`] of the operating system.
    pub(crate) fn io(action: &'static str, path: &Path, error: std::io::Error) -> Error {
        let (path, message) = (path.display().to_string(), error.to_string());
        Error::Io { action, path, message, source: Some(Arc::new(error)) }
    }
}
