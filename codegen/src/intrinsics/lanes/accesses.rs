//! Loads and stores of vectors: whole or of the first lanes, around the caches, of every second element and further apart.

mod gathers;

use super::conversions::{AVX2, conversion};
use super::kind::{Add, Kind, PASTED, SPREAD};
use crate::DType;

/// Bytes of a cache line.
const LINE_BYTES: u32 = 64;

/// What memory holds, and the vector that lanes have of it.
struct Access {
    dtype: DType,
    /// The element's type in memory, and a vector of such.
    ty: &'static str,
    raw: &'static str,
    vector: &'static str,
    /// The lanes' vector of `raw`, and `x` as memory has it.
    from_raw: String,
    to_raw: String,
    /// Bytes of an element.
    size: u32,
    /// Bytes of the widest element of the text: a register has a lane for each of that size.
    width: u32,
}

/// What the vector of a type of memory is called.
fn memory_vector(ty: &str) -> &'static str {
    match ty {
        "unsigned char" => "u8v",
        "signed char" => "i8v",
        "short" => "i16v",
        "unsigned short" => "u16v",
        "int" => "i32v",
        "unsigned" => "u32v",
        "long long" => "i64v",
        "float" => "f32v",
        _ => "f64v",
    }
}

/// Fewer bytes than a register has, from memory and to memory.
pub(super) fn define_parts(add: Add) {
    let code = format!(
        "// So many bytes, fewer than 16.
{PASTED}i64x2 lz_part(const void* from, idx bytes) {{
    const unsigned char* p = from;
    unsigned long long low = 0, high = 0;
    unsigned first = 0, last = 0;
    if (bytes >= 8) {{
        __builtin_memcpy(&low, p, 8);
        __builtin_memcpy(&high, p + bytes - 8, 8);
        return (i64x2){{ low, high >> 1 >> (127 - 8 * bytes) }};
    }}
    if (bytes >= 4) {{
        __builtin_memcpy(&first, p, 4);
        __builtin_memcpy(&last, p + bytes - 4, 4);
        low = first | (unsigned long long)last << 8 * (bytes - 4);
    }} else if (bytes > 0) {{
        low = p[0] | p[bytes / 2] << 8 * (bytes / 2) | p[bytes - 1] << 8 * (bytes - 1);
    }}
    return (i64x2){{ low, 0 }};
}}
"
    );
    add("lz_part", code);
    let code = format!(
        "{PASTED}void lz_store_part(void* to, i64x2 x, idx bytes) {{
    unsigned char* p = to;
    unsigned long long bits = x[0];
    if (bytes & 8) {{
        __builtin_memcpy(p, &bits, 8);
        bits = x[1];
        p += 8;
    }}
    if (bytes & 4) {{
        __builtin_memcpy(p, &bits, 4);
        bits >>= 32;
        p += 4;
    }}
    if (bytes & 2) {{
        __builtin_memcpy(p, &bits, 2);
        bits >>= 16;
        p += 2;
    }}
    if (bytes & 1) *p = bits;
}}
"
    );
    add("lz_store_part", code);
    let code = format!(
        "#if {AVX2}
{PASTED}void lz_store_parts(void* to, i64x4 x, idx bytes) {{
    char* p = to;
    i64x2 part = __builtin_ia32_extract128i256(x, 0);
    if (bytes & 16) {{
        __builtin_memcpy(p, &part, 16);
        part = __builtin_ia32_extract128i256(x, 1);
        p += 16;
    }}
    lz_store_part(p, part, bytes & 15);
}}
#endif
"
    );
    add("lz_store_parts", code);
}

