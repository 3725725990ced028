"""Another package adds an exporter: the one that the documentation shows, installed by its entry point alone."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[3] / "docs"
EXAMPLE = re.search(r"```python\n(.*?)```", (DOCS / "adding-an-exporter.md").read_text(), re.DOTALL)[1]


@pytest.fixture
def unstall(tmp_path, report):
    """The command, in a folder with a report and with the package installed."""
    site, folder = tmp_path / "site", tmp_path / "work"
    metadata = site / "influx-1.0.dist-info"
    metadata.mkdir(parents=True)
    folder.mkdir()
    (site / "influx_exporter.py").write_text(EXAMPLE)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: influx\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[unstall.exporters]\ninflux = influx_exporter:EXPORTER\n")
    (folder / "report.json").write_bytes(report.to_json())

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "unstall", *words],
            cwd=folder, env={**os.environ, "PYTHONPATH": str(site)}, capture_output=True, text=True,
        )  # fmt: skip

    return run


def test_it_has_an_option_and_exports(unstall, tmp_path):
    assert "--influx FILE" in unstall("export", "--help").stdout
    done = unstall("export", "report.json", "--influx", "out.txt")
    assert (done.returncode, done.stdout, done.stderr) == (0, "exported to out.txt\n", "")
    assert "unstall_steps_per_second=10.0" in (tmp_path / "work" / "out.txt").read_text()


def test_one_that_does_not_fit_is_named_and_the_others_work(unstall, tmp_path):
    (tmp_path / "site" / "influx_exporter.py").write_text(EXAMPLE.replace("def export(", "def send("))
    done = unstall("export", "report.json", "--prometheus", "out.prom")
    assert (done.returncode, done.stdout) == (0, "exported to out.prom\n")
    (line,) = done.stderr.splitlines()
    assert line.startswith(
        "unstall: plug-in 'influx' of influx (unstall.exporters = influx_exporter:EXPORTER) is ignored"
    )
    assert "export" in line.rpartition(":")[2]


@pytest.mark.parametrize("name", ["chrome", "csv", "mlflow", "otlp", "parquet", "perfetto", "prometheus", "wandb"])
def test_every_format_is_in_the_documentation(name):
    assert f"--{name}" in (DOCS / "exports.md").read_text()
