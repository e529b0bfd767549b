// Helpers of C for the CPU: bits, 16-bit floats, integer division, maxima. Free of branches, so that gcc and clang
// vectorise loops over them; signed integers wrap (-fwrapv).

// Reads lines of memory one after the other: processors foresee that, not lines of several rows in turns.
void lz_read_ahead(const void* from, const void* end) {
  for (const char* line = from; line < (const char*)end; line += 64) (void)*(const volatile char*)line;
}

// Prefetches a stream. AMD's processors, the only ones with SSE4a, stop prefetching by themselves where a program does so from 2 KiB
// ahead on.
void lz_prefetch_stream(const void* at) {
#ifdef __SSE4A__
    __builtin_prefetch((const char*)at + 1024, 0, 2);
#else
    __builtin_prefetch((const char*)at + 8192, 0, 2);
#endif
}

int lz_as_i32(float x) {
    union { float f; int i; } u = { x };
    return u.i;
}

float lz_as_f32(int bits) {
    union { int i; float f; } u = { bits };
    return u.f;
}

long long lz_as_i64(double x) {
    union { double f; long long i; } u = { x };
    return u.i;
}

double lz_as_f64(long long bits) {
    union { long long i; double f; } u = { bits };
    return u.f;
}

// Subnormals through an integer conversion: as floats they would be subnormal on the way, and slow.
float lz_f16_to_f32(unsigned short h) {
    int magnitude = h & 0x7fff;
    int normal = (magnitude << 13) + 0x38000000;
    int special = magnitude >= 0x7c00 ? normal + 0x38000000 : normal;
    int bits = magnitude < 0x0400 ? lz_as_i32((float)magnitude * 0x1p-24f) : special;
    return lz_as_f32(bits | (h & 0x8000) << 16);
}

// Rounds half to even. Adding 0.5 aligns a subnormal result to the last bit; the others round by an integer carry.
unsigned short lz_f32_to_f16(float f) {
    int bits = lz_as_i32(f);
    int magnitude = bits & 0x7fffffff;
    int subnormal = lz_as_i32(lz_as_f32(magnitude) + 0.5f) - 0x3f000000;
    int normal = (magnitude - 0x38000000 + 0xfff + (magnitude >> 13 & 1)) >> 13;
    int h = magnitude < 0x38800000 ? subnormal : normal;
    h = magnitude >= 0x47800000 ? 0x7c00 : h;
    h = magnitude > 0x7f800000 ? 0x7e00 : h;
    return (unsigned short)(h | (bits >> 16 & 0x8000));
}

float lz_bf16_to_f32(unsigned short h) {
    return lz_as_f32(h << 16);
}

// Rounds half to even by an integer carry.
unsigned short lz_f32_to_bf16(float f) {
    unsigned bits = (unsigned)lz_as_i32(f);
    unsigned rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    return (unsigned short)((bits & 0x7fffffff) > 0x7f800000 ? 0x7fff : rounded);
}

// The nearest number of f16, as storing and loading give it.
float lz_round_f16(float x) {
    int bits = lz_as_i32(x) & 0x7fffffff;
    float m = lz_as_f32(bits);
    float subnormal = (m + 0.5f) - 0.5f;
    float normal = lz_as_f32((bits + 0xfff + (bits >> 13 & 1)) & ~0x1fff);
    float r = m < 0x1p-14f ? subnormal : normal;
    r = m >= 65520.0f ? __builtin_inff() : r;
    return copysignf(m != m ? m : r, x);
}

// The nearest number of bf16, as storing and loading give it.
float lz_round_bf16(float x) {
    int bits = lz_as_i32(x);
    float r = lz_as_f32((bits + 0x7fff + (bits >> 16 & 1)) & ~0xffff);
    return x != x ? x : r;
}

// Rounds to odd, so that rounding the result once more, to 16 bits, is as good as rounding once.
float lz_f64_to_f32_odd(double x) {
    float f = (float)x;
    int bits = lz_as_i32(f);
    bits = fabs((double)f) > fabs(x) ? bits - 1 : bits;
    return (double)f == x ? f : lz_as_f32(bits | 1);
}

