//! How many consecutive elements a thread of a GPU takes at once.

use super::Plan;
use super::facts::{ACCESS_BYTES, MOST_KEPT_BYTES};
use crate::ReduceOp;
use crate::index::{AxisId, IndexExpr};
use crate::ir::{BufferId, Kernel, Store, Value, ValueId, ValueOp};

/// Bytes that a thread should have in flight: with 2,048 threads 64 KiB a multiprocessor.
const FLIGHT_BYTES: u64 = 32;

/// Elements of a row from which it pays to read what is aligned apart from what is not.
const LEAST_PEELED: u64 = 4096;

/// Sizes of elements along some axes. What does not vary along them, such as a row's label, says nothing of a vector.
#[derive(Default)]
pub(super) struct Sizes {
    /// Of each buffer that is read.
    loads: Vec<u64>,
    stores: Vec<u64>,
    /// The least of what is consecutive.
    narrowest: Option<u64>,
}

impl Sizes {
    pub(super) fn along(kernel: &Kernel, axes: &[AxisId]) -> Sizes {
        let size = |buffer: BufferId| kernel.buffers[buffer.index()].dtype.size() as u64;
        let is_consecutive =
            |index: &IndexExpr| axes.last().is_some_and(|&axis| index.coefficient(axis) == Some(1));
        let (mut seen, mut consecutive) = (Vec::new(), Vec::new());
        for value in kernel.values.iter().filter(|value| axes.iter().any(|axis| value.axes.contains(axis))) {
            let ValueOp::Load { buffer, index, .. } = &value.op else { continue };
            if !seen.contains(buffer) {
                seen.push(*buffer);
            }
            consecutive.extend(is_consecutive(index).then(|| size(*buffer)));
        }
        let stores = kernel.stores.iter().filter(|store| axes.iter().any(|axis| store.index.uses(*axis)));
        let stores: Vec<&Store> = stores.collect();
        consecutive.extend(
            stores.iter().filter(|store| is_consecutive(&store.index)).map(|store| size(store.buffer)),
        );
        Sizes {
            loads: seen.into_iter().map(size).collect(),
            stores: stores.into_iter().map(|store| size(store.buffer)).collect(),
            narrowest: consecutive.into_iter().min(),
        }
    }

    pub(super) fn of_loads(kernel: &Kernel, axes: &[AxisId]) -> Sizes {
        Sizes { stores: Vec::new(), ..Sizes::along(kernel, axes) }
    }

    /// Of the narrowest elements that are consecutive.
    pub(super) fn narrowest(&self) -> Option<u64> {
        self.narrowest
    }

    pub(super) fn widest(&self) -> u64 {
        self.loads.iter().chain(&self.stores).max().copied().unwrap_or(4)
    }

    /// Elements of a thread's vector: 16 bytes of the widest, and where that leaves a thread with few bytes to load, more, up
    /// to 16 bytes of the narrowest.
    pub(super) fn vector(&self) -> u64 {
        let loaded: u64 = self.loads.iter().sum();
        let all = loaded + self.stores.iter().sum::<u64>();
        let most = ACCESS_BYTES / self.narrowest.unwrap_or(self.widest());
        let mut vector = ACCESS_BYTES / self.widest();
        while vector < most && vector * loaded < FLIGHT_BYTES && 2 * vector * all <= MOST_KEPT_BYTES {
            vector *= 2;
        }
        vector
    }
}

/// Whether a load's elements along an axis are consecutive, from a place that is known before the pass.
pub(crate) fn is_of_rows(kernel: &Kernel, index: &IndexExpr, axis: AxisId) -> bool {
    let varies = |(_, value): &(AxisId, ValueId)| kernel.value(*value).axes.contains(&axis);
    index.coefficient(axis) == Some(1) && !kernel.computed_axes(index).iter().any(varies)
}

/// Whether rows whose length is no multiple of a vector are read in vectors all the same, with single elements before and
/// after: long rows along one axis, of which nothing is stored, that one pass is enough for.
pub(super) fn is_peeled(kernel: &Kernel, axes: &[AxisId], vector: u64) -> bool {
    let [axis] = *axes else { return false };
    let own = kernel.axis(axis);
    let is_odd = !own.is_argument && !own.extent.is_multiple_of(vector) && own.extent >= LEAST_PEELED;
    let is_load = |value: &Value| matches!(&value.op, ValueOp::Load { index, guard: None, .. } if is_of_rows(kernel, index, axis));
    // Kept rows find deviations without a division an element.
    let deviates =
        |value: &Value| matches!(value.op, ValueOp::Reduce { op: ReduceOp::SquaredDeviations, .. });
    is_odd
        && kernel.values.iter().any(is_load)
        && !kernel.values.iter().any(deviates)
        && !kernel.stores.iter().any(|store| store.index.uses(axis))
        && Plan::new(kernel).is_ok_and(|plan| plan.passes.len() == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vector of what is loaded and stored along an axis, by the sizes of its elements.
    fn vector(loads: &[u64], stores: &[u64]) -> u64 {
        let narrowest = loads.iter().chain(stores).min().copied();
        Sizes { loads: loads.to_vec(), stores: stores.to_vec(), narrowest }.vector()
    }

    #[test]
    fn a_thread_has_enough_bytes_in_flight_and_not_too_many() {
        assert_eq!(vector(&[4], &[4]), 4);
        assert_eq!(vector(&[2], &[2]), 8);
        assert_eq!(vector(&[1], &[4]), 16); // bytes to floats: 16 bytes loaded, 64 stored
        assert_eq!(vector(&[4], &[2]), 8); // floats to 16 bits
        assert_eq!(vector(&[4, 1], &[4]), 8); // a mask
        assert_eq!(vector(&[4, 4, 4, 4], &[4, 4, 4, 2]), 4); // an optimiser's state: 64 bytes loaded already
        assert_eq!(vector(&[], &[4]), 4);
    }

    #[test]
    fn what_does_not_vary_or_is_apart_says_nothing_of_the_width() {
        // Logits of 16 bits with a label a row, and bytes of three channels that become planes of floats.
        let text = "\
kernel k
  map i0 < n_i0 = 64
  map i1 < 1024
  input in0: bf16 [65536]
  input in1: i64 [64]
  input in2: u8 [196608]
  output out0: bf16 [65536]
  output out1: f32 [65536]
  v0: f32 = load in0[i0 * 1024 + i1]
  v1: i64 = load in1[i0]
  v2: f32 = cast v1 to f32
  v3: f32 = add v0 v2
  v4: u8 = load in2[i0 * 3072 + i1 * 3]
  v5: f32 = cast v4 to f32
  store out0[i0 * 1024 + i1] = v3
  store out1[i0 * 1024 + i1] = v5
";
        let kernel: Kernel = text.parse().unwrap_or_else(|error| panic!("{error}"));
        let sizes = Sizes::along(&kernel, &[AxisId(1)]);
        assert_eq!((sizes.loads.as_slice(), sizes.stores.as_slice()), (&[2, 1][..], &[2, 4][..]));
        assert_eq!(sizes.narrowest, Some(2));
    }
}
