"""The page as people use it: by mouse, by keyboard, on a phone, with names that mean harm."""

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from robustq import GenerativeForestClassifier, NaiveBayesClassifier
from robustq.report import make_exploration

from .test_values import as_lists


def text(page, selector):
    return page.locator(selector).inner_text()


def robustness(page):
    """Return the number that the fold for experts shows, in full."""
    return float(page.locator("#experts").text_content().split(" = ")[1].split(";")[0])


def test_the_page_begins_with_a_verdict_that_counts_right(visit, pages, models, german):
    X, y = german
    page, model = visit(pages("naive_bayes")), models("naive_bayes")
    sizes, right = model.robustness(X[600:], "tv"), model.predict(X[600:]) == y[600:]
    kept = np.argsort(sizes, kind="stable")[100:]
    assert "Leave 300 of 400 to the model" in text(page, "#verdict")
    assert f"{100 * right[kept].mean():.0f} % of those are right" in text(page, "#verdict")
    assert f"{100 * right.mean():.0f} % right" in text(page, "#lead")
    assert f"{100 * np.sort(sizes)[99]:.2f} percentage points" in text(page, "#lead")
    by_probability = np.argsort(model.predict_proba(X[600:]).max(axis=1), kind="stable")[100:]
    assert f"{100 * right[by_probability].mean():.1f} % right" in text(page, "#readout")


@pytest.mark.parametrize("kind", ["naive_bayes", "forest"])
def test_a_mouse_gets_through_the_whole_page(kind, visit, pages, models, german):
    page, model, X = visit(pages(kind)), models(kind), german[0][600:].reset_index(drop=True)
    name = "tv" if kind == "naive_bayes" else "tv_all"
    # The list: filter, sort, search, open.
    page.click("#wrong")
    assert "of 400" not in text(page, "#count")
    page.click("#wrong")
    page.click("#head button:has-text('Robustness')")
    least = int(model.robustness(X, name).argmin())
    assert text(page, "#rows .line >> nth=0").split()[0] == str(least + 1)
    page.click("#rows .line >> nth=0")
    assert text(page, "#which") == f"Row {least + 1}"
    value = X.iloc[0, 0]
    page.fill("#search", f"{X.columns[0]}: {value}")
    assert text(page, "#count").endswith(f"of {(X.iloc[:, 0] == value).sum()}")
    page.fill("#search", "")
    # One prediction: every feature can be another value, or missing.
    row = X.iloc[[least]].copy()
    for i, column in enumerate(X.columns[:6]):
        value = sorted(set(X[column]))[i % 2]
        page.select_option(f"#feature-{i}", label="missing" if i == 3 else value)
        row[column] = None if i == 3 else value
        assert robustness(page) == pytest.approx(model.robustness(row, name)[0], rel=1e-6)
        assert model.predict(row)[0] in text(page, "#sentence")
    assert "Before your change" in text(page, "#before")
    # What the least robust features are alone.
    alone = {c: model.robustness(row, "tv", parts=[f"feature:{c}"])[0] for c in X.columns}
    shown = text(page, "tr.first td:last-child")
    assert shown == f"{100 * min(alone.values()):.{2 if min(alone.values()) < 0.1 else 1}f} %"
    # A change that flips it does.
    page.wait_for_selector("#changes button")
    before = page.locator("#sentence").inner_text().split("”")[0]
    page.click("#changes button >> nth=0")
    assert page.locator("#sentence").inner_text().split("”")[0] != before
    # All of it is in the address; a reload shows the same.
    address, told = page.url, text(page, "#sentence")
    page.goto("about:blank")
    page.goto(address)
    assert text(page, "#sentence") == told
    page.click("#reset")
    assert "edited" not in text(page, "#which")
    # The slider, and what may be wrong.
    page.evaluate("() => { slider.value = 50; slider.dispatchEvent(new Event('input')); }")
    assert "Leave 200 of 400" in text(page, "#verdict")
    page.select_option("#hood", "chi2" if kind == "naive_bayes" else "chi2_all")
    page.locator("#experts", has_text="chi2").wait_for(state="attached")
    edited = int(text(page, "#which").split()[1]) - 1
    other = "chi2" if kind == "naive_bayes" else "chi2_all"
    assert robustness(page) == pytest.approx(model.robustness(X.iloc[[edited]], other)[0], rel=1e-6)
    scheme = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.click("#scheme")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != scheme


def test_the_margin_crosses_zero_at_the_robustness(visit, pages):
    page = visit(pages("forest"))
    dot = page.locator("#margin circle").bounding_box()
    axis = page.locator("#margin line.axis").bounding_box()
    assert dot["y"] + dot["height"] / 2 == pytest.approx(axis["y"], abs=1.0)


