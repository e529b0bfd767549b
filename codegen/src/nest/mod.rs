//! Applying a schedule: from a kernel to a loop nest of structured statements.
//!
//! The nest is built by demand: a store asks for its value, which asks for its operands. Each value
//! is computed in the outermost open scope that binds all of its axes, so that nothing is computed
//! more often than it varies.

mod accumulate;
#[cfg(test)]
mod banks;
mod columns_cpu;
mod columns_cuda;
mod contraction_cpu;
mod contraction_cuda;
mod emitter;
mod epilogue;
mod fission;
mod guarded_lanes;
mod index_split;
mod interior;
mod kept;
mod lifted;
mod loops;
mod narrow;
mod numbers;
mod operands;
mod parse;
mod passes;
mod peeled;
mod persistent;
mod pointwise;
mod pointwise_cpu;
mod prefetch;
mod recurrence_cuda;
mod registers;
mod resources;
mod row_contraction_cpu;
mod row_contraction_cuda;
mod row_statistics;
mod rows_cpu;
mod rows_cuda;
mod runs;
mod scan;
mod scan_cpu;
mod scan_cuda;
mod scan_split_cpu;
mod scan_split_cuda;
mod scatter;
mod scatter_cpu;
mod scatter_cuda;
mod scatter_lists;
mod segments;
mod short_axis;
mod small_matrices;
mod sort;
mod sort_cpu;
mod sort_cuda;
mod split;
pub mod stmt;
mod stretch;
mod table;
mod text;
mod tile;
mod tiled;
mod tiled_cpu;
mod tiled_cuda;
mod turned;
pub mod variable;
mod verify;
mod visit;
mod widths;
mod windows_cpu;

use std::sync::OnceLock;

use crate::index::AxisId;
use crate::ir::{ArgumentId, AxisKind, BufferId, Kernel};
use crate::schedule::{
    Contraction, Launch, RowContraction, Scatters, Schedule, Sorts, TensorMap, by_quotients, cooperative,
    for_schedule, in_short_lines, reductions_of_columns, tiled, unrolled_by_parts, unrolled_by_quotients,
};
use crate::{Language, Refusal, intrinsics};
pub(crate) use resources::PARAMETER_BYTES;
use stmt::{Stmt, Type};
use variable::{Local, Var};
pub use verify::{NestError, verify};
pub(crate) use widths::{compared, is_one_comparison};

/// A parameter of an emitted function, in order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Parameter {
    /// A pointer to a buffer.
    Buffer(BufferId),
    /// A scalar.
    Argument(ArgumentId),
    /// The extent of an axis.
    Extent(AxisId),
    /// The position of an [offset](AxisKind::Offset).
    Offset(AxisId),
    /// A pointer to two 64-bit integers, zeros at first, at a multiple of 16 bytes: one more than the number of a check
    /// that failed, and the value that is no position.
    Checks,
    /// A pointer to scratch memory: the n-th of [`Nest::workspaces`].
    Workspace(usize),
    /// 128 bytes, which the driver makes of the n-th of [`Nest::maps`].
    Map(usize),
}

/// Scratch memory that a kernel needs.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Workspace {
    /// The parameter's name.
    pub name: String,
    /// Element type; arrival counters are `I32`.
    pub dtype: crate::DType,
    /// How many elements this launch needs.
    pub elements: u64,
    /// Whether the kernel expects zeros and leaves zeros behind.
    pub zeroed: bool,
}

/// What a function does, and with what.
#[derive(Clone, PartialEq, Hash, Debug, Default)]
pub struct Body {
    /// The statements, in order.
    pub statements: Vec<Stmt>,
    /// The variables and arrays that they declare.
    pub locals: Vec<Local>,
}

/// One emitted function.
#[derive(Clone, PartialEq, Debug)]
pub struct Function {
    /// Its name: the kernel's, or with a suffix for what comes before or after it.
    pub name: String,
    /// What it does.
    pub body: Body,
    /// How it is launched.
    pub launch: Launch,
}

/// A scheduled kernel.
#[derive(Clone, PartialEq, Debug)]
pub struct Nest {
    /// One function, or two that run one after the other.
    pub functions: Vec<Function>,
    /// The parameters, the same for every function.
    pub parameters: Vec<Parameter>,
    /// Scratch memory.
    pub workspaces: Vec<Workspace>,
    /// Where tiles are that are copied as a whole.
    pub maps: Vec<TensorMap>,
    /// Whether index arithmetic needs 64 bits.
    pub wide_index: bool,
    /// The kernel with the axes that the schedule added: names for printing.
    pub kernel: Kernel,
}

/// The name of a parameter.
pub fn parameter_name(nest: &Nest, parameter: Parameter) -> String {
    match parameter {
        Parameter::Buffer(id) => nest.kernel.buffers[id.index()].name.clone(),
        Parameter::Argument(id) => nest.kernel.arguments[id.index()].name.clone(),
        Parameter::Extent(axis) => nest.kernel.extent_name(axis),
        Parameter::Offset(axis) => nest.kernel.axis(axis).name.clone(),
        Parameter::Checks => intrinsics::CHECKS.into(),
        Parameter::Workspace(number) => nest.workspaces[number].name.clone(),
        Parameter::Map(number) => format!("map{number}"),
    }
}

