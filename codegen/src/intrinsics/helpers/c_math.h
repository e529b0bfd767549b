// Transcendental functions of C for the CPU, in f32, free of branches so that gcc and clang vectorise loops over them.
// The polynomials are minimax approximations computed for this file with the Remez algorithm; the reductions follow
// W. J. Cody and W. Waite, "Software Manual for the Elementary Functions", 1980. fma is explicit: contraction is off.

// e^r - 1 for |r| <= ln(2) / 2; relative error 2^-26.
float lz_expm1_core(float r) {
    float p = 1.38838461e-3f;
    p = fmaf(p, r, 8.36727023e-3f);
    p = fmaf(p, r, 4.16673832e-2f);
    p = fmaf(p, r, 1.66665375e-1f);
    p = fmaf(p, r, 4.9999997e-1f);
    return fmaf(r * r, p, r);
}

// x * 2^n for an integral n, by two exact factors, so that a subnormal result rounds once; |n| <= 252.
float lz_scale_f32(float x, float n) {
    int power = (int)n;
    int half = power >> 1;
    return x * lz_as_f32((half + 127) << 23) * lz_as_f32((power - half + 127) << 23);
}

// x * 2^n for x in [1/2, 3/2). Below the least normal number the result is a whole number of 2^-149, which is its bits: processors
// take a hundred cycles and more to round such a product.
float lz_power_f32(float x, float n) {
    int is_small = n < -126.0f;
    float scaled = lz_scale_f32(x, n + (is_small ? 149.0f : 0.0f));
    return is_small ? lz_as_f32(lz_as_i32(scaled + 8388608.0f) - 0x4b000000) : scaled;
}

// Adding 1.5 * 2^23 rounds to an integer. NaN passes both clamps.
float lz_exp_f32(float x) {
    float c = x > 89.0f ? 89.0f : x;
    c = c < -104.0f ? -104.0f : c;
    float n = fmaf(c, 1.44269504f, 12582912.0f) - 12582912.0f;
    float r = fmaf(n, 1.90465421e-9f, fmaf(n, -0.693147182f, c));
    return lz_power_f32(1.0f + lz_expm1_core(r), n);
}

float lz_exp2_f32(float x) {
    float c = x > 129.0f ? 129.0f : x;
    c = c < -151.0f ? -151.0f : c;
    float n = c + 12582912.0f - 12582912.0f;
    float r = (c - n) * 0.693147182f;
    return lz_power_f32(1.0f + lz_expm1_core(r), n);
}

// 2^n (e^r - 1) + (2^n - 1), halved so that 2^128 does not overflow.
float lz_expm1_f32(float x) {
    float c = x > 89.0f ? 89.0f : x;
    c = c < -20.0f ? -20.0f : c;
    float shifted = fmaf(c, 1.44269504f, 12582912.0f);
    float n = shifted - 12582912.0f;
    float r = fmaf(n, 1.90465421e-9f, fmaf(n, -0.693147182f, c));
    float p = lz_expm1_core(r);
    float s = lz_as_f32((lz_as_i32(shifted) - 0x4b400000 + 126) << 23);
    float scaled = 2.0f * fmaf(s, p, s - 0.5f);
    return copysignf(n == 0.0f ? p : scaled, x);
}

// What every logarithm gives beyond the positive finite numbers.
float lz_log_special(float x, float result) {
    result = x <= 3.4028235e38f ? result : x;
    result = x < 0.0f ? __builtin_nanf("") : result;
    return x == 0.0f ? -__builtin_inff() : result;
}

