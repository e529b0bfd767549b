//! Whether a kernel can run under a schedule that somebody else has chosen.

use super::facts::{cooperative, extent_of, is_splittable};
use super::plain::{for_schedule, in_plain_passes};
use super::scans::is_divisible;
use super::share::TILE_ROWS;
use super::{
    COLUMN_SPLIT_LENGTH, ColumnSchedule, ContractionSchedule, Figures, PANEL, Plan, PointwiseSchedule,
    RowContractionSchedule, RowSchedule, SPLIT_LENGTH, STACK_BYTES, ScanSchedule, ScatterSchedule, Schedule,
    SortSchedule, TiledSchedule, rows,
};
use super::{choose, columns};
use crate::index::AxisId;
use crate::ir::{Kernel, ValueOp};
use crate::refusal::Allowed;
use crate::{Language, ReduceOp, Refusal};

/// Threads of a block.
const MOST_THREADS: u64 = 1024;

/// Lanes of a core, which have partial results on the stack.
const MOST_LANES: u64 = 1024;

/// Vectors of a row that a thread goes over in an unrolled loop.
const MOST_KEPT: u64 = 64;

/// Bytes of a row that a thread has registers for, all of the 255.
const MOST_REGISTER_BYTES: u64 = 768;

/// Blocks of a launch in y.
const MOST_SPLITS: u64 = 65_535;

type Checked = Result<(), Refusal>;

fn setting(name: &'static str, value: impl Into<u64>, allowed: Allowed) -> Checked {
    let value = value.into();
    if allowed.has(value) { Ok(()) } else { Err(Refusal::Setting { name, value, allowed }) }
}

/// A number that is the same in every schedule of the kernel.
fn fixed(name: &'static str, value: impl Into<u64>, chosen: impl Into<u64>) -> Checked {
    setting(name, value, Allowed::Only(chosen.into()))
}

fn at_most(name: &'static str, value: impl Into<u64>, most: impl Into<u64>) -> Checked {
    setting(name, value, Allowed::AtMost(most.into()))
}

fn power_of_two(name: &'static str, value: impl Into<u64>, most: impl Into<u64>) -> Checked {
    setting(name, value, Allowed::PowerOfTwo(most.into()))
}

/// 1, or the parts of a fixed length.
fn parts(splits: u32, length: u64, of: u64, can_be: bool) -> Checked {
    match splits {
        1 => Ok(()),
        _ if can_be => fixed("splits", splits, length.div_ceil(of)),
        _ => fixed("splits", splits, 1u64),
    }
}

/// What a check knows.
struct Check<'a> {
    kernel: &'a Kernel,
    language: Language,
    figures: &'a Figures,
}

impl Schedule {
    /// Checks each of the schedule's numbers against what the kernel, the target and the schedule of that kind can have.
    ///
    /// # Errors
    /// [`Refusal::Setting`], the first number that does not fit; [`Refusal::Misfit`] if the kernel takes none of the kind.
    pub(crate) fn check(&self, kernel: &Kernel, language: Language, figures: &Figures) -> Checked {
        let check = Check { kernel, language, figures };
        let chosen = super::schedule(kernel, language, figures)?;
        match (self, &check.of_kind(self, chosen)?) {
            (Schedule::Pointwise(s), Schedule::Pointwise(c)) => check.pointwise(s, c),
            (Schedule::Tiled(s), Schedule::Tiled(c)) => check.tiled(s, c),
            (Schedule::Scan(s), Schedule::Scan(c)) => check.scan(s, c),
            (Schedule::Scatter(s), Schedule::Scatter(c)) => check.scatter(s, c),
            (Schedule::Rows(s), Schedule::Rows(c)) => check.rows(s, c),
            (Schedule::Columns(s), Schedule::Columns(c)) => check.columns(s, c),
            (Schedule::Contraction(s), Schedule::Contraction(c)) => contraction(s, c),
            (Schedule::RowContraction(s), Schedule::RowContraction(c)) => row_contraction(s, c),
            (Schedule::RowProduct(s), Schedule::RowProduct(c)) => s.check(c),
            (Schedule::Sort(s), Schedule::Sort(c)) => check.sort(s, c),
            (Schedule::Product(s), Schedule::Product(c)) => s.check(c),
            _ => Err(Refusal::Misfit("the kernel takes a schedule of another kind")),
        }
    }
}

