"""Data sets that list their images when the host builds them, for segmenters and classifiers."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mmengine.config import Config

from ptnt_mm.check.class_names import faults_of_names
from ptnt_mm.check.data_sets import Data, ImageFile, as_names, evenly_spread, find_data_sets
from ptnt_mm.engine.config import explain_build_error, kind_of
from ptnt_mm.utils.findings import Finding, Severity, error, note, ok


@dataclass
class ListedData(Data):
    """A data set, the classes in use, and its list.

    Attributes:
        refusal: Why it could not be built or read its list; empty if it could.
    """

    refusal: str = ''

    BASE = ''  # the name of the host's class that lists images
    LISTS = ''  # a description of its list

    @property
    def is_left_out(self) -> bool:
        """Whether the host's list was not used."""
        return self.built is None and not self.refusal

    @property
    def missing(self) -> list[Path]:
        """Missing files and folders that its list is made from."""
        paths = (self.built.ann_file, self.built.data_prefix.get('img_path'))
        return [Path(path) for path in paths if path and not Path(path).exists()]

    def why_not_listed(self) -> str:
        """Why the host's list is not used; empty if it is."""
        if not self.is_a(self.BASE):
            return f'{kind_of(self.settings)} is not a {self.BASE}'
        root = str(self.settings.get('data_root'))
        return 'is not local' if self.settings.get('backend_args') or '://' in root else ''

    def list_images(self) -> None:
        """Let the host list its images, or record why it does not."""
        try:
            self.build()
            if not self.missing:
                self.built.full_init()
        except Exception as err:  # constructors may raise anything
            self.refusal = explain_build_error(err)
            return
        # The data set's class may define the names.
        self.classes = as_names(self.built.metainfo.get('classes')) or self.classes
        self.few = evenly_spread(self.built.data_list)
        for entry in self.built.data_list:
            mask = entry.get('seg_map_path')
            mask = None if mask is None else Path(mask)
            self.images.append(ImageFile(Path(entry['img_path']), mask=mask))

    def why_empty(self) -> tuple[str, str]:
        """Why its list is empty, and what to do."""
        if (indices := self.settings.get('indices')) is not None:
            return f'indices={indices} leaves no image', 'give others, or none'
        return f'{self.built.ann_file} names no image', 'write a name on each line'


def list_images(
    kind: type[ListedData], config: Config, splits: tuple[str, ...]
) -> tuple[list[Any], list[Finding]]:
    """Let the host, already imported, list the images of the data sets in some splits.

    Returns:
        The data sets as a ``kind``, without duplicates; and notes about those left out.
    """
    data, findings = find_data_sets(kind, config, splits)
    for dataset in data:
        if reason := dataset.why_not_listed():
            findings.append(note(dataset.name, f'{reason}: its {kind.LISTS} were not checked'))
        else:
            dataset.list_images()
    return data, findings


def check_list(data: ListedData) -> Iterator[Finding]:
    """Report the number of images that the host lists for a data set, or why there are none."""
    if data.refusal:
        # Other checks report missing files and wrong class names.
        there = all(path.exists() for path in data.data_set.paths())
        if there and not any(fault.severity is Severity.ERROR for fault in faults_of_names(data)):
            yield error(data.name, f'the data set cannot be built: {data.refusal}')
    elif data.images:
        yield ok(data.name, f'{len(data.images)} images')
    elif not data.missing:
        yield error(data.name, *data.why_empty())
    else:
        # Another check reports those in the config; some classes define theirs.
        for path in sorted({*data.missing} - {*data.data_set.paths()}):
            yield error(data.name, f'{path} is not there')
