"""Plain CSV, cut by a kernel: the same rows as Arrow reads, and the same errors."""

import itertools

import numpy as np
import pyarrow as pa
import pytest

from robustq.exceptions import InputError
from robustq.io import CsvOptions, cells, open_sources, sources, utf8
from robustq.tables import words

NAMES = ["a", "b", "c"]
EVERY = [*NAMES, "column_1", "column_2", "column_3"]  # the names of those that have none


@pytest.fixture
def _tried_at_once(monkeypatch):
    monkeypatch.setattr(cells, "LEAST_BYTES", 0)
    monkeypatch.setattr(cells, "LEAST_ROWS", 0)
    monkeypatch.setattr(cells, "ROOM", 10)
    monkeypatch.setattr(sources, "SAMPLE", 300)
    monkeypatch.setattr(utf8, "PIECE", 300)
    monkeypatch.setattr(utf8, "COLUMN_PIECE", 1)


def read(path, *, batch_rows=50, repeating=("a",), wanted=None, **options):
    """Return all rows, and how many each batch has; or what is wrong."""
    (source,) = open_sources([str(path)], CsvOptions(**options), batch_rows)
    choose = None if wanted is None else lambda _: wanted
    try:
        tables = list(source.read(choose, frozenset(repeating)))
    except InputError as error:
        return str(error)
    assert len({str(table.schema) for table in tables}) == 1
    for table in tables:
        table.validate(full=True)
    rows = [row for table in tables for row in table.to_pylist()]
    return rows, tables[0].schema, [table.num_rows for table in tables if table.num_rows]


def compare(monkeypatch, path, content, **settings):
    """Read a text both ways; return what is found."""
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    found = read(path, **settings)
    with monkeypatch.context() as patch:
        patch.setattr(cells, "LEAST_BYTES", 1 << 60)
        expected = read(path, **settings)
    if isinstance(expected, str):
        assert found == expected
    else:
        assert found[:2] == expected[:2]
    return found


def watch(monkeypatch):
    """Return where is noted which texts were plain to their end, and after how many rows not."""
    noted = []
    original = cells.PlainCells.read

    def note(self, *given, **named):
        yield from original(self, *given, **named)
        noted.append((self.is_done, self.rows))

    monkeypatch.setattr(cells.PlainCells, "read", note)
    return noted


def write_rows(rng, rows, cells_of=lambda rng: "x" * rng.integers(0, 12)):
    lines = [",".join(NAMES)]
    lines += [",".join(cells_of(rng) for _ in NAMES) for _ in range(rows)]
    return "\n".join(lines) + "\n"


@pytest.mark.usefixtures("_tried_at_once")
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("quoted", [False, True])
@pytest.mark.parametrize("last", [True, False])
def test_plain_text_is_read_to_its_end(tmp_path, monkeypatch, end, quoted, last):
    rng = np.random.default_rng(0)
    known = ["", "é", "1.5", "12345678", "a longer word", "NA"]
    content = write_rows(rng, 500, lambda rng: rng.choice(known))
    if quoted:
        content = "\n".join(
            ",".join(f'"{cell}"' if n % 3 else cell for n, cell in enumerate(line.split(",")))
            for line in content.splitlines()
        )
    content = content.strip("\n").replace("\n", end) + end * last
    noted = watch(monkeypatch)
    for repeating, batch_rows in itertools.product([("a",), ("b", "c"), NAMES], [1, 50, 10**12]):
        given = {"repeating": repeating, "batch_rows": batch_rows}
        found = compare(monkeypatch, tmp_path / "t.csv", content, **given)
        assert len(found[0]) == 500
        assert found[2][:-1] == [batch_rows] * (len(found[2]) - 1)
    assert set(noted) == {(True, 501)}


PLAIN_ROWS = "x,y,z\n" * 200


