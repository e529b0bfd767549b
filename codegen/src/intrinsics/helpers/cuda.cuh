// Helpers of CUDA C. NVRTC is given no header: only what it knows by itself may be used. The asm statements of the
// 16-bit conversions are recognised by their text in the host shim that runs kernels on the CPU.

float lz_f16_to_f32(unsigned short h) {
    float f;
    asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h));
    return f;
}

unsigned short lz_f32_to_f16(float f) {
    unsigned short h;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(f));
    return h;
}

float lz_bf16_to_f32(unsigned short h) {
    return __int_as_float((int)((unsigned)h << 16));
}

unsigned short lz_f32_to_bf16(float f) {
#if __CUDA_ARCH__ >= 800
    unsigned short h;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h) : "f"(f));
    return h;
#else
    unsigned u = (unsigned)__float_as_int(f);
    u = (u + 0x7fffU + (u >> 16 & 1U)) >> 16;
    return f != f ? 0x7fff : (unsigned short)u;
#endif
}

float lz_round_f16(float x) {
    return lz_f16_to_f32(lz_f32_to_f16(x));
}

float lz_round_bf16(float x) {
    return lz_bf16_to_f32(lz_f32_to_bf16(x));
}

// Rounds to odd, so that rounding the result once more, to 16 bits, is as good as rounding once.
float lz_f64_to_f32_odd(double x) {
    float f = (float)x;
    int bits = __float_as_int(f);
    bits = fabs((double)f) > fabs(x) ? bits - 1 : bits;
    return (double)f == x ? f : __int_as_float(bits | 1);
}

// Not `-x`: of three integers of which some are negated, CUDA 12.6 to 13.3 take the maximum or minimum of what is not (VIMNMX3, sm_90
// and later).
int lz_neg_i32(int x) {
    int y = (int)(0U - (unsigned)x);
#if __CUDA_ARCH__ >= 900
    asm("{ .reg .b32 t; not.b32 t, %1; add.s32 %0, t, 1; }" : "=r"(y) : "r"(x));
#endif
    return y;
}

unsigned lz_neg_u32(unsigned x) {
    unsigned y = 0U - x;
#if __CUDA_ARCH__ >= 900
    asm("{ .reg .b32 t; not.b32 t, %1; add.u32 %0, t, 1; }" : "=r"(y) : "r"(x));
#endif
    return y;
}

int lz_add_i32(int a, int b) {
    return (int)((unsigned)a + (unsigned)b);
}

int lz_sub_i32(int a, int b) {
    return (int)((unsigned)a - (unsigned)b);
}

int lz_mul_i32(int a, int b) {
    return (int)((unsigned)a * (unsigned)b);
}

long long lz_neg_i64(long long x) {
    return (long long)(0ULL - (unsigned long long)x);
}

long long lz_add_i64(long long a, long long b) {
    return (long long)((unsigned long long)a + (unsigned long long)b);
}

long long lz_sub_i64(long long a, long long b) {
    return (long long)((unsigned long long)a - (unsigned long long)b);
}

long long lz_mul_i64(long long a, long long b) {
    return (long long)((unsigned long long)a * (unsigned long long)b);
}

// -1 is kept from the division, which would overflow for the least integer.
int lz_floor_div_i32(int a, int b) {
    int d = b == 0 || b == -1 ? 1 : b;
    int q = a / d;
    int r = a % d;
    q = r != 0 && (r < 0) != (d < 0) ? q - 1 : q;
    return b == 0 ? 0 : b == -1 ? (int)(0U - (unsigned)a) : q;
}

int lz_rem_i32(int a, int b) {
    int d = b == 0 || b == -1 ? 1 : b;
    int r = a % d;
    return r != 0 && (r < 0) != (d < 0) ? r + d : r;
}

// fmaxf orders -0 before +0, but prefers a number to NaN.
float lz_maximum_f32(float a, float b) {
#if __CUDA_ARCH__ >= 800
    float c;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(c) : "f"(a), "f"(b));
    return c;
#else
    return a != a || b != b ? a + b : fmaxf(a, b);
#endif
}

double lz_maximum_f64(double a, double b) {
    return a != a || b != b ? a + b : fmax(a, b);
}

float lz_minimum_f32(float a, float b) {
#if __CUDA_ARCH__ >= 800
    float c;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(c) : "f"(a), "f"(b));
    return c;
#else
    return a != a || b != b ? a + b : fminf(a, b);
#endif
}

double lz_minimum_f64(double a, double b) {
    return a != a || b != b ? a + b : fmin(a, b);
}

