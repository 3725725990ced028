"""The base of every exporter, and what can be exported.

An exporter is one file in this package with a constant ``EXPORTER``, or an entry point ``unstall.exporters`` of another
package. It imports its library when it is used, not before.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias

Kind = Literal["report", "archive", "timeline", "spans"]
"""A run's figures; the figures with every step; the events of a GPU trace; the spans of a run that has just ended."""

Span: TypeAlias = tuple[str, str, float, float, int, int]
"""Name, category, start (s, monotonic), duration (s), process id, thread id."""


@dataclass(frozen=True)
class Spans:
    """The spans of a recorded run."""

    processes: Mapping[int, str]
    """A name to show for each process id."""
    spans: Iterable[Span]
    """The spans in any order; read once, never held together in memory."""


class ExportError(RuntimeError):
    """The export failed; the message is one line for the user."""


class Exporter(ABC):
    """One format or service. A new one sets the first four attributes and gives ``export``."""

    name: ClassVar[str]
    """The option of ``unstall export`` without its dashes: ``csv``."""
    help: ClassVar[str]
    """Says what it writes, in one line for ``--help``."""
    metavar: ClassVar[str]
    """What its option takes: ``FILE``, ``FOLDER``, ``URL``."""
    takes: ClassVar[tuple[Kind, ...]]
    """The kinds that it can export, the one that it prefers first."""
    extra: ClassVar[str] = ""
    """The extra of unstall that installs the libraries it imports; empty where it needs none."""
    flags: ClassVar[Mapping[str, str]] = {}
    """Further switches of ``unstall export`` that only this exporter knows: name without dashes, help."""

    @abstractmethod
    def export(self, source: Any, target: str, flags: frozenset[str] = frozenset()) -> None:
        """Write or send it.

        Args:
            source: a Report, Archive, Timeline or :class:`Spans`, of a kind that ``takes`` names.
            target: as typed: a path, an address, a project.
            flags: those of ``flags`` that were given.

        Raises:
            ExportError: the target does not take it; the message is one line.
            ImportError: its library is not installed.
            OSError: the file cannot be written.
        """
