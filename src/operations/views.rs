//! Views.

use super::row::Accuracy::{Exact, Near};
use super::row::Gives::{Fixed, Same};
use super::row::{Elements, Group, Input, SMALL, operations};
use crate::ScatterReduction::{Amax, Mean, Sum};
use crate::{Conv2d, DType, Index, Indexing, PadMode, Tensor, s};

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
    pad(a: BOX) All -> Same, Exact, "With borders of a value.": "F.pad(a, (0, 3, 1, 2, 0, 0), value=1)" => a.pad(&[(0, 0), (1, 2), (0, 3)], 1), "F.pad(a, (-1, 2, 3, -2, -1, -1), value=1)" => a.pad(&[(-1, -1), (3, -2), (-1, 2)], 1);
    flip(a: BOX) All -> Same, Exact, "Dimensions reversed.": "a.flip(0, 2)" => a.flip([0, 2]);
    unfold(a: BOX) All -> Same, Exact, "Sliding windows of a dimension.": "a.unfold(1, 3, 2)" => a.unfold(1, 3, 2);
    window(a: BOX) All -> Same, Exact, "Sliding windows with dilation.": "a.unfold(1, 4, 1)[..., ::3]" => a.window(1, 2, 1, 3);
    unflatten(a: BOX) All -> Same, Exact, "One dimension divided into several.": "a.unflatten(1, (2, -1))" => a.unflatten(1, [2, -1]);
    ravel(a: BOX) All -> Same, Exact, "All elements along one dimension.": "a.ravel()" => a.ravel();
    movedim(a: BOX) All -> Same, Exact, "Dimensions moved to other places.": "a.movedim(0, -1)" => a.movedim(0, -1), "a.movedim((0, 2), (1, 0))" => a.movedim([0, 2], [1, 0]);
    swapaxes(a: BOX) All -> Same, Exact, "Two dimensions exchanged.": "a.swapaxes(0, 2)" => a.swapaxes(0, 2);
    i(a: BOX) All -> Same, Exact, "A part, as NumPy's brackets.": "a[1:, 2, None, :].flip(-1)" => a.i(s![1.., 2, None, ..;-1]), "a[..., -1]" => a.i([Index::Ellipsis, Index::At(-1)]);
    rot90(a: BOX) All -> Same, Exact, "Turned by quarters.": "torch.rot90(a, 1, (0, 1))" => a.rot90(1, [0, 1]), "torch.rot90(a, -1, (1, 2))" => a.rot90(-1, [1, 2]);
    roll(a: BOX) All -> Same, Exact, "Shifted around a dimension.": "torch.roll(a, 2, 1)" => a.roll(2, 1), "torch.roll(a, -7, 2)" => a.roll(-7, 2), "torch.roll(a, (1, -2), (0, 2))" => a.roll([1, -2], [0, 2]);
    repeat(a: BOX) All -> Same, Exact, "Copies side by side.": "a.repeat(2, 1, 3)" => a.repeat([2, 1, 3]), "a.repeat(2, 1, 1, 1)" => a.repeat([2, 1, 1, 1]);
    tile(a: BOX) All -> Same, Exact, "Copies side by side, of the last dimensions.": "torch.tile(a, (2,))" => a.tile([2]);
    repeat_interleave(a: BOX) All -> Same, Exact, "Each position several times.": "torch.repeat_interleave(a, 3, 1)" => a.repeat_interleave(3, 1);
    diagonal(a: BOX) All -> Same, Exact, "A diagonal of two dimensions.": "a.diagonal(1, 0, 2)" => a.diagonal(1, 0, 2), "a.diagonal(-2, 1, 2)" => a.diagonal(-2, 1, 2);
    diag_embed(a: SMALL.shape(&[2, 3])) All -> Same, Exact, "Matrices of their diagonals.": "torch.diag_embed(a)" => a.diag_embed(0), "torch.diag_embed(a, -2)" => a.diag_embed(-2);
    diag(a: SMALL.shape(&[4, 7])) All -> Same, Exact, "A diagonal, or the matrix of one.": "torch.diag(a, 1)" => a.diag(1), "torch.diag(a[0], -1)" => a.select(0, 0).diag(-1);
    kron(a: SMALL.shape(&[2, 3]), b: SMALL.shape(&[4])) All -> Same, Exact, "Kronecker's product.": "torch.kron(a, b)" => a.kron(b);
    unfold2d(a: SMALL.shape(&[2, 3, 7, 9])) All -> Same, Exact, "Windows of images as columns.": "F.unfold(a, (3, 2), (1, 2), (1, 0), (2, 1))" => a.unfold2d((3, 2), Conv2d::new().dilation((1, 2)).padding((1, 0)).stride((2, 1)));
    fold2d(a: SMALL.shape(&[2, 12, 15])) Numbers -> Same, Exact, "Columns added up to images.": "F.fold(a, (6, 7), (3, 2), (1, 2), (1, 0), (2, 1))" => a.fold2d((6, 7), (3, 2), Conv2d::new().dilation((1, 2)).padding((1, 0)).stride((2, 1)));
    tril(a: BOX) All -> Same, Exact, "The lower triangle.": "torch.tril(a, 1)" => a.tril(1);
    triu(a: BOX) All -> Same, Exact, "The upper triangle.": "torch.triu(a, -1)" => a.triu(-1);
    pixel_shuffle(a: BOX) All -> Same, Exact, "Channels to squares of pixels.": "F.pixel_shuffle(a, 2)" => a.pixel_shuffle(2);
    pixel_unshuffle(a: SMALL.shape(&[2, 6, 4])) All -> Same, Exact, "Squares of pixels to channels.": "F.pixel_unshuffle(a, 2)" => a.pixel_unshuffle(2);
    pad_with(a: BOX) All -> Same, Exact, "With borders of the tensor's own elements.": "a[:, [3, 2, 1, 0, 1, 2, 3, 4, 5]][:, :, [2, 1, 0, 1, 2, 3, 4, 3]]" => a.pad_with(&[(0, 0), (3, 0), (2, 1)], PadMode::Reflect), "a[[0, 0, 1, 2, 3]][:, [0, 1, 2, 3, 4, 5, 5, 5]][:, :, [0, 0, 0, 0, 1, 2, 3, 4, 4, 4, 4]]" => a.pad_with(&[(1, 0), (0, 2), (3, 3)], PadMode::Replicate), "a[[3, 0, 1, 2, 3]][:, [0, 1, 2, 3, 4, 5, 0, 1]][:, :, [2, 3, 4, 0, 1, 2, 3, 4, 0, 1, 2]]" => a.pad_with(&[(1, 0), (0, 2), (3, 3)], PadMode::Circular), "F.pad(a, (-1, 2, 2, -1), mode='reflect')" => a.pad_with(&[(0, 0), (2, -1), (-1, 2)], PadMode::Reflect), "F.pad(a, (-2, 4, 3, -1), mode='replicate')" => a.pad_with(&[(0, 0), (3, -1), (-2, 4)], PadMode::Replicate);
    cat(a: BOX, b: SMALL.shape(&[4, 2, 5])) All -> Same, Exact, "One after the other along a dimension.": "torch.cat([a, b, a], 1)" => Tensor::cat(&[a, b, a], 1);
    stack(a: BOX, b: BOX) All -> Same, Exact, "Along a new dimension.": "torch.stack([a, b], 1)" => Tensor::stack(&[a, b], 1);
    hstack(a: BOX, b: SMALL.shape(&[4, 2, 5])) All -> Same, Exact, "Side by side.": "torch.hstack([a, b])" => Tensor::hstack(&[a, b]);
    vstack(a: SMALL.shape(&[4, 7]), b: SMALL.shape(&[7])) All -> Same, Exact, "One below the other.": "torch.vstack([a, b])" => Tensor::vstack(&[a, b]);
    dstack(a: SMALL.shape(&[4]), b: SMALL.shape(&[4])) All -> Same, Exact, "One behind the other.": "torch.dstack([a, b])" => Tensor::dstack(&[a, b]);
    column_stack(a: SMALL.shape(&[4]), b: SMALL.shape(&[4, 2])) All -> Same, Exact, "Columns side by side.": "torch.column_stack([a, b])" => Tensor::column_stack(&[a, b]);
    block_diag(a: SMALL.shape(&[2, 3]), b: SMALL.shape(&[4])) All -> Same, Exact, "Matrices along a diagonal.": "torch.block_diag(a, b)" => Tensor::block_diag(&[a, b]);
    tensor_split(a: BOX) All -> Same, Exact, "So many parts, as equal as can be.": "a.tensor_split(4, 1)" => a.tensor_split(4, 1);
    split(a: BOX) All -> Same, Exact, "Parts of equal size.": "a.split(4, 1)" => a.split(4, 1);
    split_sizes(a: BOX) All -> Same, Exact, "Parts of given sizes.": "a.split([1, 3, 2], 1)" => a.split_sizes(&[1, 3, 2], 1);
    chunk(a: BOX) All -> Same, Exact, "So many parts.": "a.chunk(4, 1)" => a.chunk(4, 1);
    unbind(a: BOX) All -> Same, Exact, "The positions of a dimension.": "a.unbind(2)" => a.unbind(2);
    meshgrid(a: SMALL.shape(&[4]), b: SMALL.shape(&[3])) All -> Same, Exact, "The coordinates of a grid.": "torch.meshgrid(a, b, indexing='ij')" => Tensor::meshgrid(&[a, b], Indexing::Ij), "torch.meshgrid(a, b, indexing='xy')" => Tensor::meshgrid(&[a, b], Indexing::Xy);
    index_select(a: BOX, index: Input::new(Elements::Below(6), Some(DType::I64)).shape(&[9])) All -> Same, Exact, "The positions of a dimension that an index names.": "torch.index_select(a, 1, index)" => a.index_select(1, index);
    gather(a: BOX, index: Input::new(Elements::Below(4), Some(DType::I64)).shape(&[7, 5, 5])) All -> Same, Exact, "At each position, what the index names along a dimension.": "torch.gather(a, 0, index)" => a.gather(0, index);
    take_along_axis(a: BOX, index: Input::new(Elements::Below(5), Some(DType::I64)).shape(&[1, 6, 3])) All -> Same, Exact, "The same, broadcasting along the other dimensions.": "torch.take_along_dim(a, index, 2)" => a.take_along_axis(index, 2);
    take(a: BOX, index: Input::new(Elements::Below(120), Some(DType::I64)).shape(&[3, 4])) All -> Same, Exact, "The elements at positions counted through all dimensions.": "torch.take(a, index)" => a.take(index);
    embedding(a: Input::new(Elements::Below(4), None).shape(&[3, 5]), weights: Input::new(Elements::Small, Some(DType::F32)).shape(&[4, 6])) Integers -> Fixed(DType::F32), Exact, "The rows of a table that integers name.": "F.embedding(a.long(), weights)" => a.embedding(weights);
    embedding_bag(a: Input::new(Elements::Below(4), None).shape(&[3, 5]), weights: Input::new(Elements::Small, Some(DType::F32)).shape(&[4, 6]), factors: Input::new(Elements::Small, Some(DType::F32)).shape(&[3, 5])) Integers -> Fixed(DType::F32), Near { relative: 8.0, absolute: 8.0 }, "The rows of a table that integers name, combined in bags.": "F.embedding_bag(a.long(), weights)" => a.embedding_bag(weights, None, None, Mean), "F.embedding_bag(a.long(), weights, mode='sum', per_sample_weights=factors)" => a.embedding_bag(weights, None, Some(factors), Sum), "F.embedding_bag(a.long(), weights, mode='max')" => a.embedding_bag(weights, None, None, Amax), "F.embedding_bag(a.long().flatten(), weights, torch.arange(4) // 2 * 7, mode='mean')" => a.ravel().embedding_bag(weights, Some(&(Tensor::arange(0i64, 4, 1).floor_divide(2) * 7)), None, Mean), "F.embedding_bag(a.long().flatten(), weights, torch.arange(4) // 2 * 7, mode='sum', per_sample_weights=factors.flatten())" => a.ravel().embedding_bag(weights, Some(&(Tensor::arange(0i64, 4, 1).floor_divide(2) * 7)), Some(&factors.ravel()), Sum), "F.embedding_bag(a.long().flatten(), weights, torch.arange(4) // 2 * 7, mode='max')" => a.ravel().embedding_bag(weights, Some(&(Tensor::arange(0i64, 4, 1).floor_divide(2) * 7)), None, Amax);
    unravel_index(a: Input::new(Elements::Below(24), None).shape(&[5, 3])) Integers -> Fixed(DType::I64), Exact, "Where flat positions are along each axis.": "torch.unravel_index(a.long(), (2, 3, 4))" => a.unravel_index([2, 3, 4]);
    slice_assign(a: BOX, b: SMALL.shape(&[2, 1])) All -> Same, Exact, "Other values at a part, as NumPy's brackets.": "torch.slice_scatter(a, torch.slice_scatter(a[1:3], b.unsqueeze(1).expand(2, 6, 1), 2, 4, 5), 0, 1, 3)" => a.slice_assign(s![1..3, .., 4..], b.unsqueeze(1)), "torch.slice_scatter(a, torch.ones_like(a[:, ::2]), 1, 0, 6, 2)" => a.slice_assign(s![.., ..;2], 1);
    slice_scatter(a: BOX, b: SMALL.shape(&[4, 3, 5])) All -> Same, Exact, "Other values at a range of one dimension.": "torch.slice_scatter(a, b, 1, 0, 6, 2)" => a.slice_scatter(1, b, 0, 6, 2);
    select_scatter(a: BOX, b: SMALL.shape(&[4, 5])) All -> Same, Exact, "Other values at one position.": "torch.select_scatter(a, b, 1, -2)" => a.select_scatter(1, b, -2);
    index_fill(a: BOX, index: Input::new(Elements::Below(6), Some(DType::I64)).shape(&[3])) All -> Same, Exact, "A number at the positions that an index names.": "a.index_fill(1, index, 3)" => a.index_fill(1, index, 3);
    index_copy(a: BOX, index: Input::new(Elements::Below(6), Some(DType::I64)).shape(&[9]), b: SMALL.shape(&[4, 9, 5])) All -> Same, Exact, "Other values at the positions that an index names.": "a.index_copy(1, index, b)" => a.index_copy(1, index, b);
    one_hot(a: Input::new(Elements::Below(5), None).shape(&[7, 2])) Integers -> Fixed(DType::I64), Exact, "1 at the position that the element names.": "F.one_hot(a.long(), 5)" => a.one_hot(5);
}
