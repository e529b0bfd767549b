// Transcendental functions of C for the CPU, in f64, free of branches as those of f32 are. The polynomials are minimax
// approximations computed for this file with the Remez algorithm.

// e^r = 1 + r + r * r * this for |r| <= ln(2) / 2; relative error of the sum 2^-57.
double lz_exp_core_f64(double r) {
    double p = 2.5000730556569554e-08;
    p = fma(p, r, 2.7629921246941285e-07);
    p = fma(p, r, 2.7557582829790913e-06);
    p = fma(p, r, 2.4801494100731977e-05);
    p = fma(p, r, 0.00019841269512669668);
    p = fma(p, r, 0.0013888888942556082);
    p = fma(p, r, 0.00833333333349029);
    p = fma(p, r, 0.04166666666653481);
    p = fma(p, r, 0.16666666666666421);
    return fma(p, r, 0.500000000000001);
}

// x * 2^n for an integral n, by two exact factors, so that a subnormal result rounds once; |n| <= 2040.
double lz_scale_f64(double x, double n) {
    long long power = lz_as_i64(n + 0x1.8p52) - 0x4338000000000000LL + 4096;
    long long half = (long long)((unsigned long long)power >> 1);
    return x * lz_as_f64((half - 1025) << 52) * lz_as_f64((power - half - 1025) << 52);
}

// As lz_power_f32.
double lz_power_f64(double x, double n) {
    int is_small = n < -1022.0;
    double scaled = lz_scale_f64(x, n + (is_small ? 1074.0 : 0.0));
    return is_small ? lz_as_f64(lz_as_i64(scaled + 0x1p52) - 0x4330000000000000LL) : scaled;
}

// x = n ln(2) + r: returns r and what is lost of it. Adding 1.5 * 2^52 rounds to an integer. NaN passes.
double lz_exp_reduced(double x, double *n, double *lost) {
    double k = fma(x, 1.4426950408889634, 0x1.8p52) - 0x1.8p52;
    double high = fma(k, -0.6931471805599453, x);
    double r = fma(k, -2.3190468138462996e-17, high);
    *n = k;
    *lost = fma(k, -2.3190468138462996e-17, high - r);
    return r;
}

// e^x * 2^more.
double lz_exp_scaled(double x, double more) {
    double c = x > 711.0 ? 711.0 : x;
    c = c < -760.0 ? -760.0 : c;
    double n;
    double lost;
    double r = lz_exp_reduced(c, &n, &lost);
    return lz_power_f64(1.0 + (r + fma(r * r, lz_exp_core_f64(r), lost)), n + more);
}

double lz_exp_f64(double x) {
    return lz_exp_scaled(x, 0.0);
}

// (2^r - 1 - r ln 2) / r^2 for |r| <= 1/2.
double lz_exp2_poly_f64(double r) {
    double p = 2.5741440671380915e-11;
    p = fma(p, r, 4.456588242867379e-10);
    p = fma(p, r, 7.0548885610867904e-09);
    p = fma(p, r, 1.0178051826247273e-07);
    p = fma(p, r, 1.3215486832061152e-06);
    p = fma(p, r, 1.5252733854588143e-05);
    p = fma(p, r, 0.000154035303933426);
    p = fma(p, r, 0.0013333558146392422);
    p = fma(p, r, 0.009618129107628494);
    p = fma(p, r, 0.05550410866482169);
    return fma(p, r, 0.24022650695910072);
}

double lz_exp2_f64(double x) {
    double c = x > 1025.0 ? 1025.0 : x;
    c = c < -1100.0 ? -1100.0 : c;
    double n = c + 0x1.8p52 - 0x1.8p52;
    double r = c - n;
    double p = lz_exp2_poly_f64(r);
    return lz_power_f64(1.0 + fma(r, 0.6931471805599453, fma(r * r, p, r * 2.3190468138462996e-17)), n);
}

