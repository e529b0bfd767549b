//! Block sizes of contractions on a core that reduce the rows of their left factor first. Fusion asks here how often a row will be
//! reduced: once where a block has all columns, else once in each block of columns.

use super::contraction::{BLOCKS, FEWEST_COLUMNS};
use super::few_rows::{FEW_ROWS, thin_columns};
use super::share::{COLUMNS, ROWS, TILE_ROWS, rows_of_block};

/// Blocks that keep the cores busy; and multiplications of a block from which on it is divided to have so many.
const ROW_BLOCKS: u64 = 3;
const DIVIDED: u64 = 1 << 23;

/// From so many blocks on, it matters little that a core has one more than others.
const MANY_ROW_BLOCKS: u64 = 16;

/// The number of rows that a text is made for, where it is an argument: one to three full blocks, of `most` rows each.
pub(super) fn some_rows(rows: u64, most: u64) -> u64 {
    (rows / most.max(1)).clamp(1, ROW_BLOCKS) * most
}

/// Rows of a block, of at most `most`, a multiple of a tile's. Blocks are of equal size, and few of them an even number, so that two cores
/// end together. There are `batch` products of `all` rows, of which `each` lie together and are divided; a row takes `of_row` multiplications.
pub(super) fn even_rows(batch: u64, [all, each]: [u64; 2], most: u64, of_row: u64) -> u64 {
    let mut of_block = most.min(all.next_multiple_of(TILE_ROWS)).max(TILE_ROWS);
    let is_few = |of_block| batch.saturating_mul(all.div_ceil(of_block)) < ROW_BLOCKS;
    while of_block > TILE_ROWS && is_few(of_block) && of_block.saturating_mul(of_row) >= DIVIDED {
        of_block = (of_block / 2).next_multiple_of(TILE_ROWS);
    }
    let each = if each >= of_block { each } else { all };
    let parts = each.div_ceil(of_block);
    let is_uneven = parts > 1 && batch.saturating_mul(parts) < MANY_ROW_BLOCKS;
    let parts = if is_uneven { parts.next_multiple_of(2) } else { parts };
    each.div_ceil(parts.max(1)).next_multiple_of(TILE_ROWS)
}

/// Rows that are worth packing all columns for.
const ROWS_OF_ALL_COLUMNS: u64 = 96;

/// Whether blocks of so many rows have all columns, so that rows are reduced once.
pub(super) fn has_all_columns(rows: u64) -> bool {
    rows >= ROWS_OF_ALL_COLUMNS
}

/// About how many rows and columns a block has, of `batch` products of so many rows and columns each: sums of so many terms of `size`
/// bytes. Each block of columns reduces its rows again.
pub fn reduced_block(batch: u64, [rows, columns]: [u64; 2], terms: u64, size: u64) -> [u64; 2] {
    if rows <= FEW_ROWS {
        return [rows, thin_columns(columns)];
    }
    let most = rows_of_block(terms, size, 1);
    let all = some_rows(rows, most);
    let whole = even_rows(batch, [all, all], most, terms.saturating_mul(columns));
    if has_all_columns(whole) {
        return [whole, columns];
    }
    let blocks = batch.saturating_mul(rows.div_ceil(ROWS)).saturating_mul(columns.div_ceil(COLUMNS));
    [ROWS, if blocks < BLOCKS { FEWEST_COLUMNS } else { COLUMNS }.min(columns)]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Few rows, or a cache of few, are not divided for ever.
    #[test]
    fn no_block_has_less_than_a_tile_of_rows() {
        for all in [0, 1, 5, 6, 7, 12, 1000] {
            for most in [0, 6, 12, 240] {
                let of_block = even_rows(1, [all, all], most, 1 << 22);
                assert!(
                    of_block.is_multiple_of(TILE_ROWS) && of_block <= 240,
                    "{all} rows, {most} at most: {of_block}"
                );
            }
        }
        assert_eq!(even_rows(1, [5, 5], 6, 1 << 22), TILE_ROWS);
    }

    #[test]
    fn rows_of_a_cache_have_all_columns() {
        assert_eq!(reduced_block(1, [512, 512], 512, 4), [96, 512]);
        assert_eq!(reduced_block(1, [64, 512], 512, 4), [ROWS, FEWEST_COLUMNS]);
        assert_eq!(reduced_block(1, [512, 512], 20_000, 4), [ROWS, FEWEST_COLUMNS]);
        assert_eq!(reduced_block(1, [16, 4096], 512, 4), [16, 512]);
        assert_eq!(reduced_block(1, [0, 0], 0, 4), [0, thin_columns(0)]);
    }
}
