//! Loads of elements that do not lie side by side: at a distance from each other, or each at an index of its own.

use super::Access;
use crate::intrinsics::lanes::conversions::AVX2;
use crate::intrinsics::lanes::kind::{Add, PASTED};

impl Access {
    /// Sets `raw` to elements of which each is read alone. Not by way of an array: a vector that is loaded from several stores
    /// waits for all of them.
    fn all_lanes(&self, indent: &str, element: impl Fn(u32) -> String) -> String {
        let list = |bytes: u32| {
            let lanes: Vec<String> = (0..bytes / self.width).map(&element).collect();
            format!("{indent}raw = ({}){{ {} }};\n", self.raw, lanes.join(", "))
        };
        let [widest, wide] = [64, 32].map(|bytes| bytes / self.width);
        format!(
            "#if LANES == {widest}\n{}#elif LANES == {wide}\n{}#else\n{}#endif\n",
            list(64),
            list(32),
            list(16)
        )
    }

    /// Elements of all lanes at a distance.
    pub(super) fn gather_all(&self, add: Add) {
        let Access { dtype, ty, raw, vector, from_raw, .. } = self;
        let (numbers, _) = self.numbers();
        let shuffle = format!("lz_shuffle_{dtype}");
        let all = format!("lz_gather_all_{dtype}");
        // What a stride comes to; backwards, the lanes' elements are the other way round from the last one on.
        let near = |stride: i32| {
            let (first, m, apart) = match stride {
                ..0 => (format!("from - {} * (LANES - 1)", -stride), "(LANES - 1 - n)", -stride),
                _ => ("from".to_string(), "n", stride),
            };
            let load = |name: &str, at: &str| {
                format!("            __builtin_memcpy(&{name}, {first}{at}, sizeof {name});\n")
            };
            let picked = match apart {
                1 => format!("{}            raw = {shuffle}(a, a, {m});\n", load("a", "")),
                2 => format!(
                    "{}{}            raw = {shuffle}(a, b, 2 * {m} - ({m} >= LANES / 2));\n",
                    load("a", ""),
                    load("b", " + (LANES - 1)")
                ),
                3 => format!(
                    "{}{}{}            a = {shuffle}(a, b, 3 * {m});
            raw = {shuffle}(a, c, n - (3 * {m} - n - (LANES - 2)) * (3 * {m} >= 2 * LANES));\n",
                    load("a", ""),
                    load("b", " + LANES"),
                    load("c", " + (2 * LANES - 2)")
                ),
                _ => format!(
                    "{}{}{}{}            a = {shuffle}(a, b, 4 * {m});
            c = {shuffle}(c, d, 4 * {m} - 2 * LANES - 3 * (4 * {m} >= 3 * LANES));
            raw = {shuffle}(a, c, n - LANES * ({m} >= LANES / 2));\n",
                    load("a", ""),
                    load("b", " + LANES"),
                    load("c", " + 2 * LANES"),
                    load("d", " + (3 * LANES - 3)")
                ),
            };
            format!("if (stride == {stride}) {{\n{picked}        }}")
        };
        let shuffled = format!(
            "    if (stride >= -4 && stride <= 4 && stride != 0 && stride != 1) {{
        const {numbers} n = {{ NUMBERS }};
        {raw} a, b, c, d;
        {}
        return {from_raw};
    }}
",
            [-1, -2, -3, -4, 2, 3, 4].map(near).join(" else ")
        );
        add(
            &all,
            format!(
                "{PASTED}{vector} {all}(const {ty}* from, idx stride) {{
    {raw} raw;
{shuffled}{each}    return {from_raw};
}}
",
                each = self.all_lanes("    ", |lane| format!("from[{lane} * stride]")),
            ),
        );
    }

    /// Elements at a distance of lanes for which a condition holds, and zeros: memory of the others is not touched.
    pub(super) fn gather_inside(&self, add: Add) {
        let Access { dtype, ty, raw, vector, from_raw, .. } = self;
        // Smaller vectors have no masks, nor have smaller elements with AVX2.
        let with_masks = match 64 / self.width * self.size {
            16.. => format!("#ifdef MASKS\n{}#endif\n", self.near_bits()),
            _ => String::new(),
        };
        let with_lanes = match self.size {
            4 | 8 => format!("#if {AVX2}\n{}#endif\n", self.near_lanes()),
            _ => String::new(),
        };
        add(
            &format!("lz_gather_inside_{dtype}"),
            format!(
                "{PASTED}{vector} lz_gather_inside_{dtype}(const {ty}* from, idx stride, mask inside) {{
    {raw} raw;
{with_masks}{with_lanes}    if (lz_all(inside)) return lz_gather_all_{dtype}(from, stride);
    {ty} each[LANES] = {{ 0 }};
    for (int lane = 0; lane < LANES; ++lane) {{
#ifdef MASKS
        if (inside >> lane & 1) each[lane] = from[lane * stride];
#else
        if (inside[lane]) each[lane] = from[lane * stride];
#endif
    }}
    __builtin_memcpy(&raw, each, sizeof raw);
    return {from_raw};
}}
"
            ),
        );
    }

    /// Of strides of two to four: neighbours under a mask of bits, then the wanted lanes of these.
    fn near_bits(&self) -> String {
        let Access { dtype, raw, from_raw, .. } = self;
        let (integers, integer, letter) = self.integers();
        let bits = 64 / self.width * self.size * 8;
        let (numbers, _) = self.numbers();
        let shuffle = format!("lz_shuffle_{dtype}");
        let load = |number: &str| {
            format!(
                "({raw})__builtin_ia32_loaddqu{letter}i{bits}_mask((const {integer}*)from + {number} * LANES, ({integers}){{ 0 }}, (mask)(elements >> {number} * LANES))"
            )
        };
        let [first, second, third, fourth] = ["0", "1", "2", "3"].map(load);
        format!(
            "    if (stride >= 2 && stride <= 4) {{
        // Each lane's bit, at its element's place.
        const unsigned long long places = stride == 2 ? 0x5555555555555555 : stride == 3 ? 0x9249249249249249 : 0x1111111111111111;
        const unsigned long long elements = __builtin_ia32_pdep_di(inside, places);
        const {numbers} n = {{ NUMBERS }};
        {raw} a = {first};
        const {raw} b = {second};
        if (stride == 2) {{
            raw = {shuffle}(a, b, 2 * n);
        }} else if (stride == 3) {{
            const {raw} c = {third};
            a = {shuffle}(a, b, 3 * n);
            raw = {shuffle}(a, c, n - (2 * n - LANES) * (3 * n >= 2 * LANES));
        }} else {{
            const {raw} c = {third};
            const {raw} d = {fourth};
            raw = {shuffle}({shuffle}(a, b, 4 * n), {shuffle}(c, d, 4 * n), n - LANES / 2 * (n >= LANES / 2));
        }}
        return {from_raw};
    }}
