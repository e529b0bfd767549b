//! Bad inputs of what combines elements: reductions, scans by steps, layers, windows, products.

use lazuli::{
    Attention, Conv1d, Conv2d, Conv3d, DType, Device, GridSample, Interpolation, Pool1d, Pool2d, Pool3d,
    Reduction, RoiAlign, ScanOrder, Stft, Tensor,
};

use crate::{Page, tensor};

pub fn reductions(page: &mut Page) {
    page.section("Reductions");
    let (x, count) = (tensor(DType::F32, &[3, 4]), tensor(DType::I32, &[3]));
    let none = tensor(DType::F32, &[0, 4]);
    mistakes! { page:
        x.sum(2);
        x.sum([0, 0]);
        x.sum_to_size([5]);
        tensor(DType::F32, &[]).prod(1);
        none.max(0);
        none.min(0);
        none.min_keepdim(..);
        x.any(-3);
        x.all(5);
        count.mean(..);
        count.var(0, 1);
        count.std(0, 1);
        count.norm(0, 2.0);
        x.norm(0, f64::NAN);
        none.norm(0, f64::INFINITY);
        x.logsumexp(2);
        x.nansum(2);
        count.nanmean(0);
        x.nanprod([0, -2]);
        none.nanmin(0);
        x.nanmax(2);
        count.nanvar(0, 1);
        count.nanstd(0, 1);
        x.nanvar_keepdim(-3, 0);
        none.nanargmin(0);
        x.nanargmax([1, 1]);
        x.nancumsum(2);
        x.nancumprod(-3);
        x.count_nonzero([0, -2]);
        none.aminmax(0);
        x.cumsum(2);
        x.cumsum_with(2, ScanOrder::new());
        x.cumprod(-3);
        x.cumprod_with(-3, ScanOrder::new());
        x.cummax(2);
        x.cummax_with(0, ScanOrder::new().exclusive());
        x.cummin_with(0, ScanOrder::new().exclusive());
        x.cummin(7);
        x.cummax_with_indices(2);
        x.cummin_with_indices(-3);
        x.logcumsumexp(2);
        count.logcumsumexp_with(0, ScanOrder::new());
        none.argmax(0);
        none.argmin(..);
        x.argmax(2);
        none.max_with_indices(0);
        x.min_with_indices(-3);
        count.var_mean(0, 1);
    }
}

/// A value of a step that is kept.
#[track_caller]
fn kept(x: &Tensor) -> Tensor {
    let mut kept = None;
    let _ = x.scan_with(0, 0.0, |h, _| {
        kept = Some(h * 2.0);
        h.clone()
    });
    kept.unwrap()
}

/// What is for sequences of labels.
pub fn sequences(page: &mut Page) {
    page.section("Sequences of labels");
    let (x, labels, lengths) =
        (tensor(DType::F32, &[5, 2, 4]), tensor(DType::I64, &[2, 3]), tensor(DType::I64, &[2]));
    let mean = Reduction::Mean;
    mistakes! { page:
        x.cast(DType::I32).ctc_loss(&labels, &lengths, &lengths, 0, mean, false);
        x.select(1, 0).ctc_loss(&labels, &lengths, &lengths, 0, mean, false);
        x.ctc_loss(&labels, &lengths, &lengths, 4, mean, false);
        x.ctc_loss(&lengths, &lengths, &lengths, 0, mean, false);
        x.ctc_loss(&x, &lengths, &lengths, 0, mean, false);
        x.ctc_loss(labels.slice(0, ..1), &lengths, &lengths, 0, mean, false);
        x.ctc_loss(&labels, &lengths, labels.ravel(), 0, mean, false);
        x.ctc_loss(&labels, &lengths + 5, &lengths, 0, mean, false).eval();
        x.ctc_loss(&labels + 3, &lengths, &lengths, 0, mean, false).eval();
    }
}

