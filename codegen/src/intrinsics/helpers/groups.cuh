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
