// sums[i][j] (+)= sum over k of left[i][k] * right[k][j] in BF16, of few rows, whose terms are neighbours; width is a multiple of
// 16, and sums has room for one of 64
void lz_multiply_rows_bf16(const unsigned short* restrict left, idx left_row, idx rows, const unsigned short* restrict right, idx right_row, float* restrict sums, idx sums_row, idx depth, idx width, int adds) {
  typedef unsigned short half __attribute__((vector_size(32), aligned(2), may_alias));
  typedef unsigned wide __attribute__((vector_size(64), aligned(4), may_alias));
#if defined(__AVX512BF16__)
  typedef float vec __attribute__((vector_size(64), aligned(4), may_alias));
  typedef int pairs __attribute__((vector_size(64), may_alias));
  typedef int pair __attribute__((aligned(2), may_alias));
  enum { SOME = 32 };
#define EACH(i, count) _Pragma("GCC unroll 6") for (int i = 0; i < count; ++i)
#define STEP(ROWS, terms, at) { \
    pairs columns[4]; \
    EACH(j, 4) columns[j] = packed[(at) / 2][j]; \
    EACH(i, ROWS) { \
      const pairs row = (int)(terms) + (pairs){0}; \
      EACH(j, 4) asm("vdpbf16ps %2, %1, %0" : "+v"(s[i][j]) : "v"(columns[j]), "v"(row)); \
    } \
  }
#define TILE(ROWS) { \
    vec s[ROWS][4]; \
    EACH(i, ROWS) EACH(j, 4) s[i][j] = goes_on ? *(const vec*)(to + i * sums_row + j * 16) : (vec){0}; \
    for (idx k = 0; k + 2 <= some; k += 2) STEP(ROWS, *(const pair*)(from + i * left_row + k), k) \
    if (some % 2) STEP(ROWS, from[i * left_row + some - 1], some) \
    EACH(i, ROWS) EACH(j, 4) *(vec*)(to + i * sums_row + j * 16) = s[i][j]; \
    row += ROWS; \
  }
  for (idx n = 0; n < width; n += 64) {
    const idx vectors = (width - n) / 16;
    pairs packed[SOME / 2][4];
    for (idx first = 0; first < depth || (first == 0 && !adds); first += SOME) {
      const idx some = depth - first < SOME ? depth - first : SOME;
      const int goes_on = adds || first > 0;
      for (idx k = 0; k < some; k += 2) {
        const unsigned short* const low = right + (first + k) * right_row + n;
        // The last term of an odd number goes with zeros.
        const wide two = (wide){0} + (k + 1 < some ? 0xffffffff : 0xffff);
        const unsigned short* const high = k + 1 < some ? low + right_row : low;
        EACH(j, 4) {
          const idx at = j < vectors ? j * 16 : 0;
          const wide even = __builtin_convertvector(*(const half*)(low + at), wide);
          const wide both = even | __builtin_convertvector(*(const half*)(high + at), wide) << 16;
          packed[k / 2][j] = (pairs)(both & two);
        }
      }
      for (idx row = 0; row < rows;) {
        const unsigned short* const from = left + row * left_row + first;
        float* const to = sums + row * sums_row + n;
        if (row + 6 <= rows) TILE(6)
        else if (row + 4 <= rows) TILE(4)
        else if (row + 2 <= rows) TILE(2)
        else TILE(1)
      }
    }
  }
#undef TILE
#undef STEP
#undef EACH
#else
  enum { SOME = 16, PANEL = 64 };
  unsigned terms[16 * SOME], columns[SOME * PANEL];
  for (idx row = 0; row < rows; row += 16) {
    const idx own = rows - row < 16 ? rows - row : 16;
    for (idx k = 0; k < depth; k += SOME) {
      const idx some = depth - k < SOME ? depth - k : SOME;
      for (idx i = 0; i < own; ++i) {
        for (idx l = 0; l < some; ++l) terms[i * SOME + l] = (unsigned)left[(row + i) * left_row + k + l] << 16;
      }
      for (idx n = 0; n < width; n += PANEL) {
        const idx panel = width - n < PANEL ? width - n : PANEL;
        for (idx l = 0; l < some; ++l) {
          for (idx j = 0; j < panel; j += 16) {
            *(wide*)(columns + l * PANEL + j) = __builtin_convertvector(*(const half*)(right + (k + l) * right_row + n + j), wide) << 16;
          }
        }
        lz_multiply_rows_f32((const float*)terms, SOME, own, (const float*)columns, PANEL, sums + row * sums_row + n, sums_row, some, panel, adds || k > 0);
      }
    }
  }
#endif
}

