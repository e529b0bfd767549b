// Special functions of C for the CPU, in f32, free of branches as those of c_math.h are, and computed in double precision.

// e^(-x * x) times a polynomial of t = 2 / (2 + x).
float lz_erfc_f32(float x) {
    double a = fabs((double)x);
    a = a > 10.5 ? 10.5 : a;
    double t = 2.0 / (2.0 + a);
    double p = -0.010596595288600118;
    p = fma(p, t, 0.04285034897093985);
    p = fma(p, t, 0.0006769737060359816);
    p = fma(p, t, -0.31078469397020275);
    p = fma(p, t, 0.7518361310588877);
    p = fma(p, t, -0.7884105458953157);
    p = fma(p, t, 0.3840567998188082);
    p = fma(p, t, -0.1811912883633596);
    p = fma(p, t, 0.1322060362628515);
    p = fma(p, t, 0.16733287636538552);
    p = fma(p, t, 0.24790686135777548);
    p = fma(p, t, 0.28202000639942026);
    p = fma(p, t, 0.2820970894077163);
    double r = t * p * lz_exp2_core(a * a * -1.4426950408889634);
    return (float)(x < 0.0f ? 2.0 - r : r);
}

// The factor of lz_erfinv_core beyond |x| = 0.998: polynomials of w's root.
double lz_erfinv_tail(double w) {
    double root = sqrt(w);
    double v = root - 3.25;
    double q = 2.2137376921775787e-09;
    q = fma(q, v, 9.075656193888539e-08);
    q = fma(q, v, -2.7517406297064545e-07);
    q = fma(q, v, 1.8239629214389228e-08);
    q = fma(q, v, 1.5027403968909828e-06);
    q = fma(q, v, -4.013867526981546e-06);
    q = fma(q, v, 2.9234449089955446e-06);
    q = fma(q, v, 1.2475304481671779e-05);
    q = fma(q, v, -4.7318229009055734e-05);
    q = fma(q, v, 6.828485145957318e-05);
    q = fma(q, v, 2.4031110387097894e-05);
    q = fma(q, v, -0.0003550375203628475);
    q = fma(q, v, 0.0009532893797373805);
    q = fma(q, v, -0.0016882755560235047);
    q = fma(q, v, 0.002491442096107851);
    q = fma(q, v, -0.003751208507569241);
    q = fma(q, v, 0.005370914553590064);
    q = fma(q, v, 1.0052589676941592);
    q = fma(q, v, 3.0838856104922208);
    double t = root - 5.0;
    double r = -2.7109920616438573e-11;
    r = fma(r, t, -2.555641816996525e-10);
    r = fma(r, t, 1.5076572693500548e-09);
    r = fma(r, t, -3.789465440126737e-09);
    r = fma(r, t, 7.61570120807834e-09);
    r = fma(r, t, -1.496002662714924e-08);
    r = fma(r, t, 2.914795345090108e-08);
    r = fma(r, t, -6.771199775845234e-08);
    r = fma(r, t, 2.2900482228026655e-07);
    r = fma(r, t, -9.9298272942317e-07);
    r = fma(r, t, 4.526062597223154e-06);
    r = fma(r, t, -1.968177810553167e-05);
    r = fma(r, t, 7.599527703001776e-05);
    r = fma(r, t, -0.00021503011930044477);
    r = fma(r, t, -0.00013871931833623122);
    r = fma(r, t, 1.0103004648645344);
    r = fma(r, t, 4.849906401408584);
    return w < 16.0 ? q : r;
}

// Slow path.
double lz_slow_erfinv(double w, double result) {
    return w < 6.25 ? result : lz_erfinv_tail(w);
}

// x times a polynomial of w = -ln(1 - x * x). M. Giles, "Approximating the erfinv
// function", GPU Computing Gems, Jade edition, 2011: the coefficients for double precision.
double lz_erfinv_core(double x, double w) {
    double u = w - 3.125;
    double p = -3.64441206401782e-21;
    p = fma(p, u, -1.6850591381820166e-19);
    p = fma(p, u, 1.28584807152564e-18);
    p = fma(p, u, 1.1157877678025181e-17);
    p = fma(p, u, -1.333171662854621e-16);
    p = fma(p, u, 2.0972767875968562e-17);
    p = fma(p, u, 6.637638134358324e-15);
    p = fma(p, u, -4.054566272975207e-14);
    p = fma(p, u, -8.151934197605472e-14);
    p = fma(p, u, 2.6335093153082323e-12);
    p = fma(p, u, -1.2975133253453532e-11);
    p = fma(p, u, -5.415412054294628e-11);
    p = fma(p, u, 1.0512122733215323e-09);
    p = fma(p, u, -4.112633980346984e-09);
    p = fma(p, u, -2.9070369957882005e-08);
    p = fma(p, u, 4.2347877827932404e-07);
    p = fma(p, u, -1.3654692000834679e-06);
    p = fma(p, u, -1.3882523362786469e-05);
    p = fma(p, u, 0.00018673420803405714);
    p = fma(p, u, -0.000740702534166267);
    p = fma(p, u, -0.006033670871430149);
    p = fma(p, u, 0.24015818242558962);
    p = fma(p, u, 1.6536545626831027);
    return fabs(x) == 1.0 ? x * __builtin_inf() : lz_slow_erfinv(w, p) * x;
}

