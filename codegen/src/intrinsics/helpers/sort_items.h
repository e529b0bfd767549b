// What a sort compares. A key has the order of the numbers, -0 and 0 alike, NaN above infinity. Below the key stands the
// place, twice, plus one for -0: places differ, so that what is equal stays in order.

long long lz_sort_item_i32(int x, unsigned place, int descending) {
    return (long long)((unsigned long long)(unsigned)(descending ? ~x : x) << 32 | place * 2u);
}

long long lz_sort_item_u32(unsigned x, unsigned place, int descending) {
    return lz_sort_item_i32((int)(x ^ 0x80000000u), place, descending);
}

long long lz_sort_item_f32(float x, unsigned place, int descending) {
    int bits = lz_as_i32(x);
    int key = bits ^ (bits >> 31 & 0x7fffffff);
    key = x != x ? 0x7fffffff : x == 0.0f ? 0 : key;
    return lz_sort_item_i32(key, place, descending) | (x == 0.0f && bits < 0);
}

int lz_sorted_i32(long long item, int descending) {
    int key = (int)(item >> 32);
    return descending ? ~key : key;
}

unsigned lz_sorted_u32(long long item, int descending) {
    return (unsigned)lz_sorted_i32(item, descending) ^ 0x80000000u;
}

float lz_sorted_f32(long long item, int descending) {
    int key = lz_sorted_i32(item, descending);
    int bits = key ^ (key >> 31 & 0x7fffffff);
    return key == 0 && (item & 1) ? -0.0f : lz_as_f32(bits);
}

long long lz_sort_key_i64(long long x, int descending) {
    return descending ? ~x : x;
}

long long lz_sort_place_i64(long long x, unsigned place) {
    return (long long)(place * 2u);
}

long long lz_sorted_i64(long long key, long long place, int descending) {
    return descending ? ~key : key;
}

long long lz_sort_key_f64(double x, int descending) {
    long long bits = lz_as_i64(x);
    long long key = bits ^ (bits >> 63 & 0x7fffffffffffffffLL);
    key = x != x ? 0x7fffffffffffffffLL : x == 0.0 ? 0 : key;
    return descending ? ~key : key;
}

long long lz_sort_place_f64(double x, unsigned place) {
    return (long long)(place * 2u + (x == 0.0 && lz_as_i64(x) < 0));
}

double lz_sorted_f64(long long key, long long place, int descending) {
    key = descending ? ~key : key;
    long long bits = key ^ (key >> 63 & 0x7fffffffffffffffLL);
    return key == 0 && (place & 1) ? -0.0 : lz_as_f64(bits);
}

long long lz_sorted_place(long long item) {
    return item >> 1 & 0x7fffffff;
}
