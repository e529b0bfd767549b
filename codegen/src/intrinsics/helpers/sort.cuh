// Sorts rows of a power of two of items in shared memory (K. E. Batcher's bitonic network). All threads come here.
void lz_sort_block_i64(long long* items, unsigned count, unsigned length, unsigned threads) {
    for (unsigned size = 2u; size <= length; size *= 2u) {
        for (unsigned apart = size / 2u; apart > 0u; apart /= 2u) {
            __syncthreads();
            for (unsigned pair = threadIdx.x; pair < count / 2u; pair += threads) {
                const unsigned a = 2u * pair - (pair & (apart - 1u)), b = a + apart;
                const bool ascends = (a & size & (length - 1u)) == 0u;
                const long long x = items[a], y = items[b];
                if ((y < x) == ascends) {
                    items[a] = y;
                    items[b] = x;
                }
            }
        }
    }
    __syncthreads();
}

// The same of items of a place and a key.
void lz_sort_block_i128(long long* items, unsigned count, unsigned length, unsigned threads) {
    for (unsigned size = 2u; size <= length; size *= 2u) {
        for (unsigned apart = size / 2u; apart > 0u; apart /= 2u) {
            __syncthreads();
            for (unsigned pair = threadIdx.x; pair < count / 2u; pair += threads) {
                const unsigned a = 2u * pair - (pair & (apart - 1u)), b = a + apart;
                const bool ascends = (a & size & (length - 1u)) == 0u;
                const long long x = items[2u * a + 1u], y = items[2u * b + 1u];
                const long long own = items[2u * a], other = items[2u * b];
                if ((y < x || y == x && other < own) == ascends) {
                    items[2u * a + 1u] = y;
                    items[2u * b + 1u] = x;
                    items[2u * a] = other;
                    items[2u * b] = own;
                }
            }
        }
    }
    __syncthreads();
}
