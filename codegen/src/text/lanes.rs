//! Loops over lanes, in C printed as loops of vectors: nothing is left to what a compiler finds in loops of numbers.
//!
//! A loop is one of vectors if all that is in it is: numbers at consecutive places of arrays or at every second one,
//! operations on them, choices among them, and loops within it whose bounds are the same for all lanes. Any other stays a
//! loop of numbers, and so do short loops, short integers in memory, and few operations on places far from each other, where a
//! compiler's own vectors were the faster ones (`benches/notes/vectors.md`). The last vector of a loop has as many lanes as are
//! left: loads and stores count them.

mod folds;
mod scans;
mod values;
mod whole;

pub(super) use values::{are_short, bounds_are_short, is_compared_short, launched_ranges};
pub(super) use whole::{MOST_LANES, Rooms};

use rustc_hash::FxHashMap;

use super::Printer;
use crate::DType;
use crate::index::{Atom, IndexExpr};
use crate::intrinsics::Helpers;
use crate::intrinsics::lanes::{Kind, Lanes, Value};
use crate::intrinsics::parenthesise;
use crate::nest::stmt::{Arithmetic, Expr, LoopHint, Step, Stmt, Type};
use crate::nest::variable::{Space, Var};
use crate::nest::{Nest, Parameter};
use whole::{Room, lies_beside};

/// The lanes that are left from the loop's variable on.
const LEFT: &str = "lanes";

/// So many vectors of a loop are written one after the other.
const UNROLLED: u64 = 8;

/// A loop of more is a loop: unrolled, it would be most of what there is to compile.
const MOST_COPIES: u64 = 32;

/// Shorter loops are as fast as loops of numbers, unless they are what longer ones have left.
const SHORTEST: u64 = 3;

/// Distances of places from which lanes are picked out of whole vectors. From others they come one by one.
const DISTANCES: [i64; 7] = [-1, -2, -3, -4, 2, 3, 4];

/// The same under masks.
const MASKED_DISTANCES: std::ops::RangeInclusive<i64> = 1..=4;

/// Simple operations for each vector of such: with fewer, what a compiler makes of loops of numbers is as fast.
const WORTH_FAR: f64 = 2.0;

/// The same for a gather, an element at an index of each lane's own, which costs a loop of numbers less. A select whose condition is data is a
/// branch there, mispredicted as often as not (`benches/notes/scatters.md`).
const WORTH_GATHERED: f64 = 5.0;
const OF_SELECT: f64 = 3.0;

/// Simple operations that the conversion of a number from and to `F16` takes alone; a vector has an instruction for it.
const OF_HALF: f64 = 8.0;

/// What a variable holds that differs among lanes.
#[derive(Clone, Copy)]
enum Held {
    /// An index that grows by so much from lane to lane; the variable is the first lane's.
    Index(i64),
    /// Numbers.
    Numbers(Kind),
}

