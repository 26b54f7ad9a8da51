"""The rules of a chapter that can be read off the file, one function each.

A check takes a Notebook and yields one message for each fault. It imports no
framework and runs no cell. `test_style.py` holds every chapter to all of
them; `test_net.py` shows for each that a chapter with the fault is rejected.
"""

import ast
import builtins
import re
import symtable
from functools import cache
from itertools import pairwise
from statistics import median, quantiles

import nbformat

from tests import prose, shapes
from tests.compare import DECIMAL
from tests.notebooks import BOOK, Notebook, alt_text, remedy, tags
from tests.outputs import CELL_METADATA, METADATA
from tests.repository import slug

CHECKS = []

MAX_CELL_LINES = 25
MAX_INTERACTIVE_LINES = 75
MAX_OUTPUT_LINES = 12
MAX_FIGURES = 5
MAX_QUESTION_WORDS = 80
MAX_READING = 5
MIN_ALT = 20
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)\s]+)\)")
# Shapes that one comment of the book has; any other is taken for a slip.
ONCE = {
    *("2", "32", "101", "32, D", "B, D", "B, 1", "B, 1, T", "B, S, T"),
    *("B, 1, T, S", "B, H, S, K", "B, S, H, K", "B, H, T, D", "H, B, T, K"),
    *("B, T, 1, D", "B, T, C, 2", "C, T, D", "C, T, S", "C, T, T", "10, 3, 2"),
    *("C, K, V", "C, 2, 2", "D, K", "D, 2", "K", "N, 2", "T, 2", "3, H, K, D"),
    "2, 3, 1",
}
COUNT = "no one two three four five six seven eight nine ten".split()
BIBLIOGRAPHY = BOOK / "bibliography.md"
SECTIONS = [
    "What you will be able to do",
    "Notation",
    "Setup",
    "Against the libraries",
    "Wrong on purpose",
    "Summary",
    "Exercises",
    "Further reading",
]
EXERCISE = re.compile(
    r"^### Exercise (\d+): .+ \((easy|medium|hard), \d+ minutes\)$", re.M
)
# Shown raw, or lost, by Colab, JupyterLab or GitHub.
RAW = {
    r"^\s*:{3,}": "a colon fence",
    r"^\s*(`{3,}|~{3,})\{": "a directive",
    r"\{[a-z][\w:-]*\}`": "a role",
    r"^\([\w-]+\)=\s*$": "a target label",
    r"\$\$[ \t]*\([\w-]+\)": "a labelled equation (use \\tag)",
    r"\{\{.*?\}\}": "a substitution",
    r"\[\^[^\]]+\]": "a footnote",
    r"\[\]\(": "a link without text",
    r"^%": "a MyST comment",
    r"^\+{3}": "a block break",
    r"\\(begin|end)\{(align|equation)\*?\}": "an environment outside $$",
}
RAW_IN_MATHS = {r"\\(begin|end)\{(align|equation)\*?\}"}
# Another host; w3.org only lends its name to the elements of a drawing.
HOST = r"(?:\b(?:https?|wss?):(?!//www\.w3\.org/)|(?<=[\"'(=])//\w)\S{,40}"
EMBEDDED = rf"(?:<\w+\s[^>]*?|!\[[^\]]*\]\(){HOST}"
RANDOM = re.compile(
    r"(torch\.(rand|randn|randint|randperm|normal)\w*"
    r"|tf\.random\.(?!set_seed)\w+|keras\.random\.\w+"
    r"|\.(normal_|uniform_|xavier_\w+|kaiming_\w+))\("
)
SEED = re.compile(r"manual_seed|set_random_seed|set_seed|seed=")
RESHAPING = {
    *("reshape", "view", "transpose", "permute", "swapaxes", "moveaxis"),
    *("unsqueeze", "squeeze", "expand_dims", "flatten", "mT"),
    *("stack", "concat", "cat", "one_hot"),
}


def check(function):
    """Add a function to those that every chapter is held to."""
    CHECKS.append(function)
    return function


