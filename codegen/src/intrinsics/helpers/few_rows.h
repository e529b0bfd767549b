// sums[i][j] (+)= sum over k of left[i][k] * right[k][j], of few rows, whose terms are neighbours; width is a multiple of 16
void lz_multiply_rows_f32(const float* restrict left, idx left_row, idx rows, const float* restrict right, idx right_row, float* restrict sums, idx sums_row, idx depth, idx width, int adds) {
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
#define EACH(i, count) _Pragma("GCC unroll 6") for (int i = 0; i < count; ++i)
#define TILE(ROWS, VECTORS) \
  for (; n + VECTORS * LANES <= width; n += VECTORS * LANES) { \
    vec s[ROWS][VECTORS]; \
    EACH(i, ROWS) EACH(j, VECTORS) s[i][j] = (vec){0}; \
    for (idx k = 0; k < depth; ++k) { \
      vec columns[VECTORS]; \
      EACH(j, VECTORS) columns[j] = *(const vec*)(right + k * right_row + n + j * LANES); \
      EACH(i, ROWS) EACH(j, VECTORS) s[i][j] += from[i * left_row + k] * columns[j]; \
    } \
    EACH(i, ROWS) EACH(j, VECTORS) { \
      vec* const sum = (vec*)(to + i * sums_row + n + j * LANES); \
      if (adds) s[i][j] += *sum; \
      *sum = s[i][j]; \
    } \
  }
  const idx whole = width / (WIDE * LANES) * (WIDE * LANES);
  idx count = 0;
  for (idx row = 0; row < rows; row += count) {
    const float* from = left + row * left_row;
    float* to = sums + row * sums_row;
    idx n = 0;
    count = row + 6 <= rows ? 6 : row + 4 <= rows ? 4 : row + 2 <= rows ? 2 : 1;
    if (count == 6) TILE(6, WIDE)
    else if (count == 4) TILE(4, WIDE)
    else if (count == 2) TILE(2, WIDE)
    else TILE(1, WIDE)
    for (idx i = 0; i < count && whole < width; ++i, from += left_row, to += sums_row) {
      n = whole;
      TILE(1, 1)
    }
  }
#undef TILE
#undef EACH
}

// sums[i][j] (+)= sum over k of left[i][k] * right[j][k], of few rows; sums has room for four columns after the last whole four.
// What is loaded stays in registers: gcc else loads it anew for each product
void lz_multiply_dots_f32(const float* restrict left, idx left_row, idx rows, const float* restrict right, idx right_row, float* restrict sums, idx sums_row, idx depth, idx width, int adds) {
#pragma clang fp contract(fast)
#if defined(__AVX512F__)
  enum { BYTES = 64, MOST = 4 };
#define KEPT(x) asm("" : "+v"(x))
#elif defined(__AVX__)
  enum { BYTES = 32, MOST = 2 };
#define KEPT(x) asm("" : "+x"(x))
#elif defined(__aarch64__)
  enum { BYTES = 4 * sizeof(float), MOST = 4 };
#define KEPT(x)
#else
  enum { BYTES = 4 * sizeof(float), MOST = 2 };
#define KEPT(x)
#endif
  enum { LANES = BYTES / sizeof(float) };
  typedef float vec __attribute__((vector_size(BYTES), aligned(sizeof(float)), may_alias));
  typedef float quad __attribute__((vector_size(4 * sizeof(float)), aligned(sizeof(float)), may_alias));
  typedef __typeof__(__builtin_choose_expr(sizeof(float) == 4, 0, 0ll)) place;
  typedef place places __attribute__((vector_size(sizeof(quad))));
  typedef place bits __attribute__((vector_size(BYTES), aligned(sizeof(float)), may_alias));
  typedef union { vec all; quad parts[LANES / 4]; } split;
#ifdef __clang__
#define PICK(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define PICK(a, b, ...) __builtin_shuffle(a, b, (places){ __VA_ARGS__ })
#endif
#define EACH(i, count) _Pragma("GCC unroll 4") for (int i = 0; i < count; ++i)
#define DOTS(ROWS) { \
    vec s[ROWS][4]; \
    EACH(i, ROWS) EACH(j, 4) s[i][j] = (vec){0}; \
    for (idx k = 0; k < whole; k += LANES) { \
      vec columns[4]; \
      EACH(j, 4) { \
        columns[j] = *(const vec*)(at[j] + k); \
        KEPT(columns[j]); \
      } \
      EACH(i, ROWS) { \
        vec terms = *(const vec*)(from + i * left_row + k); \
        KEPT(terms); \
        EACH(j, 4) s[i][j] += terms * columns[j]; \
      } \
    } \
    if (whole < depth) { \
      const idx k = depth - LANES; \
      EACH(i, ROWS) { \
        const vec terms = (vec)(*(const bits*)(from + i * left_row + k) & *(const bits*)last); \
        EACH(j, 4) s[i][j] += terms * (vec)(*(const bits*)(at[j] + k) & *(const bits*)last); \
      } \
    } \
    EACH(i, ROWS) { \
      quad q[4]; \
      EACH(j, 4) { \
        const split lanes = { s[i][j] }; \
        q[j] = lanes.parts[0]; \
        _Pragma("GCC unroll 4") for (int part = 1; part < LANES / 4; ++part) q[j] += lanes.parts[part]; \
      } \
      const quad low02 = PICK(q[0], q[2], 0, 4, 1, 5), high02 = PICK(q[0], q[2], 2, 6, 3, 7); \
      const quad low13 = PICK(q[1], q[3], 0, 4, 1, 5), high13 = PICK(q[1], q[3], 2, 6, 3, 7); \
      const quad low = PICK(low02, low13, 0, 4, 1, 5) + PICK(low02, low13, 2, 6, 3, 7); \
      const quad sum = low + (PICK(high02, high13, 0, 4, 1, 5) + PICK(high02, high13, 2, 6, 3, 7)); \
      quad* const to = (quad*)(sums + (row + i) * sums_row + n); \
      *to = sum + (adds ? *to : (quad){0}); \
    } \
    row += ROWS; \
  }
  if (depth < LANES) {
    for (idx row = 0; row < rows; ++row) {
      for (idx n = 0; n < width; ++n) {
        float sum = adds ? sums[row * sums_row + n] : 0;
        for (idx k = 0; k < depth; ++k) sum += left[row * left_row + k] * right[n * right_row + k];
        sums[row * sums_row + n] = sum;
      }
    }
    return;
  }
  const idx whole = depth / LANES * LANES;
  // Of the last lanes, those with terms that are not in a whole vector.
  place last[LANES];
  for (idx lane = 0; lane < LANES; ++lane) last[lane] = lane < LANES - (depth - whole) ? 0 : -1;
  for (idx n = 0; n < width; n += 4) {
    const float* at[4];
    // A column that there is not is the last one again.
    EACH(j, 4) at[j] = right + (n + j < width ? n + j : width - 1) * right_row;
    for (idx row = 0; row < rows;) {
      const float* const from = left + row * left_row;
      if (MOST == 4 && row + 4 <= rows) {
        DOTS(4)
      } else if (row + 2 <= rows) {
        DOTS(2)
      } else {
        DOTS(1)
      }
    }
  }
#undef DOTS
#undef KEPT
#undef EACH
#undef PICK
}
