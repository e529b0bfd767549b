//! Whether a kernel can run under a schedule that somebody else has chosen.

use super::Schedule;
use crate::ir::{AxisKind, Kernel};
use crate::{Language, Refusal};

/// Threads of a block.
const MOST_THREADS: u64 = 1024;

impl Schedule {
    /// Checks the schedule against the one that would be chosen for the kernel.
    ///
    /// # Errors
    /// [`Refusal::Misfit`].
    pub(crate) fn check(
        &self,
        chosen: &Schedule,
        kernel: &Kernel,
        language: Language,
    ) -> Result<(), Refusal> {
        match language {
            Language::Cuda => self.check_threads()?,
            Language::C => self.check_lanes()?,
        }
        let length: u64 =
            kernel.axes.iter().filter(|axis| axis.kind == AxisKind::Reduce).map(|axis| axis.extent).product();
        let is_vector = |vector: u32, widest: u32| vector.is_power_of_two() && vector <= widest;
        let fits = match (self, chosen) {
            (Schedule::Pointwise(s), Schedule::Pointwise(c)) => {
                is_vector(s.vector, c.vector) && (s.elements_per_block > 0) == (c.elements_per_block > 0)
            }
            (Schedule::Tiled(s), Schedule::Tiled(c)) => s.across == c.across && 32 % s.rows == 0,
            (Schedule::Scan(s), Schedule::Scan(c)) => {
                is_vector(s.vector, c.vector)
                    && (s.splits > 1) <= (c.splits > 1)
                    && (s.threads, s.tile, s.rows) == (c.threads, c.tile, c.rows)
            }
            (Schedule::Scatter(s), Schedule::Scatter(c)) => {
                let per_block = |s: &super::ScatterSchedule| (s.columns, s.collected, s.is_local);
                per_block(s) == per_block(c)
                    && s.positions <= c.positions
                    && (s.warps == c.warps || s.warps < c.warps && c.collected == 0)
                    && (s.splits > 1) <= (c.splits > 1)
            }
            (Schedule::Rows(s), Schedule::Rows(c)) => {
                let holds = u64::from(s.persistent) * u64::from(s.threads_per_row) * u64::from(s.vector);
                // Rows that share a block are combined by shuffles alone.
                let is_alone = language == Language::C || s.threads_per_row <= 32 || s.rows_per_block == 1;
                is_alone
                    && is_vector(s.vector, c.vector)
                    && (s.splits > 1) <= (c.splits > 1)
                    && (s.persistent == 0 || c.persistent > 0 && holds >= length)
                    && (s.shared_bytes == 0 || s.shared_bytes == c.shared_bytes && s.persistent > 0)
                    && (s.stack_bytes == 0 || s.stack_bytes == c.stack_bytes)
            }
            (Schedule::Columns(s), Schedule::Columns(c)) => {
                let is_same = language == Language::C || s.threads_x == c.threads_x;
                // Tiles are on the stack.
                let is_tiled_alike =
                    s.shares_all == c.shares_all && (!c.shares_all || s.threads_x <= c.threads_x);
                is_same && is_tiled_alike && is_vector(s.vector, c.vector) && (s.splits > 1) <= (c.splits > 1)
            }
            (Schedule::Contraction(s), Schedule::Contraction(c)) => {
                (s.lines, s.columns, s.depth) == (c.lines, c.columns, c.depth) && s.rows <= c.rows
            }
            (Schedule::RowContraction(s), Schedule::RowContraction(c)) => {
                (s.columns, s.depth) == (c.columns, c.depth) && s.rows <= c.rows
            }
            (Schedule::Sort(s), Schedule::Sort(c)) => {
                (s.tile, s.lanes) == (c.tile, c.lanes) && s.rows > 0 && s.rows <= c.rows
            }
            (Schedule::Product(s), Schedule::Product(c)) => s.is_one_of_table(c),
            (
                Schedule::Pointwise(_)
                | Schedule::Tiled(_)
                | Schedule::Scan(_)
                | Schedule::Scatter(_)
                | Schedule::Sort(_)
                | Schedule::Rows(_)
                | Schedule::Columns(_)
                | Schedule::Contraction(_)
                | Schedule::RowContraction(_)
                | Schedule::Product(_),
                _,
            ) => return Err(Refusal::Misfit("the kernel takes a schedule of another kind")),
        };
        match fits {
            true => Ok(()),
            false => Err(Refusal::Misfit("the schedule's numbers do not fit the kernel")),
        }
    }

    /// Threads are powers of two, and no more than a block can have.
    fn check_threads(&self) -> Result<(), Refusal> {
        let threads = match self {
            Schedule::Pointwise(s) => [s.threads, 1],
            Schedule::Tiled(s) => [32, s.rows],
            Schedule::Scan(s) => [s.threads, s.rows],
            Schedule::Scatter(s) => [32, s.warps],
            Schedule::Sort(s) => [s.threads, 1],
            Schedule::Rows(s) => [s.threads_per_row, s.rows_per_block],
            Schedule::Columns(s) => [s.threads_x, s.threads_y],
            Schedule::Product(s) => [s.threads(), 1],
            Schedule::Contraction(_) | Schedule::RowContraction(_) => {
                return Err(Refusal::Misfit("a contraction is a schedule for the CPU"));
            }
        };
        let fits = threads.iter().all(|threads| threads.is_power_of_two())
            && u64::from(threads[0]) * u64::from(threads[1]) <= MOST_THREADS;
        match fits {
            true => Ok(()),
            false => Err(Refusal::Misfit("a block has a power of two of threads, at most 1024")),
        }
    }

    /// Lanes have partial results on the stack.
    fn check_lanes(&self) -> Result<(), Refusal> {
        let lanes = match self {
            Schedule::Rows(s) => s.threads_per_row,
            Schedule::Columns(s) => s.threads_x,
            Schedule::Scan(s) => s.rows,
            Schedule::Product(_) => {
                return Err(Refusal::Misfit("tiles of a block's threads are a schedule for CUDA"));
            }
            Schedule::Pointwise(_)
            | Schedule::Tiled(_)
            | Schedule::Scatter(_)
            | Schedule::Sort(_)
            | Schedule::Contraction(_)
            | Schedule::RowContraction(_) => 1,
        };
        match u64::from(lanes) <= MOST_THREADS {
            true => Ok(()),
            false => Err(Refusal::Misfit("there are at most 1024 lanes")),
        }
    }
}
