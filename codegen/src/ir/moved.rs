//! Elements of 16-bit floats that are only moved: their bits are, as integers of that size. Each is what it was, a NaN's payload
//! too, and nothing is widened or rounded on the way.

use super::{BufferId, Kernel, ValueId, ValueOp};
use crate::{DType, Scalar};

impl Kernel {
    /// Has buffers of 16-bit floats hold integers, if all that is loaded from them is stored to such buffers again, or is one of what
    /// is chosen among: a view, a join, a border, elements at other places.
    ///
    /// ```
    /// use lazuli_codegen::ir::Kernel;
    /// use lazuli_codegen::DType;
    ///
    /// let mut kernel: Kernel = "\
    /// kernel flip
    ///   map i0 < 1000
    ///   input in0: f16 [1000]
    ///   output out0: f16 [1000]
    ///   v0: f32 = load in0[999 - i0]
    ///   store out0[i0] = v0
    /// "
    /// .parse()?;
    /// kernel.move_bits();
    /// assert!(kernel.buffers.iter().all(|buffer| buffer.dtype == DType::I16));
    /// assert!(kernel.verify().is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn move_bits(&mut self) {
        for dtype in [DType::F16, DType::BF16] {
            self.move_bits_of(dtype);
        }
    }

    fn move_bits_of(&mut self, dtype: DType) {
        let is_of = |buffer: BufferId| self.buffers[buffer.index()].dtype == dtype;
        if !self.stores.iter().any(|store| is_of(store.buffer)) {
            return;
        }
        let moved = self.only_moved(dtype);
        for (value, _) in self.values.iter_mut().zip(&moved).filter(|(_, is_moved)| **is_moved) {
            value.dtype = DType::I16.compute();
            match &mut value.op {
                ValueOp::Load { buffer, .. } => self.buffers[buffer.index()].dtype = DType::I16,
                ValueOp::Literal(number) => *number = bits(*number, dtype),
                _ => {}
            }
        }
        for store in self.stores.iter().filter(|store| moved[store.value.index()]) {
            self.buffers[store.buffer.index()].dtype = DType::I16;
        }
    }

    /// Of each value, whether it is of this dtype, and nothing is done with it but that it is chosen and stored.
    fn only_moved(&self, dtype: DType) -> Vec<bool> {
        let mut moved: Vec<bool> = self.values.iter().map(|value| self.may_move(&value.op, dtype)).collect();
        // What a step of a loop gives to the next one is a carry there.
        self.recurrences.iter().for_each(|recurrence| moved[recurrence.next.index()] = false);
        // One that is used otherwise is not; nor is then what it is chosen for, or what else its buffer has.
        loop {
            let before = moved.clone();
            for (number, value) in self.values.iter().enumerate() {
                let chosen = match value.op {
                    ValueOp::Select(_, a, b) if moved[number] => vec![a, b],
                    _ => Vec::new(),
                };
                for operand in self.operands(&value.op) {
                    moved[operand.index()] &= chosen.contains(&operand);
                }
                moved[number] &= chosen.iter().all(|operand| moved[operand.index()]);
            }
            let mut is_kept: Vec<bool> = self.buffers.iter().map(|buffer| buffer.dtype != dtype).collect();
            let of_buffers = self.of_buffers();
            of_buffers.iter().for_each(|(buffer, id)| is_kept[buffer.index()] |= !moved[id.index()]);
            of_buffers.iter().for_each(|(buffer, id)| moved[id.index()] &= !is_kept[buffer.index()]);
            if moved == before {
                return moved;
            }
        }
    }

    /// What is loaded from buffers and stored to them.
    fn of_buffers(&self) -> Vec<(BufferId, ValueId)> {
        let loads = self.values.iter().enumerate().filter_map(|(number, value)| match value.op {
            ValueOp::Load { buffer, .. } => Some((buffer, ValueId(number as u32))),
            _ => None,
        });
        loads.chain(self.stores.iter().map(|store| (store.buffer, store.value))).collect()
    }

    /// Whether the value is an element of a buffer of this dtype, or what there may be in its place.
    fn may_move(&self, op: &ValueOp, dtype: DType) -> bool {
        match op {
            ValueOp::Load { buffer, .. } => self.buffers[buffer.index()].dtype == dtype,
            ValueOp::Literal(value) => value.dtype() == DType::F32,
            &ValueOp::Select(_, a, b) => {
                [a, b].iter().all(|&id: &ValueId| self.value(id).dtype == DType::F32)
            }
            _ => false,
        }
    }
}