/// A loop that is printed as one of vectors.
struct Loop<'p, 'a> {
    printer: &'p mut Printer<'a>,
    varying: FxHashMap<Var, Held>,
    /// Truths that say of each lane whether positions are within bounds, and whether those are near all positions.
    bounds: FxHashMap<Var, bool>,
    /// Whether it has numbers in memory.
    is_worth_it: bool,
    /// Whether some numbers in memory have more than 16 bits, or are floats.
    is_wide: bool,
    /// Vectors that come lane by lane, and simple operations.
    far: f64,
    operations: f64,
    /// Gathers, and selects by what is no position.
    gathered: f64,
    selects: f64,
    /// Arrays that are read at all places of so many in turn, and where the first of them is.
    groups: Vec<(Var, i64, IndexExpr)>,
    /// How many lanes to load and to store.
    count: &'static str,
    /// Its variable, and where that begins.
    lanes: (Var, &'p Expr),
    /// Where that ends.
    end: Option<&'p Expr>,
    /// Whether quotients by constants stay from the loop's first position to its last.
    is_segment: bool,
    /// Whether what local arrays have beyond its end is stored later, or never read.
    is_spilling: bool,
    /// Whether a load or store counts the lanes that are left.
    counts: bool,
    /// Arrays whose first elements are in a vector.
    folded: Option<Folded>,
}

/// Partial results that are merged within a vector: lanes with those so many lanes further on.
struct Folded {
    /// That many.
    step: Var,
    /// The arrays, and what they are.
    arrays: Vec<(Var, Kind)>,
    /// Those that have become something else.
    assigned: Vec<Var>,
}

/// The most positions of the loops over the lane.
fn most_lanes(body: &[Stmt]) -> u64 {
    let own = |stmt: &Stmt| match stmt {
        Stmt::For { var: Var::Lane, from: Expr::Int(from), to: Expr::Int(to), .. } => {
            to.saturating_sub(*from)
        }
        Stmt::For { var: Var::Lane, .. } => u64::MAX,
        _ => 0,
    };
    let inner = |stmt: &Stmt| stmt.bodies().iter().map(|body| most_lanes(body)).max().unwrap_or(0);
    body.iter().map(|stmt| own(stmt).max(inner(stmt))).max().unwrap_or(0)
}

/// Statements of a body, each as often as loops in it that are unrolled repeat it.
fn copies(body: &[Stmt]) -> u64 {
    let of_stmt = |stmt: &Stmt| match stmt {
        Stmt::For { from, to, hint, body, .. } => match (from, to, hint) {
            (Expr::Int(from), Expr::Int(to), LoopHint::Unroll) => {
                copies(body).saturating_mul(to.saturating_sub(*from))
            }
            _ => copies(body),
        },
        _ => 1,
    };
    body.iter().map(of_stmt).sum()
}

/// Whether the kernel goes over the lane in longer loops too.
pub(super) fn has_long_vectors(nest: &Nest) -> bool {
    nest.functions.iter().any(|function| most_lanes(&function.body.statements) >= SHORTEST)
}

impl Printer<'_> {
    /// Prints a loop as one of vectors; prints nothing and is false if it is none.
    pub(super) fn loop_of_vectors(
        &mut self,
        var: Var,
        (from, to): (&Expr, &Expr),
        hint: LoopHint,
        body: &[Stmt],
    ) -> bool {
        let (text, helpers, lanes) = (self.text.len(), self.helpers.clone(), self.lanes.clone());
        let constant = match (from, to) {
            (Expr::Int(from), Expr::Int(to)) => Some(to.saturating_sub(*from)),
            _ => None,
        };
        if constant.is_some_and(|length| length < SHORTEST && !has_long_vectors(self.nest)) {
            return false;
        }
        // Of loops along axes the text is the same, whatever their length.
        let most = self.lanes.most();
        let is_whole = var == Var::Lane && constant.is_some_and(|length| length.is_multiple_of(most));
        if is_whole && constant.is_some_and(|length| length <= UNROLLED * most) && copies(body) <= MOST_COPIES
        {
            self.line("#pragma GCC unroll 8");
        }
        let (name, ty) = (self.name(var), self.type_name(Type::Index));
        let (first, end) = (self.expr(from), self.expr(to));
        self.line(&format!("for ({ty} {name} = {first}; {name} < {end}; {name} += LANES) {{"));
        self.depth += 1;
        let before = self.text.len();
        if !is_whole {
            let end = self.operand_of(to);
            self.line(&format!("const {ty} {LEFT} = {end} - {name};"));
        }
        let mut vectors = Loop {
            count: if is_whole { "LANES" } else { LEFT },
            end: Some(to),
            is_segment: hint == LoopHint::SimdSegment,
            is_spilling: hint == LoopHint::SimdSpilling,
            ..Loop::new(self, (var, from))
        };
        vectors.find_groups(body);
        // With its remainders a loop of numbers would get no vectors of the compiler's either.
        let is_printed = vectors.statements(body).is_some()
            && vectors.is_worth_far()
            && (vectors.is_worth_it && vectors.is_wide || hint == LoopHint::SimdSegment);
        let counts = vectors.counts;
        if !is_whole && !counts {
            let line = self.text[before..].find('\n').map_or(0, |at| at + 1);
            self.text.replace_range(before..before + line, "");
        }
        self.depth -= 1;
        self.line("}");
        self.settle(is_printed, (text, helpers, lanes))
    }

