//! Functions that multiply matrices in shared memory as four warps together (`wgmma`, on sm_90 alone): a text for each shape.

use std::fmt::Write;

use crate::DType;

/// What the lines of a factor of such a product are.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Lines {
    /// One for each row or column, with terms along it.
    Along,
    /// One for each term, with rows or columns along it: each 64 of these are a tile of 64 lines.
    Turned,
    /// None: each thread has its part of a 16 × 16 matrix of its warp, in the order of `mma.sync`, two elements by two.
    Own,
}

/// Columns of such a product.
const COLUMNS: [u32; 3] = [64, 128, 256];

/// Operands in a line of text.
const IN_LINE: u32 = 8;

/// What a function is called.
pub(super) fn name(columns: u32, dtype: DType, [left, right]: [Lines; 2]) -> String {
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
    let lines = include_str!("helpers/lines.cuh").trim_end();
    let of_both = [lines.to_string(), lines.replace("f16", "bf16")];
    let mut text =
        [&[include_str!("helpers/groups.cuh").trim_end().to_string()], &of_both[..]].concat().join("\n\n");
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
