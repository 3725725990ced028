"""Where a file is read as a whole for a part of it: ``f.read()[a:b]``, ``np.load(path)[i]``."""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass
from typing import Literal

import libcst as cst
from libcst.metadata import ExpressionContext

from unstall.optimize.source.bindings import assigned
from unstall.optimize.source.edit import Edit, edited, put, with_keyword
from unstall.optimize.source.module import SourceModule
from unstall.optimize.source.toplevel import with_runtime

Kind = Literal["file", "path", "array"]


@dataclass(frozen=True)
class PartialRead:
    """An expression that takes a part of what was read as a whole."""

    kind: Kind
    whole: cst.Call
    """It reads the file."""
    part: cst.Subscript

    @property
    def nodes(self) -> tuple[cst.CSTNode, cst.CSTNode]:
        """What takes time: the read, and what is taken."""
        return self.whole, self.part


def partial_reads(module: SourceModule, lines: Set[int]) -> Iterator[PartialRead]:
    """Those of a module that stand on one of these lines."""
    for part in module.all(cst.Subscript):
        read = _read(module, part)
        if read is not None and lines & module.lines(*read.nodes):
            yield read


def _read(module: SourceModule, part: cst.Subscript) -> PartialRead | None:
    call = part.value if isinstance(part.value, cst.Call) else _made_for(module, part.value)
    if call is None or module.context(part) is not ExpressionContext.LOAD:
        return None
    if module.name(call) == "numpy.load":
        is_plain = len(call.args) == 1 and not call.args[0].star and call.args[0].keyword is None
        return PartialRead("array", call, part) if is_plain else None
    if part.value is not call or call.args or not _is_slice(part) or not isinstance(call.func, cst.Attribute):
        return None
    if call.func.attr.value == "read_bytes":
        return PartialRead("path", call, part)
    is_read = call.func.attr.value == "read" and _is_binary_file(module, call.func.value)
    return PartialRead("file", call, part) if is_read else None


def _made_for(module: SourceModule, value: cst.BaseExpression) -> cst.Call | None:
    """The call whose result a name stands for, if it is used for nothing else."""
    function = module.enclosing(value, cst.FunctionDef)
    if not isinstance(value, cst.Name) or function is None:
        return None
    stores = [use for use in module.uses(value.value, function) if use is not value]
    if len(stores) != 1:
        return None
    made = assigned(module, stores[0])
    return made if isinstance(made, cst.Call) else None


def _is_slice(part: cst.Subscript) -> bool:
    """Whether it takes ``[a:b]``."""
    index = part.slice[0].slice
    return len(part.slice) == 1 and isinstance(index, cst.Slice) and index.step is None


def _is_binary_file(module: SourceModule, file: cst.BaseExpression) -> bool:
    """Whether it is what ``with open(..., "rb") as file`` opens."""
    if not isinstance(file, cst.Name):
        return False
    for block in module.ancestors(file):
        if isinstance(block, cst.With):
            for item in block.items:
                if item.asname is not None and getattr(item.asname.name, "value", "") == file.value:
                    return _opens_binary(module, item.item)
    return False


def _opens_binary(module: SourceModule, opened: cst.BaseExpression) -> bool:
    if not isinstance(opened, cst.Call) or module.name(opened) != "builtins.open" or len(opened.args) != 2:
        return False
    mode = opened.args[1]
    is_mode = mode.keyword is None or mode.keyword.value == "mode"
    value = mode.value.evaluated_value if isinstance(mode.value, cst.SimpleString) else None
    return is_mode and value in ("rb", "br")


def taken_alone(module: SourceModule, read: PartialRead) -> cst.Module:
    """The tree in which the part alone is read. Raises NameTaken where the file uses a name that this needs."""
    edits: dict[cst.CSTNode, Edit] = {}
    if read.kind == "array":
        mapped = with_keyword(read.whole, "mmap_mode", '"r"')
        if read.part.value is read.whole:
            edits[read.part] = put(_called("_own_array", read.part.with_changes(value=mapped)))
        else:
            edits = {read.whole: put(mapped), read.part: put(_called("_own_array", read.part))}
        return with_runtime(edited(module.tree, edits), "own_array")
    index = cst.ensure_type(read.part.slice[0].slice, cst.Slice)
    none = cst.Name("None")
    source = cst.ensure_type(read.whole.func, cst.Attribute).value
    name = "_part_of_file" if read.kind == "file" else "_part_of_path"
    edits[read.part] = put(_called(name, source, index.lower or none, index.upper or none))
    return with_runtime(edited(module.tree, edits), "part_of_file")


def _called(name: str, *arguments: cst.BaseExpression) -> cst.Call:
    return cst.Call(cst.Name(name), [cst.Arg(argument) for argument in arguments])
