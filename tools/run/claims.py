"""Numbers in sentences: each stands in a cell, is computed, or has a source.

A number of the code or output of the nearest cell, before or after, needs
nothing, nor does a year, a name with a number, or a count from 0 to 12. What
is computed elsewhere, `16<!--= d_model -->`, is evaluated where it stands, in
words too, `six<!--= len(words) -->`, and so is a word that is a text of the
code, `zeros<!--= fates["tf.x"] -->`. A fact from outside names an address
that book/bibliography.md links: `50257<!-- from https://arxiv.org/... -->`.
"""

import ast
import builtins
import re
from functools import cache

from tools.markdown import links
from tools.settings import BOOK

BIBLIOGRAPHY = BOOK / "bibliography.md"

ONES = """zero one two three four five six seven eight nine ten eleven twelve
thirteen fourteen fifteen sixteen seventeen eighteen nineteen""".split()
TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
NUMBERS = {word: value for value, word in enumerate(ONES)} | {
    (f"{word}-{one}" if value else word): 10 * ten + value
    for ten, word in enumerate(TENS, 2)
    for value, one in enumerate(ONES[:10])
}
NUMBER = r"(?<![\w.,])[-−]?\d(?:[\d,_]*\d)?(?:\.\d+)?(?:e[-−]?\d+)?"
SAID = rf"`?({NUMBER}|\b[A-Za-z]+(?:-[a-z]+)?)[*_`]*"
CLAIM = re.compile(rf"{SAID}<!--=(.*?)-->", re.DOTALL)
SOURCE = re.compile(rf"{SAID}<!-- from (\S+) -->")
MODULES = {"math", "np", "torch", "nn", "F", "tf", "keras"}
# A formula that is only a number, or a letter's value, is a number in prose.
ALONE = re.compile(r"\$(?:[\w\\{}]+ ?= ?)?([-−]?\d[\d.]+)\$")
NO_SENTENCE = [
    r"(?ms)^(`{3,}|~{3,}).*?^\1",
    r"(?s)<pre>.*?</pre>",
    r"(?s)<!--.*?-->",
    r"(?s)\$\$.*?\$\$",
    r"`[^`]*`",
    r"(?s)\$[^$\n]+?\$",
    r"!?\[[^\]]*\]\([^)]*\)",
    r"(?m)^#+ .*$",
    r"(?m)^\s*\d+\. ",  # of a list
    r"</?\w[^>]*>",
]
YEAR = r"(?:19\d\d|20[0-3]\d)\b"
MONTH = r"""(?:January|February|March|April|May|June|July|August|September
|October|November|December)""".replace("\n", "")
VERSION = r"\d+(?:\.\d+)*(?![\w,])"
NEEDS_NOTHING = [
    rf"(?:\b\d\d? )?\b{MONTH}(?: \d\d?\b,?)?(?: {YEAR})?",
    rf"\b{YEAR}-\d\d-\d\d\b",
    rf"(?i)\b(?:in|since|until|before|after|by|from|of) {YEAR}"
    rf"(?:(?: to | and |[-–]){YEAR})?",
    rf"\((?:[^()\n]*, )?{YEAR}\)",  # (Vaswani et al., 2017)
    r"[A-Za-z]+-\d[\d.]*",  # GPT-2
    # PyTorch 2.13, Keras 3, "as in Llama 3.1", section 3.2
    rf"\b(?:[A-Z]\w*[A-Z]\w*|Keras|Python|(?<=[a-z,(] )[A-Z]\w+) {VERSION}",
    rf"(?i)\b(?:version|section|chapter|page|table|figure) {VERSION}",
    r"(?<![\w.,])[-−]?(?:\d|1[0-2])(?!\w|[.,]\d| ?%| per ?cent)",
]


def find(markdown):
    """Return the (numeral or word, expression) pairs of a text."""
    return [(said, e.strip()) for said, e in CLAIM.findall(markdown)]


@cache
def sources():
    """Return the addresses that the bibliography links."""
    return {target for _, target in links(BIBLIOGRAPHY.read_text("utf-8"))}


