"""The moving picture of *Experts*, and a plot."""

from .moving import show_states
from .parts import table_cell, table_head


def show_loads(loads):
    """Return the loads of eight experts while their routers are trained.

    Parameters
    ----------
    loads
        {name of a router: its loads, (steps, experts)}; the picture has the
        mean of each 20 steps.

    Returns
    -------
    IPython.display.HTML
        A table, a row for each router, at a step that the reader chooses.
    """
    experts = next(iter(loads.values())).shape[1]
    means = {
        name: rows.reshape(-1, 20, experts).mean(1).round(3)
        for name, rows in loads.items()
    }
    steps = len(next(iter(means.values())))

    def state(step):
        parts, busiest = {}, []
        for i, (name, rows) in enumerate(means.items()):
            row = rows[step // 20]
            for e, load in enumerate(row):
                load = float(load)
                parts[f"load-{i}-{e}"] = f"{100 * load:.0f}", load
            busiest.append(f"{100 * row.max():.0f} % ({name})")
        said = f"Step {step}: the busiest expert has {', '.join(busiest)}."
        return said, parts

    def draw(parts):
        table = '<tr><td style="width:26%"></td>'
        for e in range(experts):
            table += table_head(f"expert-{e}", f"expert {e}", "up")
        for i, name in enumerate(loads):
            table += "<tr>" + table_head(f"row-{i}", name)
            for e in range(experts):
                table += table_cell(f"load-{i}-{e}", *parts[f"load-{i}-{e}"])
        said = "percent of the rows, mean of twenty steps"
        return f"<p>{said}</p><table>{table}</table>"

    step = {"min": 0, "max": 20 * (steps - 1), "step": 20, "value": 0}
    step |= {"play": True}
    return show_states(
        "loads",
        [dict(label="step", name="step", type="range") | step],
        state,
        draw,
    )


def plot_kinds(maps):
    """Draw where the rows of each kind go.

    Parameters
    ----------
    maps
        {title: shares, (kinds, experts)}, each row sums to one.
    """
    import matplotlib.pyplot as plt

    fig, axes = plt.subplots(
        1, len(maps), figsize=(6.4, 3.0), layout="constrained", sharey=True
    )
    for ax, (title, shares) in zip(axes, maps.items(), strict=True):
        image = ax.imshow(shares, cmap="Blues", vmin=0, vmax=1)
        ax.set_title(title, fontsize=10)
        ax.set_xlabel("expert")
    axes[0].set_ylabel("kind of rows")
    fig.colorbar(image, ax=axes, label="share of the rows")
