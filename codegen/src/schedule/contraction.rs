//! Sums of products over axes that two factors share, while each has axes of its own: matrix products, convolutions. And
//! whatever else is combined of an element of each: distances, shortest paths.

use super::depth::positions;
use super::exact::is_exact;
use super::lift::{Lift, lifted};
use super::share::{
    BLOCK_MULTIPLICATIONS, COLUMNS, FEWEST_ROWS, MOST_IN_THREAD, MOST_ROWS, PACKED_TERMS, PANEL, ROWS,
    SOME_PRODUCTS, TILE_ROWS, is_packed, is_packed_batch, is_packed_image, is_packed_long, is_streamed,
    is_tiled,
};
use super::taps::is_in_lanes;
use super::windows::{MOST_IMAGES, Windows};
use crate::index::{AxisId, IndexExpr};
use crate::ir::{AxisKind, Kernel, ValueId, ValueOp};
use crate::{BinaryOp, DType, Language, ReduceOp};

/// Columns of a block whose rows are reduced before, at least: other blocks reduce the same.
pub(super) const FEWEST_COLUMNS: u64 = 128;

/// Columns that fill most of a tile.
const FEWEST_SUMMED: u64 = 3 * PANEL / 4;

/// So many integers of 16 bits have a sum of 32.
const SHORT_TERMS: u64 = 1 << 16;

/// So many times as many terms as a loop of the results has make sums that are worth packing beside it.
const FEWER_TERMS: u64 = 4;

/// Blocks that keep all cores busy.
pub(super) const BLOCKS: u64 = 32;

/// What an argument counts as that is a number of rows: one text is for all of them.
const SOME_ROWS: u64 = 2 * ROWS;

/// Terms of a part, at least, and multiplications in the time of which an element is packed.
const FEWEST_OF_PART: u64 = 1 << 10;
const PACKING: u64 = 16;

/// How a core computes a contraction: rows and columns in blocks, terms packed a part at a time.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ContractionSchedule {
    /// Rows of a block.
    pub rows: u32,
    /// Lines of columns of a block: positions of the outer ones of the column axes.
    pub lines: u32,
    /// Columns of a line of a block, along the innermost axis.
    pub columns: u32,
    /// Terms that are packed together.
    pub depth: u32,
    /// Terms of a block, if these are divided as well: it leaves partial sums, which are added up in order. 0 for all.
    pub part: u32,
}

/// One of the sums of a contraction, or what else its factors are combined to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Product {
    pub(crate) sum: ValueId,
    /// The factor that varies over the rows.
    pub(crate) left: ValueId,
    /// The factor that varies over the columns.
    pub(crate) right: ValueId,
    /// What is combined if not products that are added up.
    pub(crate) lift: Option<Lift>,
}

/// What the axes of a contraction are.
#[derive(Clone, Debug)]
pub(crate) struct Contraction {
    /// Of the factors: a float, or an integer of 32 or 64 bits.
    pub(crate) dtype: DType,
    /// Of what adds the products up. Integers that nobody wants in 64 bits are added up in 32.
    pub(crate) sum: DType,
    pub(crate) products: Vec<Product>,
    /// Axes of both factors.
    pub(crate) batch: Vec<AxisId>,
    pub(crate) rows: Vec<AxisId>,
    /// The axes of the columns but for the innermost.
    pub(crate) lines: Vec<AxisId>,
    /// The innermost axis.
    pub(crate) column: AxisId,
    /// The summed axes.
    pub(crate) depth: Vec<AxisId>,
    /// Reductions of the rows that left factors and results need, each after those that it depends on: of a normalisation
    /// before a layer (CPU). Those of few elements that results alone need are loops of theirs.
    pub(crate) statistics: Vec<ValueId>,
    /// How the columns are windows of an image, or of one place each (CPU).
    pub(crate) windows: Option<Windows>,
    /// Whether all factors are numbers of BF16, whose terms may be multiplied in pairs (CPU).
    pub(crate) is_paired: bool,
    /// Whether all rows go through the columns together, a few terms at a time or line by line (CPU).
    pub(crate) is_few: bool,
}

