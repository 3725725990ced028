"""An extension for programs that connect to a running Ray cluster: the workers of their job are recorded too.

A cluster's workers get nothing of the program's environment. Ray asks a function that RAY_RUNTIME_ENV_HOOK names for
the runtime environment of each job; it is named only while ``ray.init`` runs, which is when Ray asks.
"""

from __future__ import annotations

import functools
import importlib
import os
import shlex
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unstall.child.main import Child

HOOK = "RAY_RUNTIME_ENV_HOOK"
SETTING = "ray_job"
"""The key of a job's settings that holds the environment variables of its workers."""

_KEEP_PYTHON = frozenset(("config", "env_vars", "excludes", "py_modules", "worker_process_setup_hook", "working_dir"))
"""What a runtime environment can hold and the workers still run the cluster's own Python."""

_MODULE, _FUNCTION = "_unstall_ray_job", "recorded"


def install(child: Child) -> dict[str, list[Any]]:
    """Wrap ``ray.init``, if the settings say what the workers need."""
    variables = child.options.get("settings", {}).get(SETTING)
    return {"ray._private.worker": [functools.partial(_wrap_init, variables)]} if variables else {}


def _wrap_init(variables: dict[str, str], module: Any) -> None:
    init = module.init

    @functools.wraps(init)
    def recorded_init(*args: Any, **kwargs: Any) -> Any:
        theirs = os.environ.get(HOOK)
        hook = sys.modules[_MODULE] = type(sys)(_MODULE)
        setattr(hook, _FUNCTION, functools.partial(_with_variables, variables, theirs))
        os.environ[HOOK] = f"{_MODULE}.{_FUNCTION}"
        try:
            return init(*args, **kwargs)
        finally:
            sys.modules.pop(_MODULE, None)
            os.environ.pop(HOOK, None)
            if theirs is not None:
                os.environ[HOOK] = theirs

    module.init = recorded_init


def _with_variables(variables: dict[str, str], theirs: str | None, runtime_env: Any) -> Any:
    """The runtime environment of a job, by the program's own hook if it has one, with the variables in it."""
    if theirs is not None:
        module, _, function = theirs.rpartition(".")
        runtime_env = getattr(importlib.import_module(module), function)(runtime_env)
    added = dict(runtime_env or {})
    given = dict(added.get("env_vars") or {})
    path = given.get("PYTHONPATH")
    if path:
        variables = {**variables, "PYTHONPATH": f"{variables['PYTHONPATH'].split(os.pathsep)[0]}{os.pathsep}{path}"}
    return {**_python(added), **added, "env_vars": {**given, **variables}}


def _python(runtime_env: dict[str, Any]) -> dict[str, str]:
    """The Python of the workers, where Ray would not find it: a shell reads its path once there is an environment."""
    quoted = shlex.quote(sys.executable)
    if quoted == sys.executable or not _KEEP_PYTHON.issuperset(runtime_env):
        return {}
    return {"py_executable": quoted}