def outside_fences(text):
    """Return a text without code fences and comments."""
    text = re.sub(r"(?ms)^(`{3,}).*?^\1`*\s*$", "", text)
    return re.sub(r"(?s)<!--.*?-->", "", text)


def outside_code(text):
    """Return a text without fences and comments, a dot for inline code."""
    return re.sub(r"`[^`\n]*`", "·", outside_fences(text))


def outside_maths(text):
    """Return a text without code and mathematics."""
    text = re.sub(r"(?s)\$\$.*?\$\$", "", outside_code(text))
    return re.sub(r"\$[^$\n]+\$", "", text)


def prose_lines(notebook):
    """Yield (cell, line) for each line that is prose, without code."""
    for cell in notebook.markdown:
        for line in outside_maths(cell.source).split("\n"):
            if line.strip() and not line.lstrip().startswith(("#", "|")):
                yield cell, line


def headings(notebook, level):
    """Yield (cell, text) for each heading of a level."""
    for cell in notebook.markdown:
        for line in outside_code(cell.source).split("\n"):
            if match := re.match(rf"#{{{level}}} (.+)", line):
                yield cell, match.group(1).strip()


def folded(cell):
    """Tell whether a cell is folded: a recap or a solution."""
    return "hide-input" in tags(cell)


def trees(notebook):
    """Yield (cell, syntax tree) for each code cell that can be parsed."""
    for cell in notebook.code:
        try:
            yield cell, ast.parse(cell.source)
        except SyntaxError:
            pass  # reported by cells_are_python


# What is stored


@check
def cells_are_python(notebook):
    for cell in notebook.code:
        try:
            ast.parse(cell.source)
        except SyntaxError as error:
            yield (
                f"{notebook.name(cell)}: line {error.lineno} is not Python "
                f"({error.msg}); write no magics and no shell commands."
            )


@check
def executed_in_order(notebook):
    for number, cell in enumerate(notebook.code, 1):
        if cell.execution_count != number:
            yield (
                f"{notebook.name(cell)}: has the execution count "
                f"{cell.execution_count}: it was edited and not executed, or "
                f"its outputs were cleared. Run: {remedy(notebook.path)}"
            )


@check
def outputs_can_be_compared(notebook):
    machine = re.compile(r"\bat 0x[0-9a-f]{6,}|/(home|root|Users|tmp|work)/")
    for cell in notebook.code:
        for output in cell.outputs:
            data = dict(output.get("data", {}))
            text = output.get("text", "") + "".join(
                value for mime, value in data.items() if mime[:5] == "text/"
            )
            seen = re.sub(r"(?s)<script>.*?</script>", "", text)
            fault = None
            if output.output_type == "error":
                fault = "stores an error; catch it and show its message"
            elif output.get("name") == "stderr":
                fault = "stores what was written to stderr"
            elif set(data) - {"text/plain", "text/html", "image/png"}:
                fault = (
                    f"stores {sorted(data)}; text, HTML and PNG are compared"
                )
            elif hit := machine.search(text):
                fault = f"prints {hit.group()!r}, which no other run prints"
            elif seen.count("\n") >= MAX_OUTPUT_LINES:
                fault = f"prints over {MAX_OUTPUT_LINES} lines; show less"
            elif long := [n for n in DECIMAL.findall(text) if digits(n) > 7]:
                fault = (
                    f"prints {long[0]}, of which the comparison does not see "
                    "the last digit; round to 7 digits or fewer"
                )
            elif re.search(r"(?<![\w.])-0\.0*(?!\d)", text):
                fault = "prints -0.; add 0.0 after rounding"
            if fault:
                yield (
                    f"{notebook.name(cell)}: {fault}. "
                    f"Then run: {remedy(notebook.path)}"
                )


@check
def nothing_comes_from_elsewhere(notebook):
    for cell in notebook.cells:
        texts, pattern = [outside_code(cell.source)], EMBEDDED
        if cell.cell_type == "code":
            outs = [dict(o.get("data", {})) for o in cell.outputs]
            texts, pattern = [o.get("text/html", "") for o in outs], HOST
        for hit in re.findall(pattern, "\n".join(texts)):
            yield (
                f"{notebook.name(cell)}: {hit!r} reaches for another host. "
                "Put what is needed into the notebook; in a text, a link "
                "[such as this](https://example.org) is fine."
            )


