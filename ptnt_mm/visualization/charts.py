"""Charts of a page, as specifications of Vega-Lite: made with Altair, drawn by the browser."""

from collections.abc import Sequence
from typing import Any

import altair as alt
import vl_convert

from ptnt_mm.utils.colours import PALETTE

LINES = tuple('#{:02x}{:02x}{:02x}'.format(*PALETTE[i]) for i in (5, 4, 2, 3, 0, 1))
"""Colours of lines and bars, those with the most contrast to white and to black first."""

# For those who cannot tell the colours apart, and for paper without any.
_DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [1, 3], [10, 4])

_MOST_POINTS = 300
_MARKED_POINTS = 25
"""Points of a line are marked if they are not more: a line of one would be invisible."""


def drawing_code() -> str:
    """The JavaScript that draws the charts: Vega, Vega-Lite and vegaEmbed in one, 0.9 MB."""
    # The minor version of the specifications, as '6.4'.
    version = '.'.join(alt.SCHEMA_VERSION.removeprefix('v').split('.')[:2])
    return vl_convert.javascript_bundle(vl_version=version)


def line_chart(
    rows: Sequence[dict],
    x: str,
    y: str,
    series: Sequence[str],
    choice: str = '',
    colours: Sequence[str] = LINES,
) -> dict[str, Any]:
    """Lines in a specification of Vega-Lite.

    Args:
        rows: Points, each with ``x``, ``y``, the ``name`` of its line and, if there is one, the
            value of ``choice``.
        x: The key of the horizontal axis, and its title.
        y: That of the vertical axis.
        series: The names that there are, also in other charts: it gives them their colours.
        choice: The key of what the reader chooses to see; axes are then from 0 to 1.
        colours: Of the series, in their order; where there are more, colours repeat.
    """
    names = [name for name in series if any(row['name'] == name for row in rows)]
    if not choice:
        rows = [row for name in names for row in _thinned([r for r in rows if r['name'] == name])]
    unit = dict(scale=alt.Scale(domain=[0, 1])) if choice else dict(title=None)
    lines = alt.Chart(alt.Data(values=list(rows))).encode(
        x=alt.X(x, type='quantitative', axis=alt.Axis(tickCount=6), **(unit if choice else {})),
        y=alt.Y(y, type='quantitative', axis=alt.Axis(tickCount=5), **unit),
        color=_by_name(alt.Color, colours, names, series, 'stroke'),
        strokeDash=_by_name(alt.StrokeDash, _DASHES, names, series, 'stroke'),
        tooltip=['name:N', f'{x}:Q', alt.Tooltip(y, type='quantitative', format='.4~g')],
    )
    marked = not choice and len(rows) <= _MARKED_POINTS * len(names)
    # Large, and transparent where there are many: easy to hit with a finger.
    points = lines.mark_point(size=60, filled=True, opacity=int(marked))
    chart = alt.layer(lines.mark_line(strokeWidth=2), points)
    if choice:
        options = list(dict.fromkeys(row[choice] for row in rows))
        menu = alt.binding_select(options=options, name=f'{choice} ')
        chosen = alt.selection_point(fields=[choice], bind=menu, value=options[0])
        chart = chart.transform_filter(chosen).add_params(chosen)
    return _finished(chart, 300 if choice else 220)


def bar_chart(rows: Sequence[dict], x: str, y: str, series: Sequence[str]) -> dict[str, Any]:
    """Bars side by side in a specification of Vega-Lite.

    Args:
        rows: Bars, each with ``x``, ``y`` and the ``name`` of its run.
        x: The key of the figure, which may be None.
        y: The key of what it is the figure of, in the order of the rows.
        series: As for :func:`line_chart`.
    """
    names = [name for name in series if any(row['name'] == name for row in rows)]
    order = list(dict.fromkeys(row[y] for row in rows))
    bars = alt.Chart(alt.Data(values=[{key: row[key] for key in ('name', x, y)} for row in rows]))
    bars = bars.mark_bar().encode(
        x=alt.X(x, type='quantitative', axis=alt.Axis(tickCount=6)),
        y=alt.Y(y, type='nominal', title=None, sort=order),
        yOffset=alt.YOffset('name:N', sort=names),
        color=_by_name(alt.Color, LINES, names, series, 'square'),
        tooltip=[f'{y}:N', 'name:N', alt.Tooltip(x, type='quantitative', format='.3f')],
    )
    return _finished(bars, len(order) * (12 + 14 * len(names)))


def _by_name(
    channel: type, values: Sequence, names: Sequence[str], series: Sequence[str], symbol: str
) -> Any:
    """What tells lines or bars apart, of which there are so many values, and its legend."""
    places = [series.index(name) % len(values) for name in names]
    scale = alt.Scale(domain=list(names), range=[values[place] for place in places])
    legend = alt.Legend(symbolType=symbol) if len(names) > 1 else None
    return channel('name:N', scale=scale, legend=legend)


def _finished(chart: alt.Chart | alt.LayerChart, height: int) -> dict[str, Any]:
    """As wide as its place on the page, which also has the colours of text, axes and grid."""
    text = dict(labelFontSize=12, titleFontSize=12, titleFontWeight='normal')
    legend = dict(orient='bottom', title=None, columns=2, labelLimit=240, offset=6)
    chart = chart.properties(width='container', height=height)
    chart = chart.configure(background='transparent').configure_view(stroke=None)
    return chart.configure_axis(**text).configure_legend(**legend, labelFontSize=12).to_dict()


def _thinned(line: Sequence[dict]) -> Sequence[dict]:
    """A line's points, evenly reduced to what a screen can show; the last one stays."""
    return line[::-1][:: -(-len(line) // _MOST_POINTS)][::-1]