// 2^n (e^r - 1) + (2^n - 1), halved so that 2^1024 does not overflow.
double lz_expm1_f64(double x) {
    double c = x > 709.8 ? 709.8 : x;
    c = c < -40.0 ? -40.0 : c;
    double n;
    double lost;
    double r = lz_exp_reduced(c, &n, &lost);
    double square = fma(r * r, lz_exp_core_f64(r), lost);
    double p = r + square;
    double rest = square - (p - r);
    double s = lz_as_f64((lz_as_i64(n + 0x1.8p52) - 0x4338000000000000LL + 1022) << 52);
    double whole = s - 0.5;
    double sum = fma(s, p, whole);
    double scaled = 2.0 * (sum + fma(s, rest, fma(s, p, whole - sum)));
    return copysign(n == 0.0 ? p : scaled, x);
}

// What every logarithm gives beyond the positive finite numbers.
double lz_log_special_f64(double x, double result) {
    result = x <= 0x1.fffffffffffffp1023 ? result : x;
    result = x < 0.0 ? __builtin_nan("") : result;
    return x == 0.0 ? -__builtin_inf() : result;
}

// ln(1 + f) = f - f * f / 2 + this for 1 + f in [sqrt(1/2), sqrt(2)), half being f * f / 2.
double lz_log_rest(double f, double half) {
    double s = f / (2.0 + f);
    double z = s * s;
    double p = 0.147921013838984;
    p = fma(p, z, 0.15314464428938937);
    p = fma(p, z, 0.1818354671363256);
    p = fma(p, z, 0.22222198948157304);
    p = fma(p, z, 0.28571428738248056);
    p = fma(p, z, 0.39999999999436564);
    p = fma(p, z, 0.6666666666666731);
    return s * fma(z, p, half);
}

// x = 2^k (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)), for a positive x, also a subnormal one: returns f.
double lz_split_all(double x, double *k) {
    int subnormal = x < 0x1p-1022;
    double power;
    double f = lz_split_f64(subnormal ? x * 0x1p54 : x, &power);
    *k = power - (subnormal ? 54.0 : 0.0);
    return f;
}

double lz_log_f64(double x) {
    double k;
    double f = lz_split_all(x, &k);
    double half = 0.5 * f * f;
    double rest = fma(k, 2.3190468138462996e-17, lz_log_rest(f, half));
    double high = f - half;
    double low = (f - high) - half + fma(0.5 * f, -f, half);
    double whole = fma(k, 0.6931471805599453, high);
    low += fma(k, 0.6931471805599453, -whole) + high;
    return lz_log_special_f64(x, whole + (low + rest));
}

// k times one number and ln(1 + f) times another one; both in two parts.
double lz_log_to_base(double f, double k, double one, double one_low, double times, double times_low) {
    double half = 0.5 * f * f;
    double high = f - half;
    double low = (f - high) - half + (fma(0.5 * f, -f, half) + lz_log_rest(f, half));
    double t = high * times;
    double lost = fma(high, times, -t) + fma(low, times, high * times_low);
    double whole = fma(k, one, t);
    double rest = (fma(k, one, -whole) + t) + fma(k, one_low, lost);
    return whole + rest;
}

double lz_log2_f64(double x) {
    double k;
    double f = lz_split_all(x, &k);
    return lz_log_special_f64(x, lz_log_to_base(f, k, 1.0, 0.0, 1.4426950408889634, 2.0355273740931033e-17));
}

double lz_log10_f64(double x) {
    double k;
    double f = lz_split_all(x, &k);
    double r = lz_log_to_base(f, k, 0.3010299956639812, -2.8037281277851704e-18, 0.4342944819032518, 1.098319650216765e-17);
    return lz_log_special_f64(x, r);
}

// ln(1 + x + low), where low is small beside both or x = 0, for an x > -1.
double lz_log1p_of(double x, double low) {
    double u = 1.0 + x;
    double large = x > 1.0 ? x : 1.0;
    double small = x > 1.0 ? 1.0 : x;
    double lost = (large - u) + small + low;
    double k;
    double f = lz_split_f64(u, &k);
    f = k == 0.0 ? x : f;
    double c = k == 0.0 ? low / u : lost / u;
    double half = 0.5 * f * f;
    double rest = lz_log_rest(f, half) + fma(k, 2.3190468138462996e-17, c);
    double high = f - half;
    double less = (f - high) - half + fma(0.5 * f, -f, half);
    double whole = fma(k, 0.6931471805599453, high);
    less += fma(k, 0.6931471805599453, -whole) + high;
    return whole + (less + rest);
}

