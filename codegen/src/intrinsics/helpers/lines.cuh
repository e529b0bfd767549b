// On other processors, which have no such products, each thread adds up its own.
void lz_add_lines_f16(float* sums, const unsigned short* left, const unsigned short* right, unsigned columns, bool turned_left, bool turned_right) {
    unsigned thread = threadIdx.x % 128u, row = thread / 32u * 16u + thread % 32u / 4u;
#pragma unroll 1
    for (unsigned n = 0u; n < columns / 2u; ++n) {
        unsigned own = row + n / 2u % 2u * 8u, column = n / 4u * 8u + thread % 4u * 2u + n % 2u;
#pragma unroll 1
        for (unsigned k = 0u; k < 16u; ++k) {
            float a = lz_f16_to_f32(lz_of_lines(left, own, k, turned_left));
            float b = lz_f16_to_f32(lz_of_lines(right, column, k, turned_right));
            sums[n] = fmaf(a, b, sums[n]);
        }
    }
}

// The same of what each thread has of a 16 × 16 matrix of its warp: two neighbours of each eight terms.
void lz_add_own_lines_f16(float* sums, const unsigned short* left, const unsigned short* right, unsigned columns, bool, bool turned_right) {
    unsigned lane = threadIdx.x % 32u;
#pragma unroll 1
    for (unsigned k = 0u; k < 16u; ++k) {
#pragma unroll 1
        for (unsigned i = 0u; i < 2u; ++i) {
            float own = lz_f16_to_f32(left[(k / 8u * 2u + i) * 2u + k % 2u]);
            float a = __shfl_sync(0xffffffffu, own, lane / 4u * 4u + k % 8u / 2u);
#pragma unroll 1
            for (unsigned n = 0u; n < columns / 4u; ++n) {
                float b = lz_f16_to_f32(lz_of_lines(right, n / 2u * 8u + lane % 4u * 2u + n % 2u, k, turned_right));
                float* sum = sums + n / 2u * 4u + i * 2u + n % 2u;
                *sum = fmaf(a, b, *sum);
            }
        }
    }
}
