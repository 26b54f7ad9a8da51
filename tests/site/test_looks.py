"""The site for everyone: colours, keyboard, large print, calm, and paper."""

import io

import pytest
from PIL import Image
from pypdf import PdfReader

from tools.chromium import unfold
from tools.commands.pdf import open_book, print_book
from tools.notebooks import Notebook, tags
from tools.settings import ROOT, chapters, contents

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

LISTED = contents()
PAGES = [f"{name}.html" for name in LISTED]
CHAPTERS = chapters()
HOME, SEARCH = PAGES[0], "search.html"
CHAPTER = f"{CHAPTERS[0]}.html"
BOTH_TABS = ".sd-tab-content { display: block !important }"
# Contrast hangs on colours and size alone. A chapter has thousands of words
# in some fifty combinations; one of each is marked.
MARK_SAMPLES = """() => {
    const seen = new Set();
    for (const part of document.querySelectorAll("body *")) {
        const texts = [...part.childNodes].filter(
            node => node.nodeType === Node.TEXT_NODE && node.data.trim());
        let ground = part, colour;
        do colour = getComputedStyle(ground).backgroundColor;
        while (colour === "rgba(0, 0, 0, 0)" &&
            (ground = ground.parentElement));
        const style = getComputedStyle(part);
        const kind = [
            style.color, colour, style.fontSize, style.fontWeight].join();
        part.toggleAttribute("data-sample", texts.length && !seen.has(kind));
        if (texts.length) seen.add(kind);
    }
}"""
# The radio buttons of tabs are invisible; their labels show the focus.
FOCUS = """() => {
    const part = document.activeElement;
    const seen = part.matches(".sd-tab-set > input")
        ? part.nextElementSibling : part;
    const style = getComputedStyle(seen);
    const box = seen.getBoundingClientRect();
    return [part.outerHTML.slice(0, 120), part === document.body,
        style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2
        && box.width > 0 && box.height > 0];
}"""


def violations(page, **options):
    """Return what axe finds, best practices included."""
    from axe_playwright_python.sync_playwright import Axe

    # Without preload, which asks for style sheets in the wrong folder.
    options = {"resultTypes": ["violations"], "preload": False, **options}
    context = options.pop("context", None)
    found = Axe().run(page, context=context, options=options).response
    return [
        f"{fault['help']}: {[node['html'] for node in fault['nodes']]}"
        for fault in found["violations"]
    ]


@pytest.mark.parametrize("address", [*PAGES, SEARCH])
def test_axe_finds_nothing(visit, address):
    # Calm, for a colour that is changing is neither the old nor the new one.
    page = visit(address, reduced_motion="reduce")
    page.add_style_tag(content=BOTH_TABS)
    unfold(page)
    rules = {"color-contrast": {"enabled": False}}
    assert violations(page, rules=rules) == []
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.locator(f"html[data-theme={scheme}]").wait_for()
        page.evaluate(MARK_SAMPLES)
        assert page.locator("[data-sample]").count() > 5
        found = violations(
            page, context=["[data-sample]"], runOnly=["color-contrast"]
        )
        assert found == [], scheme


# Keyboard


def test_skip_link_leads_to_the_text(visit):
    page = visit(CHAPTER)
    page.keyboard.press("Tab")
    assert page.locator(":focus").inner_text() == "Skip to main content"
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.locator("main :focus").count() == 1


@pytest.mark.parametrize("address", [HOME, CHAPTER])
def test_focus_is_always_seen(visit, address):
    page = visit(address)
    stops = []
    while True:
        page.keyboard.press("Tab")
        stop, is_end, is_seen = page.evaluate(FOCUS)
        if is_end:
            break
        assert is_seen, f"the focus does not show on {stop}"
        stops.append(stop)
    assert len(stops) > 20


def test_search_opens_and_closes_by_keyboard(visit):
    page = visit(CHAPTER)
    field = page.locator("input[type=search]")
    page.keyboard.press("Control+k")
    field.wait_for(state="visible")
    assert field.evaluate("e => e === document.activeElement")
    page.keyboard.press("Escape")
    field.wait_for(state="hidden")


