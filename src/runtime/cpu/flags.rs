//! What the C compiler is called with besides how much it optimises.

use super::effort::Effort;
use super::linker;

/// Arithmetic must be what the text says, operation by operation, NaN, infinities and signed zeros included;
/// traps and `errno` alone are given up. Nothing here may set flush-to-zero for the process, as `-ffast-math`
/// does.
pub(super) const FLAGS: [&str; 11] = [
    "-std=gnu11",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-ffp-contract=off",
    "-fopenmp-simd",
    "-fwrapv",
    "-fno-stack-protector",
    "-fno-asynchronous-unwind-tables",
    "-fPIC",
    "-pipe",
    "-w",
];

/// One run of the compiler from text to library, or to the object file that [`linker::link`] makes one of: the system's linker
/// takes as long as a tenth of a small kernel's time, of which more than half are programs that start one another.
pub(super) const LINK: [&str; 2] = ["-shared", linker::VERSION];
pub(super) const OBJECT: [&str; 1] = ["-c"];

/// For this processor.
pub(super) const NATIVE: &str = "-march=native";
/// Without what programs start and end with, which takes the linker longer than a kernel does.
#[cfg(target_os = "linux")]
const LIBRARIES: &[&str] = &["-nostdlib", "-lm", "-lc", "-lgcc"];
#[cfg(not(target_os = "linux"))]
const LIBRARIES: &[&str] = ALL_LIBRARIES;
/// Where the text calls no library, looking into them takes a fifth of a small kernel's time. What the compiler itself calls,
/// such as `memset`, the process has; if not, the library is not loaded (`now`), and linked as others are.
#[cfg(target_os = "linux")]
pub(super) const NO_LIBRARIES: &[&str] = &["-nostdlib", "-Wl,-z,now", "-lgcc"];
#[cfg(not(target_os = "linux"))]
pub(super) const NO_LIBRARIES: &[&str] = ALL_LIBRARIES;
/// Functions of libraries that compilers expand.
const EXPANDED: [&str; 8] = ["sqrt", "fabs", "floor", "ceil", "rint", "trunc", "copysign", "fma"];
/// Where the compiler knows best what belongs to a library: not every system has gcc's own.
const ALL_LIBRARIES: &[&str] = &["-lm"];

/// What not every compiler takes, and kernels can do without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extras {
    /// [`NATIVE`].
    native: bool,
    /// [`LIBRARIES`] or [`NO_LIBRARIES`] rather than [`ALL_LIBRARIES`].
    lean: bool,
}

impl Extras {
    /// In the order in which they are tried.
    pub(super) const ALL: [Extras; 4] = [
        Extras { native: true, lean: true },
        Extras { native: true, lean: false },
        Extras { native: false, lean: true },
        Extras { native: false, lean: false },
    ];

    /// What is linked, if the system's linker does it: less to a text that calls no library.
    pub(super) fn libraries(self, is_linked: bool) -> &'static [&'static str] {
        match (self.lean, is_linked) {
            (true, false) => NO_LIBRARIES,
            (true, true) => LIBRARIES,
            (false, _) => ALL_LIBRARIES,
        }
    }
}

/// What a text is compiled with.
pub(super) fn flags(extras: Extras, effort: Effort) -> impl Iterator<Item = &'static str> {
    FLAGS.into_iter().chain(effort.iter().copied()).chain(extras.native.then_some(NATIVE))
}

/// Whether a text declares functions of libraries that it does not get as instructions.
pub(super) fn calls_libraries(source: &str) -> bool {
    let declared = |line: &str| {
        let (head, _) = line.strip_suffix(");")?.split_once('(')?;
        let (ty, name) = head.split_once(' ')?;
        matches!(ty, "float" | "double").then(|| name.strip_suffix('f').unwrap_or(name).to_owned())
    };
    source.lines().filter_map(declared).any(|name| !EXPANDED.contains(&name.as_str()))
}
