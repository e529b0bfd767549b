//! The compiler's levels as text, in and out: what the binary `lazuli-opt` does (feature `opt`).
//!
//! A graph, a graph with its groups, kernels, or loop nests are read from their text, go through named passes, fusion, lowering and
//! scheduling, and are printed at any later level, or run by the interpreter of kernels and compared with the reference.
//! What `LAZULI_DEBUG=5` prints is such text. Tests of the compiler are files of it: `tests/filetests`.
//!
//! ```
//! use lazuli::opt::Command;
//! let graph = "\
//! %0 = input slot=0 : f32 [4]
//! %1 = neg(%0) : f32 [4]
//! %2 = neg(%1) : f32 [4]
//! %3 = exp(%2) : f32 [4]
//! return %3
//! ";
//! let simplified = Command::parse(["--passes", "simplify,dead_code", "--to", "graph"])?.run(graph)?;
//! assert_eq!(simplified, "%0 = input slot=0 : f32 [4]\n%1 = exp(%0) : f32 [4]\nreturn %1\n");
//!
//! let source = Command::parse(["--target", "sm_90", "--to", "source"])?.run(graph)?;
//! assert!(source.contains("__global__ void"));
//!
//! let results = Command::parse(["--run", "--input", "0=0,1,nan,-inf"])?.run(graph)?;
//! assert_eq!(results, "output 0: f32 [4] = 1.0, 2.7182817, NaN, 0.0\n");
//! # Ok::<(), String>(())
//! ```

mod execute;
mod source;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lazuli_codegen::ir::Kernel;
use lazuli_codegen::nest::{self, Nest};
use lazuli_codegen::schedule::{Figures, Schedule};
use lazuli_codegen::{Emitted, Language, emit, emit_with};
use lexopt::Arg;

use crate::compiler::explain::Explanation;
use crate::compiler::{self, Plan, Settings};
use crate::graph::Graph;
use crate::graph::dot::dot;
use crate::graph::text::{Locations, text};
use crate::inspect::program::Program;
use crate::{Fusion, Target, passes};
use execute::Code;
use source::Source;

/// How `lazuli-opt` is called.
const USAGE: &str = "\
lazuli-opt [OPTIONS] [FILE]

Reads a graph, a graph with its groups, kernels or loop nests (from the standard input, if no file is named), and prints
what the compiler makes of it.

  --to LEVEL         graph, dot, groups, explain, kernel, schedule, nest or source; c and cuda are the source for the CPU
                     and for sm_90 [kernel]
  --passes LIST      names, separated by commas; all; or none [all; none where groups are read]
  --target TARGET    cpu, or a CUDA architecture such as sm_90 [cpu]
  --fusion off       one kernel an operation
  --schedule TEXT    instead of the one that would be chosen for a kernel: \"pointwise(threads=64, vec=2)\"
  --run              runs kernels in an interpreter; of a graph, compares with the reference; with --schedule, or
                     --to nest, runs the loop nests of kernels
  --input N=VALUES   elements of an input, separated by commas; one is repeated [random]
  --seed N           of the random inputs [0]
  --offset NAME=N    the position of an offset of a kernel [0]
  --tolerance X      how far floats may be from the reference's, in relation to them [0]
  --help
";

/// Options with a value.
const OPTIONS: [&str; 9] =
    ["to", "passes", "target", "fusion", "schedule", "seed", "tolerance", "input", "offset"];

/// A level that is printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Level {
    Graph,
    Dot,
    Groups,
    Explain,
    Kernel,
    Schedule,
    Nest,
    Source,
}

/// A call of `lazuli-opt`: its options.
///
/// ```
/// use lazuli::opt::Command;
/// let command = Command::parse(["--to", "schedule", "--schedule", "pointwise(threads=64, vec=2)", "--target", "sm_90"])?;
/// let kernel = "\
/// kernel double
///   map i0 < 1000
///   input in0: f32 [1000]
///   output out0: f32 [1000]
///   v0: f32 = load in0[i0]
///   v1: f32 = add v0 v0
///   store out0[i0] = v1
/// ";
/// assert_eq!(command.run(kernel)?, "double: pointwise(threads=64, vec=2)\n");
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug)]
pub struct Command {
    file: Option<PathBuf>,
    to: Level,
    passes: Option<Vec<String>>,
    target: Target,
    fusion: Fusion,
    schedule: Option<Schedule>,
    is_run: bool,
    is_help: bool,
    data: execute::Data,
}

