"""The model in the page: in Chromium it gives what it gives in PyTorch."""

import random
from inspect import signature

import numpy as np
import pytest
from playwright.sync_api import expect

from cellbycell.figures.hero import TEMPERATURE, written
from cellbycell.figures.names_model import model_script
from cellbycell.figures.names_pictures import show_look, show_write
from cellbycell.names import LETTERS, decode_names, read_names, split_names
from tests.site.moving import Figure
from tests.site.shown_names import (
    COLUMNS,
    HEADS,
    LOOK,
    NAMES,
    ids_of,
    look,
    names,
    read,
)
from tools.chromium import wait_for_layout
from tools.settings import HTML, contents

pytestmark = pytest.mark.xdist_group("frameworks")

STATES = {
    "whole": {},
    "a head off": {"off": [(1, 3)]},
    "four heads off": {"off": [(0, 1), (0, 2), (1, 0), (1, 3)]},
    "no positions": {"rotary": False},
    "three letters in sight": {"sees": 3},
}
READ = """([prefixes, {off = [], rotary = true, sees = 99}]) => {
    const silent = (layer, head) =>
        off.some(([one, other]) => one === layer && other === head);
    return prefixes.map(ids => {
        const cache = [];
        const steps = ids.map(id =>
            window.namesModel.step(id, cache, {off: silent, rotary, sees}));
        return [steps.map(({logits}) => [...logits]),
            steps.map(({looks}) => looks)];
    });
}"""


@pytest.fixture(scope="module")
def prefixes():
    """Return ids: beginnings of 150 held-out names, and 50 at random."""
    draw = random.Random(2)
    held = decode_names(split_names(read_names())[1])
    known = [
        name[: draw.randint(0, len(name))] for name in draw.sample(held, 150)
    ]
    mixed = [
        "".join(draw.choices(LETTERS[1:], k=draw.randint(0, 20)))
        for _ in range(50)
    ]
    return [ids_of(text) for text in known + mixed]


@pytest.mark.parametrize("state", STATES)
def test_logits_and_weights_are_those_of_pytorch(empty_page, prefixes, state):
    empty_page.add_script_tag(content=model_script())
    found = empty_page.evaluate(READ, [prefixes, STATES[state]])
    sizes = []
    for ids, (logits, steps) in zip(prefixes, found, strict=True):
        wanted, looks = read(ids, **STATES[state])
        np.testing.assert_allclose(logits, wanted, atol=2e-5)
        for t, step in enumerate(steps):
            np.testing.assert_allclose(
                step, looks[:, :, t, : t + 1], atol=2e-5
            )
        sizes.append(len(ids))
    assert len(sizes) == 200 and sum(sizes) > 1200


@pytest.mark.parametrize(
    ("show", "name", "shown", "states"),
    [(show_look, "look", look, LOOK), (show_write, "names", names, NAMES)],
)
def test_each_state_is_that_of_pytorch(empty_page, show, name, shown, states):
    empty_page.set_content(show().data)
    figure = Figure(empty_page, name)
    controls = list(signature(shown).parameters)
    for state in states:
        for control, value in zip(controls, state, strict=True):
            figure.put(control, value)
        figure.assert_shows(*shown(*state))


def test_a_shorter_name_and_a_bad_one(empty_page):
    empty_page.set_content(show_look().data)
    figure = Figure(empty_page, "look")
    rest = dict(layer0=HEADS, layer1=HEADS, rotary=[0], sees=COLUMNS)
    box = figure.root.locator("input[name=name]")
    for name, query in [("Kirgistan", 9), ("kir", 3), ("", 0)]:
        figure.put("name", name)  # the letter typed last is looked at
        expect(box).to_have_attribute("aria-invalid", "false")
        if name:
            figure.assert_shows(*look(name.lower(), query, **rest))
            figure.put("name", "k3")
            expect(figure.said).to_contain_text("“3” is no letter")
            expect(figure.said).to_contain_text("still shows the last name")
            expect(box).to_have_attribute("aria-invalid", "true")
            assert figure.parts() == look(name.lower(), query, **rest)[1]
    expect(figure.said).to_contain_text("After the beginning, the model")


