// to[k][i] = from[i][k] of so many rows i. Eights or fours of these, and fours of places k, of which the last may be there twice, are
// turned in registers: two rows are interleaved, then two such pairs, then two such fours.
void lz_turn_some_f16(unsigned short* restrict to, idx to_row, const unsigned short* restrict from, idx from_row, idx rows, idx depth) {
  typedef unsigned short eight __attribute__((vector_size(16), aligned(2), may_alias));
  typedef unsigned pairs __attribute__((vector_size(16), may_alias));
  typedef unsigned long long fours __attribute__((vector_size(16), may_alias));
  typedef unsigned long long whole __attribute__((aligned(2), may_alias));
  if (rows < 4 || depth < 4) {
    for (idx i = 0; i < rows; ++i) {
      for (idx k = 0; k < depth; ++k) to[k * to_row + i] = from[i * from_row + k];
    }
    return;
  }
#ifdef __clang__
#define PICK(type, a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define PICK(type, a, b, ...) __builtin_shuffle(a, b, (type){ __VA_ARGS__ })
#endif
// A row's four places; two rows, place by place; two such pairs, of the first two places and of the others.
#define ROW(i) ((eight)(fours){ *(const whole*)(lines + (i) * from_row), 0 })
#define TWO(i) ((pairs)PICK(eight, ROW(i), ROW(i + 1), 0, 8, 1, 9, 2, 10, 3, 11))
#define FIRST(a, b) ((fours)PICK(pairs, a, b, 0, 4, 1, 5))
#define OTHER(a, b) ((fours)PICK(pairs, a, b, 2, 6, 3, 7))
  const idx across = rows < 8 ? 4 : 8;
  const idx together = to_row > from_row ? 32 : across;
  const int neighbours = from_row <= 2 * depth;
  // lines of memory, not of a tile: results of short rows, or many rows
  if (rows < 32 && to_row >= 16 && to_row <= 2 * rows && depth >= 32) lz_read_ahead(to, to + (depth - 1) * to_row + rows);
  for (idx begin = 0; begin < rows; begin += together) {
    const idx end = begin + together < rows ? begin + together : rows;
    if (neighbours && rows >= 32 && from_row >= 16) lz_read_ahead(from + begin * from_row, from + (end - 1) * from_row + depth);
    for (idx first = 0; first < depth; first += 4) {
      const idx k = first < depth - 4 ? first : depth - 4;
      for (idx next = begin; next < end; next += across) {
        const idx i = next < rows - across ? next : rows - across;
        const unsigned short* const lines = from + i * from_row + k;
        unsigned short* const at = to + k * to_row + i;
        const pairs a = TWO(0), b = TWO(2);
        const fours ab0 = FIRST(a, b), ab2 = OTHER(a, b);
        if (across == 4) {
          *(whole*)at = ab0[0];
          *(whole*)(at + to_row) = ab0[1];
          *(whole*)(at + 2 * to_row) = ab2[0];
          *(whole*)(at + 3 * to_row) = ab2[1];
          continue;
        }
        // of rows far apart, a line of those to come
        if (!neighbours) __builtin_prefetch(lines + (16 + first / 4 % 8) * from_row);
        const pairs c = TWO(4), d = TWO(6);
        const fours cd0 = FIRST(c, d), cd2 = OTHER(c, d);
        *(eight*)at = (eight)PICK(fours, ab0, cd0, 0, 2);
        *(eight*)(at + to_row) = (eight)PICK(fours, ab0, cd0, 1, 3);
        *(eight*)(at + 2 * to_row) = (eight)PICK(fours, ab2, cd2, 0, 2);
        *(eight*)(at + 3 * to_row) = (eight)PICK(fours, ab2, cd2, 1, 3);
      }
    }
  }
#undef PICK
#undef ROW
#undef TWO
#undef FIRST
#undef OTHER
}