def digits(number):
    """Return how many digits of a decimal count."""
    return len(re.sub("[eE].*|[.+-]", "", number).lstrip("0"))


@check
def metadata_is_what_belongs_there(notebook):
    wrong = dict(notebook.node.metadata) != METADATA
    names = [cell.get("id") for cell in notebook.cells]
    for cell in notebook.cells:
        extra = set(cell.metadata) - CELL_METADATA
        unknown = tags(cell) - {"pytorch", "tensorflow", "hide-input"}
        if extra or unknown:
            yield (
                f"{notebook.name(cell)}: carries {sorted(extra | unknown)}. "
                f"Remove it with: {remedy(notebook.path)}"
            )
    if wrong or None in names or len(set(names)) < len(names):
        yield (
            f"{notebook.path.name}: its metadata or cell ids are not those "
            f"that are stored. Run: {remedy(notebook.path)}"
        )


@check
def file_is_as_written(notebook):
    if notebook.path.exists():
        text = nbformat.writes(notebook.node) + "\n"
        if notebook.path.read_text(encoding="utf-8") != text:
            yield (
                f"{notebook.path.name}: another program laid the file out "
                f"differently. Run: {remedy(notebook.path)}"
            )


# Figures


@check
def figures_have_alt_text(notebook):
    seen = {}
    for cell in notebook.code:
        figures = [o for o in cell.outputs if "image/png" in o.get("data", {})]
        alt = alt_text(cell)
        if figures and (
            len(alt) < MIN_ALT
            or not alt.endswith(".")
            or re.match(r"(?i)(figure|image|plot) ?(of)?", alt)
        ):
            yield (
                f"{notebook.name(cell)}: its figure has no alt text. Say what "
                f"is seen in {MIN_ALT} characters or more, and whole "
                "sentences, in the cell's metadata: "
                '{"mystnb": {"image": {"alt": "…"}}}'
            )
        if alt and not figures:
            yield (
                f"{notebook.name(cell)}: has alt text and no figure. Remove "
                f"the text, or run: {remedy(notebook.path)}"
            )
        if alt and alt in seen:
            yield (
                f"{notebook.name(cell)}: its alt text is that of {seen[alt]}; "
                "say what this figure shows."
            )
        seen[alt] = notebook.name(cell)


@check
def alt_texts_say_what_the_figure_says(notebook):
    for cell, tree in trees(notebook):
        alt = prose.CLAIM.sub(r"\1", alt_text(cell)).lower()
        if not alt:
            continue
        missing = [text for text in labels(tree) if text.lower() not in alt]
        count = panels(tree)
        if count > 1 and not re.search(rf"\b({COUNT[count]}|{count})\b", alt):
            missing.append(f"{COUNT[count]} panels")
        if missing:
            yield (
                f"{notebook.name(cell)}: its alt text does not name "
                f"{missing}, which the figure shows. Say it in the cell's "
                "metadata, or give the figure its own text back."
            )


