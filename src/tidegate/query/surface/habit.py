"""Advice for names from other libraries, which users type from habit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tidegate.errors import NoAttributeError, near
from tidegate.query.surface.advice import Advice, read_advice


def _table(text: str) -> dict[str, Advice]:
    """A table of advice by name; one entry may be about several names."""
    return {name: entry for entry in read_advice(text) for name in entry.about.split()}


STREAM = _table("""
group_by groupBy groupby rollup cube pivot ::
    groups are made in a window. Write .window("15 minutes").group_by("route").agg(n=count()).
agg aggregate count sum mean avg min max describe n_unique nunique ::
    an aggregate needs a window. Write .window("15 minutes").agg(n=count()).
partition ::
    a partitioner is chosen before the aggregates. Write .window("15
    minutes").group_by("route").partition("cam").agg(n=count()).
rolling resample groupby_dynamic group_by_dynamic tumble hop window_all ::
    windows are made by window(). Write .window("15 minutes", slide="5 minutes").
withColumn withColumns with_column assign mutate insert eval ::
    columns are added by with_columns(). Write .with_columns(half=col("fare") / 2).
withColumnRenamed withColumnsRenamed ::
    columns are renamed by rename(). Write .rename(fare="price").
dropna drop_nulls na :: rows are chosen by where(). Write .where(col("fare").is_not_null()).
fillna fill_null :: use COALESCE. Write .with_columns(fare=call("coalesce", "fare", 0)).
selectExpr select_expr :: SQL text goes into expr(). Write .select(expr("fare / 2").alias("half")).
query :: conditions go into where(). Write .where(col("fare") > 5), or .where(expr("fare > 5")).
show head take first to_dicts to_list toPylist to_pylist display print tail sample fetch glimpse \
iloc loc values toLocalIterator ::
    a stream has no last row to wait for. Write .preview(10) to see the first rows.
collect toPandas toArrow fetchall fetchdf fetchnumpy ::
    all rows of a bounded stream are given as a table. Write .to_pandas(), .to_polars() or
    .to_arrow().
orderBy sort sort_values sort_by sortBy sortWithinPartitions ::
    rows are in the order of event time; those of a window are ordered by order_by(). Write
    .order_by("fare", descending=True) after agg().
nlargest nsmallest ::
    the first rows of a window are taken by top(). Write .top(10, by="fare") after agg().
writeStream write writeTo to_csv to_parquet to_json write_csv write_parquet sink_parquet save \
insertInto sink to foreach foreachBatch run execute ::
    results go to a sink when the query is started. Write .start(sink="out") for files in a folder
    out, or sink=tg.sink.memory().
printSchema dtypes info collect_schema ::
    types are in schema. Write .schema, or .columns for the names.
shape size index ::
    a stream has no last row, so it cannot be counted as a whole. Write .schema, or .preview(10).
unionAll unionByName concat append vstack extend ::
    streams are put together by union(). Write .union(other).
merge joinWhere join_where crossJoin crossjoin ::
    streams are joined by join(), within a time. Write .join(other, within="5 minutes",
    on=left.route == right.route).
merge_asof asof asof_join joinAsOf ::
    the nearest tuple in time is found by join_asof(). Write .join_asof(other, on="route").
distinct dropDuplicates unique dropDuplicatesWithinWatermark ::
    rows are made distinct within a time, or in a window. Write .drop_duplicates("route",
    within="1 hour"), or .window("15 minutes").group_by("route").agg().
withWatermark with_watermark assign_timestamps_and_watermarks ::
    how far rows may be out of order is said where the stream is made. Write session.stream(source,
    time="ts", disorder="10 seconds").
map flat_map flatMap map_batches mapInPandas mapInArrow apply applyInPandas pipe rdd key_by ::
    rows go through a class of your own by process(). Write .process(MyProcess), with a class
    derived from tg.Process.
createOrReplaceTempView createTempView registerTempTable ::
    SQL is given its streams by name. Write session.sql("SELECT ...", rides=stream).
cache persist unpersist checkpoint repartition coalesce ::
    the session decides how a query is run. Leave it out; start(checkpoint=..., instances=...) says
    where and how wide.
isStreaming :: everything here is a stream. Leave it out.
""")
"""Names that users expect on a stream."""

EXPRESSION = _table("""
isNull isnull isna is_na :: the test for NULL is is_null(). Write .is_null().
isNotNull notnull notna not_null :: the test is is_not_null(). Write .is_not_null().
is_in isIn in_ In :: membership is isin(). Write .isin("a", "b").
fillna fill_null fill_nan :: use COALESCE. Write call("coalesce", "fare", 0).
astype as_type :: types are changed by cast(). Write .cast("double").
name as_ label :: columns are named by alias(). Write .alias("half").
sum mean avg min max count first last std stddev var variance median quantile n_unique nunique \
any all mode product ::
    aggregates are functions of their own. Write tg.sum("fare") inside .window("15
    minutes").agg(...).
when then otherwise ::
    conditions begin with when(). Write tg.when(col("fare") > 5, "high").otherwise("low").
desc asc desc_nulls_last asc_nulls_last ::
    the direction is said to order_by(). Write .order_by("fare", descending=True).
over shift diff lag cum_sum cumsum rolling pct_change rank rolling_mean rolling_sum ::
    rows before are seen by over() of the stream. Write .over("route", before=lag("fare"),
    so_far=sum("fare")), or with rows=5 for the last ones.
lead ::
    rows after are seen by over() of the stream. Write .over("route", after=lead("fare")).
str dt ::
    functions of text and of times are called by their SQL names. Write call("upper", "route"),
    call("hour", "ts").
apply map map_elements ::
    a function of rows is a class of its own. Write .process(MyProcess) on the stream, or call() for
    SQL functions.
getItem getField get_field field :: fields are written as in SQL. Write expr("place.city").
rlike str_contains :: it is written as in SQL. Write expr("route RLIKE '^a'").
substr :: it is called by its SQL name. Write call("substring", "route", 1, 3).
""")
"""Names that users expect on an expression."""

AGGREGATE = _table("""
alias name as_ :: is named in agg(). Write .agg(total=sum("fare")).
over :: it is a method of streams. Write .over("route", total=sum("fare")).
filter where ::
    rows are chosen before the window, or by a condition. Write .agg(dear=count_if(col("fare") >
    5)).
""")
"""Names that users expect on an aggregate."""

WINDOWED = _table("""
groupBy groupby by keyBy key_by partition_by ::
    groups are made by group_by(). Write .window("15 minutes").group_by("route").agg(n=count()).
window over tumble hop ::
    a stream has one window at a time. Leave one out, or write the second after agg().
where filter having ::
    rows are chosen before the window, or after agg(). Write .where(...).window("15
    minutes").agg(...), or .having(...) after agg().
aggregate apply count sum mean avg min max size reduce ::
    aggregates are made by agg(). Write .window("15 minutes").agg(n=count(), total=sum("fare")).
with_columns drop rename limit ::
    columns are made before the window, or after agg(). Write .with_columns(...).window("15
    minutes").agg(...).
""")
"""Names that users expect on a window."""

AFTER_AGG = (
    "Compute with the results: "
    '.agg(total=sum("fare"), n=count()).select("*", each=col("total") / col("n")).'
)


def stranger(
    where: str,
    name: str,
    table: Mapping[str, Advice],
    known: Iterable[str],
    otherwise: str | None = None,
) -> NoAttributeError:
    """The error for an unknown attribute: advice from the table, or similar names."""
    if name in table:
        return NoAttributeError(where, table[name].why, f".{name}", table[name].remedy)
    remedy = otherwise or near(name, sorted(n for n in known if not n.startswith("_")))
    return NoAttributeError(where, "has nothing of this name", f".{name}", remedy)
