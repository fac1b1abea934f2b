"""mmseg: masks of class indices."""

from collections.abc import Iterator
from functools import cached_property

from torch import nn

from ptnt_mm.check.classes import wrong_kind
from ptnt_mm.check.host import Check, Findings, Host
from ptnt_mm.check.images import ImageFile, Listing, loader_of
from ptnt_mm.check.segmentation.classes import check_classes
from ptnt_mm.check.segmentation.crops import check_crops
from ptnt_mm.check.segmentation.data import SegmentationData, load
from ptnt_mm.check.segmentation.evaluation import check_evaluation
from ptnt_mm.check.segmentation.ignored import check_ignored, ignored_label
from ptnt_mm.check.segmentation.lists import check_lists, check_pairs
from ptnt_mm.check.segmentation.mask_files import Mask, check_mask_files, open_masks
from ptnt_mm.check.segmentation.mask_values import check_mask_values
from ptnt_mm.check.segmentation.pipelines import check_pipelines
from ptnt_mm.check.segmentation.trial import SegmentationTrial
from ptnt_mm.check.segmentation.zero_label import check_zero_label
from ptnt_mm.utils.findings import Finding


class Segmentation(Host):
    """A segmenter's data."""

    listing = Listing(
        'data_prefix.img_path, the names in ann_file, which have no ending, and img_suffix',
        'take them out, and their masks',
    )

    @cached_property
    def images(self) -> list[ImageFile]:
        """All images that mmseg lists."""
        found = []
        for data in self.data:
            loader = loader_of(data.data_set.pipeline, 'mmseg')
            source = ' '.join(map(str, data.data_set.paths()))
            for pair in data.pairs:
                found.append(ImageFile(data.name, pair.image, source=source, loader=loader))
        return found

    def load(self) -> tuple[list[SegmentationData], list[Finding]]:
        """List images and masks."""
        return load(self.config, self.splits)

    def annotations(self) -> Findings:
        """What was listed."""
        yield from super().annotations()
        yield from check_lists(self.data, self.config)

    def class_names(self) -> Findings:
        """Look at class names and their colours."""
        yield from check_classes(self.data)

    def further(self) -> tuple[Check, ...]:
        """Masks, pipelines, crops, ignored pixels, evaluators."""
        return (
            Check('masks', lambda: check_pairs(self.data), self._masks),
            Check('zero label', lambda: check_zero_label(self.data)),
            Check('pipelines', lambda: check_pipelines(self.data, self.config)),
            Check('crops', lambda: check_crops(self.data, self.config)),
            Check('ignored pixels', lambda: check_ignored(self.data, self.config)),
            Check('evaluation', lambda: check_evaluation(self.data, self.config, self.splits)),
        )

    def trial(self, model: nn.Module, gpus: int) -> SegmentationTrial:
        """Prepare a step of training: of two images, as one alone has no variance to normalise.

        Where a step has one image in all, it is tried with one.
        """
        batch = self.config.train_dataloader.get('batch_size', 1)
        return SegmentationTrial(self.config, model, images=min(batch * gpus, 2))

    def _masks(self) -> Iterator[Finding]:
        """Open masks."""
        for one in self.data:
            opened = open_masks(one)
            yield from check_mask_files(one, opened)
            if not any(wrong_kind(one)):
                masks = [mask for mask in opened if isinstance(mask, Mask) and mask.holds_indices]
                yield from check_mask_values(one, masks, ignored_label(self.config))
