"""Draw the page of `robustq explore`, in a browser: images/explore.png."""

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from robustq import NaiveBayesClassifier, datasets
from robustq.report import make_exploration

IMAGE = Path(__file__).parent / "images" / "explore.png"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def draw(browser: str) -> None:
    """Write the picture of german's last 400 rows."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 (not everybody has it)

    german = datasets.load("german")
    y = np.where(np.asarray(german.y) == 1, "good", "bad")
    model = NaiveBayesClassifier().fit(german.X.slice(0, 600), y[:600])
    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        path = Path(folder, "explore.html")
        make_exploration(model, german.X.slice(600), y[600:], title="german.csv").write(path)
        opened = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        page = opened.new_page(viewport={"width": 1360, "height": 1000})
        page.goto(path.as_uri())
        page.wait_for_selector("#changes li")
        page.wait_for_timeout(1000)
        page.screenshot(path=IMAGE, full_page=True)
        opened.close()


if __name__ == "__main__":
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        print("no browser: images/explore.png stays as it is")
    else:
        draw(found)
