//! Blocks that share elements: each takes parts of them and leaves partial results, which are merged in the parts' order. On
//! CUDA the block that arrives last merges them, on a core a second function does.

use super::accumulate::{mul_add, set};
use super::emitter::Emitter;
use super::loops::stepping;
use super::stmt::Arithmetic::{Equal, Mul};
use super::stmt::{Builtin, Expr, LoopHint, Stmt};
use super::variable::Var;
use super::{Body, Function, Parameter, Workspace};
use crate::DType;
use crate::ir::Kernel;
use crate::schedule::{Launch, WorkItems};

/// On CUDA: which part a block has.
pub(super) fn own_part() -> Expr {
    Expr::Builtin(Builtin::BlockY)
}

/// On CUDA: how many parts there are.
pub(super) fn all_parts() -> Expr {
    Expr::Builtin(Builtin::GridY)
}

/// On CUDA: where one of a block's threads (or warps) begins in the elements that `splits` blocks share, and how far it goes
/// on each time, so that neighbours have neighbouring elements.
pub(super) fn interleaved(splits: u32, thread: Expr, threads: u64) -> (Expr, Expr) {
    let threads = Expr::Int(threads);
    match splits {
        1 => (thread, threads),
        _ => (mul_add(own_part(), threads.clone(), thread), all_parts().then(Mul, threads)),
    }
}

/// Memory for partial results, and a counter of finished parts for whatever has parts.
pub(super) fn with_arrivals(mut partials: Vec<Workspace>, counters: u64) -> Vec<Workspace> {
    let name = "arrivals".into();
    partials.push(Workspace { name, dtype: DType::I32, elements: counters, zeroed: true });
    partials
}

/// The place where the blocks of CUDA meet that share elements.
#[derive(Clone)]
pub(super) struct Arrivals {
    counters: Var,
    index: Expr,
}

impl Arrivals {
    /// At one of the counters, which are the last workspace.
    pub(super) fn at(workspaces: &[Workspace], index: Expr) -> Arrivals {
        Arrivals::of(workspaces.len().saturating_sub(1), index)
    }

    /// At one of the counters, which come after so many workspaces.
    pub(super) fn of(partials: usize, index: Expr) -> Arrivals {
        Arrivals { counters: Parameter::Workspace(partials).into(), index }
    }

    /// Beyond this is only the last block, which sees what all have left.
    pub(super) fn arrive(&self, emitter: &mut Emitter) {
        let (counters, index) = (self.counters, self.index.clone());
        emitter.push(Stmt::Arrive { counters, index, count: all_parts() });
    }

    /// Leaves the counter as it was found.
    pub(super) fn reset(&self) -> Stmt {
        set(Expr::element(self.counters, self.index.clone()), 0)
    }

    /// The same, by the thread of a number that is 0.
    pub(super) fn reset_by(&self, emitter: &mut Emitter, thread: Expr) {
        let condition = thread.then(Equal, 0);
        emitter.push(Stmt::If { condition, then: vec![self.reset()], otherwise: Vec::new() });
    }
}

/// The parts that are merged one after the other.
pub(super) struct Parts {
    first: Expr,
    count: Expr,
    step: u64,
    hint: LoopHint,
}

impl Parts {
    /// All of them.
    pub(super) fn all(count: Expr) -> Parts {
        Parts { first: Expr::Int(0), count, step: 1, hint: LoopHint::None }
    }

    /// All but the first.
    pub(super) fn after_first(count: Expr) -> Parts {
        Parts { first: Expr::Int(1), ..Parts::all(count) }
    }

    /// Those of one of several threads, which are merged afterwards.
    pub(super) fn of_thread(thread: Builtin, threads: u32) -> Parts {
        Parts { first: Expr::Builtin(thread), step: threads.into(), ..Parts::all(all_parts()) }
    }

    /// Several at a time are under way from memory.
    pub(super) fn ahead(self, together: u32) -> Parts {
        Parts { hint: LoopHint::UnrollBy(together), ..self }
    }

    /// Merges them: `take` adds the part of a number to what there is.
    pub(super) fn merge<'k>(self, emitter: &mut Emitter<'k>, take: impl FnOnce(&mut Emitter<'k>, &Expr)) {
        let part = emitter.index("part");
        emitter.repeat(stepping(part, (self.first, self.count), self.step, self.hint), |emitter| {
            take(emitter, &Expr::Name(part));
        });
    }
}

/// On a core: a launch of as many parts of each item.
pub(super) fn of_parts(whole: &Launch, splits: u32) -> Launch {
    let whole = whole.clone();
    match splits {
        1 => whole,
        _ => Launch { items: whole.items * WorkItems::named("parts", splits.into()), ..whole },
    }
}

/// On a core: the function that merges what the blocks of the one before have left.
pub(super) fn merging(kernel: &Kernel, body: Body, launch: Launch) -> Function {
    Function { name: format!("{}_merge", kernel.name), body, launch }
}