// sums[i][j] (+)= sum over k of left[i][k] * right[j][k] in BF16, of few rows; sums has room for four columns after the last whole four
void lz_multiply_dots_bf16(const unsigned short* restrict left, idx left_row, idx rows, const unsigned short* restrict right, idx right_row, float* restrict sums, idx sums_row, idx depth, idx width, int adds) {
#if defined(__AVX512BF16__)
  typedef float vec __attribute__((vector_size(64), aligned(4), may_alias));
  typedef float quad __attribute__((vector_size(16), aligned(4), may_alias));
  typedef int places __attribute__((vector_size(16)));
  typedef unsigned short halves __attribute__((vector_size(64), aligned(2), may_alias));
  typedef union { vec all; quad parts[4]; } split;
#ifdef __clang__
#define PICK(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define PICK(a, b, ...) __builtin_shuffle(a, b, (places){ __VA_ARGS__ })
#endif
#define EACH(i, count) _Pragma("GCC unroll 4") for (int i = 0; i < count; ++i)
#define DOTS(ROWS) { \
    vec s[ROWS][4]; \
    EACH(i, ROWS) EACH(j, 4) s[i][j] = (vec){0}; \
    for (idx k = 0; k < whole; k += 32) { \
      halves columns[4]; \
      EACH(j, 4) columns[j] = *(const halves*)(at[j] + k); \
      EACH(i, ROWS) { \
        const halves terms = *(const halves*)(from + i * left_row + k); \
        EACH(j, 4) asm("vdpbf16ps %2, %1, %0" : "+v"(s[i][j]) : "v"(columns[j]), "v"(terms)); \
      } \
    } \
    if (whole < depth) { \
      EACH(i, ROWS) { \
        const halves terms = *(const halves*)(from + i * left_row + depth - 32) & mask; \
        EACH(j, 4) { \
          const halves column = *(const halves*)(at[j] + depth - 32) & mask; \
          asm("vdpbf16ps %2, %1, %0" : "+v"(s[i][j]) : "v"(column), "v"(terms)); \
        } \
      } \
    } \
    EACH(i, ROWS) { \
      quad q[4]; \
      EACH(j, 4) { \
        const split lanes = { s[i][j] }; \
        q[j] = lanes.parts[0] + lanes.parts[1] + (lanes.parts[2] + lanes.parts[3]); \
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
  if (depth < 32) {
    typedef union { unsigned bits; float value; } number;
    for (idx row = 0; row < rows; ++row) {
      for (idx n = 0; n < width; ++n) {
        float sum = adds ? sums[row * sums_row + n] : 0;
        for (idx k = 0; k < depth; ++k) {
          const number a = { (unsigned)left[row * left_row + k] << 16 }, b = { (unsigned)right[n * right_row + k] << 16 };
          sum += a.value * b.value;
        }
        sums[row * sums_row + n] = sum;
      }
    }
    return;
  }
  const idx whole = depth / 32 * 32;
  // Of the last lanes, those with terms that are not in a whole vector.
  unsigned short last[32];
  for (idx lane = 0; lane < 32; ++lane) last[lane] = lane < 32 - (depth - whole) ? 0 : 0xffff;
  const halves mask = *(const halves*)last;
  for (idx n = 0; n < width; n += 4) {
    const unsigned short* at[4];
    // A column that there is not is the last one again.
    EACH(j, 4) at[j] = right + (n + j < width ? n + j : width - 1) * right_row;
    for (idx row = 0; row < rows;) {
      const unsigned short* const from = left + row * left_row;
      if (row + 4 <= rows) {
        DOTS(4)
      } else if (row + 2 <= rows) {
        DOTS(2)
      } else {
        DOTS(1)
      }
    }
  }
#undef DOTS
#undef EACH
#undef PICK
#else
  typedef unsigned short half __attribute__((vector_size(16), aligned(2), may_alias));
  typedef unsigned wide __attribute__((vector_size(32), aligned(4), may_alias));
  enum { SOME = 256 };
  unsigned terms[16 * SOME], columns[4 * SOME];
#define WIDEN(to, from) { \
    idx l = 0; \
    for (; l + 8 <= some; l += 8) *(wide*)(to + l) = __builtin_convertvector(*(const half*)(from + l), wide) << 16; \
    for (; l < some; ++l) to[l] = (unsigned)from[l] << 16; \
  }
  for (idx row = 0; row < rows; row += 16) {
    const idx own = rows - row < 16 ? rows - row : 16;
    for (idx k = 0; k < depth; k += SOME) {
      const idx some = depth - k < SOME ? depth - k : SOME;
      for (idx i = 0; i < own; ++i) {
        const unsigned short* const from = left + (row + i) * left_row + k;
        unsigned* const to = terms + i * SOME;
        WIDEN(to, from)
      }
      for (idx n = 0; n < width; n += 4) {
        const idx few = width - n < 4 ? width - n : 4;
        for (idx j = 0; j < few; ++j) {
          const unsigned short* const from = right + (n + j) * right_row + k;
          unsigned* const to = columns + j * SOME;
          WIDEN(to, from)
        }
        lz_multiply_dots_f32((const float*)terms, SOME, own, (const float*)columns, SOME, sums + row * sums_row + n, sums_row, some, few, adds || k > 0);
      }
    }
  }
#undef WIDEN
#endif
}
