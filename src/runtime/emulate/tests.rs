//! Kernels as the emitters write them, run by the emulator.

mod copies;
mod faults;
mod products;
mod quotients;

use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};

use half::{bf16, f16};

use super::toolchain::Toolchain;
use super::translate::translate;
use super::{EmulatedModule, availability};
use crate::error::{Error, Result};

/// Compiles and runs; `arguments` are places of argument values.
fn run(name: &str, source: &str, grid: u32, block: u32, arguments: &mut [*mut c_void]) -> Result<()> {
    let module = EmulatedModule::compile(name, source)?;
    // SAFETY: each test passes what its kernel declares.
    unsafe { module.launch([grid, 1, 1], [block, 1, 1], 0, arguments) }
}

/// The place of an argument's value.
fn place<T>(value: &mut T) -> *mut c_void {
    std::ptr::from_mut(value).cast()
}

/// The message of a launch of one block that must fail, of a kernel `k(float* y)`.
fn failure(body: &str, block: u32) -> String {
    let source = format!("extern \"C\" __global__ void k(float* y) {{\n{body}\n}}\n");
    let mut y = vec![0.0f32; 4096];
    let mut pointer = y.as_mut_ptr();
    let error = run("k", &source, 1, block, &mut [place(&mut pointer)]).unwrap_err();
    assert!(matches!(error, Error::Device { .. }), "{error}");
    let text = error.to_string();
    let start = "cuda (emulated): launch of k failed: ";
    assert!(text.starts_with(start), "{text}");
    text[start.len()..].to_owned()
}

/// What a kernel `k(float* y)` of one block writes.
fn output(body: &str, block: u32) -> Vec<f32> {
    let source = format!("extern \"C\" __global__ void k(float* y) {{\n{body}\n}}\n");
    let mut y = vec![0.0f32; 4096];
    let mut pointer = y.as_mut_ptr();
    run("k", &source, 1, block, &mut [place(&mut pointer)]).unwrap();
    y
}

#[test]
fn available_where_the_tests_run() {
    availability().unwrap();
}

#[test]
fn pointwise_with_float4_and_a_tail() {
    let source = r#"
__device__ __forceinline__ float gelu(float v) {
    const float u = 0.7978845608028654f * fmaf(0.044715f * v * v, v, v);
    return 0.5f * v * (1.0f + tanhf(u));
}
extern "C" __global__ void __launch_bounds__(128) pointwise(
    const float* __restrict__ x, float* __restrict__ y, const float scale, const unsigned int n) {
    const unsigned int i = (blockIdx.x * blockDim.x + threadIdx.x) * 4u;
    if (i + 3u < n) {
        const float4 v = __ldg(reinterpret_cast<const float4*>(x + i));
        *reinterpret_cast<float4*>(y + i) =
            make_float4(gelu(v.x * scale), gelu(v.y * scale), gelu(v.z * scale), gelu(v.w * scale));
    } else {
        #pragma unroll
        for (unsigned int k = i; k < n; ++k) y[k] = gelu(x[k] * scale);
    }
}
"#;
    let n = 1003u32;
    // Vectors of 16 bytes, as device memory is aligned.
    let x: Vec<[f32; 4]> = (0..251).map(|i| [0, 1, 2, 3].map(|k| (i * 4 + k) as f32 * 0.01 - 5.0)).collect();
    let (mut x, mut y) = (Aligned::new(x.as_flattened()), Aligned::new(&[0.0; 1004]));
    let (mut px, mut py, mut scale, mut count) = (x.pointer(), y.pointer(), 0.5f32, n);
    let mut arguments = [place(&mut px), place(&mut py), place(&mut scale), place(&mut count)];
    run("pointwise", source, 2, 128, &mut arguments).unwrap();
    for i in 0..n as usize {
        let v = x.values()[i] * 0.5;
        let expected = 0.5 * v * (1.0 + (0.797_884_6 * (0.044715 * v * v).mul_add(v, v)).tanh());
        assert!((y.values()[i] - expected).abs() < 1e-6, "{i}: {} {expected}", y.values()[i]);
    }
    assert_eq!(y.values()[n as usize], 0.0, "nothing is written past the end");
}

/// Floats at an address that is a multiple of 16, as those of device memory are.
struct Aligned(Vec<u128>);

