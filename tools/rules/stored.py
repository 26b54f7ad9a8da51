"""What is stored in the file: outputs, counts, metadata."""

import re

import nbformat

from tools.markdown import outside_code
from tools.notebooks import (
    CELL_METADATA,
    COLLAPSED,
    METADATA,
    is_aside,
    remedy,
    tags,
)
from tools.rules.common import rule

MAX_OUTPUT_LINES = 12
TAGS = {"pytorch", "tensorflow", "hide-input", "export"}
# Another host; w3.org only lends its name to the elements of a drawing.
HOST = r"(?:\b(?:https?|wss?):(?!//www\.w3\.org/)|(?<=[\"'(=])//\w)\S{,40}"
DECIMAL = re.compile(r"[-+]?(?:\d+\.\d*|\.\d+)(?:[eE][-+]?\d+)?")
EMBEDDED = rf"(?:<\w+\s[^>]*?|!\[[^\]]*\]\(){HOST}"


@rule
def executed_in_order(notebook):
    for number, cell in enumerate(notebook.code, 1):
        if cell.execution_count != number:
            yield (
                f"{notebook.name(cell)}: has the execution count "
                f"{cell.execution_count}: it was edited and not executed, or "
                f"its outputs were cleared. Run: {remedy(notebook.path)}"
            )


@rule
def outputs_can_be_compared(notebook):
    machine = re.compile(r"\bat 0x[0-9a-f]{6,}|/(home|root|Users|tmp|work)/")
    for cell in notebook.code:
        for output in cell.outputs:
            data = dict(output.get("data", {}))
            text = output.get("text", "") + "".join(
                value for mime, value in data.items() if mime[:5] == "text/"
            )
            text = text.replace(r"\u2212", "−")  # as JSON has it
            seen = re.sub(r"(?s)<script>.*?</script>", "", text)
            fault = None
            if output.output_type == "error":
                fault = "stores an error; catch it and show its message"
            elif output.get("name") == "stderr":
                fault = "stores what was written to stderr"
            elif set(data) - {"text/plain", "text/html", "image/png"}:
                fault = f"stores {sorted(data)}, not text, HTML or PNG"
            elif hit := machine.search(text):
                fault = f"prints {hit.group()!r}, which no other run prints"
            elif re.match(r"\[?Text\(", text):
                fault = "prints what matplotlib returns; end with a check"
            elif seen.count("\n") >= MAX_OUTPUT_LINES:
                fault = f"prints over {MAX_OUTPUT_LINES} lines; show less"
            elif long := [n for n in DECIMAL.findall(text) if digits(n) > 7]:
                fault = f"prints {long[0]}; round to 7 digits or fewer"
            elif re.search(r"(?<![\w.])-0\.0*(?!\d)", text):
                fault = "prints -0.; add 0.0 after rounding"
            if fault:
                where, run = notebook.name(cell), remedy(notebook.path)
                yield f"{where}: {fault}. Then run: {run}"


@rule
def nothing_comes_from_elsewhere(notebook):
    for cell in notebook.cells:
        texts, pattern = [outside_code(cell.source)], EMBEDDED
        if cell.cell_type == "code":
            outs = [dict(o.get("data", {})) for o in cell.outputs]
            texts, pattern = [o.get("text/html", "") for o in outs], HOST
        for hit in re.findall(pattern, "\n".join(texts)):
            yield (
                f"{notebook.name(cell)}: {hit!r} reaches for another host. "
                "Put what is needed into the notebook, or write a link."
            )


def digits(number):
    """Return how many digits of a decimal count."""
    return len(re.sub("[eE].*|[.+-]", "", number).lstrip("0"))


@rule
def metadata_is_what_belongs_there(notebook):
    wrong = dict(notebook.node.metadata) != METADATA
    names = [cell.get("id") for cell in notebook.cells]
    wrong |= any(
        (COLLAPSED in cell.metadata) != is_aside(cell)
        for cell in notebook.cells
    )
    for cell in notebook.cells:
        extra = set(cell.metadata) - CELL_METADATA
        unknown = tags(cell) - TAGS
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


@rule
def file_is_as_written(notebook):
    if notebook.path.exists():
        text = nbformat.v4.writes(notebook.node) + "\n"
        if notebook.path.read_text(encoding="utf-8") != text:
            yield (
                f"{notebook.path.name}: another program laid the file out "
                f"differently. Run: {remedy(notebook.path)}"
            )