double lz_log1p_f64(double x) {
    double r = lz_log_special_f64(1.0 + x, lz_log1p_of(x, 0.0));
    return copysign(r, x);
}

// x = n pi/2 + r for |x| < 2^30: returns r, what is lost of it, and n's last two bits.
double lz_quarter_f64(double x, double *lost, long long *quadrant) {
    double shifted = fma(x, 0.6366197723675814, 0x1.8p52);
    double n = shifted - 0x1.8p52;
    double high = fma(n, -1.5707963267948966, x);
    double r = fma(n, -6.123233995736766e-17, high);
    *quadrant = lz_as_i64(shifted) & 3;
    *lost = fma(n, 1.4973849048591698e-33, fma(n, -6.123233995736766e-17, high - r));
    return r;
}

// sin(r + lost) for |r| <= pi/4.
double lz_sin_core_f64(double r, double lost) {
    double z = r * r;
    double p = 7.578778821606994e-13;
    p = fma(p, z, -1.6058368456298562e-10);
    p = fma(p, z, 2.505210492793439e-08);
    p = fma(p, z, -2.7557319214263526e-06);
    p = fma(p, z, 0.00019841269841255237);
    p = fma(p, z, -0.008333333333333323);
    p = fma(p, z, 0.16666666666666666);
    return r - fma(z * r, p, fma(0.5 * z, lost, -lost));
}

// cos(r + lost) for |r| <= pi/4.
double lz_cos_core_f64(double r, double lost) {
    double z = r * r;
    double p = -1.1361210242593912e-11;
    p = fma(p, z, 2.0875756346838756e-09);
    p = fma(p, z, -2.755731462237705e-07);
    p = fma(p, z, 2.4801587290537116e-05);
    p = fma(p, z, -0.0013888888888876074);
    p = fma(p, z, 0.041666666666666616);
    double whole = fma(-0.5, z, 1.0);
    double rest = fma(-0.5, z, 1.0 - whole) - 0.5 * fma(r, r, -z);
    return whole + (rest + fma(z * z, p, -r * lost));
}

// Slow paths: a branch in vectors, taken where any lane is beyond the range.
double lz_slow_sin(double x, double result) {
    return fabs(x) < 0x1p30 ? result : sin(x);
}

double lz_sin_f64(double x) {
    double lost;
    long long q;
    double r = lz_quarter_f64(x, &lost, &q);
    double s = (q & 1) != 0 ? lz_cos_core_f64(r, lost) : lz_sin_core_f64(r, lost);
    return lz_slow_sin(x, lz_as_f64(lz_as_i64(s) ^ ((q & 2) << 62)));
}

double lz_slow_cos(double x, double result) {
    return fabs(x) < 0x1p30 ? result : cos(x);
}

double lz_cos_f64(double x) {
    double lost;
    long long q;
    double r = lz_quarter_f64(x, &lost, &q);
    double c = (q & 1) != 0 ? lz_sin_core_f64(r, lost) : lz_cos_core_f64(r, lost);
    return lz_slow_cos(x, lz_as_f64(lz_as_i64(c) ^ (((q + 1) & 2) << 62)));
}

double lz_slow_tan(double x, double result) {
    return fabs(x) < 0x1p30 ? result : tan(x);
}

double lz_tan_f64(double x) {
    double lost;
    long long q;
    double r = lz_quarter_f64(x, &lost, &q);
    double s = lz_sin_core_f64(r, lost);
    double c = lz_cos_core_f64(r, lost);
    return lz_slow_tan(x, ((q & 1) != 0 ? -c : s) / ((q & 1) != 0 ? s : c));
}

// A polynomial near 0, 1 - 2 / (e^2x + 1) elsewhere; beyond 19.1 the result is 1 to the last bit.
double lz_tanh_f64(double x) {
    double a = fabs(x);
    double z = a * a;
    double p = -1.9555387539088133e-05;
    p = fma(p, z, 8.341954811270386e-05);
    p = fma(p, z, -0.00023345735980697473);
    p = fma(p, z, 0.0005884760628880456);
    p = fma(p, z, -0.0014555510426433596);
    p = fma(p, z, 0.003592093403218011);
    p = fma(p, z, -0.008863232749884134);
    p = fma(p, z, 0.021869488395927436);
    p = fma(p, z, -0.05396825396416191);
    p = fma(p, z, 0.1333333333332744);
    p = fma(p, z, -0.33333333333333304);
    double near = fma(a * z, p, a);
    double far = 1.0 - 2.0 / (lz_exp_scaled(2.0 * (a > 20.0 ? 20.0 : a), 0.0) + 1.0);
    return copysign(a < 0.55 ? near : far, x);
}

