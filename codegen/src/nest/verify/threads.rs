//! What threads do together: barriers and exchanges are where all of them come, and shared memory is read once it is
//! written, with a barrier between.

use std::collections::BTreeMap;

use super::error::{NestError, name};
use crate::nest::stmt::{Arithmetic, Builtin, BulkStep, Expr, SortBy, Step, Stmt};
use crate::nest::variable::{Space, Var};
use crate::nest::{Function, Nest};

/// Among whom a value, or whether a statement is reached, may differ.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Differs {
    /// Only among blocks.
    Blocks,
    /// Among the warps of a block.
    Warps,
    /// Among the threads of a warp.
    Threads,
}
use Differs::{Blocks, Threads, Warps};

/// Threads of a warp.
const WARP: u32 = 32;

pub(super) fn check(nest: &Nest, function: &Function) -> Result<(), NestError> {
    // A core's function has no threads.
    if function.launch.block == [1, 1, 1] {
        return Ok(());
    }
    let mut traversal = Traversal {
        nest,
        function,
        differs: BTreeMap::new(),
        turns: BTreeMap::new(),
        grew: true,
        arrays: BTreeMap::new(),
        ended: Blocks,
    };
    // What differs in one round of a loop may make more differ in the next: until nothing does.
    while std::mem::take(&mut traversal.grew) {
        traversal.arrays.clear();
        traversal.ended = Blocks;
        let found = traversal.statements(&function.body.statements, Blocks);
        if !traversal.grew {
            found?;
        }
    }
    Ok(())
}

/// What has happened to a shared array.
#[derive(Clone, Default)]
struct Shared {
    /// Something was written before the last barrier.
    is_written: bool,
    /// Where it was written and read since: a thread may go on with its own elements.
    writes: Vec<Expr>,
    reads: Vec<Expr>,
    /// Copies to it have begun, and nobody has waited for any since.
    is_awaited: Option<bool>,
    /// Those are whole tiles, which are there for all who have waited.
    has_tiles: bool,
}

/// `(var + ahead) % parts`.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Turn {
    var: Var,
    ahead: u64,
    parts: u64,
}

impl Turn {
    fn of(expr: &Expr) -> Option<Turn> {
        let Expr::Arithmetic(Arithmetic::Rem, count, parts) = expr else { return None };
        let Expr::Int(parts @ 1..) = **parts else { return None };
        match &**count {
            Expr::Name(var) => Some(Turn { var: *var, ahead: 0, parts }),
            Expr::Arithmetic(Arithmetic::Add, var, ahead) => match (&**var, &**ahead) {
                (Expr::Name(var), Expr::Int(ahead)) => Some(Turn { var: *var, ahead: ahead % parts, parts }),
                _ => None,
            },
            _ => None,
        }
    }

    fn differs(self, other: Turn) -> bool {
        (self.var, self.parts) == (other.var, other.parts) && self.ahead != other.ahead
    }
}

struct Traversal<'a> {
    nest: &'a Nest,
    function: &'a Function,
    /// Of each variable so far.
    differs: BTreeMap<Var, Differs>,
    /// The variables that count in turns, which say whose turn a part of an array is.
    turns: BTreeMap<Var, Turn>,
    grew: bool,
    arrays: BTreeMap<Var, Shared>,
    /// Among whom it may differ whether they are still there.
    ended: Differs,
}

