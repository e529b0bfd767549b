//! What some operations look like.

use lazuli_codegen::intrinsics::{self, Helpers, literal, parenthesise};
use lazuli_codegen::{BinaryOp, DType, Language, ReduceOp, Scalar, UnaryOp};

fn unary(language: Language, op: UnaryOp, dtype: DType) -> String {
    intrinsics::unary(language, op, dtype, "x", &mut Helpers::new())
}

fn binary(language: Language, op: BinaryOp, dtype: DType) -> String {
    intrinsics::binary(language, op, dtype, "a", "b", &mut Helpers::new())
}

fn cast(language: Language, from: DType, to: DType) -> String {
    intrinsics::cast(language, from, to, "x", &mut Helpers::new())
}

#[test]
fn operators_read_as_operators() {
    use Language::{C, Cuda};
    assert_eq!(binary(Cuda, BinaryOp::Add, DType::F32), "a + b");
    assert_eq!(binary(C, BinaryOp::Add, DType::I32), "a + b");
    assert_eq!(binary(Cuda, BinaryOp::Add, DType::I32), "lz_add_i32(a, b)");
    assert_eq!(binary(C, BinaryOp::Mul, DType::U8), "(unsigned char)(a * b)");
    assert_eq!(binary(C, BinaryOp::Add, DType::Bool), "a | b");
    assert_eq!(binary(Cuda, BinaryOp::Maximum, DType::F32), "lz_maximum_f32(a, b)");
    assert_eq!(binary(Cuda, BinaryOp::Maximum, DType::I64), "a > b ? a : b");
    assert_eq!(binary(Cuda, BinaryOp::FloorDiv, DType::I32), "lz_floor_div_i32(a, b)");
    assert_eq!(binary(Cuda, BinaryOp::Pow, DType::F64), "pow(a, b)");
    assert_eq!(unary(Cuda, UnaryOp::Relu, DType::F32), "x < 0.0f ? 0.0f : x");
    assert_eq!(unary(Cuda, UnaryOp::Exp, DType::F32), "expf(x)");
    assert_eq!(unary(C, UnaryOp::Exp, DType::F32), "lz_exp_f32(x)");
    assert_eq!(unary(C, UnaryOp::Exp, DType::F64), "lz_exp_f64(x)");
    assert_eq!(unary(Cuda, UnaryOp::Rsqrt, DType::F32), "rsqrtf(x)");
    assert_eq!(unary(C, UnaryOp::Rsqrt, DType::F32), "1.0f / sqrtf(x)");
    assert_eq!(unary(C, UnaryOp::Abs, DType::I32), "x < 0 ? -x : x");
    assert_eq!(unary(C, UnaryOp::Round, DType::F64), "rint(x)");
    assert_eq!(unary(C, UnaryOp::Not, DType::Bool), "!x");
    assert_eq!(cast(C, DType::I32, DType::F32), "(float)x");
    assert_eq!(cast(C, DType::F32, DType::Bool), "x != 0.0f");
    assert_eq!(cast(Cuda, DType::F32, DType::I64), "lz_f32_to_i64(x)");
    assert_eq!(cast(Cuda, DType::F32, DType::F16), "lz_round_f16(x)");
    assert_eq!(cast(Cuda, DType::F64, DType::BF16), "lz_round_bf16(lz_f64_to_f32_odd(x))");
    assert_eq!(intrinsics::select(Cuda, "c", "a", "b"), "c ? a : b");
    assert_eq!(intrinsics::literal(C, ReduceOp::Max.identity(DType::F32)), "-__builtin_inff()");
    assert_eq!(intrinsics::literal(C, ReduceOp::Min.identity(DType::I64)), "9223372036854775807LL");
}

