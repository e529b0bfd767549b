//! What the table of operations (see `table.rs`) does not say of elementwise operations: accuracy over wide ranges,
//! casts between all dtypes, promotion, and numbers beside tensors.

use lazuli::operations::{self, Accuracy, Group, Operation};
use lazuli::{DType, Device, Number, Operand, Target, Tensor, bf16, f16};

use crate::common::data::{floats, mixed, ordinary, specials};
use crate::common::{Output, Tolerance, check, check_fused, devices, exact, mismatch, ulps};
use crate::table;

type Binary = fn(&Tensor, Operand) -> Tensor;

/// Operations on two values; the approximated ones with their units in the last place.
const BINARY: [(&str, Binary, u64); 22] = [
    ("add", |a, b| a.add(b), 0),
    ("sub", |a, b| a.sub(b), 0),
    ("mul", |a, b| a.mul(b), 0),
    ("div", |a, b| a.div(b), 0),
    ("floor_divide", |a, b| a.floor_divide(b), 0),
    ("remainder", |a, b| a.remainder(b), 0),
    ("pow", |a, b| a.pow(b), 8),
    ("maximum", |a, b| a.maximum(b), 0),
    ("minimum", |a, b| a.minimum(b), 0),
    ("atan2", |a, b| a.atan2(b), 3),
    ("bitwise_and", |a, b| a.bitwise_and(b), 0),
    ("bitwise_or", |a, b| a.bitwise_or(b), 0),
    ("bitwise_xor", |a, b| a.bitwise_xor(b), 0),
    ("logical_and", |a, b| a.logical_and(b), 0),
    ("logical_or", |a, b| a.logical_or(b), 0),
    ("logical_xor", |a, b| a.logical_xor(b), 0),
    ("eq", |a, b| a.eq(b), 0),
    ("ne", |a, b| a.ne(b), 0),
    ("lt", |a, b| a.lt(b), 0),
    ("le", |a, b| a.le(b), 0),
    ("gt", |a, b| a.gt(b), 0),
    ("ge", |a, b| a.ge(b), 0),
];

/// The output, if the operation accepts the dtype; what it does not accept is tested beside the operation.
fn accepted(label: String, tensor: Tensor, steps: u64) -> Option<Output> {
    let tolerance = match tensor.dtype().ok()? {
        _ if steps == 0 => Tolerance::Exact,
        DType::F16 | DType::BF16 => Tolerance::Ulps(1),
        DType::F32 | DType::F64 => Tolerance::Ulps(steps),
        DType::Bool | DType::U8 | DType::I8 | DType::I16 | DType::I32 | DType::U32 | DType::I64 => {
            Tolerance::Exact
        }
    };
    Some(match tolerance {
        Tolerance::Ulps(steps) => ulps(label, tensor, steps),
        Tolerance::Exact | Tolerance::Near { .. } => exact(label, tensor),
    })
}

fn all_binary(a: &Tensor, b: impl Into<Operand>) -> Vec<Output> {
    let b = b.into();
    BINARY.iter().filter_map(|&(name, f, steps)| accepted(name.into(), f(a, b.clone()), steps)).collect()
}

/// Many numbers of every magnitude where the function is neither constant nor infinite.
#[test]
fn approximated_functions_are_accurate_everywhere() {
    for dtype in [DType::F32, DType::F64] {
        for (range, scale) in [1e-4, 1.0, 10.0, 100.0, 1e5].into_iter().enumerate() {
            check_fused(&format!("accuracy {dtype} up to {scale}"), |device| {
                let x = floats(device, dtype, [3001], scale, 17 + range as u64);
                let y = floats(device, dtype, [3001], 10.0, 71);
                let inputs = [x, y];
                let is_approximate = |row: &&Operation| {
                    row.accuracy != Accuracy::Exact
                        && matches!(row.group, Group::Unary | Group::Binary | Group::Activation)
                        && row.inputs.iter().all(|input| input.shape.is_none())
                };
                let outputs = |row: &Operation| {
                    let results = (row.cases[0].record)(&inputs[..row.inputs.len()], dtype);
                    results
                        .into_iter()
                        .filter_map(|y| table::output(row, row.name.into(), y))
                        .collect::<Vec<_>>()
                };
                operations::all().filter(is_approximate).flat_map(outputs).collect()
            });
        }
    }
}

