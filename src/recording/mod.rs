//! What users hold and what it stands for: handles that are recorded, and the graph of what they need.

pub(crate) mod build;
pub(crate) mod key;
pub(crate) mod loan;
mod numbers;
mod origins;
mod past;
pub(crate) mod tensor;

pub use tensor::Tensor;
pub(crate) use tensor::{
    Decomposition, Past, Recipe, Results, Rule, Sources, State, TensorNode, is_addressable, together,
};