impl Contraction {
    /// The kernel as a contraction, if all of its reductions are sums of such products.
    pub(crate) fn of(kernel: &Kernel, language: Language) -> Option<Contraction> {
        let map = kernel.axes_of_kind(AxisKind::Map);
        let (&column, outer) = map.split_last()?;
        let mut found: Option<Contraction> = None;
        let mut statistics: Vec<ValueId> = Vec::new();
        let below = kernel.down_from(kernel.stores.iter().map(|store| store.value));
        // Beside longer ones, sums of few terms are loops of the results.
        let longest = below.iter().map(|&id| terms_of_column(kernel, id, column)).max()?;
        let is_short = |axes: &[AxisId]| {
            let is_shorter = || longest >= FEWER_TERMS * positions(kernel, axes);
            is_few(kernel, axes) && (longest > MOST_IN_THREAD || is_shorter())
        };
        let mut loops: Vec<ValueId> = Vec::new();
        for id in below {
            match &kernel.value(id).op {
                ValueOp::Scan { .. }
                | ValueOp::Carry { .. }
                | ValueOp::Last { .. }
                | ValueOp::Scatter { .. }
                | ValueOp::Sort { .. } => {
                    return None;
                }
                ValueOp::Reduce { .. } if !kernel.value(id).axes.contains(&column) => statistics.push(id),
                ValueOp::Reduce { axes, .. } if is_short(axes) => loops.push(id),
                ValueOp::Reduce { axes, position: None, .. } => {
                    let own = one(kernel, outer, column, id, axes)?;
                    match &mut found {
                        None => found = Some(own),
                        Some(found) if found.has_axes_of(&own) => found.products.extend(own.products),
                        Some(_) => return None,
                    }
                }
                ValueOp::Reduce { .. } => return None,
                _ => {}
            }
        }
        let mut found = found?;
        if !loops.iter().all(|&id| found.is_loop(kernel, id)) {
            return None;
        }
        found.statistics = match language {
            // Of few elements, a loop for each row of results.
            Language::C => statistics.into_iter().filter(|&id| !found.is_loop(kernel, id)).collect(),
            Language::Cuda => statistics,
        };
        let is_result = |axis: &AxisId| kernel.axis(*axis).kind != AxisKind::Reduce;
        let is_stored = kernel.stores.iter().all(|store| {
            kernel.value(store.value).axes.iter().all(is_result)
                && store.index.axes().iter().all(is_result)
                && map.iter().all(|&axis| store.index.uses(axis))
        });
        let is_known = found.statistics.is_empty() || language == Language::C && found.knows_rows(kernel);
        if !is_stored || !is_known || !found.pays(kernel, language) {
            return None;
        }
        match (language, found.is_thin(kernel)) {
            (Language::C, false) => {
                found.find_windows(kernel);
                found.is_paired = found.has_pairs(kernel);
            }
            (Language::C, true) => found.goes_with_few_rows(kernel),
            (Language::Cuda, _) => {}
        }
        Some(found)
    }

    /// The right factors.
    pub(crate) fn rights(&self) -> Vec<ValueId> {
        self.products.iter().map(|product| product.right).collect()
    }

    /// Whether anything but products is combined.
    pub(crate) fn has_lifts(&self) -> bool {
        self.products.iter().any(|product| product.lift.is_some())
    }

    /// Whether storing the factors in BF16 would round nothing.
    pub(super) fn has_pairs(&self, kernel: &Kernel) -> bool {
        let of = |value| is_exact(kernel, value, DType::BF16);
        let mut products = self.products.iter();
        self.sum == DType::F32
            && products.all(|product| product.lift.is_none() && of(product.left) && of(product.right))
    }

    /// Where columns are windows, a block's lines are of one image, or of several whole ones.
    fn find_windows(&mut self, kernel: &Kernel) {
        let (rights, columns) = (self.rights(), (self.lines.as_slice(), self.column));
        let found = Windows::of(kernel, &rights, &self.depth, columns)
            .or_else(|| Windows::of_lines(kernel, &rights, columns));
        let Some(mut windows) = found else { return };
        let line = windows.line.map(|line| line.windows);
        let of_image = line.map_or(1, |line| kernel.axis(line).extent);
        let block = self.of_windows(kernel, &windows);
        windows.of_image = (u64::from(block.lines) > of_image).then_some(of_image);
        if windows.of_image.is_none() {
            // Lines by themselves fill no vectors together.
            if windows.places() == 1 && line.is_none() {
                return;
            }
            self.batch.extend(self.lines.iter().filter(|&&axis| Some(axis) != line));
            self.batch.sort();
            self.lines.retain(|&axis| Some(axis) == line);
        }
        self.windows = Some(windows);
    }

