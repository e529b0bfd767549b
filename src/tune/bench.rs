//! A kernel on its device, measured under schedules and cut in several.

use std::sync::Arc;
use std::time::Instant;

use lazuli_codegen::Emitted;
use lazuli_codegen::schedule::Schedule;

use super::search::Bench;
use crate::compiler;
use crate::executor::candidate::Candidate;
use crate::executor::trial::Noted;
use crate::fusion::cut::Cut;
use crate::runtime::host::HostBuffer;
use crate::tuned::Chosen;
use crate::{DType, Result, Scalar};

/// Seconds that launches take together to be one measurement, and the most of them.
const SAMPLE: f64 = 3e-4;
const MOST_LAUNCHES: f64 = 64.0;

/// Elements of a result that are compared.
const COMPARED: usize = 1 << 16;

/// What stands in for the clock: from a kernel's name, its schedule or cut, and the seconds that were measured.
pub(super) type Clock<'a> = Box<dyn FnMut(&str, &str, f64) -> f64 + 'a>;

/// A way to run a kernel.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Way {
    Under(Schedule),
    /// As several kernels.
    Cut(Cut),
}

/// A kernel that is measured.
pub(super) struct KernelBench<'a, 'c> {
    noted: &'a Noted,
    end: Instant,
    clock: Option<&'a mut Clock<'c>>,
    tell: &'a mut dyn FnMut(usize),
    ready: Vec<(Way, Candidate)>,
    /// What the first one that was ready computes.
    expected: Option<Vec<Arc<HostBuffer>>>,
    launches: Option<u32>,
}

impl<'a, 'c> KernelBench<'a, 'c> {
    pub(super) fn new(
        noted: &'a Noted,
        end: Instant,
        clock: Option<&'a mut Clock<'c>>,
        tell: &'a mut dyn FnMut(usize),
    ) -> KernelBench<'a, 'c> {
        KernelBench { noted, end, clock, tell, ready: Vec::new(), expected: None, launches: None }
    }

    /// What the kernel has without tuning.
    pub(super) fn default_schedule(&self) -> Option<Schedule> {
        compiler::default_schedule(&self.noted.plan, self.noted.number)
    }

    /// A way as a tuning has it.
    pub(super) fn chosen(&self, way: Way) -> Option<Chosen> {
        Some(match way {
            Way::Under(schedule) => Chosen::Under(schedule),
            Way::Cut(cut) => Chosen::Cut(compiler::place(&self.noted.plan, self.noted.number, cut)?),
        })
    }

    /// The kernel's code, or that of the several, for each way that there is some for.
    fn candidates(&self, ways: &[Way]) -> Vec<(Way, Candidate)> {
        let Noted { plan, number, .. } = self.noted;
        let under = |&way: &Way| match way {
            Way::Under(schedule) => Some((way, compiler::under(plan, *number, schedule)?)),
            Way::Cut(_) => None,
        };
        let emitted: Vec<(Way, Arc<Emitted>)> = ways.iter().filter_map(under).collect();
        let texts: Vec<Arc<Emitted>> = emitted.iter().map(|(_, emitted)| emitted.clone()).collect();
        let under = emitted.iter().map(|(way, _)| *way).zip(self.noted.candidates(&texts));
        let in_parts = |&way: &Way| match way {
            Way::Cut(cut) if !self.is_over() => {
                Some((way, self.noted.in_parts(&compiler::in_parts(plan, *number, cut)?)))
            }
            _ => None,
        };
        let all = under.chain(ways.iter().filter_map(in_parts));
        all.filter_map(|(way, candidate)| Some((way, candidate?))).collect()
    }

    fn results(&self, candidate: &Candidate) -> Result<Vec<Arc<HostBuffer>>> {
        self.noted.results(candidate)?.iter().map(|buffer| buffer.to_host()).collect()
    }

