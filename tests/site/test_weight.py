"""How much a page loads, and that its style sheet leaves out no rule."""

import gzip

import pytest

from tools.chromium import load_pictures
from tools.settings import HTML, contents

LIMIT = 600_000  # bytes, compressed


def loaded(page):
    """Return the addresses of all that a page has loaded, to its end."""
    load_pictures(page)
    names = page.evaluate(
        "performance.getEntriesByType('resource').map(entry => entry.name)"
    )
    return {name.partition("?")[0] for name in names} - {""}


def compressed(path):
    data = path.read_bytes()
    return len(data if path.suffix == ".png" else gzip.compress(data))


@pytest.mark.parametrize("name", contents())
def test_a_page_with_all_its_pictures_is_light(look, site, name):
    files = [
        HTML / address.removeprefix(site)
        for address in loaded(look(name))
        if address.startswith(site)
    ]
    assert files, "nothing was loaded: the measurement is broken"
    assert not any(path.name == "searchindex.js" for path in files)
    size = compressed(HTML / f"{name}.html") + sum(map(compressed, files))
    assert size < LIMIT, f"{size} bytes: {sorted(map(str, files))}"
    assert len(files) < 60


# The style sheet

SELECTORS = """
const selectors = sheet => Array.from(sheet.cssRules).flatMap(
    rule => rule.selectorText ? [rule.selectorText]
        : rule.cssRules && !rule.name ? selectors(rule) : []);
const parts = sheet => selectors(sheet)
    .flatMap(text => text.split(/,(?![^(]*[)])/))
    .map(text => text.trim());
"""
LEFT_OUT = f"""texts => {{
    {SELECTORS}
    const kept = new Set(Array.from(document.styleSheets).flatMap(parts));
    const all = texts.flatMap(text => {{
        const sheet = new CSSStyleSheet();
        sheet.replaceSync(text);
        return parts(sheet);
    }});
    return Array.from(new Set(all).difference(kept));
}}"""
# Thousands are asked for; most name what the page has not, which is seen at
# once. Names after a colon, a bracket or a backslash may mean something else.
IN_USE = r"""selectors => {
    const has = new Set([...document.querySelectorAll("[class], [id]")]
        .flatMap(part => [...part.classList, part.id]));
    const names = one =>
        one.replace(/[:[\\].*/s, "").match(/(?<=[.#])[\w-]+/g) ?? [];
    return selectors.filter(one => {
        if (!names(one).every(name => has.has(name))) return false;
        try {
            return document.querySelector(
                one.replace(/::?(before|after)$/, ""));
        } catch {}
    });
}"""


@pytest.fixture(scope="session")
def left_out(tab):
    """Return the selectors that the site's one style sheet leaves out."""
    sheets = [
        path.read_text("utf-8")
        for path in HTML.glob("_static/**/*.css")
        if path.name != "site.css"
    ]
    return tab.look(contents()[0]).evaluate(LEFT_OUT, sheets)


@pytest.mark.parametrize("name", [*contents(), "search"])
def test_the_style_sheet_keeps_every_rule_that_a_page_uses(
    left_out, look, name
):
    assert len(left_out) > 100
    assert look(name).evaluate(IN_USE, left_out) == []
