//! Reductions.

use super::Accuracy::{Exact, Near};
use super::Gives::{Same, Sum};
use super::{Accuracy, Group, Input, SMALL, TRUTH, operations};

const BOX: Input = SMALL.shape(&[3, 4, 37]);
const CLOSE: Accuracy = Near { relative: 8.0, absolute: 8.0 };

operations! {
    /// Along axes.
    REDUCTIONS: Group::Reduction;
    sum(a: BOX) All -> Sum, Exact, "The sum.": "torch.sum(a, -1)" => a.sum(-1), "torch.sum(a, (0, 2))" => a.sum([0, 2]), "torch.sum(a)" => a.sum(..);
    sum_keepdim(a: BOX) All -> Sum, Exact, "`sum` that keeps the axes.": "torch.sum(a, 1, keepdim=True)" => a.sum_keepdim(1);
    prod(a: BOX) All -> Sum, Near { relative: 40.0, absolute: 0.0 }, "The product.": "torch.prod(a, 0)" => a.prod(0);
    prod_keepdim(a: BOX) All -> Sum, Near { relative: 40.0, absolute: 0.0 }, "`prod` that keeps the axes.": "torch.prod(a, 1, keepdim=True)" => a.prod_keepdim(1);
    max(a: BOX) All -> Same, Exact, "The largest; NaN if any is.": "torch.amax(a, -1)" => a.max(-1);
    max_keepdim(a: BOX) All -> Same, Exact, "`max` that keeps the axes.": "torch.amax(a, 1, keepdim=True)" => a.max_keepdim(1);
    min(a: BOX) All -> Same, Exact, "The smallest; NaN if any is.": "torch.amin(a, (0, 1))" => a.min([0, 1]);
    min_keepdim(a: BOX) All -> Same, Exact, "`min` that keeps the axes.": "torch.amin(a, 1, keepdim=True)" => a.min_keepdim(1);
    any(a: BOX) All -> TRUTH, Exact, "Whether any is nonzero.": "torch.any(a, -1).bool()" => a.any(-1);
    any_keepdim(a: BOX) All -> TRUTH, Exact, "`any` that keeps the axes.": "torch.any(a, 1, keepdim=True).bool()" => a.any_keepdim(1);
    all(a: BOX) All -> TRUTH, Exact, "Whether all are nonzero.": "torch.all(a, -1).bool()" => a.all(-1);
    all_keepdim(a: BOX) All -> TRUTH, Exact, "`all` that keeps the axes.": "torch.all(a, 1, keepdim=True).bool()" => a.all_keepdim(1);
    mean(a: BOX) Floats -> Same, CLOSE, "The mean.": "torch.mean(a, -1)" => a.mean(-1);
    mean_keepdim(a: BOX) Floats -> Same, CLOSE, "`mean` that keeps the axes.": "torch.mean(a, 1, keepdim=True)" => a.mean_keepdim(1);
    var(a: BOX) Floats -> Same, CLOSE, "The variance.": "torch.var(a, -1, correction=1)" => a.var(-1, 1);
    var_keepdim(a: BOX) Floats -> Same, CLOSE, "`var` that keeps the axes.": "torch.var(a, 1, correction=0, keepdim=True)" => a.var_keepdim(1, 0);
    std(a: BOX) Floats -> Same, CLOSE, "The standard deviation.": "torch.std(a, -1, correction=1)" => a.std(-1, 1);
    std_keepdim(a: BOX) Floats -> Same, CLOSE, "`std` that keeps the axes.": "torch.std(a, 1, correction=0, keepdim=True)" => a.std_keepdim(1, 0);
}
