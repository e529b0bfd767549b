//! The table of all operations that a [`Tensor`](crate::Tensor) has: the one list that the documentation below, the
//! tests of every device, and the comparison with PyTorch are made from.
//!
//! A test fails if a public method that records is in no row, or if a row says something about dtypes that recording
//! does not do. [`all`] goes over the rows:
//!
//! ```
//! use lazuli::{DType, Tensor, operations};
//!
//! let exp2 = operations::all().find(|operation| operation.name == "exp2").unwrap();
//! assert_eq!(exp2.cases[0].torch, "torch.exp2(a)");
//! let y = (exp2.cases[0].record)(&[Tensor::from_slice(&[3i32], [1])], DType::I32);
//! assert_eq!(y[0].to_vec::<f32>()?, [8.0]);
//! # Ok::<(), lazuli::Error>(())
//! ```
//!
//! # Differences from PyTorch
//!
//! Each call of the table has been compared with PyTorch on the CPU, on special values, broadcast, 0-d and empty. Where
//! PyTorch's result is another one than within the stated accuracy, and ours stays, that is listed here. Beside that,
//! there are calls that PyTorch refuses: most of `u32`, some of integers, and windows of 16-bit floats.
#![doc = include_str!("differences.md")]
//!
//! # The table
//!
//! For each dtype: the result's dtype, found by recording the operation with inputs of that dtype; `–` where it is
//! invalid. "Accuracy" is the largest error in units in the last place (ulp) of the result's dtype. "exact" is what
//! IEEE arithmetic gives, each step of the formula rounded to nearest: the same bits on every device, fused or not.
//! Where it has two numbers, the error is at most the first, times the result's magnitude, plus the second, both in
//! units of the dtype's [`eps`](crate::FloatInfo::eps).
#![doc = include_str!("operations.md")]

mod constructors;
mod elementwise;
mod layers;
mod linear;
mod order;
mod reductions;
mod row;
mod views;

pub use row::{Accepts, Accuracy, Case, Elements, Gives, Group, Input, Operation};

/// All rows, group by group.
///
/// ```
/// let names: Vec<&str> = lazuli::operations::all().map(|operation| operation.name).collect();
/// assert!(names.contains(&"softmax") && names.len() > 100);
/// ```
pub fn all() -> impl Iterator<Item = &'static Operation> {
    let tables = [
        elementwise::UNARY,
        elementwise::BINARY,
        elementwise::LOGIC,
        layers::ACTIVATIONS,
        layers::LOSSES,
        layers::NORMS,
        layers::WINDOWS,
        layers::PRODUCTS,
        linear::LINEAR,
        reductions::REDUCTIONS,
        order::ORDER,
        views::VIEWS,
        constructors::CONSTRUCTORS,
        constructors::RANDOM,
    ];
    tables.into_iter().flatten()
}
