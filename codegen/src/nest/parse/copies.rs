//! Copies to shared memory, from their text.

use super::Reader;
use crate::index::AxisId;
use crate::ir::{BufferId, Kernel};
use crate::nest::stmt::{BulkCopy, BulkRound, BulkStep, Copying, Stmt};
use crate::schedule::TensorMap;
use crate::syntax::{Cursor, ParseError};

impl TensorMap {
    /// As [`Nest::to_text`](crate::nest::Nest::to_text) prints it.
    pub(super) fn parse(kernel: &Kernel, text: &mut Cursor<'_>) -> Result<TensorMap, ParseError> {
        let place = text.place();
        let name = text.word()?;
        let buffer = (0..kernel.buffers.len() as u32).map(BufferId);
        let buffer = buffer.into_iter().find(|id| kernel.buffers[id.index()].name == name);
        let buffer = buffer.ok_or_else(|| text.error_at(place, format!("no buffer is called {name}")))?;
        text.expect("[")?;
        let first = text.number()?;
        text.expect("]")?;
        text.expect("lines")?;
        let lines = text.number()?;
        text.expect("along")?;
        let mut axes = Vec::new();
        loop {
            let place = text.place();
            let name = text.word()?;
            let axis = (0..kernel.axes.len() as u32).map(AxisId).find(|&axis| kernel.axis(axis).name == name);
            let axis = axis.ok_or_else(|| text.error_at(place, format!("no axis is called {name}")))?;
            text.expect("*")?;
            axes.push((axis, text.number()?));
            if !text.eat(",") {
                return Ok(TensorMap { buffer, first, lines, axes });
            }
        }
    }
}

impl Reader<'_, '_> {
    pub(super) fn copying(&mut self) -> Result<Stmt, ParseError> {
        let (shared, at) = self.element(true)?;
        self.text.expect("=")?;
        let (buffer, index) = self.element(false)?;
        let (width, dtype) = (self.setting("width")?, self.of_dtype()?);
        let condition = if self.text.eat("where") { Some(self.expr()?) } else { None };
        Ok(Stmt::BeginCopy(Box::new(Copying { shared, at, buffer, index, dtype, width, condition })))
    }

    /// What threads do about copies of tiles.
    pub(super) fn bulk(&mut self, kind: &str) -> Result<BulkStep, ParseError> {
        Ok(match kind {
            "expect_tiles" => {
                let arrived = self.variable(true)?;
                let slots = self.text.number()?;
                BulkStep::Expect { arrived, slots, copies: self.setting("copies")? }
            }
            "begin_tile" => {
                let (shared, at) = self.element(true)?;
                self.text.expect("=")?;
                let map = self.text.number()?;
                self.text.expect("at")?;
                let mut positions = vec![self.expr()?];
                while self.text.eat(",") {
                    positions.push(self.expr()?);
                }
                self.text.expect("as")?;
                let (arrived, slot) = self.element(true)?;
                BulkStep::Begin(Box::new(BulkCopy { map, positions, shared, at, arrived, slot }))
            }
            _ => {
                let (arrived, slot) = self.element(true)?;
                BulkStep::Await(Box::new(BulkRound { arrived, slot, round: self.after("round")? }))
            }
        })
    }
}
