//! Contractions whose columns are windows of an image, as a convolution's are: neighbouring columns share most of their
//! terms. Short lines of columns are windows of one place each, so that they fill vectors together.

use super::depth::with_one_depth;
use super::share::{BLOCK_MULTIPLICATIONS, COLUMNS, NEAR, PACKED_TERMS, PANEL, ROWS, TILE_ROWS, VECTOR};
use crate::index::{Atom, AxisId, AxisRanges, IndexExpr, gcd};
use crate::ir::{Axis, AxisKind, Kernel, ValueId};

/// Images, at most, that a text is chosen for.
pub(super) const MOST_IMAGES: u64 = 8;

/// Columns of a block at most, and terms that are packed together.
const MOST_COLUMNS: u64 = 512;
const DEPTH: u64 = 144;

/// Blocks that keep some cores busy: they compute what their neighbours do of the image's lines, and images are mostly several.
const BLOCKS: u64 = 7;

/// Multiplications of vectors that take as long as laying one out.
const PACKED: u64 = 3;

/// As [`PACKED`] where images are side by side: most lines are shorter than a vector, and stored under masks.
const PACKED_SHORT: u64 = 5;

/// As [`PACKED`], of one of a filter's terms that are computed: each block of columns computes and packs those of all rows anew.
const COMPUTED: u64 = 3;

/// Terms of filters that stay in a core's own cache from one image to the next. Where there are more, reading one again takes as long as this
/// many multiplications of vectors.
const NEAR_FILTERS: u64 = 1 << 17;
const READ: (u64, u64) = (2, 3);

/// Elements of an image that a block packs at most.
const MOST_ELEMENTS: u64 = 1 << 16;

/// Along one axis an element of a window is at `step` × the window's position + `spread` × the place in the window.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Sliding {
    /// The windows' axis.
    pub(crate) windows: AxisId,
    /// The axis of the places in a window, and how many there are; none if each window has one.
    pub(crate) places: Option<(AxisId, u64)>,
    pub(crate) step: u64,
    pub(crate) spread: u64,
}

impl Sliding {
    /// Elements that so many neighbouring windows have.
    pub(crate) fn reach(&self, windows: u64) -> u64 {
        (windows.saturating_sub(1).saturating_mul(self.step)).saturating_add(self.between()).saturating_add(1)
    }

    /// From the first element of a window to its last.
    pub(crate) fn between(&self) -> u64 {
        self.places.map_or(0, |(_, places)| places.saturating_sub(1).saturating_mul(self.spread))
    }

    /// Places in a window along the axis.
    pub(crate) fn extent(&self) -> u64 {
        self.places.map_or(1, |(_, places)| places)
    }

    /// How an axis of windows and one of places go over the same elements, if all indices know them by these elements alone.
    fn of(kernel: &Kernel, indices: &[&IndexExpr], windows: AxisId, places: AxisId) -> Option<Sliding> {
        let (step, spread) = indices.iter().find_map(|index| together(index, windows, places))?;
        let found = Sliding { windows, places: Some((places, kernel.axis(places).extent)), step, spread };
        // Neighbours have elements in common: those of a matrix do not.
        let count = kernel.axis(windows).extent;
        if found.reach(count).saturating_mul(4) > count.saturating_mul(found.extent()).saturating_mul(3) {
            return None;
        }
        let (ranges, at) = (kernel.ranges(), AxisId(kernel.axes.len() as u32));
        let fits = |index: &&IndexExpr| {
            let index = found.over_image(index, at, &ranges);
            !index.uses(windows) && !index.uses(places)
        };
        ((step == 1 || spread == 1) && indices.iter().all(fits)).then_some(found)
    }

    /// An index of windows and places as one of an axis of the image's elements.
    fn over_image(&self, index: &IndexExpr, at: AxisId, ranges: &AxisRanges) -> IndexExpr {
        let (windows, element) = (IndexExpr::axis(self.windows), IndexExpr::axis(at));
        match self.places {
            Some((places, _)) if self.step == 1 => {
                let at_window = element.sub(&IndexExpr::axis(places).scale(self.spread as i64));
                index.substitute(self.windows, &at_window, ranges)
            }
            Some((places, _)) => {
                index.substitute(places, &element.sub(&windows.scale(self.step as i64)), ranges)
            }
            None => index.substitute(self.windows, &element, ranges),
        }
    }
}

