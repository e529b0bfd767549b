//! Local arrays with room for whole vectors: loads of them do not count the lanes that are left, which would be a branch each.
//!
//! An array that is stored once, from its beginning on, is stored in whole vectors too: the last one's lanes beyond the loop's
//! end are dead. Of others, the lanes beyond it keep what they had.

use rustc_hash::FxHashMap;

use crate::index::{Atom, IndexExpr, gcd};
use crate::ir::Kernel;
use crate::nest::Function;
use crate::nest::stmt::{Arithmetic, Expr, Stmt};
use crate::nest::variable::{LocalId, Space, Var};

/// The lanes of the longest vectors.
pub(crate) const MOST_LANES: u64 = 16;

/// The arrays of a function that loops over lanes store.
#[derive(Default)]
pub(crate) struct Rooms {
    /// Those that are stored in one place, a loop's lanes side by side from the first element on.
    whole: Vec<Var>,
    /// Those that have whole vectors from the first element on.
    from_first: Vec<Var>,
    /// Those that have another vector beyond their end.
    padded: Vec<Var>,
}

/// What there is at a place of an array.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Room {
    /// A whole vector. Its lanes beyond the loop's end are dead.
    Whole,
    /// A whole vector. Its lanes beyond the loop's end may be live.
    Vector,
    /// The loop's own lanes, and what is beyond may be outside of the array.
    Counted,
}

impl Rooms {
    pub(crate) fn of(kernel: &Kernel, function: &Function) -> Rooms {
        let mut arrays: FxHashMap<Var, Use> = FxHashMap::default();
        visit(kernel, &function.body.statements, None, &mut arrays);
        let mut rooms = Rooms::default();
        for (number, local) in (0..).zip(&function.body.locals) {
            let array = Var::Local(LocalId(number));
            let (Some(len), Space::Thread, Some(stores)) = (local.len, local.space, arrays.get(&array))
            else {
                continue;
            };
            match stores {
                Use::Whole => rooms.whole.push(array),
                Use::FromFirst => rooms.from_first.push(array),
                Use::Lanes => {}
                Use::Elements => continue,
            }
            if *stores == Use::Lanes || !len.is_multiple_of(MOST_LANES) {
                rooms.padded.push(array);
            }
        }
        rooms
    }

    /// Whether a vector follows the array.
    pub(crate) fn is_padded(&self, array: Var) -> bool {
        self.padded.contains(&array)
    }

    /// What there is at an index in a loop over lanes.
    pub(super) fn at(&self, kernel: &Kernel, lanes: Lanes<'_>, array: Var, index: &Expr) -> Room {
        let is_from_first = is_from_first(kernel, lanes, index);
        if is_from_first && self.whole.contains(&array) {
            Room::Whole
        } else if is_from_first && self.from_first.contains(&array) || self.is_padded(array) {
            Room::Vector
        } else {
            Room::Counted
        }
    }
}

/// How an array is stored.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Use {
    /// Once, by a loop over lanes, from the first element on.
    Whole,
    /// By loops over lanes, from the first element on, or element by element.
    FromFirst,
    /// By loops over lanes, from other elements on.
    Lanes,
    /// Element by element.
    Elements,
}

/// A loop over lanes: its variable, and where that begins.
type Lanes<'a> = (Var, &'a Expr);

fn visit<'a>(kernel: &Kernel, body: &'a [Stmt], lanes: Option<Lanes<'a>>, arrays: &mut FxHashMap<Var, Use>) {
    let mut note = |array: Var, own: Use| {
        let and_own = |other: &mut Use| {
            *other = match (*other, own) {
                (Use::Elements, Use::Elements) => Use::Elements,
                (Use::Lanes, _) | (_, Use::Lanes) => Use::Lanes,
                _ => Use::FromFirst,
            };
        };
        arrays.entry(array).and_modify(and_own).or_insert(own);
    };
    for stmt in body {
        match stmt {
            Stmt::Assign { target: Expr::Element(array, index), .. } => {
                let own = match lanes {
                    None => Use::Elements,
                    Some(lanes) if is_from_first(kernel, lanes, index) => Use::Whole,
                    Some(_) => Use::Lanes,
                };
                note(*array, own);
            }
            _ => stmt.vars().into_iter().for_each(|array| note(*array, Use::Elements)),
        }
    }
    for stmt in body {
        let lanes = match stmt {
            Stmt::For { var, from, hint, .. } if hint.is_simd() => Some((*var, from)),
            // A place that a loop within has in its index is none of the outer one's.
            Stmt::For { .. } => None,
            _ => lanes,
        };
        stmt.bodies().into_iter().for_each(|body| visit(kernel, body, lanes, arrays));
    }
}

/// Whether an index is the number of the loop's turn.
fn is_from_first(kernel: &Kernel, (var, from): Lanes<'_>, index: &Expr) -> bool {
    let is_var = |expr: &Expr| match expr {
        Expr::Name(name) => *name == var,
        Expr::Index(index) => is_axis(kernel, index, var),
        _ => false,
    };
    match index {
        Expr::Arithmetic(Arithmetic::Sub, a, b) => is_var(a) && **b == *from,
        index => is_var(index) && *from == Expr::Int(0),
    }
}

/// Whether other lines than this one may lie in its last vector: what else the index grows by is no multiple of a vector.
pub(super) fn lies_beside(kernel: &Kernel, index: &Expr, var: Var) -> bool {
    growth(kernel, index, var) % MOST_LANES as i64 != 0
}

/// A divisor of how far an index goes where other variables than this one grow; 0 if there are none.
fn growth(kernel: &Kernel, index: &Expr, var: Var) -> i64 {
    match index {
        Expr::Int(_) => 0,
        Expr::Name(name) if *name == var => 0,
        Expr::Index(index) => index.terms().iter().fold(0, |all, (atom, stride)| match atom {
            Atom::Axis(axis) if kernel.position(*axis) == var => all,
            _ => gcd(all, *stride),
        }),
        Expr::Arithmetic(Arithmetic::Add, a, b) => gcd(growth(kernel, a, var), growth(kernel, b, var)),
        // What is subtracted is where a part begins.
        Expr::Arithmetic(Arithmetic::Sub, a, _) => growth(kernel, a, var),
        Expr::Arithmetic(Arithmetic::Mul, a, b) => match (&**a, &**b) {
            (Expr::Int(times), of) | (of, Expr::Int(times)) => {
                growth(kernel, of, var).saturating_mul(*times as i64)
            }
            _ => 1,
        },
        _ => 1,
    }
}

fn is_axis(kernel: &Kernel, index: &IndexExpr, var: Var) -> bool {
    match index.terms() {
        [(Atom::Axis(axis), 1)] => index.constant_term() == 0 && kernel.position(*axis) == var,
        _ => false,
    }
}
