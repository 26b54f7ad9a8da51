"""The plots of *Twenty models, one decoder*."""

__all__ = ["plot_places"]


def plot_places(choices):
    """Draw where norms stand in a layer, for each choice of families.

    Parameters
    ----------
    choices
        {choice: (names of the four norms or None, a family)}.
    """
    import matplotlib.pyplot as plt

    _, ax = plt.subplots(figsize=(4.1, 4.0), layout="constrained")
    for x, (choice, (norms, family)) in enumerate(choices.items()):
        ax.plot([x, x], [-0.6, 7.6], color="0.5", lw=1, zorder=1)
        ax.text(x, -0.8, f"{choice}\n{family}", ha="center", va="bottom")
        for y, name in zip((0, 2, 4, 6), norms, strict=True):
            if name:
                name = name.removesuffix("_layernorm").replace("_", "\n")
                _draw_box(plt, ax, x, y, name, norm=True)
        if choice == "ONE":
            _draw_box(plt, ax, x - 0.22, 1, "att.", 0.4)
            _draw_box(plt, ax, x + 0.22, 1, "ff", 0.4)
        else:
            _draw_box(plt, ax, x, 1, "attention")
            _draw_box(plt, ax, x, 5, "feed-\nforward")
        for start, y in (
            [(-0.5, 7)] if choice == "ONE" else [(-0.5, 3), (3.4, 7)]
        ):
            around = [x, x - 0.48, x - 0.48, x], [start, start, y, y]
            ax.plot(*around, color="0.5", lw=1, zorder=1)
            ring = {"boxstyle": "circle,pad=0.1", "fc": "white", "ec": "0.5"}
            ax.text(x, y, "+", ha="center", va="center", bbox=ring)
    ax.set(xlim=(-0.55, 3.45), ylim=(7.6, -2.0))
    ax.set_axis_off()


def _draw_box(plt, ax, x, y, text, width=0.86, norm=False):
    """Draw a box with this text around (x, y)."""
    look = {"fc": "tab:blue"} if norm else {"fc": "0.88"}
    corner = (x - width / 2, y - 0.38)
    ax.add_patch(plt.Rectangle(corner, width, 0.76, zorder=2, **look))
    ink = "white" if norm else "black"
    ax.text(x, y, text, color=ink, ha="center", va="center", fontsize=8)
