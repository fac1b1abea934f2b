"""The operators that mmcv has only on a GPU, compared with their formulas."""

import math

import pytest
import torch
from mmcv import ops
from mmcv.ops.multi_scale_deform_attn import (
    MultiScaleDeformableAttnFunction,
    multi_scale_deformable_attn_pytorch,
)
from torch.autograd import gradcheck
from torch.nn.functional import batch_norm, conv2d

from mmcv_ops.make_golden import with_gradients
from mmcv_ops.references import normal


def with_gradient(*shape: int) -> torch.Tensor:
    return normal(*shape).requires_grad_()


class TestFocalLosses:
    TARGET = torch.tensor([0, 2, 3, 1])  # 3 is no class
    WEIGHT = torch.tensor([1.0, 2.0, 0.5], dtype=torch.float64)

    @pytest.mark.parametrize('weight', [None, WEIGHT])
    @pytest.mark.parametrize('gamma', [0.0, 0.5, 2.0])
    def test_sigmoid(self, weight, gamma):
        def loss(logits):
            return ops.sigmoid_focal_loss(logits, self.TARGET, gamma, 0.3, weight, 'none')

        logits = with_gradient(4, 3)
        losses = loss(logits)
        for row, label in enumerate(self.TARGET.tolist()):
            for column in range(3):
                p = 1 / (1 + math.exp(-float(logits[row, column])))
                if column == label:
                    expected = -0.3 * (1 - p) ** gamma * math.log(p)
                else:
                    expected = -0.7 * p**gamma * math.log(1 - p)
                if weight is not None and label < 3:
                    expected *= weight[label]
                assert float(losses[row, column]) == pytest.approx(float(expected), rel=1e-9)
        assert gradcheck(lambda x: loss(x).sum(), logits)

    @pytest.mark.parametrize('weight', [None, WEIGHT])
    @pytest.mark.parametrize('gamma', [0.0, 0.5, 2.0])
    def test_softmax(self, weight, gamma):
        def loss(logits, reduction='sum'):
            return ops.softmax_focal_loss(logits, self.TARGET, gamma, 0.3, weight, reduction)

        logits = with_gradient(4, 3)
        p = logits.softmax(1)[[0, 1, 3], [0, 2, 1]]
        expected = -0.3 * (1 - p) ** gamma * p.log()
        if weight is not None:
            expected = expected * weight[[0, 2, 1]]
        losses = loss(logits, 'none')
        torch.testing.assert_close(losses[[0, 1, 3]], expected)
        assert losses[2] == 0
        assert gradcheck(loss, logits)

    @pytest.mark.parametrize('dtype', [torch.float16, torch.bfloat16, torch.float32])
    def test_are_finite_for_certain_logits(self, dtype):
        logits = torch.tensor([[90.0, -90, 90], [-90, 90, -90]], dtype=dtype, requires_grad=True)
        target = torch.tensor([0, 0])
        for loss in (ops.sigmoid_focal_loss, ops.softmax_focal_loss):
            value = loss(logits, target, 2.0, 0.25, None, 'sum')
            (gradient,) = torch.autograd.grad(value, logits)
            assert value.isfinite() and gradient.isfinite().all()


def rois(count: int = 6) -> torch.Tensor:
    start, sides = torch.rand(count, 2) * 8 - 1, torch.rand(count, 2) * 6
    corners = torch.cat([start, start + sides], 1).double()
    return torch.cat([torch.arange(count)[:, None] % 2, corners], 1)


