"""The PEG of DETR's encoder, and padded places."""

import torch
from mmengine.registry import MODELS, DefaultScope

from ptnt_mm import get_config
from ptnt_mm.models.layers.peg import MaskedPEG

from . import golden

HW = (4, 6)


def peg() -> MaskedPEG:
    return golden.filled(MaskedPEG(8)).eval()


def padded(rows: int, columns: int) -> torch.Tensor:
    """A mask (1, 24) of a map whose image fills the given rows and columns."""
    mask = torch.ones(1, *HW, dtype=torch.bool)
    mask[:, :rows, :columns] = False
    return mask.flatten(1)


def test_masked_places_keep_their_value():
    tokens, mask = torch.randn(2, 24, 8), torch.cat([padded(3, 5), padded(4, 6)])
    found = peg()(tokens, HW, mask)
    assert torch.equal(found[mask], tokens[mask])
    changed = (found - tokens).abs().amax(dim=2) > 0
    assert changed[~mask].all()


def test_it_adds_a_convolution_with_norm_and_relu():
    module, tokens = peg(), torch.randn(2, 24, 8)
    on_map = tokens.mT.unflatten(2, HW)
    expected = on_map + module.norm(module.conv(on_map)).relu()
    assert module.conv.bias is None and module.conv.groups == 8
    torch.testing.assert_close(module(tokens, HW, None), expected.flatten(2).mT)


def test_an_image_does_not_see_how_far_its_batch_is_padded():
    """Alone, or padded with anything to the size of a larger image."""
    module, image = peg(), torch.randn(1, 8, 3, 5)
    alone = module(image.flatten(2).mT, (3, 5), None)
    batch = torch.randn(1, 8, *HW)
    batch[:, :, :3, :5] = image
    mask = padded(3, 5)
    found = module(batch.flatten(2).mT, HW, mask)
    torch.testing.assert_close(found[~mask], alone[0])


def test_the_detector_gives_it_the_grid_and_the_mask():
    from mmdet.structures import DetDataSample

    settings = get_config('detr_r50_peg_50e').model
    settings.backbone.update(depth=18, init_cfg=None)
    settings.neck.in_channels = [512]
    with DefaultScope.overwrite_default_scope('mmdet'):
        model = MODELS.build(settings).eval()
    seen = {}
    model.peg.register_forward_hook(lambda _, args, out: seen.update(hw=args[1], mask=args[2]))
    samples = [
        DetDataSample(metainfo=dict(img_shape=shape, batch_input_shape=(96, 128)))
        for shape in ((64, 96), (96, 128))
    ]
    inputs, _ = model.pre_transformer((torch.randn(2, 256, 3, 4),), samples)
    memory = model.forward_encoder(**inputs)['memory']
    assert memory.shape == (2, 12, 256)
    assert seen['hw'] == (3, 4)
    assert seen['mask'].sum(dim=1).tolist() == [6, 0]
