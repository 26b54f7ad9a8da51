"""What the moving pictures show, from the decoder to twenty models."""

import math
from dataclasses import replace

import numpy as np

from tests.site.moving import shows


@shows("decoder", [(1, 0), (4, 3), (4, 1), (7, 1), (7, 6)])
def write(book, step, position):
    model, source = book["model"], book["source_ids"][:1]
    ids = book["written_ids"][:1, :step]
    past, memory = book["looks"](model, source, ids)
    logits = model(source, ids)[0]
    words = [book["vocabulary"][i].strip("<>") for i in ids[0]]
    parts = {}
    tokens = ["say", "hello", "to", "world", "pad", "pad"]
    for s, token in enumerate(tokens):
        parts |= {
            f"source-{s}": token,
            f"memory-{s}": f"{memory[position, s]:.2f}",
        }
    for s in range(8):
        parts[f"written-{s}"] = words[s] if s < step else ""
        best = book["vocabulary"][logits[s].argmax()] if s < step else ""
        parts[f"next-{s}"] = best.strip("<>")
        parts[f"past-{s}"] = (
            f"{past[position, s]:.2f}" if s <= position else ""
        )
    says = book["vocabulary"][logits[position].argmax()].strip("<>")
    return book["step_words"](step, position, words, says), parts


@shows("training", [(0,), (90,), (200,), (10,)])
def learn(book, step):
    at = step // 10
    shares, losses = book["stored_maps"][at], book["stored_losses"]
    looks = [row.index(max(row)) for row in shares]
    right = sum(look == 7 - place for place, look in enumerate(looks))
    said = f"Step {step}: the loss is {losses[2 * at]:.2f}, and {right} of 8 "
    parts = {
        f"look-{r}-{c}": str(share)
        for r, row in enumerate(shares)
        for c, share in enumerate(row)
    }
    parts["dot"] = f"M{20 + 1.5 * step} {110 - 30 * losses[2 * at]:.1f}h0"
    return f"{said}rows look most at their letter.", parts


@shows(
    "testing",
    [
        ([0, 1, 2, 3, 4, 5], 0, []),
        ([0, 2], 1, [0]),
        ([], 0, [0]),
        ([1, 3, 5], 0, [0]),
    ],
)
def matrix(book, may, order, missed):
    groups = [*book["GROUPS"].values()]
    used = {check for group in may for check in groups[group]}
    signs = {"passed": ".", "not run": ""}
    signs |= dict.fromkeys(["failed", "error", "warning"], "x")
    verdicts = {
        bug: {check: signs[report[check].status] for check in sum(groups, [])}
        for bug, report in book["reports"].items()
    }
    found = {
        bug: any(row[check] == "x" for check in used)
        for bug, row in verdicts.items()
    }
    parts = {"heads": "bug" + "".join(sum(groups, []))} | {
        f"bug-{r}": bug + "".join(verdicts[bug].values())
        for r, bug in enumerate(book["BUGS"])
        if not (missed and found[bug])
    }
    said = f"Checks: {len(used)}. "
    return f"{said}Bugs seen: {sum(found.values())} of {len(found)}.", parts


@shows("rotary", [(5, 3, 0), (12, 10, 0), (20, 5, 1), (0, 40, 2), (40, 3, 0)])
def rotary(book, query, key, pair):
    torch, turn = book["torch"], book["clock_turns"][pair]
    x = torch.zeros(2, 6)  # (T, D): one in the first column of the pair
    x[:, 2 * pair] = 1
    ends = book["rotary"](x, torch.tensor([query, key]))
    ends = ends[:, 2 * pair : 2 * pair + 2]

    def tip(end, long):
        return f"{180 + long * end[0]:.1f} {100 - long * end[1]:.1f}"

    parts = {
        name: f"M180 100L{tip(end, long)}"
        for name, long, end in [("query", 88, ends[0]), ("key", 70, ends[1])]
    }
    left = ends[1, 0] * ends[0, 1] > ends[1, 1] * ends[0, 0]
    parts["arc"] = (
        f"M{tip(ends[1], 30)}A30 30 0 0 {0 if left else 1} {tip(ends[0], 30)}"
    )
    apart, cosine = abs(query - key), float(ends[0] @ ends[1])
    score = f"{cosine:.2f}".replace("-", "−")
    said = f"Distance {apart}, {turn:.3f} radians a step, whole circles aside:"
    angle = math.acos(cosine)
    return f"{said} the angle is {angle:.2f}, and the score {score}.", parts


