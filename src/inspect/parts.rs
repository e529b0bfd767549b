//! What a kernel is made of, as values that print: its schedule, its launches, its arguments.

use std::fmt;

use crate::DType;

/// Compared with a text, a part is what it prints.
macro_rules! equals_its_text {
    ($($ty:ty),*) => {$(
        impl PartialEq<str> for $ty {
            fn eq(&self, text: &str) -> bool {
                let shown = self.to_string();
                shown == text
            }
        }

        impl PartialEq<&str> for $ty {
            fn eq(&self, text: &&str) -> bool {
                self == *text
            }
        }
    )*};
}
equals_its_text!(ScheduleInfo, LaunchInfo, Argument);

/// How a kernel's iteration space is mapped to the machine.
///
/// ```
/// use lazuli::{Target, Tensor};
/// let y = Tensor::from_vec(vec![0.0f32; 4096], [4096]).relu();
/// let program = y.compile_for(&Target::cuda("sm_90"))?;
/// let schedule = program.kernels()[0].schedule();
/// assert_eq!(schedule, "pointwise(threads=256, vec=4)");
/// assert_eq!((schedule.name(), schedule.parameter("threads")), ("pointwise", Some("256")));
/// # Ok::<(), lazuli::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ScheduleInfo {
    text: String,
}

impl ScheduleInfo {
    pub(super) fn of(schedule: &lazuli_codegen::schedule::Schedule) -> ScheduleInfo {
        ScheduleInfo { text: schedule.to_string() }
    }

    /// What kind of schedule it is, such as `row_reduce`.
    ///
    /// ```
    /// use lazuli::{Target, Tensor};
    /// let y = Tensor::from_vec(vec![0.0f32; 4096], [16, 256]).sum(1);
    /// assert_eq!(y.compile_for(&Target::cpu())?.kernels()[0].schedule().name(), "row_reduce");
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn name(&self) -> &str {
        self.text.split_once('(').map_or(&self.text, |(name, _)| name)
    }

    /// One of its parameters, if it has it. What is there or not, such as `online`, is `"true"` where it is there.
    ///
    /// ```
    /// use lazuli::{Target, Tensor};
    /// let y = Tensor::from_vec(vec![0.0f32; 4096], [4096]).relu();
    /// let program = y.compile_for(&Target::cuda("sm_90"))?;
    /// let schedule = program.kernels()[0].schedule();
    /// assert_eq!((schedule.parameter("vec"), schedule.parameter("splits")), (Some("4"), None));
    ///
    /// let long = Tensor::from_vec(vec![0.0f32; 1 << 20], [4, 1 << 18]).softmax(1);
    /// let program = long.compile_for(&Target::cuda("sm_90"))?;
    /// let schedule = program.kernels()[0].schedule(); // row_reduce(…, online, …)
    /// assert_eq!((schedule.parameter("online"), schedule.parameter("offline")), (Some("true"), None));
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn parameter(&self, name: &str) -> Option<&str> {
        let (_, parameters) = self.text.strip_suffix(')')?.split_once('(')?;
        let mut pairs =
            parameters.split(", ").map(|parameter| parameter.split_once('=').unwrap_or((parameter, "true")));
        pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
    }
}

impl fmt::Display for ScheduleInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

/// The launch of one function of a kernel.
///
/// ```
/// use lazuli::{Target, Tensor};
/// let y = Tensor::from_vec(vec![0.0f32; 4096], [4096]).relu();
/// let program = y.compile_for(&Target::cuda("sm_90"))?;
/// let launch = &program.kernels()[0].launches()[0];
/// assert_eq!(launch, "relu_f32: grid = ceil(n_i0 / 1024), block = 256"); // for any size
/// assert_eq!((launch.grid, launch.block), ([4, 1, 1], [256, 1, 1])); // for this one
/// # Ok::<(), lazuli::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct LaunchInfo {
    /// The function's name.
    pub function: String,
    /// Blocks for the recorded sizes, in x, y and z.
    pub grid: [u64; 3],
    /// Threads of a block, in x, y and z.
    pub block: [u32; 3],
    /// Bytes of shared memory of a block, beside what the function declares.
    pub shared_bytes: u32,
    /// The shape as a function of the sizes.
    formula: String,
}

