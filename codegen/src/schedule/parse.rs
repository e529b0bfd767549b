//! Schedules from their text.

use std::str::FromStr;

use super::{
    AxisOrder, ColumnSchedule, ContractionSchedule, PointwiseSchedule, ProductSchedule,
    RowContractionSchedule, RowProductSchedule, RowSchedule, ScanSchedule, ScatterSchedule, Schedule,
    SortSchedule, TiledSchedule, Unit, ValueSet,
};
use crate::DType;
use crate::index::AxisId;
use crate::ir::ValueId;
use crate::syntax::{Cursor, ParseError, Place};

impl FromStr for Schedule {
    type Err = ParseError;

    /// The schedule that prints so.
    ///
    /// ```
    /// use lazuli_codegen::schedule::Schedule;
    /// let text = "row_reduce(threads_per_row=32, rows_per_block=8, vec=4, online)";
    /// let schedule: Schedule = text.parse()?;
    /// assert!(matches!(schedule, Schedule::Rows(rows) if rows.vector == 4 && rows.online));
    /// assert_eq!(schedule.to_string(), text);
    /// assert_eq!(
    ///     "pointwise(threads=0)".parse::<Schedule>().unwrap_err().to_string(),
    ///     "line 1, column 19: threads is at least 1"
    /// );
    /// # Ok::<(), lazuli_codegen::ParseError>(())
    /// ```
    ///
    /// # Errors
    /// Where the text is none of a schedule.
    fn from_str(text: &str) -> Result<Schedule, ParseError> {
        let mut text = Cursor::new(text);
        let schedule = Schedule::parse(&mut text)?;
        text.end()?;
        Ok(schedule)
    }
}

impl Schedule {
    /// Takes a schedule.
    ///
    /// # Errors
    /// As [`Schedule::from_str`].
    pub fn parse(text: &mut Cursor<'_>) -> Result<Schedule, ParseError> {
        let place = text.place();
        let name = text.word()?;
        let mut settings = Settings::read(text)?;
        let schedule = match name {
            "pointwise" => Schedule::Pointwise(settings.pointwise()?),
            "tiled" => {
                let ([rows, columns], [threads, of_column]) =
                    (settings.pair("tile")?, settings.pair("threads")?);
                if [rows, threads] != [columns; 2] {
                    return Err(text.error_at(place, "tiles are square, and have threads for their columns"));
                }
                let across = settings.axis("across")?;
                Schedule::Tiled(TiledSchedule { across, tile: columns, rows: of_column })
            }
            "scan" => {
                let (threads, rows) = (settings.count("threads")?, settings.count("rows_per_block")?);
                let tile = settings.optional("tile", Settings::pair)?.unwrap_or([rows, 0]);
                if tile[0] != rows {
                    return Err(text.error_at(place, "a tile has the rows of a block"));
                }
                let vector = settings.count("vec")?;
                Schedule::Scan(ScanSchedule {
                    threads,
                    rows,
                    vector,
                    tile: tile[1],
                    splits: settings.splits()?,
                })
            }
            "scatter" => Schedule::Scatter(ScatterSchedule {
                positions: settings.count("positions")?,
                columns: settings.count("columns")?,
                warps: settings.count("warps")?,
                collected: settings.or_zero("collected")?,
                is_local: settings.flag("local")?,
                lists: settings.or_zero("lists")?,
                is_sparse: settings.flag("sparse")?,
                is_atomic: settings.flag("atomic")?,
                splits: settings.splits()?,
            }),
            "sort" => Schedule::Sort(SortSchedule {
                threads: settings.optional("threads", Settings::count)?.unwrap_or(1),
                rows: settings.count("rows_per_block")?,
                tile: settings.or_zero("tile")?,
                lanes: settings.optional("lanes", Settings::count)?.unwrap_or(1),
            }),
            "row_reduce" => Schedule::Rows(settings.rows()?),
            "contraction" if settings.has("tile") => Schedule::Product(settings.product()?),
            "contraction" => {
                let [lines, columns] = settings.pair("columns")?;
                let (rows, depth) = (settings.count("rows")?, settings.count("depth")?);
                let part = settings.or_zero("part")?;
                Schedule::Contraction(ContractionSchedule { rows, lines, columns, depth, part })
            }
            "row_contraction" if settings.has("tile") => {
                let [rows, elements] = settings.pair("tile")?;
                let (columns, depth) = (settings.count("columns")?, settings.count("depth")?);
                let (matrices, stages) = (settings.matrices()?, settings.stages()?);
                let unit = match (matrices, settings.flag("group")?) {
                    (None, _) => Unit::Thread,
                    (Some(dtype), true) => Unit::WarpGroup(dtype),
                    (Some(dtype), false) => Unit::Warp(dtype),
                };
                Schedule::RowProduct(RowProductSchedule { rows, elements, columns, depth, unit, stages })
            }
            "row_contraction" => {
                let (rows, columns) = (settings.count("rows")?, settings.count("columns")?);
                let depth = settings.count("depth")?;
                Schedule::RowContraction(RowContractionSchedule { rows, columns, depth })
            }
            "column_reduce" => {
                let [threads_x, threads_y] = settings.pair("threads")?;
                let vector = settings.count("vec")?;
                let (shares_all, splits) = (settings.flag("all")?, settings.splits()?);
                Schedule::Columns(ColumnSchedule { threads_x, threads_y, vector, splits, shares_all })
            }
            _ => return Err(text.error_at(place, format!("no schedule is called `{name}`"))),
        };
        settings.end()?;
        Ok(schedule)
    }
}

