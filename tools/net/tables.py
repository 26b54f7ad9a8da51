"""Tables of a chapter, held to what a run of it leaves.

A row whose code gives something says so in its first cell, in a comment where
`{}` stands for the code: `| ids<!-- ({} == key_mask).all() --> | ... |`.
"""

import re
from contextlib import suppress

from tools.net.claims import CLAIM
from tools.notebooks import tags

COMMENT = re.compile(r"<!-- (\S.*?) -->")
NAME = re.compile(r"[A-Za-z_]\w*(?:=(?!=))?")  # with = if it is a keyword
COLUMNS = {  # of a Summary table -> the tag of a cell
    "PyTorch": "pytorch",
    "TensorFlow": "tensorflow",
    "Keras": "tensorflow",
}
LIBRARIES = {
    **dict.fromkeys(["torch", "nn", "F"], "pytorch"),
    **dict.fromkeys(["tf", "keras"], "tensorflow"),
}


def tables(text):
    """Yield each table of a text, a list of rows: dict from head to cell."""
    for block in re.findall(r"(?m)(?:^\|.*\|$\n?)+", text):
        head, _, *rows = (
            [cell.strip() for cell in row.strip("|").split("|")]
            for row in block.strip().split("\n")
        )
        yield [dict(zip(head, row, strict=True)) for row in rows]


def rows_with(text, *heads):
    """Yield the rows of those tables that have all these heads."""
    for table in tables(text):
        yield from (row for row in table if {*heads} <= row.keys())


def codes(cell):
    """Return what stands in a cell as code."""
    return re.findall(r"`([^`]+)`", cell)


def check_tables(notebook, namespace):
    """Return a message for each row of a chapter's tables that is not true.

    namespace: the chapter's variables after a run.
    """
    used = names_by_framework(notebook)
    return [
        f"{notebook.name(cell)}: {message}"
        for cell in notebook.markdown
        for found in (
            false_rows(cell.source, namespace),
            unknown_names(cell.source, used, namespace),
        )
        for message in found
    ]


def false_rows(text, namespace):
    """Yield a message for each row whose code does not give what it says."""
    for table in tables(CLAIM.sub(r"\1", text)):
        rows = [(*row.values(),) for row in table]
        convert = any(COMMENT.search(label) for label, *_ in rows) or (
            not {"equation", "in code"} & table[0].keys()
            and any(map(all_code, list(zip(*rows, strict=True))[1:]))
        )
        for label, *cells in rows if convert else []:
            said, given = COMMENT.search(label), codes(" ".join(cells))
            if given and (wrong := false(said and said[1], given, namespace)):
                yield (
                    f"the row {COMMENT.sub('', label)!r}: {wrong}. Correct "
                    "the code, or the comment in the row's first cell that "
                    "says what it gives, with a space and no = behind <!--: "
                    "<!-- ({} == key_mask).all() -->."
                )


def all_code(column):
    return all(re.fullmatch("`[^`]+`", cell) for cell in column)


def false(claim, given, namespace):
    """Return what is wrong with a claim about pieces of code, or None."""
    if not claim:
        return f"nothing computes {given[0]}"
    first, *parts = claim.split("{}")
    given = given * len(parts) if len(given) == 1 else given
    claim = first + "".join(map("".join, zip(given, parts, strict=True)))
    try:
        return None if eval(claim, dict(namespace)) else f"{claim} is not true"
    except Exception as error:
        return f"{claim} raises {type(error).__name__}: {error}"


def names_by_framework(notebook):
    """Map each framework's tag to the names in cells that may be its own."""
    used = {"pytorch": set(), "tensorflow": set()}
    for cell in notebook.code:
        words = set(NAME.findall(cell.source))
        words |= {word.rstrip("=") for word in words}
        for tag in tags(cell) & used.keys() or used:
            used[tag] |= words
    return used


def unknown_names(text, used, namespace):
    """Yield a message for each name in a Summary table that no code has."""
    for row in rows_with(text, "equation"):
        for head, cell in list(row.items())[1:]:
            # KerasHub is not run here.
            for code in codes(re.sub(r"KerasHub `\w+`", "", cell)):
                if not is_known(code, COLUMNS.get(head), used, namespace):
                    yield (
                        f"the summary names {code} under {head}, where no "
                        "code of the chapter has it. Correct the name, or "
                        "move it to its own column."
                    )


def is_known(code, framework, used, namespace):
    """Tell whether code in a column of a framework, or of none, exists."""
    names = set(NAME.findall(code)) - {"True"}
    function, _, _ = code.partition("(")  # calls.py has what it takes
    if code.isidentifier() and not framework:
        return code in namespace
    if library := LIBRARIES.get(code.split(".")[0]):
        with suppress(Exception):
            return library == framework and eval(function, dict(namespace))
        return False
    return names <= used.get(framework, set.union(*used.values()))