    /// Whether a candidate computes what the first one does.
    fn is_right(&mut self, candidate: &Candidate) -> bool {
        let Ok(results) = self.results(candidate) else { return false };
        let Some(expected) = &self.expected else {
            self.expected = Some(results);
            return true;
        };
        let dtypes = compiler::results(&self.noted.plan, self.noted.number);
        expected.len() == results.len()
            && dtypes
                .iter()
                .zip(expected.iter().zip(&results))
                .all(|(dtype, (expected, result))| is_near(*dtype, expected.as_slice(), result.as_slice()))
    }
}

impl Bench for KernelBench<'_, '_> {
    type Way = Way;

    fn neighbours(&mut self, way: Way) -> Vec<Way> {
        let Way::Under(schedule) = way else { return Vec::new() };
        let neighbours = compiler::neighbours(&self.noted.plan, self.noted.number, schedule);
        neighbours.into_iter().map(Way::Under).collect()
    }

    fn others(&mut self) -> Vec<Way> {
        compiler::cuts(&self.noted.plan, self.noted.number).into_iter().map(Way::Cut).collect()
    }

    fn prepare(&mut self, ways: &[Way]) -> Vec<Way> {
        let mut ready = Vec::new();
        for (way, candidate) in self.candidates(ways) {
            if self.is_right(&candidate) {
                ready.push(way);
                self.ready.push((way, candidate));
            }
        }
        (self.tell)(self.ready.len());
        ready
    }

    fn seconds(&mut self, way: Way) -> Option<f64> {
        let (_, candidate) = self.ready.iter().find(|(other, _)| *other == way)?;
        let launches = match self.launches {
            Some(launches) => launches,
            None => {
                let once = self.noted.seconds(candidate, 1).ok()?;
                let launches = (SAMPLE / once.max(1e-9)).clamp(1.0, MOST_LAUNCHES) as u32;
                self.launches = Some(launches);
                launches
            }
        };
        let seconds = self.noted.seconds(candidate, launches).ok()?;
        if self.clock.is_none() {
            return Some(seconds);
        }
        let name = self.chosen(way)?.to_string();
        self.clock.as_mut().map(|clock| clock(self.noted.key.name(), &name, seconds))
    }

    fn is_over(&self) -> bool {
        Instant::now() >= self.end
    }
}

/// Whether results are the same but for the rounding of sums: what is wrong is far off.
fn is_near(dtype: DType, a: &[u8], b: &[u8]) -> bool {
    if a == b {
        return true;
    }
    let tolerance = match dtype {
        DType::F64 => 1e-6,
        DType::F32 => 1e-3,
        DType::F16 | DType::BF16 => 3e-2,
        _ => return false,
    };
    if a.len() != b.len() {
        return false;
    }
    let size = dtype.size();
    let stride = (a.len() / size / COMPARED).max(1) * size;
    let number = |bytes: &[u8]| {
        let bits = bytes.iter().rev().fold(0, |bits, &byte| bits << 8 | u64::from(byte));
        Scalar::from_bits(dtype, bits).as_f64()
    };
    let pairs = || {
        let places = (0..a.len().saturating_sub(size - 1)).step_by(stride);
        places.map(|at| (number(&a[at..at + size]), number(&b[at..at + size])))
    };
    let finite = pairs().map(|(a, _)| a.abs()).filter(|a| a.is_finite());
    let scale = finite.fold(0.0, f64::max);
    pairs().all(|(a, b)| a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= tolerance * scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_may_round_otherwise_and_nothing_else() {
        let floats =
            |values: &[f32]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
        let near = |a: &[f32], b: &[f32]| is_near(DType::F32, &floats(a), &floats(b));
        assert!(near(&[1.0, 100.0], &[1.0001, 100.0]));
        assert!(!near(&[1.0, 2.0], &[1.0, 2.1]));
        assert!(near(&[f32::NAN, f32::INFINITY], &[-f32::NAN, f32::INFINITY]));
        assert!(!near(&[f32::NAN, 1.0], &[0.0, 1.0]));
        assert!(!near(&[f32::INFINITY, 1.0], &[1.0, 1.0]));
        assert!(!near(&[1.0], &[1.0, 1.0]));
        assert!(!is_near(DType::I32, &1i32.to_le_bytes(), &2i32.to_le_bytes()));
    }
}
