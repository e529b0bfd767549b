//! Loads and stores of vectors move the elements that they say, of every count and distance, and touch no others.

use std::fmt::Write;

use lazuli_codegen::intrinsics;
use lazuli_codegen::intrinsics::lanes::{Lanes, SPREAD};
use lazuli_codegen::{DType, Language};

use crate::c_library::CLibrary;
use crate::lanes::{FLAGS, targets};

/// Elements of the memory that is read, of which lanes begin in the middle, and of the memory that is stored to.
const ELEMENTS: usize = 512;
const MIDDLE: usize = ELEMENTS / 2;

/// How lanes come from memory `a` and go to memory `out`: what it is called, and its text. `b` has the count, the distance
/// or another number, a place, and from 32 on truths and from 64 on positions of all lanes.
fn accesses(dtype: DType, width: u32) -> Vec<(&'static str, String)> {
    let (load, _) = Lanes::load(dtype);
    let (store, _) = Lanes::store(dtype);
    let all = |text: String| format!("{store}(out, {text}, b[0]);");
    let mut accesses = vec![
        ("whole", all(format!("{load}(a, b[0])"))),
        (
            "first",
            format!("{}(out, {}(a, b[0]), b[0]);", Lanes::store_first(dtype).0, Lanes::load_first(dtype).0),
        ),
        ("line", format!("{}(out, {load}(a, b[0]), b[0]);", Lanes::store_line(dtype).0)),
        ("line_of_3", format!("{}(out, {load}(a, b[0]), 3);", Lanes::store_line(dtype).0)),
        ("stream", format!("{}(out, {load}(a, b[0]), b[0], 1, 0);", Lanes::stream(dtype).0)),
        ("stream_on", format!("{}(out, {load}(a, b[0]), b[0], 1, 64);", Lanes::stream(dtype).0)),
        ("gather", all(format!("{}(a, b[1], b[0])", Lanes::gather(dtype).0))),
        ("pick", all(format!("{}(a, b[1], b[2], b[0])", Lanes::pick(dtype).0))),
        ("spread", all(format!("{}(a, b[2], b[1])", Lanes::spread(dtype).0))),
        (
            "inside",
            all(format!("{}(a, lz_load_bool((unsigned char*)(b + 4), LANES))", Lanes::inside(dtype, true).0)),
        ),
        (
            "any",
            all(format!(
                "{}(a, lz_load_bool((unsigned char*)(b + 4), LANES))",
                Lanes::inside(dtype, false).0
            )),
        ),
        (
            "gather_inside",
            all(format!(
                "{}(a, b[1], lz_load_bool((unsigned char*)(b + 4), LANES))",
                Lanes::gather_inside(dtype).0
            )),
        ),
    ];
    // Positions are of 64 bits.
    if width == 8 {
        accesses.push((
            "gather_at",
            all(format!("{}(a, lz_load_i64(b + 8, LANES), b[0])", Lanes::gather_at(dtype).0)),
        ));
    }
    accesses
}

/// The element of memory that a lane of an access has, or none for a zero.
fn element(
    name: &str,
    lane: usize,
    [stride, place]: [i64; 2],
    is_inside: bool,
    positions: &[i64],
) -> Option<i64> {
    let lane_i64 = lane as i64;
    match name {
        "gather" => Some(lane_i64 * stride),
        "pick" => Some(lane_i64 * stride + place),
        "spread" => Some((place + lane_i64) / stride % SPREAD as i64),
        "inside" | "any" => is_inside.then_some(lane_i64),
        "gather_inside" => is_inside.then_some(lane_i64 * stride),
        "gather_at" => Some(positions[lane]),
        _ => Some(lane_i64),
    }
}

/// Distances, and places of them or beginnings, of an access.
fn numbers(name: &str) -> Vec<[i64; 2]> {
    match name {
        "gather" => (-7..=7).map(|stride| [stride, 0]).collect(),
        "gather_inside" => (1..=5).map(|stride| [stride, 0]).collect(),
        "pick" => (2..=4).flat_map(|stride| (0..stride).map(move |place| [stride, place])).collect(),
        "spread" => (2..=15).flat_map(|each| [0, 1, 7, 16, 39].map(|first| [each, first])).collect(),
        _ => vec![[1, 0]],
    }
}

