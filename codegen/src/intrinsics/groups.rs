//! Products of matrices in shared memory that four warps carry out while they go on (`wgmma`, on sm_90 alone).

use std::fmt::Write;

use super::Helpers;
use crate::nest::stmt::Lines;
use crate::{DType, Language};

/// Columns of such a product.
const COLUMNS: [u32; 3] = [64, 128, 256];

/// Operands in a line of text.
const IN_LINE: u32 = 8;

/// A call that begins to add the product of two matrices in shared memory to a group's sums (CUDA).
pub fn multiply_group(
    columns: u32,
    dtype: DType,
    lines: [Lines; 2],
    arguments: &[&str],
    helpers: &mut Helpers,
) -> String {
    helpers.call(Language::Cuda, &name(columns, dtype, lines), arguments)
}

/// A call of what comes before or behind such products: `publish`, `begin`, `commit`, or `await_but_` so many.
pub fn products(step: &str, helpers: &mut Helpers) -> String {
    helpers.call(Language::Cuda, &format!("lz_products_{step}"), &[])
}

fn name(columns: u32, dtype: DType, [left, right]: [Lines; 2]) -> String {
    let left = match left {
        Lines::Along => "",
        Lines::Turned => "_turned",
        Lines::Own => "_own",
    };
    let right = if right == Lines::Turned { "_by_turned" } else { "" };
    format!("lz_multiply_group_{columns}_{dtype}{left}{right}")
}

/// The functions that the calls are of.
pub(super) fn definitions() -> String {
    let mut text = include_str!("helpers/groups.cuh").trim_end().to_string();
    for columns in COLUMNS {
        for dtype in [DType::F16, DType::BF16] {
            for left in [Lines::Along, Lines::Turned, Lines::Own] {
                for right in [Lines::Along, Lines::Turned] {
                    text.push_str("\n\n");
                    text.push_str(&definition(columns, dtype, [left, right]));
                }
            }
        }
    }
    text
}

fn definition(columns: u32, dtype: DType, of: [Lines; 2]) -> String {
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
    let [left, right] = of.map(|lines| u32::from(lines == Lines::Turned));
    let name = name(columns, dtype, of);
    // Its operands, and how the instruction has them and their order.
    let (own, left_type, parts, left_operand, order) = match of[0] {
        Lines::Own => {
            let parts = (0..4).map(|n| format!("%{}", sums + n)).collect::<Vec<String>>().join(", ");
            let operands = (0..4).map(|n| format!("\"r\"(left[{n}])")).collect::<Vec<String>>().join(", ");
            ("own_", "unsigned", format!("{{{parts}}}, %{}", sums + 4), operands, format!("{right}"))
        }
        Lines::Along | Lines::Turned => {
            let parts = format!("%{sums}, %{}", sums + 1);
            ("", "unsigned short", parts, "\"l\"(lz_lines(left))".to_string(), format!("{left}, {right}"))
        }
    };
    let on_threads = if own.is_empty() {
        "of lines in shared memory"
    } else {
        "of what threads have by lines in shared memory"
    };
    format!(
        "\
// sums (64 × {columns}) += left (64 × 16) * right (16 × {columns}), {on_threads}, begun by four warps together.
void {name}(float* sums, const {left_type}* left, const unsigned short* right) {{
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    asm volatile(\"{{ .reg .pred p; setp.ne.b32 p, 1, 0; wgmma.mma_async.sync.aligned.m64n{columns}k16.f32.{dtype}.{dtype} {{\"
{operands}        \"}}, {parts}, p, 1, 1, {order}; }}\" :
{outputs}        : {left_operand}, \"l\"(lz_lines(right)));
#else
    lz_add_{own}lines_{dtype}(sums, (const unsigned short*)left, right, {columns}, {left}, {right});
#endif
}}"
    )
}
