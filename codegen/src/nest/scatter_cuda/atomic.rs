//! Scatters of integers to many positions: each element is added in memory, where its index says, by whichever thread has it.
//! Integers come to the same in any order. Three functions, one after the other: nothing is added yet, elements are added, and
//! what follows from the results is stored.

use crate::index::AxisId;
use crate::ir::Kernel;
use crate::nest::accumulate::mul_add;
use crate::nest::emitter::Emitter;
use crate::nest::passes::{launch_items, launch_over};
use crate::nest::scatter::{Partials, Scatters, offset, workspace, workspaces};
use crate::nest::stmt::Arithmetic::Less;
use crate::nest::stmt::{Builtin, Expr, Stmt, Type};
use crate::nest::variable::Var;
use crate::nest::{Function, INDEX, Nest};
use crate::schedule::Launch;
use crate::{Language, Refusal};

/// Threads of a block; each has an element or a result.
const THREADS: u64 = 256;

pub(super) fn build(kernel: &Kernel, scatters: &Scatters) -> Result<Nest, Refusal> {
    let around = |axis: AxisId| -> Vec<AxisId> {
        scatters.outer.iter().copied().chain([axis]).chain(scatters.inner.iter().copied()).collect()
    };
    let (results, elements) = (around(scatters.axis), around(scatters.over));
    let partials = scatters.partials(kernel, workspace);
    let function = |suffix: &str, axes: &[AxisId], body: &dyn Fn(&mut Emitter, Var)| {
        let mut emitter = Emitter::new(kernel, Language::Cuda);
        let number = emitter.flat(axes, "t");
        let own = mul_add(Builtin::BlockX, THREADS, Builtin::ThreadX);
        emitter.bind(number, INDEX, own);
        let inside = Expr::name(number).then(Less, emitter.positions(axes));
        emitter.push(Stmt::If { condition: inside, then: Vec::new(), otherwise: vec![Stmt::Return] });
        emitter.unflatten(number, axes, 1);
        body(&mut emitter, number);
        let launch =
            Launch { per_block: THREADS, block: [THREADS as u32, 1, 1], ..launch_over(kernel, axes) };
        Ok(Function { name: format!("{}{suffix}", kernel.name), body: emitter.finish()?, launch })
    };
    let functions = vec![
        function("_clear", &results, &|emitter, number| {
            partials.iter().for_each(|partials| partials.reset(emitter, &Expr::name(number)));
        })?,
        function("_add", &elements, &|emitter, _| add(emitter, kernel, scatters, &partials))?,
        function("", &results, &|emitter, number| {
            for partials in &partials {
                let (sum, ty) = (emitter.fresh("sum"), Type::Register(partials.dtype));
                let sum = emitter.bind(sum, ty, partials.element(&Expr::name(number)));
                emitter.define(partials.id, Expr::Name(sum));
            }
            emitter.store_all(kernel);
        })?,
    ];
    let spaces = workspaces(&partials, launch_items(kernel, &results));
    Ok(Nest::new(kernel.clone(), functions, spaces))
}

/// Adds the element at hand to the result at its position.
fn add(emitter: &mut Emitter, kernel: &Kernel, scatters: &Scatters, partials: &[Partials]) {
    let at = scatters.bind_position(emitter, "at");
    let outer = scatters.outer.iter().map(|&axis| (axis, Expr::name(axis)));
    let inner = scatters.inner.iter().map(|&axis| (axis, Expr::name(axis)));
    let place = outer
        .chain([(scatters.axis, Expr::Name(at))])
        .chain(inner)
        .fold(Expr::Int(0), |place, (axis, own)| offset(place, emitter.extent(axis), own));
    for partials in partials {
        let value = emitter.value(partials.operand);
        let value = emitter.named(value, kernel.value(partials.id).dtype);
        let target = partials.element(&place);
        emitter.push(Stmt::Add { target, value, dtype: partials.dtype });
    }
}
