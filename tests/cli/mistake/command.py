"""Mistakes in commands and their arguments, each with the whole line that is said."""

from __future__ import annotations

from tests.cli.mistake.kind import COUNT, RIDES, Mistake

MISTAKES = {
    "query missing": Mistake(
        message="nothing.sql: the query must be a file with SQL; got no such file. Check the path.",
        command=("run", "nothing.sql", "--master", "none"),
    ),
    "query misspelt": Mistake(
        message=(
            "quer.sql: the query must be a file with SQL; got no such file. Did you mean query.sql?"
        ),
        command=("run", "quer.sql", "--master", "none"),
        files={"query.sql": "SELECT COUNT(*) AS n FROM rides [RANGE 10 SECONDS]"},
    ),
    "query is a folder": Mistake(
        message="empty: the query must be a file with SQL; got a folder. Name a file in it.",
        command=("run", "empty", "--master", "none"),
    ),
    "query not text": Mistake(
        message=(
            "bad.sql: the query must be UTF-8 text; got the byte 0xff at position 7. Save it "
            "as UTF-8."
        ),
        command=("run", "bad.sql", "--master", "none"),
        files={"bad.sql": b"SELECT \xff\xfe"},
    ),
    "query in UTF-16": Mistake(
        message=(
            "bad.sql: the query must be UTF-8 text; got the byte 0xff at position 0. Save it "
            "as UTF-8."
        ),
        command=("run", "bad.sql", "--master", "none"),
        files={"bad.sql": b"\xff\xfeS\x00E\x00L\x00E\x00C\x00T\x00"},
    ),
    "byte order mark before the query": Mistake(
        message=(
            "WHERE: no column has this name; got far. Did you mean fare? There are: ts, route, "
            "fare, note."
        ),
        command=("run", "bad.sql", *RIDES, "--master", "none"),
        files={"bad.sql": "\ufeffSELECT COUNT(*) AS n FROM rides [RANGE 10 SECONDS] WHERE far > 1"},
    ),
    "SQL in place of a file": Mistake(
        message=(
            "QUERY.sql: the query must be a file with SQL; got SELECT COUNT(*) AS n FROM rides "
            "[RANGE 10 SECONDS]. Put -e before the query, or write it into a file and give its "
            "name."
        ),
        command=("run", "SELECT COUNT(*) AS n FROM rides [RANGE 10 SECONDS]", "--master", "none"),
    ),
    "query forgotten": Mistake(
        message=(
            "run: needs QUERY.sql; got none. Name a file, or write -e 'SELECT ...'; `tidegate run "
            "--help` lists what there is."
        ),
        command=("run", "--master", "none"),
    ),
    "-e beside a file": Mistake(
        message="-e: stands in place of QUERY.sql; got good.sql beside it. Leave one of them out.",
        command=("run", "good.sql", "-e", COUNT, *RIDES, "--master", "none"),
    ),
    "-e twice": Mistake(
        message="-e: can be given once; got 2 of them. Put ; between statements.",
        command=("run", "-e", "CREATE STREAM r FROM 'rides.csv'", "-e", COUNT, "--master", "none"),
    ),
    "slip behind -e": Mistake(
        message=(
            "-e line 1, column 1: expected CREATE STREAM, INSERT INTO or SELECT; got SELEC. Did "
            "you mean SELECT?"
        ),
        command=("run", "-e", COUNT.replace("SELECT", "SELEC"), *RIDES, "--master", "none"),
    ),
    "nothing behind -e": Mistake(
        message="-e: a script needs a SELECT; got none. Add a SELECT statement.",
        command=("run", "-e", " ", *RIDES, "--master", "none"),
    ),
    "column misspelt in explain": Mistake(
        message=(
            "SUM: no column has this name; got far. Did you mean fare? There are: ts, route, "
            "fare, note."
        ),
        command=("explain", "q.sql", *RIDES, "--master", "none"),
        files={"q.sql": "SELECT SUM(far) AS s FROM rides [RANGE 10 SECONDS]"},
    ),
    "command misspelt": Mistake(
        message=(
            "command line: no such command 'rum'. Did you mean 'run'? `tidegate --help` lists "
            "what there is."
        ),
        command=("rum", "q.sql"),
    ),
    "demo misspelt": Mistake(
        message=(
            "demo: must be a known word; got taxy. Did you mean taxi? There are: taxi, calls, "
            "trades, hashtags."
        ),
        command=("demo", "taxy"),
    ),
    "generator misspelt in generate": Mistake(
        message=(
            "generate taxis: the generator must be known; got taxis. Did you mean taxi or "
            "tasks? There are: taxi, calls, tasks, packets, trades, r, s, tweets, orders, "
            "lineitem."
        ),
        command=("generate", "taxis", "--out", "a.csv"),
    ),
    "generate without a name": Mistake(
        message=(
            "generate: needs the name of a generator; got none. There are: taxi, calls, tasks, "
            "packets, trades, r, s, tweets, orders, lineitem."
        ),
        command=("generate",),
    ),
    "generate without --out": Mistake(
        message="--out: needs a file to write; got none. Give one, as --out taxi.parquet.",
        command=("generate", "taxi"),
    ),
    "generate into an unknown extension": Mistake(
        message=(
            "a.xls: the extension must say the format; got .xls. Use one of .parquet, .csv, "
            ".json, .jsonl, .ndjson, or --format."
        ),
        command=("generate", "taxi", "--out", "a.xls"),
    ),
    "generate in an unknown format": Mistake(
        message="--format: must be a known format; got xml. There are: parquet, csv, jsonl.",
        command=("generate", "taxi", "--out", "a.csv", "--format", "xml"),
    ),
    "generate a negative number of rows": Mistake(
        message="--rows: must not be negative; got -1.",
        command=("generate", "taxi", "--out", "a.csv", "--rows", "-1"),
    ),
    "generate with a parameter misspelt": Mistake(
        message=(
            "generate taxi: parameters must be known; got parameter seeds. Did you mean seed? "
            "There are: pace, column, rows, rate, start, seed, keys, skew, drift, burst, disorder."
        ),
        command=("generate", "taxi", "--out", "a.csv", "--param", "seeds=1"),
    ),
    "generate with rows as a parameter": Mistake(
        message="--param: cannot be rows; got 1. Use --rows.",
        command=("generate", "taxi", "--out", "a.csv", "--param", "rows=1"),
    ),
    "generate with a parameter without =": Mistake(
        message="--param: must look like KEY=VALUE, for example seed=7; got rate.",
        command=("generate", "taxi", "--out", "a.csv", "--param", "rate"),
    ),
    "generate into a missing folder": Mistake(
        message=(
            "no/a.csv: must be a file that can be written; got no folder {folder}/no. Choose "
            "another --out."
        ),
        command=("generate", "taxi", "--out", "no/a.csv"),
    ),
    "generate into a folder": Mistake(
        message=(
            "empty.csv: must be a file that can be written; got a folder. Choose another --out."
        ),
        command=("generate", "taxi", "--out", "empty.csv"),
        files={"empty.csv/.keep": ""},
    ),
    "state of a folder that is no checkpoint": Mistake(
        message=(
            "{folder}/empty: must be a Tidegate checkpoint; got a folder without meta.json. "
            "Give the folder that a run had as --checkpoint."
        ),
        command=("state", "empty"),
    ),
    "state of nothing": Mistake(
        message=(
            "{folder}/nothing: must be a Tidegate checkpoint; got no such folder. Give the "
            "folder that a run had as --checkpoint."
        ),
        command=("state", "nothing"),
    ),
    "state of a file": Mistake(
        message=(
            "{folder}/rides.csv: the checkpoint must be a folder; got Not a directory. Choose "
            "another folder."
        ),
        command=("state", "rides.csv"),
    ),
    "state without a folder": Mistake(
        message="state: needs DIR; got none. `tidegate state --help` lists what there is.",
        command=("state",),
    ),
    "generate rows that are no number": Mistake(
        message="--rows: must be a whole number; got 1k.",
        command=("generate", "taxi", "--rows", "1k", "--out", "a.csv"),
    ),
    "report of nothing": Mistake(
        message=(
            "nothing: must be a checkpoint with the journal of a run, or the file of a --summary; "
            "got no such folder or file. Give the folder that a run had as --checkpoint; its first "
            "seconds leave a journal."
        ),
        command=("report", "nothing", "-o", "page.html"),
    ),
    "report of a folder that is no checkpoint": Mistake(
        message=(
            "empty: must be a checkpoint with the journal of a run, or the file of a --summary; "
            "got a folder without a journal. Give the folder that a run had as --checkpoint; its "
            "first seconds leave a journal."
        ),
        command=("report", "empty"),
    ),
    "report of rows": Mistake(
        message=(
            "rides.csv: must be a checkpoint, or a summary that `tidegate run --summary FILE` has "
            "written; got no JSON. Give the folder that a run had as --checkpoint, or that file."
        ),
        command=("report", "rides.csv"),
    ),
    "report of other JSON": Mistake(
        message=(
            "other.json: must be a checkpoint, or a summary that `tidegate run --summary FILE` has "
            "written; got other JSON. Give the folder that a run had as --checkpoint, or that file."
        ),
        command=("report", "other.json"),
        files={"other.json": '{"batches": 3}'},
    ),
    "report into a folder that is missing": Mistake(
        message=(
            "-o: must be a file that can be written; got no/page.html, No such file or directory."
        ),
        command=("report", "s.json", "-o", "no/page.html"),
        files={"s.json": '{"batches": 0, "rows_in": 0, "finished": true, "epochs": []}'},
    ),
}