#[test]
fn numbers_beside_tensors() {
    for dtype in DType::ALL {
        check_fused(&format!("numbers {dtype}"), |device| {
            let x = specials(device, dtype);
            let mut outputs = all_binary(&x, 3);
            outputs.extend(all_binary(&x, 2.5));
            outputs.extend(all_binary(&x, true));
            outputs.extend(all_binary(&x, 0));
            for tensor in
                [1.5 - &x, 7 - &x, 1.0 / &x, 7 % &x, -1.0 * &x, 1 + &x, 5 & &x, 5 | &x, 6 ^ &x, true & &x]
            {
                outputs.extend(accepted("number on the left".into(), tensor, 0));
            }
            outputs
        });
    }
}

/// What the table states of formulas holds against the same formula in double precision, and not only step by step.
#[test]
fn formulas_are_as_accurate_as_the_table_says() {
    let mut report = String::new();
    for (range, scale) in [1e-3, 1.0, 10.0, 80.0].into_iter().enumerate() {
        let cpu = [31, 57].map(|seed| floats(&Device::cpu(), DType::F32, [3001], scale, seed + range as u64));
        let exact = cpu.each_ref().map(|x| x.to(&Device::interpreter()).cast(DType::F64));
        for row in operations::all() {
            let is_elementwise = row.inputs.iter().all(|input| input.shape.is_none());
            let is_approximate = row.accuracy != Accuracy::Exact;
            // What is drawn is of other numbers in double precision.
            let is_drawn = matches!(row.group, Group::Random);
            if !is_elementwise || !is_approximate || is_drawn || row.inputs.is_empty() {
                continue;
            }
            let of = |x: &[Tensor], dtype| (row.cases[0].record)(&x[..row.inputs.len()], dtype)[0].clone();
            let (got, expected) = (of(&cpu, DType::F32), of(&exact, DType::F64).cast(DType::F32));
            // What is computed in F64 in any case is not compared with itself.
            if got.dtype().is_ok_and(|dtype| dtype != DType::F32) {
                continue;
            }
            let tolerance = match row.accuracy {
                Accuracy::Ulps(steps) => Tolerance::Ulps(steps.into()),
                Accuracy::Near { relative, absolute } => {
                    let eps = f64::from(f32::EPSILON);
                    Tolerance::Near { relative: relative * eps, absolute: absolute * eps }
                }
                Accuracy::Exact => Tolerance::Exact,
            };
            if let Some(difference) = mismatch(&got, &expected, tolerance) {
                report += &format!("{} up to {scale}: {difference}\n", row.name);
            }
        }
    }
    assert!(report.is_empty(), "\n{report}");
}

#[test]
fn bits_of_all_dtypes() {
    for from in DType::ALL {
        check_fused(&format!("bits of {from}"), |device| {
            let x = specials(device, from);
            let x = x.narrow(0, 0, x.numel().unwrap() / 8 * 8);
            let others = DType::ALL.into_iter().filter(|&to| to != DType::Bool && to != from);
            let views = others.map(|to| exact(format!("as {to}"), x.view_dtype(to)));
            // There and back, with every bit of NaN.
            let back = |to: DType| exact(format!("as {to} and bits"), x.view_dtype(to).view_dtype(DType::U8));
            let back = [DType::I32, DType::F32, DType::F64].map(back);
            let signs = match from.is_float() {
                true => {
                    // The bits of a NaN that was computed are the processor's.
                    let x = x.nan_to_num(0.0, None, None);
                    vec![exact("after arithmetic", (-x * 0.5).view_dtype(DType::U8))]
                }
                false => Vec::new(),
            };
            views.chain(back).chain(signs).collect()
        });
    }
}

#[test]
fn casts_between_all_dtypes() {
    for from in DType::ALL {
        check(&format!("casts of {from}"), |device| {
            let x = specials(device, from);
            DType::ALL.map(|to| exact(format!("to {to}"), x.cast(to))).into()
        });
        check_fused(&format!("chained casts of {from}"), |device| {
            let x = mixed(device, from, [64], 3, 7);
            let mut outputs = Vec::new();
            for middle in DType::ALL {
                for to in DType::ALL {
                    outputs.push(exact(format!("to {middle} to {to}"), x.cast(middle).cast(to)));
                }
            }
            outputs
        });
    }
}

