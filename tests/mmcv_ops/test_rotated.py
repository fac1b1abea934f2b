"""The operators of rotated boxes and of sets of points."""

import math

import numpy as np
import pytest
import torch
from mmcv import ops
from torch import Tensor
from torch.autograd import gradcheck

from mmcv_ops import references
from mmcv_ops.make_golden import with_gradients
from mmcv_ops.references import normal

shapely = pytest.importorskip('shapely')


def boxes(count: int, size: float = 100) -> Tensor:
    """Rotated boxes whose angles go beyond one turn."""
    places, sides = torch.rand(count, 2) * size, torch.rand(count, 2) * size / 2 + 0.1
    return torch.cat([places, sides, (torch.rand(count, 1) - 0.5) * 14], 1)


def shapes(rows: Tensor) -> np.ndarray:
    """Rotated boxes (N, 5) or corners (N, 2 * P) as shapely's polygons."""
    corners = [
        references.box_corners(*row) if len(row) == 5 else np.reshape(row, (-1, 2))
        for row in rows.double().tolist()
    ]
    return shapely.polygons(np.array(corners))


def ious(first: np.ndarray, second: np.ndarray, mode: str = 'iou') -> np.ndarray:
    shared = shapely.area(shapely.intersection(first, second))
    area1, area2 = shapely.area(first), shapely.area(second)
    whole = area1 + area2 - shared if mode == 'iou' else area1
    return np.divide(shared, whole, out=np.zeros_like(shared), where=whole > 1e-9)


def beside(rows: Tensor, share: float) -> Tensor:
    """The boxes, moved along their width by a share of it."""
    moved = rows.clone()
    along = torch.stack([rows[:, 4].cos(), rows[:, 4].sin()], 1)
    moved[:, :2] += share * rows[:, 2:3] * along
    return moved


def _turned(rows: Tensor) -> Tensor:
    x, y, width, height, angle = rows.unbind(1)
    return torch.stack([x, y, height, width, angle + math.pi / 2], 1)


PAIRS = {
    'random': lambda a: boxes(len(a)),
    'equal': lambda a: a.clone(),
    'nearly_equal': lambda a: a + 1e-5 * torch.randn_like(a),
    'equal_after_a_quarter_turn': _turned,
    'inside': lambda a: a * torch.tensor([1, 1, 0.5, 0.25, 1]),
    'touching': lambda a: beside(a, 1),
    'with_two_shared_sides': lambda a: beside(a, 0.5),
    'no_width': lambda a: boxes(len(a)) * torch.tensor([1.0, 1, 0, 1, 1]),
    'thin': lambda a: a * torch.tensor([1, 1, 1, 1e-4, 1]),
    'upright': lambda a: boxes(len(a)) * torch.tensor([1.0, 1, 1, 1, 0]),
    'apart': lambda a: a + torch.tensor([1000.0, 0, 0, 0, 0]),
}


