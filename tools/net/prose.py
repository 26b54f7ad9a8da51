"""Numbers in prose: `16<!--= d_model -->` is a claim that is evaluated."""

import re

NUMBER = r"(?<![\w.,])[-−]?\d(?:[\d,]*\d)?(?:\.\d+)?(?:e[-−]?\d+)?"
CLAIM = re.compile(rf"({NUMBER})[*_`]*<!--=(.*?)-->", re.DOTALL)
# Where a numeral is not a claim: code, mathematics, links, comments, tags,
# headings, the numbers of a list, exercise headings.
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


def claims(markdown):
    """Return the (numeral, expression) pairs of a text."""
    return [(n, e.strip()) for n, e in CLAIM.findall(markdown)]


def unclaimed(markdown):
    """Return a message for each numeral in prose that nothing computes."""
    rest = CLAIM.sub(" ", markdown)
    for pattern in EXEMPT:
        rest = re.sub(pattern, " ", rest)
    return [
        f"the number {match.group()} in {line.strip()[:60]!r} is computed by "
        f"nothing: write {match.group()}<!--= expression -->."
        for line in rest.split("\n")
        for match in re.finditer(NUMBER, line)
    ]


def check_prose(markdown, namespace):
    """Return a message for each number in a text that is not true.

    namespace: the variables that the expressions in the comments may use.
    A number is compared after rounding to the decimals that are written.
    """
    messages = unclaimed(markdown)
    for numeral, expression in claims(markdown):
        plain = numeral.replace(",", "").replace("−", "-")
        # One unit in the last digit that is written.
        mantissa, _, exponent = plain.partition("e")
        unit = 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))
        try:
            value = float(eval(expression, dict(namespace)))
        except Exception as error:
            messages.append(
                f"the expression behind the number {numeral} fails: "
                f"{expression!r} raises {type(error).__name__}: {error}."
            )
            continue
        if not abs(value - float(plain)) <= 0.5 * unit * (1 + 1e-9):
            messages.append(
                f"the prose says {numeral}, but {expression} is {value:.6g}: "
                "correct the number or what computes it."
            )
    return messages
