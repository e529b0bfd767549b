//! Contractions on the CPU: what both factors are is packed, some terms at a time, and tiles of sums stay in registers.
//!
//! A block has some rows and columns of the results. It packs the columns of its terms into panels of neighbouring columns,
//! then tile by tile some rows, and adds the products of the tile and each panel to the sums. Whatever the factors are
//! computed from is computed while they are packed; whatever follows from the sums is computed at the end, from the sums in
//! the block's own array.
//!
//! After K. Goto and R. van de Geijn, "Anatomy of high-performance matrix multiplication", 2008. Each sum has its terms in
//! order, so that it is the same in whatever block it is.

mod blocks;
mod few_rows;
mod image;
mod in_memory;
mod lift;
mod packing;
mod parts;
mod windows;

use super::accumulate::set;
use super::emitter::Emitter;
use super::fission::{Divided, Fission};
use super::loops::{counting, stepping};
use super::passes::{launch_items, launch_of_parts};
use super::row_statistics::{Extent, Row};
use super::split::{merging, of_parts};
use super::stmt::Arithmetic::{Add, Div, Less, Min, Mul, Sub};
use super::stmt::{Builtin, Expr, LoopHint, Stmt, TileProduct, Type};
use super::variable::Var;
use super::{Function, INDEX, Nest, Workspace};
use crate::index::{AxisId, IndexExpr};
use crate::ir::{AxisKind, Kernel, ValueId};
use crate::schedule::{
    Contraction, ContractionSchedule, PAIRED_ROWS, PANEL, Product, TILE_ROWS, consecutive_along,
    with_one_depth,
};
use crate::{DType, Language, Refusal, Scalar};

/// Columns that are computed together: of the widest vector.
const LANES: u64 = 16;

pub(super) fn build(
    kernel: &Kernel,
    contraction: &Contraction,
    schedule: &ContractionSchedule,
) -> Result<Nest, Refusal> {
    let mut schedule = *schedule;
    let image = contraction.windows.as_ref().map(|windows| {
        // Whole channels.
        let places = windows.places() as u32;
        schedule.depth = (schedule.depth / places).max(1) * places;
        (windows, windows.image(kernel, &contraction.rights(), &contraction.depth))
    });
    let part = image
        .as_ref()
        .map(|(windows, image)| image::Part::new(windows, image, &contraction.rights(), &schedule));
    let one = with_one_depth(kernel, &contraction.depth);
    let (flat, depth) = image.as_ref().map_or((&one.0, one.1), |(_, image)| (&image.flat, image.depth));
    let shares = [
        (&contraction.batch[..], 1),
        (&contraction.lines, u64::from(schedule.lines)),
        (&[contraction.column], u64::from(schedule.columns)),
        (&contraction.rows, u64::from(schedule.rows)),
    ];
    let launch = launch_of_parts(kernel, &shares);
    let mut emitter = Emitter::new(flat, Language::C);
    let mut writer = Writer::new(&mut emitter, flat, contraction, depth, schedule);
    if schedule.part == 0 {
        writer.begin(&mut emitter, Expr::Builtin(Builtin::BlockX));
        writer.known = writer.statistics(&mut emitter);
        let sums = writer.sums(&mut emitter, part.as_ref());
        writer.results(&mut emitter, &contraction.products, &sums, &writer.known);
        let functions = vec![Function::of(kernel, emitter.finish()?, launch)];
        return Ok(Nest::new(flat.clone(), functions, Vec::new()));
    }
    // Blocks leave the sums of parts of the terms, which a second function adds up.
    let splits = u32::try_from(flat.axis(depth).extent.div_ceil(schedule.part.into()).max(1));
    let splits = splits.map_err(|_| Refusal::Misfit("too many parts"))?;
    let elements = launch.items.count().saturating_mul(splits.into()).saturating_mul(writer.block_sums());
    writer.leave_part(&mut emitter);
    let first = Function::of(kernel, emitter.finish()?, of_parts(&launch, splits));
    let mut emitter = Emitter::new(flat, Language::C);
    Writer::new(&mut emitter, flat, contraction, depth, schedule).add_parts(&mut emitter);
    let functions = vec![first, merging(kernel, emitter.finish()?, launch)];
    let partial = |number| {
        let name = format!("partial_sums{number}");
        Workspace { name, dtype: contraction.sum, elements, zeroed: false }
    };
    let workspaces = (0..contraction.products.len()).map(partial).collect();
    Ok(Nest::new(flat.clone(), functions, workspaces))
}