/// Applies `schedule` to `kernel`.
///
/// # Errors
/// If the schedule does not fit the kernel.
pub fn build(kernel: &Kernel, language: Language, schedule: &Schedule) -> Result<Nest, Refusal> {
    let nest = unverified(kernel, language, schedule)?;
    if is_verified() {
        debug_assert_eq!(verify(&nest, language), Ok(()), "{schedule}\n{}", nest.to_text(language));
        debug_assert_eq!(nest.reads_back(language), Ok(()), "{}, {schedule}", kernel.name);
    }
    Ok(nest)
}

/// As [`build`], also for a kernel that may read beyond its buffers: to look at, not to run.
pub(crate) fn unverified(kernel: &Kernel, language: Language, schedule: &Schedule) -> Result<Nest, Refusal> {
    let kernel = for_schedule(kernel, schedule)?;
    let mut nest = scheduled(&kernel, language, schedule)?;
    nest.decide_widths(&kernel, language);
    Ok(nest)
}

/// Whether every nest is verified: in debug builds where the workspace's Cargo configuration asks for it, and never in
/// programs of others, whom a doubt of the verifier must not stop.
pub fn is_verified() -> bool {
    static ASKED: OnceLock<bool> = OnceLock::new();
    cfg!(debug_assertions) && *ASKED.get_or_init(|| std::env::var_os("LAZULI_VERIFY").is_some())
}

fn scheduled(kernel: &Kernel, language: Language, schedule: &Schedule) -> Result<Nest, Refusal> {
    // Reductions that become short enough for loops of one thread are none of rows or columns any more.
    let is_shared = |kernel: &Kernel| cooperative(kernel).is_ok_and(|all| !all.is_empty());
    match schedule {
        Schedule::Pointwise(schedule) => {
            let mut schedule = *schedule;
            let parts = match language {
                Language::C if schedule.order.is_none() => unrolled_by_parts(kernel),
                _ => None,
            };
            if let Some((_, together)) = &parts {
                schedule.elements_per_block = (schedule.elements_per_block / together).max(1);
            }
            let kernel = parts.as_ref().map_or(kernel, |(kernel, _)| kernel);
            let unrolled = if language == Language::C { unrolled_by_quotients(kernel) } else { None };
            pointwise::build(unrolled.as_ref().unwrap_or(kernel), language, &schedule)
        }
        Schedule::Tiled(schedule) => match language {
            Language::Cuda => tiled_cuda::build(kernel, schedule),
            Language::C => match tiled(kernel, language) {
                Some((kernel, _)) => tiled_cpu::build(&kernel, schedule),
                None => Err(Refusal::Misfit("nothing is read across")),
            },
        },
        Schedule::Scan(schedule) => {
            let scans = scan::Scans::new(kernel)?;
            match language {
                Language::Cuda => scan_cuda::build(kernel, &scans, schedule),
                Language::C => scan_cpu::build(kernel, &scans, schedule),
            }
        }
        Schedule::Scatter(schedule) => {
            let scatters = Scatters::of(kernel)?.ok_or(Refusal::Misfit("no scatter"))?;
            match language {
                Language::Cuda => scatter_cuda::build(kernel, &scatters, schedule),
                Language::C => scatter_cpu::build(kernel, &scatters, schedule),
            }
        }
        Schedule::Sort(schedule) => {
            let sorts = Sorts::of(kernel)?.ok_or(Refusal::Misfit("nothing to sort"))?;
            match language {
                Language::Cuda => sort_cuda::build(kernel, &sorts, schedule),
                Language::C => sort_cpu::build(kernel, &sorts, schedule),
            }
        }
        Schedule::Rows(schedule) => {
            let divided = (language == Language::C)
                .then(|| by_quotients(kernel, schedule).or_else(|| in_short_lines(kernel, schedule)))
                .flatten()
                .filter(|(divided, _)| is_shared(divided));
            let (kernel, schedule) =
                divided.as_ref().map_or((kernel, schedule), |(kernel, schedule)| (kernel, schedule));
            let plan = passes::Plan::new(kernel)?;
            if schedule.splits > 1 && !plan.has_one_pass() {
                return Err(Refusal::Misfit("a split row takes one pass"));
            }
            match language {
                Language::Cuda => rows_cuda::build(kernel, &plan, schedule),
                Language::C => rows_cpu::build(kernel, &plan, schedule),
            }
        }
        Schedule::Contraction(schedule) => match (language, Contraction::of(kernel, language)) {
            (Language::C, Some(contraction)) => contraction_cpu::build(kernel, &contraction, schedule),
            _ => Err(Refusal::Misfit("no contraction")),
        },
        Schedule::RowProduct(schedule) => match (language, RowContraction::of(kernel, language)) {
            (Language::Cuda, Some(rows)) => row_contraction_cuda::build(kernel, &rows, schedule),
            _ => Err(Refusal::Misfit("no contraction of rows")),
        },
        Schedule::RowContraction(schedule) => match (language, RowContraction::of(kernel, language)) {
            (Language::C, Some(rows)) => row_contraction_cpu::build(kernel, &rows, schedule),
            _ => Err(Refusal::Misfit("no contraction of rows")),
        },
        Schedule::Product(schedule) => match (language, Contraction::of(kernel, language)) {
            (Language::Cuda, Some(contraction)) => contraction_cuda::build(kernel, &contraction, schedule),
            _ => Err(Refusal::Misfit("no contraction")),
        },
        Schedule::Columns(schedule) => {
            let unrolled = (language == Language::C && !schedule.shares_all)
                .then(|| unrolled_by_quotients(kernel))
                .flatten()
                .filter(is_shared);
            let kernel = unrolled.as_ref().unwrap_or(kernel);
            let plan = match schedule.shares_all {
                true => passes::Plan::of(kernel, reductions_of_columns(kernel)?)?,
                false => passes::Plan::new(kernel)?,
            };
            if plan.map.is_empty() || schedule.splits > 1 && !plan.has_one_pass() {
                return Err(Refusal::Misfit(
                    "a column reduction needs columns, and split ones take one pass",
                ));
            }
            match language {
                Language::Cuda => columns_cuda::build(kernel, &plan, schedule),
                Language::C => columns_cpu::build(kernel, plan, schedule),
            }
        }
    }
}

