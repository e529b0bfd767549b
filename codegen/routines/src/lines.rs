//! Fourier transforms by rustfft and realfft.

use std::num::NonZeroUsize;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use lru::LruCache;
use realfft::{ComplexToReal, RealFftPlanner, RealToComplex};
use rustfft::num_complex::Complex;
use rustfft::{Fft, FftNum, FftPlanner};

use crate::transform::Transform;

/// Tables are as long as the lines: of so many lengths they are kept.
const MOST_KEPT: usize = 32;

/// For so many threads the memory of a line is kept, if it is no more than these bytes.
const MOST_ROOMS: usize = 16;
const MOST_BYTES: usize = 32 << 20;

/// What transforms lines of one length.
enum Kind<T> {
    Whole(Arc<dyn Fft<T>>),
    Half(Arc<dyn RealToComplex<T>>),
    HalfBack(Arc<dyn ComplexToReal<T>>),
}

impl<T> Clone for Kind<T> {
    fn clone(&self) -> Kind<T> {
        match self {
            Kind::Whole(plan) => Kind::Whole(plan.clone()),
            Kind::Half(plan) => Kind::Half(plan.clone()),
            Kind::HalfBack(plan) => Kind::HalfBack(plan.clone()),
        }
    }
}

/// The memory that a line takes on its way.
struct Room<T> {
    line: Vec<Complex<T>>,
    real: Vec<T>,
    scratch: Vec<Complex<T>>,
}

impl<T> Room<T> {
    fn bytes(&self) -> usize {
        (2 * (self.line.len() + self.scratch.len()) + self.real.len()) * size_of::<T>()
    }
}

/// What is known of a length: what transforms its lines, and memory that nobody uses now. Long lines would take longer to get it
/// from the system than to be transformed.
struct Known<T> {
    kind: Kind<T>,
    rooms: Vec<Room<T>>,
}

type Kept<T> = Mutex<LruCache<(Transform, usize), Known<T>>>;

fn kept<T>() -> Kept<T> {
    Mutex::new(LruCache::new(NonZeroUsize::new(MOST_KEPT).unwrap_or(NonZeroUsize::MIN)))
}

/// A transform of lines of one length.
pub struct Lines<T: FftNum> {
    of: (Transform, usize),
    kind: Kind<T>,
    /// What an inverse is multiplied with.
    scale: Option<T>,
    room: Room<T>,
    kept: &'static Kept<T>,
}

impl<T: FftNum> Drop for Lines<T> {
    fn drop(&mut self) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = kept.get_mut(&self.of)
            && known.rooms.len() < MOST_ROOMS
            && self.room.bytes() <= MOST_BYTES
        {
            let none = Room { line: Vec::new(), real: Vec::new(), scratch: Vec::new() };
            known.rooms.push(std::mem::replace(&mut self.room, none));
        }
    }
}

impl<T: FftNum> Lines<T> {
    fn of(kept: &'static Kept<T>, transform: Transform, length: usize) -> Lines<T> {
        let new = || {
            let kind = match transform {
                Transform::Forward => Kind::Whole(FftPlanner::new().plan_fft_forward(length)),
                Transform::Back => Kind::Whole(FftPlanner::new().plan_fft_inverse(length)),
                Transform::Half => Kind::Half(RealFftPlanner::new().plan_fft_forward(length)),
                Transform::HalfBack { n } => Kind::HalfBack(RealFftPlanner::new().plan_fft_inverse(n)),
            };
            Known { kind, rooms: Vec::new() }
        };
        let (kind, room) = {
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            let known = kept.get_or_insert_mut((transform, length), new);
            (known.kind.clone(), known.rooms.pop())
        };
        let inverse = |n: usize| T::from_usize(n).map(|n| T::one() / n);
        let scale = match transform {
            Transform::Forward | Transform::Half => None,
            Transform::Back => inverse(length),
            Transform::HalfBack { n } => inverse(n),
        };
        let new_room = || {
            let none = Complex { re: T::zero(), im: T::zero() };
            let (line, real, scratch) = match &kind {
                Kind::Whole(plan) => (length, 0, plan.get_inplace_scratch_len()),
                Kind::Half(plan) => (length / 2 + 1, length, plan.get_scratch_len()),
                Kind::HalfBack(plan) => (length, plan.len(), plan.get_scratch_len()),
            };
            Room { line: vec![none; line], real: vec![T::zero(); real], scratch: vec![none; scratch] }
        };
        let room = room.unwrap_or_else(new_room);
        Lines { of: (transform, length), kind, scale, room, kept }
    }

    /// The transform of one line, which has imaginary parts unless these are of no length, as has the result.
    fn transform(&mut self, re: &[T], im: &[T], to_re: &mut [T], to_im: &mut [T]) {
        let Room { line, real, scratch } = &mut self.room;
        match &self.kind {
            Kind::Half(_) => real.copy_from_slice(re),
            _ if im.is_empty() => {
                let none = T::zero();
                line.iter_mut().zip(re).for_each(|(to, &re)| *to = Complex { re, im: none });
            }
            _ => {
                let parts = re.iter().zip(im);
                line.iter_mut().zip(parts).for_each(|(to, (&re, &im))| *to = Complex { re, im });
            }
        }
        match &self.kind {
            Kind::Whole(plan) => plan.process_with_scratch(line, scratch),
            Kind::Half(plan) => {
                // It refuses other lengths alone.
                let _ = plan.process_with_scratch(real, line, scratch);
            }
            Kind::HalfBack(plan) => {
                // What results of real numbers have no imaginary parts of, is not looked at.
                let (last, is_even) = (line.len() - 1, plan.len().is_multiple_of(2));
                line[0].im = T::zero();
                if is_even {
                    line[last].im = T::zero();
                }
                let _ = plan.process_with_scratch(line, real, scratch);
            }
        }
        let scale = self.scale.unwrap_or_else(T::one);
        match &self.kind {
            Kind::HalfBack(_) => to_re.iter_mut().zip(&*real).for_each(|(to, &x)| *to = x * scale),
            _ if to_im.is_empty() => {
                to_re.iter_mut().zip(&*line).for_each(|(to, x)| *to = x.re * scale);
            }
            _ => {
                let to = to_re.iter_mut().zip(to_im);
                for ((to_re, to_im), x) in to.zip(&*line) {
                    (*to_re, *to_im) = (x.re * scale, x.im * scale);
                }
            }
        }
    }
}

macro_rules! lines {
    ($($float:ident)*) => {$(
        impl Lines<$float> {
            /// Of lines of this length, which is above 0.
            pub fn new(transform: Transform, length: usize) -> Lines<$float> {
                static KEPT: LazyLock<Kept<$float>> = LazyLock::new(kept);
                Lines::of(&KEPT, transform, length)
            }

            /// The transform of one line. Its imaginary parts may be of no length, which are zeros, and so may be those of the
            /// result, if it has none.
            pub fn one(&mut self, re: &[$float], im: &[$float], to_re: &mut [$float], to_im: &mut [$float]) {
                self.transform(re, im, to_re, to_im);
            }
        }
    )*};
}
lines!(f32 f64);