/// By how many elements a sum in the index goes on along either axis.
fn together(index: &IndexExpr, windows: AxisId, places: AxisId) -> Option<(u64, u64)> {
    let of = |axis| {
        let mut terms = index.terms().iter();
        terms.find_map(|(atom, k)| (*atom == Atom::Axis(axis)).then_some(*k)).filter(|&k| k > 0)
    };
    if let (Some(a), Some(b)) = (of(windows), of(places)) {
        let divisor = gcd(a, b);
        return Some(((a / divisor) as u64, (b / divisor) as u64));
    }
    index.terms().iter().find_map(|(atom, _)| match atom {
        Atom::Axis(_) => None,
        Atom::Div(inner, _) | Atom::Mod(inner, _) => together(inner, windows, places),
    })
}

/// How the windows lie in the image.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Windows {
    /// Along the innermost of the lines' axes, if windows have elements of several lines.
    pub(crate) line: Option<Sliding>,
    /// Along the columns.
    pub(crate) column: Sliding,
    /// Lines of an image, if blocks have whole images, of which there are several: then the lines' axes are those of the images too.
    pub(crate) of_image: Option<u64>,
}

/// The right factors of a contraction as an image.
pub(crate) struct Image {
    /// The contraction's kernel with axes for the image's lines and columns, which it does not use.
    pub(crate) flat: Kernel,
    /// The summed axis.
    pub(crate) depth: AxisId,
    /// The same kernel, where the right factors vary over the image's lines and columns, and no longer over windows and
    /// places in them.
    pub(crate) kernel: Kernel,
    pub(crate) line: AxisId,
    pub(crate) column: AxisId,
}

impl Windows {
    /// How the right factors are windows, if neighbours of them overlap.
    pub(crate) fn of(
        kernel: &Kernel,
        rights: &[ValueId],
        mut depth: &[AxisId],
        (lines, column): (&[AxisId], AxisId),
    ) -> Option<Windows> {
        let below = kernel.down_from(rights.iter().copied());
        let indices: Vec<&IndexExpr> = below.iter().flat_map(|&id| kernel.value(id).op.indices()).collect();
        let is_known = |axis: AxisId| !kernel.axis(axis).is_argument && kernel.axis(axis).extent > 0;
        if !is_known(column) || indices.iter().any(|index| !kernel.computed_axes(index).is_empty()) {
            return None;
        }
        let mut along = |axis: AxisId| {
            if let Some((&last, rest)) = depth.split_last().filter(|(last, _)| is_known(**last))
                && let Some(found) = Sliding::of(kernel, &indices, axis, last)
            {
                depth = rest;
                return found;
            }
            Sliding { windows: axis, places: None, step: 1, spread: 0 }
        };
        let columns = kernel.axis(column).extent.min(PANEL);
        let column = along(column);
        let line = lines.last().copied().filter(|&axis| is_known(axis)).map(along);
        let windows = Windows { line, column, of_image: None };
        let overlaps = windows.places() > 1;
        let elements = windows.elements(1, 1, columns);
        (overlaps && windows.places() <= DEPTH && elements <= MOST_ELEMENTS).then_some(windows)
    }

