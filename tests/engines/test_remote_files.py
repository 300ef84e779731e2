"""Files in a store are read and written as those of this machine are: S3, by a stand-in of it."""

import gzip
import io

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import robustq
from robustq.exceptions import FileError, InputError
from robustq.files import find_place, write_atomically
from robustq.io import open_writer
from tests.cli.commands import call
from tests.files.servers import proxying

s3fs = pytest.importorskip("s3fs", reason="needs s3fs: the extra s3")
moto = pytest.importorskip("moto.server", reason="needs moto's server: make test-engines")
boto3 = pytest.importorskip("boto3", reason="needs boto3: make test-engines")

# In libraries of these tests, not in robustq.
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning:botocore"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:moto"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:werkzeug"),
]

PART = 5 * 2**20  # the least that S3 takes for a part of an upload
ODD = "some where/100% of it, ü#1.csv"


def _table(rows, seed=0):
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "colour": rng.choice(["red", "green", "blue"], rows),
            "size": rng.normal(size=rows),
            "taste": rng.choice(["good", "bad"], rows),
        }
    )


def _as_csv(table):
    content = io.BytesIO()
    pa.csv.write_csv(table, content, pa.csv.WriteOptions(quoting_style="none"))
    return content.getvalue()


def _as_parquet(table):
    content = io.BytesIO()
    pq.write_table(table, content)
    return content.getvalue()


TABLE = _table(2000)


@pytest.fixture(scope="module")
def stand_in():
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}", port
    server.stop()


def _set(patch, address):
    patch.setenv("AWS_ENDPOINT_URL", address)
    patch.setenv("AWS_ACCESS_KEY_ID", "somebody")
    patch.setenv("AWS_SECRET_ACCESS_KEY", "hidden")
    patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    patch.setenv("AWS_MAX_ATTEMPTS", "2")  # s3fs tries again by itself
    s3fs.S3FileSystem.clear_instance_cache()  # it would not look at the environment again


@pytest.fixture
def s3(stand_in, monkeypatch):
    """Give a client of S3, which has one bucket that is empty."""
    address, _ = stand_in
    _set(monkeypatch, address)
    client = boto3.client("s3", endpoint_url=address)
    client.create_bucket(Bucket="bucket")
    yield client
    for key in _list(client):
        client.delete_object(Bucket="bucket", Key=key)
    client.delete_bucket(Bucket="bucket")
    s3fs.S3FileSystem.clear_instance_cache()


@pytest.fixture
def proxy(s3, stand_in, monkeypatch):
    """Give what can break the connection to S3."""
    with proxying(stand_in[1]) as (proxy, address):
        _set(monkeypatch, address)
        yield proxy


def _put(client, key, content):
    client.put_object(Bucket="bucket", Key=key, Body=content)


def _get(client, key):
    return client.get_object(Bucket="bucket", Key=key)["Body"].read()


def _list(client):
    return [one["Key"] for one in client.list_objects_v2(Bucket="bucket").get("Contents", [])]


def _list_uploads(client):
    return client.list_multipart_uploads(Bucket="bucket").get("Uploads", [])


@pytest.fixture(scope="module")
def model():
    return robustq.NaiveBayesClassifier().fit(TABLE.drop_columns("taste"), TABLE["taste"])


@pytest.mark.parametrize(
    ("key", "content"),
    [
        ("a.csv", _as_csv(TABLE)),
        (ODD, _as_csv(TABLE)),
        ("a.csv.gz", gzip.compress(_as_csv(TABLE))),
        ("a.parquet", _as_parquet(TABLE)),
        ("what", _as_parquet(TABLE)),
    ],
)
def test_a_table_in_a_store_is_read(s3, key, content):
    _put(s3, key, content)
    assert robustq.read(f"s3://bucket/{key}").equals(TABLE)


@pytest.mark.parametrize("path", ["s3://bucket/parts", "s3://bucket/parts/", "s3://bucket/p*/*.pq"])
def test_a_prefix_is_a_folder_and_patterns_match(s3, path):
    _put(s3, "parts/b.pq", _as_parquet(TABLE[1000:]))
    _put(s3, "parts/a.pq", _as_parquet(TABLE[:1000]))
    _put(s3, "parts/", b"")  # consoles mark folders so
    _put(s3, "parts/_SUCCESS", b"")
    _put(s3, "parts/_hidden/c.pq", b"nothing")
    assert robustq.read(path).equals(TABLE)


