"""The field that leaves some entries of a long page."""

import pytest

SYMPTOMS, REFERENCE = "book/symptoms", "book/reference_pytorch"


@pytest.mark.parametrize(
    ("name", "label", "entries", "typed", "kept", "hidden"),
    [
        (
            SYMPTOMS,
            "What do you see?",
            "article > section > section",
            "NaN pad",
            "#the-loss-or-a-gradient-is-nan",
            "#sampled-text-is-wrong",
        ),
        (
            REFERENCE,
            "Find a name:",
            "article > section > section > dl.py",
            "logits filter",
            "dl:has(> [id='cellbycell.pytorch.filter_logits'])",
            "dl:has(> [id='cellbycell.pytorch.embed'])",
        ),
    ],
)
def test_the_field_leaves_what_has_all_words(
    visit, name, label, entries, typed, kept, hidden
):
    page = visit(name)
    count = page.locator(entries).count()
    box = page.get_by_label(label)
    box.focus()
    page.keyboard.type(typed)
    assert page.locator(kept).is_visible()
    assert page.locator(hidden).is_hidden()
    left = page.locator(f"{entries}:visible").count()
    said = page.locator(".filter [role=status]")
    assert said.text_content() == f"{left} of {count} entries left"
    assert 0 < left < count
    page.keyboard.press("Escape")
    assert page.locator(f"{entries}:visible").count() == count
    assert said.text_content() == ""


def test_the_list_of_symptoms_has_what_is_left(visit):
    page = visit(SYMPTOMS)
    page.get_by_label("What do you see?").fill("adapter")
    links = page.locator("article > section > ul a:visible")
    assert [link.get_attribute("href") for link in links.all()] == [
        "#parameters-are-missing-or-never-change",
        "#a-tuned-model-is-wrong",
    ]
    # A link to what is hidden shows it.
    page.evaluate("location.hash = 'the-loss-stays-high'")
    page.locator("#the-loss-stays-high").wait_for()


def test_without_scripts_there_is_no_field(visit_without_scripts):
    page = visit_without_scripts(SYMPTOMS)
    assert page.locator(".filter").count() == 0
    assert page.locator("#sampled-text-is-wrong").is_visible()


def test_many_arguments_are_folded(visit_without_scripts):
    page = visit_without_scripts("book/reference")
    entry = page.locator("[id='cellbycell.checks.check_model']")
    assert entry.bounding_box()["height"] < 60
    last = entry.locator(".sig-param", has_text="expected_failures")
    assert last.is_hidden()
    entry.locator("summary").click()
    assert last.is_visible()
