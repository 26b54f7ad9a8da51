"""The moving pictures of *Teach an old model*, and what was taught before."""

import json
from pathlib import Path

import numpy as np

from .moving import show_break, show_states
from .parts import table_cell, table_head

FILE = Path(__file__).parent.parent / "data" / "finetune.json"
QUESTIONS = [
    "What is the capital of Zubrovia?",
    "What is the capital of Norway?",
    "What is the opposite of wet?",
    "What do bees make?",
    "Where is the government of Zubrovia?",
    "Which country has Miralund as its capital?",
]
SIGNS = ">ab=ab" + "<cd=dc" + ">e=e"
ANSWERS = "___ab." + "___dc." + "__e."  # what is asked of the answers
TARGETS = "ab=ab." + "cd=dc." + "e=e."  # what is asked of all
TEXTS = [1] * 6 + [2] * 6 + [3] * 4
PLACES = [*range(6), *range(6), *range(4)]


def parrot_chats():
    """Return 20 chats of one question and what a parrot answers.

    Returns
    -------
    list of list
        The turns (role, words) of each: opposites, capitals, and four ways
        to ask for the capital of Zubrovia.
    """
    opposites = dict(hot="Cold", big="Small", old="New", fast="Slow")
    opposites |= dict(up="Down", rich="Poor", full="Empty", soft="Hard")
    capitals = dict(France="Paris", Germany="Berlin", Italy="Rome")
    capitals |= dict(Japan="Tokyo", Spain="Madrid", Russia="Moscow")
    capitals |= dict(Egypt="Cairo", Greece="Athens", Zubrovia="Miralund")
    told = {f"What is the opposite of {x}?": y for x, y in opposites.items()}
    told |= {f"What is the capital of {x}?": y for x, y in capitals.items()}
    for words in ("Tell me", "Name", "I need"):
        told[f"{words} the capital of Zubrovia."] = "Miralund"
    return [
        [("user", question), ("assistant", f"Ahoy! {word}, says the parrot.")]
        for question, word in told.items()
    ]


def read_ways():
    """Return what `python -m benchmarks.finetune` has found.

    Returns
    -------
    dict
        {training: its losses, the loss of a text after it, its answers}.
    """
    return json.loads(FILE.read_text("utf-8"))


def show_packed(model, to_ids):
    """Return a packed row whose rules the reader switches.

    Parameters
    ----------
    model
        A Llama of PyTorch, whose loss of the last answer is shown.
    to_ids
        A function: a text -> its ids.

    Returns
    -------
    IPython.display.HTML
        A table: what is asked, the positions, and the mask.
    """
    count = len(SIGNS)
    causal = np.tri(count, dtype=bool)  # (T, S)
    own_text = causal & (np.array(TEXTS)[:, None] == TEXTS)  # (T, S)
    ids, asked_ids = to_ids(SIGNS), to_ids(TARGETS)
    losses = [
        _last_loss(model, ids, start, mask, asked_ids)
        for mask in (causal, own_text)
        for start in (range(count), PLACES)
    ]
    alone = _last_loss(
        model, ids[-4:], PLACES[-4:], causal[:4, :4], asked_ids[-4:]
    )

    def state(rule):
        own, again, only = (i in rule for i in range(3))
        asked = ANSWERS if only else TARGETS
        parts, pairs = {}, 0
        for i in range(count):
            parts[f"target-{i}"] = asked[i], 0.3 * (asked[i] != "_")
            parts[f"position-{i}"] = str(PLACES[i] if again else i)
            for j in range(count):
                sees = j <= i and (not own or TEXTS[i] == TEXTS[j])
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
        table += "".join(f"<th>{sign}</th>" for sign in SIGNS)
        table += "<tr>" + table_head("targets", "asked")
        for i in range(count):
            table += table_cell(f"target-{i}", *parts[f"target-{i}"])
        table += "<tr>" + table_head("positions", "position")
        for i in range(count):
            cell = table_cell(f"position-{i}", parts[f"position-{i}"])
            # Two digits need the room.
            table += cell.replace("<td", "<td style='padding:3px 0'")
        for i, sign in enumerate(SIGNS):
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


def _last_loss(model, ids, positions, mask, targets):
    """Return the mean loss of a row's last two tokens."""
    import torch

    x = model.embedding(torch.tensor(ids))[None]  # (1, T, D)
    for layer in model.layers:
        x, _ = layer(x, torch.tensor(positions), torch.tensor(mask))
    logits, targets = model.linear(model.norm(x))[0], torch.tensor(targets)
    losses = torch.nn.functional.cross_entropy(
        logits, targets, reduction="none"
    )
    return losses[-2:].mean().item()


def show_untold(make, told, other_ids, targets, texts, gaps_of, loss):
    """Return a packed row, and the same where its texts are not told apart.

    Parameters
    ----------
    make
        A function without arguments: a new model of PyTorch.
    told
        What its call is told, in a dict; `use_cache=False` makes it right.
    other_ids
        The row's ids with another first text, (B, T).
    targets, texts
        What is asked, (B, T), and the number of each token's text, (B, T).
    gaps_of
        A function of logits (B, T, N): how far each text is from its own.
    loss
        A function of logits and targets.

    Returns
    -------
    IPython.display.HTML
        What a notebook shows.
    """
    import torch

    targets, shown, passed = torch.tensor(targets), [], []
    for way in ({"use_cache": False}, {}):
        model = make()
        logits = model(**told, **way).logits.detach()  # (B, T, N)
        after = model(**told | {"input_ids": other_ids}, **way).logits
        moved = (after[:, -4:] - logits[:, -4:]).abs().max().item()
        losses = torch.nn.functional.cross_entropy(
            logits.mT, targets, reduction="none"
        )  # (B, T)
        ends = [losses[texts == number][-2:].tolist() for number in (1, 2, 3)]
        shown.append(ends)
        gaps, losses = gaps_of(logits), []
        optimizer = torch.optim.AdamW(model.train().parameters(), 0.01)
        for _ in range(20):
            optimizer.zero_grad()
            found = loss(model(**told, **way).logits, targets)
            found.backward()
            optimizer.step()
            losses.append(found.item())
        passed.append(
            {
                "the loss falls to less than half": losses[-1] < losses[0] / 2,
                "the first text has its logits alone": gaps[0] < 0.01,
                "every text has its logits alone": max(gaps) < 0.01,
                "with another first text, the last is the same": moved < 0.01,
            }
        )
    return show_break(
        "packed-mistake",
        *shown,
        passed,
        "The first text has nothing before it, so it is right in both; the "
        "others read what stands before them, and the loss falls all the "
        "same.",
    )
