"""Tables of a chapter, held to what a run of it leaves.

A row whose code gives something says so in its first cell, in a comment where
`{}` stands for the code: `| ids<!-- ({} == key_mask).all() --> | ... |`.
"""

import re

from tools.run.claims import CLAIM, SOURCE

COMMENT = re.compile(r"<!-- (\S.*?) -->")
LIBRARIES = {"torch", "nn", "F", "tf", "keras"}
FRAMEWORKS = {"PyTorch", "TensorFlow", "Keras"}  # heads of their columns


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
    return [
        f"{notebook.name(cell)}: {message}"
        for cell in notebook.markdown
        for check in (false_rows, unknown_names)
        for message in check(cell.source, namespace)
    ]


def false_rows(text, namespace):
    """Yield a message for each row whose code does not give what it says.

    Where one row of a table says what its code gives, each row has to.
    """
    for table in tables(SOURCE.sub(r"\1", CLAIM.sub(r"\1", text))):
        rows = [(*row.values(),) for row in table]
        if not any(COMMENT.search(label) for label, *_ in rows):
            continue
        for label, *cells in rows:
            said, given = COMMENT.search(label), codes(" ".join(cells))
            if given and (wrong := false(said and said[1], given, namespace)):
                yield (
                    f"the row {COMMENT.sub('', label)!r}: {wrong}. Correct "
                    "the code, or the comment in the row's first cell that "
                    "says what it gives, with a space and no = behind <!--: "
                    "<!-- ({} == key_mask).all() -->."
                )


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


def unknown_names(text, namespace):
    """Yield a message for each name in a Summary table that does not exist.

    In a framework's column that is a name of a library; what else stands
    there may be an argument.
    """
    for row in rows_with(text, "equation"):
        for head, cell in list(row.items())[1:]:
            for code in codes(cell):
                name, _, _ = code.partition("(")  # calls.py checks the rest
                ours = head not in FRAMEWORKS
                library = name.partition(".")[0] in LIBRARIES
                if (ours or library) and not exists(name, namespace):
                    yield (
                        f"the summary names {code} under {head}, where it "
                        "does not exist. Correct the name."
                    )


def exists(name, namespace):
    try:
        eval(name, dict(namespace))
    except (NameError, AttributeError, SyntaxError):
        return False
    return True
