//! Fourier transforms of short parts of a signal, and the signal of them again.

use super::fourier::both;
use crate::tensor::arguments::call::Call;
use crate::tensor::view::overlap::overlapped;
use crate::{PadMode, Result, Tensor};

/// How [`Tensor::stft`] and [`Tensor::istft`] go along a signal. PyTorch's defaults: parts that begin a quarter of their size
/// apart, no window, around each of which the signal is mirrored at its ends.
///
/// ```
/// use lazuli::{DType, Shape, Stft, Tensor};
/// let signal = Tensor::randn([2, 16_000], 1);
/// let settings = Stft::new(400).hop(160).window(&Tensor::hann_window(400, true, DType::F32));
/// let (re, im) = signal.stft(&settings);
/// assert_eq!(re.shape()?, Shape::from([2, 201, 101])); // frequencies, parts
/// let back = re.istft(&im, &settings, 16_000);
/// assert!((back - signal).abs().max(..).item::<f32>()? < 1e-5);
/// # Ok::<(), lazuli::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Stft {
    size: usize,
    hop: usize,
    window: Option<Tensor>,
    border: Option<PadMode>,
    normalized: bool,
    two_sided: bool,
}

impl Stft {
    /// Parts of so many elements, PyTorch's `n_fft`.
    ///
    /// ```
    /// use lazuli::{Shape, Stft, Tensor};
    /// let (re, _) = Tensor::randn([1000], 1).stft(&Stft::new(64));
    /// assert_eq!(re.shape()?, Shape::from([33, 63]));
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn new(size: usize) -> Stft {
        Stft {
            size,
            hop: size / 4,
            window: None,
            border: Some(PadMode::Reflect),
            normalized: false,
            two_sided: false,
        }
    }

    /// How far apart parts begin.
    ///
    /// ```
    /// use lazuli::{Shape, Stft, Tensor};
    /// let (re, _) = Tensor::randn([1000], 1).stft(&Stft::new(64).hop(100));
    /// assert_eq!(re.shape()?, Shape::from([33, 11]));
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn hop(mut self, hop: usize) -> Stft {
        self.hop = hop;
        self
    }

    /// What each part is multiplied by, such as [`Tensor::hann_window`]: a 1-d tensor of at most the part's size, around whose
    /// middle the rest is 0.
    ///
    /// ```
    /// use lazuli::{DType, Stft, Tensor};
    /// let (re, _) = Tensor::ones([64], DType::F32)
    ///     .stft(&Stft::new(16).window(&Tensor::hann_window(16, true, DType::F32)));
    /// assert_eq!(re.select(0, 0).select(0, 0).round().item::<f32>()?, 8.0);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn window(mut self, window: impl AsRef<Tensor>) -> Stft {
        let window = window.as_ref();
        self.window = Some(window.clone());
        self
    }

    /// What the signal has beyond its ends, half a part's size on either side, so that part `t` is around element `t * hop`.
    /// `None`: nothing, and the first part begins at the first element; PyTorch's `center=False`.
    ///
    /// ```
    /// use lazuli::{Shape, Stft, Tensor};
    /// let (re, _) = Tensor::randn([64], 1).stft(&Stft::new(16).border(None));
    /// assert_eq!(re.shape()?, Shape::from([9, 13]));
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn border(mut self, border: impl Into<Option<PadMode>>) -> Stft {
        self.border = border.into();
        self
    }

    /// Divides by the square root of the size.
    ///
    /// ```
    /// use lazuli::{DType, Stft, Tensor};
    /// let (re, _) = Tensor::ones([64], DType::F32).stft(&Stft::new(16).normalized());
    /// assert_eq!(re.select(0, 0).select(0, 0).round().item::<f32>()?, 4.0);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn normalized(mut self) -> Stft {
        self.normalized = true;
        self
    }

    /// All frequencies, `size` of them: beyond the half, those of a real signal are the conjugates of the others, in the other
    /// order. PyTorch's `onesided=False`.
    ///
    /// ```
    /// use lazuli::{Shape, Stft, Tensor};
    /// let (_, im) = Tensor::randn([1000], 1).stft(&Stft::new(64).two_sided());
    /// assert_eq!(im.shape()?, Shape::from([64, 63]));
    /// assert_eq!(im.select(0, 1).to_vec::<f32>()?, (-im.select(0, 63)).to_vec::<f32>()?);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn two_sided(mut self) -> Stft {
        self.two_sided = true;
        self
    }

    /// The window in the size of a part, if there is one.
    fn whole_window(&self, call: Call, x: &Tensor) -> Result<Option<Tensor>> {
        let (size, hop) = (self.size, self.hop);
        if size == 0 || hop == 0 {
            return call.fail(format!("parts of at least 1 element, at least 1 apart; got {size} and {hop}"));
        }
        let Some(window) = &self.window else { return Ok(None) };
        let (shape, dtype) = window.known()?;
        match shape[..] {
            [own] if own <= size && dtype.is_float() => {
                let before = (size - own) / 2;
                let whole = window.pad(&[(before, size - own - before)], 0);
                Ok(Some(whole.cast(x.known()?.1.compute())))
            }
            _ => call.fail(format!(
                "the window must have one dimension, of at most {size} floats, got {dtype} {shape}"
            )),
        }
    }

    fn scale(&self) -> f64 {
        if self.normalized { (self.size as f64).sqrt() } else { 1.0 }
    }
}

