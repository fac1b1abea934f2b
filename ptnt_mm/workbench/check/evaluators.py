"""Evaluators: registered in the host, and consistent with their data sets and annotation files."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.findings import Finding, Severity, error, ok, report_wrong, warning
from ptnt_mm.utils.text import counted, first_few, unknown_name
from ptnt_mm.workbench.check.coco_annotations import DetectionDataset, Id
from ptnt_mm.workbench.check.data_sets import LoadedDataset, identity
from ptnt_mm.workbench.check.image_lists import has_masks, number_of_classes
from ptnt_mm.workbench.config.registered import arguments_of, classes_named
from ptnt_mm.workbench.config.settings import dicts_within, type_name
from ptnt_mm.workbench.config.view import ConfigView, DataSet, local_path, unwrapped
from ptnt_mm.workbench.data.coco import read_json

_METRICS = ('mIoU', 'mDice', 'mFscore')  # the metrics of mmseg's IoUMetric


def check_evaluators_of_objects(
    data: list[DetectionDataset], view: ConfigView
) -> Iterator[Finding]:
    """Compare the annotations of a detector's evaluators with those of its data sets."""
    for split in ('val', 'test'):
        yield from check_evaluated_files(data, view, split)
    for dataset in data:
        if dataset.file is not None and not dataset.trains:
            yield from _for_pycocotools(dataset)


def check_evaluators_of_masks(
    data: list[LoadedDataset], view: ConfigView, splits: tuple[str, ...]
) -> Iterator[Finding]:
    """Check the evaluators of a segmenter's splits."""
    for split, found in _of_splits(view, splits):
        of_split = [dataset for dataset in data if split in dataset.pipelines]
        ious = [metric for metric in found if type_name(metric) == 'IoUMetric']
        wrong = []
        for stated in (metric.get('iou_metrics', 'mIoU') for metric in ious):
            metrics = [stated] if isinstance(stated, str) else stated
            for unknown in set(metrics).difference(_METRICS):
                what = unknown_name('iou_metrics', unknown, _METRICS)
                advice = 'mmseg reports this only after all images are evaluated'
                wrong.append(error(split, what, advice))
        advice = "IoUMetric measures the mIoU: dict(type='IoUMetric', iou_metrics=['mIoU'])"
        if not found:
            wrong.append(error(split, 'there is no evaluator', advice))
        elif not ious and any(map(has_masks, of_split)):
            what = f'measured by {first_few(map(type_name, found))}, not by IoUMetric'
            wrong.append(warning(split, what, advice))
        # IoUMetric counts by names, which a class may have read with its list.
        if ious and any(one.images and 'classes' not in one.built.metainfo for one in of_split):
            what = 'the data set has no class names, which IoUMetric needs'
            wrong.append(error(split, what, "write metainfo=dict(classes=('name', ...))"))
        yield from wrong or [ok(split, f'measured by {first_few(map(type_name, found))}')]


def check_evaluators_of_labels(view: ConfigView, splits: tuple[str, ...]) -> Iterator[Finding]:
    """Check the evaluators of a classifier's splits."""
    number = number_of_classes(view)
    for split, found in _of_splits(view, splits):
        topk = [metric.get('topk') or 1 for metric in found]
        best = max((max(k) if isinstance(k, (list, tuple)) else k for k in topk), default=1)
        if not found:
            yield error(split, 'there is no evaluator', "write dict(type='Accuracy', topk=(1, 5))")
        elif best > number:
            what = f'topk needs the best {best} classes, but the head has {number}'
            yield error(split, what, 'evaluation would fail: write topk=(1,)')
        else:
            yield ok(split, f'measured by {first_few(map(type_name, found))}')


def _of_splits(view: ConfigView, splits: tuple[str, ...]) -> Iterator[tuple[str, list[dict]]]:
    for split in splits:
        if split != 'train' and list(view.split(split).data_sets):
            yield split, view.split(split).evaluators