/// What of the rows, lines or columns is the block's.
#[derive(Clone, Copy)]
pub(super) struct Part {
    pub(super) first: Var,
    pub(super) count: Var,
}

/// The rows of a tile, as they are multiplied.
struct Rows {
    array: Var,
    /// Where the first is.
    at: Expr,
    /// Elements from row to row, and from term to term.
    row: u64,
    term: u64,
}

/// A panel of columns, as it is multiplied.
struct Columns {
    array: Var,
    at: Expr,
    /// Elements from term to term.
    row: u64,
}

/// Along what neighbours are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Along {
    Rows,
    Terms,
}

/// Where the rows of a tile are.
#[derive(Clone, Copy)]
pub(super) enum Left {
    /// They are packed, for each tile, into this array.
    Packed(Var),
    /// All rows of the block are there, so many elements from one to the next.
    There { array: Var, row: u64 },
}

impl Part {
    pub(super) fn new(emitter: &mut Emitter, of: &str) -> Part {
        Part { first: emitter.index(&format!("{of}0")), count: emitter.index(&format!("{of}s")) }
    }
}

pub(super) struct Writer<'a> {
    kernel: &'a Kernel,
    pub(super) contraction: &'a Contraction,
    depth: AxisId,
    schedule: ContractionSchedule,
    pub(super) rows: Part,
    lines: Part,
    pub(super) columns: Part,
    /// The first of the terms that are packed together, and how many they are.
    term: Var,
    terms: Var,
    /// The first row of a tile.
    tile: Var,
    /// Which panel of a line.
    panel: Var,
    /// Elements from row to row of the sums.
    pub(super) sums_row: u64,
    /// Whether the sums' rows have all columns, and not the block's alone.
    pub(super) is_whole: bool,
    /// What is known of each row of the block, in arrays.
    pub(super) known: Vec<(ValueId, Var)>,
    /// Which terms count if not all.
    pub(super) part: Option<Extent>,
}

/// What a block's columns are packed into.
pub(super) struct Packed<'k> {
    pub(super) array: Var,
    /// What of an image they are windows of, and the array for that.
    pub(super) image: Option<(&'k image::Part<'k>, Var)>,
}

