// What a CUDA C kernel sees when a host C++ compiler reads it: the built-in variables, types and
// functions of CUDA that Lazuli's kernels use, in terms of the fiber runtime in fibers.cpp.
//
// No C or C++ header is included: NVRTC has none either, so a kernel that leans on `INFINITY` or
// `uint32_t` fails here as it would there; and a kernel compiles several times faster. Everything
// that is not CUDA's own name begins with `lz_emu_` or `LZ_EMU_`.
#pragma once

typedef __SIZE_TYPE__ size_t;

// ---------------------------------------------------------------------------------------------
// What the kernel and the runtime agree on.

struct uint3 {
    unsigned x, y, z;
};
struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};

/// What one CUDA thread knows of itself.
struct lz_emu_context {
    uint3 thread, block;
    dim3 block_dim, grid_dim;
    void* dynamic_shared;
};

/// What a compiled kernel tells of itself: the one symbol that its library exports.
struct lz_emu_kernel {
    void (*entry)(void** arguments);  // runs one thread of the kernel
    unsigned parameters;              // how many pointers `arguments` holds
    unsigned max_threads;             // of __launch_bounds__, else 1024
    char *shared_begin, *shared_end;  // its static __shared__ variables
    const unsigned* parameter_bytes;  // of each parameter
};

/// What the threads of a warp do together.
enum lz_emu_warp_operation : int { LZ_EMU_SYNC, LZ_EMU_SHUFFLE, LZ_EMU_BALLOT, LZ_EMU_MATCH, LZ_EMU_TOGETHER };

/// What a lane brings to an operation that the last lane to come carries out for all 32.
struct lz_emu_together {
    void (*carry_out)(lz_emu_together* const* lanes);
};

#pragma GCC visibility push(default)
extern "C" {
/// The running thread. A fiber never moves to another thread of the operating system.
extern __thread lz_emu_context* lz_emu_current;
/// Waits for the whole block; the sum of all threads' predicates.
unsigned lz_emu_barrier(unsigned predicate, int line);
/// Waits for the lanes of `mask`. A shuffle returns the value of lane `source`, a ballot the lanes' bits,
/// a match the bits of the lanes with the same value. The value of an operation that is carried out together is a pointer to
/// what the lane brings.
unsigned long long lz_emu_warp(lz_emu_warp_operation operation, unsigned mask, unsigned long long value,
                               unsigned source, int line);
/// Begins a copy to shared memory, zeros behind the first `given` bytes: it lands when it is awaited.
void lz_emu_begin_copy(void* to, const void* from, unsigned bytes, unsigned given, int line);
void lz_emu_commit_copies();
/// Waits for the thread's copies but those of its last groups.
void lz_emu_await_copies(unsigned but);
/// What adds a product to a thread's sums.
typedef void (*lz_emu_product)(float* sums, const unsigned short* left, const unsigned short* right, unsigned columns,
                               bool turned_left, bool turned_right);
/// Begins a product of matrices in shared memory by the thread's group of warps: it is carried out when it is awaited.
void lz_emu_begin_product(lz_emu_product product, float* sums, const unsigned short* left, const unsigned short* right,
                          unsigned columns, bool turned_left, bool turned_right, int line);
/// What the thread has put into shared memory so far is seen by products.
void lz_emu_publish();
void lz_emu_begin_products();
void lz_emu_commit_products();
/// Carries out the thread's products but those of its last groups.
void lz_emu_await_products(unsigned but);
/// These end the launch with an error.
[[noreturn]] void lz_emu_trap(int line);
[[noreturn]] void lz_emu_misaligned(const volatile void* address, unsigned alignment, int line);
}
#pragma GCC visibility pop

#ifndef LZ_EMU_RUNTIME  // the rest is for kernels only

// ---------------------------------------------------------------------------------------------
// Language: qualifiers and built-in variables.

#define __CUDACC__ 1
#define __CUDACC_RTC__ 1
#define __CUDA_ARCH__ 900
#define __CUDA_ARCH_FEAT_SM90_ALL 1
#define __global__
#define __device__
#define __host__
#define __constant__ const
#define __managed__
#define __grid_constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(...)
// A section of its own, whose bounds the linker knows, so that the runtime can poison it before each block;
// `used`, so that the compiler does not take itself for the only one who writes there.
#define __shared__ static __attribute__((section(LZ_EMU_STRING(LZ_EMU_OWN(lz_emu_shared))), used))
// What each kernel of a file has for itself: LZ_EMU_ID is defined before its text.
#define LZ_EMU_PASTE_(NAME, ID) NAME##_##ID
#define LZ_EMU_PASTE(NAME, ID) LZ_EMU_PASTE_(NAME, ID)
#define LZ_EMU_OWN(NAME) LZ_EMU_PASTE(NAME, LZ_EMU_ID)
#define LZ_EMU_STRING_(TEXT) #TEXT
#define LZ_EMU_STRING(TEXT) LZ_EMU_STRING_(TEXT)