def test_folds_open_and_close_by_keyboard(visit):
    page = visit(CHAPTER)
    for fold in page.locator("article details").all():
        fold.locator("summary").focus()
        for is_open in (True, False):
            page.keyboard.press("Enter")
            assert fold.evaluate("fold => fold.open") == is_open


SCROLLERS = """all => all.filter(e => e.checkVisibility()).map(e => [
    e.scrollWidth > e.clientWidth || e.scrollHeight > e.clientHeight,
    e.tabIndex === 0]).filter(([scrolls, stop]) => scrolls !== stop).length"""


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_what_scrolls_is_a_stop_of_the_tab_key(visit, chapter):
    page = visit(f"{chapter}.html")
    boxes = page.locator("pre, .output, .pst-scrollable-table-container")
    unfold(page)
    counts = []
    for width, framework in [(1280, "TensorFlow"), (360, "PyTorch")]:
        page.set_viewport_size({"width": width, "height": 800})
        page.locator(f".sd-tab-label:text-is('{framework}')").first.click()
        page.wait_for_timeout(200)
        assert boxes.evaluate_all(SCROLLERS) == 0
        counts.append(page.locator("article [tabindex='0']").count())
    assert counts[0] < counts[1] > 10


def test_what_scrolls_is_a_stop_once_the_reader_is_near(visit):
    page = visit(CHAPTER, width=360)
    lines = page.locator("#exercises .highlight pre:visible").first
    assert lines.get_attribute("tabindex") is None  # not measured yet
    lines.scroll_into_view_if_needed()
    page.locator("#exercises pre[tabindex='0']").first.wait_for()


def test_a_link_into_a_chapter_leads_to_its_heading(visit):
    page = visit(f"{CHAPTER}#exercises")
    page.wait_for_timeout(500)
    top = page.locator("#exercises > h2").bounding_box()["y"]
    assert 0 <= top <= 200


def test_code_is_copied_by_keyboard(visit):
    allowed = ["clipboard-read", "clipboard-write"]
    page = visit(CHAPTER, permissions=allowed, reduced_motion="reduce")
    button = page.locator(".cell_input .copybtn").first
    button.focus()
    assert button.evaluate("b => getComputedStyle(b).opacity") == "1"
    page.keyboard.press("Enter")
    first = Notebook.read(ROOT / f"{CHAPTERS[0]}.ipynb").code[0]
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.strip() == first.source


# What readers ask of their system


@pytest.mark.parametrize("address", [*PAGES, SEARCH])
def test_letters_of_twice_the_size_fit(visit, address):
    page = visit(address)
    unfold(page)
    page.evaluate("document.documentElement.style.fontSize = '200%'")
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert wide <= 1280, f"the page is {wide} wide"


def test_nothing_moves_for_those_who_ask_for_calm(visit):
    page = visit(CHAPTER, reduced_motion="reduce")
    unfold(page)
    moving = """all => all.map(e => [e.outerHTML.slice(0, 80),
        getComputedStyle(e)]).filter(([name, style]) =>
        /[1-9]/.test(style.transitionDuration + style.animationDuration) ||
        style.scrollBehavior === 'smooth').map(([name]) => name)"""
    assert page.locator("*").evaluate_all(moving) == []


def test_the_choice_shows_in_the_colours_of_the_system(visit):
    page = visit(CHAPTER, forced_colors="active")
    lines = page.locator(".sd-tab-set").first.locator(".sd-tab-label")
    assert lines.evaluate_all(
        "all => all.map(e => getComputedStyle(e).textDecorationLine)"
    ) == ["underline", "none"]


# A link to a page, shown elsewhere


@pytest.mark.parametrize("address", PAGES)
def test_a_link_to_a_page_shows_a_card(visit, site, repository, address):
    page = visit(address)
    said = dict(
        page.locator("meta[property^='og:']").evaluate_all(
            "all => all.map(e => [e.getAttribute('property'), e.content])"
        )
    )
    assert page.title().startswith(said["og:title"])
    assert len(said["og:description"]) > 40
    if not repository:  # nobody knows where the site will be
        assert not {"og:url", "og:image"} & said.keys()
        return
    owner, name = repository.split("/")[-2:]
    home = f"https://{owner.lower()}.github.io/{name}/"
    assert said["og:url"] == home + address
    assert len(said["og:image:alt"]) >= 20
    card = page.request.get(said["og:image"].replace(home, site))
    assert Image.open(io.BytesIO(card.body())).size == (1200, 630)


