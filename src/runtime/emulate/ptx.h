// What kernels write as inline PTX, as functions that the translation puts in its place. It is read behind `shim.h`.

#ifndef LZ_EMU_RUNTIME

// ---------------------------------------------------------------------------------------------
// Conversions. They round to nearest even; every NaN becomes the one that the hardware gives.

/// cvt.f32.f16
LZ_EMU_INLINE float lz_emu_f16_to_f32(unsigned short h) {
    unsigned sign = (h & 0x8000u) << 16, exponent = h >> 10 & 31, mantissa = h & 0x3ff;
    if (exponent == 31) return __uint_as_float(mantissa ? 0x7fffffffu : sign | 0x7f800000u);
    if (exponent == 0) return __uint_as_float(sign | __float_as_uint((float)mantissa * 0x1p-24f));
    return __uint_as_float(sign | (exponent + 112) << 23 | mantissa << 13);
}
/// cvt.rn.f16.f32
LZ_EMU_INLINE unsigned short lz_emu_f32_to_f16(float f) {
    unsigned bits = __float_as_uint(f), sign = bits >> 16 & 0x8000u, size = bits & 0x7fffffffu;
    if (size > 0x7f800000u) return 0x7fff;
    if (size >= 0x477ff000u) return sign | 0x7c00;  // from 65520 on: infinity
    // Below 2^-14, subnormal: adding 1/2 makes the last bit of the float worth 2^-24, as that of the half is.
    if (size < 0x38800000u) return sign | (__float_as_uint(__uint_as_float(size) + 0.5f) - __float_as_uint(0.5f));
    return sign | (size - (112u << 23) + 0xfff + (size >> 13 & 1)) >> 13;
}
/// cvt.rn.bf16.f32
LZ_EMU_INLINE unsigned short lz_emu_f32_to_bf16(float f) {
    unsigned bits = __float_as_uint(f);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fff;
    return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

/// fma.rn.f16x2 and fma.rn.bf16x2 of two elements and zeros: sums of zeros, or no numbers.
LZ_EMU_INLINE unsigned lz_emu_add_zeros(unsigned sum, float low, float high, unsigned none) {
    if (low * 0.0f != 0.0f) sum = (sum & 0xffff0000u) | none;
    if (high * 0.0f != 0.0f) sum = (sum & 0xffffu) | none << 16;
    return sum;
}

// ---------------------------------------------------------------------------------------------
// Small matrices of a warp, as PTX has them. Products are exact, and their sum is rounded once for each instruction; a GPU
// cuts off what does not fit.

struct lz_emu_matrix_rows : lz_emu_together {
    unsigned* parts;
    const unsigned short* row;
};
template <bool TURNS> void lz_emu_carry_out_load(lz_emu_together* const* lanes) {
    for (unsigned lane = 0; lane < 32; lane++) {
        for (unsigned matrix = 0; matrix < 4; matrix++) {
            unsigned short both[2];
            for (unsigned n = 0; n < 2; n++) {
                unsigned row = TURNS ? lane % 4 * 2 + n : lane / 4, column = TURNS ? lane / 4 : lane % 4 * 2 + n;
                both[n] = static_cast<const lz_emu_matrix_rows*>(lanes[matrix * 8 + row])->row[column];
            }
            static_cast<lz_emu_matrix_rows*>(lanes[lane])->parts[matrix] = both[0] | (unsigned)both[1] << 16;
        }
    }
}
/// ldmatrix.sync.aligned.m8n8.x4.shared.b16, with or without .trans
template <bool TURNS>
LZ_EMU_INLINE void lz_emu_load_matrices(unsigned* parts, const unsigned short* row, int line = __builtin_LINE()) {
    if ((size_t)row % 16) lz_emu_misaligned(row, 16, line);
    lz_emu_matrix_rows own;
    own.carry_out = lz_emu_carry_out_load<TURNS>;
    own.parts = parts, own.row = row;
    lz_emu_warp(LZ_EMU_TOGETHER, 0xffffffffu, (unsigned long long)&own, 0, line);
}

struct lz_emu_matrix_parts : lz_emu_together {
    float* sums;
    const unsigned *a, *b;
};
struct lz_emu_f16 {
    static float widen(unsigned short h) { return lz_emu_f16_to_f32(h); }
};
struct lz_emu_bf16 {
    static float widen(unsigned short h) { return __uint_as_float((unsigned)h << 16); }
};
template <class T> void lz_emu_carry_out_product(lz_emu_together* const* lanes) {
    auto of = [&](unsigned lane) { return static_cast<lz_emu_matrix_parts*>(lanes[lane]); };
    auto half = [](unsigned part, unsigned n) { return T::widen((unsigned short)(part >> 16 * n)); };
    double a[16][16], b[16][8];
    for (unsigned k = 0; k < 16; k++) {
        unsigned lane = k % 8 / 2, high = k / 8;
        for (unsigned i = 0; i < 16; i++) a[i][k] = half(of(i % 8 * 4 + lane)->a[i / 8 + 2 * high], k % 2);
        for (unsigned j = 0; j < 8; j++) b[k][j] = half(of(j * 4 + lane)->b[high], k % 2);
    }
    for (unsigned i = 0; i < 16; i++) {
        for (unsigned j = 0; j < 8; j++) {
            float* sum = of(i % 8 * 4 + j / 2)->sums + i / 8 * 2 + j % 2;
            double total = *sum;
            for (unsigned k = 0; k < 16; k++) total += a[i][k] * b[k][j];
            *sum = (float)total;
        }
    }
}
/// mma.sync.aligned.m16n8k16.row.col.f32.T.T.f32
template <class T>
LZ_EMU_INLINE void lz_emu_multiply(float* sums, const unsigned* a, const unsigned* b, int line = __builtin_LINE()) {
    lz_emu_matrix_parts own;
    own.carry_out = lz_emu_carry_out_product<T>;
    own.sums = sums, own.a = a, own.b = b;
    lz_emu_warp(LZ_EMU_TOGETHER, 0xffffffffu, (unsigned long long)&own, 0, line);
}
/// cp.async of so many bytes
LZ_EMU_INLINE void lz_emu_copy(void* to, const void* from, unsigned bytes, unsigned given, unsigned,
                               int line = __builtin_LINE()) {
    lz_emu_begin_copy(to, from, bytes, given, line);
}
// Copies of tiles. What counts them has those of a round in its low half, and in the other one how many have arrived; a copy
// arrives when it begins.

/// mbarrier.init
LZ_EMU_INLINE void lz_emu_expect_tiles(long long* slot, unsigned copies, unsigned) { *slot = copies; }
/// mbarrier.try_wait.parity; a GPU would wait for ever.
LZ_EMU_INLINE unsigned lz_emu_await_tiles(const long long* slot, unsigned parity, unsigned) {
    unsigned long long both = (unsigned long long)*slot, copies = both & 0xffffffffu;
    if (!copies || (both >> 32) / copies % 2 == parity) __trap();
    return 1;
}
/// cp.async.bulk.tensor of 64 elements of the first axis and some of the second, into lines whose chunks have changed places
template <class... Positions>
LZ_EMU_INLINE void lz_emu_begin_tile(unsigned short* to, const void* map, long long* slot, Positions... positions) {
    const unsigned long long* words = static_cast<const unsigned long long*>(map);
    const unsigned long long* extents = words + 1;
    const unsigned long long* steps = words + 6;
    const unsigned short* from = (const unsigned short*)words[0];
    unsigned long long first[] = {positions...};
    if ((size_t)to % 1024) lz_emu_misaligned(to, 1024, __builtin_LINE());
    for (unsigned line = 0; line < words[11]; line++) {
        for (unsigned column = 0; column < 64; column++) {
            unsigned long long at = 0;
            bool is_inside = true;
            for (unsigned n = 0; n < sizeof...(positions); n++) {
                unsigned long long position = first[n] + (n == 0 ? column : n == 1 ? line : 0);
                is_inside = is_inside && position < extents[n];
                at += position * (n == 0 ? 1 : steps[n]);
            }
            to[line * 64 + (column / 8 ^ line % 8) * 8 + column % 8] = is_inside ? from[at] : 0;
        }
    }
    *slot += 1ll << 32;
}
LZ_EMU_INLINE size_t __cvta_generic_to_shared(const void* p) { return (size_t)p; }

#endif  // LZ_EMU_RUNTIME
