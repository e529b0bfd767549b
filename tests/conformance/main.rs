//! Every operation of the public API, on every device under test, fused and unfused, against the reference
//! interpreter: all dtypes, special values, odd and empty shapes, and every schedule. The CUDA kernels that come
//! up are compiled by NVRTC for four architectures, and small ones must not spill registers.

#![allow(clippy::reversed_empty_ranges, reason = "a slice to -1 ends before the last, as in Python")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // A failed assumption stops the test.

mod attention;
#[path = "../common/mod.rs"]
mod common;
mod convolutions;
mod creation;
mod divided_terms;
mod divided_views;
mod domains;
mod elementwise;
mod extremes;
mod filters;
mod fission;
mod fourier;
mod gather;
mod gradients;
mod guards;
mod index_split;
mod joins;
mod kept;
mod lanes;
mod lifts;
mod narrow_columns;
mod nn;
mod norms;
mod online;
mod pipelines;
mod pooling;
mod products;
mod rearrange;
mod recurrences;
mod reduced_rows;
mod reductions;
mod scans;
mod scatter;
mod short_rows;
mod small_matrices;
mod sorts;
mod steps;
mod table;
mod tiles;
mod views;
mod windows;