impl Aligned {
    fn new(values: &[f32]) -> Aligned {
        let mut aligned = Aligned(vec![0; values.len().div_ceil(4)]);
        bytemuck::cast_slice_mut(&mut aligned.0)[..values.len()].copy_from_slice(values);
        aligned
    }

    fn values(&self) -> &[f32] {
        bytemuck::cast_slice(&self.0)
    }

    fn pointer(&mut self) -> *mut f32 {
        self.0.as_mut_ptr().cast()
    }
}

const BLOCK_SUM: &str = r#"
__device__ __forceinline__ float warp_sum(float v) {
    for (int offset = 16; offset > 0; offset >>= 1) v += __shfl_down_sync(0xffffffffu, v, offset);
    return v;
}
__device__ __forceinline__ float block_sum(float v) {
    __shared__ float partial[32];
    v = warp_sum(v);
    if ((threadIdx.x & 31) == 0) partial[threadIdx.x >> 5] = v;
    __syncthreads();
    v = threadIdx.x < (blockDim.x >> 5) ? partial[threadIdx.x] : 0.0f;
    if (threadIdx.x < 32) v = warp_sum(v);
    return v;
}
"#;

#[test]
fn block_reduction_by_shuffles_and_shared_memory() {
    let source = format!(
        r#"{BLOCK_SUM}
extern "C" __global__ void __launch_bounds__(256) row_sum(const float* x, float* y, unsigned columns) {{
    float sum = 0.0f;
    for (unsigned c = threadIdx.x; c < columns; c += blockDim.x) sum += x[(size_t)blockIdx.x * columns + c];
    sum = block_sum(sum);
    if (threadIdx.x == 0) y[blockIdx.x] = sum;
}}
"#
    );
    let (rows, columns) = (7u32, 1000u32);
    let mut x: Vec<f32> = (0..rows * columns).map(|i| (i % 97) as f32).collect();
    let mut y = vec![0.0f32; rows as usize];
    let (mut px, mut py, mut pc) = (x.as_mut_ptr(), y.as_mut_ptr(), columns);
    run("row_sum", &source, rows, 256, &mut [place(&mut px), place(&mut py), place(&mut pc)]).unwrap();
    let expected: Vec<f32> = x.chunks(columns as usize).map(|row| row.iter().sum()).collect();
    assert_eq!(y, expected);
}

#[test]
fn the_last_block_finishes_a_split_reduction() {
    let source = format!(
        r#"{BLOCK_SUM}
extern "C" __global__ void total(const float* x, float* partial, unsigned* counter, float* y, unsigned n) {{
    __shared__ bool last;
    float sum = 0.0f;
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += x[i];
    sum = block_sum(sum);
    if (threadIdx.x == 0) {{
        partial[blockIdx.x] = sum;
        __threadfence();
        last = atomicAdd(counter, 1u) == gridDim.x - 1u;
    }}
    __syncthreads();
    if (!last) return;
    sum = block_sum(threadIdx.x < gridDim.x ? __ldcg(partial + threadIdx.x) : 0.0f);
    if (threadIdx.x == 0) {{ *y = sum; *counter = 0u; }}
}}
"#
    );
    let mut x: Vec<f32> = (0..10_000).map(|i| (i % 13) as f32).collect();
    let (mut partial, mut counter, mut y, mut n) = (vec![f32::NAN; 9], 0u32, 0.0f32, x.len() as u32);
    let (mut px, mut pp, mut pc, mut py) =
        (x.as_mut_ptr(), partial.as_mut_ptr(), std::ptr::from_mut(&mut counter), std::ptr::from_mut(&mut y));
    let mut arguments = [place(&mut px), place(&mut pp), place(&mut pc), place(&mut py), place(&mut n)];
    run("total", &source, 9, 128, &mut arguments).unwrap();
    assert_eq!(y, x.iter().sum::<f32>());
    assert_eq!(counter, 0);
}

