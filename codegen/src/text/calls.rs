//! Statements that are a call of a helper.

use super::Printer;
use crate::DType;
use crate::intrinsics;
use crate::nest::Parameter;
use crate::nest::stmt::{
    BulkStep, Expr, Lines, ProductStep, SortBy, Sorting, Stmt, TileProduct, Turning, Type,
};
use crate::nest::variable::Local;

impl Printer<'_> {
    /// The call that a statement is; `None` if it is another one.
    pub(super) fn call(&mut self, stmt: &Stmt) -> Option<String> {
        Some(match stmt {
            Stmt::MultiplyTile(tile) => self.multiply_tile(tile),
            Stmt::Turn(turning) => {
                let Turning { dtype, to, to_at, to_row, from, from_at, from_row, depth, rows } = &**turning;
                let (to, from) = (self.element_of(*to, to_at), self.element_of(*from, from_at));
                let (steps, depth) = ([to_row, from_row].map(|row| row.to_string()), self.expr(depth));
                let count = rows.as_ref().map(|rows| self.expr(rows));
                let mut arguments = vec![&*to, &*steps[0], &*from, &*steps[1]];
                arguments.extend(count.as_deref());
                arguments.push(&depth);
                intrinsics::turn(*dtype, rows.is_some(), &arguments, &mut self.helpers)
            }
            Stmt::Pair(pairing) => {
                let array = self.element_of(pairing.array, &pairing.at);
                let [depth, count] = [&pairing.depth, &pairing.count].map(|expr| self.expr(expr));
                let arguments = [array, pairing.row.to_string(), depth, count];
                let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
                intrinsics::pair(pairing.along, &arguments, &mut self.helpers)
            }
            Stmt::Sort(sorting) => self.sort(sorting),
            Stmt::LoadMatrices { parts, at, shared, index, turns, .. } => {
                let (parts, row) = (self.element_of(*parts, at), self.element_of(*shared, index));
                intrinsics::load_matrices(&parts, &row, *turns, &mut self.helpers)
            }
            Stmt::BeginCopy(copying) => {
                let to = self.element_of(copying.shared, &copying.at);
                let from = self.element_of(copying.buffer, &copying.index);
                let bytes = copying.width * copying.dtype.size() as u64;
                let condition = copying.condition.as_ref().map(|condition| self.expr(condition));
                let condition = condition.as_deref().unwrap_or("true");
                intrinsics::begin_copy(bytes, [&to, &from, condition], &mut self.helpers)
            }
            Stmt::Bulk(step) => self.bulk(step),
            Stmt::CommitCopies => intrinsics::commit_copies(&mut self.helpers),
            Stmt::AwaitCopies { but } => intrinsics::await_copies(*but, &mut self.helpers),
            Stmt::MultiplyMatrices(product) => {
                let sums = self.element_of(product.sums, &product.sums_at);
                let left = self.element_of(product.left, &product.left_at);
                let left = match self.local(product.left).map(|local| local.ty) {
                    Some(Type::Memory(_)) => format!("(const unsigned*)({left})"),
                    _ => left,
                };
                let right = self.element_of(product.right, &product.right_at);
                let arguments = [&sums, &left, &right].map(String::as_str);
                intrinsics::multiply_matrices(product.dtype, &arguments, &mut self.helpers)
            }
            Stmt::MultiplyGroup(product) => {
                let sums = self.element_of(product.sums, &product.sums_at);
                let [left, right] =
                    [&product.left, &product.right].map(|factor| self.element_of(factor.array, &factor.at));
                let left = match product.left.lines {
                    Lines::Own => format!("(const unsigned*)({left})"),
                    Lines::Along | Lines::Turned => left,
                };
                let lines = [product.left.lines, product.right.lines];
                let arguments = [&sums, &left, &right].map(String::as_str);
                intrinsics::multiply_group(
                    product.columns,
                    product.dtype,
                    lines,
                    &arguments,
                    &mut self.helpers,
                )
            }
            Stmt::Products(step) => match step {
                ProductStep::Publish => intrinsics::products("publish", &mut self.helpers),
                ProductStep::Begin => intrinsics::products("begin", &mut self.helpers),
                ProductStep::Commit => intrinsics::products("commit", &mut self.helpers),
                ProductStep::Await(but) => {
                    intrinsics::products(&format!("await_but_{but}"), &mut self.helpers)
                }
            },
            _ => return None,
        })
    }

    fn bulk(&mut self, step: &BulkStep) -> String {
        match step {
            BulkStep::Expect { arrived, slots, copies } => {
                let arguments = [self.name(*arrived), slots.to_string(), copies.to_string()];
                intrinsics::tiles("expect", &arguments.each_ref().map(String::as_str), &mut self.helpers)
            }
            BulkStep::Begin(copy) => {
                let map = Parameter::Map(copy.map as usize);
                let bytes = self.nest.maps[copy.map as usize].tile_elements() * 2;
                let to = self.element_of(copy.shared, &copy.at);
                let mut arguments = vec![to, format!("&{}", self.name(map.into()))];
                arguments.extend(copy.positions.iter().map(|position| self.expr(position)));
                arguments.push(self.element_of(copy.arrived, &copy.slot));
                arguments.push(format!("{bytes}u"));
                let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
                intrinsics::begin_tile(copy.positions.len(), &arguments, &mut self.helpers)
            }
            BulkStep::Await(of) => {
                let arguments = [self.element_of(of.arrived, &of.slot), self.expr(&of.round)];
                intrinsics::tiles("await", &arguments.each_ref().map(String::as_str), &mut self.helpers)
            }
        }
    }

    fn multiply_tile(&mut self, tile: &TileProduct) -> String {
        let right = self.element_of(tile.right, &tile.right_at);
        let sums = self.element_of(tile.sums, &tile.sums_at);
        let rows = [tile.left_row, tile.left_term, tile.right_row, tile.sums_row].map(|row| row.to_string());
        let [depth, width, adds] = [&tile.depth, &tile.width, &tile.adds].map(|expr| self.expr(expr));
        let left = match tile.left_at {
            Expr::Int(0) => self.name(tile.left).to_string(),
            _ => self.element_of(tile.left, &tile.left_at),
        };
        let count = tile.rows.as_ref().map(|count| self.expr(count)).unwrap_or_default();
        if tile.few {
            let arguments =
                [&left, &rows[0], &count, &right, &rows[2], &sums, &rows[3], &depth, &width, &adds];
            let arguments = arguments.map(String::as_str);
            return intrinsics::multiply_few(tile.dtype, tile.lines, &arguments, &mut self.helpers);
        }
        let is_packed = |local: &Local| local.ty != Type::Memory(DType::BF16);
        if tile.dtype == DType::BF16 && !self.local(tile.left).is_some_and(is_packed) {
            let arguments =
                [&left, &rows[0], &count, &right, &rows[2], &sums, &rows[3], &depth, &width, &adds];
            return intrinsics::multiply_lines(&arguments.map(String::as_str), &mut self.helpers);
        }
        let mut arguments = vec![&left, &rows[0], &rows[1]];
        arguments.extend(tile.rows.is_some().then_some(&count));
        arguments.extend([&right, &rows[2], &sums, &rows[3], &depth, &width, &adds]);
        let streams = u8::from(tile.streams).to_string();
        arguments.extend((tile.dtype != DType::BF16).then_some(&streams));
        let arguments: Vec<&str> = arguments.into_iter().map(String::as_str).collect();
        intrinsics::multiply_tile(tile.dtype, &arguments, &mut self.helpers)
    }

    fn sort(&mut self, sorting: &Sorting) -> String {
        let items = self.element_of(sorting.items, &sorting.at);
        let (name, arguments) = match &sorting.by {
            SortBy::Row(row) => {
                let spare = self.element_of(row.spare, &row.spare_at);
                ("row", vec![items, spare, self.expr(&row.count), self.expr(&row.wanted)])
            }
            SortBy::Lanes { count } => ("lanes", vec![items, self.expr(count)]),
            SortBy::Block { items: all, length, threads } => {
                let numbers = [all, length, threads].map(|number| format!("{number}u"));
                ("block", [items].into_iter().chain(numbers).collect())
            }
        };
        intrinsics::sort(self.language, name, sorting.wide, &arguments, &mut self.helpers)
    }
}
