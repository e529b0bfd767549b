//! Reductions.

use super::row::Accuracy::{Exact, Near};
use super::row::Gives::{Fixed, Float, Same, Sum};
use super::row::{Accuracy, Elements, Group, Input, SMALL, TRUTH, operations};
use crate::ScatterReduction::{Amax, Amin, Mean, Prod, Sum as Added};
use crate::{DType, ScanOrder};

const BOX: Input = SMALL.shape(&[3, 4, 37]);
/// Sources of [`BOX`], and where they go.
const SOURCE: Input = SMALL.shape(&[3, 9, 37]);
const LINE: Input = Input::new(Elements::Below(4), Some(DType::I64)).shape(&[9]);
const PLACES: Input = Input::new(Elements::Below(4), Some(DType::I64)).shape(&[2, 9, 30]);
const BINS: Input = Input::new(Elements::Below(5), None).shape(&[100]);
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
    norm(a: BOX) Floats -> Same, CLOSE, "The p-norm.": "torch.linalg.vector_norm(a, 2, dim=-1)" => a.norm(-1, 2.0), "torch.linalg.vector_norm(a, 3, dim=0)" => a.norm(0, 3.0), "torch.linalg.vector_norm(a, float('inf'), dim=(0, 1))" => a.norm([0, 1], f64::INFINITY), "torch.linalg.vector_norm(a, 0, dim=1)" => a.norm(1, 0.0);
    norm_keepdim(a: BOX) Floats -> Same, CLOSE, "`norm` that keeps the axes.": "torch.linalg.vector_norm(a, 2, dim=1, keepdim=True)" => a.norm_keepdim(1, 2.0);
    logsumexp(a: BOX) All -> Float, CLOSE, "`log(sum(exp(x)))`.": "torch.logsumexp(a if a.is_floating_point() else a.float(), -1)" => a.logsumexp(-1);
    logsumexp_keepdim(a: BOX) All -> Float, CLOSE, "`logsumexp` that keeps the axes.": "torch.logsumexp(a if a.is_floating_point() else a.float(), 1, keepdim=True)" => a.logsumexp_keepdim(1);
    nansum(a: BOX) All -> Sum, Exact, "The sum of what is not NaN.": "torch.nansum(a, -1)" => a.nansum(-1);
    nansum_keepdim(a: BOX) All -> Sum, Exact, "`nansum` that keeps the axes.": "torch.nansum(a, 1, keepdim=True)" => a.nansum_keepdim(1);
    nanmean(a: BOX) Floats -> Same, CLOSE, "The mean of what is not NaN.": "torch.nanmean(a, -1)" => a.nanmean(-1);
    nanmean_keepdim(a: BOX) Floats -> Same, CLOSE, "`nanmean` that keeps the axes.": "torch.nanmean(a, 1, keepdim=True)" => a.nanmean_keepdim(1);
    count_nonzero(a: BOX) All -> Fixed(DType::I64), Exact, "How many are not 0.": "torch.count_nonzero(a, -1)" => a.count_nonzero(-1);
    count_nonzero_keepdim(a: BOX) All -> Fixed(DType::I64), Exact, "`count_nonzero` that keeps the axes.": "torch.count_nonzero(a, 1).unsqueeze(1)" => a.count_nonzero_keepdim(1);
    aminmax(a: BOX) All -> Same, Exact, "The smallest and the largest.": "(torch.amin(a, -1), torch.amax(a, -1))" => a.aminmax(-1);
    aminmax_keepdim(a: BOX) All -> Same, Exact, "`aminmax` that keeps the axes.": "(torch.amin(a, 1, keepdim=True), torch.amax(a, 1, keepdim=True))" => a.aminmax_keepdim(1);
    argmax(a: BOX) All -> Fixed(DType::I64), Exact, "The first index of the largest; of NaN if there is one.": "torch.argmax(a.to(torch.uint8) if a.dtype == torch.bool else a, -1)" => a.argmax(-1), "torch.argmax(a.to(torch.uint8) if a.dtype == torch.bool else a)" => a.argmax(..);
    argmax_keepdim(a: BOX) All -> Fixed(DType::I64), Exact, "`argmax` that keeps the axes.": "torch.argmax(a.to(torch.uint8) if a.dtype == torch.bool else a, 1, keepdim=True)" => a.argmax_keepdim(1);
    max_with_indices(a: BOX) All -> Same, Exact, "`max` and `argmax`.": "(torch.amax(a, 0), torch.argmax(a.to(torch.uint8) if a.dtype == torch.bool else a, 0))" => a.max_with_indices(0);
    argmin(a: BOX) All -> Fixed(DType::I64), Exact, "The first index of the smallest; of NaN if there is one.": "torch.argmin(a.to(torch.uint8) if a.dtype == torch.bool else a, -1)" => a.argmin(-1), "torch.argmin(a.to(torch.uint8) if a.dtype == torch.bool else a)" => a.argmin(..);
    argmin_keepdim(a: BOX) All -> Fixed(DType::I64), Exact, "`argmin` that keeps the axes.": "torch.argmin(a.to(torch.uint8) if a.dtype == torch.bool else a, 1, keepdim=True)" => a.argmin_keepdim(1);
    min_with_indices(a: BOX) All -> Same, Exact, "`min` and `argmin`.": "(torch.amin(a, 0), torch.argmin(a.to(torch.uint8) if a.dtype == torch.bool else a, 0))" => a.min_with_indices(0);
    var_mean(a: BOX) Floats -> Same, CLOSE, "The variance and the mean.": "torch.var_mean(a, -1, correction=1)" => a.var_mean(-1, 1);
    std_mean(a: BOX) Floats -> Same, CLOSE, "The standard deviation and the mean.": "torch.std_mean(a, -1, correction=1)" => a.std_mean(-1, 1);
    std_mean_keepdim(a: BOX) Floats -> Same, CLOSE, "`std_mean` that keeps the axes.": "torch.std_mean(a, 1, correction=0, keepdim=True)" => a.std_mean_keepdim(1, 0);
    trapezoid(a: BOX) Floats -> Same, CLOSE, "The area below the elements along an axis.": "torch.trapezoid(a, dx=0.5, dim=1)" => a.trapezoid(1, 0.5);
    cov(a: SMALL.shape(&[4, 37])) All -> Float, CLOSE, "The covariances of rows.": "torch.cov(a if a.is_floating_point() else a.float())" => a.cov(1), "torch.cov(a[1] if a.is_floating_point() else a[1].float(), correction=0)" => a.select(0, 1).cov(0);
    corrcoef(a: SMALL.shape(&[4, 37])) All -> Float, CLOSE, "The correlations of rows.": "torch.corrcoef(a if a.is_floating_point() else a.float())" => a.corrcoef();
    var_mean_keepdim(a: BOX) Floats -> Same, CLOSE, "`var_mean` that keeps the axes.": "torch.var_mean(a, 1, correction=0, keepdim=True)" => a.var_mean_keepdim(1, 0);
    cumsum(a: BOX) All -> Sum, CLOSE, "The sums up to each element.": "torch.cumsum(a, -1)" => a.cumsum(-1), "torch.cumsum(a, 1)" => a.cumsum(1);
    cumsum_with(a: BOX) All -> Sum, CLOSE, "`cumsum` in another order.": "torch.cumsum(a.flip(0), 0).flip(0)" => a.cumsum_with(0, ScanOrder::new().reverse());
    cumulative_trapezoid(a: BOX) Floats -> Same, CLOSE, "The areas below the elements up to each.": "torch.cumulative_trapezoid(a, dx=0.5, dim=1)" => a.cumulative_trapezoid(1, 0.5);
    cumprod(a: BOX) All -> Sum, Near { relative: 40.0, absolute: 0.0 }, "The products up to each element.": "torch.cumprod(a, 0)" => a.cumprod(0);
    cumprod_with(a: BOX) All -> Sum, Near { relative: 40.0, absolute: 0.0 }, "`cumprod` in another order.": "torch.cumprod(a.flip(1), 1).flip(1)" => a.cumprod_with(1, ScanOrder::new().reverse());
    cummax(a: BOX) All -> Same, Exact, "The largest up to each element.": "torch.cummax(a, -1)[0]" => a.cummax(-1);
    cummax_with(a: BOX) All -> Same, Exact, "`cummax` in another order.": "torch.cummax(a.flip(0), 0)[0].flip(0)" => a.cummax_with(0, ScanOrder::new().reverse());
    cummin(a: BOX) All -> Same, Exact, "The smallest up to each element.": "torch.cummin(a, 1)[0]" => a.cummin(1);
    cummin_with(a: BOX) All -> Same, Exact, "`cummin` in another order.": "torch.cummin(a.flip(-1), -1)[0].flip(-1)" => a.cummin_with(-1, ScanOrder::new().reverse());
    cummax_with_indices(a: BOX) All -> Same, Exact, "`cummax` and its positions.": "tuple(torch.cummax(a, -1))" => a.cummax_with_indices(-1), "tuple(torch.cummax(a, 0))" => a.cummax_with_indices(0);
    cummin_with_indices(a: BOX) All -> Same, Exact, "`cummin` and its positions.": "tuple(torch.cummin(a, 1))" => a.cummin_with_indices(1);
    logcumsumexp(a: BOX) Floats -> Same, CLOSE, "`log(cumsum(exp(x)))`.": "torch.logcumsumexp(a, -1)" => a.logcumsumexp(-1), "torch.logcumsumexp(a, 0)" => a.logcumsumexp(0);
    logcumsumexp_with(a: BOX) Floats -> Same, CLOSE, "`logcumsumexp` in another order.": "torch.logcumsumexp(a.flip(1), 1).flip(1)" => a.logcumsumexp_with(1, ScanOrder::new().reverse());
    scan_with(a: BOX) All -> Float, CLOSE, "What a step of your own makes of the result before and of each element.": "torch.stack([h := x * 0.5 if i == 0 else h * 0.5 + x * 0.5 for i, x in enumerate(a.unbind(0))])" => a.scan_with(0, 0.0, |h, x| h * 0.5 + x * 0.5);
    scatter(a: BOX, index: PLACES, src: SOURCE) All -> Same, Exact, "The source put where the index says, the last of several.": "torch.scatter(a, 1, index, src)" => a.scatter(1, index, src), "torch.scatter(a, 1, index, 3)" => a.scatter(1, index, 3);
    scatter_add(a: BOX, index: PLACES, src: SOURCE) Numbers -> Same, Exact, "The source added where the index says.": "torch.scatter_add(a, 1, index, src)" => a.scatter_add(1, index, src);
    scatter_reduce(a: BOX, index: PLACES, src: SOURCE) Numbers -> Same, Near { relative: 40.0, absolute: 8.0 }, "Elements and the source combined where the index says.": "torch.scatter_reduce(a, 1, index, src, 'sum', include_self=False)" => a.scatter_reduce(1, index, src, Added, false), "torch.scatter_reduce(a, 1, index, src, 'prod')" => a.scatter_reduce(1, index, src, Prod, true), "torch.scatter_reduce(a, 1, index, src, 'mean')" => a.scatter_reduce(1, index, src, Mean, true), "torch.scatter_reduce(a, 1, index, src, 'amax')" => a.scatter_reduce(1, index, src, Amax, true), "torch.scatter_reduce(a, 1, index, src, 'amin', include_self=False)" => a.scatter_reduce(1, index, src, Amin, false);
    index_add(a: BOX, index: LINE, src: SOURCE) Numbers -> Same, Exact, "Positions of the source added to those that the index names.": "torch.index_add(a, 1, index, src)" => a.index_add(1, index, src);
    index_add_with(a: BOX, index: LINE, src: SOURCE) Numbers -> Same, Exact, "`index_add` of a multiple of the source.": "torch.index_add(a, 1, index, src, alpha=2)" => a.index_add_with(1, index, src, 2);
    bincount(a: BINS) Integers -> Fixed(DType::I64), Exact, "How often each number occurs.": "torch.bincount(a.long(), minlength=7)" => a.bincount(7);
    bincount_with(a: BINS, weights: Input::new(Elements::Small, Some(DType::F32)).shape(&[100])) Integers -> Fixed(DType::F32), Exact, "`bincount` with weights.": "torch.bincount(a.long(), weights, minlength=7)" => a.bincount_with(7, weights);
    histc(a: BOX) Floats -> Same, Exact, "How many elements are in each of equal parts.": "torch.histc(a, 5, -4, 6)" => a.histc(5, -4.0, 6.0);
}