class TestOverlap:
    @pytest.mark.parametrize('mode', ['iou', 'iof'])
    @pytest.mark.parametrize('kind', PAIRS)
    def test_equals_shapely(self, kind, mode):
        first = boxes(300)
        second = PAIRS[kind](first)
        expected = ious(shapes(first), shapes(second), mode)
        found = ops.box_iou_rotated(first, second, mode, aligned=True)
        assert found.dtype == torch.float32
        # A shared area of a billionth is taken for none.
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-6, atol=1e-7)
        if kind == 'apart':
            assert not found.any()

    @pytest.mark.parametrize('scale', [1e-3, 1e6])
    def test_of_any_size(self, scale):
        sizes = torch.tensor([scale, scale, scale, scale, 1])
        first, second = boxes(200) * sizes, boxes(200) * sizes
        expected = ious(shapes(first), shapes(second))
        found = ops.box_iou_rotated(first, second, aligned=True)
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-6, atol=1e-7)

    def test_far_from_the_origin(self):
        first, second = boxes(200), boxes(200)
        first[:, :2] += 1e6
        second[:, :2] += 1e6
        expected = ious(shapes(first), shapes(second))
        found = ops.box_iou_rotated(first, second, aligned=True)
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-5, atol=1e-6)

    @pytest.mark.parametrize('dtype', [torch.float16, torch.bfloat16, torch.float64])
    def test_types(self, dtype):
        first, second = boxes(200).to(dtype), boxes(200).to(dtype)
        found = ops.box_iou_rotated(first, second, aligned=True)
        assert found.dtype == dtype
        expected = ious(shapes(first), shapes(second))
        tolerance = torch.finfo(dtype).eps if dtype != torch.float64 else 1e-9
        np.testing.assert_allclose(found.double().numpy(), expected, rtol=tolerance, atol=1e-6)

    def test_of_all_is_that_of_each_pair(self):
        first, second = boxes(40), boxes(30)
        found = ops.box_iou_rotated(first, second)
        i, j = torch.meshgrid(torch.arange(40), torch.arange(30), indexing='ij')
        pairs = ops.box_iou_rotated(first[i.flatten()], second[j.flatten()], aligned=True)
        torch.testing.assert_close(found.flatten(), pairs, rtol=0, atol=0)

    def test_turning_the_other_way(self):
        first, second = boxes(20), boxes(30)
        mirror = torch.tensor([1, 1, 1, 1, -1.0])
        found = ops.box_iou_rotated(first, second, clockwise=False)
        torch.testing.assert_close(found, ops.box_iou_rotated(first * mirror, second * mirror))

    @pytest.mark.parametrize(
        'change',
        [(1, 1, -1, 1, 1), (1, 1, 0, 0, 1), (math.nan, 1, 1, 1, 1), (1, 1, 1, 1, math.nan)],
    )
    def test_a_box_without_area_overlaps_nothing(self, change):
        first = boxes(20)
        assert not ops.box_iou_rotated(first * torch.tensor(change), first, aligned=True).any()

    @pytest.mark.parametrize('shape', [(0, 5), (3, 0)])
    def test_no_boxes(self, shape):
        counts = shape[0], 5 - shape[1]
        found = ops.box_iou_rotated(boxes(counts[0]), boxes(counts[1]))
        assert found.shape == counts

    def test_quadrilaterals(self):
        corners = torch.rand(200, 2, 4, 2) * 20 + torch.tensor([[0, 0], [50, 0], [50, 50], [0, 50]])
        first, second = corners.flatten(2).unbind(1)
        found = ops.box_iou_quadri(first, second.flip(1).unflatten(1, (4, 2)).flip(2).flatten(1))
        expected = [ious(shapes(row[None]).repeat(200), shapes(second)) for row in first]
        np.testing.assert_allclose(found.numpy(), np.array(expected), rtol=1e-5)


class TestSuppression:
    @pytest.mark.parametrize('threshold', [0.1, 0.5, 0.9])
    def test_keeps_what_the_plain_loop_keeps(self, threshold):
        # More than a block of boxes, in a small area.
        rows, scores = boxes(600, 60), torch.randperm(600) / 600
        expected = references.nms(shapes(rows), scores.numpy(), threshold, ious)
        dets, kept = ops.nms_rotated(rows, scores, threshold)
        assert kept.tolist() == expected
        torch.testing.assert_close(dets, torch.cat([rows[kept], scores[kept, None]], 1))
        corners = torch.tensor(np.array([shape.exterior.coords[:4] for shape in shapes(rows)]))
        kept = ops.nms_quadri(corners.flatten(1).float(), scores, threshold)[1]
        assert kept.tolist() == expected

    def test_a_box_at_the_threshold_stays_and_equal_scores_keep_their_order(self):
        box = torch.tensor([[50, 50, 20, 10, 0.3]])
        half = box * torch.tensor([1, 1, 1, 0.5, 1])
        rows, scores = torch.cat([half, box, box, half]), torch.ones(4)
        assert ops.nms_rotated(rows, scores, 0.5)[1].tolist() == [0, 1]
        assert ops.nms_rotated(rows, scores, 0.49)[1].tolist() == [0]

    def test_labels_do_not_count_as_in_mmcv(self):
        rows, scores = boxes(50, 20), torch.rand(50)
        labels = torch.arange(50) % 2
        kept = ops.nms_rotated(rows, scores, 0.3)[1]
        assert torch.equal(ops.nms_rotated(rows, scores, 0.3, labels)[1], kept)

    def test_of_classes_apart(self):
        rows, scores = boxes(100, 20), torch.rand(100)
        labels = torch.arange(100) % 2
        kept = ops.batched_nms(rows, scores, labels, dict(type='nms_rotated', iou_threshold=0.3))[1]
        each = [
            (labels == label)
            .nonzero()
            .squeeze(1)[ops.nms_rotated(rows[labels == label], scores[labels == label], 0.3)[1]]
            for label in (0, 1)
        ]
        assert sorted(kept.tolist()) == sorted(torch.cat(each).tolist())


