"""The moving pictures of *Teach an old model*."""

from .moving import show_states
from .parts import table_cell, table_head


def show_packed(signs, answers, targets, texts, positions, losses, alone):
    """Return a packed row whose rules the reader switches.

    Parameters
    ----------
    signs, answers, targets
        The T tokens, what is asked of the answers ("_" for nothing), and what
        is asked of all.
    texts, positions
        The number of each token's text, and its place in it, (T,).
    losses
        Of the last answer: without rules, with positions that start again,
        with a mask, and with both.
    alone
        Its loss in a row of its own.

    Returns
    -------
    IPython.display.HTML
        A table: what is asked, the positions, and the mask.
    """
    count = len(signs)

    def state(rule):
        own, again, only = (i in rule for i in range(3))
        asked = answers if only else targets
        parts, pairs = {}, 0
        for i in range(count):
            parts[f"target-{i}"] = asked[i], 0.3 * (asked[i] != "_")
            parts[f"position-{i}"] = str(positions[i] if again else i)
            for j in range(count):
                sees = j <= i and (not own or texts[i] == texts[j])
                parts[f"see-{i}-{j}"] = "", 0.6 * sees
                pairs += sees
        loss, count_asked = losses[2 * own + again], count - asked.count("_")
        said = (
            f"{pairs} pairs may look, {count_asked} targets count. The last "
            f"answer has the loss {loss:.2f}, and {alone:.2f} in a row of its "
            "own."
        )
        return said, parts

    def draw(parts):
        table = '<tr><td style="width:17%"></td>'
        table += "".join(f"<th>{sign}</th>" for sign in signs)
        table += "<tr>" + table_head("targets", "asked")
        for i in range(count):
            table += table_cell(f"target-{i}", *parts[f"target-{i}"])
        table += "<tr>" + table_head("positions", "position")
        for i in range(count):
            cell = table_cell(f"position-{i}", parts[f"position-{i}"])
            # Two digits need the room.
            table += cell.replace("<td", "<td style='padding:3px 0'")
        for i, sign in enumerate(signs):
            table += "<tr>" + table_head(f"row-{i}", sign)
            for j in range(count):
                table += table_cell(f"see-{i}-{j}", *parts[f"see-{i}-{j}"])
        return f"<table>{table}</table>"

    rules = ["own text only", "positions start again", "answers only"]
    return show_states(
        "packed",
        [
            dict(label="rules", name="rule", type="checkbox")
            | dict(choices=rules, chosen=[0, 1, 2])
        ],
        state,
        draw,
    )
