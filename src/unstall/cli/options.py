"""The options that mean the same in every verb, each defined once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial, wraps
from pathlib import Path
from typing import Any, TypeAlias

import click

from unstall import environment
from unstall.cli.outputs import Outputs
from unstall.cli.parsers import TIME
from unstall.runs.workplace import SandboxChoice

Verb: TypeAlias = Callable[..., Any]

_WIDTH = 80
_SETTINGS: dict[str, Any] = {"max_content_width": _WIDTH, "help_option_names": ["--help", "-h"], "show_default": True}

command = partial(click.command, context_settings=_SETTINGS)
"""A verb."""


def program_command(name: str, **attributes: Any) -> Callable[[Verb], click.Command]:
    """A verb that runs the user's program: what follows the program's name is not ours."""
    settings = {**_SETTINGS, "allow_interspersed_args": False, "ignore_unknown_options": True}
    epilog = "PROGRAM is a script, `-m MODULE`, or, after `--`, any command (torchrun ...)."

    def decorate(verb: Verb) -> click.Command:
        argument = click.argument("words", metavar="PROGRAM [ARGS]...", nargs=-1, type=click.UNPROCESSED)
        return click.command(name, context_settings=settings, epilog=epilog, **attributes)(argument(verb))

    return decorate


RUN = "RUN is a run's id, its beginning or end, `last`, a folder or a file."
"""What a verb that takes a recorded run says below its options."""


class ListingOption(click.Option):
    """An option whose help lists what plug-ins offer, which is looked up only when the help is shown.

    Args:
        names: makes the list; it takes the place of ``{}`` in the help.
    """

    def __init__(self, *args: Any, names: Callable[[], Iterable[str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._names = names
        self._template = self.help or ""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        self.help = self._template.format(", ".join(self._names()))
        return super().get_help_record(ctx)


def file(*names: str, help: str) -> Callable[[Verb], Verb]:
    """An option that takes a file's path."""
    return click.option(*names, type=click.Path(path_type=Path), metavar="FILE", help=help)


def budget(default: str) -> Callable[[Verb], Verb]:
    """``--budget``: the time that the verb may take for its measurements, as seconds."""
    return click.option("--budget", type=TIME, default=default, help="Time to spend on measuring: 30s, 5m, 1h.")


def ledger(verb: Verb) -> Verb:
    """``--ledger``: where the history of runs is."""
    return click.option(
        "--ledger",
        metavar="FILE|URL",
        envvar=environment.LEDGER,
        help=f"History of runs: a file or postgresql://... (or {environment.LEDGER}).",
    )(verb)


def sandbox(verb: Verb) -> Verb:
    """``--sandbox`` and ``--allow-network-writes``, given to the verb as one ``sandbox: SandboxChoice``."""

    @click.option(
        "--sandbox/--no-sandbox", "required", default=True, help="Refuse to run without an isolating sandbox."
    )
    @click.option("--allow-network-writes", is_flag=True, help="Let the program send to the network.")
    @wraps(verb)
    def with_sandbox(*args: Any, required: bool, allow_network_writes: bool, **kwargs: Any) -> Any:
        return verb(*args, sandbox=SandboxChoice(required, allow_network_writes), **kwargs)

    return with_sandbox


def on(verb: Verb) -> Verb:
    """``--on``: where the programs run, if not on this machine."""
    return click.option(
        "--on", type=click.Choice(["ray"]), help="Run the programs on a Ray cluster, on one node at a time."
    )(verb)


def outputs(*, html: bool = False) -> Callable[[Verb], Verb]:
    """``--json``, ``--markdown`` and, for reports, ``--html``, given to the verb as one ``outputs: Outputs``."""

    def decorate(verb: Verb) -> Verb:
        @wraps(verb)
        def with_outputs(
            *args: Any, json: Path | None, markdown: Path | None, html: Path | None = None, **kwargs: Any
        ) -> Any:
            return verb(*args, outputs=Outputs(json, markdown, html), **kwargs)

        decorated: Verb = with_outputs
        if html:
            decorated = _output("--html", help="Write a page for a browser; - for stdout.")(decorated)
        decorated = _output("--markdown", "--md", help="Write Markdown; - for stdout.")(decorated)
        return _output("--json", help="Write JSON; - for stdout.")(decorated)

    return decorate


def _output(*names: str, help: str) -> Callable[[Verb], Verb]:
    return click.option(*names, type=click.Path(path_type=Path, allow_dash=True), metavar="FILE|-", help=help)
