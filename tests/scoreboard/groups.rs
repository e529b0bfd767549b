//! All workloads, by subject.

use crate::inputs::{Group, row};
use crate::workloads::SEEDS;
use crate::{products, rearranged, reductions, rows, science, training};

pub fn groups() -> Vec<Group> {
    let seeds =
        SEEDS.iter().map(|seed| row(seed.name, |x| (seed.record)(x.at(64, 2)))).map(|seed| match seed.name {
            "normalise_image" => seed.because("right: statistics of everything come before the first result"),
            _ => seed,
        });
    let mut groups = vec![("seed pipelines", seeds.collect())];
    groups.extend(rows::groups());
    groups.extend(reductions::groups());
    groups.extend(rearranged::groups());
    groups.extend(products::groups());
    groups.extend(training::groups());
    groups.extend(science::groups());
    groups
}
