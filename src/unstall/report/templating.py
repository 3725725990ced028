"""Documents from templates: what a template may call, and what happens to every string that it shows.

Names, paths and source lines come from programs that unstall does not control. The environment makes each of them safe
where it is shown, so no template has to remember to.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from unstall.report import experiment_phrases, promise, run_phrases, wording
from unstall.text import units

if TYPE_CHECKING:
    from jinja2 import Environment


class Markup(str):
    """Text that is in the document's format already."""

    __slots__ = ()

    def __html__(self) -> str:
        return self


def environment(package: str, safe: Callable[[str], str]) -> Environment:
    """The templates of a package.

    Args:
        package: in whose folder ``templates`` they are.
        safe: applied to every string that a template shows, unless it is :class:`Markup`. What it returns is
            escaped for HTML, unless that is.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    def shown(value: Any) -> Any:
        if value is None:
            return ""
        return value if hasattr(value, "__html__") else safe(str(value))

    environment = Environment(
        loader=PackageLoader(package),
        autoescape=True,
        finalize=shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"known": _known, "thousands": "{:,}".format}
    environment.globals |= {
        "experiment_phrases": experiment_phrases,
        "promise": promise,
        "run_phrases": run_phrases,
        "units": units,
        "wording": wording,
    }
    return environment


def _known(figure: float | None, written: Callable[[float], str]) -> str:
    """The figure as ``written`` writes it, and nothing where it was not measured."""
    return written(figure) if units.known(figure) else ""
