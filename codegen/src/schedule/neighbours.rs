//! Schedules beside a given one: what somebody tries who measures.

use super::facts::{Figures, cooperative};
use super::share::TILE_ROWS;
use super::{
    ColumnSchedule, ContractionSchedule, PANEL, PointwiseSchedule, RowContractionSchedule,
    RowProductSchedule, RowSchedule, STACK_BYTES, ScanSchedule, ScatterSchedule, Schedule, SortSchedule,
    TiledSchedule, ValueSet, choose, columns, rows,
};
use crate::Language;
use crate::ir::{Kernel, ValueOp};

/// A half and double first, since they are most often taken.
fn around_long(number: u64) -> impl Iterator<Item = u64> {
    [number / 2, number.saturating_mul(2), number / 4, number.saturating_mul(4)]
        .into_iter()
        .filter(|&n| n > 0)
}

fn around(number: u32) -> impl Iterator<Item = u32> {
    around_long(number.into()).filter_map(|number| u32::try_from(number).ok())
}

/// 1, and the parts that would be chosen.
fn parts(chosen: u32, own: u32) -> impl Iterator<Item = u32> {
    either(1, chosen, own)
}

/// What is not the own one of two.
fn either(one: u32, chosen: u32, own: u32) -> impl Iterator<Item = u32> {
    [one, chosen].into_iter().filter(move |&other| other != own)
}

impl Schedule {
    /// The schedules that [`emit_with`](crate::emit_with) takes for the kernel and that differ from this one in one number, or
    /// are those that would be chosen of another kind. Each once, in an order that does not change.
    ///
    /// ```
    /// use lazuli_codegen::Language;
    /// use lazuli_codegen::ir::Kernel;
    /// use lazuli_codegen::schedule::{Figures, Matrices, schedule};
    ///
    /// let kernel: Kernel = "\
    /// kernel double
    ///   map i0 < n_i0 = 1000
    ///   input in0: f32 [1000]
    ///   output out0: f32 [1000]
    ///   v0: f32 = load in0[i0]
    ///   v1: f32 = add v0 v0
    ///   store out0[i0] = v1
    /// "
    /// .parse()?;
    /// let figures = Figures { processors: 132, is_low_pressure: false, shared_bytes: 227 << 10, matrices: Matrices::Warps };
    /// let chosen = schedule(&kernel, Language::Cuda, &figures)?;
    /// assert_eq!(chosen.to_string(), "pointwise(threads=256, vec=4)");
    /// let beside = chosen.neighbours(&kernel, Language::Cuda, &figures);
    /// assert!(beside.contains(&"pointwise(threads=128, vec=4)".parse()?));
    /// assert!(!beside.contains(&chosen));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn neighbours(&self, kernel: &Kernel, language: Language, figures: &Figures) -> Vec<Schedule> {
        let others = Others { kernel, language, figures };
        let mut found: Vec<Schedule> = Vec::new();
        for other in others.numbers(self).into_iter().chain(others.kinds(self)) {
            let is_new = other != *self && !found.contains(&other);
            if is_new && other.check(kernel, language, figures).is_ok() {
                found.push(other);
            }
        }
        found
    }
}

/// What others are made for; which of them can be is checked later.
struct Others<'a> {
    kernel: &'a Kernel,
    language: Language,
    figures: &'a Figures,
}

