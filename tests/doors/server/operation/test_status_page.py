# SPDX-License-Identifier: Apache-2.0
"""The status page at `/`, looked at and used in a headless Chromium."""
import re

import pytest

from . import browser as browsers
from ..servers import launch

pytestmark = pytest.mark.skipif(not browsers.program(), reason="there is no Chromium")
KEY = "a secret"
TEXT = "document.body.innerText"


@pytest.fixture(scope="module")
def browser():
    with browsers.Browser() as started:
        yield started


@pytest.fixture(scope="module")
def server(small_repository, tmp_path_factory):
    started = launch("anymps", small_repository, tmp_path_factory.mktemp("page") / "log", [])
    yield started
    started.stop()


def choose(page, model):
    page.run(f"""(() => {{ const select = document.getElementById('try-model');
                 select.value = [...select.options].find(o => o.value.startsWith('{model}\\n')).value;
                 select.dispatchEvent(new Event('change')); }})()""")
    page.wait("!document.getElementById('run').disabled")


def run(page):
    page.run("document.getElementById('run').click()")
    page.wait("document.getElementById('answer').innerText !== ''")
    return page.run("document.getElementById('answer').innerText")


def test_shows_models_and_counts(browser, server):
    page = browser.open(f"http://{server.http}/")
    page.wait("document.querySelectorAll('.model').length > 0")
    text = page.run(TEXT)
    assert "mlp" in text and "version 1" in text and page.run("document.getElementById('ready').innerText") == "ready"
    choose(page, "mlp")
    for _ in range(3):
        assert "FP32" in run(page)
    page.wait(r"[...document.querySelectorAll('.model')].some(m => /mlp/.test(m.innerText) && /\n3\ninferences\n/.test(m.innerText))")
    assert re.search(r"[\d.,]+\s*ms median", page.run(TEXT))
    assert page.errors() == []


def test_typed_values_give_the_right_answer(browser, server):
    page = browser.open(f"http://{server.http}/")
    page.wait("document.getElementById('try-model').options.length > 0")
    choose(page, "add_sub")
    page.run("""document.querySelectorAll('.input').forEach((box, i) => {
        const mode = box.querySelector('select'), shape = box.querySelector('input');
        const count = shape.value.split(',').map(Number).reduce((a, b) => a * b, 1);
        mode.value = 'typed'; mode.dispatchEvent(new Event('change'));
        box.querySelector('textarea').value = Array.from({length: count}, (_, n) => i ? 1 : n + 1).join(' ');
    })""")
    answer = run(page)
    assert re.search(r"2, 3, 4, 5", answer) and re.search(r"0, 1, 2, 3", answer), answer
    assert "answered in" in page.run("document.getElementById('try-time').innerText")
    page.run("document.querySelector('.input textarea').value = '1 2'")
    assert "values are needed" in run(page)
    assert page.errors() == []


@pytest.mark.parametrize("width", [360, 1200])
def test_fits_every_screen(browser, server, width):
    page = browser.open(f"http://{server.http}/", width=width, dark=width == 360)
    page.wait("document.querySelectorAll('.model').length > 0")
    assert page.run("document.documentElement.scrollWidth") <= width
    back = page.run("getComputedStyle(document.body).backgroundColor")
    assert (max(map(int, re.findall(r"\d+", back)[:3])) < 64) == (width == 360)


def test_needs_nothing_from_elsewhere(server):
    status, page = server.get("/")
    assert status == 200
    assert not re.findall(rb"""(?:src|href)\s*=\s*["'](?!data:)[^"']+""", page)


def test_asks_for_the_key(browser, small_repository, tmp_path):
    server = launch("anymps", small_repository, tmp_path / "log", [f"--api-key={KEY}"])
    try:
        page = browser.open(f"http://{server.http}/")
        page.wait("!document.getElementById('key-form').hidden")
        assert page.run("document.querySelectorAll('.model').length") == 0
        page.run(f"document.getElementById('key').value = '{KEY}'; document.querySelector('#key-form button').click()")
        page.wait("document.querySelectorAll('.model').length > 0")
        assert page.run("document.getElementById('key-form').hidden")
        choose(page, "mlp")
        assert "FP32" in run(page)
    finally:
        server.stop()