/// What no oracle of ours can get wrong in the same way: values worked out by hand.
#[test]
fn casts_are_rusts() {
    let (nan, inf) = (f64::NAN, f64::INFINITY);
    for device in devices() {
        let x = Tensor::from_slice(&[-1.9, 2.9, nan, inf, -inf, 300.0, 3e9, -3e9, 1e19], [9]).to(&device);
        assert_eq!(x.cast(DType::U8).to_vec::<u8>().unwrap(), [0, 2, 0, 255, 0, 255, 255, 0, 255]);
        assert_eq!(
            x.cast(DType::I32).to_vec::<i32>().unwrap(),
            [-1, 2, 0, i32::MAX, i32::MIN, 300, i32::MAX, i32::MIN, i32::MAX]
        );
        assert_eq!(
            x.cast(DType::I64).to_vec::<i64>().unwrap(),
            [-1, 2, 0, i64::MAX, i64::MIN, 300, 3_000_000_000, -3_000_000_000, i64::MAX]
        );
        assert_eq!(x.cast(DType::Bool).to_vec::<bool>().unwrap(), [true; 9]);
        let wide = Tensor::from_slice(&[-1i64, 256, 1 << 31, (1 << 24) + 1], [4]).to(&device);
        assert_eq!(wide.cast(DType::U8).to_vec::<u8>().unwrap(), [255, 0, 0, 1]);
        assert_eq!(wide.cast(DType::I32).to_vec::<i32>().unwrap(), [-1, 256, i32::MIN, 16_777_217]);
        assert_eq!(wide.cast(DType::F32).to_vec::<f32>().unwrap(), [-1.0, 256.0, 2147483648.0, 16777216.0]);
        // Between two halves: one rounding, although the way leads through single precision.
        let near_halves =
            Tensor::from_slice(&[1.0 + 1.0 / 2048.0 + 1e-12, 1.0 + 1.0 / 256.0 + 1e-12], [2]).to(&device);
        assert_eq!(
            near_halves.cast(DType::F16).to_vec::<f16>().unwrap()[0],
            f16::from_f32(1.0 + 1.0 / 1024.0)
        );
        assert_eq!(
            near_halves.cast(DType::BF16).to_vec::<bf16>().unwrap()[1],
            bf16::from_f32(1.0 + 1.0 / 128.0)
        );
    }
}

/// All bits of F16, and single-precision numbers on both sides of every rounding, as the `half` crate has them; and at any
/// length and offset, since some are converted together.
#[test]
fn every_half() {
    let halves: Vec<f16> = (0..=u16::MAX).map(f16::from_bits).collect();
    let floats: Vec<f32> = (0..400_000u32).map(|n| f32::from_bits(n.wrapping_mul(10_739))).collect();
    let near = halves.iter().flat_map(|half| {
        let bits = half.to_f32().to_bits();
        [bits ^ 0xfff, bits ^ 0x1000, bits ^ 0x1001].map(f32::from_bits)
    });
    let floats: Vec<f32> = floats.into_iter().chain(near).collect();
    let is_same = |a: f32, b: f32| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
    for device in devices() {
        let x = Tensor::from_slice(&halves, [halves.len()]).to(&device);
        let wide = x.cast(DType::F32).to_vec::<f32>().unwrap();
        assert!(wide.iter().zip(&halves).all(|(&wide, half)| is_same(wide, half.to_f32())), "{device}");
        let narrow = Tensor::from_slice(&floats, [floats.len()]).to(&device).cast(DType::F16);
        for (narrow, &float) in narrow.to_vec::<f16>().unwrap().into_iter().zip(&floats) {
            let expected = f16::from_f32(float).to_f32();
            assert!(is_same(narrow.to_f32(), expected), "{float:e} on {device}: {narrow}, not {expected}");
        }
        for (start, length) in [(3, 64), (0, 65), (1, 71), (5, 255), (2, 256), (7, 257), (4, 520)] {
            let part = start as isize..(start + length) as isize;
            let negated = (-x.slice(0, part)).to_vec::<f16>().unwrap();
            let expected = halves[start..start + length].iter().map(|half| -half.to_f32());
            assert!(negated.iter().zip(expected).all(|(a, b)| is_same(a.to_f32(), b)), "{start} {length}");
        }
    }
}

