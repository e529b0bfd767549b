//! Sixteen-bit floats in vectors: whole vectors are widened when they are loaded and narrowed before they are stored, by
//! the processor's instruction where it has one.

use super::conversions::conversion;
use super::{Kind, Lanes, Value};
use crate::intrinsics::helpers::definition;
use crate::intrinsics::{Helpers, call};
use crate::{DType, Language};

impl Lanes {
    /// The numbers that 16-bit floats are, of their bits.
    pub fn widen(&mut self, dtype: DType, bits: &Value, helpers: &mut Helpers) -> Option<Value> {
        let instructions = [
            "__builtin_ia32_vcvtph2ps512_mask((i16v)h, (f32v){ 0 }, -1, 4)",
            "__builtin_ia32_vcvtph2ps256((i16v)h)",
        ];
        let single = format!("lz_{dtype}_to_f32");
        let name = format!("lz_widen_{dtype}");
        self.half(
            dtype,
            ["f32v", &name, "u16v h"],
            &single,
            instructions,
            |function| call(function, &[conversion("h", "u16v", "i32v")]),
            helpers,
        )?;
        let bits = self.to_vector(bits, Kind::Half);
        Some(Value::vector(call(&name, &[bits]), Kind::F32))
    }

    /// The bits of the nearest 16-bit floats.
    pub fn narrow(&mut self, dtype: DType, numbers: &Value, helpers: &mut Helpers) -> Option<Value> {
        let instructions = [
            "(u16v)__builtin_ia32_vcvtps2ph512_mask(x, 0, (i16v){ 0 }, -1)",
            "(u16v)__builtin_ia32_vcvtps2ph256(x, 0)",
        ];
        let single = format!("lz_f32_to_{dtype}");
        let name = format!("lz_narrow_{dtype}");
        self.half(
            dtype,
            ["u16v", &name, "f32v x"],
            &single,
            instructions,
            |function| conversion(&format!("{function}(x)"), "i32v", "u16v"),
            helpers,
        )?;
        let numbers = self.to_vector(numbers, Kind::F32);
        Some(Value::vector(call(&name, &[numbers]), Kind::Half))
    }

    /// A conversion: by an instruction for F16 and to BF16, else as that of single numbers.
    fn half(
        &mut self,
        dtype: DType,
        [result, name, parameter]: [&str; 3],
        single: &str,
        [wide, narrow]: [&str; 2],
        plain: impl Fn(&str) -> String,
        helpers: &mut Helpers,
    ) -> Option<()> {
        let (order, _) = definition(Language::C, single)?;
        let (function, ..) = self.function(single, helpers)?;
        let plain = plain(&function);
        let body = match dtype {
            DType::F16 => format!(
                "#if defined(__AVX512F__) && LANES == 16\n    return {wide};\n#elif defined(__F16C__) && LANES == 8\n    return {narrow};\n#else\n    return {plain};\n#endif\n"
            ),
            DType::BF16 if result == "u16v" => format!(
                "#if defined(__AVX512BF16__) && defined(MASKS) && LANES == 16\n    u16v r;\n    __asm__(\"vcvtneps2bf16 %1, %0\" : \"=v\"(r) : \"v\"(x));\n    // The instruction flushes subnormals to zero and keeps other bits of NaN.\n    if (__builtin_expect(__builtin_ia32_fpclassps512_mask(x, 0xa1, -1), 0)) r = {plain};\n    return r;\n#else\n    return {plain};\n#endif\n"
            ),
            _ => format!("    return {plain};\n"),
        };
        self.define(order, name, format!("{result} {name}({parameter}) {{\n{body}}}\n"));
        Some(())
    }
}
