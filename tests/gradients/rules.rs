//! Rules of the user's in the place of gradients that follow from what was recorded.

use lazuli::{DType, Device, Fusion, ScanOrder, Tensor, grad, scan, with_fusion};

/// Rounded forward, a line back.
fn steps(x: &Tensor) -> Tensor {
    x.round().with_gradient([x], |g, [_], _| [g.clone()])
}

#[test]
fn rules_are_followed_outside_and_in_steps() {
    for (device, fusion) in
        [(Device::interpreter(), Fusion::On), (Device::cpu(), Fusion::On), (Device::cpu(), Fusion::Off)]
    {
        with_fusion(fusion, || {
            let x = Tensor::from([0.6f32, 1.7, -2.2, 0.4]).to(&device);
            let slopes = |y: &Tensor| grad(&y.sum(..), &x).to_vec::<f32>().unwrap();
            assert_eq!(slopes(&(steps(&x) * &x)), [1.6, 3.7, -4.2, 0.4], "{device}");
            // A loop of one kernel: each element goes on to all later ones, half of it each time.
            let each = x.scan_with(0, 0.0, |h, x| steps(&(h * 0.5 + x)));
            assert_eq!(each.to_vec::<f32>().unwrap(), [1.0, 2.0, -1.0, 0.0], "{device}");
            assert_eq!(slopes(&each), [1.875, 1.75, 1.5, 1.0], "{device}");
            // Steps that are recorded one after the other.
            let w = Tensor::from([[0.0f32, 0.5], [0.5, 0.0]]).to(&device);
            let rows = x.reshape([2, 2]);
            let begun = rows.new_zeros([1, 2]);
            let ([last], []) = scan([&rows], 0, ScanOrder::new(), [&begun], |[h], [x]| {
                ([steps(&(h.matmul(&w) + x.unsqueeze(0)))], [])
            });
            assert_eq!(slopes(&last), [0.5, 0.5, 1.0, 1.0], "{device}");
        });
    }
}

/// A rule has what it needs of each position, and gradients of its own.
#[test]
fn rules_know_sources_and_results() {
    let scaled = |x: &Tensor, by: &Tensor| {
        (x * by).with_gradient([x, by], |g, [x, by], y| [g * by.square(), g * (x + y)])
    };
    let (x, by) = (Tensor::from([1.0f64, 2.0, 3.0]), Tensor::from([0.5f64, -1.0, 2.0]));
    let [dx, dby] = grad(&scaled(&x, &by).sum(..), &[x.clone(), by.clone()]);
    assert_eq!(dx.to_vec::<f64>().unwrap(), [0.25, 1.0, 4.0]);
    assert_eq!(dby.to_vec::<f64>().unwrap(), [1.5, 0.0, 9.0]);
    // The rule's own: by² has the slope 2 by.
    assert_eq!(grad(&dx.sum(..), &by).to_vec::<f64>().unwrap(), [1.0, -2.0, 4.0]);
    let in_steps = || {
        let ([sum], []) =
            scan([&x, &by], 0, ScanOrder::new(), [0.0], |[sum], [x, by]| ([sum + scaled(x, by)], []));
        sum
    };
    let [own_x, own_by] = grad(&in_steps(), &[x.clone(), by.clone()]);
    assert_eq!(own_x.to_vec::<f64>().unwrap(), dx.to_vec::<f64>().unwrap());
    assert_eq!(own_by.to_vec::<f64>().unwrap(), dby.to_vec::<f64>().unwrap());
    // What was broadcast is summed, and what is narrower is repeated.
    let row = Tensor::from([1.0f64, 2.0]);
    let wide = row.expand([3, 2]).with_gradient([&row], |g, [_], _| [g.clone()]);
    assert_eq!(grad(&wide.sum(..), &row).to_vec::<f64>().unwrap(), [3.0, 3.0]);
    let all = row.sum(..).with_gradient([&row], |g, [_], _| [g.clone()]);
    assert_eq!(grad(&all, &row).to_vec::<f64>().unwrap(), [1.0, 1.0]);
}

#[test]
fn what_does_not_fit_is_an_error() {
    let x = Tensor::from([1.0f32, 2.0]);
    let message = |y: &Tensor| grad(&y.sum(..), &x).to_vec::<f32>().unwrap_err().to_string();
    let long = x.with_gradient([&x], |_, [_], _| [Tensor::zeros([3], DType::F32)]);
    assert!(message(&long).starts_with(
        "with_gradient: the rule gives shape [3] for the source of shape [2]: they must broadcast, at tests/gradients"
    ));
    let integers = x.with_gradient([&x], |_, [x], _| [x.cast(DType::I32)]);
    assert!(
        message(&integers).starts_with(
            "with_gradient: the rule gives i32 [2] for the source f32 [2]: a gradient is a float"
        )
    );
    let failed = x.with_gradient([&x], |g, [x], _| [g.matmul(x.unsqueeze(0)) + x]);
    assert!(message(&failed).starts_with("with_gradient_grad: shapes [2] and [1, 2] do not fit"));
    let refused = |y: Tensor| y.eval().unwrap_err().to_string();
    let number = x.cast(DType::I32);
    assert!(
        refused(number.with_gradient([&x], |g, [_], _| [g.clone()]))
            .starts_with("with_gradient: needs a float tensor, got i32 [2]")
    );
    assert!(
        refused(x.with_gradient([&number], |g, [_], _| [g.clone()]))
            .starts_with("with_gradient: needs a source that is a float; see `detach` for a constant")
    );
    // Within steps it is found when these are recorded back.
    let each = x.scan_with(0, 0.0, |h, x| {
        let outside = h.clone();
        (h + x).with_gradient([x], move |g, [_], _| [g * &outside])
    });
    assert!(message(&each).contains("uses a value of another scan's step"), "{}", message(&each));
}