class TestDifferentiableOverlap:
    def test_equals_the_other_operator(self):
        # In float32, mmcv does not find every corner that equal boxes share.
        first, second = boxes(300).double(), boxes(300).double()
        second[:100] = first[:100] + 0.1 * torch.randn(100, 5)
        second[100:110] = first[100:110]  # every corner is there four times
        found = ops.diff_iou_rotated_2d(first[None], second[None])[0]
        expected = ops.box_iou_rotated(first, second, aligned=True)
        torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-3)

    def test_gradient(self):
        first = boxes(8, 20).double()[None]
        second = first + 0.3 * torch.randn_like(first)
        assert gradcheck(lambda x: ops.diff_iou_rotated_2d(x, second), first.requires_grad_())


class TestPointSets:
    POLYGONS = torch.tensor([[2, 2, 9, 3, 8, 9, 1, 8], [5, 5, 5, 12, 12, 12, 12, 5.0]])

    def test_iou(self):
        points = torch.rand(50, 18) * 12
        hulls = [shapely.MultiPoint(row.reshape(9, 2)).convex_hull for row in points.double()]
        expected = [[float(ious(hull, shape)) for shape in shapes(self.POLYGONS)] for hull in hulls]
        found = ops.convex_iou(points, self.POLYGONS)
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-5, atol=1e-6)

    def test_giou_and_its_gradient(self):
        points = (torch.rand(2, 18) * 12).double()
        polygons = self.POLYGONS.double()
        value, gradient = ops.convex_giou(points, polygons)
        hulls = np.array([shapely.MultiPoint(row.reshape(9, 2)).convex_hull for row in points])
        others = shapes(polygons)
        union = shapely.area(shapely.union(hulls, others))
        around = shapely.area(shapely.convex_hull(shapely.union(hulls, others)))
        np.testing.assert_allclose(value, ious(hulls, others) - (around - union) / around, 1e-9)
        for index in range(18):
            step = torch.zeros(18, dtype=torch.float64)
            step[index] = 1e-5
            up, down = (ops.convex_giou(points + s, polygons)[0] for s in (step, -step))
            torch.testing.assert_close(gradient[:, index], (up - down) / 2e-5, rtol=1e-4, atol=1e-7)

    def test_smallest_rectangle(self):
        points = torch.rand(50, 18) * 12
        found = shapes(ops.min_area_polygons(points))
        sets = np.array([shapely.MultiPoint(row.reshape(9, 2)) for row in points.double()])
        expected = shapely.area(shapely.minimum_rotated_rectangle(sets))
        np.testing.assert_allclose(shapely.area(found), expected, rtol=1e-5)
        assert shapely.covers(shapely.buffer(found, 1e-4), sets).all()

    def test_smallest_rectangle_of_a_grid_has_mmcvs_corners(self):
        grid = torch.cartesian_prod(torch.arange(3.0), torch.arange(3.0))
        (found,) = ops.min_area_polygons(grid.flatten()[None])
        assert found.tolist() == [2, 0, 0, 0, 0, 2, 2, 2]

    def test_points_inside(self):
        points = torch.rand(200, 2) * 14
        found = ops.points_in_polygons(points, self.POLYGONS)
        for shape, column in zip(shapes(self.POLYGONS), found.T, strict=True):
            assert column.tolist() == shapely.contains_xy(shape, *points.double().T).tolist()

    def test_points_on_a_side_as_in_mmcv(self):
        square = torch.tensor([[0, 0, 4, 0, 4, 4, 0, 4.0]])
        points = torch.tensor([[0, 0], [4, 4], [0, 2], [4, 2], [2, 0], [2, 4.0], [2, 2]])
        expected = [
            references.is_inside(*p, square[0].view(4, 2).tolist()) for p in points.tolist()
        ]
        assert ops.points_in_polygons(points, square)[:, 0].tolist() == expected

    def test_distance_between_sets(self):
        def formula(first, second):
            squares = (first[:, :, None] - second[:, None]).square().sum(-1)
            return torch.cat([squares.amin(2), squares.amin(1)], 1)

        sets = torch.randn(2, 5, 2), torch.randn(2, 7, 2)
        found = with_gradients(lambda *x: torch.cat(ops.chamfer_distance(*x)[:2], 1), *sets)
        torch.testing.assert_close(found, with_gradients(formula, *sets))
        squares = (sets[0][:, :, None] - sets[1][:, None]).square().sum(-1)
        assert torch.equal(ops.chamfer_distance(*sets)[2].long(), squares.argmin(2))


