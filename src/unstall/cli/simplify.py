"""`unstall simplify`: find each component's ceiling by experiments on throw-away runs."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.console import Console

from unstall import environment
from unstall.benchmark import command, launcher, rundir
from unstall.benchmark.rundir import RunDir
from unstall.benchmark.signals import Signals
from unstall.cli import amounts
from unstall.cli.ending import fail, need_folders, whoever_reads, write
from unstall.report.progress import Progress
from unstall.simplify import functions, plan, registry
from unstall.simplify.budget import Budget
from unstall.simplify.controlled_process import Interrupted
from unstall.simplify.experiment import Experiment

if TYPE_CHECKING:
    from unstall.records.report import Report
    from unstall.sandbox import Sandbox
    from unstall.simplify.simplifier import SimplifyResult

_WIDTH = 100
_SET_HELP = f"Try another setting: {', '.join(plan.SETTINGS)} (ranks=1: one alone)."
_STUB_HELP = f"Try the program without this function, or kind: {', '.join(registry.components())}."
_SETTING = re.compile(rf"^(?P<name>{'|'.join(plan.SETTINGS)})=(?P<value>\d+)$")
_DELAY = re.compile(r"^(?P<name>[\w.<>-]+)=\+?(?P<share>\d+(?:\.\d+)?)\s*%(?::(?P<by>sleep|spin))?$")


def simplify(
    words: list[str] = typer.Argument(None, metavar="PROGRAM [ARGS]...", help="As for `unstall run`."),
    stub: list[str] = typer.Option([], "--stub", metavar="NAME", help=_STUB_HELP),
    delay: list[str] = typer.Option(
        [], "--delay", metavar="NAME=+20%", help="Slow this function, or kind, by a share of its own time."
    ),
    settings: list[str] = typer.Option([], "--set", metavar="NAME=N", help=_SET_HELP),
    budget: str = typer.Option("5m", "--budget", help="How long the experiments may take in all: 90s, 5m."),
    json: Path | None = typer.Option(None, "--json", help="Write the report as JSON (schema unstall/2)."),
    ledger: str | None = typer.Option(
        None, "--ledger", envvar=environment.LEDGER, help="Keep the history there: a file, or postgresql://..."
    ),
    sandbox: bool = typer.Option(True, "--sandbox/--no-sandbox", help="Refuse where files cannot be kept as they are."),
    allow_network_writes: bool = typer.Option(False, "--allow-network-writes", help="Let it send to the network."),
) -> None:
    """Try, on throw-away runs, what the program gains without each of its components, and say what that tells."""
    try:
        line = command.resolve(words or [])
        trials = [_stub(name) for name in stub] + [_delay(text) for text in delay] + [_set(text) for text in settings]
    except (command.CommandError, ValueError) as error:
        fail(str(error))
    need_folders(json)
    budget_s = amounts.seconds(budget)
    try:
        directory = rundir.make()
    except OSError as error:
        fail(f"no place for the recording: {error.strerror}")
    try:
        made, found = _study(
            line, words or [], directory, trials, budget_s, required=sandbox, network=allow_network_writes
        )
        _keep(made, found, directory, ledger)
        _show(made)
        if json is not None:
            write(json, made.to_json())
        if found.interrupted:
            raise Interrupted
    except Interrupted:
        print("unstall: stopped; nothing of the program's was changed", file=sys.stderr)
        raise typer.Exit(130) from None
    finally:
        _discard(directory)


def _study(
    line: list[str],
    words: list[str],
    directory: RunDir,
    trials: list[Experiment],
    budget_s: float,
    *,
    required: bool,
    network: bool,
) -> tuple[Report, SimplifyResult]:
    """The report, and what it was made from."""
    from unstall.sandbox import SandboxError, open_sandbox
    from unstall.simplify.program_starter import ProgramStarter
    from unstall.simplify.simplifier import Simplifier
    from unstall.simplify.simplify_report import make_report

    progress = Progress()
    try:
        with launcher.adopting_orphans(), Signals() as signals:
            with open_sandbox(Path.cwd(), [directory.path], network_writes=network, required=required) as box:
                watch = _Watch(signals, progress, Budget(budget_s))
                starter = ProgramStarter(line, words, directory, box, watch.wait)
                found = Simplifier(starter, watch.budget, watch.announce).run(trials)
                made = make_report(found, box.note, _notes(found, box))
    except SandboxError as error:
        fail(str(error))
    except OSError as error:
        fail(f"{line[0]} cannot be started: {error.strerror}")
    finally:
        progress.clear()
    return made, found


class _Watch:
    """Sleeps between two looks, keeps the progress line going, and hears of signals."""

    def __init__(self, signals: Signals, progress: Progress, budget: Budget):
        self.signals, self.progress, self.budget = signals, progress, budget
        self.what = ""

    def announce(self, what: str) -> None:
        self.what = what

    def wait(self, seconds: float) -> None:
        self.signals.wait(seconds)
        if self.signals.seen:
            raise Interrupted
        left = max(0, round(self.budget.left))
        self.progress.update(f"{self.what} · {left // 60}:{left % 60:02d} left", 0, None)


def _notes(found: SimplifyResult, box: Sandbox) -> list[str]:
    """What a person should know of how the experiments ran."""
    notes = [f"not repeated to the outside: {one}" for one in box.refused()]
    if found.measurement is None:
        lines = found.first.output.read_text(errors="replace").strip().splitlines()[-1:]
        notes += [f"the program's last words: {line.strip()}" for line in lines]
    return notes


def _show(made: Report) -> None:
    from unstall.report import ceilings

    console = Console(stderr=True, width=None if sys.stderr.isatty() else _WIDTH, soft_wrap=False)
    with whoever_reads(sys.stderr):
        ceilings.render(made, console)


def _keep(made: Report, found: SimplifyResult, directory: RunDir, where: str | None) -> None:
    """Keep the report and its first run for the steps that come after. It has been told: no reason to fail."""
    from unstall.benchmark import archive
    from unstall.diagnose.source_excerpt import of_report
    from unstall.repeat import ledger

    problem = ledger.keep(made, where)
    if problem is not None:
        print(f"unstall: {problem}", file=sys.stderr)
    else:
        try:
            kept = archive.make(made, found.first.measured, found.first.observation, of_report(made))
            archive.write(directory.path / archive.FILE_NAME, kept)
        except OSError as error:
            print(f"unstall: the first run could not be kept: {error.strerror or error}", file=sys.stderr)


def _stub(name: str) -> Experiment:
    """What ``--stub NAME`` asks for. ValueError when it is no name."""
    kind = registry.components().get(name)
    if kind is not None:
        return plan.free(kind)
    if not re.fullmatch(r"[\w.<>]+", name):
        raise ValueError(f"--stub {name}: give a function as Class.method or package.module.function")
    return plan.stub(plan.Function(functions.strip_locals(name), None, of_data=True))


def _delay(text: str) -> Experiment:
    """What ``--delay NAME=+20%`` asks for; ``:sleep`` after it lets the delay take no core."""
    match = _DELAY.match(text)
    if match is None or float(match["share"]) <= 0:
        raise ValueError(f"--delay {text}: write it as NAME=+20% (or NAME=+20%:sleep, which takes no core)")
    name, by = match["name"], match["by"] or "spin"
    kinds = registry.components()
    if name in kinds and not kinds[name].can_be_slowed:
        slowed = ", ".join(name for name, kind in kinds.items() if kind.can_be_slowed)
        raise ValueError(f"--delay {name}: of the kinds of work only {slowed} can be slowed")
    return plan.delay(functions.strip_locals(name), None, float(match["share"]) / 100, by, touches_data=True)


def _set(text: str) -> Experiment:
    """What ``--set NAME=N`` asks for."""
    match = _SETTING.match(text)
    if match is None:
        raise ValueError(f"--set {text}: write it as NAME=N, with NAME one of {', '.join(plan.SETTINGS)}")
    name, value = match["name"], int(match["value"])
    if (name == "ranks" and value != 1) or (name in ("prefetch", "threads") and value < 1):
        raise ValueError(f"--set {text}: ranks can only be 1, prefetch and threads at least 1")
    return plan.setting(name, value)


def _discard(directory: RunDir) -> None:
    """Remove the recordings of all children; what is left of the directory is the report's."""
    import shutil

    for folder in directory.path.glob("*/"):
        shutil.rmtree(folder, ignore_errors=True)
    directory.discard_recordings()
