//! Views.

use super::Accuracy::Exact;
use super::Gives::Same;
use super::{Group, Input, SMALL, operations};

const BOX: Input = SMALL.shape(&[4, 6, 5]);

operations! {
    /// Of a box.
    VIEWS: Group::View;
    reshape(a: BOX) All -> Same, Exact, "The same elements in another shape.": "a.reshape(8, -1)" => a.reshape([8, -1]);
    flatten(a: BOX) All -> Same, Exact, "Neighbouring dimensions as one.": "a.flatten(1)" => a.flatten(1..);
    permute(a: BOX) All -> Same, Exact, "The dimensions in another order.": "a.permute(1, 2, 0)" => a.permute([1, 2, 0]);
    transpose(a: BOX) All -> Same, Exact, "Two dimensions exchanged.": "a.transpose(0, -1)" => a.transpose(0, -1);
    t(a: SMALL.shape(&[4, 7])) All -> Same, Exact, "A matrix transposed.": "a.t()" => a.t();
    squeeze(a: SMALL.shape(&[4, 1, 5])) All -> Same, Exact, "Without dimensions of extent 1.": "a.squeeze(1)" => a.squeeze(1);
    unsqueeze(a: BOX) All -> Same, Exact, "With one more dimension of extent 1.": "a.unsqueeze(1)" => a.unsqueeze(1);
    expand(a: SMALL.shape(&[4, 1, 5])) All -> Same, Exact, "Dimensions of extent 1 repeated.": "a.expand(-1, 3, -1)" => a.expand([-1, 3, -1]);
    broadcast_to(a: SMALL.shape(&[4, 1])) All -> Same, Exact, "Repeated to a shape.": "a.broadcast_to((2, 4, 3))" => a.broadcast_to([2, 4, 3]);
    slice(a: BOX) All -> Same, Exact, "A range of one dimension.": "a[:, 1:5]" => a.slice(1, 1..5);
    slice_step(a: BOX) All -> Same, Exact, "Every n-th of a range.": "a[:, ::2]" => a.slice_step(1, None, None, 2);
    narrow(a: BOX) All -> Same, Exact, "A range by its start and length.": "a.narrow(0, 1, 2)" => a.narrow(0, 1, 2);
    select(a: BOX) All -> Same, Exact, "One index of a dimension.": "a.select(1, -2)" => a.select(1, -2);
    pad(a: BOX) All -> Same, Exact, "With borders of a value.": "F.pad(a, (0, 3, 1, 2, 0, 0), value=1)" => a.pad(&[(0, 0), (1, 2), (0, 3)], 1);
    flip(a: BOX) All -> Same, Exact, "Dimensions reversed.": "a.flip(0, 2)" => a.flip([0, 2]);
    unfold(a: BOX) All -> Same, Exact, "Sliding windows of a dimension.": "a.unfold(1, 3, 2)" => a.unfold(1, 3, 2);
    window(a: BOX) All -> Same, Exact, "Sliding windows with dilation.": "a.unfold(1, 4, 1)[..., ::3]" => a.window(1, 2, 1, 3);
}
