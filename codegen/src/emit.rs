//! From a kernel to its source and everything that a launch needs.

use std::sync::Arc;

use crate::batch::Batch;
use crate::ir::Kernel;
use crate::nest::{self, Nest, Parameter, Workspace};
use crate::schedule::{self, Figures, Launch, Schedule, TensorMap};
use crate::text::Filled;
use crate::{Language, Refusal, text};

/// An emitted kernel.
#[derive(Clone, PartialEq, Debug)]
pub struct Emitted {
    /// The kernel's name, which is also that of one of its functions.
    pub name: String,
    /// The language of the source.
    pub language: Language,
    /// The whole text that the compiler gets.
    pub source: Arc<str>,
    /// How the axes were mapped.
    pub schedule: Schedule,
    /// The functions to launch, in order: names and shapes.
    pub launches: Vec<(String, Launch)>,
    /// The parameters of every function, in order.
    pub parameters: Vec<Parameter>,
    /// Scratch memory to provide.
    pub workspaces: Vec<Workspace>,
    /// Where tiles are that are copied as a whole.
    pub maps: Vec<TensorMap>,
    /// Registers of a GPU's thread, estimated from the loop nest; 0 in C.
    pub register_estimate: u32,
    /// Of a kernel for several parts: each has the parameters, and the functions take their table.
    pub batch: Option<Batch>,
    /// What the text has in common with others, where that is known.
    pub filled: Option<Filled>,
}

impl Emitted {
    /// The names of the functions to launch, in order.
    pub fn functions(&self) -> impl Iterator<Item = &str> {
        self.launches.iter().map(|(name, _)| name.as_str())
    }
}

/// Schedules a kernel for a target and prints it.
///
/// # Errors
/// Why no schedule can run it.
pub fn emit(kernel: &Kernel, language: Language, figures: &Figures) -> Result<Emitted, Refusal> {
    emit_under(kernel, language, chosen(kernel, language, figures)?)
}

/// The schedule that [`emit`] chooses.
pub(crate) fn chosen(kernel: &Kernel, language: Language, figures: &Figures) -> Result<Schedule, Refusal> {
    Ok(match schedule::schedule(kernel, language, figures)? {
        chosen if figures.is_low_pressure && language == Language::Cuda => chosen.with_low_pressure(),
        chosen => chosen,
    })
}

/// A kernel under a schedule that was chosen for it.
pub(crate) fn emit_under(
    kernel: &Kernel,
    language: Language,
    schedule: Schedule,
) -> Result<Emitted, Refusal> {
    Ok(emitted(built(kernel, language, &schedule)?, language, schedule))
}

/// The same of a kernel that is not to run.
pub(crate) fn emit_unverified(
    kernel: &Kernel,
    language: Language,
    schedule: Schedule,
) -> Result<Emitted, Refusal> {
    Ok(emitted(nest::unverified(kernel, language, &schedule)?, language, schedule))
}

/// As [`emit`], under a schedule of the caller's: of the same kind as the one that would be chosen, with other numbers.
///
/// ```
/// use lazuli_codegen::ir::Kernel;
/// use lazuli_codegen::schedule::{Figures, Matrices};
/// use lazuli_codegen::{Language, emit_with};
///
/// let kernel: Kernel = "\
/// kernel double
///   map i0 < n_i0 = 1000
///   input in0: f32 [1000]
///   output out0: f32 [1000]
///   v0: f32 = load in0[i0]
///   v1: f32 = add v0 v0
///   store out0[i0] = v1
/// "
/// .parse()?;
/// let figures = Figures { processors: 132, is_low_pressure: false, shared_bytes: 227 << 10, matrices: Matrices::Warps };
/// let emitted = emit_with(&kernel, Language::Cuda, &figures, "pointwise(threads=64, vec=2)".parse()?)?;
/// assert!(emitted.source.contains("__launch_bounds__(64)"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// As [`emit`]; [`Refusal::Misfit`] if the schedule is none for this kernel and language.
pub fn emit_with(
    kernel: &Kernel,
    language: Language,
    figures: &Figures,
    schedule: Schedule,
) -> Result<Emitted, Refusal> {
    let nest = nest_with(kernel, language, figures, &schedule)?;
    Ok(emitted(nest, language, schedule))
}

/// The loop nest of a kernel under a schedule of the caller's.
///
/// # Errors
/// As [`emit_with`].
pub(crate) fn nest_with(
    kernel: &Kernel,
    language: Language,
    figures: &Figures,
    schedule: &Schedule,
) -> Result<Nest, Refusal> {
    schedule.check(kernel, language, figures)?;
    built(kernel, language, schedule)
}

fn built(kernel: &Kernel, language: Language, schedule: &Schedule) -> Result<Nest, Refusal> {
    let nest = nest::build(kernel, language, schedule)?;
    if language == Language::Cuda {
        nest.check_resources()?;
    }
    Ok(nest)
}

fn emitted(mut nest: Nest, language: Language, schedule: Schedule) -> Emitted {
    let (register_estimate, (source, filled)) = match language {
        Language::Cuda => (nest.register_estimate(), (text::print(&nest, language), None)),
        Language::C => (0, text::print_known(&mut nest)),
    };
    Emitted {
        name: nest.kernel.name.clone(),
        language,
        source: source.into(),
        schedule,
        launches: nest.functions.into_iter().map(|function| (function.name, function.launch)).collect(),
        parameters: nest.parameters,
        workspaces: nest.workspaces,
        maps: nest.maps,
        register_estimate,
        batch: None,
        filled,
    }
}
