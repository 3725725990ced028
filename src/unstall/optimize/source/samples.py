"""The method by which a dataset makes a sample."""

from __future__ import annotations

import libcst as cst

from unstall.optimize.source.errors import AnalysisRefused
from unstall.optimize.source.module import SourceModule
from unstall.optimize.source.purity import method_of

LOAD = "_load_sample"
MAKE = "_make_sample"
_KEEPING = (LOAD, MAKE)
"""Methods that patches add: a class that has one keeps its samples."""


def sample_method(module: SourceModule, line: int) -> tuple[cst.ClassDef, cst.FunctionDef]:
    """(class, the ``__getitem__`` of an index that begins on a line). Raises AnalysisRefused."""
    method = module.function("__getitem__", line)
    cls = module.enclosing(method, cst.ClassDef) if method is not None else None
    if method is None or cls is None:
        raise AnalysisRefused("the dataset's __getitem__ is in no class of its file")
    params = method.params
    takes_an_index = len(params.params) == 2 and not params.star_kwarg and not isinstance(params.star_arg, cst.Param)
    if method.decorators or not takes_an_index:
        raise AnalysisRefused(f"{cls.name.value}.__getitem__ takes more than an index")
    return cls, method


def unkept_sample_method(module: SourceModule, line: int) -> tuple[cst.ClassDef, cst.FunctionDef]:
    """The same of a class that keeps no samples yet. Raises AnalysisRefused."""
    cls, method = sample_method(module, line)
    if any(method_of(cls, name) is not None for name in _KEEPING):
        raise AnalysisRefused(f"{cls.name.value} already keeps its samples")
    return cls, method
