//! How a kernel's axes map to blocks, threads, vector lanes and loops.

mod across;
mod check;
mod choose;
mod columns;
mod contraction;
mod contraction_cuda;
mod depth;
mod exact;
mod facts;
mod few_rows;
mod instructions;
mod keep;
mod lift;
mod masked;
mod neighbours;
mod order;
mod parse;
mod passes;
mod plain;
mod quotients;
pub mod row_blocks;
mod row_contraction;
mod row_contraction_cuda;
mod rows;
mod scans;
mod scatter;
pub mod share;
mod shared_parts;
mod shifted;
mod short_lines;
mod sliding;
mod sort;
mod taps;
mod tensor_map;
mod tiled;
mod vector;
mod windows;
mod work;
mod work_items;

use std::fmt;

use crate::index::AxisId;
use crate::ir::ValueId;

pub(crate) use across::{
    is_stored_across, lanes_along, lies_across, nested_axes, reduced_axes, reductions_apart,
    reductions_of_columns,
};
pub use choose::schedule;
pub use contraction::ContractionSchedule;
pub(crate) use contraction::{Contraction, Product, consecutive_along};
pub(crate) use contraction_cuda::{LEAST_STAGES_OF_GROUPS, is_copied};
pub use contraction_cuda::{ProductSchedule, Unit};
pub(crate) use depth::{flattened, with_one_depth};
pub use exact::is_exact;
pub(crate) use facts::UNROLLED_OPERATIONS;
pub use facts::{COLUMN_SPLIT_LENGTH, Figures, Matrices, SPLIT_LENGTH, STACK_BYTES, cooperative};
pub(crate) use few_rows::FEW_TERMS;
pub(crate) use instructions::Instruction;
pub(crate) use keep::{Keep, array_bytes};
pub(crate) use lift::Lift;
pub(crate) use masked::{Distance, Kept, Masked, growth};
pub use order::AxisOrder;
pub(crate) use passes::{Pass, Plan};
pub(crate) use plain::for_schedule;
pub use quotients::neighbours;
pub(crate) use quotients::{by_quotients, unrolled_by_quotients};
pub use row_contraction::RowContractionSchedule;
pub(crate) use row_contraction::{RowContraction, padded};
pub use row_contraction_cuda::RowProductSchedule;
pub(crate) use row_contraction_cuda::{Nothing, Softmax};
pub(crate) use scans::{
    MOST_SCAN_SPLITS, ROWS_IN_LANES, are_in_registers, in_order, rows_together, scan_split_length,
    taken_in_order,
};
pub use scans::{is_in_registers, is_row_scan_shared};
pub(crate) use scatter::Scatters;
pub use scatter::{SCATTER_LIST_LENGTH, SCATTER_SPLIT_LENGTH, ScatterSchedule};
pub(crate) use share::{PAIRED_ROWS, PANEL, TILE_ROWS};
pub(crate) use shared_parts::unrolled_by_parts;
pub(crate) use short_lines::in_short_lines;
pub(crate) use sliding::{LONGEST_UNROLLED, is_last, sliding_axis, strided_axis};
pub use sort::SortSchedule;
pub(crate) use sort::{SORT_LANES, Sorts};
pub(crate) use taps::Taps;
pub use tensor_map::TensorMap;
pub(crate) use tiled::{CORE_PITCH, TILE, limits, tiled, transposed_loads};
pub(crate) use vector::is_of_rows;
pub(crate) use windows::{Image, Windows};
pub(crate) use work::operations;
pub use work_items::WorkItems;

/// A schedule: small and printable.
///
/// ```
/// use lazuli_codegen::schedule::{RowSchedule, Schedule};
/// let rows = RowSchedule {
///     threads_per_row: 32,
///     rows_per_block: 8,
///     vector: 4,
///     persistent: 0,
///     shared_bytes: 0,
///     stack_bytes: 0,
///     online: false,
///     keep: None,
///     splits: 1,
/// };
/// assert_eq!(Schedule::Rows(rows).to_string(), "row_reduce(threads_per_row=32, rows_per_block=8, vec=4)");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Schedule {
    /// Every thread computes its own results.
    Pointwise(PointwiseSchedule),
    /// As `Pointwise`, with transposed reads through shared memory (CUDA).
    Tiled(TiledSchedule),
    /// Every element follows from those before it along an axis: scans and recurrences.
    Scan(ScanSchedule),
    /// Elements are combined where their index says.
    Scatter(ScatterSchedule),
    /// Rows in order.
    Sort(SortSchedule),
    /// A group of threads reduces a row whose elements are consecutive.
    Rows(RowSchedule),
    /// Neighbouring threads reduce neighbouring columns.
    Columns(ColumnSchedule),
    /// Packed factors, and sums of products in registers (CPU).
    Contraction(ContractionSchedule),
    /// The same of a factor whose rows are reduced first (CPU).
    RowContraction(RowContractionSchedule),
    /// Tiles of the factors in shared memory, and sums of products in registers (CUDA).
    Product(ProductSchedule),
    /// The same of weights that a softmax makes of products (CUDA).
    RowProduct(RowProductSchedule),
}