impl<'a> Writer<'a> {
    pub(super) fn new(
        emitter: &mut Emitter,
        kernel: &'a Kernel,
        contraction: &'a Contraction,
        depth: AxisId,
        schedule: ContractionSchedule,
    ) -> Writer<'a> {
        Writer {
            kernel,
            contraction,
            depth,
            schedule,
            rows: Part::new(emitter, "row"),
            lines: Part::new(emitter, "line"),
            columns: Part::new(emitter, "column"),
            term: emitter.index("term"),
            terms: emitter.index("depth"),
            tile: emitter.index("tile"),
            panel: emitter.index("panel"),
            sums_row: width(contraction, &schedule),
            is_whole: false,
            known: Vec::new(),
            part: None,
        }
    }

    fn element(&self) -> Type {
        Type::Register(self.contraction.dtype)
    }

    fn zero(&self) -> Expr {
        Expr::Literal(Scalar::from_i64(self.contraction.dtype, 0))
    }

    /// Panels of a line of the block.
    fn panels(&self) -> u64 {
        u64::from(self.schedule.columns) / PANEL
    }

    /// Columns of the block's sums.
    fn width(&self) -> u64 {
        width(self.contraction, &self.schedule)
    }

    /// Arrays for the sums of the block.
    fn arrays_of_sums(&self, emitter: &mut Emitter) -> Vec<Var> {
        let ty = Type::Register(self.contraction.sum);
        let one = |_| {
            let var = emitter.fresh("sums");
            emitter.array(var, ty, self.block_sums())
        };
        self.contraction.products.iter().map(one).collect()
    }

    /// Elements of such an array.
    fn block_sums(&self) -> u64 {
        u64::from(self.schedule.rows) * self.width()
    }

    /// The sums of the block's terms, in arrays.
    fn sums<'k>(&self, emitter: &mut Emitter<'k>, image: Option<&'k image::Part<'k>>) -> Vec<Var> {
        let array = |emitter: &mut Emitter, prefix, len| {
            let var = emitter.fresh(prefix);
            emitter.array(var, self.element(), len)
        };
        if self.contraction.is_few {
            let sums = self.arrays_of_sums(emitter);
            self.few_rows(emitter, &sums);
            return sums;
        }
        let left = array(emitter, "left", self.left_elements());
        let right = array(emitter, "right", self.width() * u64::from(self.schedule.depth));
        let sums = self.arrays_of_sums(emitter);
        let image = image.map(|part| match part.windows.places() {
            1 => (part, right),
            _ => (part, array(emitter, "image", part.elements())),
        });
        self.all_terms(emitter, Left::Packed(left), &Packed { array: right, image }, &sums);
        sums
    }

    /// The results of the reductions of the block's rows.
    fn statistics(&self, emitter: &mut Emitter) -> Vec<(ValueId, Var)> {
        let Contraction { statistics, rows, .. } = self.contraction;
        if statistics.is_empty() {
            return Vec::new();
        }
        let array = |&id: &ValueId| {
            let ty = Type::Register(self.kernel.value(id).dtype);
            let var = emitter.fresh("of_rows");
            (id, emitter.array(var, ty, self.schedule.rows.into()))
        };
        let known: Vec<(ValueId, Var)> = statistics.iter().map(array).collect();
        let r = emitter.index("r");
        emitter.repeat(counting(r, 0, self.rows.count, LoopHint::None), |emitter| {
            let at_row = emitter.bind("at_row", INDEX, self.rows.first.then(Add, r));
            emitter.unflatten(at_row, rows, 1);
            let row = Row { kernel: self.kernel, along: self.depth, there: Vec::new(), part: None };
            for &(id, array) in &known {
                let result = row.reduce(emitter, id);
                emitter.push(set(Expr::element(array, r), result.clone()));
                emitter.define(id, result);
            }
        });
        known
    }

    /// The sums of all terms, some terms at a time.
    pub(super) fn all_terms<'k>(
        &self,
        emitter: &mut Emitter<'k>,
        left: Left,
        right: &Packed<'k>,
        sums: &[Var],
    ) {
        self.each_part(emitter, |emitter| {
            for (product, sums) in self.contraction.products.iter().zip(sums) {
                match right.image {
                    Some((part, image)) => {
                        self.pack_windows(emitter, part, product.right, [image, right.array]);
                        let columns = whole(self.all_columns());
                        let at = (Expr::Int(0), self.width());
                        self.pair(emitter, right.array, at, (columns, false));
                    }
                    None if self.in_place(product.right).is_none() => {
                        self.pack_columns(emitter, product.right, right.array);
                    }
                    None => {}
                }
                self.multiply(emitter, product, left, [right.array, *sums]);
            }
        });
    }

    /// Adds the products of the packed terms to the sums.
    fn multiply(&self, emitter: &mut Emitter, product: &Product, left: Left, [right, sums]: [Var; 2]) {
        let tile = Expr::Name(self.tile);
        let rows = match left {
            Left::Packed(array) if self.neighbours(product.left) == Along::Rows => {
                self.pack_all_rows(emitter, product.left, array);
                Some(match self.contraction.is_paired {
                    true => {
                        let row = self.pitch();
                        Rows { array, at: tile.clone().then(Mul, row), row, term: 1 }
                    }
                    false => Rows { array, at: tile.clone(), row: 1, term: self.schedule.rows.into() },
                })
            }
            Left::Packed(_) => None,
            Left::There { array, row } => {
                let at = tile.clone().then(Mul, row).then(Add, self.term);
                Some(Rows { array, at, row, term: 1 })
            }
        };
        emitter.repeat(
            stepping(self.tile, (0, self.rows.count), self.tile_rows(), LoopHint::None),
            |emitter| match (rows, left) {
                (Some(rows), _) => self.multiply_rows(emitter, product, &rows, [right, sums]),
                (None, Left::Packed(array)) => {
                    emitter.open(&[], false);
                    self.pack_rows(emitter, product.left, array);
                    let rows = Rows { array, at: Expr::Int(0), row: self.schedule.depth.into(), term: 1 };
                    self.multiply_rows(emitter, product, &rows, [right, sums]);
                    let pack = emitter.close();
                    match self.unpacked(product.left, self.tile).filter(|_| product.lift.is_none()) {
                        None => emitter.append(pack),
                        Some(rows) => {
                            emitter.open(&[], false);
                            self.multiply_rows(emitter, product, &rows, [right, sums]);
                            let then = emitter.close();
                            let after = tile.then(Add, self.tile_rows() - 1);
                            let condition = after.then(Less, self.rows.count);
                            emitter.push(Stmt::If { condition, then, otherwise: pack });
                        }
                    }
                }
                (None, Left::There { .. }) => {}
            },
        );
    }

    /// Rows that are multiplied together.
    fn tile_rows(&self) -> u64 {
        if self.contraction.is_paired { PAIRED_ROWS } else { TILE_ROWS }
    }

    /// How many of these the block has.
    fn rows_of_tile(&self) -> Expr {
        Expr::Int(self.tile_rows()).then(Min, self.rows.count.then(Sub, self.tile))
    }

    /// Elements of the array that rows are packed into.
    pub(super) fn left_elements(&self) -> u64 {
        let of_tile = |product: &Product| self.neighbours(product.left) == Along::Terms;
        let is_tile = self.contraction.products.iter().all(of_tile);
        match (is_tile, self.contraction.is_paired) {
            (true, _) => self.tile_rows() * u64::from(self.schedule.depth),
            (false, true) => u64::from(self.schedule.rows) * self.pitch(),
            (false, false) => u64::from(self.schedule.rows) * u64::from(self.schedule.depth),
        }
    }

    /// The products of a tile's rows and each panel.
    fn multiply_rows(&self, emitter: &mut Emitter, product: &Product, left: &Rows, [right, sums]: [Var; 2]) {
        let deep = Expr::Int(u64::from(self.schedule.depth));
        let in_place = match self.contraction.windows {
            Some(_) => Some(Columns { array: right, at: Expr::Int(0), row: self.width() }),
            None => self.in_place(product.right),
        };
        let [first, _] = Extent::of(self.part, Expr::Int(0));
        let is_packed = in_place.is_none();
        self.each_panel(emitter, |emitter, panel, width| {
            let at = panel.clone().then(Mul, PANEL);
            let row = self.tile.then(Mul, self.sums_row);
            let row = if self.is_whole { row.then(Add, self.columns.first) } else { row };
            let columns = match in_place {
                Some(ref columns) => Columns { at: columns.at.clone().then(Add, at.clone()), ..*columns },
                None => {
                    let at = panel.then(Mul, deep.clone()).then(Mul, PANEL);
                    Columns { array: right, at, row: PANEL }
                }
            };
            let tile = TileProduct {
                dtype: if self.contraction.is_paired { DType::BF16 } else { self.contraction.dtype },
                left: left.array,
                left_at: left.at.clone(),
                left_row: left.row,
                left_term: left.term,
                right: columns.array,
                right_at: columns.at,
                right_row: columns.row,
                sums,
                sums_at: row.then(Add, at),
                sums_row: self.sums_row,
                depth: Expr::Name(self.terms),
                width: if is_packed { self.filled(width) } else { whole(width) },
                adds: first.clone().then(Less, self.term),
                lines: false,
                rows: self.contraction.is_paired.then(|| self.rows_of_tile()),
                few: false,
                streams: matches!(left.array, Var::Parameter(_)) && self.has_all_columns(),
            };
            match product.lift {
                Some(lift) => self.combine(emitter, product, lift, (&tile, is_packed)),
                None => emitter.push(Stmt::MultiplyTile(Box::new(tile))),
            }
        });
    }

    /// Whether a block has all columns, so that no other one reads its rows.
    fn has_all_columns(&self) -> bool {
        let Contraction { column, lines, windows, .. } = self.contraction;
        let column = self.kernel.axis(*column);
        // All images have the same filters.
        !self.is_whole
            && windows.is_none()
            && !column.is_argument
            && column.extent <= self.schedule.columns.into()
            && launch_items(self.kernel, lines) <= self.schedule.lines.into()
    }

    /// Along what neighbours of a left factor are neighbours in memory.
    fn neighbours(&self, value: ValueId) -> Along {
        let inner = self.contraction.rows.last().copied().unwrap_or(self.depth);
        match consecutive_along(self.kernel, value, inner, self.depth) {
            true => Along::Rows,
            false => Along::Terms,
        }
    }

    /// A factor's element as it is multiplied.
    fn factor(&self, emitter: &mut Emitter, value: ValueId) -> Expr {
        let (from, to) = (self.kernel.value(value).dtype, self.contraction.dtype);
        let element = emitter.value(value);
        if from == to { element } else { Expr::Cast { from, to, operand: Box::new(element) } }
    }

    /// A row of the block, and what is known of it.
    fn bind_row(&self, emitter: &mut Emitter, row: &Expr) {
        let at_row = emitter.bind("at_row", INDEX, self.rows.first.then(Add, row.clone()));
        emitter.unflatten(at_row, &self.contraction.rows, 1);
        self.known.iter().for_each(|(id, array)| emitter.define(*id, Expr::element(array, row.clone())));
    }

    /// Where a line's columns begin in a row of the sums.
    fn before(&self, line: Expr) -> Expr {
        match self.contraction.windows {
            Some(_) => line.then(Mul, self.columns.count),
            None => line.then(Mul, self.panels()).then(Mul, PANEL),
        }
    }

    /// Whatever follows from the sums, and from what is known of each row.
    pub(super) fn results<'k>(
        &self,
        emitter: &mut Emitter<'k>,
        products: &[Product],
        sums: &[Var],
        known: &[(ValueId, Var)],
    ) {
        let Contraction { rows, column, .. } = self.contraction;
        let kernel = emitter.kernel;
        let there: Vec<ValueId> = products.iter().map(|product| product.sum).collect();
        let fission = self.fission(&there);
        let r = emitter.index("r");
        let number = emitter.index("line");
        // Lines come one after the other: what a vector stores beyond the end of one is overwritten by the next.
        let slot = self.before(self.line(number)).then(Add, Expr::name(Var::Lane));
        emitter.repeat(counting(r, 0, self.rows.count, LoopHint::None), |emitter| {
            let at_row = emitter.bind("at_row", INDEX, self.rows.first.then(Add, r));
            emitter.unflatten(at_row, rows, 1);
            known.iter().for_each(|(id, of_rows)| emitter.define(*id, Expr::element(of_rows, r)));
            let mut each = |emitter: &mut Emitter<'k>, body: &mut dyn FnMut(&mut Emitter<'k>)| {
                self.each_line_by(emitter, number, |emitter, line| {
                    let lane = Expr::name(Var::Lane);
                    let from = r.then(Mul, self.width()).then(Add, self.before(line));
                    let along = counting(Var::Lane, 0, self.columns.count, LoopHint::Simd);
                    emitter.repeat_along(&[*column], along, |emitter| {
                        emitter.bind(*column, INDEX, self.columns.first.then(Add, lane.clone()));
                        for (product, sums) in products.iter().zip(sums) {
                            let (from_dtype, to) = (self.contraction.sum, kernel.value(product.sum).dtype);
                            let sum = Expr::element(sums, from.clone().then(Add, lane.clone()));
                            let sum = match from_dtype == to {
                                true => sum,
                                false => Expr::Cast { from: from_dtype, to, operand: Box::new(sum) },
                            };
                            emitter.define(product.sum, sum);
                        }
                        body(emitter);
                    });
                });
            };
            let width = self.width() + LANES;
            let elements = match &fission {
                Some(fission) => fission.emit(emitter, kernel, &slot, width, &mut each),
                None => Vec::new(),
            };
            each(emitter, &mut |emitter| {
                emitter.find(&elements);
                if fission.is_some() {
                    emitter.values_before_stores(kernel);
                }
                emitter.store_all(kernel);
            });
        });
    }

    /// What follows from the sums, in loops of its own where one would be long.
    fn fission(&self, there: &[ValueId]) -> Option<Fission> {
        let kernel = self.kernel;
        let divided = Divided {
            kernel,
            along: &[self.contraction.column],
            bound: kernel.axes_of_kind(AxisKind::Map).into_iter().collect(),
            ends: kernel.stores.iter().map(|store| store.value).collect(),
            there,
            apart: None,
        };
        divided.fission(self.width())
    }
}

