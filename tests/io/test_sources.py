"""Tables as people have them give the right rows, or an error that names file and place."""

import gzip
import io
import os
import pickle
import sys
import threading

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from robustq.exceptions import FileError, InputError
from robustq.io import CsvOptions, open_sources, read_table, unify_types, utf8
from robustq.io.sources import BATCH_ROWS

PLAIN = "id,colour,size\n1,red,2.5\n2,blue,3.5\n"
ROWS = [{"id": 1, "colour": "red", "size": 2.5}, {"id": 2, "colour": "blue", "size": 3.5}]


def read(tmp_path, content, name="data.csv", **options):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_table(open_sources([str(path)], CsvOptions(**options))).table.to_pylist()


@pytest.mark.parametrize(
    "content",
    [
        PLAIN,
        "\ufeff" + PLAIN,
        PLAIN.replace("\n", "\r\n"),
        PLAIN.rstrip("\n"),
        PLAIN + "\n\n",
        PLAIN.replace(",", ";"),
        PLAIN.replace(",", "\t"),
        PLAIN.replace(",", "|"),
        PLAIN.replace("red", '"red"').replace("id", '"id"', 1),
        PLAIN.encode("utf-16"),
        PLAIN.replace(",", " , "),
    ],
    ids=["plain", "bom", "crlf", "no end", "blank", ";", "tab", "|", "quoted", "utf-16", "spaces"],
)
def test_however_it_is_written_it_is_the_same_table(tmp_path, content):
    assert read(tmp_path, content) == ROWS


@pytest.mark.parametrize("ending", ["gz", "bz2", "zst"])
def test_compressed_files_are_unpacked(tmp_path, ending):
    path = tmp_path / f"data.csv.{ending}"
    with pa.output_stream(str(path), compression="detect") as stream:
        stream.write(PLAIN.encode())
    assert path.read_bytes() != PLAIN.encode()
    assert read_table(open_sources([str(path)])).table.to_pylist() == ROWS


def test_parquet_is_told_by_its_content(tmp_path):
    for name in ("data.parquet", "data", "data.bin"):
        pq.write_table(pa.Table.from_pylist(ROWS), tmp_path / name)
        assert read_table(open_sources([str(tmp_path / name)])).table.to_pylist() == ROWS


def test_quoted_newlines_and_delimiters_stay_in_their_cell(tmp_path):
    rows = read(tmp_path, 'a,b\n"one\ntwo, three",1\n"say ""hi""",2\n')
    assert rows == [{"a": "one\ntwo, three", "b": 1}, {"a": 'say "hi"', "b": 2}]


@pytest.mark.parametrize("mark", ["", "NA", "?", "N/A", "nan", "NULL", " ", "None"])
def test_what_means_nothing_is_missing(tmp_path, mark):
    rows = read(tmp_path, f"a,b,c\n{mark},x,1.5\n2,{mark},{mark}\n")
    assert rows == [{"a": None, "b": "x", "c": 1.5}, {"a": 2, "b": None, "c": None}]


def test_leading_zeros_make_text(tmp_path):
    rows = read(tmp_path, "zip,count\n01234,1\n99999,0\n")
    assert rows == [{"zip": "01234", "count": 1}, {"zip": "99999", "count": 0}]


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["1", "-2", "+3"], [1, -2, 3]),
        (["4611686018427387904", "4611686018427387905"], [2**62, 2**62 + 1]),
        (["1", "2.0", "1e3"], [1.0, 2.0, 1000.0]),
        (["1", "two"], ["1", "two"]),
        ([".5", "-0.25"], [0.5, -0.25]),
        (["99999999999999999999", "1"], [1e20, 1.0]),
        (["2024-01-01", "2024-01-02"], ["2024-01-01", "2024-01-02"]),
        (["True", "False"], ["True", "False"]),
        (["1,5", "2,5"], ["1,5", "2,5"]),
        (["", "NA"], [None, None]),
    ],
)
def test_columns_are_what_all_their_cells_are(tmp_path, cells, expected):
    rows = read(tmp_path, "a;b\n" + "".join(f"{cell};x\n" for cell in cells))
    assert [row["a"] for row in rows] == expected