def test_a_model_is_kept_in_a_store(s3, model):
    model.save("s3://bucket/models/m.robustq")
    assert robustq.load("s3://bucket/models/m.robustq").to_dict() == model.to_dict()


def test_the_command_takes_urls_wherever_it_takes_files(s3, tmp_path):
    _put(s3, ODD, _as_csv(TABLE))
    (tmp_path / "t.csv").write_bytes(_as_csv(TABLE))
    here, there = tmp_path, "s3://bucket"
    for place, data in ((here, here / "t.csv"), (there, f"s3://bucket/{ODD}")):
        model = f"{place}/m.robustq"
        steps = [
            ("fit", data, "--target", "taste", "--model", "nbc", "-o", model),
            ("inspect", model),
            ("score", model, data, "-o", f"{place}/o.parquet"),
            ("score", model, data, "-o", f"{place}/o.csv", "--keep-all"),
            ("score", model, data, "-o", f"{place}/o.jsonl"),
            ("score", model, data, "-o", f"{place}/o.xlsx"),
            ("evaluate", model, data, "-o", f"{place}/e.html"),
            ("explain", model, data, "--row", 3, "-o", f"{place}/why.html"),
            ("explore", model, data, "-o", f"{place}/x.html"),
        ]
        for step in steps:
            done = call(*step)
            assert done.returncode == 0, done.output
    names = {"m.robustq", "o.parquet", "o.csv", "o.jsonl", "o.xlsx", "e.html", "why.html", "x.html"}
    assert set(_list(s3)) == names | {ODD}
    for name in ("o.parquet", "o.csv", "o.jsonl"):
        assert _get(s3, name) == (tmp_path / name).read_bytes()
    assert robustq.read("s3://bucket/o.xlsx").equals(robustq.read(tmp_path / "o.xlsx"))


def test_workers_take_urls_too(s3, tmp_path):
    _put(s3, "t.csv", _as_csv(TABLE))
    (tmp_path / "t.csv").write_bytes(_as_csv(TABLE))
    workers = "--engine", "dask"  # who learn from all rows
    for place, fits, scores in (
        (tmp_path, ("--no-holdout",), ()),
        ("s3://bucket", workers, workers),
    ):
        model, data = f"{place}/m.robustq", f"{place}/t.csv"
        done = call("fit", data, "--target", "taste", "--model", "nbc", "-o", model, *fits)
        assert done.returncode == 0, done.output
        done = call("score", model, data, "-o", f"{place}/o.csv", *scores)
        assert done.returncode == 0, done.output
    assert _get(s3, "o.csv") == (tmp_path / "o.csv").read_bytes()


def test_what_is_read_is_not_written_over(s3, model):
    _put(s3, "a.csv", _as_csv(TABLE))
    model.save("s3://bucket/m.robustq")
    done = call("score", "s3://bucket/m.robustq", "s3://bucket/a.csv", "-o", "s3a://bucket/a.csv")
    assert done.returncode == 2
    assert "is read and would be written over" in done.stderr
    assert _get(s3, "a.csv") == _as_csv(TABLE)


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("s3://bucket/none.csv", "s3://bucket/none.csv does not exist"),
        ("s3://nowhere/none.csv", "s3://nowhere/none.csv does not exist"),
        ("s3://bucket/*.csv", r"s3://bucket/\*.csv matches no file"),
    ],
)
def test_what_is_not_there_is_told(s3, path, told):
    with pytest.raises(FileError, match=told):
        robustq.read(path)


def test_an_empty_object_is_told(s3):
    _put(s3, "a.csv", b"")
    with pytest.raises(InputError, match=r"s3://bucket/a.csv is empty"):
        robustq.read("s3://bucket/a.csv")
    _put(s3, "a.parquet", b"")
    with pytest.raises(InputError, match=r"s3://bucket/a.parquet cannot be read as a table"):
        robustq.read("s3://bucket/a.parquet")
    with pytest.raises(InputError, match=r"s3://bucket/a.csv: not a model file"):
        robustq.load("s3://bucket/a.csv")


def test_a_missing_bucket_is_told_before_anything_is_scored(s3, model, tmp_path):
    model.save(tmp_path / "m.robustq")
    (tmp_path / "a.csv").write_bytes(_as_csv(TABLE))
    done = call("score", tmp_path / "m.robustq", tmp_path / "a.csv", "-o", "s3://nowhere/o.csv")
    assert done.returncode == 2
    assert (
        "s3://nowhere/o.csv cannot be written: its bucket or folder does not exist" in done.stderr
    )
    with pytest.raises(FileError, match=r"s3://nowhere/m cannot be written"):
        model.save("s3://nowhere/m")


