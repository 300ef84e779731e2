"""Fetching from UCI, played by a server on this machine."""

import io
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from robustq import datasets
from robustq.datasets import places, shipping, sources
from robustq.exceptions import FileError
from tests.datasets.test_loading import write_german


class Server(ThreadingHTTPServer):
    """Remembers what it was asked for."""

    content = b""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Uci)
        self.faults: list[str] = []
        self.asked: list[str] = []


class Uci(BaseHTTPRequestHandler):
    """Answers with what the test put into `content`, or fails as the test wants."""

    server: Server

    def do_GET(self):
        self.server.asked.append(self.path)
        fault = self.server.faults.pop(0) if self.server.faults else None
        if fault == "404":
            self.send_error(404)
            return
        content = self.server.content
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[: len(content) // 2] if fault == "broken" else content)

    def log_message(self, *_):
        pass


@pytest.fixture
def server(monkeypatch, tmp_path):
    monkeypatch.delenv("ROBUSTQ_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("pooch.core.time.sleep", lambda _: None)
    monkeypatch.setattr(shipping, "is_shipped", lambda _: False)
    write_german(tmp_path)
    with Server() as http:
        http.content = make_archive({"german.data": (tmp_path / "german.data").read_bytes()})
        monkeypatch.setattr(sources, "ARCHIVE", f"http://127.0.0.1:{http.server_port}")
        thread = threading.Thread(target=http.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        yield http
        http.shutdown()


def make_archive(files, method=zipfile.ZIP_STORED):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", method) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return content.getvalue()


def cached():
    folder = places.cache_folder()
    return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []


NAME = "statlog+german+credit+data.zip"


def test_a_data_set_is_fetched_once_and_its_checksum_kept(server):
    assert len(datasets.load("german").y) == 1000
    assert server.asked == [f"/144/{NAME}"]
    assert cached() == [NAME, NAME + ".sha256"]
    again = datasets.load("german")
    assert len(server.asked) == 1
    assert again.place == str(places.cache_folder())


def test_archives_within_archives_are_opened(server):
    inner = make_archive(
        {"folder/german.data": zipfile.ZipFile(io.BytesIO(server.content)).read("german.data")}
    )
    server.content = make_archive({"inner.zip": inner, "Index": b"nothing"})
    assert len(datasets.load("german").y) == 1000


def test_a_broken_connection_is_tried_again(server):
    server.faults = ["broken", "broken"]
    assert len(datasets.load("german").y) == 1000
    assert len(server.asked) == 3


def test_a_connection_that_stays_broken_is_explained(server):
    server.faults = ["broken"] * 9
    with pytest.raises(FileError, match=r"or it broke\). By hand: download http.*german.data"):
        datasets.load("german")
    assert cached() == []


def test_a_missing_file_is_explained(server):
    server.faults = ["404"] * 9
    with pytest.raises(FileError, match="the server answered 404"):
        datasets.load("german")
    assert cached() == []


def test_another_file_than_at_first_is_refused(server):
    datasets.load("german")
    (places.cache_folder() / NAME).unlink()
    server.content = make_archive({"german.data": b"something else"})
    with pytest.raises(FileError, match=r"the checksum differs.*delete .*\.sha256"):
        datasets.load("german")
    assert cached() == [NAME + ".sha256"]


def test_a_damaged_copy_in_the_cache_is_fetched_again(server):
    datasets.load("german")
    path = places.cache_folder() / NAME
    path.write_bytes(path.read_bytes()[:-100])
    assert len(datasets.load("german").y) == 1000
    assert len(server.asked) == 2


def test_another_content_than_uci_has_is_refused(server):
    text = zipfile.ZipFile(io.BytesIO(server.content)).read("german.data")
    server.content = make_archive({"german.data": text.replace(b"A11", b"A12", 1)})
    with pytest.raises(FileError, match="is not the archive it should be"):
        datasets.load("german")
    assert cached() == []


def test_an_archive_that_expands_without_end_is_refused(tmp_path):
    path = tmp_path / NAME
    path.write_bytes(make_archive({"german.data": bytes(300 << 20)}, zipfile.ZIP_DEFLATED))
    with pytest.raises(FileError, match=r"german\.data in it expands to more than 32 MiB"):
        datasets.load("german", tmp_path)
    inner = path.read_bytes()
    for _ in range(3):
        inner = make_archive({"inner.zip": inner})
    path.write_bytes(inner)
    with pytest.raises(FileError, match=r"lacks german\.data"):
        datasets.load("german", tmp_path)


def damage(archive):
    at = archive.index(b"german.data") + 200
    return archive[:at] + bytes(255 - byte for byte in archive[at : at + 400]) + archive[at + 400 :]


@pytest.mark.parametrize("kind", ["page", "empty", "damaged"])
def test_what_is_no_archive_of_it_is_not_kept(server, kind):
    good = server.content
    server.content = {
        "page": b"<html>sorry</html>",
        "empty": make_archive({}),
        "damaged": damage(
            make_archive(
                {"german.data": np.random.default_rng(0).bytes(5000)}, zipfile.ZIP_DEFLATED
            )
        ),
    }[kind]
    with pytest.raises(FileError, match=r"is not the archive it should be\. By hand"):
        datasets.load("german")
    assert cached() == []
    server.content = good
    assert len(datasets.load("german").y) == 1000


def test_a_wrong_proxy_is_not_taken_for_a_wrong_checksum(server, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:notaport")
    with pytest.raises(FileError, match="could not be fetched"):
        datasets.load("german")


def test_a_damaged_archive_in_the_cache_without_a_checksum_is_fetched_again(server):
    folder = places.cache_folder()
    folder.mkdir(parents=True)
    (folder / NAME).write_bytes(server.content[:5000])
    assert len(datasets.load("german").y) == 1000


def test_nobody_there_is_explained(server, monkeypatch):
    # A port that was free a moment ago: nothing listens on it.
    with Server() as other:
        port = other.server_port
    monkeypatch.setattr(sources, "ARCHIVE", f"http://127.0.0.1:{port}")
    with pytest.raises(FileError, match=r"no connection to the server.*ROBUSTQ_DATA"):
        datasets.load("german")


def test_progress_can_be_shown(server, capfd):
    assert len(datasets.load("german", progress=True).y) == 1000


def test_an_archive_in_a_folder_will_do(server, tmp_path):
    folder = tmp_path / "by hand"
    folder.mkdir()
    (folder / NAME).write_bytes(server.content)
    assert datasets.load("german", folder).place == str(folder)
    assert server.asked == []