// x = 2^k (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)).
float lz_log_f32(float x) {
    int subnormal = x < 0x1p-126f;
    int bits = lz_as_i32(subnormal ? x * 0x1p23f : x) - 0x3f3504f3;
    float k = (float)((bits >> 23) - (subnormal ? 23 : 0));
    float f = lz_as_f32((bits & 0x7fffff) + 0x3f3504f3) - 1.0f;
    float p = -0.0763691664f;
    p = fmaf(p, f, 0.127636075f);
    p = fmaf(p, f, -0.131600827f);
    p = fmaf(p, f, 0.142013937f);
    p = fmaf(p, f, -0.166233316f);
    p = fmaf(p, f, 0.200012475f);
    p = fmaf(p, f, -0.250008225f);
    p = fmaf(p, f, 0.333333313f);
    float f2 = f * f;
    float low = fmaf(k, -1.90465421e-9f, fmaf(f2 * f, p, -0.5f * f2));
    return lz_log_special(x, fmaf(k, 0.693147182f, f + low));
}

// x = 2^k (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)), for a positive normal x: returns f.
double lz_split_f64(double x, double *k) {
    long long bits = lz_as_i64(x) + (0x3ff0000000000000LL - 0x3fe6a09e667f3bcdLL);
    *k = lz_as_f64((long long)((unsigned long long)bits >> 52) | 0x4330000000000000LL) - (0x1p52 + 1023.0);
    return lz_as_f64((bits & 0xfffffffffffffLL) + 0x3fe6a09e667f3bcdLL) - 1.0;
}

// ln(1 + f) = 2 atanh(f / (2 + f)) for f as above; relative error 2^-43.
double lz_log1p_core(double f) {
    double s = f / (2.0 + f);
    double z = s * s;
    double p = 0.19583592266765695;
    p = fma(p, z, 0.22176228585276617);
    p = fma(p, z, 0.2857210817708806);
    p = fma(p, z, 0.39999995631362034);
    p = fma(p, z, 0.6666666667577213);
    return fma(s * z, p, s + s);
}

double lz_log2_core(double x) {
    double k;
    double f = lz_split_f64(x, &k);
    return fma(lz_log1p_core(f), 1.4426950408889634, k);
}

float lz_log2_f32(float x) {
    return lz_log_special(x, (float)lz_log2_core((double)x));
}

float lz_log10_f32(float x) {
    return lz_log_special(x, (float)(lz_log2_core((double)x) * 0.3010299956639812));
}

// ln(1 + x) for an x > -1 whose sum with 1 is normal.
double lz_log1p_wide(double x) {
    double k;
    double f = lz_split_f64(1.0 + x, &k);
    return fma(k, 0.6931471805599453, lz_log1p_core(k == 0.0 ? x : f));
}

float lz_log1p_f32(float x) {
    float r = (float)lz_log1p_wide((double)x);
    return copysignf(lz_log_special((float)(1.0 + (double)x), r), x);
}

// |x| * 2/pi = quadrant + f, modulo 4, with |f| <= 1/2 but for rounding, for |x| < 2^30: returns f. Adding 1.5 * 2^52 rounds to an
// integer, whose last bits are the quadrant.
double lz_quadrant(float x, long long *quadrant) {
    double a = fabs((double)x);
    double p = a * 0x1.45f306dc9c883p-1;
    double shifted = p + 0x1.8p52;
    *quadrant = lz_as_i64(shifted);
    return (p - (shifted - 0x1.8p52)) + fma(a, -0x1.6b01ec5417056p-55, fma(a, 0x1.45f306dc9c883p-1, -p));
}

// The same of a larger x, which from 2^52 on is an integral multiple of 2^28, 2^56 or 2^84: times these 2/pi is known modulo 4, in two
// parts (M. Payne and R. Hanek, SIGNUM Newsletter 18(1), 1983).
double lz_far_quadrant(float x, long long *quadrant) {
    double a = fabs((double)x);
    double y = a;
    double high = 0x1.45f306dc9c883p-1;
    double low = -0x1.6b01ec5417056p-55;
    y = a >= 0x1p52 ? a * 0x1p-28 : y;
    high = a >= 0x1p52 ? -0x1.1b1bbead603d9p+0 : high;
    low = a >= 0x1p52 ? 0x1.5f47d4d377037p-54 : low;
    y = a >= 0x1p80 ? a * 0x1p-56 : y;
    high = a >= 0x1p80 ? 0x1.29fc2757d1f53p+0 : high;
    low = a >= 0x1p80 ? 0x1.377036d8a5665p-54 : low;
    y = a >= 0x1p108 ? a * 0x1p-84 : y;
    high = a >= 0x1p108 ? 0x1.7d1f534ddc0dbp+0 : high;
    low = a >= 0x1p108 ? 0x1.8a5664f10e410p-54 : low;
    double p = y * high;
    double n = rint(p);
    double f = (p - n) + fma(y, low, fma(y, high, -p));
    double carry = rint(f);
    n += carry;
    *quadrant = lz_as_i64(n - 4.0 * floor(n * 0.25) + 0x1.8p52);
    return f - carry;
}