/// All accesses to memory of one type.
pub(super) fn define(dtype: DType, ty: &'static str, kind: Kind, width: u32, add: Add) {
    let (raw, vector) = (memory_vector(ty), kind.vector());
    let is_plain = raw == vector;
    let from_raw = match kind {
        Kind::Mask => "lz_truths(raw)".to_string(),
        _ if is_plain => "raw".to_string(),
        _ => conversion("raw", raw, vector),
    };
    let to_raw = match kind {
        Kind::Mask => "lz_bytes(x)".to_string(),
        _ if is_plain => "x".to_string(),
        _ => conversion("x", vector, raw),
    };
    let size = dtype.size() as u32;
    let access = Access { dtype, ty, raw, vector, from_raw, to_raw, size, width };
    access.first_lanes(add);
    access.first_of_whole(add);
    access.inside(add);
    access.streams(add);
    access.shuffle(add);
    access.pick(add);
    access.spread(add);
    access.gather_all(add);
    access.gather_inside(add);
    access.gather(add);
    access.gather_at(add);
}

impl Access {
    /// Stores `raw`, whole. Not by `memcpy`, which in gcc 12 stores an integer as long as the vector: of a constant whose last
    /// lanes are 0 and whose others are equal, all lanes become equal.
    fn stored(&self) -> String {
        format!("*({}_unaligned*)to = raw;", self.raw)
    }

    /// A whole vector from memory, of the type that [`Access::stored`] stores: only of one type are both kept in a register.
    fn loaded(&self, from: &str) -> String {
        format!("*(const {}_unaligned*){from}", self.raw)
    }

    /// As many lanes as are left.
    fn first_lanes(&self, add: Add) {
        let Access { dtype, ty, raw, vector, from_raw, to_raw, size, width, .. } = self;
        // Of registers of 16 bytes and more, elements have a bit each that says whether they are there.
        let bits = 64 / width * size * 8;
        let (integers, integer, letter) = self.integers();
        let [load_part, store_part] = self.parts();
        let [load_first, store_first] = [
        (
            format!("raw = ({raw})__builtin_ia32_loaddqu{letter}i{bits}_mask((const {integer}*)from, ({integers}){{ 0 }}, (1 << count) - 1);"),
            load_part,
            "__builtin_memcpy(&first, from, count * sizeof *from);\n        raw = first;",
        ),
        (
            format!("__builtin_ia32_storedqu{letter}i{bits}_mask(({integer}*)to, ({integers})raw, (1 << count) - 1);"),
            store_part,
            "__builtin_memcpy(to, &first, count * sizeof *to);",
        ),
    ]
    .map(|(masked, part, plain)| match bits >= 128 {
        true => format!("#ifdef MASKS\n        {masked}\n#elif {AVX2}\n        {part}\n#else\n        {plain}\n#endif\n"),
        false => format!("#if {AVX2}\n        {part}\n#else\n        {plain}\n#endif\n"),
    });
        let (load, loaded) = (format!("lz_load_{dtype}"), self.loaded("from"));
        add(
            &load,
            format!(
                "{PASTED}{vector} {load}(const {ty}* from, idx count) {{
    {raw} raw;
    if (count >= LANES) {{
        raw = {loaded};
    }} else {{
        {raw} first = {{ 0 }};
{load_first}    }}
    return {from_raw};
}}
"
            ),
        );
        let (store, stored) = (format!("lz_store_{dtype}"), self.stored());
        add(
            &store,
            format!(
                "{PASTED}void {store}({ty}* to, {vector} x, idx count) {{
    const {raw} raw = {to_raw};
    if (count >= LANES) {{
        {stored}
    }} else {{
        const {raw} first = raw;
{store_first}    }}
}}
"
            ),
        );
    }

    /// Fewer than all lanes from memory, and to memory, with AVX2, which masks lanes of 4 and 8 bytes alone, and when it stores
    /// takes several times as long as parts of 16, 8 and 4 bytes do.
    fn parts(&self) -> [String; 2] {
        let Access { raw, size, width, .. } = self;
        let register = 32 / width * size;
        let bytes = format!("count * {size}");
        let load = match (size, register) {
            (4, 32) => {
                format!("raw = ({raw})__builtin_ia32_maskloadd256((const i32v*)from, lz_first_lanes(count));")
            }
            (4, _) => {
                format!("raw = ({raw})__builtin_ia32_maskloadd((const i32v*)from, lz_first_lanes(count));")
            }
            (8, _) => format!(
                "raw = ({raw})__builtin_ia32_maskloadq256((const i64v*)from, __builtin_ia32_pmovsxdq256(lz_first_lanes(count)));"
            ),
            _ => format!(
                "const i64x2 part = lz_part(from, {bytes});\n        __builtin_memcpy(&first, &part, sizeof first);\n        raw = first;"
            ),
        };
        let store = match register {
            32 => format!("lz_store_parts(to, (i64x4)first, {bytes});"),
            _ => format!(
                "i64x2 part = {{ 0 }};\n        __builtin_memcpy(&part, &first, sizeof first);\n        lz_store_part(to, part, {bytes});"
            ),
        };
        [load, store]
    }

    /// The first lanes, where there is room for all: whole vectors are loaded and stored, since one that was stored in parts
    /// is not ready when it is loaded again. Loads have zeros in the other lanes: what is there may be slow to compute with.
    fn first_of_whole(&self, add: Add) {
        let Access { dtype, ty, raw, vector, from_raw, to_raw, .. } = self;
        let (numbers, number) = self.numbers();
        let (load, loaded) = (format!("lz_load_first_{dtype}"), self.loaded("from"));
        add(
            &load,
            format!(
                "{PASTED}{vector} {load}(const {ty}* from, idx count) {{
    {raw} raw = {loaded};
    if (count < LANES) {{
        const {numbers} n = {{ NUMBERS }};
        raw = ({raw})(({numbers})raw & ({numbers})(n < ({number})count));
    }}
    return {from_raw};
}}
"
            ),
        );
        let (stored, rest) = (self.stored(), self.loaded("to"));
        // Of lines of a known length that lie close together each is stored alone: a vector that is loaded from several stores
        // waits for all of them.
        let alone = format!(
            "    if (__builtin_constant_p(count) && count > 0 && count < LANES) {{
        const {raw} first = raw;
        __builtin_memcpy(to, &first, count * sizeof *to);
        return;
    }}
