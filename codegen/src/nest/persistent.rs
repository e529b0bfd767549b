//! Elements that stay in registers, in shared memory or on the stack from one pass over a row to the next.

use rustc_hash::FxHashMap;

use super::accumulate::set;
use super::emitter::{Emitter, Scope};
use super::pointwise::{lane_axis, unrolled_lanes};
use super::stmt::Arithmetic::{Add, Mul};
use super::stmt::{Expr, Stmt, Type};
use super::tile::{ACCESS_BYTES, chunks};
use super::variable::{Space, Var};
use crate::index::{AxisId, IndexExpr};
use crate::ir::{BufferId, ValueId};
use crate::schedule::array_bytes;

/// What an emitter keeps of a row.
pub(super) struct RowCache {
    /// Loads whose elements several passes need.
    loads: Vec<ValueId>,
    /// Other values that several passes need.
    values: Vec<ValueId>,
    place: Place,
    /// The scopes that were open before the passes.
    outside: usize,
    /// The arrays so far: of loads, and of other values.
    arrays: FxHashMap<(BufferId, IndexExpr), Var>,
    computed: FxHashMap<ValueId, Var>,
    /// Values that are in their arrays.
    pub(super) there: Vec<ValueId>,
}

/// Where it is kept.
pub(super) enum Place {
    /// In arrays of each thread, which has some vectors of the row.
    Registers {
        /// Which of its vectors.
        turn: Expr,
        /// How many.
        turns: u64,
    },
    /// In arrays of the block. A thread finds there what it has put there itself: nobody waits.
    Shared {
        /// The number of the thread's vector in the row.
        vector: Expr,
        /// Elements of a row.
        length: u64,
        /// Bytes in use so far.
        end: u64,
    },
    /// In arrays of the function, with an element for each position of the row.
    Stack {
        /// The position.
        position: Expr,
        /// Elements of a row.
        length: u64,
        /// The axis whose loop is the innermost of those that say the position.
        along: AxisId,
    },
}

impl RowCache {
    pub(super) fn new(loads: Vec<ValueId>, values: Vec<ValueId>, place: Place) -> RowCache {
        let (arrays, computed) = (FxHashMap::default(), FxHashMap::default());
        RowCache { loads, values, place, outside: 0, arrays, computed, there: Vec::new() }
    }

    /// Which of the vectors in an array a thread is at.
    fn vector(&self) -> Expr {
        match &self.place {
            Place::Registers { turn, .. } => turn.clone(),
            Place::Shared { vector, .. } => vector.clone(),
            Place::Stack { position, .. } => position.clone(),
        }
    }

    /// How long a new array for vectors of so many elements is, and where.
    fn space(&mut self, ty: Type, lanes: u64) -> (u64, Space) {
        match &mut self.place {
            Place::Registers { turns, .. } => (*turns * lanes, Space::Thread),
            Place::Shared { length, end, .. } => {
                let offset = *end;
                *end += array_bytes(*length, ty.bytes(0));
                (*length, Space::Launch(offset))
            }
            Place::Stack { length, .. } => (*length, Space::Thread),
        }
    }
}