@shows("cache", [(4, 0), (1, 0), (4, 1), (6, 1), (6, 0)])
def cache(book, step, cache):
    x, layer = book["x"][0][:1, :step], book["layers"][0]
    sizes = [1] * step if cache == 0 else [step]
    kept = None
    for new in x.split(sizes, dim=1):
        first = kept[0].shape[2] if kept else 0
        output, kept = book["attend_cached"](new, layer, 6, kept)
    rows, columns = output.shape[1], kept[0].shape[2]
    said = f"Step {step}: keys and values computed: {rows}, "
    said += f"read from a cache: {first}; weights computed: {rows * columns}."
    parts = {"kept": "keys, values"}
    for t, token in enumerate("Life is short eat dessert first".split()):
        parts |= {f"key-{t}": token, f"weight-{t}": f"query {token}"}
        computed = "new" if t == step - 1 else "again"
        known = "kept" if t < first else computed
        parts[f"kept-{t}"] = known if t < columns else ""
        for s in range(6):
            shown = first <= t < first + rows and s < columns
            known = "new" if step - 1 in (s, t) else "again"
            parts[f"weight-{t}-{s}"] = known if shown else ""
    return said, parts


@shows("families", [(8, 0), (0, 0), (14, 3), (16, 5), (3, 1)])
def families(book, family, beside):
    names = [list(book["FAMILIES"])[family], book["beside"][beside]]
    configs = [book["known"][name]["config"] for name in names]
    one, other = map(book["decoder_parts"], configs)
    count = sum(one[part] != other[part] for part in one)
    same = replace(configs[0], epsilon=configs[1].epsilon) == configs[1]
    assert same == (count == 0)
    parts = one | {f"other-{part}": text for part, text in other.items()}
    parts |= {f"head-{part}": part for part in one}
    said = f"{names[0]} and {names[1]}: {count} of 13 parts differ."
    return said, parts | dict(zip(("one", "two"), names, strict=True))


@shows("speculative", [(0, 4), (10, 4), (4, 8), (8, 1), (2, 2)])
def judge(book, near, count):
    p, drawn = book["fp"], book["fq"]
    q = drawn + near / 10 * (p - drawn)  # (N,)
    both = q * np.minimum(1, p / q)  # (N,)
    rest = (1 - both.sum()) * book["residual"](p, q)  # (N,)
    bars, none = book["bars"], 0 * p
    parts = {
        "both": bars(none, both, 18) + bars(none, both, 50),
        "over": bars(both, q, 18),
        "rest": bars(both, both + rest, 50),
    }
    brought = book["tokens_a_call"](both.sum(), count)
    said = f"{100 * both.sum():.0f} % of the judged proposals are accepted. "
    said += f"If the draft proposes {count}, a call of the target brings "
    return f"{said}{brought:.2f} tokens.", parts


@shows("bits", [(4, []), (4, [0]), (2, [0]), (8, []), (3, [])])
def line(book, bits, outlier):
    weights = book["with_outlier" if outlier else "on_line"]
    whole, step = book["quantise"](book["torch"].tensor(weights), bits, 32)
    rough, step = book["restore"](whole, step).numpy(), step.item()
    top, right = 2 ** (bits - 1) - 1, 168 / np.abs(weights).max()
    levels = step * np.arange(-top, top + 1)
    parts = {"weights": "", "moves": "", "levels": ""}
    for w, level in zip(weights, rough, strict=True):
        x, end = f"{180 + right * w:.1f}", f"{180 + right * level:.1f}"
        parts["weights"] += f"M{x} 22h0"
        parts["moves"] += f"M{x} 28L{end} 76"
    for level in levels:
        parts["levels"] += f"M{180 + right * level:.1f} 78v10"
    error = np.abs(rough - weights).max()
    said = f"{bits} bits: {len(levels)} levels with steps of {step:.3f}. "
    said += f"The largest error is {error:.3f}; zeros: "
    return f"{said}{int((whole == 0).sum())} of 32.", parts


