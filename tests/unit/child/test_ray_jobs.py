"""What the workers of a Ray job get, by a module in the place of Ray's that asks as Ray does."""

from __future__ import annotations

import importlib
import os
import sys
import types

import pytest

from unstall.child import ray_jobs

VARIABLES = {"PYTHONPATH": "/bootstrap:${PYTHONPATH}", "UNSTALL_RUN_DIR": "/tmp/run-${RAY_RAYLET_PID}"}


@pytest.fixture(autouse=True)
def python(monkeypatch):
    """Whatever the folder of the Python that runs the tests is called."""
    monkeypatch.setattr(sys, "executable", "/opt/bin/python")


class Recording:
    def __init__(self, variables):
        self.options = {"settings": {ray_jobs.SETTING: variables} if variables else {}}


def asking_ray():
    """Its ``init`` returns the runtime environment by the hook of the environment, as Ray's does."""

    def init(address=None, *, runtime_env=None):
        """Connect."""
        hook = os.environ.get(ray_jobs.HOOK)
        if hook is None:
            return runtime_env
        module, _, function = hook.rpartition(".")
        return getattr(importlib.import_module(module), function)(runtime_env)

    return types.SimpleNamespace(init=init)


def wrapped(variables=VARIABLES):
    ray = asking_ray()
    for installers in ray_jobs.install(Recording(variables)).values():
        for installer in installers:
            installer(ray)
    return ray


def test_workers_get_the_variables_beside_the_programs_own():
    given = {"working_dir": "/data", "env_vars": {"MINE": "1"}}
    got = wrapped().init("auto", runtime_env=given)
    assert got == {"working_dir": "/data", "env_vars": {"MINE": "1", **VARIABLES}}
    assert given == {"working_dir": "/data", "env_vars": {"MINE": "1"}}


def test_a_programs_python_path_for_its_workers_stays_behind_ours():
    got = wrapped().init(runtime_env={"env_vars": {"PYTHONPATH": "/theirs"}})
    assert got["env_vars"]["PYTHONPATH"] == "/bootstrap:/theirs"


def test_a_programs_own_hook_is_asked_first(monkeypatch):
    theirs = types.ModuleType("their_hook")
    theirs.hook = lambda runtime_env: {**(runtime_env or {}), "pip": ["their-package"]}
    monkeypatch.setitem(sys.modules, "their_hook", theirs)
    monkeypatch.setenv(ray_jobs.HOOK, "their_hook.hook")
    assert wrapped().init() == {"pip": ["their-package"], "env_vars": VARIABLES}
    assert os.environ[ray_jobs.HOOK] == "their_hook.hook"


@pytest.mark.parametrize(
    ("executable", "given", "python"),
    [
        ("/opt/bin/python", None, None),
        ("/my env/bin/python", None, "'/my env/bin/python'"),
        ("/my env/bin/python", {"working_dir": "/data"}, "'/my env/bin/python'"),
        ("/my env/bin/python", {"py_executable": "theirs"}, "theirs"),
        ("/my env/bin/python", {"pip": ["their-package"]}, None),
    ],
)
def test_a_shell_finds_the_workers_python_in_a_folder_called_anything(monkeypatch, executable, given, python):
    monkeypatch.setattr(sys, "executable", executable)
    assert wrapped().init(runtime_env=given).get("py_executable") == python


def test_nothing_is_left_in_the_process_whatever_init_does(monkeypatch):
    monkeypatch.delenv(ray_jobs.HOOK, raising=False)
    before = set(sys.modules)
    ray = wrapped()
    with pytest.raises(TypeError):
        ray.init(no_such_argument=1)
    assert ray_jobs.HOOK not in os.environ
    assert set(sys.modules) == before


def test_init_looks_as_before():
    assert wrapped().init.__doc__ == "Connect."


def test_without_nodes_to_record_ray_is_left_alone():
    ray = wrapped(None)
    assert ray.init(runtime_env=None) is None
    assert not hasattr(ray.init, "__wrapped__")
