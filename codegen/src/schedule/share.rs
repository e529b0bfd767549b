//! Who does a reduction: one thread by itself, or several together. Whoever plans kernels asks the same.

use crate::index::{Atom, AxisId, IndexExpr};

/// Short reductions belong to one thread, whatever they read.
const IN_THREAD: u64 = 8;

/// Windows up to 8×8 belong to one thread, because its neighbours read the same cache lines.
const IN_THREAD_WINDOW: u64 = 64;

/// Fewer columns than this do not fill the lanes of a core.
pub const SHORTEST_COLUMNS: u64 = 16;

/// Elements so far apart, or nearer, are picked out of whole vectors; lanes read others one by one.
pub const NEAR: u64 = 4;

/// Elements of a row that a core's own caches hold beside the results: a pass over so many finds what the one before has
/// read. Up to here two passes of a CPU row, for the maximum and for the sum of exponentials below it, are faster than one
/// that finds both: see benches/notes/reductions.md.
pub const NEAR_LENGTH: u64 = 1 << 14;

/// Fewer rows, columns or terms of a contraction do not pay for packing its factors.
pub(crate) const FEWEST_ROWS: u64 = 4;
const FEWEST_COLUMNS: u64 = 8;
pub(crate) const FEWEST_TERMS: u64 = 9;

/// Fewer multiplications are soon done anyhow.
const FEWEST_MULTIPLICATIONS: u64 = 1 << 15;

/// The same of each product of a batch, which all together have enough.
const FEWEST_OF_EACH: u64 = 1 << 9;

/// What an argument counts as that is a number of products, at least: one text is for all of them.
pub const SOME_PRODUCTS: u64 = 64;

/// Fewer rows, columns or terms do not pay for a GPU's tiles, nor do fewer multiplications.
const FEWEST_TILED: u64 = 16;
const FEWEST_TILED_MULTIPLICATIONS: u64 = 1 << 17;

/// Whether a core packs the factors of a contraction: sums of so many terms, for so many rows and columns.
pub fn is_packed(rows: u64, columns: u64, terms: u64) -> bool {
    is_packed_batch(1, rows, columns, terms)
}

/// The same of so many products, each with factors of its own: all of them have enough to multiply, and each is worth packing.
pub fn is_packed_batch(products: u64, rows: u64, columns: u64, terms: u64) -> bool {
    let each = rows.saturating_mul(columns).saturating_mul(terms);
    rows >= FEWEST_ROWS
        && columns >= FEWEST_COLUMNS
        && terms >= FEWEST_TERMS
        && each >= FEWEST_OF_EACH
        && each.saturating_mul(products) >= FEWEST_MULTIPLICATIONS
}

/// Of so many terms, few rows and columns are enough if neither fill a vector: their sums stay in registers all along.
const FEWEST_LONG: u64 = 3;
const MANY_TERMS: u64 = 1 << 13;

/// Whether a core packs the factors of a product for fewer rows and columns than [`is_packed`] asks for.
pub fn is_packed_long(rows: u64, columns: u64, terms: u64) -> bool {
    rows.min(columns) >= FEWEST_LONG && rows.max(columns) < FEWEST_COLUMNS && terms >= MANY_TERMS
}

/// Terms of a convolution to few channels for which most of a tile's rows may be for nothing, and its columns.
const FEWEST_IMAGE_TERMS: u64 = 64;
const FEWEST_IMAGE_COLUMNS: u64 = 64;

/// Whether a core packs the factors of a convolution to fewer channels than [`is_packed`] asks for: a thread that goes through
/// each window by itself is slower by more than the part of a tile that they fill.
pub fn is_packed_image(channels: u64, columns: u64, terms: u64) -> bool {
    channels > 0
        && terms >= FEWEST_IMAGE_TERMS
        && columns >= FEWEST_IMAGE_COLUMNS
        && is_packed(FEWEST_ROWS, columns, terms)
}

/// Simple operations of what a contraction combines in the place of products. What takes more is bound by these however its
/// operands are read, and would be repeated in the text for each row of a tile.
pub const MOST_LIFTED: f64 = 14.0;

/// Whether the threads of a GPU's block share tiles of both factors: with fewer rows or columns the factors are read about
/// once anyhow, and with fewer terms the results are what takes time.
pub fn is_tiled(rows: u64, columns: u64, terms: u64) -> bool {
    rows.min(columns) >= FEWEST_TILED
        && terms >= FEWEST_TILED
        && rows.saturating_mul(columns).saturating_mul(terms) >= FEWEST_TILED_MULTIPLICATIONS
}

/// Rows that make a GPU read the other factor once for all of them, elements of it that no near cache gives again and again, and
/// its columns.
const FEWEST_STREAMED_ROWS: u64 = 2;
const FEWEST_STREAMED: u64 = 1 << 20;
const FEWEST_STREAMED_COLUMNS: u64 = 128;

/// Whether few rows share tiles of a large factor, such as the weights of a layer: each by itself would read all of it.
pub fn is_streamed(rows: u64, columns: u64, terms: u64) -> bool {
    (FEWEST_STREAMED_ROWS..FEWEST_TILED).contains(&rows)
        && columns >= FEWEST_STREAMED_COLUMNS
        && terms >= FEWEST_TILED
        && columns.saturating_mul(terms) >= FEWEST_STREAMED
}

