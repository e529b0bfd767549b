// terms become pairs where a processor multiplies these: [k][j] of 32 bits to [k / 2][j] of twice 16, in place
void lz_pair_across_bf16(float* array, idx row, idx depth, idx width) {
#if defined(__AVX512BF16__)
  typedef unsigned vec __attribute__((vector_size(64), aligned(4), may_alias));
  typedef unsigned one __attribute__((may_alias));
  for (idx k = 0; k < depth; k += 2) {
    float* const from = array + k * row;
    float* const to = array + k / 2 * row;
    const int is_two = k + 1 < depth;
    idx n = 0;
    for (; n + 16 <= width; n += 16) {
      const vec second = is_two ? *(const vec*)(from + row + n) : (vec){0};
      *(vec*)(to + n) = (*(const vec*)(from + n) >> 16) | (second & 0xffff0000u);
    }
    for (; n < width; ++n) {
      const unsigned second = is_two ? *(const one*)(from + row + n) : 0;
      *(one*)(to + n) = (*(const one*)(from + n) >> 16) | (second & 0xffff0000u);
    }
  }
#endif
}

// the same of so many rows whose terms are neighbours
void lz_pair_along_bf16(float* array, idx row, idx depth, idx rows) {
#if defined(__AVX512BF16__)
  typedef unsigned vec __attribute__((vector_size(64), aligned(4), may_alias));
  typedef unsigned short half __attribute__((vector_size(32), aligned(2), may_alias));
  typedef unsigned one __attribute__((may_alias));
  typedef unsigned short narrow __attribute__((may_alias));
  for (idx i = 0; i < rows; ++i) {
    float* const from = array + i * row;
    narrow* const to = (narrow*)from;
    idx k = 0;
    for (; k + 16 <= depth; k += 16) {
      *(half*)(to + k) = __builtin_convertvector(*(const vec*)(from + k) >> 16, half);
    }
    for (; k < depth; ++k) to[k] = *(const one*)(from + k) >> 16;
    if (depth % 2) to[depth] = 0;
  }
#endif
}

// to[k] = from[k], which memory has as BF16
void lz_widen_line_bf16(float* restrict to, const unsigned short* restrict from, idx count) {
  typedef unsigned vec __attribute__((vector_size(32), aligned(4), may_alias));
  typedef unsigned short half __attribute__((vector_size(16), aligned(2), may_alias));
  typedef unsigned one __attribute__((may_alias));
  idx k = 0;
  for (; k + 8 <= count; k += 8) *(vec*)(to + k) = __builtin_convertvector(*(const half*)(from + k), vec) << 16;
  for (; k < count; ++k) *(one*)(to + k) = (unsigned)from[k] << 16;
}

// pairs of terms of 16 lines i in memory, [i][k], side by side: [k / 2][i]; depth and from_row are even. Where no pairs are
// multiplied: to[k][i] = from[i][k]
void lz_turn_bf16(float* restrict to, idx to_row, const unsigned short* restrict from, idx from_row, idx depth) {
#if defined(__AVX512BF16__)
  lz_turn_f32(to, to_row, (const float*)from, from_row / 2, depth / 2);
#else
  enum { TERMS = 64 };
  float wide[16 * TERMS];
  for (idx k = 0; k < depth; k += TERMS) {
    const idx some = depth - k < TERMS ? depth - k : TERMS;
    for (int i = 0; i < 16; ++i) lz_widen_line_bf16(wide + i * TERMS, from + i * from_row + k, some);
    lz_turn_f32(to + k * to_row, to_row, wide, TERMS, some);
  }
#endif
}

// whether the processor has registers of tiles (AMX), and the system lets the process use them
int lz_has_amx(void) {
#if defined(__AMX_BF16__) && defined(__linux__) && defined(__x86_64__)
  static int known;
  int answer = __atomic_load_n(&known, __ATOMIC_RELAXED);
  if (!answer) {
    // arch_prctl(ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA): a process must ask before its first use
    long result;
    asm volatile("syscall" : "=a"(result) : "a"(158l), "D"(0x1023l), "S"(18l) : "rcx", "r11", "memory");
    answer = result == 0 ? 1 : -1;
    __atomic_store_n(&known, answer, __ATOMIC_RELAXED);
  }
  return answer > 0;
#else
  return 0;
#endif
}