@pytest.mark.usefixtures("_tried_at_once")
@pytest.mark.parametrize(
    "row",
    [
        '"x, y",y,z',
        '"two\nlines",y,z',
        '"a ""word""",y,z',
        '"a"",""b",y,z',
        'x"y,y,z',
        '"",",",","',
        '"x"y,y,z',
        '",",y,z',
        '""",""",y,z',
        "",
        "x,y",
        "x,y,z,more",
        '"never ended,y,z',
        "x\ry,y,z",
        "x,y,z\r",
        'x,y,"\r',
        "x,y,\rz",
    ],
)
@pytest.mark.parametrize("before", ["", PLAIN_ROWS])
@pytest.mark.parametrize("header", [False, True])
def test_what_is_not_plain_is_left_to_arrow(tmp_path, monkeypatch, row, before, header):
    noted = watch(monkeypatch)
    content = "a,b,c\n" * header + before + row + "\n" + PLAIN_ROWS
    compare(monkeypatch, tmp_path / "t.csv", content, header=header, repeating=EVERY[1:4])
    found = compare(
        monkeypatch, tmp_path / "t.csv", content, header=header, repeating=EVERY, batch_rows=7
    )
    assert isinstance(found, tuple) or "t.csv" in found
    if before:
        assert noted
        assert all(0 < rows < 201 + header for is_done, rows in noted if not is_done)


@pytest.mark.usefixtures("_tried_at_once")
def test_a_header_that_is_not_plain_is_left_to_arrow(tmp_path, monkeypatch):
    noted = watch(monkeypatch)
    content = '"a ""word""",b,"c\nd"\n' + PLAIN_ROWS
    found = compare(monkeypatch, tmp_path / "t.csv", content, repeating=["b"])
    assert noted == [(False, 0)]
    assert list(found[0][0]) == ['a "word"', "b", "c\nd"]


@pytest.mark.usefixtures("_tried_at_once")
@pytest.mark.parametrize("seed", range(30))
def test_random_text_is_read_as_arrow_reads_it(tmp_path, monkeypatch, seed):
    rng = np.random.default_rng(seed)
    parts = ["x", "yy", "é", " ", '"', '""', ",", "\n", "\r\n", "\r", "word", "1" * 9, "\0"]
    odds = np.r_[[1.0, 1.0, 1.0, 1.0], np.full(9, [0.0, 0.02, 0.3][seed % 3])]
    odds[10:12] = 1.0

    def cell(rng):
        inner = "".join(rng.choice(parts, rng.integers(0, 4), p=odds / odds.sum()))
        return f'"{inner}"' if rng.random() < 0.3 else inner

    content = write_rows(rng, 150, cell)
    for header in (False, True):
        settings = {"header": header, "delimiter": ",", "repeating": ["b", "column_2"]}
        compare(monkeypatch, tmp_path / "t.csv", content, **settings)


@pytest.mark.usefixtures("_tried_at_once")
@pytest.mark.parametrize("wanted", [["c"], ["c", "a"], ["b", "c", "a"]])
def test_columns_come_in_the_order_in_which_they_are_wanted(tmp_path, monkeypatch, wanted):
    content = "a,b,c\n" + "".join(f"{n % 3},{n},{n % 5}\n" for n in range(300))
    found = compare(monkeypatch, tmp_path / "t.csv", content, wanted=wanted, repeating=["a", "c"])
    assert found[1].names == wanted
    row = {"a": "1", "b": "7", "c": "2"}
    assert found[0][7] == {name: row[name] for name in wanted}


@pytest.mark.usefixtures("_tried_at_once")
@pytest.mark.parametrize("limit", ["MOST_WORDS", "MOST_BYTES"])
def test_where_words_hardly_repeat_arrow_goes_on(tmp_path, monkeypatch, limit):
    monkeypatch.setattr(words, limit, {"MOST_WORDS": 100, "MOST_BYTES": 1000}[limit])
    noted = watch(monkeypatch)
    content = "a,b,c\n" + "".join(f"word {n},{n},{n % 5}\n" for n in range(400))
    found = compare(monkeypatch, tmp_path / "t.csv", content, batch_rows=30)
    assert [row["b"] for row in found[0]] == [str(n) for n in range(400)]
    ((is_done, rows),) = noted
    assert not is_done
    assert 30 < rows < 150


@pytest.mark.usefixtures("_tried_at_once")
def test_rows_may_be_longer_than_pieces(tmp_path, monkeypatch):
    noted = watch(monkeypatch)
    content = "a,b,c\n" + "".join(f"{'x' * (n % 5) * 300},{n},{n % 5}\n" for n in range(100))
    compare(monkeypatch, tmp_path / "t.csv", content)
    assert noted == [(True, 101)]


@pytest.mark.usefixtures("_tried_at_once")
def test_decimals_are_mended_in_plain_text(tmp_path, monkeypatch):
    content = "a;b\n" + "1,5;x\n2,5;y\n" * 100
    found = compare(monkeypatch, tmp_path / "t.csv", content, decimal=",")
    assert found[0][:2] == [{"a": "1.5", "b": "x"}, {"a": "2.5", "b": "y"}]


