//! How many registers a thread needs: an estimate from the loop nest, before any compiler has seen it.

use std::collections::BTreeMap;

use super::stmt::{Expr, Step, Stmt, Type};
use super::variable::{Local, Space, Var};
use super::{Function, Nest};
use crate::index::IndexExpr;
use crate::ir::Kernel;

/// For addresses and what an expression needs on the way.
const BASE: u64 = 12;

/// Longer arrays cannot be in registers.
const LONGEST_ARRAY: u64 = 256;

impl Nest {
    /// The most 32-bit registers that values take at once, of all functions: variables from their definition to their
    /// last use, and a few for addresses. What the compiler really takes depends on how it orders and unrolls.
    pub(crate) fn register_estimate(&self) -> u32 {
        let of = |function: &Function| {
            let mut traversal = Traversal {
                kernel: &self.kernel,
                locals: &function.body.locals,
                wide: self.wide_index,
                live: BTreeMap::new(),
                most: 0,
            };
            traversal.backwards(&function.body.statements);
            traversal.most + BASE
        };
        self.functions.iter().map(of).max().unwrap_or(0).min(u64::from(u32::MAX)) as u32
    }
}

/// A traversal from the last statement to the first.
struct Traversal<'a> {
    kernel: &'a Kernel,
    locals: &'a [Local],
    wide: bool,
    /// What is used further on: the registers where the definition has been seen, which comes later in this traversal.
    live: BTreeMap<Var, u64>,
    most: u64,
}

impl Traversal<'_> {
    fn backwards(&mut self, body: &[Stmt]) {
        let sizes = self.sizes(body);
        for stmt in body.iter().rev() {
            match stmt {
                Stmt::Let { var, .. } | Stmt::Declare { var, .. } => {
                    self.live.remove(var);
                    self.uses_all(stmt, &sizes);
                }
                Stmt::For { var: name, from, to, step, body, .. } => {
                    // What the body uses of outside is live all through it.
                    let mut inner = Traversal { live: BTreeMap::new(), most: 0, ..*self };
                    inner.live.insert(*name, 1);
                    inner.backwards(body);
                    inner.live.remove(name);
                    for &outside in inner.live.keys() {
                        self.lives(outside, &sizes);
                    }
                    self.uses(to, &sizes);
                    if let Step::Add(step) = step {
                        self.uses(step, &sizes);
                    }
                    let around: u64 = self.live.values().sum();
                    let twice: u64 = inner.live.values().sum();
                    self.most = self.most.max(around + inner.most.saturating_sub(twice));
                    self.uses(from, &sizes);
                }
                Stmt::If { condition, then, otherwise } => {
                    for branch in [then, otherwise] {
                        let mut inner = Traversal { live: self.live.clone(), most: self.most, ..*self };
                        inner.backwards(branch);
                        self.most = inner.most;
                        for name in inner.live.into_keys() {
                            self.lives(name, &sizes);
                        }
                    }
                    self.uses(condition, &sizes);
                }
                Stmt::VectorLoad { array, .. } | Stmt::VectorStore { array, .. } => {
                    self.lives(*array, &sizes);
                    self.uses_all(stmt, &sizes);
                }
                Stmt::Block(body) | Stmt::InTurns { body, .. } => {
                    self.backwards(body);
                    self.uses_all(stmt, &sizes);
                }
                Stmt::LoadMatrices { parts, .. } => {
                    self.lives(*parts, &sizes);
                    self.uses_all(stmt, &sizes);
                }
                Stmt::MultiplyMatrices(product) => {
                    let vars = [product.left, product.right, product.sums];
                    vars.into_iter().for_each(|var| self.lives(var, &sizes));
                    self.uses_all(stmt, &sizes);
                }
                Stmt::MultiplyGroup(product) => {
                    self.lives(product.sums, &sizes);
                    self.uses_all(stmt, &sizes);
                }
                Stmt::Assign { .. }
                | Stmt::Add { .. }
                | Stmt::Arrive { .. }
                | Stmt::MultiplyTile(_)
                | Stmt::Turn(_)
                | Stmt::Pair(_)
                | Stmt::Scan(_)
                | Stmt::Sort(_)
                | Stmt::Positions { .. }
                | Stmt::Buffers { .. }
                | Stmt::Part { .. }
                | Stmt::Prefetch { .. }
                | Stmt::BeginCopy(_)
                | Stmt::Bulk(_)
                | Stmt::CommitCopies
                | Stmt::AwaitCopies { .. }
                | Stmt::Products(_)
                | Stmt::Barrier
                | Stmt::Return => {
                    self.uses_all(stmt, &sizes);
                }
            }
            self.most = self.most.max(self.live.values().sum());
        }
    }

    /// The registers of what the statements define.
    fn sizes(&self, body: &[Stmt]) -> BTreeMap<Var, u64> {
        let defined = body.iter().filter_map(|stmt| match stmt {
            Stmt::Let { var, .. } | Stmt::Declare { var, .. } => Some((*var, self.registers(*var))),
            _ => None,
        });
        defined.collect()
    }

    fn registers(&self, var: Var) -> u64 {
        let index = 1 + u64::from(self.wide);
        let Var::Local(id) = var else { return index };
        let Local { ty, len, space, .. } = &self.locals[id.index()];
        let each = match ty {
            Type::Index => index,
            Type::Register(dtype) => dtype.compute().size().div_ceil(4) as u64,
            Type::Memory(_) => 1,
        };
        match (space, len) {
            (Space::Shared(_) | Space::Launch(_), _) => 0,
            (_, None) => each,
            (_, Some(len)) if *len > LONGEST_ARRAY => 0,
            (_, Some(len)) => match ty {
                Type::Memory(dtype) => (len * dtype.size() as u64).div_ceil(4),
                Type::Index | Type::Register(_) => len * each,
            },
        }
    }

    /// A variable that is used: what is defined here takes its registers; of what is defined further out, the traversal there
    /// knows them, and here it counts as one.
    fn lives(&mut self, var: Var, sizes: &BTreeMap<Var, u64>) {
        let own = sizes.get(&var).copied();
        let entry = self.live.entry(var).or_insert(1);
        if let Some(own) = own {
            *entry = own;
        }
    }

    fn uses_all(&mut self, stmt: &Stmt, sizes: &BTreeMap<Var, u64>) {
        stmt.expressions().into_iter().for_each(|expr| self.uses(expr, sizes));
    }

    fn uses(&mut self, expr: &Expr, sizes: &BTreeMap<Var, u64>) {
        match expr {
            Expr::Name(var) => self.lives(*var, sizes),
            Expr::Index(index) | Expr::Position(index) | Expr::Random { index, .. } => {
                self.uses_index(index, sizes);
            }
            Expr::InBounds(bounds) => bounds.iter().for_each(|bound| self.uses_index(&bound.expr, sizes)),
            // Buffers and shared arrays take none, and are not defined here.
            Expr::Element(array, _) if sizes.contains_key(array) => self.lives(*array, sizes),
            Expr::Element(array, _) => {
                self.live.entry(*array).or_insert(0);
            }
            _ => {}
        }
        expr.operands().into_iter().for_each(|operand| self.uses(operand, sizes));
    }

    fn uses_index(&mut self, index: &IndexExpr, sizes: &BTreeMap<Var, u64>) {
        for axis in index.axes() {
            self.lives(self.kernel.position(axis), sizes);
        }
    }
}
