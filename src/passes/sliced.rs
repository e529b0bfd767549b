//! Slices of what is joined or padded. A join is a choice between padded tensors, so a part of it, as its gradient takes
//! of the whole one for each operand, is a part of one of them, where nothing is chosen and nothing is padded.

use smallvec::SmallVec;

use super::rule::{Site, Step, splat};
use crate::graph::maps::is_bordered_image;
use crate::graph::op::{ConstantRole, Op, View};
use crate::graph::{Graph, NodeId};

/// The least and the greatest position along each axis.
type Region = SmallVec<[(i64, i64); 6]>;

/// What a slice reads of its operand; `None` of nothing.
fn region(site: &Site<'_>) -> Option<Region> {
    let Op::View(View::Slice { starts, steps }) = &site.node.op else { return None };
    let ends = |axis: usize| {
        let (first, length) = (starts[axis], site.node.shape[axis] as i64);
        let last = first + steps[axis] * (length - 1);
        (length > 0).then(|| (first.min(last), first.max(last)))
    };
    (0..starts.len()).map(ends).collect()
}

/// How a region lies beside the part of a padded tensor that is not padding.
enum Placed {
    Inside,
    Outside,
    Across,
}

/// Outside counts only where one end of one axis is padded. With padding at both ends a slice that moves on may be before the part,
/// inside of it, and behind it: the first and the last plan of such sizes would be alike, and `compiler::family` would take those in
/// between for the same.
fn placed(region: &Region, before: &[usize], lengths: &[usize], extents: &[usize]) -> Placed {
    let (mut placed, mut ends, mut is_beyond) = (Placed::Inside, 0, false);
    for (axis, &(low, high)) in region.iter().enumerate() {
        let (from, to) = (before[axis], before[axis] + lengths[axis]);
        ends += usize::from(from > 0) + usize::from(to < extents[axis]);
        is_beyond |= high < from as i64 || low >= to as i64;
        if low < from as i64 || high >= to as i64 {
            placed = Placed::Across;
        }
    }
    if is_beyond && ends == 1 { Placed::Outside } else { placed }
}

/// The truth of a condition, if it is the same in all of the region: as of one that says where the first part of a join is.
fn truth(graph: &Graph, condition: NodeId, region: &Region) -> Option<bool> {
    if let Some(constant) = splat(graph, condition) {
        return Some(constant.value.is_nonzero());
    }
    let Op::View(view) = &graph.node(condition).op else { return None };
    let operand = *graph.operands(condition).first()?;
    let shape = &graph.node(operand).shape;
    match view {
        View::Expand => {
            let added = region.len() - shape.rank();
            let stretched =
                |(axis, &ends): (usize, &(i64, i64))| if shape[axis] == 1 { (0, 0) } else { ends };
            truth(graph, operand, &region[added..].iter().enumerate().map(stretched).collect())
        }
        View::Pad { before, value } => match placed(region, before, shape, &graph.node(condition).shape) {
            Placed::Outside => Some(value.is_nonzero()),
            Placed::Across => None,
            Placed::Inside => {
                let moved =
                    region.iter().zip(before).map(|(&(low, high), &by)| (low - by as i64, high - by as i64));
                truth(graph, operand, &moved.collect())
            }
        },
        _ => None,
    }
}

/// A slice of a join, or of what goes back to a part of one, is one of the chosen, if the condition is the same for all of it. Not
/// one of a table that is written over in part: a loop that does so step by step would be as many texts as it has steps.
pub(super) fn of_choice(site: &mut Site<'_>) -> Option<Step> {
    let Op::Select = site.operand(0).op else { return None };
    let operands = site.inner(0);
    let truth = truth(site.graph, operands[0], &region(site)?)?;
    let (chosen, other) = if truth { (operands[1], operands[2]) } else { (operands[2], operands[1]) };
    let is_padded = matches!(site.graph.node(other).op, Op::View(View::Pad { .. }));
    (is_padded || splat(site.graph, other).is_some())
        .then(|| site.become_op(site.node.op.clone(), &[chosen]))?
}

/// A slice of a padded tensor is one of the tensor, or of the padding.
pub(super) fn of_padded(site: &mut Site<'_>) -> Option<Step> {
    let Op::View(View::Pad { before, value }) = &site.operand(0).op else { return None };
    let Op::View(View::Slice { starts, steps }) = &site.node.op else { return None };
    let x = site.inner(0)[0];
    let (lengths, extents) = (&site.graph.node(x).shape, &site.operand(0).shape);
    match placed(&region(site)?, before, lengths, extents) {
        Placed::Across => None,
        // The one of many crops of an image that has nothing of the border: the plan of the others serves it, too.
        Placed::Inside
            if *lengths == site.node.shape
                && steps.iter().all(|&step| step == 1)
                && is_bordered_image(before, lengths, extents) =>
        {
            None
        }
        Placed::Outside => site.become_constant(*value, ConstantRole::Literal),
        Placed::Inside => {
            let starts = starts.iter().zip(before).map(|(&start, &before)| start - before as i64).collect();
            site.become_op(Op::View(View::Slice { starts, steps: steps.clone() }), &[x])
        }
    }
}