// A polynomial near 0, where the exponentials cancel.
double lz_sinh_f64(double x) {
    double a = fabs(x);
    double z = a * a;
    double p = 7.759225382621485e-13;
    p = fma(p, z, 1.605724350036936e-10);
    p = fma(p, z, 2.5052123353062802e-08);
    p = fma(p, z, 2.7557319155664727e-06);
    p = fma(p, z, 0.00019841269841436456);
    p = fma(p, z, 0.00833333333333314);
    p = fma(p, z, 0.16666666666666669);
    double e = lz_exp_scaled(a, -1.0);
    return copysign(a < 1.0 ? fma(a * z, p, a) : e - 0.25 / e, x);
}

double lz_cosh_f64(double x) {
    double e = lz_exp_scaled(fabs(x), -1.0);
    return e + 0.25 / e;
}

// asin(s + lost) - s for 0 <= s <= 1/2, with z = s * s; relative error of the sum 2^-57.
double lz_asin_core_f64(double s, double z, double lost) {
    double p = 0.03178989272798781;
    p = fma(p, z, -0.01603242632172088);
    p = fma(p, z, 0.019396100697692414);
    p = fma(p, z, 0.006580571000429082);
    p = fma(p, z, 0.01215585196053283);
    p = fma(p, z, 0.013887494294713388);
    p = fma(p, z, 0.017359447587196042);
    p = fma(p, z, 0.022371777546606856);
    p = fma(p, z, 0.03038195818701314);
    p = fma(p, z, 0.04464285685606993);
    p = fma(p, z, 0.07500000000294656);
    p = fma(p, z, 0.16666666666665653);
    return fma(s * z, p, lost);
}

// asin(a) up to 1/2, asin(sqrt((1 - a) / 2)) beyond, in two parts, the second of which is returned.
double lz_asin_parts(double a, double *high) {
    double half = 0.5 * (1.0 - a);
    double root = sqrt(half);
    double s = a > 0.5 ? root : a;
    double lost = fma(-root, root, half) / (root + root);
    *high = s;
    return lz_asin_core_f64(s, a > 0.5 ? half : a * a, (a > 0.5) & (root > 0.0) ? lost : 0.0);
}

// pi/2 - 2 asin(sqrt((1 - x) / 2)) beyond 1/2.
double lz_asin_f64(double x) {
    double a = fabs(x);
    double s;
    double t = lz_asin_parts(a, &s);
    double far = (1.5707963267948966 - 2.0 * s) + fma(-2.0, t, 6.123233995736766e-17);
    return copysign(a > 0.5 ? far : s + t, x);
}

double lz_acos_f64(double x) {
    double a = fabs(x);
    double s;
    double t = lz_asin_parts(a, &s);
    double near = 1.5707963267948966 - copysign(s, x);
    near += (1.5707963267948966 - near - copysign(s, x)) - (copysign(t, x) - 6.123233995736766e-17);
    double behind = (3.141592653589793 - 2.0 * s) - fma(2.0, t, -1.2246467991473532e-16);
    return a > 0.5 ? (x < 0.0 ? behind : 2.0 * (s + t)) : near;
}

// atan(y / x) for y and x from 0 on of which one is not 0, where not both are large: a quotient of at most sqrt(2) - 1 from 0, pi/4 or
// pi/2 on.
double lz_angle_f64(double y, double x) {
    int steep = y > 2.414213562373095 * x;
    int level = y <= 0.4142135623730951 * x;
    double top = steep ? -x : level ? y : y - x;
    double bottom = steep ? y : level ? x : y + x;
    double t = top / bottom;
    double z = t * t;
    double p = 0.015282705891365003;
    p = fma(p, z, -0.03356607142705167);
    p = fma(p, z, 0.04507756423547675);
    p = fma(p, z, -0.05219518267845507);
    p = fma(p, z, 0.05877209659493429);
    p = fma(p, z, -0.06666247798715226);
    p = fma(p, z, 0.07692284341368544);
    p = fma(p, z, -0.09090908223545288);
    p = fma(p, z, 0.11111111090703635);
    p = fma(p, z, -0.14285714285436169);
    p = fma(p, z, 0.19999999999998147);
    p = fma(p, z, -0.3333333333333333);
    double from = steep ? 1.5707963267948966 : level ? 0.0 : 0.7853981633974483;
    double low = steep ? 6.123233995736766e-17 : level ? 0.0 : 3.061616997868383e-17;
    double high = from + t;
    return high + (((from - high) + t) + fma(t * z, p, low));
}

