"""A chapter's code as statements: what each binds and reads.

Two questions are answered by names alone, without running anything: which
statements does an exercise need (`slice_of`), and which are left when one
framework is left out (`living`).
"""

import ast
import builtins
import re
import symtable
from dataclasses import dataclass, replace

from tools.notebooks import tags

# The modules of each framework, and the tag of its cells.
MODULES = {
    "pytorch": {"torch", "cellbycell.pytorch"},
    "tensorflow": {"tensorflow", "keras", "cellbycell.tensorflow"},
}
# A call of these changes nothing that it is given.
SHOWS = re.compile(r"print\w*|show\w*|plt|display|len|assert\w*")
# What is for the cell that it stands in: a seed, and how numbers are printed.
SETS = re.compile(r"\w*seed|set_printoptions|set_seed|set_random_seed")
HERE = {"listcomp", "setcomp", "dictcomp", "genexpr"}  # run at once


@dataclass(eq=False)
class Statement:
    """A statement at the top of a cell, and the names that it touches.

    binds: gives them a new value. changes: changes the value they have.
    reads: when it runs. later: when a function that it defines is called.
    """

    cell: object
    source: str
    node: ast.stmt
    binds: set
    changes: set
    reads: set
    later: set

    @property
    def imports(self):
        """Return the modules that it imports."""
        if isinstance(self.node, ast.Import):
            return {alias.name for alias in self.node.names}
        if isinstance(self.node, ast.ImportFrom):
            return {self.node.module}
        return set()

    @property
    def defines(self):
        """Tell whether it is a function or a class."""
        return isinstance(self.node, (ast.FunctionDef, ast.ClassDef))

    @property
    def sets(self):
        """Tell whether it is a call such as torch.manual_seed(0)."""
        call = getattr(self.node, "value", None)
        if not isinstance(self.node, ast.Expr) or not is_call(call):
            return False
        return bool(SETS.fullmatch(ast.unparse(call.func).split(".")[-1]))

    @property
    def for_tensorflow(self):
        """Tell whether it is os.environ["TF_..."] = "..."."""
        return self.source.strip().startswith('os.environ["TF_')

    def without(self, names):
        """Return an import without some of its names, or None."""
        kept = [
            alias
            for alias in self.node.names
            if (alias.asname or alias.name.split(".")[0]) not in names
        ]
        if len(kept) == len(self.node.names):
            return self
        if not kept:
            return None
        if isinstance(self.node, ast.Import):
            node = ast.Import(kept)
        else:
            node = ast.ImportFrom(self.node.module, kept, 0)
        source = ast.unparse(node)
        if len(source) > 79:
            first, listed = source.split(" import ")
            listed = "".join(f"    {name},\n" for name in listed.split(", "))
            source = f"{first} import (\n{listed})"
        above = re.match(r"\s*", self.source)[0]
        left = self.binds - set(names)
        return replace(self, source=above + source, node=node, binds=left)


def is_call(node):
    return isinstance(node, ast.Call)


def statements(cell):
    """Return the statements of a cell; a comment goes with what it is above.

    A title, "# @title ...", goes with none.
    """
    lines = cell.source.split("\n")
    start, found = int(lines[0].startswith("# @title")), []
    nodes = ast.parse(cell.source).body
    for node in nodes:
        source = "\n".join(lines[start : node.end_lineno])
        found.append(
            Statement(cell, source, node, *names_of(source, node, nodes[-1]))
        )
        start = node.end_lineno
    return found


def names_of(source, node, shown):
    """Return what a statement binds, changes, reads, and reads later."""
    table = symtable.symtable(source, "cell", "exec")
    binds, reads, later = set(), set(), set()
    for symbol in table.get_symbols():
        if symbol.is_assigned() or symbol.is_imported():
            binds.add(symbol.get_name())
        if symbol.is_referenced():
            reads.add(symbol.get_name())
    inner = [(child, reads) for child in table.get_children()]
    while inner:
        table, found = inner.pop()
        if table.get_type() == "function" and table.get_name() not in HERE:
            found = later
        found |= {
            symbol.get_name()
            for symbol in table.get_symbols()
            if symbol.is_global() and symbol.is_referenced()
        }
        inner += [(child, found) for child in table.get_children()]
    changes = set(changed(node, shown))
    if isinstance(node, ast.AugAssign):
        changes |= {root(node.target)}
    return binds - changes, changes, reads | changes, later


