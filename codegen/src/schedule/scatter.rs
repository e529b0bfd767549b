//! Kernels that combine elements where their index says.

use super::facts::{BLOCKS_PER_PROCESSOR, Figures, extent_of, previous_power_of_two};
use crate::index::AxisId;
use crate::ir::{AxisKind, Kernel, ValueId, ValueOp};
use crate::{Language, ReduceOp, Refusal};

/// How the results of a scatter are divided: a block has some positions of the axis and some columns, which are the
/// positions of the axes inside of it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ScatterSchedule {
    /// Positions of a block.
    pub positions: u64,
    /// Columns of a block: neighbouring lanes (CUDA).
    pub columns: u64,
    /// Warps of a block, each with results of its own until the end unless elements are collected (CUDA).
    pub warps: u32,
    /// Where most elements are none of a block's: how many each thread looks at before the block combines those
    /// that are; 0 where each is combined by the warp that finds it (CUDA).
    pub collected: u32,
    /// Whether a block's results are in a local array until they are stored (CPU).
    pub is_local: bool,
    /// Parts of the elements that are sorted by the block that they belong to, before blocks combine them; 0 where blocks
    /// look at all elements (CPU).
    pub lists: u32,
    /// Whether elements are few beside the results: what is at all positions without them is stored first, and then what those
    /// come to that they go to (CPU).
    pub is_sparse: bool,
    /// Whether threads add the elements in memory, each where its index says: integers to many positions (CUDA).
    pub is_atomic: bool,
    /// Parts of the elements that are combined, each for a block of its own.
    pub splits: u32,
}

impl ScatterSchedule {
    /// A block looks at all elements, one after the other, and combines those of its positions in memory.
    const PLAIN: ScatterSchedule = ScatterSchedule {
        positions: 0,
        columns: 0,
        warps: 1,
        collected: 0,
        is_local: false,
        lists: 0,
        is_sparse: false,
        is_atomic: false,
        splits: 1,
    };
}

/// Elements of a part on the CPU, each of whose results is added up one by one.
pub const SCATTER_SPLIT_LENGTH: u64 = 1 << 14;

/// Elements of a part that is sorted by the blocks on the CPU: one thread does that for each.
pub const SCATTER_LIST_LENGTH: u64 = 1 << 15;

/// Bytes of a block's results where its elements are in lists.
const LISTED_BYTES: u64 = 16 << 10;

/// Bytes of neighbouring columns, at least, that make it worth going to elements one by one.
const LISTED_LINE: u64 = 64;

/// Blocks on the CPU: enough to keep the threads busy.
const CPU_BLOCKS: u64 = 16;

/// Columns on the CPU that take as long to combine as it takes to find that an element is another block's.
const LOOKED_AT: u64 = 8;

/// Results on the CPU that take as long to prepare and to look at as an element at a place of its own.
const SPARSE: u64 = 32;

/// Columns on the CPU for which it is worth reading the index again.
const CPU_COLUMNS: u64 = 64;

/// Bytes of a block's results in a local array.
const LOCAL_BYTES: u64 = 64 << 10;

/// Bytes of shared memory for a block's results: six blocks fit a multiprocessor.
const SHARED_BYTES: u64 = 32 << 10;

/// Lanes of a warp.
const LANES: u64 = 32;

/// Bytes of one result of each scatter of a kernel: of four, as fusion allows, of the widest dtypes.
const MOST_BYTES: u64 = 32;

/// Results of a block, at least, if there are that many.
const LEAST_RESULTS: u64 = 1024;

/// Reads of the index that take no time to speak of, since a near cache has it.
const INDEX_READS: u64 = 1 << 23;

/// Seconds that a warp waits for an element, and that all take to read one of an index: measured on an H200, where warps of their
/// own took 340 ns, and its second-level cache gives 4 TB/s.
const STEP_SECONDS: f64 = 3e-7;
const READ_SECONDS: f64 = 2e-12;

/// Warps of a multiprocessor at a time.
const WARPS_OF_PROCESSOR: u64 = 32;

