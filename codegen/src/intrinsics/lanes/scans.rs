//! Running results within registers: a function that scans neighbouring numbers, in the same order on registers of any width.

use super::{Kind, Lanes, Value};
use crate::intrinsics::{self, Helpers};
use crate::{DType, Language, ReduceOp};

/// Where the functions stand in the library: after all others.
const LAST: usize = usize::MAX;

/// Whether there is such a function: of what is combined by one operation, and has vectors as it is.
pub fn has_scan(op: ReduceOp, dtype: DType) -> bool {
    let is_number = !matches!(dtype, DType::Bool | DType::U8 | DType::I8 | DType::I16);
    op.is_plain() && op.is_scan() && is_number
}

impl Lanes {
    /// The name of the function that leaves running results of `count` numbers, after what comes before them, and gives
    /// the last one: `T lz_scan_max_f32(T* to, const T* from, idx count, T before)`. Both arrays have room up to a multiple
    /// of sixteen. `None` if there is none.
    pub fn scan(&mut self, op: ReduceOp, dtype: DType, helpers: &mut Helpers) -> Option<String> {
        if !has_scan(op, dtype) {
            return None;
        }
        let dtype = dtype.compute();
        let kind = Kind::of(dtype);
        let (vector, scalar) = (kind.vector(), kind.scalar());
        let numbers = if kind.is_wide() { "i64v" } else { "i32v" };
        let name = format!("lz_scan_{}_{dtype}", op.name());
        let text = intrinsics::binary(Language::C, op.plain()?, dtype, "a", "b", &mut Helpers::new());
        let operands = ["a", "b"].map(|name| (name, Value::vector(name.into(), kind)));
        let scope = operands.each_ref().map(|(name, value)| (*name, value));
        let both = self.translate(&text, &scope, helpers)?.text;
        let none = intrinsics::literal(Language::C, op.identity(dtype));
        let shuffle = format!("lz_shuffle_{dtype}");
        let steps: String = [1, 2, 4, 8]
            .map(|distance| {
                let within = format!("{shuffle}(r > 0 ? x[r - 1] : none, x[r], n + (LANES - {distance}))");
                let across = format!("r >= {distance} / LANES ? x[r - {distance} / LANES] : none");
                let before = match distance {
                    1 => format!("            const {vector} a = {within}, b = x[r];\n"),
                    _ => format!(
                        "#if LANES > {distance}\n            const {vector} a = {within}, b = x[r];\n#else\n            const {vector} a = {across}, b = x[r];\n#endif\n"
                    ),
                };
                format!(
                    "#pragma GCC unroll 8
        for (int r = 16 / LANES - 1; r >= 0; --r) {{
{before}            x[r] = {both};
        }}
"
                )
            })
            .concat();
        let code = format!(
            "{scalar} {name}({scalar}* restrict to, const {scalar}* restrict from, idx count, {scalar} before) {{
    const {numbers} n = {{ NUMBERS }}, last = {{ 0 }};
    const {vector} none = lz_splat_{vector}({none});
    {vector} a = lz_splat_{vector}(before);
    for (idx at = 0; at < count; at += 16) {{
        {vector} x[16 / LANES];
#pragma GCC unroll 8
        for (int r = 0; r < 16 / LANES; ++r) x[r] = lz_load_{dtype}(from + at + r * LANES, LANES);
{steps}#pragma GCC unroll 8
        for (int r = 0; r < 16 / LANES; ++r) {{
            const {vector} b = x[r];
            lz_store_{dtype}(to + at + r * LANES, {both}, LANES);
        }}
        const {vector} b = {shuffle}(x[16 / LANES - 1], x[16 / LANES - 1], last + (LANES - 1));
        a = {both};
    }}
    return to[count - 1];
}}
"
        );
        self.define(LAST, &name, code);
        Some(name)
    }
}