    fn has_axes_of(&self, other: &Contraction) -> bool {
        let axes = |c: &Contraction| {
            (c.dtype, c.sum, c.batch.clone(), c.rows.clone(), c.lines.clone(), c.depth.clone())
        };
        axes(self) == axes(other)
    }

    /// Whether a reduction beside the sums is of few elements, and needed by the results alone.
    fn is_loop(&self, kernel: &Kernel, id: ValueId) -> bool {
        let ValueOp::Reduce { axes, .. } = &kernel.value(id).op else { return false };
        let factors = self.products.iter().flat_map(|product| [product.left, product.right]);
        is_few(kernel, axes) && !kernel.down_from(factors).contains(&id)
    }

    /// Whether the statistics are of rows of the left factors, and nothing else follows from reductions.
    fn knows_rows(&self, kernel: &Kernel) -> bool {
        let is_of_rows = |&id: &ValueId| {
            let is_along = matches!(&kernel.value(id).op, ValueOp::Reduce { axes, .. } if *axes.as_slice() == *self.depth);
            let of_rows = |axis: &AxisId| self.rows.contains(axis) || self.batch.contains(axis);
            is_along && kernel.value(id).axes.iter().all(of_rows)
        };
        self.statistics.iter().all(is_of_rows)
            && self.depth.iter().all(|&axis| !kernel.axis(axis).is_argument)
            && self.dtype.is_float()
    }

    /// How many products there are, of a number that is an argument at least some.
    pub(super) fn batches(&self, kernel: &Kernel) -> u64 {
        let is_growing = self.batch.iter().any(|&axis| kernel.axis(axis).is_argument);
        positions(kernel, &self.batch).max(if is_growing { SOME_PRODUCTS } else { 1 })
    }

    fn pays(&self, kernel: &Kernel, language: Language) -> bool {
        let extent = |axes: &[AxisId]| positions(kernel, axes);
        let (rows, terms) = (extent(&self.rows), extent(&self.depth));
        let columns = extent(&self.lines).saturating_mul(kernel.axis(self.column).extent);
        match language {
            Language::C => {
                let is_thin =
                    || self.pays_thin(kernel, rows, columns) && is_packed(FEWEST_ROWS, columns, terms);
                let are_in_lanes =
                    || self.products.iter().all(|product| is_in_lanes(kernel, self.column, product.sum));
                let has_few_channels = || {
                    is_packed_image(rows, columns, terms)
                        && !are_in_lanes()
                        && Windows::of(kernel, &self.rights(), &self.depth, (&self.lines, self.column))
                            .is_some()
                };
                let is_in_lanes =
                    self.sum == self.dtype || self.products.iter().all(|product| product.lift.is_some());
                let is_long = || !self.has_lifts() && is_packed_long(rows, columns, terms);
                is_in_lanes
                    && (is_packed_batch(self.batches(kernel), rows, columns, terms)
                        || is_long()
                        || is_thin()
                        || has_few_channels())
            }
            Language::Cuda => {
                let is_large = self.depth.len() == 1 && !self.has_lifts();
                is_tiled(rows, columns, terms) || is_large && is_streamed(rows, columns, terms)
            }
        }
    }