#define threadIdx (lz_emu_current->thread)
#define blockIdx (lz_emu_current->block)
#define blockDim (lz_emu_current->block_dim)
#define gridDim (lz_emu_current->grid_dim)
static constexpr int warpSize = 32;

#ifndef __clang__
#define __builtin_assume(condition) ((void)0)
#endif

#define LZ_EMU_INLINE static inline __attribute__((always_inline))

// ---------------------------------------------------------------------------------------------
// Vector types, aligned as CUDA aligns them.

#define LZ_EMU_VECTORS(T, NAME, ALIGN4)                                                             \
    struct NAME##1 { T x; };                                                                        \
    struct alignas(2 * sizeof(T)) NAME##2 { T x, y; };                                              \
    struct NAME##3 { T x, y, z; };                                                                  \
    struct alignas(ALIGN4) NAME##4 { T x, y, z, w; };                                               \
    LZ_EMU_MAKE_VECTORS(T, NAME)
#define LZ_EMU_MAKE_VECTORS(T, NAME)                                                                \
    LZ_EMU_INLINE NAME##1 make_##NAME##1(T x) { return {x}; }                                       \
    LZ_EMU_INLINE NAME##2 make_##NAME##2(T x, T y) { return {x, y}; }                               \
    LZ_EMU_INLINE NAME##3 make_##NAME##3(T x, T y, T z) { return {x, y, z}; }                       \
    LZ_EMU_INLINE NAME##4 make_##NAME##4(T x, T y, T z, T w) { return {x, y, z, w}; }