# Paper


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_paper_is_light_and_shows_all(visit, chapter):
    page = visit(f"{chapter}.html", color_scheme="dark")
    page.set_viewport_size({"width": 660, "height": 1000})  # A4, 18 mm off
    page.emulate_media(media="print")
    colours = page.evaluate("""() => {
        const style = getComputedStyle(document.body);
        return [style.backgroundColor, style.color];
    }""")
    assert colours == ["rgb(255, 255, 255)", "rgb(29, 36, 51)"]
    around = ".bd-sidebar, .bd-header-article, .bd-footer, .prev-next-footer"
    for part in page.locator(f"{around}, article button").all():
        assert not part.is_visible()
    inside = page.locator("article details > :last-child")
    hidden = "all => all.filter(e => !e.checkVisibility()).length"
    assert inside.count() > 0 and inside.evaluate_all(hidden) == 0
    cut = "all => all.filter(e => e.scrollWidth > e.clientWidth + 1).length"
    assert page.locator("article :is(pre, img)").evaluate_all(cut) == 0
    assert page.locator("article h1").is_visible()


@pytest.fixture(scope="session")
def whole_book(site, browser):
    """Return the one page that `make pdf` prints."""
    page = open_book(browser)
    yield page
    page.context.close()


@pytest.fixture(scope="session")
def printed(whole_book, tmp_path_factory):
    """Return the book as `make pdf` prints it, and its parts' first pages."""
    path = tmp_path_factory.mktemp("pdf") / "book.pdf"
    print_book(whole_book, path)
    book = PdfReader(path)
    parts = [entry for entry in book.outline if not isinstance(entry, list)]
    return book, {
        part.title: book.get_destination_page_number(part) for part in parts
    }


def squeezed(pages):
    return "".join("".join(page.extract_text().split()) for page in pages)


def title(name):
    """Return the heading of a page, with the apostrophes that Sphinx sets."""
    path = ROOT / f"{name}.md"
    if path.exists():
        source = path.read_text("utf-8")
    else:
        source = Notebook.read(path.with_suffix(".ipynb")).cells[0].source
    heading = source.partition("\n")[0].removeprefix("# ")
    return heading.replace("'", "’")


def test_pdf_lists_every_page_and_its_number(printed):
    book, starts = printed
    assert list(starts) == ["Contents", *map(title, LISTED)]
    first, second, *_ = starts.values()
    contents = squeezed(book.pages[first:second])
    for name, start in list(starts.items())[1:]:
        assert f"{''.join(name.split())}{start + 1}" in contents


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_pdf_shows_the_code_of_both_frameworks(printed, chapter):
    book, starts = printed
    wanted = {"PyTorch", "TensorFlow"}
    code = Notebook.read(ROOT / f"{chapter}.ipynb").code
    for framework in ("pytorch", "tensorflow"):
        cell = next(cell for cell in code if framework in tags(cell))
        wanted.add("".join(max(cell.source.split("\n"), key=len).split()))
    for page in book.pages[starts[title(chapter)] :]:
        text = squeezed([page])
        wanted = {words for words in wanted if words not in text}
        if not wanted:
            break
    assert not wanted


def test_no_picture_in_the_pdf_is_stretched(whole_book):
    whole_book.set_viewport_size({"width": 660, "height": 1000})
    whole_book.emulate_media(media="print")
    shapes = """all => all.map(e => e.width / e.height
        * e.naturalHeight / e.naturalWidth)"""
    found = whole_book.locator(".cell_output img").evaluate_all(shapes)
    assert len(found) > 10
    assert found == pytest.approx([1] * len(found), abs=0.02)


def test_links_in_the_pdf_stay_in_it_or_leave_for_the_web(printed):
    book, _ = printed
    inside = 0
    for page in book.pages:
        for link in page.get("/Annots", []):
            action = link.get_object()
            if "/Dest" in action:
                assert action["/Dest"] in book.named_destinations
                inside += 1
            else:
                assert action["/A"]["/URI"].startswith("https://")
    assert inside > 100