def faults(markdown, near=""):
    """Return a message for each number that is wrong as it is written.

    near: the code and the output of the nearest cells.
    """
    return [*unclaimed(markdown, near), *unlisted(markdown), *hollow(markdown)]


def unclaimed(markdown, near):
    """Yield a message for each numeral that comes from nowhere."""
    rest = SOURCE.sub(" ", CLAIM.sub(" ", markdown))
    rest = ALONE.sub(r"\1", rest)
    for pattern in NO_SENTENCE + NEEDS_NOTHING:
        rest = re.sub(pattern, " ", rest)
    there = {float(plain(n)) for n in re.findall(NUMBER, near)}
    for line in rest.split("\n"):
        for number in re.findall(NUMBER, line):
            if not stands(number, there):
                yield (
                    f"the number {number} in {line.strip()[:60]!r} stands in "
                    "no cell beside it: correct it, or write what computes "
                    f"it, {number}<!--= expression -->, or where it is from, "
                    f"{number}<!-- from https://... -->."
                )


def stands(number, there):
    """Tell whether a numeral is one of these numbers, a decimal rounded."""
    if "." in number:
        return not all(correction(number, value) for value in there)
    return float(plain(number)) in there


def unlisted(markdown):
    """Yield a message for each source that the bibliography lacks."""
    for said, address in SOURCE.findall(markdown):
        if address not in sources():
            yield (
                f"the source of {said}, {address}, has no entry in "
                "book/bibliography.md. Add one that links it, or give the "
                "address of an entry."
            )


def hollow(markdown):
    """Yield a message for each claim that holds whatever is computed.

    Its expression names no variable, or types the number beside a module.
    """
    for said, expression in find(markdown):
        typed = re.findall(NUMBER, expression)
        repeats = plain(said) in typed
        if variables(expression) <= (MODULES if repeats else set()):
            yield (
                f"the expression behind {said} names no variable: "
                f"{expression!r} says the same whatever the chapter computes. "
                f"Write what gives {said} there, as in 16<!--= d_model -->, "
                "or the source of a fact from outside: "
                f"{said}<!-- from https://... -->."
            )


def variables(expression):
    """Return the names that an expression takes from the chapter."""
    try:
        nodes = list(ast.walk(ast.parse(expression, mode="eval")))
    except SyntaxError:
        return {expression}  # reported where it is evaluated
    names = [node for node in nodes if isinstance(node, ast.Name)]
    bound = {name.id for name in names if isinstance(name.ctx, ast.Store)}
    return {name.id for name in names} - bound - set(dir(builtins))


def names(markdown):
    """Return the names that the claims of a text take from the chapter."""
    return {name for _, e in find(markdown) for name in variables(e)}


def check_claims(markdown, namespace):
    """Return a message for each claim of a text that is not true.

    namespace: the variables that the expressions in the comments may use.
    """
    messages = []
    for said, expression in find(markdown):
        try:
            instead = correction(said, eval(expression, dict(namespace)))
        except Exception as error:
            messages.append(
                f"the expression behind {said} fails: "
                f"{expression!r} raises {type(error).__name__}: {error}."
            )
            continue
        if instead:
            messages.append(
                f"the prose says {said}, but {expression} is {instead}: "
                "correct the number or what computes it."
            )
    return messages


def plain(said):
    """Return a numeral or a number in words as Python writes it."""
    number = NUMBERS.get(said.lower(), said)
    return str(number).replace(",", "").replace("−", "-")


def correction(said, value):
    """Return "" if a number or a word says a value, or else the value.

    Numbers are compared after rounding to the decimals that are written.
    """
    if isinstance(value, str):
        return "" if said == value else value
    number = plain(said)
    if not re.fullmatch(NUMBER, number):
        raise ValueError(f"{said} is no number")
    # One unit in the last digit that is written.
    mantissa, _, exponent = number.partition("e")
    unit = 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))
    close = abs(float(value) - float(number)) <= 0.5 * unit * (1 + 1e-9)
    return "" if close else f"{float(value):.6g}"
