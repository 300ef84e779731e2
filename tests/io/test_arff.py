"""ARFF is read strictly: what it declares is what comes out, and what is wrong has a line."""

import gzip
import io
import sys

import pyarrow as pa
import pytest

from robustq.exceptions import InputError
from robustq.io import CsvOptions, open_sources, read_table

PLAIN = r"""% A comment
@RELATION 'my data'

@attribute colour {red, 'light blue', '\'(-inf-3]\'', NA}
@attribute "the size" numeric
@ATTRIBUTE n integer
@attribute note string
@attribute class {yes,no}

@data
red, 2.5, 7, 'it\'s, so', yes
% another comment
'light blue',?,-1,"what?",no

'\'(-inf-3]\'' , 1e3, ?, ?, yes
NA,0,3,word,?
"""
ROWS = [
    {"colour": "red", "the size": 2.5, "n": 7, "note": "it's, so", "class": "yes"},
    {"colour": "light blue", "the size": None, "n": -1, "note": "what?", "class": "no"},
    {"colour": "'(-inf-3]'", "the size": 1000.0, "n": None, "note": None, "class": "yes"},
    {"colour": "NA", "the size": 0.0, "n": 3, "note": "word", "class": None},
]


def read(tmp_path, text, name="data.arff", **options):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_table(open_sources([str(path)], CsvOptions(**options))).table


@pytest.mark.parametrize("name", ["data.arff", "data.txt", "data", "data.csv"])
def test_it_is_told_by_its_content(tmp_path, name):
    assert read(tmp_path, PLAIN, name).to_pylist() == ROWS


@pytest.mark.parametrize(
    "content",
    [
        "\ufeff" + PLAIN,
        PLAIN.replace("\n", "\r\n"),
        PLAIN.rstrip("\n"),
        PLAIN.replace("@data", "@DATA"),
    ],
    ids=["bom", "crlf", "no end", "case"],
)
def test_however_it_is_written_it_is_the_same_table(tmp_path, content):
    assert read(tmp_path, content).to_pylist() == ROWS


def test_types_are_those_declared(tmp_path):
    table = read(tmp_path, PLAIN)
    kinds = [pa.dictionary(pa.int32(), pa.string()), pa.float64(), pa.int64(), pa.string()]
    assert table.schema.types[:4] == kinds
    declared = table["colour"].chunk(0).dictionary.to_pylist()
    assert declared == ["red", "light blue", "'(-inf-3]'", "NA"]


def test_compressed_and_piped(tmp_path, monkeypatch):
    path = tmp_path / "data.arff.gz"
    path.write_bytes(gzip.compress(PLAIN.encode()))
    assert read_table(open_sources([str(path)])).table.to_pylist() == ROWS
    assert read_table(open_sources([str(tmp_path)])).table.to_pylist() == ROWS
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(PLAIN.encode())))
    assert read_table(open_sources(["-"])).table.to_pylist() == ROWS


def test_names_types_and_some_columns(tmp_path):
    (tmp_path / "data.arff").write_text(PLAIN)
    (source,) = open_sources([str(tmp_path / "data.arff")])
    assert source.names() == ("colour", "the size", "n", "note", "class")
    assert source.types(["class", "n"]) == [pa.string(), pa.int64()]
    parts = list(source.read(lambda _: ["n", "colour"]))
    assert pa.concat_tables(parts).column_names == ["n", "colour"]
    assert source.share == 1.0


def test_another_encoding(tmp_path):
    text = "@relation r\n@attribute a {gr\u00fcn,rot}\n@data\ngr\u00fcn\n"
    assert read(tmp_path, text.encode("cp1252")).to_pylist() == [{"a": "gr\u00fcn"}]
    with pytest.raises(InputError, match="--encoding"):
        read(tmp_path, text.encode("cp1252"), encoding="utf-8")


HEAD = "@relation r\n@attribute a {x,y}\n@attribute b numeric\n"
WRONG = {
    "line 5, column 'a': 'z' is none of its declared values": HEAD + "@data\nz,1\n",
    "line 5, column 'b': 'one' is no number": HEAD + "@data\nx,one\n",
    "column 'b': 'nan' is no number": HEAD + "@data\nx,nan\n",
    "column 'b': '1_0' is no number": HEAD + "@data\nx,1_0\n",
    "3 values where 2 are declared": HEAD + "@data\nx,1,2\n",
    "1 values where 2 are declared": HEAD + "@data\nx\n",
    "sparse row": HEAD + "@data\n{0 x}\n",
    "must be quoted": HEAD + "@data\nx,\n",
    "a quote is left open": HEAD + "@data\n'x,1\n",
    "goes on after a quoted value": HEAD + "@data\n'x'y,1\n",
    "line 4: no part of a header": HEAD + "x,1\n",
    "ends before @data": HEAD,
    "declared as 'date": "@relation r\n@attribute a date yyyy\n@data\n",
    "declared as 'relational'": "@relation r\n@attribute a relational\n@data\n",
    "is declared twice": "@relation r\n@attribute a {x,x}\n@data\nx\n",
    "two columns named 'a'": "@relation r\n@attribute a real\n@attribute a real\n@data\n1,2\n",
    "has no name": "@relation r\n@attribute {x}\n@data\nx\n",
    "is no whole number": "@relation r\n@attribute a integer\n@data\n1.5\n",
    "longer than": "@relation r\n@attribute a string\n@data\n" + "x" * (1 << 23) + "\n",
}


@pytest.mark.parametrize("words", WRONG)
def test_what_is_wrong_is_said_with_its_line(tmp_path, words):
    with pytest.raises(InputError) as told:
        read(tmp_path, WRONG[words])
    assert words in str(told.value)
    assert "data.arff" in str(told.value)
