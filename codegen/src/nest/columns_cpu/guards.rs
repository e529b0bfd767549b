//! How a sweep over columns gets around guards: columns that need none have a loop of their own, and where all columns share
//! a guard, what it leaves out is not computed.

use crate::DType;
use crate::cost::WORTH_KEEPING;
use crate::index::{AxisId, Bound};
use crate::ir::{Kernel, ValueId, ValueOp};
use crate::nest::INDEX;
use crate::nest::emitter::Emitter;
use crate::nest::interior::{Interior, decided_where};
use crate::nest::passes::Plan;
use crate::nest::stmt::Arithmetic::{Add, Less, Max, Min, Sub};
use crate::nest::stmt::{Expr, Stmt, Type};
use crate::nest::variable::Var;
use crate::schedule::operations;

/// More ways are too much text.
const MOST_WAYS: usize = 4;

pub(super) enum Guards {
    /// Columns at which every guard holds.
    Interior(Interior),
    /// Positions that do different things, in all columns.
    Ways(Ways),
}

impl Guards {
    /// `None` if nothing is guarded, or if guards are of another form.
    pub(super) fn of(kernel: &Kernel, plan: &Plan, inner: AxisId) -> Option<Guards> {
        let interior = Interior::beside(kernel, inner, &plan.axes);
        if interior.as_ref().is_none_or(Interior::is_whole_rows)
            && let Some(ways) = Ways::of(kernel, plan, inner)
        {
            return Some(Guards::Ways(ways));
        }
        interior.map(Guards::Interior)
    }
}

/// What a position does, by guards that choose between values.
pub(super) enum Ways {
    One(Box<Kernel>),
    Two { bounds: Vec<Bound>, inside: Box<Ways>, outside: Box<Ways> },
}

impl Ways {
    /// `None` if no way leaves out what is costly.
    fn of(kernel: &Kernel, plan: &Plan, inner: AxisId) -> Option<Ways> {
        let ways = Ways::split(kernel, plan, inner, MOST_WAYS);
        let mut costs = Vec::new();
        ways.each(&mut |kernel| {
            let varying = ends(kernel, plan).into_iter().filter(|&id| kernel.value(id).axes.contains(&inner));
            costs.push(varying.map(|id| operations(kernel, id)).sum::<f64>());
        });
        let most = costs.iter().copied().fold(0.0, f64::max);
        costs.iter().any(|cost| most - cost >= WORTH_KEEPING).then_some(ways)
    }

    /// The last choice first, and no more ways than these.
    fn split(kernel: &Kernel, plan: &Plan, inner: AxisId, most: usize) -> Ways {
        let Some(bounds) = last_choice(kernel, plan, inner).filter(|_| most > 1) else {
            return Ways::One(Box::new(kernel.clone()));
        };
        let way = |holds: bool, most: usize| {
            let mut way = decided_where(kernel, |guard| (guard == bounds).then_some(holds));
            // What all positions are combined to is another number in each column, whatever this way adds to it.
            way.values
                .iter_mut()
                .zip(&kernel.values)
                .for_each(|(value, own)| value.axes.clone_from(&own.axes));
            Box::new(Ways::split(&way, plan, inner, most))
        };
        let inside = way(true, most / 2);
        let outside = way(false, most - inside.count());
        Ways::Two { bounds: bounds.to_vec(), inside, outside }
    }

    fn count(&self) -> usize {
        match self {
            Ways::One(_) => 1,
            Ways::Two { inside, outside, .. } => inside.count() + outside.count(),
        }
    }

    fn each<'a>(&'a self, found: &mut impl FnMut(&'a Kernel)) {
        match self {
            Ways::One(kernel) => found(kernel),
            Ways::Two { inside, outside, .. } => {
                inside.each(found);
                outside.each(found);
            }
        }
    }

    fn emit<'k>(&'k self, emitter: &mut Emitter<'k>, step: &mut dyn FnMut(&mut Emitter<'k>, &'k Kernel)) {
        match self {
            Ways::One(kernel) => emitter.using(kernel, |emitter| step(emitter, kernel)),
            Ways::Two { bounds, inside, outside } => {
                let [then, otherwise] = [inside, outside].map(|way| {
                    // What is computed once for all columns is right on this way alone.
                    emitter.open_pinned();
                    way.emit(emitter, step);
                    emitter.close()
                });
                emitter.push(Stmt::If { condition: Expr::InBounds(bounds.clone()), then, otherwise });
            }
        }
    }
}