LZ_EMU_VECTORS(signed char, char, 4)
LZ_EMU_VECTORS(unsigned char, uchar, 4)
LZ_EMU_VECTORS(short, short, 8)
LZ_EMU_VECTORS(unsigned short, ushort, 8)
LZ_EMU_VECTORS(int, int, 16)
LZ_EMU_VECTORS(long, long, 16)
LZ_EMU_VECTORS(unsigned long, ulong, 16)
LZ_EMU_VECTORS(long long, longlong, 16)
LZ_EMU_VECTORS(unsigned long long, ulonglong, 16)
LZ_EMU_VECTORS(float, float, 16)
LZ_EMU_VECTORS(double, double, 16)
// uint3 stands above, as the runtime needs it.
struct uint1 { unsigned x; };
struct alignas(8) uint2 { unsigned x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
LZ_EMU_MAKE_VECTORS(unsigned, uint)

// ---------------------------------------------------------------------------------------------
// The threads of a block and of a warp. Every call carries its line, for messages.

LZ_EMU_INLINE void __syncthreads(int line = __builtin_LINE()) { lz_emu_barrier(0, line); }
LZ_EMU_INLINE int __syncthreads_count(int p, int line = __builtin_LINE()) {
    return (int)lz_emu_barrier(p != 0, line);
}
LZ_EMU_INLINE int __syncthreads_or(int p, int line = __builtin_LINE()) {
    return lz_emu_barrier(p != 0, line) != 0;
}
LZ_EMU_INLINE int __syncthreads_and(int p, int line = __builtin_LINE()) {
    return lz_emu_barrier(p == 0, line) == 0;
}
LZ_EMU_INLINE void __syncwarp(unsigned mask = 0xffffffffu, int line = __builtin_LINE()) {
    lz_emu_warp(LZ_EMU_SYNC, mask, 0, 0, line);
}
// Blocks run one after another and the threads of a block in turn: only the compiler could reorder.
LZ_EMU_INLINE void __threadfence() { asm volatile("" ::: "memory"); }
LZ_EMU_INLINE void __threadfence_block() { asm volatile("" ::: "memory"); }
LZ_EMU_INLINE void __threadfence_system() { asm volatile("" ::: "memory"); }
LZ_EMU_INLINE void __nanosleep(unsigned) {}
LZ_EMU_INLINE void __trap(int line = __builtin_LINE()) { lz_emu_trap(line); }

LZ_EMU_INLINE unsigned __ballot_sync(unsigned mask, int p, int line = __builtin_LINE()) {
    return (unsigned)lz_emu_warp(LZ_EMU_BALLOT, mask, p != 0, 0, line);
}
LZ_EMU_INLINE int __any_sync(unsigned mask, int p, int line = __builtin_LINE()) {
    return lz_emu_warp(LZ_EMU_BALLOT, mask, p != 0, 0, line) != 0;
}
LZ_EMU_INLINE int __all_sync(unsigned mask, int p, int line = __builtin_LINE()) {
    return lz_emu_warp(LZ_EMU_BALLOT, mask, p == 0, 0, line) == 0;
}

/// For whole numbers of 32 or 64 bits.
template <class T> LZ_EMU_INLINE unsigned
__match_any_sync(unsigned mask, T value, int line = __builtin_LINE()) {
    static_assert(sizeof value == 4 || sizeof value == 8, "a match compares 32 or 64 bits");
    unsigned long long bits = 0;
    __builtin_memcpy(&bits, &value, sizeof value);
    return (unsigned)lz_emu_warp(LZ_EMU_MATCH, mask, bits, 0, line);
}

/// The place of the running thread in its warp.
LZ_EMU_INLINE unsigned lz_emu_lane() {
    const lz_emu_context* c = lz_emu_current;
    return (c->thread.x + c->block_dim.x * (c->thread.y + c->block_dim.y * c->thread.z)) & 31;
}
/// Types below 32 bits are promoted, as CUDA's overloads do.
template <class T> LZ_EMU_INLINE auto lz_emu_shuffle(unsigned mask, T value, unsigned source, int line) {
    auto promoted = +value;
    static_assert(sizeof promoted == 4 || sizeof promoted == 8, "a shuffle moves 32 or 64 bits");
    unsigned long long bits = 0;
    __builtin_memcpy(&bits, &promoted, sizeof promoted);
    bits = lz_emu_warp(LZ_EMU_SHUFFLE, mask, bits, source, line);
    __builtin_memcpy(&promoted, &bits, sizeof promoted);
    return promoted;
}
// A source outside the segment of `width` lanes means the lane's own value.
template <class T> LZ_EMU_INLINE auto
__shfl_sync(unsigned mask, T value, int source, int width = 32, int line = __builtin_LINE()) {
    return lz_emu_shuffle(mask, value, (lz_emu_lane() & -width) + (source & (width - 1)), line);
}
template <class T> LZ_EMU_INLINE auto
__shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, int line = __builtin_LINE()) {
    unsigned lane = lz_emu_lane();
    return lz_emu_shuffle(mask, value, delta > (lane & (width - 1)) ? lane : lane - delta, line);
}
template <class T> LZ_EMU_INLINE auto
__shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, int line = __builtin_LINE()) {
    unsigned lane = lz_emu_lane();
    return lz_emu_shuffle(mask, value, delta >= width - (lane & (width - 1)) ? lane : lane + delta, line);
}
template <class T> LZ_EMU_INLINE auto
__shfl_xor_sync(unsigned mask, T value, int bits, int width = 32, int line = __builtin_LINE()) {
    unsigned lane = lz_emu_lane(), source = lane ^ (unsigned)bits;
    return lz_emu_shuffle(mask, value, source >= (lane & -width) + width ? lane : source, line);
}

// ---------------------------------------------------------------------------------------------
// Memory: loads and stores with cache hints, atomics.

/// The compiler would report the line in this file.
template <class T> LZ_EMU_INLINE void lz_emu_check_alignment(const T* p, int line) {
    if ((size_t)p % alignof(T)) lz_emu_misaligned(p, alignof(T), line);
}
#define LZ_EMU_LOAD(NAME)                                                                           \
    template <class T> LZ_EMU_INLINE T NAME(const T* p, int line = __builtin_LINE()) {              \
        lz_emu_check_alignment(p, line);                                                            \
        return *p;                                                                                  \
    }
LZ_EMU_LOAD(__ldg) LZ_EMU_LOAD(__ldca) LZ_EMU_LOAD(__ldcg) LZ_EMU_LOAD(__ldcs) LZ_EMU_LOAD(__ldlu) LZ_EMU_LOAD(__ldcv)
template <class T> struct lz_emu_same { typedef T type; };
#define LZ_EMU_STORE(NAME)                                                                          \
    template <class T>                                                                              \
    LZ_EMU_INLINE void NAME(T* p, typename lz_emu_same<T>::type value, int line = __builtin_LINE()) { \
        lz_emu_check_alignment(p, line);                                                            \
        *p = value;                                                                                 \
    }
