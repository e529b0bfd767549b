//! Chains of elementwise operations and views, drawn from the table of all operations, are one kernel.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // A failed assumption stops the test.

use lazuli::operations::{self, Case, Group};
use lazuli::{DType, Target, Tensor};

/// Numbers without a pattern, the same in each run.
struct Draws(u64);

impl Draws {
    fn below(&mut self, count: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % count
    }
}

/// The operation on the chain's end, with other inputs of its shape; `None` where that cannot be.
fn extended(end: &Tensor, inputs: usize, case: &Case, draws: &mut Draws) -> Option<Tensor> {
    let (shape, dtype) = (end.shape().ok()?, end.dtype().ok()?);
    let other = || Tensor::rand(shape.clone(), 1).cast(dtype);
    let mut operands: Vec<Tensor> = (1..inputs).map(|_| other()).collect();
    operands.insert(0, end.clone());
    let results = (case.record)(&operands, dtype);
    let result = results.get(draws.below(results.len().max(1)))?;
    let elements: usize = result.shape().ok()?.iter().product();
    (elements > 0 && elements <= 4096).then(|| result.clone())
}

#[test]
fn a_chain_is_one_kernel() {
    let is_link = |group: Group| {
        let elementwise = matches!(group, Group::Unary | Group::Binary | Group::Logic | Group::Activation);
        elementwise || group == Group::View
    };
    // A few of the longest formulas are more than a kernel takes.
    let long = ["i1", "i1e", "bessel_j0", "bessel_j1", "zeta", "polygamma", "gammainc", "gammaincc"];
    // Where a mask holds is known after all of it.
    let is_more = |name: &str| long.contains(&name) || name == "index";
    let links: Vec<_> =
        operations::all().filter(|operation| is_link(operation.group) && !is_more(operation.name)).collect();
    let mut draws = Draws(1);
    let mut longest = 0;
    for number in 0..300 {
        let mut end = Tensor::from_vec((0..444).map(|i| i as f32 / 100.0 - 2.0).collect(), [3, 4, 37]);
        let mut chain: Vec<&str> = Vec::new();
        for _ in 0..12 {
            let operation = links[draws.below(links.len())];
            let case = &operation.cases[draws.below(operation.cases.len())];
            if let Some(next) = extended(&end, operation.inputs.len(), case, &mut draws) {
                end = next;
                chain.push(operation.name);
            }
        }
        // What ends in a view is stored all the same.
        let end = end.cast(DType::F64) + 1.0;
        let program =
            end.compile_for(&Target::cuda("sm_90")).unwrap_or_else(|error| panic!("{chain:?}: {error}"));
        assert_eq!(program.kernels().len(), 1, "chain {number}, {chain:?}:\n{}", end.explain().unwrap());
        longest = longest.max(chain.len());
    }
    assert!(longest >= 8, "the longest chain has {longest} operations");
}

/// However many operations of a formula read through it: the value is there after the first.
#[test]
fn what_is_read_through_one_view_is_computed_once() {
    let x = Tensor::rand([2048, 1024], 1);
    let views: [fn(&Tensor) -> Tensor; 5] = [
        |x| x.t(),
        |x| x.flip(0),
        |x| x.roll(3, 1),
        |x| x.slice(1, 5..900),
        |x| x.reshape([8, 256, 1024]).pixel_shuffle(2),
    ];
    for view in views {
        let y = view(&x.gelu()).mish().leaky_relu(0.1);
        let explanation = y.explain().unwrap();
        assert_eq!(explanation.kernels(), 1, "{explanation}");
    }
}
