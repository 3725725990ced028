"""A function run right after a module's own code, and no other trace."""

from __future__ import annotations

import importlib
import importlib.util
import sys

import pytest

from unstall.child.importhook import PostImport


@pytest.fixture
def library(tmp_path, monkeypatch):
    """A package on the path: ``hooked`` with ``hooked.part``; forgotten afterwards."""
    (tmp_path / "hooked").mkdir()
    (tmp_path / "hooked" / "__init__.py").write_text("ready = True\nseen = []\n")
    (tmp_path / "hooked" / "part.py").write_text("value = 1\n")
    (tmp_path / "hooked" / "broken.py").write_text("raise RuntimeError('its own fault')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    before = list(sys.meta_path)
    yield tmp_path
    sys.meta_path[:] = before
    for name in [name for name in sys.modules if name.partition(".")[0] == "hooked"]:
        del sys.modules[name]


def hook(targets, errors=None):
    errors = errors if errors is not None else []
    post_import = PostImport(targets, lambda name, error: errors.append((name, error)))
    sys.meta_path.insert(0, post_import)
    return post_import


def test_install_runs_once_with_the_whole_module(library):
    installed = []
    hook({"hooked": [lambda module: installed.append((module.__name__, module.ready))]})
    import hooked  # type: ignore[import-not-found]

    importlib.import_module("hooked")
    assert installed == [("hooked", True)]
    assert hooked.ready


def test_submodules_are_targets_of_their_own(library):
    installed = []
    hook({"hooked.part": [lambda module: installed.append(module.value)]})
    importlib.import_module("hooked")
    assert installed == []
    importlib.import_module("hooked.part")
    assert installed == [1]


def test_the_module_shows_no_trace_of_it(library):
    plain = importlib.util.find_spec("hooked.part")
    hook({"hooked.part": [lambda module: None]})
    module = importlib.import_module("hooked.part")
    assert type(module.__loader__) is type(plain.loader)
    assert type(module.__spec__) is type(plain)
    assert module.__spec__.origin == plain.origin == module.__file__
    assert module.__spec__.loader is module.__loader__
    assert "exec_module" not in vars(module.__loader__)
    assert module.__loader__.get_source("hooked.part") == "value = 1\n"


def test_an_install_that_fails_is_reported_and_the_others_run(library):
    errors, installed = [], []

    def fails(module):
        raise ValueError("not this version")

    hook({"hooked": [fails, lambda module: installed.append(module)]}, errors)
    module = importlib.import_module("hooked")
    assert installed == [module]
    assert [(name, str(error)) for name, error in errors] == [("hooked", "not this version")]


def test_a_module_that_raises_fails_as_before(library):
    installed, errors = [], []
    hook({"hooked.broken": [installed.append]}, errors)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="its own fault"):
            importlib.import_module("hooked.broken")
    assert installed == errors == []
    assert "hooked.broken" not in sys.modules


def test_modules_that_nobody_waits_for_are_left_to_the_others(library):
    post_import = hook({"hooked": [lambda module: None]})
    assert post_import.find_spec("hooked.part") is None
    assert post_import.find_spec("no_such_module_anywhere") is None


def test_a_target_that_does_not_exist_is_still_not_found(library):
    hook({"hooked.nothing": [lambda module: None]})
    with pytest.raises(ModuleNotFoundError) as caught:
        importlib.import_module("hooked.nothing")
    assert caught.value.name == "hooked.nothing"


def test_looking_for_a_module_does_not_import_it(library):
    installed = []
    hook({"hooked": [installed.append]})
    assert importlib.util.find_spec("hooked") is not None
    assert installed == []
    module = importlib.import_module("hooked")
    assert installed == [module]


def test_a_reload_installs_into_the_new_code(library):
    installed = []
    hook({"hooked": [installed.append]})
    module = importlib.import_module("hooked")
    importlib.reload(module)
    assert installed == [module, module]


def test_built_in_modules_are_untouched(library):
    import _imp

    name = next(name for name in sys.builtin_module_names if name not in ("sys", "builtins"))
    loader = importlib.util.find_spec(name).loader
    before = loader.exec_module
    post_import = hook({name: [lambda module: None]})
    assert post_import.find_spec(name).loader is loader
    assert loader.exec_module == before
    assert _imp.is_builtin(name)


def test_a_loader_that_takes_no_attribute_is_reported(library):
    class Loader:
        __slots__ = ()

        def create_module(self, spec):
            return None

        def exec_module(self, module):
            module.value = 5

    class Finder:
        def find_spec(self, fullname, path=None, target=None):
            return importlib.util.spec_from_loader(fullname, Loader()) if fullname == "hooked.frozen" else None

    errors, installed = [], []
    sys.meta_path.insert(0, Finder())
    hook({"hooked.frozen": [installed.append]}, errors)
    assert importlib.import_module("hooked.frozen").value == 5
    assert installed == []
    assert [name for name, _ in errors] == ["hooked.frozen"]


def test_old_finders_without_find_spec_are_passed_over(library):
    class Old:
        pass

    installed = []
    hook({"hooked": [installed.append]})
    sys.meta_path.insert(1, Old())
    module = sys.meta_path[0].find_spec("hooked")
    assert module is not None


def test_libraries_that_are_imported_already_are_installed_at_once(library):
    module = importlib.import_module("hooked")
    installed = []
    post_import = hook({"hooked": [installed.append], "hooked.part": [installed.append]})
    post_import.install_loaded()
    assert installed == [module]