// What numbers have in common that are divided by the same one, or NaN where only a division rounds correctly.
float lz_reciprocal_f32(float b) {
    return b >= 0x1p-100f && b <= 0x1p100f ? 1.0f / b : __int_as_float(0x7fffffff);
}

// Called, so that it is not pasted beside each product that takes its place.
float lz_divide_f32(float a, float b) {
    return a / b;
}

// a / b, correctly rounded. The product is off by less than two units of the last place. What corrects it is off by less than
// 2^-22 of one, and is right for all significands whose quotient is that near to where rounding changes. Elsewhere, where the
// remainder would lose bits or something overflows, numbers are divided.
float lz_quotient_f32(float a, float b) {
    float reciprocal = lz_reciprocal_f32(b);
    float least = fmaxf(0x1p-125f, 0x1p-99f * reciprocal);
    float q = a * reciprocal;
    q = fmaf(-fmaf(b, q, -a), reciprocal, q);
    bool is_zero = a == 0.0f && reciprocal == reciprocal;
    if (!(fabsf(q) >= least || is_zero)) q = lz_divide_f32(a, b);
    return q;
}

// Words 0 (upper half of the result) and 1 of Philox4x32-10 for the counter (low, high, 0, 0): Salmon, Moraes, Dror
// and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
unsigned long long lz_philox(unsigned long long seed, unsigned long long index) {
    unsigned c0 = (unsigned)index, c1 = (unsigned)(index >> 32), c2 = 0, c3 = 0;
    unsigned k0 = (unsigned)seed, k1 = (unsigned)(seed >> 32);
    for (int round = 0; round < 10; ++round) {
        unsigned long long p0 = 0xd2511f53ULL * c0;
        unsigned long long p1 = 0xcd9e8d57ULL * c2;
        c0 = (unsigned)(p1 >> 32) ^ c1 ^ k0;
        c1 = (unsigned)p1;
        c2 = (unsigned)(p0 >> 32) ^ c3 ^ k1;
        c3 = (unsigned)p0;
        k0 += 0x9e3779b9U;
        k1 += 0xbb67ae85U;
    }
    return (unsigned long long)c0 << 32 | c1;
}

// Notes a position that is none: one store under a predicate, so that unrolled loops stay small.
long long lz_position(long long position, long long extent, long long number, long long* checks) {
    bool inside = (unsigned long long)position < (unsigned long long)extent;
    longlong2 note;
    note.x = number;
    note.y = position;
    if (!inside) *(longlong2*)checks = note;
    return inside ? position : position < 0 ? 0 : extent - 1;
}

// How many lanes before this one, of a warp that is a row of the block, have the same key.
unsigned lz_lanes_before(unsigned key) {
    return __popc(__match_any_sync(0xffffffffu, key) & ((1u << threadIdx.x) - 1u));
}

// How many lanes before this one have a condition that holds.
unsigned lz_votes_before(bool condition) {
    return __popc(__ballot_sync(0xffffffffu, condition) & ((1u << threadIdx.x) - 1u));
}

// Zero times each of some elements, added up, two at a time: zero, unless one of them is infinite or NaN.
float lz_zero_times_f16(const unsigned short* first, unsigned count) {
    unsigned sum = 0u;
#pragma unroll
    for (unsigned n = 0u; n < count; n += 2u) {
        asm("fma.rn.f16x2 %0, %1, %2, %0;" : "+r"(sum) : "r"(*(const unsigned*)(first + n)), "r"(0u));
    }
    return lz_f16_to_f32((unsigned short)sum) + lz_f16_to_f32((unsigned short)(sum >> 16));
}

// Zero times each of some elements, added up, two at a time: zero, unless one of them is infinite or NaN.
float lz_zero_times_bf16(const unsigned short* first, unsigned count) {
#if __CUDA_ARCH__ >= 800
    unsigned sum = 0u;
#pragma unroll
    for (unsigned n = 0u; n < count; n += 2u) {
        asm("fma.rn.bf16x2 %0, %1, %2, %0;" : "+r"(sum) : "r"(*(const unsigned*)(first + n)), "r"(0u));
    }
    return lz_bf16_to_f32((unsigned short)sum) + lz_bf16_to_f32((unsigned short)(sum >> 16));
#else
    float sum = 0.0f;
#pragma unroll
    for (unsigned n = 0u; n < count; ++n) sum += lz_bf16_to_f32(first[n]) * 0.0f;
    return sum;
#endif
}

// exp(x) as a power of 2: of an x from -64 to 0 to 18 bits or more.
float lz_brief_exp(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x * 1.44269504f));
    return y;
}

