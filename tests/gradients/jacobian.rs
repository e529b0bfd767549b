//! Derivatives of many results, and along directions.

use lazuli::{DType, Device, Tensor, grad, hessian, jacobian, jvp, vjp};

/// Some functions of three numbers, all of which every operation below goes through.
fn results(x: &Tensor) -> Tensor {
    let [a, b, c] = [0, 1, 2].map(|n| x.select(0, n));
    let running = x.scan_with(0, 0.0, |h, x| h * 0.5 + (x * h).sin() + x);
    let whole = x.softmax(0);
    Tensor::cat([Tensor::stack([&a * b.sin(), (b * &c).exp(), a / c], 0), running, whole], 0)
}

fn at(device: &Device) -> Tensor {
    Tensor::from([0.7f64, -0.3, 1.2]).to(device)
}

/// How the results change, by differences of fourth order.
fn changes(x: &Tensor, direction: &Tensor) -> Vec<f64> {
    let step = 1e-3;
    let of = |times: f64| results(&(x + direction * (step * times)));
    let change = (8.0 * (of(1.0) - of(-1.0)) - (of(2.0) - of(-2.0))) / (12.0 * step);
    change.to_vec::<f64>().unwrap()
}

fn are_near(a: &[f64], b: &[f64]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-8 * (1.0 + b.abs()))
}

#[test]
fn jacobians_are_differences() {
    for device in [Device::interpreter(), Device::cpu()] {
        let x = at(&device);
        let whole = jacobian(&results(&x), &x);
        assert_eq!(whole.shape().unwrap(), [9, 3].into());
        for place in 0..3 {
            let direction = Tensor::arange(0, 3, 1).eq(place).cast(DType::F64).to(&device);
            let column = whole.select(1, place as isize).to_vec::<f64>().unwrap();
            let expected = changes(&x, &direction);
            assert!(are_near(&column, &expected), "{place} on {device}: {column:?}, not {expected:?}");
        }
        let direction = Tensor::from([0.3f64, -1.0, 2.0]).to(&device);
        let change = jvp(&results(&x), &x, &direction).to_vec::<f64>().unwrap();
        assert!(are_near(&change, &changes(&x, &direction)), "{change:?}");
        // Forwards and backwards are of one matrix.
        let back = Tensor::arange(0.0, 9.0, 1.0).to(&device);
        let ahead = (&back * jvp(&results(&x), &x, &direction)).sum(..).item::<f64>().unwrap();
        let behind = (vjp(&[results(&x)], &[&back], &x) * &direction).sum(..).item::<f64>().unwrap();
        assert!((ahead - behind).abs() < 1e-10 * ahead.abs(), "{ahead} and {behind}");
    }
}

#[test]
fn hessians_are_jacobians_of_gradients() {
    let x = at(&Device::interpreter());
    let loss = results(&x).square().sum(..);
    let whole = hessian(&loss, &x);
    assert_eq!(whole.shape().unwrap(), [3, 3].into());
    let rows = whole.to_vec::<f64>().unwrap();
    assert!(are_near(&rows, &whole.t().to_vec::<f64>().unwrap()), "{rows:?}");
    let direction = Tensor::from([0.3f64, -1.0, 2.0]).to(&Device::interpreter());
    let product = vjp(&[grad(&loss, &x)], &[&direction], &x).to_vec::<f64>().unwrap();
    assert!(are_near(&whole.mv(&direction).to_vec::<f64>().unwrap(), &product), "{rows:?}");
    let of_rows = x.reshape([3, 1]);
    let whole = hessian(&of_rows.square().sum(..), &of_rows);
    assert_eq!(whole.shape().unwrap(), [3, 1, 3, 1].into());
    assert_eq!(whole.reshape([3, 3]).to_vec::<f64>().unwrap(), [2.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 2.0]);
}

#[test]
fn what_is_constant_empty_or_no_vector() {
    let x = Tensor::from([0.7f32, -0.3]);
    // Of a line.
    assert_eq!(hessian(&(&x * 3.0).sum(..), &x).to_vec::<f32>().unwrap(), [0.0; 4]);
    assert_eq!(jvp(&x.floor(), &x, &x).to_vec::<f32>().unwrap(), [0.0; 2]);
    assert_eq!(jacobian(&x.floor(), &x).to_vec::<f32>().unwrap(), [0.0; 4]);
    assert_eq!(jacobian(&x, &x).to_vec::<f32>().unwrap(), [1.0, 0.0, 0.0, 1.0]);
    let number = Tensor::from(2.0f32);
    assert_eq!(jacobian(&number.square(), &number).item::<f32>().unwrap(), 4.0);
    assert_eq!(hessian(&number.pow(3), &number).item::<f32>().unwrap(), 12.0);
    assert_eq!(jvp(&number.square(), &number, &Tensor::from(0.5f32)).item::<f32>().unwrap(), 2.0);
    let none = x.narrow(0, 0, 0);
    assert_eq!(jacobian(&none.exp(), &x).shape().unwrap(), [0, 2].into());
    assert_eq!(jacobian(&none.sum(..), &none).shape().unwrap(), [0].into());
    let half = x.cast(DType::F16);
    assert_eq!(jacobian(&half.cast(DType::F32).square(), &half).dtype().unwrap(), DType::F16);
}

#[test]
fn mistakes_say_what_does_not_fit() {
    let (x, y) = (Tensor::from([0.7f32, -0.3]), Tensor::from([1.0f32, 2.0]));
    let message = |x: Tensor| x.eval().unwrap_err().to_string();
    for (result, name) in [
        (jacobian(&y.exp(), &x), "jacobian"),
        (jvp(&y.exp(), &x, &x), "jvp"),
        (hessian(&y.exp().sum(..), &x), "hessian"),
    ] {
        let message = message(result);
        assert!(message.starts_with(&format!("{name}: was not recorded from the f32 [2]")), "{message}");
    }
    assert!(
        message(hessian(&x, &x)).starts_with("hessian: is of a tensor without dimensions, got shape [2]")
    );
    assert!(
        message(jvp(&x.exp(), &x, &Tensor::from(1.0f32)))
            .starts_with("jvp: `by` has shape [2], its tangent []: they must be equal")
    );
    assert!(message(jacobian(&x.gt(0), &x)).starts_with("jacobian: needs a float tensor, got bool [2]"));
    let many = Tensor::zeros([4097], DType::F32);
    assert!(message(jacobian(&many.exp(), &many)).starts_with(
        "jacobian: records a gradient for each element of shape [4097]: there are more than 4096"
    ));
}
