"""Mistakes in what streams read, each with the whole line that is said."""

from __future__ import annotations

from tests.cli.mistake.kind import RIDES, Mistake

MISTAKES = {
    "file missing": Mistake(
        message=(
            "stream rides, missing.csv: the file or folder must be there; got nothing at "
            "missing.csv. Did you mean rides.csv? The current folder holds empty, q.sql, "
            "rides.csv."
        ),
        options=("--stream", "rides=missing.csv"),
    ),
    "file misspelt": Mistake(
        message=(
            "stream rides, ride.csv: the file or folder must be there; got nothing at "
            "ride.csv. Did you mean rides.csv? The current folder holds empty, q.sql, "
            "rides.csv."
        ),
        options=("--stream", "rides=ride.csv"),
    ),
    "folder missing": Mistake(
        message=(
            "stream rides, data/rides.csv: the file or folder must be there; got nothing at "
            "data/rides.csv. There is no folder data."
        ),
        options=("--stream", "rides=data/rides.csv"),
    ),
    "folder empty": Mistake(
        message=(
            "stream rides, empty: the folder must hold a file at least; got none in empty. "
            "Names must end in .parquet, .csv, .json, .jsonl, .ndjson, .orc, and not begin with "
            ". or _."
        ),
        options=("--stream", "rides=empty"),
    ),
    "glob without match": Mistake(
        message=(
            "stream rides, *.parquet: the glob must match a file at least; got none for "
            "*.parquet. Names must end in .parquet, .csv, .json, .jsonl, .ndjson, .orc, and not "
            "begin with . or _."
        ),
        options=("--stream", "rides=*.parquet"),
    ),
    "folder of mixed formats": Mistake(
        message=(
            "stream rides, mixed: all files must be of one format; got mixed/a.csv and "
            "mixed/b.json. Name the ones you mean with a glob, as *.json."
        ),
        options=("--stream", "rides=mixed"),
        files={"mixed/a.csv": "ts,v\n2024-01-01,1\n", "mixed/b.json": "{}\n"},
    ),
    "file without extension": Mistake(
        message=(
            "stream rides, rides: a file's name must end in .parquet, .csv, .json, .jsonl, "
            ".ndjson, .orc; got rides. Rename it to say its format."
        ),
        options=("--stream", "rides=rides"),
        files={"rides": "x"},
    ),
    "file packed": Mistake(
        message=(
            "stream rides, rides.csv.xz: a file's name must end in .parquet, .csv, .json, "
            ".jsonl, .ndjson, .orc; got rides.csv.xz. Unpack it first: only text is read as it is "
            "from .gz, .zst and .bz2."
        ),
        options=("--stream", "rides=rides.csv.xz"),
        files={"rides.csv.xz": "x"},
    ),
    "parquet damaged": Mistake(
        message=(
            "stream rides, bad.parquet: the file must be a whole, readable Parquet file; got "
            "{words}. Write it again, or leave it out."
        ),
        options=("--stream", "rides=bad.parquet"),
        files={"bad.parquet": "not parquet"},
    ),
    "json is an array": Mistake(
        message=(
            "stream rides, bad.json: each line must be one JSON object; got a JSON array. "
            "Write one object per line, for an array with: jq -c '.[]' FILE."
        ),
        options=("--stream", "rides=bad.json"),
        files={"bad.json": '[{"ts": 1}]\n'},
    ),
    "json empty": Mistake(
        message=(
            "stream rides, bad.json: a row must be there to tell the columns from; got an "
            "empty file bad.json. Write a first row, then start."
        ),
        options=("--stream", "rides=bad.json"),
        files={"bad.json": ""},
    ),
    "csv empty": Mistake(
        message=(
            "stream rides, none.csv: a header line must be there; got an empty file none.csv. "
            "Write a first row, then start."
        ),
        options=("--stream", "rides=none.csv"),
        files={"none.csv": ""},
    ),
    "csv no header": Mistake(
        message=(
            "stream rides, head.csv: the first line must be the header with the columns' "
            "names; got 2024-01-01T00:00:01Z as a name. Write the columns' names above the rows, "
            "or say OPTIONS (header false)."
        ),
        options=("--stream", "rides=head.csv"),
        files={"head.csv": "2024-01-01T00:00:01Z,a,5.0\n2024-01-01T00:00:02Z,a,5.0\n"},
    ),
    "CSV with bytes that are no text": Mistake(
        message=(
            "stream rides, bad.csv: time column ts must be a timestamp or a date; got string. "
            "Write it as a timestamp (in text: ISO 8601, as 2024-01-31T12:00:00Z). No column "
            "holds times."
        ),
        options=("--stream", "rides=bad.csv"),
        files={"bad.csv": b"ts,route\n\xff\xfe\x00,a\n"},
    ),
    "CSV in UTF-16": Mistake(
        message=(
            "stream rides, bad.csv: the first line must be the header with the columns' names, "
            "as UTF-8 text; got bytes that are not UTF-8. Say how the file is encoded, as "
            "OPTIONS (encoding 'utf-16')."
        ),
        options=("--stream", "rides=bad.csv"),
        files={"bad.csv": b"\xff\xfet\x00s\x00\n\x00"},
    ),
    "csv semicolons": Mistake(
        message=(
            "stream rides, semi.csv: columns must be separated by commas; got ';' in the "
            "header 'ts;route;fare'. Say OPTIONS (delimiter ';')."
        ),
        options=("--stream", "rides=semi.csv"),
        files={"semi.csv": "ts;route;fare\n2024-01-01T00:00:01Z;a;5,0\n"},
    ),
    "csv name twice": Mistake(
        message=(
            "stream rides, two.csv: column names must be distinct; got route more than once. "
            "Rename the columns in the header."
        ),
        options=("--stream", "rides=two.csv"),
        files={"two.csv": "ts,route,route\n2024-01-01T00:00:01Z,a,b\n"},
    ),
    "time column missing": Mistake(
        message=(
            "stream rides: needs a time column; got no TIME clause and no column named ts. "
            "Write TIME column, or --time rides=COLUMN. Timestamp columns: none; the columns "
            "are a, b."
        ),
        options=("--stream", "rides=notes.csv"),
        files={"notes.csv": "a,b\n1,2\n"},
    ),
    "time column under another name": Mistake(
        message=(
            "stream rides: needs a time column; got no TIME clause and no column named ts. "
            "Write TIME column, or --time rides=COLUMN. Timestamp columns: when."
        ),
        options=("--stream", "rides=when.csv"),
        files={"when.csv": "when,b\n2024-01-01T00:00:01Z,2\n"},
    ),
    "time column misspelt": Mistake(
        message=(
            "stream rides, rides.csv: the time column must be there; got column tss. Columns "
            "with times are: ts."
        ),
        options=(*RIDES, "--time", "rides=tss"),
    ),
    "time column of numbers": Mistake(
        message=(
            "stream rides, rides.csv: time column fare must be a timestamp or a date; got "
            "double. Write it as a timestamp (in text: ISO 8601, as 2024-01-31T12:00:00Z). "
            "Columns with times are: ts."
        ),
        options=(*RIDES, "--time", "rides=fare"),
    ),
    "time column of text": Mistake(
        message=(
            "stream rides, rides.csv: time column note must be a timestamp or a date; got "
            "string. Write it as a timestamp (in text: ISO 8601, as 2024-01-31T12:00:00Z). "
            "Columns with times are: ts."
        ),
        options=(*RIDES, "--time", "rides=note"),
    ),
    "ts of text": Mistake(
        message=(
            "stream rides, odd.csv: time column ts must be a timestamp or a date; got string. "
            "Write it as a timestamp (in text: ISO 8601, as 2024-01-31T12:00:00Z). No column "
            "holds times."
        ),
        options=("--stream", "rides=odd.csv"),
        files={"odd.csv": "ts,b\nyesterday,2\ntoday,3\n"},
    ),
    "ts of unix numbers": Mistake(
        message=(
            "stream rides, odd.csv: time column ts must be a timestamp or a date; got bigint. "
            "Write it as a timestamp (in text: ISO 8601, as 2024-01-31T12:00:00Z). No column "
            "holds times."
        ),
        options=("--stream", "rides=odd.csv"),
        files={"odd.csv": "ts,b\n1700000000,2\n"},
    ),
    "time of an unknown stream": Mistake(
        message=(
            "--time: must name a stream of the query; got ride. Did you mean rides? There are: "
            "rides."
        ),
        options=(*RIDES, "--time", "ride=ts"),
    ),
    "time without =": Mistake(
        message="--time: must look like NAME=COLUMN, for example rides=ts; got ts.",
        options=(*RIDES, "--time", "ts"),
    ),
    "stream without =": Mistake(
        message="--stream: must look like NAME=URI, for example rides=rides.csv; got rides.csv.",
        options=("--stream", "rides.csv"),
    ),
    "no stream at all": Mistake(
        message=(
            "FROM: no stream has this name; got rides. There are none: write CREATE STREAM "
            "rides FROM 'uri', or give --stream rides=URI, in Python rides=stream."
        ),
        options=(),
    ),
    "stream that the query does not name": Mistake(
        message="FROM: no stream has this name; got rides. Did you mean ride? There are: ride.",
        options=("--stream", "ride=rides.csv"),
    ),
    "sources of other columns": Mistake(
        message=(
            "stream rides: all sources must have the schema of rides.csv; got another one in "
            "other.csv: no column route."
        ),
        options=(*RIDES, "--stream", "rides=other.csv"),
        files={"other.csv": "ts,line\n2024-01-01T00:00:01Z,x\n"},
    ),
    "sources of other types": Mistake(
        message=(
            "stream rides: all sources must have the schema of rides.csv; got another one in "
            "other.csv: column fare is string, not double."
        ),
        options=(*RIDES, "--stream", "rides=other.csv"),
        files={"other.csv": "ts,route,fare,note\n2024-01-01T00:00:01Z,x,cheap,y\n"},
    ),
    "scheme unknown": Mistake(
        message=(
            "stream rides, amqp://host/rides: must be a path or of a known scheme; got amqp:. "
            "There are: generator, kafka, delta, delta+s3, iceberg, file, s3, gs, abfs, hdfs."
        ),
        options=("--stream", "rides=amqp://host/rides"),
    ),
    "kafka without a port": Mistake(
        message=(
            "stream rides, kafka://host/rides: a broker must be host:port; got 'host'. Write it "
            "like kafka://localhost:9092/rides; with several brokers host:port,host:port."
        ),
        options=("--stream", "rides=kafka://host/rides"),
    ),
    "kafka with a password": Mistake(
        message=(
            "stream rides, kafka://me:...@host:9092/rides: a URI must be without keys and "
            "passwords; got kafka://me:...@host:9092/rides. Leave it out, and have it in "
            "TIDEGATE_KAFKA_SASL_USERNAME and TIDEGATE_KAFKA_SASL_PASSWORD, or in a file that "
            "?config=FILE names."
        ),
        options=("--stream", "rides=kafka://me:hush@host:9092/rides"),
    ),
    "a history without a seam": Mistake(
        message=(
            "stream rides: it must be said where the topic goes on; got no from. Write "
            "from=history, if the history has the columns _partition and _offset, offsets as "
            "from=0:1200,1:800, or UNTIL 'TIME'."
        ),
        options=("--stream", "rides=rides.csv THEN kafka://localhost:9092/rides"),
    ),
    "a history and a topic from a time": Mistake(
        message=(
            "stream rides: it must be said where the topic goes on; got from=2024-01-01 without "
            "UNTIL. Write from=history, if the history has the columns _partition and _offset, "
            "offsets as from=0:1200,1:800, or UNTIL 'TIME'."
        ),
        options=("--stream", "rides=rides.csv THEN kafka://localhost:9092/rides?from=2024-01-01"),
    ),
    "a history and the end of a topic": Mistake(
        message=(
            "stream rides: a topic that follows a history must begin where that ends; got "
            "from=latest. Write from=history, or UNTIL 'TIME' and no from."
        ),
        options=("--stream", "rides=rides.csv THEN kafka://localhost:9092/rides?from=latest"),
    ),
    "a history with two seams": Mistake(
        message=(
            "stream rides: UNTIL and from=history both say where the topic goes on; got both. "
            "Leave UNTIL out: the offsets in the history are exact."
        ),
        options=(
            "--stream",
            "rides=rides.csv THEN kafka://localhost:9092/rides?from=history UNTIL 2024-01-01",
        ),
    ),
    "a history until no time": Mistake(
        message=(
            "stream rides: UNTIL must be a time; got noon. Write it in ISO 8601, as UNTIL "
            "'2024-01-31T12:00:00Z'."
        ),
        options=("--stream", "rides=rides.csv THEN kafka://localhost:9092/rides UNTIL noon"),
    ),
    "a history without a topic": Mistake(
        message=(
            "stream rides: THEN stands once, between a history and a topic; got rides.csv THEN. "
            "Write FROM 'delta:hist' THEN 'kafka://localhost:9092/rides?from=history'."
        ),
        options=("--stream", "rides=rides.csv THEN"),
    ),
    "a history and more files": Mistake(
        message=(
            "stream rides: a topic follows THEN; got more.csv. Write THEN "
            "'kafka://host:port/topic'."
        ),
        options=("--stream", "rides=rides.csv THEN more.csv UNTIL 2024-01-01"),
    ),
    "a history in a topic": Mistake(
        message=(
            "stream rides: a history must be files, or a table of Delta Lake or Iceberg; got "
            "kafka://localhost:9092/old. Write its rows to one of these first, then FROM "
            "'delta:hist' THEN 'kafka://localhost:9092/rides?from=history'."
        ),
        options=(
            "--stream",
            "rides=kafka://localhost:9092/old THEN kafka://localhost:9092/rides?from=history",
        ),
    ),
    "a table with a topic": Mistake(
        message=(
            "table zones: a table is read from one place; got rides.csv THEN "
            "kafka://localhost:9092/rides?from=history. Leave THEN out, or write CREATE STREAM "
            "zones."
        ),
        sql=(
            "CREATE TABLE zones FROM 'rides.csv THEN kafka://localhost:9092/rides?from=history'; "
            "SELECT * FROM rides JOIN zones ON rides.route = zones.route"
        ),
    ),
    "a stream in Postgres": Mistake(
        message=(
            "stream rides, postgresql://u@host/db?table=t: postgresql: is read as a table, which "
            "streams are joined to; got a stream. Write CREATE TABLE rides FROM '...', and join a "
            "stream to it."
        ),
        options=("--stream", "rides=postgresql://u@host/db?table=t"),
    ),
    "scheme misspelt": Mistake(
        message=(
            "stream rides, s4://bucket/rides: must be a path or of a known scheme; got s4:. Did "
            "you mean s3 or gs? There are: generator, kafka, delta, delta+s3, iceberg, file, s3, "
            "gs, abfs, hdfs."
        ),
        options=("--stream", "rides=s4://bucket/rides"),
    ),
    "no Delta table": Mistake(
        message=(
            "stream rides, delta:none: must be a table of Delta Lake; got none. Check the path; a "
            "table has a folder _delta_log."
        ),
        options=("--stream", "rides=delta:none"),
    ),
    "parameter of a Delta table misspelt": Mistake(
        message=(
            "stream rides, delta:none?form=1: parameters must be those of delta:; got parameter "
            "form. Did you mean from? There are: from."
        ),
        options=("--stream", "rides=delta:none?form=1"),
    ),
    "no Iceberg table": Mistake(
        message=(
            "stream rides, iceberg:none.db?table=a.b: the table must be there; got "
            "iceberg:{folder}/none.db, table a.b. Check the catalog and the name of the table."
        ),
        options=("--stream", "rides=iceberg:none.db?table=a.b"),
    ),
    "no HDFS here": Mistake(
        message=(
            "stream rides, hdfs://host:9000/rides: the file system of hdfs:// must be usable here; "
            "got {words}. Install Hadoop's client, and set HADOOP_HOME, JAVA_HOME and CLASSPATH "
            "(hadoop classpath --glob), or ARROW_LIBHDFS_DIR."
        ),
        options=("--stream", "rides=hdfs://host:9000/rides"),
    ),
    "generator misspelt": Mistake(
        message=(
            "stream rides, generator:taxis: the generator must be known; got taxis. Did you "
            "mean taxi or tasks? There are: taxi, calls, tasks, packets, trades, r, s, tweets, "
            "orders, lineitem."
        ),
        options=("--stream", "rides=generator:taxis"),
    ),
    "generator without a name": Mistake(
        message=(
            "stream rides, generator:: the generator must be known; got no name. There are: "
            "taxi, calls, tasks, packets, trades, r, s, tweets, orders, lineitem."
        ),
        options=("--stream", "rides=generator:"),
    ),
    "generator parameter misspelt": Mistake(
        message=(
            "stream rides, generator:taxi?row=5, generator taxi: parameters must be known; got "
            "parameter row. Did you mean rows? There are: pace, column, rows, rate, start, seed, "
            "keys, skew, drift, burst, disorder."
        ),
        options=("--stream", "rides=generator:taxi?row=5"),
    ),
    "generator parameter of no use": Mistake(
        message=(
            "stream rides, generator:taxi?rows=many, generator taxi: rows must be a whole "
            "number from 0 on; got 'many'. Change rows or leave it out."
        ),
        options=("--stream", "rides=generator:taxi?rows=many"),
    ),
    "generator parameter twice": Mistake(
        message=(
            "stream rides, generator:taxi?rows=5&rows=6, generator taxi: a parameter can be "
            "given once; got rows twice. Keep one rows."
        ),
        options=("--stream", "rides=generator:taxi?rows=5&rows=6"),
    ),
    "generator with slashes": Mistake(
        message=(
            "stream rides, generator://taxi: the generator must be known; got //taxi. Did you "
            "mean taxi? There are: taxi, calls, tasks, packets, trades, r, s, tweets, orders, "
            "lineitem."
        ),
        options=("--stream", "rides=generator://taxi"),
    ),
    "stream empty uri": Mistake(
        message="--stream: must look like NAME=URI, for example rides=rides.csv; got rides=.",
        options=("--stream", "rides="),
    ),
    "csv with a cut quote": Mistake(
        message=(
            "stream rides, cut.csv: the first line must be the header with the columns' names, "
            "as UTF-8 text; got a quote is not closed. Close it; where quotes mean nothing, say "
            "OPTIONS (quote '')."
        ),
        options=("--stream", "rides=cut.csv"),
        files={"cut.csv": 'ts,"route\n'},
    ),
}
