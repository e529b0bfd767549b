// to[k][i] = from[i][k] of so many rows i; whole eights or fours of these, and fours of places k, of which the last may be there
// twice, are turned in registers
void lz_turn_some_f32(float* restrict to, idx to_row, const float* restrict from, idx from_row, idx rows, idx depth) {
  typedef float four __attribute__((vector_size(4 * sizeof(float)), aligned(sizeof(float)), may_alias));
#if defined(__AVX__) && (defined(__clang__) || __GNUC__ >= 12)
  enum { ACROSS = 8 };
  typedef float vec __attribute__((vector_size(8 * sizeof(float)), aligned(sizeof(float)), may_alias));
#define PICK __builtin_shufflevector
#define ROWS(i) PICK(*(const four*)(lines + i * from_row), *(const four*)(lines + (i + 4) * from_row), 0, 1, 2, 3, 4, 5, 6, 7)
#define LOWS 0, 8, 1, 9, 4, 12, 5, 13
#define HIGHS 2, 10, 3, 11, 6, 14, 7, 15
#else
  enum { ACROSS = 4 };
  typedef four vec;
#ifdef __clang__
#define PICK __builtin_shufflevector
#else
  typedef __typeof__(__builtin_choose_expr(sizeof(float) == 4, 0, 0ll)) places __attribute__((vector_size(sizeof(vec))));
#define PICK(a, b, ...) __builtin_shuffle(a, b, (places){ __VA_ARGS__ })
#endif
#define ROWS(i) *(const four*)(lines + i * from_row)
#define LOWS 0, 4, 1, 5
#define HIGHS 2, 6, 3, 7
#endif
  enum { STEPS = 16 / sizeof(float) };
  if (rows < ACROSS || depth < 4) {
    for (idx i = 0; i < rows; ++i) {
      for (idx k = 0; k < depth; ++k) to[k * to_row + i] = from[i * from_row + k];
    }
    return;
  }
  // whole lines are written before the next ones are begun: those a power of two apart share few places of a cache
  const idx together = to_row > from_row ? 32 : ACROSS;
  for (idx begin = 0; begin < rows; begin += together) {
    const idx end = begin + together < rows ? begin + together : rows;
    for (idx first = 0; first < depth; first += 4) {
      const idx k = first < depth - 4 ? first : depth - 4;
      for (idx next = begin; next < end; next += ACROSS) {
        const idx i = next < rows - ACROSS ? next : rows - ACROSS;
        const float* const lines = from + i * from_row + k;
        // of the rows to come, as many lines as this takes: processors only foresee one row after the other
        for (idx p = 0; p < ACROSS / STEPS; ++p) __builtin_prefetch(lines + (16 + first / 4 % STEPS * (ACROSS / STEPS) + p) * from_row);
        const vec a = ROWS(0), b = ROWS(1), c = ROWS(2), d = ROWS(3);
        const vec ac0 = PICK(a, c, LOWS), ac2 = PICK(a, c, HIGHS), bd0 = PICK(b, d, LOWS), bd2 = PICK(b, d, HIGHS);
        float* const at = to + k * to_row + i;
        *(vec*)at = PICK(ac0, bd0, LOWS);
        *(vec*)(at + to_row) = PICK(ac0, bd0, HIGHS);
        *(vec*)(at + 2 * to_row) = PICK(ac2, bd2, LOWS);
        *(vec*)(at + 3 * to_row) = PICK(ac2, bd2, HIGHS);
      }
    }
  }
#undef PICK
#undef ROWS
#undef LOWS
#undef HIGHS
}
