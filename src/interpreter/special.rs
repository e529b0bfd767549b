//! Special functions that neither Rust nor `libm` has, or that differ in their corners, in double precision.

/// The inverse of the error function: bisection to begin with, then Newton's method on `erf`, or on `erfc` where `erf`
/// is nearly 1.
pub(super) fn erfinv(x: f64) -> f64 {
    let a = x.abs();
    if a.is_nan() || a > 1.0 {
        return f64::NAN;
    }
    if a == 1.0 {
        return x * f64::INFINITY;
    }
    if a < 1e-8 {
        // The next term of the series is smaller by x².
        return x * (std::f64::consts::PI.sqrt() / 2.0);
    }
    let excess = |y: f64| if a < 0.5 { libm::erf(y) - a } else { (1.0 - a) - libm::erfc(y) };
    let (mut low, mut high) = (0.0f64, 6.0f64);
    for _ in 0..30 {
        let middle = (low + high) / 2.0;
        if excess(middle) < 0.0 { low = middle } else { high = middle }
    }
    let mut y = (low + high) / 2.0;
    for _ in 0..3 {
        y -= excess(y) * (y * y).exp() * (std::f64::consts::PI.sqrt() / 2.0);
    }
    y.copysign(x)
}

/// The inverse of the hyperbolic cosine. `libm` gives numbers for some that are less than 1.
pub(super) fn acosh(x: f64) -> f64 {
    if x < 1.0 { f64::NAN } else { libm::acosh(x) }
}

/// The logarithm of the absolute value of the gamma function.
pub(super) fn lgamma(x: f64) -> f64 {
    match x {
        _ if x.is_infinite() => f64::INFINITY,
        // A pole at 0 and at every negative integer.
        _ if x <= 0.0 && x.trunc() == x => f64::INFINITY,
        _ => libm::lgamma(x),
    }
}

/// The logarithmic derivative of the gamma function: raised to at least 20 by `psi(x) = psi(x + 1) - 1 / x`, then
/// Stirling's series with Bernoulli's numbers; reflected below 0.
pub(super) fn digamma(x: f64) -> f64 {
    if x == 0.0 {
        return f64::INFINITY.copysign(-x);
    }
    if x < 0.0 {
        let fraction = x - x.round_ties_even();
        // At the poles, and at -infinity, there is no value.
        return match fraction == 0.0 || x.is_infinite() {
            true => f64::NAN,
            false => digamma(1.0 - x) - std::f64::consts::PI / (std::f64::consts::PI * fraction).tan(),
        };
    }
    let mut raised = x;
    let mut terms = Vec::new();
    while raised < 20.0 {
        terms.push(1.0 / raised);
        raised += 1.0;
    }
    const BERNOULLI: [f64; 6] =
        [1.0 / 6.0, -1.0 / 30.0, 1.0 / 42.0, -1.0 / 30.0, 5.0 / 66.0, -691.0 / 2730.0];
    let series = BERNOULLI.iter().enumerate().map(|(n, b)| {
        let order = 2 * (n as i32 + 1);
        b / (f64::from(order) * raised.powi(order))
    });
    let stirling = raised.ln() - 0.5 / raised - series.sum::<f64>();
    // The smallest first.
    stirling - terms.iter().rev().sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn close(actual: f64, expected: f64) {
        assert!((actual - expected).abs() <= 1e-15 * expected.abs().max(1.0), "{actual} is not {expected}");
    }

    #[test]
    fn inverse_of_the_error_function() {
        for y in [0.01f64, 0.1, 0.3, 0.5, 0.9, 1.7, 2.5] {
            let x = libm::erf(y);
            assert!(
                (erfinv(x) - y).abs() <= 1e-15 * y + f64::EPSILON / libm::exp(-y * y),
                "{y}: {}",
                erfinv(x)
            );
        }
        // The 75th percentile of the normal distribution, over the root of 2.
        close(erfinv(0.5), 0.476_936_276_204_469_9);
        close(erfinv(-0.5), -0.476_936_276_204_469_9);
        assert_eq!((erfinv(1.0), erfinv(-1.0)), (f64::INFINITY, f64::NEG_INFINITY));
        assert!(erfinv(1.1).is_nan() && erfinv(f64::NAN).is_nan());
        assert_eq!(erfinv(-0.0).to_bits(), (-0.0f64).to_bits());
    }

    #[test]
    fn digamma_by_known_values() {
        // Euler's constant, and the formulas 6.3.3 and 6.3.4 of Abramowitz and Stegun.
        let gamma = 0.577_215_664_901_532_9;
        close(digamma(1.0), -gamma);
        close(digamma(2.0), 1.0 - gamma);
        close(digamma(0.5), -gamma - 2.0 * std::f64::consts::LN_2);
        close(digamma(-0.5), 2.0 - gamma - 2.0 * std::f64::consts::LN_2);
        close(digamma(1e10), 1e10f64.ln() - 0.5e-10);
        assert_eq!((digamma(0.0), digamma(-0.0)), (f64::NEG_INFINITY, f64::INFINITY));
        assert_eq!(digamma(f64::INFINITY), f64::INFINITY);
        assert!(digamma(-3.0).is_nan() && digamma(f64::NEG_INFINITY).is_nan() && digamma(f64::NAN).is_nan());
    }

    #[test]
    fn poles_of_the_gamma_function() {
        assert_eq!([0.0, -0.0, -1.0, f64::NEG_INFINITY].map(lgamma), [f64::INFINITY; 4]);
        close(lgamma(5.0), 24f64.ln());
        assert!(lgamma(f64::NAN).is_nan());
    }
}
