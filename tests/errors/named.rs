//! Bad inputs of what has further arguments, and of what goes by PyTorch's names.

use lazuli::{
    BinaryCrossEntropy, BitOrder, ConvolveMode, DType, Fourier, KlDiv, MatrixNorm, NllLoss, PadMode,
    QuantileBetween, Reduction::Mean, Tensor, s,
};

use crate::{Page, tensor};

pub fn draws_and_points(page: &mut Page) {
    page.section("Draws and points");
    let (x, whole) = (tensor(DType::F32, &[3, 4]), tensor(DType::I32, &[3, 4]));
    let (line, number) = (tensor(DType::F32, &[4]), tensor(DType::F32, &[]));
    let (labels, bools) = (tensor(DType::I64, &[3]), tensor(DType::Bool, &[3, 4]));
    mistakes! { page:
        x.exponential(0.0, 1);
        whole.exponential(1.0, 1);
        x.geometric(1.5, 1);
        bools.geometric(0.5, 1);
        x.cauchy(0.0, f64::NAN, 1);
        x.log_normal(0.0, -1.0, 1);
        whole.poisson(1);
        x.rrelu(0.5, 0.25, 1);
        Tensor::lexsort([&x, &line], 0);
        Tensor::lexsort([&x], 2);
        line.interp(&x, &x);
        line.interp_with(&line, &labels, None, None);
        line.histogram(&number, None);
        x.histogram(&line, Some(&line));
        x.unique_dim(2);
        x.slice(1, ..0).unique_dim_inverse_counts(0);
    }
}

pub fn names(page: &mut Page) {
    page.section("Further names");
    let (x, whole) = (tensor(DType::F32, &[3, 4]), tensor(DType::I32, &[3, 4]));
    let (line, number) = (tensor(DType::F32, &[4]), tensor(DType::F32, &[]));
    let (labels, bools) = (tensor(DType::I64, &[3]), tensor(DType::Bool, &[3, 4]));
    mistakes! { page:
        bools.view_dtype(DType::F64);
        number.view_dtype(DType::U8);
        line.view_dtype(DType::Bool);
        line.fliplr();
        number.flipud();
        line.diagflat(isize::MAX);
        x.expand_as(&line);
        x.reshape_as(&line);
        Tensor::broadcast_tensors(&[&x, &labels]);
        x.put(&labels, &line, false);
        x.put(&line, &line, false);
        x.put(&labels, &labels, true);
        x.put(&(labels.clone() + 20), tensor(DType::F32, &[3]), true).eval();
        x.ldexp(&labels);
        x.float_power(&labels);
        x.zeta(&labels);
        x.gammainc(&labels);
        x.gammaincc(&labels);
        line.lu_factor().0;
        x.lu_solve(&labels, &x);
        x.slice(1, ..3).lu_solve(&bools.select(1, 0), &x);
        x.slice(1, ..3).lu_solve(&labels, &line.unsqueeze(1));
        x.index(&[&bools.slice(1, 1..)]);
        x.index_put(&[&bools], &line.slice(0, ..3), false).eval();
        x.multigammaln(0);
        x.dist(&labels, 2.0);
        whole.dist(&whole, 2.0);
        line.addmv(&x, &line, 1, 1);
        line.addmv(&line, &x, 1, 1);
        bools.addr(&line, &line, 1, 1);
        x.addr(&x, &line, 1, 1);
        x.addbmm(&x, &x, 1, 1);
        x.addbmm(tensor(DType::F32, &[2, 3, 4]), tensor(DType::F32, &[2, 3, 4]), 1, 1);
        x.multi_margin_loss(&labels, 3, 1.0, None, Mean);
        x.multi_margin_loss(&line, 1, 1.0, None, Mean);
        x.multi_margin_loss(&labels.slice(0, 1..), 1, 1.0, None, Mean);
        x.multi_margin_loss(&labels, 1, 1.0, Some(&labels), Mean);
        x.multi_margin_loss(&(labels.clone() + 9), 1, 1.0, None, Mean).eval();
        number.multilabel_margin_loss(&labels, Mean);
        x.multilabel_margin_loss(&labels, Mean);
        whole.multilabel_margin_loss(&whole, Mean);
        number.multilabel_soft_margin_loss(&number, None, Mean);
        x.multilabel_soft_margin_loss(&labels, None, Mean);
        bools.randint_like(0, 2, 1);
        tensor(DType::U8, &[2]).randint_like(0, 257, 1);
        Tensor::normal(1.0, 2.0, 3);
        Tensor::normal(&whole, 2.0, 3);
        Tensor::normal(&x, &labels, 3);
        line.dropout1d(0.5, 1);
        whole.dropout1d(0.5, 1);
        x.dropout2d(0.5, 1);
        x.dropout3d(0.5, 1);
        x.dropout1d(1.5, 1);
        x.allclose(&labels, 0.0, 0.0, false);
        x.allclose(&x, -1.0, 0.0, false);
        x.equal(x.reshape([5]));
        x.reshape([5]).argwhere();
    }
}

