//! How many windows a pooling has.

use super::settings::Pool;
use crate::Shape;
use crate::graph::infer::window_count;

/// The shape after a pooling of the last dimensions.
pub(super) fn pooled<const N: usize>(shape: &Shape, pool: &Pool<N>) -> Result<Shape, String> {
    let Pool { kernel, stride, padding, dilation, ceil, .. } = pool;
    let Some(first) = shape.rank().checked_sub(N) else {
        let names = ["depth, height, width", "height, width", "length"][3usize.saturating_sub(N).min(2)];
        let s = if N == 1 { "" } else { "s" };
        return Err(format!("needs at least {N} dimension{s} ({names}), got shape {shape}"));
    };
    let mut extents = shape.to_vec();
    let padded: Vec<usize> =
        (0..N).map(|d| shape[first + d].saturating_add(padding[d].saturating_mul(2))).collect();
    for d in 0..N {
        let (size, step, border, apart) = (kernel[d], stride[d], padding[d], dilation[d]);
        if size == 0 || step == 0 || apart == 0 {
            return Err(format!(
                "kernel, stride and dilation must be at least 1, got {size}, {step}, {apart}"
            ));
        }
        if border > size / 2 {
            return Err(format!("padding {border} is more than half of the kernel {size}"));
        }
        let whole = window_count(padded[d], size, step, apart);
        let Some(count) = whole.or_else(|| partial(padded[d], size, step, apart).filter(|_| *ceil)) else {
            let dilated = match dilation.iter().all(|&dilation| dilation == 1) {
                true => String::new(),
                false => format!(" with dilation {}", sizes(dilation)),
            };
            return Err(format!(
                "kernel {}{dilated} exceeds the padded input {} (input {shape}, padding {})",
                sizes(kernel),
                padded.iter().map(usize::to_string).collect::<Vec<_>>().join("×"),
                sizes(padding)
            ));
        };
        let reach = (count - 1) * step + apart * (size - 1) + 1; // Of the whole ones: no overflow.
        // One more, if it starts in the input or in the padding before it, as in PyTorch.
        let more = *ceil
            && whole.is_some()
            && reach < padded[d]
            && count.saturating_mul(step) < shape[first + d] + border;
        extents[first + d] = count + usize::from(more);
    }
    Ok(Shape::from(extents))
}

/// One window if, rounded up, that is how many fit an extent that is shorter.
fn partial(extent: usize, size: usize, stride: usize, dilation: usize) -> Option<usize> {
    let span = dilation.checked_mul(size.checked_sub(1)?)?.checked_add(1)?;
    (extent > 0 && extent.saturating_add(stride - 1) >= span).then_some(1)
}

/// `3` for 3×3, else all.
fn sizes(list: &[usize]) -> String {
    match list.iter().all(|size| *size == list[0]) {
        true => list[0].to_string(),
        false => list.iter().map(usize::to_string).collect::<Vec<_>>().join("×"),
    }
}