    /// What was printed from a place on stays, on half as many lanes if it has wide elements, or else everything is as it was.
    fn settle(&mut self, is_printed: bool, (text, helpers, lanes): (usize, Helpers, Lanes)) -> bool {
        match is_printed {
            true => self.halve(text),
            false => {
                self.text.truncate(text);
                (self.helpers, self.lanes) = (helpers, lanes);
            }
        }
        is_printed
    }

    /// Has what was printed from a place on half as many lanes, if it has wide elements.
    fn halve(&mut self, from: usize) {
        if let Some(halved) = self.lanes.halved_loop(&self.text[from..]) {
            self.text.truncate(from);
            self.text.push_str(&halved);
        }
    }

    fn operand_of(&mut self, expr: &Expr) -> String {
        let text = self.expr(expr);
        parenthesise(&text)
    }
}

impl<'p, 'a> Loop<'p, 'a> {
    /// Of whole vectors along a variable.
    fn new(printer: &'p mut Printer<'a>, lanes: (Var, &'p Expr)) -> Loop<'p, 'a> {
        Loop {
            printer,
            varying: FxHashMap::from_iter([(lanes.0, Held::Index(1))]),
            bounds: FxHashMap::default(),
            is_worth_it: false,
            is_wide: false,
            far: 0.0,
            operations: 0.0,
            gathered: 0.0,
            selects: 0.0,
            groups: Vec::new(),
            count: "LANES",
            lanes,
            end: None,
            is_segment: false,
            is_spilling: false,
            counts: false,
            folded: None,
        }
    }
}

impl Loop<'_, '_> {
    fn line(&mut self, line: &str) {
        self.printer.line(line);
    }

    /// Whether enough is computed beside what comes lane by lane.
    fn is_worth_far(&self) -> bool {
        let selects = if self.gathered > 0.0 { self.selects * OF_SELECT } else { 0.0 };
        self.far * WORTH_FAR + self.gathered * WORTH_GATHERED <= self.operations + selects
    }

    fn block(&mut self, body: &[Stmt]) -> Option<()> {
        self.printer.depth += 1;
        let printed = self.statements(body);
        self.printer.depth -= 1;
        printed
    }

    fn statements(&mut self, body: &[Stmt]) -> Option<()> {
        body.iter().try_for_each(|stmt| self.statement(stmt))
    }

