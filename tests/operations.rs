//! The table of operations is whole and true: every public method that records is in it, recording does with every
//! dtype what it says, and the documentation's page shows it. `INSTA_UPDATE=always cargo test --test operations` writes
//! that page anew. And every public item of the crate has an example.

#![allow(clippy::unwrap_used, clippy::panic)] // A failed assumption stops the test.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use lazuli::operations::{self, Accuracy, Case, Group, Operation};
use lazuli::{DType, Tensor};

/// What a case results in, for inputs of that dtype; the error of the first result that is invalid.
fn recorded(operation: &Operation, case: &Case, dtype: DType) -> lazuli::Result<DType> {
    let zeros = |input: &operations::Input| {
        Tensor::zeros(input.shape.unwrap_or(&[2, 3]), input.dtype.unwrap_or(dtype))
    };
    let inputs: Vec<Tensor> = operation.inputs.iter().map(zeros).collect();
    let results = (case.record)(&inputs, dtype);
    let dtypes: lazuli::Result<Vec<DType>> = results.iter().map(Tensor::dtype).collect();
    Ok(dtypes?[0])
}

#[test]
fn recording_does_what_the_table_says() {
    let mut wrong = String::new();
    for operation in operations::all() {
        for dtype in DType::ALL {
            for case in operation.cases {
                let says = operation.accepts.accepts(dtype).then(|| operation.gives.of(dtype));
                let does = recorded(operation, case, dtype);
                // A number beside a tensor of a lower kind may lift it to a dtype that is accepted, or the result's:
                // in further cases it only counts that what the table accepts is accepted.
                let is_first = case.torch == operation.cases[0].torch;
                if !is_first && (says.is_none() || does.is_ok()) {
                    continue;
                }
                if says != does.clone().ok() {
                    writeln!(wrong, "{} of {dtype} gives {does:?}, the table says {says:?}", case.rust)
                        .unwrap();
                }
            }
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn rows_are_well_formed() {
    let mut names = BTreeSet::new();
    for operation in operations::all() {
        let Operation { name, summary, .. } = operation;
        assert!(names.insert(*name), "{name} has two rows");
        assert!(summary.ends_with('.'), "{name}: {summary}");
        assert!(
            operation.group == Group::Random || operation.cases.iter().all(|case| !case.torch.is_empty())
        );
        let without_inputs = (operation.cases[0].record)(&[], DType::F32);
        assert!(without_inputs.is_empty() || operation.inputs.is_empty(), "{name} of nothing");
    }
}

// --- Every public method has a row ---

/// Methods that give a tensor and record no operation, or only a part of one that has a row.
const NO_ROW: [(&str, &str); 27] = [
    ("from_vec", "data"),
    ("from_slice", "data"),
    ("from_bytes", "data"),
    ("scalar", "data"),
    ("placeholder", "stands for data"),
    ("to", "moves to a device"),
    ("pin", "copies to other memory"),
    ("donate", "gives memory up"),
    ("with_gradient", "the same values"),
    ("nonzero", "evaluates how many there are"),
    ("argwhere", "evaluates how many there are"),
    ("nms", "evaluates how many there are"),
    ("masked_select", "evaluates how many there are"),
    ("unique", "evaluates how many there are"),
    ("unique_inverse", "evaluates how many there are"),
    ("unique_counts", "evaluates how many there are"),
    ("unique_inverse_counts", "evaluates how many there are"),
    ("repeat_interleave_counts", "evaluates how many there are"),
    ("bincount_all", "evaluates how many there are"),
    ("unique_dim", "evaluates how many there are"),
    ("unique_dim_inverse_counts", "evaluates how many there are"),
    ("intersect1d", "evaluates how many there are"),
    ("union1d", "evaluates how many there are"),
    ("setdiff1d", "evaluates how many there are"),
    ("setxor1d", "evaluates how many there are"),
    ("unique_consecutive", "evaluates how many there are"),
    ("unique_consecutive_counts", "evaluates how many there are"),
];

fn rust_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => rust_files(&path, files),
            false if path.extension().is_some_and(|extension| extension == "rs") => files.push(path),
            false => {}
        }
    }
}

