//! Statements on packed factors, from their text.

use super::Reader;
use crate::nest::stmt::{Pairing, Stmt, TileProduct, Turning};
use crate::syntax::ParseError;

impl Reader<'_, '_> {
    pub(super) fn multiply(&mut self) -> Result<Stmt, ParseError> {
        let dtype = self.text.dtype()?;
        let (left, left_at) = self.element(false)?;
        let (left_row, left_term) = (self.setting("row")?, self.setting("term")?);
        self.text.expect(",")?;
        let (right, right_at) = self.element(false)?;
        let lines = self.text.is_at("line");
        let right_row = self.setting(if lines { "line" } else { "row" })?;
        self.text.expect(",")?;
        let (sums, sums_at) = self.element(false)?;
        let sums_row = self.setting("row")?;
        let mut setting = |word: &str| {
            self.text.expect(",")?;
            self.after(word)
        };
        let (depth, width, adds) = (setting("depth")?, setting("width")?, setting("adds")?);
        let (mut few, mut rows, mut streams) = (false, None, false);
        while self.text.eat(",") {
            few |= self.text.eat("few");
            match self.text.eat("streams") {
                true => streams = true,
                false => rows = Some(self.after("rows")?),
            }
        }
        Ok(Stmt::MultiplyTile(Box::new(TileProduct {
            dtype,
            left,
            left_at,
            left_row,
            left_term,
            right,
            right_at,
            right_row,
            lines,
            sums,
            sums_at,
            sums_row,
            depth,
            width,
            adds,
            rows,
            few,
            streams,
        })))
    }

    pub(super) fn turn(&mut self) -> Result<Stmt, ParseError> {
        let dtype = self.text.dtype()?;
        let (to, to_at) = self.element(true)?;
        let to_row = self.setting("row")?;
        self.text.expect(",")?;
        let (from, from_at) = self.element(false)?;
        let from_row = self.setting("row")?;
        self.text.expect(",")?;
        let depth = self.after("depth")?;
        let rows = if self.text.eat(",") { Some(self.after("rows")?) } else { None };
        Ok(Stmt::Turn(Box::new(Turning { dtype, to, to_at, to_row, from, from_at, from_row, depth, rows })))
    }

    pub(super) fn pair(&mut self) -> Result<Stmt, ParseError> {
        let (array, at) = self.element(true)?;
        let row = self.setting("row")?;
        self.text.expect(",")?;
        let depth = self.after("depth")?;
        self.text.expect(",")?;
        let along = self.text.is_at("rows");
        let count = self.after(if along { "rows" } else { "width" })?;
        Ok(Stmt::Pair(Box::new(Pairing { array, at, row, depth, count, along })))
    }
}