// sin(pi/2 f) for |f| <= 1/2; relative error 2^-37.
double lz_sin_core(double f) {
    double z = f * f;
    double p = 0.00015819414678353827;
    p = fma(p, z, -0.004681260221184336);
    p = fma(p, z, 0.07969258178851593);
    p = fma(p, z, -0.6459640961001695);
    p = fma(p, z, 1.570796326787736);
    return f * p;
}

// cos(pi/2 f) for |f| <= 1/2; relative error 2^-43.
double lz_cos_core(double f) {
    double z = f * f;
    double p = -2.485205907818849e-05;
    p = fma(p, z, 0.0009191628395933051);
    p = fma(p, z, -0.02086346838556479);
    p = fma(p, z, 0.2536695072104782);
    p = fma(p, z, -1.2337005501235452);
    return fma(z, p, 1.0);
}

// |x| = quadrant * pi/2 + r + low, with |r| <= pi/4 but for rounding, for |x| < 2^13: returns r. pi/2 has three parts, of 24, 11 and 24 bits:
// a quadrant times the first is taken away exactly, times the second is exact, and what the difference loses is low's.
float lz_near_quadrant(float x, float *low, int *quadrant) {
    float a = fabsf(x);
    float shifted = fmaf(a, 0.636619772f, 12582912.0f);
    float n = shifted - 12582912.0f;
    float first = fmaf(n, -0x1.921fb6p+0f, a);
    float second = n * -0x1.778p-25f;
    float r = first - second;
    *low = fmaf(n, -0x1.68c234p-39f, (first - r) - second);
    *quadrant = lz_as_i32(shifted);
    return r;
}

// sin(r + low) for r as above; relative error 2^-28, and of the last sum's rounding.
float lz_near_sin(float r, float low) {
    float z = r * r;
    float p = -0.00019515120948199183f;
    p = fmaf(p, z, 0.008332159370183945f);
    p = fmaf(p, z, -0.16666655242443085f);
    return r + fmaf(r * z, p, low);
}

// cos(r + low) for r as above; relative error 2^-33, and of the last sum's rounding.
float lz_near_cos(float r, float low) {
    float z = r * r;
    float p = 2.443297125864774e-05f;
    p = fmaf(p, z, -0.00138873141258955f);
    p = fmaf(p, z, 0.04166664555668831f);
    float a = 0.5f * z;
    float h = 1.0f - a;
    return h + fmaf(z * z, p, fmaf(-r, low, (1.0f - h) - a));
}

float lz_far_sin(float x) {
    long long q;
    double f = lz_far_quadrant(x, &q);
    double s = (q & 1) != 0 ? lz_cos_core(f) : lz_sin_core(f);
    return (float)lz_as_f64(lz_as_i64(s) ^ ((q & 2) << 62)) * copysignf(1.0f, x);
}

// Slow paths: a branch in vectors, taken where any lane is beyond the range.
float lz_slow_sin_f32(float x, float result) {
    return fabsf(x) < 8192.0f ? result : lz_far_sin(x);
}

float lz_sin_f32(float x) {
    int q;
    float low;
    float r = lz_near_quadrant(x, &low, &q);
    float s = (q & 1) != 0 ? lz_near_cos(r, low) : lz_near_sin(r, low);
    return lz_slow_sin_f32(x, lz_as_f32(lz_as_i32(s) ^ (q & 2) << 30 ^ (lz_as_i32(x) & ~0x7fffffff)));
}

