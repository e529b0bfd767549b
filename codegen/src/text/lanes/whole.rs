//! Local arrays of whole vectors. Such an array is stored from its beginning on and nowhere else, so that what the last vector
//! has beyond the loop's end is nobody's: neither loads nor stores count the lanes that are left, which would be a branch each.

use rustc_hash::FxHashMap;

use crate::index::{Atom, IndexExpr};
use crate::ir::Kernel;
use crate::nest::Function;
use crate::nest::stmt::{Arithmetic, Expr, Stmt};
use crate::nest::variable::{Space, Var};

/// The lanes of the longest vectors.
const MOST_LANES: u64 = 16;

/// The arrays of a function that have room for whole vectors and are stored in one place, a loop's lanes side by side from the
/// first element on.
pub(crate) fn find(kernel: &Kernel, function: &Function) -> Vec<Var> {
    let mut arrays: FxHashMap<Var, Use> = FxHashMap::default();
    visit(kernel, &function.body.statements, None, &mut arrays);
    let locals = function.body.locals.iter().zip(0..);
    let has_room = |len: Option<u64>| len.is_some_and(|len| len.is_multiple_of(MOST_LANES));
    locals
        .filter(|(local, _)| local.space == Space::Thread && has_room(local.len))
        .map(|(_, number)| Var::Local(crate::nest::variable::LocalId(number)))
        .filter(|array| arrays.get(array) == Some(&Use::Whole))
        .collect()
}

/// How an array is stored.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    /// Once, by a loop over lanes, from the first element on.
    Whole,
    Other,
}

/// A loop over lanes: its variable, and where that begins.
type Lanes<'a> = (Var, &'a Expr);

fn visit<'a>(kernel: &Kernel, body: &'a [Stmt], lanes: Option<Lanes<'a>>, arrays: &mut FxHashMap<Var, Use>) {
    for stmt in body {
        match stmt {
            Stmt::Assign { target: Expr::Element(array, index), .. } => {
                let is_whole = lanes.is_some_and(|lanes| is_from_first(kernel, lanes, index));
                let own = if is_whole { Use::Whole } else { Use::Other };
                arrays.entry(*array).and_modify(|other| *other = Use::Other).or_insert(own);
            }
            _ => stmt.vars().into_iter().for_each(|array| {
                arrays.insert(*array, Use::Other);
            }),
        }
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
pub(super) fn is_from_first(kernel: &Kernel, (var, from): Lanes<'_>, index: &Expr) -> bool {
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

fn is_axis(kernel: &Kernel, index: &IndexExpr, var: Var) -> bool {
    match index.terms() {
        [(Atom::Axis(axis), 1)] => index.constant_term() == 0 && kernel.position(*axis) == var,
        _ => false,
    }
}