    /// The schedule of columns that are windows of an image.
    fn of_windows(&self, kernel: &Kernel, windows: &Windows) -> ContractionSchedule {
        // Channels are seldom others, and of images it matters only whether they are few.
        let class = |axes: &[AxisId]| positions(kernel, axes).next_power_of_two();
        let is_argument = |axes: &[AxisId]| axes.first().is_some_and(|&axis| kernel.axis(axis).is_argument);
        let rows = if is_argument(&self.rows) { class(&self.rows) } else { known(kernel, &self.rows, ROWS) };
        let of = |axes: &[AxisId]| match is_argument(axes) {
            true => class(axes).min(MOST_IMAGES),
            false => known(kernel, axes, 1),
        };
        // Before a block's lines are known to be of one image, and where they are of several, those of the images are among them.
        let line = windows.line.map(|line| line.windows);
        let of_images: Vec<AxisId> = self.lines.iter().copied().filter(|&axis| Some(axis) != line).collect();
        let joins = !of_images.is_empty();
        let images = of(&self.batch) * of(&of_images);
        let is_computed =
            |product: &Product| !matches!(kernel.value(product.left).op, ValueOp::Load { guard: None, .. });
        let filters = (rows, known(kernel, &self.depth, PACKED_TERMS), self.products.iter().any(is_computed));
        let [rows, lines, columns, depth] = windows.block(kernel, filters, (images, joins), self.arrays());
        ContractionSchedule { rows, lines, columns, depth, part: 0 }
    }

    /// Arrays of sums of 32 bits that a block has.
    fn arrays(&self) -> u64 {
        self.products.len() as u64 * (self.dtype.size().max(self.sum.size()) as u64 / 4)
    }

    /// Whether how many rows there are is an argument.
    fn is_growing(&self, kernel: &Kernel) -> bool {
        self.rows.first().is_some_and(|&axis| kernel.axis(axis).is_argument)
    }

    /// How a core computes it.
    pub(crate) fn schedule(&self, kernel: &Kernel) -> ContractionSchedule {
        if self.is_thin(kernel) {
            let schedule = self.thin(kernel);
            return ContractionSchedule { part: self.part(kernel, &schedule), ..schedule };
        }
        if let Some(windows) = &self.windows {
            return self.of_windows(kernel, windows);
        }
        let sums = self.arrays();
        let known = |axes: &[AxisId], otherwise: u64| known(kernel, axes, otherwise);
        let (rows, lines) = (known(&self.rows, SOME_ROWS), known(&self.lines, 1));
        let (column, terms) = (kernel.axis(self.column).extent, known(&self.depth, PACKED_TERMS));
        let batch = known(&self.batch, 1);
        // What is packed of columns and the sums of a block stay in a core's own cache, and little beside a stack. Blocks of
        // many rows are taller and narrower: packing a column takes longer than reading a row again.
        let is_tall = rows >= 2 * MOST_ROWS && self.statistics.is_empty();
        let (rows_each, most) = if is_tall { (MOST_ROWS, COLUMNS / 2) } else { (ROWS, COLUMNS) };
        let most = (most / sums.next_power_of_two()).max(PANEL);
        let columns = column.next_multiple_of(PANEL).min(most);
        let mut schedule = ContractionSchedule {
            rows: rows.div_ceil(rows.div_ceil(rows_each).max(1)).next_multiple_of(TILE_ROWS) as u32,
            lines: if column <= columns { (most / columns).min(lines).max(1) as u32 } else { 1 },
            columns: columns as u32,
            depth: terms.min(PACKED_TERMS) as u32,
            part: 0,
        };
        schedule.part = self.part(kernel, &schedule);
        let parts =
            if schedule.part > 0 { positions(kernel, &self.depth).div_ceil(schedule.part.into()) } else { 1 };
        let fewest = if self.statistics.is_empty() { PANEL } else { FEWEST_COLUMNS } as u32;
        let count = |s: &ContractionSchedule| {
            batch
                * parts
                * rows.div_ceil(u64::from(s.rows))
                * lines.div_ceil(u64::from(s.lines))
                * column.div_ceil(u64::from(s.columns))
        };
        let is_growing = self.is_growing(kernel);
        // Few blocks become more, as long as they are worth a thread.
        for _ in 0..6 {
            let s = &schedule;
            let work = u64::from(s.rows) * u64::from(s.lines) * u64::from(s.columns) * (terms / parts);
            if count(s) >= BLOCKS || work < 2 * BLOCK_MULTIPLICATIONS {
                break;
            }
            // Columns first: they are packed for all rows of a block, which costs more than packing rows. But a tile of few
            // columns has too few sums for a core.
            let fills = |lines: u32| u64::from(lines) * u64::from(s.columns) >= FEWEST_SUMMED;
            match (s.lines, s.columns) {
                (lines @ 2.., _) if fills(lines.div_ceil(2)) => schedule.lines = lines.div_ceil(2),
                (_, columns) if columns > fewest => {
                    schedule.columns = (columns / 2).next_multiple_of(PANEL as u32);
                }
                // Packed columns are used for all rows, of which the block that is counted may be one of many.
                _ if count(s) >= BLOCKS / 2 || is_growing && s.rows <= ROWS as u32 / 2 => break,
                _ => schedule.rows = (s.rows / 2).next_multiple_of(TILE_ROWS as u32),
            }
        }
        // Columns of one panel leave room for the sums of more rows, and are packed less often.
        let of_all = rows.max(if is_growing { MOST_ROWS } else { 0 });
        let more = ContractionSchedule {
            rows: of_all.div_ceil(of_all.div_ceil(MOST_ROWS).max(1)).next_multiple_of(TILE_ROWS) as u32,
            ..schedule
        };
        let is_narrow = sums * u64::from(schedule.lines) * u64::from(schedule.columns) <= PANEL;
        let fewest = if is_growing { BLOCKS / 2 } else { BLOCKS };
        if is_narrow && self.statistics.is_empty() && more.rows > schedule.rows && count(&more) >= fewest {
            return more;
        }
        schedule
    }
}

