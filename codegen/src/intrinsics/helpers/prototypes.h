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

double asin(double);

double acos(double);

double atan(double);

double sinh(double);

double cosh(double);

double asinh(double);

double acosh(double);

double atanh(double);

double cbrt(double);

double erfc(double);

float lgammaf(float);

double lgamma(double);

double hypot(double, double);