def _for_pycocotools(data: DetectionDataset) -> Iterator[Finding]:
    """Report annotations that lack what only evaluation needs."""
    entries = data.file.annotations
    without = [f'id {entry["id"]}' for entry in entries if 'iscrowd' not in entry]
    what, advice = 'annotations without iscrowd', 'evaluation fails: write "iscrowd": 0'
    yield from report_wrong(Severity.ERROR, data.name, without, len(entries), what, advice)
    if any(entry['id'] == 0 for entry in entries):
        what = 'one annotation has the id 0, which pycocotools takes for "not found"'
        advice = 'its object never counts as found: number annotations from 1'
        yield warning(data.name, what, advice)


_REMEDY = (
    'merge the files into one with distinct image ids, and use it for both, or measure each by '
    "itself with mmdet's MultiDatasetsEvaluator (docs/check.md)"
)
_TWICE = 'repeated predictions count as false'


class _Image(NamedTuple):
    """An image of an annotation file; None for what the file does not contain."""

    path: Path | None
    width: object = None
    height: object = None

    def may_be(self, other: '_Image') -> bool:
        """Whether another file may describe the same image, in any folder."""
        names = [image.path and image.path.name for image in (self, other)]
        pairs = (names, (self.width, other.width), (self.height, other.height))
        return all(None in pair or pair[0] == pair[1] for pair in pairs)


class _Part(NamedTuple):
    """A data set that is evaluated: its annotation file, and the images that it lists, by id."""

    file: Path
    images: dict[Id, _Image]
    data: DetectionDataset | None


def check_evaluated_files(
    data: Sequence[DetectionDataset], view: ConfigView, split: str
) -> Iterator[Finding]:
    """Compare what the metrics of a split read with the annotation files of its data sets.

    A metric that can read an annotation file finds images by their ids, which are only distinct
    within a file.

    Args:
        data: The data sets that were read.
        view: The config.
        split: 'val' or 'test'.
    """
    settings = view.split(split).dataset
    read = {identity(dataset.settings, False): dataset for dataset in data if not dataset.trains}
    metrics = view.split(split).evaluators
    where = f'{split}_evaluator'
    groups = [settings] * len(metrics)
    separate = view.split(split).separate_evaluator
    if separate is not None and 'dataset_prefixes' in separate:
        groups = settings.get('datasets') or [settings]
        counts = len(metrics), len(separate['dataset_prefixes']), len(groups)
        if len({*counts}) > 1:
            what = 'has {} metrics and {} dataset_prefixes for {} data sets'.format(*counts)
            yield error(where, what, 'write one of each for every part of a ConcatDataset')
            return
    found: list[Finding] = []
    for metric, group in zip(metrics, groups, strict=True):
        classes = classes_named(metric.get('type'), view.scope)
        if any('ann_file' in arguments_of(cls).parameters for cls in classes):
            found += _repeated(group, f'{split}_dataloader.dataset')
            parts = [_part(data_set, read) for data_set in unwrapped(group, view.scope)]
            found += _compare(where, metric, [part for part in parts if part is not None])
    yield from dict.fromkeys(found)


def _repeated(settings: Mapping, where: str) -> Iterator[Finding]:
    for path, wrapper in dicts_within(settings, where):
        times = wrapper.get('times', 1)
        if 'dataset' in wrapper and isinstance(times, int) and times > 1:
            what = f'evaluates each image {times} times'
            yield error(path, what, f'{_TWICE}: omit the wrapper')


def _part(data_set: DataSet, read: Mapping[str, DetectionDataset]) -> _Part | None:
    """Describe a data set; None if its images are unknown."""
    file = data_set.path(data_set.settings.get('ann_file'))
    if file is None or not file.exists():
        return None
    data = read.get(identity(data_set.settings, False))
    if data is not None and data.file is not None:
        listed = data.used if data.built is not None else data.file.images
        entries = {key: image for key, image in data.file.images.items() if key in listed}
    elif data_set.settings.get('indices') is not None:
        return None
    else:
        data, entries = None, _images_in(file)
    folder = data_set.path(data_set.prefixes.get('img') or '.') or Path()
    images = {key: _image(entry, folder) for key, entry in entries.items()}
    return _Part(file, images, data)


