// Sorts the first wanted of some items: few by insertion, others by the bytes of their keys (the upper half), which leaves
// equal keys as they are, in the order of their places.
void lz_sort_row_i64(long long* restrict row, long long* restrict spare, idx count, idx wanted) {
  typedef long long item __attribute__((may_alias, aligned(8)));
  enum { BITS = 8 * sizeof(item), HALF = BITS / 2, BYTES = HALF / 8 };
  item* from = (item*)row;
  item* to = (item*)spare;
  if (wanted > 0 && 32 * wanted < count) {
    // The least of each of some groups: there are as many items as are wanted that are no greater than the wanted least ones.
    const idx groups = wanted < 4 ? 16 : 4 * wanted;
    for (idx i = 0; i < groups; ++i) to[i] = from[i];
    for (idx first = groups; first < count; first += groups) {
      const idx end = count - first < groups ? count - first : groups;
#pragma omp simd
      for (idx i = 0; i < end; ++i) to[i] = from[first + i] < to[i] ? from[first + i] : to[i];
    }
    lz_sort_row_i64((long long*)to, (long long*)(to + groups), groups, wanted);
    // Not the last one: of equal keys any may come first here.
    item last = to[0];
    for (idx i = 1; i < wanted; ++i) last = to[i] > last ? to[i] : last;
    idx kept = 0;
    for (idx i = 0; i < count; i += 16) {
      const idx end = count - i < 16 ? count : i + 16;
      if (end == i + 16) {
        int any = 0;
#pragma omp simd reduction(| : any)
        for (int j = 0; j < 16; ++j) any |= from[i + j] <= last;
        if (!any) continue;
      }
      for (idx j = i; j < end; ++j) {
        const item own = from[j];
        from[kept] = own;
        kept += own <= last;
      }
    }
    count = kept;
  } else if (wanted < count / 8) {
    // The leading bytes of what is wanted last, from the first in which items differ on, until few have no larger ones.
    item differ = 0;
    for (idx i = 1; i < count; ++i) differ |= from[i] ^ from[0];
    int shift = BITS;
    while (shift > 8 && (differ >> (shift - 8) & 255) == 0) shift -= 8;
    item bound = shift == BITS ? 0 : from[0] >> shift;
    idx below = 0, inside = 0;
    do {
      shift -= 8;
      const int is_first = shift == BITS - 8;
      idx counts[256] = {0};
      for (idx i = 0; i < count; ++i) {
        if (is_first || from[i] >> 8 >> shift == bound) ++counts[(int)(from[i] >> shift) & 255];
      }
      // Of signed bytes the first is -128.
      int digit = is_first ? -128 : 0;
      while (below + counts[digit & 255] < wanted) below += counts[digit++ & 255];
      inside = counts[digit & 255];
      bound = is_first ? digit : bound * 256 + digit;
    } while (below + inside > 2 * wanted + 64 && shift > HALF);
    idx kept = 0;
    for (idx i = 0; i < count; ++i) {
      const item own = from[i];
      from[kept] = own;
      kept += own >> shift <= bound;
    }
    count = kept;
  }
  if (count <= 32) {
    for (idx i = 1; i < count; ++i) {
      const item own = from[i];
      idx j = i;
      for (; j > 0 && own < from[j - 1]; --j) from[j] = from[j - 1];
      from[j] = own;
    }
    return;
  }
  unsigned counts[BYTES][256];
  for (int byte = 0; byte < BYTES; ++byte) {
    for (int digit = 0; digit < 256; ++digit) counts[byte][digit] = 0;
  }
  for (idx i = 0; i < count; ++i) {
    const item own = from[i] >> HALF;
#pragma GCC unroll 8
    for (int byte = 0; byte < BYTES; ++byte) {
      ++counts[byte][((int)(own >> 8 * byte) & 255) ^ (byte == BYTES - 1 ? 128 : 0)];
    }
  }
  for (int byte = 0; byte < BYTES; ++byte) {
    const int shift = HALF + 8 * byte, sign = byte == BYTES - 1 ? 128 : 0;
    if (counts[byte][((int)(from[0] >> shift) & 255) ^ sign] == count) continue;
    unsigned first = 0;
    for (int digit = 0; digit < 256; ++digit) {
      const unsigned own = counts[byte][digit];
      counts[byte][digit] = first;
      first += own;
    }
    for (idx i = 0; i < count; ++i) {
      const item own = from[i];
      to[counts[byte][((int)(own >> shift) & 255) ^ sign]++] = own;
    }
    item* const other = from;
    from = to;
    to = other;
  }
  if (from != (item*)row) {
    for (idx i = 0; i < count && i < wanted; ++i) to[i] = from[i];
  }
}

// Sorts eight rows side by side. The same elements are compared in each (K. E. Batcher's merge exchange; D. E. Knuth, The
// Art of Computer Programming, 5.2.2, algorithm M).
void lz_sort_lanes_i64(long long* restrict items, idx count) {
  idx top = 1;
  while (top < count - top) top *= 2;
  for (idx p = top; p > 0; p /= 2) {
    idx q = top, r = 0, apart = p;
    for (;;) {
      for (idx i = 0; i < count - apart; ++i) {
        if ((i & p) != r) continue;
        long long* restrict a = items + 8 * i;
        long long* restrict b = items + 8 * (i + apart);
#pragma omp simd
        for (int l = 0; l < 8; ++l) {
          const long long x = a[l], y = b[l];
          a[l] = x < y ? x : y;
          b[l] = x < y ? y : x;
        }
      }
      if (q == p) break;
      apart = q - p;
      q /= 2;
      r = p;
    }
  }
}