// The quotient in double never rounds across an integer; -1 and 0 are kept from the division.
int lz_floor_div_i32(int a, int b) {
    int d = b == 0 || b == -1 ? 1 : b;
    int q = (int)floor((double)a / (double)d);
    q = b == -1 ? -a : q;
    return b == 0 ? 0 : q;
}

int lz_rem_i32(int a, int b) {
    int d = b == 0 || b == -1 ? 1 : b;
    return a - (int)floor((double)a / (double)d) * d;
}

// The minimum is one of `p` and `q`, which differ for NaN and for zeros of different signs alone; then the bitwise or
// is what is wanted: a NaN, or the zero with the sign.
float lz_minimum_f32(float a, float b) {
    float p = a < b ? a : b;
    float q = b < a ? b : a;
    return lz_as_f32(lz_as_i32(p) | lz_as_i32(q));
}

double lz_minimum_f64(double a, double b) {
    double p = a < b ? a : b;
    double q = b < a ? b : a;
    return lz_as_f64(lz_as_i64(p) | lz_as_i64(q));
}

// As the minimum, but the sign is set only if both have it.
float lz_maximum_f32(float a, float b) {
    int p = lz_as_i32(a > b ? a : b);
    int q = lz_as_i32(b > a ? b : a);
    return lz_as_f32(((p | q) & 0x7fffffff) | (p & q));
}

double lz_maximum_f64(double a, double b) {
    long long p = lz_as_i64(a > b ? a : b);
    long long q = lz_as_i64(b > a ? b : a);
    return lz_as_f64(((p | q) & 0x7fffffffffffffffLL) | (p & q));
}

// A number rather than NaN.
float lz_fmin_f32(float a, float b) {
    float m = lz_minimum_f32(a, b);
    m = a != a ? b : m;
    return b != b ? a : m;
}

float lz_fmax_f32(float a, float b) {
    float m = lz_maximum_f32(a, b);
    m = a != a ? b : m;
    return b != b ? a : m;
}

double lz_fmin_f64(double a, double b) {
    double m = lz_minimum_f64(a, b);
    m = a != a ? b : m;
    return b != b ? a : m;
}

double lz_fmax_f64(double a, double b) {
    double m = lz_maximum_f64(a, b);
    m = a != a ? b : m;
    return b != b ? a : m;
}

// Of the lower halves.
unsigned long long lz_product_u32(unsigned long long a, unsigned long long b) {
    return (a & 0xffffffffULL) * (b & 0xffffffffULL);
}

// Words 0 (upper half of the result) and 1 of Philox4x32-10 for the counter (low, high, 0, 0): Salmon, Moraes, Dror
// and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011. In 64-bit lanes, which the products need; what is in
// the upper halves of words is of no account.
unsigned long long lz_philox(unsigned long long seed, unsigned long long index) {
    unsigned long long c0 = index, c1 = index >> 32, c2 = 0, c3 = 0;
    unsigned long long k0 = seed, k1 = seed >> 32;
    for (int round = 0; round < 10; ++round) {
        unsigned long long p0 = lz_product_u32(0xd2511f53ULL, c0);
        unsigned long long p1 = lz_product_u32(0xcd9e8d57ULL, c2);
        c0 = (p1 >> 32) ^ c1 ^ k0;
        c1 = p1;
        c2 = (p0 >> 32) ^ c3 ^ k1;
        c3 = p0;
        k0 += 0x9e3779b9ULL;
        k1 += 0xbb67ae85ULL;
    }
    return c0 << 32 | (c1 & 0xffffffffULL);
}

// Notes the first position that is none, of whatever thread. The one branch here: it is never taken.
long long lz_position(long long position, long long extent, long long number, long long* checks) {
    if ((unsigned long long)position < (unsigned long long)extent) return position;
    long long none = 0;
    if (__atomic_compare_exchange_n(checks, &none, number, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) checks[1] = position;
    return position < 0 ? 0 : extent - 1;
}