impl Command {
    /// The options that are given, without the program's name.
    ///
    /// ```
    /// use lazuli::opt::Command;
    /// assert_eq!(Command::parse(["--to", "nowhere"]).unwrap_err(), "there is no level `nowhere`; see --help");
    /// ```
    ///
    /// # Errors
    /// Which one is not understood.
    pub fn parse<A: Into<OsString>>(arguments: impl IntoIterator<Item = A>) -> Result<Command, String> {
        let mut command = Command {
            file: None,
            to: Level::Kernel,
            passes: None,
            target: Target::cpu(),
            fusion: Fusion::On,
            schedule: None,
            is_run: false,
            is_help: false,
            data: execute::Data {
                inputs: BTreeMap::new(),
                seed: 0,
                offsets: BTreeMap::new(),
                tolerance: 0.0,
            },
        };
        let arguments: Vec<OsString> = arguments.into_iter().map(Into::into).collect();
        let mut parser = lexopt::Parser::from_args(arguments);
        while let Some(argument) = parser.next().map_err(|error| error.to_string())? {
            match argument {
                Arg::Long("run") => command.is_run = true,
                Arg::Long("help") | Arg::Short('h') => command.is_help = true,
                Arg::Long(name) => {
                    let name = name.to_owned();
                    if !OPTIONS.contains(&name.as_str()) {
                        return Err(format!("there is no option --{name}; see --help"));
                    }
                    let value = parser.value().map_err(|error| error.to_string())?;
                    command.set(&name, &value.to_string_lossy())?;
                }
                Arg::Value(file) if command.file.is_none() => {
                    command.file = Some(file.into()).filter(|file: &PathBuf| file.as_os_str() != "-");
                }
                other => return Err(format!("{}; see --help", other.unexpected())),
            }
        }
        Ok(command)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        let wrong = |what: &str| format!("--{name} {value}: {what}; see --help");
        match name {
            "to" => {
                self.to = match value {
                    "graph" => Level::Graph,
                    "dot" => Level::Dot,
                    "groups" => Level::Groups,
                    "explain" => Level::Explain,
                    "kernel" => Level::Kernel,
                    "schedule" => Level::Schedule,
                    "nest" => Level::Nest,
                    "source" | "c" | "cuda" => Level::Source,
                    _ => return Err(format!("there is no level `{value}`; see --help")),
                };
                match value {
                    "c" => self.target = Target::cpu(),
                    "cuda" => self.target = Target::cuda("sm_90"),
                    _ => {}
                }
            }
            "passes" => {
                let known = |name: &str| passes::PASSES.iter().any(|pass| pass.name == name);
                self.passes = match value {
                    "all" => None,
                    "none" => Some(Vec::new()),
                    list => Some(list.split(',').map(str::to_owned).collect()),
                };
                if let Some(unknown) = self.passes.iter().flatten().find(|name| !known(name)) {
                    let names = passes::PASSES.each_ref().map(|pass| pass.name).join(", ");
                    return Err(format!("there is no pass `{unknown}`; there are {names}"));
                }
            }
            "target" if value == "cpu" => self.target = Target::cpu(),
            "target" if Target::cuda(value).check().is_ok() => self.target = Target::cuda(value),
            "target" => return Err(wrong("no target")),
            "fusion" => {
                self.fusion = match value {
                    "on" => Fusion::On,
                    "off" => Fusion::Off,
                    _ => return Err(wrong("it is on or off")),
                };
            }
            "schedule" => self.schedule = Some(value.parse().map_err(|error| wrong(&format!("{error}")))?),
            "seed" => self.data.seed = value.parse().map_err(|_| wrong("no number"))?,
            "tolerance" => self.data.tolerance = value.parse().map_err(|_| wrong("no number"))?,
            "input" => {
                let (number, values) = value.split_once('=').ok_or_else(|| wrong("no NUMBER=VALUES"))?;
                let number = number.parse().map_err(|_| wrong("no number"))?;
                let values = values.split(',').map(|value| value.trim().to_owned()).collect();
                self.data.inputs.insert(number, values);
            }
            "offset" => {
                let (name, position) = value.split_once('=').ok_or_else(|| wrong("no NAME=NUMBER"))?;
                let position = position.parse().map_err(|_| wrong("no number"))?;
                self.data.offsets.insert(name.to_owned(), position);
            }
            _ => return Err(wrong("no option")),
        }
        Ok(())
    }

