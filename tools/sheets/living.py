"""What is left of a chapter's statements when one framework is left out."""

import ast

from tools.notebooks import tags
from tools.sheets.statements import MODULES, Statement, fixed_names


def living(statements, framework):
    """Return the statements that need nothing of the other framework.

    What needs it goes, and what needs what has gone. Of a dictionary, and of
    what a loop goes through, only the entries go that need it. framework:
    None for both.
    """
    if framework is None:
        return list(statements)
    never, [other] = set(), {*MODULES} - {framework}
    fixed = fixed_names(statements)
    while True:
        dead, alive, left, twin = Dead(never, fixed), set(), [], set()
        for statement in statements:
            found = dead.left_of(statement, framework, other)
            kept = found.binds if found else set()
            if framework in tags(statement.cell):
                twin |= kept
            elif other not in tags(statement.cell):
                twin = set()
            left += [found] * bool(found)
            alive |= kept
            # What both twins bind is there without the other one.
            dead.names -= kept
            dead.names |= statement.binds - kept - twin
        # A function may read what dies only below it.
        gone = {n for s in statements for n in s.binds} - alive
        if gone <= never:
            return left
        never |= gone


class Dead:
    """The names, and the entries of dictionaries, that have gone so far."""

    def __init__(self, names, fixed):
        self.names, self.fixed, self.entries = set(names), fixed, set()

    def left_of(self, statement, framework, other):
        """Return what is left of a statement, or None; note what is lost."""
        if statement.imports:
            return statement.without(foreign(statement.node, other))
        if other in tags(statement.cell):
            return None
        if statement.for_tensorflow and framework == "pytorch":
            return None
        if not self.touches(statement):
            return statement
        if found := self.pruned(statement):
            return found
        entry = entry_of(statement.node)
        if entry:
            self.entries.add(entry)
        else:  # what is not filled as it was meant to be is of no use
            self.names |= statement.changes - self.fixed
        return None

    def touches(self, statement):
        """Tell whether a statement reads what has gone."""
        reads = statement.reads | statement.later
        return reads & self.names or self.entries & entries_in(statement.node)

    def is_in(self, node):
        """Tell whether a part of a statement reads what has gone."""
        parts = [*ast.walk(node)]
        names = {n.id for n in parts if isinstance(n, ast.Name)}
        names -= {n.arg for n in parts if isinstance(n, ast.arg)}  # lambda x:
        return names & self.names or self.entries & entries_in(node)

    def pruned(self, statement):
        """Return a statement without the entries that have gone, or None."""
        gone = set()
        while self.touches(statement):
            for parts in reversed([*literals(statement)]):
                lost = [any(map(self.is_in, part)) for part in parts]
                if any(lost) and not all(lost):
                    break
            else:
                return None
            gone |= {
                part[0].value
                for part, is_lost in zip(parts, lost, strict=True)
                if is_lost and isinstance(part[0], ast.Constant)
            }
            try:
                source = cut(statement.source, parts, lost)
                statement = Statement.of(
                    statement.cell, source, statement.is_last
                )
            except SyntaxError:
                return None
        self.entries |= {
            (name, key) for name in statement.binds for key in gone
        }
        return statement


def literals(statement):
    """Yield the parts of each dictionary, and of what a loop goes through.

    A part is (key, value), or (item,). A loop that fills something goes
    through all or nothing, for who reads it may count on all.
    """
    for node in ast.walk(statement.node):
        if isinstance(node, ast.Dict):
            pairs = zip(node.keys, node.values, strict=True)
            yield [tuple(x for x in pair if x) for pair in pairs]
        elif isinstance(node, ast.For) and not statement.changes:
            if isinstance(node.iter, (ast.List, ast.Tuple)):
                yield [(item,) for item in node.iter.elts]


def cut(source, parts, lost):
    """Return a statement without the parts of a literal that are lost.

    The spaces and the comma before the next part, or behind the last one
    that stays, go with them.
    """
    text = source.encode()
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    spans = [
        (
            starts[part[0].lineno - 1] + part[0].col_offset,
            starts[part[-1].end_lineno - 1] + part[-1].end_col_offset,
        )
        for part in parts
    ]
    kept = [
        span for span, is_lost in zip(spans, lost, strict=True) if not is_lost
    ]
    head, tail = text[: spans[0][0]], text[spans[-1][1] :]
    middle = []
    for start, end in kept:
        later = [s for s, _ in spans if s > start]
        middle.append(text[start : later[0] if later else end])
    if kept[-1] != spans[-1]:
        middle[-1] = text[slice(*kept[-1])]
    if len(kept) == 1 == len(parts[0]) and not tail.lstrip().startswith(b","):
        tail = b"," + tail  # or a tuple would be none
    return (head + b"".join(middle) + tail).decode()


def entries_in(node):
    """Return (name, key) of each name["key"] in a statement."""
    return {entry for n in ast.walk(node) if (entry := entry_at(n))}


def entry_at(node):
    """Return (name, key) of name["key"], or None."""
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
        if isinstance(node.slice, ast.Constant):
            return node.value.id, node.slice.value
    return None


def entry_of(node):
    """Return (name, key) of what a statement name["key"] = ... sets."""
    targets = getattr(node, "targets", ())
    return entry_at(targets[0]) if len(targets) == 1 else None


def foreign(node, framework):
    """Return the names that an import takes from a framework."""
    found = set()
    for alias in node.names:
        module = getattr(node, "module", alias.name)
        name = alias.asname or alias.name.split(".")[0]
        if any(f"{module}.".startswith(f"{m}.") for m in MODULES[framework]):
            found.add(name)
    return found
