//! Value numbering: a kernel under construction that has each value once.

use rustc_hash::FxHashMap;

use smallvec::SmallVec;

use super::{Kernel, ValueId, ValueOp};
use crate::index::{Bound, BoundTruth};
use crate::{DType, Scalar};

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

    /// Adds an operation whose condition may be known by now.
    pub(crate) fn decided(&mut self, op: ValueOp, dtype: DType) -> ValueId {
        let truth = |kernel: &Kernel, id: ValueId| match kernel.value(id).op {
            ValueOp::Literal(scalar) => Some(scalar.as_f64() != 0.0),
            _ => None,
        };
        match op {
            ValueOp::InBounds(bounds) => {
                let ranges = self.kernel.ranges();
                let truths: Vec<BoundTruth> = bounds.iter().map(|bound| bound.simplify(&ranges)).collect();
                let is_never = truths.contains(&BoundTruth::Never);
                let open: SmallVec<[Bound; 2]> = truths
                    .into_iter()
                    .filter_map(|truth| match truth {
                        BoundTruth::Depends(bound) => Some(bound),
                        BoundTruth::Always | BoundTruth::Never => None,
                    })
                    .collect();
                match is_never || open.is_empty() {
                    true => self.add(ValueOp::Literal(Scalar::from_bool(!is_never)), DType::Bool),
                    false => self.add(ValueOp::InBounds(open), dtype),
                }
            }
            ValueOp::Load { buffer, index, guard: Some(guard) } => match truth(&self.kernel, guard) {
                Some(true) => self.add(ValueOp::Load { buffer, index, guard: None }, dtype),
                Some(false) => self.add(ValueOp::Literal(Scalar::from_i64(dtype, 0)), dtype),
                None => self.add(ValueOp::Load { buffer, index, guard: Some(guard) }, dtype),
            },
            ValueOp::Select(condition, a, b) => match truth(&self.kernel, condition) {
                Some(holds) => {
                    if holds {
                        a
                    } else {
                        b
                    }
                }
                None => self.add(ValueOp::Select(condition, a, b), dtype),
            },
            op => self.add(op, dtype),
        }
    }
}