// Of four 8 × 8 matrices of 16-bit elements, whose rows the lanes name in order, each lane gets two neighbours of row
// lane / 4.
void lz_load_matrices(unsigned* parts, const unsigned short* row) {
    unsigned at = (unsigned)__cvta_generic_to_shared(row);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(parts[0]), "=r"(parts[1]), "=r"(parts[2]), "=r"(parts[3]) : "r"(at));
}

// The same of column lane / 4.
void lz_load_matrices_turned(unsigned* parts, const unsigned short* row) {
    unsigned at = (unsigned)__cvta_generic_to_shared(row);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(parts[0]), "=r"(parts[1]), "=r"(parts[2]), "=r"(parts[3]) : "r"(at));
}

// sums (16 × 8) += a (16 × 16) * b (16 × 8)
void lz_multiply_matrices_f16(float* sums, const unsigned* a, const unsigned* b) {
#if __CUDA_ARCH__ >= 800
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
    asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};" : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3]) : "r"(a[0]), "r"(a[1]), "r"(b[0]));
    asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};" : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3]) : "r"(a[2]), "r"(a[3]), "r"(b[1]));
#endif
}

// Before sm_80 nothing multiplies matrices of bf16: lanes ask each other for what they need.
void lz_multiply_matrices_bf16(float* sums, const unsigned* a, const unsigned* b) {
#if __CUDA_ARCH__ >= 800
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
    unsigned lane = (threadIdx.x + blockDim.x * threadIdx.y) % 32U;
#pragma unroll 1
    for (int half = 0; half < 2; ++half) {
#pragma unroll 1
        for (int q = 0; q < 4; ++q) {
            unsigned own = (lane & ~3U) + q;
            unsigned a0 = __shfl_sync(0xffffffffu, half ? a[2] : a[0], own);
            unsigned a1 = __shfl_sync(0xffffffffu, half ? a[3] : a[1], own);
            unsigned b0 = __shfl_sync(0xffffffffu, half ? b[1] : b[0], (lane & 3U) * 8U + q);
            unsigned b1 = __shfl_sync(0xffffffffu, half ? b[1] : b[0], (lane & 3U) * 8U + 4U + q);
#pragma unroll 1
            for (int shift = 16; shift >= 0; shift -= 16) {
                float x0 = __int_as_float((int)(a0 << shift & 0xffff0000U));
                float x1 = __int_as_float((int)(a1 << shift & 0xffff0000U));
                float y0 = __int_as_float((int)(b0 << shift & 0xffff0000U));
                float y1 = __int_as_float((int)(b1 << shift & 0xffff0000U));
                sums[0] = fmaf(x0, y0, sums[0]);
                sums[1] = fmaf(x0, y1, sums[1]);
                sums[2] = fmaf(x1, y0, sums[2]);
                sums[3] = fmaf(x1, y1, sums[3]);
            }
        }
    }
#endif
}

// Copies that are on their way while the thread goes on: of zeros, where the condition does not hold. Before sm_80 they are
// done at once.
void lz_begin_copy_4(void* to, const void* from, bool condition) {
#if __CUDA_ARCH__ >= 800
    unsigned at = (unsigned)__cvta_generic_to_shared(to), bytes = condition ? 4 : 0;
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" :: "r"(at), "l"(from), "r"(bytes) : "memory");
#else
    unsigned none = {};
    *(unsigned*)to = condition ? *(const unsigned*)from : none;
#endif
}

void lz_begin_copy_8(void* to, const void* from, bool condition) {
#if __CUDA_ARCH__ >= 800
    unsigned at = (unsigned)__cvta_generic_to_shared(to), bytes = condition ? 8 : 0;
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" :: "r"(at), "l"(from), "r"(bytes) : "memory");
#else
    uint2 none = {};
    *(uint2*)to = condition ? *(const uint2*)from : none;
#endif
}

void lz_begin_copy_16(void* to, const void* from, bool condition) {
#if __CUDA_ARCH__ >= 800
    unsigned at = (unsigned)__cvta_generic_to_shared(to), bytes = condition ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" :: "r"(at), "l"(from), "r"(bytes) : "memory");
#else
    uint4 none = {};
    *(uint4*)to = condition ? *(const uint4*)from : none;
#endif
}

void lz_commit_copies() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

void lz_await_copies_but_0() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group 0;" ::: "memory");
#endif
}

void lz_await_copies_but_1() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group 1;" ::: "memory");
#endif
}

void lz_await_copies_but_2() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group 2;" ::: "memory");
#endif
}
