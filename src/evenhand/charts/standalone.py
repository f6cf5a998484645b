"""A chart that stands alone: with its theme, title and width, as a file or in a notebook."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any, overload

from evenhand.charts.base import Chart
from evenhand.charts.theme import COLOURS, config
from evenhand.errors import EvenhandError, SpecError, need
from evenhand.writing import write_bytes

WIDTH = 640
LABELS = 420
VEGA_LITE = "6.4"
MIME = "application/vnd.vegalite.v5+json"
"""What notebooks draw by themselves."""
FORMS = ("svg", "png", "pdf")


def standalone(chart: Chart, mode: str = "light") -> dict[str, Any]:
    """The chart's specification with its theme, title and a fixed width."""
    background = COLOURS[mode]["page"]
    spec = json.loads(json.dumps(chart.spec))
    for layer in [spec, *spec.get("layer", [])]:
        axis = layer.get("encoding", {}).get("y", {}).get("axis") or {}
        if "labelLimit" in axis:
            axis["labelLimit"] = LABELS
    return {
        **spec,
        "title": {"text": chart.title, "anchor": "start"},
        "width": WIDTH,
        "autosize": {"type": "pad"},
        "background": background,
        "config": {**config(mode), "background": background},
    }


def draw(spec: dict[str, Any], form: str) -> bytes:
    """One chart as `svg`, `png` or `pdf`."""
    convert = need("vl_convert", extra="report", what="drawing figures")
    text = json.dumps(spec)
    if form == "svg":
        return str(convert.vegalite_to_svg(text, vl_version=VEGA_LITE)).encode()
    if form == "png":
        return bytes(convert.vegalite_to_png(text, vl_version=VEGA_LITE, scale=2))
    return bytes(convert.vegalite_to_pdf(text, vl_version=VEGA_LITE))


@dataclass(frozen=True, repr=False)
class Plot:
    """A chart in a notebook: drawn where it is the last value of a cell.

    `spec` is plain Vega-Lite (`altair.Chart.from_dict(plot.spec)`); `save` writes it.
    """

    chart: Chart
    label: str = ""
    mode: str = "light"

    @property
    def title(self) -> str:
        return self.chart.title

    @property
    def caption(self) -> str:
        """How to read it, and what it says."""
        return self.chart.caption

    @property
    def spec(self) -> dict[str, Any]:
        return standalone(self.chart, self.mode)

    def save(self, path: str | Path) -> Path:
        """Write it as .svg, .png, .pdf or Vega-Lite (.json)."""
        place = Path(path)
        form = place.suffix.lstrip(".").lower()
        if form not in (*FORMS, "json"):
            raise SpecError(f"{path}: expected a name that ends in .svg, .png, .pdf or .json.")
        made = json.dumps(self.spec, indent=1).encode() if form == "json" else draw(self.spec, form)
        write_bytes(place, made)
        return place

    def __repr__(self) -> str:
        return f"Plot {self.title!r} of {self.label}"

    def _repr_html_(self) -> str:
        """The drawing where it can be drawn here, else its words and numbers."""
        head = f"<figure style='margin:0'><figcaption>{escape(self.caption)}</figcaption>"
        try:
            return f"{head}{draw(self.spec, 'svg').decode()}</figure>"
        except EvenhandError:
            rows = [[row.get(c, "") for c in self.chart.shown_columns] for row in self.chart.rows]
            cells = "".join(f"<tr>{_cells(row, 'td')}</tr>" for row in rows)
            heads = _cells(self.chart.shown_columns, "th")
            return f"{head}<table><tr>{heads}</tr>{cells}</table></figure>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        told = {"text/plain": f"{self.title}. {self.caption}", "text/html": self._repr_html_()}
        return {**told, MIME: self.spec}


def _cells(row: Sequence[Any], tag: str) -> str:
    return "".join(f"<{tag}>{escape(str(value))}</{tag}>" for value in row)


@dataclass(frozen=True, repr=False)
class Plots(Sequence[Plot]):
    """Several charts, one below the other."""

    plots: tuple[Plot, ...]

    @overload
    def __getitem__(self, place: int) -> Plot: ...
    @overload
    def __getitem__(self, place: slice) -> Plots: ...
    def __getitem__(self, place: int | slice) -> Plot | Plots:
        return Plots(self.plots[place]) if isinstance(place, slice) else self.plots[place]

    def __len__(self) -> int:
        return len(self.plots)

    def __iter__(self) -> Iterator[Plot]:
        return iter(self.plots)

    def save(self, path: str | Path) -> list[Path]:
        """Write each as .svg, .png, .pdf or .json; several are numbered (`a-1.svg`, `a-2.svg`)."""
        place = Path(path)
        if len(self) == 1:
            return [self[0].save(place)]
        names = (place.with_stem(f"{place.stem}-{k}") for k in range(1, len(self) + 1))
        return [plot.save(name) for plot, name in zip(self, names)]

    def __repr__(self) -> str:
        return "\n".join(map(repr, self))

    def _repr_html_(self) -> str:
        return "\n".join(plot._repr_html_() for plot in self.plots)
