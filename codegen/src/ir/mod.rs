//! A kernel as an algorithm without a schedule: named axes, values that vary over sets of axes, and
//! stores.
//!
//! Invariants (see [`verify`](Kernel::verify)): operands precede their users; every view of the graph
//! has become part of an index expression; a value's axes are those of its operands and index
//! expressions, less the ones that a `Reduce` combines or a `Last` is the end of; only outputs are stored to, each element once.

mod build;
mod computed;
mod in_place;
mod memory_order;
mod merge;
mod moved;
mod numbered;
mod numbers;
mod parse;
mod parts;
mod recurrence;
mod text;
mod unroll;
mod unscattered;
mod verify;

use std::collections::BTreeSet;

pub(crate) use numbered::Numbered;
pub use recurrence::Recurrence;
use smallvec::SmallVec;

use crate::index::{AxisId, AxisRanges, Bound, IndexExpr};
use crate::{BinaryOp, DType, ReduceOp, Scalar, UnaryOp};

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident),*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub struct $name(pub u32);
        impl $name {
            /// Position in the kernel's list.
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    )*};
}
ids! {
    /// A [`Value`] of a [`Kernel`].
    ValueId,
    /// A [`Buffer`] parameter of a [`Kernel`].
    BufferId,
    /// An [`Argument`] of a [`Kernel`].
    ArgumentId,
    /// A [`Recurrence`] of a [`Kernel`].
    RecurrenceId
}

/// The axes that a value varies over.
pub type AxisSet = BTreeSet<AxisId>;

/// Whether an axis enumerates results or is combined away.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum AxisKind {
    /// Every position has its own result.
    Map,
    /// Positions are combined by a `Reduce`.
    Reduce,
    /// No loop: there is one position, which a value says; see [`Kernel::add_computed_axis`].
    Computed {
        /// An `I64`.
        value: ValueId,
        /// What is noted where the value is no position: this number, and the value. None of a value that always is one.
        check: Option<u32>,
    },
    /// No loop: there is one position, which the launch says; see [`Kernel::add_offset`].
    Offset {
        /// Which of the numbers of whoever launches it; no part of the text.
        number: u32,
    },
}

impl AxisKind {
    /// Whether index expressions that have no other axes vary over results alone.
    pub(crate) fn is_map_or_offset(self) -> bool {
        matches!(self, AxisKind::Map | AxisKind::Offset { .. })
    }
}

/// One dimension of the iteration space.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Axis {
    /// The name in dumps and sources: `i0`, `i1`, … for `Map`, `r0`, … for `Reduce`, `g0`, … for `Computed`,
    /// `o0`, … for `Offset`.
    pub name: String,
    /// What its positions are.
    pub kind: AxisKind,
    /// How many positions this launch has.
    pub extent: u64,
    /// Whether the extent is a kernel argument instead of text.
    pub is_argument: bool,
    /// If a schedule has made it of several axes, of which the outermost has an argument as its extent: that axis, and how many
    /// positions the others have.
    pub positions_of: Option<(AxisId, u64)>,
    /// Whether a schedule has made it of another one's neighbours, as the lanes of a vector.
    pub is_lane: bool,
}

/// A buffer parameter.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Buffer {
    /// The name in the source: `in0`, `out0`.
    pub name: String,
    /// The element type in memory.
    pub dtype: DType,
    /// How many elements it has in this launch.
    pub elements: u64,
    /// Whether the kernel writes it.
    pub is_output: bool,
}

/// A scalar parameter, with its value in this launch.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Argument {
    /// The name in the source: `c0`, `seed0`.
    pub name: String,
    /// The value; its dtype is a compute dtype.
    pub value: Scalar,
}

