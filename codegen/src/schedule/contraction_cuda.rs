//! Contractions on CUDA: which tiles a block computes, and what of them a thread or a warp.

use super::contraction::{Contraction, Product};
use super::depth::positions;
use super::facts::{ACCESS_BYTES, Figures, Matrices};
use super::instructions::Instruction;
use super::tensor_map::TensorMap;
use crate::index::AxisId;
use crate::ir::{Kernel, ValueId, ValueOp};
use crate::{DType, Refusal};

/// How the threads of a block compute a tile of the results: tiles of both factors, some terms at a time, go through shared
/// memory, two of each, and each thread keeps a part of the sums in registers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ProductSchedule {
    /// Rows of a block.
    pub rows: u32,
    /// Columns of a block.
    pub columns: u32,
    /// Terms that are in shared memory together.
    pub depth: u32,
    /// Who has a part of the sums to itself.
    pub unit: Unit,
    /// Rows of the unit.
    pub own_rows: u32,
    /// Columns of the unit.
    pub own_columns: u32,
    /// Tiles of each factor in shared memory, where they are copied there while others are multiplied (`cp.async`, sm_80 and
    /// later); 1 if they come through registers, to two.
    pub stages: u32,
    /// Whether one thread begins copies of whole tiles (bulk copies by tensor maps, sm_90).
    pub bulk: bool,
    /// Parts of the terms, each for a block of its own; the last one to finish adds them up in order.
    pub splits: u32,
}

/// Who has a part of a block's sums: warps and groups of four multiply matrices by one instruction, whose factors are of that type,
/// `F16` or `BF16`.
///
/// ```
/// use lazuli_codegen::{DType, schedule::Unit};
/// assert_eq!(Unit::Thread.matrices(), None);
/// assert_eq!(Unit::WarpGroup(DType::BF16).threads(), 128);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Unit {
    /// Each thread.
    Thread,
    /// Each warp, of factors that it has loaded into registers (`mma.sync`).
    Warp(DType),
    /// Each four warps, of factors in shared memory, while they go on (`wgmma`, on sm_90 alone).
    WarpGroup(DType),
}

impl Unit {
    /// Its threads.
    pub fn threads(self) -> u32 {
        match self {
            Unit::Thread => 1,
            Unit::Warp(_) => 32,
            Unit::WarpGroup(_) => 128,
        }
    }

    /// What the factors of its instruction are, if there is one.
    pub fn matrices(self) -> Option<DType> {
        match self {
            Unit::Thread => None,
            Unit::Warp(dtype) | Unit::WarpGroup(dtype) => Some(dtype),
        }
    }

    /// Its warps, or 1.
    pub(crate) fn warps(self) -> u32 {
        self.threads().div_ceil(32)
    }

    pub(crate) fn is_group(self) -> bool {
        matches!(self, Unit::WarpGroup(_))
    }
}

/// Tiles of a block and of its threads or warps, the terms that are in shared memory together, and how much of a
/// multiprocessor's arithmetic they reach beside the largest. Larger ones read less of shared memory for each product.
struct Tile {
    block: [u32; 2],
    own: [u32; 2],
    depth: u32,
    reaches: f64,
}

const fn tile(block: [u32; 2], own: [u32; 2], depth: u32, reaches: f64) -> Tile {
    Tile { block, own, depth, reaches }
}

/// Of threads, the largest first. Few rows have tiles of their own, with more terms for each wait.
const THREADS: [Tile; 8] = [
    tile([128, 256], [8, 16], 8, 1.1),
    tile([128, 128], [8, 8], 8, 1.0),
    tile([128, 64], [8, 4], 8, 0.9),
    tile([64, 64], [8, 4], 8, 0.85),
    tile([64, 32], [4, 4], 8, 0.7),
    tile([16, 64], [4, 4], 16, 0.6),
    tile([8, 128], [4, 4], 8, 0.6),
    tile([32, 32], [4, 4], 8, 0.6),
];

/// Of warps: 64 bytes of a row, and 128 where the rows are few, so that enough is on its way, or where the launch provides shared
/// memory for them.
const WARPS: [Tile; 6] = [
    tile([128, 256], [64, 64], 64, 1.1),
    tile([128, 128], [64, 32], 32, 1.0),
    tile([128, 64], [32, 32], 32, 0.85),
    tile([64, 64], [32, 32], 32, 0.75),
    tile([32, 64], [16, 32], 32, 0.5),
    tile([16, 64], [16, 16], 64, 0.4),
];

