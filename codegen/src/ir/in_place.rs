//! Results that are written over an input: where that is the same program, and the kernel that does it.

use super::{AxisKind, BufferId, Kernel, ValueId, ValueOp};

impl Kernel {
    /// Inputs that an output of a pointwise schedule can be written over, if nobody else needs them: each position
    /// reads there what it overwrites, and nothing else, and reads it before. The inputs may still be of other
    /// lengths than the outputs.
    pub fn overwritable(&self) -> Vec<(BufferId, BufferId)> {
        let is_pointwise = self.axes.iter().all(|axis| axis.kind == AxisKind::Map)
            && !self.values.iter().any(|value| matches!(value.op, ValueOp::Scan { .. }));
        if !is_pointwise {
            return Vec::new();
        }
        let first_use = self.first_uses();
        let mut pairs = Vec::new();
        for (number, store) in self.stores.iter().enumerate() {
            for (input, buffer) in self.buffers.iter().enumerate().filter(|(_, buffer)| !buffer.is_output) {
                let input = BufferId(input as u32);
                let mut is_read = false;
                let is_own = self.values.iter().zip(&first_use).all(|(value, &first)| match &value.op {
                    ValueOp::Load { buffer, index, guard } if *buffer == input => {
                        is_read = true;
                        // Statements follow the order of the stores: what a later store needs first is read too late.
                        *index == store.index && guard.is_none() && first <= number
                    }
                    _ => true,
                });
                if is_own && is_read && buffer.dtype == self.buffers[store.buffer.index()].dtype {
                    pairs.push((input, store.buffer));
                }
            }
        }
        pairs
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
