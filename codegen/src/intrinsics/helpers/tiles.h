// sums[i][j] (+)= sum over k of left[i][k] * right[k][j], of 6 rows; width is a multiple of 16
void lz_multiply_tile_f32(const float* restrict left, idx left_row, const float* restrict right, idx right_row, float* restrict sums, idx sums_row, idx depth, idx width, int adds) {
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
  enum { LANES = BYTES / sizeof(float) };
  idx n = 0;
  for (; n + WIDE * LANES <= width; n += WIDE * LANES) {
    vec s[6][WIDE];
#pragma GCC unroll 6
    for (int i = 0; i < 6; ++i) {
#pragma GCC unroll 4
      for (int j = 0; j < WIDE; ++j) {
        s[i][j] = adds ? *(const vec*)(sums + i * sums_row + n + j * LANES) : (vec){0};
      }
    }
    for (idx k = 0; k < depth; ++k) {
      vec columns[WIDE];
#pragma GCC unroll 4
      for (int j = 0; j < WIDE; ++j) {
        columns[j] = *(const vec*)(right + k * right_row + n + j * LANES);
      }
#pragma GCC unroll 6
      for (int i = 0; i < 6; ++i) {
#pragma GCC unroll 4
        for (int j = 0; j < WIDE; ++j) {
          s[i][j] += left[i * left_row + k] * columns[j];
        }
      }
    }
#pragma GCC unroll 6
    for (int i = 0; i < 6; ++i) {
#pragma GCC unroll 4
      for (int j = 0; j < WIDE; ++j) {
        *(vec*)(sums + i * sums_row + n + j * LANES) = s[i][j];
      }
    }
  }
  for (; n < width; n += LANES) {
    vec s[6];
#pragma GCC unroll 6
    for (int i = 0; i < 6; ++i) {
      s[i] = adds ? *(const vec*)(sums + i * sums_row + n) : (vec){0};
    }
    for (idx k = 0; k < depth; ++k) {
      vec columns = *(const vec*)(right + k * right_row + n);
#pragma GCC unroll 6
      for (int i = 0; i < 6; ++i) {
        s[i] += left[i * left_row + k] * columns;
      }
    }
#pragma GCC unroll 6
    for (int i = 0; i < 6; ++i) {
      *(vec*)(sums + i * sums_row + n) = s[i];
    }
  }
}