def test_a_keyboard_alone_gets_through_the_whole_page(visit, pages):
    page, seen = visit(pages("naive_bayes")), []

    def tab_to(wanted, most=60):
        for _ in range(most):
            page.keyboard.press("Tab")
            here = page.evaluate("document.activeElement.id")
            seen.append(here)
            if here == wanted:
                return
        pytest.fail(f"{wanted} is not reached, only {seen}")

    tab_to("hood")
    tab_to("slider")
    page.keyboard.press("PageUp")
    assert "Leave 300" not in text(page, "#verdict")
    page.keyboard.press("Home")
    assert "Leave 400 of 400" in text(page, "#verdict")
    tab_to("search")
    page.keyboard.type("A40")
    assert " of 400" not in text(page, "#count")
    for _ in range(3):
        page.keyboard.press("Backspace")
    tab_to("wrong")
    page.keyboard.press("Space")
    assert page.get_attribute("#wrong", "aria-pressed") == "true"
    page.keyboard.press("Space")
    tab_to("grid")
    for key in ("Home", "ArrowDown", "ArrowDown", "PageDown", "ArrowUp"):
        page.keyboard.press(key)
    active = page.get_attribute("#grid", "aria-activedescendant")
    row = text(page, f"#{active} >> css=.number")
    page.keyboard.press("Enter")
    assert text(page, "#which") == f"Row {row}"
    assert page.evaluate("document.activeElement.id") == "detail"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id").startswith("feature-")
    page.keyboard.press("ArrowDown")
    assert text(page, "#which") in {f"Row {row}, edited", f"Row {row}"}
    page.keyboard.press("End")
    assert text(page, "#which") == f"Row {row}, edited"
    assert "robustness" in page.locator("#live").text_content()
    tab_to("reset")
    page.keyboard.press("Enter")
    assert text(page, "#which") == f"Row {row}"
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.id") == "grid"


def test_on_a_phone_the_detail_opens_over_the_list(visit, pages):
    page = visit(pages("naive_bayes"), width=390, height=844)
    assert not page.is_visible("#sentence")
    page.click("#rows .line >> nth=2")
    assert page.is_visible("#sentence")
    assert page.get_attribute("#detail", "aria-modal") == "true"
    targets = page.locator("#detail select:visible, #detail button:visible").all()
    assert min(one.bounding_box()["height"] for one in targets) >= 44
    page.click("button.close")
    assert not page.is_visible("#sentence")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.parametrize("width", [390, 1360, 1920])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(width, scheme, visit, pages):
    source = find_axe()
    page = visit(pages("naive_bayes"), width=width, color_scheme=scheme, bypass_csp=True)
    if width < 1000:
        page.click("#rows .line >> nth=1")
    page.select_option("#feature-0", index=1)
    page.wait_for_selector("#changes li")
    page.wait_for_function("document.querySelector('.hangs').textContent")
    page.evaluate(source.read_text(encoding="utf-8"))
    found = page.evaluate("() => axe.run()")["violations"]
    assert [(one["id"], [n["html"][:90] for n in one["nodes"][:3]]) for one in found] == []


def find_axe():
    folders = [os.environ.get("ROBUSTQ_NODE_MODULES"), "node_modules"]
    if shutil.which("npm"):
        asked = subprocess.run(["npm", "root", "-g"], capture_output=True, text=True, check=False)  # noqa: S607
        folders.append(asked.stdout.strip())
    for folder in filter(None, folders):
        if (path := Path(folder, "axe-core", "axe.min.js")).exists():
            return path
    return pytest.skip("needs axe-core: npm install -g axe-core, or ROBUSTQ_NODE_MODULES=folder")


HARM = "<script>window.harmed=1</script>"
NAMES = [
    HARM,
    "</script><img src=x onerror=window.harmed=1>",
    "\"quotes\" 'and' `more` &amp; {{data}}",
    "😀🏳️‍🌈",
    "עברית مرحبا",
    "\u202eturned\u202c",
    "line\nbreak",
    "x" * 5000,
]