/// Every thread computes its own results.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PointwiseSchedule {
    /// Threads in a block (CUDA).
    pub threads: u32,
    /// Consecutive results of a thread (CUDA).
    pub vector: u32,
    /// Results of a block (CPU).
    pub elements_per_block: u64,
    /// The order of the loops over results, if somebody says it (CPU).
    pub order: Option<AxisOrder>,
}

/// Square tiles of results: an input is consecutive along another axis than the results are.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TiledSchedule {
    /// The axis along which the transposed inputs are consecutive.
    pub across: AxisId,
    /// Rows and columns of a tile: 32 (CUDA), or 64 (CPU).
    pub tile: u32,
    /// Rows of threads in a block, which has a column for each of the tile's (CUDA).
    pub rows: u32,
}

/// Scans along one axis.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ScanSchedule {
    /// Threads that share a scan (CUDA).
    pub threads: u32,
    /// Scans of a block; of neighbouring columns, lanes on the CPU.
    pub rows: u32,
    /// Consecutive elements of a thread, where the scanned elements are consecutive (CUDA).
    pub vector: u32,
    /// Steps whose elements go through shared memory together, where each thread goes along a row of its own; 0 for
    /// none (CUDA).
    pub tile: u32,
    /// Parts of the axis, each for a block of its own: one function leaves what each comes to, and the next one scans
    /// each from its exclusive prefix.
    pub splits: u32,
}

/// Rows: the reduced elements are consecutive in memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RowSchedule {
    /// Threads that share a row; vector lanes on the CPU.
    pub threads_per_row: u32,
    /// Rows of a block.
    pub rows_per_block: u32,
    /// Consecutive elements that a thread reads at once.
    pub vector: u32,
    /// How many such vectors of a row a thread has, if it keeps them from pass to pass; 0 for loops that read again
    /// (CUDA).
    pub persistent: u32,
    /// Bytes of shared memory that hold them; 0 for registers, each pass unrolled.
    pub shared_bytes: u32,
    /// Bytes of the stack that hold, from pass to pass, what is costly to compute again (CPU).
    pub stack_bytes: u32,
    /// What is kept there from pass to pass, if somebody says it: values of the nest's kernel. All others are computed
    /// again.
    pub keep: Option<ValueSet>,
    /// Whether sums of exponentials find their maximum on the way, in one pass; else a pass before finds it.
    pub online: bool,
    /// Parts of a row, each for a block of its own; the last one to finish combines them.
    pub splits: u32,
}

/// Some of a kernel's first values.
///
/// ```
/// use lazuli_codegen::ir::ValueId;
/// use lazuli_codegen::schedule::ValueSet;
/// let both: ValueSet = [ValueId(4), ValueId(1)].into_iter().collect();
/// assert_eq!(both.to_string(), "v1+v4");
/// assert_eq!(ValueSet::default().to_string(), "none");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct ValueSet(u128);

impl ValueSet {
    /// Values beyond these cannot be named.
    pub const MOST: u32 = u128::BITS;

    /// The values, ascending.
    pub fn ids(self) -> impl Iterator<Item = ValueId> {
        (0..ValueSet::MOST).filter(move |number| self.0 >> number & 1 == 1).map(ValueId)
    }
}

impl FromIterator<ValueId> for ValueSet {
    /// Those of them below [`ValueSet::MOST`].
    fn from_iter<I: IntoIterator<Item = ValueId>>(ids: I) -> ValueSet {
        let bit = |id: ValueId| 1u128.checked_shl(id.0).unwrap_or(0);
        ValueSet(ids.into_iter().fold(0, |set, id| set | bit(id)))
    }
}

