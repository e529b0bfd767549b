//! From a kernel to its source and everything that a launch needs.

use crate::batch::Batch;
use crate::ir::Kernel;
use crate::nest::{self, Nest, Parameter, Workspace};
use crate::schedule::{self, Figures, Launch, Schedule};
use crate::{Language, text};

/// An emitted kernel.
#[derive(Clone, PartialEq, Debug)]
pub struct Emitted {
    /// The kernel's name, which is also the first function's.
    pub name: String,
    /// The language of the source.
    pub language: Language,
    /// The whole text that the compiler gets.
    pub source: String,
    /// How the axes were mapped.
    pub schedule: Schedule,
    /// The functions to launch, in order: names and shapes.
    pub launches: Vec<(String, Launch)>,
    /// The parameters of every function, in order.
    pub parameters: Vec<Parameter>,
    /// Scratch memory to provide.
    pub workspaces: Vec<Workspace>,
    /// Of a kernel for several parts: each has the parameters, and the functions take their table.
    pub batch: Option<Batch>,
}

/// Schedules a kernel for a target and prints it.
///
/// # Errors
/// Why no schedule can run it.
pub fn emit(kernel: &Kernel, language: Language, figures: &Figures) -> Result<Emitted, String> {
    let schedule = schedule::schedule(kernel, language, figures)?;
    let nest = nest::build(kernel, language, &schedule)?;
    Ok(emitted(nest, language, schedule))
}

fn emitted(nest: Nest, language: Language, schedule: Schedule) -> Emitted {
    let source = text::print(&nest, language);
    Emitted {
        name: nest.kernel.name.clone(),
        language,
        source,
        schedule,
        launches: nest.functions.into_iter().map(|function| (function.name, function.launch)).collect(),
        parameters: nest.parameters,
        workspaces: nest.workspaces,
        batch: None,
    }
}