impl Traversal<'_> {
    fn statements(&mut self, statements: &[Stmt], reached: Differs) -> Result<(), NestError> {
        let mut outside = Vec::new();
        for stmt in statements {
            if let Stmt::Let { var, .. } = stmt {
                outside.push((*var, self.differs.get(var).copied()));
            }
            self.statement(stmt, reached.max(self.ended))?;
        }
        // What a constant of the same name is where this one ends.
        for (var, before) in outside.into_iter().rev() {
            match before {
                Some(before) => self.differs.insert(var, before),
                None => self.differs.remove(&var),
            };
        }
        Ok(())
    }

    fn statement(&mut self, stmt: &Stmt, reached: Differs) -> Result<(), NestError> {
        for expr in stmt.expressions() {
            self.exchanges(expr, reached)?;
        }
        match stmt {
            Stmt::Let { var, value } | Stmt::Declare { var, init: Some(value) } => {
                self.defines(*var, value, matches!(stmt, Stmt::Let { .. }))?;
            }
            Stmt::Declare { .. } | Stmt::Block(_) => {}
            Stmt::Assign { target, value } => {
                self.reads(value)?;
                if let Expr::Name(var) | Expr::Element(var, _) = target {
                    self.grow(*var, self.of(value).max(reached));
                }
                if let Expr::Element(array, at) = target {
                    self.reads(at)?;
                    self.writes(*array, at)?;
                }
            }
            Stmt::For { .. } => return self.rounds(stmt, reached),
            Stmt::If { condition, then, otherwise } => {
                self.reads(condition)?;
                let chosen = self.of(condition).max(reached);
                self.statements(then, chosen)?;
                return self.statements(otherwise, chosen);
            }
            Stmt::VectorLoad { array, at, buffer: source, index, .. }
            | Stmt::VectorStore { array: source, at: index, buffer: array, index: at, .. } => {
                self.read(*source, index)?;
                self.writes(*array, at)?;
                self.grow(*array, self.of(index).max(reached));
            }
            Stmt::InTurns { key, active, body } => {
                self.reads(key)?;
                self.reads(active)?;
                by_warps("turns of a warp", reached)?;
                return self.statements(body, Threads);
            }
            Stmt::LoadMatrices { parts, shared, index, .. } => {
                by_warps("matrices of a warp", reached)?;
                self.read(*shared, index)?;
                self.grow(*parts, Threads);
            }
            Stmt::BeginCopy(copying) => {
                self.read(copying.buffer, &copying.index)?;
                self.writes(copying.shared, &copying.at)?;
                self.arrays.entry(copying.shared).or_default().is_awaited.get_or_insert(false);
            }
            // One thread begins them; they are there for whoever waits.
            Stmt::Bulk(BulkStep::Begin(copy)) => {
                self.writes(copy.shared, &copy.at)?;
                let shared = self.arrays.entry(copy.shared).or_default();
                shared.is_awaited.get_or_insert(false);
                shared.has_tiles = true;
            }
            Stmt::Bulk(BulkStep::Await(_)) => {
                self.awaited();
                for shared in self.arrays.values_mut().filter(|shared| shared.has_tiles) {
                    shared.is_written |= !shared.writes.is_empty();
                    shared.writes.clear();
                }
            }
            Stmt::Bulk(BulkStep::Expect { .. }) => {}
            Stmt::CommitCopies => {}
            Stmt::AwaitCopies { .. } => self.awaited(),
            Stmt::MultiplyMatrices(product) => {
                by_warps("matrices of a warp", reached)?;
                self.grow(product.sums, Threads);
            }
            Stmt::MultiplyGroup(product) => {
                by_warps("products of a group of warps", reached)?;
                for factor in [&product.left, &product.right] {
                    self.read(factor.array, &factor.at)?;
                }
                self.grow(product.sums, Threads);
            }
            Stmt::Products(_) => by_warps("products of a group of warps", reached)?,
            // A core's.
            Stmt::MultiplyTile(_)
            | Stmt::Turn(_)
            | Stmt::Pair(_)
            | Stmt::Scan(_)
            | Stmt::Positions { .. }
            | Stmt::Buffers { .. }
            | Stmt::Part { .. }
            | Stmt::Prefetch { .. } => {}
            Stmt::Add { target, value, .. } => {
                self.reads(target)?;
                self.reads(value)?;
            }
            Stmt::Sort(sorting) if !matches!(sorting.by, SortBy::Block { .. }) => {}
            Stmt::Barrier | Stmt::Arrive { .. } | Stmt::Sort(_) => self.barrier(reached)?,
            Stmt::Return => self.ended = self.ended.max(reached),
        }
        stmt.bodies().into_iter().try_for_each(|body| self.statements(body, reached))
    }

    fn awaited(&mut self) {
        let copies = self.arrays.values_mut().filter_map(|shared| shared.is_awaited.as_mut());
        copies.for_each(|own| *own = true);
    }

    fn defines(&mut self, var: Var, value: &Expr, is_constant: bool) -> Result<(), NestError> {
        self.reads(value)?;
        match is_constant {
            true => drop(self.differs.insert(var, self.of(value))),
            false => self.grow(var, self.of(value)),
        }
        match Turn::of(value) {
            Some(turn) => drop(self.turns.insert(var, turn)),
            None => drop(self.turns.remove(&var)),
        }
        Ok(())
    }

    fn rounds(&mut self, stmt: &Stmt, reached: Differs) -> Result<(), NestError> {
        let Stmt::For { var, from, to, step, body, .. } = stmt else { return Ok(()) };
        self.reads(from)?;
        self.reads(to)?;
        let step = match step {
            Step::Add(step) => self.of(step),
            Step::Halve => Blocks,
        };
        self.grow(*var, self.of(from).max(step));
        let rounds = self.of(from).max(self.of(to)).max(step).max(reached);
        // Twice, because what comes after a barrier meets what comes before it in the next round.
        if body.iter().any(has_barrier) {
            self.statements(body, rounds)?;
        }
        self.statements(body, rounds)
    }

    fn barrier(&mut self, reached: Differs) -> Result<(), NestError> {
        if reached > Blocks {
            return Err(NestError::Divergent("a barrier"));
        }
        for shared in self.arrays.values_mut() {
            shared.is_written |= !shared.writes.is_empty();
            (shared.writes, shared.reads) = (Vec::new(), Vec::new());
        }
        Ok(())
    }

    /// All threads find the same at one place of a memory that they share.
    fn grow(&mut self, var: Var, differs: Differs) {
        if matches!(var, Var::Parameter(_)) || matches!(self.space(var), Some(Space::Shared(_))) {
            return;
        }
        let known = self.differs.entry(var).or_insert(Blocks);
        if differs > *known {
            *known = differs;
            self.grew = true;
        }
    }

    /// Among whom a value may differ.
    fn of(&self, expr: &Expr) -> Differs {
        let [width, height, _] = self.function.launch.block;
        let own = match expr {
            Expr::Builtin(Builtin::ThreadX) if width > 1 => Threads,
            Expr::Builtin(Builtin::ThreadY) if height > 1 && width % WARP == 0 => Warps,
            Expr::Builtin(Builtin::ThreadY) if height > 1 => Threads,
            Expr::Arithmetic(Arithmetic::Div, a, b) => match (&**a, &**b) {
                (Expr::Builtin(Builtin::ThreadX), Expr::Int(by)) if by % u64::from(WARP) == 0 => {
                    return Warps;
                }
                _ => Blocks,
            },
            Expr::Votes(_) => return Warps,
            Expr::VotesBefore(_) | Expr::ShuffleUp { .. } => Threads,
            Expr::Index(index) | Expr::Position(index) | Expr::Random { index, .. } => {
                self.of_axes(index.axes())
            }
            Expr::InBounds(bounds) => self.of_axes(bounds.iter().flat_map(|bound| bound.expr.axes())),
            _ => Blocks,
        };
        let var = expr.var().and_then(|var| self.differs.get(var)).copied().unwrap_or(Blocks);
        expr.operands().into_iter().fold(own.max(var), |most, operand| most.max(self.of(operand)))
    }

    fn of_axes(&self, axes: impl IntoIterator<Item = crate::index::AxisId>) -> Differs {
        let of = |axis| self.differs.get(&self.nest.kernel.position(axis)).copied().unwrap_or(Blocks);
        axes.into_iter().map(of).max().unwrap_or(Blocks)
    }

    /// Exchanges among the lanes of a warp need all of them.
    fn exchanges(&self, expr: &Expr, reached: Differs) -> Result<(), NestError> {
        let is_exchange = matches!(
            expr,
            Expr::Votes(_) | Expr::VotesBefore(_) | Expr::ShuffleUp { .. } | Expr::ShuffleXor { .. }
        );
        if is_exchange && reached > Warps {
            return Err(NestError::Divergent("an exchange of a warp"));
        }
        if let Expr::Select(condition, a, b) = expr {
            self.exchanges(condition, reached)?;
            let chosen = self.of(condition).max(reached);
            return [a, b].into_iter().try_for_each(|operand| self.exchanges(operand, chosen));
        }
        expr.operands().into_iter().try_for_each(|operand| self.exchanges(operand, reached))
    }

    fn reads(&mut self, expr: &Expr) -> Result<(), NestError> {
        if let Expr::Element(array, at) = expr {
            self.read(*array, at)?;
        }
        expr.operands().into_iter().try_for_each(|operand| self.reads(operand))
    }

    fn space(&self, array: Var) -> Option<Space> {
        let Var::Local(id) = array else { return None };
        Some(self.function.body.locals[id.index()].space)
            .filter(|space| matches!(space, Space::Shared(_) | Space::Launch(_)))
    }

    fn read(&mut self, array: Var, at: &Expr) -> Result<(), NestError> {
        let Some(space) = self.space(array) else { return Ok(()) };
        let shared = self.arrays.entry(array).or_default();
        let is_apart = |write: &Expr| write == at || are_apart(&self.turns, write, at);
        let is_own = matches!(space, Space::Launch(_)) || shared.writes.iter().all(is_apart);
        let error: fn(String) -> NestError = match () {
            () if !shared.is_written && shared.writes.is_empty() => NestError::Unwritten,
            () if !is_own => NestError::Unsynchronised,
            () if shared.is_awaited == Some(false) => NestError::Unawaited,
            () => {
                shared.reads.push(at.clone());
                return Ok(());
            }
        };
        Err(error(name(self.nest, self.function, array)))
    }

    fn writes(&mut self, array: Var, at: &Expr) -> Result<(), NestError> {
        let Some(space) = self.space(array) else { return Ok(()) };
        let shared = self.arrays.entry(array).or_default();
        shared.writes.push(at.clone());
        let is_apart = |read: &Expr| read == at || are_apart(&self.turns, read, at);
        match matches!(space, Space::Shared(_)) && !shared.reads.iter().all(is_apart) {
            true => Err(NestError::Unsynchronised(name(self.nest, self.function, array))),
            false => Ok(()),
        }
    }
}

/// Whether two elements are of parts of their array that take different turns: `turn * size + …`.
fn are_apart(turns: &BTreeMap<Var, Turn>, a: &Expr, b: &Expr) -> bool {
    let part = |at: &Expr| {
        let Expr::Arithmetic(Arithmetic::Add, part, _) = at else { return None };
        let Expr::Arithmetic(Arithmetic::Mul, turn, size) = &**part else { return None };
        match (&**turn, &**size) {
            (Expr::Name(turn), Expr::Int(size)) => Some((*turns.get(turn)?, *size)),
            _ => None,
        }
    };
    match (part(a), part(b)) {
        (Some((a, of_a)), Some((b, of_b))) => of_a == of_b && a.differs(b),
        _ => false,
    }
}

fn has_barrier(stmt: &Stmt) -> bool {
    matches!(stmt, Stmt::Barrier | Stmt::Arrive { .. })
        || stmt.bodies().into_iter().any(|body| body.iter().any(has_barrier))
}

/// Refuses what a warp does together where its threads may not all come.
fn by_warps(what: &'static str, reached: Differs) -> Result<(), NestError> {
    if reached > Warps { Err(NestError::Divergent(what)) } else { Ok(()) }
}
