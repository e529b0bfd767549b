//! The loss of connectionist temporal classification: how likely a sequence of labels is, whenever each of them comes.

use super::losses::Reduction;
use crate::tensor::arguments::call::Call;
use crate::tensor::make::create::counting;
use crate::tensor::position::gather::{needs_index, taken_along};
use crate::tensor::reduce::statistics::widened;
use crate::tensor::scan::recurrences::scan;
use crate::tensor::scan::scans::ScanOrder;
use crate::{DType, Result, Shape, Tensor};

impl Tensor {
    /// The negative logarithm of how likely each sequence's labels are, of logarithms of probabilities `[T, N, C]`: of `C`
    /// classes at `T` times of `N` sequences. All ways count in which the labels come in their order, each once or several
    /// times in a row, with the class `blank` anywhere between, and once at least between equal labels. PyTorch's `ctc_loss`.
    ///
    /// The labels are `[N, S]`, of which the first `target_lengths` of a sequence count, as the first `input_lengths` of its
    /// times do: integers, `[N]` each. Infinite, where there are too few times for the labels; 0 there with `zero_infinity`.
    /// The mean is that of the losses over the numbers of their labels. Keeps the dtype; 16-bit floats are computed in `F32`
    /// and rounded once. Each label goes along the times in one loop; a kernel has the loops of some.
    ///
    /// A length or label that is out of range is an [`IndexOutOfRange`](crate::Error::IndexOutOfRange) when the values are asked
    /// for. Invalid for logarithms of integers and bools, if shapes do not fit, and for a blank that is no class.
    ///
    /// A. Graves et al., "Connectionist temporal classification: labelling unsegmented sequence data with recurrent neural
    /// networks", 2006.
    ///
    /// ```
    /// use lazuli::{Reduction, Tensor};
    /// // Two times, blank and two labels, all as likely: label 1 comes by (1, 1), (0, 1) and (1, 0).
    /// let logits = Tensor::zeros([2, 1, 3], lazuli::DType::F64);
    /// let (target, times, labels) = (Tensor::from([[1i64]]), Tensor::from([2i64]), Tensor::from([1i64]));
    /// let loss = logits.log_softmax(-1).ctc_loss(&target, &times, &labels, 0, Reduction::Sum, false);
    /// assert!((loss.item::<f64>()? - 3f64.ln()).abs() < 1e-12);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn ctc_loss(
        &self,
        targets: impl AsRef<Tensor>,
        input_lengths: impl AsRef<Tensor>,
        target_lengths: impl AsRef<Tensor>,
        blank: usize,
        reduction: Reduction,
        zero_infinity: bool,
    ) -> Tensor {
        let (targets, lengths) = (targets.as_ref(), [input_lengths.as_ref(), target_lengths.as_ref()]);
        let call = Call::here("ctc_loss");
        call.composed(|| {
            call.needs_float(self)?;
            let labels = Labels::of(call, self, targets, lengths, blank)?;
            widened(self, |x| labels.reduced(&labels.losses(x, blank), reduction, zero_infinity))
        })
    }
}

/// What the loss is for.
struct Labels {
    /// `[N, S]`, the blank behind those that count.
    all: Tensor,
    /// How many count, `[N]`.
    counts: Tensor,
    /// Whether a time counts, `[T, N]`.
    is_on: Tensor,
}

