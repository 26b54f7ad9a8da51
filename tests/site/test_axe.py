"""What axe, which checks pages for accessibility, finds: nothing."""

import pytest
from axe_playwright_python.base import AXE_SCRIPT

from tools.settings import contents

# Contrast hangs on colours, opacity and size alone. A chapter has thousands of
# words in some sixty combinations; one of each that is not known is marked.
MARK_SAMPLES = """known => {
    const kinds = new Set(known);
    function mark(part, ground, opacity) {
        const style = getComputedStyle(part);
        if (style.backgroundColor !== "rgba(0, 0, 0, 0)")
            ground = style.backgroundColor;
        opacity *= style.opacity;
        const kind = [style.color, ground, opacity,
            style.fontSize, style.fontWeight].join();
        const is_text = node =>
            node.nodeType === Node.TEXT_NODE && node.data.trim();
        const is_new = !kinds.has(kind) && [...part.childNodes].some(is_text);
        part.toggleAttribute("data-sample", is_new);
        if (is_new) kinds.add(kind);
        for (const child of part.children) mark(child, ground, opacity);
    }
    const html = getComputedStyle(document.documentElement);
    mark(document.body, html.backgroundColor, 1);
    return [...kinds];
}"""
RUN = """async options => {
    const rule = { id: "color-contrast", selector: "[data-sample]" };
    axe.configure({ rules: [rule] });
    const found = await axe.run(options);
    return found.violations.map(({ help, nodes }) =>
        `${help}: ${nodes.map(node => node.html).join(" ")}`);
}"""


def violations(page, **options):
    """Return what axe finds, best practices included."""
    # Without preload, which asks for style sheets in the wrong folder.
    options = {"resultTypes": ["violations"], "preload": False, **options}
    return page.evaluate(RUN, options)


@pytest.fixture(scope="session")
def known():
    """Return the combinations of colours and size that axe has approved."""
    return []


@pytest.mark.parametrize("name", [*contents(), "search"])
def test_axe_finds_nothing(look, name, known):
    # Calm, for a colour that is changing is neither the old nor the new one.
    calm = {"unfolded": True, "reduced_motion": "reduce"}
    look(name, **calm).evaluate(AXE_SCRIPT)
    for scheme, options in (
        ("light", {}),
        ("dark", {"runOnly": ["color-contrast"]}),
    ):
        page = look(name, color_scheme=scheme, **calm)
        page.locator(f"html[data-theme={scheme}]").wait_for()
        kinds = page.evaluate(MARK_SAMPLES, known)
        assert len(kinds) > 5
        if not options or len(kinds) > len(known):
            assert violations(page, **options) == [], scheme
            known[:] = kinds