/// Of groups of four warps, and lines of 128 bytes, as their instruction has them. Of products of bf16, 4096³, the largest reaches 586
/// TFLOP/s on an H200, and the others those parts of it.
const GROUPS: [Tile; 5] = [
    tile([128, 256], [64, 256], 64, 1.0),
    tile([128, 128], [64, 128], 64, 0.78),
    tile([64, 128], [64, 128], 64, 0.78),
    tile([128, 64], [64, 64], 64, 0.66),
    tile([64, 64], [64, 64], 64, 0.58),
];

/// Registers of a thread that hold sums of one product, and of several.
const MOST_SUMS: u32 = 128;
const MOST_SUMS_OF_SEVERAL: u32 = 64;

/// Terms that are worth a block of their own.
const SPLIT_TERMS: u64 = 128;

/// Parts of the terms: what a block leaves in memory, another one reads.
const MOST_SPLITS: u64 = 32;

/// Products that a multiprocessor adds up in a clock: of numbers of 32 bits and of 64, and of small matrices by `mma.sync`, of
/// which an H200 reaches about this.
const PRODUCTS: f64 = 128.0;
const WIDE_PRODUCTS: f64 = 64.0;
const MATRIX_PRODUCTS: f64 = 1024.0;

/// The same by `wgmma`, with whatever its factors wait for.
const GROUP_PRODUCTS: f64 = 1265.0;

/// Bytes that a multiprocessor gets of the second-level cache in a clock: products of bf16 read 4.9 TB/s on an H200.
const CACHE_BYTES: f64 = 24.0;

/// Clocks of a step of a group in which a multiprocessor does nothing, if it has that block alone.
const GROUP_STEP: f64 = 320.0;

/// Rows from which on groups of warps multiply: theirs are 64 at least.
const LEAST_ROWS_OF_GROUPS: u64 = 33;

/// Sums of all its warps that a multiprocessor works at while it waits for as many: so long a chain of additions is.
const SUMS_IN_FLIGHT: f64 = 128.0;

/// Clocks that a block takes to leave its part, and the last one to find that it is.
const MERGE_CLOCKS: f64 = 2000.0;

/// The most tiles of a factor that are in shared memory, and those of what a block cannot declare two of: more are no faster on
/// an H200.
const STAGES: u32 = 4;
const STAGES_AT_LAUNCH: u32 = 3;

/// Tiles of which groups of warps still read one while the others are on their way: with copies, and without.
const STAGES_OF_GROUPS: u32 = 4;
pub(crate) const LEAST_STAGES_OF_GROUPS: u32 = 3;

/// Blocks of a multiprocessor among which shared memory is divided: more of them hide no more.
const MOST_AT_ONCE: u32 = 4;

/// Bytes of shared memory that a kernel declares, of all its blocks' on a multiprocessor; GPUs that have no more for a block
/// than this have no copies either (sm_70 to sm_75).
const SHARED_BYTES: u32 = 47 << 10;
pub(super) const NO_COPIES_BYTES: u32 = 96 << 10;

/// Registers of a multiprocessor, and those of a thread beside what it multiplies.
const REGISTERS: u32 = 1 << 16;
const OTHER_REGISTERS: u32 = 36;

/// Blocks of a multiprocessor that are worth having.
const MOST_BLOCKS: u32 = 8;

/// Shared memory of a multiprocessor that has groups of warps.
const GROUPS_SHARED_BYTES: u32 = 227 << 10;

/// What an extent that the launch says counts as, so that few texts hold for all: the least of these that it is not above. More
/// count as the last one, and do not divide their terms.
const CLASSES: [u64; 10] = [8, 16, 32, 64, 128, 256, 512, 1024, 2048, MANY];
const MANY: u64 = 4096;

impl ProductSchedule {
    /// Threads of a block.
    pub fn threads(&self) -> u32 {
        let units = (self.rows / self.own_rows.max(1)) * (self.columns / self.own_columns.max(1));
        units * self.unit.threads()
    }

    /// Sums of a thread.
    pub fn sums(&self) -> u32 {
        self.own_rows * self.own_columns / self.unit.threads()
    }

