"""Settings of the site: `make docs` builds docs/ into site/ with Sphinx, MyST and furo."""

import re
from dataclasses import is_dataclass
from importlib import metadata

from homing._options import options_of

project = "homing"
author = "The homing maintainers"
copyright = "the homing maintainers"
release = metadata.version("homing")

extensions = ["myst_parser", "sphinx.ext.autodoc"]
html_theme = "furo"
html_title = f"homing {release}"

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4

autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_class_signature = "mixed"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
# In docstrings `name` is code, as in Markdown.
default_role = "literal"

INDENTED = re.compile(r"^( {4,}|\t)\S")
CODE_SPAN = re.compile(r"(`[^`]*`)")


def markdown_to_rst(_app, _what, _name, obj, _options, lines):
    """Mark indented blocks of a docstring as code, and escape what reStructuredText would read as markup.

    Settings get the explanations that the command line has for them.
    """
    if isinstance(obj, type) and is_dataclass(obj) and (settings := options_of(obj)):
        lines += [*(f":param {name}: {option.help}" for name, option in settings.items()), ""]
    converted: list[str] = []
    in_code = False
    for line in lines:
        if INDENTED.match(line):
            if not in_code and not (converted and converted[-1] == "" and len(converted) > 1):
                converted.append("")
            if not in_code:
                converted += ["::", ""]
            in_code = True
            converted.append(line)
            continue
        if line.strip():
            if in_code and converted[-1] != "":
                converted.append("")
            in_code = False
            parts = CODE_SPAN.split(line)
            line = "".join(
                part if part.startswith("`") else re.sub(r"([*|]|(?<=\w)_(?=\W|$))", r"\\\1", part) for part in parts
            )
        converted.append(line)
    lines[:] = converted


def setup(app):
    """Register the conversion of docstrings."""
    app.connect("autodoc-process-docstring", markdown_to_rst, priority=400)