#[test]
fn dynamic_shared_memory_with_a_3d_block() {
    let source = r#"
extern "C" __global__ void __launch_bounds__(64) turn(const int* x, int* y) {
    extern __shared__ __align__(16) unsigned char bytes[];
    int* tile = reinterpret_cast<int*>(bytes);
    const unsigned t = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    tile[t] = x[blockIdx.z * 64 + t];
    __syncthreads();
    y[blockIdx.z * 64 + t] = tile[63 - t];
}
"#;
    let module = EmulatedModule::compile("turn", source).unwrap();
    let mut x: Vec<i32> = (0..128).collect();
    let mut y = vec![0i32; 128];
    let (mut px, mut py) = (x.as_mut_ptr(), y.as_mut_ptr());
    let mut arguments = [place(&mut px), place(&mut py)];
    // SAFETY: two blocks of 64 elements.
    unsafe { module.launch([1, 1, 2], [4, 8, 2], 256, &mut arguments) }.unwrap();
    let expected: Vec<i32> = (0..64).rev().chain((64..128).rev()).collect();
    assert_eq!(y, expected);
    // SAFETY: as above; the tile has room for 60 of the 64 elements, and what follows it is the emulator's.
    let error = unsafe { module.launch([1, 1, 2], [4, 8, 2], 240, &mut arguments) }.unwrap_err();
    assert!(error.to_string().contains("wrote at byte 240 of its 240 bytes"), "{error}");
}

const CONVERSIONS: &str = r#"
__device__ __forceinline__ float lz_f16_to_f32(unsigned short h) { float f; asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h)); return f; }
__device__ __forceinline__ unsigned short lz_f32_to_f16(float f) { unsigned short h; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(f)); return h; }
__device__ __forceinline__ float lz_bf16_to_f32(unsigned short h) { return __uint_as_float((unsigned int)h << 16); }
__device__ __forceinline__ unsigned short lz_f32_to_bf16(float f) {
    unsigned short h;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h) : "f"(f));
    return h;
}
"#;

#[test]
fn sixteen_bit_floats_widen_exactly() {
    let source = format!(
        r#"{CONVERSIONS}
extern "C" __global__ void widen(float* h, float* b) {{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    h[i] = lz_f16_to_f32((unsigned short)i);
    b[i] = lz_bf16_to_f32((unsigned short)i);
}}
"#
    );
    let (mut h, mut b) = (vec![0.0f32; 65536], vec![0.0f32; 65536]);
    let (mut ph, mut pb) = (h.as_mut_ptr(), b.as_mut_ptr());
    run("widen", &source, 64, 1024, &mut [place(&mut ph), place(&mut pb)]).unwrap();
    for i in 0..=u16::MAX {
        let (expected_h, expected_b) = (f16::from_bits(i).to_f32(), bf16::from_bits(i).to_f32());
        let (got_h, got_b) = (h[usize::from(i)], b[usize::from(i)]);
        if expected_h.is_nan() {
            assert_eq!(got_h.to_bits(), 0x7fff_ffff, "{i:#x}");
        } else {
            assert_eq!(got_h.to_bits(), expected_h.to_bits(), "{i:#x}");
        }
        assert!(got_b.to_bits() == expected_b.to_bits() || (got_b.is_nan() && expected_b.is_nan()), "{i:#x}");
    }
}

#[test]
fn sixteen_bit_floats_round_to_nearest_even() {
    let source = format!(
        r#"{CONVERSIONS}
extern "C" __global__ void narrow(const float* x, unsigned short* h, unsigned short* b, unsigned n) {{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {{ h[i] = lz_f32_to_f16(x[i]); b[i] = lz_f32_to_bf16(x[i]); }}
}}
"#
    );
    // Around every half and bfloat16: the value itself, the tie above it, and the floats beside both.
    let mut x = Vec::new();
    for i in 0..=u16::MAX {
        let wide = f16::from_bits(i).to_f32().to_bits();
        let tie = wide.wrapping_add(1 << 12);
        let brain = u32::from(i) << 16;
        for bits in [wide, tie, brain, brain | 0x8000] {
            x.extend([bits.wrapping_sub(1), bits, bits.wrapping_add(1)].map(f32::from_bits));
        }
        // The ties of subnormal halves: odd multiples of 2^-25.
        x.push((2.0 * f32::from(i) + 1.0) * 2.0f32.powi(-25));
    }
    // All over the range, subnormal floats and NaN among them.
    x.extend((0..1u32 << 18).map(|i| f32::from_bits(i.wrapping_mul(0x9e37_79b9))));
    x.extend([
        65504.0,
        65519.996,
        65520.0,
        f32::MAX,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
        -0.0,
        1e-45,
    ]);
    let mut n = x.len() as u32;
    let (mut h, mut b) = (vec![0u16; x.len()], vec![0u16; x.len()]);
    let (mut px, mut ph, mut pb) = (x.as_mut_ptr(), h.as_mut_ptr(), b.as_mut_ptr());
    let mut arguments = [place(&mut px), place(&mut ph), place(&mut pb), place(&mut n)];
    run("narrow", &source, n.div_ceil(256), 256, &mut arguments).unwrap();
    for (i, &x) in x.iter().enumerate() {
        let expected = if x.is_nan() {
            (0x7fff, 0x7fff)
        } else {
            (f16::from_f32(x).to_bits(), bf16::from_f32(x).to_bits())
        };
        assert_eq!((h[i], b[i]), expected, "{x:e} {:#x}", x.to_bits());
    }
}

