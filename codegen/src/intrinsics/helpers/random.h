// Random numbers, from the words of a block of Philox.

float lz_random_f32(unsigned long long seed, unsigned long long index) {
    return (float)(int)(lz_philox(seed, index) >> 40) * 5.9604645e-8f;
}

double lz_random_f64(unsigned long long seed, unsigned long long index) {
    return (double)(long long)(lz_philox(seed, index) >> 11) * 1.1102230246251565e-16;
}

// The same of the element so many after one: whoever computes in lanes has all of a register, and one seed for them.
float lz_random_after_f32(const unsigned long long seed, const unsigned long long first, int after) {
    return lz_random_f32(seed, first + (unsigned long long)(long long)after);
}