float lz_far_cos(float x) {
    long long q;
    double f = lz_far_quadrant(x, &q);
    double c = (q & 1) != 0 ? lz_sin_core(f) : lz_cos_core(f);
    return (float)lz_as_f64(lz_as_i64(c) ^ (((q + 1) & 2) << 62));
}

float lz_slow_cos_f32(float x, float result) {
    return fabsf(x) < 8192.0f ? result : lz_far_cos(x);
}

float lz_cos_f32(float x) {
    int q;
    float low;
    float r = lz_near_quadrant(x, &low, &q);
    float c = (q & 1) != 0 ? lz_near_sin(r, low) : lz_near_cos(r, low);
    return lz_slow_cos_f32(x, lz_as_f32(lz_as_i32(c) ^ ((q + 1) & 2) << 30));
}

float lz_tan_of(float x, double f, long long q) {
    double s = lz_sin_core(f);
    double c = lz_cos_core(f);
    return (float)(((q & 1) != 0 ? -c : s) / ((q & 1) != 0 ? s : c)) * copysignf(1.0f, x);
}

float lz_far_tan(float x) {
    long long q;
    double f = lz_far_quadrant(x, &q);
    return lz_tan_of(x, f, q);
}

float lz_slow_tan_f32(float x, float result) {
    return fabsf(x) < 0x1p30f ? result : lz_far_tan(x);
}

float lz_tan_f32(float x) {
    long long q;
    double f = lz_quadrant(x, &q);
    return lz_slow_tan_f32(x, lz_tan_of(x, f, q));
}

// A polynomial near 0, 1 - 2 / (e^2x + 1) elsewhere; beyond 9.1 the result is 1 to the last bit. The power of e is that of
// lz_exp_f32 without what great and small numbers need.
float lz_tanh_f32(float x) {
    float a = fabsf(x);
    float z = a * a;
    float p = -0.00569248758f;
    p = fmaf(p, z, 0.0206282344f);
    p = fmaf(p, z, -0.0537365191f);
    p = fmaf(p, z, 0.133314058f);
    p = fmaf(p, z, -0.333332807f);
    float near = fmaf(p * z, a, a);
    float c = a > 9.2f ? 9.2f : a;
    float shifted = fmaf(c, 2.88539008f, 12582912.0f);
    float n = shifted - 12582912.0f;
    float r = fmaf(n, 1.90465421e-9f, fmaf(n, -0.693147182f, c + c));
    float s = lz_as_f32((lz_as_i32(shifted) << 23) + 0x3f800000);
    float far = 1.0f - 2.0f / fmaf(s, lz_expm1_core(r), s + 1.0f);
    return copysignf(a < 0.625f ? near : far, x);
}

// A polynomial near 0, 1 - e^(a polynomial) elsewhere; beyond 4 the result is 1 to the last bit.
float lz_erf_f32(float x) {
    float a = fabsf(x);
    float z = a * a;
    float p = -0.000581683998f;
    p = fmaf(p, z, 0.00495813182f);
    p = fmaf(p, z, -0.0267421287f);
    p = fmaf(p, z, 0.112811252f);
    p = fmaf(p, z, -0.376124263f);
    p = fmaf(p, z, 0.12837914f);
    float near = fmaf(a, p, a);
    float c = a > 4.0f ? 4.0f : a;
    float q = -1.22388492e-05f;
    q = fmaf(q, c, 0.000332882308f);
    q = fmaf(q, c, -0.00368340919f);
    q = fmaf(q, c, 0.0238486081f);
    q = fmaf(q, c, -0.106337279f);
    q = fmaf(q, c, -0.635090649f);
    q = fmaf(q, c, -1.12866342f);
    // e^y as s + s * (e^r - 1), s = 2^n; y is no less than -17, so that s is normal.
    float y = q * c;
    float shifted = fmaf(y, 1.44269504f, 12582912.0f);
    float n = shifted - 12582912.0f;
    float r = fmaf(n, 1.90465421e-9f, fmaf(n, -0.693147182f, y));
    float s = lz_as_f32((lz_as_i32(shifted) << 23) + 0x3f800000);
    float far = fmaf(-s, lz_expm1_core(r), 1.0f - s);
    return copysignf(a < 0.95f ? near : far, x);
}