def calls(tree, *names):
    """Yield the calls of methods with one of these names."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in names:
                yield node


def labels(tree):
    """Return what a figure calls its axes and lines, without the details.

    Of "offset $k$" and "similarity, as a share" that is the words before.
    """
    texts = [
        call.args[0]
        for call in calls(tree, "set_xlabel", "set_ylabel", "set_label")
    ] + [
        word.value
        for call in ast.walk(tree)
        if isinstance(call, ast.Call)
        for word in call.keywords
        if word.arg in ("label", "xlabel", "ylabel")
    ]
    found = []
    for text in texts:
        if isinstance(text, ast.JoinedStr):
            text = text.values[0]
        if isinstance(text, ast.Constant):
            words = re.split(r"[,($\n]", str(text.value))[0].strip()
            found += [words] if words else []
    return found


def panels(tree):
    """Return into how many panels a figure is divided."""
    count = 1
    for call in calls(tree, "subplots"):
        for side in call.args:
            count *= side.value if isinstance(side, ast.Constant) else 1
    return count


@check
def figures_are_few_and_untitled(notebook):
    count = 0
    for cell in notebook.code:
        count += sum("image/png" in o.get("data", {}) for o in cell.outputs)
        if re.search(r"\.(set_title|suptitle)\(|plt\.title\(", cell.source):
            yield (
                f"{notebook.name(cell)}: a title inside the plot; the "
                "sentence above the figure is its title."
            )
        for axis, text in re.findall(
            r"set_([xy])label\(f?\"([^\"]*)\"", cell.source
        ):
            if re.match(r"[A-Z][a-z]", text):
                yield (
                    f"{notebook.name(cell)}: the {axis} label {text!r} "
                    "begins with a capital; axis labels are lower case."
                )
    if count > MAX_FIGURES:
        yield f"{notebook.path.name}: {count} figures, at most {MAX_FIGURES}."


# Text


@check
def nothing_shows_raw(notebook):
    for cell in notebook.markdown:
        code_free, maths_free = (
            outside_code(cell.source),
            outside_maths(cell.source),
        )
        for pattern, what in RAW.items():
            text = maths_free if pattern in RAW_IN_MATHS else code_free
            source = cell.source if "`" in pattern else text
            if match := re.search(pattern, source, re.MULTILINE):
                yield (
                    f"{notebook.name(cell)}: {match.group()!r} is {what}, "
                    "which Colab, JupyterLab or GitHub show raw. Use what "
                    "renders in all of them (CONTRIBUTING.md lists it)."
                )


@check
def links_resolve(notebook):
    listed = {target for _, target in LINK.findall(words_of(BIBLIOGRAPHY))}
    for cell in notebook.markdown:
        for text, target in LINK.findall(outside_code(cell.source)):
            if re.match(r"https?://", target):
                if target not in listed and target != colab_link(notebook):
                    yield (
                        f"{notebook.name(cell)}: the link [{text}] leads to "
                        f"{target}, which book/bibliography.md does not "
                        "list. List it there, or correct the link."
                    )
                continue
            file, _, heading = target.partition("#")
            path = notebook.path.parent / file if file else notebook.path
            if not path.is_file():
                yield (
                    f"{notebook.name(cell)}: the link [{text}] leads to "
                    f"{file}, which does not exist beside the notebook."
                )
            elif heading and heading not in anchors(path, notebook):
                yield (
                    f"{notebook.name(cell)}: the link [{text}] leads to "
                    f"#{heading}, which is no heading of {path.name}."
                )


@cache
def words_of(path):
    """Return the Markdown of a page."""
    if path.suffix == ".ipynb":
        return "\n".join(cell.source for cell in Notebook.read(path).markdown)
    return path.read_text(encoding="utf-8")


def anchors(path, notebook):
    """Return the anchors that the headings of a page give."""
    if path == notebook.path:
        text = "\n".join(cell.source for cell in notebook.markdown)
    else:
        text = words_of(path)
    found = re.findall(r"(?m)^#+ (.+)$", outside_fences(text))
    return set(map(anchor, found))


def anchor(title):
    """Return a heading's anchor, as MyST makes it."""
    return re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-")


@check
def colab_link_is_the_repository_s(notebook):
    link = colab_link(notebook)
    if f"[Open in Colab]({link})" not in notebook.cells[0].source:
        yield (
            f"{notebook.name(notebook.cells[0])}: does not link "
            f"[Open in Colab]({link}). Run: make repository SLUG={slug()}"
        )


def colab_link(notebook):
    """Return the address at which Colab opens a notebook."""
    return (
        f"https://colab.research.google.com/github/{slug()}/blob/main/book/"
        f"{notebook.path.name}"
    )


@check
def numbers_in_prose_are_computed(notebook):
    for cell in notebook.cells:
        code = cell.cell_type == "code"
        text = alt_text(cell) if code else cell.source
        for message in prose.unclaimed(text):
            yield f"{notebook.name(cell)}: {message}"


