"""The pictures of *Training a Transformer*, most of them moving."""

import numpy as np

from .moving import show_mistake, show_states
from .parts import svg_image, svg_texts, table_cell

SOURCE, TARGET = "headache", "ehcadaeh"
STORED_MAPS = (
    "1221120312121019152215021011081713182205130907132618070207131313"
    "1520100410111219231413061013111017191005101013172017160309110913"
    "1514100512171413191511031018131215141707131310112513080309171610"
    "1513100512171414231011071016140815131007111614132311120510171309"
    "2108080911201507250707080925140619081111121814072608070709201506"
    "1807080911251407250708110919150517070810112514072706071008231405"
    "2607060909251305270505080734110323070711092413052907050808271204"
    "2106060909341104280606110725130419060610093512042805050907331103"
    "2209040807311207200602070548090420090410073112072408030705351106"
    "1607030806461005250703090533120515060308064710052005020804490803"
    "1607081110291206110505090751080413071013122711061706071109331205"
    "1005071009460905170508130932120509050611094708051104051006530703"
    "0407080710550407050810101243050706091313182607081408131617131107"
    "0307090913470408070713141432070603070909134804070708151615260607"
    "0510151113270711081113141322091008111013152210112010082011091507"
    "0711121315220811091015141321080906101414142308111010151813160909"
    "0208320615130420050911111327091506060209084911091608041808231708"
    "0508081311330912061123091318071305091713132407131512151709131109"
    "0001020000000592010001000556290800000000029503001001012707470600"
    "0505038402010000062909540100000002401147000000001207047402010000"
    "0001000000000099000000000004930300000000087813000000000192070000"
    "0000039700000000005048020000000000980200000000004848030000000000"
    "0000000000000099010000000000970200000000048808000000000397000000"
    "0000009901000000000694000000000006880300000000039900000000000000"
    "0001000000000099000000000000970200000000019901000000000096040000"
    "0000009900000000000098020000000001980000000000009900000000000000"
    "0000000000000099000000000000990000000000009802000000000076230000"
    "0000009900000000000099000000000002970000000000009900000000000000"
    "0000000000000099000000000001990000000000009900000000000193060000"
    "0000009901000000000099010000000002980100000000009900000000000000"
    "0000000000000099000000000001990000000000059500000000000099000000"
    "0000009900000000000099000000000000871300000000009900000000000000"
    "0001000000000099000000000000990000000000019603000000000098020000"
    "0000009900000000000099000000000000990000000000009901000000000000"
    "0001000000000099000000000000990000000000019703000000000095050000"
    "0000009900000000000099000000000000990000000000009900000000000000"
    "0001000000000099000000000000990000000000019505000000000093070000"
    "0000019900000000000099000000000000990000000000009900000000000000"
    "0001000000000099000000000000990000000000019405000000000194060000"
    "0000019900000000000099000000000000990000000000009900000000000000"
    "0001000000000099000000000000990100000000019207000000000193070000"
    "0000019900000000000099000000000000990000000000009900000000000000"
)  # per cent, two digits a weight; a map for each tenth step
STORED_LOSSES = (
    "315 285 258 249 245 245 243 241 241 238 231 221 212 201 198 196 "
    "185 169 130 095 069 064 063 061 058 057 057 056 056 056 056 055 "
    "055 055 055 054 054 054 054 054 054 "
)  # hundredths, of each fifth step


def stored_training():
    """Return what a training has left.

    Returns
    -------
    maps : numpy.ndarray
        What a letter of the target looks at, in per cent, (steps, T, S); one
        for each tenth step.
    losses : list of float
        Of each fifth step.
    """
    pairs = zip(*[iter(STORED_MAPS)] * 2, strict=True)
    maps = np.array([int(a + b) for a, b in pairs])
    losses = [int(loss) / 100 for loss in STORED_LOSSES.split()]
    return maps.reshape(-1, len(TARGET), len(SOURCE)), losses


def show_training():
    """Return a stored training: the map of attention, and the loss.

    Returns
    -------
    IPython.display.HTML
        The reader chooses a step.
    """
    maps, losses = stored_training()
    points = [
        f"{20 + 7.5 * i} {110 - 30 * loss:.1f}"
        for i, loss in enumerate(losses)
    ]

    def state(step):
        shares, parts = maps[step // 10], {}
        for (r, c), share in np.ndenumerate(shares):
            parts[f"look-{r}-{c}"] = str(share), float(share) / 100
        parts["dot"] = f"M{points[step // 5]}h0"
        right = sum(shares.argmax(-1) == range(len(SOURCE))[::-1])
        return (
            f"Step {step}: the loss is {losses[step // 5]:.2f}, and {right} "
            f"of {len(SOURCE)} rows look most at their letter."
        ), parts

    def draw(parts):
        rows = '<tr><td style="width:3em">'
        rows += "".join(f"<th>{letter}" for letter in SOURCE)
        for r, letter in enumerate(TARGET):
            rows += f"<tr><th>{letter}" + "".join(
                table_cell(f"look-{r}-{c}", *parts[f"look-{r}-{c}"])
                for c in range(len(SOURCE))
            )
        least = np.array([0.9 + 0.1 / 13, *12 * [0.1 / 13]])  # (N,)
        level = f"{110 + 30 * (least * np.log(least)).sum():.1f}"
        drawing = f"<path d='M20 {level}H320' style='stroke:#767676'/>"
        drawing += f"<path d='M{'L'.join(points)}' style='stroke:#2b4c7e'/>"
        drawing += f"<path data-part='dot' d='{parts['dot']}' style='stroke:"
        drawing += "#b35806;stroke-width:9;stroke-linecap:round'/>"
        drawing += svg_texts(
            [((60, 20), "loss"), ((240, 88), "floor")]
            + [((20, 125), "step 0"), ((298, 125), "200")]
        )
        label = "The loss over the steps, and its floor"
        table = f'<table style="max-width:28rem">{rows}</table>'
        return table + svg_image(label, "360 130", drawing)

    step = {"min": 0, "max": 200, "step": 10, "value": 0}
    step |= {"play": True}
    return show_states(
        "learn",
        [dict(label="training step", name="step", type="range") | step],
        state,
        draw,
    )


def show_unshifted(passed, writes):
    """Return the bet on targets that are not shifted.

    Parameters
    ----------
    passed
        {check: whether it passes}, of the right targets and the wrong ones.
    writes
        Pairs of a word and what is written, of both.

    Returns
    -------
    IPython.display.HTML
        What a notebook shows.
    """
    return show_mistake(
        "training-mistake",
        *writes,
        passed,
        "New sequences pass, because the same line makes them. Compare inputs "
        "and targets, or let the model write.",
    )


def plot_stretches(stretches):
    """Plot how much a step stretches each of its directions.

    Parameters
    ----------
    stretches
        {step: its singular values, the largest first}.
    """
    import matplotlib.pyplot as plt

    _, ax = plt.subplots(figsize=(5, 2.6), layout="constrained")
    for name, values in stretches.items():
        ax.plot(values, label=name)
    ax.set(xlabel="direction", ylabel="stretch", xlim=(0, len(values) - 1))
    ax.legend()