@pytest.mark.usefixtures("_tried_at_once")
def test_a_file_in_another_encoding_is_told_by_its_line(tmp_path, monkeypatch):
    content = b"a,b,c\n" + b"x,y,z\n" * 100_000 + b"\xff,y,z\n"
    found = compare(monkeypatch, tmp_path / "t.csv", content, encoding="utf-8")
    assert "line 100002" in found


def test_small_files_and_batches_and_single_columns_are_left_to_arrow():
    size, rows = cells.LEAST_BYTES, cells.LEAST_ROWS
    assert cells.is_worth_it(size, 2, rows)
    assert not cells.is_worth_it(size - 1, 2, rows)
    assert not cells.is_worth_it(size, 2, rows - 1)
    assert not cells.is_worth_it(size, 1, rows)
    assert not cells.is_worth_it(size, 10**4, rows)


@pytest.mark.usefixtures("_tried_at_once")
def test_mere_numbers_and_unknown_columns_are_left_to_arrow(tmp_path, monkeypatch):
    noted = watch(monkeypatch)
    for wanted in (["b", "c"], ["a", "d"]):
        compare(monkeypatch, tmp_path / "t.csv", "a,b,c\n" + PLAIN_ROWS, wanted=wanted)
    assert noted == []


@pytest.mark.usefixtures("_tried_at_once")
@pytest.mark.parametrize("columns", [3, 1000])
def test_rows_of_empty_cells_may_be_too_short(tmp_path, monkeypatch, columns):
    full, short = "," * (columns - 1) + "\n", "," * (columns - 2) + "\n"
    settings = {"header": False, "delimiter": ",", "repeating": ["column_1"]}
    for before in (1, 50):
        found = compare(
            monkeypatch, tmp_path / "t.csv", "x" + full + before * full + short, **settings
        )
        assert f"row {before + 2}: {columns - 1} values where {columns} were expected" in found


@pytest.mark.usefixtures("_tried_at_once")
@pytest.mark.parametrize("header", [False, True])
@pytest.mark.parametrize("marks", [1, 2])
@pytest.mark.parametrize("row", ["x,y,z", '"x, y",y,z'])
def test_a_mark_of_its_encoding_is_no_part_of_a_text(tmp_path, monkeypatch, header, marks, row):
    content = "\ufeff" * marks + "a,b,c\n" + PLAIN_ROWS + "\ufeff" + row + "\n" + PLAIN_ROWS
    for encoding in (None, "utf-8", "utf-8-sig"):
        settings = {"header": header, "encoding": encoding, "delimiter": ","}
        compare(monkeypatch, tmp_path / "t.csv", content, repeating=["a", "column_1"], **settings)


@pytest.mark.slow
@pytest.mark.parametrize("columns", [150, 1000])
def test_what_is_given_back_is_read_in_pieces_as_it_came(tmp_path, monkeypatch, columns):
    monkeypatch.setattr(cells, "LEAST_BYTES", 0)
    rng = np.random.default_rng(columns)
    names = [f"c{i}" for i in range(columns)]
    rows = (
        ",".join(map(str, rng.integers(0, 10**9, columns))) for _ in range(2 * 10**6 // columns)
    )
    lines = ["w," + ",".join(names), *(f"{n % 7},{row}" for n, row in enumerate(rows))]
    lines[-5] = '"a, b"' + lines[-5][1:]
    noted = watch(monkeypatch)
    path, content = tmp_path / "t.csv", "\n".join(lines)
    found = compare(
        monkeypatch, path, content, repeating=["w"], wanted=["w", "c1"], batch_rows=5000
    )
    assert len(found[0]) == len(lines) - 1
    ((is_done, before),) = noted
    assert not is_done
    assert before > 0


def test_text_and_dictionaries_hold_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(cells, "LEAST_BYTES", 0)
    monkeypatch.setattr(cells, "LEAST_ROWS", 0)
    path = tmp_path / "t.csv"
    path.write_text("a,b,c\n" + "".join(f"{n % 7},{n % 11},\n" for n in range(20_000)))
    as_words, as_text = read(path, repeating=NAMES), read(path, repeating=())
    assert as_words[0] == as_text[0]
    assert all(pa.types.is_dictionary(kind) for kind in as_words[1].types)
    assert all(pa.types.is_string(kind) for kind in as_text[1].types)
