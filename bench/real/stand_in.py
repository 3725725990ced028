"""Stands in for packages that a library imports and the driver's case never uses: no need to install them all."""

from __future__ import annotations

import sys
from importlib import metadata
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from unittest.mock import MagicMock

from packaging.version import Version


class _Absent(ModuleType):
    """A module with every name in it."""

    def __getattr__(self, name: str) -> MagicMock:
        if name.startswith("__"):
            raise AttributeError(name)
        return MagicMock(name=f"{self.__name__}.{name}")


class _Finder(MetaPathFinder, Loader):
    def __init__(self, packages: tuple[str, ...]):
        self.packages = packages

    def find_spec(self, fullname: str, path: object, target: object = None) -> ModuleSpec | None:
        return ModuleSpec(fullname, self, is_package=True) if fullname.split(".")[0] in self.packages else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Absent(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        pass


def stand_in_pkg_resources() -> None:
    """Give a library the part of pkg_resources that says which versions are installed; setuptools left it out."""
    module = ModuleType("pkg_resources")
    module.DistributionNotFound = metadata.PackageNotFoundError
    module.get_distribution = metadata.distribution
    module.parse_version = Version
    sys.modules["pkg_resources"] = module


def stand_in(*packages: str) -> None:
    """Let these packages, and all below them, be imported without being there."""
    sys.meta_path.insert(0, _Finder(packages))
