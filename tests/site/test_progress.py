"""What a reader has read and done: remembered, told, and forgotten."""

from tools.chromium import load
from tools.settings import chapters, contents

HOME = contents()[0]
CHAPTER = chapters()[1]
FILE = CHAPTER.partition("/")[2]


def to(page, section):
    page.evaluate(
        "id => document.getElementById(id).scrollIntoView({block: 'center', "
        "behavior: 'instant'})",
        section,
    )


def test_a_chapter_is_ticked_and_the_book_continues(visit, site):
    page = visit(CHAPTER)
    tick = page.locator(f".bd-links a[href*='{FILE}'], .bd-links .current a")
    tick = tick.locator("[role=img][aria-label=read]")
    to(page, "the-gradient")
    page.wait_for_function("localStorage.getItem('place')")
    assert not tick.count()
    to(page, "summary")
    tick.wait_for(state="attached")
    load(page, f"{site}{HOME}.html")
    assert tick.count() == 1
    first = page.locator(".door a").first
    assert first.text_content().startswith("Continue with 2 From words")
    assert f"{FILE}.html#" in first.get_attribute("href")
    colours = page.locator(".door a").evaluate_all(
        "all => all.map(link => getComputedStyle(link).backgroundColor)"
    )
    assert colours[0] != colours[1]
    line = page.locator(".progress-line")
    assert "About 2 hours left of “A layer”" in line.text_content()
    line.get_by_role("button").click()
    line.wait_for(state="detached")
    assert not tick.count()
    assert page.locator(".door a", has_text="Continue").count() == 0
    assert page.evaluate("localStorage.getItem('progress')") is None


def test_an_exercise_is_done_and_counted(visit, site):
    page = visit(CHAPTER)
    facts = page.locator(".facts")
    assert "done" not in facts.text_content()
    for n in (1, 3):
        page.get_by_role("checkbox", name=f"done Exercise {n}").check()
    assert facts.text_content().endswith("4 exercises · 2 done")
    load(page, f"{site}{CHAPTER}.html")
    assert page.locator(".done input:checked").count() == 2
    page.get_by_role("checkbox", name="done Exercise 3").uncheck()
    assert facts.text_content().endswith("4 exercises · 1 done")


def test_a_window_that_stores_nothing_is_served(visit, tab):
    tab.page.add_init_script(
        "if (location.hash === '#private') for (const name of "
        "['getItem', 'setItem']) Storage.prototype[name] = function (key) { "
        "if (/progress|place|reading/.test(key)) throw Error('forbidden'); "
        "return null; }"
    )
    page = visit(CHAPTER, "#private")
    to(page, "summary")
    page.locator(".tick").wait_for(state="attached")
    page.get_by_role("button", name="Everything").click()
    page.get_by_role("checkbox", name="done Exercise 1").check()
    assert page.locator(".facts").text_content().endswith("1 done")


def test_without_scripts_nothing_of_it_shows(visit_without_scripts):
    page = visit_without_scripts(CHAPTER)
    assert page.locator(".done, .tick").count() == 0
    page = visit_without_scripts(HOME)
    assert page.locator(".progress-line").count() == 0
    assert page.locator("#roads").is_hidden()