    /// Blocks that a multiprocessor has registers and, of groups of warps, shared memory for: a few of them hide what each waits for.
    pub(crate) fn at_once(&self, contraction: &Contraction) -> u32 {
        let words = |dtype: DType| (dtype.size() as u32).div_ceil(4);
        let (rows, columns) = (self.own_rows, self.own_columns);
        let sums = self.sums() * words(contraction.sum) * contraction.products.len() as u32;
        // What is read of the factors' tiles for one term, and half of it for the next one; of matrices a lane's part.
        let parts = match self.unit {
            Unit::WarpGroup(_) => 0,
            Unit::Warp(_) => (rows + columns) / 4,
            Unit::Thread => (rows + columns) * words(contraction.dtype) * 3 / 2,
        };
        let of_registers = REGISTERS / (self.threads() * (sums + parts + OTHER_REGISTERS));
        let of_memory = match self.unit {
            Unit::WarpGroup(_) => GROUPS_SHARED_BYTES / (self.stages.max(1) * contraction.tile_bytes(self)),
            _ => MOST_BLOCKS,
        };
        of_registers.min(of_memory).clamp(1, MOST_BLOCKS)
    }

    fn table(unit: Unit) -> &'static [Tile] {
        match unit {
            Unit::Thread => &THREADS,
            Unit::Warp(_) => &WARPS,
            Unit::WarpGroup(_) => &GROUPS,
        }
    }

    fn of(tile: &Tile, unit: Unit, splits: u32) -> ProductSchedule {
        let Tile { block: [rows, columns], own: [own_rows, own_columns], depth, .. } = *tile;
        let stages = if unit.is_group() { STAGES_OF_GROUPS } else { 1 };
        ProductSchedule { rows, columns, depth, unit, own_rows, own_columns, stages, bulk: false, splits }
    }

    /// Checks that it is a tile of the table with no more sums than the chosen one, and as the terms are split there.
    ///
    /// # Errors
    /// [`Refusal::Misfit`].
    pub(super) fn check(&self, chosen: &ProductSchedule) -> Result<(), Refusal> {
        let is_own = |tile: &Tile| {
            let of = ProductSchedule::of(tile, self.unit, self.splits);
            *self == ProductSchedule { stages: self.stages, bulk: self.bulk, ..of }
        };
        let fits = match () {
            () if self.unit.matrices().is_some() && self.unit.matrices() != chosen.unit.matrices()
                || self.unit.is_group() && !chosen.unit.is_group() =>
            {
                Err("the factors are no numbers that these instructions multiply")
            }
            () if !ProductSchedule::table(self.unit).iter().any(is_own) => {
                Err("tile, depth and what a thread or warp has of it are none of the table of tiles")
            }
            () if self.sums() > chosen.sums() => {
                Err("the tile is larger than the one for these rows and columns")
            }
            () if self.unit.is_group() && self.stages < LEAST_STAGES_OF_GROUPS => {
                Err("groups of warps need more stages")
            }
            () if !(1..=STAGES).contains(&self.stages) || (self.stages > 1 && chosen.stages == 1) => {
                Err("there are no such stages of copies")
            }
            () if self.bulk && !(chosen.bulk && self.unit.is_group() && self.stages == chosen.stages) => {
                Err("the factors are no tiles that can be copied as a whole")
            }
            () if self.splits > 1 && chosen.splits == 1 => Err("the terms are too few to split"),
            () => Ok(()),
        };
        fits.map_err(Refusal::Misfit)
    }

    /// Other tiles of the table, and other parts of the terms.
    pub(super) fn beside(self) -> impl Iterator<Item = ProductSchedule> {
        let tiles = ProductSchedule::table(self.unit).iter();
        let tiles = tiles.map(move |tile| ProductSchedule {
            bulk: self.bulk,
            ..ProductSchedule::of(tile, self.unit, self.splits)
        });
        let splits =
            [self.splits / 2, self.splits.saturating_mul(2), 1].into_iter().filter(|&splits| splits > 0);
        tiles.chain(splits.map(move |splits| ProductSchedule { splits, ..self }))
    }

    /// The same with as few registers as it can have.
    pub(super) fn with_low_pressure(self) -> ProductSchedule {
        let unit = self.unit.matrices().map_or(Unit::Thread, Unit::Warp);
        let last = ProductSchedule::table(unit).last();
        last.map_or(self, |tile| ProductSchedule::of(tile, unit, self.splits))
    }
}

/// Whether a factor's tiles are elements of memory as they are there, so that they can be copied.
pub(crate) fn is_copied(kernel: &Kernel, value: ValueId, dtype: DType) -> bool {
    match &kernel.value(value).op {
        ValueOp::Load { buffer, index, guard: None } => {
            kernel.buffers[buffer.index()].dtype == dtype && kernel.computed_axes(index).is_empty()
        }
        _ => false,
    }
}

