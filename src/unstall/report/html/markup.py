"""HTML that cannot be broken out of: every string is text until it is made an element here.

Names, paths and source lines come from programs that unstall does not control. Whatever is not :class:`Markup` is
stripped of control characters and escaped, so no section has to remember to.
"""

from __future__ import annotations

import html
import json
import math
from functools import cache
from typing import TYPE_CHECKING, Any

from unstall.text.sanitize import plain

if TYPE_CHECKING:
    from jinja2 import Environment

_VOID = frozenset(("br", "hr", "input", "meta", "col"))


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()

    def __html__(self) -> str:
        return self


def render(template: str, **context: Any) -> Markup:
    """The template of this name with these values; what is not :class:`Markup` is stripped and escaped."""
    return Markup(environment().get_template(template).render(context))


@cache
def environment() -> Environment:
    """Where the templates come from, what they may call, and what happens to every string that they show."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    from unstall.report import wording
    from unstall.text import units

    made = Environment(
        loader=PackageLoader(__package__),
        autoescape=True,
        finalize=_shown_as_text,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"bounded": _bounded, "permille": _permille, "thousands": "{:,}".format}
    made.globals |= {"units": units, "wording": wording}
    return made


def _shown_as_text(value: Any) -> Any:
    """What a template is about to show: on one line and without control characters, unless it is markup."""
    if value is None or hasattr(value, "__html__"):
        return "" if value is None else value
    return plain(str(value))


def _permille(share: float) -> int:
    """A share (0..1) as the classes ``w-`` and ``x-`` name it: the page makes a rule of each it finds."""
    return round(1000 * _bounded(share))


def _bounded(share: float) -> float:
    return min(max(share, 0.0), 1.0)


def el(tag: str, *children: Any, **attributes: Any) -> Markup:
    """An element; children are text unless they are markup, and None is none.

    Attributes are named as in HTML, with a final underscore where Python has the word (``class_``, ``for_``) and an
    underscore for a hyphen; True is a bare one, None and False leave it out.
    """
    written = "".join(_attribute(name, value) for name, value in attributes.items())
    if tag in _VOID:
        return Markup(f"<{tag}{written}>")
    return Markup(f"<{tag}{written}>{join(*children)}</{tag}>")


def join(*children: Any) -> Markup:
    """Children in a row, text escaped; lists are taken apart."""
    parts = []
    for child in children:
        if isinstance(child, Markup):
            parts.append(str(child))
        elif isinstance(child, (list, tuple)):
            parts.append(join(*child))
        elif child is not None:
            parts.append(text(str(child)))
    return Markup("".join(parts))


def text(string: str) -> Markup:
    """``string`` as characters on one line: no escapes, no markup. Spaces at its ends stay, one each."""
    before, after = (" " if string[:1].isspace() else ""), (" " if string[-1:].isspace() else "")
    return Markup(html.escape(f"{before}{plain(string)}{after}"))


def json_block(data: Any) -> Markup:
    """JSON that may stand inside a ``<script>``: no character of it can end the element.

    Figures that JSON does not know, NaN and infinities, become null; strings lose their control characters.
    """
    written = json.dumps(_shown(data), allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        written = written.replace(character, f"\\u{ord(character):04x}")
    return Markup(written)


def _attribute(name: str, value: Any) -> str:
    name = name.rstrip("_").replace("_", "-")
    if value is None or value is False:
        return ""
    return f" {name}" if value is True else f' {name}="{html.escape(plain(str(value)))}"'


def _shown(data: Any) -> Any:
    if isinstance(data, float):
        return data if math.isfinite(data) else None
    if isinstance(data, str):
        return data if data.isprintable() else plain(data)
    if isinstance(data, dict):
        return {plain(str(key)): _shown(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [_shown(value) for value in data]
    return data
