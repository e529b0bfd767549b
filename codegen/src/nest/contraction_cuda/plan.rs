//! What is known of a contraction's tiles before anything is emitted: who brings in which elements, and where the sums are.

use crate::index::{AxisId, IndexExpr};
use crate::ir::{Kernel, ValueId, ValueOp};
use crate::nest::emitter::Emitter;
use crate::nest::pointwise::split_lanes;
use crate::schedule::{
    Contraction, Instruction, LEAST_STAGES_OF_GROUPS, ProductSchedule, Unit, consecutive_along, is_copied,
};
use crate::{DType, Language};

/// Bytes of the widest access.
const ACCESS_BYTES: u64 = 16;

/// Bytes of the narrowest copy.
const LEAST_COPY: u64 = 4;

/// Neighbouring columns of four lanes, each with two of four small matrices, that one of them may have instead.
pub(in crate::nest) const EXCHANGED: u64 = 8;

/// What is known before anything is emitted.
pub(in crate::nest) struct Plan<'a> {
    /// The kernel with one summed axis.
    pub(in crate::nest) flat: &'a Kernel,
    pub(in crate::nest) contraction: &'a Contraction,
    pub(in crate::nest) columns: Vec<AxisId>,
    pub(in crate::nest) depth: AxisId,
    pub(in crate::nest) schedule: &'a ProductSchedule,
}

/// A factor whose tiles go through shared memory.
pub(in crate::nest) struct Factor {
    pub(in crate::nest) value: ValueId,
    /// Whether it varies over the rows; else over the columns.
    pub(in crate::nest) is_left: bool,
    /// Its own axes, over which the columns or rows of its tile go.
    pub(in crate::nest) axes: Vec<AxisId>,
    /// Columns or rows of a tile.
    pub(in crate::nest) width: u64,
    /// Of those, how many are a thread's.
    pub(in crate::nest) of_thread: u64,
    /// Whether a thread's vector goes along the terms.
    pub(in crate::nest) is_along: bool,
    /// Elements that a thread reads at once.
    pub(in crate::nest) vector: u64,
    /// Turns of the threads to read a tile.
    pub(in crate::nest) turns: u64,
    /// The kernel with lanes along that vector.
    pub(in crate::nest) kernel: Kernel,
    /// Its loads that are on their way while the tile before is multiplied.
    pub(in crate::nest) early: Vec<ValueId>,
    /// Whether its tiles are copied to shared memory as they are, and no register holds them.
    pub(in crate::nest) is_copied: bool,
}

impl<'a> Plan<'a> {
    /// Of a kernel that sums along one axis.
    pub(in crate::nest) fn new(
        flat: &'a Kernel,
        contraction: &'a Contraction,
        schedule: &'a ProductSchedule,
    ) -> Plan<'a> {
        let depth = contraction.depth[0];
        Plan { flat, contraction, columns: contraction.columns(), depth, schedule }
    }
}