double lz_atan_f64(double x) {
    double a = fabs(x);
    double r = lz_angle_f64(a > 0x1p60 ? 0x1p60 : a, 1.0);
    return copysign(x != x ? x : r, x);
}

double lz_atan2_f64(double y, double x) {
    double u = fabs(x);
    double v = fabs(y);
    double most = 0x1p1020;
    double scale = (u > most) | (v > most) ? 0x1p-4 : 1.0;
    scale = (u < 0x1p-960) & (v < 0x1p-960) ? 0x1p60 : scale;
    double infinite = __builtin_inf();
    double a = u == infinite ? (v == infinite ? 1.0 : infinite) : v == infinite ? 0.0 : u * scale;
    double b = v == infinite ? 1.0 : u == infinite ? 0.0 : v * scale;
    a = (u == 0.0) & (v == 0.0) ? 1.0 : a;
    a = a == infinite ? 1.0 : a;
    double t = lz_angle_f64(b, a);
    t = copysign(1.0, x) < 0.0 ? (3.141592653589793 - t) + 1.2246467991473532e-16 : t;
    return (x != x) | (y != y) ? x + y : copysign(t, y);
}

double lz_hypot_f64(double a, double b) {
    double x = fabs(a);
    double y = fabs(b);
    double infinite = __builtin_inf();
    double large = x > y ? x : y;
    double scale = large > 0x1p500 ? 0x1p-600 : large < 0x1p-400 ? 0x1p600 : 1.0;
    double back = large > 0x1p500 ? 0x1p600 : large < 0x1p-400 ? 0x1p-600 : 1.0;
    double u = x * scale;
    double v = y * scale;
    return (x == infinite) | (y == infinite) ? infinite : sqrt(fma(u, u, v * v)) * back;
}

// ln(1 + a + z / (1 + sqrt(z + 1))), the last of which is sqrt(z + 1) - 1; ln(2a) for what is large.
double lz_asinh_f64(double x) {
    double a = fabs(x);
    double z = a * a;
    double more = z / (1.0 + sqrt(z + 1.0));
    double sum = a + more;
    double large = a > 0x1p28 ? 1.0 : 0.0;
    double r = lz_log1p_of(large > 0.0 ? a - 1.0 : sum, large > 0.0 ? 0.0 : (a - sum) + more) + large * 0.6931471805599453;
    return copysign(a <= 0x1.fffffffffffffp1023 ? r : a, x);
}

double lz_acosh_f64(double x) {
    double t = x - 1.0;
    double root = sqrt(t * (t + 2.0));
    double sum = t + root;
    double large = x > 0x1p28 ? 1.0 : 0.0;
    double r = lz_log1p_of(large > 0.0 ? t : sum, 0.0) + large * 0.6931471805599453;
    r = x <= 0x1.fffffffffffffp1023 ? r : x;
    return x < 1.0 ? __builtin_nan("") : r;
}

double lz_atanh_f64(double x) {
    double a = fabs(x);
    double r = 0.5 * lz_log1p_of(2.0 * a / (1.0 - a), 0.0);
    r = a < 1.0 ? r : __builtin_nan("");
    return copysign(a == 1.0 ? __builtin_inf() : r, x);
}

// Less what its cube is too much.
double lz_cbrt_f64(double x) {
    double m = fabs(x);
    double scaled = m < 0x1p-1000 ? m * 0x1p90 : m;
    double r = lz_exp2_core(lz_log2_core(scaled) * 0.3333333333333333);
    double square = r * r;
    double much = fma(square, r, -scaled) + fma(r, r, -square) * r;
    r -= much / (3.0 * square);
    r *= m < 0x1p-1000 ? 0x1p-30 : 1.0;
    return copysign((m > 0.0) & (m <= 0x1.fffffffffffffp1023) ? r : m, x);
}