float lz_erfinv_f32(float x) {
    double k;
    double d = (double)x;
    double y = fma(-d, d, 1.0);
    double f = lz_split_f64(y < 0x1p-60 ? 0x1p-60 : y, &k);
    double w = -fma(k, 0.6931471805599453, lz_log1p_core(f));
    return y < 0.0 ? __builtin_nanf("") : (float)lz_erfinv_core(d, w);
}

// ln(gamma(z)) for z in [3/2, 5/2) is z - 2 times a polynomial; gamma(x + 1) = x gamma(x) leads there from elsewhere. From 8 on Stirling's
// series: M. Abramowitz and I. Stegun, "Handbook of Mathematical Functions", 1964, formula 6.1.41.
double lz_lgamma_core(double y) {
    double z = y;
    double m = 1.0;
    for (int i = 0; i < 2; ++i) {
        m = z < 1.5 ? m * z : m;
        z = z < 1.5 ? z + 1.0 : z;
    }
    for (int i = 0; i < 6; ++i) {
        int is_above = z >= 2.5;
        z = is_above ? z - 1.0 : z;
        m = is_above ? m * z : m;
    }
    int is_large = y >= 8.0;
    double k;
    double f = lz_split_f64(is_large ? y : m, &k);
    double l = fma(k, 0.6931471805599453, lz_log1p_core(f));
    double d = z - 2.0;
    double p = -1.1296499102214296e-05;
    p = fma(p, d, 2.4487052975853987e-05);
    p = fma(p, d, -4.4324684533065815e-05);
    p = fma(p, d, 9.816870450896373e-05);
    p = fma(p, d, -0.00022324653987287443);
    p = fma(p, d, 0.0005098661348137004);
    p = fma(p, d, -0.0011927471573807307);
    p = fma(p, d, 0.0028904958630843014);
    p = fma(p, d, -0.007385551240791602);
    p = fma(p, d, 0.020580808882117916);
    p = fma(p, d, -0.06735230105130044);
    p = fma(p, d, 0.32246703342004873);
    p = fma(p, d, 0.42278433509846713);
    double low = fma(d, p, y < 1.5 ? -l : l);
    double r = 1.0 / (is_large ? y : 8.0);
    double w = r * r;
    double s = 1.0 / 1260.0 - w * (1.0 / 1680.0);
    s = 1.0 / 12.0 - w * (1.0 / 360.0 - w * s);
    double high = fma(y - 0.5, l, -y) + fma(r, s, 0.9189385332046727);
    return is_large ? high : low;
}

// Below 0, where c is of -x: gamma(x) gamma(-x) x sin(pi x) = -pi.
double lz_lgamma_reflected(double x, double c) {
    double a = fabs(x);
    double f = a - rint(a);
    double z = fabs(2.0 * f);
    double s = z <= 0.5 ? lz_sin_core(z) : lz_cos_core(1.0 - z);
    double k;
    double l = lz_split_f64(a * s, &k);
    l = fma(k, 0.6931471805599453, lz_log1p_core(l));
    double reflected = f == 0.0 ? __builtin_inf() : 1.1447298858494002 - l - c;
    return x < 0.0 ? reflected : c;
}

// Slow path.
double lz_slow_lgamma(double x, double c) {
    return x >= 0.0 ? c : lz_lgamma_reflected(x, c);
}

float lz_lgamma_f32(float x) {
    double c = lz_slow_lgamma((double)x, lz_lgamma_core(fabs((double)x)));
    float infinite = __builtin_inff();
    return (x == 0.0f) | (fabsf(x) == infinite) ? infinite : (float)c;
}

// The power series up to 8, whose terms are all positive, and a polynomial of 16 / x - 1 for exp(-x) sqrt(x) i0(x) above: interpolated at
// the zeros of a Chebyshev polynomial. From 100 on the result is infinity.
float lz_i0_f32(float x) {
    double a = fabs((double)x);
    a = a > 100.0 ? 100.0 : a;
    double q = 0.25 * a * a;
    double low = 2.2843403570804838e-27;
    low = fma(low, q, 5.8479113141260385e-25);
    low = fma(low, q, 1.3157800456783586e-22);
    low = fma(low, q, 2.5789288895295828e-20);
    low = fma(low, q, 4.358389823304995e-18);
    low = fma(low, q, 6.276081345559193e-16);
    low = fma(low, q, 7.594058428126623e-14);
    low = fma(low, q, 7.594058428126624e-12);
    low = fma(low, q, 6.151187326782565e-10);
    low = fma(low, q, 3.936759889140842e-08);
    low = fma(low, q, 1.9290123456790124e-06);
    low = fma(low, q, 6.944444444444444e-05);
    low = fma(low, q, 0.001736111111111111);
    low = fma(low, q, 0.027777777777777776);
    low = fma(low, q, 0.25);
    low = fma(low, q, 1.0);
    low = fma(low, q, 1.0);
    double u = 16.0 / a - 1.0;
    double high = 1.0829898259260847e-07;
    high = fma(high, u, 3.631710305277285e-07);
    high = fma(high, u, 1.4767921099426897e-06);
    high = fma(high, u, 1.1111525456650673e-05);
    high = fma(high, u, 0.00013621684311530046);
    high = fma(high, u, 0.003360555851925354);
    high = fma(high, u, 0.4021765094450081);
    high = high / sqrt(a) * lz_exp2_core(a * 1.4426950408889634);
    return (float)(a <= 8.0 ? low : high);
}