    /// Lines of columns as windows of one place, if several of them together fill vectors that each by itself does not: what
    /// is read at a distance from line to line, as with a stride of 2.
    pub(crate) fn of_lines(
        kernel: &Kernel,
        rights: &[ValueId],
        (lines, column): (&[AxisId], AxisId),
    ) -> Option<Windows> {
        let &line = lines.last()?;
        let one = |axis: AxisId| {
            let Axis { extent, is_argument, .. } = *kernel.axis(axis);
            let sliding = Sliding { windows: axis, places: None, step: 1, spread: 0 };
            (!is_argument && (2..=PANEL).contains(&extent)).then_some((sliding, extent))
        };
        let (column, of_column) = one(column)?;
        // Where the lines are images, as many as a text is chosen for.
        let (line, of_line) = one(line).map_or((None, MOST_IMAGES), |(line, of_line)| (Some(line), of_line));
        let vectors = |elements: u64| elements.div_ceil(VECTOR);
        let below = kernel.down_from(rights.iter().copied());
        let mut indices = below.iter().flat_map(|&id| kernel.value(id).op.indices());
        let is_near = |index: &IndexExpr| {
            let step = index.coefficient(column.windows);
            kernel.computed_axes(index).is_empty() && step.is_some_and(|step| step.unsigned_abs() <= NEAR)
        };
        let pays = 8 * vectors(of_line * of_column) <= 7 * of_line * vectors(of_column);
        (pays && indices.all(is_near)).then_some(Windows { line, column, of_image: None })
    }

    /// Places in a window.
    pub(crate) fn places(&self) -> u64 {
        self.column.extent() * self.line.map_or(1, |line| line.extent())
    }

    /// Elements of the image that windows of so many lines and columns have, of so many channels.
    fn elements(&self, channels: u64, lines: u64, columns: u64) -> u64 {
        let of_line = self.line.map_or(1, |line| line.reach(lines));
        channels.saturating_mul(of_line).saturating_mul(self.column.reach(columns))
    }

    /// Rows, lines, columns and terms of a block, of so many images, of which a block may have several where `joins` says so, and so many
    /// rows and terms of filters, which are read or computed: as much as stays in a core's own cache, in so many blocks that there are
    /// some for each core.
    pub(crate) fn block(
        &self,
        kernel: &Kernel,
        (rows, terms, are_computed): (u64, u64, bool),
        (images, joins): (u64, bool),
        sums: u64,
    ) -> [u32; 4] {
        let all = kernel.axis(self.column.windows).extent.max(1);
        let all_lines = self.line.map_or(1, |line| kernel.axis(line.windows).extent).max(1);
        let work = [rows, all_lines, all, terms].into_iter().fold(images, u64::saturating_mul);
        let wanted = (work / BLOCK_MULTIPLICATIONS).clamp(1, BLOCKS);
        let fewest = rows.div_ceil(ROWS).max(1);
        let divisions = (fewest..fewest + BLOCKS).flat_map(|split| {
            let rows_each = rows.div_ceil(split).next_multiple_of(TILE_ROWS).max(TILE_ROWS);
            let most = (ROWS * COLUMNS / rows_each).min(MOST_COLUMNS) / sums.next_power_of_two();
            let most = most.max(PANEL) / PANEL * PANEL;
            let columns = all.min(most);
            let most_lines = if columns < all { 1 } else { (most / columns).clamp(1, all_lines) };
            let fewest = all_lines.div_ceil(most_lines);
            let lines = (fewest..fewest + BLOCKS).map(move |parts| all_lines.div_ceil(parts).max(1));
            let of_elements = MOST_ELEMENTS / self.elements(1, all_lines, all);
            let together = if joins { images.min(most / (all_lines * all)).min(of_elements) } else { 1 };
            // Evenly.
            let joined = (2..=together).map(move |most| images.div_ceil(images.div_ceil(most)) * all_lines);
            lines.chain(joined).map(move |lines| [rows_each, lines, columns])
        });
        let best = divisions.min_by_key(|&[rows_each, lines, columns]| {
            let (splits, together) = (rows.div_ceil(rows_each), (lines / all_lines).max(1));
            let of_image = splits * all_lines.div_ceil(lines) * all.div_ceil(columns);
            let missing = wanted.saturating_sub(images.div_ceil(together).saturating_mul(of_image));
            // Neighbouring blocks of one image have the same filters.
            let is_far = rows.saturating_mul(terms) > NEAR_FILTERS;
            let read = if is_far { rows * READ.0 / READ.1 } else { 0 };
            let computed =
                if are_computed { COMPUTED * of_image / splits * rows.div_ceil(VECTOR) } else { 0 };
            let cost = |lines: u64| {
                self.cost((rows, rows_each), (all_lines, lines), (all, columns)) + read + computed
            };
            let rest = images % together;
            let of_rest = if rest > 0 { cost(rest * all_lines) } else { 0 };
            (missing, (images / together).saturating_mul(cost(lines)).saturating_add(of_rest))
        });
        let [rows, mut lines, columns] = best.unwrap_or([TILE_ROWS, 1, all.min(PANEL)]);
        let deep =
            (COLUMNS * COLUMNS / sums.next_power_of_two() / (lines * columns).max(PANEL)).min(PACKED_TERMS);
        let mut channels = (deep / self.places()).clamp(1, (terms / self.places()).max(1));
        if lines <= all_lines {
            while channels > 1 && self.elements(channels, lines, columns) > MOST_ELEMENTS {
                channels /= 2;
            }
            while lines > 1 && self.elements(channels, lines, columns) > MOST_ELEMENTS {
                lines = lines.div_ceil(2);
            }
        }
        [rows, lines, columns, channels * self.places()].map(|extent| extent as u32)
    }