"
        )
    }

    /// The same with AVX2, whose masks are lanes.
    fn near_lanes(&self) -> String {
        let Access { dtype, raw, from_raw, .. } = self;
        let lanes = 32 / self.width;
        let (numbers, _) = self.numbers();
        let shuffle = format!("lz_shuffle_{dtype}");
        // A lane's truth at its element's place, and none at those between.
        let load = |stride: u32, number: u32| {
            let places = (number * lanes..(number + 1) * lanes)
                .map(|place| if place % stride == 0 { place / stride } else { lanes })
                .map(|lane| lane.to_string());
            let places: Vec<String> = places.collect();
            let inside = format!("__builtin_shuffle(inside, none, (i32v){{ {} }})", places.join(", "));
            let from = format!("(from + {number} * LANES)");
            match (self.size, lanes) {
                (4, 8) => format!("({raw})__builtin_ia32_maskloadd256((const i32v*){from}, {inside})"),
                (4, _) => format!("({raw})__builtin_ia32_maskloadd((const i32v*){from}, {inside})"),
                _ => format!(
                    "({raw})__builtin_ia32_maskloadq256((const i64v*){from}, __builtin_ia32_pmovsxdq256({inside}))"
                ),
            }
        };
        let loads = |stride: u32| {
            let load = |number: u32| {
                format!(
                    "            const {raw} {} = {};\n",
                    ["a", "b", "c", "d"][number as usize],
                    load(stride, number)
                )
            };
            (0..stride).map(load).collect::<String>()
        };
        format!(
            "    if (stride >= 2 && stride <= 4) {{
        const i32v none = {{ 0 }};
        const {numbers} n = {{ NUMBERS }};
        if (stride == 2) {{
{two}            raw = {shuffle}(a, b, 2 * n);
        }} else if (stride == 3) {{
{three}            const {raw} two = {shuffle}(a, b, 3 * n);
            raw = {shuffle}(two, c, n - (2 * n - LANES) * (3 * n >= 2 * LANES));
        }} else {{
{four}            raw = {shuffle}({shuffle}(a, b, 4 * n), {shuffle}(c, d, 4 * n), n - LANES / 2 * (n >= LANES / 2));
        }}
        return {from_raw};
    }}
",
            two = loads(2),
            three = loads(3),
            four = loads(4),
        )
    }

    /// Elements of the first lanes at a distance.
    pub(super) fn gather(&self, add: Add) {
        let Access { dtype, ty, raw, vector, from_raw, .. } = self;
        let masked = match self.size {
            4 | 8 => format!("defined(MASKS) || ({AVX2})"),
            _ => String::from("defined(MASKS)"),
        };
        add(
            &format!("lz_gather_{dtype}"),
            format!(
                "{PASTED}{vector} lz_gather_{dtype}(const {ty}* from, idx stride, idx count) {{
    {raw} raw;
    if (count >= LANES) return lz_gather_all_{dtype}(from, stride);
#if {masked}
    if (stride >= 2 && stride <= 4) return lz_gather_inside_{dtype}(from, stride, lz_first_lanes(count));
#endif
    {ty} each[LANES] = {{ 0 }};
    for (int lane = 0; lane < count; ++lane) each[lane] = from[lane * stride];
    __builtin_memcpy(&raw, each, sizeof raw);
    return {from_raw};
}}
",
            ),
        );
    }

    /// Elements at an index of each lane's own.
    pub(super) fn gather_at(&self, add: Add) {
        let Access { dtype, ty, raw, vector, from_raw, .. } = self;
        let gather_at = format!("lz_gather_at_{dtype}");
        add(
            &gather_at,
            format!(
                "{PASTED}{vector} {gather_at}(const {ty}* from, i64v indices, idx count) {{
    {raw} raw;
    {ty} each[LANES] = {{ 0 }};
    if (count >= LANES) {{
{all}        return {from_raw};
    }}
    for (int lane = 0; lane < count; ++lane) each[lane] = from[indices[lane]];
    __builtin_memcpy(&raw, each, sizeof raw);
    return {from_raw};
}}
",
                all = self.all_lanes("        ", |lane| format!("from[indices[{lane}]]")),
            ),
        );
    }
}