impl Labels {
    fn of(call: Call, x: &Tensor, targets: &Tensor, lengths: [&Tensor; 2], blank: usize) -> Result<Labels> {
        let (shape, dtype) = x.known()?;
        let [times, sequences, classes] = shape[..] else {
            return call
                .fail(format!("needs logarithms of shape [times, sequences, classes], got {dtype} {shape}"));
        };
        if blank >= classes {
            return call.fail(format!("blank {blank} is none of the {classes} classes of shape {shape}"));
        }
        needs_index(call, targets)?;
        let own = targets.known()?.0;
        let &[rows, most] = &own[..] else {
            return call.fail(format!("needs labels of shape [sequences, labels], got shape {own}"));
        };
        if rows != sequences {
            return call
                .fail(format!("labels of {rows} sequences, of shape {own}, do not fit shape {shape}"));
        }
        for length in lengths {
            needs_index(call, length)?;
            let own = length.known()?.0;
            if *own != Shape::from([sequences]) {
                return call
                    .fail(format!("needs a length for each of {sequences} sequences, got shape {own}"));
            }
        }
        // A length is looked up among those that there can be.
        let [times, most] = [times, most].map(|most| counting(most.saturating_add(1)));
        let [on, counts] = [(times, lengths[0]), (most, lengths[1])].map(|(all, own)| all.take(own));
        let place = counting(own[1]);
        let counted = place.lt(counts.unsqueeze(1));
        let all = counted.where_(targets.cast(DType::I64), blank as i64);
        Ok(Labels { all, counts, is_on: counting(shape[0]).unsqueeze(1).lt(on) })
    }

    /// The loss of each sequence. Of each label and of the blank before it, the likelihoods of all ways up to a time follow from
    /// those at the time before, and from those of the label before.
    fn losses(&self, x: &Tensor, blank: usize) -> Tensor {
        let blanks = x.select(2, blank as isize);
        let count = self.all.node.shape[1];
        // Up to before the first time, there is the way of nothing.
        let mut before = x.full_like(f64::NEG_INFINITY).select(2, 0);
        let (mut after_blanks, mut after_labels) = (Vec::new(), Vec::new());
        for k in 0..=count {
            let first = if k == 0 { 0.0 } else { f64::NEG_INFINITY };
            if k == count {
                let inputs = [&before, &blanks, &self.is_on];
                let ([last], []) = scan(inputs, 0, ScanOrder::new(), [first], |[b], [before, blank, on]| {
                    ([on.where_(b.logaddexp(before) + blank, b)], [])
                });
                after_blanks.push(last);
                break;
            }
            let label = self.all.select(1, k as isize);
            let own = taken_along(x, &label.reshape([1, -1, 1]), 2).squeeze(2);
            // A blank need not be between labels that differ.
            let previous = if k == 0 { label.clone() } else { self.all.select(1, k as isize - 1) };
            let differs = label.ne(previous);
            let inputs = [&before, &blanks, &own, &self.is_on];
            let inits = [first, f64::NEG_INFINITY];
            let ([b, l], [labels]) =
                scan(inputs, 0, ScanOrder::new(), inits, |[b, l], [before, blank, own, on]| {
                    let directly = differs.where_(before, f64::NEG_INFINITY);
                    let after_label = l.logaddexp(b).logaddexp(directly) + own;
                    ([on.where_(b.logaddexp(before) + blank, b), on.where_(after_label, l)], [l.clone()])
                });
            after_blanks.push(b);
            after_labels.push(l);
            before = labels;
        }
        // After the last label, or the blank behind it.
        let at = |all: &[Tensor], place: &Tensor| {
            Tensor::stack(all, 0).take_along_axis(place.unsqueeze(0), 0).squeeze(0)
        };
        let whole = at(&after_blanks, &self.counts);
        if after_labels.is_empty() {
            return -whole;
        }
        let is_some = self.counts.gt(0);
        let label = at(&after_labels, &(&self.counts - 1).maximum(0));
        -whole.logaddexp(is_some.where_(label, f64::NEG_INFINITY))
    }