    /// The file to read; none for the standard input.
    ///
    /// ```
    /// use lazuli::opt::Command;
    /// let command = Command::parse(["--run", "softmax.txt"])?;
    /// assert_eq!(command.file(), Some("softmax.txt".as_ref()));
    /// # Ok::<(), String>(())
    /// ```
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// Whether nothing is wanted but a page of help, which [`Command::run`] gives for any text.
    ///
    /// ```
    /// use lazuli::opt::Command;
    /// let command = Command::parse(["--help"])?;
    /// assert!(command.is_help() && command.run("")?.starts_with("lazuli-opt [OPTIONS]"));
    /// # Ok::<(), String>(())
    /// ```
    pub fn is_help(&self) -> bool {
        self.is_help
    }

    /// What is printed for a text: see the [module](self).
    ///
    /// ```
    /// # use lazuli::opt::Command;
    /// let command = Command::parse(["--help"])?;
    /// assert!(command.run("")?.starts_with("lazuli-opt [OPTIONS]"));
    /// # Ok::<(), String>(())
    /// ```
    ///
    /// # Errors
    /// Where the text is not understood, with line and column; why it cannot be compiled; how results differ from the
    /// reference's.
    pub fn run(&self, text: &str) -> Result<String, String> {
        if self.is_help {
            return Ok(USAGE.to_owned());
        }
        match Source::parse(text).map_err(|error| error.to_string())? {
            Source::Kernels(kernels) => self.of_kernels(&kernels),
            Source::Nests(nests) => self.of_nests(&nests),
            Source::Graph(graph, groups) => self.of_graph(&graph, &groups),
        }
    }

    fn settings(&self) -> Settings {
        self.target.settings(self.fusion)
    }

    fn of_graph(&self, graph: &Graph, groups: &[source::Wanted]) -> Result<String, String> {
        let passed = match (&self.passes, groups) {
            (None, []) => passes::run(graph, None).map_err(|error| error.to_string())?,
            (None, _) => graph.clone(),
            (Some(names), []) => passes::run_named(graph, names).map_err(|error| error.to_string())?,
            (Some(names), _) if names.is_empty() => graph.clone(),
            (Some(_), _) => return Err("groups name nodes: no passes before them".into()),
        };
        if !self.is_run {
            match self.to {
                Level::Graph => return Ok(self::text(&passed, Locations::Hidden)),
                Level::Dot => return Ok(dot(&passed, Locations::Hidden)),
                _ => {}
            }
        }
        let plan = match groups {
            [] => compiler::plan_passed(passed, self.settings()).map_err(|error| error.to_string())?,
            groups => compiler::plan_grouped(passed, self.settings(), groups)?,
        };
        if self.is_run {
            return execute::compared(graph, &plan, &self.data);
        }
        self.of_plan(plan)
    }

