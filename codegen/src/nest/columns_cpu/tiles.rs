//! Rows of few elements, which lie across the lanes: tiles of some rows are transposed into small arrays, and what is stored along
//! them out of such.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::CpuColumns;
use crate::index::{AxisId, IndexExpr};
use crate::ir::{BufferId, Store, ValueId, ValueOp};
use crate::nest::accumulate::{mul_add, set};
use crate::nest::emitter::{Emitter, Staged};
use crate::nest::loops::counting;
use crate::nest::passes::launch_items;
use crate::nest::stmt::Arithmetic::{Add, Mul};
use crate::nest::stmt::{Expr, LoopHint, Stmt, Turning, Type};
use crate::nest::variable::Var;
use crate::schedule::{is_stored_across, lies_across, reduced_axes};

/// Shorter rows are gathered element by element, and those of 8 and 16 as well, whose loops compilers vectorise.
const SHORTEST_TURNED: u64 = 5;

impl<'k> CpuColumns<'k> {
    /// A loop over the columns in which all elements of a row stand one after the other, as they do in memory: compilers
    /// make whole vectors of that.
    fn each_row(
        &self,
        emitter: &mut Emitter<'k>,
        axes: &[AxisId],
        body: impl FnOnce(&mut Emitter<'k>, Expr),
    ) {
        self.each_column(emitter, |emitter, _| {
            emitter.open(&[], true);
            let flat = if axes == self.plan.axes { self.flat } else { emitter.flat(axes, "r") };
            emitter.unflatten(flat, axes, 1);
            body(emitter, self.slot_at(Expr::Name(flat)));
            let body = emitter.close();
            let to = emitter.positions(axes);
            emitter.push(counting(flat, 0, to, LoopHint::Unroll).of(body));
        });
    }

    /// Copies what lies across into tiles, for the passes and for the reductions before them.
    pub(super) fn transpose(&self, emitter: &mut Emitter<'k>, apart: &[ValueId]) {
        let kernel = self.kernel;
        let mut swept = [&self.plan.axes[..], &self.nested].concat();
        for &id in apart {
            if let ValueOp::Reduce { axes, .. } = &kernel.value(id).op {
                swept.extend(axes);
            }
        }
        let mut staged = FxHashMap::default();
        let mut copies: Vec<(Var, &'k IndexExpr, BufferId, Vec<AxisId>)> = Vec::new();
        for number in 0..kernel.values.len() as u32 {
            let id = ValueId(number);
            let ValueOp::Load { buffer, index, .. } = &kernel.value(id).op else { continue };
            let axes = reduced_axes(kernel, id);
            let is_swept = axes.iter().all(|axis| swept.contains(axis));
            if axes.is_empty() || !is_swept || !lies_across(kernel, id, &axes, self.inner()) {
                continue;
            }
            // The pass counts its own positions.
            let flat = match axes == self.plan.axes {
                true => Expr::Name(self.flat),
                false => axes.iter().fold(Expr::Int(0), |flat, &axis| {
                    let extent = Expr::Int(kernel.axis(axis).extent);
                    mul_add(flat, extent, axis)
                }),
            };
            let same = copies.iter().find(|(_, other, from, _)| (other, from) == (&index, buffer));
            let array = match same {
                Some((array, ..)) => *array,
                None => {
                    let array = self.array(emitter, "tile", *buffer, &axes);
                    copies.push((array, index, *buffer, axes));
                    array
                }
            };
            let dtype = kernel.buffers[buffer.index()].dtype;
            staged.insert(id, Staged { array, dtype, slot: Some(self.slot_at(flat)) });
        }
        self.find_firsts(&mut staged, &copies);
        for (array, index, buffer, axes) in copies {
            if let Some(turning) = self.turning(array, index, buffer, &axes) {
                emitter.push(Stmt::Turn(Box::new(turning)));
                continue;
            }
            self.each_row(emitter, &axes, |emitter, slot| {
                emitter.bind_computed(index);
                let element = Expr::element(buffer, Expr::Index(index.clone()));
                emitter.push(set(Expr::element(array, slot), element));
            });
        }
        emitter.staged = staged;
    }

    /// The first elements of rows are in their tiles, too.
    fn find_firsts(
        &self,
        staged: &mut FxHashMap<ValueId, Staged>,
        copies: &[(Var, &'k IndexExpr, BufferId, Vec<AxisId>)],
    ) {
        let ranges = self.kernel.ranges();
        let first = |index: &IndexExpr, axes: &[AxisId]| {
            let zero = IndexExpr::constant(0);
            axes.iter().fold(index.clone(), |index, &axis| index.substitute(axis, &zero, &ranges))
        };
        for (number, value) in self.kernel.values.iter().enumerate() {
            let ValueOp::Load { buffer, index, guard: None } = &value.op else { continue };
            let is_first = |(_, own, from, axes): &&(Var, &'k IndexExpr, BufferId, Vec<AxisId>)| {
                from == buffer && first(own, axes) == *index
            };
            if let Some((array, ..)) = copies.iter().find(is_first) {
                let dtype = self.kernel.buffers[buffer.index()].dtype;
                let slot = Some(self.slot_at(Expr::Int(0)));
                staged.entry(ValueId(number as u32)).or_insert(Staged { array: *array, dtype, slot });
            }
        }
    }

    /// A tile of rows whose elements are neighbours, where turning them in registers is faster than elements one by one.
    fn turning(&self, array: Var, index: &IndexExpr, buffer: BufferId, axes: &[AxisId]) -> Option<Turning> {
        let (from_row, from_at) = self.rows_in_memory(index, buffer, axes)?;
        Some(Turning {
            dtype: self.kernel.buffers[buffer.index()].dtype,
            to: array,
            to_at: Expr::Int(0),
            to_row: self.width,
            from: buffer.into(),
            from_at,
            from_row,
            depth: Expr::Int(launch_items(self.kernel, axes)),
            rows: Some(Expr::Name(self.count)),
        })
    }

    /// The same of a tile of results that is stored.
    fn turning_back(&self, array: Var, index: &IndexExpr, buffer: BufferId) -> Option<Turning> {
        let axes = &self.plan.axes;
        let (to_row, to_at) = self.rows_in_memory(index, buffer, axes)?;
        Some(Turning {
            dtype: self.kernel.buffers[buffer.index()].dtype,
            to: buffer.into(),
            to_at,
            to_row,
            from: array,
            from_at: Expr::Int(0),
            from_row: self.width,
            depth: Expr::Name(self.count),
            rows: Some(Expr::Int(launch_items(self.kernel, axes))),
        })
    }

    /// Elements from row to row, and where the first of the tile's rows begins, if rows are long enough to be turned and their
    /// elements are neighbours.
    fn rows_in_memory(&self, index: &IndexExpr, buffer: BufferId, axes: &[AxisId]) -> Option<(u64, Expr)> {
        let kernel = self.kernel;
        let dtype = kernel.buffers[buffer.index()].dtype;
        let length = launch_items(kernel, axes);
        if !Turning::takes(dtype)
            || length < SHORTEST_TURNED
            || matches!(length, 8 | 16)
            || !kernel.computed_axes(index).is_empty()
        {
            return None;
        }
        let row = u64::try_from(index.coefficient(self.inner())?).ok()?;
        let (ranges, zero) = (kernel.ranges(), IndexExpr::zero());
        let mut first = index.substitute(self.inner(), &zero, &ranges);
        let mut step = 1;
        for &axis in axes.iter().rev() {
            if index.coefficient(axis)? != step {
                return None;
            }
            first = first.substitute(axis, &zero, &ranges);
            step *= kernel.axis(axis).extent as i64;
        }
        let beside = self.first.then(Mul, row);
        Some((row, if first == zero { beside } else { Expr::Index(first).then(Add, beside) }))
    }

    fn array(&self, emitter: &mut Emitter<'k>, name: &'static str, buffer: BufferId, axes: &[AxisId]) -> Var {
        let array = emitter.fresh(name);
        let ty = Type::Memory(self.kernel.buffers[buffer.index()].dtype);
        emitter.array(array, ty, self.width * launch_items(self.kernel, axes))
    }

    /// Tiles for results along the rows.
    pub(super) fn tiles_of_results(&self, emitter: &mut Emitter<'k>) -> BTreeMap<usize, Var> {
        let stores = self.kernel.stores.iter().enumerate();
        let across = stores.filter(|(_, store)| is_stored_across(store, &self.plan.axes, self.inner()));
        across
            .map(|(number, store)| (number, self.array(emitter, "result", store.buffer, &self.plan.axes)))
            .collect()
    }

    /// Stores the tiles of results.
    pub(super) fn store_across(&self, emitter: &mut Emitter<'k>) {
        for (&number, array) in &self.results {
            let Store { buffer, index, .. } = &self.kernel.stores[number];
            if let Some(turning) = self.turning_back(*array, index, *buffer) {
                emitter.push(Stmt::Turn(Box::new(turning)));
                continue;
            }
            let target = Expr::element(*buffer, Expr::Index(index.clone()));
            self.each_row(emitter, &self.plan.axes, |emitter, slot| {
                emitter.push(set(target, Expr::element(array, slot)));
            });
        }
    }
}