impl LaunchInfo {
    pub(super) fn of(function: &str, launch: &lazuli_codegen::schedule::Launch) -> LaunchInfo {
        LaunchInfo {
            function: function.to_owned(),
            grid: launch.grid(),
            block: launch.block,
            shared_bytes: launch.shared_bytes,
            formula: launch.to_string(),
        }
    }
}

impl fmt::Display for LaunchInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.function, self.formula)
    }
}

/// A parameter of a kernel and what a launch for the recorded sizes gets for it.
///
/// ```
/// use lazuli::{ArgumentKind, Target, Tensor};
/// let y = Tensor::from_vec(vec![0.0f32; 4096], [4096]) * 2.0;
/// let program = y.compile_for(&Target::cuda("sm_90"))?;
/// let arguments = program.kernels()[0].arguments();
/// assert_eq!(arguments[2], "c0: f32 = 2.0");
/// assert!(matches!(arguments[0].kind, ArgumentKind::Buffer { elements: 4096, is_output: false, .. }));
/// # Ok::<(), lazuli::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Argument {
    /// The parameter's name in the source.
    pub name: String,
    /// Of a launch that computes several parts: the part that it belongs to.
    pub part: Option<usize>,
    /// What it is.
    pub kind: ArgumentKind,
}

/// What an [`Argument`] is.
///
/// ```
/// use lazuli::{ArgumentKind, Target, Tensor};
/// let y = Tensor::from_vec(vec![0.0f32; 4096], [4096]).relu();
/// let program = y.compile_for(&Target::cuda("sm_90"))?;
/// let last = &program.kernels()[0].arguments()[2];
/// assert_eq!(last.kind, ArgumentKind::Extent { value: 4096 }); // another batch size is no other kernel
/// # Ok::<(), lazuli::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ArgumentKind {
    /// A tensor's elements.
    Buffer {
        /// Of an element.
        dtype: DType,
        /// How many there are.
        elements: u64,
        /// Whether it is a result.
        is_output: bool,
    },
    /// A number of the user's.
    Scalar {
        /// Of the number.
        dtype: DType,
        /// As it prints.
        value: String,
    },
    /// The outermost extent of the iteration space.
    Extent {
        /// In positions.
        value: u64,
    },
    /// Where a slice begins.
    Offset {
        /// In positions along its axis.
        value: u64,
    },
    /// Where indices that are out of range are noted.
    Checks,
    /// Scratch memory.
    Workspace {
        /// Of an element.
        dtype: DType,
        /// How many there are.
        elements: u64,
    },
    /// A `CUtensorMap` of a buffer of 16-bit elements, with lines of 128 bytes and their swizzle: 128 bytes, by value.
    TensorMap {
        /// The buffer's name.
        of: String,
        /// Its first element.
        first: u64,
        /// Elements of the second axis in the box, which has 64 of the first one.
        box_lines: u32,
        /// Extents, and elements from a position to the next, the innermost axis first.
        axes: Vec<(u64, u64)>,
    },
}

impl fmt::Display for Argument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(part) = self.part {
            write!(f, "part[{part}].")?;
        }
        write!(f, "{}: ", self.name)?;
        match &self.kind {
            ArgumentKind::Buffer { dtype, elements, .. } => write!(f, "{dtype} [{elements}]"),
            ArgumentKind::Scalar { dtype, value } => write!(f, "{dtype} = {value}"),
            ArgumentKind::Extent { value } => write!(f, "extent = {value}"),
            ArgumentKind::Offset { value } => write!(f, "offset = {value}"),
            ArgumentKind::Checks => f.write_str("where positions that are none are noted"),
            ArgumentKind::Workspace { dtype, elements } => write!(f, "workspace of {elements} {dtype}"),
            ArgumentKind::TensorMap { of, first, box_lines, axes } => {
                let axes = axes.iter().map(|(extent, step)| format!("{extent} by {step}"));
                let axes = axes.collect::<Vec<String>>().join(", ");
                write!(f, "tensor map of {of}[{first}], box 64 x {box_lines}, axes {axes}")
            }
        }
    }
}