LZ_EMU_STORE(__stwb) LZ_EMU_STORE(__stcg) LZ_EMU_STORE(__stcs) LZ_EMU_STORE(__stwt)

/// Replaces `*p` by `next(*p)`, at once; the old value.
template <class T, class Next> LZ_EMU_INLINE T lz_emu_update(T* p, Next next) {
    T old, replacement;
    __atomic_load(p, &old, __ATOMIC_SEQ_CST);
    do replacement = next(old);
    while (!__atomic_compare_exchange(p, &old, &replacement, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
    return old;
}
#define LZ_EMU_ATOMIC(NAME, T, NEXT)                                                                \
    LZ_EMU_INLINE T NAME(T* p, T value) {                                                           \
        return lz_emu_update(p, [value](T old) { return (T)(NEXT); });                              \
    }
#define LZ_EMU_ATOMICS(T)                                                                           \
    LZ_EMU_ATOMIC(atomicAdd, T, old + value)                                                        \
    LZ_EMU_ATOMIC(atomicSub, T, old - value)                                                        \
    LZ_EMU_ATOMIC(atomicExch, T, value)                                                             \
    LZ_EMU_ATOMIC(atomicMin, T, value < old ? value : old)                                          \
    LZ_EMU_ATOMIC(atomicMax, T, value > old ? value : old)                                          \
    LZ_EMU_ATOMIC(atomicAnd, T, old & value)                                                        \
    LZ_EMU_ATOMIC(atomicOr, T, old | value)                                                         \
    LZ_EMU_ATOMIC(atomicXor, T, old ^ value)                                                        \
    LZ_EMU_ATOMIC_CAS(T)
#define LZ_EMU_ATOMIC_CAS(T)                                                                        \
    LZ_EMU_INLINE T atomicCAS(T* p, T compare, T value) {                                           \
        __atomic_compare_exchange_n(p, &compare, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
        return compare;                                                                             \
    }
LZ_EMU_ATOMICS(int)
LZ_EMU_ATOMICS(unsigned)
LZ_EMU_ATOMICS(unsigned long long)
LZ_EMU_ATOMIC(atomicMin, long long, value < old ? value : old)
LZ_EMU_ATOMIC(atomicMax, long long, value > old ? value : old)
LZ_EMU_ATOMIC_CAS(unsigned short)
LZ_EMU_ATOMIC(atomicInc, unsigned, old >= value ? 0 : old + 1)
LZ_EMU_ATOMIC(atomicDec, unsigned, old == 0 || old > value ? value : old - 1)
LZ_EMU_ATOMIC(atomicAdd, float, old + value)
LZ_EMU_ATOMIC(atomicAdd, double, old + value)
LZ_EMU_ATOMIC(atomicExch, float, value)

// ---------------------------------------------------------------------------------------------
// Mathematics. The host's libm stands in for CUDA's, whose last bits differ. As in CUDA, the plain
// names are overloaded for float.

#define LZ_EMU_FUNCTION1(NAME)                                                                      \
    extern "C" __attribute__((visibility("default"))) float NAME##f(float) noexcept;                \
    extern "C" __attribute__((visibility("default"))) double NAME(double) noexcept;                 \
    LZ_EMU_INLINE float NAME(float x) { return NAME##f(x); }
#define LZ_EMU_FUNCTION2(NAME)                                                                      \
    extern "C" __attribute__((visibility("default"))) float NAME##f(float, float) noexcept;         \
    extern "C" __attribute__((visibility("default"))) double NAME(double, double) noexcept;         \
    LZ_EMU_INLINE float NAME(float x, float y) { return NAME##f(x, y); }
LZ_EMU_FUNCTION1(exp) LZ_EMU_FUNCTION1(exp2) LZ_EMU_FUNCTION1(exp10) LZ_EMU_FUNCTION1(expm1)
LZ_EMU_FUNCTION1(log) LZ_EMU_FUNCTION1(log2) LZ_EMU_FUNCTION1(log10) LZ_EMU_FUNCTION1(log1p)
LZ_EMU_FUNCTION1(sin) LZ_EMU_FUNCTION1(cos) LZ_EMU_FUNCTION1(tan)
LZ_EMU_FUNCTION1(asin) LZ_EMU_FUNCTION1(acos) LZ_EMU_FUNCTION1(atan)
LZ_EMU_FUNCTION1(sinh) LZ_EMU_FUNCTION1(cosh) LZ_EMU_FUNCTION1(tanh)
LZ_EMU_FUNCTION1(asinh) LZ_EMU_FUNCTION1(acosh) LZ_EMU_FUNCTION1(atanh)
LZ_EMU_FUNCTION1(erf) LZ_EMU_FUNCTION1(erfc) LZ_EMU_FUNCTION1(lgamma) LZ_EMU_FUNCTION1(tgamma)
LZ_EMU_FUNCTION1(sqrt) LZ_EMU_FUNCTION1(cbrt) LZ_EMU_FUNCTION1(fabs)
LZ_EMU_FUNCTION1(floor) LZ_EMU_FUNCTION1(ceil) LZ_EMU_FUNCTION1(trunc)
LZ_EMU_FUNCTION1(round) LZ_EMU_FUNCTION1(rint) LZ_EMU_FUNCTION1(nearbyint) LZ_EMU_FUNCTION1(logb)
LZ_EMU_FUNCTION2(pow) LZ_EMU_FUNCTION2(fmod) LZ_EMU_FUNCTION2(remainder) LZ_EMU_FUNCTION2(fdim)
LZ_EMU_FUNCTION2(atan2) LZ_EMU_FUNCTION2(hypot)
LZ_EMU_FUNCTION2(copysign) LZ_EMU_FUNCTION2(nextafter)
// The host has no inverse of the error function: Newton's method, with Winitzki's guess to start from.
LZ_EMU_INLINE double erfinv(double x) {
    double a = fabs(x), w = log((1 - a) * (1 + a)), t = 4.330746750799873 + w / 2;
    if (!(a < 1)) return a == 1 ? x * __builtin_inf() : __builtin_nan("");
    if (a < 1e-150) return x * 0.8862269254527580;
    double y = sqrt(sqrt(t * t - w / 0.147) - t);
    for (int i = 0; i < 6; i++) {
        double error = a < 0.5 ? erf(y) - a : (1 - a) - erfc(y);
        y -= error * (0.8862269254527580 * exp(y * y));
    }
    return copysign(y, x);
}
LZ_EMU_INLINE float erfinvf(float x) { return (float)erfinv((double)x); }
#pragma GCC visibility push(default)
extern "C" {
float fmaf(float, float, float) noexcept;
double fma(double, double, double) noexcept;
float ldexpf(float, int) noexcept;
double ldexp(double, int) noexcept;
float scalbnf(float, int) noexcept;
double scalbn(double, int) noexcept;
float frexpf(float, int*) noexcept;
double frexp(double, int*) noexcept;
float modff(float, float*) noexcept;
double modf(double, double*) noexcept;
int ilogbf(float) noexcept;
int ilogb(double) noexcept;
void sincosf(float, float*, float*) noexcept;
void sincos(double, double*, double*) noexcept;
int abs(int) noexcept;
long labs(long) noexcept;
long long llabs(long long) noexcept;
}
#pragma GCC visibility pop
LZ_EMU_INLINE float fma(float a, float b, float c) { return fmaf(a, b, c); }
// Not the C library's, which may return either of -0 and +0: a GPU orders them, and prefers a number to NaN.
#define LZ_EMU_EXTREME(TYPE, MAX, MIN, SIGN)                                                        \
    LZ_EMU_INLINE TYPE MAX(TYPE a, TYPE b) {                                                        \
        return b != b || a > b || (a == b && !SIGN(a)) ? a : b;                                     \
    }                                                                                               \
    LZ_EMU_INLINE TYPE MIN(TYPE a, TYPE b) {                                                        \
        return b != b || a < b || (a == b && SIGN(a)) ? a : b;                                      \
    }
LZ_EMU_EXTREME(float, fmaxf, fminf, __builtin_signbitf)
LZ_EMU_EXTREME(double, fmax, fmin, __builtin_signbit)
#undef LZ_EMU_EXTREME
LZ_EMU_INLINE float fmax(float a, float b) { return fmaxf(a, b); }
LZ_EMU_INLINE float fmin(float a, float b) { return fminf(a, b); }
LZ_EMU_INLINE float ldexp(float x, int n) { return ldexpf(x, n); }
LZ_EMU_INLINE float rsqrtf(float x) { return 1.0f / sqrtf(x); }
LZ_EMU_INLINE double rsqrt(double x) { return 1.0 / sqrt(x); }
LZ_EMU_INLINE float rsqrt(float x) { return rsqrtf(x); }
LZ_EMU_INLINE float rcbrtf(float x) { return 1.0f / cbrtf(x); }
LZ_EMU_INLINE double rcbrt(double x) { return 1.0 / cbrt(x); }
LZ_EMU_INLINE long abs(long x) { return x < 0 ? -x : x; }
LZ_EMU_INLINE long long abs(long long x) { return x < 0 ? -x : x; }
LZ_EMU_INLINE float abs(float x) { return fabsf(x); }
LZ_EMU_INLINE double abs(double x) { return fabs(x); }

#define LZ_EMU_CLASSIFY(T)                                                                          \
    LZ_EMU_INLINE bool isnan(T x) { return __builtin_isnan(x); }                                    \
    LZ_EMU_INLINE bool isinf(T x) { return __builtin_isinf(x); }                                    \
    LZ_EMU_INLINE bool isfinite(T x) { return __builtin_isfinite(x); }                              \
    LZ_EMU_INLINE bool signbit(T x) { return __builtin_signbit(x); }
LZ_EMU_CLASSIFY(float)
LZ_EMU_CLASSIFY(double)

#define LZ_EMU_EXTREMES(T)                                                                          \
    LZ_EMU_INLINE T min(T a, T b) { return b < a ? b : a; }                                         \
    LZ_EMU_INLINE T max(T a, T b) { return a < b ? b : a; }
LZ_EMU_EXTREMES(int) LZ_EMU_EXTREMES(unsigned) LZ_EMU_EXTREMES(long) LZ_EMU_EXTREMES(unsigned long)
LZ_EMU_EXTREMES(long long) LZ_EMU_EXTREMES(unsigned long long)
LZ_EMU_INLINE unsigned min(int a, unsigned b) { return min((unsigned)a, b); }
LZ_EMU_INLINE unsigned min(unsigned a, int b) { return min(a, (unsigned)b); }
LZ_EMU_INLINE unsigned max(int a, unsigned b) { return max((unsigned)a, b); }
LZ_EMU_INLINE unsigned max(unsigned a, int b) { return max(a, (unsigned)b); }
LZ_EMU_INLINE float min(float a, float b) { return fminf(a, b); }
LZ_EMU_INLINE float max(float a, float b) { return fmaxf(a, b); }
LZ_EMU_INLINE double min(double a, double b) { return fmin(a, b); }
LZ_EMU_INLINE double max(double a, double b) { return fmax(a, b); }

// Intrinsics with a stated rounding: the host rounds to nearest even as well.
#define LZ_EMU_ROUNDED(T, P, S)                                                                     \
    LZ_EMU_INLINE T __##P##add_rn(T a, T b) { return a + b; }                                       \
    LZ_EMU_INLINE T __##P##sub_rn(T a, T b) { return a - b; }                                       \
    LZ_EMU_INLINE T __##P##mul_rn(T a, T b) { return a * b; }                                       \
    LZ_EMU_INLINE T __##P##div_rn(T a, T b) { return a / b; }                                       \
    LZ_EMU_INLINE T __##P##rcp_rn(T a) { return (T)1 / a; }                                         \
    LZ_EMU_INLINE T __##P##sqrt_rn(T a) { return sqrt##S(a); }
LZ_EMU_ROUNDED(float, f, f)
LZ_EMU_ROUNDED(double, d, )
LZ_EMU_INLINE float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
LZ_EMU_INLINE double __fma_rn(double a, double b, double c) { return fma(a, b, c); }
LZ_EMU_INLINE float __frsqrt_rn(float a) { return (float)(1.0 / sqrt((double)a)); }
LZ_EMU_INLINE float __saturatef(float x) { return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; }
// Fast approximations: the accurate function, which no test may tell from the hardware's.
LZ_EMU_INLINE float __expf(float x) { return expf(x); }
LZ_EMU_INLINE float __exp10f(float x) { return exp10f(x); }
LZ_EMU_INLINE float __logf(float x) { return logf(x); }
LZ_EMU_INLINE float __log2f(float x) { return log2f(x); }
LZ_EMU_INLINE float __log10f(float x) { return log10f(x); }
LZ_EMU_INLINE float __sinf(float x) { return sinf(x); }
LZ_EMU_INLINE float __cosf(float x) { return cosf(x); }
LZ_EMU_INLINE float __tanf(float x) { return tanf(x); }
LZ_EMU_INLINE float __powf(float x, float y) { return powf(x, y); }
LZ_EMU_INLINE float __fdividef(float x, float y) { return x / y; }

// ---------------------------------------------------------------------------------------------
// Bits and integers.

template <class To, class From> LZ_EMU_INLINE To lz_emu_bits(From value) {
    static_assert(sizeof(To) == sizeof(From), "");
    To result;
    __builtin_memcpy(&result, &value, sizeof result);
    return result;
}
LZ_EMU_INLINE int __float_as_int(float x) { return lz_emu_bits<int>(x); }
LZ_EMU_INLINE unsigned __float_as_uint(float x) { return lz_emu_bits<unsigned>(x); }
LZ_EMU_INLINE float __int_as_float(int x) { return lz_emu_bits<float>(x); }
LZ_EMU_INLINE float __uint_as_float(unsigned x) { return lz_emu_bits<float>(x); }
LZ_EMU_INLINE long long __double_as_longlong(double x) { return lz_emu_bits<long long>(x); }
LZ_EMU_INLINE double __longlong_as_double(long long x) { return lz_emu_bits<double>(x); }
LZ_EMU_INLINE int __double2hiint(double x) { return (int)(lz_emu_bits<unsigned long long>(x) >> 32); }
LZ_EMU_INLINE int __double2loint(double x) { return (int)lz_emu_bits<unsigned long long>(x); }
LZ_EMU_INLINE double __hiloint2double(int high, int low) {
    return lz_emu_bits<double>((unsigned long long)(unsigned)high << 32 | (unsigned)low);
}

LZ_EMU_INLINE int __popc(unsigned x) { return __builtin_popcount(x); }
LZ_EMU_INLINE int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
LZ_EMU_INLINE int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
LZ_EMU_INLINE int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
LZ_EMU_INLINE int __ffs(int x) { return __builtin_ffs(x); }
LZ_EMU_INLINE int __ffsll(long long x) { return __builtin_ffsll(x); }
LZ_EMU_INLINE unsigned __brev(unsigned x) {
    x = (x >> 1 & 0x55555555u) | (x & 0x55555555u) << 1;
    x = (x >> 2 & 0x33333333u) | (x & 0x33333333u) << 2;
    x = (x >> 4 & 0x0f0f0f0fu) | (x & 0x0f0f0f0fu) << 4;
    return __builtin_bswap32(x);
}
LZ_EMU_INLINE unsigned long long __brevll(unsigned long long x) {
    return (unsigned long long)__brev((unsigned)x) << 32 | __brev((unsigned)(x >> 32));
}
LZ_EMU_INLINE unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
    unsigned long long bytes = (unsigned long long)y << 32 | x;
    unsigned result = 0;
    for (int i = 0; i < 4; i++) {
        unsigned pick = selector >> 4 * i & 0xf, byte = (unsigned)(bytes >> 8 * (pick & 7)) & 0xff;
        if (pick & 8) byte = byte & 0x80 ? 0xff : 0;  // the top bit of a selector asks for the sign, repeated
        result |= byte << 8 * i;
    }
    return result;
}
LZ_EMU_INLINE unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
    return (unsigned)(((unsigned long long)high << 32 | low) << (shift & 31) >> 32);
}
LZ_EMU_INLINE unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
    return (unsigned)(((unsigned long long)high << 32 | low) >> (shift & 31));
}
LZ_EMU_INLINE int __mulhi(int a, int b) { return (int)((long long)a * b >> 32); }
LZ_EMU_INLINE unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((unsigned long long)a * b >> 32); }
LZ_EMU_INLINE long long __mul64hi(long long a, long long b) { return (long long)((__int128)a * b >> 64); }
LZ_EMU_INLINE unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return (unsigned long long)((unsigned __int128)a * b >> 64);
}

