//! What a workload is, and the tensors that it starts from.

#![allow(dead_code, reason = "tests compute small ones, benchmarks large ones")]

use lazuli::{DType, Device, Element, Shape, Tensor, bf16, f16};

use crate::common::data::units;

/// Records an expression on inputs.
type Record = Box<dyn Fn(&mut Inputs) -> Vec<Tensor> + Sync + Send>;

/// An expression as users write it, at two sizes.
pub struct Workload {
    pub name: &'static str,
    pub record: Record,
    /// Why it is more than one kernel, or moves more than the least bytes; empty where it does not.
    pub note: &'static str,
}

/// A workload that is one kernel and moves each input and each output once.
pub fn row(
    name: &'static str,
    record: impl Fn(&mut Inputs) -> Vec<Tensor> + Sync + Send + 'static,
) -> Workload {
    Workload { name, record: Box::new(record), note: "" }
}

impl Workload {
    /// One that does not, and why.
    pub fn because(self, note: &'static str) -> Workload {
        Workload { note, ..self }
    }
}

/// Workloads under a heading.
pub type Group = (&'static str, Vec<Workload>);

/// Makes the inputs of one recording: large ones to plan with, whose elements nobody reads, or small ones to compute.
pub struct Inputs {
    device: Device,
    is_large: bool,
    made: u64,
    /// Those of the recording before, where several start from the same.
    kept: Option<Vec<Tensor>>,
}

impl Inputs {
    pub fn large() -> Inputs {
        Inputs { device: Device::cpu(), is_large: true, made: 0, kept: None }
    }

    pub fn small(device: &Device) -> Inputs {
        Inputs { device: *device, is_large: false, made: 0, kept: None }
    }

    /// With elements, made by the first recording and used again by the next ones.
    pub fn kept(device: &Device, is_large: bool) -> Inputs {
        Inputs { device: *device, is_large, made: 0, kept: Some(Vec::new()) }
    }

    /// Before another recording of the same expression.
    pub fn again(&mut self) -> &mut Inputs {
        self.made = 0;
        self
    }

    /// An extent.
    pub fn at(&self, large: usize, small: usize) -> usize {
        if self.is_large { large } else { small }
    }

    /// Elements of numbers in [-1, 1), other ones for each input.
    fn make<T: Element + Default>(&mut self, shape: impl Into<Shape>, element: impl Fn(f64) -> T) -> Tensor {
        let shape = shape.into();
        self.made += 1;
        let number = self.made as usize - 1;
        if let Some(input) = self.kept.as_ref().and_then(|kept| kept.get(number)) {
            return input.clone();
        }
        let elements = match self.is_large && self.kept.is_none() {
            true => vec![T::default(); shape.elements()],
            false => units(shape.elements(), self.made).map(element).collect(),
        };
        let input = Tensor::from_vec(elements, shape).to(&self.device);
        self.kept.iter_mut().for_each(|kept| kept.push(input.clone()));
        input
    }

    /// Numbers in [-3, 3).
    pub fn floats(&mut self, shape: impl Into<Shape>) -> Tensor {
        self.make(shape, |x| 3.0 * x as f32)
    }

    /// As [`Inputs::floats`], of a 16-bit dtype.
    pub fn halves(&mut self, dtype: DType, shape: impl Into<Shape>) -> Tensor {
        match dtype {
            DType::BF16 => self.make(shape, |x| bf16::from_f64(3.0 * x)),
            _ => self.make(shape, |x| f16::from_f64(3.0 * x)),
        }
    }

    /// Numbers in (0.1, 1.1].
    pub fn positive(&mut self, shape: impl Into<Shape>) -> Tensor {
        self.make(shape, |x| 0.1 + x.abs() as f32)
    }

    /// Numbers below `end`.
    pub fn labels(&mut self, shape: impl Into<Shape>, end: usize) -> Tensor {
        self.make(shape, |x| (x.abs() * end as f64) as i64)
    }

    pub fn bytes(&mut self, shape: impl Into<Shape>) -> Tensor {
        self.make(shape, |x| (x.abs() * 256.0) as u8)
    }

    pub fn mask(&mut self, shape: impl Into<Shape>) -> Tensor {
        self.make(shape, |x| x > 0.0)
    }

    /// A matrix of rows of ordinary length.
    pub fn rows(&mut self) -> Tensor {
        let shape = [self.at(4096, 3), self.at(1024, 37)];
        self.floats(shape)
    }

    /// A batch of images with channels: [8, 32, 64, 64].
    pub fn images(&mut self) -> Tensor {
        let shape = [self.at(8, 2), self.at(32, 4), self.at(64, 8), self.at(64, 10)];
        self.floats(shape)
    }
}
