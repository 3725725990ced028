"""`unstall simplify`: find each component's ceiling by experiments on throw-away runs."""

from __future__ import annotations

import re
import sys
import time
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
from unstall.simplify import choose, functions
from unstall.simplify.laboratory import Interrupted
from unstall.simplify.trial import Trial

if TYPE_CHECKING:
    from unstall.records.report import Report
    from unstall.sandbox import Sandbox
    from unstall.simplify.study import Findings

_WIDTH = 100
_KINDS = ("data", "env", "callbacks", "validation", "collectives", "network", "optimizer", "backward")
_SLOWED = ("data", "env", "optimizer", "backward")
_SETTINGS = ("workers", "prefetch", "threads", "ranks")
_SET_HELP = f"Try another setting: {', '.join(_SETTINGS)} (ranks=1: one alone)."
_STUB_HELP = f"Try the program without this function, or kind: {', '.join(_KINDS)}."
_SETTING = re.compile(rf"^(?P<name>{'|'.join(_SETTINGS)})=(?P<value>\d+)$")
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
    trials: list[Trial],
    budget_s: float,
    *,
    required: bool,
    network: bool,
) -> tuple[Report, Findings]:
    """The report, and what it was made from."""
    from unstall.sandbox import SandboxError, open_sandbox
    from unstall.simplify.conclude import conclude
    from unstall.simplify.study import Study

    progress = Progress()
    try:
        with launcher.adopting_orphans(), Signals() as signals:
            with open_sandbox(Path.cwd(), [directory.path], network_writes=network, required=required) as box:
                watch = _Watch(signals, progress, budget_s)
                study = Study(line, words, directory, box, watch.wait, watch.tell, budget_s)
                found = study.run(trials)
                made = conclude(found, box.note)
                made = made.with_run(notes=[*made.run.notes, *_notes(found, box)])
    except SandboxError as error:
        fail(str(error))
    except OSError as error:
        fail(f"{line[0]} cannot be started: {error.strerror}")
    finally:
        progress.clear()
    return made, found


class _Watch:
    """Sleeps between two looks, keeps the progress line going, and hears of signals."""

    def __init__(self, signals: Signals, progress: Progress, budget_s: float):
        self.signals, self.progress = signals, progress
        self.until = time.monotonic() + budget_s
        self.what = ""

    def tell(self, what: str) -> None:
        self.what = what

    def wait(self, seconds: float) -> None:
        self.signals.wait(seconds)
        if self.signals.seen:
            raise Interrupted
        left = max(0, round(self.until - time.monotonic()))
        self.progress.update(f"{self.what} · {left // 60}:{left % 60:02d} left", 0, None)


def _notes(found: Findings, box: Sandbox) -> list[str]:
    """What a person should know of how the experiments ran."""
    notes = [f"not repeated to the outside: {one}" for one in box.refused()]
    if found.measurement is None and found.output is not None:
        lines = found.output.read_text(errors="replace").strip().splitlines()[-1:]
        notes += [f"the program's last words: {line.strip()}" for line in lines]
    return notes


def _show(made: Report) -> None:
    from unstall.report import ceilings

    console = Console(stderr=True, width=None if sys.stderr.isatty() else _WIDTH, soft_wrap=False)
    with whoever_reads(sys.stderr):
        ceilings.render(made, console)


def _keep(made: Report, found: Findings, directory: RunDir, where: str | None) -> None:
    """Keep the report and its first run for the steps that come after. It has been told: no reason to fail."""
    from unstall.benchmark import archive
    from unstall.diagnose.source_excerpt import of_report
    from unstall.repeat import ledger

    problem = ledger.keep(made, where)
    if problem is not None:
        print(f"unstall: {problem}", file=sys.stderr)
    elif found.seen is not None:
        try:
            kept = archive.make(made, found.measured, found.seen, of_report(made))
            archive.write(directory.path / archive.FILE_NAME, kept)
        except OSError as error:
            print(f"unstall: the first run could not be kept: {error.strerror or error}", file=sys.stderr)


def _stub(name: str) -> Trial:
    """What ``--stub NAME`` asks for. ValueError when it is no name."""
    if name == "data":
        return Trial("cached batches", "cached", arm=({"kind": "cached"},), component="data", touches_data=True)
    if name in _KINDS:
        return choose.of_kind(name)
    if not re.fullmatch(r"[\w.<>]+", name):
        raise ValueError(f"--stub {name}: give a function as Class.method or package.module.function")
    return choose.stub(choose.Function(functions.plain(name), None, of_data=True))


def _delay(text: str) -> Trial:
    """What ``--delay NAME=+20%`` asks for; ``:sleep`` after it lets the delay take no core."""
    match = _DELAY.match(text)
    if match is None or float(match["share"]) <= 0:
        raise ValueError(f"--delay {text}: write it as NAME=+20% (or NAME=+20%:sleep, which takes no core)")
    name, by = match["name"], match["by"] or "spin"
    if name in _KINDS and name not in _SLOWED:
        raise ValueError(f"--delay {name}: of the kinds of work only {', '.join(_SLOWED)} can be slowed")
    return choose.delay(functions.plain(name), None, float(match["share"]) / 100, by, touches_data=True)


def _set(text: str) -> Trial:
    """What ``--set NAME=N`` asks for."""
    match = _SETTING.match(text)
    if match is None:
        raise ValueError(f"--set {text}: write it as NAME=N, with NAME one of {', '.join(_SETTINGS)}")
    name, value = match["name"], int(match["value"])
    if (name == "ranks" and value != 1) or (name in ("prefetch", "threads") and value < 1):
        raise ValueError(f"--set {text}: ranks can only be 1, prefetch and threads at least 1")
    return choose.setting(name, value)


def _discard(directory: RunDir) -> None:
    """Remove the recordings of all children; what is left of the directory is the report's."""
    import shutil

    for folder in directory.path.glob("*/"):
        shutil.rmtree(folder, ignore_errors=True)
    directory.discard_recordings()
