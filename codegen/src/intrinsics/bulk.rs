//! Functions that copy whole tiles (`cp.async.bulk.tensor`, on sm_90): a text for each number of axes.

use std::fmt::Write;

/// What the positions are called: a tensor map has as many axes at most.
const POSITIONS: [&str; 5] = ["x", "y", "z", "u", "v"];

/// The functions of copies of tiles: a text for each number of axes.
pub(super) fn definitions() -> String {
    let mut text = include_str!("helpers/bulk.cuh").trim_end().to_string();
    for axes in 2..=POSITIONS.len() {
        let names = &POSITIONS[..axes];
        let parameters = names.iter().map(|name| format!("unsigned {name}, ")).collect::<String>();
        let places = (2..axes + 2).map(|n| format!("%{n}")).collect::<Vec<String>>().join(", ");
        let operands = names.iter().map(|name| format!("\"r\"({name}), ")).collect::<String>();
        // Writing to a String cannot fail.
        let _ = write!(
            text,
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
        );
    }
    text
}
