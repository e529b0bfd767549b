//! Value numbering: a kernel under construction that has each value once.

use rustc_hash::FxHashMap;

use super::{Kernel, ValueId, ValueOp};
use crate::DType;

pub(crate) struct Numbered {
    pub(crate) kernel: Kernel,
    known: FxHashMap<(ValueOp, DType), ValueId>,
}

impl Numbered {
    /// The axes and buffers of a kernel, without values and stores.
    pub(crate) fn like(kernel: &Kernel) -> Numbered {
        let kernel = Kernel { values: Vec::new(), stores: Vec::new(), ..kernel.clone() };
        Numbered { kernel, known: FxHashMap::default() }
    }

    pub(crate) fn add(&mut self, op: ValueOp, dtype: DType) -> ValueId {
        let Numbered { kernel, known } = self;
        *known.entry((op, dtype)).or_insert_with_key(|(op, _)| kernel.add(op.clone(), dtype))
    }
}