#[test]
fn shuffles_and_votes_of_every_kind() {
    let body = r#"
    const int t = threadIdx.x;
    const unsigned all = 0xffffffffu;
    y[t] = __shfl_sync(all, (float)t, 3);
    y[32 + t] = __shfl_up_sync(all, (float)t, 2);
    y[64 + t] = __shfl_down_sync(all, (float)t, 2, 8);
    y[96 + t] = (float)__shfl_xor_sync(all, (double)t, 5, 16);
    y[128 + t] = __shfl_sync(all, (unsigned char)t, t + 1, 4);
    y[160 + t] = __popc(__ballot_sync(all, t % 3 == 0));
    y[192 + t] = __any_sync(all, t == 40) + 2 * __all_sync(all, t < 32);
    const unsigned half = t < 16 ? 0xffffu : 0xffff0000u;
    y[224 + t] = (float)__shfl_xor_sync(half, (long long)t << 40, 1) / (float)(1ll << 40);
    y[256 + t] = __syncthreads_count(t & 1);
    y[320 + t] = __popc(__match_any_sync(all, t % 5));
    y[352 + t] = __popc(__match_any_sync(all, (long long)(t / 8) << 40));
    if (t & 1) y[288 + t] = __shfl_sync(0xaaaaaaaau, (float)t, 0);  // lane 0 takes no part: undefined
    __syncwarp();
"#;
    let y = output(body, 32);
    for t in 0..32usize {
        let got: Vec<f32> = (0..9).map(|k| y[k * 32 + t]).collect();
        let up = if t < 2 { t } else { t - 2 };
        let down = if t % 8 < 6 { t + 2 } else { t };
        let quad = t / 4 * 4 + (t + 1) % 4;
        let expected = [3, up, down, t ^ 5, quad, 11, 2, t ^ 1, 16].map(|v| v as f32);
        assert_eq!(got, expected, "lane {t}");
        assert_eq!(y[288 + t].is_nan(), t % 2 == 1, "lane {t}");
        assert_eq!((y[320 + t], y[352 + t]), (if t % 5 < 2 { 7.0 } else { 6.0 }, 8.0), "lane {t}");
    }
}

#[test]
fn a_warp_with_fewer_lanes() {
    let body = "const float v = __shfl_down_sync(0xffffffffu, (float)threadIdx.x, 4);\ny[threadIdx.x] = v;";
    let y = output(body, 40);
    assert_eq!(y[27], 31.0);
    assert_eq!(y[32..36], [36.0, 37.0, 38.0, 39.0]);
    assert!(y[36..40].iter().all(|v| v.is_nan()), "lanes that do not exist have no value: {:?}", &y[36..40]);
}

#[test]
fn shared_memory_is_poisoned_before_each_block() {
    let source = r#"
extern "C" __global__ void poison(float* y) {
    __shared__ float fixed[4];
    extern __shared__ float dynamic[];
    y[blockIdx.x * 2] = fixed[1];
    y[blockIdx.x * 2 + 1] = dynamic[1];
    fixed[1] = dynamic[1] = 1.0f;
}
"#;
    let module = EmulatedModule::compile("poison", source).unwrap();
    let mut y = [0.0f32; 6];
    let mut py = y.as_mut_ptr();
    // SAFETY: three blocks write two floats each.
    unsafe { module.launch([3, 1, 1], [1, 1, 1], 16, &mut [place(&mut py)]) }.unwrap();
    assert!(y.iter().all(|v| v.is_nan()), "{y:?}");
}