impl Tensor {
    /// The Fourier transforms of overlapping parts of a signal, as [`Stft`] says: real and imaginary parts, for each of
    /// `size / 2 + 1` frequencies, or of all, those of all parts: `[.., n]` to `[.., size / 2 + 1, 1 + n / hop]`. PyTorch's
    /// `stft` of real numbers.
    ///
    /// Invalid for integers and bools, if the signal is shorter than a part, and for settings that do not fit.
    ///
    /// ```
    /// use lazuli::{Stft, Tensor};
    /// let time = Tensor::arange(0.0f32, 1000.0, 1.0);
    /// let tone = (time * (std::f64::consts::TAU / 8.0)).sin(); // 8 elements a period
    /// let (re, im) = tone.stft(&Stft::new(64));
    /// let strongest = re.hypot(&im).argmax(0);
    /// assert_eq!(strongest.select(0, 30).item::<i64>()?, 8); // 64 / 8
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn stft(&self, settings: &Stft) -> (Tensor, Tensor) {
        let call = Call::here("stft");
        both(call, || {
            let (shape, dtype) = self.known()?;
            call.needs_float(self)?;
            let [.., length] = shape[..] else {
                return call.fail(format!("needs at least 1 dimension, got {dtype} {shape}"));
            };
            let window = settings.whole_window(call, self)?;
            let half = settings.size / 2;
            let whole = match settings.border {
                None => self.clone(),
                Some(mode) => {
                    let mut border = vec![(0, 0); shape.rank()];
                    border[shape.rank() - 1] = (half, half);
                    self.pad_with(&border, mode)
                }
            };
            let around = whole.known()?.0[shape.rank() - 1];
            if around < settings.size {
                return call.fail(format!(
                    "a signal of {length} elements of shape {shape} has no part of {}",
                    settings.size
                ));
            }
            let parts = whole.unfold(-1, settings.size, settings.hop).cast(dtype.compute());
            let parts = window.map_or(parts.clone(), |window| &parts * window);
            let (mut re, mut im) = parts.rfft(-1);
            if settings.two_sided {
                let rest = |x: &Tensor| x.slice(-1, 1..settings.size.div_ceil(2)).flip(-1);
                re = Tensor::cat([&re, &rest(&re)], -1);
                im = Tensor::cat([&im, &-rest(&im)], -1);
            }
            let result = |x: Tensor| {
                let scaled = if settings.normalized { x / settings.scale() } else { x };
                scaled.cast(dtype).transpose(-1, -2)
            };
            Ok((result(re), result(im)))
        })
    }

    /// The signal of which [`Tensor::stft`] with the same settings gave this real and that imaginary part: transforms back,
    /// added up where they overlap, over the sum of the squares of the windows there. Of `length` elements; without one, of
    /// as many as the parts surely cover. PyTorch's `istft`.
    ///
    /// Where windows are 0, or leave gaps, it is NaN or infinite.
    ///
    /// Invalid for integers and bools, and for other shapes than the settings give.
    ///
    /// ```
    /// use lazuli::{Stft, Tensor};
    /// let signal = Tensor::randn([100], 1);
    /// let (re, im) = signal.stft(&Stft::new(16));
    /// let back = re.istft(&im, &Stft::new(16), None);
    /// assert!((back - signal).abs().max(..).item::<f32>()? < 1e-5);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    #[track_caller]
    pub fn istft(
        &self,
        imaginary: impl AsRef<Tensor>,
        settings: &Stft,
        length: impl Into<Option<usize>>,
    ) -> Tensor {
        let imaginary = imaginary.as_ref();
        let (call, length) = (Call::here("istft"), length.into());
        call.composed(|| {
            let (shape, dtype) = self.known()?;
            call.needs_float(self)?;
            let [.., _, parts] = shape[..] else {
                return call.fail(format!("needs at least 2 dimensions, got {dtype} {shape}"));
            };
            let window = settings.whole_window(call, self)?;
            if parts == 0 {
                return call.fail(format!("there are no parts in shape {shape}"));
            }
            let half = settings.size / 2 + 1;
            let bins = if settings.two_sided { settings.size } else { half };
            if shape[shape.rank() - 2] != bins {
                return call.fail(format!(
                    "transforms of {} numbers have {bins} results, got shape {shape}",
                    settings.size
                ));
            }
            // The others say the same of a real signal.
            let last = |x: &Tensor| x.slice(-2, ..half).transpose(-1, -2).cast(dtype.compute());
            let back = last(self).irfft(&last(imaginary), settings.size, -1);
            let window = match window {
                Some(window) => window,
                None => Tensor::ones([settings.size], dtype.compute()),
            };
            let sum = overlapped(call, &(&back * &window), settings.hop, 1)?;
            let squares = window.square().broadcast_to([parts, settings.size]);
            let weight = overlapped(call, &squares, settings.hop, 1)?;
            let half = if settings.border.is_some() { settings.size / 2 } else { 0 };
            let whole = sum.known()?.0.last().copied().unwrap_or(0);
            let end = length.map_or(whole.saturating_sub(half), |length| half.saturating_add(length));
            let cut = |x: &Tensor| x.slice(-1, half as isize..whole.min(end) as isize);
            let mut signal = cut(&sum) / cut(&weight);
            if settings.normalized {
                signal = signal * settings.scale();
            }
            // Beyond what the parts cover.
            let mut border = vec![(0, 0); signal.known()?.0.rank()];
            if let (Some(last), Some(_)) = (border.last_mut(), length) {
                last.1 = end - whole.min(end);
            }
            Ok(signal.pad(&border, 0).cast(dtype))
        })
    }
}
