use lazuli_codegen::{DType, Scalar};
use lazuli_reference::{Values, cast};

/// [`Scalar`] states the same conversions for single values.
#[test]
fn casts_agree_with_scalars() {
    let values = [0.0, -0.0, 1.0, -1.0, 0.3, 2.5, 255.0, 256.0, 1e5, -1e10, 1e300, f64::INFINITY, f64::NAN];
    for (from, to) in DType::ALL.iter().flat_map(|from| DType::ALL.map(|to| (*from, to))) {
        for value in values {
            let scalar = Scalar::from_f64(from, value);
            let cast = cast(&Values::filled(scalar, 1), to);
            let expected = Values::filled(scalar.cast(to), 1);
            assert_eq!(format!("{cast:?}"), format!("{expected:?}"), "{scalar:?} as {to}");
        }
    }
}