// the products of pairs by AMX: the sums of 32 rows and 32 columns are in four of its eight tiles
void lz_multiply_amx_bf16(const float* left, idx left_row, idx rows, const float* right, idx right_row, float* sums, idx sums_row, idx pairs, idx width, int adds) {
#if defined(__AMX_BF16__)
  enum { ROWS = 16, PAIRS = 16 };
  typedef unsigned pair __attribute__((may_alias));
  typedef struct { unsigned char palette, start, none[14]; unsigned short bytes[16]; unsigned char rows[16]; } shapes;
#define ZERO(t) asm volatile("tilezero %%tmm" #t ::)
#define LOAD(t, from, row) asm volatile("tileloadd (%0, %1, 4), %%tmm" #t ::"r"(from), "r"((long)(row)) : "memory")
#define STORE(t, to, row) asm volatile("tilestored %%tmm" #t ", (%0, %1, 4)" ::"r"(to), "r"((long)(row)) : "memory")
#define MULTIPLY(sum, a, b) asm volatile("tdpbf16ps %%tmm" #b ", %%tmm" #a ", %%tmm" #sum ::)
#define STEP(a, a_row, b, b_row) { \
    LOAD(4, a, a_row); \
    LOAD(6, b, b_row); \
    MULTIPLY(0, 4, 6); \
    if (has_columns) { LOAD(7, (b) + 16, b_row); MULTIPLY(1, 4, 7); } \
    if (has_rows) { LOAD(5, (a) + ROWS * (a_row), a_row); MULTIPLY(2, 5, 6); } \
    if (has_columns && has_rows) MULTIPLY(3, 5, 7); \
  }
#define EACH(DO) { \
    DO(0, to, sums_row); \
    if (has_columns) DO(1, to + 16, sums_row); \
    if (has_rows) DO(2, to + ROWS * sums_row, sums_row); \
    if (has_columns && has_rows) DO(3, to + ROWS * sums_row + 16, sums_row); \
  }
  const idx whole = pairs / PAIRS * PAIRS;
  // What is left of the terms goes with zeros.
  pair last_left[2 * ROWS * PAIRS], last_right[PAIRS * 32];
  int configured = 0;
  for (idx i = 0; i < rows; i += 2 * ROWS) {
    const int own = rows - i < 2 * ROWS ? rows - i : 2 * ROWS, has_rows = own > ROWS;
    // All but the last rows have tiles of one shape.
    if (own != configured) {
      const int of_first = has_rows ? ROWS : own, of_second = has_rows ? own - ROWS : 1;
      shapes all = { .palette = 1 };
      for (int t = 0; t < 8; ++t) {
        all.bytes[t] = 64;
        all.rows[t] = t == 0 || t == 1 || t == 4 ? of_first : t < 6 ? of_second : PAIRS;
      }
      asm volatile("ldtilecfg %0" ::"m"(all));
      configured = own;
    }
    const float* const from = left + i * left_row;
    if (whole < pairs) {
      for (int r = 0; r < own; ++r) {
        for (idx k = 0; k < PAIRS; ++k) {
          last_left[r * PAIRS + k] = whole + k < pairs ? *(const pair*)(from + r * left_row + whole + k) : 0;
        }
      }
    }
    for (idx n = 0; n < width; n += 32) {
      const int has_columns = n + 16 < width;
      float* const to = sums + i * sums_row + n;
      if (adds) EACH(LOAD)
      else { ZERO(0); ZERO(1); ZERO(2); ZERO(3); }
      for (idx k = 0; k < whole; k += PAIRS) STEP(from + k, left_row, right + k * right_row + n, right_row)
      if (whole < pairs) {
        for (idx k = 0; k < PAIRS; ++k) {
          for (idx j = 0; j < (has_columns ? 32 : 16); ++j) {
            last_right[k * 32 + j] = whole + k < pairs ? *(const pair*)(right + (whole + k) * right_row + n + j) : 0;
          }
        }
        STEP(last_left, PAIRS, last_right, 32)
      }
      EACH(STORE)
    }
  }
  asm volatile("tilerelease" ::);
#undef EACH
#undef STEP
#undef MULTIPLY
#undef STORE
#undef LOAD
#undef ZERO
#endif
}