/// Elements that a lane combines before it is worth dividing them among more blocks.
const STEPS: u64 = 4;

/// Ranges of positions, for each column, from which on reading the index for each of them takes longer than adding in memory.
const ATOMIC_RANGES: u64 = 8;

/// Parts of a split scatter on CUDA: the last block reads so many partial results for each of its own.
const MOST_SPLITS: u64 = 128;

/// The scatters of a kernel: along one axis, by one index.
pub(crate) struct Scatters {
    pub(crate) ids: Vec<ValueId>,
    pub(crate) axis: AxisId,
    pub(crate) over: AxisId,
    pub(crate) index: ValueId,
    pub(crate) check: u32,
    /// The map axes around the axis: each of their positions has an index of its own, or the same.
    pub(crate) outer: Vec<AxisId>,
    /// The map axes inside of it.
    pub(crate) inner: Vec<AxisId>,
    /// Whether each of their positions has an index of its own.
    pub(crate) by_column: bool,
}

impl Scatters {
    /// What the kernel scatters; `None` for other kernels.
    ///
    /// # Errors
    /// If its scatters cannot run together.
    pub(crate) fn of(kernel: &Kernel) -> Result<Option<Scatters>, Refusal> {
        let mut found: Option<(AxisId, AxisId, ValueId, u32)> = None;
        let mut ids = Vec::new();
        for (number, value) in kernel.values.iter().enumerate() {
            let ValueOp::Scatter { axis, over, index, check, .. } = value.op else { continue };
            let own = (axis, over, index, check);
            if found.is_some_and(|found| found != own) {
                return Err(Refusal::DifferentScatters);
            }
            found = Some(own);
            ids.push(ValueId(number as u32));
        }
        let Some((axis, over, index, check)) = found else { return Ok(None) };
        let map = kernel.axes_of_kind(AxisKind::Map);
        let (outer, inner): (Vec<AxisId>, Vec<AxisId>) =
            map.into_iter().filter(|&other| other != axis).partition(|other| *other < axis);
        let by_column = inner.iter().any(|axis| kernel.value(index).axes.contains(axis));
        let scatters = Scatters { ids, axis, over, index, check, outer, inner, by_column };
        match scatters.bytes(kernel) > MOST_BYTES {
            true => Err(Refusal::TooManyScatters),
            false => Ok(Some(scatters)),
        }
    }

    /// Whether all of them are sums that are the same in any order, of numbers that threads can add in memory.
    pub(crate) fn add_integers(&self, kernel: &Kernel) -> bool {
        self.ids.iter().all(|&id| {
            let value = kernel.value(id);
            let is_sum = matches!(value.op, ValueOp::Scatter { op: ReduceOp::Sum, .. });
            is_sum && value.dtype.is_int() && value.dtype.size() >= 4
        })
    }

    /// Bytes of one result of each.
    fn bytes(&self, kernel: &Kernel) -> u64 {
        self.ids.iter().map(|&id| kernel.value(id).dtype.size() as u64).sum()
    }
}

pub(super) fn scatter(
    kernel: &Kernel,
    scatters: &Scatters,
    language: Language,
    figures: &Figures,
) -> ScatterSchedule {
    let extents = Extents {
        rows: extent_of(kernel, &scatters.outer).max(1),
        positions: kernel.axis(scatters.axis).extent.max(1),
        columns: extent_of(kernel, &scatters.inner).max(1),
        elements: kernel.axis(scatters.over).extent,
    };
    match language {
        Language::C => extents.on_cpu(scatters.bytes(kernel), scatters.by_column),
        Language::Cuda => {
            let schedule = extents.on_cuda(scatters.bytes(kernel), scatters.by_column, figures);
            let ranges = extents.positions.div_ceil(schedule.positions);
            let is_read_often = ranges > ATOMIC_RANGES * extents.columns
                && extents.index_reads(schedule.positions, scatters.by_column) > INDEX_READS;
            match is_read_often && scatters.add_integers(kernel) {
                true => ScatterSchedule {
                    positions: extents.positions,
                    columns: extents.columns,
                    is_atomic: true,
                    ..ScatterSchedule::PLAIN
                },
                false => schedule,
            }
        }
    }
}

