//! A file with one loop for every operation at every dtype, compiled by the system's compiler and loaded.
//!
//! The CUDA C is compiled for the host, with a few definitions in front that stand for what NVRTC knows by itself; the
//! 16-bit conversions, which are GPU instructions, are left out.

use std::fmt::Write;
use std::process::Command;
use std::sync::OnceLock;

use lazuli_codegen::intrinsics::{self, Helpers};
use lazuli_codegen::{BinaryOp, DType, Language, ReduceOp, UnaryOp};

/// The flags that kernels in C are compiled with.
const FLAGS: &[&str] = &[
    "-O3",
    "-march=native",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fopenmp-simd",
    "-ffp-contract=off",
    "-fwrapv",
    "-fPIC",
    "-shared",
];

/// What NVRTC knows by itself. A GPU's fmaxf and fminf order zeros by their signs.
const CUDA_PRELUDE: &str = r#"
#include <math.h>
#define __device__
#define __forceinline__ inline
static inline float __int_as_float(int x) { union { int i; float f; } u = { x }; return u.f; }
static inline int __float_as_int(float x) { union { float f; int i; } u = { x }; return u.i; }
static inline long long __double_as_longlong(double x) { union { double f; long long i; } u = { x }; return u.i; }
static inline double __longlong_as_double(long long x) { union { long long i; double f; } u = { x }; return u.f; }
static inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
static inline double rsqrt(double x) { return 1.0 / sqrt(x); }
#define fmaxf(a, b) (b != b || a > b || (a == b && !signbit(a)) ? a : b)
#define fminf(a, b) (b != b || a < b || (a == b && signbit(a)) ? a : b)
static inline double erfinv(double x) {
    double a = fabs(x), w = log((1 - a) * (1 + a)), t = 4.330746750799873 + w / 2;
    if (!(a < 1)) return a == 1 ? x * INFINITY : NAN;
    if (a < 1e-150) return x * 0.8862269254527580;
    double y = sqrt(sqrt(t * t - w / 0.147) - t);
    for (int i = 0; i < 6; i++) y -= (a < 0.5 ? erf(y) - a : (1 - a) - erfc(y)) * (0.8862269254527580 * exp(y * y));
    return copysign(y, x);
}
static inline float erfinvf(float x) { return (float)erfinv((double)x); }
#define fmax fmaxf
#define fmin fminf
"#;

/// The types that values have in registers.
pub const COMPUTE: [DType; 9] = [
    DType::Bool,
    DType::U8,
    DType::I8,
    DType::I16,
    DType::I32,
    DType::U32,
    DType::I64,
    DType::F32,
    DType::F64,
];

type Loop = unsafe extern "C" fn(*const u8, *const u8, *mut u8, i64);

pub struct CLibrary {
    pub language: Language,
    library: libloading::Library,
}

impl CLibrary {
    /// The library, or `None` (with a word on stderr) where there is no compiler.
    pub fn get(language: Language) -> Option<&'static CLibrary> {
        static CUDA: OnceLock<Option<CLibrary>> = OnceLock::new();
        static C: OnceLock<Option<CLibrary>> = OnceLock::new();
        match language {
            Language::Cuda => CUDA.get_or_init(|| CLibrary::build(language)),
            Language::C => C.get_or_init(|| CLibrary::build(language)),
        }
        .as_ref()
    }

    /// The libraries of both languages, as far as there is a compiler.
    pub fn both() -> impl Iterator<Item = &'static CLibrary> {
        [Language::Cuda, Language::C].into_iter().filter_map(CLibrary::get)
    }

    fn build(language: Language) -> Option<CLibrary> {
        let (compiler, file, standard, prelude) = match language {
            Language::Cuda => ("c++", "intrinsics.cpp", "-std=c++17", CUDA_PRELUDE),
            Language::C => ("cc", "intrinsics.c", "-std=gnu11", ""),
        };
        let arguments: Vec<&str> = [standard].into_iter().chain(FLAGS.iter().copied()).collect();
        CLibrary::compile(
            language,
            compiler,
            file,
            &arguments,
            &(prelude.to_string() + &source_text(language)),
        )
    }

    /// The library of a text.
    pub fn compile(
        language: Language,
        compiler: &str,
        file: &str,
        arguments: &[&str],
        text: &str,
    ) -> Option<CLibrary> {
        if Command::new(compiler).arg("--version").output().is_err() {
            eprintln!("there is no compiler ({compiler}) here: the emitted {language} is not tested");
            return None;
        }
        let directory = tempfile::tempdir().unwrap();
        let source = directory.path().join(file);
        let object = directory.path().join("intrinsics.so");
        std::fs::write(&source, text).unwrap();
        let mut command = Command::new(compiler);
        command.args(arguments).arg(&source).arg("-o").arg(&object).arg("-lm");
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        // SAFETY: the library was just built from text without constructors.
        let library = unsafe { libloading::Library::new(&object) }.unwrap();
        Some(CLibrary { language, library })
    }

    /// Runs the loop `name` over `a` (and `b`, of the same length; pass `a` again for a unary operation).
    pub fn run<A: Copy, R: Copy + Default>(&self, name: &str, a: &[A], b: &[A]) -> Vec<R> {
        assert_eq!(a.len(), b.len());
        let mut result = vec![R::default(); a.len()];
        // SAFETY: every symbol of the library has this type; the loop reads and writes a.len() elements.
        unsafe {
            let function = self.library.get::<Loop>(name.as_bytes()).unwrap();
            function(a.as_ptr().cast(), b.as_ptr().cast(), result.as_mut_ptr().cast(), a.len() as i64);
        }
        result
    }
}

