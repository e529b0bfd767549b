//! Every operation and cast on vectors has the bits that it has on single numbers, whatever the registers of the processor.

use std::collections::BTreeSet;
use std::fmt::Write;

use lazuli_codegen::intrinsics::lanes::{Kind, Lanes, Value, has_scan};
use lazuli_codegen::intrinsics::{self, Helpers};
use lazuli_codegen::{BinaryOp, DType, Language, ReduceOp, Scalar, UnaryOp};

use crate::c_library::{CLibrary, COMPUTE};
use crate::exact::{check_loads_of_16_bit_floats, check_stores_of_16_bit_floats, run, specials};

/// How texts of vectors are compiled.
pub const FLAGS: [&str; 9] = [
    "-std=gnu11",
    "-O1",
    "-fno-tree-vectorize",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-ffp-contract=off",
    "-fwrapv",
    "-fPIC",
    "-shared",
];

/// One operation, or a cast: the name of its loop, dtypes, and its text.
struct Case {
    name: String,
    from: DType,
    to: DType,
    text: String,
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    let mut none = Helpers::new();
    for dtype in COMPUTE {
        for op in UnaryOp::ALL.into_iter().filter(|op| op.accepts(dtype)) {
            let text = intrinsics::unary(Language::C, op, dtype, "a", &mut none);
            cases.push(Case { name: format!("{op}_{dtype}"), from: dtype, to: op.result(dtype), text });
        }
        for op in BinaryOp::ALL.into_iter().filter(|op| op.accepts(dtype)) {
            let text = intrinsics::binary(Language::C, op, dtype, "a", "b", &mut none);
            cases.push(Case { name: format!("{op}_{dtype}"), from: dtype, to: op.result(dtype), text });
        }
        for to in DType::ALL {
            let text = intrinsics::cast(Language::C, dtype, to, "a", &mut none);
            cases.push(Case { name: format!("cast_{dtype}_{to}"), from: dtype, to: to.compute(), text });
        }
    }
    cases
}

/// Loops of vectors with so many lanes, and the names of those that have one.
fn source(width: u32, cases: &[Case]) -> (String, BTreeSet<String>) {
    let (mut lanes, mut helpers) = (Lanes::new(width), Helpers::new());
    let (mut loops, mut names) = (String::new(), BTreeSet::new());
    for Case { name, from, to, text } in cases {
        let ((load, kind), (store, result)) = (Lanes::load(*from), Lanes::store(*to));
        let [a, b] = ["a", "b"].map(|name| Value::vector(name.into(), kind));
        let value =
            lanes.translate(text, &[("a", &a), ("b", &b)], &mut helpers).unwrap_or_else(|| panic!("{name}"));
        let value = lanes.to_vector(&value, result);
        let [memory, stored] = [from, to].map(|&dtype| intrinsics::memory_type(Language::C, dtype));
        let vector = kind.vector();
        let body = format!(
            "void {name}(const {memory} *pa, const {memory} *pb, {stored} *out, idx n) {{\n\
             for (idx i = 0; i < n; i += LANES) {{\n\
             {vector} a = {load}(pa + i, n - i), b = {load}(pb + i, n - i); {store}(out + i, {value}, n - i); }} }}\n",
        );
        if lanes.text(&body).is_ok() {
            writeln!(loops, "{body}").unwrap();
            names.insert(name.clone());
        }
    }
    for dtype in [DType::F16, DType::BF16] {
        let (bits, float) = (Value::vector("a".into(), Kind::Half), Value::vector("a".into(), Kind::F32));
        let widened = lanes.widen(dtype, &bits, &mut helpers).unwrap().text;
        let narrowed = lanes.narrow(dtype, &float, &mut helpers).unwrap().text;
        writeln!(
            loops,
            "void load_{dtype}(const unsigned short *pa, const void *pb, float *out, idx n) {{\n\
             for (idx i = 0; i < n; i += LANES) {{\n\
             u16v a = lz_load_{dtype}(pa + i, n - i); lz_store_f32(out + i, {widened}, n - i); }} }}\n\
             void store_{dtype}(const float *pa, const void *pb, unsigned short *out, idx n) {{\n\
             for (idx i = 0; i < n; i += LANES) {{\n\
             f32v a = lz_load_f32(pa + i, n - i); lz_store_{dtype}(out + i, {narrowed}, n - i); }} }}\n"
        )
        .unwrap();
    }
    let vectors = lanes.text(&loops).unwrap();
    (format!("typedef long long idx;\n{}{vectors}{loops}", helpers.text(Language::C)), names)
}