struct Extents {
    rows: u64,
    positions: u64,
    columns: u64,
    /// That each row and column combines.
    elements: u64,
}

impl Extents {
    fn on_cpu(&self, bytes: u64, by_column: bool) -> ScatterSchedule {
        // Partial results must be few beside the elements that they come from, above all where ranges do as well.
        let most =
            if self.columns < 2 * LOOKED_AT { SCATTER_SPLIT_LENGTH / 2 } else { SCATTER_SPLIT_LENGTH / 8 };
        if let Some(sparse) = self.beside_many_results() {
            return sparse;
        }
        // Parts of the elements are the same work, whatever the index says.
        let is_split = self.elements >= 2 * SCATTER_SPLIT_LENGTH && self.positions <= most;
        if let Some(listed) = self.in_lists(bytes).filter(|_| !by_column && !is_split) {
            return listed;
        }
        if let Some(local) = self.in_local_arrays(bytes, by_column) {
            return local;
        }
        let splits = match is_split {
            true => self.elements.div_ceil(SCATTER_SPLIT_LENGTH).min(u64::from(u32::MAX)),
            false => 1,
        };
        let is_small = self.elements.saturating_mul(self.columns) < SCATTER_SPLIT_LENGTH;
        let mut wanted = match is_small {
            true => 1,
            false => CPU_BLOCKS.div_ceil(self.rows.saturating_mul(splits)),
        };
        // Parts of the columns are the same work, whatever the index says.
        let tiles = wanted.min(self.columns / CPU_COLUMNS).max(1);
        let columns = self.columns.div_ceil(tiles).next_multiple_of(if tiles > 1 { 16 } else { 1 });
        wanted = wanted.div_ceil(self.columns.div_ceil(columns));
        // Each range looks at all elements, which must take little time beside combining its own.
        let most = if by_column { 1 } else { (columns / LOOKED_AT).max(1) };
        let ranges = wanted.min(most).min(self.positions.div_ceil(16));
        let positions = self.positions.div_ceil(ranges);
        ScatterSchedule { positions, columns, splits: splits as u32, ..ScatterSchedule::PLAIN }
    }

    /// Blocks that have lists of their elements, where there are many blocks.
    fn in_lists(&self, bytes: u64) -> Option<ScatterSchedule> {
        let columns = (LISTED_BYTES / bytes).min(self.columns);
        let positions = (LISTED_BYTES / (bytes * columns)).clamp(1, self.positions);
        let ranges = self.positions.div_ceil(positions);
        let parts = self.elements.div_ceil(SCATTER_LIST_LENGTH);
        // Making a list looks at each element twice, and at each range, in every part.
        let looks = 2 * self.elements + parts.saturating_mul(ranges);
        let combined = self.elements.saturating_mul(self.columns);
        let is_worth_it = columns * bytes >= LISTED_LINE
            && ranges >= CPU_BLOCKS
            && self.elements >= CPU_BLOCKS
            && looks.saturating_mul(LOOKED_AT)
                <= combined.saturating_add(self.positions.saturating_mul(self.columns));
        is_worth_it.then_some(ScatterSchedule {
            positions,
            columns,
            is_local: true,
            lists: u32::try_from(parts).ok()?,
            ..ScatterSchedule::PLAIN
        })
    }

    /// A block for all elements of a row and some columns, where the elements are few beside the results.
    fn beside_many_results(&self) -> Option<ScatterSchedule> {
        let is_few = self.elements > 0 && self.elements.saturating_mul(SPARSE) <= self.positions;
        let tiles = CPU_BLOCKS.div_ceil(self.rows).min(self.columns / CPU_COLUMNS).max(1);
        let columns = self.columns.div_ceil(tiles).next_multiple_of(if tiles > 1 { 16 } else { 1 });
        is_few.then_some(ScatterSchedule {
            positions: self.positions,
            columns,
            is_sparse: true,
            ..ScatterSchedule::PLAIN
        })
    }