/// Columns of attention whose sums the threads of a GPU's block have in registers.
pub const MOST_ATTENTION_COLUMNS: usize = 128;

/// Elements of the widest vectors.
pub(super) const VECTOR: u64 = 16;

/// Elements of a column panel: four of the widest vectors.
pub(crate) const PANEL: u64 = 4 * VECTOR;

/// Products of a contraction, at most: each has sums of its own, and all of a block's are in a core's cache.
pub const MOST_PRODUCTS: usize = 8;

/// Rows of a tile whose sums stay in registers.
pub(crate) const TILE_ROWS: u64 = 6;

/// The same of products of pairs: whole sixes, and a multiple of the 32 rows that AMX multiplies at a time.
pub(crate) const PAIRED_ROWS: u64 = 96;

/// Rows of a contraction's block: packed columns are used for so many.
pub const ROWS: u64 = 240;

/// The same where a row of sums is a panel, and no value is made of rows first.
pub(super) const MOST_ROWS: u64 = 2 * ROWS;

/// Packed columns of a contraction's block. Others beside it pack the same rows, and reduce them if need be.
pub const COLUMNS: u64 = 256;

/// Terms that are packed together: a panel of them stays in a core's own cache.
pub(super) const PACKED_TERMS: u64 = 256;

/// Multiplications of a block that are worth handing it to a thread.
pub(super) const BLOCK_MULTIPLICATIONS: u64 = 1 << 21;

/// Bytes of the rows of a block, which a core makes, reduces and multiplies: they stay in its own cache.
const ROWS_BYTES: u64 = 384 << 10;

/// How many rows of a contraction a block has that reduces them first, of so many elements in so many arrays: a multiple
/// of a tile's, or 0 if they are too long.
pub fn rows_of_block(length: u64, size: u64, arrays: u64) -> u64 {
    let row = length.next_multiple_of(PANEL).saturating_mul(size).saturating_mul(arrays);
    (ROWS_BYTES / row.max(1) / TILE_ROWS * TILE_ROWS).min(ROWS)
}

/// Whether one thread does a reduction of so many positions, along which no result is stored.
pub fn is_in_thread(positions: u64, is_window: impl FnOnce() -> bool) -> bool {
    positions <= IN_THREAD || may_be_window(positions) && is_window()
}

/// Places along an axis of windows that lie in a core's lanes, at least: of fewer, laying out what they read takes as long as they do.
const FEWEST_PLACES: u64 = 7;

/// Whether a core has neighbouring windows in its lanes, however long they are, which read this along the innermost axis of the
/// results and some reduced ones: nearly all that one reads is its neighbour's too.
pub fn is_window_in_lanes(
    index: &IndexExpr,
    reduced: impl IntoIterator<Item = (AxisId, u64)>,
    inner: AxisId,
) -> bool {
    let step = |axis: AxisId| index.coefficient(axis).filter(|&step| step > 0).map(|step| step as u64);
    step(inner).is_some_and(|own| {
        reduced.into_iter().any(|(axis, extent)| {
            let overlaps = |step: u64| own <= NEAR.saturating_mul(step) && own < step.saturating_mul(extent);
            extent >= FEWEST_PLACES && step(axis).is_some_and(overlaps)
        })
    })
}

/// Along lines of a row that are shorter, windows are combined in the loop that uses them; along others in loops of their own before it, in
/// lanes. In lines of 28 elements that took 2 to 3 times as long, in lines of 128 half as long: see benches/notes/windows.md.
pub const SHORTEST_WINDOWED_LINE: u64 = 64;

/// Elements of a reduction that one thread may do by itself.
pub const MOST_IN_THREAD: u64 = IN_THREAD_WINDOW;

/// Whether it depends on what a reduction of so many positions reads, who does it.
pub fn may_be_window(positions: u64) -> bool {
    positions <= IN_THREAD_WINDOW
}

/// Whether the results of neighbouring threads read interleaved or overlapping elements by an index: it steps less along
/// an axis of the results than across the extent of a reduced one, or divides its position, as an image that is enlarged does.
/// What wraps around, as a circular border does, is a window where it does not.
pub fn is_window(
    index: &IndexExpr,
    reduced: impl IntoIterator<Item = (AxisId, u64)> + Clone,
    results: &[AxisId],
) -> bool {
    // What is read several times in a row is as near as neighbours are.
    let repeats = |axis: AxisId| {
        index.terms().iter().any(|(atom, factor)| match atom {
            Atom::Div(inner, by) if *factor == 1 => {
                inner.coefficient(axis).is_some_and(|step| (1..=*by).contains(&step.saturating_abs()))
            }
            _ => false,
        })
    };
    let step = |axis: AxisId| match index.coefficient(axis) {
        Some(step) => step.unsigned_abs(),
        None => u64::from(repeats(axis)),
    };
    let overlaps = reduced.clone().into_iter().any(|(axis, extent)| {
        let reach = step(axis).saturating_mul(extent);
        step(axis) > 0 && results.iter().any(|&other| step(other) > 0 && step(other) < reach)
    });
    overlaps
        || index.terms().iter().any(|(atom, _)| match atom {
            Atom::Mod(inner, _) => is_window(inner, reduced.clone(), results),
            Atom::Axis(_) | Atom::Div(..) => false,
        })
}