impl Plan<'_> {
    pub(in crate::nest) fn deep(&self) -> u64 {
        self.schedule.depth.into()
    }

    pub(in crate::nest) fn threads(&self) -> u64 {
        self.schedule.threads().into()
    }

    /// Tiles of each factor in shared memory. Through registers comes one while the one before is read, however many there
    /// were room for.
    pub(in crate::nest) fn slots(&self, factors: &[Factor]) -> u64 {
        let copies = factors.iter().any(|factor| factor.is_copied);
        match (copies, self.schedule.unit.is_group()) {
            (true, _) => self.schedule.stages.into(),
            (false, true) => LEAST_STAGES_OF_GROUPS.into(),
            (false, false) => 2,
        }
    }

    /// What is in shared memory.
    pub(in crate::nest) fn dtype(&self) -> DType {
        self.schedule.unit.matrices().unwrap_or(self.contraction.dtype)
    }

    /// Elements of the widest access to shared memory.
    pub(in crate::nest) fn group(&self) -> u64 {
        ACCESS_BYTES / self.dtype().size() as u64
    }

    /// Whose sums are where.
    pub(in crate::nest) fn layout(&self) -> Layout {
        let schedule = self.schedule;
        let (rows, columns) = (u64::from(schedule.own_rows), u64::from(schedule.own_columns));
        let instruction = schedule.unit.matrices().and_then(Instruction::for_factors);
        // Of a group those of a warp.
        let rows = rows / u64::from(schedule.unit.warps());
        match instruction {
            // A lane has two neighbours in each of two rows of a small matrix.
            Some(Instruction { rows: of_rows, columns: of_columns, .. }) => {
                let (of_rows, of_columns) = (u64::from(of_rows), u64::from(of_columns));
                let across = columns / of_columns;
                Layout {
                    rows: [rows / of_rows, 2],
                    row_steps: [of_rows, of_rows / 2],
                    row_scale: 1,
                    columns: across,
                    column_step: of_columns,
                    lanes: 2,
                    sum_steps: [across * 4, 2, 4],
                }
            }
            None => {
                let group = self.group();
                Layout {
                    rows: [rows / group, group],
                    row_steps: [u64::from(schedule.rows) / rows * group, 1],
                    row_scale: group,
                    columns: columns / group,
                    column_step: u64::from(schedule.columns) / columns * group,
                    lanes: group,
                    sum_steps: [group * columns, columns, group],
                }
            }
        }
    }

    /// The lanes of whatever is split.
    pub(in crate::nest) fn lane(&self) -> AxisId {
        AxisId(self.flat.axes.len() as u32)
    }

    /// The kernel with lanes along a vector of neighbouring results, if every result is in a whole one. Of small matrices four lanes
    /// exchange theirs for longer ones.
    pub(in crate::nest) fn of_results(&self) -> (Kernel, u64) {
        let column = self.flat.axis(self.contraction.column);
        let lanes = self.layout().lanes;
        let is_whole = |lanes: u64| !column.is_argument && column.extent.is_multiple_of(lanes);
        let vector = self.exchanged(is_whole).unwrap_or(if is_whole(lanes) { lanes } else { 1 });
        (split_lanes(self.flat, Some(self.contraction.column), vector as u32), vector)
    }

    /// How many neighbours lanes exchange their results for: as many as fill an access. Warps then write whole sectors of 32 bytes, of
    /// which two results are a part. `None` if no result is stored along the columns, or is not in whole vectors.
    fn exchanged(&self, is_whole: impl Fn(u64) -> bool) -> Option<u64> {
        self.schedule.unit.matrices()?;
        let column = self.contraction.column;
        let lines = self.flat.stores.iter().filter(|store| store.index.coefficient(column) == Some(1));
        let widest = lines.map(|store| self.flat.buffers[store.buffer.index()].dtype.size()).max()?;
        let most = if widest <= 2 { EXCHANGED } else { EXCHANGED / 2 };
        // Of half as many small matrices.
        let matrices = self.layout().columns;
        let fits = |lanes: &u64| *lanes <= most && matrices.is_multiple_of(lanes / 2) && is_whole(*lanes);
        [EXCHANGED, EXCHANGED / 2].into_iter().find(fits)
    }

    /// What is in shared memory: each factor once, however many products it is in.
    pub(in crate::nest) fn factors(&self) -> Vec<Factor> {
        let schedule = self.schedule;
        let mut factors: Vec<Factor> = Vec::new();
        for product in &self.contraction.products {
            let left = (product.left, true, &self.contraction.rows, schedule.rows, schedule.own_rows);
            let right = (product.right, false, &self.columns, schedule.columns, schedule.own_columns);
            for (value, is_left, axes, width, of_thread) in [left, right] {
                if !factors.iter().any(|factor| (factor.value, factor.is_left) == (value, is_left)) {
                    factors.push(self.factor(value, is_left, axes, [width, of_thread].map(u64::from)));
                }
            }
        }
        factors
    }

    pub(in crate::nest) fn factor(
        &self,
        value: ValueId,
        is_left: bool,
        axes: &[AxisId],
        [width, of_thread]: [u64; 2],
    ) -> Factor {
        let own = axes.last().copied().unwrap_or(self.depth);
        let is_along = consecutive_along(self.flat, value, self.depth, own);
        let axis = if is_along { self.depth } else { own };
        let each = width * self.deep() / self.threads();
        let size = self.dtype().size() as u64;
        let is_plain = self.schedule.stages > 1 && is_copied(self.flat, value, self.dtype());
        // What is turned on the way is copied element by element.
        let is_turned = is_plain && is_along && self.schedule.unit == Unit::Thread && size >= LEAST_COPY;
        let mut vector = if is_turned { 1 } else { each.min(self.group()) };
        while vector > 1 && !self.is_vector(value, axis, vector) {
            vector /= 2;
        }
        let is_line = is_turned || !is_along || self.schedule.unit != Unit::Thread;
        let is_copied = is_plain && is_line && vector * size >= LEAST_COPY;
        let kernel = split_lanes(self.flat, Some(axis), vector as u32);
        let is_early = |id: &ValueId| match &kernel.value(*id).op {
            ValueOp::Load { index, .. } if vector > 1 => index.uses(self.lane()),
            ValueOp::Load { .. } => {
                kernel.value(*id).axes.iter().any(|axis| *axis == self.depth || axes.contains(axis))
            }
            _ => false,
        };
        let early = match is_copied {
            true => Vec::new(),
            false => kernel.down_from([value]).into_iter().filter(is_early).collect(),
        };
        let (axes, turns) = (axes.to_vec(), each / vector);
        Factor { value, is_left, axes, width, of_thread, is_along, vector, turns, kernel, early, is_copied }
    }

    /// Whether vectors of so many elements along the axis are single accesses of all loads that vary along it.
    pub(in crate::nest) fn is_vector(&self, value: ValueId, axis: AxisId, vector: u64) -> bool {
        let own = self.flat.axis(axis);
        if own.is_argument || !own.extent.is_multiple_of(vector) {
            return false;
        }
        let (kernel, lane) = (split_lanes(self.flat, Some(axis), vector as u32), self.lane());
        let mut emitter = Emitter::new(&kernel, Language::Cuda);
        emitter.multiples.insert(axis, vector as i64);
        let is_single = |index: &IndexExpr, dtype: DType| {
            let first = index.substitute(lane, &IndexExpr::zero(), &kernel.ranges());
            index.coefficient(lane) == Some(1)
                && vector * dtype.size() as u64 <= ACCESS_BYTES
                && emitter.alignment(&first, vector) == vector
        };
        let varies = |value: ValueId| kernel.value(value).axes.contains(&lane);
        kernel.down_from([value]).iter().all(|&id| match &kernel.value(id).op {
            ValueOp::Load { .. } if !varies(id) => true,
            ValueOp::Load { buffer, index, guard: None } => {
                kernel.computed_axes(index).is_empty()
                    && is_single(index, kernel.buffers[buffer.index()].dtype)
            }
            ValueOp::Load { .. } => false,
            _ => true,
        })
    }

    /// Elements from one line to the next in shared memory. A line is a term's: a vector more than there are, so that what the
    /// threads of a warp write together is in different banks also where their vectors go along the terms. Of matrices it goes
    /// where the vectors go, as long as it is.
    pub(in crate::nest) fn pitch(&self, factor: &Factor) -> u64 {
        match (self.schedule.unit, factor.is_along) {
            (Unit::Thread, true) if self.swaps(factor) => factor.width,
            (Unit::Thread, _) => factor.width + self.group(),
            (_, true) => self.deep(),
            (_, false) => factor.width,
        }
    }

    /// Whether chunks change places within a line, where lines that are a chunk longer would have what a warp writes along
    /// more than eight terms in few banks.
    pub(in crate::nest) fn swaps(&self, factor: &Factor) -> bool {
        self.schedule.unit == Unit::Thread && factor.is_along && self.deep() > 8 && !factor.is_copied
    }

    /// Elements of a factor's tile.
    pub(in crate::nest) fn tile_len(&self, factor: &Factor) -> u64 {
        match (self.schedule.unit, factor.is_along) {
            (Unit::Warp(_) | Unit::WarpGroup(_), true) => factor.width * self.pitch(factor),
            _ => self.deep() * self.pitch(factor),
        }
    }
}

/// Where the sums of a thread are: in each of some groups of rows there are some, and in each row some groups of columns.
pub(in crate::nest) struct Layout {
    /// Groups, and rows of each.
    pub(in crate::nest) rows: [u64; 2],
    /// Rows from group to group, and in a group.
    pub(in crate::nest) row_steps: [u64; 2],
    /// Rows from thread to thread.
    pub(in crate::nest) row_scale: u64,
    /// Groups of columns.
    pub(in crate::nest) columns: u64,
    /// Columns from group to group.
    pub(in crate::nest) column_step: u64,
    /// Columns of a group.
    pub(in crate::nest) lanes: u64,
    /// Sums from group to group of rows, from row to row, and from group to group of columns.
    pub(in crate::nest) sum_steps: [u64; 3],
}
