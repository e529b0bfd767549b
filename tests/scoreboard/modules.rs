// What the scoreboard's workloads are made of: included at the root of every crate that has them, beside its own `common`.

mod groups;
mod inputs;
mod products;
mod rearranged;
mod reductions;
mod rows;
mod science;
mod training;
#[path = "../workloads/mod.rs"]
mod workloads;
