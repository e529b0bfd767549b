// sums[i][j] (+)= sum over k of left[i][k] * right[k][j], of 6 rows; width is a multiple of 16. Sums of some terms each are
// added up, so that long ones lose little. Rows that are streamed are read from memory, and only here
void lz_multiply_tile_f32(const float* restrict left, idx left_row, const idx left_term, const float* restrict right, idx right_row, float* restrict sums, idx sums_row, idx depth, idx width, int adds, int streams) {
#pragma clang fp contract(fast)
#if defined(__AVX512F__)
  enum { BYTES = 64, WIDE = 4 };
#elif defined(__AVX__)
  enum { BYTES = 32, WIDE = 2 };
#elif defined(__aarch64__)
  enum { BYTES = 16, WIDE = 4 };
#else
  enum { BYTES = 16, WIDE = 2 };
#endif
  typedef float vec __attribute__((vector_size(BYTES), aligned(sizeof(float)), may_alias));
  enum { LANES = BYTES / sizeof(float), LINE = 64 / sizeof(float) };
  idx n = 0;
  for (; n + WIDE * LANES <= width; n += WIDE * LANES) {
    vec s[6][WIDE];
#pragma GCC unroll 6
    for (int i = 0; i < 6; ++i) {
#pragma GCC unroll 4
      for (int j = 0; j < WIDE; ++j) {
        s[i][j] = (vec){0};
      }
    }
    // where the next tile's rows begin, which no hardware prefetcher knows; of streamed ones all, since some prefetch too late
    for (int i = 6; left_term == 1 && i < 12; ++i) {
      __builtin_prefetch(left + i * left_row);
      __builtin_prefetch(left + i * left_row + LINE);
    }
    for (idx k = 0; k < depth; ++k) {
      if (streams && k % LINE < 6) __builtin_prefetch(left + (6 + k % LINE) * left_row + k / LINE * LINE);
      vec columns[WIDE];
#pragma GCC unroll 4
      for (int j = 0; j < WIDE; ++j) {
#ifndef __SSE4A__
        // The panel is in L2, from which Intel's processors prefetch too late. (AMD's, the only ones with SSE4a, were not measured.)
        __builtin_prefetch(right + (k + 2) * right_row + n + j * LANES);
#endif
        columns[j] = *(const vec*)(right + k * right_row + n + j * LANES);
      }
#pragma GCC unroll 6
      for (int i = 0; i < 6; ++i) {
#pragma GCC unroll 4
        for (int j = 0; j < WIDE; ++j) {
          s[i][j] += left[i * left_row + k * left_term] * columns[j];
        }
      }
    }
#pragma GCC unroll 6
    for (int i = 0; i < 6; ++i) {
#pragma GCC unroll 4
      for (int j = 0; j < WIDE; ++j) {
        vec* const to = (vec*)(sums + i * sums_row + n + j * LANES);
        if (adds) s[i][j] += *to;
        *to = s[i][j];
      }
    }
  }
  for (; n < width; n += LANES) {
    vec s[6];
#pragma GCC unroll 6
    for (int i = 0; i < 6; ++i) {
      s[i] = (vec){0};
    }
    for (idx k = 0; k < depth; ++k) {
      vec columns = *(const vec*)(right + k * right_row + n);
#pragma GCC unroll 6
      for (int i = 0; i < 6; ++i) {
        s[i] += left[i * left_row + k * left_term] * columns;
      }
    }
#pragma GCC unroll 6
    for (int i = 0; i < 6; ++i) {
      vec* const to = (vec*)(sums + i * sums_row + n);
      if (adds) s[i] += *to;
      *to = s[i];
    }
  }
}

// to[k][i] = from[i][k] of 16 rows i
void lz_turn_f32(float* restrict to, idx to_row, const float* restrict from, idx from_row, idx depth) {
  typedef float vec __attribute__((vector_size(4 * sizeof(float)), aligned(sizeof(float)), may_alias));
  typedef __typeof__(__builtin_choose_expr(sizeof(float) == 4, 0, 0ll)) places __attribute__((vector_size(sizeof(vec))));
#ifdef __clang__
#define PICK(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define PICK(a, b, ...) __builtin_shuffle(a, b, (places){ __VA_ARGS__ })
#endif
  idx k = 0;
  for (; k + 4 <= depth; k += 4) {
#pragma GCC unroll 4
    for (int i = 0; i < 16; i += 4) {
      const vec a = *(const vec*)(from + i * from_row + k);
      const vec b = *(const vec*)(from + (i + 1) * from_row + k);
      const vec c = *(const vec*)(from + (i + 2) * from_row + k);
      const vec d = *(const vec*)(from + (i + 3) * from_row + k);
      const vec ac0 = PICK(a, c, 0, 4, 1, 5), ac2 = PICK(a, c, 2, 6, 3, 7);
      const vec bd0 = PICK(b, d, 0, 4, 1, 5), bd2 = PICK(b, d, 2, 6, 3, 7);
      *(vec*)(to + k * to_row + i) = PICK(ac0, bd0, 0, 4, 1, 5);
      *(vec*)(to + (k + 1) * to_row + i) = PICK(ac0, bd0, 2, 6, 3, 7);
      *(vec*)(to + (k + 2) * to_row + i) = PICK(ac2, bd2, 0, 4, 1, 5);
      *(vec*)(to + (k + 3) * to_row + i) = PICK(ac2, bd2, 2, 6, 3, 7);
    }
  }
#undef PICK
  for (; k < depth; ++k) {
    for (int i = 0; i < 16; ++i) to[k * to_row + i] = from[i * from_row + k];
  }
}
