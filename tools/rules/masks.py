"""Masks: joined with & and never edited in place."""

import ast
import re

from tools.markdown import sections
from tools.rules.common import CASES, OTHERS, rule, trees, walk


@rule
def masks_are_not_edited_in_place(notebook):
    titles_of = {id(cell): t for t, cell, _ in sections(notebook.cells)}
    for cell, tree in trees(notebook):
        edits = [n for n in walk(tree) if edits_a_mask(n)]
        for node in (
            edits if not {CASES, OTHERS} & {*titles_of[id(cell)]} else ()
        ):
            yield (
                f"{notebook.name(cell)}: {ast.unparse(node)} edits a mask in "
                "place, which changes it for all who hold it. Make a new "
                "one, as by mask & other."
            )


def edits_a_mask(node):
    """Tell whether a statement or call changes a mask that exists.

    It assigns to a part, combines in place, or calls a method that does:
    mask[0] = ..., mask &= ..., mask.fill_(...), mask.assign(...).
    """
    match node:
        case ast.Assign([ast.Subscript(target), *_]):
            return is_mask(target)
        case ast.AugAssign(target):
            return is_mask(target)
        case ast.Call(ast.Attribute(target, method)):
            in_place = method.endswith("_") or method.startswith("assign")
            return in_place and is_mask(target)
    return False


def is_mask(node):
    """Tell by its name whether code is a mask or a part of one."""
    name = ast.unparse(node).partition("[")[0]
    # What a call returns, as in mask.float(), is a new array.
    return "(" not in name and "mask" in re.split(r"[._]", name)
