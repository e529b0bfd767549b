//! What statements and expressions are made of, said once: whoever looks at a nest or changes it goes by this.

use smallvec::SmallVec;

use super::stmt::{
    BulkCopy, BulkRound, BulkStep, Copying, Expr, GroupProduct, MatrixProduct, Pairing, Scanning, SortBy,
    SortedRow, Sorting, Step, Stmt, TileProduct, Turning,
};
use super::variable::Var;

/// The parts of expressions and statements, to look at and to change.
macro_rules! parts {
    ($operands:ident, $var:ident, $expressions:ident, $vars:ident, $bodies:ident, $($mutable:tt)?) => {
        impl Expr {
            /// The expressions that it is made of.
            pub fn $operands(&$($mutable)? self) -> SmallVec<[&$($mutable)? Expr; 3]> {
                let mut parts: SmallVec<[&$($mutable)? Expr; 3]> = SmallVec::new();
                match self {
                    Expr::Name(_)
                    | Expr::Int(_)
                    | Expr::Index(_)
                    | Expr::Builtin(_)
                    | Expr::Literal(_)
                    | Expr::Position(_)
                    | Expr::InBounds(_)
                    | Expr::Random { .. } => {}
                    Expr::Wide(a)
                    | Expr::ToIndex(a)
                    | Expr::Unary(_, _, a)
                    | Expr::BriefExp(a)
                    | Expr::ZeroTimes(_, a, _)
                    | Expr::Cast { operand: a, .. }
                    | Expr::Element(_, a)
                    | Expr::FromMemory(_, a)
                    | Expr::ToMemory(_, a)
                    | Expr::Votes(a)
                    | Expr::VotesBefore(a) => parts.push(a),
                    Expr::Arithmetic(_, a, b)
                    | Expr::Binary(_, _, a, b)
                    | Expr::Checked { position: a, extent: b, .. }
                    | Expr::ShuffleUp { value: a, delta: b }
                    | Expr::ShuffleXor { value: a, mask: b, .. } => {
                        parts.push(a);
                        parts.push(b);
                    }
                    Expr::Sort { operands, .. } => {
                        let [a, b] = &$($mutable)? **operands;
                        parts.push(a);
                        parts.push(b);
                    }
                    Expr::Quotient(_, operands) => parts.extend(&$($mutable)? **operands),
                    Expr::MulAdd(_, operands) => parts.extend(&$($mutable)? **operands),
                    Expr::Select(condition, a, b) => {
                        parts.push(condition);
                        parts.push(a);
                        parts.push(b);
                    }
                }
                parts
            }

            /// The variable, array or parameter that it reads itself.
            pub fn $var(&$($mutable)? self) -> Option<&$($mutable)? Var> {
                match self {
                    Expr::Name(var) | Expr::Element(var, _) | Expr::Random { seed: var, .. } => Some(var),
                    _ => None,
                }
            }
        }

        impl Stmt {
            /// Its own expressions, none of its bodies'.
            pub fn $expressions(&$($mutable)? self) -> SmallVec<[&$($mutable)? Expr; 3]> {
                let mut parts: SmallVec<[&$($mutable)? Expr; 3]> = SmallVec::new();
                match self {
                    Stmt::Let { value: a, .. }
                    | Stmt::Declare { init: Some(a), .. }
                    | Stmt::Part { number: a, .. }
                    | Stmt::Prefetch { index: a, .. }
                    | Stmt::If { condition: a, .. } => parts.push(a),
                    Stmt::Assign { target: a, value: b }
                    | Stmt::Add { target: a, value: b, .. }
                    | Stmt::VectorLoad { at: a, index: b, .. }
                    | Stmt::VectorStore { at: a, index: b, .. }
                    | Stmt::LoadMatrices { at: a, index: b, .. }
                    | Stmt::InTurns { key: a, active: b, .. }
                    | Stmt::Arrive { index: a, count: b, .. } => {
                        parts.push(a);
                        parts.push(b);
                    }
                    Stmt::MultiplyTile(tile) => {
                        let TileProduct { left_at, right_at, sums_at, depth, width, adds, rows, .. } =
                            &$($mutable)? **tile;
                        parts.extend([left_at, right_at, sums_at, depth, width, adds]);
                        parts.extend(rows);
                    }
                    Stmt::Pair(pairing) => {
                        let Pairing { at, depth, count, .. } = &$($mutable)? **pairing;
                        parts.extend([at, depth, count]);
                    }
                    Stmt::Turn(turning) => {
                        let Turning { to_at, from_at, depth, rows, .. } = &$($mutable)? **turning;
                        parts.extend([to_at, from_at, depth]);
                        parts.extend(rows);
                    }
                    Stmt::Scan(scanning) => {
                        let Scanning { to_at, from_at, count, running, .. } = &$($mutable)? **scanning;
                        parts.extend([to_at, from_at, count, running]);
                    }
                    Stmt::Sort(sorting) => {
                        let Sorting { at, by, .. } = &$($mutable)? **sorting;
                        parts.push(at);
                        match by {
                            SortBy::Row(row) => {
                                let SortedRow { spare_at, count, wanted, .. } = &$($mutable)? **row;
                                parts.extend([spare_at, count, wanted]);
                            }
                            SortBy::Lanes { count } => parts.push(count),
                            SortBy::Block { .. } => {}
                        }
                    }
                    Stmt::BeginCopy(copying) => {
                        let Copying { at, index, condition, .. } = &$($mutable)? **copying;
                        parts.extend([at, index]);
                        parts.extend(condition);
                    }
                    Stmt::Bulk(BulkStep::Begin(copy)) => {
                        let BulkCopy { positions, at, slot, .. } = &$($mutable)? **copy;
                        parts.extend(positions);
                        parts.extend([at, slot]);
                    }
                    Stmt::Bulk(BulkStep::Await(of)) => {
                        let BulkRound { slot, round, .. } = &$($mutable)? **of;
                        parts.extend([slot, round]);
                    }
                    Stmt::MultiplyMatrices(product) => {
                        let MatrixProduct { left_at, right_at, sums_at, .. } = &$($mutable)? **product;
                        parts.extend([left_at, right_at, sums_at]);
                    }
                    Stmt::MultiplyGroup(product) => {
                        let GroupProduct { left, right, sums_at, .. } = &$($mutable)? **product;
                        parts.extend([&$($mutable)? left.at, &$($mutable)? right.at, sums_at]);
                    }
                    Stmt::For { from, to, step, .. } => {
                        parts.push(from);
                        parts.push(to);
                        if let Step::Add(step) = step {
                            parts.push(step);
                        }
                    }
                    Stmt::Declare { init: None, .. }
                    | Stmt::Positions { .. }
                    | Stmt::Buffers { .. }
                    | Stmt::Block(_)
                    | Stmt::CommitCopies
                    | Stmt::AwaitCopies { .. }
                    | Stmt::Bulk(BulkStep::Expect { .. })
                    | Stmt::Products(_)
                    | Stmt::Barrier
                    | Stmt::Return => {}
                }
                parts
            }

            /// The arrays and buffers that it uses by itself.
            pub fn $vars(&$($mutable)? self) -> SmallVec<[&$($mutable)? Var; 2]> {
                let mut parts: SmallVec<[&$($mutable)? Var; 2]> = SmallVec::new();
                match self {
                    Stmt::VectorLoad { array, buffer, .. }
                    | Stmt::VectorStore { array, buffer, .. } => {
                        parts.push(array);
                        parts.push(buffer);
                    }
                    Stmt::Arrive { counters, .. } => parts.push(counters),
                    Stmt::Buffers { buffers, .. } => parts.extend(buffers),
                    Stmt::Part { table, .. } => parts.push(table),
                    Stmt::Prefetch { buffer, .. } => parts.push(buffer),
                    Stmt::LoadMatrices { parts: a, shared: b, .. } => {
                        parts.push(a);
                        parts.push(b);
                    }
                    Stmt::BeginCopy(copying) => {
                        let Copying { shared, buffer, .. } = &$($mutable)? **copying;
                        parts.extend([shared, buffer]);
                    }
                    Stmt::Bulk(BulkStep::Begin(copy)) => {
                        let BulkCopy { shared, arrived, .. } = &$($mutable)? **copy;
                        parts.extend([shared, arrived]);
                    }
                    Stmt::Bulk(BulkStep::Expect { arrived, .. }) => parts.push(arrived),
                    Stmt::Bulk(BulkStep::Await(of)) => parts.push(&$($mutable)? of.arrived),
                    Stmt::MultiplyMatrices(product) => {
                        let MatrixProduct { left, right, sums, .. } = &$($mutable)? **product;
                        parts.extend([left, right, sums]);
                    }
                    Stmt::MultiplyGroup(product) => {
                        let GroupProduct { left, right, sums, .. } = &$($mutable)? **product;
                        parts.extend([&$($mutable)? left.array, &$($mutable)? right.array, sums]);
                    }
                    Stmt::MultiplyTile(tile) => {
                        let TileProduct { left, right, sums, .. } = &$($mutable)? **tile;
                        parts.extend([left, right, sums]);
                    }
                    Stmt::Pair(pairing) => parts.push(&$($mutable)? pairing.array),
                    Stmt::Turn(turning) => {
                        let Turning { to, from, .. } = &$($mutable)? **turning;
                        parts.extend([to, from]);
                    }
                    Stmt::Scan(scanning) => {
                        let Scanning { to, from, .. } = &$($mutable)? **scanning;
                        parts.extend([to, from]);
                    }
                    Stmt::Sort(sorting) => {
                        let Sorting { items, by, .. } = &$($mutable)? **sorting;
                        parts.push(items);
                        if let SortBy::Row(row) = by {
                            parts.push(&$($mutable)? row.spare);
                        }
                    }
                    _ => {}
                }
                parts
            }

            /// The statements in it: of a loop its body, of a choice both.
            pub fn $bodies(&$($mutable)? self) -> SmallVec<[&$($mutable)? Vec<Stmt>; 2]> {
                let mut parts: SmallVec<[&$($mutable)? Vec<Stmt>; 2]> = SmallVec::new();
                match self {
                    Stmt::For { body, .. } | Stmt::InTurns { body, .. } | Stmt::Block(body) => parts.push(body),
                    Stmt::If { then, otherwise, .. } => {
                        parts.push(then);
                        parts.push(otherwise);
                    }
                    _ => {}
                }
                parts
            }
        }
    };
}
parts!(operands, var, expressions, vars, bodies,);
parts!(operands_mut, var_mut, expressions_mut, vars_mut, bodies_mut, mut);

impl Stmt {
    /// The variable that is there from here on, in the rest of the statements beside this one.
    pub fn definition_mut(&mut self) -> Option<&mut Var> {
        match self {
            Stmt::Let { var, .. }
            | Stmt::Declare { var, .. }
            | Stmt::Positions { table: var, .. }
            | Stmt::Buffers { table: var, .. }
            | Stmt::Part { part: var, .. } => Some(var),
            _ => None,
        }
    }
}

impl Expr {
    /// Shows `see` the expression and all that it is made of, from the outside in.
    pub fn visit(&self, see: &mut dyn FnMut(&Expr)) {
        see(self);
        self.operands().into_iter().for_each(|operand| operand.visit(see));
    }

    /// Lets `change` change the expression and all that it is made of, from the outside in.
    pub fn change(&mut self, change: &mut dyn FnMut(&mut Expr)) {
        change(self);
        self.operands_mut().into_iter().for_each(|operand| operand.change(change));
    }
}