    /// Blocks whose results fit a near cache, if that takes little time beside that of storing all results.
    fn in_local_arrays(&self, bytes: u64, by_column: bool) -> Option<ScatterSchedule> {
        let most = LOCAL_BYTES / bytes;
        let columns = match by_column {
            // All positions of some columns: no range reads the index again.
            true => (most / self.positions).clamp(CPU_COLUMNS, most),
            false => most / 16,
        };
        let columns = columns.min(self.columns);
        let positions = (most / columns).min(self.positions);
        let ranges = self.positions.div_ceil(positions);
        let tiles = if by_column { self.columns } else { self.columns.div_ceil(columns) };
        let reads = self.elements.saturating_mul(ranges).saturating_mul(tiles);
        let is_cheap =
            reads.saturating_mul(4) <= self.positions.saturating_mul(self.columns).saturating_mul(bytes);
        is_cheap.then_some(ScatterSchedule { positions, columns, is_local: true, ..ScatterSchedule::PLAIN })
    }

    fn on_cuda(&self, bytes: u64, by_column: bool, figures: &Figures) -> ScatterSchedule {
        let has_columns = self.columns > 1;
        let columns = if has_columns { LANES } else { 1 };
        let results = SHARED_BYTES / (bytes * columns);
        if !by_column && results / self.positions < 4 {
            let columns = if has_columns { self.columns.next_multiple_of(LANES).min(4 * LANES) } else { 1 };
            let results = SHARED_BYTES / (bytes * columns);
            let each = match bytes {
                0..=8 => 4,
                9..=16 => 2,
                _ => 1,
            };
            let positions = self.positions.min(previous_power_of_two(results));
            let schedule = ScatterSchedule {
                positions,
                columns,
                warps: 8,
                collected: each as u32,
                ..ScatterSchedule::PLAIN
            };
            return self.split(schedule, 8 * LANES * each, by_column, figures);
        }
        // Lanes have columns of their own, or else elements of their own.
        let per_step = if has_columns { 1 } else { LANES };
        let positions = |warps: u64| match self.positions * warps <= results {
            true => self.positions,
            // A power of two divides quickly.
            false => previous_power_of_two(results / warps),
        };
        // Each range of positions reads the index again, and more sets of results are smaller ones.
        let is_busy = |warps: &u64| *warps == 1 || warps * per_step < self.elements + per_step;
        let seconds = |warps: u64| {
            let positions = positions(warps);
            let ranges = self.positions.div_ceil(positions).saturating_mul(self.rows);
            let all = ranges.saturating_mul(self.columns.div_ceil(columns)).saturating_mul(warps);
            let turns = all.div_ceil(u64::from(figures.processors).max(1) * WARPS_OF_PROCESSOR);
            let steps = self.elements.div_ceil(warps * per_step).saturating_mul(turns);
            steps as f64 * STEP_SECONDS + self.index_reads(positions, by_column) as f64 * READ_SECONDS
        };
        let warps = [8, 4, 2, 1].into_iter().filter(is_busy);
        let warps = warps.min_by(|&a, &b| seconds(a).total_cmp(&seconds(b))).unwrap_or(1);
        let positions = positions(warps);
        let schedule = ScatterSchedule { positions, columns, warps: warps as u32, ..ScatterSchedule::PLAIN };
        self.split(schedule, warps * per_step, by_column, figures)
    }