@check
def one_sentence_per_line(notebook):
    short = re.compile(r"\b(e\.g|i\.e|et al|vs|cf|sec|no)\.\s")
    for cell, line in prose_lines(notebook):
        plain = re.sub(r"\[[^\]]*\]\([^)]*\)", "", short.sub("", line))
        if re.search(r"[.!?][\"'”)*]* +[A-Z“\"]", plain):
            yield (
                f"{notebook.name(cell)}: one sentence per line, please: "
                f"{line.strip()[:60]!r}"
            )


@check
def no_empty_words(notebook):
    for cell, line in prose_lines(notebook):
        if match := re.search(r"(?i)\b(simply|just|obviously)\b", line):
            yield (
                f"{notebook.name(cell)}: without {match.group()!r}, please: "
                f"{line.strip()[:60]!r}"
            )


@check
def anatomy(notebook):
    first = notebook.cells[0]
    if first.cell_type != "markdown" or not first.source.startswith("# "):
        yield f"{notebook.name(first)}: the first cell begins with the title."
        return
    if len(list(headings(notebook, 1))) != 1:
        yield f"{notebook.path.name}: has not one title but several."
    question = [
        line
        for line in first.source.split("\n")[1:]
        if "[Open in Colab]" not in line
    ]
    words = len(outside_code("\n".join(question)).split())
    if not 0 < words <= MAX_QUESTION_WORDS:
        yield (
            f"{notebook.name(first)}: its question has {words} words; say in "
            f"at most {MAX_QUESTION_WORDS} what is missing and will stand."
        )
    titles = [title for _, title in headings(notebook, 2)]
    missing = [section for section in SECTIONS if section not in titles]
    order = [title for title in titles if title in SECTIONS]
    if missing:
        yield f"{notebook.path.name}: lacks the sections {missing}."
    elif order != SECTIONS:
        yield f"{notebook.path.name}: its sections should stand as {SECTIONS}."
    deep = [
        title for level in (4, 5, 6) for _, title in headings(notebook, level)
    ]
    if deep:
        yield f"{notebook.path.name}: {deep[0]!r} lies below the third level."
    reading = notebook.cells[-1].source if titles[-1:] == SECTIONS[-1:] else ""
    if len(re.findall(r"(?m)^[-*] ", reading)) > MAX_READING:
        yield f"{notebook.path.name}: over {MAX_READING} links to read on."


@check
def headings_are_in_sentence_case(notebook):
    for level in (1, 2, 3):
        for cell, title in headings(notebook, level):
            title = re.sub(r"`[^`]*`", "", title).split(": ")[-1]
            words = re.findall(r"[A-Za-z]{4,}", title)[1:]
            capital = [w for w in words if w.istitle()]
            if len(words) > 1 and len(capital) > len(words) / 2:
                yield (
                    f"{notebook.name(cell)}: the heading {title!r} is in "
                    "title case; write it as a sentence."
                )


@check
def terms_are_bold_once(notebook):
    seen = {}
    for cell, line in prose_lines(notebook):
        for term in re.findall(r"\*\*([^*]+)\*\*", line):
            if re.match(r"(Note|Try|Hint)\b", term):
                continue
            if term in seen:
                yield (
                    f"{notebook.name(cell)}: {term!r} is bold a second time; "
                    "a term is bold where it is defined, once."
                )
            seen[term] = cell


# Code


@check
def cells_are_short(notebook):
    lines = [
        sum(bool(line.strip()) for line in cell.source.split("\n"))
        for cell in notebook.code
        if not folded(cell)
    ]
    for cell in notebook.code:
        count = sum(bool(line.strip()) for line in cell.source.split("\n"))
        interactive = cell.source.startswith("# @title Interactive")
        most = MAX_INTERACTIVE_LINES if interactive else MAX_CELL_LINES
        if count > most:
            yield (
                f"{notebook.name(cell)}: {count} lines; at most {most}. "
                "Split the function, not the cell."
            )
    if len(lines) > 10 and (
        median(lines) > 5 or quantiles(lines, n=10)[8] > 15
    ):
        yield (
            f"{notebook.path.name}: its cells have {median(lines)} lines in "
            f"the median and {quantiles(lines, n=10)[8]:.0f} at nine in ten; "
            "5 and 15 are the most."
        )