/// The names of public functions that give tensors, in `impl Tensor` or in the arguments of a macro whose name ends
/// in `_methods` (whose lines begin with `name =`, `name(` or `name, name =`).
fn methods(source: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let (mut in_impl, mut in_macro) = (false, false);
    let mut signature: Option<String> = None;
    for line in source.lines() {
        match line {
            "impl Tensor {" => in_impl = true,
            "}" => (in_impl, in_macro) = (false, false),
            _ if line.ends_with("_methods! {") => in_macro = true,
            _ => {}
        }
        let text = line.trim();
        if in_impl && text.starts_with("pub fn ") {
            signature = Some(String::new());
        }
        if let Some(open) = &mut signature {
            open.push_str(text);
            if text.ends_with('{') {
                let gives = open.rsplit("-> ").next().unwrap_or_default();
                if open.contains("->") && gives.contains("Tensor") {
                    let name = open.trim_start_matches("pub fn ").split(['(', '<']).next().unwrap();
                    found.insert(name.to_owned());
                }
                signature = None;
            }
        }
        // At the macro's own indentation; what is deeper belongs to a formula.
        let own = line.strip_prefix("    ").filter(|own| own.starts_with(|c: char| c.is_ascii_lowercase()));
        if let (true, Some(own)) = (in_macro && (text.contains(" = ") || text.ends_with([';', '['])), own) {
            let head = own.split(['=', '(', ';']).next().unwrap();
            let names = head.split(',').map(str::trim);
            let is_name = |name: &&str| {
                !name.is_empty()
                    && name.chars().all(|c| c == '_' || c.is_ascii_lowercase() || c.is_ascii_digit())
            };
            found.extend(names.filter(is_name).map(str::to_owned));
        }
    }
    found
}

#[test]
fn every_method_that_records_has_a_row() {
    let mut files = Vec::new();
    rust_files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tensor"), &mut files);
    let mut found = BTreeSet::new();
    for file in files {
        found.extend(methods(&std::fs::read_to_string(file).unwrap()));
    }
    // The search itself works.
    for name in
        ["exp", "add", "where_", "sum_keepdim", "reshape", "layer_norm", "slice_step", "from_vec", "rand"]
    {
        assert!(found.contains(name), "{name} is not found in the sources");
    }
    let rows: BTreeSet<String> = operations::all().map(|operation| operation.name.to_owned()).collect();
    let exceptions: BTreeSet<String> = NO_ROW.iter().map(|(name, _)| (*name).to_owned()).collect();
    let known: BTreeSet<String> = rows.union(&exceptions).cloned().collect();
    let missing: Vec<&String> = found.difference(&known).collect();
    assert!(missing.is_empty(), "methods without a row in src/operations: {missing:?}");
    let unknown: Vec<&String> = known.difference(&found).collect();
    assert!(unknown.is_empty(), "rows and exceptions without a method: {unknown:?}");
}

// --- Every public item has an example ---

/// Files and items that are not in the documentation.
const UNDOCUMENTED: [&str; 5] = [
    "src/measure.rs",
    "src/runtime/cuda/testing.rs",
    "src/runtime/emulate/testing.rs",
    "src/tune/mod.rs: pub fn clock",
    "pub trait Plain",
];

/// Public functions and types without an example in their documentation, and rows of macros whose own documentation,
/// which the macro takes as `$meta`, has none.
fn without_example(source: &str) -> Vec<&str> {
    let (mut found, mut docs, mut in_macro) = (Vec::new(), String::new(), false);
    for line in source.lines() {
        in_macro = (in_macro || line.ends_with("_methods! {")) && line != "}";
        let text = line.trim();
        let item = text.strip_prefix("pub ").map(|item| item.trim_start_matches("const "));
        let is_item = item.is_some_and(|item| {
            ["fn ", "struct ", "enum ", "trait "].iter().any(|kind| item.starts_with(kind))
        });
        let is_row = in_macro && !docs.is_empty() && (text.contains(" = ") || text.ends_with(';'));
        if text.starts_with("///") || text.starts_with('"') || text.contains("$meta") {
            docs.push_str(text);
        } else {
            if (is_item || is_row) && !docs.contains("```") && !docs.contains("$meta") {
                found.push(text);
            }
            if text.is_empty() || text.ends_with(['{', '}', ';']) {
                docs.clear();
            }
        }
    }
    found
}