// Float to integer with a stated rounding: saturating, as the hardware does. (A plain cast of a value
// that does not fit is undefined in C++, and what the host gives is not what a GPU gives.)
template <class I, class F> LZ_EMU_INLINE I lz_emu_saturate(F x, I least, I greatest, I for_nan) {
    return x != x ? for_nan : x <= (F)least ? least : x >= (F)greatest ? greatest : (I)x;
}
#define LZ_EMU_CONVERT(F, S, FNAME, I, INAME, LEAST, GREATEST, NAN)                                 \
    LZ_EMU_INLINE I __##FNAME##2##INAME##_rn(F x) {                                                 \
        return lz_emu_saturate<I>(nearbyint##S(x), LEAST, GREATEST, NAN);                           \
    }                                                                                               \
    LZ_EMU_INLINE I __##FNAME##2##INAME##_rz(F x) {                                                 \
        return lz_emu_saturate<I>(trunc##S(x), LEAST, GREATEST, NAN);                               \
    }                                                                                               \
    LZ_EMU_INLINE I __##FNAME##2##INAME##_rd(F x) {                                                 \
        return lz_emu_saturate<I>(floor##S(x), LEAST, GREATEST, NAN);                               \
    }                                                                                               \
    LZ_EMU_INLINE I __##FNAME##2##INAME##_ru(F x) {                                                 \
        return lz_emu_saturate<I>(ceil##S(x), LEAST, GREATEST, NAN);                                \
    }
