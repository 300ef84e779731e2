"""polars and DuckDB: rows pass through in batches, scores are those of the plain scorer."""

import warnings

import pyarrow as pa
import pytest

from robustq.engines import duckdb as duckdb_engine
from robustq.engines import polars as polars_engine
from robustq.exceptions import InputError, UnknownValueWarning

from .tables import KEY, UNKNOWN, flatten, make_table, save_model, score_plainly


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return save_model(tmp_path_factory.mktemp("models"))


def hear(work):
    """Return what work gives, and what is said."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = work()
    return found, [one.message.counts for one in said if one.category is UnknownValueWarning]


def as_arrow(frame):
    polars = pytest.importorskip("polars")
    table = frame.to_arrow(compat_level=polars.CompatLevel.oldest())
    return flatten(table).cast(flatten(table).schema)


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_a_lazy_frame_of_polars_is_scored_in_its_order(path, engine):
    polars = pytest.importorskip("polars")
    scored = polars_engine.score(polars.from_arrow(make_table()).lazy(), path, keep=[KEY])
    found, said = hear(lambda: scored.collect(engine=engine))
    assert as_arrow(found).equals(score_plainly(path))
    assert said == [UNKNOWN]
    assert scored.collect_schema() == found.schema


def test_categories_of_polars_are_values(path):
    polars = pytest.importorskip("polars")
    frame = polars.from_arrow(make_table())
    for kind in (polars.Categorical, polars.Enum(["mauve", "blue", "green", "red"])):
        given = frame.with_columns(polars.col("colour").cast(kind)).lazy()
        found, said = hear(polars_engine.score(given, path, keep=[KEY]).collect)
        assert as_arrow(found).equals(score_plainly(path))
        assert said == [UNKNOWN]


def test_polars_asks_for_less(path, tmp_path):
    polars = pytest.importorskip("polars")
    known = score_plainly(path)
    polars.from_arrow(make_table()).write_parquet(tmp_path / "rows.parquet")
    lazy = polars.scan_parquet(tmp_path / "rows.parquet")
    scored = polars_engine.score(lazy, path, keep=[KEY])
    few, _ = hear(lambda: scored.filter(polars.col(KEY) < 7).select(KEY, "prediction").collect())
    assert few["prediction"].cast(polars.String).to_list() == known["prediction"].to_pylist()[:7]
    first, said = hear(lambda: scored.head(3).collect())
    assert as_arrow(first).equals(known.slice(0, 3))
    assert not said
    hear(lambda: scored.sink_parquet(tmp_path / "scored.parquet"))
    assert as_arrow(polars.read_parquet(tmp_path / "scored.parquet")).equals(known)


def test_polars_gives_no_rows_for_none(path):
    polars = pytest.importorskip("polars")
    empty = polars.from_arrow(make_table()).head(0)
    scored = polars_engine.score(empty, path, keep=[KEY])
    assert scored.collect().shape == (0, 10)
    with pytest.raises(InputError, match="the frame has no column 'name'"):
        polars_engine.score(empty, path, keep=["name"])


def test_a_relation_of_duckdb_is_scored_in_its_order(path):
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    rows = make_table()
    relation = connection.from_arrow(rows)
    reader = duckdb_engine.score(relation, path, keep=[KEY])
    assert isinstance(reader, pa.RecordBatchReader)
    found, said = hear(reader.read_all)
    assert found.schema.equals(reader.schema)
    assert flatten(found).equals(score_plainly(path, rows))
    assert said == [UNKNOWN]


def test_enums_of_duckdb_are_values(path):
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    connection.register("rows", make_table())
    kind = "ENUM ('mauve', 'blue', 'green', 'red')"
    relation = connection.sql(f"SELECT * REPLACE (colour::{kind} AS colour) FROM rows ORDER BY id")  # noqa: S608
    found, said = hear(duckdb_engine.score(relation, path, keep=[KEY]).read_all)
    assert flatten(found).equals(score_plainly(path))
    assert said == [UNKNOWN]


def test_duckdb_queries_the_stream(path):
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    relation = connection.from_arrow(make_table())
    stream = connection.cursor().from_arrow(duckdb_engine.score(relation, path))
    counts = "prediction::VARCHAR, count(*)"
    found, _ = hear(lambda: dict(stream.aggregate(counts).fetchall()))
    known = score_plainly(path)["prediction"].value_counts().to_pylist()
    assert found == {one["values"]: one["counts"] for one in known}
    empty = duckdb_engine.score(relation.limit(0), path, keep=[KEY])
    assert empty.read_all().num_rows == 0