impl fmt::Display for ValueSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.write_str("none");
        }
        for (number, id) in self.ids().enumerate() {
            write!(f, "{}v{}", if number > 0 { "+" } else { "" }, id.0)?;
        }
        Ok(())
    }
}

/// Columns: the results are consecutive in memory, the reduced elements are not.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ColumnSchedule {
    /// Columns of a block, over `vector`; lanes on the CPU.
    pub threads_x: u32,
    /// Threads that share a column.
    pub threads_y: u32,
    /// Consecutive columns of a thread.
    pub vector: u32,
    /// Parts of a column, each for a block of its own.
    pub splits: u32,
    /// Whether all reductions go along the columns, also those that are short enough for one thread; and the columns may
    /// be rows of few elements, tiles of which are transposed (CPU).
    pub shares_all: bool,
}

impl Schedule {
    /// The same with as few registers as it can have.
    pub(crate) fn with_low_pressure(self) -> Schedule {
        match self {
            Schedule::Pointwise(s) => Schedule::Pointwise(PointwiseSchedule { vector: 1, ..s }),
            Schedule::Tiled(_)
            | Schedule::Scatter(_)
            | Schedule::Sort(_)
            | Schedule::Contraction(_)
            | Schedule::RowContraction(_)
            | Schedule::RowProduct(_) => self,
            Schedule::Product(s) => Schedule::Product(s.with_low_pressure()),
            Schedule::Scan(s) => Schedule::Scan(ScanSchedule { vector: 1, ..s }),
            Schedule::Rows(s) => {
                // Of 256 threads each may have 255 registers, of 1024 only 64.
                let threads_per_row = s.threads_per_row.min(256);
                Schedule::Rows(RowSchedule {
                    threads_per_row,
                    vector: 1,
                    persistent: 0,
                    shared_bytes: 0,
                    keep: None,
                    ..s
                })
            }
            Schedule::Columns(s) => Schedule::Columns(ColumnSchedule { vector: 1, ..s }),
        }
    }
}

/// A setting that is written where it is not the usual one.
fn unless(usual: u32, name: &str, value: u32) -> String {
    if value == usual { String::new() } else { format!(", {name}={value}") }
}

/// A word that is written where it holds.
fn flag(holds: bool, word: &str) -> String {
    if holds { format!(", {word}") } else { String::new() }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let splits = |splits: u32| unless(1, "splits", splits);
        let stages = |stages: u32| unless(1, "stages", stages);
        match self {
            Schedule::Pointwise(s) if s.elements_per_block > 0 => {
                write!(f, "pointwise(elements_per_block={}", s.elements_per_block)?;
                s.order.map_or(Ok(()), |order| write!(f, ", order={order}"))
            }
            Schedule::Pointwise(s) => write!(f, "pointwise(threads={}, vec={}", s.threads, s.vector),
            Schedule::Tiled(s) => {
                write!(
                    f,
                    "tiled(across={}, tile={}x{}, threads={}x{}",
                    s.across, s.tile, s.tile, s.tile, s.rows
                )
            }
            Schedule::Scan(s) => {
                write!(f, "scan(threads={}, rows_per_block={}, vec={}", s.threads, s.rows, s.vector)?;
                let tile = flag(s.tile > 0, &format!("tile={}x{}", s.rows, s.tile));
                write!(f, "{tile}{}", splits(s.splits))
            }
            Schedule::Scatter(s) => {
                write!(f, "scatter(positions={}, columns={}, warps={}", s.positions, s.columns, s.warps)?;
                let (collected, local) = (unless(0, "collected", s.collected), flag(s.is_local, "local"));
                let (lists, sparse) = (unless(0, "lists", s.lists), flag(s.is_sparse, "sparse"));
                let atomic = flag(s.is_atomic, "atomic");
                write!(f, "{collected}{local}{lists}{sparse}{atomic}{}", splits(s.splits))
            }
            Schedule::Sort(s) if s.threads > 1 => {
                write!(f, "sort(threads={}, rows_per_block={}, tile={}", s.threads, s.rows, s.tile)
            }
            Schedule::Sort(s) => write!(f, "sort(rows_per_block={}, lanes={}", s.rows, s.lanes),
            Schedule::Rows(s) => {
                let RowSchedule { threads_per_row, rows_per_block, vector, .. } = s;
                write!(f, "row_reduce(threads_per_row={threads_per_row}, rows_per_block={rows_per_block}, ")?;
                write!(f, "vec={vector}{}", unless(0, "persistent", s.persistent))?;
                f.write_str(&unless(0, "shared_bytes", s.shared_bytes))?;
                f.write_str(&unless(0, "stack_bytes", s.stack_bytes))?;
                s.keep.map_or(Ok(()), |keep| write!(f, ", keep={keep}"))?;
                write!(f, "{}{}", flag(s.online, "online"), splits(s.splits))
            }
            Schedule::Contraction(s) => {
                let tile = format!("rows={}, columns={}x{}", s.rows, s.lines, s.columns);
                write!(f, "contraction({tile}, depth={}{}", s.depth, unless(0, "part", s.part))
            }
            Schedule::RowContraction(s) => {
                write!(f, "row_contraction(rows={}, columns={}, depth={}", s.rows, s.columns, s.depth)
            }
            Schedule::RowProduct(s) => {
                write!(f, "row_contraction(tile={}x{}, ", s.rows, s.elements)?;
                write!(f, "columns={}, depth={}", s.columns, s.depth)?;
                s.unit.matrices().map_or(Ok(()), |of| write!(f, ", {of}"))?;
                f.write_str(&flag(s.unit.is_group(), "group"))?;
                f.write_str(&stages(s.stages))
            }
            Schedule::Product(s) => {
                write!(f, "contraction(tile={}x{}, depth={}", s.rows, s.columns, s.depth)?;
                let own = format!("{}x{}", s.own_rows, s.own_columns);
                match s.unit {
                    Unit::Thread => write!(f, ", thread={own}")?,
                    Unit::Warp(of) => write!(f, ", warp={own}, {of}")?,
                    Unit::WarpGroup(of) => write!(f, ", group={own}, {of}")?,
                }
                f.write_str(&(stages(s.stages) + &flag(s.bulk, "bulk") + &splits(s.splits)))
            }
            Schedule::Columns(s) => {
                write!(f, "column_reduce(threads={}x{}, vec={}", s.threads_x, s.threads_y, s.vector)?;
                write!(f, "{}{}", flag(s.shares_all, "all"), splits(s.splits))
            }
        }?;
        f.write_str(")")
    }
}