ROIS = torch.tensor(
    [[0, 8, 9, 10, 6, 0.5], [1, 3, 4, 12, 5, -2.0], [1, 9, 2, 30, 20, 1.0], [0, 5, 5, 1, 1, 0.0]],
    dtype=torch.float64,
)


class TestSampling:
    @pytest.mark.parametrize('clockwise', [False, True])
    @pytest.mark.parametrize('aligned', [False, True])
    @pytest.mark.parametrize('ratio', [0, 2])
    def test_roi_align_equals_its_formula(self, ratio, aligned, clockwise):
        maps, options = normal(2, 3, 9, 7), (0.5, ratio, aligned, clockwise)
        output, gradient = with_gradients(
            lambda x: ops.roi_align_rotated(x, ROIS, (3, 2), *options), maps
        )
        factors = (np.arange(output.numel()) % 7.0).reshape(output.shape)
        expected = references.roi_align_rotated(maps.numpy(), ROIS.numpy(), factors, *options)
        np.testing.assert_allclose(output.detach().numpy(), expected[0], atol=1e-12)
        np.testing.assert_allclose(gradient.numpy(), expected[1], atol=1e-12)

    def test_rois_that_are_nan_are_zero(self):
        rois = ROIS.clone()
        rois[:, 1:] = math.nan
        assert not ops.roi_align_rotated(normal(2, 3, 9, 7), rois, (2, 2), 1.0, 2).any()

    def test_no_roi(self):
        output, gradient = with_gradients(
            lambda x: ops.roi_align_rotated(x, torch.zeros(0, 6), (2, 2), 1.0, 2),
            torch.randn(1, 2, 9, 9),
        )
        assert output.shape == (0, 2, 2, 2) and not gradient.any()

    def test_orientations_turn_back(self):
        """At a turn of an eighth, the channels of one group move on by one."""
        maps = normal(1, 16, 9, 7)
        roi = torch.tensor([[0, 4, 4, 6, 4, math.pi / 4]], dtype=torch.float64)
        found = ops.riroi_align_rotated(maps, roi, (3, 2), 1.0, 2, 8)
        pooled = ops.roi_align_rotated(maps, roi, (3, 2), 1.0, 2, False)
        expected = pooled.unflatten(1, (2, 8)).roll(1, 2).flatten(1, 2)
        torch.testing.assert_close(found, expected)
        roi[0, 5] *= 1.5  # half way between two orientations
        found = ops.riroi_align_rotated(maps, roi, (3, 2), 1.0, 2, 8)
        pooled = ops.roi_align_rotated(maps, roi, (3, 2), 1.0, 2, False).unflatten(1, (2, 8))
        torch.testing.assert_close(found, ((pooled.roll(1, 2) + pooled) / 2).flatten(1, 2))
        leaf = maps.requires_grad_()
        assert gradcheck(lambda x: ops.riroi_align_rotated(x, roi, (3, 2), 1.0, 2, 8), leaf)

    @pytest.mark.parametrize('points', [1, 5])
    def test_features_of_refined_boxes(self, points):
        maps, rows = normal(2, 3, 6, 5), torch.rand(2, 6, 5, 5, dtype=torch.float64) * 40
        output, gradient = with_gradients(
            lambda x: ops.rotated_feature_align(x, rows, 0.125, points), maps
        )
        factors = (np.arange(output.numel()) % 7.0).reshape(output.shape)
        expected = references.feature_align(maps.numpy(), rows.numpy(), factors, 0.125, points)
        np.testing.assert_allclose(output.detach().numpy(), expected[0], atol=1e-12)
        np.testing.assert_allclose(gradient.numpy(), expected[1], atol=1e-12)
        flat = ops.rotated_feature_align(maps, rows.flatten(0, 2), 0.125, points)
        torch.testing.assert_close(flat, output)

    def test_turned_filters(self):
        weights = normal(3, 2, 4, 3, 3)
        places = torch.stack([torch.randperm(36) for _ in range(8)])
        indices = (places.T + 1).view(4, 3, 3, 8).int()
        found = ops.active_rotated_filter(weights, indices)
        turned = found.view(3, 8, 2, 36)
        for rotation in range(8):
            for source, target in enumerate(places[rotation].tolist()):
                values = weights.flatten(2)[..., source]
                torch.testing.assert_close(turned[:, rotation, :, target], values)
        leaf = weights.requires_grad_()
        assert gradcheck(lambda x: ops.active_rotated_filter(x, indices), leaf)