/// Fourier transforms, and images and matrices put together.
pub fn spectra(page: &mut Page) {
    page.section("Fourier transforms, overlapping parts, whole positions");
    let (x, y, count) = (tensor(DType::F32, &[9, 4]), tensor(DType::F32, &[9, 5]), tensor(DType::I64, &[4]));
    let parts = Stft::new(16);
    mistakes! { page:
        x.fft(&y, 0);
        x.ifft(&x, 2);
        x.slice(0, 9..).fft(&x.slice(0, 9..), 0);
        x.slice(0, 9..).rfft(0);
        x.irfft(&x, 0, 0);
        x.fft2(&y);
        x.select(0, 0).ifft2(&x.select(0, 0));
        count.rfft2();
        x.irfft2(&x, 0);
        x.fftn(&x, [0, -2]);
        x.ifftn(&x, 2);
        x.rfftn(Vec::<isize>::new());
        x.irfftn(&x, 0, ..);
        x.fftshift(2);
        x.ifftshift([0, 0]);
        Tensor::fftfreq(0, 1.0, DType::F32);
        Tensor::fftfreq(4, f64::INFINITY, DType::F32);
        Tensor::rfftfreq(4, 0.0, DType::F64);
        Tensor::rfftfreq(4, 1.0, DType::I32);
        x.stft(&parts);
        x.select(1, 0).stft(&Stft::new(4).hop(0));
        y.istft(&y, &Stft::new(8), None);
        x.istft(&x, &parts.clone().window(&count), None);
        x.istft(&y, &parts, None);
        Tensor::hann_window(4, true, DType::I32);
        Tensor::hamming_window(4, true, DType::Bool);
        Tensor::blackman_window(usize::MAX, true, DType::F32);
        x.unfold2d(2, Conv2d::new());
        x.unsqueeze(0).unfold2d(5, Conv2d::new());
        x.unsqueeze(0).unfold2d(2, Conv2d::new().groups(3));
        count.fold2d(3, 2, Conv2d::new());
        x.fold2d(3, 2, Conv2d::new());
        x.fold2d(1, 2, Conv2d::new());
        x.gt(0).slice(0, ..4).fold2d(3, 2, Conv2d::new());
        Tensor::hstack(&[&x, &count]);
        Tensor::vstack::<Tensor>(&[]);
        Tensor::dstack(&[&x, &y]);
        Tensor::column_stack(&[&x, &count]);
        Tensor::block_diag(&[x.unsqueeze(0)]);
        x.tensor_split(0, 0);
        x.unsqueeze(0).diag(0);
        x.to(&Device::interpreter()).kron(&y.to(&Device::cpu()));
        x.index_fill(0, &x, 1);
        x.index_copy(0, &count, &y);
        x.select_scatter(0, &y, 0);
        x.select_scatter(0, &y, 9);
        Tensor::randperm(usize::MAX, 1);
    }
}

/// Scans by steps: what the step gives, and what it may not do.
pub fn steps(page: &mut Page) {
    page.section("Scans by steps");
    let (x, wide) = (tensor(DType::F32, &[3, 4]), tensor(DType::F32, &[3, 5]));
    let (two, count) = (tensor(DType::F32, &[2]), tensor(DType::I32, &[3]));
    let exclusive = ScanOrder::new().exclusive();
    mistakes! { page:
        x.scan_with(2, 0.0, |h, x| h + x);
        x.scan_with(0, tensor(DType::F32, &[3]), |h, x| h + x);
        x.scan_with(0, 0.0, |h, x| h + x.cast(DType::F64));
        count.scan_with(0, 0, |h, x| h + x * 0.5);
        x.scan_with(0, 0.0, |h, x| h + tensor(DType::F32, &[2, 4]) * x);
        x.scan_with(0, 0.0, |_, _| tensor(DType::F32, &[3]));
        x.scan_with(0, 0.0, |h, x| (h + x).reshape([2, 2]));
        x.scan_with(0, tensor(DType::F32, &[]), |h, x| h + x.sum(0).cast(DType::F64));
        x.scan_with(0, tensor(DType::F32, &[2, 3]), |h, x| h.matmul(x));
        tensor(DType::F32, &[1 << 20, 4]).scan_with(0, 0.0, |h, x| (h + x).flip(0));
        x.to(&Device::cpu()).scan_with(0, 0.0, |h, x| h + x.to(&Device::interpreter()));
        x.scan_with(0, 0.0, |h, y| h + y + kept(&x));
        kept(&x).exp().eval();
        kept(&x).sum(0).eval();
        lazuli::scan([&x, &wide], 0, ScanOrder::new(), [0.0], |[h], [x, y]| ([h + x.sum(0)], [y.clone()]));
        lazuli::scan([&x, &two], 0, ScanOrder::new(), [0.0], |[h], [x, n]| ([h + x * n], []));
        lazuli::scan([&x], 0, exclusive, [0.0], |[h], [x]| ([h + x], [h.clone()]));
        lazuli::scan([], 0, ScanOrder::new(), [0.0], |[h], []| ([h + 1.0], []));
        x.scan_with(0, 0.0, |_, _| Tensor::rand([3], 1));
    }
}

