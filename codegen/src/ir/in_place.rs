//! Results that are written over an input: where that is the same program, and the kernel that does it.

use super::{BufferId, Kernel, Store, ValueId, ValueOp};
use crate::index::IndexExpr;

/// How a kernel reads an input of which each position reads one element.
struct OwnReads<'k> {
    index: &'k IndexExpr,
    /// The store before which all of it has been read.
    before: usize,
}

impl Kernel {
    /// Inputs that a pointwise schedule can write an output over, if nobody else needs them and the two are as long: each
    /// position reads there what it overwrites, and nothing else, and reads it before. The same of a scatter of few elements,
    /// which leaves positions as they are that nothing goes to.
    pub fn overwritable(&self) -> Vec<BufferId> {
        let (reads, without) = (self.own_reads(), self.without_scatters());
        let has_output = |input: &BufferId| {
            let read = reads[input.index()].as_ref();
            let goes_over = |read, store| self.goes_over(*input, read, store, without.as_ref());
            read.is_some_and(|read| (0..self.stores.len()).any(|store| goes_over(read, store)))
        };
        (0..self.buffers.len() as u32).map(BufferId).filter(has_output).collect()
    }

    /// Outputs to write over these inputs, each over another. `fits` says whether two are as long.
    pub fn pair_up(
        &self,
        inputs: &[BufferId],
        fits: impl Fn(BufferId, BufferId) -> bool,
    ) -> Vec<(BufferId, BufferId)> {
        let (reads, without) = (self.own_reads(), self.without_scatters());
        let mut left = inputs.to_vec();
        let mut pairs = Vec::new();
        // Later stores can take whatever earlier ones can, so that earlier ones choose first.
        for (number, store) in self.stores.iter().enumerate() {
            let can_take = |input: &BufferId| {
                let read = reads[input.index()].as_ref();
                let goes_over = |read| self.goes_over(*input, read, number, without.as_ref());
                read.is_some_and(goes_over) && fits(*input, store.buffer)
            };
            if let Some(position) = left.iter().position(can_take) {
                pairs.push((left.remove(position), store.buffer));
            }
        }
        pairs
    }

    /// What is stored without the kernel's scatters, if there are any.
    fn without_scatters(&self) -> Option<Kernel> {
        self.has_scatters().then(|| self.unscattered())
    }

    fn has_scatters(&self) -> bool {
        self.values.iter().any(|value| matches!(value.op, ValueOp::Scatter { .. }))
    }

    /// Whether a store leaves an element of a buffer where it is.
    fn leaves(&self, input: BufferId, store: &Store) -> bool {
        match &self.value(store.value).op {
            ValueOp::Load { buffer, index, guard: None } => *buffer == input && *index == store.index,
            _ => false,
        }
    }

    /// Whether a store leaves an element where it is, since its buffer is an input as well.
    pub(crate) fn leaves_in_place(&self, store: &Store) -> bool {
        let name = &self.buffers[store.buffer.index()].name;
        let mut inputs = (0..self.buffers.len() as u32).map(BufferId);
        inputs.any(|input| {
            let buffer = &self.buffers[input.index()];
            !buffer.is_output && buffer.name == *name && self.leaves(input, store)
        })
    }

    fn goes_over(&self, input: BufferId, read: &OwnReads, number: usize, without: Option<&Kernel>) -> bool {
        let store = &self.stores[number];
        // Statements follow the order of the stores: what a later store needs first is read too late.
        read.before <= number
            && self.buffers[input.index()].dtype == self.buffers[store.buffer.index()].dtype
            && *read.index == store.index
            && without.is_none_or(|without| without.leaves(input, &without.stores[number]))
    }

    /// Of each buffer, if it is read so.
    fn own_reads(&self) -> Vec<Option<OwnReads<'_>>> {
        let mut reads: Vec<Option<OwnReads>> = self.buffers.iter().map(|_| None).collect();
        let is_pointwise = self.axes.iter().all(|axis| axis.kind.is_map_or_offset());
        let is_other = |value: &super::Value| {
            matches!(
                value.op,
                ValueOp::Scan { .. }
                    | ValueOp::Carry { .. }
                    | ValueOp::Last { .. }
                    | ValueOp::Sort { .. }
                    | ValueOp::Reduce { .. }
            )
        };
        if !(is_pointwise || self.has_scatters()) || self.values.iter().any(is_other) {
            return reads;
        }
        let mut strays = vec![false; self.buffers.len()];
        for (value, first) in self.values.iter().zip(self.first_uses()) {
            let ValueOp::Load { buffer, index, guard } = &value.op else { continue };
            let read = reads[buffer.index()].get_or_insert(OwnReads { index, before: first });
            read.before = read.before.max(first);
            strays[buffer.index()] |= guard.is_some() || read.index != index;
        }
        reads.into_iter().zip(strays).map(|(read, strays)| read.filter(|_| !strays)).collect()
    }

    /// The first store that needs each value.
    fn first_uses(&self) -> Vec<usize> {
        let mut first = vec![usize::MAX; self.values.len()];
        for (number, store) in self.stores.iter().enumerate() {
            let mut pending: Vec<ValueId> = vec![store.value];
            while let Some(id) = pending.pop() {
                if first[id.index()] == usize::MAX {
                    first[id.index()] = number;
                    pending.extend(self.operands(&self.value(id).op));
                }
            }
        }
        first
    }

    /// The kernel whose outputs are written over inputs: the two are one buffer, and the output's parameter serves for
    /// both.
    pub fn written_over(&self, pairs: &[(BufferId, BufferId)]) -> Kernel {
        let mut kernel = self.clone();
        kernel.name.push_str("_in_place");
        for (input, output) in pairs {
            kernel.buffers[input.index()].name = self.buffers[output.index()].name.clone();
        }
        kernel
    }

    /// Whether an input is the buffer that an output is written to.
    pub(crate) fn is_written_over(&self, input: BufferId) -> bool {
        let buffer = &self.buffers[input.index()];
        !buffer.is_output && self.buffers.iter().any(|other| other.is_output && other.name == buffer.name)
    }
}