def test_latin_letters_are_read(tmp_path):
    content = "name;wert\nMüller;1\nStraße;2\n".encode("cp1252")
    assert [row["name"] for row in read(tmp_path, content)] == ["Müller", "Straße"]
    given = read(tmp_path, content, encoding="latin-1")
    assert given == read(tmp_path, content)


def test_unnamed_columns_get_a_name(tmp_path):
    assert read(tmp_path, ",a\n0,x\n1,y\n")[1] == {"column_1": 1, "a": "y"}
    assert read(tmp_path, "1,x\n2,y\n", header=False)[0] == {"column_1": 1, "column_2": "x"}


def test_ten_thousand_columns_are_read(tmp_path):
    names = ",".join(f"c{i}" for i in range(10_000))
    row = ",".join(str(i % 7) for i in range(10_000))
    table = read(tmp_path, f"{names}\n{row}\n{row}\n")
    assert len(table) == 2
    assert table[0]["c9999"] == 9999 % 7


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("", {}, "data.csv is empty"),
        ("\n\n  \n", {}, "data.csv is empty"),
        ("a,b,c\n1,2,3\n4,5\n", {}, r"data.csv, row 3: 2 values where 3 were expected: '4,5'"),
        ("a,b\n1,2\n3,4,5\n", {}, r"data.csv, row 3: 3 values where 2"),
        ("a,b,a\n1,2,3\n", {}, "data.csv has two columns named 'a'"),
        (
            b"a,b\n" + b"1,2\n" * 100_000 + b"\xff,3\n",
            {},
            r"data.csv is not written in utf-8 \(line 100002\)",
        ),
        (b"a,b\n1,\xff\n", {"encoding": "utf-8"}, "not written in utf-8"),
        (b"a,b\n1,+2AA-x\n", {"encoding": "utf-7"}, "invalid UTF8"),  # half of a character
        (b"\x00\x01\x02\x03" * 100, {}, "no table that can be read"),
        ("a,b\n1,2\n", {"encoding": "klingon"}, "unknown encoding 'klingon'"),
        ("a,b\n1,2\n", {"delimiter": "ab"}, "a delimiter is a single character"),
        ('a,b\n"1,2\n' + "3,4\n" * 10, {}, r"data\.csv"),
    ],
    ids=[
        "nothing",
        "blank",
        "short",
        "long",
        "twice",
        "late byte",
        "byte",
        "half",
        "binary",
        "encoding",
        "delimiter",
        "quote",
    ],
)
def test_what_cannot_be_read_is_explained(tmp_path, content, options, message):
    with pytest.raises(InputError, match=message):
        read(tmp_path, content, **options)


def test_damaged_files_are_explained(tmp_path):
    (tmp_path / "a.parquet").write_bytes(b"PAR1 and nothing else")
    with pytest.raises(InputError, match=r"a\.parquet cannot be read"):
        read_table(open_sources([str(tmp_path / "a.parquet")]))
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(PLAIN.encode())[:-12])
    with pytest.raises((InputError, FileError), match=r"a\.csv\.gz"):
        read_table(open_sources([str(tmp_path / "a.csv.gz")]))
    (tmp_path / "b.csv.gz").write_bytes(b"not compressed")
    with pytest.raises((InputError, FileError), match=r"b\.csv\.gz"):
        read_table(open_sources([str(tmp_path / "b.csv.gz")]))


def test_files_folders_and_patterns(tmp_path):
    (tmp_path / "in" / "deep").mkdir(parents=True)
    for name in (
        "in/b.csv",
        "in/a.parquet",
        "in/deep/c.csv.gz",
        "in/notes.md",
        "in/.hidden.csv",
        "in/_x.csv",
    ):
        (tmp_path / name).write_text("a\n1\n")
    found = [s.path for s in open_sources([str(tmp_path / "in")])]
    assert [path.rsplit("in/")[1] for path in found] == ["a.parquet", "b.csv", "deep/c.csv.gz"]
    assert len(open_sources([str(tmp_path / "in" / "b*.csv")])) == 1
    assert len(open_sources([str(tmp_path / "in" / "**" / "*.gz")])) == 1
    (tmp_path / "a[1].csv").write_text("a\n1\n")
    assert len(open_sources([str(tmp_path / "a[1].csv")])) == 1
    for path, message in (("none.csv", "does not exist"), ("*.xyz", "matches no file")):
        with pytest.raises(FileError, match=message):
            open_sources([str(tmp_path / path)])
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileError, match="has no CSV, ARFF, Parquet or Excel files"):
        open_sources([str(tmp_path / "empty")])