// erfc(a) for a from 0 to 28: e^(-a * a) / (1 + 2a) times a polynomial of (a - 4) / (a + 4), as M. M. Shepherd and J. G. Laframboise,
// "Chebyshev approximation of (1 + 2x) exp(x^2) erfc x", 1981, have it.
double lz_erfc_core(double a) {
    double q = (a - 4.0) / (a + 4.0);
    double p = -1.716151892113462e-09;
    p = fma(p, q, -1.3381615372015736e-08);
    p = fma(p, q, -7.77794891808578e-09);
    p = fma(p, q, 1.1455056387424369e-07);
    p = fma(p, q, 6.238053141063304e-08);
    p = fma(p, q, -8.342307040136051e-07);
    p = fma(p, q, 3.019684046370441e-07);
    p = fma(p, q, 5.7172912498508855e-06);
    p = fma(p, q, -1.1225291297826672e-05);
    p = fma(p, q, -2.4402941075197032e-05);
    p = fma(p, q, 0.0001506224748741477);
    p = fma(p, q, -0.00019925556100696751);
    p = fma(p, q, -0.0007577734056662906);
    p = fma(p, q, 0.005031969763457425);
    p = fma(p, q, -0.016197734048305802);
    p = fma(p, q, 0.03716751556187136);
    p = fma(p, q, -0.06633036581257394);
    p = fma(p, q, 0.09373283499682233);
    p = fma(p, q, -0.10103906603630072);
    p = fma(p, q, 0.06809705425473665);
    p = fma(p, q, 0.015379652102619757);
    p = fma(p, q, -0.1396211168405629);
    p = fma(p, q, 1.2329951186255526);
    double square = a * a;
    double e = p / fma(2.0, a, 1.0);
    e = fma(-fma(a, a, -square), e, e);
    double n;
    double lost;
    double r = lz_exp_reduced(-square, &n, &lost);
    return lz_power_f64(e * (1.0 + (r + fma(r * r, lz_exp_core_f64(r), lost))), n);
}

// erf(a) / a - 1 for |a| <= 1, with z = a * a; relative error of erf 2^-57.
double lz_erf_core(double z) {
    double p = -7.801191888341914e-10;
    p = fma(p, z, 1.3722976770798816e-08);
    p = fma(p, z, -1.6209175731923008e-07);
    p = fma(p, z, 1.6447517609499445e-06);
    p = fma(p, z, -1.492474465356765e-05);
    p = fma(p, z, 0.00012055295319730584);
    p = fma(p, z, -0.0008548325989661416);
    p = fma(p, z, 0.005223977607422502);
    p = fma(p, z, -0.026866170643276073);
    p = fma(p, z, 0.11283791670945252);
    p = fma(p, z, -0.3761263890318355);
    return fma(p, z, 0.12837916709551256);
}

double lz_erfc_f64(double x) {
    double a = fabs(x);
    double r = lz_erfc_core(a > 28.0 ? 28.0 : a);
    double near = 1.0 - fma(x, lz_erf_core(x * x), x);
    return a < 0.5 ? near : x < 0.0 ? 2.0 - r : r;
}

double lz_erf_f64(double x) {
    double a = fabs(x);
    double far = 1.0 - lz_erfc_core(a > 6.5 ? 6.5 : a);
    return copysign(a < 1.0 ? fma(a, lz_erf_core(a * a), a) : far, x);
}