    /// `None` if it is none of vectors.
    fn statement(&mut self, stmt: &Stmt) -> Option<()> {
        match stmt {
            Stmt::Let { var, value: Expr::Checked { position, extent, check } } if self.varies(position) => {
                let value = self.checked(position, extent, *check)?;
                self.bind("const ", *var, Kind::I64, Some(value))
            }
            Stmt::Let { var, value } if self.type_of(*var) == Some(Type::Index) => {
                let step = self.step(value)?;
                self.printer.statement(stmt);
                if step != 0 {
                    self.varying.insert(*var, Held::Index(step));
                }
                Some(())
            }
            Stmt::Let { var, value } => {
                if !self.varies(value) {
                    self.printer.statement(stmt);
                    return Some(());
                }
                let kind = self.kind_of_var(*var)?;
                if let (Expr::InBounds(_), Some(is_near)) = (value, self.nearness(value)) {
                    self.bounds.insert(*var, is_near);
                }
                let value = self.value(value)?;
                self.bind("const ", *var, kind, Some(value))
            }
            Stmt::Declare { var, init } => {
                let local = self.printer.local(*var)?;
                if local.len.is_some() || local.space != Space::Thread {
                    return None;
                }
                let kind = self.kind_of_var(*var)?;
                let init = match init {
                    Some(init) => Some(self.value(init)?),
                    None => None,
                };
                self.bind("", *var, kind, init)
            }
            Stmt::Assign { target: Expr::Name(var), value } => {
                let Some(Held::Numbers(kind)) = self.varying.get(var).copied() else { return None };
                let value = self.value(value)?;
                let (name, value) = (self.printer.name(*var), self.vector(value, kind));
                self.line(&format!("{name} = {value};"));
                Some(())
            }
            Stmt::Assign { target: Expr::Element(array, index), value } => {
                self.assign_element(*array, index, value)
            }
            Stmt::Block(_) | Stmt::For { .. } | Stmt::If { .. } => self.nested(stmt),
            Stmt::Prefetch { buffer, index, stream } => {
                self.step(index)?;
                let place = self.printer.element_of(*buffer, index);
                let call = match stream {
                    true => crate::intrinsics::prefetch_stream(&place, &mut self.printer.helpers),
                    false => format!("__builtin_prefetch({place}, 0, 2)"),
                };
                self.line(&format!("{call};"));
                Some(())
            }
            Stmt::Assign { .. }
            | Stmt::VectorLoad { .. }
            | Stmt::VectorStore { .. }
            | Stmt::MultiplyTile(_)
            | Stmt::Turn(_)
            | Stmt::Pair(_)
            | Stmt::Scan(_)
            | Stmt::Sort(_)
            | Stmt::Positions { .. }
            | Stmt::Buffers { .. }
            | Stmt::Part { .. }
            | Stmt::InTurns { .. }
            | Stmt::LoadMatrices { .. }
            | Stmt::BeginCopy(_)
            | Stmt::Bulk(_)
            | Stmt::CommitCopies
            | Stmt::AwaitCopies { .. }
            | Stmt::MultiplyMatrices(_)
            | Stmt::MultiplyGroup(_)
            | Stmt::Products(_)
            | Stmt::Barrier
            | Stmt::Add { .. }
            | Stmt::Arrive { .. }
            | Stmt::Return => None,
        }
    }

    /// A statement with others in it, which is the same for all lanes.
    fn nested(&mut self, stmt: &Stmt) -> Option<()> {
        match stmt {
            Stmt::Block(body) => {
                self.line("{");
                self.block(body)?;
            }
            Stmt::For { var, from, to, step, hint, body } => {
                let is_uniform = !self.varies(from) && !self.varies(to);
                let is_counted = match step {
                    Step::Add(step) => !self.varies(step),
                    Step::Halve => true,
                };
                if !is_uniform || !is_counted || hint.is_simd() {
                    return None;
                }
                let name = self.printer.name(*var);
                self.printer.loop_head(&name, from, to, step, *hint);
                self.block(body)?;
            }
            Stmt::If { condition, then, otherwise } if !self.varies(condition) && !then.is_empty() => {
                let condition = self.printer.expr(condition);
                self.line(&format!("if ({condition}) {{"));
                self.block(then)?;
                if !otherwise.is_empty() {
                    self.line("} else {");
                    self.block(otherwise)?;
                }
            }
            _ => return None,
        }
        self.line("}");
        Some(())
    }

    /// A vector stored to neighbouring elements.
    fn assign_element(&mut self, array: Var, index: &Expr, value: &Expr) -> Option<()> {
        if self.step(index)? != 1 {
            return None;
        }
        let value = self.value(value)?;
        if let Some(folded) = &mut self.folded {
            let (_, kind) = *folded.arrays.iter().find(|(own, _)| *own == array)?;
            folded.assigned.push(array);
            let (name, value) = (self.printer.name(array), self.vector(value, kind));
            self.line(&format!("{name}v = {value};"));
            return Some(());
        }
        let dtype = self.memory(array)?;
        let is_result = matches!(array, Var::Parameter(Parameter::Buffer(_)));
        let is_streamed = is_result && self.printer.streams;
        let (store, kind) = if is_streamed { Lanes::stream(dtype) } else { Lanes::store(dtype) };
        self.see(dtype);
        let (to, value) = (self.printer.element_of(array, index), self.vector(value, kind));
        let (store, count) = match self.room(array, index) {
            // A vector of half a cache line goes around the caches only if this loop stores the other half too.
            Room::Whole | Room::Counted if is_streamed && !self.is_spilling => (store, self.left()),
            Room::Whole => (store, "LANES".into()),
            Room::Vector if self.count == LEFT && lies_beside(self.printer.kernel, index, self.lanes.0) => {
                (Lanes::store_line(dtype).0, self.count().into())
            }
            Room::Vector if self.count == LEFT => (Lanes::store_first(dtype).0, self.count().into()),
            Room::Vector | Room::Counted => (store, self.count().into()),
        };
        let streams = match is_streamed {
            true => {
                let (var, from) = self.lanes;
                let done = Expr::name(var).then(Arithmetic::Sub, from.clone());
                format!(", streams, {}", self.printer.expr(&done))
            }
            false => String::new(),
        };
        self.line(&format!("{store}({to}, {value}, {count}{streams});"));
        Some(())
    }