    fn of_plan(&self, plan: Plan) -> Result<String, String> {
        let mut out = String::new();
        let kernels =
            || plan.kernels.iter().flat_map(|kernel| &kernel.parts).map(|part| &part.lowered.kernel);
        match self.to {
            Level::Graph => out = self::text(&plan.graph, Locations::Hidden),
            Level::Dot => out = dot(&plan.graph, Locations::Hidden),
            Level::Groups => out = source::groups(&plan),
            Level::Explain => out = format!("{}\n", Explanation::of(&plan).to_string().trim_end()),
            Level::Kernel => {
                for (number, kernel) in kernels().enumerate() {
                    let _ = write!(out, "{}{kernel}", if number > 0 { "\n" } else { "" });
                }
            }
            Level::Schedule | Level::Source if self.schedule.is_some() => {
                let kernels: Vec<Kernel> = kernels().cloned().collect();
                return self.of_kernels(&kernels);
            }
            Level::Nest => {
                let kernels: Vec<Kernel> = kernels().cloned().collect();
                return self.of_kernels(&kernels);
            }
            Level::Schedule => {
                for kernel in &plan.kernels {
                    let _ = writeln!(out, "{}: {}", kernel.code.emitted.name, kernel.code.emitted.schedule);
                }
            }
            Level::Source => out = Program::new(Arc::new(plan), self.target.clone()).source(),
        }
        Ok(out)
    }

    fn of_kernels(&self, kernels: &[Kernel]) -> Result<String, String> {
        let mut out = String::new();
        for (number, kernel) in kernels.iter().enumerate() {
            if number > 0 && matches!(self.to, Level::Kernel | Level::Nest | Level::Source) {
                out.push('\n');
            }
            if self.is_run {
                out += &match self.schedule.is_some() || self.to == Level::Nest {
                    true => {
                        let (nest, language) = (self.nest(kernel)?, self.settings().language);
                        execute::results(Code::Nest(&nest, language), &self.data)?
                    }
                    false => execute::results(Code::Kernel(kernel), &self.data)?,
                };
                continue;
            }
            match self.to {
                Level::Graph | Level::Dot | Level::Groups | Level::Explain => {
                    return Err("kernels are a later level".into());
                }
                Level::Kernel => out += &kernel.to_string(),
                Level::Schedule => {
                    let _ = writeln!(out, "{}: {}", kernel.name, self.emitted(kernel)?.schedule);
                }
                Level::Nest => out += &self.nest(kernel)?.to_text(self.settings().language),
                Level::Source => {
                    let emitted = self.emitted(kernel)?;
                    let _ = writeln!(out, "// {}: {}", emitted.name, emitted.schedule);
                    for (name, launch) in &emitted.launches {
                        let _ = writeln!(out, "// {name}: {launch}");
                    }
                    out += &*emitted.source;
                }
            }
        }
        Ok(out)
    }

    fn of_nests(&self, nests: &[(Language, Nest)]) -> Result<String, String> {
        let mut out = String::new();
        for (number, (language, nest)) in nests.iter().enumerate() {
            nest::verify(nest, *language).map_err(|error| format!("nest {}: {error}", nest.kernel.name))?;
            if self.is_run {
                out += &execute::results(Code::Nest(nest, *language), &self.data)?;
                continue;
            }
            if number > 0 {
                out.push('\n');
            }
            match self.to {
                Level::Nest => out += &nest.to_text(*language),
                Level::Source => out += &nest.source(*language),
                _ => return Err("a nest is a later level".into()),
            }
        }
        Ok(out)
    }

    fn nest(&self, kernel: &Kernel) -> Result<Nest, String> {
        let language = self.settings().language;
        let nest = nest::build(kernel, language, &self.emitted(kernel)?.schedule);
        nest.map_err(|refusal| format!("kernel {}: {refusal}", kernel.name))
    }

    fn emitted(&self, kernel: &Kernel) -> Result<Emitted, String> {
        let settings = self.settings();
        let figures = Figures {
            processors: settings.figures().processors,
            is_low_pressure: false,
            shared_bytes: settings.shared_bytes,
            matrices: settings.matrices,
        };
        let emitted = match self.schedule {
            None => emit(kernel, settings.language, &figures),
            Some(schedule) => emit_with(kernel, settings.language, &figures, schedule),
        };
        emitted.map_err(|refusal| format!("kernel {}: {refusal}", kernel.name))
    }
}
