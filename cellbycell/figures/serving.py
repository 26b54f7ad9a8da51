"""The moving picture of *A thousand requests*."""

from collections import Counter

import numpy as np

from ..common import Pages, Request, Server, SharedPages
from .moving import show_states
from .parts import table_cell, table_head

NAMES = "ABCDEFGH"
# When each comes, its own part of the prompt, and what it writes.
COMES = (0, 0, 0, 0, 1, 2, 4, 5)
PROMPTS = (2, 3, 1, 2, 2, 1, 6, 2)
WRITES = (4, 12, 3, 5, 4, 9, 3, 6)
COMMON, SIZE = 4, 4  # the tokens of all prompts; the slots of a page
MEMORY = (14, 10, 7)  # pages
BUDGET, PLACES, STEPS = 16, 4, 36
VOCAB = 20
SHARES = {"r": 0.75, "w": 0.4, "×": None, "·": None, "": None}


def watched(count, fixed, shared):
    """Return what each step shows, and the step after which all is done.

    Parameters
    ----------
    count
        The pages of the memory.
    fixed
        Whether a batch waits for its longest text.
    shared
        Whether the common beginning is read once.

    Returns
    -------
    tuple
        For each step: {request: "r" for reads, "w" for writes, "×" for sent
        back to wait, "·" for waits}, the users of each page, and the tokens
        that were read; and the number of steps until the last one is done.
    """
    server = Server(
        lambda spans: np.eye(VOCAB)[[1] * len(spans)],
        (SharedPages if shared else Pages)(count, SIZE),
        VOCAB,
        BUDGET,
        PLACES,
    )
    named = {}
    for n, (own, new) in enumerate(zip(PROMPTS, WRITES, strict=True)):
        named[Request([0] * COMMON + [2 + n] * own, new)] = NAMES[n]
    seen, last, plan = [], 0, server.plan
    for step in range(STEPS):
        for request, when in zip(named, COMES, strict=True):
            if when == step:
                server.submit(request)
        server.most = 0 if fixed and server.running else PLACES
        running, read = [*server.running], server.count["read"]
        planned, users = [], Counter()

        def noted(planned=planned, users=users):
            planned += plan()
            for one in server.running:
                for page in one.table:
                    users[page] = users.get(page, "") + named[one]
            return planned

        server.plan = noted
        wrote = {one for one, _ in server.step()}
        done = {named[one]: "·" for one in server.waiting}
        for one, _ in planned:
            done[named[one]] = "w" if one in wrote else "r"
            last = step + 1
        for one in running:
            if one in server.waiting:
                done[named[one]] = "×"
        pages = [users.get(page, "") for page in range(count)]
        seen.append((done, pages, server.count["read"] - read))
    return seen, last


def show_server():
    """Return a server at work: requests, their steps and their pages.

    Returns
    -------
    IPython.display.HTML
        A row for each request, a column for each step, and the pages.
    """
    runs = {
        (memory, way, shared): watched(count, bool(way), shared)
        for memory, count in enumerate(MEMORY)
        for way in (0, 1)
        for shared in (False, True)
    }
    columns = max(last for _, last in runs.values())

    def state(step, memory, way, shared):
        seen, last = runs[memory, way, shared]
        shown = {}
        for name in NAMES:
            for t in range(columns):
                did = seen[t][0].get(name, "") if t < step else ""
                shown[f"cell-{name}-{t}"] = did, SHARES[did]
        pages = seen[step - 1][1]
        for page in range(max(MEMORY)):
            users = pages[page] if page < len(pages) else "–"
            share = 0.4 if users else 0.08
            if len(users) > 1:
                users, share = str(len(users)), 0.75
            shown[f"page-{page}"] = users, None if users == "–" else share
        ended = set(NAMES)
        for done, _, _ in seen[step:]:
            ended -= done.keys()
        used, read = sum(map(bool, pages)), seen[step - 1][2]
        return (
            f"Step {step} reads {read} tokens. {len(ended)} of {len(NAMES)} "
            f"are done, {used} of {len(pages)} pages are used; all are done "
            f"after {last} steps."
        ), shown

    def draw(parts):
        rows = ""
        for name in NAMES:
            rows += f"<tr>{table_head(f'row-{name}', name)}"
            for t in range(columns):
                at = f"cell-{name}-{t}"
                rows += table_cell(at, *parts[at])
        pages = f"<tr>{table_head('row-pages', 'pages')}"
        for page in range(max(MEMORY)):
            pages += table_cell(f"page-{page}", *parts[f"page-{page}"])
        return f"<table>{rows}</table><table>{pages}</table>"

    controls = [
        dict(label="step", name="step", type="range", min=1)
        | dict(max=columns, value=6, play=True),
        dict(label="pages", name="memory", type="radio", chosen=[0])
        | dict(choices=[str(count) for count in MEMORY]),
        dict(label="a place that is free", name="way", type="radio")
        | dict(
            choices=["is taken at once", "waits for the batch"], chosen=[0]
        ),
        dict(label="the common beginning is shared", name="shared")
        | dict(type="checkbox"),
    ]
    return show_states("server", controls, state, draw)