def root(node):
    """Return the name that x.a[0].b begins with, or ""."""
    while not isinstance(node, ast.Name):
        node = getattr(node, "value", None) or getattr(node, "func", None)
        if node is None:
            return ""
    return node.id


def changed(node, shown):
    """Yield the names whose values a statement changes, not in a function.

    By x[...] = or x.a =, and by a call that stands alone, such as
    x.append(1): it may change whatever it is given. shown: the last of a cell.
    """
    todo = [node]
    while todo:
        node = todo.pop()
        if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Lambda)):
            continue
        todo += ast.iter_child_nodes(node)
        if isinstance(node, (ast.Subscript, ast.Attribute)):
            if isinstance(node.ctx, (ast.Store, ast.Del)):
                yield root(node)
        if isinstance(node, ast.Expr) and is_call(call := node.value):
            # The last line of a cell shows what it gives; a method may be
            # for its effect even so.
            given = [] if node is shown else call.args
            if isinstance(call.func, ast.Attribute):
                given = [call.func.value, *given]
            if not SHOWS.fullmatch(root(call.func)):
                given = (x for x in given if not is_call(x))
                yield from {*map(root, given)} - {"", *dir(builtins)}


def slice_of(before, asked):
    """Return which of the statements before others these others need.

    A name that a function reads when it is called may have any value that it
    ever had, so all of them are kept; one that is read at once, the last.
    """
    fixed = {n for s in before if s.imports or s.defines for n in s.binds}
    late, kept = set(), []
    while True:
        need, was = set(late), (set(late), [s.source for s in kept])
        last, kept = kept, []
        for statement in reversed([*before, *asked]):
            is_asked = statement in asked
            if not is_asked and not is_wanted(statement, need, fixed, last):
                continue
            if statement.imports:
                statement = statement.without(statement.binds - need)
            need -= statement.binds - late
            need |= statement.reads | statement.later
            late |= statement.later
            if not is_asked:
                kept.insert(0, statement)
        if (late, [s.source for s in kept]) == was:
            return kept


def is_wanted(statement, need, fixed, kept):
    """Tell whether a slice takes a statement in.

    need: the names that what follows reads; fixed: names of modules and
    functions; kept: what the slice had at last.
    """
    if statement.sets:
        near = [s for s in kept if s.cell is statement.cell and not s.sets]
        is_setup = any(s.imports for s in near)
        return statement.changes & need if is_setup else near
    if statement.for_tensorflow:
        return {m for s in kept for m in s.imports} & MODULES["tensorflow"]
    return (statement.binds | statement.changes - fixed) & need


def living(all_statements, framework):
    """Return what is left of a chapter's statements in one framework.

    What needs the other framework goes, and what needs what has gone.
    """
    if framework is None:
        return list(all_statements)
    gone, [other] = set(), {*MODULES} - {framework}
    while True:
        dead, alive, left = set(gone), set(), []
        for statement in all_statements:
            binds, lost = statement.binds, set()
            if other in tags(statement.cell):
                lost = binds
            elif statement.imports:
                lost = binds & foreign(statement.node, other)
                statement = statement.without(lost)
            elif (statement.reads | statement.later) & dead:
                lost = binds
            elif statement.for_tensorflow and framework == "pytorch":
                statement = None
            dead = (dead | lost) - (binds - lost)
            alive |= binds - lost
            if statement and (not lost or statement.imports):
                if not (statement.reads | statement.later) & dead:
                    left.append(statement)
        # A function may read what dies only below it.
        never = {n for s in all_statements for n in s.binds} - alive
        if never <= gone:
            return left
        gone |= never


def foreign(node, framework):
    """Return the names that an import takes from a framework."""
    found = set()
    for alias in node.names:
        module = getattr(node, "module", alias.name)
        name = alias.asname or alias.name.split(".")[0]
        if any(f"{module}.".startswith(f"{m}.") for m in MODULES[framework]):
            found.add(name)
    return found
