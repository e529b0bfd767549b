// Where elements are, as the driver has it.
struct lz_tensor_map {
    __align__(128) unsigned long long words[16];
};

// So many copies arrive in each round of each slot.
void lz_expect_tiles(long long* arrived, unsigned slots, unsigned copies) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    for (unsigned slot = 0u; slot < slots; ++slot) {
        unsigned at = (unsigned)__cvta_generic_to_shared(arrived + slot);
        asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(at), "r"(copies) : "memory");
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#endif
}

// Waits until the copies of a slot's round have arrived.
void lz_await_tiles(long long* arrived, unsigned round) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    unsigned at = (unsigned)__cvta_generic_to_shared(arrived), parity = round & 1u, is_there;
    do {
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }" : "=r"(is_there) : "r"(at), "r"(parity) : "memory");
    } while (!is_there);
#endif
}