@check
def words_before_code(notebook):
    for before, cell in pairwise(notebook.cells):
        if cell.cell_type != "code" or before.cell_type != "code":
            continue
        twin = "pytorch" in tags(before) and "tensorflow" in tags(cell)
        if not twin and not folded(cell):
            yield f"{notebook.name(cell)}: no words stand before this cell."


@check
def one_thing_per_cell(notebook):
    for cell, tree in trees(notebook):
        kinds = [
            isinstance(node, (ast.FunctionDef, ast.ClassDef))
            for node in tree.body
        ]
        if any(kinds) and len(kinds) > 1 and not folded(cell):
            yield (
                f"{notebook.name(cell)}: defines one thing or shows one "
                "thing, never both: divide the cell."
            )


@check
def twins_stand_together(notebook):
    cells = notebook.cells
    for place, cell in enumerate(cells):
        after = cells[place + 1] if place + 1 < len(cells) else None
        before = cells[place - 1] if place else None
        if "pytorch" in tags(cell):
            if after is None or "tensorflow" not in tags(after):
                yield (
                    f"{notebook.name(cell)}: is tagged pytorch; its twin, "
                    "tagged tensorflow, has to follow at once."
                )
            if re.search(r"(?<![\w.])(tf|keras)\.", cell.source):
                yield f"{notebook.name(cell)}: TensorFlow in a pytorch cell."
        if "tensorflow" in tags(cell):
            if before is None or "pytorch" not in tags(before):
                yield (
                    f"{notebook.name(cell)}: is tagged tensorflow; its twin, "
                    "tagged pytorch, has to stand right before it."
                )
            elif missing := twin_faults(before, cell):
                yield f"{notebook.name(cell)}: {missing}"
            if re.search(r"(?<![\w.])(torch|nn|F)\.", cell.source):
                yield f"{notebook.name(cell)}: PyTorch in a tensorflow cell."


def twin_faults(cell, twin):
    """Return what is wrong with the definitions of a pair, or None."""

    def defined(source):
        return {
            node.name: ast.get_docstring(node)
            for node in ast.parse(source).body
            if isinstance(node, (ast.FunctionDef, ast.ClassDef))
        }

    theirs = defined(twin.source)
    for name, words in defined(cell.source).items():
        other = f"{name}TF" if name[0].isupper() else f"{name}_tf"
        if other not in theirs:
            return f"the twin of {name} is to be called {other}."
        if theirs[other] != words:
            return f"{other} and {name} have different docstrings."
    return None


@check
def frameworks_are_proved_equal(notebook):
    for cell, tree in trees(notebook):
        names = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
        asserts = any(isinstance(n, ast.Assert) for n in ast.walk(tree))
        twins = any(name.endswith(("_tf", "TF")) for name in names)
        if asserts and twins and not tags(cell):
            return
    yield (
        f"{notebook.path.name}: no untagged cell asserts that PyTorch and "
        "TensorFlow give the same numbers."
    )


@check
def code_is_plain(notebook):
    for cell, tree in trees(notebook):
        if re.search(r"filterwarnings|simplefilter", cell.source):
            yield f"{notebook.name(cell)}: silences warnings; mend the cause."
        if re.search(r"(?i)#\s*nbval", cell.source):
            yield f"{notebook.name(cell)}: switches the comparison off."
        for node in tree.body:
            if isinstance(node, ast.Expr) and is_print(node.value):
                yield (
                    f"{notebook.name(cell)}: print outside a loop; end the "
                    "cell with the expression."
                )
            elif (
                isinstance(node, ast.ImportFrom) and node.names[0].name == "*"
            ):
                yield f"{notebook.name(cell)}: a star import."


def is_print(node):
    return isinstance(node, ast.Call) and ast.unparse(node.func) == "print"


@check
def draws_are_seeded(notebook):
    for cell in notebook.code:
        if RANDOM.search(cell.source) and not SEED.search(cell.source):
            yield (
                f"{notebook.name(cell)}: draws at random without a seed in "
                "the same cell."
            )