    fn reduced(&self, losses: &Tensor, reduction: Reduction, zero_infinity: bool) -> Tensor {
        let losses =
            if zero_infinity { losses.eq(f64::INFINITY).where_(0.0, losses) } else { losses.clone() };
        match reduction {
            Reduction::None => losses,
            Reduction::Sum => losses.sum(..),
            Reduction::Mean => (&losses / self.counts.maximum(1).cast(losses.node.dtype)).mean(..),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::tests::mistake;
    use crate::{Device, explain};

    /// The sum over all ways of so many times that say the labels.
    fn likelihood(probabilities: &[Vec<f64>], labels: &[usize], blank: usize) -> f64 {
        let classes = probabilities[0].len();
        let mut sum = 0.0;
        for way in 0..classes.pow(probabilities.len() as u32) {
            let path: Vec<usize> =
                (0..probabilities.len()).map(|time| way / classes.pow(time as u32) % classes).collect();
            let mut said = path.clone();
            said.dedup();
            said.retain(|&class| class != blank);
            if said == labels {
                sum += path.iter().zip(probabilities).map(|(&class, all)| all[class]).product::<f64>();
            }
        }
        sum
    }

    const LABELS: [[i64; 3]; 6] = [[1, 2, 1], [2, 2, 99], [0, -1, 7], [3, 3, 3], [1, 9, 9], [2, 1, 2]];
    const COUNTS: [i64; 6] = [3, 2, 0, 3, 1, 2];
    const TIMES: [i64; 6] = [5, 4, 5, 4, 1, 0];

    fn logarithms(blank: usize) -> (Tensor, Vec<f64>) {
        let [times, sequences, classes] = [5, 6, 4];
        let weight = |i: usize| ((i * 37) % 11 + 1) as f64;
        let of = |time: usize, n: usize| -> Vec<f64> {
            let row: Vec<f64> = (0..classes).map(|c| weight((time * sequences + n) * classes + c)).collect();
            row.iter().map(|x| x / row.iter().sum::<f64>()).collect()
        };
        let expected = (0..sequences).map(|n| {
            let probabilities: Vec<Vec<f64>> = (0..TIMES[n] as usize).map(|time| of(time, n)).collect();
            let labels: Vec<usize> =
                LABELS[n][..COUNTS[n] as usize].iter().map(|&label| label as usize).collect();
            match probabilities.is_empty() {
                true => {
                    if labels.is_empty() {
                        0.0
                    } else {
                        f64::INFINITY
                    }
                }
                false => -likelihood(&probabilities, &labels, blank).ln(),
            }
        });
        let all: Vec<f64> =
            (0..times * sequences).flat_map(|i| of(i / sequences, i % sequences)).map(f64::ln).collect();
        (Tensor::from_vec(all, [times, sequences, classes]), expected.collect())
    }

    #[test]
    fn losses_are_those_of_all_ways() {
        for blank in [0, 3] {
            let (x, mut expected) = logarithms(blank);
            let mut labels = LABELS;
            if blank == 3 {
                (labels[3], expected[3]) = ([0, 0, 0], f64::INFINITY);
            }
            let [labels, counts, times] = [
                Tensor::from_slice(labels.as_flattened(), [6, 3]),
                Tensor::from_slice(&COUNTS, [6]),
                Tensor::from_slice(&TIMES, [6]),
            ]
            .map(|tensor| tensor.to(&Device::interpreter()));
            let x = x.to(&Device::interpreter());
            let loss = |reduction, zero| x.ctc_loss(&labels, &times, &counts, blank, reduction, zero);
            let got: Vec<f64> = loss(Reduction::None, false).to_vec().unwrap();
            for (got, expected) in got.iter().zip(&expected) {
                assert!(got == expected || (got - expected).abs() < 1e-12, "{got} {expected}");
            }
            assert!(expected.iter().filter(|loss| loss.is_infinite()).count() >= 2);
            let finite = |loss: f64| if loss.is_finite() { loss } else { 0.0 };
            let sum: f64 = expected.iter().map(|&loss| finite(loss)).sum();
            assert!((loss(Reduction::Sum, true).item::<f64>().unwrap() - sum).abs() < 1e-12);
            let mean = expected.iter().zip(COUNTS).map(|(&loss, count)| finite(loss) / count.max(1) as f64);
            let mean = mean.sum::<f64>() / 6.0;
            assert!((loss(Reduction::Mean, true).item::<f64>().unwrap() - mean).abs() < 1e-12);
        }
    }

    #[test]
    fn labels_share_kernels() {
        let x = Tensor::from_vec(vec![-1.5f32; 50 * 4 * 9], [50, 4, 9]);
        let labels = Tensor::from_vec(vec![1i64; 4 * 7], [4, 7]);
        let (times, counts) = (Tensor::from([50i64; 4]), Tensor::from([7i64; 4]));
        let loss = x.ctc_loss(&labels, &times, &counts, 0, Reduction::Mean, false);
        let explanation = explain([&loss]).unwrap();
        assert!(explanation.kernels() <= 10, "{explanation}");
    }

    #[test]
    fn no_labels_no_times_and_no_sequences() {
        let none = |shape: [usize; 1]| Tensor::zeros(shape, DType::I64);
        let x = Tensor::full([3, 2, 4], -0.5, DType::F64).to(&Device::interpreter());
        let times = Tensor::from([3i64, 1]).to(&Device::interpreter());
        let loss =
            x.ctc_loss(&Tensor::zeros([2, 0], DType::I64), &times, &none([2]), 0, Reduction::None, false);
        assert_eq!(loss.to_vec::<f64>().unwrap(), [1.5, 0.5]);
        let short = x.slice(0, ..0);
        let loss = short.ctc_loss(
            &Tensor::zeros([2, 1], DType::I64),
            &none([2]),
            &none([2]),
            1,
            Reduction::None,
            false,
        );
        assert_eq!(loss.to_vec::<f64>().unwrap(), [0.0, 0.0]);
        let empty = x.slice(1, ..0);
        let loss = empty.ctc_loss(
            &Tensor::zeros([0, 2], DType::I64),
            &none([0]),
            &none([0]),
            0,
            Reduction::Sum,
            false,
        );
        assert_eq!(loss.item::<f64>().unwrap(), 0.0);
    }

    #[test]
    fn mistakes_say_what_does_not_fit() {
        let x = Tensor::ones([5, 2, 4], DType::F32);
        let (labels, lengths) = (Tensor::ones([2, 3], DType::I64), Tensor::ones([2], DType::I64));
        let with = |x: &Tensor, labels: &Tensor, times: &Tensor, counts: &Tensor, blank: usize| {
            x.ctc_loss(labels, times, counts, blank, Reduction::Mean, false).shape().unwrap_err().to_string()
        };
        let starts = |error: String, expected: &str| assert!(error.starts_with(expected), "{error}");
        starts(
            with(&x.select(1, 0), &labels, &lengths, &lengths, 0),
            "ctc_loss: needs logarithms of shape [times, sequences, classes], got f32 [5, 4], at ",
        );
        starts(
            with(&x, &labels, &lengths, &lengths, 4),
            "ctc_loss: blank 4 is none of the 4 classes of shape [5, 2, 4], at ",
        );
        starts(
            with(&x, &labels.slice(0, ..1), &lengths, &lengths, 0),
            "ctc_loss: labels of 1 sequences, of shape [1, 3], do not fit shape [5, 2, 4], at ",
        );
        starts(
            with(&x, &labels, &lengths.slice(0, ..1), &lengths, 0),
            "ctc_loss: needs a length for each of 2 sequences, got shape [1], at ",
        );
        mistake!(
            x.ctc_loss(&labels, &x, &lengths, 0, Reduction::Sum, true),
            "ctc_loss: needs an index of integers, got f32 [5, 2, 4]"
        );
        let x = x.to(&Device::interpreter());
        let beyond = x.ctc_loss(&labels, &(&lengths + 5), &lengths, 0, Reduction::Sum, false);
        starts(
            beyond.eval().unwrap_err().to_string(),
            "ctc_loss: index 6 is out of range for axis 0 of extent 6",
        );
        let beyond = x.ctc_loss(&(&labels + 3), &lengths, &lengths, 0, Reduction::Sum, false);
        starts(
            beyond.eval().unwrap_err().to_string(),
            "ctc_loss: index 4 is out of range for axis 2 of extent 4",
        );
    }
}
