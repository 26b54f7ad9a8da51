"""Claims in prose: `16<!--= d_model -->` is evaluated where it stands.

So is a number in words, `six<!--= len(words) -->`, and what a colour of a
figure is called: `grey<!--= ax.lines[0].get_color() -->` of a line,
`dark<!--= pixel(ax, 0, 3) -->` of a matrix's row 0 and column 3. Any other
word is the text that its expression gives, `pre-norm<!--= order -->`.
"""

import ast
import builtins
import re

from tools.net.words import COLOURS, NUMBERS, code, is_called, pixel

NUMBER = r"(?<![\w.,])[-−]?\d(?:[\d,]*\d)?(?:\.\d+)?(?:e[-−]?\d+)?"
WORD = r"\b[A-Za-z]+(?:-[a-z]+)?"
CLAIM = re.compile(rf"({NUMBER}|{WORD})[*_`]*<!--=(.*?)-->", re.DOTALL)
# What the expression behind a number says if a unit follows the number.
UNITS = {
    "KiB": r"\b(2 ?\*\* ?10|1024(?! ?\*\*)|KiB)\b",
    "MiB": r"\b(2 ?\*\* ?20|1024 ?\*\* ?2|MiB)\b",
    "GiB": r"\b(2 ?\*\* ?30|1024 ?\*\* ?3|GiB)\b",
    "kB": r"\b(1e3|1000|10 ?\*\* ?3|kB)\b",
    "MB": r"\b(1e6|10 ?\*\* ?6|MB)\b",
    "GB": r"\b(1e9|10 ?\*\* ?9|GB)\b",
    "bytes?": r"^(?!.*/ ?\d).*(byte|itemsize|element_size|\.size)",
    "bits?": r"bit",
    "ms|milliseconds?": r"\b(1e3|1000|10 ?\*\* ?3)\b",
    "µs|microseconds?": r"\b(1e6|10 ?\*\* ?6)\b",
    "%|per ?cent": r"\b100\b",
    "degrees": r"degrees|\b(180|360)\b",
    "million": r"\b(1e6|10 ?\*\* ?6)\b",
    "billion": r"\b(1e9|10 ?\*\* ?9)\b",
    "pixels?": r"pixel|px|dpi",
}
# A unit -> what an expression in it does, and what the line then says.
SAID = {
    "per cent": (r"(?<![\w.])100 ?\*(?!.*/ ?100\b)", r"%|\bper ?cent"),
    "KiB": (r"/ ?2 ?\*\* ?10\b", "KiB"),
    "MiB": (r"/ ?2 ?\*\* ?20\b", "MiB"),
    "GiB": (r"/ ?2 ?\*\* ?30\b", "GiB"),
}
# How a variable's name ends -> how a text calls the library.
ENDS = {
    "torch": r"PyTorch|`(?:torch|nn|F)\.",
    "tf": r"TensorFlow|Keras|`(?:tf|keras)\.",
    "keras": r"Keras|`keras\.",
    "numpy": r"NumPy|`np\.",
}
LIBRARY = re.compile("|".join(ENDS.values()))
MODULES = {"math", "np", "torch", "nn", "F", "tf", "keras"}
# Mathematics that is a number of two digits or more, or a letter's value.
ALONE = re.compile(r"\$(?:[\w\\{}]+ ?= ?)?([-−]?\d[\d.]+)\$")
# Where a numeral is not a claim: code, other mathematics, links, comments,
# tags, headings, the numbers of a list, exercise headings.
EXEMPT = [
    r"(?ms)^(`{3,}|~{3,}).*?^\1",
    r"(?s)<!--.*?-->",
    r"(?s)\$\$.*?\$\$",
    r"`[^`]*`",
    r"(?s)\$[^$\n]+?\$",
    r"!?\[[^\]]*\]\([^)]*\)",
    r"(?m)^#+ .*$",
    r"(?m)^\s*\d+\. ",
    r"</?\w[^>]*>",
    r"[A-Za-z]+-\d+",
]


def find(markdown):
    """Return the (numeral or word, expression) pairs of a text."""
    return [(said, e.strip()) for said, e in CLAIM.findall(markdown)]


def unclaimed(markdown):
    """Return a message for each numeral in prose that nothing computes."""
    rest = ALONE.sub(r"\1", CLAIM.sub(" ", markdown))
    for pattern in EXEMPT:
        rest = re.sub(pattern, " ", rest)
    return [
        f"the number {match.group()} in {line.strip()[:60]!r} is computed by "
        f"nothing: write {match.group()}<!--= expression -->."
        for line in rest.split("\n")
        for match in re.finditer(NUMBER, line)
    ]