impl Contraction {
    /// Terms of a block, where so few blocks would have all of them that cores are idle; else 0. Follows from the extents of a
    /// launch alone, so that results are the same on any number of threads.
    fn part(&self, kernel: &Kernel, s: &ContractionSchedule) -> u32 {
        let of = |axes: &[AxisId], each: u32| positions(kernel, axes).div_ceil(each.into());
        let blocks = positions(kernel, &self.batch)
            .saturating_mul(of(&self.rows, s.rows))
            .saturating_mul(of(&self.lines, s.lines))
            .saturating_mul(of(&[self.column], s.columns));
        let terms = positions(kernel, &self.depth);
        if blocks >= BLOCKS || !self.statistics.is_empty() || self.windows.is_some() {
            return 0;
        }
        // Elements of both factors are brought in for each term, and what a part leaves is written and read once more.
        let rows = positions(kernel, &self.rows).min(s.rows.into());
        let columns = kernel.axis(self.column).extent.min(s.columns.into()) * u64::from(s.lines);
        let each = rows * columns + PACKING * (rows + columns);
        let fewest = (2 * BLOCK_MULTIPLICATIONS / each).max(FEWEST_OF_PART);
        let part = (terms.saturating_mul(blocks) / BLOCKS).max(fewest).next_power_of_two();
        if terms >= 2 * part { u32::try_from(part).unwrap_or(0) } else { 0 }
    }
}

/// Positions of some axes, where an outermost one that is an argument counts as `otherwise`, one block's: the text is for every
/// extent.
fn known(kernel: &Kernel, axes: &[AxisId], otherwise: u64) -> u64 {
    match axes.split_first() {
        Some((&first, rest)) if kernel.axis(first).is_argument => positions(kernel, rest) * otherwise,
        _ => positions(kernel, axes),
    }
}

/// How many positions a reduction has whose results are columns; 0 for what is none.
fn terms_of_column(kernel: &Kernel, id: ValueId, column: AxisId) -> u64 {
    let value = kernel.value(id);
    match &value.op {
        ValueOp::Reduce { axes, .. } if value.axes.contains(&column) => {
            let is_known = axes.iter().all(|&axis| !kernel.axis(axis).is_argument);
            if is_known { positions(kernel, axes) } else { u64::MAX }
        }
        _ => 0,
    }
}

/// Whether a thread by itself combines so many positions.
fn is_few(kernel: &Kernel, axes: &[AxisId]) -> bool {
    axes.iter().all(|&axis| !kernel.axis(axis).is_argument) && positions(kernel, axes) <= MOST_IN_THREAD
}

