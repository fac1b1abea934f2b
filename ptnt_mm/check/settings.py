"""Finding one's way through the nested settings of a config."""

from collections.abc import Iterator, Mapping

from mmengine.config import Config


def within(settings: object, path: str) -> Iterator[tuple[str, Mapping]]:
    """All dicts inside of settings, themselves first, each with its path in the config.

    Args:
        settings: A dict, a list or anything else.
        path: Where they are, such as 'model'; inner paths are like 'model.neck[0]'.
    """
    if isinstance(settings, Mapping):
        yield path, settings
        for key, value in settings.items():
            yield from within(value, f'{path}.{key}')
    elif isinstance(settings, (list, tuple)):
        for i, value in enumerate(settings):
            yield from within(value, f'{path}[{i}]')


def preprocessor_of(config: Config) -> Mapping:
    """The settings of a model's preprocessor of images; none if the config has none."""
    return config.model.get('data_preprocessor') or config.get('data_preprocessor') or {}