/// What a value is.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum ValueOp {
    /// An element of a buffer, converted to the compute dtype; 0 and no access where the guard (an
    /// `InBounds`) is false.
    Load {
        /// Which buffer.
        buffer: BufferId,
        /// The element.
        index: IndexExpr,
        /// When to read it.
        guard: Option<ValueId>,
    },
    /// A constant that is part of the text.
    Literal(Scalar),
    /// A scalar parameter.
    Argument(ArgumentId),
    /// An index as an `I64`.
    Position(IndexExpr),
    /// Whether all the bounds hold.
    InBounds(SmallVec<[Bound; 2]>),
    /// A uniform random number of the seed (an `I64` argument) and the element index.
    Random {
        /// The seed.
        seed: ArgumentId,
        /// The element's number in the random tensor.
        index: IndexExpr,
    },
    /// A pointwise operation.
    Unary(UnaryOp, ValueId),
    /// A pointwise operation on two values of one dtype.
    Binary(BinaryOp, ValueId, ValueId),
    /// `condition ? a : b`.
    Select(ValueId, ValueId, ValueId),
    /// Conversion; to a 16-bit float it rounds and stays an `F32`.
    Cast(DType, ValueId),
    /// The operands of all positions along a map axis up to this one, combined.
    Scan {
        /// How.
        op: ReduceOp,
        /// Along which axis; it is never merged with another.
        axis: AxisId,
        /// Whether it goes from the last position to the first.
        reverse: bool,
        /// Whether the position itself is left out.
        exclusive: bool,
        /// What.
        operand: ValueId,
    },
    /// What a recurrence's step finds: at the first position the init, which does not vary along its axis, and then
    /// what the step before gave.
    Carry {
        /// Whose.
        recurrence: RecurrenceId,
        /// What it begins as.
        init: ValueId,
        /// The number of the loop among those of all positions of the other axes.
        row: IndexExpr,
    },
    /// What the last step gives to nobody: one value for each loop.
    Last {
        /// The recurrence's carry.
        carry: ValueId,
    },
    /// At each position of a map axis, the operands of those positions along a reduce axis combined whose index says
    /// this one.
    Scatter {
        /// How; not by squared deviations.
        op: ReduceOp,
        /// The map axis; it is never merged with another.
        axis: AxisId,
        /// The reduce axis; neither is it.
        over: AxisId,
        /// An `I64`.
        index: ValueId,
        /// What is noted where the index is no position of the map axis: this number, and the index.
        check: u32,
        /// What.
        operand: ValueId,
    },
    /// At each position of a map axis, the operand that is there if those of all positions of a reduce axis are in order:
    /// equal ones by their positions, -0 equals 0, NaN above all numbers.
    Sort {
        /// The map axis, which may have fewer positions than there are operands; it is never merged with another.
        axis: AxisId,
        /// The reduce axis; neither is it.
        over: AxisId,
        /// Whether the largest comes first.
        descending: bool,
        /// Whether the result is where the operand comes from, an `I64`.
        is_position: bool,
        /// What.
        operand: ValueId,
    },
    /// The operand combined over the axes.
    Reduce {
        /// How.
        op: ReduceOp,
        /// Over which axes.
        axes: SmallVec<[AxisId; 4]>,
        /// What.
        operand: ValueId,
        /// Where the operand is, if the result is a position: an `I64` that grows along the axes, from 0 on.
        position: Option<ValueId>,
    },
}

impl ValueOp {
    /// Whether it is computed of its operands' values at the same position, and of nothing else.
    pub(crate) fn is_elementwise(&self) -> bool {
        matches!(self, ValueOp::Unary(..) | ValueOp::Binary(..) | ValueOp::Select(..) | ValueOp::Cast(..))
    }
}

/// A value of the algorithm: one for every position of its axes.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Value {
    /// What it is.
    pub op: ValueOp,
    /// Its compute dtype.
    pub dtype: DType,
    /// What it varies over.
    pub axes: AxisSet,
}

/// `buffer[index] = value`, for every position of the value's and the index's axes.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Store {
    /// An output buffer.
    pub buffer: BufferId,
    /// The element.
    pub index: IndexExpr,
    /// What is stored, converted to the buffer's dtype.
    pub value: ValueId,
}

/// An algorithm over an iteration space; a [`Schedule`](crate::schedule::Schedule) says how it runs.
///
/// ```
/// use lazuli_codegen::index::IndexExpr;
/// use lazuli_codegen::ir::{AxisKind, Kernel, ValueOp};
/// use lazuli_codegen::{DType, UnaryOp};
///
/// let mut kernel = Kernel::new("relu");
/// let i = kernel.add_axis(AxisKind::Map, 1000, true);
/// let input = kernel.add_input(DType::F32, 1000);
/// let output = kernel.add_output(DType::F32, 1000);
/// let x = kernel.load(input, IndexExpr::axis(i), None);
/// let y = kernel.unary(UnaryOp::Relu, x);
/// kernel.store(output, IndexExpr::axis(i), y);
/// assert!(kernel.verify().is_ok());
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Kernel {
    /// The function's name.
    pub name: String,
    /// The iteration space; an [`AxisId`] is a position here.
    pub axes: Vec<Axis>,
    /// Buffer parameters: inputs, then outputs, in the order of the function's parameters.
    pub buffers: Vec<Buffer>,
    /// Scalar parameters, after the buffers.
    pub arguments: Vec<Argument>,
    /// Values, operands first.
    pub values: Vec<Value>,
    /// What the steps of loops give to each other.
    pub recurrences: Vec<Recurrence>,
    /// What the kernel writes.
    pub stores: Vec<Store>,
}

