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

// the same of 6 rows whose terms are neighbours
void lz_pair_along_bf16(float* array, idx row, idx depth) {
#if defined(__AVX512BF16__)
  typedef unsigned vec __attribute__((vector_size(64), aligned(4), may_alias));
  typedef unsigned short half __attribute__((vector_size(32), aligned(2), may_alias));
  typedef unsigned one __attribute__((may_alias));
  typedef unsigned short narrow __attribute__((may_alias));
  for (int i = 0; i < 6; ++i) {
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

// pairs of terms of 16 lines i in memory, [i][k], side by side: [k / 2][i]; depth and from_row are even. Where no pairs are
// multiplied: to[k][i] = from[i][k]
void lz_turn_bf16(float* restrict to, idx to_row, const unsigned short* restrict from, idx from_row, idx depth) {
#if defined(__AVX512BF16__)
  lz_turn_f32(to, to_row, (const float*)from, from_row / 2, depth / 2);
#else
  typedef unsigned one __attribute__((may_alias));
  for (int i = 0; i < 16; ++i) {
    for (idx k = 0; k < depth; ++k) *(one*)(to + k * to_row + i) = (unsigned)from[i * from_row + k] << 16;
  }
#endif
}

// sums[i][j] (+)= sum over k of left[i][k] * right[k][j], of 6 rows and of pairs of terms; width is a multiple of 16
void lz_multiply_tile_bf16(const float* restrict left, idx left_row, idx left_term, const float* restrict right, idx right_row, float* restrict sums, idx sums_row, idx depth, idx width, int adds) {
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
  lz_multiply_tile_f32(left, left_row, left_term, right, right_row, sums, sums_row, depth, width, adds);
#endif
}

// the same of rows as memory has them; depth and left_row are even
void lz_multiply_lines_bf16(const unsigned short* restrict left, idx left_row, const float* restrict right, idx right_row, float* restrict sums, idx sums_row, idx depth, idx width, int adds) {
#if defined(__AVX512BF16__)
  lz_multiply_tile_bf16((const float*)left, left_row / 2, 1, right, right_row, sums, sums_row, depth, width, adds);
#else
  typedef unsigned one __attribute__((may_alias));
  float wide[6 * 64];
  for (idx k = 0; k < depth; k += 64) {
    const idx some = depth - k < 64 ? depth - k : 64;
    for (int i = 0; i < 6; ++i) {
      for (idx l = 0; l < some; ++l) *(one*)(wide + i * 64 + l) = (unsigned)left[i * left_row + k + l] << 16;
    }
    lz_multiply_tile_f32(wide, 64, 1, right + k * right_row, right_row, sums, sums_row, some, width, adds || k > 0);
  }
#endif
}