#[test]
fn a_missing_barrier_is_seen_in_the_result() {
    let body = "__shared__ float s;\nif (threadIdx.x == 0) s = 1.0f;\ny[threadIdx.x] = s;";
    assert!(output(body, 64).iter().any(|v| v.is_nan()));
}

#[test]
fn integer_and_bit_intrinsics() {
    let body = r#"
    const float expected[] = {
        (float)__umulhi(0x80000000u, 6u), 3, (float)__mulhi(-4, 1 << 30), -1, (float)__umul64hi(1ull << 63, 6), 3,
        (float)__ffs(0), 0, (float)__ffs(8), 4, (float)__clz(1), 31, (float)__clz(0), 32, (float)__clzll(1), 63,
        (float)__popc(0xf0f0u), 8, (float)__brev(1u), 2147483648.0f, (float)__byte_perm(0x03020100u, 0x07060504u, 0x0007), 7,
        (float)__funnelshift_l(0x80000000u, 1u, 1), 3, (float)__funnelshift_r(1u, 1u, 1), 2147483648.0f,
        (float)__float2int_rn(2.5f), 2, (float)__float2int_rz(-2.5f), -2, (float)__float2int_rd(-2.5f), -3,
        (float)__float2int_rz(1e20f), 2147483648.0f, (float)__float2int_rn(__int_as_float(0x7fffffff)), 0,
        (float)__double2ll_rz(-1e300), -9223372036854775808.0f, (float)__float2uint_rz(-5.0f), 0,
        (float)isnan(__uint_as_float(0x7fc00000u)), 1, (float)isinf(-__int_as_float(0x7f800000)), 1, (float)isfinite(1.0), 1,
        (float)(__double_as_longlong(1.0) >> 52), 1023, (float)__longlong_as_double(0x4000000000000000ll), 2,
        rsqrtf(4.0f), 0.5f, (float)rsqrt(16.0), 0.25f, __fmaf_rn(2.0f, 3.0f, 4.0f), 10, max(-1, 2), 2, min(3u, 2u), 2,
        fmaxf(__int_as_float(0x7fc00000), 1.0f), 1, __saturatef(7.0f), 1, exp2f(3.0f), 8, (float)sizeof(float3), 12,
        (float)alignof(double2), 16, (float)alignof(double4), 16, (float)alignof(ushort4), 8, (float)alignof(longlong2), 16,
        (float)alignof(uchar4), 4, (float)alignof(ushort2), 4,
    };
    const int pairs = sizeof(expected) / sizeof(float) / 2;
    y[0] = (float)pairs;
    for (int i = 0; i < pairs; ++i) y[1 + i] = expected[2 * i] == expected[2 * i + 1];
"#;
    let y = output(body, 1);
    for i in 0..y[0] as usize {
        assert_eq!(y[1 + i], 1.0, "pair {i}");
    }
}

#[test]
fn atomics_of_every_type() {
    let source = r#"
extern "C" __global__ void atomics(int* i, unsigned* u, unsigned long long* l, float* f, double* d) {
    const int t = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(i, -t);
    atomicAdd(u, 1u);
    atomicAdd(l, 1ull << 32);
    atomicAdd(f, 0.5f);
    atomicAdd(d, 0.25);
    atomicMax(i + 1, t);
    atomicMin(i + 2, t);
    atomicMax(u + 1, (unsigned)t);
    atomicOr(u + 2, 1u << (t & 31));
    atomicExch(f + 1, 7.0f);
    atomicCAS(u + 3, 5u, 6u);
    atomicInc(u + 4, 9u);
}
"#;
    let (mut i, mut u, mut l, mut f, mut d) = ([0i32; 3], [0, 0, 0, 5u32, 0], 0u64, [0.0f32; 2], 0.0f64);
    let (mut pi, mut pu, mut pl, mut pf, mut pd) = (
        i.as_mut_ptr(),
        u.as_mut_ptr(),
        std::ptr::from_mut(&mut l),
        f.as_mut_ptr(),
        std::ptr::from_mut(&mut d),
    );
    let mut arguments = [place(&mut pi), place(&mut pu), place(&mut pl), place(&mut pf), place(&mut pd)];
    run("atomics", source, 2, 32, &mut arguments).unwrap();
    assert_eq!(i, [-2016, 63, 0]);
    assert_eq!(u, [64, 63, u32::MAX, 6, 4]);
    assert_eq!((l, f, d), (64 << 32, [32.0, 7.0], 16.0));
}