#define LZ_EMU_CONVERTS(F, S, FNAME, NAN32)                                                         \
    LZ_EMU_CONVERT(F, S, FNAME, int, int, -__INT_MAX__ - 1, __INT_MAX__, (int)NAN32)                \
    LZ_EMU_CONVERT(F, S, FNAME, unsigned, uint, 0u, 0xffffffffu, NAN32)                             \
    LZ_EMU_CONVERT(F, S, FNAME, long long, ll, -__LONG_LONG_MAX__ - 1, __LONG_LONG_MAX__,           \
                   -__LONG_LONG_MAX__ - 1)                                                          \
    LZ_EMU_CONVERT(F, S, FNAME, unsigned long long, ull, 0ull, ~0ull, 1ull << 63)
LZ_EMU_CONVERTS(float, f, float, 0u)
LZ_EMU_CONVERTS(double, , double, 0x80000000u)
LZ_EMU_INLINE float __int2float_rn(int x) { return (float)x; }
LZ_EMU_INLINE float __uint2float_rn(unsigned x) { return (float)x; }
LZ_EMU_INLINE float __ll2float_rn(long long x) { return (float)x; }
LZ_EMU_INLINE float __ull2float_rn(unsigned long long x) { return (float)x; }
LZ_EMU_INLINE double __int2double_rn(int x) { return (double)x; }
LZ_EMU_INLINE double __uint2double_rn(unsigned x) { return (double)x; }
LZ_EMU_INLINE double __ll2double_rn(long long x) { return (double)x; }
LZ_EMU_INLINE double __ull2double_rn(unsigned long long x) { return (double)x; }
LZ_EMU_INLINE float __double2float_rn(double x) { return (float)x; }