/// As PyTorch computes: `torch.tensor([7, -7, 7, -7]) // torch.tensor([2, 2, -2, -2])` and so on.
#[test]
fn division_is_pytorchs() {
    for device in devices() {
        let on = |values: &[i32]| Tensor::from_slice(values, [values.len()]).to(&device);
        let (a, b) = (on(&[7, -7, 7, -7, 5, i32::MIN]), on(&[2, 2, -2, -2, 0, -1]));
        assert_eq!(a.floor_divide(&b).to_vec::<i32>().unwrap(), [3, -4, -4, 3, 0, i32::MIN]);
        assert_eq!((&a % &b).to_vec::<i32>().unwrap(), [1, 1, -1, -1, 0, 0]);
        assert_eq!((&a / &b).to_vec::<f32>().unwrap()[..5], [3.5, -3.5, -3.5, 3.5, f32::INFINITY]);
        let (x, y) = (a.cast(DType::F32), b.cast(DType::F32));
        assert_eq!(x.floor_divide(&y).to_vec::<f32>().unwrap()[..4], [3.0, -4.0, -4.0, 3.0]);
        assert_eq!((&x % &y).to_vec::<f32>().unwrap()[..4], [1.0, 1.0, -1.0, -1.0]);
    }
}

#[test]
fn operands_of_different_dtypes_meet() {
    for left in DType::ALL {
        check_fused(&format!("{left} with every dtype"), |device| {
            let a = mixed(device, left, [13, 5], 1, 3);
            let mut outputs = Vec::new();
            for right in DType::ALL {
                for shape in [&[13, 5][..], &[]] {
                    let b = mixed(device, right, shape, 4, 5);
                    for (name, result) in
                        [("add", &a + &b), ("mul", &b * &a), ("max", a.maximum(&b)), ("lt", a.lt(&b))]
                    {
                        outputs.extend(accepted(format!("{name} {right} {shape:?}"), result, 0));
                    }
                }
            }
            outputs
        });
    }
    for device in devices() {
        let bytes = Tensor::from_slice(&[200u8, 255], [2]).to(&device);
        let numbers = Tensor::from_slice(&[100i32, 1], [2]).to(&device);
        assert_eq!((&bytes + &bytes).to_vec::<u8>().unwrap(), [144, 254]);
        assert_eq!((&bytes + &numbers).to_vec::<i32>().unwrap(), [300, 256]);
        assert_eq!((&bytes + 100).to_vec::<u8>().unwrap(), [44, 99]);
        assert_eq!((&bytes + 0.5).to_vec::<f32>().unwrap(), [200.5, 255.5]);
        assert_eq!((&bytes + Tensor::scalar(1i64).to(&device)).to_vec::<u8>().unwrap(), [201, 0]);
    }
}

#[test]
fn selections_and_limits() {
    for dtype in DType::ALL {
        check(&format!("where {dtype}"), |device| {
            let (a, b) = (mixed(device, dtype, [13, 5], 0, 1), mixed(device, dtype, [5], 7, 3));
            let condition = mixed(device, DType::Bool, [13, 1], 0, 1);
            vec![
                exact("tensors", condition.where_(&a, &b)),
                exact("compared", a.gt(&b).where_(&a, &b)),
                exact("number", condition.where_(&a, 1)),
                exact("numbers", a.eq(&b).where_(2.5, 0)),
                exact("scalar", condition.where_(Tensor::scalar(3.25f32), &a)),
                exact("clamp", a.clamp(&b, 5)),
                exact("clamp crossed", a.clamp(5, 1)),
                exact("clamp to NaN", a.clamp(f64::NAN, 7.5)),
            ]
        });
    }
}

#[test]
fn constants_and_ranges() {
    for dtype in DType::ALL {
        check_fused(&format!("constants {dtype}"), |device| {
            let x = ordinary(device, dtype, [13, 5], 3);
            let zero = x.zeros_like();
            let odd = dtype.iinfo().map_or(Number::Float(f64::NAN), |info| Number::Int(info.max));
            vec![
                exact("zeros", zero.clone()),
                exact("ones", x.ones_like()),
                exact("full", x.full_like(2.75)),
                exact("full of what is odd", x.full_like(odd)),
                exact("moved", Tensor::full([7], -3, dtype).to(device)),
                exact("with data", x.add(x.full_like(1.5))),
                exact("nothing", Tensor::zeros([0, 4], dtype).to(device)),
            ]
        });
    }
    check("ranges", |device| {
        vec![
            exact("i64", Tensor::arange(-3i64, 20, 4).to(device)),
            exact("i32", Tensor::arange(10i32, -10, -3).to(device)),
            exact("u8", Tensor::arange(250u8, 255, 1).to(device)),
            exact("f32", Tensor::arange(0.1f32, 2.0, 0.3).to(device)),
            exact("f64", Tensor::arange(1.0f64, -1.0, -0.125).to(device)),
            exact("f16", Tensor::arange(f16::ZERO, f16::from_f32(3.0), f16::from_f32(0.1)).to(device)),
            exact("none", Tensor::arange(5i32, 5, 1).to(device)),
            exact("shaped", (Tensor::arange(0i32, 24, 1).to(device).reshape([4, 6]) * 3).t()),
        ]
    });
}

