// Helpers that read the same in CUDA C and C. Paragraphs are cut apart at blank lines and printed with the
// language's qualifiers in front; a helper uses only helpers that stand before it. Selects rather than branches, so
// that loops over them vectorise on the CPU.

float lz_sign_f32(float x) {
    return x > 0.0f ? 1.0f : x < 0.0f ? -1.0f : x == 0.0f ? 0.0f : x;
}

double lz_sign_f64(double x) {
    return x > 0.0 ? 1.0 : x < 0.0 ? -1.0 : x == 0.0 ? 0.0 : x;
}

unsigned char lz_is_inf_f32(float x) {
    return fabsf(x) > 3.4028235e38f;
}

unsigned char lz_is_inf_f64(double x) {
    return fabs(x) > 1.7976931348623157e308;
}

unsigned char lz_is_finite_f32(float x) {
    return fabsf(x) <= 3.4028235e38f;
}

unsigned char lz_is_finite_f64(double x) {
    return fabs(x) <= 1.7976931348623157e308;
}

// Rounds towards zero and saturates; NaN gives 0.
unsigned char lz_f32_to_u8(float x) {
    float c = x > 0.0f ? x : 0.0f;
    return (unsigned char)(int)(c < 255.0f ? c : 255.0f);
}

// Rounds towards zero and saturates; NaN gives 0.
unsigned char lz_f64_to_u8(double x) {
    double c = x > 0.0 ? x : 0.0;
    return (unsigned char)(int)(c < 255.0 ? c : 255.0);
}

// Rounds towards zero and saturates; NaN gives 0.
signed char lz_f32_to_i8(float x) {
    float c = x > -128.0f ? x : -128.0f;
    int i = (int)(c < 127.0f ? c : 127.0f);
    return (signed char)(x != x ? 0 : i);
}

// Rounds towards zero and saturates; NaN gives 0.
signed char lz_f64_to_i8(double x) {
    double c = x > -128.0 ? x : -128.0;
    int i = (int)(c < 127.0 ? c : 127.0);
    return (signed char)(x != x ? 0 : i);
}

// Rounds towards zero and saturates; NaN gives 0.
short lz_f32_to_i16(float x) {
    float c = x > -32768.0f ? x : -32768.0f;
    int i = (int)(c < 32767.0f ? c : 32767.0f);
    return (short)(x != x ? 0 : i);
}

// Rounds towards zero and saturates; NaN gives 0.
short lz_f64_to_i16(double x) {
    double c = x > -32768.0 ? x : -32768.0;
    int i = (int)(c < 32767.0 ? c : 32767.0);
    return (short)(x != x ? 0 : i);
}

// Rounds towards zero and saturates; NaN gives 0.
unsigned int lz_f32_to_u32(float x) {
    float c = x > 0.0f ? x : 0.0f;
    unsigned int i = (unsigned int)(c < 4294967040.0f ? c : 4294967040.0f);
    return x >= 4294967296.0f ? 4294967295u : i;
}

// Rounds towards zero and saturates; NaN gives 0.
unsigned int lz_f64_to_u32(double x) {
    double c = x > 0.0 ? x : 0.0;
    return (unsigned int)(c < 4294967295.0 ? c : 4294967295.0);
}

// Rounds towards zero and saturates; NaN gives 0.
int lz_f32_to_i32(float x) {
    float c = x > -2147483648.0f ? x : -2147483648.0f;
    int i = (int)(c < 2147483520.0f ? c : 2147483520.0f);
    i = x >= 2147483648.0f ? 2147483647 : i;
    return x != x ? 0 : i;
}

// Rounds towards zero and saturates; NaN gives 0. The last step is one of integers: gcc takes a conversion there and
// back again for trunc, which would keep the sign of -0.5.
int lz_f64_to_i32(double x) {
    double c = x > -2147483648.0 ? x : -2147483648.0;
    int i = (int)(c < 2147483647.0 ? c : 2147483647.0);
    return x != x ? 0 : i;
}

