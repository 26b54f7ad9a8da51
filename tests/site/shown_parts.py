"""What the moving pictures show, from the embedding to the encoder."""

import re

import numpy as np

from tests.site.moving import shows


@shows("embedding", [(8,), (0,), (11,)])
def apart(book, token):
    entries = list(book["vocabulary"])
    rows = book["one_hot"](book["torch"].arange(len(entries)), len(entries))
    away = (rows - rows[token]).norm(dim=-1)  # (N,)
    parts, steps = {}, [abs(n - token) for n in range(len(entries))]
    for n, one in enumerate(rows[token]):
        parts[f"one-{n}"] = f"{one:.0f}"
        parts[f"steps-{n}"] = str(steps[n])
        parts[f"apart-{n}"] = f"{away[n]:.2f}"
    far, near = steps.index(max(steps)), len(steps) - 1 - steps[::-1].index(1)
    said = f"“{entries[token]}” has id {token}. As ids, “{entries[far]}” is "
    said += f"{steps[far]} away and “{entries[near]}” 1; as rows with a 1, "
    return f"{said}both are {away[far]:.2f} away.", parts


@shows("positional_encoding", [(16, 4, 5), (2, 1, 0), (32, 4, 31), (6, 5, 20)])
def waves(book, width, base, position):
    said = book["wave_words"](position, width, base)
    if base == 4:
        row = book["position_table"](32, width)[position]  # (D,)
        numbers = ", ".join(f"{number:.4f}" for number in row[:6])
        assert f": {numbers}".replace("-", "−") in said
    return said, book["wave_paths"](position, width, base)


@shows("position_similarity", [(6, 6), (0, 2), (44, 64), (100, 128)])
def clocks(book, offset, width):
    said = book["clock_words"](offset, width)
    rows = book["position_table"](offset + 1, width)  # (T, D)
    total = float(re.search(r"= (−?[\d.]+)", said)[1].replace("−", "-"))
    assert abs(rows[0] @ rows[offset] - total) < 2e-3
    return said, book["clock_paths"](offset, width)


@shows(
    "attention",
    [
        (0, 1.5, [0]),
        (45, 2.5, []),
        (-180, 0.7, [0]),
        (81, 0, []),
        (-90, 2, []),
    ],
)
def query(book, angle, norm, root):
    torch, plane = book["torch"], book["plane"]
    x, y = norm * np.cos(np.radians(angle)), norm * np.sin(np.radians(angle))
    asked = torch.tensor([[x, y]]).double()  # (T, K)
    keys = torch.tensor(plane["keys"]).double()  # (S, K)
    values = torch.tensor(plane["values"]).double()  # (S, V)
    divisor = np.sqrt(2) if root else 1.0
    output, weights = book["attend"](
        asked * np.sqrt(2) / divisor, keys, values
    )

    def text(number):
        return f"{number:.2f}".replace("-0.00", "0.00").replace("-", "−")

    parts = {"root": "÷ √2" if root else "÷ 1"}
    for j, name in enumerate(plane["names"]):
        score, (across, up) = (keys[j] @ asked[0]).item(), plane["values"][j]
        parts[f"name-{j}"] = name
        parts[f"score-{j}"] = text(score)
        parts[f"divided-{j}"] = text(score / divisor)
        parts[f"weight-{j}"] = f"{weights[0, j]:.2f}"
        parts[f"value-{j}"] = f"M{282 + 28 * across:.1f} {118 - 28 * up:.1f}h0"
    tip = f"{110 + 36 * x:.1f} {118 - 36 * y:.1f}"
    parts |= {"query": f"M110 118L{tip}" * (norm > 0), "handle": f"M{tip}h0"}
    x, y = output[0].tolist()
    parts["output"] = f"M282 118L{282 + 28 * x:.1f} {118 - 28 * y:.1f}"
    said = [
        f"{n} {parts[f'weight-{j}']}" for j, n in enumerate(plane["names"])
    ]
    said = f"Weights: {', '.join(said)}. The output is "
    return f"{said}({text(x)}, {text(y)}).", parts


