"""HTML pages: single files that embed their pictures and load nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from homing.bench.results.document import Results
from homing.bench.results.figures import Drawing
from homing.imaging import embed, render_page

_TAG = re.compile(r"<[^>]*>")
_ID = re.compile(r'( id="|url\(#|href="#)')


def page(results: Results, document: Mapping[str, object], drawings: Mapping[str, Drawing]) -> bytes:
    """The page of a bench, from its results, its JSON document, and its rendered figures by name."""
    values = {
        "results": results,
        "drawings": {name: _inline(name, drawing.svg) for name, drawing in drawings.items()},
        "rows": [
            (row.caption, {name: embed(picture) for name, picture in row.pictures.items()}) for row in results.pictures
        ],
        "metadata": dict(_metadata(document)),
        "failures": document.get("failures", ()),
    }
    return render("results.html", values)


def render(template: str, values: Mapping[str, object]) -> bytes:
    """Fill in a template of the benches; values are escaped unless the template marks them safe."""
    return render_page(template, values, "homing.bench")


def _inline(name: str, svg: str) -> str:
    """An SVG for embedding: ids get a prefix, as they must be unique in the page."""
    inner = svg[svg.index("<svg") :]
    return _TAG.sub(lambda tag: _ID.sub(rf"\g<1>{name}-", tag[0]), inner)


def _metadata(document: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Settings, versions and hardware as text."""
    settings = document.get("settings", {})
    assert isinstance(settings, Mapping)
    for name, value in {**settings, "versions": document["versions"], "hardware": document["hardware"]}.items():
        yield str(name).replace("_", " "), _as_text(value)


def _as_text(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_as_text(each)}" for name, each in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(_as_text(each) for each in value)
    return "none" if value is None else str(value)