impl Contraction {
    /// How a GPU computes it: the tile and the parts of the terms that should take the least time. What is an argument counts
    /// as one of a few classes.
    pub(super) fn tiles(&self, kernel: &Kernel, figures: &Figures) -> ProductSchedule {
        let class = |extent: u64| CLASSES.into_iter().find(|&most| extent <= most);
        let counted = |axes: &[AxisId]| match axes.split_first() {
            Some((&first, rest)) if kernel.axis(first).is_argument => {
                class(kernel.axis(first).extent).unwrap_or(MANY).saturating_mul(positions(kernel, rest))
            }
            _ => positions(kernel, axes),
        };
        let is_many = |axes: &[AxisId]| {
            axes.first().is_some_and(|&first| {
                kernel.axis(first).is_argument && class(kernel.axis(first).extent).is_none()
            })
        };
        let columns = self.columns();
        let extents = [&self.batch, &self.rows, &columns, &self.depth].map(|axes| counted(axes));
        let matrices = Instruction::of(kernel, self, figures).map(|instruction| instruction.factors);
        let registers = (self.sum.size() as u32 / 4).max(1) * self.products.len() as u32;
        let unit = matrices.map_or(Unit::Thread, Unit::Warp);
        let has_groups = figures.matrices == Matrices::Groups && extents[1] >= LEAST_ROWS_OF_GROUPS;
        let fits = |tile: &&Tile, unit: Unit| {
            let schedule = ProductSchedule::of(tile, unit, 1);
            let most_sums = match unit {
                Unit::Warp(_) | Unit::Thread if self.products.len() > 1 => MOST_SUMS_OF_SEVERAL,
                _ => MOST_SUMS,
            };
            schedule.sums() * registers <= most_sums && self.has_room(kernel, &schedule, figures)
        };
        let most_splits = match [&self.batch, &self.rows, &columns].into_iter().any(|axes| is_many(axes)) {
            true => 1,
            false => (extents[3] / SPLIT_TERMS).clamp(1, MOST_SPLITS),
        };
        let splits = || (0..).map(|n| 1u64 << n).take_while(|&splits| splits <= most_splits);
        let best_of = |unit: Unit| {
            let tiles = ProductSchedule::table(unit).iter().filter(|tile| fits(tile, unit));
            let candidates = tiles.flat_map(|tile| splits().map(move |splits| (tile, splits)));
            let timed = candidates.map(|(tile, splits)| {
                let schedule = ProductSchedule::of(tile, unit, splits as u32);
                (self.clocks(&schedule, tile.reaches, extents, figures), schedule)
            });
            timed.min_by(|(a, _), (b, _)| a.total_cmp(b)).map(|(_, schedule)| schedule)
        };
        let groups = matrices.filter(|_| has_groups).map(Unit::WarpGroup);
        let best = groups.and_then(best_of).or_else(|| best_of(unit));
        let least = || ProductSchedule::table(unit).last().map(|tile| ProductSchedule::of(tile, unit, 1));
        let Some(schedule) = best.or_else(least) else {
            return ProductSchedule::of(&THREADS[1], Unit::Thread, 1);
        };
        let bulk = schedule.unit.is_group() && self.are_mapped(kernel);
        ProductSchedule { stages: self.stages(kernel, &schedule, figures), bulk, ..schedule }
    }

    /// Whether tensor maps say where all factors are. Terms beyond the last are no others then.
    fn are_mapped(&self, kernel: &Kernel) -> bool {
        let &[depth] = self.depth.as_slice() else { return false };
        let columns = self.columns();
        self.products.iter().all(|product| {
            let map = |value, own: &[AxisId]| TensorMap::of(kernel, value, own, depth, |_| 1).is_some();
            map(product.left, &self.rows) && map(product.right, &columns)
        })
    }