// Rounds towards zero and saturates; NaN gives 0.
long long lz_f32_to_i64(float x) {
    float c = x > -9223372036854775808.0f ? x : -9223372036854775808.0f;
    long long i = (long long)(c < 9223371487098961920.0f ? c : 9223371487098961920.0f);
    i = x >= 9223372036854775808.0f ? 9223372036854775807LL : i;
    return x != x ? 0 : i;
}

// Rounds towards zero and saturates; NaN gives 0.
long long lz_f64_to_i64(double x) {
    double c = x > -9223372036854775808.0 ? x : -9223372036854775808.0;
    long long i = (long long)(c < 9223372036854774784.0 ? c : 9223372036854774784.0);
    i = x >= 9223372036854775808.0 ? 9223372036854775807LL : i;
    return x != x ? 0 : i;
}

unsigned char lz_floor_div_u8(unsigned char a, unsigned char b) {
    int q = (int)((float)a / (float)(b == 0 ? 1 : b));
    return (unsigned char)(b == 0 ? 0 : q);
}

unsigned char lz_rem_u8(unsigned char a, unsigned char b) {
    int q = (int)((float)a / (float)(b == 0 ? 1 : b));
    return (unsigned char)(b == 0 ? 0 : a - q * b);
}

// The quotient in single precision never rounds across an integer.
signed char lz_floor_div_i8(signed char a, signed char b) {
    int q = (int)floorf((float)a / (float)(b == 0 ? 1 : b));
    return (signed char)(b == 0 ? 0 : q);
}

signed char lz_rem_i8(signed char a, signed char b) {
    int q = (int)floorf((float)a / (float)(b == 0 ? 1 : b));
    return (signed char)(b == 0 ? 0 : a - q * b);
}

// The quotient in single precision never rounds across an integer.
short lz_floor_div_i16(short a, short b) {
    int q = (int)floorf((float)a / (float)(b == 0 ? 1 : b));
    return (short)(b == 0 ? 0 : q);
}

short lz_rem_i16(short a, short b) {
    int q = (int)floorf((float)a / (float)(b == 0 ? 1 : b));
    return (short)(b == 0 ? 0 : a - q * b);
}

unsigned int lz_floor_div_u32(unsigned int a, unsigned int b) {
    unsigned int q = a / (b == 0 ? 1 : b);
    return b == 0 ? 0 : q;
}

unsigned int lz_rem_u32(unsigned int a, unsigned int b) {
    unsigned int r = a % (b == 0 ? 1 : b);
    return b == 0 ? 0 : r;
}

// -1 is kept from the division, which would overflow for the least integer.
long long lz_floor_div_i64(long long a, long long b) {
    long long d = b == 0 || b == -1 ? 1 : b;
    long long q = a / d;
    long long r = a % d;
    q = r != 0 && (r < 0) != (d < 0) ? q - 1 : q;
    long long negated = (long long)(0ULL - (unsigned long long)a);
    return b == 0 ? 0 : b == -1 ? negated : q;
}

long long lz_rem_i64(long long a, long long b) {
    long long d = b == 0 || b == -1 ? 1 : b;
    long long r = a % d;
    return r != 0 && (r < 0) != (d < 0) ? r + d : r;
}

signed char lz_fmod_i8(signed char a, signed char b) {
    int r = a % (b == 0 ? 1 : b);
    return (signed char)(b == 0 ? 0 : r);
}

short lz_fmod_i16(short a, short b) {
    int r = a % (b == 0 ? 1 : b);
    return (short)(b == 0 ? 0 : r);
}

// -1 is kept from the division, which would overflow for the least integer.
int lz_fmod_i32(int a, int b) {
    return a % (b == 0 || b == -1 ? 1 : b);
}

// -1 is kept from the division, which would overflow for the least integer.
long long lz_fmod_i64(long long a, long long b) {
    return a % (b == 0 || b == -1 ? 1 : b);
}

