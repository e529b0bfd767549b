//! F16 in the innermost loop on the CPU: some elements at a time are converted before the loop and after it. Compilers
//! know the processor's instructions for that, but do not vectorise a loop with them.

use rustc_hash::FxHashMap;

use super::accumulate::set;
use super::emitter::{Emitter, Staged};
use super::stmt::Arithmetic::{Add, Sub};
use super::stmt::{Expr, Stmt, Type};
use super::variable::Var;
use crate::DType;
use crate::index::{AxisId, IndexExpr};
use crate::ir::{AxisKind, BufferId, Kernel, ValueId, ValueOp};

/// Elements of a stretch: a dozen arrays of them stay in the nearest cache. See benches/README.md.
pub(super) const TOGETHER: u64 = 256;

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
    /// Consecutive loads and stores along the axis.
    pub(super) fn of(kernel: &Kernel, axis: AxisId) -> Halves {
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
        if halves.loads.len() + halves.stores.len() > MOST {
            (halves.loads, halves.stores) = (Vec::new(), Vec::new());
        }
        halves
    }

    pub(super) fn is_empty(&self) -> bool {
        self.loads.is_empty() && self.stores.is_empty()
    }

    /// Converts what is read at the positions of a stretch, and has loads find it there.
    pub(super) fn widen(&self, emitter: &mut Emitter, kernel: &Kernel, stretch: (Var, Var), slot: &Expr) {
        let mut staged = FxHashMap::default();
        for (buffer, index, loads) in &self.loads {
            let array = array(emitter, "half");
            emitter.push(Stmt::WidenHalves {
                array,
                buffer: (*buffer).into(),
                index: self.place(kernel, index, stretch),
                count: count(stretch),
            });
            staged.extend(loads.iter().map(|&id| (id, Staged { array, dtype: DType::F32, slot: None })));
        }
        emitter.staged = staged;
        emitter.staged_slot = Some(slot.clone());
    }

    /// Arrays for the results of a stretch.
    pub(super) fn results(&self, emitter: &mut Emitter) -> Vec<Var> {
        self.stores.iter().map(|_| array(emitter, "result")).collect()
    }

    /// All stores at one position, those that are converted into their arrays.
    pub(super) fn store(&self, emitter: &mut Emitter, kernel: &Kernel, results: &[Var], slot: &Expr) {
        for (number, store) in kernel.stores.iter().enumerate() {
            match self.stores.iter().position(|&own| own == number) {
                None => emitter.store(store),
                Some(own) => {
                    let value = match emitter.stored(store) {
                        Expr::ToMemory(_, value) => Expr::ToMemory(DType::F32, value),
                        value => value,
                    };
                    emitter.push(set(Expr::element(results[own], slot.clone()), value));
                }
            }
        }
    }

    /// Converts the results of a stretch.
    pub(super) fn narrow(
        &self,
        emitter: &mut Emitter,
        kernel: &Kernel,
        stretch: (Var, Var),
        results: Vec<Var>,
    ) {
        for (&number, array) in self.stores.iter().zip(results) {
            let store = &kernel.stores[number];
            emitter.push(Stmt::NarrowHalves {
                array,
                buffer: store.buffer.into(),
                index: self.place(kernel, &store.index, stretch),
                count: count(stretch),
            });
        }
    }

    /// Where the first of a stretch is in the buffer.
    fn place(&self, kernel: &Kernel, index: &IndexExpr, (start, _): (Var, Var)) -> Expr {
        let rest = index.substitute(self.axis, &IndexExpr::zero(), &kernel.ranges());
        match rest.as_constant() {
            Some(0) => Expr::name(start),
            _ => Expr::Index(rest).then(Add, Expr::name(start)),
        }
    }
}

fn count((start, stop): (Var, Var)) -> Expr {
    Expr::name(stop).then(Sub, Expr::name(start))
}

fn array(emitter: &mut Emitter, name: &'static str) -> Var {
    let array = emitter.fresh(name);
    emitter.array(array, Type::Memory(DType::F32), TOGETHER)
}