/// Special values beside each other, and others; their number is no multiple of any vector's.
fn operands(dtype: DType) -> (Vec<Scalar>, Vec<Scalar>) {
    let specials = specials(dtype);
    let (mut a, mut b) = (Vec::new(), Vec::new());
    for (n, &x) in specials.iter().enumerate() {
        for shift in 0..7 {
            a.push(x);
            b.push(specials[(n * 5 + shift * 11 + 3) % specials.len()]);
        }
    }
    a.push(specials[0]);
    b.push(specials[1]);
    if a.len() % 4 == 0 {
        a.pop();
        b.pop();
    }
    (a, b)
}

/// The processor's own registers, those of others as far as it has them, and none that anything is known of.
pub fn targets() -> Vec<(u32, Vec<&'static str>)> {
    let mut targets = vec![(4, vec!["-march=native"]), (8, vec!["-march=native"])];
    if cfg!(target_arch = "x86_64") {
        targets.push((8, vec!["-march=x86-64"]));
        if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma") {
            targets.extend([4, 8].map(|width| (width, vec!["-march=haswell"])));
        }
    }
    targets
}

#[test]
fn lanes_have_the_bits_of_single_numbers() {
    let Some(numbers) = CLibrary::get(Language::C) else { return };
    let cases = cases();
    for (width, target) in targets() {
        let (text, names) = source(width, &cases);
        if width == 8 {
            assert_eq!(names.len(), cases.len());
        }
        let arguments: Vec<&str> = FLAGS.into_iter().chain(target.iter().copied()).collect();
        let vectors = CLibrary::compile(Language::C, "cc", "lanes.c", &arguments, &text).unwrap();
        check_loads_of_16_bit_floats(&vectors);
        check_stores_of_16_bit_floats(&vectors);
        let mut failures = Vec::new();
        for Case { name, from, to, .. } in cases.iter().filter(|case| names.contains(&case.name)) {
            let (a, b) = operands(*from);
            let [expected, got] = [numbers, &vectors].map(|library| run(library, name, &a, &b, *to));
            for (n, (expected, got)) in expected.iter().zip(&got).enumerate() {
                let same = expected.to_bits() == got.to_bits()
                    || to.is_float() && expected.as_f64().is_nan() && got.as_f64().is_nan();
                if !same {
                    failures.push(format!("{name}({:?}, {:?}) = {got:?}, not {expected:?}", a[n], b[n]));
                }
            }
        }
        assert!(
            failures.is_empty(),
            "width {width}, {target:?}: {}\n{}",
            failures.len(),
            failures.join("\n")
        );
    }
}

#[test]
fn texts_without_wide_elements_have_twice_the_lanes() {
    let mut lanes = Lanes::new(4);
    let x = Value::vector("x".into(), Kind::F32);
    let narrow = lanes.translate("lz_tanh_f32(x)", &[("x", &x)], &mut Helpers::new()).unwrap();
    // Wide inside alone.
    let halved = lanes.translate("lz_tan_f32(x)", &[("x", &x)], &mut Helpers::new()).unwrap();
    // Wide in its slow path alone.
    let far = lanes.translate("lz_sin_f32(x)", &[("x", &x)], &mut Helpers::new()).unwrap();
    let wide = lanes.translate("(double)x", &[("x", &x)], &mut Helpers::new()).unwrap();
    assert!(lanes.text(&narrow.text).is_ok());
    assert!(lanes.text(&halved.text).is_ok_and(|text| text.contains("lz_tan_f32_half")));
    assert!(lanes.text(&far.text).is_ok_and(|text| {
        text.contains("lz_far_sin_half")
            && !text.contains("lz_sin_f32_half")
            && !text.contains("lz_slow_sin_f32_half")
    }));
    assert!(lanes.text(&wide.text).is_err());
}

