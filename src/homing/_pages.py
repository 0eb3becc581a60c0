"""HTML pages, each one file that loads nothing else."""

from __future__ import annotations

from collections.abc import Mapping

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined


def render(template: str, values: Mapping[str, object], package: str = "homing") -> bytes:
    """Fill in a template of a package, or of homing itself; values are escaped unless the template marks them safe."""
    templates = Environment(
        loader=ChoiceLoader([PackageLoader(name) for name in dict.fromkeys((package, "homing"))]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    return templates.get_template(template).render(values).encode(errors="replace")