// 2^y for |y| <= 1000; relative error 2^-36.
double lz_exp2_core(double y) {
    double shifted = y + 0x1.8p52;
    double r = y - (shifted - 0x1.8p52);
    double p = 1.3359835598505435e-05;
    p = fma(p, r, 0.0001546136930464866);
    p = fma(p, r, 0.001334195111841102);
    p = fma(p, r, 0.009618056913447429);
    p = fma(p, r, 0.055504003748661);
    p = fma(p, r, 0.2402265092082983);
    p = fma(p, r, 0.6931471838172466);
    p = fma(p, r, 1.0);
    return p * lz_as_f64((lz_as_i64(shifted) << 52) + 0x3ff0000000000000LL);
}

// 2^(b log2 |a|) in double precision, then the special cases of C's pow.
float lz_pow_f32(float a, float b) {
    float m = fabsf(a);
    double l = m <= 3.4028235e38f ? lz_log2_core((double)m) : (double)m;
    l = m == 0.0f ? -__builtin_inf() : l;
    double y = (double)b * l;
    y = y > 200.0 ? 200.0 : y;
    y = y < -200.0 ? -200.0 : y;
    float result = (float)lz_exp2_core(y);
    result = m == 1.0f ? 1.0f : result;
    int fractional = truncf(b) != b;
    int odd = !fractional & (truncf(0.5f * b) != 0.5f * b);
    result = (a < 0.0f) & (m <= 3.4028235e38f) & fractional ? __builtin_nanf("") : result;
    result = lz_as_f32(lz_as_i32(result) ^ (lz_as_i32(a) & ~0x7fffffff & -odd));
    return (a == 1.0f) | (b == 0.0f) ? 1.0f : result;
}

// The angle of the smaller to the larger, in [0, pi/4], turned into its octant; in double precision.
float lz_atan2_f32(float y, float x) {
    double u = fabs((double)x);
    double v = fabs((double)y);
    double small = v > u ? u : v;
    double large = v > u ? v : u;
    double q = small / large;
    q = small == large ? 1.0 : q;
    q = large == 0.0 ? 0.0 : q;
    double z = q * q;
    double p = -0.0006979071761263291;
    p = fma(p, z, 0.004926119051914429);
    p = fma(p, z, -0.01629897540822262);
    p = fma(p, z, 0.034475356343341715);
    p = fma(p, z, -0.05451563153962177);
    p = fma(p, z, 0.0725942529714164);
    p = fma(p, z, -0.08985436414984184);
    p = fma(p, z, 0.11094503464617056);
    p = fma(p, z, -0.1428416725358763);
    p = fma(p, z, 0.19999927248496321);
    p = fma(p, z, -0.33333332133967963);
    double t = fma(q * z, p, q);
    t = v > u ? 1.5707963267948966 - t : t;
    t = copysign(1.0, (double)x) < 0.0 ? 3.141592653589793 - t : t;
    float result = copysignf((float)t, y);
    return (x != x) | (y != y) ? x + y : result;
}

// asin(s) for 0 <= s <= 1/2, with z = s * s; relative error 2^-27.
float lz_asin_core(float s, float z) {
    float p = 0.0421663262f;
    p = fmaf(p, z, 0.0241795033f);
    p = fmaf(p, z, 0.0454703793f);
    p = fmaf(p, z, 0.074952975f);
    p = fmaf(p, z, 0.166667521f);
    return fmaf(s * z, p, s);
}

// pi/2 - 2 asin(sqrt((1 - x) / 2)) beyond 1/2. pi/2 has two parts.
float lz_asin_f32(float x) {
    float a = fabsf(x);
    float half = 0.5f * (1.0f - a);
    float z = a > 0.5f ? half : a * a;
    float t = lz_asin_core(a > 0.5f ? sqrtf(half) : a, z);
    return copysignf(a > 0.5f ? fmaf(-2.0f, t, 1.57079637f) - 4.37113883e-8f : t, x);
}

