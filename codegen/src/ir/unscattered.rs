//! What a kernel with scatters stores at positions that no element goes to.

use super::{AxisSet, Kernel, Value, ValueId, ValueOp};
use crate::{DType, Scalar};

impl Kernel {
    /// The kernel with nothing to scatter: each scatter is what nothing combines to, and what follows from that alone is known.
    /// Values keep their numbers.
    pub(crate) fn unscattered(&self) -> Kernel {
        let mut kernel = self.clone();
        for number in 0..kernel.values.len() {
            let value = &kernel.values[number];
            let known = match &value.op {
                ValueOp::Scatter { op, .. } => Some(op.identity(value.dtype)),
                ValueOp::Unary(op, a) => kernel.exact(*a).and_then(|a| op.apply(a)),
                ValueOp::Binary(op, a, b) => match (kernel.exact(*a), kernel.exact(*b)) {
                    (Some(a), Some(b)) => op.apply(a, b),
                    _ => None,
                },
                ValueOp::Cast(to, a) if to.compute() == *to => kernel.exact(*a).map(|a| a.cast(*to)),
                _ => None,
            };
            let chosen = match value.op {
                ValueOp::Select(condition, a, b) => {
                    kernel.exact(condition).map(|holds| if holds.is_nonzero() { a } else { b })
                }
                _ => None,
            };
            if let Some(chosen) = chosen {
                kernel.values[number] = kernel.value(chosen).clone();
            } else if let Some(known) = known {
                let (op, axes) = (ValueOp::Literal(known), AxisSet::default());
                kernel.values[number] = Value { op, dtype: value.dtype, axes };
            }
        }
        kernel
    }

    /// A literal of integers or truths: what is computed from these has the same bits everywhere.
    fn exact(&self, id: ValueId) -> Option<Scalar> {
        match self.value(id).op {
            ValueOp::Literal(scalar) if scalar.dtype().is_int() || scalar.dtype() == DType::Bool => {
                Some(scalar)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(text: &str) -> ValueOp {
        let kernel: Kernel = text.parse().unwrap();
        let kernel = kernel.unscattered();
        kernel.value(kernel.stores[0].value).op.clone()
    }

    #[test]
    fn what_is_put_nowhere_leaves_what_is_there() {
        let stored = stored(
            "\
kernel last
  map i0 < 300
  reduce r0 < 4
  input in0: i64 [4]
  input in1: f32 [4]
  input in2: f32 [300]
  output out0: f32 [300]
  computed g0 < 4 is v6 check 1
  v0: i64 = load in0[r0]
  v1: i64 = position r0
  v2: i64 = scatter max over r0 of v1 to i0 at v0 check 0
  v3: i64 = literal 0
  v4: bool = ge v2 v3
  v5: f32 = load in2[i0]
  v6: i64 = maximum v2 v3
  v7: f32 = load in1[g0]
  v8: f32 = select v4 v7 v5
  store out0[i0] = v8
",
        );
        assert!(matches!(stored, ValueOp::Load { buffer, .. } if buffer.index() == 2), "{stored:?}");
    }

    #[test]
    fn sums_of_nothing_are_added() {
        // -0 + 0 is 0: the sum stays.
        let stored = stored(
            "\
kernel add
  map i0 < 300
  reduce r0 < 4
  input in0: i64 [4]
  input in1: f32 [4]
  input in2: f32 [300]
  output out0: f32 [300]
  v0: i64 = load in0[r0]
  v1: f32 = load in1[r0]
  v2: f32 = scatter sum over r0 of v1 to i0 at v0 check 0
  v3: f32 = load in2[i0]
  v4: f32 = add v3 v2
  store out0[i0] = v4
",
        );
        assert!(matches!(stored, ValueOp::Binary(crate::BinaryOp::Add, ..)), "{stored:?}");
    }
}
