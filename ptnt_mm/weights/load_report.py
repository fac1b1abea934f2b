"""The outcome for each weight when a checkpoint is loaded."""

from dataclasses import dataclass, field

from ptnt_mm.utils.text import first_few

Shapes = dict[str, tuple[tuple[int, ...], tuple[int, ...]]]
"""By key, the shape of a weight in the file and in the model."""


@dataclass
class LoadReport:
    """The outcome for each weight of a file and a model, by key; shapes are (file's, model's)."""

    loaded: list[str] = field(default_factory=list)  # copied unchanged
    resized: Shapes = field(default_factory=dict)  # position tables of other pretraining sizes
    unused: list[str] = field(default_factory=list)  # in the file but not in the model
    new: list[str] = field(default_factory=list)  # only in the model, and optional in a file
    missing: list[str] = field(default_factory=list)  # only in the model, but required
    mismatched: Shapes = field(default_factory=dict)  # of a shape that cannot be converted

    def table(self) -> str:
        """One line for each outcome that there is: how many keys, and the first few."""
        resized = [f'{key} {was} -> {now}' for key, (was, now) in self.resized.items()]
        named = dict(resized=resized, unused=self.unused, new=self.new, missing=self.missing)
        lines = [f'  {"loaded":<8}{len(self.loaded):>5}']
        for fate, keys in named.items():
            if keys:
                lines.append(f'  {fate:<8}{len(keys):>5}  {first_few(keys)}')
        return '\n'.join(lines)

    def problems(self) -> list[str]:
        """Reasons why the file does not fit, as predicates of a sentence; empty if it fits."""
        problems = []
        if self.missing:
            problems.append(f'lacks {len(self.missing)} weights: {first_few(self.missing)}')
        if self.mismatched:
            shapes = self.mismatched.items()
            differing = [f'{key} is {was}, the model has {now}' for key, (was, now) in shapes]
            problems.append(
                f'has {len(shapes)} weights of a different shape: {first_few(differing)}'
            )
        if norms := self._norms_without_statistics():
            problems.append(
                f'has statistics of BatchNorm for {first_few(norms)}, which are not BatchNorm '
                "layers: build the model with norm_cfg=dict(type='BN')"
            )
        return problems

    def _norms_without_statistics(self) -> list[str]:
        """Layers whose scale was loaded without the statistics that it belongs to."""
        parts = (key.rpartition('.') for key in self.unused)
        layers = [layer for layer, _, name in parts if name == 'running_mean']
        return [layer for layer in layers if f'{layer}.weight' in self.loaded]