@shows("states", [(4, 0, 0), (0, 0, 0), (6, 2, 1), (6, 1, 0), (3, 0, 1)])
def states(book, count, rule, alike):
    writes, keys = (
        book["writes"][:count],
        [book["apart"], book["alike"]][alike],
    )
    state = book["write_state"](keys, writes, rule)
    reads, last = keys @ state, dict(writes)
    shown, held = (np.floor(100 * x + 0.5) / 100 for x in (reads, state))
    right = sum(
        all(
            j == last[i] or x < reads[i, last[i]] - 1e-6
            for j, x in enumerate(reads[i])
        )
        for i in last
    )
    parts = {
        f"state-{i}-{j}": f"{held[i, j]:.2f}"
        for i in range(3)
        for j in range(3)
    }
    parts |= {
        f"read-{i}-{j}": (
            f"* {shown[i, j]:.2f} *"
            if last.get(i) == j
            else f"{shown[i, j]:.2f}"
        )
        for i in range(3)
        for j in range(3)
    }
    for i, (thing, head) in enumerate(
        zip(book["things"], ["column 1", "2", "3"], strict=True)
    ):
        parts |= {f"read-head-{i}": thing, f"state-head-{i}": head}
    for colour in book["colours"]:
        parts |= {f"read-{colour}": colour, f"state-{colour}": colour}
    if count:
        thing, colour = writes[-1]
        told = f"{book['things'][thing]} is {book['colours'][colour]}"
        parts["token"] = f"the last token: {told}"
    else:
        parts["token"] = "no token yet"
    said = f"After {count} tokens, the last colour is the strongest for "
    return f"{said}{right} of {len(last)} things.", parts


@shows("experts", [(0,), (100,), (480,)])
def loads(book, step):
    parts, busiest = {}, []
    for i, name in enumerate(book["shown"]):
        row = book["over_time"][name][step // 20]  # (C,)
        parts[f"row-{i}"] = name
        for e, load in enumerate(row):
            parts[f"expert-{e}"] = f"expert {e}"
            parts[f"load-{i}-{e}"] = f"{100 * load + 1e-9:.0f}"  # as toFixed
        busiest.append(f"{100 * row.max():.0f} % ({name})")
    said = f"Step {step}: the busiest expert has {', '.join(busiest)}."
    return said, parts


@shows("finetune", [([0, 1, 2],), ([],), ([0],), ([1],), ([0, 1],)])
def packed(book, rule):
    own, again, only = (i in rule for i in range(3))
    mask = book["own_text"] if own else book["causal"]
    targets = book["answers"] if only else book["every_target"]
    start = book["place"] if again else np.arange(len(mask))
    ids, labels = (
        book["to_ids"](book[name]) for name in ("signs", "every_target")
    )
    loss = book["row_losses"](book["drawn"], ids, start, mask, labels)
    last = loss[-2:].mean().item()
    parts = {f"row-{i}": sign for i, sign in enumerate(book["signs"])}
    parts |= {f"target-{i}": sign for i, sign in enumerate(targets)}
    parts |= {f"position-{i}": str(p) for i, p in enumerate(start)}
    parts |= {"targets": "asked", "positions": "position"}
    parts |= {f"see-{i}-{j}": "" for i, j in np.ndindex(mask.shape)}
    asked = len(targets) - targets.count("_")
    said = f"{mask.sum()} pairs may look, {asked} targets count. The last "
    said += f"answer has the loss {last:.2f}, and {book['alone_loss']:.2f} in "
    return f"{said}a row of its own.", parts


@shows("machines", [(1, 0), (2, 1), (4, 0), (3, 1)])
def ring(book, step, order):
    owner = (
        np.arange(8) // 2 if not order else np.array([0, 1, 2, 3, 3, 2, 1, 0])
    )
    tokens = "life is short so eat the dessert first".split()
    now, parts = [0] * 4, {}
    for t, token in enumerate(tokens):
        parts[f"query-{t}"], parts[f"key-{t}"] = f"{owner[t]}: {token}", token
        parts[f"held-{t}"] = str((owner[t] + step - 1) % 4)
        for s in range(8):
            turn = (owner[t] - owner[s]) % 4 + 1
            parts[f"pair-{t}-{s}"] = "now" if turn == step else "✓"
            if s > t or turn > step:
                parts[f"pair-{t}-{s}"] = ""
            now[owner[t]] += s <= t and turn == step
    parts["held"] = "keys are on"
    said = f"Step {step}: machines 0 to 3 compute {', '.join(map(str, now))} "
    return f"{said}pairs; the slowest has {max(now)}.", parts