@check
def functions_have_docstrings(notebook):
    for cell, tree in trees(notebook):
        for node in tree.body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                if not ast.get_docstring(node):
                    yield (
                        f"{notebook.name(cell)}: {node.name} has no "
                        "docstring; say what it takes, gives and raises."
                    )


@check
def functions_read_no_globals(notebook):
    known = set(dir(builtins))
    for _, tree in trees(notebook):
        for node in ast.walk(tree):
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                known |= {
                    (a.asname or a.name).split(".")[0] for a in node.names
                }
        known |= {
            node.name
            for node in tree.body
            if isinstance(node, (ast.FunctionDef, ast.ClassDef))
        }
    for cell, _ in trees(notebook):
        table = symtable.symtable(cell.source, "cell", "exec")
        for scope in scopes(table):
            names = {n for n in scope.get_globals() if not n.isupper()}
            for name in sorted(names - known):
                yield (
                    f"{notebook.name(cell)}: {scope.get_name()} reads the "
                    f"global {name}; pass it as an argument."
                )


def scopes(table):
    """Yield the functions in a symbol table, at any depth."""
    for child in table.get_children():
        if isinstance(child, symtable.Function):
            name = child.get_name()
            if name not in ("lambda", "genexpr") and name[-4:] != "comp":
                yield child
        yield from scopes(child)


@check
def shape_comments_can_be_read(notebook):
    for cell, _ in trees(notebook):
        try:
            shapes.rewrite(cell.source)
        except shapes.ShapeError as error:
            yield f"{notebook.name(cell)}: {error}"


@check
def letters_are_in_the_notation(notebook):
    words = "\n".join(cell.source for cell in notebook.markdown)
    listed = shapes.notation(words).keys() | {"C"}
    for cell, _ in trees(notebook):
        said = " ".join(shapes.comments(cell.source).values())
        letters = set(re.findall(r"\b[A-Z]\b", re.sub(r":[^#]*", "", said)))
        if missing := sorted(letters - listed):
            yield (
                f"{notebook.name(cell)}: its shape comments use {missing}, "
                "which the table of the Notation section lacks. Correct the "
                "comment, or add the letter there."
            )


@check
def twins_say_the_same_shapes(notebook):
    for before, cell in pairwise(notebook.cells):
        if not ("pytorch" in tags(before) and "tensorflow" in tags(cell)):
            continue
        first, second = shapes_said(before.source), shapes_said(cell.source)
        for name in first.keys() & second.keys():
            short, long = sorted((first[name], second[name]), key=len)
            if not subsequence(short, long):
                yield (
                    f"{notebook.name(cell)}: says {second[name]} of {name}, "
                    f"and its twin {first[name]}. Correct the comment that "
                    "is wrong, or give the two other names."
                )


def shapes_said(source):
    """Map what a cell's shape comments describe to the shapes, in order.

    Names go without _tf, and shapes without axes of one.
    """
    try:
        tree, said = ast.parse(source), shapes.comments(source)
    except SyntaxError:
        return {}  # reported by cells_are_python
    found = {}
    for node in ast.walk(tree):
        line = getattr(node, "end_lineno", None)
        if isinstance(node, VALUED) and line in said:
            targets = getattr(node, "targets", None)
            kind = type(node).__name__.lower()
            name = ast.unparse(targets[0]) if targets else kind
            shape = said[line].partition(":")[0].strip("# ")
            shape = re.sub(r"\b1, |, 1\b", "", shape).replace(",)", ")")
            found.setdefault(re.sub(r"_tf\b", "", name), []).append(shape)
    return found


VALUED = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return, ast.Expr)


def subsequence(short, long):
    """Tell whether all of one list stands in another, in the same order."""
    rest = iter(long)
    return all(item in rest for item in short)


@check
def reshaping_lines_say_their_shape(notebook):
    for cell, tree in trees(notebook):
        lines = shapes.comments(cell.source)
        for node in ast.walk(tree):
            if (
                not isinstance(node, (ast.Assign, ast.Return))
                or not node.value
            ):
                continue
            calls = {
                sub.attr
                for sub in ast.walk(node.value)
                if isinstance(sub, ast.Attribute)
            }
            if calls & RESHAPING and node.end_lineno not in lines:
                yield (
                    f"{notebook.name(cell)}: line {node.end_lineno} calls "
                    f"{sorted(calls & RESHAPING)[0]} and does not say the "
                    "shape it leaves: end it with one, as in # (B, T, D)."
                )


