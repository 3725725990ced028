"""What goes to the top of a module: imports, statements after them, and the definitions that a patch brings along."""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib import resources
from typing import Any

import libcst as cst
from libcst.metadata import BuiltinAssignment, ImportAssignment

from unstall.optimize.source.edit import statement
from unstall.optimize.source.errors import NameTaken
from unstall.optimize.source.module import SourceModule, dotted


def with_statement_after_imports(tree: cst.Module, source: str, *further: str) -> cst.Module:
    """The tree with statements after its imports, with a blank line before the first."""
    index = _after_imports(tree)
    added = statement(tree, source).with_changes(leading_lines=[cst.EmptyLine(indent=False)])
    others = [statement(tree, other) for other in further]
    return tree.with_changes(body=[*tree.body[:index], added, *others, *tree.body[index:]])


def with_statement_before_imports(tree: cst.Module, source: str, *, needs: str) -> cst.Module:
    """The tree with a statement ahead of its imports, after the import of the module that it ``needs``."""
    body = list(tree.body)
    first = int(tree.get_docstring() is not None)
    while first < len(body) and _is_future(body[first]):
        first += 1
    above = [line for line in body if not _is_lone_import(line, needs)]
    imported = next((line for line in body if _is_lone_import(line, needs)), statement(tree, f"import {needs}"))
    empty = cst.EmptyLine(indent=False)
    imported = imported.with_changes(leading_lines=[empty] if first else [])
    added = statement(tree, source).with_changes(leading_lines=[empty])
    if first < len(above) and not any(line.comment is None for line in _leading(above[first])):
        above[first] = above[first].with_changes(leading_lines=[empty, *_leading(above[first])])
    return tree.with_changes(body=[*above[:first], imported, added, *above[first:]])


def _leading(line: Any) -> list[cst.EmptyLine]:
    return list(getattr(line, "leading_lines", ()))


def _is_future(line: Any) -> bool:
    part = line.body[0] if isinstance(line, cst.SimpleStatementLine) else None
    return isinstance(part, cst.ImportFrom) and part.module is not None and dotted(part.module) == "__future__"


def _is_lone_import(line: Any, name: str) -> bool:
    """Whether a statement is ``import name`` and nothing else."""
    part = line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None
    return (
        isinstance(part, cst.Import)
        and [alias.evaluated_name for alias in part.names] == [name]
        and (part.names[0].asname is None)
    )


def _after_imports(tree: cst.Module) -> int:
    """Index in the module's body after its last import, or after its docstring."""
    imports = [number for number, line in enumerate(tree.body) if _is_import(line)]
    return max(imports, default=int(tree.get_docstring() is not None) - 1) + 1


def _is_import(line: Any) -> bool:
    return isinstance(line, cst.SimpleStatementLine) and any(
        isinstance(part, (cst.Import, cst.ImportFrom)) for part in line.body
    )


def with_import(tree: cst.Module, name: str) -> cst.Module:
    """The tree with ``import name`` among its first imports, unless its top level has it."""
    imports = [part for line in tree.body if _is_import(line) for part in line.body if isinstance(part, cst.Import)]  # type: ignore[union-attr]
    if any(alias.evaluated_name == name and alias.asname is None for part in imports for alias in part.names):
        return tree
    index = _first_import(tree, name)
    line, body = statement(tree, f"import {name}"), list(tree.body)
    following: Any = body[index] if index < len(body) else None
    if _is_import(following) and not any(part.comment is not None for part in following.leading_lines):
        line = line.with_changes(leading_lines=following.leading_lines)
        body[index] = following.with_changes(leading_lines=())
    elif index and not _is_import(body[index - 1]):
        line = line.with_changes(leading_lines=[cst.EmptyLine(indent=False)])  # after the docstring
    return tree.with_changes(body=[*body[:index], line, *body[index:]])


def _first_import(tree: cst.Module, name: str) -> int:
    """Where ``import name`` sorts among the leading plain imports."""
    index = int(tree.get_docstring() is not None)
    for line in tree.body[index:]:
        first = line.body[0] if isinstance(line, cst.SimpleStatementLine) else None
        if not _is_future(line) and not (isinstance(first, cst.Import) and first.names[0].evaluated_name < name):
            break
        index += 1
    return index


