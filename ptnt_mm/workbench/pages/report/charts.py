"""Charts of a page, as Vega-Lite specifications: made with Altair, drawn by the browser."""

from collections.abc import Sequence
from itertools import islice
from typing import Any

import altair as alt
import vl_convert

from ptnt_mm.utils.colours import PALETTE, as_hex, more_colours

# For colour-blind readers, and for black and white prints.
_DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [1, 3], [10, 4])

_MOST_POINTS = 300
_MARKED_POINTS = 25
"""Lines with at most this many points get markers: a line of one point would be invisible."""

_ROWS = alt.NamedData('points')
"""Altair copies the data of a chart at every step, so charts get theirs at the end."""

_FONT = 'system-ui, sans-serif'
"""The font of the page. Vega measures labels in it, and reserves too little space in another."""


def line_colours(number: int) -> list[str]:
    """Return different colours, those with the most contrast to black and white first."""
    colours = [*(PALETTE[i] for i in (5, 4, 2, 3, 0, 1)), *islice(more_colours(), number)]
    return list(map(as_hex, colours[:number]))


def drawing_code() -> str:
    """Return the JavaScript that draws the charts: Vega, Vega-Lite and vegaEmbed, 0.9 MB."""
    # The minor version of the specifications, as '6.4'.
    version = '.'.join(alt.SCHEMA_VERSION.removeprefix('v').split('.')[:2])
    return vl_convert.javascript_bundle(vl_version=version)


def training_chart(rows: Sequence[dict], x: str, colours: dict[str, str]) -> dict[str, Any]:
    """Return a chart of curves over iterations or epochs.

    The page may replace ``smooth`` in its data set ``points`` and set its parameter ``smoothing``:
    above 0, the values themselves become faint.

    Args:
        rows: Points, each with ``x``, ``value`` and the ``name`` of its curve.
        x: The key of the horizontal axis, and its title.
        colours: The colour of each name, including names in other charts of the page.
    """
    names = _present(rows, colours)
    rows = [row for name in names for row in _thinned([r for r in rows if r['name'] == name])]
    rows = [dict(row, smooth=row['value']) for row in rows]
    steps = alt.X(shorthand=x, type='quantitative', axis=alt.Axis(tickCount=6, tickMinStep=1))
    lines = _lines(rows, steps, _axis(alt.Y, 'value', title=None), colours)
    smooth = lines.encode(y=_axis(alt.Y, 'smooth', title=None))
    raw = lines.mark_line(strokeWidth=2, opacity=alt.ExprRef('smoothing > 0 ? 0.25 : 1'))
    smooth = smooth.mark_line(strokeWidth=2, opacity=alt.ExprRef('smoothing > 0 ? 1 : 0'))
    marked = len(rows) <= _MARKED_POINTS * len(names)
    # Large, and transparent where there are many: easy to hit with a finger.
    points = lines.mark_point(size=60, filled=True, opacity=int(marked))
    chart = alt.layer(raw, smooth, points).add_params(alt.param(name='smoothing', value=0))
    return _finished(chart, rows, 220)


def choice_chart(
    rows: Sequence[dict], x: str, y: str, choice: str, colours: dict[str, str]
) -> dict[str, Any]:
    """Return a chart of lines between 0 and 1, with a menu that selects which ones are shown.

    Args:
        rows: Points, each with ``x``, ``y``, ``choice`` and the ``name`` of its line.
        x: The key of the horizontal axis, and its title.
        y: The key of the vertical axis, and its title.
        choice: The key that the menu selects by; the menu starts with the first row's.
        colours: As for :func:`training_chart`.
    """
    unit = dict(scale=alt.Scale(domain=[0, 1]))
    lines = _lines(rows, _axis(alt.X, x, **unit), _axis(alt.Y, y, **unit), colours)
    chart = alt.layer(lines.mark_line(strokeWidth=2), lines.mark_point(size=60, opacity=0))
    options = list(dict.fromkeys(row[choice] for row in rows))
    menu = alt.binding_select(options=options, name=f'{choice} ')
    chosen = alt.selection_point(fields=[choice], bind=menu, value=options[0])
    return _finished(chart.transform_filter(chosen).add_params(chosen), rows, 300)


