//! Fourier transforms by rustfft and realfft.

use std::num::NonZeroUsize;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use lru::LruCache;
use realfft::RealFftPlanner;
use rustfft::num_complex::Complex;
use rustfft::{Fft, FftNum, FftPlanner};

use crate::transform::Transform;

/// Tables are as long as the lines: of so many lengths they are cached.
const MOST_LENGTHS: usize = 32;

/// For so many threads the workspace of a length stays, if it is no more than these bytes.
const MOST_IDLE: usize = 16;
const MOST_BYTES: usize = 32 << 20;

/// What transforms lines of one length.
enum Kind<T> {
    ComplexToComplex(Arc<dyn Fft<T>>),
    RealToComplex(Arc<dyn realfft::RealToComplex<T>>),
    ComplexToReal(Arc<dyn realfft::ComplexToReal<T>>),
}

impl<T> Clone for Kind<T> {
    fn clone(&self) -> Kind<T> {
        match self {
            Kind::ComplexToComplex(plan) => Kind::ComplexToComplex(plan.clone()),
            Kind::RealToComplex(plan) => Kind::RealToComplex(plan.clone()),
            Kind::ComplexToReal(plan) => Kind::ComplexToReal(plan.clone()),
        }
    }
}

/// The memory that a line takes on its way.
struct Workspace<T> {
    line: Vec<Complex<T>>,
    real: Vec<T>,
    scratch: Vec<Complex<T>>,
}

impl<T> Workspace<T> {
    fn bytes(&self) -> usize {
        (2 * (self.line.len() + self.scratch.len()) + self.real.len()) * size_of::<T>()
    }
}

/// Of a length: what transforms its lines, and workspaces that nobody uses now. Long lines would take longer to get memory from the
/// system than to be transformed.
struct Entry<T> {
    kind: Kind<T>,
    idle: Vec<Workspace<T>>,
}

type Cache<T> = Mutex<LruCache<(Transform, usize), Entry<T>>>;

fn cache<T>() -> Cache<T> {
    Mutex::new(LruCache::new(NonZeroUsize::new(MOST_LENGTHS).unwrap_or(NonZeroUsize::MIN)))
}

/// A transform of lines of one length.
pub struct Lines<T: FftNum> {
    of: (Transform, usize),
    kind: Kind<T>,
    /// What an inverse is multiplied with.
    scale: Option<T>,
    workspace: Workspace<T>,
    cache: &'static Cache<T>,
}

impl<T: FftNum> Drop for Lines<T> {
    fn drop(&mut self) {
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = cache.get_mut(&self.of)
            && entry.idle.len() < MOST_IDLE
            && self.workspace.bytes() <= MOST_BYTES
        {
            let none = Workspace { line: Vec::new(), real: Vec::new(), scratch: Vec::new() };
            entry.idle.push(std::mem::replace(&mut self.workspace, none));
        }
    }
}

impl<T: FftNum> Lines<T> {
    fn of(cache: &'static Cache<T>, transform: Transform, length: usize) -> Lines<T> {
        let new = || {
            let kind = match transform {
                Transform::Forward => Kind::ComplexToComplex(FftPlanner::new().plan_fft_forward(length)),
                Transform::Inverse => Kind::ComplexToComplex(FftPlanner::new().plan_fft_inverse(length)),
                Transform::RealToComplex => {
                    Kind::RealToComplex(RealFftPlanner::new().plan_fft_forward(length))
                }
                Transform::ComplexToReal { n } => {
                    Kind::ComplexToReal(RealFftPlanner::new().plan_fft_inverse(n))
                }
            };
            Entry { kind, idle: Vec::new() }
        };
        let (kind, workspace) = {
            let mut cache = cache.lock().unwrap_or_else(PoisonError::into_inner);
            let entry = cache.get_or_insert_mut((transform, length), new);
            (entry.kind.clone(), entry.idle.pop())
        };
        let inverse = |n: usize| T::from_usize(n).map(|n| T::one() / n);
        let scale = match transform {
            Transform::Forward | Transform::RealToComplex => None,
            Transform::Inverse => inverse(length),
            Transform::ComplexToReal { n } => inverse(n),
        };
        let new_workspace = || {
            let none = Complex { re: T::zero(), im: T::zero() };
            let (line, real, scratch) = match &kind {
                Kind::ComplexToComplex(plan) => (length, 0, plan.get_inplace_scratch_len()),
                Kind::RealToComplex(plan) => (length / 2 + 1, length, plan.get_scratch_len()),
                Kind::ComplexToReal(plan) => (length, plan.len(), plan.get_scratch_len()),
            };
            Workspace { line: vec![none; line], real: vec![T::zero(); real], scratch: vec![none; scratch] }
        };
        let workspace = workspace.unwrap_or_else(new_workspace);
        Lines { of: (transform, length), kind, scale, workspace, cache }
    }

    /// The transform of one line, which has imaginary parts unless these are of no length, as has the result.
    fn transform(&mut self, re: &[T], im: &[T], to_re: &mut [T], to_im: &mut [T]) {
        let Workspace { line, real, scratch } = &mut self.workspace;
        match &self.kind {
            Kind::RealToComplex(_) => real.copy_from_slice(re),
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
            Kind::ComplexToComplex(plan) => plan.process_with_scratch(line, scratch),
            Kind::RealToComplex(plan) => {
                // It refuses other lengths alone.
                let _ = plan.process_with_scratch(real, line, scratch);
            }
            Kind::ComplexToReal(plan) => {
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
            Kind::ComplexToReal(_) => to_re.iter_mut().zip(&*real).for_each(|(to, &x)| *to = x * scale),
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
                static CACHE: LazyLock<Cache<$float>> = LazyLock::new(cache);
                Lines::of(&CACHE, transform, length)
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