/// One reduction as a contraction.
fn one(
    kernel: &Kernel,
    outer: &[AxisId],
    column: AxisId,
    sum: ValueId,
    axes: &[AxisId],
) -> Option<Contraction> {
    let is_fixed = axes.iter().skip(1).all(|&axis| !kernel.axis(axis).is_argument);
    if !is_fixed {
        return None;
    }
    let product = of_product(kernel, column, sum, axes);
    let product = product.and_then(|of| Contraction::with(kernel, outer, column, axes, of));
    // A factor that varies over rows and columns is itself made of two.
    match product {
        Some(product) if !product.rows.is_empty() => Some(product),
        product => {
            let lifted = of_lift(kernel, column, sum, axes);
            lifted.and_then(|of| Contraction::with(kernel, outer, column, axes, of)).or(product)
        }
    }
}

/// What is summed as a product, and in which dtypes.
fn of_product(
    kernel: &Kernel,
    column: AxisId,
    sum: ValueId,
    axes: &[AxisId],
) -> Option<(Product, [DType; 2])> {
    let ValueOp::Reduce { op: ReduceOp::Sum, operand, .. } = kernel.value(sum).op else { return None };
    let product = match kernel.value(operand).op {
        ValueOp::Cast(_, product) if kernel.value(product).dtype.is_int() => product,
        _ => operand,
    };
    let ValueOp::Binary(BinaryOp::Mul, a, b) = kernel.value(product).op else { return None };
    let has = |id: ValueId, axis: AxisId| kernel.value(id).axes.contains(&axis);
    let (left, right) = if has(b, column) { (a, b) } else { (b, a) };
    let shares = |axis: &AxisId| has(left, *axis) && has(right, *axis);
    if has(left, column) || !has(right, column) || !axes.iter().any(shares) {
        return None;
    }
    Some((Product { sum, left, right, lift: None }, dtypes(kernel, product, sum)?))
}

/// The same of what is not the sum of a product.
fn of_lift(kernel: &Kernel, column: AxisId, sum: ValueId, axes: &[AxisId]) -> Option<(Product, [DType; 2])> {
    let ValueOp::Reduce { op, operand, .. } = kernel.value(sum).op else { return None };
    let (wide, is_lower) = (kernel.value(sum).dtype, has_lower_bits_alone(kernel, sum));
    let own = |id: ValueId| kernel.value(id).dtype;
    // Integers are added up in 64 bits, but for short ones in turn, and what nobody wants more than 32 of.
    let (value, dtype, wide) = match kernel.value(operand).op {
        ValueOp::Cast(DType::I64, short) if op == ReduceOp::Sum && own(short).size() <= 2 => {
            let is_known = axes.iter().all(|&axis| !kernel.axis(axis).is_argument);
            let is_few = is_known && positions(kernel, axes) <= SHORT_TERMS;
            (short, DType::I32, if is_few || is_lower { DType::I32 } else { wide })
        }
        ValueOp::Cast(DType::I64, int) if op == ReduceOp::Sum && own(int).is_int() && is_lower => {
            (int, DType::I32, DType::I32)
        }
        _ => (operand, wide, wide),
    };
    let factors = lifted(kernel, value, axes, column)?;
    // Narrow integers are packed in 32 bits, truths as what they go with.
    let packed = |id: ValueId| match own(id) {
        DType::Bool | DType::U8 | DType::I8 | DType::I16 => DType::I32,
        dtype => dtype,
    };
    let [left, right] = [factors.left, factors.right];
    let packed = match (own(left), own(right)) {
        (DType::Bool, _) => packed(right),
        (_, DType::Bool) => packed(left),
        _ if packed(left) != packed(right) => return None,
        _ => packed(left),
    };
    // Of narrow results a vector of bytes has several times as many as one of numbers.
    let fits = op.is_plain() && wide.size() >= 4;
    let lift = Lift { op, value, dtype, has_others: factors.has_others };
    fits.then_some((Product { sum, left, right, lift: Some(lift) }, [packed, wide]))
}

