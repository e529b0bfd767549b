//! Vector accesses: the elements that a thread's unrolled loops read from consecutive places are
//! loaded together, as wide as alignment allows, into a register array.

use super::emitter::Emitter;
use super::stmt::{Expr, LoopHint, Step, Stmt, Type};
use super::variable::Var;
use crate::DType;
use crate::index::{Atom, AxisId, Bound, IndexExpr};
use crate::ir::{AxisSet, BufferId, ValueId, ValueOp};

/// The widest access, in bytes.
pub(super) const ACCESS_BYTES: u64 = 16;

/// A tile of at most this many elements fits registers beside everything else.
const TILE_LIMIT: u64 = 96;

/// Which elements a tile holds.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct TileKey {
    buffer: BufferId,
    base: IndexExpr,
    rows: Vec<(AxisId, i64)>,
    dense: Vec<(AxisId, i64)>,
    /// The condition under which its elements exist, the same for all of them.
    guard: Option<ValueId>,
}

impl Emitter<'_> {
    /// The largest power of two, at most `limit`, that divides the index at every position.
    pub(super) fn alignment(&self, index: &IndexExpr, limit: u64) -> u64 {
        let width = self.multiple_of(index, limit);
        match &self.aligned {
            Some((aligned, by)) => width.max(self.multiple_of(&index.sub(aligned), limit.min(*by))),
            None => width,
        }
    }

    fn multiple_of(&self, index: &IndexExpr, limit: u64) -> u64 {
        let mut width = limit.max(1);
        let mut restrict = |factor: i64| {
            while width > 1 && !factor.unsigned_abs().is_multiple_of(width) {
                width /= 2;
            }
        };
        restrict(index.constant_term());
        for (atom, coefficient) in index.terms() {
            let multiple = match atom {
                Atom::Axis(axis) => self.multiples.get(axis).copied().unwrap_or(1),
                Atom::Div(..) | Atom::Mod(..) => 1,
            };
            restrict(coefficient.saturating_mul(multiple));
        }
        width
    }

    /// The load's element in a tile, if the unrolled loops around it read enough consecutive elements. Where the guard does
    /// not hold, the tile is left as it is.
    pub(super) fn tile_load(
        &mut self,
        buffer: BufferId,
        index: &IndexExpr,
        guard: Option<ValueId>,
    ) -> Option<Expr> {
        let unrolled: Vec<AxisId> =
            self.scopes.iter().filter(|s| s.unrolled).flat_map(|s| s.axes().to_vec()).collect();
        let mut strides = Vec::new();
        for axis in unrolled {
            match index.coefficient(axis) {
                Some(0) => {}
                Some(stride) if stride > 0 => strides.push((axis, stride)),
                Some(_) | None => return None,
            }
        }
        let computed = self.kernel.computed_axes(index);
        let strays = |(axis, _): &(AxisId, i64)| {
            computed.iter().any(|(_, value)| self.kernel.value(*value).axes.contains(axis))
        };
        let guard_axes = guard.map(|guard| &self.kernel.value(guard).axes);
        let differs = |(axis, _): &(AxisId, i64)| guard_axes.is_some_and(|axes| axes.contains(axis));
        if strides.iter().any(|stride| strays(stride) || differs(stride)) {
            return None;
        }
        let ranges = self.kernel.ranges();
        let base = strides
            .iter()
            .fold(index.clone(), |base, (axis, _)| base.substitute(*axis, &IndexExpr::zero(), &ranges));
        strides.sort_by_key(|&(axis, stride)| (stride, axis));
        let extent = |axis: AxisId| self.kernel.axis(axis).extent as i64;
        let (mut dense, mut rows, mut span) = (Vec::new(), Vec::new(), 1);
        for (axis, stride) in strides {
            // Overlapping or touching what is read already; every second element still pays.
            if stride <= span.max(2) {
                span += stride * (extent(axis) - 1);
                dense.push((axis, stride));
            } else {
                rows.push((axis, stride));
            }
        }
        let row_count: i64 = rows.iter().map(|&(axis, _)| extent(axis)).product();
        let dtype = self.kernel.buffers[buffer.index()].dtype;
        let limit = (ACCESS_BYTES / dtype.size() as u64).min(prev_power_of_two(span as u64));
        let width = rows.iter().fold(self.alignment(&base, limit), |width, &(_, stride)| {
            self.alignment(&IndexExpr::constant(stride), width)
        });
        // Every row of the tile starts where a whole access may be written.
        let pitch = match row_count {
            1 => span,
            _ => (span as u64).next_multiple_of(width) as i64,
        };
        if width < 2 || (row_count * pitch) as u64 > TILE_LIMIT {
            return None;
        }
        let key = TileKey { buffer, base, rows, dense, guard };
        let tile = self.tile(&key, dtype, span as u64, pitch as u64, width);
        let mut offset = self.row_number(&key.rows).scale(pitch);
        for &(axis, stride) in &key.dense {
            offset = offset.add(&IndexExpr::axis(axis).scale(stride));
        }
        Some(Expr::FromMemory(dtype, Box::new(Expr::element(tile, Expr::Index(offset)))))
    }

    fn row_number(&self, rows: &[(AxisId, i64)]) -> IndexExpr {
        rows.iter().fold(IndexExpr::zero(), |number, &(axis, _)| {
            number.scale(self.kernel.axis(axis).extent as i64).add(&IndexExpr::axis(axis))
        })
    }

    /// The name of the tile's array, loaded in the scope that binds the base's axes.
    fn tile(&mut self, key: &TileKey, dtype: DType, span: u64, pitch: u64, width: u64) -> Var {
        if let Some(name) = self.scopes.iter().rev().find_map(|scope| scope.tiles.get(key)) {
            return *name;
        }
        let condition = key.guard.map(|guard| self.value(guard));
        let mut axes: AxisSet = key.base.axes();
        axes.extend(key.guard.iter().flat_map(|&guard| &self.kernel.value(guard).axes));
        let home = self.home(&axes);
        let deeper = self.scopes.split_off(home + 1);
        let len = key.rows.iter().fold(pitch, |len, &(axis, _)| len * self.kernel.axis(axis).extent);
        let array = self.tile_of_another_part(key, dtype, len).unwrap_or_else(|| {
            let array = self.fresh("tile");
            self.array(array, Type::Memory(dtype), len)
        });
        if condition.is_some() {
            self.open(&[], false);
        }
        for &(axis, _) in &key.rows {
            self.open(&[axis], true);
        }
        let row_start = self.row_number(&key.rows).scale(pitch as i64);
        let source = key
            .rows
            .iter()
            .fold(key.base.clone(), |index, &(axis, stride)| index.add(&IndexExpr::axis(axis).scale(stride)));
        for (at, width) in chunks(span, width) {
            self.push(Stmt::VectorLoad {
                array,
                at: Expr::Index(row_start.offset(at as i64)),
                buffer: key.buffer.into(),
                index: Expr::Index(source.offset(at as i64)),
                dtype,
                width,
            });
        }
        for &(axis, _) in key.rows.iter().rev() {
            let body = self.close();
            let to = Expr::Int(self.kernel.axis(axis).extent);
            let step = Step::Add(Expr::Int(1));
            self.push(Stmt::For {
                var: self.kernel.position(axis),
                from: Expr::Int(0),
                to,
                step,
                hint: LoopHint::Unroll,
                body,
            });
        }
        if condition.is_some() {
            let then = self.close();
            self.guarded(condition, then);
        }
        if let Some(scope) = self.scopes.last_mut() {
            scope.tiles.insert(key.clone(), array);
        }
        self.scopes.extend(deeper);
        array
    }

    /// A tile of the innermost scope that is left as it is wherever this one is filled: parts of a join share registers.
    fn tile_of_another_part(&self, key: &TileKey, dtype: DType, len: u64) -> Option<Var> {
        let guard = key.guard?;
        let tiles = &self.scopes.last()?.tiles;
        let mut arrays: Vec<Var> =
            tiles.values().copied().filter(|&array| self.is_array(array, dtype, len)).collect();
        arrays.sort_unstable();
        arrays.into_iter().find(|array| {
            let mut others = tiles.iter().filter(|(_, own)| *own == array).map(|(other, _)| other.guard);
            others.all(|other| other.is_some_and(|other| self.exclude(guard, other)))
        })
    }

    /// Whether two conditions never hold together: they have bounds of one index with nothing in common.
    fn exclude(&self, a: ValueId, b: ValueId) -> bool {
        let bounds = |id: ValueId| match &self.kernel.value(id).op {
            ValueOp::InBounds(bounds) => bounds.as_slice(),
            _ => &[],
        };
        let apart = |a: &Bound, b: &Bound| a.expr == b.expr && (a.hi <= b.lo || b.hi <= a.lo);
        bounds(a).iter().any(|a| bounds(b).iter().any(|b| apart(a, b)))
    }
}

fn prev_power_of_two(n: u64) -> u64 {
    if n == 0 { 0 } else { 1 << n.ilog2() }
}

/// Cuts `span` elements into aligned accesses of at most `width`: the position and width of each.
pub(super) fn chunks(span: u64, width: u64) -> Vec<(u64, u64)> {
    let mut chunks = Vec::new();
    let mut at = 0;
    while at < span {
        let mut chunk = width;
        while at + chunk > span || at % chunk != 0 {
            chunk /= 2;
        }
        chunks.push((at, chunk));
        at += chunk;
    }
    chunks
}
