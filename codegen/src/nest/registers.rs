//! How many registers a thread needs: an estimate from the loop nest, before any compiler has seen it.

use std::collections::BTreeMap;

use super::stmt::{Expr, Step, Stmt, Type};
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
            let mut walk =
                Walk { kernel: &self.kernel, wide: self.wide_index, live: BTreeMap::new(), most: 0 };
            walk.backwards(&function.body);
            walk.most + BASE
        };
        self.functions.iter().map(of).max().unwrap_or(0).min(u64::from(u32::MAX)) as u32
    }
}

/// A walk from the last statement to the first.
struct Walk<'a> {
    kernel: &'a Kernel,
    wide: bool,
    /// What is used further on: the registers where the definition has been seen, which comes later in this walk.
    live: BTreeMap<String, u64>,
    most: u64,
}

impl Walk<'_> {
    fn backwards(&mut self, body: &[Stmt]) {
        let sizes = self.sizes(body);
        for stmt in body.iter().rev() {
            match stmt {
                Stmt::Let { name, value, .. } => {
                    self.live.remove(name);
                    self.uses(value, &sizes);
                }
                Stmt::Variable { name, init, .. } => {
                    self.live.remove(name);
                    init.iter().for_each(|init| self.uses(init, &sizes));
                }
                Stmt::Shared { name, .. } | Stmt::LaunchShared { name, .. } => {
                    self.live.remove(name);
                }
                Stmt::Assign { target, value } => {
                    self.uses(target, &sizes);
                    self.uses(value, &sizes);
                }
                Stmt::For { name, from, to, step, body, .. } => {
                    // What the body uses of outside is live all through it.
                    let mut inner = Walk { live: BTreeMap::new(), most: 0, ..*self };
                    inner.live.insert(name.clone(), 1);
                    inner.backwards(body);
                    inner.live.remove(name);
                    for outside in inner.live.keys() {
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
                        let mut inner = Walk { live: self.live.clone(), most: self.most, ..*self };
                        inner.backwards(branch);
                        self.most = inner.most;
                        for name in inner.live.into_keys() {
                            self.lives(&name, &sizes);
                        }
                    }
                    self.uses(condition, &sizes);
                }
                Stmt::VectorLoad { array, at, index, .. } | Stmt::VectorStore { array, at, index, .. } => {
                    self.lives(array, &sizes);
                    self.uses(at, &sizes);
                    self.uses(index, &sizes);
                }
                Stmt::WidenHalves { array, index, count, .. }
                | Stmt::NarrowHalves { array, index, count, .. } => {
                    self.lives(array, &sizes);
                    self.uses(index, &sizes);
                    self.uses(count, &sizes);
                }
                Stmt::Block(body) => self.backwards(body),
                Stmt::InTurns { key, active, body } => {
                    self.backwards(body);
                    self.uses(key, &sizes);
                    self.uses(active, &sizes);
                }
                Stmt::Arrive { index, count } => {
                    self.uses(index, &sizes);
                    self.uses(count, &sizes);
                }
                Stmt::Barrier | Stmt::Return => {}
            }
            self.most = self.most.max(self.live.values().sum());
        }
    }

    /// The registers of what the statements define.
    fn sizes<'b>(&self, body: &'b [Stmt]) -> BTreeMap<&'b str, u64> {
        let registers = |ty: &Type| match ty {
            Type::Index => 1 + u64::from(self.wide),
            Type::Register(dtype) => dtype.compute().size().div_ceil(4) as u64,
            Type::Memory(_) => 1,
        };
        let of = |stmt: &'b Stmt| match stmt {
            Stmt::Let { name, ty, .. } | Stmt::Variable { name, ty, len: None, .. } => {
                Some((name.as_str(), registers(ty)))
            }
            Stmt::Variable { name, ty, len: Some(len), .. } => {
                let bytes = match ty {
                    Type::Memory(dtype) => dtype.size() as u64,
                    Type::Index | Type::Register(_) => 4 * registers(ty),
                };
                Some((name.as_str(), if *len > LONGEST_ARRAY { 0 } else { (len * bytes).div_ceil(4) }))
            }
            Stmt::Shared { name, .. } | Stmt::LaunchShared { name, .. } => Some((name.as_str(), 0)),
            Stmt::Assign { .. }
            | Stmt::For { .. }
            | Stmt::If { .. }
            | Stmt::Block(_)
            | Stmt::InTurns { .. }
            | Stmt::VectorLoad { .. }
            | Stmt::VectorStore { .. }
            | Stmt::WidenHalves { .. }
            | Stmt::NarrowHalves { .. }
            | Stmt::Barrier
            | Stmt::Arrive { .. }
            | Stmt::Return => None,
        };
        body.iter().filter_map(of).collect()
    }

    /// A name that is used: what is defined here takes its registers; of what is defined further out, the walk there
    /// knows them, and here it counts as one.
    fn lives(&mut self, name: &str, sizes: &BTreeMap<&str, u64>) {
        let own = sizes.get(name).copied();
        let entry = self.live.entry(name.to_string()).or_insert(1);
        if let Some(own) = own {
            *entry = own;
        }
    }

    fn uses(&mut self, expr: &Expr, sizes: &BTreeMap<&str, u64>) {
        match expr {
            Expr::Name(name) => self.lives(name, sizes),
            Expr::Index(index) | Expr::Position(index) => self.uses_index(index, sizes),
            Expr::InBounds(bounds) => bounds.iter().for_each(|bound| self.uses_index(&bound.expr, sizes)),
            Expr::Random { index, .. } => self.uses_index(index, sizes),
            Expr::Checked { position: a, extent: b, .. }
            | Expr::Arithmetic(_, a, b)
            | Expr::Binary(_, _, a, b)
            | Expr::Combine(_, _, a, b)
            | Expr::ShuffleUp { value: a, delta: b }
            | Expr::ShuffleXor { value: a, mask: b, .. } => {
                self.uses(a, sizes);
                self.uses(b, sizes);
            }
            Expr::Select(a, b, c) => [a, b, c].into_iter().for_each(|part| self.uses(part, sizes)),
            Expr::Element(array, index) => {
                // Buffers and shared arrays take none, and are not defined here.
                if sizes.contains_key(array.as_str()) {
                    self.lives(array, sizes);
                } else {
                    self.live.entry(array.clone()).or_insert(0);
                }
                self.uses(index, sizes);
            }
            Expr::Unary(_, _, operand)
            | Expr::Votes(operand)
            | Expr::VotesBefore(operand)
            | Expr::Cast { operand, .. }
            | Expr::FromMemory(_, operand)
            | Expr::ToMemory(_, operand) => self.uses(operand, sizes),
            Expr::Int(_) | Expr::Builtin(_) | Expr::Literal(_) | Expr::Identity(..) => {}
        }
    }

    fn uses_index(&mut self, index: &IndexExpr, sizes: &BTreeMap<&str, u64>) {
        for axis in index.axes() {
            let name = self.kernel.axis(axis).name.clone();
            self.lives(&name, sizes);
        }
    }
}
