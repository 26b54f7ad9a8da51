"""The moving picture of *A thousand requests*."""

import numpy as np

from ..common import Pages, Request, Server
from .moving import show_states
from .parts import table_cell, table_head

NAMES = "ABCDEFGH"
# When each comes, the length of its prompt, and of what it writes.
COMES = (0, 0, 0, 0, 1, 2, 4, 5)
PROMPTS = (3, 5, 2, 4, 3, 2, 6, 2)
WRITES = (4, 12, 3, 5, 4, 9, 3, 6)
MEMORY = (20, 10, 7)  # pages of 4 tokens
PLACES, STEPS = 4, 30
SHARES = {"reads": 0.75, "writes": 0.4}


def watched(count, fixed):
    """Return what each step shows, and the step after which all is done.

    Parameters
    ----------
    count
        The pages of the memory.
    fixed
        Whether a batch waits for its longest text.

    Returns
    -------
    tuple
        For each step, {request: "reads" or "writes"}, and the pages' users;
        the number of steps until the last one is done.
    """
    server = Server(
        lambda spans: np.eye(2)[[1] * len(spans)],
        Pages(count, 4),
        2,
        budget=16,
        most=PLACES,
    )
    # Ids of one's own, so that no page is shared.
    requests = [
        Request([0] * length, new)
        for length, new in zip(PROMPTS, WRITES, strict=True)
    ]
    server.pages.known = lambda ids: []
    seen, last = [], 0
    for step in range(STEPS):
        for request, when in zip(requests, COMES, strict=True):
            if when == step:
                server.submit(request)
        server.most = 0 if fixed and server.running else PLACES
        before = [request.written for request in requests]
        tables = {}
        plan = server.plan

        def noted(plan=plan, tables=tables):
            planned = plan()
            for request, _ in planned:
                tables[NAMES[requests.index(request)]] = [*request.table]
            return planned

        server.plan = noted
        server.step()
        server.plan = plan
        done = {}
        for name, request, old in zip(NAMES, requests, before, strict=True):
            if name in tables:
                done[name] = "writes" if request.written > old else "reads"
                last = step + 1
        users = {p: name for name, table in tables.items() for p in table}
        seen.append((done, [users.get(page, "") for page in range(count)]))
    return seen, last


def show_server():
    """Return a server at work: requests, their steps and their pages.

    Returns
    -------
    IPython.display.HTML
        A row for each request, a column for each step, and the pages.
    """
    runs = {
        (memory, way): watched(count, bool(way))
        for memory, count in enumerate(MEMORY)
        for way in (0, 1)
    }
    columns = max(last for _, last in runs.values())

    def state(step, memory, way):
        seen, last = runs[memory, way]
        shown = {}
        for name, comes in zip(NAMES, COMES, strict=True):
            for t in range(columns):
                done = seen[t][0].get(name, "") if t < step else ""
                waits = comes <= t < step and not done
                ended = not any(name in each for each, _ in seen[t:])
                text = "·" if waits and not ended else ""
                shown[f"cell-{name}-{t}"] = text, SHARES.get(done)
        pages = seen[step - 1][1]
        for page in range(max(MEMORY)):
            text = pages[page] if page < len(pages) else "–"
            share = 0.2 if text not in ("", "–") else None
            shown[f"page-{page}"] = text, share
        done = {name for each, _ in seen[:step] for name in each}
        done -= {name for each, _ in seen[step:] for name in each}
        used = sum(map(bool, pages))
        said = f"Step {step}: {len(done)} of {len(NAMES)} are done, "
        said += f"{used} of {len(pages)} pages are used; all are done after "
        return f"{said}{last} steps.", shown

    def draw(parts):
        rows = ""
        for name in NAMES:
            rows += f"<tr>{table_head(f'row-{name}', name)}"
            for t in range(columns):
                rows += table_cell(
                    f"cell-{name}-{t}", *parts[f"cell-{name}-{t}"]
                )
        pages = '<tr><th class="head">pages'
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
    ]
    return show_states("server", controls, state, draw)
