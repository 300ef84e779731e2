"""What can be said of a store without one."""

import subprocess
import sys
from pathlib import Path

import pytest

import robustq
from robustq.exceptions import FileError, InputError
from robustq.files import find_place, hide_secrets, write_atomically

WITHOUT = """
import sys
sys.modules.update(dict.fromkeys(sys.argv[2:]))
import robustq
try:
    robustq.read(sys.argv[1])
except robustq.exceptions.UnsupportedError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("url", "extra"), [("s3://b/a.csv", "s3"), ("gs://b/a.csv", "gcs"), ("hdfs://n/a.csv", "hdfs")]
)
@pytest.mark.parametrize("missing", ["fsspec", "s3fs gcsfs"])
def test_a_missing_extra_is_named(url, extra, missing):
    if extra == "hdfs" and missing != "fsspec":
        pytest.skip("fsspec and pyarrow are all it needs")
    command = [sys.executable, "-c", WITHOUT, url, *missing.split()]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout.startswith(f"{url}: ")
    assert f'pip install "robustq[{extra}]"' in done.stdout


def test_a_store_nobody_knows_is_told():
    pytest.importorskip("fsspec", reason="needs fsspec: the extra s3")
    with pytest.raises(InputError, match=r"nonsense://bucket/a cannot be opened .*nonsense"):
        robustq.read("nonsense://bucket/a")


def test_where_an_upload_cannot_be_aborted_a_file_is_renamed_when_it_is_complete():
    fsspec = pytest.importorskip("fsspec", reason="needs fsspec: the extra s3")
    memory = fsspec.filesystem("memory")
    write_atomically("memory://folder/a", b"before")

    def stop():
        with find_place("memory://folder/a").writing() as file:
            file.write(b"after")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stop()
    assert memory.cat("/folder/a") == b"before"
    write_atomically("memory://folder/a", b"after")
    assert memory.cat("/folder/a") == b"after"
    assert memory.ls("/folder", detail=False) == ["/folder/a"]
    memory.rm("/folder", recursive=True)


def test_hadoop_that_is_not_there_is_told():
    pytest.importorskip("fsspec", reason="needs fsspec: the extra hdfs")
    with pytest.raises(FileError, match=r"hdfs://nowhere:1/a.csv cannot be opened .*JAVA_HOME"):
        robustq.read("hdfs://nowhere:1/a.csv")


def test_a_url_as_a_path_loses_a_slash_and_that_is_told():
    with pytest.raises(InputError, match="as text"):
        robustq.load(Path("s3://bucket/m.robustq"))


def test_passwords_and_queries_are_hidden():
    assert hide_secrets("https://u:p@host/a?q=1#f") == "https://host/a?…"
    assert hide_secrets("hdfs://user@host:8020/a") == "hdfs://host:8020/a"
    assert hide_secrets("what?.csv") == "what?.csv"
