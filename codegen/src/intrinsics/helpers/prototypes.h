// Functions of the C library that emitted C may call: declared here because no header is included. One paragraph
// each; a kernel's text gets those it calls. gcc and clang expand most of them inline.

float sqrtf(float);

float fabsf(float);

float floorf(float);

float ceilf(float);

float rintf(float);

float truncf(float);

float copysignf(float, float);

float fmaf(float, float, float);

float fmodf(float, float);

double sqrt(double);

double fabs(double);

double floor(double);

double ceil(double);

double rint(double);

double trunc(double);

double copysign(double, double);

double fma(double, double, double);

double fmod(double, double);

double exp(double);

double exp2(double);

double expm1(double);

double log(double);

double log2(double);

double log10(double);

double log1p(double);

double sin(double);

double cos(double);

double tan(double);

double tanh(double);

double erf(double);

double pow(double, double);

double atan2(double, double);

float asinf(float);

double asin(double);

float acosf(float);

double acos(double);

float atanf(float);

double atan(double);

float sinhf(float);

double sinh(double);

float coshf(float);

double cosh(double);

float asinhf(float);

double asinh(double);

float acoshf(float);

double acosh(double);

float atanhf(float);

double atanh(double);

float cbrtf(float);

double cbrt(double);

float erfcf(float);

double erfc(double);

float lgammaf(float);

double lgamma(double);

float hypotf(float, float);

double hypot(double, double);
