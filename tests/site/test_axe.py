"""What axe, which checks pages for accessibility, finds: nothing."""

import pytest
from axe_playwright_python.base import AXE_SCRIPT

from tools.settings import contents

# Contrast hangs on colours, opacity and size alone. A chapter has thousands of
# words in some sixty combinations; one of each that is not known is marked.
MARK_SAMPLES = """known => {
    const kinds = new Set(known);
    for (const part of document.querySelectorAll("body *")) {
        part.removeAttribute("data-sample");
        if (![...part.childNodes].some(
            node => node.nodeType === Node.TEXT_NODE && node.data.trim()))
            continue;
        let ground = part, colour;
        do colour = getComputedStyle(ground).backgroundColor;
        while (colour === "rgba(0, 0, 0, 0)" &&
            (ground = ground.parentElement));
        let opacity = 1;
        for (let at = part; at; at = at.parentElement)
            opacity *= getComputedStyle(at).opacity;
        const style = getComputedStyle(part);
        const kind = [style.color, colour, opacity,
            style.fontSize, style.fontWeight].join();
        part.toggleAttribute("data-sample", !kinds.has(kind));
        kinds.add(kind);
    }
    return [...kinds];
}"""
RUN = """async ([context, options]) => {
    const found = await axe.run(context ?? document, options);
    return found.violations.map(({ help, nodes }) =>
        `${help}: ${nodes.map(node => node.html).join(" ")}`);
}"""


def violations(page, context=None, **options):
    """Return what axe finds, best practices included."""
    # Without preload, which asks for style sheets in the wrong folder.
    options = {"resultTypes": ["violations"], "preload": False, **options}
    return page.evaluate(RUN, [context, options])


@pytest.fixture(scope="session")
def known():
    """Return the combinations of colours and size that axe has approved."""
    return []


@pytest.mark.parametrize("name", [*contents(), "search"])
def test_axe_finds_nothing(look, name, known):
    # Calm, for a colour that is changing is neither the old nor the new one.
    calm = {"unfolded": True, "reduced_motion": "reduce"}
    page = look(name, **calm)
    page.evaluate(AXE_SCRIPT)
    rules = {"color-contrast": {"enabled": False}}
    assert violations(page, rules=rules) == []
    for scheme in ("light", "dark"):
        page = look(name, color_scheme=scheme, **calm)
        page.locator(f"html[data-theme={scheme}]").wait_for()
        kinds = page.evaluate(MARK_SAMPLES, known)
        assert len(kinds) > 5
        if len(kinds) > len(known):
            sample = ["[data-sample]"]
            found = violations(page, sample, runOnly=["color-contrast"])
            assert found == [], scheme
            known[:] = kinds