pub fn layers(page: &mut Page) {
    page.section("Normalisation and activations");
    let (x, count) = (tensor(DType::F32, &[2, 4, 3]), tensor(DType::I32, &[2, 4]));
    let (four, three) = (tensor(DType::F32, &[4]), tensor(DType::F32, &[3]));
    mistakes! { page:
        count.silu();
        count.gelu();
        count.gelu_tanh();
        x.softmax(3);
        count.softmax(0);
        x.log_softmax(3);
        count.log_softmax(0);
        x.layer_norm([5], None, None, 1e-5);
        x.layer_norm([3], Some(&four), None, 1e-5);
        x.rms_norm([4], None, 1e-5);
        x.rms_norm([3], Some(&four), 1e-5);
        x.group_norm(3, None, None, 1e-5);
        x.group_norm(0, None, None, 1e-5);
        x.group_norm(2, Some(&three), None, 1e-5);
        four.group_norm(2, None, None, 1e-5);
        x.cast(DType::F16).group_norm(2, None, Some(&count), 1e-5);
        count.instance_norm(None, None, 1e-5);
        x.batch_norm(&three, &four, None, None, 1e-5);
        x.batch_norm(&four, &four.cast(DType::I32), None, None, 1e-5);
        x.batch_norm_training(&three, &four, None, None, 0.1, 1e-5).1;
        x.slice(0, ..1).sum(2).batch_norm_training(&four, &four, None, None, 0.1, 1e-5).0;
        count.normalize(2.0, 0, 1e-12);
        x.normalize(2.0, 3, 1e-12);
        x.softmin(3);
        count.softmin(0);
        x.renorm(0.0, 0, 1.0);
        x.renorm(2.0, 0, f64::NAN);
        x.renorm(2.0, 3, 1.0);
        x.local_response_norm(0, 1e-4, 0.75, 1.0);
        three.local_response_norm(2, 1e-4, 0.75, 1.0);
        x.cosine_similarity(&four, 1, 1e-8);
        x.cosine_similarity(&three, 3, 1e-8);
        count.cosine_similarity(&count, 1, 1e-8);
    }
}

pub fn windows(page: &mut Page) {
    page.section("Windows");
    let (image, small) = (tensor(DType::F32, &[1, 3, 8, 8]), tensor(DType::F32, &[1, 1, 3, 3]));
    let (line, bytes) = (tensor(DType::F32, &[8]), tensor(DType::U8, &[1, 8, 8]));
    let linear = Interpolation::Linear { align_corners: false };
    mistakes! { page:
        small.max_pool2d(5, 1);
        small.max_pool2d_with(Pool2d::new((2, 3)).dilation((4, 1)));
        image.max_pool2d_with(Pool2d::new(2).padding(2));
        image.max_pool2d(2, 0);
        line.max_pool2d(2, 2);
        tensor(DType::Bool, &[4, 4]).max_pool2d(2, 2);
        line.max_pool1d(9, 1);
        line.max_pool1d_with(Pool1d::new(3).stride(0));
        small.max_pool3d(2, 1);
        small.max_pool1d_with_indices(Pool1d::new(9));
        small.max_pool2d_with_indices(Pool2d::new(2).padding(2));
        small.max_pool3d_with_indices(Pool3d::new(9));
        small.max_pool3d_with(Pool3d::new((1, 4, 4)).padding((0, 0, 1)));
        tensor(DType::F32, &[1 << 29, 1 << 29]).max_pool2d(1 << 28, 1);
        image.avg_pool2d(0, 1);
        bytes.avg_pool2d(2, 2);
        image.avg_pool2d_with(Pool2d::new(2).divisor_override(0));
        line.avg_pool1d(9, 9);
        line.avg_pool1d_with(Pool1d::new(2).padding(2));
        line.avg_pool3d(2, 2);
        small.avg_pool3d_with(Pool3d::new(2).dilation(0));
        bytes.lp_pool1d(2.0, 2, 2);
        image.lp_pool2d(0.0, 2, 2);
        image.lp_pool3d(2.0, (4, 1, 1), 1);
        line.max_unpool1d(&line, 9);
        small.max_unpool2d(tensor(DType::I64, &[1, 1, 3, 4]), 9);
        line.max_unpool3d(tensor(DType::I64, &[8]), 9);
        image.adaptive_max_pool2d(0);
        tensor(DType::Bool, &[8]).adaptive_max_pool1d(2);
        line.adaptive_max_pool3d(2);
        bytes.adaptive_avg_pool1d(3);
        line.adaptive_avg_pool2d(2);
        image.slice(0, 1..).slice(3, 9..).adaptive_avg_pool3d(2);
        bytes.interpolate([4, 4], linear);
        line.interpolate([4, 4], linear);
        image.interpolate([0, 4], linear);
        image.slice(3, 9..).interpolate([4, 4], Interpolation::Nearest);
        image.interpolate_scale(&[2.0, -1.0], linear);
        image.interpolate_scale(&[0.01, 1.0], linear);
        image.interpolate_scale(&[f64::NAN], Interpolation::Nearest);
        image.interpolate_antialias([4, 4], Interpolation::Nearest);
        line.adaptive_max_pool2d_with_indices(2);
        image.roi_align(&line, RoiAlign::new([2, 2]));
        image.roi_align(tensor(DType::F64, &[3, 5]), RoiAlign::new([2, 2]));
    }
}