/// The shape of a launch, as a function of the sizes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Launch {
    /// Work items of this launch: threads, rows or column groups.
    pub items: WorkItems,
    /// Work items of a block.
    pub per_block: u64,
    /// Blocks that share an item.
    pub splits: u32,
    /// Threads of a block, in x, y and z.
    pub block: [u32; 3],
    /// Bytes of shared memory of a block, beside what the function declares.
    pub shared_bytes: u32,
    /// Blocks that a multiprocessor is to have registers for at a time; 0 for as many as the compiler likes.
    pub at_once: u32,
}

impl Default for Launch {
    /// One thread.
    fn default() -> Launch {
        let items = WorkItems::number(1);
        Launch { items, per_block: 1, splits: 1, block: [1, 1, 1], shared_bytes: 0, at_once: 0 }
    }
}

impl Launch {
    /// Blocks in x, y and z; no more than one dimension exceeds 65,535.
    pub fn grid(&self) -> [u64; 3] {
        [self.items.count().div_ceil(self.per_block.max(1)).max(1), u64::from(self.splits), 1]
    }

    /// Threads of a block, and the blocks of a multiprocessor if they are said, as CUDA's bounds have them.
    pub(crate) fn bounds(&self) -> String {
        let threads: u32 = self.block.iter().product();
        match self.at_once {
            0 => format!("__launch_bounds__({threads})"),
            blocks => format!("__launch_bounds__({threads}, {blocks})"),
        }
    }

    /// How the blocks in x follow from the kernel's arguments, such as `ceil(n_i0 / 1024)`.
    pub fn blocks(&self) -> String {
        match self.per_block {
            1 => self.items.to_string(),
            per_block => format!("ceil({} / {per_block})", self.items),
        }
    }
}

impl fmt::Display for Launch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "grid = {}", self.blocks())?;
        if self.splits > 1 {
            write!(f, " x {}", self.splits)?;
        }
        write!(f, ", block = {}", self.block[0])?;
        if self.block[1] > 1 {
            write!(f, " x {}", self.block[1])?;
        }
        if self.shared_bytes > 0 {
            write!(f, ", {} bytes of shared memory", self.shared_bytes)?;
        }
        Ok(())
    }
}
