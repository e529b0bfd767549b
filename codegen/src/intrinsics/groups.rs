//! Products of matrices in shared memory that four warps carry out while they go on (`wgmma`, on sm_90 alone).

use std::fmt::Write;

use super::Helpers;
use crate::{DType, Language};

/// Columns of such a product.
const COLUMNS: [u32; 3] = [64, 128, 256];

/// Operands in a line of text.
const IN_LINE: u32 = 8;

/// A call that begins to add the product of two matrices in shared memory to a group's sums (CUDA).
pub fn multiply_group(
    columns: u32,
    dtype: DType,
    turned: [bool; 2],
    arguments: &[&str],
    helpers: &mut Helpers,
) -> String {
    helpers.call(Language::Cuda, &name(columns, dtype, turned), arguments)
}

/// A call of what comes before or behind such products: `publish`, `begin`, `commit`, or `await_but_` so many.
pub fn products(step: &str, helpers: &mut Helpers) -> String {
    helpers.call(Language::Cuda, &format!("lz_products_{step}"), &[])
}

fn name(columns: u32, dtype: DType, turned: [bool; 2]) -> String {
    let turned = match turned {
        [false, false] => "",
        [true, false] => "_turned_left",
        [false, true] => "_turned_right",
        [true, true] => "_turned",
    };
    format!("lz_multiply_group_{columns}_{dtype}{turned}")
}

/// The functions that the calls are of.
pub(super) fn definitions() -> String {
    let mut text = include_str!("helpers/groups.cuh").trim_end().to_string();
    for columns in COLUMNS {
        for dtype in [DType::F16, DType::BF16] {
            for turned in [[false, false], [true, false], [false, true], [true, true]] {
                text.push_str("\n\n");
                text.push_str(&definition(columns, dtype, turned));
            }
        }
    }
    text
}

fn definition(columns: u32, dtype: DType, turned: [bool; 2]) -> String {
    let sums = columns / 2;
    let lines = |item: &dyn Fn(u32) -> String, around: &dyn Fn(String, bool) -> String| {
        let mut text = String::new();
        for first in (0..sums).step_by(IN_LINE as usize) {
            let items: Vec<String> = (first..first + IN_LINE).map(item).collect();
            // Writing to a String cannot fail.
            let _ = writeln!(text, "        {}", around(items.join(", "), first + IN_LINE == sums));
        }
        text
    };
    let operands = lines(&|n| format!("%{n}"), &|items, is_last| {
        format!("\"{items}{}\"", if is_last { "" } else { ", " })
    });
    let outputs = lines(&|n| format!("\"+f\"(sums[{n}])"), &|items, is_last| {
        format!("{items}{}", if is_last { "" } else { "," })
    });
    let [left, right] = turned.map(u32::from);
    format!(
        "\
// sums (64 × {columns}) += left (64 × 16) * right (16 × {columns}), of lines in shared memory, begun by four warps together.
void {name}(float* sums, const unsigned short* left, const unsigned short* right) {{
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    asm volatile(\"{{ .reg .pred p; setp.ne.b32 p, 1, 0; wgmma.mma_async.sync.aligned.m64n{columns}k16.f32.{dtype}.{dtype} {{\"
{operands}        \"}}, %{sums}, %{next}, p, 1, 1, {left}, {right}; }}\" :
{outputs}        : \"l\"(lz_lines(left)), \"l\"(lz_lines(right)));
#else
    lz_add_lines_{dtype}(sums, left, right, {columns}, {left}, {right});
#endif
}}",
        name = name(columns, dtype, turned),
        next = sums + 1,
    )
}