// log2 of a positive normal m and a number more in two parts, the second of which is returned; relative error 2^-63.
double lz_log2_parts(double m, double more, double *high) {
    double k;
    double f = lz_split_f64(m, &k);
    double d = 2.0 + f;
    double s = f / d;
    double s_low = fma(-s, f - (d - 2.0), fma(-s, d, f)) / d;
    double z = s * s;
    double z_low = fma(s, s, -z) + 2.0 * s * s_low;
    double p = 0.1310731857187561;
    p = fma(p, z, 0.13266975306212564);
    p = fma(p, z, 0.15386292990719674);
    p = fma(p, z, 0.18181795161833267);
    p = fma(p, z, 0.22222222386844626);
    p = fma(p, z, 0.28571428570911056);
    p = fma(p, z, 0.4000000000000039);
    double u = 0.6666666666666666 + z * p;
    double u_low = (0.6666666666666666 - u) + fma(z, p, 3.700743415417188e-17);
    double v = z * u;
    double v_low = fma(z, u, -v) + fma(z, u_low, z_low * u);
    double w = 2.0 + v;
    double w_low = (2.0 - w) + v + v_low;
    double t = s * w;
    double t_low = fma(s, w, -t) + fma(s, w_low, s_low * w);
    double l = t * 1.4426950408889634;
    double l_low = fma(t, 1.4426950408889634, -l) + fma(t_low, 1.4426950408889634, t * 2.0355273740931033e-17);
    k += more;
    double whole = k + l;
    double rest = (k - whole) + l + l_low;
    double sum = whole + rest;
    *high = sum;
    return rest - (sum - whole);
}

// 2^(b log2 |a|), then the special cases of C's pow.
double lz_pow_f64(double a, double b) {
    double m = fabs(a);
    int small = m < 0x1p-1022;
    double high;
    double low = lz_log2_parts(small ? m * 0x1p54 : m, small ? -54.0 : 0.0, &high);
    double infinite = __builtin_inf();
    high = m <= 0x1.fffffffffffffp1023 ? high : m;
    high = m == 0.0 ? -infinite : high;
    double y = b * high;
    y = y > 1100.0 ? 1100.0 : y;
    y = y < -1200.0 ? -1200.0 : y;
    double rest = fma(b, high, -y) + b * low;
    rest = fabs(rest) < 1.0 ? rest : 0.0;
    double n = y + 0x1.8p52 - 0x1.8p52;
    double r = (y - n) + rest;
    double less = ((y - n) - r) + rest;
    double p = lz_exp2_poly_f64(r);
    double result = lz_power_f64(1.0 + fma(r, 0.6931471805599453, fma(r * r, p, less * 0.6931471805599453)), n);
    result = y != y ? y : result;
    result = m == 1.0 ? 1.0 : result;
    int fractional = trunc(b) != b;
    int odd = !fractional & (trunc(0.5 * b) != 0.5 * b);
    result = (a < 0.0) & (m <= 0x1.fffffffffffffp1023) & fractional ? __builtin_nan("") : result;
    result = odd ? copysign(result, a) : result;
    return (a == 1.0) | (b == 0.0) ? 1.0 : result;
}

double lz_erfinv_f64(double x) {
    return lz_erfinv_core(x, -lz_log_f64((1.0 - x) * (1.0 + x)));
}

// Reflected to x >= 0.5, raised to at least 10 by psi(x) = psi(x + 1) - 1 / x, then Stirling's series: Abramowitz and Stegun,
// "Handbook of Mathematical Functions", 1964, formulas 6.3.5, 6.3.7 and 6.3.18. Between poles, and near the zero at 1.46, large terms
// nearly cancel: in double precision.
float lz_digamma_f32(float x) {
    double y = x < 0.5f ? 1.0 - (double)x : (double)x;
    double terms = 0.0;
    for (int i = 0; i < 10; ++i) {
        terms = y < 10.0 ? terms + 1.0 / y : terms;
        y = y < 10.0 ? y + 1.0 : y;
    }
    double h = 1.0 / y;
    double z = h * h;
    double p = 1.0 / 12.0;
    p = 691.0 / 32760.0 - p * z;
    p = 1.0 / 132.0 - p * z;
    p = 1.0 / 240.0 - p * z;
    p = 1.0 / 252.0 - p * z;
    p = 1.0 / 120.0 - p * z;
    p = 1.0 / 12.0 - p * z;
    double c = lz_log_f64(y) - terms - (0.5 * h + p * z);
    double f = (double)(x - rintf(x));
    double reflected = c - 3.141592653589793 / lz_tan_f64(3.141592653589793 * f);
    c = x < 0.5f ? reflected : c;
    c = (x < 0.0f) & (f == 0.0) ? x - x + 0.0 * (1.0 / f) : c;
    return x == 0.0f ? -1.0f / x : (float)c;
}