float lz_acos_f32(float x) {
    float a = fabsf(x);
    float half = 0.5f * (1.0f - a);
    float z = a > 0.5f ? half : a * a;
    float t = lz_asin_core(a > 0.5f ? sqrtf(half) : a, z);
    float rest = 1.57079637f - ((a > 0.5f ? t : copysignf(t, x)) + 4.37113883e-8f);
    return a > 0.5f ? 2.0f * (x < 0.0f ? rest : t) : rest;
}

// Beyond 1, pi/2 less that of the reciprocal.
float lz_atan_f32(float x) {
    float a = fabsf(x);
    float s = a > 1.0f ? 1.0f / a : a;
    float z = s * s;
    float p = -0.00179364532f;
    p = fmaf(p, z, 0.0109147206f);
    p = fmaf(p, z, -0.0311780814f);
    p = fmaf(p, z, 0.0579578541f);
    p = fmaf(p, z, -0.0840346739f);
    p = fmaf(p, z, 0.109521925f);
    p = fmaf(p, z, -0.142642438f);
    p = fmaf(p, z, 0.199985489f);
    p = fmaf(p, z, -0.333332986f);
    float t = fmaf(s * z, p, s);
    return copysignf(a > 1.0f ? 1.57079637f - (t + 4.37113883e-8f) : t, x);
}

// A polynomial near 0, where the exponentials cancel.
float lz_sinh_f32(float x) {
    double a = fabs((double)x);
    double e = lz_exp2_core((a > 120.0 ? 120.0 : a) * 1.4426950408889634);
    double z = a * a;
    double p = 2.552664352486786e-08;
    p = fma(p, z, 2.7552141268763023e-06);
    p = fma(p, z, 0.00019841295399019053);
    p = fma(p, z, 0.008333333278472257);
    p = fma(p, z, 0.166666666670473);
    return copysignf((float)(a < 1.0 ? fma(a * z, p, a) : 0.5 * (e - 1.0 / e)), x);
}

float lz_cosh_f32(float x) {
    double a = fabs((double)x);
    double e = lz_exp2_core((a > 120.0 ? 120.0 : a) * 1.4426950408889634);
    return (float)(0.5 * (e + 1.0 / e));
}

// ln(1 + x + (sqrt(x * x + 1) - 1)), the last of which would cancel.
float lz_asinh_f32(float x) {
    float m = fabsf(x);
    double a = (double)m;
    double z = a * a;
    float r = (float)lz_log1p_wide(a + z / (1.0 + sqrt(z + 1.0)));
    return copysignf(m <= 3.4028235e38f ? r : m, x);
}

float lz_acosh_f32(float x) {
    double t = (double)x - 1.0;
    float r = (float)lz_log1p_wide(t + sqrt(t * (t + 2.0)));
    r = x <= 3.4028235e38f ? r : x;
    return x < 1.0f ? __builtin_nanf("") : r;
}

float lz_atanh_f32(float x) {
    float m = fabsf(x);
    double a = (double)m;
    float r = (float)(0.5 * lz_log1p_wide(2.0 * a / (1.0 - a)));
    r = m < 1.0f ? r : __builtin_nanf("");
    return copysignf(m == 1.0f ? __builtin_inff() : r, x);
}

float lz_cbrt_f32(float x) {
    float m = fabsf(x);
    float r = (float)lz_exp2_core(lz_log2_core((double)m) * 0.3333333333333333);
    return copysignf((m > 0.0f) & (m <= 3.4028235e38f) ? r : m, x);
}

float lz_hypot_f32(float a, float b) {
    double x = (double)a;
    double y = (double)b;
    float infinite = __builtin_inff();
    return (fabsf(a) == infinite) | (fabsf(b) == infinite) ? infinite : (float)sqrt(x * x + y * y);
}