// The remainder has the divisor's sign.
float lz_rem_f32(float a, float b) {
    float r = fmodf(a, b);
    return r != 0.0f && (r < 0.0f) != (b < 0.0f) ? r + b : r;
}

double lz_rem_f64(double a, double b) {
    double r = fmod(a, b);
    return r != 0.0 && (r < 0.0) != (b < 0.0) ? r + b : r;
}

// The quotient is derived from the remainder, then snapped to the nearest integer.
float lz_floor_div_f32(float a, float b) {
    float r = fmodf(a, b);
    float q = (a - r) / b;
    q = r != 0.0f && (r < 0.0f) != (b < 0.0f) ? q - 1.0f : q;
    float f = floorf(q);
    f = q - f > 0.5f ? f + 1.0f : f;
    f = q == 0.0f ? copysignf(0.0f, a / b) : f;
    return b == 0.0f ? a / b : f;
}

double lz_floor_div_f64(double a, double b) {
    double r = fmod(a, b);
    double q = (a - r) / b;
    q = r != 0.0 && (r < 0.0) != (b < 0.0) ? q - 1.0 : q;
    double f = floor(q);
    f = q - f > 0.5 ? f + 1.0 : f;
    f = q == 0.0 ? copysign(0.0, a / b) : f;
    return b == 0.0 ? a / b : f;
}

unsigned char lz_pow_u8(unsigned char a, unsigned char b) {
    unsigned result = 1;
    unsigned base = a;
    for (unsigned e = b; e != 0; e >>= 1) {
        result = e & 1 ? result * base : result;
        base *= base;
    }
    return (unsigned char)result;
}

// Wraps; a negative exponent gives 0 unless the base is 1 or -1.
signed char lz_pow_i8(signed char a, signed char b) {
    unsigned result = 1;
    unsigned base = (unsigned)a;
    for (unsigned e = b < 0 ? 0 : (unsigned)b; e != 0; e >>= 1) {
        result = e & 1 ? result * base : result;
        base *= base;
    }
    int inverse = a == 1 ? 1 : a == -1 ? (b & 1 ? -1 : 1) : 0;
    return (signed char)(b < 0 ? inverse : (int)result);
}

// Wraps; a negative exponent gives 0 unless the base is 1 or -1.
short lz_pow_i16(short a, short b) {
    unsigned result = 1;
    unsigned base = (unsigned)a;
    for (unsigned e = b < 0 ? 0 : (unsigned)b; e != 0; e >>= 1) {
        result = e & 1 ? result * base : result;
        base *= base;
    }
    int inverse = a == 1 ? 1 : a == -1 ? (b & 1 ? -1 : 1) : 0;
    return (short)(b < 0 ? inverse : (int)result);
}

unsigned int lz_pow_u32(unsigned int a, unsigned int b) {
    unsigned int result = 1;
    unsigned int base = a;
    for (unsigned int e = b; e != 0; e >>= 1) {
        result = e & 1 ? result * base : result;
        base *= base;
    }
    return result;
}

// Wraps; a negative exponent gives 0 unless the base is 1 or -1.
int lz_pow_i32(int a, int b) {
    unsigned result = 1;
    unsigned base = (unsigned)a;
    for (unsigned e = b < 0 ? 0 : (unsigned)b; e != 0; e >>= 1) {
        result = e & 1 ? result * base : result;
        base *= base;
    }
    int inverse = a == 1 ? 1 : a == -1 ? (b & 1 ? -1 : 1) : 0;
    return b < 0 ? inverse : (int)result;
}

// Wraps; a negative exponent gives 0 unless the base is 1 or -1.
long long lz_pow_i64(long long a, long long b) {
    unsigned long long result = 1;
    unsigned long long base = (unsigned long long)a;
    for (unsigned long long e = b < 0 ? 0 : (unsigned long long)b; e != 0; e >>= 1) {
        result = e & 1 ? result * base : result;
        base *= base;
    }
    long long inverse = a == 1 ? 1 : a == -1 ? (b & 1 ? -1 : 1) : 0;
    return b < 0 ? inverse : (long long)result;
}
