//! Vector accesses: the elements that a thread's unrolled loops read from consecutive places are
//! loaded together, as wide as alignment allows, into a register array.

use super::emitter::Emitter;
use super::stmt::{Expr, LoopHint, Step, Stmt, Type};
use super::variable::Var;
use crate::index::{Atom, AxisId, IndexExpr};
use crate::ir::BufferId;

/// The widest access, in bytes.
const ACCESS_BYTES: u64 = 16;

/// A tile of at most this many elements fits registers beside everything else.
const TILE_LIMIT: u64 = 96;

/// Which elements a tile holds.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct TileKey {
    buffer: BufferId,
    base: IndexExpr,
    rows: Vec<(AxisId, i64)>,
    dense: Vec<(AxisId, i64)>,
}

impl Emitter<'_> {
    /// The largest power of two, at most `limit`, that divides the index at every position.
    pub(super) fn alignment(&self, index: &IndexExpr, limit: u64) -> u64 {
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

    /// The load's element in a tile, if the unrolled loops around it read enough consecutive elements.
    pub(super) fn tile_load(&mut self, buffer: BufferId, index: &IndexExpr) -> Option<Expr> {
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
        if strides.iter().any(strays) {
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
        let key = TileKey { buffer, base, rows, dense };
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
    fn tile(&mut self, key: &TileKey, dtype: crate::DType, span: u64, pitch: u64, width: u64) -> Var {
        if let Some(name) = self.scopes.iter().rev().find_map(|scope| scope.tiles.get(key)) {
            return *name;
        }
        let home = self.home(&key.base.axes().into_iter().collect());
        let deeper = self.scopes.split_off(home + 1);
        let array = self.fresh("tile");
        let len = key.rows.iter().fold(pitch, |len, &(axis, _)| len * self.kernel.axis(axis).extent);
        self.array(array, Type::Memory(dtype), len);
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
        if let Some(scope) = self.scopes.last_mut() {
            scope.tiles.insert(key.clone(), array);
        }
        self.scopes.extend(deeper);
        array
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