impl Check<'_> {
    /// The schedule of the same kind that would be chosen if there were no others. Threads that share a reduction go along
    /// rows or columns, whatever lies how in memory, and each result can be computed where it is.
    fn of_kind(&self, wanted: &Schedule, chosen: Schedule) -> Result<Schedule, Refusal> {
        let (kernel, language) = (self.kernel, self.language);
        let reduced = || -> Result<Option<Vec<AxisId>>, Refusal> {
            let first = cooperative(kernel)?.first().map(|&id| &kernel.value(id).op);
            Ok(first.and_then(|op| match op {
                ValueOp::Reduce { axes, .. } => Some(axes.to_vec()),
                _ => None,
            }))
        };
        let goes_on_its_own = matches!(
            chosen,
            Schedule::Scan(_)
                | Schedule::Scatter(_)
                | Schedule::Sort(_)
                | Schedule::RowContraction(_)
                | Schedule::RowProduct(_)
        );
        match wanted {
            _ if goes_on_its_own => {}
            Schedule::Rows(_) if !matches!(chosen, Schedule::Rows(_)) => {
                if let Some(axes) = reduced()? {
                    return Ok(Schedule::Rows(rows::rows(kernel, &axes, language, self.figures)));
                }
            }
            Schedule::Columns(columns) if !columns.shares_all && !matches!(chosen, Schedule::Columns(_)) => {
                if let Some(axes) = reduced()? {
                    return Ok(Schedule::Columns(columns::columns(kernel, &axes, language, self.figures)));
                }
            }
            Schedule::Pointwise(_) if !matches!(chosen, Schedule::Pointwise(_)) && reduced()?.is_none() => {
                return Ok(Schedule::Pointwise(choose::pointwise(kernel, language)));
            }
            _ => {}
        }
        Ok(chosen)
    }

    /// Threads of a block: powers of two, and no more than it can have.
    fn threads(&self, [(x, columns), (y, rows)]: [(&'static str, u32); 2]) -> Checked {
        power_of_two(x, columns, MOST_THREADS)?;
        power_of_two(y, rows, MOST_THREADS / u64::from(columns))
    }

    fn pointwise(&self, s: &PointwiseSchedule, c: &PointwiseSchedule) -> Checked {
        match self.language {
            Language::Cuda => {
                fixed("elements_per_block", s.elements_per_block, 0u64)?;
                fixed("order", s.order.is_some(), false)?;
                power_of_two("threads", s.threads, MOST_THREADS)?;
                power_of_two("vec", s.vector, c.vector)
            }
            Language::C if s.order.is_some_and(|order| !order.fits(self.kernel)) => Err(Refusal::Misfit(
                "order names each axis of the results once, and first the one whose extent is an argument",
            )),
            Language::C => setting("elements_per_block", s.elements_per_block, Allowed::AtLeast(1)),
        }
    }

    fn tiled(&self, s: &TiledSchedule, c: &TiledSchedule) -> Checked {
        fixed("across", s.across.0, c.across.0)?;
        fixed("tile", s.tile, c.tile)?;
        match self.language {
            Language::Cuda => power_of_two("threads", s.rows, 32u64),
            Language::C => fixed("threads", s.rows, c.rows),
        }
    }

    fn scan(&self, s: &ScanSchedule, c: &ScanSchedule) -> Checked {
        let Some((axis, _)) = self.kernel.scan_axes().next() else {
            return Err(Refusal::Misfit("nothing to scan"));
        };
        let is_innermost = self.kernel.axes_of_kind(crate::ir::AxisKind::Map).last() == Some(&axis);
        fixed("tile", s.tile, c.tile)?;
        power_of_two("vec", s.vector, c.vector)?;
        if self.language == Language::C || !self.kernel.recurrences.is_empty() {
            fixed("threads", s.threads, c.threads)?;
            // The parts are as long as the columns that go on together let them be.
            return match (self.language, s.splits) {
                (Language::C, 1) => at_most("rows_per_block", s.rows, MOST_LANES),
                _ => {
                    fixed("splits", s.splits, c.splits)?;
                    fixed("rows_per_block", s.rows, c.rows)
                }
            };
        }
        match is_innermost {
            // Several rows of a block take a warp each.
            true if s.rows > 1 => {
                fixed("threads", s.threads, 32u64)?;
                power_of_two("rows_per_block", s.rows, MOST_THREADS / 32)?;
            }
            true => {
                setting("threads", s.threads, Allowed::AtLeast(32))?;
                power_of_two("threads", s.threads, MOST_THREADS)?;
            }
            false => self.threads([("rows_per_block", s.rows), ("threads", s.threads)])?,
        }
        let can_split = is_divisible(self.kernel, axis) && (s.rows == 1 || !is_innermost);
        at_most("splits", s.splits, if can_split { MOST_SPLITS } else { 1 })
    }

    fn scatter(&self, s: &ScatterSchedule, c: &ScatterSchedule) -> Checked {
        fixed("columns", s.columns, c.columns)?;
        fixed("collected", s.collected, c.collected)?;
        fixed("local", s.is_local, c.is_local)?;
        fixed("lists", s.lists, c.lists)?;
        fixed("sparse", s.is_sparse, c.is_sparse)?;
        fixed("atomic", s.is_atomic, c.is_atomic)?;
        at_most("positions", s.positions, c.positions)?;
        match (self.language, c.collected) {
            (Language::Cuda, 0) => power_of_two("warps", s.warps, c.warps)?,
            _ => fixed("warps", s.warps, c.warps)?,
        }
        match (self.language, s.splits, c.splits) {
            (_, 1, _) => Ok(()),
            (Language::C, ..) | (_, _, 1) => fixed("splits", s.splits, c.splits),
            _ => at_most("splits", s.splits, MOST_SPLITS),
        }
    }

    fn rows(&self, s: &RowSchedule, c: &RowSchedule) -> Checked {
        let kernel = self.kernel;
        let plan = Plan::new(kernel)?;
        let length = extent_of(kernel, &plan.axes);
        let is_argument = plan.axes.iter().any(|&axis| kernel.axis(axis).is_argument);
        let adds_exp = |value: &crate::ir::Value| matches!(&value.op, ValueOp::Reduce { op: ReduceOp::SumExp, axes, .. } if axes.as_slice() == plan.axes);
        let is_whole = s.splits == 1 && !is_argument;
        let can_be_online = s.persistent == 0 && kernel.values.iter().any(adds_exp);
        at_most("online", s.online, can_be_online)?;
        match self.language {
            Language::C => {
                power_of_two("threads_per_row", s.threads_per_row, MOST_LANES)?;
                fixed("vec", s.vector, 1u64)?;
                fixed("persistent", s.persistent, 0u64)?;
                fixed("shared_bytes", s.shared_bytes, 0u64)?;
                let most = if is_whole && !s.online { STACK_BYTES } else { 0 };
                at_most("stack_bytes", s.stack_bytes, most)?;
                self.keep(s, length)?;
                parts(s.splits, length, SPLIT_LENGTH, is_splittable(kernel, &plan.axes))
            }
            Language::Cuda => {
                self.threads([("threads_per_row", s.threads_per_row), ("rows_per_block", s.rows_per_block)])?;
                // Rows that share a block are combined by shuffles alone.
                let most_rows = if s.threads_per_row <= 32 { MOST_THREADS } else { 1 };
                at_most("rows_per_block", s.rows_per_block, most_rows)?;
                power_of_two("vec", s.vector, c.vector)?;
                fixed("stack_bytes", s.stack_bytes, 0u64)?;
                let of_block = u64::from(s.threads_per_row) * u64::from(s.vector);
                let (least, most) = (length.div_ceil(of_block), MOST_KEPT / u64::from(s.vector));
                self.keep(s, length)?;
                if s.persistent > 0 {
                    let is_whole_vectors = length.is_multiple_of(u64::from(s.vector));
                    at_most("persistent", s.persistent, if is_whole_vectors { u32::MAX } else { 0 })?;
                    setting("persistent", s.persistent, Allowed::AtLeast(least))?;
                    at_most("persistent", s.persistent, if is_whole { most } else { 0 })?;
                }
                self.shared_bytes(s, length)?;
                let can_split = is_splittable(kernel, &plan.axes) && s.rows_per_block == 1;
                at_most("splits", s.splits, if can_split { MOST_SPLITS } else { 1 })
            }
        }
    }

    /// What is kept is what a later pass needs, and fits where it is kept.
    fn keep(&self, s: &RowSchedule, length: u64) -> Checked {
        let Some(ids) = s.keep else { return Ok(()) };
        let plain = for_schedule(self.kernel, &Schedule::Rows(*s))?;
        let keep = Plan::new(&plain)?.keep_these(&plain, self.language, ids);
        let place = match (self.language, s.persistent, s.stack_bytes) {
            (Language::Cuda, 0, _) => Err("no pass keeps anything: persistent is missing"),
            (Language::C, _, 0) => Err("no pass keeps anything: stack_bytes is missing"),
            (Language::C, ..) if keep.array_bytes(length) > s.stack_bytes.into() => {
                Err("takes more than stack_bytes with what else is kept")
            }
            (Language::Cuda, turns, _) if s.shared_bytes == 0 => {
                let bytes = keep.bytes * u64::from(turns) * u64::from(s.vector);
                if bytes > MOST_REGISTER_BYTES {
                    Err("takes more registers than a thread has")
                } else {
                    Ok(())
                }
            }
            _ => Ok(()),
        };
        let refused = |why| Refusal::Placement { value: ids.ids().last().map_or(0, |id| id.0), why };
        place.map_err(refused)?;
        let unneeded = ids.ids().find(|id| !keep.ids().ids().any(|kept| kept == *id));
        match unneeded {
            Some(id) => Err(Refusal::Placement { value: id.0, why: "no later pass asks for it" }),
            None => Ok(()),
        }
    }

    /// Shared memory holds what is kept of a row, and the block has so much beside what it combines by.
    fn shared_bytes(&self, s: &RowSchedule, length: u64) -> Checked {
        if s.shared_bytes == 0 {
            return Ok(());
        }
        let plain = in_plain_passes(self.kernel, |_| true)?;
        let plan = Plan::new(&plain)?;
        let most = rows::most_shared(&plan, self.figures);
        let keep = match s.keep {
            Some(ids) => plan.keep_these(&plain, self.language, ids),
            None => plan.keep_shared(&plain, length, s.shared_bytes.into()),
        };
        let needed = keep.array_bytes(length);
        let can = s.persistent > 0 && s.rows_per_block == 1 && needed > 0;
        setting("shared_bytes", s.shared_bytes, Allowed::AtLeast(needed))?;
        at_most("shared_bytes", s.shared_bytes, if can { most } else { 0 })
    }

    fn columns(&self, s: &ColumnSchedule, c: &ColumnSchedule) -> Checked {
        fixed("all", s.shares_all, c.shares_all)?;
        match self.language {
            Language::C => {
                // Tiles are on the stack.
                at_most("threads", s.threads_x, if c.shares_all { c.threads_x.into() } else { MOST_LANES })?;
                fixed("threads", s.threads_y, 1u64)?;
                fixed("vec", s.vector, 1u64)?;
                if c.shares_all {
                    return fixed("splits", s.splits, c.splits);
                }
                let plan = Plan::new(self.kernel)?;
                let length = extent_of(self.kernel, &plan.axes);
                parts(s.splits, length, COLUMN_SPLIT_LENGTH, is_splittable(self.kernel, &plan.axes))
            }
            Language::Cuda => {
                self.threads([("threads", s.threads_x), ("threads", s.threads_y)])?;
                power_of_two("vec", s.vector, c.vector)?;
                let plan = Plan::new(self.kernel)?;
                let most = if is_splittable(self.kernel, &plan.axes) { MOST_SPLITS } else { 1 };
                at_most("splits", s.splits, most)
            }
        }
    }

    fn sort(&self, s: &SortSchedule, c: &SortSchedule) -> Checked {
        fixed("tile", s.tile, c.tile)?;
        fixed("lanes", s.lanes, c.lanes)?;
        match self.language {
            Language::C => {
                fixed("threads", s.threads, c.threads)?;
                at_most("rows_per_block", s.rows, c.rows)
            }
            Language::Cuda => {
                power_of_two("threads", s.threads, c.threads)?;
                power_of_two("rows_per_block", s.rows, c.rows)
            }
        }
    }
}

/// Rows go by whole tiles of sums; the rest is how the columns are packed.
fn contraction(s: &ContractionSchedule, c: &ContractionSchedule) -> Checked {
    fixed("columns", s.lines, c.lines)?;
    match u64::from(c.columns).is_multiple_of(PANEL) {
        true => {
            at_most("columns", s.columns, c.columns)?;
            setting("columns", s.columns, Allowed::MultipleOf(PANEL))?;
        }
        // A line of an image.
        false => fixed("columns", s.columns, c.columns)?,
    }
    at_most("depth", s.depth, c.depth)?;
    if s.part > 0 {
        fixed("part", s.part, c.part)?;
    }
    at_most("rows", s.rows, c.rows)?;
    setting("rows", s.rows, Allowed::MultipleOf(TILE_ROWS))
}

fn row_contraction(s: &RowContractionSchedule, c: &RowContractionSchedule) -> Checked {
    fixed("columns", s.columns, c.columns)?;
    fixed("depth", s.depth, c.depth)?;
    at_most("rows", s.rows, c.rows)?;
    setting("rows", s.rows, Allowed::MultipleOf(TILE_ROWS))
}