/// Columns of a block's sums.
fn width(contraction: &Contraction, schedule: &ContractionSchedule) -> u64 {
    let columns = u64::from(schedule.lines) * u64::from(schedule.columns);
    if contraction.windows.is_some() { columns.next_multiple_of(LANES) } else { columns }
}

fn plus(first: IndexExpr, at: Expr) -> Expr {
    if first.as_constant() == Some(0) { at } else { Expr::Index(first).then(Add, at) }
}

pub(super) fn ceil(count: Expr, of: Expr) -> Expr {
    match (&count, &of) {
        (Expr::Int(count), Expr::Int(of)) if *of > 0 => Expr::Int(count.div_ceil(*of)),
        (_, Expr::Int(less @ 1..)) => {
            let less = Expr::Int(less - 1);
            count.then(Add, less).then(Div, of)
        }
        _ => count.then(Div, of),
    }
}

/// Columns up to the end of a vector.
fn whole(columns: Expr) -> Expr {
    ceil(columns, Expr::Int(LANES)).then(Mul, LANES)
}

impl Writer<'_> {
    /// Columns of a panel that are packed, with those that fill its last vector: of lifts, two vectors go together.
    fn filled(&self, width: Expr) -> Expr {
        match self.contraction.has_lifts() {
            true => ceil(width, Expr::Int(2 * LANES)).then(Mul, 2 * LANES),
            false => whole(width),
        }
    }
}