pub fn further_arguments(page: &mut Page) {
    page.section("Further arguments");
    let (x, whole) = (tensor(DType::F32, &[3, 4]), tensor(DType::I32, &[3, 4]));
    let (none, line) = (tensor(DType::F32, &[3, 0]), tensor(DType::F32, &[4]));
    let labels = tensor(DType::I64, &[3]);
    mistakes! { page:
        x.fft_with(&line, 0, Fourier::new());
        x.fft_with(&x, 0, Fourier::new().length(0));
        x.ifft_with(&x, 2, Fourier::new());
        none.rfft_with(1, Fourier::new());
        x.slice(1, ..1).irfft_with(&x.slice(1, ..1), 1, Fourier::new());
        x.kl_div_with(&whole.slice(0, ..2), &KlDiv::new().batch_mean());
        whole.kl_div_with(&whole, &KlDiv::new());
        x.binary_cross_entropy_with_logits_with(&x, &BinaryCrossEntropy::new().weights(&labels));
        whole.binary_cross_entropy_with_logits_with(&whole, &BinaryCrossEntropy::new());
        x.nll_loss_with(&labels, &NllLoss::new().weights(&labels));
        x.nll_loss_with(&line, &NllLoss::new());
        x.cross_entropy(&x, Mean);
        x.median_keepdim([0, 0]).0;
        none.nanmedian_keepdim(1).1;
        whole.quantile_keepdim(0.5, ..);
        x.quantile_with(1.5, .., QuantileBetween::Lower);
        x.nanquantile_keepdim(0.5, 2);
        none.nanquantile_with(0.5, [0, 1], QuantileBetween::Nearest);
        x.diff_with(1, 2, None, None);
        x.diff_with(1, 0, Some(&line), None);
        x.trapezoid_with(&labels, 1);
        whole.trapezoid_with(&line, 1);
        x.cumulative_trapezoid_with(&x.slice(1, ..3), 1);
        whole.qr_complete();
        line.svd_full();
        x.matrix_norm(MatrixNorm::Rows, [0, 2]);
        whole.matrix_norm(MatrixNorm::Nuclear, [0, 1]);
        none.matrix_norm_keepdim(MatrixNorm::LeastColumn, [0, 1]);
        Tensor::multi_dot(&[&x]);
        Tensor::multi_dot(&[&x, &line, &x]);
        Tensor::multi_dot(&[&x, &x]);
        x.repeat_interleave_counts(&line, 1);
        x.repeat_interleave_counts(labels.ones_like() * -1, 0);
        x.bincount_all(None, 3);
        (labels - 2).bincount_all(None, 3);
    }
}

pub fn renamed(page: &mut Page) {
    page.section("Other names");
    let (x, whole) = (tensor(DType::F32, &[3, 4]), tensor(DType::I32, &[3, 4]));
    let (line, labels) = (tensor(DType::F32, &[4]), tensor(DType::I64, &[3]));
    mistakes! { page:
        x.clip(&labels, 1.0);
        x.amax(2);
        x.amin([0, 0]);
        x.vector_norm(0, f64::NAN);
        x.view([5, -1]);
        x.expand_dims(4);
        x.moveaxis([0, 1], 0);
        x.swapdims(0, 2);
        x.take_along_dim(&labels, 0);
        Tensor::concat([&x, &line], 0);
        Tensor::concatenate([&x, &line], 0);
        x.new_zeros([usize::MAX, 2]);
        x.new_ones([usize::MAX, 2]);
        whole.cast(DType::U8).new_full([2], 300);
    }
}

pub fn numpy(page: &mut Page) {
    page.section("NumPy's names");
    let (x, whole) = (tensor(DType::F32, &[3, 4]), tensor(DType::I32, &[3, 4]));
    let (line, bools) = (tensor(DType::F32, &[4]), tensor(DType::Bool, &[3, 4]));
    let labels = tensor(DType::I64, &[3]);
    mistakes! { page:
        x.convolve(&line, ConvolveMode::Full);
        line.convolve(line.slice(0, ..0), ConvolveMode::Full);
        bools.select(0, 0).convolve(&line.gt(0), ConvolveMode::Full);
        x.average(1, &labels);
        bools.ptp(0);
        x.percentile(101.0, 0);
        whole.nanpercentile(50.0, 0);
        x.digitize(&x, false);
        x.packbits(0, BitOrder::Big);
        bools.packbits(2, BitOrder::Big);
        x.unpackbits(0, BitOrder::Big);
        x.matmul(&x).intersect1d(&line);
    }
}

pub fn numbers(page: &mut Page) {
    page.section("Numbers that a dtype does not hold");
    let (bytes, index) = (tensor(DType::U8, &[3]), tensor(DType::I64, &[1]));
    let (signed, mask, matrix) = (bytes.cast(DType::I32), bytes.gt(0), tensor(DType::U8, &[2, 2]));
    mistakes! { page:
        Tensor::full([2], 300, DType::U8);
        Tensor::full([2], -0.5, DType::U8);
        Tensor::full([2], f64::NAN, DType::I32);
        Tensor::full([2], u64::MAX, DType::I64);
        Tensor::linspace(0.0, 256.0, 3, DType::U8);
        bytes.full_like(-256);
        bytes.cast(DType::I8).full_like(128);
        signed.masked_fill(&mask, 1i64 << 31);
        signed.masked_fill(&mask, f64::NEG_INFINITY);
        mask.where_(&bytes, 300);
        mask.where_(1 << 20, &bytes);
        bytes.clamp(-5, 300);
        bytes.clamp_min(-300);
        signed.clamp_max(i64::MAX);
        bytes.maximum(256);
        bytes.fmin(1000);
        bytes.heaviside(300);
        bytes.hardtanh(-1.0, 1.0);
        bytes.threshold(0.0, 300.0);
        bytes.addcmul(&bytes, &bytes, 256.0);
        bytes.pad(1, 300);
        bytes.pad_with(1, PadMode::Constant(f64::NAN.into()));
        bytes.scatter(0, &index, 300);
        bytes.index_fill(0, &index, 1e20);
        bytes.slice_assign(s![..2], 300);
        bytes.index_add_with(0, &index, &bytes.slice(0, ..1), 300);
        matrix.addmm(&matrix, &matrix, 300, 1);
        bytes.pow(300);
        signed.pow(-1);
        mask.pow(-1);
    }
}
