//! Which code runs on which GPU.

/// The discrete parts of each generation: what is compiled for one runs on it and on those behind it in its row. Parts of boards
/// with a processor of their own (53, 62, 72, 87, 101, 110) run nothing but their own.
const COMPATIBLE: &[&[u32]] =
    &[&[50, 52], &[60, 61], &[70], &[75], &[80, 86, 89], &[90], &[100, 103], &[120, 121]];

/// What kernels are compiled for where NVRTC compiles for `supported`: the device's own architecture, or another one whose code it runs
/// (`sm_86`); else the newest virtual one that it has (`compute_90`), for the driver to compile. The device's own if there is none.
pub(crate) fn to_compile_for(device: &str, supported: &[u32]) -> String {
    let Some(own) = device.strip_prefix("sm_").and_then(|digits| digits.parse::<u32>().ok()) else {
        return device.to_owned();
    };
    if supported.contains(&own) {
        return device.to_owned();
    }
    let row = COMPATIBLE.iter().find(|row| row.contains(&own));
    let runs = |other: &u32| row.is_some_and(|row| row.contains(other)) && *other < own;
    if let Some(best) = supported.iter().copied().filter(runs).max() {
        return format!("sm_{best}");
    }
    let older = supported.iter().copied().filter(|&other| other < own).max();
    older.map_or_else(|| device.to_owned(), |older| format!("compute_{older}"))
}

/// Whether it is one that the driver compiles the rest of the way for.
pub(crate) fn is_virtual(architecture: &str) -> bool {
    architecture.starts_with("compute_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_for_parts_that_run_it() {
        let nvrtc_13 = [75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121];
        let nvrtc_12 = [50, 52, 53, 60, 61, 62, 70, 72, 75, 80, 86, 87, 89, 90];
        for (device, supported, expected) in [
            ("sm_90", &nvrtc_13[..], "sm_90"),
            ("sm_87", &nvrtc_13, "sm_87"),
            ("sm_89", &[75, 80, 86], "sm_86"),
            ("sm_86", &[75, 80], "sm_80"),
            // A board's part does not run its generation's code, nor the other way round.
            ("sm_87", &[75, 80, 86], "compute_86"),
            ("sm_89", &[75, 87], "compute_87"),
            ("sm_103", &[90, 100, 101], "sm_100"),
            ("sm_101", &[90, 100], "compute_100"),
            ("sm_75", &[70, 72], "compute_72"),
            // New generations, as the compilers before them see them.
            ("sm_100", &nvrtc_12, "compute_90"),
            ("sm_120", &nvrtc_12, "compute_90"),
            ("sm_130", &nvrtc_13, "compute_121"),
            // Nothing is old enough.
            ("sm_70", &nvrtc_13, "sm_70"),
            ("sm_90", &[], "sm_90"),
            ("gfx90a", &nvrtc_13, "gfx90a"),
        ] {
            assert_eq!(to_compile_for(device, supported), expected, "{device} with {supported:?}");
        }
        assert!(is_virtual("compute_90") && !is_virtual("sm_90"));
    }
}