impl Kernel {
    /// The axis and the direction of scans and recurrences, in the order in which these come up.
    pub fn scan_axes(&self) -> impl Iterator<Item = (AxisId, bool)> + '_ {
        let scans = self.values.iter().filter_map(|value| match value.op {
            ValueOp::Scan { axis, reverse, .. } => Some((axis, reverse)),
            _ => None,
        });
        scans.chain(self.recurrences.iter().map(|recurrence| (recurrence.axis, recurrence.reverse)))
    }
    /// The value with this id.
    pub fn value(&self, id: ValueId) -> &Value {
        &self.values[id.index()]
    }

    /// The axis with this id.
    pub fn axis(&self, id: AxisId) -> &Axis {
        &self.axes[id.0 as usize]
    }

    /// The name of an axis's extent.
    pub fn extent_name(&self, id: AxisId) -> String {
        format!("n_{}", self.axis(id).name)
    }

    /// The ids of all axes of a kind, outermost first.
    pub fn axes_of_kind(&self, kind: AxisKind) -> Vec<AxisId> {
        (0..self.axes.len() as u32).map(AxisId).filter(|&id| self.axis(id).kind == kind).collect()
    }

    /// The ranges of the axes, for simplification; those passed as arguments count as unbounded, so
    /// that the text holds for every extent.
    pub fn ranges(&self) -> AxisRanges {
        let mut ranges = AxisRanges::new();
        for (number, axis) in self.axes.iter().enumerate() {
            match axis.is_argument {
                true => ranges.set_unbounded(AxisId(number as u32)),
                false => ranges.set(AxisId(number as u32), axis.range()),
            }
        }
        ranges
    }

    /// The ranges of the axes in this launch.
    pub fn launch_ranges(&self) -> AxisRanges {
        let mut ranges = AxisRanges::new();
        for (number, axis) in self.axes.iter().enumerate() {
            ranges.set(AxisId(number as u32), axis.extent);
        }
        ranges
    }

    /// The axes of a value that is `op`.
    fn axes_of(&self, op: &ValueOp) -> AxisSet {
        let mut axes = AxisSet::new();
        for operand in self.operands(op) {
            axes.extend(&self.value(operand).axes);
        }
        for index in op.indices() {
            let has_positions = |&axis: &AxisId| self.computed_by(axis).is_none() && !self.is_offset(axis);
            axes.extend(index.axes().into_iter().filter(has_positions));
        }
        match op {
            ValueOp::Reduce { axes: reduced, .. } => axes.retain(|axis| !reduced.contains(axis)),
            // Loops at every position define these, also where what they follow from is the same.
            ValueOp::Scan { .. } => axes.extend(self.axes_of_kind(AxisKind::Map)),
            ValueOp::Carry { recurrence, .. } => {
                axes.extend(self.recurrences.get(recurrence.index()).map(|recurrence| recurrence.axis));
            }
            ValueOp::Last { carry } => {
                let along = self.axis_of_carry(*carry);
                axes.retain(|&axis| Some(axis) != along);
            }
            ValueOp::Scatter { over, .. } | ValueOp::Sort { over, .. } => {
                axes.remove(over);
                axes.extend(self.axes_of_kind(AxisKind::Map));
            }
            _ => {}
        }
        axes
    }

    /// These values and all that they follow from, ascending.
    pub(crate) fn down_from(&self, roots: impl IntoIterator<Item = ValueId>) -> Vec<ValueId> {
        self.down_to(roots, &[])
    }

    /// The same, but nothing that only values follow from that are there already.
    pub(crate) fn down_to(
        &self,
        roots: impl IntoIterator<Item = ValueId>,
        there: &[ValueId],
    ) -> Vec<ValueId> {
        let mut is_below = vec![false; self.values.len()];
        let mut pending: Vec<ValueId> = roots.into_iter().collect();
        while let Some(id) = pending.pop() {
            if !std::mem::replace(&mut is_below[id.index()], true) && !there.contains(&id) {
                pending.extend(self.operands(&self.value(id).op));
            }
        }
        (0..self.values.len() as u32).map(ValueId).filter(|id| is_below[id.index()]).collect()
    }

    /// Replaces every index expression, and works out the values' axes anew.
    pub fn map_indices(&mut self, mut replace: impl FnMut(&IndexExpr) -> IndexExpr) {
        self.map_indices_if(|_| true, &mut replace);
        for store in &mut self.stores {
            store.index = replace(&store.index);
        }
    }

    /// Replaces the index expressions of some values, and finds the axes of all anew.
    pub(crate) fn map_indices_if(
        &mut self,
        is_one: impl Fn(ValueId) -> bool,
        mut replace: impl FnMut(&IndexExpr) -> IndexExpr,
    ) {
        for number in 0..self.values.len() {
            if is_one(ValueId(number as u32)) {
                let indices = self.values[number].op.indices_mut();
                indices.into_iter().for_each(|index| *index = replace(index));
            }
            self.values[number].axes = self.axes_of(&self.values[number].op);
        }
    }

    /// Finds the axes of all values anew.
    fn find_axes(&mut self) {
        self.map_indices_if(|_| false, IndexExpr::clone);
    }

    /// How many values, stores and next steps use each value.
    pub fn use_counts(&self) -> Vec<usize> {
        let mut counts = vec![0; self.values.len()];
        for value in &self.values {
            for operand in self.operands(&value.op) {
                counts[operand.index()] += 1;
            }
        }
        let stored = self.stores.iter().map(|store| store.value);
        for value in stored.chain(self.recurrences.iter().map(|recurrence| recurrence.next)) {
            counts[value.index()] += 1;
        }
        counts
    }
}