def test_names_that_mean_harm_are_text(visit, tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({name: rng.choice(NAMES, 300) for name in NAMES})
    y = rng.choice([HARM, NAMES[4]], 300)
    model, path = NaiveBayesClassifier().fit(X, y), tmp_path / "harm.html"
    make_exploration(model, X, y, title=f"{HARM}.csv").write(path)
    page = visit(path)
    page.click("#rows .line >> nth=3")
    page.select_option("#feature-0", index=2)
    page.wait_for_selector("#changes li")
    assert page.evaluate("window.harmed") is None
    assert HARM in text(page, "#title")
    assert HARM in text(page, "#features")
    assert "\u202e" not in page.evaluate("document.body.innerText")
    assert page.evaluate("document.images.length") == 0
    found = page.evaluate("(row) => robustq.assess(row, 'tv').robustness", as_lists(X[:1])[0])
    assert found == pytest.approx(model.robustness(X[:1], "tv")[0], rel=1e-6)


def test_nothing_but_our_own_scripts_runs(visit, pages):
    page = visit(pages("naive_bayes"))
    policy = page.get_attribute("meta[http-equiv='Content-Security-Policy']", "content")
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy
    assert page.locator("a[href], link, img, iframe").count() == 0


@pytest.mark.filterwarnings("ignore::robustq.TableWarning")
def test_ten_thousand_categories_can_be_chosen(visit, tmp_path):
    cities = [f"city {i}" for i in range(10_000)]
    X = pd.DataFrame({"city": cities * 3, "b": ["x", "y", "y"] * 10_000})
    y = np.tile(["in", "out", "out", "in"], 7500)
    model, path = NaiveBayesClassifier().fit(X, y), tmp_path / "many.html"
    make_exploration(model, X[:500], y[:500]).write(path)
    page = visit(path, fragment="#row=1")
    page.focus("#feature-0")
    page.select_option("#feature-0", label="city 9999")
    row = X[:1].assign(city="city 9999")
    assert robustness(page) == pytest.approx(model.robustness(row, "tv")[0], rel=1e-6)


def test_numbers_are_edited_in_a_field(visit, tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"size": rng.normal(size=200), "colour": rng.choice(["r", "g"], 200)})
    y = np.where(X["size"] + rng.normal(size=200) > 0, "up", "down")
    model = GenerativeForestClassifier(8, smoothing=1e-6, random_state=0).fit(X, y)
    path = tmp_path / "numbers.html"
    make_exploration(model, X, y).write(path)
    page = visit(path, fragment="#row=6")
    for value in ("-1.25", ""):
        page.fill("#feature-0", value)
        page.keyboard.press("Tab")
        row = X[5:6].assign(size=float(value) if value else np.nan)
        assert robustness(page) == pytest.approx(model.robustness(row, "tv_all")[0], rel=1e-6)
    page.fill("#feature-0", "many")
    page.keyboard.press("Tab")
    assert page.get_attribute("#feature-0", "aria-invalid") == "true"


def test_without_labels_there_is_no_accuracy(visit, models, german, tmp_path):
    path = tmp_path / "unlabelled.html"
    make_exploration(models("naive_bayes"), german[0][600:]).write(path)
    page = visit(path)
    assert text(page, "#verdict") == "Leave 300 of 400 to the model."
    assert not page.is_visible("#curve")
    assert not page.is_visible("#wrong")
    assert "right" not in text(page, "main")


def test_without_rows_one_can_be_made(visit, models, german, tmp_path):
    X, model, path = german[0], models("forest"), tmp_path / "empty.html"
    make_exploration(model).write(path)
    page = visit(path)
    page.select_option("#feature-0", label=X.iloc[0, 0])
    row = pd.DataFrame([[X.iloc[0, 0], *[None] * (X.shape[1] - 1)]], columns=X.columns)
    assert robustness(page) == pytest.approx(model.robustness(row, "tv_all")[0], rel=1e-6)


def test_of_other_classifiers_the_posterior_is_shown(visit, german, tmp_path):
    X, y = german
    numbers = pd.get_dummies(X).astype(float)
    model = LogisticRegression(max_iter=500).fit(numbers[:600], y[:600])
    path = tmp_path / "posterior.html"
    made = make_exploration(model, numbers[600:], y[600:])
    made.write(path)
    page = visit(path)
    assert "cannot be edited" in text(page, "#note")
    assert "LogisticRegression" in text(page, "#note")
    page.click("#head button:has-text('Prob.')")
    p = model.predict_proba(numbers[600:]).max(axis=1)
    page.click("#rows .line >> nth=0")
    assert text(page, "#which") == f"Row {p.argmin() + 1}"
    assert page.locator("#detail select, #detail input").count() == 0
    page.evaluate("() => { slider.value = 50; slider.dispatchEvent(new Event('input')); }")
    assert "Leave 200 of 400" in text(page, "#verdict")
    refuse = "() => { try { robustq.assess([], 'tv'); } catch (e) { return e.message; } }"
    assert "LogisticRegression" in page.evaluate(refuse)


EDIT = """(k) => {
  const select = document.getElementById(`feature-${k}`);
  select.selectedIndex = 1 + (k % (select.options.length - 1));
  select.dispatchEvent(new Event("change"));
  document.body.getBoundingClientRect();
}"""


def test_a_default_forest_is_small_and_answers_at_once(visit, pages):
    path = pages("forest")
    assert path.stat().st_size < 3 * 2**20
    page = visit(path)
    session = page.context.new_cdp_session(page)
    # Of the page's own thread: other work on the machine does not count.
    session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def spend(work):
        def read():
            metrics = session.send("Performance.getMetrics")["metrics"]
            return next(one["value"] for one in metrics if one["name"] == "TaskDuration")

        start = read()
        work()
        return read() - start

    assert spend(page.reload) < 1.0
    assert min(spend(lambda k=k: page.evaluate(EDIT, k)) for k in range(12)) < 0.05