    /// About how many clocks all blocks of a multiprocessor take, one after the other, for so many batches, rows, columns and
    /// terms: they multiply, or wait for what they multiply.
    fn clocks(
        &self,
        schedule: &ProductSchedule,
        reaches: f64,
        [batch, rows, columns, terms]: [u64; 4],
        figures: &Figures,
    ) -> f64 {
        let (own_rows, own_columns) = (u64::from(schedule.rows), u64::from(schedule.columns));
        let splits = u64::from(schedule.splits);
        let blocks = rows.div_ceil(own_rows).saturating_mul(columns.div_ceil(own_columns));
        let blocks = blocks.saturating_mul(batch).saturating_mul(splits);
        let turns = blocks.div_ceil(u64::from(figures.processors).max(1));
        let at_once = turns.min(schedule.at_once(self).into());
        let in_flight = (at_once * u64::from(schedule.threads() / 32 * schedule.sums())) as f64;
        // Whatever groups wait for is in their rate.
        let waiting = if schedule.unit.is_group() { 1.0 } else { 1.0 + SUMS_IN_FLIGHT / in_flight.max(1.0) };
        let (rate, size) = match (schedule.unit, self.dtype.size()) {
            (Unit::WarpGroup(dtype), _) => (GROUP_PRODUCTS, dtype.size()),
            (Unit::Warp(dtype), _) => (MATRIX_PRODUCTS, dtype.size()),
            (Unit::Thread, 8) => (WIDE_PRODUCTS, 8),
            (Unit::Thread, size) => (PRODUCTS, size),
        };
        let products = self.products.len() as f64;
        let area = (own_rows * own_columns) as f64 * products;
        let multiplied = area / (rate * reaches) * waiting;
        let read = ((own_rows + own_columns) * size as u64) as f64 / CACHE_BYTES;
        // Each block leaves its sums, and the last one of a tile reads those of all.
        let merged = match splits {
            1 => 0.0,
            _ => {
                let tiles = (blocks / splits).div_ceil(u64::from(figures.processors).max(1));
                let sums = ((turns + tiles * splits) * self.sum.size() as u64) as f64 * area;
                sums / CACHE_BYTES + MERGE_CLOCKS
            }
        };
        let terms = terms.div_ceil(splits).next_multiple_of(schedule.depth.into());
        let of_term = match schedule.unit {
            // As many blocks as there is room for multiply at a time, and the last ones may be alone.
            Unit::WarpGroup(_) => {
                let step = GROUP_STEP / f64::from(schedule.depth);
                let most = u64::from(schedule.at_once(self));
                let rest = turns % most;
                let alone = if rest > 0 { (most - rest) as f64 / most as f64 } else { 0.0 };
                turns as f64 * multiplied + alone * step
            }
            _ => turns as f64 * multiplied.max(read),
        };
        terms as f64 * of_term + merged
    }

    /// As many tiles as blocks have shared memory for, where factors are elements of memory as they are.
    fn stages(&self, kernel: &Kernel, schedule: &ProductSchedule, figures: &Figures) -> u32 {
        let dtype = schedule.unit.matrices().unwrap_or(self.dtype);
        if schedule.unit.is_group() {
            let copies = self.factors().any(|id| is_copied(kernel, id, dtype));
            return if copies { STAGES_OF_GROUPS } else { LEAST_STAGES_OF_GROUPS };
        }
        if figures.shared_bytes <= NO_COPIES_BYTES || !self.factors().any(|id| is_copied(kernel, id, dtype)) {
            return 1;
        }
        let bytes = self.tile_bytes(schedule);
        if 2 * bytes > SHARED_BYTES {
            return STAGES_AT_LAUNCH;
        }
        let at_once = schedule.at_once(self).min(MOST_AT_ONCE);
        let of_block = (figures.shared_bytes / at_once).min(SHARED_BYTES);
        (of_block / bytes).clamp(2, STAGES)
    }

    /// Whether a block can declare two tiles of each factor, or the launch provides more of what is copied.
    fn has_room(&self, kernel: &Kernel, schedule: &ProductSchedule, figures: &Figures) -> bool {
        let (bytes, dtype) = (self.tile_bytes(schedule), schedule.unit.matrices().unwrap_or(self.dtype));
        if schedule.unit.is_group() {
            return STAGES_OF_GROUPS * bytes <= figures.shared_bytes;
        }
        let are_copied = || self.factors().all(|id| is_copied(kernel, id, dtype));
        2 * bytes <= SHARED_BYTES || STAGES_AT_LAUNCH * bytes <= figures.shared_bytes && are_copied()
    }

    fn factors(&self) -> impl Iterator<Item = ValueId> {
        self.products.iter().flat_map(|product| [product.left, product.right])
    }

    /// Bytes of a tile of each factor, with what lines are longer than tiles.
    fn tile_bytes(&self, schedule: &ProductSchedule) -> u32 {
        let size = schedule.unit.matrices().unwrap_or(self.dtype).size() as u32;
        let count = |of: fn(&Product) -> ValueId| {
            let mut values: Vec<ValueId> = self.products.iter().map(of).collect();
            values.sort_unstable();
            values.dedup();
            values.len() as u32
        };
        let group = if schedule.unit.is_group() { 0 } else { ACCESS_BYTES as u32 / size };
        let lefts = count(|product| product.left) * (schedule.rows + group);
        let rights = count(|product| product.right) * (schedule.columns + group);
        (lefts + rights) * schedule.depth * size
    }

    /// The axes of the columns, the innermost one last.
    pub(crate) fn columns(&self) -> Vec<AxisId> {
        self.lines.iter().copied().chain([self.column]).collect()
    }
}
