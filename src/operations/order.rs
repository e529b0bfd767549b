//! Rows in order.

use super::row::Accuracy::{Exact, Near};
use super::row::Gives::{Fixed, Same};
use super::row::{ANY, Accuracy, Group, Input, SMALL, TRUTH, operations};
use crate::DType;

const BOX: Input = ANY.shape(&[3, 21, 4]);
const ROWS: Input = SMALL.shape(&[3, 4, 11]);
const BETWEEN: Accuracy = Near { relative: 8.0, absolute: 8.0 };

operations! {
    /// Along an axis. Positions of equal elements are PyTorch's where it says which they are.
    ORDER: Group::Order;
    sort(a: BOX) All -> Same, Exact, "The elements in order, and where they come from; stable, NaN last.": "torch.sort(a, dim=1, stable=True)" => a.sort(1, false), "torch.sort(a, dim=0, descending=True, stable=True)" => a.sort(0, true), "torch.sort(a[0, 0, 0], stable=True)" => a.select(0, 0).select(0, 0).select(0, 0).sort(0, false);
    argsort(a: BOX) All -> Fixed(DType::I64), Exact, "Where the elements in order come from.": "torch.argsort(a, dim=-1, stable=True)" => a.argsort(-1, false), "torch.argsort(a, dim=1, descending=True, stable=True)" => a.argsort(1, true);
    msort(a: BOX) All -> Same, Exact, "The elements along the first axis in order.": "torch.msort(a)" => a.msort();
    topk(a: BOX) All -> Same, Exact, "The largest or smallest elements, and where they come from.": "[x[:, :5] for x in torch.sort(a, dim=1, descending=True, stable=True)]" => a.topk(5, 1, true), "[x[..., :2] for x in torch.sort(a, dim=-1, stable=True)]" => a.topk(2, -1, false), "torch.topk(a, 0, 1)" => a.topk(0, 1, true);
    kthvalue(a: BOX) All -> Same, Exact, "The k-th smallest element, and where it is.": "torch.kthvalue(a, 4, 1)[0]" => a.kthvalue(4, 1).0;
    median(a: BOX) All -> Same, Exact, "The lower median, and where it is; NaN if any is.": "torch.median(a, 1)[0]" => a.median(1).0, "torch.median(a, -1)[0]" => a.median(-1).0;
    nanmedian(a: BOX) All -> Same, Exact, "The lower median of what is not NaN, and where it is.": "torch.nanmedian(a, 1)[0]" => a.nanmedian(1).0, "torch.nanmedian(a, 2)[0]" => a.nanmedian(2).0;
    mode(a: SMALL.shape(&[3, 21, 4])) All -> Same, Exact, "What occurs most often, and where.": "torch.mode(a, 1)[0]" => a.mode(1).0, "torch.mode(a, -1)[0]" => a.mode(-1).0;
    quantile(a: ROWS) Floats -> Same, BETWEEN, "What a part of the elements is below.": "torch.quantile(a, 0.3, -1)" => a.quantile(0.3, -1), "torch.quantile(a, 0.5, 1)" => a.quantile(0.5, 1), "torch.quantile(a, 1, 0)" => a.quantile(1.0, 0), "torch.quantile(a, torch.tensor([0.25, 0.5, 0.9], dtype=a.dtype), 1)" => a.quantile([0.25, 0.5, 0.9], 1), "torch.quantile(a, torch.tensor([0.5], dtype=a.dtype), -1)" => a.quantile(vec![0.5], -1);
    nanquantile(a: ROWS) Floats -> Same, BETWEEN, "`quantile` of what is not NaN.": "torch.nanquantile(a, 0.7, 1)" => a.nanquantile(0.7, 1), "torch.nanquantile(a.where(a > 0, np.nan), 0.3, -1)" => a.gt(0).where_(a, f64::NAN).nanquantile(0.3, -1), "torch.nanquantile(a.where(a > 0, np.nan), torch.tensor([0.0, 0.25, 0.5], dtype=a.dtype), -1)" => a.gt(0).where_(a, f64::NAN).nanquantile([0.0, 0.25, 0.5], -1);
    searchsorted(a: SMALL.shape(&[3, 20]), b: SMALL.shape(&[3, 7])) All -> Fixed(DType::I64), Exact, "Where values would stand in rows in order.": "torch.searchsorted(torch.sort(a, 1)[0], b)" => a.sort(1, false).0.searchsorted(b, false), "torch.searchsorted(torch.sort(a, 1)[0], b, right=True)" => a.sort(1, false).0.searchsorted(b, true), "torch.searchsorted(torch.sort(a[0])[0], b)" => a.select(0, 0).msort().searchsorted(b, false);
    bucketize(a: ANY.shape(&[5, 9]), b: SMALL.shape(&[6])) All -> Fixed(DType::I64), Exact, "The number of the bucket between boundaries.": "torch.bucketize(a, torch.sort(b)[0])" => a.bucketize(&b.msort(), false), "torch.bucketize(a, torch.sort(b)[0], right=True)" => a.bucketize(&b.msort(), true);
    isin(a: SMALL.shape(&[5, 9]), b: SMALL.shape(&[4, 3])) All -> TRUTH, Exact, "Whether each element is among others.": "torch.isin(a, b)" => a.isin(b), "torch.isin(a, b[0])" => a.isin(&b.select(0, 0));
    combinations(a: SMALL.shape(&[11])) All -> Same, Exact, "All choices of some elements.": "torch.combinations(a)" => a.combinations(2, false), "torch.combinations(a, 2, True)" => a.combinations(2, true), "torch.combinations(a[:6], 4)" => a.slice(0, ..6).combinations(4, false), "torch.combinations(a[:4], 3, True)" => a.slice(0, ..4).combinations(3, true);
}
