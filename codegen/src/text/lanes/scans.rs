//! Calls of functions that make running results within registers.

use super::super::Printer;
use crate::nest::stmt::Scanning;

impl Printer<'_> {
    /// The call, on half as many lanes where the numbers are wide.
    pub(in crate::text) fn scan(&mut self, scanning: &Scanning) {
        let Scanning { op, dtype, to, to_at, from, from_at, count, running } = scanning;
        let Some(function) = self.lanes.scan(*op, *dtype, &mut self.helpers) else { return };
        let [to, from] = [(to, to_at), (from, from_at)].map(|(array, at)| self.element_of(*array, at));
        let (count, before) = (self.expr(count), self.expr(running));
        let start = self.text.len();
        self.line(&format!("{before} = {function}({to}, {from}, {count}, {before});"));
        self.halve(start);
    }
}
