"""Masks: joined with & and never edited in place."""

import ast
import re

from tools.markdown import sections
from tools.rules.common import CASES, OTHERS, rule, trees, walk


@rule
def masks_are_not_edited_in_place(notebook):
    """But for those under the mistakes, which show what comes of it."""
    titles_of = {id(cell): t for t, cell, _ in sections(notebook.cells)}
    for cell, tree in trees(notebook):
        if {CASES, OTHERS} & {*titles_of[id(cell)]}:
            continue
        for node in filter(edits_a_mask, walk(tree)):
            yield (
                f"{notebook.name(cell)}: {ast.unparse(node)} edits a mask in "
                "place, which changes it for all who hold it. Make a new "
                "one, as by mask & other."
            )


def edits_a_mask(node):
    """Tell whether code changes a mask: by [...] = , by &= or by a method."""
    match node:
        case ast.Assign([ast.Subscript() as target, *_]):
            pass
        case ast.AugAssign(target):
            pass
        case ast.Call(ast.Attribute(target, method)) if re.match(
            r"assign|.*_$", method
        ):
            pass
        case _:
            return False
    name = ast.unparse(target).partition("[")[0]
    # What a call returns, as in mask.float(), is a new array.
    return "(" not in name and "mask" in re.split(r"[._]", name)
