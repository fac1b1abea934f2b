"""Read the nested settings of a config."""

from collections.abc import Iterator, Mapping


def type_name(settings: Mapping) -> str:
    """The class name in settings, without its scope; empty if there is none."""
    kind = settings.get('type') or ''
    return getattr(kind, '__name__', str(kind)).rpartition('.')[2]


def dicts_within(settings: object, path: str) -> Iterator[tuple[str, Mapping]]:
    """Yield settings and all dicts inside them, each with its path, such as 'model.neck[0]'."""
    if isinstance(settings, Mapping):
        yield path, settings
        for key, value in settings.items():
            yield from dicts_within(value, f'{path}.{key}')
    elif isinstance(settings, (list, tuple)):
        for i, value in enumerate(settings):
            yield from dicts_within(value, f'{path}[{i}]')


def flat_settings(settings: dict, prefix: str = '') -> dict[str, str]:
    """The repr of each value of settings by its dotted key; a list is one value."""
    flat = {}
    for key, value in settings.items():
        if isinstance(value, dict) and value:
            flat.update(flat_settings(value, f'{prefix}{key}.'))
        else:
            flat[f'{prefix}{key}'] = repr(value)
    return flat
