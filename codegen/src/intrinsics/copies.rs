//! Copies from memory to shared memory that are on their way while a thread goes on.

use super::Helpers;
use crate::Language;
use crate::schedule::MOST_MAPPED;

/// A call that begins a copy of 4, 8 or 16 bytes, or of as many zeros where a condition does not hold (CUDA).
pub fn begin_copy(bytes: u64, [to, from, condition]: [&str; 3], helpers: &mut Helpers) -> String {
    helpers.call(Language::Cuda, &format!("lz_begin_copy_{bytes}"), &[to, from, condition])
}

/// A call that makes a group of the copies that have been begun (CUDA).
pub fn commit_copies(helpers: &mut Helpers) -> String {
    helpers.call(Language::Cuda, "lz_commit_copies", &[])
}

/// A call that waits for all groups of copies but the last few (CUDA).
pub fn await_copies(but: u32, helpers: &mut Helpers) -> String {
    helpers.call(Language::Cuda, &format!("lz_await_copies_but_{but}"), &[])
}

/// A call that begins to copy a tile, of the map's axes from these positions on (CUDA).
pub fn begin_tile(axes: usize, arguments: &[&str], helpers: &mut Helpers) -> String {
    helpers.call(Language::Cuda, &format!("lz_begin_tile_{axes}"), arguments)
}

/// A call about what is to arrive of such copies: `expect`, or `await` (CUDA).
pub fn tiles(step: &str, arguments: &[&str], helpers: &mut Helpers) -> String {
    helpers.call(Language::Cuda, &format!("lz_{step}_tiles"), arguments)
}

/// The functions of copies of tiles: a text for each number of axes.
pub(super) fn definitions() -> String {
    let mut text = include_str!("helpers/bulk.cuh").trim_end().to_string();
    for axes in 2..=MOST_MAPPED {
        let names = &["x", "y", "z", "u", "v"][..axes];
        let parameters = names.iter().map(|name| format!("unsigned {name}, ")).collect::<String>();
        let places = (2..axes + 2).map(|n| format!("%{n}")).collect::<Vec<String>>().join(", ");
        let operands = names.iter().map(|name| format!("\"r\"({name}), ")).collect::<String>();
        text.push_str(&format!(
            "

// Begins to copy a tile, which arrives in a round of its slot.
void lz_begin_tile_{axes}(unsigned short* to, const lz_tensor_map* map, {parameters}long long* arrived, unsigned bytes) {{
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    unsigned at = (unsigned)__cvta_generic_to_shared(to), slot = (unsigned)__cvta_generic_to_shared(arrived);
    asm volatile(\"mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\" :: \"r\"(slot), \"r\"(bytes) : \"memory\");
    asm volatile(\"cp.async.bulk.tensor.{axes}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {{{places}}}], [%{slot}];\" :: \"r\"(at), \"l\"(map), {operands}\"r\"(slot) : \"memory\");
#endif
}}",
            slot = axes + 2
        ));
    }
    text
}
