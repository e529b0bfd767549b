// What the thread has put into shared memory is seen by products of groups.
void lz_products_publish() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

// The sums are as they are where products begin.
void lz_products_begin() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#endif
}

void lz_products_commit() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#endif
}

void lz_products_await_but_0() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#endif
}

void lz_products_await_but_1() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
#endif
}

// Where lines of 128 bytes are, whose chunks have changed places: from eight lines to the next are 1024 bytes, and from 64 elements
// to the next 64 of turned ones 8192.
unsigned long long lz_lines(const unsigned short* lines) {
    unsigned at = (unsigned)__cvta_generic_to_shared(lines);
    return (at & 0x3ffffu) >> 4 | 512ull << 16 | 64ull << 32 | 1ull << 62;
}

// An element of such lines, each of a row or column with its terms along it, or turned: of a term, 64 rows or columns long.
unsigned short lz_of_lines(const unsigned short* lines, unsigned own, unsigned term, bool turned) {
    unsigned long long at = (unsigned long long)(lines + (turned ? (own / 64u * 64u + term) * 64u + own % 64u : own * 64u + term));
    return *(const unsigned short*)(at ^ (at >> 7 & 7u) << 4);
}

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

void lz_add_lines_bf16(float* sums, const unsigned short* left, const unsigned short* right, unsigned columns, bool turned_left, bool turned_right) {
    unsigned thread = threadIdx.x % 128u, row = thread / 32u * 16u + thread % 32u / 4u;
#pragma unroll 1
    for (unsigned n = 0u; n < columns / 2u; ++n) {
        unsigned own = row + n / 2u % 2u * 8u, column = n / 4u * 8u + thread % 4u * 2u + n % 2u;
#pragma unroll 1
        for (unsigned k = 0u; k < 16u; ++k) {
            float a = lz_bf16_to_f32(lz_of_lines(left, own, k, turned_left));
            float b = lz_bf16_to_f32(lz_of_lines(right, column, k, turned_right));
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

// The same of what each thread has of a 16 × 16 matrix of its warp: two neighbours of each eight terms.
void lz_add_own_lines_bf16(float* sums, const unsigned short* left, const unsigned short* right, unsigned columns, bool, bool turned_right) {
    unsigned lane = threadIdx.x % 32u;
#pragma unroll 1
    for (unsigned k = 0u; k < 16u; ++k) {
#pragma unroll 1
        for (unsigned i = 0u; i < 2u; ++i) {
            float own = lz_bf16_to_f32(left[(k / 8u * 2u + i) * 2u + k % 2u]);
            float a = __shfl_sync(0xffffffffu, own, lane / 4u * 4u + k % 8u / 2u);
#pragma unroll 1
            for (unsigned n = 0u; n < columns / 4u; ++n) {
                float b = lz_bf16_to_f32(lz_of_lines(right, n / 2u * 8u + lane % 4u * 2u + n % 2u, k, turned_right));
                float* sum = sums + n / 2u * 4u + i * 2u + n % 2u;
                *sum = fmaf(a, b, *sum);
            }
        }
    }
}
