"""Results are written whole, in any format, or not at all."""

import json

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from robustq.exceptions import InputError
from robustq.io import open_writer

RESULT = pa.table(
    {
        "prediction": pa.array(["a", "b", None]).dictionary_encode(),
        "robustness": [0.5, float("inf"), 0.0],
        "text": ['say "hi"', "Infinity, ü", None],
        "count": [1, 2, None],
        "class": pa.array([-7, None, 2**62]).dictionary_encode(),
    }
)


@pytest.mark.parametrize("name", ["out.parquet", "out.csv", "out.csv.gz", "out.jsonl"])
def test_results_are_written_in_any_format(tmp_path, name):
    path = tmp_path / name
    with open_writer(str(path), RESULT.schema) as writer:
        writer.write_table(RESULT.slice(0, 2))
        assert not path.exists()
        writer.write_table(RESULT.slice(2))
    assert [file.name for file in tmp_path.iterdir()] == [name]
    if name.endswith("parquet"):
        assert pq.read_table(path).to_pylist() == RESULT.to_pylist()
    elif name.endswith("jsonl"):
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        assert lines == RESULT.to_pylist()
    else:
        options = pyarrow.csv.ConvertOptions(
            strings_can_be_null=True, quoted_strings_can_be_null=False
        )
        read = pyarrow.csv.read_csv(path, convert_options=options)
        assert read.to_pylist() == RESULT.to_pylist()


def test_nothing_is_left_where_writing_fails(tmp_path):
    class StopError(Exception):
        pass

    for name in ("out.parquet", "out.csv", "out.jsonl"):
        with pytest.raises(StopError), open_writer(str(tmp_path / name), RESULT.schema) as writer:  # noqa: PT012
            writer.write_table(RESULT)
            raise StopError
    assert list(tmp_path.iterdir()) == []


def test_an_ending_must_tell_a_format(tmp_path):
    with pytest.raises(InputError, match=r"no ending that tells a format: use \.parquet"):
        open_writer(str(tmp_path / "out.docx"), RESULT.schema).__enter__()


def test_lists_do_not_fit_into_csv(tmp_path):
    schema = pa.schema([("a", pa.list_(pa.int64()))])
    with pytest.raises(InputError, match="which CSV cannot hold"):
        open_writer(str(tmp_path / "o.csv"), schema).__enter__()
