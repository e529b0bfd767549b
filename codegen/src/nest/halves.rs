//! F16 in the innermost loop on the CPU: some elements at a time are converted before the loop and after it. Compilers
//! know the processor's instructions for that, but do not vectorise a loop with them.

use rustc_hash::FxHashMap;

use super::INDEX;
use super::accumulate::set;
use super::emitter::{Emitter, Staged};
use super::stmt::Arithmetic::{Add, Min, Sub};
use super::stmt::{Expr, LoopHint, Step, Stmt, Type};
use super::variable::Var;
use super::walk::count_loop;
use crate::DType;
use crate::index::{AxisId, IndexExpr};
use crate::ir::{AxisKind, BufferId, Kernel, ValueId, ValueOp};

/// Elements that are converted together: they stay in the nearest cache. See benches/README.md.
const TOGETHER: u64 = 256;

/// Shorter loops are not worth it.
const SHORTEST: u64 = 64;

/// Arrays at most: 16 KiB of the stack.
const MOST: usize = 16;

/// What of a loop is converted apart from it.
pub(super) struct Halves {
    axis: AxisId,
    /// Places that are read, from which position on, and by which loads.
    loads: Vec<(BufferId, IndexExpr, Vec<ValueId>)>,
    /// Numbers of stores.
    stores: Vec<usize>,
}

impl Halves {
    /// Consecutive loads and stores along the axis; `None` if there are none.
    pub(super) fn of(kernel: &Kernel, axis: AxisId) -> Option<Halves> {
        if kernel.axis(axis).extent < SHORTEST {
            return None;
        }
        let is_half = |buffer: BufferId| kernel.buffers[buffer.index()].dtype == DType::F16;
        let mut halves = Halves { axis, loads: Vec::new(), stores: Vec::new() };
        // Of a part of a kernel, not all that it has.
        for id in kernel.down_from(kernel.stores.iter().map(|store| store.value)) {
            let value = kernel.value(id);
            let ValueOp::Load { buffer, index, guard: None } = &value.op else { continue };
            // A loop within this one reads several, and a computed position may be anywhere.
            let is_plain = value.axes.iter().all(|axis| kernel.axis(*axis).kind == AxisKind::Map)
                && kernel.computed_axes(index).is_empty();
            if !is_half(*buffer) || index.coefficient(axis) != Some(1) || !is_plain {
                continue;
            }
            match halves.loads.iter_mut().find(|(other, place, _)| other == buffer && place == index) {
                Some((_, _, loads)) => loads.push(id),
                None => halves.loads.push((*buffer, index.clone(), vec![id])),
            }
        }
        let is_consecutive = |number: &usize| {
            let store = &kernel.stores[*number];
            is_half(store.buffer) && store.index.coefficient(axis) == Some(1)
        };
        halves.stores = (0..kernel.stores.len()).filter(is_consecutive).collect();
        (1..=MOST).contains(&(halves.loads.len() + halves.stores.len())).then_some(halves)
    }

    /// The loop from `from` to `to`.
    pub(super) fn emit<'k>(&self, emitter: &mut Emitter<'k>, kernel: &'k Kernel, from: Expr, to: Expr) {
        let axis = self.axis;
        let (start, stop) = (emitter.fresh("start"), emitter.fresh("stop"));
        let count = Expr::name(stop).then(Sub, Expr::name(start));
        let slot = Expr::name(axis).then(Sub, Expr::name(start));
        emitter.open(&[], false);
        emitter.bind(stop, INDEX, Expr::name(start).then(Add, Expr::Int(TOGETHER)).then(Min, to.clone()));
        let array = |emitter: &mut Emitter<'k>, name: &'static str| {
            let array = emitter.fresh(name);
            emitter.array(array, Type::Memory(DType::F32), TOGETHER)
        };
        // Where the first of them is in the buffer.
        let place = |index: &IndexExpr| {
            let rest = index.substitute(self.axis, &IndexExpr::zero(), &kernel.ranges());
            match rest.as_constant() {
                Some(0) => Expr::name(start),
                _ => Expr::Index(rest).then(Add, Expr::name(start)),
            }
        };
        let mut staged = FxHashMap::default();
        for (buffer, index, loads) in &self.loads {
            let array = array(emitter, "half");
            emitter.push(Stmt::WidenHalves {
                array,
                buffer: (*buffer).into(),
                index: place(index),
                count: count.clone(),
            });
            staged.extend(loads.iter().map(|&id| (id, Staged { array, dtype: DType::F32, slot: None })));
        }
        let results: Vec<Var> = self.stores.iter().map(|_| array(emitter, "result")).collect();
        emitter.staged = staged;
        emitter.staged_slot = Some(slot.clone());
        let body = emitter.using(kernel, |emitter| {
            emitter.open(&[self.axis], false);
            for (number, store) in kernel.stores.iter().enumerate() {
                match self.stores.iter().position(|&own| own == number) {
                    None => emitter.store(store),
                    Some(own) => {
                        let value = match emitter.stored(store) {
                            Expr::ToMemory(_, value) => *value,
                            value => value,
                        };
                        emitter.push(set(Expr::element(results[own], slot.clone()), value));
                    }
                }
            }
            emitter.close()
        });
        emitter.staged.clear();
        emitter.staged_slot = None;
        emitter.push(count_loop(axis, Expr::name(start), Expr::name(stop), LoopHint::Simd, body));
        for (&number, array) in self.stores.iter().zip(results) {
            let store = &kernel.stores[number];
            emitter.push(Stmt::NarrowHalves {
                array,
                buffer: store.buffer.into(),
                index: place(&store.index),
                count: count.clone(),
            });
        }
        let body = emitter.close();
        let step = Step::Add(Expr::Int(TOGETHER));
        emitter.push(Stmt::For { var: start, from, to, step, hint: LoopHint::None, body });
    }
}