def test_standard_input_is_read(monkeypatch):
    class Pipe(io.RawIOBase):
        """Gives a few bytes at a time, as pipes do."""

        content = io.BytesIO(PLAIN.encode())

        def readable(self):
            return True

        def readinto(self, room):
            part = self.content.read(min(3, len(room)))
            room[: len(part)] = part
            return len(part)

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(Pipe())))
    assert read_table(open_sources(["-"])).table.to_pylist() == ROWS


def test_large_files_come_in_batches(tmp_path):
    rows = 3 * BATCH_ROWS // 2
    pq.write_table(pa.table({"a": range(rows)}), tmp_path / "big.parquet")
    (source,) = open_sources([str(tmp_path / "big.parquet")])
    sizes = [batch.num_rows for batch in source.read()]
    assert sum(sizes) == rows
    assert max(sizes) <= BATCH_ROWS
    assert source.share == 1.0
    (tmp_path / "big.csv").write_text("a\n" + "1\n" * rows)
    (source,) = open_sources([str(tmp_path / "big.csv")])
    sizes = [batch.num_rows for batch in source.read()]
    assert sum(sizes) == rows
    assert max(sizes) <= BATCH_ROWS


@pytest.mark.parametrize("piece", [1000, 4096, 1 << 20])
def test_rows_may_be_longer_than_what_is_read_at_a_time(tmp_path, monkeypatch, piece):
    monkeypatch.setattr(utf8, "PIECE", piece)
    monkeypatch.setattr(utf8, "COLUMN_PIECE", 1)
    rows = [{"a": f"{n} " * (n % 7), "b": "two\nlines"} for n in range(20_000)]
    for n in range(0, len(rows), 999):
        rows[n] = {"a": "x" * (n % 5000), "b": '"'}
    table = pa.Table.from_pylist(rows)
    pa.csv.write_csv(table, tmp_path / "data.csv")
    (source,) = open_sources([str(tmp_path / "data.csv")], batch_rows=7000)
    for repeating in ((), ("a", "b")):
        batches = [batch for batch in source.read(repeating=repeating) if batch.num_rows]
        # The head of the file is one piece, whatever size others are.
        assert len(batches) >= 3
        assert max(batch.num_rows for batch in batches) <= 7000
        assert [row for batch in batches for row in batch.to_pylist()] == rows


def test_a_pipe_is_read_once(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    rows = 50_000
    text = "a,b\n" + "".join(f"{i},x\n" for i in range(rows))
    writer = threading.Thread(target=pipe.write_text, args=(text,))
    writer.start()
    table = read_table(open_sources([str(pipe)])).table
    writer.join()
    assert table["a"].to_pylist() == list(range(rows))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (gzip.compress(b"a,b\n1,2\n"), r"is compressed \(gzip\), not text.*zcat"),
        (b"PK\x03\x04 and so on", "is a zip archive, not text: unpack it"),
        (b"\xfd7zXZ\x00", r"is compressed \(xz\)"),
    ],
    ids=["gzip", "zip", "xz"],
)
def test_other_formats_are_named(tmp_path, content, message):
    with pytest.raises(InputError, match=message):
        read(tmp_path, content)


def test_folders_hold_more_than_data(tmp_path):
    for name in ("a.csv", "a.csv.bak", "a.csv.sha256", "b.gz", "c.csv.gz"):
        (tmp_path / name).touch()
    found = [source.path for source in open_sources([str(tmp_path)])]
    assert [path.rsplit("/")[-1] for path in found] == ["a.csv", "c.csv.gz"]


def test_names_may_be_long(tmp_path):
    names = ["a_rather_long_name_of_a_column_" * 2 + str(i) for i in range(10_000)]
    row = ",".join("1" for _ in names)
    assert len(read(tmp_path, ",".join(names) + f"\n{row}\n")[0]) == 10_000


def test_empty_lines_of_a_single_column_are_rows(tmp_path):
    assert read(tmp_path, "a\n1\n\n3\n") == [{"a": 1}, {"a": None}, {"a": 3}]


