"""A chapter's code as statements, and which of them an exercise needs.

Answered by the names alone that each statement binds and reads; nothing runs.
"""

import ast
import builtins
import re
import symtable
from dataclasses import dataclass

# The modules of each framework, and the tag of its cells.
MODULES = {
    "pytorch": {"torch", "cellbycell.pytorch"},
    "tensorflow": {"tensorflow", "keras", "cellbycell.tensorflow"},
}
# A call of these changes nothing that it is given.
SHOWS = re.compile(r"print\w*|show\w*|plt|display|len|assert\w*")
# What is for its cell, a seed, or for all that follows a setup.
SETS = re.compile(r"\w*seed|set_(printoptions|num_threads|random_seed|floatx)")
NOTHING = {"", *dir(builtins)}  # no name of the chapter's
HERE = {"listcomp", "setcomp", "dictcomp", "genexpr"}  # run at once
# What may leave a name as it was.
MAY_BIND = (ast.For, ast.While, ast.If, ast.Try, ast.AugAssign)


@dataclass(eq=False)
class Statement:
    """A statement at the top of a cell, and the names that it touches.

    binds: gives them a new value. changes: changes the value they have.
    given: to a call that may change it.
    reads: when it runs. later: when a function that it defines is called.
    """

    cell: object
    source: str
    node: ast.stmt
    binds: set
    changes: set
    given: set
    reads: set
    later: set
    is_last: bool = False

    @classmethod
    def of(cls, cell, source, is_last):
        """Return the statement of this source. is_last: in its cell."""
        [node] = ast.parse(source).body
        names = names_of(source, node, is_last)
        return cls(cell, source, node, *names, is_last)

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
            source = ast.unparse(ast.Import(kept))
        else:
            source = ast.unparse(ast.ImportFrom(self.node.module, kept, 0))
        if len(source) > 79:
            first, listed = source.split(" import ")
            listed = "".join(f"    {name},\n" for name in listed.split(", "))
            source = f"{first} import (\n{listed})"
        above = re.match(r"\s*", self.source)[0]
        return Statement.of(self.cell, above + source, self.is_last)


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
        found.append(Statement.of(cell, source, node is nodes[-1]))
        start = node.end_lineno
    return found


def names_of(source, node, is_last):
    """Return what a statement binds, changes, gives, reads, reads later."""
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
    changes, given = touched(node, is_last)
    if isinstance(node, ast.For):  # for row in rows: row += [0]
        for target, of in gone_through(node):
            if changes & names_stored(target):
                changes |= {root(of)} - NOTHING
    reads |= changes
    reads -= {name for name, stored in first_uses(node).items() if stored}
    return binds - changes, changes, given, reads, later


def gone_through(loop):
    """Return (target, what it goes through), also of zip and enumerate."""
    skipped = {"zip": 0, "enumerate": 1}.get(root(loop.iter))
    if skipped is None:
        return [(loop.target, loop.iter)]
    targets = getattr(loop.target, "elts", [])[skipped:]
    return list(zip(targets, loop.iter.args, strict=False))


def names_stored(target):
    """Return the names that a loop binds."""
    return {n.id for n in ast.walk(target) if isinstance(n, ast.Name)}


def first_uses(node):
    """Map each name in a statement to whether it is bound before it is read.

    As in a loop, whose body reads its variable.
    """
    found = {}

    def walk(node):
        fields = [getattr(node, name, None) for name in node._fields]
        if isinstance(node, (ast.Assign, ast.NamedExpr)):
            fields.reverse()  # the value comes first
        elif isinstance(node, ast.For):
            fields[:2] = node.iter, node.target
        for field in fields:
            for child in field if isinstance(field, list) else [field]:
                if isinstance(child, ast.AST):
                    walk(child)
        if isinstance(node, ast.Name):
            found.setdefault(node.id, isinstance(node.ctx, ast.Store))

    walk(node)
    return found


def root(node):
    """Return the name that x.a[0].b begins with, or ""."""
    while not isinstance(node, ast.Name):
        node = getattr(node, "value", None) or getattr(node, "func", None)
        if node is None:
            return ""
    return node.id


def touched(node, is_last):
    """Return the names whose values a statement changes, and may change.

    It changes x by x[...] = and x.a =, and by a call x.append(1) that stands
    alone; such a call may change whatever it is given. The last line of a
    cell shows what a call returns.
    """
    changes, given, todo = set(), [], [node]
    while todo:
        part = todo.pop()
        if isinstance(part, (ast.FunctionDef, ast.ClassDef, ast.Lambda)):
            continue
        todo += ast.iter_child_nodes(part)
        if isinstance(part, (ast.Subscript, ast.Attribute)):
            if isinstance(part.ctx, (ast.Store, ast.Del)):
                changes.add(root(part))
        elif isinstance(part, ast.AugAssign):
            changes.add(root(part.target))
        elif isinstance(part, ast.Expr) and is_call(call := part.value):
            if SHOWS.fullmatch(root(call.func)):
                continue
            if isinstance(call.func, ast.Attribute):
                changes.add(root(call.func))
            if not (is_last and part is node):
                given += [arg for arg in call.args if not is_call(arg)]
    return changes - NOTHING, {*map(root, given)} - NOTHING


def slice_of(before, asked):
    """Return which of the statements before others these others need.

    A name that a function reads when it is called may have any value that it
    ever had, so all of them are kept; one that is read at once, the last.
    """
    fixed = fixed_names(before)
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
            if not isinstance(statement.node, MAY_BIND):
                need -= statement.binds - late
            need |= statement.reads | statement.later
            late |= statement.later
            if "globals" in statement.reads:
                need |= fixed
            if not is_asked:
                kept.insert(0, statement)
        if (late, [s.source for s in kept]) == was:
            return kept


def fixed_names(statements):
    """Return the names of modules, functions and classes.

    np.set_printoptions() changes no np that matters to anybody.
    """
    fixed = (s for s in statements if s.imports or s.defines)
    return {name for statement in fixed for name in statement.binds}


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
    return (
        statement.binds | (statement.changes | statement.given) - fixed
    ) & need
