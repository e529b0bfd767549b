//! What kernels are told of tiles that they copy as a whole.

use lazuli_codegen::DType;
use lazuli_codegen::ir::Kernel;
use lazuli_codegen::schedule::TensorMap;
use smallvec::SmallVec;

/// Where the elements of a buffer of 16 bits are along some axes, and what a tile has of the first two.
#[derive(Debug)]
pub(crate) struct Tiles {
    pub(crate) dtype: DType,
    /// Bytes from the buffer's beginning to the first element.
    pub(crate) first: u64,
    pub(crate) lines: u32,
    /// Positions of each axis, and bytes from one to the next.
    pub(crate) axes: SmallVec<[(u64, u64); 3]>,
}

/// A tensor map, as a kernel's parameter is aligned.
#[repr(C, align(128))]
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct MapWords(pub(crate) [u64; 16]);

impl Tiles {
    pub(crate) fn new(map: &TensorMap, kernel: &Kernel) -> Tiles {
        let dtype = kernel.buffers[map.buffer.index()].dtype;
        let size = dtype.size() as u64;
        let axes = map.axes.iter().map(|&(axis, step)| (kernel.axis(axis).extent, step * size));
        Tiles { dtype, first: map.first * size, lines: map.lines, axes: axes.collect() }
    }

    /// As the emulated device has it: the address, the extents, the steps in elements, the lines of a tile.
    #[cfg(feature = "emulate")]
    pub(crate) fn emulated(&self, address: u64) -> MapWords {
        let mut words = [0; 16];
        words[0] = address + self.first;
        for (number, &(extent, step)) in self.axes.iter().enumerate() {
            (words[1 + number], words[6 + number]) = (extent, step / self.dtype.size() as u64);
        }
        words[11] = self.lines.into();
        MapWords(words)
    }
}