#[test]
fn accesses_move_the_elements_that_they_say() {
    if CLibrary::get(Language::C).is_none() {
        return;
    }
    for (width, target) in targets() {
        let dtypes = DType::ALL.into_iter().filter(|dtype| dtype.size() <= width as usize);
        let mut functions =
            String::from("void lanes(const void* a, const void* b, idx* out, idx n) { *out = LANES; }\n");
        for dtype in dtypes.clone() {
            let ty = intrinsics::memory_type(Language::C, dtype);
            for (name, text) in accesses(dtype, width) {
                let head = format!("void {name}_{dtype}(const {ty} *a, const idx *b, {ty} *out, idx n)");
                writeln!(functions, "{head} {{ a += {MIDDLE}; {text} }}").unwrap();
            }
        }
        let vectors = Lanes::new(width).text(&functions).unwrap();
        let text = format!("typedef long long idx;\n{vectors}{functions}");
        let arguments: Vec<&str> = FLAGS.into_iter().chain(target.iter().copied()).collect();
        let library = CLibrary::compile(Language::C, "cc", "accesses.c", &arguments, &text).unwrap();
        let lanes = library.run::<u8, u8>("lanes", &[0; 8], &[0; 8])[0] as usize;
        for dtype in dtypes {
            let size = dtype.size();
            let memory: Vec<u8> = match dtype {
                DType::Bool => (0..ELEMENTS).map(|n| (n * 7919 % 13 % 2) as u8).collect(),
                // No byte is a zero's.
                _ => (0..ELEMENTS * size).map(|n| (n * 7919 % 1009 % 255) as u8 + 1).collect(),
            };
            for (name, _) in accesses(dtype, width) {
                for (count, [stride, place]) in (0..=lanes + 1)
                    .flat_map(|count| numbers(name).into_iter().map(move |numbers| (count, numbers)))
                {
                    // Truths and positions are others for each count.
                    let truths: Vec<u8> =
                        (0..32).map(|lane| u8::from((lane * 5 + count) % 7 < count % 8)).collect();
                    let positions: Vec<i64> =
                        (0..32).map(|lane| (lane * 37 + count as i64) % 71 - 35).collect();
                    let mut b = vec![0; memory.len().max(512)];
                    let head = [count as i64, stride, place, 0];
                    for (at, number) in head.into_iter().enumerate() {
                        b[8 * at..][..8].copy_from_slice(&number.to_le_bytes());
                    }
                    b[32..64].copy_from_slice(&truths);
                    for (lane, position) in positions.iter().enumerate() {
                        b[64 + 8 * lane..][..8].copy_from_slice(&position.to_le_bytes());
                    }
                    let mut a = memory.clone();
                    a.resize(b.len(), 0);
                    let got: Vec<u8> = library.run(&format!("{name}_{dtype}"), &a, &b);
                    let stored = if name == "line_of_3" { 3 } else { count }.min(lanes);
                    let mut expected = vec![0; got.len()];
                    for lane in 0..stored {
                        let is_there = name != "line_of_3" || lane < count;
                        let from = element(name, lane, [stride, place], truths[lane] == 1, &positions);
                        if let Some(from) = from.filter(|_| is_there) {
                            let from = (MIDDLE as i64 + from) as usize * size;
                            expected[lane * size..][..size].copy_from_slice(&memory[from..][..size]);
                        }
                    }
                    let shown = (lanes + 2) * size;
                    assert!(
                        got == expected,
                        "{target:?}, width {width}: {name} of {dtype}, {count} of {lanes} lanes, distance {stride}, place {place}, {truths:?}:\n\
                         {:?}, not\n{:?}",
                        &got[..shown],
                        &expected[..shown]
                    );
                }
            }
        }
    }
}