def hollow(markdown):
    """Return a message for each claim that would hold whatever is computed.

    Its expression names no variable, or only modules beside the number itself,
    or does not carry the unit of the number.
    """
    messages = []
    for match in CLAIM.finditer(markdown) if "<!--=" in markdown else ():
        said, expression = match[1], match[2].strip()
        plain = said.replace(",", "").replace("−", "-")
        typed = re.findall(NUMBER, expression)
        repeats = str(NUMBERS.get(said.lower(), plain)) in typed
        if variables(expression) <= (MODULES if repeats else set()):
            messages.append(
                f"the expression behind {said} names no variable: "
                f"{expression!r} says the same whatever the chapter computes. "
                f"Write what gives {said} there, as in 16<!--= d_model -->."
            )
        if unit := missing_unit(expression, markdown[match.end() :]):
            messages.append(
                f"the text says {said} {unit}, but {expression!r} does not "
                f"say {unit}: correct the unit, or write the expression with "
                "it, as in 2.5<!--= num_bytes / 2**20 --> MiB."
            )
        elif unit := unsaid_unit(match, markdown):
            messages.append(
                f"{expression!r} behind {said} is in {unit}, which the text "
                f"does not say: write {said} {unit}, or correct the "
                "expression."
            )
    return messages


def of_other_libraries(markdown):
    """Return a message for each claim about another library than the text's.

    That is the one named right behind it, "4 in Keras", or last before it.
    """
    messages = []
    for claim in CLAIM.finditer(markdown) if "<!--=" in markdown else ():
        ends = re.search(rf"_({'|'.join(ENDS)})\b", claim[2])
        before = markdown[: claim.start()].rpartition("\n")[2]
        after = re.match(
            r"(?: \w+)? (?:in|from) (\S+)", markdown[claim.end() :]
        )
        last = LIBRARY.findall(CLAIM.sub("", before))[-1:]
        behind = LIBRARY.findall(after[1]) if after else []
        said = (behind or last or [""])[0]
        if ends and said and not re.fullmatch(ENDS[ends[1]], said):
            messages.append(
                f"the text says {claim[1]} of {said.strip('`.')}, by "
                f"{claim[2].strip()!r}. Correct the expression, or name the "
                f"library right behind the number: {claim[1]} in Keras."
            )
    return messages


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
    taken = {name for _, e in find(markdown) for name in variables(e)}
    return taken - {"pixel"}


def missing_unit(expression, rest):
    """Return the unit that a text goes on with, if an expression lacks it."""
    for unit, says in UNITS.items():
        match = re.match(rf"[*_`]*\s*({unit})(?!\w)", rest)
        if match and not re.search(says, expression):
            return match[1]
    return None


def unsaid_unit(claim, markdown):
    """Return the unit of a claim's expression if its line does not say it.

    In a table the head may say it.
    """
    before, after = markdown[: claim.start()], markdown[claim.end() :]
    if before.rpartition("\n")[2].startswith("|"):
        return None
    line = after.partition("\n")[0]
    for unit, (does, says) in SAID.items():
        if re.search(does, claim[2]) and not re.search(says, line):
            return unit
    return None


def faults(markdown):
    """Return a message for each claim that is wrong as it is written."""
    checks = unclaimed, hollow, of_other_libraries
    return [message for check in checks for message in check(markdown)]


def check_claims(markdown, namespace):
    """Return a message for each claim of a text that is not true.

    namespace: the variables that the expressions in the comments may use,
    and `pixel` with them.
    """
    messages = faults(markdown)
    names = {"pixel": pixel, **namespace}
    for said, expression in find(markdown):
        try:
            instead = correction(said, eval(expression, dict(names)))
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


def correction(said, value):
    """Return "" if a numeral or word says a value, or else the value.

    A number is compared after rounding to the decimals that are written.
    """
    word = said.lower()
    if word in COLOURS:
        return "" if is_called(value, word) else f"the colour {code(value)}"
    if isinstance(value, str):
        return "" if word == value.lower() else repr(value)
    plain = said.replace(",", "").replace("−", "-")
    plain = str(NUMBERS.get(word, plain))
    if not re.fullmatch(NUMBER, plain):
        raise ValueError(f"{said} is neither a number nor a colour")
    # One unit in the last digit that is written.
    mantissa, _, exponent = plain.partition("e")
    unit = 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))
    close = abs(float(value) - float(plain)) <= 0.5 * unit * (1 + 1e-9)
    return "" if close else f"{float(value):.6g}"