class TestRoIPool:
    def test_is_the_maximum_of_the_pixels_that_a_bin_touches(self):
        maps, boxes, scale = normal(2, 3, 9, 7), rois(), 0.75
        pooled = ops.roi_pool(maps, boxes, (3, 2), scale)
        for n, (image, x1, y1, x2, y2) in enumerate(boxes.tolist()):
            left, top = x1 * scale, y1 * scale
            width, height = (x2 + 1) * scale - left, (y2 + 1) * scale - top
            for row in range(3):
                for column in range(2):
                    rows = self.clipped(top + row * height / 3, top + (row + 1) * height / 3, 9)
                    columns = self.clipped(
                        left + column * width / 2, left + (column + 1) * width / 2, 7
                    )
                    touched = maps[int(image), :, rows, columns].flatten(1)
                    expected = touched.amax(1) if touched.numel() else torch.zeros(3)
                    assert torch.equal(pooled[n, :, row, column], expected.double())

    @staticmethod
    def clipped(start: float, end: float, limit: int) -> slice:
        return slice(min(max(math.floor(start), 0), limit), min(max(math.ceil(end), 0), limit))

    def test_gradient(self):
        boxes = rois()
        assert gradcheck(lambda x: ops.roi_pool(x, boxes, (3, 2), 0.75), with_gradient(2, 2, 9, 7))

    def test_a_box_of_negative_sides_is_zero_and_moves_nothing(self):
        boxes = torch.tensor([[0, 5, 5, 2, 2.0]])
        output, gradient = with_gradients(
            lambda x: ops.roi_pool(x, boxes, (2, 2), 1.0), torch.randn(1, 2, 9, 9)
        )
        assert not output.any() and not gradient.any()

    def test_no_roi(self):
        output, gradient = with_gradients(
            lambda x: ops.roi_pool(x, torch.zeros(0, 5), (2, 2), 1.0), torch.randn(1, 2, 9, 9)
        )
        assert output.shape == (0, 2, 2, 2) and not gradient.any()


class TestDeformRoIPool:
    @pytest.mark.parametrize('ratio', [0, 2])
    def test_without_offset_is_roi_align(self, ratio):
        maps, boxes = normal(2, 3, 9, 7), rois()
        pooled = ops.deform_roi_pool(maps, boxes, None, (3, 2), 0.75, ratio, 0.1)
        aligned = ops.roi_align(maps, boxes, (3, 2), 0.75, ratio, 'avg', True)
        torch.testing.assert_close(pooled, aligned)

    def test_an_offset_moves_its_bin_by_a_share_of_the_roi(self):
        maps, boxes = normal(2, 3, 19, 17), rois()
        offset = torch.zeros(6, 2, 3, 2, dtype=torch.float64)
        offset[:, 0, 1, 0], offset[:, 1, 1, 0] = 2.0, -3.0
        pooled = ops.deform_roi_pool(maps, boxes, offset, (3, 2), 0.75, 2, 0.1)
        sides = boxes[:, 3:] - boxes[:, 1:3]
        move = 0.1 * sides * torch.tensor([2.0, -3.0])
        moved = boxes + torch.cat([torch.zeros(6, 1), move, move], 1)
        aligned = ops.roi_align(maps, boxes, (3, 2), 0.75, 2, 'avg', True)
        aligned[:, :, 1, 0] = ops.roi_align(maps, moved, (3, 2), 0.75, 2, 'avg', True)[:, :, 1, 0]
        torch.testing.assert_close(pooled, aligned)

    @pytest.mark.parametrize('ratio', [0, 2])
    def test_gradients(self, ratio):
        boxes = rois()
        assert gradcheck(
            lambda x, o: ops.deform_roi_pool(x, boxes, o, (3, 2), 0.75, ratio, 0.1),
            (with_gradient(2, 2, 9, 7), with_gradient(6, 2, 3, 2)),
        )

    def test_no_roi(self):
        pooled, *gradients = with_gradients(
            lambda x, o: ops.deform_roi_pool(x, torch.zeros(0, 5), o, (3, 2)),
            *(torch.randn(2, 2, 9, 7), torch.randn(0, 2, 3, 2)),
        )
        assert pooled.shape == (0, 2, 3, 2) and not gradients[0].any()


