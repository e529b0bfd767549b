// as lz_turn_f32, of so many rows; whole fours of rows and places, of which the last may be there twice, are turned in registers
void lz_turn_some_f32(float* restrict to, idx to_row, const float* restrict from, idx from_row, idx rows, idx depth) {
  typedef float vec __attribute__((vector_size(4 * sizeof(float)), aligned(sizeof(float)), may_alias));
  typedef __typeof__(__builtin_choose_expr(sizeof(float) == 4, 0, 0ll)) places __attribute__((vector_size(sizeof(vec))));
#ifdef __clang__
#define PICK(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define PICK(a, b, ...) __builtin_shuffle(a, b, (places){ __VA_ARGS__ })
#endif
  if (rows < 4 || depth < 4) {
    for (idx i = 0; i < rows; ++i) {
      for (idx k = 0; k < depth; ++k) to[k * to_row + i] = from[i * from_row + k];
    }
    return;
  }
  // whole lines are written before the next ones are begun: those a power of two apart share few places of a cache
  const idx together = to_row > from_row ? 32 : 4;
  for (idx begin = 0; begin < rows; begin += together) {
    const idx end = begin + together < rows ? begin + together : rows;
    for (idx first = 0; first < depth; first += 4) {
      const idx k = first < depth - 4 ? first : depth - 4;
      for (idx fours = begin; fours < end; fours += 4) {
        const idx i = fours < rows - 4 ? fours : rows - 4;
        const float* const lines = from + i * from_row;
        // of the rows to come, as many lines as this takes: processors only foresee one row after the other
        for (idx p = 0; p < (idx)sizeof(float) / 4; ++p) __builtin_prefetch(lines + (16 + (first / 4 + 2 * p) % 4) * from_row + k);
        const vec a = *(const vec*)(lines + k), b = *(const vec*)(lines + from_row + k);
        const vec c = *(const vec*)(lines + 2 * from_row + k), d = *(const vec*)(lines + 3 * from_row + k);
        const vec ac0 = PICK(a, c, 0, 4, 1, 5), ac2 = PICK(a, c, 2, 6, 3, 7);
        const vec bd0 = PICK(b, d, 0, 4, 1, 5), bd2 = PICK(b, d, 2, 6, 3, 7);
        *(vec*)(to + k * to_row + i) = PICK(ac0, bd0, 0, 4, 1, 5);
        *(vec*)(to + (k + 1) * to_row + i) = PICK(ac0, bd0, 2, 6, 3, 7);
        *(vec*)(to + (k + 2) * to_row + i) = PICK(ac2, bd2, 0, 4, 1, 5);
        *(vec*)(to + (k + 3) * to_row + i) = PICK(ac2, bd2, 2, 6, 3, 7);
      }
    }
  }
#undef PICK
}
