"""What a person sees in JupyterLab and Notebook while ranks run, when they fail, and afterwards.

python -m pytest -m browser tests/browser
"""

from __future__ import annotations

import json
import re
import urllib.request

import pytest
from playwright.sync_api import expect

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

LIMIT = 60_000  # milliseconds
EVIL = "<img src=x onerror='window.harmed = 1'></script><script>window.harmed = 1</script>"
CELLS = {
    "load": "%load_ext nbshm\nimport json, os, time\nfrom tqdm.auto import tqdm",
    "warm": "%%parallel nprocs=1\nNone",
    "four": """%%parallel nprocs=4
for step in tqdm(range(8), desc="fits"):
    print(f"step {step} of rank {rank}")
    time.sleep(0.4)
    while step == 7 and not os.path.exists("go"):
        time.sleep(0.01)
rank""",
    "evil": f"%%parallel nprocs=2\nprint({EVIL!r}, flush=True)\ntime.sleep(1)",
    "failing": "%%parallel nprocs=4\nlimits = [1, 2, 3]\nlimits[rank]",
    "caught": "%tb",
    "endless": "%%parallel nprocs=2\nwhile True:\n    time.sleep(0.01)",
    "short": "%%parallel nprocs=2\ntime.sleep(0.5)",
    "widgets": "from ipywidgets import widget\nlen(widget._instances)",
    "many": """%%parallel nprocs=64
for item in nbshm.claim(range(10_000)):
    print(f"item {item}", "of many " * 20)
    time.sleep(0.3)""",
}


def place(name: str) -> int:
    return list(CELLS).index(name)


@pytest.fixture(scope="module")
def page(desk):
    desk.write("all.ipynb", list(CELLS.values()))
    opened = desk.open("all.ipynb")
    opened.run(place("load"))
    opened.run(place("warm"))
    yield opened
    assert opened.errors == []
    opened.close()


def test_four_ranks_have_four_rows_that_change_while_they_run(page, desk, pictures):
    page.begin(place("four"))
    output = page.output(place("four"))
    rows = output.locator(".nbshm-live tr:has(td)")
    expect(rows).to_have_count(4, timeout=LIMIT)
    expect(rows.nth(2)).to_contain_text("running", timeout=LIMIT)
    expect(rows.nth(2)).to_contain_text(re.compile(r"fits [1-9]/8"), timeout=LIMIT)
    expect(output.locator(".tail:visible")).to_contain_text("step 2 of rank 3", timeout=LIMIT)
    output.get_by_label("1", exact=True).check()
    expect(output.locator(".tail:visible")).to_contain_text("step 3 of rank 1", timeout=LIMIT)
    expect(output.locator(".tail:visible")).not_to_contain_text("of rank 0")
    page.cell(place("four")).screenshot(path=pictures / "live.png")
    (desk.directory / "go").touch()
    page.wait(place("four"))
    expect(output).to_contain_text("step 7 of rank 3")
    expect(output.locator(".nbshm-live")).to_have_count(0)


def test_what_a_rank_prints_is_text_and_never_runs(page):
    page.begin(place("evil"))
    output = page.output(place("evil"))
    expect(output.locator(".tail:visible")).to_contain_text(EVIL, timeout=LIMIT)
    page.wait(place("evil"))
    expect(output.locator(".nbshm")).to_contain_text(EVIL, timeout=LIMIT)
    assert page.page.evaluate("window.harmed") is None


def test_a_failure_names_cell_and_line_and_marks_the_expression(page, pictures):
    page.run(place("failing"))
    failure = page.output(place("failing")).locator(".nbshm-failure")
    expect(failure.locator(".head")).to_have_text(re.compile(r"rank 3 failed at In \[\d+\] line 3"))
    expect(failure.locator("mark")).to_have_text("limits[rank]")
    failure.get_by_text("values").click()
    expect(failure.locator("tr", has_text="limits")).to_contain_text("[1, 2, 3]")
    page.cell(place("failing")).screenshot(path=pictures / "failure.png")
    expect(page.output(place("failing"))).to_contain_text("%tb shows it as text")
    page.run(place("caught"))
    expect(page.output(place("caught"))).to_contain_text("IndexError: list index out of range")


def test_stop_stops_a_cell_that_runs(page):
    page.begin(place("endless"))
    output = page.output(place("endless"))
    expect(output.locator(".nbshm-live")).to_contain_text("2 of 2 running", timeout=LIMIT)
    output.get_by_role("button", name="Stop").click()
    page.wait(place("endless"))
    expect(output).to_contain_text("the run was stopped")


def test_ten_runs_leave_no_more_widgets_than_none(page):
    for _ in range(10):
        page.run(place("short"))
    page.run(place("widgets"))
    expect(page.output(place("widgets"))).to_have_text(re.compile(r"^(\[\d+\]:)?0$"))
    expect(page.page.locator(".jupyter-widgets")).to_have_count(0)


def test_sixty_four_ranks_fit_without_a_horizontal_scroll(page, pictures):
    page.begin(place("many"))
    output = page.output(place("many"))
    expect(output.locator(".nbshm-live tr:has(td)")).to_have_count(64, timeout=LIMIT)
    expect(output.locator(".nbshm-live tr:has(td.running)")).to_have_count(64, timeout=LIMIT)
    expect(output.locator(".nbshm-live tr:has(td)").last).to_contain_text("of 10000", timeout=LIMIT)
    page.cell(place("many")).screenshot(path=pictures / "many.png")
    wide = "element => element.scrollWidth > element.clientWidth"
    boxes = output.locator("xpath=descendant-or-self::*[contains(@class, 'jp-OutputArea') or self::table]")
    assert not any(box.evaluate(wide) for box in boxes.all())
    output.get_by_role("button", name="Stop").click()
    page.wait(place("many"))


def test_the_saved_story_is_there_when_the_notebook_is_opened_again(page, desk):
    page.save()
    saved = json.loads((desk.directory / "all.ipynb").read_text())
    assert "widgets" not in saved["metadata"]
    assert "widget-view" not in json.dumps(saved)
    for session in json.load(urllib.request.urlopen(f"{desk.address}/api/sessions")):  # noqa: S310  # our own server
        end = urllib.request.Request(f"{desk.address}/api/sessions/{session['id']}", method="DELETE")  # noqa: S310
        urllib.request.urlopen(end).close()  # noqa: S310
    again = desk.open("all.ipynb")
    expect(again.output(place("four"))).to_contain_text("step 7 of rank 3", timeout=LIMIT)
    expect(again.output(place("failing")).locator("mark")).to_have_text("limits[rank]")
    for words in ("model not found", "Error displaying widget"):
        expect(again.page.get_by_text(words)).to_have_count(0)
    assert again.errors == []
    again.close()