def bar_chart(rows: Sequence[dict], x: str, y: str, colours: dict[str, str]) -> dict[str, Any]:
    """Return a chart of horizontal bars, those of the same ``y`` side by side.

    Args:
        rows: Bars, each with ``x``, ``y`` and the ``name`` of its run.
        x: The key of the bar's length, which may be None.
        y: The key of the label, in the order of the rows.
        colours: As for :func:`training_chart`.
    """
    names = _present(rows, colours)
    order = list(dict.fromkeys(row[y] for row in rows))
    bars = alt.Chart(_ROWS).mark_bar()
    bars = bars.encode(
        x=_axis(alt.X, x),
        y=alt.Y(y, type='nominal', title=None, sort=order, axis=alt.Axis(labelLimit=200)),
        yOffset=alt.YOffset('name:N', sort=names),
        color=_by_name(alt.Color, names, [colours[name] for name in names], 'square'),
        tooltip=[f'{y}:N', 'name:N', alt.Tooltip(x, type='quantitative', format='.3f')],
    )
    rows = [{key: row[key] for key in ('name', x, y)} for row in rows]
    return _finished(bars, rows, len(order) * (12 + 14 * len(names)))


def _lines(rows: Sequence[dict], x: alt.X, y: alt.Y, colours: dict[str, str]) -> alt.Chart:
    """Encode rows as lines, one for each name."""
    names, places = _present(rows, colours), list(colours)
    dashes = [_DASHES[places.index(name) % len(_DASHES)] for name in names]
    return alt.Chart(_ROWS).encode(
        x=x,
        y=y,
        color=_by_name(alt.Color, names, [colours[name] for name in names], 'stroke'),
        strokeDash=_by_name(alt.StrokeDash, names, dashes, 'stroke'),
        tooltip=[
            'name:N',
            f'{x.shorthand}:Q',
            alt.Tooltip(y.shorthand, type='quantitative', format='.4~g'),
        ],
    )


def _axis(channel: type, key: str, **options: Any) -> Any:
    return channel(shorthand=key, type='quantitative', axis=alt.Axis(tickCount=6), **options)


def _by_name(channel: type, names: Sequence[str], values: Sequence, symbol: str) -> Any:
    scale = alt.Scale(domain=list(names), range=list(values))
    legend = alt.Legend(symbolType=symbol) if len(names) > 1 else None
    return channel('name:N', scale=scale, legend=legend)


def _present(rows: Sequence[dict], colours: dict[str, str]) -> list[str]:
    """Return the names that have rows, in the order of ``colours``."""
    present = {row['name'] for row in rows}
    return [name for name in colours if name in present]


def _finished(
    chart: alt.Chart | alt.LayerChart, rows: Sequence[dict], height: int
) -> dict[str, Any]:
    """Fill the available width; the page's style sheet colours text, axes and grid."""
    text = dict(labelFontSize=12, titleFontSize=12, titleFontWeight='normal')
    legend = dict(orient='bottom', title=None, columns=2, labelLimit=240, offset=6)
    chart = chart.properties(width='container', height=height)
    chart = chart.configure(background='transparent', font=_FONT).configure_view(stroke=None)
    chart = chart.configure_axis(**text).configure_legend(**legend, labelFontSize=12)
    return chart.to_dict() | dict(data=dict(_ROWS.to_dict(), values=list(rows)))


def _thinned(line: Sequence[dict]) -> Sequence[dict]:
    """Reduce a line's points evenly to what a screen can show; the last one stays."""
    return line[::-1][:: -(-len(line) // _MOST_POINTS)][::-1]