/// What the passes need.
fn ends(kernel: &Kernel, plan: &Plan) -> Vec<ValueId> {
    let operand = |id: ValueId| match kernel.value(id).op {
        ValueOp::Reduce { operand, .. } => Some(operand),
        _ => None,
    };
    let stores = plan.passes.iter().flat_map(|pass| &pass.stores);
    let stored = stores.map(|&store| kernel.stores[store].value);
    kernel.down_from(plan.reductions().into_iter().filter_map(operand).chain(stored))
}

/// The guard of the last choice between values that all columns make alike.
fn last_choice<'a>(kernel: &'a Kernel, plan: &Plan, inner: AxisId) -> Option<&'a [Bound]> {
    let is_shared = |axis: AxisId| {
        axis != inner && (kernel.axis(axis).kind.is_map_or_offset() || plan.axes.contains(&axis))
    };
    ends(kernel, plan).into_iter().rev().find_map(|id| {
        let ValueOp::Select(condition, ..) = kernel.value(id).op else { return None };
        let ValueOp::InBounds(bounds) = &kernel.value(condition).op else { return None };
        let axes = || bounds.iter().flat_map(|bound| bound.expr.axes());
        axes().all(is_shared).then_some(&bounds[..])
    })
}

/// What a pass does at a position, by a kernel of the same values, for the columns from one to another.
type Step<'a, 'k> = &'a mut dyn FnMut(&mut Emitter<'k>, &'k Kernel, (&Expr, &Expr));

impl Guards {
    /// A position of the sweep, for the columns of a block: the first, and how many.
    pub(super) fn emit<'k>(
        &'k self,
        emitter: &mut Emitter<'k>,
        (kernel, inner): (&'k Kernel, AxisId),
        (first, count): (Var, Var),
        step: Step<'_, 'k>,
    ) {
        let (first, count) = (Expr::Name(first), Expr::Name(count));
        match self {
            Guards::Ways(ways) => {
                ways.emit(emitter, &mut |emitter, kernel| step(emitter, kernel, (&Expr::Int(0), &count)));
            }
            Guards::Interior(interior) => {
                let extent = kernel.axis(inner).extent;
                let (low, high) = borders(emitter, interior, extent, (&first, &count));
                let parts = [
                    (kernel, (&Expr::Int(0), &low)),
                    (&interior.kernel, (&low, &high)),
                    (kernel, (&high, &count)),
                ];
                for (kernel, columns) in parts {
                    // What is computed once for all columns is right in this part alone.
                    emitter.under(Some(columns.0.clone().then(Less, columns.1.clone())), |emitter| {
                        emitter.using(kernel, |emitter| step(emitter, kernel, columns));
                    });
                }
            }
        }
    }
}

/// Where the interior of a block's columns begins and ends at a position.
fn borders(
    emitter: &mut Emitter,
    interior: &Interior,
    extent: u64,
    (first, count): (&Expr, &Expr),
) -> (Expr, Expr) {
    let clamp = |at: u64| match at {
        0 => Expr::Int(0),
        at if at == extent => count.clone(),
        at => {
            let end = first.clone().then(Add, count.clone());
            first.clone().then(Max, at).then(Min, end).then(Sub, first.clone())
        }
    };
    let (mut low, mut high) = (clamp(interior.low), clamp(interior.high));
    if !interior.conditions.is_empty() {
        // Positions at the border have no interior.
        let holds = Expr::InBounds(interior.conditions.clone());
        let inside = emitter.bind("inside", Type::Register(DType::Bool), holds);
        let or_end = |at: Expr| match at == *count {
            true => at,
            false => Expr::Select(Box::new(Expr::Name(inside)), Box::new(at), Box::new(count.clone())),
        };
        (low, high) = (or_end(low), or_end(high));
    }
    let low = Expr::Name(emitter.bind("low", INDEX, low));
    (low, Expr::Name(emitter.bind("high", INDEX, high)))
}