# Exercises


@check
def exercises_are_complete(notebook):
    numbers = []
    for place, cell in enumerate(notebook.cells):
        found = EXERCISE.search(cell.source)
        if cell.cell_type != "markdown" or "### Exercise" not in cell.source:
            continue
        if not found:
            yield (
                f"{notebook.name(cell)}: an exercise is headed as in "
                "### Exercise 3: cross-attention (medium, 10 minutes)."
            )
            continue
        numbers.append(int(found.group(1)))
        block = []
        for other in notebook.cells[place + 1 :]:
            if re.search(r"(?m)^(### Exercise|## )", other.source):
                break
            block.append(other)
        words = "\n".join(c.source for c in [cell, *block])
        if "<details>" not in words:
            yield f"{notebook.name(cell)}: the exercise has no hint."
        if not any(c.source.startswith("# @title Solution") for c in block):
            yield f"{notebook.name(cell)}: the exercise has no solution."
    if numbers != list(range(1, len(numbers) + 1)):
        yield f"{notebook.path.name}: its exercises are numbered {numbers}."


@check
def folded_cells_fold_everywhere(notebook):
    for cell in notebook.code:
        marks = [
            folded(cell),
            cell.source.startswith("# @title "),
            cell.metadata.get("cellView") == "form",
            bool(cell.metadata.get("jupyter", {}).get("source_hidden")),
        ]
        if any(marks) and not all(marks):
            yield (
                f"{notebook.name(cell)}: folds in some places only. A folded "
                "cell begins with # @title and its name, has the tag "
                'hide-input, and the metadata "cellView": "form" and '
                '"jupyter": {"source_hidden": true}.'
            )


# The book as a whole


def shapes_said_once(notebooks):
    """Yield a message for each shape that stands in one comment alone.

    It may be a slip, such as (B, D, T), that no run tells from another order
    of axes of one size. What is meant is in ONCE.
    """
    places = {}
    for notebook in notebooks:
        for cell in notebook.code:
            for comment in shapes.comments(cell.source).values():
                for shape in shapes.axes(comment):
                    places.setdefault(shape, []).append(notebook.name(cell))
    for shape, where in places.items():
        if len(where) == 1 and shape not in ONCE:
            yield (
                f"{where[0]}: says the shape ({shape}), which stands nowhere "
                "else in the book. Correct the comment, or add the shape to "
                "ONCE in tests/checks.py."
            )
    for shape in sorted(ONCE):
        if len(places.get(shape, [])) != 1:
            yield f"tests/checks.py: ({shape}) is not said once; take it out."


def named_body(node):
    """Return the name that a function, class or constant text defines."""
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return node.name
    match node:
        case ast.Assign([ast.Name(name)], ast.Constant(str())):
            return name if name.isupper() else None
    return None


def one_name_one_body(notebooks):
    """Yield a message for each name with two bodies in the book."""
    seen = {}
    for notebook in notebooks:
        for cell, tree in trees(notebook):
            for node in tree.body:
                if not (name := named_body(node)):
                    continue
                # As text: the comments belong to it.
                lines = cell.source.split("\n")[node.lineno - 1 :]
                body = "\n".join(lines[: node.end_lineno - node.lineno + 1])
                where = notebook.name(cell)
                first, place = seen.setdefault(name, (body, where))
                if body != first:
                    yield (
                        f"{where}: {name} differs from the one in "
                        f"{place}. One name has one body in the book: copy "
                        "that one, or give this one a name of its own."
                    )


def files_not_built(notebooks):
    """Yield a message for each notebook that the table of contents lacks."""
    contents = (BOOK.parent / "_toc.yml").read_text(encoding="utf-8")
    for notebook in notebooks:
        if not re.search(rf"book/{notebook.path.stem}\b", contents):
            yield f"{notebook.path.name}: is not in _toc.yml; add it there."
