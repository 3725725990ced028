"""HTML and JSON that cannot be broken out of: every string is text, unless it is :class:`Markup`."""

from __future__ import annotations

import json
import math
from functools import cache
from typing import TYPE_CHECKING, Any

from unstall.report import templating
from unstall.report.templating import Markup
from unstall.text.sanitize import sanitize_line

if TYPE_CHECKING:
    from jinja2 import Environment


def render(template: str, **context: Any) -> Markup:
    """The template of this name, filled in.

    Args:
        template: a file in ``templates``.
        context: what it shows; strings are text, unless they are :class:`Markup`.
    """
    return Markup(environment().get_template(template).render(context))


@cache
def environment() -> Environment:
    """The templates of the page; every string that they show is on one line and without control characters."""
    environment = templating.environment(__package__, safe=sanitize_line)
    environment.filters |= {"bounded": _bounded, "permille": _permille}
    return environment


def json_block(data: Any) -> Markup:
    """JSON that may stand inside a ``<script>``: no character of it can end the element.

    Figures that JSON does not know, NaN and infinities, become null; strings lose their control characters.
    """
    written = json.dumps(_representable(data), allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        written = written.replace(character, f"\\u{ord(character):04x}")
    return Markup(written)


def _bounded(share: float) -> float:
    return min(max(share, 0.0), 1.0)


def _permille(share: float) -> int:
    """A share (0..1) as it stands in the classes ``w-`` and ``x-``, for each of which the page gets a rule."""
    return round(1000 * _bounded(share))


def _representable(data: Any) -> Any:
    """``data`` with only what JSON knows in it."""
    if isinstance(data, float):
        return data if math.isfinite(data) else None
    if isinstance(data, str):
        return data if data.isprintable() else sanitize_line(data)
    if isinstance(data, dict):
        return {sanitize_line(str(key)): _representable(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [_representable(value) for value in data]
    return data