    /// The schedule for so many blocks that all multiprocessors have some: the elements are divided as well, where there
    /// are many beside the results, and otherwise the positions, as long as the index is not read too often.
    fn split(
        &self,
        mut schedule: ScatterSchedule,
        step: u64,
        by_column: bool,
        figures: &Figures,
    ) -> ScatterSchedule {
        let full = u64::from(figures.processors) * BLOCKS_PER_PROCESSOR / 2;
        let most = (self.elements / (step * STEPS)).min(self.elements / (2 * self.positions));
        let blocks = |positions: u64| {
            let tiles = self.columns.div_ceil(schedule.columns);
            self.rows.saturating_mul(tiles).saturating_mul(self.positions.div_ceil(positions)).max(1)
        };
        let splits = |positions: u64| (full / blocks(positions)).clamp(1, most.clamp(1, MOST_SPLITS));
        let mut positions = schedule.positions;
        let is_large = |positions: u64| positions * schedule.columns >= 2 * LEAST_RESULTS;
        while is_large(positions) && blocks(positions) * splits(positions) < full / 4 {
            // A power of two divides quickly.
            let fewer = previous_power_of_two(positions - 1);
            if self.index_reads(fewer, by_column) > INDEX_READS {
                break;
            }
            positions = fewer;
        }
        (schedule.positions, schedule.splits) = (positions, splits(positions) as u32);
        schedule
    }

    /// How often an index is read where each range of positions reads all of them.
    fn index_reads(&self, positions: u64, by_column: bool) -> u64 {
        let times = self.positions.div_ceil(positions).saturating_mul(self.rows);
        times.saturating_mul(self.elements).saturating_mul(if by_column { self.columns } else { 1 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of one row, by an index of the elements, or of the columns as well.
    fn on_cpu(elements: u64, positions: u64, columns: u64, by_column: bool) -> ScatterSchedule {
        Extents { rows: 1, positions, columns, elements }.on_cpu(8, by_column)
    }

    #[test]
    fn elements_without_columns_are_looked_at_once() {
        for (elements, positions) in
            [(1_000_000, 200_000), (30_000, 200_000), (1_000_000, 5_000), (20_000, 9_000)]
        {
            let schedule = on_cpu(elements, positions, 1, false);
            assert!(!schedule.is_local && schedule.positions == positions, "{elements}, {positions}");
            // Parts of the elements, where they are many beside the results.
            assert_eq!(schedule.splits > 1, positions == 5_000, "{elements}, {positions}");
        }
        // Nor is an index of each column.
        assert_eq!(on_cpu(100_000, 50_000, 16, true).positions, 50_000);
    }

    #[test]
    fn elements_of_wide_rows_are_in_lists() {
        for columns in [16, 64, 100, 1_024] {
            let schedule = on_cpu(100_000, 50_000, columns, false);
            assert!(
                schedule.is_local && schedule.lists == 4 && schedule.splits == 1,
                "{columns}: {schedule:?}"
            );
            assert!(schedule.positions * schedule.columns * 8 <= LISTED_BYTES, "{columns}: {schedule:?}");
        }
        // Not where a row is less than a line, where ranges are few, or where parts of the elements have results each.
        for (elements, positions, columns) in [(100_000, 50_000, 4), (20_000, 100, 64), (100_000, 2_000, 64)]
        {
            assert_eq!(on_cpu(elements, positions, columns, false).lists, 0, "{positions}, {columns}");
        }
    }

    #[test]
    fn few_elements_of_many_results_are_looked_at_alone() {
        for (elements, columns, by_column) in
            [(1, 1, false), (100, 64, false), (1_500, 1, false), (64, 16, true)]
        {
            let schedule = on_cpu(elements, 50_000, columns, by_column);
            assert!(schedule.is_sparse && !schedule.is_local && schedule.lists == 0, "{schedule:?}");
        }
        for (elements, positions) in [(2_000, 50_000), (5, 100), (0, 50_000)] {
            assert!(!on_cpu(elements, positions, 64, false).is_sparse, "{elements}, {positions}");
        }
    }

    #[test]
    fn ranges_take_little_time_beside_their_columns() {
        for columns in [16, 64, 100] {
            let schedule = on_cpu(20_000, 300, columns, false);
            let ranges = 300_u64.div_ceil(schedule.positions);
            assert!(ranges == 1 || ranges * LOOKED_AT <= schedule.columns, "{columns}: {schedule:?}");
        }
    }
}