"
        );
        for (store, alone) in [("first", ""), ("line", &alone)] {
            let store = format!("lz_store_{store}_{dtype}");
            let text = format!(
                "{PASTED}void {store}({ty}* to, {vector} x, idx count) {{
    {raw} raw = {to_raw};
{alone}    if (count < LANES) {{
        const {numbers} n = {{ NUMBERS }};
        const {numbers} is_first = ({numbers})(n < ({number})count);
        const {raw} rest = {rest};
        raw = ({raw})((({numbers})raw & is_first) | (({numbers})rest & ~is_first));
    }}
    {stored}
}}
"
            );
            add(&store, text);
        }
    }

    /// The name of the instructions' operands: vectors of integers of this size, one, and the letter of such.
    fn integers(&self) -> (&'static str, &'static str, &'static str) {
        match self.size {
            8 => ("i64v", "long long", "d"),
            4 => ("i32v", "int", "s"),
            2 => ("i16v", "short", "h"),
            _ => ("c16v", "char", "q"),
        }
    }

    /// Lanes for which a condition holds, and zeros: memory of the others is not touched.
    fn inside(&self, add: Add) {
        let Access { dtype, ty, raw, vector, from_raw, size, width, .. } = self;
        let (integers, integer, letter) = self.integers();
        let [bits, bits2] = [64, 32].map(|bytes| bytes / width * size * 8);
        let each = |is_inside: &str| {
            format!(
                "    {ty} each[LANES] = {{ 0 }};
    for (int lane = 0; lane < LANES; ++lane) {{
        if ({is_inside}) each[lane] = from[lane];
    }}
    __builtin_memcpy(&raw, each, sizeof raw);
"
            )
        };
        let masked = match bits >= 128 {
            true => format!(
                "    raw = ({raw})__builtin_ia32_loaddqu{letter}i{bits}_mask((const {integer}*)from, ({integers}){{ 0 }}, inside);\n"
            ),
            // Half a register, of bytes: of the other half no lane is inside.
            false => String::from(
                "    const c16v bytes = (c16v)__builtin_ia32_loaddquqi128_mask((const char*)from, (c16v){ 0 }, inside);
    __builtin_memcpy(&raw, &bytes, sizeof raw);
",
            ),
        };
        let narrow = match (size, bits2) {
            (4, 256) => {
                "#elif defined(__AVX2__)
    raw = (RAW)__builtin_ia32_maskloadd256((const i32v*)from, inside);
"
            }
            (4, 128) => {
                "#elif defined(__AVX2__) && LANES == 4
    raw = (RAW)__builtin_ia32_maskloadd((const i32v*)from, inside);
"
            }
            _ => "",
        };
        let narrow = narrow.replace("RAW", raw).replace("__AVX2__)\n", "__AVX2__) && LANES == 8\n");
        let (name, loaded) = (format!("lz_inside_{dtype}"), self.loaded("from"));
        add(
            &name,
            format!(
                "{PASTED}{vector} {name}(const {ty}* from, mask inside) {{
    {raw} raw;
#ifdef MASKS
{masked}{narrow}#else
    if (lz_all(inside)) {{
        raw = {loaded};
        return {from_raw};
    }}
{}#endif
    return {from_raw};
}}
",
                each("inside[lane]")
            ),
        );
        let any = format!("lz_any_inside_{dtype}");
        add(
            &any,
            format!(
                "// Nothing is read where no lane is inside: a masked load from where no memory is takes hundreds of cycles.
{PASTED}{vector} {any}(const {ty}* from, mask inside) {{
    if (lz_all(~inside)) return ({vector}){{ 0 }};
    return {name}(from, inside);
}}
"
            ),
        );
    }

    /// Stores of whole vectors around the caches. What goes around them is collected by line, and a line of which a part goes
    /// through them is given up and read again: 170 to 400 ns on a Zen 3.
    fn streams(&self, add: Add) {
        let Access { dtype, ty, raw, vector, to_raw, size, width, .. } = self;
        let stored = self.stored();
        let instruction = |bytes: u32| match bytes {
            64 => "__builtin_ia32_movntdq512((whole*)to, (whole)raw)",
            32 => "__builtin_ia32_movntdq256((whole*)to, (whole)raw)",
            16 => "__builtin_ia32_movntdq((whole*)to, (whole)raw)",
            _ => stored.trim_end_matches(';'),
        };
        let [wide, narrow] = [64, 32].map(|bytes| instruction(bytes / width * size));
        let name = format!("lz_stream_{dtype}");
        let (line, last, elements) = (LINE_BYTES, LINE_BYTES - 1, LINE_BYTES / size);
        add(
            &name,
            format!(
                "// Stores around the caches if all of the cache line is stored so: if the loop's `done` elements before this vector, and those from
// it on, reach from the line's begin to its end.
{PASTED}void {name}({ty}* to, {vector} x, idx count, idx streams, idx done) {{
#if LANES * {size} >= 16
    typedef long long whole __attribute__((vector_size(LANES * sizeof(*to))));
    if (streams && count >= LANES && ((idx)to & (LANES * sizeof *to - 1)) == 0) {{
        const idx before = ((idx)to & {last}) / {size};
        if (LANES * {size} >= {line} || (done >= before && count >= {elements} - before)) {{
            const {raw} raw = {to_raw};
#if defined(__clang__)
            __builtin_nontemporal_store(raw, ({raw}*)to);
#elif defined(MASKS)
            {wide};
#elif defined(__AVX2__)
            {narrow};
#else
            {stored}
#endif
            return;
        }}
    }}
#endif
    lz_store_{dtype}(to, x, count);
}}
"
            ),
        );
    }

    /// The vector and the type of integers of this size.
    fn numbers(&self) -> (&'static str, &'static str) {
        match self.size {
            8 => ("i64v", "long long"),
            4 => ("i32v", "int"),
            2 => ("i16v", "short"),
            _ => ("i8v", "signed char"),
        }
    }

    /// Lanes of two vectors.
    fn shuffle(&self, add: Add) {
        let Access { dtype, raw, .. } = self;
        let (numbers, _) = self.numbers();
        let shuffle = format!("lz_shuffle_{dtype}");
        add(
            &shuffle,
            format!(
                "// Lanes of two vectors one after the other.
{PASTED}{raw} {shuffle}({raw} a, {raw} b, {numbers} at) {{
#ifndef __clang__
    return __builtin_shuffle(a, b, at);
#else
    {raw} r = a;
#pragma clang loop unroll(full)
    for (int lane = 0; lane < LANES; ++lane) {{
        const int from = at[lane] & (2 * LANES - 1);
        r[lane] = from < LANES ? a[from] : b[from - LANES];
    }}
    return r;
#endif
}}
"
            ),
        );
    }

    /// One of neighbours that all are read in turn.
    fn pick(&self, add: Add) {
        let Access { dtype, ty, raw, vector, from_raw, .. } = self;
        let (numbers, number) = self.numbers();
        let shuffle = format!("lz_shuffle_{dtype}");
        let pick = format!("lz_pick_{dtype}");
        let picked = format!(
            "    if (count >= LANES) {{
        const {numbers} n = {{ NUMBERS }};
        const {number} p = place, odd = place & 1, half = place >> 1;
        {raw} a, b, c, d;
        __builtin_memcpy(&a, from, sizeof a);
        __builtin_memcpy(&b, from + LANES, sizeof b);
        if (stride == 2) {{
            raw = {shuffle}(a, b, 2 * n + p);
        }} else if (stride == 3) {{
            __builtin_memcpy(&c, from + 2 * LANES, sizeof c);
            a = {shuffle}(a, b, 3 * n + p);
            raw = {shuffle}(a, c, n - (2 * n + p - LANES) * (3 * n + p >= 2 * LANES));
        }} else {{
            __builtin_memcpy(&c, from + 2 * LANES, sizeof c);
            __builtin_memcpy(&d, from + 3 * LANES, sizeof d);
            a = {shuffle}(a, b, 2 * n + odd);
            c = {shuffle}(c, d, 2 * n + odd);
            raw = {shuffle}(a, c, 2 * n + half);
        }}
        return {from_raw};
    }}