def with_definition(tree: cst.Module, *definitions: cst.BaseCompoundStatement) -> cst.Module:
    """The tree with classes and functions put after its imports, two blank lines around each."""
    index = _after_imports(tree)
    empty = cst.EmptyLine(indent=False)
    body = list(tree.body)
    if index < len(body):
        following = body[index]
        lines = list(getattr(following, "leading_lines", ()))
        blank = [line for line in lines if line.comment is None]
        if len(blank) < 2:
            body[index] = following.with_changes(leading_lines=[empty] * (2 - len(blank)) + lines)
    added = [definition.with_changes(leading_lines=[empty, empty]) for definition in definitions]
    return tree.with_changes(body=[*body[:index], *added, *body[index:]])


def with_runtime(tree: cst.Module, name: str) -> cst.Module:
    """The tree with the definitions of a module of :mod:`unstall.optimize.runtime`, and all that they need.

    Types are left out, as the file that gets them may import no typing. Raises NameTaken where the file uses one of
    the names for something else.
    """
    source = resources.files("unstall.optimize.runtime").joinpath(f"{name}.py")  # not imported: that imports torch
    runtime = cst.parse_module(source.read_text()).visit(_Untyped())
    definitions = [part for part in runtime.body if isinstance(part, (cst.ClassDef, cst.FunctionDef))]
    imports = [
        alias.evaluated_name
        for line in runtime.body if isinstance(line, cst.SimpleStatementLine)
        for part in line.body if isinstance(part, cst.Import)
        for alias in part.names
    ]  # fmt: skip
    present = {part.name.value: part for part in tree.body if isinstance(part, (cst.ClassDef, cst.FunctionDef))}
    missing = []
    for definition in definitions:
        namesake = present.get(definition.name.value)
        if namesake is None or _source(namesake).split() != _source(definition).split():
            missing.append(definition)
    refuse_taken(tree, [*imports, *(part.name.value for part in missing)])
    for part in (part for line in runtime.body if isinstance(line, cst.SimpleStatementLine) for part in line.body):
        if isinstance(part, cst.ImportFrom) and part.module is not None:
            package, _, other = dotted(part.module).rpartition(".")
            if package == "unstall.optimize.runtime":
                tree = with_runtime(tree, other)
    changed = with_definition(tree, *(statement(tree, _laid_out(_source(part), tree)) for part in missing))
    for wanted in imports:
        changed = with_import(changed, wanted)
    return changed


def refuse_taken(tree: cst.Module, names: Iterable[str]) -> None:
    """Raise NameTaken where the top level binds one of these names to something other than the module of that name."""
    scope = SourceModule(tree).global_scope
    for name in names:
        for assignment in scope[name.partition(".")[0]]:
            if isinstance(assignment, BuiltinAssignment):
                continue
            imported = isinstance(assignment, ImportAssignment) and any(
                qualified.name == name for qualified in assignment.get_qualified_names_for(assignment.name)
            )
            if not imported:
                raise NameTaken(f"the file uses the name {name} for something else")


def _source(definition: cst.BaseCompoundStatement) -> str:
    return cst.Module([definition.with_changes(leading_lines=())]).code


def _laid_out(source: str, tree: cst.Module) -> str:
    """Our source with the indentation and the line endings of a file, within its docstrings too."""
    indented = re.sub(
        r"^(?: {4})+", lambda indentation: tree.default_indent * (len(indentation[0]) // 4), source, flags=re.MULTILINE
    )
    return indented.replace("\n", tree.default_newline)


class _Untyped(cst.CSTTransformer):
    """Takes the types out of a module's definitions."""

    def leave_Param(self, original_node: cst.Param, updated_node: cst.Param) -> cst.Param:
        no_spaces = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
        equal = no_spaces if updated_node.default is not None else cst.MaybeSentinel.DEFAULT
        return updated_node.with_changes(annotation=None, equal=equal)

    def leave_FunctionDef(self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef) -> cst.FunctionDef:
        return updated_node.with_changes(returns=None)

    def leave_AnnAssign(
        self, original_node: cst.AnnAssign, updated_node: cst.AnnAssign
    ) -> cst.Assign | cst.RemovalSentinel:
        if updated_node.value is None:
            return cst.RemoveFromParent()
        return cst.Assign([cst.AssignTarget(updated_node.target)], updated_node.value)
