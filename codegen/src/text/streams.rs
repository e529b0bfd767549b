//! Results larger than a cache, in C: stored around the caches, which would read each line before it is written, and give
//! up what is read next for it.

use std::collections::BTreeMap;

use crate::ir::BufferId;
use crate::nest::{Nest, Parameter};

/// What results of this many bytes in a launch exceed: the last-level cache that one program can have of most processors.
const LARGE: u64 = 32 << 20;

/// Whether the results of a launch are large, in C; `None` if they never are.
pub(super) fn condition(nest: &Nest) -> Option<String> {
    let kernel = &nest.kernel;
    let is_input = |number: usize| kernel.is_written_over(BufferId(number as u32));
    // What is written over is in a cache, since it was read just now.
    if (0..kernel.buffers.len()).any(is_input) {
        return None;
    }
    // Bytes by the arguments that they are a multiple of.
    let mut bytes: BTreeMap<String, u64> = BTreeMap::new();
    for store in &kernel.stores {
        let mut names = Vec::new();
        let mut own = kernel.buffers[store.buffer.index()].dtype.size() as u64;
        for axis in store.index.axes().into_iter().filter(|&axis| !kernel.is_offset(axis)) {
            match nest.parameters.contains(&Parameter::Extent(axis)) {
                true => names.push(kernel.extent_name(axis)),
                false => own = own.saturating_mul(kernel.axis(axis).extent),
            }
        }
        let sum = bytes.entry(names.join(" * ")).or_default();
        *sum = sum.saturating_add(own);
    }
    let constant = bytes.remove("").unwrap_or(0);
    if bytes.is_empty() {
        return (constant >= LARGE).then(|| "1".to_string());
    }
    let mut terms: Vec<String> = bytes.iter().map(|(names, factor)| format!("{names} * {factor}")).collect();
    if constant > 0 {
        terms.push(constant.to_string());
    }
    Some(format!("{} >= {LARGE}", terms.join(" + ")))
}
