"""What is stored in the file: outputs, counts, metadata."""

import re

import nbformat

from tools.markdown import outside_code
from tools.notebooks import Notebook, remedy, tags
from tools.rules.common import rule

MAX_OUTPUT_LINES = 12
SHOWN = {"text/plain", "text/html", "image/png", "image/svg+xml"}
TAGS = {"pytorch", "tensorflow", "hide-input", "export"}
# Another host; w3.org only lends its name to the elements of a drawing.
HOST = r"(?:\b(?:https?|wss?):(?!//www\.w3\.org/)|(?<=[\"'(=])//\w)\S{,40}"
DECIMAL = re.compile(r"[-+]?(?:\d+\.\d*|\.\d+)(?:[eE][-+]?\d+)?")
EMBEDDED = rf"(?:<\w+\s[^>]*?|!\[[^\]]*\]\(){HOST}"


@rule
def file_is_as_it_was_stored(notebook):
    new = Notebook(notebook.path, nbformat.from_dict(notebook.node)).tidy()
    both = zip(notebook.cells, new.cells, strict=True)
    places = [notebook.name(cell) for cell, stored in both if cell != stored]
    text = notebook.path.exists() and notebook.path.read_text("utf-8")
    if new.node != notebook.node or text and text != new.text():
        yield (
            f"{[*places, notebook.path.name][0]}: edited and not run, or "
            f"saved by another program. Run: {remedy(notebook.path)}"
        )


@rule
def tags_are_known(notebook):
    for cell in notebook.cells:
        if unknown := tags(cell) - TAGS:
            yield f"{notebook.name(cell)}: has the tags {unknown}; remove them"


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
            elif set(data) - SHOWN:
                fault = f"stores {sorted(data)}, not text, HTML, SVG or PNG"
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