def test_a_beginning_that_no_model_reads_is_explained(empty_page):
    empty_page.set_content(show_write().data)
    figure = Figure(empty_page, "names")
    figure.put("name", "ß")
    expect(figure.said).to_contain_text("“ß” is no letter of this model")
    assert figure.parts() == names("san", 1, 30, 1, 0, 1)[1]
    figure.put("name", "Ñ")  # as the names were read: without accents
    figure.assert_shows(*names("n", 1, 30, 1, 0, 1))


# The landing page


def hero_says(typed, draw=1):
    """Return the name that the page writes, its probabilities and looks."""
    name = written(typed, draw)
    logits, looks = read(ids_of(name))
    probs = (logits / TEMPERATURE).softmax(-1)
    return name, probs.numpy(), looks.flatten(0, 1).numpy()


def shares(box, of):
    """Return what the parts of the picture show, as numbers."""
    return box.locator(of).evaluate_all(
        "all => all.map(x => Number(x.style.getPropertyValue('--share')))"
    )


@pytest.mark.parametrize("how", ["visit", "visit_file"])
def test_the_landing_page_writes_names(request, how):
    calm = {"reduced_motion": "reduce"}
    page = request.getfixturevalue(how)(contents()[0], width=320, **calm)
    box = page.locator("#hero")
    letters, heard = box.locator(".hero-letters b"), box.locator(".hero-heard")
    field = box.locator("[name=beginning]")
    for given, typed in [("fin", "fin"), ("Österreich", "osterreich")]:
        field.fill(given)
        name, probs, looks = hero_says(typed)
        expect(heard).to_have_text(f"It has written “{name}”.")
        shown = "".join(letters.all_text_contents()).replace("␣", " ")
        assert shown == f".{name}"
        for at in (len(name), 2):  # the reader goes back
            box.locator("[name=letter]").fill(str(at))
            bars = shares(box, ".hero-bars li")
            np.testing.assert_allclose(bars, probs[at], atol=1e-4)
            cells = np.reshape(shares(box, ".hero-heads i"), (8, 21))
            np.testing.assert_allclose(
                cells[:, : at + 1], looks[:, at, : at + 1], atol=1e-4
            )
            assert not cells[:, at + 1 :].any()
    box.get_by_role("button", name="another").click()
    expect(heard).to_have_text(f"It has written “{written(typed, 2)}”.")
    field.fill("switzerland")  # has more than ten letters
    expect(field).to_have_value("switzerland")
    field.fill("m3")
    expect(heard).to_contain_text("“3” is no letter of this model")
    expect(field).to_have_attribute("aria-invalid", "true")
    for width in (320, 390):
        page.set_viewport_size({"width": width, "height": 800})
        wait_for_layout(page)
        assert box.evaluate("box => box.scrollWidth <= box.clientWidth")


def test_letters_appear_one_by_one_and_the_heads_are_there(visit):
    box = visit(contents()[0]).locator("#hero")
    last = box.locator("[data-last]")
    places = {last.evaluate("b => [...b.parentNode.children].indexOf(b)")}
    for _ in range(20):
        box.page.wait_for_timeout(100)
        places.add(last.evaluate("b => [...b.parentNode.children].indexOf(b)"))
    assert len(places) > 3
    heads = box.locator(".hero-heads")
    expect(heads).to_be_hidden()
    box.get_by_role("button", name="heads").click()
    expect(heads).to_be_visible()


def test_the_landing_page_shows_a_name_without_scripts(visit_without_scripts):
    box = visit_without_scripts(contents()[0]).locator("#hero")
    name, probs, _ = hero_says("swi")
    shown = "".join(box.locator(".hero-letters b").all_text_contents())
    assert shown.replace("␣", " ") == f".{name}"
    bars = shares(box, ".hero-bars li")
    np.testing.assert_allclose(bars, probs[3], atol=1e-3)
    expect(box.locator("form")).to_be_hidden()


def test_the_model_is_loaded_when_it_is_needed(visit):
    page = visit(contents()[0], width=1280)
    loaded = "performance.getEntriesByType('resource').map(one => one.name)"
    page.wait_for_timeout(500)
    assert "names_model.js" not in str(page.evaluate(loaded))
    page.locator("#hero [name=beginning]").focus()
    page.wait_for_function("window.namesModel")


def test_the_site_has_the_model_in_one_file():
    text = (HTML / "_static" / "names_model.js").read_text("utf-8")
    assert text == model_script() + "\n"
    for name in contents():
        page = (HTML / f"{name}.html").read_text("utf-8")
        assert "window.namesModel = (" not in page
