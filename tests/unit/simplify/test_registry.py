"""All interventions come through one door, the built-in ones and those that other packages offer."""

import ast
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from unstall.child import seams
from unstall.child.experiments import interventions
from unstall.child.experiments.interventions.base import load, path_of
from unstall.child.experiments.interventions.stub import StubIntervention
from unstall.diagnose.patterns import all_patterns
from unstall.records.vocabulary import PHASE_NAMES
from unstall.simplify import plan, registry

PLUGIN = """
from unstall.child.experiments.interventions.base import Intervention


class NoMetrics(Intervention):
    name = component = "metrics"
    title = "without metrics"
    phase = "callback"
    proves = "callback-bound"
"""


@pytest.fixture
def offered(tmp_path, monkeypatch):
    """Writes a package that offers something as an intervention; the registry is read anew."""

    def write(source, entry_point):
        (tmp_path / "metrics_plugin.py").write_text(source)
        about = tmp_path / "metrics_plugin-1.dist-info"
        about.mkdir()
        (about / "METADATA").write_text("Metadata-Version: 2.1\nName: metrics-plugin\nVersion: 1\n")
        (about / "entry_points.txt").write_text(f"[{registry.GROUP}]\nmetrics = metrics_plugin:{entry_point}\n")
        monkeypatch.syspath_prepend(str(tmp_path))

    registry.interventions.cache_clear()
    yield write
    registry.interventions.cache_clear()
    sys.modules.pop("metrics_plugin", None)


def test_every_kind_of_work_can_be_tried_by_its_name():
    found = registry.components()
    assert {"data", "env", "callbacks", "validation", "collectives", "network", "optimizer", "backward", "checks"} <= {
        *found
    }
    for component, kind in found.items():
        experiment = plan.free(kind)
        assert experiment.component == component and experiment.name == kind.title
        assert load(experiment.arm[0]["class"]) is kind is registry.of(experiment.arm[0])


def test_phases_and_patterns_are_those_of_the_reports():
    for kind in registry.interventions().values():
        assert kind.phase in ("", *PHASE_NAMES) and kind.proves in ("", *all_patterns())


def test_the_functions_behind_a_component_are_found_by_the_seam(monkeypatch):
    module = SimpleNamespace(SEAMS=(), TARGETS={}, FINDERS={"tokens": lambda: [registry.of]})
    monkeypatch.setattr(seams, "_added", [module])
    tokens = type("Tokens", (StubIntervention,), {"name": "tokens", "component": "tokens"})
    assert tokens.targets() == [registry.of]
    assert StubIntervention.targets() is None


def test_another_package_can_offer_one(offered):
    offered(PLUGIN, "NoMetrics")
    kind = registry.components()["metrics"]
    assert path_of(kind) == "metrics_plugin:NoMetrics" and plan.free(kind).name == "without metrics"


@pytest.mark.parametrize("entry_point", ["__doc__", "Intervention"])
def test_what_is_none_is_ignored_with_a_warning(offered, entry_point, capsys):
    offered(PLUGIN, entry_point)
    assert "metrics" not in registry.interventions() and "cached" in registry.interventions()
    assert "not a class derived from Intervention" in capsys.readouterr().err


@pytest.mark.parametrize("path", sorted(Path(interventions.__file__).parent.glob("*.py")), ids=lambda path: path.name)
def test_the_programs_processes_import_the_standard_library_only(path):
    """At import: what a type checker or the parent alone needs is imported where it is used."""
    for node in ast.parse(path.read_text()).body:
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module] if isinstance(node, ast.ImportFrom) else []
        for name in names:
            assert name.split(".")[0] in {*sys.stdlib_module_names, "unstall"}, f"{path.name} imports {name}"