"
        );
        add(
            &pick,
            format!(
                "// All elements from the first one on are there, `stride` for each lane.
{PASTED}{vector} {pick}(const {ty}* from, idx stride, int place, idx count) {{
    {raw} raw;
{picked}    {ty} each[LANES] = {{ 0 }};
    for (int lane = 0; lane < LANES && lane < count; ++lane) each[lane] = from[lane * stride + place];
    __builtin_memcpy(&raw, each, sizeof raw);
    return {from_raw};
}}
"
            ),
        );
    }

    /// Elements of a small array, each for some neighbours.
    fn spread(&self, add: Add) {
        let Access { dtype, ty, raw, vector, from_raw, size, .. } = self;
        let (numbers, number) = self.numbers();
        let shuffle = format!("lz_shuffle_{dtype}");
        // The quotient by a reciprocal: exact of what is below 240, by up to 15.
        let shuffled = match size {
            4 | 8 => format!(
                "#if LANES >= {half}
    const {numbers} n = {{ NUMBERS }};
    {raw} a, b;
    __builtin_memcpy(&a, from, sizeof a);
    __builtin_memcpy(&b, from + {SPREAD} - LANES, sizeof b);
    raw = {shuffle}(a, b, (n + ({number})first) * (65536 / ({number})each + 1) >> 16);
    return {from_raw};
#endif
",
                half = SPREAD / 2
            ),
            _ => String::new(),
        };
        let spread = format!("lz_spread_{dtype}");
        add(
            &spread,
            format!(
                "// Of {SPREAD} elements, each for as many lanes.
{PASTED}{vector} {spread}(const {ty}* from, idx first, idx each) {{
    {raw} raw;
{shuffled}    {ty} all[LANES];
    for (int lane = 0; lane < LANES; ++lane) all[lane] = from[(first + lane) / each % {SPREAD}];
    __builtin_memcpy(&raw, all, sizeof raw);
    return {from_raw};
}}
"
            ),
        );
    }
}