def _image(entry: Mapping, folder: Path) -> _Image:
    name = entry.get('file_name')
    path = folder / name if isinstance(name, str) else None
    return _Image(path, entry.get('width'), entry.get('height'))


def _images_in(file: Path) -> dict[Id, dict]:
    """The images of a file in COCO's format, or in a list of names; empty for all others."""
    try:
        if file.suffix == '.txt':
            # mmdet's data sets take the names in such a list as ids.
            return {name.strip(): {} for name in file.read_text(encoding='utf-8').splitlines()}
        return {image['id']: image for image in read_json(file)['images']}
    except (UserError, OSError, ValueError, TypeError, KeyError):
        return {}


def _compare(where: str, metric: Mapping, parts: Sequence[_Part]) -> Iterator[Finding]:
    """Compare the images that a metric knows with those that it gets predictions for."""
    file = local_path(metric.get('ann_file'))
    if not parts or (file is not None and not file.exists()):
        return
    found = list(_shared_ids(where, type_name(metric), parts))
    if file is not None and not found:
        found = list(_outside(f'{where}.ann_file', file, parts))
        if all(part.data for part in parts):
            found = found or [ok(where.partition('_')[0], f'measured on {file}')]
    yield from found


def _shared_ids(where: str, metric: str, parts: Sequence[_Part]) -> Iterator[Finding]:
    """Find ids of images that several data sets list."""
    known: dict[Id, tuple[_Part, _Image]] = {}
    for part in parts:
        if shared := [key for key in part.images if key in known]:
            first, image = known[shared[0]]
            ids = first_few(map(str, shared))
            files = ' and '.join(dict.fromkeys((str(first.file), str(part.file))))
            if first.file == part.file or image.path == part.images[shared[0]].path is not None:
                what = f'{counted(len(shared), "image")} of {files} are listed twice: {ids}'
                yield error(where, what, f'{_TWICE}: list each image once')
            else:
                what = (
                    f'{metric} finds images by their ids, but {counted(len(shared), "id")} belong '
                    f'to different images in {files}: {ids}'
                )
                yield error(where, what, f'images get the objects of others: {_REMEDY}')
        known |= {key: (part, image) for key, image in part.images.items()}


def _outside(where: str, file: Path, parts: Sequence[_Part]) -> Iterator[Finding]:
    """Compare the images in the file of a metric with those of its data sets."""
    others = [part for part in parts if part.file.resolve() != file.resolve()]
    if others and len(parts) == 1 and others[0].data:
        advice = 'predictions would be measured against other images: use the same file for both'
        yield error(where, f'is {file}, the data set reads {others[0].file}', advice)
        return
    known = _known_images(file, parts)
    for part in others if known else ():
        wrong = [
            str(key)
            for key, image in part.images.items()
            if key not in known or not image.may_be(known[key])
        ]
        if wrong:
            count = f'{len(wrong)} of the {len(part.images)} images of {part.file}'
            what = f'is {file}, which lacks {count}: {first_few(wrong)}'
            yield error(where, what, f'evaluation would fail: {_REMEDY}')
            return
    if rest := known.keys() - {key for part in parts for key in part.images}:
        what = f'{len(known) - len(rest)} of the {len(known)} images of {file} are loaded'
        advice = 'the others count as images without detections: use a file of these only'
        yield warning(where.removesuffix('_evaluator.ann_file'), what, advice)


def _known_images(file: Path, parts: Sequence[_Part]) -> dict[Id, _Image]:
    """The images in the file of a metric, by id; empty if they are unknown."""
    for part in parts:
        is_whole = part.data is not None and part.data.total == len(part.images)
        if is_whole and part.file.resolve() == file.resolve():
            return part.images
    return {key: _image(entry, Path()) for key, entry in _images_in(file).items()}