@shows(
    "multi_head_attention",
    [(n, to) for to in ([0, 1], [], [0], [1]) for n in (2, 0, 1, 3, 4)],
)
def heads(book, step, moves):
    x = book["torch"].arange(24).reshape(1, 3, 8)  # (B, T, D)
    divided = book["split_heads"](x, 2)  # (B, H, T, K)
    if 0 not in moves:
        divided = x.reshape(divided.shape)  # (B, H, T, K)
    whole = book["merge_heads"](divided)  # (B, T, D)
    if 1 not in moves:
        whole = divided.reshape(x.shape)  # (B, T, D)
    lying = [x, x, divided, divided, whole][step]
    if (step == 1 and 0 not in moves) or (step == 3 and 1 not in moves):
        lying = divided
    elif step == 3:
        lying = whole
    seen = lying if lying.ndim == 3 else lying.transpose(1, 2)
    parts = {
        f"number-{i}": str(n) for i, n in enumerate(seen.ravel().tolist())
    }
    numbers = " ".join(map(str, lying.ravel().tolist()))
    parts["order"] = f"In the array: {numbers}"
    for i, columns in enumerate(["columns 0–3", "columns 4–7"]):
        parts[f"side-{i}"] = columns if step in (0, 4) else f"head {i}"
    frames = book["step_frames"](x[0].numpy(), 0 in moves, 1 in moves)
    return frames[step]["said"], parts


@shows(
    "masks",
    [([0, 1, 2, 3], [], 0), ([0, 1, 2, 3], [0], 0), ([1, 2], [1], 0)]
    + [([1, 2, 3], [0], fill) for fill in (0, 1, 2)],
)
def masks(book, keys, more, fill):
    torch, positions = book["torch"], range(7)
    x = torch.from_numpy(book["sines"])[book["ids"][0]][None]  # (B, T, D)
    mask = torch.tensor([[s in keys for s in positions]] * 7)  # (T, S)
    if 0 in more:
        mask &= book["make_causal_mask"](7)
    if 1 in more:
        mask &= torch.tensor([[t in keys] for t in positions])
    weights = [
        book["attend"](x, x, x, mask)[1],
        book["attend_filled"](x, x, torch.eye(7), mask, -1e9),
        book["attend_or_zero"](x, x, x, mask)[1],
    ][fill][0]  # (T, S)
    tokens = ["say", "hello", "to", "world", "pad", "pad", "pad"]
    parts = {}
    for t, token in enumerate(tokens):
        parts |= {f"key-{t}": token, f"query-{t}": token}
        for s in positions:
            parts[f"weight-{t}-{s}"] = f"{weights[t, s]:.2f}"
    blind = [tokens[t] for t in positions if not mask[t].any()]
    said = "Each query sees a key, and each row sums to 1."
    if blind:
        said = f"Blind: {', '.join(blind)}. {book['fates'][fill]}"
    return said, parts


@shows(
    "encoder",
    [([0, 1], 0, 1), ([0, 1], 1, 6), ([1], 1, 3), ([0], 0, 6), ([], 1, 2)],
)
def way(book, parts, order, layer):
    x, mask = book["x"], book["attention_mask"]
    for encoder_layer in book["way_layers"][:layer]:
        rows, start = [["the token", x]], x
        for name, around, sublayer in [
            (
                "attention",
                encoder_layer.around_attention,
                lambda y, f=encoder_layer.attention: f(y, y, y, mask),
            ),
            (
                "feed-forward",
                encoder_layer.around_feed_forward,
                encoder_layer.feed_forward,
            ),
        ]:
            norm = around.norm if 1 in parts else lambda y: y
            read = norm(x) if order else x
            said = sublayer(read)
            total = x + said if 0 in parts else said
            x = total if order else norm(total)
            steps = [[name, said], ["add", total]]
            rows += (
                [["norm", read], *steps] if order else [*steps, ["norm", x]]
            )
        if 0 in parts and 1 in parts and not order:
            assert book["torch"].allclose(x, encoder_layer(start, mask))
    shown, sizes = {}, []
    for r, (name, vectors) in enumerate(rows):
        hello = vectors[0, 1].detach()
        sizes.append(f"{hello.square().mean().sqrt():.2f}")
        shown |= {f"step-{r}": name, f"size-{r}": sizes[-1]}
        for c, number in enumerate(hello[:6]):
            text = f"{number:.1f}".replace("-0.0", "0.0").replace("-", "−")
            shown[f"way-{r}-{c}"] = text
    alike = book["lowest_similarity"](x[0, :4].detach().numpy())
    said = f"Layer {layer}: RMS {sizes[0]} goes in and {sizes[-1]} comes out."
    return f"{said} Lowest similarity of the tokens: {alike:.2f}.", shown
