"""Put the side roads of an edition at its end, as Colab folds none.

At a side road's old place stands a link to it, and in it a link back. Where a
later cell binds anew what a side road reads, a folded cell at the old place
keeps it, and one in the side road brings it back.
"""

import ast
import re

from nbformat import from_dict
from nbformat.v4 import new_code_cell, new_markdown_cell

from tools.markdown import headings
from tools.notebooks import FOLDED, is_aside, parsed
from tools.sheets.cells import names

# What counts as a screen: so many lines; a line: so many words. A picture is
# so many lines; a drawing says how high it is, and a line is so much of that.
LINES, WORDS, PICTURE, DRAWN = 40, 12, 15, 15
END = "## Side roads\n\nA first reading can do without them."


def at_the_end(cells):
    """Return cells with the side roads behind all others.

    Raises ValueError if one of the others needs what a side road binds.
    """
    main, roads, level = [], [], 0
    for cell in cells:
        depth, title = heading(cell)
        if 0 < depth <= level:
            level = 0
        if not level and is_aside(cell) and title != "Setup":
            level = depth
            road = [cell]
            roads.append(road)
            main.append(new_markdown_cell(id=f"to-{cell.id}"))
        elif level:
            road.append(cell)
        else:
            main.append(cell)
    kept = what_is_kept(cells, main, roads)
    for road in roads:
        first, [depth, title] = road[0], heading(road[0])
        place = f"to-{first.id}"
        at = next(i for i, cell in enumerate(main) if cell.id == place)
        words = title.removeprefix("Side road: ")
        kind = "Side road: " if words != title else ""
        main[at].source = f"{kind}[{words}](#scrollTo={first.id}), at the end."
        for cell in road:
            if cell.cell_type == "markdown":
                cell.source = re.sub(
                    f"(?m)^{'#' * depth}(?=#* )", "###", cell.source
                )
        back = f"\n[Back to its place](#scrollTo={place})"
        first.source = re.sub("$", back, first.source, count=1, flags=re.M)
        if found := kept.get(first.id):
            inside, kept_as = ", ".join(found), f"kept_{first.id}"
            kept_as = kept_as.replace("-", "_")
            keep = f"Kept for this side road\n{kept_as} = {inside}"
            main.insert(at + 1, folded(keep, f"keep-{first.id}"))
            bring = f"As it was at its place\n{inside} = {kept_as}"
            road.insert(1, folded(bring, f"bring-{first.id}"))
    end = [new_markdown_cell(END, id="side-roads")] if roads else []
    return [*main, *end, *(cell for road in roads for cell in road)]


def screens(notebook):
    """Return the screens before the side roads; what is folded is one line."""
    lines = 0
    for cell in notebook.cells:
        if cell.id == "side-roads":
            break
        text = re.sub(r"(?s)<details>.*?</details>", "fold", cell.source)
        if cell.cell_type == "markdown":
            lines += sum(-(-len(x.split()) // WORDS) for x in text.split("\n"))
            lines += PICTURE * text.count("](data:")
            continue
        lines += 1 if "cellView" in cell.metadata else text.count("\n") + 1
        for output in cell.outputs:
            data = output.get("data", {})
            text = output.get("text") or data.get("text/plain", "")
            if drawing := re.search(r'viewBox="0 0 \d+ ([\d.]+)"', svg(data)):
                lines += float(drawing[1]) / DRAWN
            elif data.keys() - {"text/plain"}:
                lines += PICTURE
            else:
                lines += len(text.splitlines())
    return lines / LINES


def svg(data):
    """Return the drawing among the formats of an output, or ""."""
    return data.get("image/svg+xml", "")


def folded(text, name):
    """Return a folded cell of this name, of a title and code."""
    metadata = from_dict(FOLDED)
    return new_code_cell(f"# @title {text}", metadata=metadata, id=name)


def heading(cell):
    """Return level and title of the heading that a cell begins with."""
    is_text = cell.cell_type == "markdown" and cell.source.startswith("#")
    return headings(cell.source)[0] if is_text else (0, "")


def what_is_kept(cells, main, roads):
    """Return the names that each side road finds bound anew at the end."""
    aside = {cell.id: road[0].id for road in roads for cell in road}
    # By name, the cell that has bound it: up to a cell, and as a side road
    # finds it at the end.
    bound, found = {}, {}
    for cell in main:
        if cell.cell_type == "code":
            found |= dict.fromkeys(names(cell.source)[0], cell.id)
    kept = {}
    for cell in cells:
        if cell.cell_type != "code":
            continue
        binds, road = names(cell.source)[0], aside.get(cell.id)
        for name in sorted(needs(cell.source) & bound.keys()):
            if not road and bound[name] in aside:
                raise ValueError(
                    f"cell {cell.id!r} needs {name!r} of the side road cell "
                    f"{bound[name]!r}. Give the name there another one."
                )
            if road and found[name] != bound[name]:
                kept.setdefault(road, []).append(name)
                found[name] = bound[name]
        bound |= dict.fromkeys(binds, cell.id)
        if road:
            found |= dict.fromkeys(binds, cell.id)
    return kept


def needs(source):
    """Return the names that code reads before it binds them itself."""
    found, bound = set(), set()
    for node in steps(parsed(source).body):
        binds, reads = names(ast.unparse(node))
        found |= reads - bound
        bound |= binds
    return found


def steps(nodes):
    """Yield statements in their order, loops as their head and their body."""
    for node in nodes:
        if isinstance(node, ast.For):
            head = ast.For(node.target, node.iter, [ast.Pass()], [])
            yield ast.fix_missing_locations(head)
            yield from steps(node.body)
        else:
            yield node