class TestCarafe:
    OPTIONS = (3, 2, 2)  # kernel, groups, scale

    def test_is_a_weighted_sum_of_each_window(self):
        features, masks = normal(2, 4, 3, 5), normal(2, 18, 6, 10)
        output = ops.carafe(features, masks, *self.OPTIONS)
        padded = torch.nn.functional.pad(features, (1, 1, 1, 1))
        for channel, row, column in ((0, 0, 0), (1, 5, 9), (2, 3, 4), (3, 0, 7)):
            window = padded[:, channel, row // 2 : row // 2 + 3, column // 2 : column // 2 + 3]
            group = 9 * (channel // 2)
            weights = masks[:, group : group + 9, row, column]
            expected = (window.flatten(1) * weights).sum(1)
            torch.testing.assert_close(output[:, channel, row, column], expected)
        torch.testing.assert_close(ops.carafe_naive(features, masks, *self.OPTIONS), output)

    def test_gradients(self, extension):
        features, masks = normal(1, 4, 3, 2), normal(1, 18, 6, 4)
        leaves = [tensor.clone().requires_grad_() for tensor in (features, masks)]
        assert gradcheck(lambda *x: ops.carafe(*x, *self.OPTIONS), leaves)
        # mmcv refuses the gradient of the naive one on a CPU; the operator itself works.
        output, *expected = with_gradients(
            lambda *x: ops.carafe(*x, *self.OPTIONS), features, masks
        )
        found = [torch.zeros_like(features), torch.zeros_like(masks)]
        factors = torch.arange(output.numel()).remainder(7).to(output).view_as(output)
        extension.carafe_naive_backward(*(factors, features, masks, *found, *self.OPTIONS))
        torch.testing.assert_close(found, expected)


class TestDeformableAttention:
    SHAPES = torch.tensor([[3, 4], [2, 1]])

    def inputs(self) -> list[torch.Tensor]:
        """Value, locations, some of them outside, and weights."""
        locations = torch.rand(2, 5, 2, 2, 3, 2, dtype=torch.float64) * 1.4 - 0.2
        weights = torch.rand(2, 5, 2, 2, 3, dtype=torch.float64)
        return [with_gradient(2, 14, 2, 4), locations.requires_grad_(), weights.requires_grad_()]

    def attend(self, value, locations, weights):
        starts = torch.tensor([0, 12])
        return MultiScaleDeformableAttnFunction.apply(
            value, self.SHAPES, starts, locations, weights, 64
        )

    def test_equals_mmcvs_own_version_for_the_cpu(self):
        value, *others = self.inputs()
        torch.testing.assert_close(
            self.attend(value, *others),
            multi_scale_deformable_attn_pytorch(value, self.SHAPES, *others),
        )

    def test_gradients(self):
        assert gradcheck(self.attend, self.inputs())


def test_masked_convolution_is_the_convolution_where_the_mask_is():
    features, weight, bias = torch.randn(1, 3, 6, 5), torch.randn(4, 3, 3, 3), torch.randn(4)
    mask = torch.rand(1, 6, 5) > 0.5
    output = ops.masked_conv2d(features, mask, weight, bias, 1)
    torch.testing.assert_close(output, conv2d(features, weight, bias, padding=1) * mask)
    assert not ops.masked_conv2d(features, mask & False, weight, bias, 1).any()


class Alone:
    """mmcv's SyncBatchNorm in a single process, without a process group."""

    def __init__(self, monkeypatch):
        from mmcv.ops import sync_bn

        monkeypatch.setattr(sync_bn.dist, 'get_world_size', lambda group: 1)
        self.layer = ops.SyncBatchNorm(3, group=object())


@pytest.mark.parametrize('dtype', [torch.float32, torch.float16])
def test_sync_batch_norm_of_one_process_is_batch_norm(dtype, monkeypatch):
    layer = Alone(monkeypatch).layer
    x = (torch.randn(2, 3, 4, 5) * 2 + 1).to(dtype)
    mean, variance = torch.zeros(3), torch.ones(3)
    output, gradient = with_gradients(layer, x)
    expected, expected_gradient, *of_parameters = with_gradients(
        lambda x, weight, bias: batch_norm(x, mean, variance, weight, bias, True, 0.1),
        *(x.float(), layer.weight.detach(), layer.bias.detach()),
    )
    tolerance = dict(rtol=1e-4, atol=1e-4) if dtype == torch.float32 else dict(rtol=2e-2, atol=2e-2)
    torch.testing.assert_close(output.float(), expected, **tolerance)
    torch.testing.assert_close(gradient.float(), expected_gradient, **tolerance)
    torch.testing.assert_close([layer.weight.grad, layer.bias.grad], of_parameters, **tolerance)
    torch.testing.assert_close([layer.running_mean, layer.running_var], [mean, variance])