impl Others<'_> {
    /// With another number.
    fn numbers(&self, of: &Schedule) -> Vec<Schedule> {
        let chosen = super::schedule(self.kernel, self.language, self.figures).ok();
        match *of {
            Schedule::Pointwise(s) => self.pointwise(s),
            Schedule::Tiled(s) => {
                around(s.rows).map(|rows| Schedule::Tiled(TiledSchedule { rows, ..s })).collect()
            }
            Schedule::Scan(s) => {
                let threads = around(s.threads).map(|threads| ScanSchedule { threads, ..s });
                let rows = around(s.rows).map(|rows| ScanSchedule { rows, ..s });
                let vectors = around(s.vector).map(|vector| ScanSchedule { vector, ..s });
                let splits = around(s.splits).map(|splits| ScanSchedule { splits, ..s });
                threads.chain(rows).chain(vectors).chain(splits).map(Schedule::Scan).collect()
            }
            Schedule::Scatter(s) if s.is_atomic => Vec::new(),
            Schedule::Scatter(s) => {
                let splits = match chosen {
                    Some(Schedule::Scatter(c)) => c.splits,
                    _ => 1,
                };
                let positions = around_long(s.positions).map(|positions| ScatterSchedule { positions, ..s });
                let warps = around(s.warps).map(|warps| ScatterSchedule { warps, ..s });
                let splits = parts(splits, s.splits).map(|splits| ScatterSchedule { splits, ..s });
                positions.chain(warps).chain(splits).map(Schedule::Scatter).collect()
            }
            Schedule::Sort(s) => {
                let threads = around(s.threads).map(|threads| SortSchedule { threads, ..s });
                let rows = around(s.rows).map(|rows| SortSchedule { rows, ..s });
                rows.chain(threads).map(Schedule::Sort).collect()
            }
            Schedule::Rows(s) => self.rows(s),
            Schedule::Columns(s) => self.columns(s),
            Schedule::Contraction(s) => match chosen {
                Some(Schedule::Contraction(c)) => contractions(s, c.part),
                _ => contractions(s, 0),
            },
            Schedule::RowContraction(s) => tiles(s.rows)
                .map(|rows| Schedule::RowContraction(RowContractionSchedule { rows, ..s }))
                .collect(),
            Schedule::Product(s) => s.beside().map(Schedule::Product).collect(),
            Schedule::RowProduct(s) => {
                around(s.rows).map(|rows| Schedule::RowProduct(RowProductSchedule { rows, ..s })).collect()
            }
        }
    }

    fn pointwise(&self, s: PointwiseSchedule) -> Vec<Schedule> {
        let others: Vec<PointwiseSchedule> = match self.language {
            Language::C => {
                let others = around_long(s.elements_per_block);
                others.map(|elements_per_block| PointwiseSchedule { elements_per_block, ..s }).collect()
            }
            Language::Cuda => {
                let vectors = around(s.vector).map(|vector| PointwiseSchedule { vector, ..s });
                around(s.threads).map(|threads| PointwiseSchedule { threads, ..s }).chain(vectors).collect()
            }
        };
        others.into_iter().map(Schedule::Pointwise).collect()
    }

    fn rows(&self, s: RowSchedule) -> Vec<Schedule> {
        let mut others: Vec<RowSchedule> = Vec::new();
        others.extend(around(s.threads_per_row).map(|threads_per_row| RowSchedule { threads_per_row, ..s }));
        others.extend(around(s.rows_per_block).map(|rows_per_block| RowSchedule { rows_per_block, ..s }));
        others.push(RowSchedule { online: !s.online, ..s });
        let keep = if s.keep.is_none() { Some(ValueSet::default()) } else { None };
        others.push(RowSchedule { keep, ..s });
        let chosen = self.reduced(|axes| rows::rows(self.kernel, axes, self.language, self.figures));
        match self.language {
            Language::C => {
                let stack_bytes = if s.stack_bytes > 0 { 0 } else { STACK_BYTES as u32 };
                others.push(RowSchedule { stack_bytes, keep: None, ..s });
                others.push(RowSchedule { stack_bytes: 0, keep: None, online: !s.online, ..s });
                let chosen = chosen.map_or(1, |chosen| chosen.splits);
                others.extend(parts(chosen, s.splits).map(|splits| RowSchedule { splits, ..s }));
            }
            Language::Cuda => {
                others.extend(around(s.vector).map(|vector| RowSchedule { vector, ..s }));
                others.extend(around(s.splits).map(|splits| RowSchedule { splits, ..s }));
                others.push(RowSchedule { persistent: 0, shared_bytes: 0, keep: None, ..s });
                // More threads for a row keep less of it each, and the other way round.
                let kept = |factor: u32| RowSchedule {
                    threads_per_row: s.threads_per_row.saturating_mul(factor),
                    persistent: s.persistent.div_ceil(factor),
                    ..s
                };
                others.extend([kept(2), kept(4)].into_iter().filter(|_| s.persistent > 1));
                others.push(RowSchedule {
                    threads_per_row: s.threads_per_row / 2,
                    persistent: s.persistent.saturating_mul(2),
                    ..s
                });
            }
        }
        others.into_iter().filter(|s| s.threads_per_row > 0).map(Schedule::Rows).collect()
    }

    fn columns(&self, s: ColumnSchedule) -> Vec<Schedule> {
        let mut others: Vec<ColumnSchedule> = Vec::new();
        others.extend(around(s.threads_x).map(|threads_x| ColumnSchedule { threads_x, ..s }));
        match self.language {
            Language::C => {
                let columns =
                    |axes: &[_]| columns::columns(self.kernel, axes, self.language, self.figures).splits;
                let chosen = self.reduced(columns).unwrap_or(1);
                others.extend(parts(chosen, s.splits).map(|splits| ColumnSchedule { splits, ..s }));
            }
            Language::Cuda => {
                others.extend(around(s.threads_y).map(|threads_y| ColumnSchedule { threads_y, ..s }));
                others.extend(around(s.vector).map(|vector| ColumnSchedule { vector, ..s }));
                others.extend(around(s.splits).map(|splits| ColumnSchedule { splits, ..s }));
            }
        }
        others.into_iter().map(Schedule::Columns).collect()
    }

    /// Of another kind.
    fn kinds(&self, of: &Schedule) -> Vec<Schedule> {
        if !matches!(
            of,
            Schedule::Pointwise(_) | Schedule::Tiled(_) | Schedule::Rows(_) | Schedule::Columns(_)
        ) {
            return Vec::new();
        }
        let (kernel, language, figures) = (self.kernel, self.language, self.figures);
        let along_rows = self.reduced(|axes| Schedule::Rows(rows::rows(kernel, axes, language, figures)));
        let across =
            self.reduced(|axes| Schedule::Columns(columns::columns(kernel, axes, language, figures)));
        let apart = match along_rows {
            None => Some(Schedule::Pointwise(choose::pointwise(kernel, language))),
            Some(_) => None,
        };
        let chosen = super::schedule(kernel, language, figures).ok();
        let is_kind = |other: &Schedule| std::mem::discriminant(other) == std::mem::discriminant(of);
        let kinds = [chosen, along_rows, across, apart].into_iter().flatten();
        kinds.filter(|other| !is_kind(other)).collect()
    }

    /// What is made for the axes that threads reduce together, if they do.
    fn reduced<T>(&self, f: impl FnOnce(&[crate::index::AxisId]) -> T) -> Option<T> {
        let first = *cooperative(self.kernel).ok()?.first()?;
        match &self.kernel.value(first).op {
            ValueOp::Reduce { axes, .. } => Some(f(axes)),
            _ => None,
        }
    }
}

/// Other numbers of rows, by whole tiles.
fn tiles(rows: u32) -> impl Iterator<Item = u32> {
    let tile = TILE_ROWS as u32;
    around(rows)
        .map(move |rows| rows / tile * tile)
        .chain([rows.saturating_sub(tile), rows.saturating_add(tile)])
        .filter(|&rows| rows > 0)
}

fn contractions(s: ContractionSchedule, chosen: u32) -> Vec<Schedule> {
    let rows = tiles(s.rows).map(|rows| ContractionSchedule { rows, ..s });
    let panel = PANEL as u32;
    let columns = around(s.columns)
        .map(move |columns| columns / panel * panel)
        .filter(|&columns| columns > 0)
        .map(|columns| ContractionSchedule { columns, ..s });
    let depth = around(s.depth).map(|depth| ContractionSchedule { depth, ..s });
    let parts = either(0, chosen, s.part).map(|part| ContractionSchedule { part, ..s });
    rows.chain(columns).chain(depth).chain(parts).map(Schedule::Contraction).collect()
}