impl Emitter<'_> {
    /// From here on passes leave something to each other.
    pub(super) fn cache(&mut self, cache: RowCache) {
        self.cached = Some(RowCache { outside: self.scopes.len(), ..cache });
    }

    /// The load's element in the array that keeps it; the first pass that asks for it fills the array.
    pub(super) fn cached_load(&mut self, id: ValueId, buffer: BufferId, index: &IndexExpr) -> Option<Expr> {
        let cache = self.cached.as_ref().filter(|cache| cache.loads.contains(&id))?;
        let vector = cache.vector();
        let existing = cache.arrays.get(&(buffer, index.clone())).copied();
        let lane = lane_axis(self.kernel).filter(|&lane| index.uses(lane));
        let lanes = lane.map_or(1, |lane| self.kernel.axis(lane).extent);
        let dtype = self.kernel.buffers[buffer.index()].dtype;
        let first = vector.then(Mul, lanes);
        let array = existing.unwrap_or_else(|| {
            let base = match lane {
                Some(lane) => index.substitute(lane, &IndexExpr::zero(), &self.kernel.ranges()),
                None => index.clone(),
            };
            let home = self.home(&base.axes().into_iter().collect());
            let deeper = self.scopes.split_off(home + 1);
            let array = self.declare_cached(Type::Memory(dtype), lanes);
            let is_consecutive = lane.is_some_and(|lane| index.coefficient(lane) == Some(1));
            let widest = lanes.min(ACCESS_BYTES / dtype.size() as u64);
            let width = if is_consecutive { self.alignment(&base, widest) } else { 1 };
            if width > 1 {
                for (at, width) in chunks(lanes, width) {
                    self.push(Stmt::VectorLoad {
                        array,
                        at: first.clone().then(Add, at),
                        buffer: buffer.into(),
                        index: Expr::Index(base.offset(at as i64)),
                        dtype,
                        width,
                    });
                }
            } else {
                let element = Expr::element(buffer, Expr::Index(index.clone()));
                let slot = match lane {
                    Some(_) => first.clone().then(Add, Var::Lane),
                    None => first.clone(),
                };
                let load = set(Expr::element(array, slot), element);
                self.push(if lane.is_some() { unrolled_lanes(lanes, vec![load]) } else { load });
            }
            self.scopes.extend(deeper);
            if let Some(cache) = &mut self.cached {
                cache.arrays.insert((buffer, index.clone()), array);
            }
            array
        });
        let slot = match lane {
            Some(_) => first.then(Add, Var::Lane),
            None => first,
        };
        Some(Expr::FromMemory(dtype, Box::new(Expr::element(array, slot))))
    }

    /// The value at this position, if an earlier pass has kept it.
    pub(super) fn cached_value(&self, id: ValueId) -> Option<Expr> {
        let cache = self.cached.as_ref().filter(|cache| cache.there.contains(&id))?;
        Some(Expr::element(cache.computed.get(&id)?, self.cache_slot(id)?))
    }

    /// Whether a value varies along the pass. In a part of a row, such as a border, it may be the same at all positions.
    pub(super) fn is_swept(&self, id: ValueId) -> bool {
        let axes = &self.kernel.value(id).axes;
        let binds = |scope: &Scope| scope.axes().iter().any(|axis| axes.contains(axis));
        self.cached.as_ref().is_some_and(|cache| self.scopes.iter().skip(cache.outside).any(binds))
    }

    /// How many elements of a row a thread has, where they are in registers.
    pub(super) fn swept_by_thread(&self) -> Option<u64> {
        match self.cached.as_ref()?.place {
            Place::Registers { turns: 0, .. } | Place::Shared { .. } | Place::Stack { .. } => None,
            Place::Registers { turns, .. } => {
                Some(turns * lane_axis(self.kernel).map_or(1, |lane| self.kernel.axis(lane).extent))
            }
        }
    }

    /// Whether a value that is computed now is to be kept: not where it is computed under a condition.
    pub(super) fn is_to_keep(&self, id: ValueId) -> bool {
        self.cached.as_ref().is_some_and(|cache| {
            // What is the same along the innermost loop is computed outside of it, where no position is known yet.
            let has_place = match cache.place {
                Place::Stack { along, .. } => self.kernel.value(id).axes.contains(&along),
                Place::Registers { .. } | Place::Shared { .. } => true,
            };
            let is_wanted = has_place && cache.values.contains(&id) && !cache.there.contains(&id);
            is_wanted && !self.scopes.iter().skip(cache.outside).any(|scope| scope.pinned)
        })
    }

    /// Keeps a value for the passes to come.
    pub(super) fn keep_value(&mut self, id: ValueId, value: &Expr) {
        let Some(slot) = self.cache_slot(id) else { return };
        let existing = self.cached.as_ref().and_then(|cache| cache.computed.get(&id).copied());
        let array = existing.unwrap_or_else(|| {
            let ty = Type::Register(self.kernel.value(id).dtype);
            self.declare_cached(ty, self.lanes_of_value(id))
        });
        self.push(set(Expr::element(array, slot), value.clone()));
        if let Some(cache) = &mut self.cached {
            cache.computed.insert(id, array);
            cache.there.push(id);
        }
    }

    fn declare_cached(&mut self, ty: Type, lanes: u64) -> Var {
        let array = self.fresh("kept");
        let (len, space) =
            self.cached.as_mut().map_or((lanes, Space::Thread), |cache| cache.space(ty, lanes));
        self.typed(array, ty, Some(len), space);
        self.push_first(Stmt::Declare { var: array, init: None });
        array
    }

    fn lanes_of_value(&self, id: ValueId) -> u64 {
        let lane = lane_axis(self.kernel).filter(|lane| self.kernel.value(id).axes.contains(lane));
        lane.map_or(1, |lane| self.kernel.axis(lane).extent)
    }

    fn cache_slot(&self, id: ValueId) -> Option<Expr> {
        let lanes = self.lanes_of_value(id);
        let first = self.cached.as_ref()?.vector().then(Mul, lanes);
        Some(if lanes > 1 { first.then(Add, Var::Lane) } else { first })
    }
}