#[test]
fn every_public_item_has_an_example() {
    let rows = "unary_methods! {\n    /// One.\n    one = One;\n    /// ```\n    two = Two;\n}\n";
    assert_eq!(without_example(rows), ["one = One;"]);
    assert_eq!(without_example("/// One.\npub fn f() {}\n"), ["pub fn f() {}"]);
    let mut files = Vec::new();
    rust_files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut files);
    let mut without = String::new();
    for file in files {
        for item in without_example(&std::fs::read_to_string(&file).unwrap()) {
            let place = format!("{}: {item}", file.display());
            if !UNDOCUMENTED.iter().any(|undocumented| place.contains(undocumented)) {
                writeln!(without, "{place}").unwrap();
            }
        }
    }
    assert!(without.is_empty(), "without an example:\n{without}");
}

// --- The documentation's page ---

fn heading(group: Group) -> &'static str {
    match group {
        Group::Unary => "Of each element",
        Group::Binary => "Of several elements",
        Group::Logic => "Comparisons, logic, bits, selection",
        Group::Activation => "Activations",
        Group::Loss => "Losses",
        Group::View => "Views and rearrangement",
        Group::Reduction => "Reductions",
        Group::Order => "Order",
        Group::Window => "Windows",
        Group::Product => "Products",
        Group::Linear => "Linear algebra",
        Group::Norm => "Normalisation",
        Group::Constructor => "Constructors",
        Group::Random => "Random numbers",
    }
}

fn accuracy(accuracy: Accuracy) -> String {
    match accuracy {
        Accuracy::Exact => "exact".into(),
        Accuracy::Ulps(ulps) => format!("{ulps} ulp"),
        Accuracy::Near { relative, absolute: 0.0 } => format!("{relative} eps"),
        Accuracy::Near { relative, absolute } => format!("{relative} + {absolute} eps"),
    }
}

fn page() -> String {
    let mut page = String::new();
    let mut group = None;
    for operation in operations::all() {
        if group != Some(operation.group) {
            group = Some(operation.group);
            let dtypes = DType::ALL.map(|dtype| dtype.to_string()).join(" | ");
            let dashes = "---|".repeat(DType::ALL.len() + 4);
            writeln!(page, "\n## {}\n", heading(operation.group)).unwrap();
            writeln!(page, "| operation | computes | PyTorch | {dtypes} | accuracy |\n|{dashes}").unwrap();
        }
        let results = DType::ALL.map(|dtype| match recorded(operation, &operation.cases[0], dtype) {
            Ok(result) => result.to_string(),
            Err(_) => "–".into(),
        });
        let code = |text: &str| format!("`{}`", text.replace('|', "\\|"));
        let torch = operation.cases.iter().map(|case| case.torch).filter(|torch| !torch.is_empty());
        let torch: Vec<String> = torch.map(code).collect();
        writeln!(
            page,
            "| [`{name}`](crate::Tensor::{name}) | {} | {} | {} | {} |",
            operation.summary.replace('|', "\\|"),
            torch.join(", "),
            results.join(" | "),
            accuracy(operation.accuracy),
            name = operation.name,
        )
        .unwrap();
    }
    page
}

#[test]
fn the_documentation_shows_the_table() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/operations/operations.md");
    let fresh = page();
    if std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always") {
        std::fs::write(&path, fresh).unwrap();
    } else {
        let shown = std::fs::read_to_string(&path).unwrap();
        assert!(shown == fresh, "run INSTA_UPDATE=always cargo test --test operations");
    }
}

// --- Vectors on the CPU ---