/// Scans within registers, and dtypes that they are of.
fn scans() -> impl Iterator<Item = (ReduceOp, DType)> {
    let dtypes = [DType::F32, DType::F64, DType::I32, DType::U32, DType::I64];
    let all = dtypes.into_iter().flat_map(|dtype| ReduceOp::ALL.map(|op| (op, dtype)));
    all.filter(|&(op, dtype)| has_scan(op, dtype) && op.plain().is_some_and(|op| op.accepts(dtype)))
}

/// Sixteen at a time: what is 1, 2, 4 and 8 before, and then what all before the sixteen come to.
fn scanned(op: ReduceOp, before: Scalar, values: &[Scalar]) -> Vec<Scalar> {
    let both = |a, b| op.plain().unwrap().apply(a, b).unwrap();
    let (mut results, mut before) = (Vec::new(), before);
    for values in values.chunks(16) {
        let mut own = values.to_vec();
        for distance in [1, 2, 4, 8] {
            for n in (distance..own.len()).rev() {
                own[n] = both(own[n - distance], own[n]);
            }
        }
        results.extend(own.into_iter().map(|own| both(before, own)));
        before = results[results.len() - 1];
    }
    results
}

#[test]
fn running_results_have_one_order_in_registers_of_any_width() {
    if CLibrary::get(Language::C).is_none() {
        return;
    }
    for (width, target) in targets() {
        let (mut lanes, mut helpers) = (Lanes::new(width), Helpers::new());
        let mut functions = String::new();
        for (op, dtype) in scans().filter(|(_, dtype)| width == 8 || dtype.size() == 4) {
            let scan = lanes.scan(op, dtype, &mut helpers).unwrap();
            let ty = intrinsics::memory_type(Language::C, dtype);
            writeln!(
                functions,
                "void {op}_{dtype}(const {ty} *pa, const {ty} *pb, {ty} *out, idx n) {{\n\
                 {ty} numbers[512], results[512];\n\
                 __builtin_memcpy(numbers, pa, n * sizeof *pa);\n\
                 out[0] = {scan}(results, numbers, n, pb[0]);\n\
                 out[0] = out[0] == results[n - 1] || out[0] != out[0] ? results[0] : 77;\n\
                 __builtin_memcpy(out + 1, results + 1, (n - 1) * sizeof *pa); }}\n"
            )
            .unwrap();
        }
        let vectors = lanes.text(&functions).unwrap();
        let text = format!("typedef long long idx;\n{}{vectors}{functions}", helpers.text(Language::C));
        let arguments: Vec<&str> = FLAGS.into_iter().chain(target.iter().copied()).collect();
        let library = CLibrary::compile(Language::C, "cc", "scans.c", &arguments, &text).unwrap();
        for (op, dtype) in scans().filter(|(_, dtype)| width == 8 || dtype.size() == 4) {
            let number = |n: usize| match dtype.is_float() {
                true => Scalar::from_f64(dtype, 0.7 + ((n * 7919) % 1009) as f64 / 1234.5),
                false => Scalar::from_i64(dtype, ((n * 7919) % 1009) as i64),
            };
            let numbers: Vec<Scalar> = (0..301).map(number).collect();
            let mut unusual = numbers[..61].to_vec();
            for (at, &special) in specials(dtype).iter().take(3).enumerate() {
                unusual[40 + 7 * at] = special;
            }
            for values in [&numbers[..], &numbers[..1], &numbers[5..21], &numbers[..50], &unusual] {
                let before = vec![number(17); values.len()];
                let expected = scanned(op, before[0], values);
                let got = run(&library, &format!("{op}_{dtype}"), values, &before, dtype);
                for (n, (expected, got)) in expected.iter().zip(&got).enumerate() {
                    let same = expected.to_bits() == got.to_bits()
                        || dtype.is_float() && expected.as_f64().is_nan() && got.as_f64().is_nan();
                    assert!(same, "{target:?}, {width}: {op} of {dtype}, {n}: {got:?}, not {expected:?}");
                }
            }
        }
    }
}