impl Contraction {
    /// The contraction of two factors over some axes.
    fn with(
        kernel: &Kernel,
        outer: &[AxisId],
        column: AxisId,
        axes: &[AxisId],
        (product, [dtype, sum]): (Product, [DType; 2]),
    ) -> Option<Contraction> {
        let is_reduced = |id: &ValueId| matches!(kernel.value(*id).op, ValueOp::Reduce { .. });
        if kernel.down_from([product.right]).iter().any(is_reduced) {
            return None;
        }
        let mut contraction = Contraction {
            dtype,
            sum,
            products: vec![product],
            batch: Vec::new(),
            rows: Vec::new(),
            lines: Vec::new(),
            column,
            depth: axes.to_vec(),
            statistics: Vec::new(),
            windows: None,
            is_paired: false,
            is_few: false,
        };
        let has = |id: ValueId, axis: AxisId| kernel.value(id).axes.contains(&axis);
        for &axis in outer {
            match (has(product.left, axis), has(product.right, axis)) {
                (true, true) => contraction.batch.push(axis),
                (true, false) => contraction.rows.push(axis),
                (false, true) => contraction.lines.push(axis),
                (false, false) => return None,
            }
        }
        // Only the outermost extent may be an argument, and every list of axes begins with the outermost of them.
        Some(contraction)
    }
}

/// Whether nobody wants more of a sum of integers than fits the narrower ones that it is cast to: the lower bits of a sum
/// follow from those of what is summed.
fn has_lower_bits_alone(kernel: &Kernel, sum: ValueId) -> bool {
    let keeps_lower = |id: usize| match kernel.values[id].op {
        ValueOp::Cast(to, operand) if operand == sum => to.is_int() && to != DType::Bool && to.size() <= 4,
        _ => !kernel.operands(&kernel.values[id].op).contains(&sum),
    };
    (0..kernel.values.len()).all(keeps_lower) && kernel.stores.iter().all(|store| store.value != sum)
}

/// In which the factors are multiplied, and their products added up.
fn dtypes(kernel: &Kernel, product: ValueId, sum: ValueId) -> Option<[DType; 2]> {
    let (product, wide) = (kernel.value(product).dtype, kernel.value(sum).dtype);
    // The lower bits of a sum follow from those of the products, and these from those of the factors.
    let keeps_lower = |id: usize| match kernel.values[id].op {
        ValueOp::Cast(to, operand) if operand == sum => to.is_int() && to.size() <= product.size(),
        _ => !kernel.operands(&kernel.values[id].op).contains(&sum),
    };
    let is_lower =
        (0..kernel.values.len()).all(keeps_lower) && kernel.stores.iter().all(|store| store.value != sum);
    match product {
        DType::F32 | DType::F64 | DType::I64 => (product == wide).then_some([product, wide]),
        DType::I32 | DType::U32 => Some([product, if is_lower { product } else { wide }]),
        DType::I8 | DType::U8 | DType::I16 => is_lower.then_some([DType::I32, DType::I32]),
        DType::Bool | DType::F16 | DType::BF16 => None,
    }
}

/// Whether most of what the value loads is consecutive along one axis, and not along the other.
pub(crate) fn consecutive_along(kernel: &Kernel, value: ValueId, axis: AxisId, other: AxisId) -> bool {
    let below = kernel.down_from([value]);
    // A computed position is anywhere if it follows from another number for each neighbour. A guard that varies tells only whether
    // it is needed.
    let varies = |position: ValueId, axis: AxisId| {
        kernel.down_from([position]).iter().any(|&id| match &kernel.value(id).op {
            ValueOp::Load { index, .. } | ValueOp::Position(index) => index.uses(axis),
            _ => false,
        })
    };
    let step = |index: &IndexExpr, axis: AxisId| {
        let is_anywhere = kernel.computed_axes(index).iter().any(|&(_, position)| varies(position, axis));
        if is_anywhere { u64::MAX } else { index.least_step(axis) }
    };
    let strides = below.iter().filter_map(|&id| match &kernel.value(id).op {
        ValueOp::Load { index, .. } => Some((step(index, axis), step(index, other))),
        _ => None,
    });
    // What does not vary along one of them is near either way.
    let (along, others): (Vec<_>, Vec<_>) = strides
        .filter(|&(own, other)| own != 0 && other != 0)
        .partition(|&(own, other)| own == 1 && other != 1);
    along.len() > others.len()
}