#[test]
fn literals_are_exact_and_short() {
    let f32 = |x: f32| literal(Language::Cuda, Scalar::from_f64(DType::F32, x as f64));
    assert_eq!(f32(0.5), "0.5f");
    assert_eq!(f32(1e-5), "1e-5f");
    assert_eq!(f32(0.1), "0.1f");
    assert_eq!(f32(-0.0), "-0.0f");
    assert_eq!(f32(16777216.0), "16777216.0f");
    assert_eq!(f32(f32::INFINITY), "__int_as_float(0x7f800000)");
    assert_eq!(f32(f32::NAN), "__int_as_float(0x7fc00000)");
    let c = |value| literal(Language::C, value);
    assert_eq!(c(Scalar::from_f64(DType::F16, 0.1)), "0.099975586f");
    assert_eq!(c(Scalar::from_f64(DType::F64, 0.1)), "0.1");
    assert_eq!(c(Scalar::from_f64(DType::F64, f64::NEG_INFINITY)), "-__builtin_inf()");
    assert_eq!(c(Scalar::from_i64(DType::I32, i32::MIN as i64)), "(-2147483647 - 1)");
    assert_eq!(c(Scalar::from_bool(true)), "1");
    // The sign of a literal never runs into an operator.
    let mut helpers = Helpers::new();
    let negated = intrinsics::unary(Language::C, UnaryOp::Neg, DType::F32, "-1.0f", &mut helpers);
    assert_eq!(parenthesise(&negated), "(-(-1.0f))");
}

#[test]
fn half_conversions_in_cuda_are_the_recognised_statements() {
    let mut helpers = Helpers::new();
    let load = intrinsics::from_memory(Language::Cuda, DType::F16, "p[i]", &mut helpers);
    let store = intrinsics::to_memory(Language::Cuda, DType::F16, &load, &mut helpers);
    assert_eq!(store, "lz_f32_to_f16(lz_f16_to_f32(p[i]))");
    assert_eq!(
        helpers.text(Language::Cuda),
        r#"__device__ __forceinline__ float lz_f16_to_f32(unsigned short h) {
    float f;
    asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h));
    return f;
}
__device__ __forceinline__ unsigned short lz_f32_to_f16(float f) {
    unsigned short h;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(f));
    return h;
}
"#
    );
    let mut helpers = Helpers::new();
    intrinsics::to_memory(Language::Cuda, DType::BF16, "x", &mut helpers);
    let text = helpers.text(Language::Cuda);
    assert!(text.contains(r#"asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h) : "f"(f));"#), "{text}");
}

#[test]
fn helpers_in_c_come_in_dependency_order() {
    let mut helpers = Helpers::new();
    intrinsics::binary(Language::C, BinaryOp::Minimum, DType::F32, "a", "b", &mut helpers);
    assert_eq!(
        helpers.text(Language::C),
        "\
static inline __attribute__((always_inline)) int lz_as_i32(float x) {
    union { float f; int i; } u = { x };
    return u.i;
}
static inline __attribute__((always_inline)) float lz_as_f32(int bits) {
    union { int i; float f; } u = { bits };
    return u.f;
}
// The minimum is one of `p` and `q`, which differ for NaN and for zeros of different signs alone; then the bitwise or
// is what is wanted: a NaN, or the zero with the sign.
static inline __attribute__((always_inline)) float lz_minimum_f32(float a, float b) {
    float p = a < b ? a : b;
    float q = b < a ? b : a;
    return lz_as_f32(lz_as_i32(p) | lz_as_i32(q));
}
"
    );
}

#[test]
fn order_of_use_does_not_show() {
    let ops = [UnaryOp::Tanh, UnaryOp::Log, UnaryOp::Sin, UnaryOp::Erf];
    let text = |ops: &[UnaryOp]| {
        let mut helpers = Helpers::new();
        for op in ops {
            intrinsics::unary(Language::C, *op, DType::F32, "x", &mut helpers);
        }
        helpers.text(Language::C)
    };
    let reversed: Vec<UnaryOp> = ops.into_iter().rev().collect();
    assert_eq!(text(&ops), text(&reversed));
}