// ---------------------------------------------------------------------------------------------
// The way in: what stands behind the kernel's text.

/// Calls a kernel with the values that the pointers lead to.
template <class... P> struct lz_emu_call {
    // A constructor, because a braced list of arguments is evaluated from left to right.
    inline __attribute__((always_inline)) lz_emu_call(void (*kernel)(P...), P... values) { kernel(values...); }
};
template <class P> LZ_EMU_INLINE P lz_emu_argument(const void* at) {
    P value;  // wherever the caller has it
    __builtin_memcpy(&value, at, sizeof value);
    return value;
}
template <class... P> LZ_EMU_INLINE void lz_emu_invoke(void (*kernel)(P...), void** arguments) {
    lz_emu_call<P...>{kernel, lz_emu_argument<P>(*arguments++)...};
}
template <class... P> constexpr unsigned lz_emu_parameters(void (*)(P...)) { return sizeof...(P); }
template <class... P> struct lz_emu_bytes { static constexpr unsigned of[] = {sizeof(P)..., 0}; };
template <class... P> constexpr const unsigned* lz_emu_parameter_bytes(void (*)(P...)) { return lz_emu_bytes<P...>::of; }
constexpr unsigned lz_emu_max_threads(unsigned threads = 1024, unsigned = 0, unsigned = 0) { return threads; }

// The linker sets the bounds where the section exists; they are null for a kernel without static shared memory.
#define LZ_EMU_EXPORT(KERNEL, ...)                                                                                \
    static void lz_emu_entry(void** arguments) { lz_emu_invoke(KERNEL, arguments); }                              \
    extern "C" {                                                                                                  \
    extern char LZ_EMU_OWN(__start_lz_emu_shared)[] __attribute__((weak, visibility("hidden")));                  \
    extern char LZ_EMU_OWN(__stop_lz_emu_shared)[] __attribute__((weak, visibility("hidden")));                   \
    extern __attribute__((visibility("default"))) const lz_emu_kernel LZ_EMU_OWN(lz_emu_exported);                \
    const lz_emu_kernel LZ_EMU_OWN(lz_emu_exported) = {                                                           \
        lz_emu_entry, lz_emu_parameters(KERNEL), lz_emu_max_threads(__VA_ARGS__),                                 \
        LZ_EMU_OWN(__start_lz_emu_shared), LZ_EMU_OWN(__stop_lz_emu_shared),                                      \
        lz_emu_parameter_bytes(KERNEL)};                                                                          \
    }

#endif  // LZ_EMU_RUNTIME