/// What stands in the parentheses: `name=value`, or a name alone. Each is taken by its name.
struct Settings<'a> {
    /// Names, where their values begin, and the text from there.
    left: Vec<(&'a str, Place, Cursor<'a>)>,
    after: Cursor<'a>,
}

impl<'a> Settings<'a> {
    fn read(text: &mut Cursor<'a>) -> Result<Settings<'a>, ParseError> {
        text.expect("(")?;
        let mut left: Vec<(&str, Place, Cursor)> = Vec::new();
        loop {
            let name = text.word()?;
            if left.iter().any(|(other, ..)| *other == name) {
                return Err(text.error(format!("{name} is said twice")));
            }
            let has_value = text.eat("=");
            left.push((name, text.place(), text.clone()));
            if has_value {
                // A number, a pair, an axis or values; which of them is seen by name.
                if text.word().is_err() {
                    text.constant()?;
                }
                while text.eat("+") {
                    text.word()?;
                }
            }
            if text.eat(")") {
                return Ok(Settings { left, after: text.clone() });
            }
            if !text.eat(",") {
                return Err(text.expected("`,` or `)`"));
            }
        }
    }

    fn has(&self, name: &str) -> bool {
        self.left.iter().any(|(other, ..)| *other == name)
    }

    fn take(&mut self, name: &str) -> Result<(Place, Cursor<'a>), ParseError> {
        match self.left.iter().position(|(other, ..)| *other == name) {
            Some(position) => {
                let (_, place, text) = self.left.remove(position);
                Ok((place, text))
            }
            None => Err(self.after.error(format!("{name} is missing"))),
        }
    }

    fn optional<T>(
        &mut self,
        name: &str,
        read: impl Fn(&mut Self, &str) -> Result<T, ParseError>,
    ) -> Result<Option<T>, ParseError> {
        if self.has(name) { read(self, name).map(Some) } else { Ok(None) }
    }

    fn pointwise(&mut self) -> Result<PointwiseSchedule, ParseError> {
        let of_core = self.optional("elements_per_block", Self::count)?;
        Ok(PointwiseSchedule {
            threads: if of_core.is_some() { 1 } else { self.count("threads")? },
            vector: if of_core.is_some() { 1 } else { self.count("vec")? },
            elements_per_block: of_core.unwrap_or(0),
            order: self.optional("order", Self::order)?,
        })
    }

    fn rows(&mut self) -> Result<RowSchedule, ParseError> {
        Ok(RowSchedule {
            threads_per_row: self.count("threads_per_row")?,
            rows_per_block: self.count("rows_per_block")?,
            vector: self.count("vec")?,
            persistent: self.or_zero("persistent")?,
            shared_bytes: self.or_zero("shared_bytes")?,
            stack_bytes: self.or_zero("stack_bytes")?,
            keep: self.optional("keep", Self::values)?,
            online: self.flag("online")?,
            splits: self.splits()?,
        })
    }

    fn product(&mut self) -> Result<ProductSchedule, ParseError> {
        let [rows, columns] = self.pair("tile")?;
        let matrices = self.matrices()?;
        let has_groups = self.left.iter().any(|(name, ..)| *name == "group");
        let (of, unit) = match matrices {
            None => ("thread", Unit::Thread),
            Some(dtype) if has_groups => ("group", Unit::WarpGroup(dtype)),
            Some(dtype) => ("warp", Unit::Warp(dtype)),
        };
        let [own_rows, own_columns] = self.pair(of)?;
        let (depth, stages, bulk) = (self.count("depth")?, self.stages()?, self.flag("bulk")?);
        let splits = self.splits()?;
        Ok(ProductSchedule { rows, columns, depth, unit, own_rows, own_columns, stages, bulk, splits })
    }

    fn stages(&mut self) -> Result<u32, ParseError> {
        Ok(self.optional("stages", Self::count)?.unwrap_or(1))
    }

    /// What instructions multiply, if they do.
    fn matrices(&mut self) -> Result<Option<DType>, ParseError> {
        Ok(match (self.flag("f16")?, self.flag("bf16")?) {
            (true, _) => Some(DType::F16),
            (false, true) => Some(DType::BF16),
            (false, false) => None,
        })
    }

    /// A number, at least 1.
    fn count<T: FromStr + PartialOrd + From<u8>>(&mut self, name: &str) -> Result<T, ParseError> {
        let (place, mut text) = self.take(name)?;
        let number = text.number()?;
        match number < T::from(1) {
            true => Err(text.error_at(place, format!("{name} is at least 1"))),
            false => Ok(number),
        }
    }

    fn or_zero(&mut self, name: &str) -> Result<u32, ParseError> {
        Ok(self.optional(name, Self::count)?.unwrap_or(0))
    }

    fn splits(&mut self) -> Result<u32, ParseError> {
        Ok(self.optional("splits", Self::count)?.unwrap_or(1))
    }

    fn pair(&mut self, name: &str) -> Result<[u32; 2], ParseError> {
        let (place, mut text) = self.take(name)?;
        let pair = text.pair()?;
        match pair.contains(&0) {
            true => Err(text.error_at(place, format!("{name} is at least 1x1"))),
            false => Ok(pair),
        }
    }

    /// `a1+a0`: numbers below a limit behind a letter.
    fn numbers(&mut self, name: &str, letter: char, end: u32, what: &str) -> Result<Vec<u32>, ParseError> {
        let (_, mut text) = self.take(name)?;
        let mut numbers = Vec::new();
        loop {
            let place = text.place();
            let number = text.word()?.strip_prefix(letter).and_then(|number| number.parse().ok());
            let wrong = || text.error_at(place, format!("{name} is {what}"));
            numbers.push(number.filter(|&number| number < end).ok_or_else(wrong)?);
            if !text.eat("+") {
                return Ok(numbers);
            }
        }
    }

    fn axis(&mut self, name: &str) -> Result<AxisId, ParseError> {
        let numbers = self.numbers(name, 'a', u32::MAX, "an axis by its number, such as a1")?;
        Ok(AxisId(numbers[0]))
    }

    fn order(&mut self, name: &str) -> Result<AxisOrder, ParseError> {
        let axes = self.numbers(name, 'a', u32::MAX, "axes by their numbers, such as a1+a0")?;
        let axes: Vec<AxisId> = axes.into_iter().map(AxisId).collect();
        AxisOrder::new(&axes).ok_or_else(|| self.after.error(format!("{name} has too many axes")))
    }

    /// `v0+v3`, or `none`.
    fn values(&mut self, name: &str) -> Result<ValueSet, ParseError> {
        let is_none = self.left.iter().any(|(other, _, text)| *other == name && text.is_at("none"));
        if is_none {
            self.take(name)?;
            return Ok(ValueSet::default());
        }
        let what = "values by their numbers, such as v1+v3";
        Ok(self.numbers(name, 'v', ValueSet::MOST, what)?.into_iter().map(ValueId).collect())
    }

    fn flag(&mut self, name: &str) -> Result<bool, ParseError> {
        Ok(self.optional(name, Self::take)?.is_some())
    }

    fn end(&self) -> Result<(), ParseError> {
        match self.left.first() {
            Some((name, place, text)) => Err(text.error_at(*place, format!("it has no {name}"))),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_read_back() {
        for text in [
            "pointwise(threads=256, vec=4)",
            "pointwise(elements_per_block=16384)",
            "pointwise(elements_per_block=16384, order=a1+a0)",
            "tiled(across=a2, tile=32x32, threads=32x8)",
            "scan(threads=256, rows_per_block=1, vec=1, splits=1024)",
            "scan(threads=1, rows_per_block=32, vec=1, tile=32x32)",
            "scatter(positions=1024, columns=1, warps=8, collected=4)",
            "scatter(positions=4096, columns=1, warps=1, atomic)",
            "scatter(positions=100, columns=64, warps=1, local, splits=3)",
            "scatter(positions=8, columns=512, warps=1, local, lists=2)",
            "scatter(positions=50000, columns=1, warps=1, sparse)",
            "sort(threads=128, rows_per_block=32, tile=16)",
            "sort(rows_per_block=816, lanes=8)",
            "row_reduce(threads_per_row=1024, rows_per_block=1, vec=4, persistent=4, shared_bytes=163840)",
            "row_reduce(threads_per_row=16, rows_per_block=8, vec=1, stack_bytes=4096, keep=v1+v3, online, splits=2)",
            "row_reduce(threads_per_row=16, rows_per_block=8, vec=1, persistent=4, keep=none)",
            "column_reduce(threads=32x8, vec=4, splits=16)",
        ] {
            assert_eq!(text.parse::<Schedule>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn errors_say_where() {
        for (text, error) in [
            ("rows(vec=1)", "line 1, column 1: no schedule is called `rows`"),
            ("pointwise(threads=256)", "line 1, column 23: vec is missing"),
            ("pointwise(threads=256, vec=1, tile=3x3)", "line 1, column 36: it has no tile"),
            ("pointwise(threads=256, vec=x)", "line 1, column 28: expected a number, found `x`"),
            ("pointwise(vec=1, vec=1)", "line 1, column 21: vec is said twice"),
            (
                "tiled(across=i1, tile=32x32, threads=32x8)",
                "line 1, column 14: across is an axis by its number, such as a1",
            ),
            ("pointwise(threads=256; vec=1)", "line 1, column 22: expected `,` or `)`, found `;`"),
        ] {
            assert_eq!(text.parse::<Schedule>().unwrap_err().to_string(), error);
        }
    }
}
