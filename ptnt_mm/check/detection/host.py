"""mmdet: boxes and masks in COCO's files."""

from functools import cached_property

from torch import nn

from ptnt_mm.check.detection.boxes import check_boxes
from ptnt_mm.check.detection.classes import are_known, check_classes
from ptnt_mm.check.detection.data import DetectionData, load, read_sound
from ptnt_mm.check.detection.evaluation import check_evaluation
from ptnt_mm.check.detection.filtering import check_filtering
from ptnt_mm.check.detection.masks import check_masks, check_rest_of_masks
from ptnt_mm.check.detection.trial import DetectionTrial
from ptnt_mm.check.host import Check, Findings, Host
from ptnt_mm.check.images import ImageFile, Listing, loader_of
from ptnt_mm.utils.findings import Finding


class Detection(Host):
    """A detector's data."""

    listing = Listing(
        'data_prefix.img and the file_name of the annotation file',
        'take them out of the annotation file',
    )

    @cached_property
    def images(self) -> list[ImageFile]:
        """All images of the annotation files that ``indices`` leave."""
        scope, found = self.config.get('default_scope') or 'mmengine', []
        for data in self.data:
            if data.loaded is None:
                continue
            loader, source = loader_of(data.data_set.pipeline, scope), str(data.file.path)
            for image in data.file.images.values():
                size = (image['width'], image['height'])
                found.append(ImageFile(data.name, data.image_path(image), size, source, loader))
        return found

    def load(self) -> tuple[list[DetectionData], list[Finding]]:
        """Read the annotation files."""
        return load(self.config, self.splits)

    def annotations(self) -> Findings:
        """What reading the annotation files has found."""
        yield from super().annotations()
        yield from read_sound(self.data)

    def knows_classes(self, data: DetectionData) -> bool:
        """Whether class names are those that the data set is about, however they are spelt."""
        return are_known(data)

    def class_names(self) -> Findings:
        """Compare class names with categories."""
        yield from check_classes(self.data)

    def further(self) -> tuple[Check, ...]:
        """Filtering, boxes, masks, evaluators."""
        return (
            Check('images with objects', lambda: check_filtering(self.data, self.config)),
            Check('boxes', lambda: check_boxes(self.data)),
            Check(
                'masks',
                lambda: check_masks(self.data, self.config),
                lambda: check_rest_of_masks(self.data, self.config),
            ),
            Check('evaluation', lambda: check_evaluation(self.data, self.config)),
        )

    def trial(self, model: nn.Module, gpus: int) -> DetectionTrial:
        """Prepare a step of training, with a single image."""
        return DetectionTrial(self.config, model, images=1)