def test_files_of_other_types_are_read_together_or_explained(tmp_path):
    pq.write_table(pa.table({"a": pa.array([1], pa.int32())}), tmp_path / "a.parquet")
    (tmp_path / "b.csv").write_text("a\n2\n")
    assert read_table(open_sources([str(tmp_path)])).table["a"].to_pylist() == [1, 2]
    (tmp_path / "c.csv").write_text("a\nx\n")
    with pytest.raises(InputError, match="do not fit together"):
        read_table(open_sources([str(tmp_path)]))


def test_views_of_text_are_text(tmp_path):
    pq.write_table(pa.table({"a": pa.array(["x", "y"], pa.string_view())}), tmp_path / "v.parquet")
    (source,) = open_sources([str(tmp_path / "v.parquet")])
    assert read_table([source]).table.schema.field("a").type == "string"


def test_only_the_columns_wanted_are_read(tmp_path):
    (tmp_path / "data.csv").write_text(PLAIN)
    (source,) = open_sources([str(tmp_path / "data.csv")])
    batches = list(source.read(lambda names: [names[2], names[0]]))
    assert all(batch.column_names == ["size", "id"] for batch in batches)


def test_types_of_kept_columns_fit_all_files(tmp_path):
    pq.write_table(pa.table({"id": [7], "n": pa.array([1], pa.int32())}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"id": ["007"], "n": [2**40]}), tmp_path / "b.parquet")
    pq.write_table(pa.table({"id": pa.nulls(1), "n": [3]}), tmp_path / "c.parquet")
    sources = open_sources([str(tmp_path)])
    assert unify_types(sources, ["id", "n"]) == {"id": pa.string(), "n": pa.int64()}
    (tmp_path / "d.csv").write_text("id,n\n1,2\n")
    sources = open_sources([str(tmp_path)])
    assert unify_types(sources, ["n"]) == {"n": pa.string()}
    pq.write_table(pa.table({"n": [[1]]}), tmp_path / "e.parquet")
    with pytest.raises(InputError, match=r"column 'n' is .* in different files"):
        unify_types(open_sources([str(tmp_path)]), ["n"])


def test_whole_numbers_and_others_are_kept_as_text(tmp_path):
    pq.write_table(pa.table({"id": [2**60 + 1]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"id": [1.5]}), tmp_path / "b.parquet")
    assert unify_types(open_sources([str(tmp_path)]), ["id"]) == {"id": pa.string()}


def test_a_file_is_found_from_another_folder_by_whoever_it_is_sent_to(tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "rows.csv").write_text("a,b\n1,2\n")
    monkeypatch.chdir(tmp_path / "here")
    (source,) = open_sources(["rows.csv"], CsvOptions())
    sent = pickle.dumps(source)
    monkeypatch.chdir(tmp_path)
    found = pickle.loads(sent)  # noqa: S301
    assert found.name == "rows.csv"
    assert sum(table.num_rows for table in found.read()) == 1


@pytest.mark.parametrize("name", ["data.csv", "data.parquet"])
def test_words_that_repeat_come_as_dictionaries(tmp_path, name):
    table = pa.table(
        {"word": ["a", "bb", "", "a"] * 5, "other": ["1", "é", "2", "2"] * 5, "id": range(20)}
    )
    path = tmp_path / name
    if name.endswith("csv"):
        pa.csv.write_csv(table, path)
        table = table.set_column(2, "id", table["id"].cast(pa.string()))
    else:
        pq.write_table(table, path, row_group_size=7)
    (source,) = open_sources([str(path)], batch_rows=6)
    batches = [b for b in source.read(repeating={"word", "id", "none"}) if b.num_rows]
    assert len(batches) > 3
    assert all(pa.types.is_dictionary(batch.schema.field("word").type) for batch in batches)
    assert not any(pa.types.is_dictionary(batch.schema.field("other").type) for batch in batches)
    assert [row for batch in batches for row in batch.to_pylist()] == table.to_pylist()


def test_decimals_are_mended_in_words_that_repeat(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("a;b\n1,5;x\n2,5;y\n")
    (source,) = open_sources([str(path)], CsvOptions(decimal=","))
    batches = [batch for batch in source.read(repeating={"a", "b"}) if batch.num_rows]
    assert batches[0]["a"].to_pylist() == ["1.5", "2.5"]
