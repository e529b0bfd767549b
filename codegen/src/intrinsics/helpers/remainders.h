// What loops of vectors have in place of the C library's remainders of floats, with the same bits.

// The quotient is rounded to the nearest number, so that its whole part is right or one too large; a multiple of
// b is taken away with no rounding, since what is left has b's last bit or a higher one. NaN stands for large
// quotients, which are left to fmodf.
float lz_fmod_near_f32(float a, float b) {
    float q = truncf(a / b);
    float r = fmaf(-q, b, a);
    float left = (a < 0.0f ? -r : r) < 0.0f ? r + copysignf(b, a) : r;
    return fabsf(q) < 8388608.0f && fabsf(b) <= 3.4028235e38f ? copysignf(left, a) : __builtin_nanf("");
}

double lz_fmod_near_f64(double a, double b) {
    double q = trunc(a / b);
    double r = fma(-q, b, a);
    double left = (a < 0.0 ? -r : r) < 0.0 ? r + copysign(b, a) : r;
    return fabs(q) < 4503599627370496.0 && fabs(b) <= 1.7976931348623157e308 ? copysign(left, a) : __builtin_nan("");
}

float lz_fmod_rest_f32(float a, float b, float near) {
    if (near == near) return near;
    return fmodf(a, b);
}

double lz_fmod_rest_f64(double a, double b, double near) {
    if (near == near) return near;
    return fmod(a, b);
}

float lz_fmod_lanes_f32(float a, float b) {
    return lz_fmod_rest_f32(a, b, lz_fmod_near_f32(a, b));
}

double lz_fmod_lanes_f64(double a, double b) {
    return lz_fmod_rest_f64(a, b, lz_fmod_near_f64(a, b));
}
