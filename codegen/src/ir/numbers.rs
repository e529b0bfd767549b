//! The numbers of a kernel that follow from sizes.

use super::{Kernel, ValueOp};

impl Kernel {
    /// Shows `f` each number that follows from the sizes of what the kernel is made for, in one order for all kernels that
    /// differ in these alone: extents, and what index expressions and conditions are made of. Buffers' lengths are no part
    /// of them, nor are arguments' values.
    pub fn each_number(&mut self, f: &mut dyn FnMut(&mut i64)) {
        for axis in &mut self.axes {
            let mut extent = axis.extent as i64;
            f(&mut extent);
            axis.extent = extent as u64;
        }
        for value in &mut self.values {
            for index in value.op.indices_mut() {
                index.each_number(f);
            }
            if let ValueOp::InBounds(bounds) = &mut value.op {
                for bound in bounds {
                    f(&mut bound.lo);
                    f(&mut bound.hi);
                }
            }
        }
        for store in &mut self.stores {
            store.index.each_number(f);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_sizes_are_all_that_differs_among_them() {
        let kernel = |n: usize| -> Kernel {
            let text = format!(
                "\
kernel row
  map i0 < n_i0 = {n}
  map i1 < {inner}
  input in0: f32 [{all}]
  output out0: f32 [{all}]
  v0: bool = in_bounds 1 <= i0 < {n}
  v1: f32 = load in0[i0 * {inner} + i1 / {n} + -{n}] if v0
  store out0[i0 * {inner} + i1] = v1
",
                inner = n + 3,
                all = n * (n + 3),
            );
            text.parse().unwrap()
        };
        let numbers = |kernel: &mut Kernel| {
            let mut numbers = Vec::new();
            kernel.each_number(&mut |number| numbers.push(*number));
            numbers
        };
        let (mut small, mut large) = (kernel(7), kernel(50));
        let of_large = numbers(&mut large);
        assert_ne!(numbers(&mut small), of_large);
        let mut next = of_large.into_iter();
        small.each_number(&mut |number| *number = next.next().unwrap());
        for (small, large) in small.buffers.iter_mut().zip(&large.buffers) {
            small.elements = large.elements;
        }
        assert_eq!((small, next.next()), (large, None));
    }
}