// sums[i][j] (+)= sum over k of left[i][k] * right[k][j], of 6 rows and of pairs of terms; width is a multiple of 16
void lz_multiply_six_bf16(const float* restrict left, idx left_row, idx left_term, const float* restrict right, idx right_row, float* restrict sums, idx sums_row, idx depth, idx width, int adds) {
#if defined(__AVX512BF16__)
  typedef float vec __attribute__((vector_size(64), aligned(4), may_alias));
  typedef int pairs __attribute__((vector_size(64), aligned(4), may_alias));
  typedef int pair __attribute__((may_alias));
  const idx count = (depth + 1) / 2;
  idx n = 0;
  for (; n + 64 <= width; n += 64) {
    vec s[6][4];
#pragma GCC unroll 6
    for (int i = 0; i < 6; ++i) {
#pragma GCC unroll 4
      for (int j = 0; j < 4; ++j) {
        s[i][j] = (vec){0};
      }
    }
    for (idx k = 0; k < count; ++k) {
      pairs columns[4];
#pragma GCC unroll 4
      for (int j = 0; j < 4; ++j) {
        columns[j] = *(const pairs*)(right + k * right_row + n + j * 16);
      }
#pragma GCC unroll 6
      for (int i = 0; i < 6; ++i) {
        const pairs row = *(const pair*)(left + i * left_row + k * left_term) + (pairs){0};
#pragma GCC unroll 4
        for (int j = 0; j < 4; ++j) {
          asm("vdpbf16ps %2, %1, %0" : "+v"(s[i][j]) : "v"(columns[j]), "v"(row));
        }
      }
    }
#pragma GCC unroll 6
    for (int i = 0; i < 6; ++i) {
#pragma GCC unroll 4
      for (int j = 0; j < 4; ++j) {
        vec* const to = (vec*)(sums + i * sums_row + n + j * 16);
        if (adds) s[i][j] += *to;
        *to = s[i][j];
      }
    }
  }
  for (; n < width; n += 16) {
    vec s[6];
#pragma GCC unroll 6
    for (int i = 0; i < 6; ++i) {
      s[i] = (vec){0};
    }
    for (idx k = 0; k < count; ++k) {
      const pairs columns = *(const pairs*)(right + k * right_row + n);
#pragma GCC unroll 6
      for (int i = 0; i < 6; ++i) {
        const pairs row = *(const pair*)(left + i * left_row + k * left_term) + (pairs){0};
        asm("vdpbf16ps %2, %1, %0" : "+v"(s[i]) : "v"(columns), "v"(row));
      }
    }
#pragma GCC unroll 6
    for (int i = 0; i < 6; ++i) {
      vec* const to = (vec*)(sums + i * sums_row + n);
      if (adds) s[i] += *to;
      *to = s[i];
    }
  }
#else
  lz_multiply_tile_f32(left, left_row, left_term, right, right_row, sums, sums_row, depth, width, adds, 0);
#endif
}

// the same of so many rows, up to whole sixes of which there are rows and sums
void lz_multiply_tile_bf16(const float* restrict left, idx left_row, const idx left_term, idx rows, const float* restrict right, idx right_row, float* restrict sums, idx sums_row, idx depth, idx width, int adds) {
  if (left_term == 1 && lz_has_amx()) {
    lz_multiply_amx_bf16(left, left_row, rows, right, right_row, sums, sums_row, (depth + 1) / 2, width, adds);
    return;
  }
  for (idx i = 0; i < rows; i += 6) {
    lz_multiply_six_bf16(left + i * left_row, left_row, left_term, right, right_row, sums + i * sums_row, sums_row, depth, width, adds);
  }
}

// the same of rows as memory has them; depth and left_row are even
void lz_multiply_lines_bf16(const unsigned short* restrict left, idx left_row, idx rows, const float* restrict right, idx right_row, float* restrict sums, idx sums_row, idx depth, idx width, int adds) {
#if defined(__AVX512BF16__)
  lz_multiply_tile_bf16((const float*)left, left_row / 2, 1, rows, right, right_row, sums, sums_row, depth, width, adds);
#else
  enum { TERMS = 256 };
  float wide[6 * TERMS];
  for (idx row = 0; row < rows; row += 6) {
    for (idx k = 0; k < depth; k += TERMS) {
      const idx some = depth - k < TERMS ? depth - k : TERMS;
      for (int i = 0; i < 6; ++i) lz_widen_line_bf16(wide + i * TERMS, left + (row + i) * left_row + k, some);
      lz_multiply_tile_f32(wide, TERMS, 1, right + k * right_row, right_row, sums + row * sums_row, sums_row, some, width, adds || k > 0, 0);
    }
  }
#endif
}
