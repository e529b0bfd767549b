//! Bad inputs of what has further arguments, and of what goes by PyTorch's names.

use lazuli::{
    BinaryCrossEntropy, DType, Fourier, KlDiv, MatrixNorm, NllLoss, QuantileBetween, Reduction, Tensor,
};

use crate::{Page, tensor};

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
        x.cross_entropy(&x, Reduction::Mean);
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