/// Operations with loops that are left to a compiler's vectoriser, by why.
const LOOPS_OF_NUMBERS: [(&str, &[&str]); 7] = [
    ("what is put in order", &["multinomial", "randperm"]),
    (
        "positions that are computed",
        &[
            "adaptive_avg_pool1d",
            "adaptive_avg_pool2d",
            "adaptive_avg_pool3d",
            "adaptive_max_pool1d",
            "adaptive_max_pool1d_with_indices",
            "adaptive_max_pool2d",
            "adaptive_max_pool3d",
            "ctc_loss",
            "grid_sample",
            "histc",
            "histogram",
            "masked_scatter",
            "multilabel_margin_loss",
            "nll_loss",
            "nll_loss_with",
            "pdist",
            "roi_align",
            "scatter",
            "scatter_add",
            "scatter_reduce",
        ],
    ),
    (
        "entries of matrices, and rows of two or three",
        &[
            "cholesky",
            "cholesky_solve",
            "cond",
            "eigh",
            "eigvalsh",
            "lstsq",
            "lu",
            "lu_factor",
            "lu_solve",
            "matrix_norm",
            "matrix_rank",
            "matrix_rank_with",
            "pinv",
            "pinv_with",
            "qr",
            "qr_complete",
            "solve",
            "solve_right",
            "solve_triangular",
            "svd",
            "svd_full",
            "svdvals",
        ],
    ),
    ("numbers of 16 bits that are only moved", &["matrix_power", "put", "where_"]),
    ("nothing but bytes", &["all", "any", "isfinite", "isinf", "isnan", "isneginf", "isposinf"]),
    (
        "windows and results some positions apart",
        &[
            "conv_transpose1d",
            "conv_transpose1d_with",
            "conv_transpose2d",
            "conv_transpose2d_with",
            "conv_transpose3d",
            "conv_transpose3d_with",
            "convolve",
            "interpolate",
            "interpolate_antialias",
            "interpolate_scale",
        ],
    ),
    (
        "axes of less than 3 positions, and results some positions apart",
        &[
            "addr",
            "affine_grid",
            "cross",
            "diff",
            "diff_with",
            "einsum",
            "fft",
            "fft2",
            "fft_with",
            "glu",
            "gradient",
            "gradient_with",
            "ifft",
            "ifft2",
            "ifft_with",
            "irfft",
            "istft",
            "outer",
            "rfft",
            "stft",
            "packbits",
            "unpackbits",
            "view_dtype",
        ],
    ),
];

/// Views read what lies apart and positions that are computed, and so does what puts elements in order.
fn is_in_vectors(operation: &Operation) -> bool {
    !matches!(operation.group, Group::View | Group::Order | Group::Constructor)
}

#[test]
fn loops_on_the_cpu_are_written_as_vectors() {
    let mut found: BTreeSet<&str> = BTreeSet::new();
    for operation in operations::all().filter(|operation| is_in_vectors(operation)) {
        let dtypes = [DType::F32, DType::F16, DType::I64];
        for dtype in dtypes.into_iter().filter(|&dtype| operation.accepts.accepts(dtype)) {
            for case in operation.cases {
                let data = |input: &operations::Input| {
                    let shape = input.shape.unwrap_or(&[24, 200]);
                    let dtype = input.dtype.unwrap_or(dtype);
                    let bytes = vec![0; shape.iter().product::<usize>() * dtype.size()];
                    Tensor::from_bytes(&bytes, dtype, shape.to_vec())
                };
                let inputs: Vec<Tensor> = operation.inputs.iter().map(data).collect();
                // The kernels that there are without libraries.
                let settings = lazuli::Settings::new().libraries(false);
                let results = settings.scope(|| (case.record)(&inputs, dtype)).unwrap();
                let Ok(program) = lazuli::compile_for(&results, &lazuli::Target::cpu()) else { continue };
                if program.source().contains("omp simd") {
                    eprintln!("{}: {} of {dtype}", operation.name, case.rust);
                    found.insert(operation.name);
                }
            }
        }
    }
    let stated: BTreeSet<&str> = LOOPS_OF_NUMBERS.iter().flat_map(|(_, names)| *names).copied().collect();
    let others: Vec<&&str> = found.difference(&stated).collect();
    assert!(others.is_empty(), "{others:?}");
    let gone: Vec<&&str> = stated.difference(&found).collect();
    assert!(gone.is_empty(), "in vectors by now: {gone:?}");
}
