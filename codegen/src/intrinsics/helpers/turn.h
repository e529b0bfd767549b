// to[k][i] = from[i][k] of so many rows i; fours of these, and of places k, of which the last may be there twice, are turned in
// registers
void lz_turn_fours_f32(float* restrict to, idx to_row, const float* restrict from, idx from_row, idx rows, idx depth) {
  typedef float vec __attribute__((vector_size(4 * sizeof(float)), aligned(sizeof(float)), may_alias));
  typedef __typeof__(__builtin_choose_expr(sizeof(float) == 4, 0, 0ll)) places __attribute__((vector_size(sizeof(vec))));
#ifdef __clang__
#define PICK(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define PICK(a, b, ...) __builtin_shuffle(a, b, (places){ __VA_ARGS__ })
#endif
  enum { AT_ONCE = sizeof(float) / 4 };
  if (rows < 4 || depth < 4) {
    for (idx i = 0; i < rows; ++i) {
      for (idx k = 0; k < depth; ++k) to[k * to_row + i] = from[i * from_row + k];
    }
    return;
  }
  // whole lines are written before the next ones are begun: those a power of two apart share few places of a cache
  const idx together = to_row > from_row ? 32 : 4;
  // lines of memory, not of a tile: results of short rows, or many rows
  if (rows < 32 && to_row >= 8 && to_row <= 2 * rows && depth >= 32) lz_read_ahead(to, to + (depth - 1) * to_row + rows);
  const int neighbours = from_row <= 2 * depth;
  for (idx begin = 0; begin < rows; begin += together) {
    const idx end = begin + together < rows ? begin + together : rows;
    if (neighbours && rows >= 32 && from_row >= 8) lz_read_ahead(from + begin * from_row, from + (end - 1) * from_row + depth);
    for (idx first = 0; first < depth; first += 4) {
      const idx k = first < depth - 4 ? first : depth - 4;
      for (idx next = begin; next < end; next += 4) {
        const idx i = next < rows - 4 ? next : rows - 4;
        const float* const lines = from + i * from_row + k;
        // of rows far apart, as many lines of those to come as this takes
        for (idx p = 0; !neighbours && p < AT_ONCE; ++p) __builtin_prefetch(lines + (16 + first / 4 * AT_ONCE % 4 + p) * from_row);
        const vec a = *(const vec*)lines, b = *(const vec*)(lines + from_row);
        const vec c = *(const vec*)(lines + 2 * from_row), d = *(const vec*)(lines + 3 * from_row);
        const vec ac0 = PICK(a, c, 0, 4, 1, 5), ac2 = PICK(a, c, 2, 6, 3, 7);
        const vec bd0 = PICK(b, d, 0, 4, 1, 5), bd2 = PICK(b, d, 2, 6, 3, 7);
        float* const at = to + k * to_row + i;
        *(vec*)at = PICK(ac0, bd0, 0, 4, 1, 5);
        *(vec*)(at + to_row) = PICK(ac0, bd0, 2, 6, 3, 7);
        *(vec*)(at + 2 * to_row) = PICK(ac2, bd2, 0, 4, 1, 5);
        *(vec*)(at + 3 * to_row) = PICK(ac2, bd2, 2, 6, 3, 7);
      }
    }
  }
#undef PICK
}

// The same, eight rows at a time where there are vectors for that.
void lz_turn_some_f32(float* restrict to, idx to_row, const float* restrict from, idx from_row, idx rows, idx depth) {
#if defined(__AVX__) && (defined(__clang__) || __GNUC__ >= 12)
  typedef float four __attribute__((vector_size(4 * sizeof(float)), aligned(sizeof(float)), may_alias));
  typedef float vec __attribute__((vector_size(8 * sizeof(float)), aligned(sizeof(float)), may_alias));
#define PICK __builtin_shufflevector
#define ROWS(i) PICK(*(const four*)(lines + i * from_row), *(const four*)(lines + (i + 4) * from_row), 0, 1, 2, 3, 4, 5, 6, 7)
  const idx together = to_row > from_row ? 32 : 8;
  if (rows >= 8 && rows < 32 && to_row >= 8 && to_row <= 2 * rows && depth >= 32) lz_read_ahead(to, to + (depth - 1) * to_row + rows);
  const int neighbours = from_row <= 2 * depth;
  for (idx begin = 0; rows >= 8 && depth >= 4 && begin < rows; begin += together) {
    const idx end = begin + together < rows ? begin + together : rows;
    if (neighbours && rows >= 32 && from_row >= 8) lz_read_ahead(from + begin * from_row, from + (end - 1) * from_row + depth);
    for (idx first = 0; first < depth; first += 4) {
      const idx k = first < depth - 4 ? first : depth - 4;
      for (idx next = begin; next < end; next += 8) {
        const idx i = next < rows - 8 ? next : rows - 8;
        const float* const lines = from + i * from_row + k;
        // of rows far apart, as many lines of those to come as this takes
        for (idx p = 0; !neighbours && p < 2; ++p) __builtin_prefetch(lines + (16 + first / 2 % 8 + p) * from_row);
        const vec a = ROWS(0), b = ROWS(1), c = ROWS(2), d = ROWS(3);
        const vec ac0 = PICK(a, c, 0, 8, 1, 9, 4, 12, 5, 13), ac2 = PICK(a, c, 2, 10, 3, 11, 6, 14, 7, 15);
        const vec bd0 = PICK(b, d, 0, 8, 1, 9, 4, 12, 5, 13), bd2 = PICK(b, d, 2, 10, 3, 11, 6, 14, 7, 15);
        float* const at = to + k * to_row + i;
        *(vec*)at = PICK(ac0, bd0, 0, 8, 1, 9, 4, 12, 5, 13);
        *(vec*)(at + to_row) = PICK(ac0, bd0, 2, 10, 3, 11, 6, 14, 7, 15);
        *(vec*)(at + 2 * to_row) = PICK(ac2, bd2, 0, 8, 1, 9, 4, 12, 5, 13);
        *(vec*)(at + 3 * to_row) = PICK(ac2, bd2, 2, 10, 3, 11, 6, 14, 7, 15);
      }
    }
  }
#undef PICK
#undef ROWS
  if (rows >= 8 && depth >= 4) return;
#endif
  lz_turn_fours_f32(to, to_row, from, from_row, rows, depth);
}
