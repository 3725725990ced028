"""`unstall gate`: is the candidate slower than the baseline? For continuous integration."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import typer
from rich.console import Console

from unstall.cli import amounts
from unstall.cli.ending import fail, need_folders, tidy_up_when_ended, whoever_reads
from unstall.report import gate_view

_WIDTH = 100
_EXIT_INTERRUPTED = 130  # as shells have it


def gate(
    words: list[str] = typer.Argument(None, metavar="PROGRAM [ARGS]...", help="As for `unstall run`."),
    baseline: str = typer.Option(..., "--baseline", help="A git revision (main, v1.2), or a recorded run."),
    max_regression: str = typer.Option("5%", "--max-regression", help="Slowdown of a step that is put up with."),
    steps: int | None = typer.Option(None, "--steps", min=5, help="Measured steps a run; by their noise if not given."),
    pairs: int = typer.Option(128, "--pairs", min=3, max=1000, help="At most so many pairs of runs."),
    budget: str = typer.Option("20m", "--budget", help="Start no pair that would not fit into this time."),
    json: Path | None = typer.Option(None, "--json", help="Write the answer as JSON."),
    markdown: Path | None = typer.Option(None, "--markdown", "--md", help="Write it as Markdown, for a pull request."),
    sandbox: bool = typer.Option(True, "--sandbox/--no-sandbox", help="Run only where no file of yours can change."),
    network_writes: bool = typer.Option(False, "--allow-network-writes", help="Let the runs write to the network."),
) -> None:
    """Run baseline and candidate in turns: exit 1 on a proven regression, 0 if there is none, 2 when it cannot tell."""
    allowance, budget_s = amounts.share(max_regression), amounts.seconds(budget)
    need_folders(json, markdown)
    from unstall.benchmark import command
    from unstall.repeat import gating
    from unstall.repeat.arms import ArmError
    from unstall.repeat.gate import EXIT_CODES
    from unstall.repeat.sequential import Plan
    from unstall.repeat.worktree import WorktreeError
    from unstall.sandbox import SandboxError

    request = gating.Request(
        words=words or [],
        baseline=baseline,
        plan=Plan(allowance=allowance, most=pairs),
        steps=steps,
        budget_s=budget_s,
        sandbox_required=sandbox,
        network_writes=network_writes,
    )
    try:
        command.resolve(request.words)
        tidy_up_when_ended()
        found = gating.hold(
            request,
            lambda pair, counted: _tell(gate_view.pair_line(pair, counted, request.plan.next_look(counted))),
            _tell,
        )
    except (gating.GateError, WorktreeError, ArmError, SandboxError, command.CommandError) as error:
        why = str(error)
        if markdown:  # what a pull request is told must not be nothing
            _write(lambda: markdown.write_text(gate_view.failure_markdown(why), encoding="utf-8"))
        fail(why)
    except KeyboardInterrupt:
        raise typer.Exit(_EXIT_INTERRUPTED) from None
    except Exception as error:
        # Python would end with 1, and that is the word for a proven regression.
        fail(f"the gate broke, please report this: {type(error).__name__}: {error}")
    if json:
        _write(lambda: json.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=2)))
    if markdown:
        _write(lambda: markdown.write_text(gate_view.markdown(found), encoding="utf-8"))
    with whoever_reads(sys.stdout):
        console = Console(width=_WIDTH if not sys.stdout.isatty() else None, highlight=False)
        gate_view.page(found, console.width).show(console)
    raise typer.Exit(EXIT_CODES[found.decision])


def _write(act: Callable[[], object]) -> None:
    """The exit code is the answer, whether or not the disk takes it in words."""
    try:
        act()
    except OSError as error:
        _tell(f"the answer was not written: {error}")


def _tell(message: str) -> None:
    print(f"unstall: {message}", file=sys.stderr, flush=True)
