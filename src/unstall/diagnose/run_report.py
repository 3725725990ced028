"""From a command, or from recordings, to a Report: the four folders joined in a row."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from unstall.benchmark import command, launcher, rundir
from unstall.benchmark.environment import environment
from unstall.benchmark.launcher import ProgramExit
from unstall.benchmark.rundir import ERRORS_NAME, RunDir
from unstall.diagnose import gpu_windows
from unstall.diagnose.overview import RunContext, without_steps
from unstall.records.report import Report

if TYPE_CHECKING:
    from unstall.benchmark.measure import LoopMeasurement
    from unstall.benchmark.reader import ProcessRecording
    from unstall.diagnose.gpu_windows import GpuWindow
    from unstall.records.measurements import Measurement


@dataclass(frozen=True)
class DiagnosedRun:
    """The report of a run, and what it was made from."""

    run: RunContext
    report: Report
    measured: LoopMeasurement | None = None
    """None where no step was seen."""
    recordings: list[ProcessRecording] = field(default_factory=list)
    """The recording of each process that recorded something."""
    window: GpuWindow | None = None

    def of(self, measurement: Measurement, notes: list[str]) -> DiagnosedRun:
        """The same run, judged by another measurement of it: one of more machines."""
        from unstall.diagnose.summary import report

        assert self.measured is not None
        run = replace(self.run, notes=[*self.run.notes, *notes])
        measured = replace(self.measured, measurement=measurement)
        return replace(self, run=run, report=report(run, measurement, self.window), measured=measured)

    def noting(self, note: str) -> DiagnosedRun:
        """The same run with one more note in its report."""
        return replace(self, report=self.report.with_run(notes=[*self.report.run.notes, note]))


def run_and_report(words: list[str], *, steps: int | None, sampling: bool) -> Report:
    """Run a command under observation and return its report; nothing is printed or kept."""
    line = command.resolve(words)
    directory = rundir.make()
    started = datetime.now(timezone.utc)
    try:
        options = launcher.RecordingOptions(steps=steps, sampling=sampling)
        outcome = launcher.launch(line, directory.path, options, lambda session: None)
        return make_report(words, directory, started, outcome, steps=steps).report
    finally:
        directory.discard_recordings()


def make_report(
    words: list[str],
    directory: RunDir,
    started: datetime,
    outcome: ProgramExit,
    *,
    steps: int | None = None,
    modules: bool = False,
    since: float = 0.0,
) -> DiagnosedRun:
    """Read the recordings of a run and diagnose them. ``since``: leave out spans that began before."""
    processes = _read(directory, since)
    run = RunContext(
        id=directory.id,
        command=words,
        started=started.strftime("%Y-%m-%dT%H:%M:%SZ"),
        exit_code=None if outcome.goes_on else outcome.status,
        attached=outcome.goes_on,
        environment=_environment(processes),
        observation=outcome.observation,
        notes=_notes(directory, processes, outcome),
        modules=modules,
    )
    if not processes:
        return DiagnosedRun(run, without_steps(run))
    from unstall.benchmark.measure import measure
    from unstall.diagnose.summary import report

    window = _gpu_window(directory, processes)
    peak = _peak_flops(processes, window)
    measured = measure(processes, outcome.observation, wanted=steps, peak_flops=peak)
    measurement = measured.measurement if measured else None
    return DiagnosedRun(run, report(run, measurement, window), measured, processes, window)


def _gpu_window(directory: RunDir, processes: list[ProcessRecording]) -> GpuWindow | None:
    """What was recorded of the device's work, if there is a device."""
    step_s = [
        seconds for process in processes for fact in process.facts.get("gpu_steps", []) for seconds in fact["step_s"]
    ]
    return gpu_windows.read(directory.path, step_s)


def _read(directory: RunDir, since: float) -> list[ProcessRecording]:
    """The recordings, if there are any; NumPy is not even imported for a program that made none."""
    if not any(directory.path.glob("info-*.jsonl")):
        return []
    from unstall.benchmark.reader import read_all

    return [
        replace(process, spans=process.spans[process.spans["start"] >= since * 1e9])
        for process in read_all(directory.path)
    ]


def _environment(processes: list[ProcessRecording]) -> dict[str, Any]:
    facts = environment()
    for process in processes:
        torch = process.first("torch")
        if torch:
            facts["torch"] = torch["version"]
            facts["libraries"] = torch.get("libraries", {})
            facts["torch_threads"] = torch["threads"]
            facts["python"] = (process.first("process") or {}).get("python", facts["python"])
            break
    return facts


def _peak_flops(processes: list[ProcessRecording], window: GpuWindow | None) -> float | None:
    """The machine's matmul rate: as `unstall doctor` measured it, or quickly now if it never did.

    A GPU's is the listed one, of the dtype that most is computed in where its window shows that.
    """
    versions = {fact["version"] for process in processes for fact in process.facts.get("torch", [])}
    if not versions:
        return None
    from unstall.benchmark import machine

    gpus = [name for process in processes for fact in process.facts.get("torch", []) for name in fact.get("cuda", ())]
    if gpus:
        flops = window.features.metrics.flops if window is not None and window.features is not None else None
        return machine.listed_peak(gpus[0], flops.dtype if flops is not None else "bf16")
    speeds = machine.cached(next(iter(versions)))
    return speeds.matmul_flops_f32 if speeds else machine.quick_matmul_flops()


def _notes(directory: RunDir, processes: list[ProcessRecording], outcome: ProgramExit) -> list[str]:
    notes = []
    stopped = outcome.observation.stopped
    if directory.note:
        notes.append(directory.note)
    if outcome.goes_on:
        seconds = outcome.observation.ended - outcome.observation.began
        notes.append(
            f"recorded for {seconds:.0f} s in a program that was already running: what came before is not known"
        )
    if outcome.status < 0 and not stopped:
        notes.append(f"the program was ended by signal {-outcome.status}; the report covers what ran until then")
    elif outcome.status and not stopped:
        notes.append(f"the program ended with exit code {outcome.status}; the report covers what ran until then")
    if outcome.unrecorded:
        notes.append(f"{'only its children were' if processes else 'nothing was'} recorded: {outcome.unrecorded}")
    elif not processes:
        notes.append("nothing was recorded: no Python that unstall can watch imported torch, jax or gymnasium")
        if outcome.status == 1:
            notes.append("if torch is in another Python, name it: unstall run -- python train.py")
    dropped = sum(process.dropped for process in processes)
    if dropped:
        notes.append(f"the disk accepted no more data: the last {dropped} spans are missing")
    for process in processes:
        for fact in process.facts.get("error", []):
            notes.append(f"{fact.get('what')}: {fact.get('error')}")
    opened = any(fact["what"] == "gpu" for process in processes for fact in process.facts.get("window", []))
    if opened and not any(directory.path.glob(gpu_windows.PATTERN)):
        notes.append(
            "the program ended while its GPU was profiled, so that the device was not looked at: give it more steps"
        )
    if any(not (process.first("process") or {"native": True}).get("native") for process in processes):
        notes.append("the C recorder is not built for the program's Python: the slower Python recorder was used")
    try:
        for line in (directory.path / ERRORS_NAME).read_text().splitlines()[:1]:
            notes.append(f"the program could not be watched: {line}")
    except OSError:
        pass
    return list(dict.fromkeys(notes))