#[test]
fn a_damaged_entry_of_the_cache_is_compiled_again() {
    let source = "extern \"C\" __global__ void damaged(int* p) { *p = 42; }";
    let path = Toolchain::get().unwrap().kernel_path(&translate("damaged", source).unwrap());
    drop(EmulatedModule::compile("damaged", source).unwrap());
    let content = std::fs::read(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, &content[..content.len() / 2]).unwrap();
    let mut value = 0i32;
    let mut pointer = std::ptr::from_mut(&mut value);
    run("damaged", source, 1, 1, &mut [place(&mut pointer)]).unwrap();
    assert_eq!(value, 42);
    assert_eq!(std::fs::read(&path).unwrap().len(), content.len());
}

#[test]
fn kernels_of_one_name_are_compiled_together() {
    let source = |shared: u32, factor: u32| {
        format!(
            "__device__ unsigned twice(unsigned x) {{ return {factor} * x; }}\n\
             extern \"C\" __global__ void k(unsigned* p) {{ __shared__ unsigned s[{shared}]; s[0] = 21; *p = twice(s[0]); }}\n"
        )
    };
    let sources = [source(1, 2), source(2048, 3), source(4096, 4)];
    let toolchain = Toolchain::get().unwrap();
    let paths: Vec<_> =
        sources.iter().map(|source| toolchain.kernel_path(&translate("k", source).unwrap())).collect();
    for path in &paths {
        let _ = std::fs::remove_file(path);
    }
    let kernels: Vec<_> = sources.iter().map(|source| (vec!["k"], source.as_str())).collect();
    EmulatedModule::compile_ahead(&kernels);
    assert!(paths.iter().all(|path| path.exists()), "{paths:?}");
    for (source, expected) in sources.iter().zip([42u32, 63, 84]) {
        let mut value = 0u32;
        let mut pointer = std::ptr::from_mut(&mut value);
        // Each has its own shared memory.
        run("k", source, 1, 1, &mut [place(&mut pointer)]).unwrap();
        assert_eq!(value, expected);
    }
    // One that does not compile leaves the others to be compiled alone.
    let kernels =
        [(vec!["k"], "extern \"C\" __global__ void k(int* p) { *p = nothing; }\n"), kernels[0].clone()];
    std::fs::remove_file(&paths[0]).unwrap();
    EmulatedModule::compile_ahead(&kernels);
    assert!(EmulatedModule::compile("k", kernels[0].1).is_err());
    drop(EmulatedModule::compile("k", kernels[1].1).unwrap());
}

#[test]
fn threads_launch_at_once() {
    let source = format!(
        r#"{BLOCK_SUM}
extern "C" __global__ void sum(const float* x, float* y) {{
    const float s = block_sum(x[blockIdx.x * blockDim.x + threadIdx.x]);
    if (threadIdx.x == 0) y[blockIdx.x] = s;
}}
"#
    );
    let shared = EmulatedModule::compile("sum", &source).unwrap();
    let done = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for seed in 0..4 {
            let (shared, done, source) = (&shared, &done, &source);
            scope.spawn(move || {
                // Two use one module, two have their own of the same text.
                let own = EmulatedModule::compile("sum", source).unwrap();
                let module = if seed < 2 { shared } else { &own };
                let mut x: Vec<f32> = (0..64 * 256).map(|i| ((i * (seed + 1)) % 31) as f32).collect();
                let expected: Vec<f32> = x.chunks(256).map(|block| block.iter().sum()).collect();
                for _ in 0..20 {
                    let mut y = vec![0.0f32; 64];
                    let (mut px, mut py) = (x.as_mut_ptr(), y.as_mut_ptr());
                    // SAFETY: 64 blocks of 256 elements.
                    unsafe {
                        module.launch([64, 1, 1], [256, 1, 1], 0, &mut [place(&mut px), place(&mut py)])
                    }
                    .unwrap();
                    assert_eq!(y, expected);
                    done.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(done.into_inner(), 80);
}