/// Random numbers depend on the seed and the element's place alone.
#[test]
fn random_numbers() {
    for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64] {
        check(&format!("random {dtype}"), |device| {
            let x = Tensor::rand_with([13, 5], dtype, 42).to(device);
            let y = Tensor::rand_with([13, 5], dtype, u64::MAX).to(device);
            vec![
                exact("numbers", x.clone()),
                exact("another seed", y.clone()),
                exact("transposed", x.t()),
                exact("in an expression", x.lt(0.5).where_(&x, &y)),
                exact("a part", Tensor::rand_with([100, 3], dtype, 42).to(device).slice(0, 60..)),
                exact("none", Tensor::rand_with([0], dtype, 1).to(device)),
                exact("one", Tensor::rand_with([], dtype, 1).to(device)),
            ]
        });
    }
    // On the device itself, not made elsewhere and moved.
    check("dropout", |device: &Device| {
        let x = floats(device, DType::F32, [64, 33], 4.0, 5);
        let keep = Tensor::rand([64, 33], 7).lt(0.75);
        vec![exact("kept", keep.where_(&x / 0.75, 0.0)), exact("scaled", &x * Tensor::rand([64, 33], 9))]
    });
}

/// An integer would be another one if the number of 16 bits were not what is stored where nothing is fused.
#[test]
fn numbers_of_16_bits_are_rounded_before_they_become_integers() {
    check_fused("integers of 16 bits", |device| {
        let pixels = (Tensor::arange(0, 2000, 1).to(device).cast(DType::F32) / 2000.0).cast(DType::F16);
        let others = ordinary(device, DType::BF16, [2000], 7);
        vec![
            exact("u8", (pixels * 255.0).cast(DType::U8)),
            exact("i32", (&others * 1.37).cast(DType::I32)),
            exact("bool", (others * 0.0).cast(DType::Bool)),
        ]
    });
}

/// Lines of an odd length are one line to a GPU where their elements are narrow: what is broadcast is read element by element.
#[test]
fn odd_lines_of_narrow_numbers_are_read_in_vectors() {
    let build = |device: &Device, rows: usize, columns: usize| {
        let of = |dtype, shape: &[usize], seed| floats(device, dtype, shape.to_vec(), 1.0, seed);
        let x = of(DType::F16, &[rows, columns], 1);
        let y = of(DType::BF16, &[2, rows, columns], 2);
        vec![
            exact("along", &x + of(DType::F16, &[columns], 3)),
            exact("across", &x * of(DType::F16, &[rows, 1], 4)),
            exact("both", y.maximum(of(DType::BF16, &[rows, 1], 5)) * of(DType::BF16, &[2, 1, columns], 6)),
            exact("wide", (&y * 2.0).cast(DType::F32) + of(DType::F32, &[columns], 7)),
        ]
    };
    for output in &build(&Device::cpu(), 4096, 1001)[..2] {
        let source = output.tensor().compile_for(&Target::cuda("sm_90")).unwrap().source();
        assert!(source.contains("vec=8") && source.contains("(const uint4*)(in0"), "{source}");
    }
    // Lines that vectors fit stay lines.
    let source =
        build(&Device::cpu(), 64, 1000)[0].tensor().compile_for(&Target::cuda("sm_90")).unwrap().source();
    assert!(source.contains("vec=8") && !source.contains("% 1000u]"), "{source}");
    for (rows, columns) in [(5, 33), (1, 7), (17, 1001)] {
        check_fused(&format!("{rows} lines of {columns}"), |device| build(device, rows, columns));
    }
}
