//! Tensors from numbers and seeds.

use super::Accuracy::Exact;
use super::Gives::{Fixed, Same};
use super::{ANY, Group, operations};
use crate::{DType, Number, Tensor};

operations! {
    /// From numbers.
    CONSTRUCTORS: Group::Constructor;
    zeros(dtype;) All -> Same, Exact, "Zeros.": "torch.zeros((2, 3), dtype=dtype)" => Tensor::zeros([2, 3], dtype);
    ones(dtype;) All -> Same, Exact, "Ones.": "torch.ones((2, 3), dtype=dtype)" => Tensor::ones([2, 3], dtype);
    full(dtype;) All -> Same, Exact, "A value everywhere.": "torch.full((2, 3), 7, dtype=dtype)" => Tensor::full([2, 3], 7, dtype);
    zeros_like(a: ANY) All -> Same, Exact, "Zeros in a tensor's shape and dtype.": "torch.zeros_like(a)" => a.zeros_like();
    ones_like(a: ANY) All -> Same, Exact, "Ones in a tensor's shape and dtype.": "torch.ones_like(a)" => a.ones_like();
    full_like(a: ANY) All -> Same, Exact, "A value in a tensor's shape and dtype.": "torch.full_like(a, 3)" => a.full_like(Number::Int(3));
    arange(_dtype;) All -> Fixed(DType::F32), Exact, "From start to, but without, end.": "torch.arange(0.5, 9.0, 0.25, dtype=torch.float32)" => Tensor::arange(0.5f32, 9.0, 0.25);
}

operations! {
    /// From seeds; other numbers than PyTorch's.
    RANDOM: Group::Random;
    rand(_dtype;) All -> Fixed(DType::F32), Exact, "Uniform in [0, 1).": "" => Tensor::rand([13, 5], 42);
    rand_with(dtype;) Floats -> Same, Exact, "Uniform in [0, 1), of any float dtype.": "" => Tensor::rand_with([13, 5], dtype, 42);
}
