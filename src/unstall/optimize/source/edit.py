"""Small changes to a syntax tree that keep every space and comment that they need not touch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import libcst as cst

Edit = Callable[[Any], Any]
"""From a node, its inner ones edited already, to what stands in its place: a node, several, or nothing."""


def put(*new: cst.CSTNode) -> Edit:
    """The edit that puts these nodes in the place of one."""
    return lambda _: new[0] if len(new) == 1 else cst.FlattenSentinel(new) if new else cst.RemoveFromParent()


def both(first: Edit | None, second: Edit) -> Edit:
    """The edit that makes two changes to one node, one after the other."""
    return second if first is None else lambda node: second(first(node))


def preceded_by(lines: Sequence[Any]) -> Edit:
    """The edit that puts statements before one, below the comments and blank lines that it has above."""

    def edit(line: Any) -> cst.FlattenSentinel[cst.BaseStatement]:
        first = lines[0].with_changes(leading_lines=line.leading_lines)
        return cst.FlattenSentinel([first, *lines[1:], line.with_changes(leading_lines=[])])

    return edit


def followed_by(lines: Sequence[Any]) -> Edit:
    """The edit that puts statements after one."""
    return lambda line: cst.FlattenSentinel([line, *lines])


def edited(tree: cst.Module, edits: Mapping[cst.CSTNode, Edit]) -> cst.Module:
    """The tree with each of these nodes, which must be in it by identity, as its edit makes it."""
    return cast("cst.Module", apply_edits(tree, edits))


def apply_edits(node: cst.CSTNode, edits: Mapping[cst.CSTNode, Edit]) -> Any:
    """What becomes of one node by the edits of it and of what is in it."""
    return node.visit(_Editor(edits))


def replaced(tree: cst.Module, old: cst.CSTNode, *new: cst.CSTNode) -> cst.Module:
    """The tree with one node, which must be in it by identity, replaced; a statement by several, or by none."""
    return edited(tree, {old: put(*new)})


class _Editor(cst.CSTTransformer):
    """Applies edits from the innermost node to the outermost."""

    def __init__(self, edits: Mapping[cst.CSTNode, Edit]):
        super().__init__()
        self.edits = edits

    def on_leave(self, original_node: cst.CSTNode, updated_node: cst.CSTNode) -> Any:  # type: ignore[override]
        edit = self.edits.get(original_node)
        return updated_node if edit is None else edit(updated_node)


def statement(tree: cst.Module, source: str) -> Any:
    """A statement from its source, with the indentation and the line endings of the file."""
    return cst.parse_statement(source if source.endswith("\n") else source + "\n", config=tree.config_for_parsing)


def keyword(call: cst.Call, name: str) -> cst.Arg | None:
    """The argument that a call passes by this name."""
    return next((arg for arg in call.args if arg.keyword is not None and arg.keyword.value == name), None)


def is_true(argument: cst.Arg | None) -> bool:
    """Whether there is such an argument, and it is a plain ``True``."""
    return argument is not None and isinstance(argument.value, cst.Name) and argument.value.value == "True"


def with_keyword(call: cst.Call, name: str, value: str) -> cst.Call:
    """The call with a keyword argument set or added, in the manner in which its arguments are laid out.

    One that may be among others in ``**keywords`` is set there: given twice, it would be an error.
    """
    expression = cst.parse_expression(value)
    present = keyword(call, name)
    if present is not None:
        return call.with_deep_changes(present, value=expression)
    others = next((arg for arg in call.args if arg.star == "**"), None)
    if others is not None:
        entry = cst.DictElement(cst.SimpleString(f'"{name}"'), expression)
        known = others.value.elements if isinstance(others.value, cst.Dict) else [cst.StarredDictElement(others.value)]
        return call.with_deep_changes(others, value=cst.Dict([*known, entry]))
    equal = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
    added = cst.Arg(expression, cst.Name(name), equal)
    if not call.args:
        return call.with_changes(args=[added])
    *rest, last = call.args
    between: cst.BaseParenthesizableWhitespace = cst.SimpleWhitespace(" ")
    if rest and isinstance(rest[0].comma, cst.Comma):
        between = rest[0].comma.whitespace_after
    elif isinstance(call.whitespace_before_args, cst.ParenthesizedWhitespace):
        between = call.whitespace_before_args
    end, comma = last.whitespace_after_arg, last.comma
    if isinstance(comma, cst.Comma):
        remark, comma = (
            _comment(comma.whitespace_after),
            comma.with_changes(whitespace_after=_uncommented(comma.whitespace_after)),
        )
    else:
        remark, end = _comment(end), _uncommented(end)
    between = _with_comment(_uncommented(between), remark)
    added = added.with_changes(comma=comma, whitespace_after_arg=end)
    last = last.with_changes(comma=cst.Comma(whitespace_after=between), whitespace_after_arg=cst.SimpleWhitespace(""))
    return call.with_changes(args=[*rest, last, added])


def _comment(space: cst.BaseParenthesizableWhitespace) -> cst.TrailingWhitespace | None:
    """The end of the line with its comment, where the space between two arguments begins with one."""
    if isinstance(space, cst.ParenthesizedWhitespace) and space.first_line.comment is not None:
        return space.first_line
    return None


def _uncommented(space: cst.BaseParenthesizableWhitespace) -> cst.BaseParenthesizableWhitespace:
    """The same space without its comments: they are about other arguments."""
    if not isinstance(space, cst.ParenthesizedWhitespace):
        return space
    line = space.first_line.with_changes(comment=None, whitespace=cst.SimpleWhitespace(""))
    return space.with_changes(first_line=line, empty_lines=[])


def _with_comment(
    space: cst.BaseParenthesizableWhitespace, line: cst.TrailingWhitespace | None
) -> cst.BaseParenthesizableWhitespace:
    """The space with a comment that belongs to the argument before it."""
    if line is None:
        return space
    if isinstance(space, cst.ParenthesizedWhitespace):
        return space.with_changes(first_line=line)
    return cst.ParenthesizedWhitespace(first_line=line, indent=True)


def without_keyword(call: cst.Call, name: str) -> cst.Call:
    """The call without a keyword argument."""
    remaining = [arg for arg in call.args if not (arg.keyword is not None and arg.keyword.value == name)]
    if remaining and len(remaining) < len(call.args) and remaining[-1] is not call.args[-1]:
        last = call.args[-1]
        remaining[-1] = remaining[-1].with_changes(comma=last.comma, whitespace_after_arg=last.whitespace_after_arg)
    return call.with_changes(args=remaining)