def test_who_has_no_permission_is_told(s3, stand_in):
    _put(s3, "a.csv", _as_csv(TABLE))
    # From now on the stand-in asks who somebody is, and knows nobody.
    import requests  # noqa: PLC0415

    address, _ = stand_in
    requests.post(f"{address}/moto-api/reset-auth", data="0", timeout=10)
    try:
        with pytest.raises(FileError, match=r"s3://bucket/a.csv cannot be read .no permission"):
            robustq.read("s3://bucket/a.csv")
        with pytest.raises(FileError, match=r"s3://bucket/b.csv cannot be written .no permission"):
            write_atomically("s3://bucket/b.csv", "b")
    finally:
        requests.post(f"{address}/moto-api/reset-auth", data="inf", timeout=10)
    assert _list(s3) == ["a.csv"]


def test_who_has_no_credentials_is_told(s3, monkeypatch, tmp_path):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    s3fs.S3FileSystem.clear_instance_cache()
    with pytest.raises(FileError, match=r"s3://bucket/a.csv cannot be read .*AWS_ACCESS_KEY_ID"):
        robustq.read("s3://bucket/a.csv")


def test_keys_within_a_url_are_refused_and_not_shown():
    with pytest.raises(InputError, match="no keys within a URL") as error:
        robustq.read("s3://somebody:hidden@bucket/a.csv")
    assert "hidden" not in str(error.value)


def test_reading_goes_on_after_a_break(s3, proxy):
    table = _table(100_000)
    _put(s3, "a.csv", _as_csv(table))
    _put(s3, "a.parquet", _as_parquet(table))
    for name in ("a.csv", "a.parquet"):
        proxy.cut(down=100_000, times=2)
        assert robustq.read(f"s3://bucket/{name}").equals(table)
        assert proxy.made == 2


def test_reading_that_breaks_for_good_is_told_and_leaves_nothing(s3, proxy, model, tmp_path):
    _put(s3, "a.csv", _as_csv(_table(100_000)))
    model.save(tmp_path / "m.robustq")
    proxy.cut(down=100_000, times=10**9)
    done = call("score", tmp_path / "m.robustq", "s3://bucket/a.csv", "-o", tmp_path / "o.csv")
    assert done.returncode == 2
    assert "s3://bucket/a.csv cannot be read (" in done.stderr
    assert [file.name for file in tmp_path.iterdir()] == ["m.robustq"]


def test_an_upload_goes_on_after_a_break(s3, proxy):
    content = np.random.default_rng(0).bytes(2 * PART)
    proxy.cut(up=PART // 2, times=1)
    write_atomically("s3://bucket/a", content)
    assert proxy.made == 1
    assert _get(s3, "a") == content


def test_an_upload_that_breaks_for_good_is_told_and_leaves_what_was_there(s3, proxy):
    _put(s3, "a", b"before")
    proxy.cut(up=PART // 2, times=10**9)
    with pytest.raises(FileError, match=r"s3://bucket/a cannot be written \("):
        write_atomically("s3://bucket/a", np.random.default_rng(0).bytes(2 * PART))
    assert _get(s3, "a") == b"before"


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "parquet", "jsonl", "xlsx"])
@pytest.mark.parametrize("stop", [RuntimeError, KeyboardInterrupt])
def test_what_is_not_finished_does_not_appear(s3, ending, stop):
    table = pa.table({"a": np.random.default_rng(0).normal(size=20_000)})

    def write():
        with open_writer(f"s3://bucket/o.{ending}", table.schema) as writer:
            writer.write_table(table)
            raise stop

    with pytest.raises(stop):
        write()
    assert _list(s3) == []


def test_an_upload_in_parts_appears_when_it_is_complete_and_is_aborted_else(s3, monkeypatch):
    monkeypatch.setattr(s3fs.S3FileSystem, "default_block_size", PART)
    content = np.random.default_rng(0).bytes(PART)

    def write(*, broken):
        with find_place("s3://bucket/a").writing() as file:
            for _ in range(3):
                file.write(content)
                assert _list(s3) == []
            assert len(_list_uploads(s3)) == 1  # it is sent piece by piece
            if broken:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write(broken=True)
    assert _list(s3) == []
    assert _list_uploads(s3) == []
    write(broken=False)
    assert _get(s3, "a") == 3 * content