fn source_text(language: Language) -> String {
    let linkage = if language == Language::Cuda { "extern \"C\" " } else { "" };
    let sixteen_bits: &[DType] = if language == Language::Cuda { &[] } else { &[DType::F16, DType::BF16] };
    let mut helpers = Helpers::new();
    let mut loops = String::new();
    let mut add = |name: String, from: DType, to: DType, text: String| {
        let register = intrinsics::register_type(language, from);
        let result = intrinsics::register_type(language, to.compute());
        let memory = intrinsics::memory_type(language, from);
        let stored = intrinsics::memory_type(language, to);
        writeln!(
            loops,
            "{linkage}void {name}(const {memory} *__restrict pa, const {memory} *__restrict pb, {stored} *__restrict out, long long n) {{\n\
             #pragma omp simd\n\
             for (long long i = 0; i < n; ++i) {{\n\
             {register} a = pa[i], b = pb[i]; (void)a; (void)b; {result} r = {text}; out[i] = r; }} }}",
        )
        .unwrap();
    };
    for dtype in COMPUTE {
        for op in UnaryOp::ALL.into_iter().filter(|op| op.accepts(dtype)) {
            let text = intrinsics::unary(language, op, dtype, "a", &mut helpers);
            add(format!("{op}_{dtype}"), dtype, op.result(dtype), text);
        }
        for op in BinaryOp::ALL.into_iter().filter(|op| op.accepts(dtype)) {
            let text = intrinsics::binary(language, op, dtype, "a", "b", &mut helpers);
            add(format!("{op}_{dtype}"), dtype, op.result(dtype), text);
        }
        for to in COMPUTE.iter().chain(sixteen_bits).copied() {
            let text = intrinsics::cast(language, dtype, to, "a", &mut helpers);
            add(format!("cast_{dtype}_{to}"), dtype, to.compute(), text);
        }
        for op in ReduceOp::ALL.into_iter().filter(|op| op.accepts(dtype)) {
            let Some(combine) = op.plain() else { continue };
            let identity = intrinsics::parenthesise(&intrinsics::literal(language, op.identity(dtype)));
            let text = intrinsics::binary(language, combine, dtype, &identity, "a", &mut helpers);
            add(format!("reduce_{op}_{dtype}"), dtype, dtype, text);
        }
    }
    for &dtype in sixteen_bits {
        let register = intrinsics::register_type(language, dtype);
        let memory = intrinsics::memory_type(language, dtype);
        let load = intrinsics::from_memory(language, dtype, "p[i]", &mut helpers);
        let store = intrinsics::to_memory(language, dtype, "p[i]", &mut helpers);
        writeln!(
            loops,
            "void load_{dtype}(const {memory} *__restrict p, const void *q, {register} *__restrict out, long long n) {{\n\
             #pragma omp simd\n\
             for (long long i = 0; i < n; ++i) out[i] = {load}; }}\n\
             void store_{dtype}(const {register} *__restrict p, const void *q, {memory} *__restrict out, long long n) {{\n\
             #pragma omp simd\n\
             for (long long i = 0; i < n; ++i) out[i] = {store}; }}",
        )
        .unwrap();
    }
    for dtype in [DType::F32, DType::F64] {
        let register = intrinsics::register_type(language, dtype);
        let text = intrinsics::random_uniform(language, dtype, "seed[i]", "index[i]", &mut helpers);
        writeln!(
            loops,
            "{linkage}void random_{dtype}(const unsigned long long *__restrict seed, const unsigned long long *__restrict index, \
             {register} *__restrict out, long long n) {{\n\
             #pragma omp simd\n\
             for (long long i = 0; i < n; ++i) out[i] = {text}; }}",
        )
        .unwrap();
    }
    format!("{}\n{loops}", helpers.text(language))
}