    /// How many elements are left of the loop.
    fn left(&mut self) -> String {
        match self.end.filter(|_| self.count != LEFT) {
            Some(end) => self.printer.expr(&end.clone().then(Arithmetic::Sub, self.lanes.0)),
            None => self.count().into(),
        }
    }

    /// How many lanes to load and to store.
    fn count(&mut self) -> &'static str {
        self.counts = true;
        self.count
    }

    /// What there is for lanes side by side.
    fn room(&self, array: Var, index: &Expr) -> Room {
        match self.printer.rooms.at(self.printer.kernel, self.lanes, array, index) {
            Room::Vector if self.is_spilling => Room::Whole,
            room => room,
        }
    }

    fn bind(&mut self, constant: &str, var: Var, kind: Kind, value: Option<Value>) -> Option<()> {
        let value = value.map(|value| format!(" = {}", self.vector(value, kind))).unwrap_or_default();
        let name = self.printer.name(var);
        self.line(&format!("{constant}{} {name}{value};", kind.vector()));
        self.varying.insert(var, Held::Numbers(kind));
        Some(())
    }

    /// The text of a value as a vector of that kind.
    fn vector(&mut self, value: Value, kind: Kind) -> String {
        match value.is_vector && value.kind == kind {
            true => value.text,
            false => self.printer.lanes.to_vector(&value, kind),
        }
    }

    fn type_of(&self, var: Var) -> Option<Type> {
        match var {
            Var::Axis(_) | Var::Lane => Some(Type::Index),
            Var::Local(_) => Some(self.printer.local(var)?.ty),
            Var::Parameter(Parameter::Argument(id)) => {
                Some(Type::Register(self.printer.kernel.arguments[id.index()].value.dtype()))
            }
            Var::Parameter(Parameter::Extent(_) | Parameter::Offset(_)) => Some(Type::Index),
            Var::Parameter(_) => None,
        }
    }

    fn kind_of_var(&self, var: Var) -> Option<Kind> {
        match self.type_of(var)? {
            Type::Register(dtype) => Some(Kind::of(dtype)),
            Type::Memory(dtype) => Some(Lanes::load(dtype).1),
            Type::Index => None,
        }
    }

    /// What the elements of an array or a buffer are in memory.
    fn memory(&self, array: Var) -> Option<DType> {
        match array {
            Var::Parameter(Parameter::Buffer(id)) => Some(self.printer.kernel.buffers[id.index()].dtype),
            Var::Parameter(Parameter::Workspace(number)) => {
                let space = &self.printer.nest.workspaces[number];
                (!space.zeroed).then(|| space.dtype.compute())
            }
            Var::Local(_) => match self.printer.local(array)?.ty {
                Type::Register(dtype) => Some(dtype.compute()),
                Type::Memory(dtype) => Some(dtype),
                Type::Index => None,
            },
            Var::Parameter(_) | Var::Axis(_) | Var::Lane => None,
        }
    }

    /// Notes that there are such numbers. Of nothing but short integers a compiler's own loops have a register full: vectors
    /// would have as many of them as of wider numbers.
    fn see(&mut self, dtype: DType) {
        self.is_worth_it = true;
        self.is_wide |= !matches!(dtype, DType::Bool | DType::U8 | DType::I8 | DType::I16);
    }