impl Function {
    /// The one that does what the kernel does, or begins it.
    fn of(kernel: &Kernel, body: Body, launch: Launch) -> Function {
        Function { name: kernel.name.clone(), body, launch }
    }
}

impl Nest {
    fn new(kernel: Kernel, functions: Vec<Function>, workspaces: Vec<Workspace>) -> Nest {
        let parameters = parameters(&kernel, &workspaces, &[]);
        Nest { functions, parameters, workspaces, maps: Vec::new(), wide_index: false, kernel }
    }

    /// The same that copies tiles.
    fn with_maps(self, maps: Vec<TensorMap>) -> Nest {
        let parameters = parameters(&self.kernel, &self.workspaces, &maps);
        Nest { parameters, maps, ..self }
    }

    /// What a variable of a function is called, whose own these are.
    pub(crate) fn name_of(&self, locals: &[Local], var: Var) -> String {
        match var {
            Var::Axis(axis) => self.kernel.axis(axis).name.clone(),
            Var::Lane => "l".into(),
            Var::Parameter(parameter) => parameter_name(self, parameter),
            Var::Local(id) => locals[id.index()].hint.clone(),
        }
    }
}

/// The parameters of a kernel: buffers, scalars, extents, offsets, the place for failed checks if it has any; workspaces and
/// maps follow.
fn parameters(kernel: &Kernel, workspaces: &[Workspace], maps: &[TensorMap]) -> Vec<Parameter> {
    let buffers = (0..kernel.buffers.len() as u32)
        .map(BufferId)
        .filter(|&buffer| !kernel.is_written_over(buffer))
        .map(Parameter::Buffer);
    let arguments = (0..kernel.arguments.len() as u32).map(|n| Parameter::Argument(ArgumentId(n)));
    let axes = || (0..kernel.axes.len() as u32).map(AxisId);
    let extents = axes()
        .filter(|&axis| kernel.axis(axis).is_argument && kernel.axis(axis).positions_of.is_none())
        .filter(|&axis| !kernel.is_offset(axis))
        .map(Parameter::Extent);
    let offsets = axes().filter(|&axis| kernel.is_offset(axis)).map(Parameter::Offset);
    let checks = kernel.has_checks().then_some(Parameter::Checks);
    let workspaces = (0..workspaces.len()).map(Parameter::Workspace);
    let maps = (0..maps.len()).map(Parameter::Map);
    let numbers = arguments.chain(extents).chain(offsets);
    buffers.chain(numbers).chain(checks).chain(workspaces).chain(maps).collect()
}

/// Whether this launch counts beyond 31 bits: its loop variables are 64-bit numbers then. Offsets of narrower ones that
/// need more have it on their own ([`Expr::Wide`](stmt::Expr::Wide)).
pub(crate) fn needs_wide_index(kernel: &Kernel) -> bool {
    let largest = i32::MAX as u64;
    let extent = |&axis: &AxisId| kernel.axis(axis).extent;
    let is_long = |kind| kernel.axes_of_kind(kind).iter().map(extent).fold(1, u64::saturating_mul) > largest;
    is_long(AxisKind::Map)
        || is_long(AxisKind::Reduce)
        || (0..kernel.axes.len() as u32).any(|axis| extent(&AxisId(axis)) > largest)
}

/// The type of loop variables.
pub(crate) const INDEX: Type = Type::Index;