/// The bits of a number as it is stored.
fn bits(value: Scalar, dtype: DType) -> Scalar {
    let bits = value.cast(dtype).to_bits() as i16;
    Scalar::from_i64(DType::I16, i64::from(bits))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The dtypes of the buffers after bits are moved.
    fn moved(text: &str) -> Vec<DType> {
        let mut kernel: Kernel = text.parse().unwrap();
        kernel.move_bits();
        assert!(kernel.verify().is_ok(), "{kernel}");
        kernel.buffers.iter().map(|buffer| buffer.dtype).collect()
    }

    #[test]
    fn what_is_chosen_among_is_moved_with_its_numbers() {
        let text = "\
kernel border
  map i0 < 100
  input in0: bf16 [90]
  input in1: bool [100]
  output out0: bf16 [100]
  v0: bool = in_bounds 0 <= i0 < 90
  v1: f32 = load in0[i0] if v0
  v2: f32 = literal 1.5
  v3: f32 = select v0 v1 v2
  v4: bool = load in1[i0]
  v5: f32 = literal -inf
  v6: f32 = select v4 v3 v5
  store out0[i0] = v6
";
        assert_eq!(moved(text), [DType::I16, DType::Bool, DType::I16]);
        let mut kernel: Kernel = text.parse().unwrap();
        kernel.move_bits();
        let literal = |id: usize| match kernel.values[id].op {
            ValueOp::Literal(value) => value.as_i64(),
            _ => panic!("no literal"),
        };
        assert_eq!([literal(2), literal(5)], [0x3fc0, i64::from(0xff80u16 as i16)]);
    }

    #[test]
    fn what_is_computed_with_is_not() {
        // One buffer is loaded twice, and one of the two is squared; the other buffer is only moved, but to the same result.
        let text = "\
kernel joined
  map i0 < 100
  input in0: f16 [100]
  input in1: f16 [100]
  input in2: f16 [100]
  output out0: f16 [100]
  output out1: f16 [100]
  output out2: f16 [100]
  v0: f32 = load in0[i0]
  v1: f32 = load in0[99 - i0]
  v2: f32 = square v0
  v3: f32 = load in1[i0]
  v4: bool = lt v0 v3
  v5: f32 = select v4 v1 v3
  v6: f32 = load in2[i0]
  store out0[i0] = v2
  store out1[i0] = v5
  store out2[i0] = v6
";
        let (kept, moved_too) = (DType::F16, DType::I16);
        assert_eq!(moved(text), [kept, kept, moved_too, kept, kept, moved_too]);
    }

    #[test]
    fn what_a_loop_carries_is_not() {
        let text = "\
kernel shifted
  map i0 < 100
  map i1 < 50
  input in0: f16 [5000]
  output out0: f16 [5000]
  output out1: f16 [5000]
  recurrence along i1: v1 becomes v2
  v0: f32 = literal 0.0
  v1: f32 = carry 0 of row i0 from v0
  v2: f32 = load in0[i0 * 50 + i1]
  store out0[i0 * 50 + i1] = v1
  store out1[i0 * 50 + i1] = v2
";
        assert_eq!(moved(text), [DType::F16; 3]);
    }

    #[test]
    fn other_dtypes_are_as_they_were() {
        let text = "\
kernel rounded
  map i0 < 100
  input in0: bf16 [100]
  output out0: f16 [100]
  output out1: f32 [100]
  v0: f32 = load in0[i0]
  store out0[i0] = v0
  store out1[i0] = v0
";
        assert_eq!(moved(text), [DType::BF16, DType::F16, DType::F32]);
    }
}