    /// Finds arrays of which lanes read all elements.
    fn find_groups(&mut self, body: &[Stmt]) {
        let mut seen: Vec<(Var, i64, IndexExpr, u32)> = Vec::new();
        let mut see = |expr: &Expr| {
            let Expr::Element(array, index) = expr else { return };
            let Expr::Index(index) = &**index else { return };
            let Some(step @ 2..=4) = self.index_step(index) else { return };
            let offset = index.constant_term().rem_euclid(step);
            let (first, bit) = (index.offset(-offset), 1u32 << offset);
            let same = |(own, by, place, _): &&mut (Var, i64, IndexExpr, u32)| {
                (*own, *by) == (*array, step) && *place == first
            };
            match seen.iter_mut().find(same) {
                Some((.., bits)) => *bits |= bit,
                None => seen.push((*array, step, first, bit)),
            }
        };
        fn visit(body: &[Stmt], see: &mut dyn FnMut(&Expr)) {
            for stmt in body {
                stmt.expressions().into_iter().for_each(|expr| expr.visit(&mut *see));
                stmt.bodies().into_iter().for_each(|body| visit(body, see));
            }
        }
        visit(body, &mut see);
        let whole = seen.into_iter().filter(|(_, step, _, bits)| *bits == (1u32 << step) - 1);
        self.groups = whole.map(|(array, step, first, _)| (array, step, first)).collect();
    }

    /// Where the group begins that an element is of, and the element's place in it.
    fn group_of(&self, array: Var, step: i64, index: &Expr) -> Option<(IndexExpr, i64)> {
        let Expr::Index(index) = index else { return None };
        let offset = index.constant_term().rem_euclid(step);
        let first = index.offset(-offset);
        let is_whole = self.groups.contains(&(array, step, first.clone()));
        is_whole.then_some((first, offset))
    }

    /// Whether the value differs among lanes.
    fn varies(&self, expr: &Expr) -> bool {
        let mut varies = false;
        expr.visit(&mut |expr| {
            varies |= match expr {
                Expr::Name(var) | Expr::Element(var, _) => self.varying.contains_key(var),
                Expr::Index(index) | Expr::Position(index) | Expr::Random { index, .. } => {
                    self.index_step(index) != Some(0)
                }
                Expr::InBounds(bounds) => bounds.iter().any(|bound| self.index_step(&bound.expr) != Some(0)),
                _ => false,
            }
        });
        varies
    }

    /// By how much an index grows from lane to lane, if by the same everywhere.
    fn index_step(&self, index: &IndexExpr) -> Option<i64> {
        let mut step = 0;
        for (atom, factor) in index.terms() {
            let own = match atom {
                Atom::Axis(axis) => match self.varying.get(&self.printer.kernel.position(*axis)) {
                    None => 0,
                    Some(Held::Index(step)) => *step,
                    Some(Held::Numbers(_)) => return None,
                },
                Atom::Div(of, _) | Atom::Mod(of, _) => match (atom, self.index_step(of)?) {
                    (_, 0) => 0,
                    (Atom::Mod(..), step) if self.is_segment => step,
                    (_, _) if self.is_segment => 0,
                    _ => return None,
                },
            };
            step += own * factor;
        }
        Some(step)
    }

    /// The same of any expression of indices.
    fn step(&self, expr: &Expr) -> Option<i64> {
        match expr {
            Expr::Index(index) => self.index_step(index),
            Expr::Name(var) => match self.varying.get(var) {
                None => Some(0),
                Some(Held::Index(step)) => Some(*step),
                Some(Held::Numbers(_)) => None,
            },
            Expr::Arithmetic(Arithmetic::Add, a, b) => Some(self.step(a)? + self.step(b)?),
            Expr::Arithmetic(Arithmetic::Sub, a, b) => Some(self.step(a)? - self.step(b)?),
            Expr::Arithmetic(Arithmetic::Mul, a, b) => match (&**a, &**b) {
                (Expr::Int(factor), other) | (other, Expr::Int(factor)) => {
                    Some(self.step(other)? * i64::try_from(*factor).ok()?)
                }
                _ if !self.varies(expr) => Some(0),
                _ => None,
            },
            _ if !self.varies(expr) => Some(0),
            _ => None,
        }
    }
}