pub fn products(page: &mut Page) {
    page.section("Products");
    let (a, b, x) = (tensor(DType::F32, &[2, 3]), tensor(DType::F32, &[4, 5]), tensor(DType::F32, &[3]));
    let (image, weight) = (tensor(DType::F32, &[1, 4, 8, 8]), tensor(DType::F32, &[6, 4, 3, 3]));
    let (cube, bytes) = (tensor(DType::F32, &[5, 3, 2]), tensor(DType::U8, &[2, 3]));
    mistakes! { page:
        a.matmul(&b);
        a.matmul(&tensor(DType::F32, &[]));
        tensor(DType::F32, &[2, 3, 4]).matmul(&tensor(DType::F32, &[5, 4, 2]));
        tensor(DType::Bool, &[2, 3]).matmul(&tensor(DType::Bool, &[3, 2]));
        a.mm(&x);
        cube.bmm(&tensor(DType::F32, &[4, 2, 3]));
        a.mv(&a);
        a.matrix_power(2);
        x.matrix_power(2);
        a.slice(1, ..2).gt(0).matrix_power(0);
        x.dot(&tensor(DType::F32, &[4]));
        x.outer(&a);
        a.linear(&b, None);
        a.linear(&tensor(DType::F32, &[4, 3]), Some(&x));
        x.addmm(&a, &cube, 1.0, 1.0);
        x.addmm(&a, &tensor(DType::F32, &[3, 4]), 1.0, 1.0);
        tensor(DType::U8, &[2]).addmm(&bytes, &tensor(DType::U8, &[3, 2]), 0.5, 1.0);
        x.baddbmm(&cube, &tensor(DType::F32, &[4, 2, 3]), 1.0, 1.0);
        a.tensordot(&b, [0, 1], 0);
        a.tensordot(&b, 1, 0);
        a.bilinear(&x, &cube, None);
        a.cdist(&b, 2.0);
        a.cdist(&a, -1.0);
        a.pdist(-1.0);
        cube.pdist(2.0);
        tensor(DType::F32, &[]).vander(2, true);
        cube.cov(1);
        a.masked_select(&b);
        a.masked_select(&tensor(DType::Bool, &[5]));
        tensor(DType::U8, &[2]).cumulative_trapezoid(0, 1.0);
        image.grid_sample(&a, GridSample::new());
        image.grid_sample(&tensor(DType::F32, &[9, 2, 2, 2]), GridSample::new());
        a.affine_grid([2, 2], false);
        tensor(DType::F32, &[1 << 31]).argsort(0, false);
        Tensor::einsum("ij,jk", &[&a]);
        Tensor::einsum("ij,jk->ik", &[&a, &b]);
        Tensor::einsum("ijk,kl", &[&a, &b]);
        Tensor::einsum("ij->ik", &[&a]);
        Tensor::einsum("ij->ii", &[&a]);
        Tensor::einsum("ii", &[&a]);
        Tensor::einsum("i1", &[&a]);
        image.conv2d(&a, None, 1, 0);
        image.conv2d(&tensor(DType::F32, &[6, 3, 3, 3]), None, 1, 0);
        image.conv2d(&weight, Some(&x), 1, 0);
        image.conv2d(&tensor(DType::F32, &[6, 4, 9, 3]), None, 1, 0);
        image.conv2d(&weight, None, 0, 0);
        image.conv2d_with(&weight, None, Conv2d::new().groups(3));
        image.conv2d_with(&weight, None, Conv2d::new().stride(2).same());
        image.conv2d_with(&weight, None, Conv2d::new().output_padding(1));
        x.conv1d(&cube, None, 1, 0);
        a.conv1d_with(&cube, None, Conv1d::new().dilation(2));
        image.conv3d(&weight, None, 1, 0);
        image.conv3d_with(&cube, None, Conv3d::new());
        a.conv_transpose1d(&cube, None, 1, 0);
        a.conv_transpose1d_with(&cube, None, Conv1d::new());
        image.conv_transpose2d(&weight, None, 1, 0);
        image.conv_transpose2d_with(&tensor(DType::F32, &[4, 6, 3, 3]), None, Conv2d::new().padding(9));
        image.conv_transpose2d_with(&tensor(DType::F32, &[4, 6, 3, 3]), None, Conv2d::new().output_padding(1));
        image.conv_transpose3d(&weight, None, 1, 0);
        image.conv_transpose3d_with(&weight, None, Conv3d::new());
        a.scaled_dot_product_attention(&b, &b, &Attention::new());
        x.scaled_dot_product_attention(&a, &a, &Attention::new());
        a.scaled_dot_product_attention(&a, &a, &Attention::new().mask(&cube));
        a.scaled_dot_product_attention(&a, &a, &Attention::new().mask(&tensor(DType::I64, &[2, 2])));
        cube.scaled_dot_product_attention(&a, &a, &Attention::new().grouped(true));
    }
}