    /// What an image takes for each of its terms, or so many of them whose lines are in one block, in multiplications of vectors: those of
    /// whole tiles, and what each block of rows packs anew.
    fn cost(
        &self,
        (rows, rows_each): (u64, u64),
        (all_lines, lines): (u64, u64),
        (all, columns): (u64, u64),
    ) -> u64 {
        // In parts of so many, and the rest.
        let parts =
            |all: u64, each: u64| [(all / each, each), (u64::from(!all.is_multiple_of(each)), all % each)];
        let vectors = |elements: u64| elements.div_ceil(VECTOR);
        let tiles: u64 =
            parts(rows, rows_each).map(|(n, rows)| n * rows.next_multiple_of(TILE_ROWS)).iter().sum();
        let image = |lines: u64, columns: u64| {
            self.line.map_or(1, |line| line.reach(lines)) * vectors(self.column.reach(columns))
        };
        if lines > all_lines {
            let image = lines / all_lines * image(all_lines, all);
            let packed = lines * vectors(all) + image / self.places();
            return tiles * vectors(lines * all) + PACKED_SHORT * rows.div_ceil(rows_each) * packed;
        }
        let (mut multiplied, mut packed) = (0, 0);
        for (of_lines, lines) in parts(all_lines, lines) {
            for (of_columns, columns) in parts(all, columns) {
                multiplied += of_lines * of_columns * vectors(lines * columns);
                let laid_out = lines * vectors(columns) + image(lines, columns) / self.places();
                packed += of_lines * of_columns * laid_out;
            }
        }
        tiles * multiplied + PACKED * rows.div_ceil(rows_each) * packed
    }

    /// The right factors over the image.
    pub(crate) fn image(&self, kernel: &Kernel, rights: &[ValueId], depth: &[AxisId]) -> Image {
        let mut base = kernel.clone();
        let extent = |sliding: &Sliding| sliding.reach(kernel.axis(sliding.windows).extent);
        let line = base.add_axis(AxisKind::Reduce, self.line.as_ref().map_or(1, extent), false);
        let column = base.add_axis(AxisKind::Reduce, extent(&self.column), false);
        let (flat, one) = with_one_depth(&base, depth);
        let below = base.down_from(rights.iter().copied());
        let ranges = base.ranges();
        let mut over = base.clone();
        over.map_indices_if(
            |id| below.contains(&id),
            |index| {
                let index = self.column.over_image(index, column, &ranges);
                self.line.iter().fold(index, |index, sliding| sliding.over_image(&index, line, &ranges))
            },
        );
        let (mut kernel, _) = with_one_depth(&over, depth);
        for axis in [line, column] {
            kernel.axes[axis.0 as usize].kind = AxisKind::Map;
        }
        Image { flat, depth: one, kernel, line, column }
    }
}
