"""Mistakes in options, each with the whole line that is said."""

from __future__ import annotations

from tests.cli.mistake.kind import COUNT, RIDES, Good, Mistake

MISTAKES = {
    "explain --sample of a query that sheds nothing": Mistake(
        message=(
            "--sample: is for a query that has WITH SHED over an aggregate; got one that sheds "
            "nothing. Leave it out; tidegate run shows the rows of any query."
        ),
        files={"q.sql": COUNT},
        command=("explain", "q.sql", "--master", "none", *RIDES, "--sample", "10"),
    ),
    "--instances 0": Mistake(
        message="--instances: must be at least 1; got 0.",
        options=(*RIDES, "--instances", "0"),
    ),
    "--instances two": Mistake(
        message="--instances: must be a whole number, or NAME=N; got two.",
        options=(*RIDES, "--instances", "two"),
    ),
    "--buckets -1": Mistake(
        message="--buckets: must be at least 1; got -1.",
        options=(*RIDES, "--buckets", "-1"),
    ),
    "--buckets 100000": Mistake(
        message="--buckets: must be at most 65536; got 100000.",
        options=(*RIDES, "--buckets", "100000"),
    ),
    "--batch-rows 0": Mistake(
        message="--batch-rows: must be at least 1; got 0.",
        options=(*RIDES, "--batch-rows", "0"),
    ),
    "--batch-rows 1e6": Mistake(
        message="--batch-rows: must be a whole number; got 1e6.",
        options=(*RIDES, "--batch-rows", "1e6"),
    ),
    "--trigger soon": Mistake(
        message=(
            "--trigger: a duration must be a number and a unit; got 'soon'. "
            'Write for example "15 minutes" or "500 ms".'
        ),
        options=(*RIDES, "--trigger", "soon"),
    ),
    "--trigger with --available-now": Mistake(
        message=(
            "--trigger: cannot be used with --available-now; got both. "
            "Leave --trigger out: what is there is taken at once."
        ),
        options=(*RIDES, "--trigger", "1 second", "--available-now"),
    ),
    "--mapping with --instances": Mistake(
        message=(
            "--mapping: cannot be used with --instances; got both. "
            "Leave --instances out: a mapping says how many there are."
        ),
        options=(*RIDES, "--buckets", "2", "--instances", "2", "--mapping", "[0, 1]"),
    ),
    "--mapping of too few buckets": Mistake(
        message=(
            "--mapping: a mapping must give an owner to each of the 3 buckets; got none for bucket "
            "2. Add what is missing; nothing changed."
        ),
        options=(*RIDES, "--buckets", "3", "--mapping", "[0, 1]"),
    ),
    "--mapping that is no file": Mistake(
        message=(
            "--mapping: needs a mapping as JSON, or a readable file with one; got nowhere.json: "
            "No such file or directory. Write for example '[0, 0, 1, 1]', the owner of each bucket."
        ),
        options=(*RIDES, "--buckets", "4", "--mapping", "nowhere.json"),
    ),
    "--memory-limit lots": Mistake(
        message="--memory-limit: must be a size, for example 512MB or 2GB; got lots.",
        options=(*RIDES, "--memory-limit", "lots"),
    ),
    "--switch without =": Mistake(
        message="--switch: must look like BATCH=N, for example 3=4; got 3.",
        options=(*RIDES, "--switch", "3"),
    ),
    "--switch nonsense": Mistake(
        message="--switch: must look like BATCH=N, for example 3=4; got nonsense.",
        options=(*RIDES, "--switch", "nonsense"),
    ),
    "--switch 3=0": Mistake(
        message="--switch: the number of instances must be at least 1; got 3=0.",
        options=(*RIDES, "--switch", "3=0"),
    ),
    "--switch -1=2": Mistake(
        message="--switch: the batch must not be negative; got -1=2. Batches are numbered from 0.",
        options=(*RIDES, "--switch", "-1=2"),
    ),
    "--switch 3=100": Mistake(
        message=(
            "--switch: must not exceed the number of buckets (64); got 100. Ask for fewer "
            "instances or more --buckets."
        ),
        options=(*RIDES, "--switch", "3=100"),
    ),
    "--policy auto?error=2": Mistake(
        message=(
            "policy auto: error must be between 0 and 1; got 2. 0.1 is 10 percent; leave it out "
            "where nothing may be shed."
        ),
        options=(*RIDES, "--policy", "auto?error=2"),
    ),
    "--policy auto?latency=soon": Mistake(
        message=(
            "policy auto, latency: a duration must be a number and a unit; got 'soon'. Write for "
            'example "15 minutes" or "500 ms".'
        ),
        options=(*RIDES, "--policy", "auto?latency=soon"),
    ),
    "--policy beside WITH LATENCY": Mistake(
        message=(
            "--policy: the query has its own, WITH LATENCY; got threshold. Leave one of them out."
        ),
        sql=COUNT + " WITH LATENCY 2 SECONDS",
        options=(*RIDES, "--policy", "threshold"),
    ),
    "--policy model?upper=0.5": Mistake(
        message=(
            "policy model: lower must not be above upper, both above 0 and at most 1; got lower "
            "0.7 and upper 0.5."
        ),
        options=(*RIDES, "--policy", "model?upper=0.5"),
    ),
    "--policy model?calibration": Mistake(
        message=(
            "policy model, calibration: must be a calibration; got no such file c.json. "
            "`tidegate calibrate QUERY.sql --json FILE` writes one."
        ),
        options=(*RIDES, "--policy", "model?calibration=c.json"),
    ),
    "--policy fast": Mistake(
        message=(
            "--policy: must be a known word; got fast. There are: fixed, threshold, model, auto."
        ),
        options=(*RIDES, "--policy", "fast"),
    ),
    "--policy threshold?lower=0.95": Mistake(
        message=(
            "policy threshold: lower must be below upper, both between 0 and 1; got lower 0.95 and "
            "upper 0.9."
        ),
        options=(*RIDES, "--policy", "threshold?lower=0.95"),
    ),
    "--policy threshold?uper=1": Mistake(
        message=(
            "--policy: threshold has no parameter of this name; got uper. Did you mean upper? "
            "There are: upper, target, lower, imbalance, improvement, cooldown, batches, seconds, "
            "minimum, maximum, provisioning."
        ),
        options=(*RIDES, "--policy", "threshold?uper=1"),
    ),
    "--partitioner auto with no candidate": Mistake(
        message="--partitioner auto?d: must be at least 1 candidate for a key; got 0. 2 is usual.",
        options=(*RIDES, "--partitioner", "auto?d=0"),
    ),
    "--partitioner auto with a parameter it has not": Mistake(
        message="--partitioner: auto has no parameter of this name; got p. There are: d, keys.",
        options=(*RIDES, "--partitioner", "auto?p=0.5"),
    ),
    "--partitioner auto for a join": Mistake(
        message=(
            "--partitioner: is for aggregates; got auto for a query without one. Leave it out; "
            "joins have --routing."
        ),
        options=(*RIDES, "--partitioner", "auto"),
        sql=(
            "SELECT a.fare FROM rides [RANGE 1 HOUR] AS a JOIN rides [RANGE 1 HOUR] AS b "
            "ON a.route = b.route"
        ),
    ),
    "WITH PARTITIONER with no candidate": Mistake(
        message=(
            "WITH PARTITIONER cam?d: must be at least 1 candidate for a key; got 0. 2 is usual."
        ),
        options=RIDES,
        sql="SELECT COUNT(*) AS n FROM rides [RANGE 1 HOUR] WITH PARTITIONER 'cam?d=0'",
    ),
    "WITH PARTITIONER for windows of tuples": Mistake(
        message=(
            "partitioner lm: may split the tuples of a key only over windows of time, whose parts "
            "can be merged; got [ROWS 5]. Use hash, or write a window of time: [RANGE 1 MINUTE]."
        ),
        options=RIDES,
        sql="SELECT COUNT(*) AS n FROM rides [ROWS 5] WITH PARTITIONER lm",
    ),
    "--partitioner of no such name": Mistake(
        message=(
            "--partitioner: must be a known word; got camm. Did you mean cam or cm or am? There "
            "are: hash, shuffle, pk, cm, am, cam, lm, auto, standby."
        ),
        options=(*RIDES, "--partitioner", "camm"),
    ),
    "--partitioner without a name": Mistake(
        message=(
            "--partitioner: must be a known word; got no name. There are: hash, shuffle, pk, cm, "
            "am, cam, lm, auto, standby."
        ),
        options=(*RIDES, "--partitioner", ""),
    ),
    "--partitioner with no candidate": Mistake(
        message="--partitioner pk?d: must be at least 1 candidate for a key; got 0. 2 is usual.",
        options=(*RIDES, "--partitioner", "pk?d=0"),
    ),
    "--partitioner with half a candidate": Mistake(
        message="--partitioner pk?d: must be a whole number; got 2.5.",
        options=(*RIDES, "--partitioner", "pk?d=2.5"),
    ),
    "--partitioner lm out of range": Mistake(
        message=(
            "--partitioner lm?p: must be from 0 (only keys) to 1 (only tuples); got 1.5. Write "
            "for example lm?p=0.5."
        ),
        options=(*RIDES, "--partitioner", "lm?p=1.5"),
    ),
    "--partitioner with a parameter it has not": Mistake(
        message="--partitioner: shuffle has no parameter of this name; got d. There are none.",
        options=(*RIDES, "--partitioner", "shuffle?d=3"),
    ),
    "--partitioner with a sketch it does not know": Mistake(
        message="--partitioner cam?keys: must be exact or hll; got bloom.",
        options=(*RIDES, "--partitioner", "cam?keys=bloom"),
    ),
    "--partitioner for windows of tuples": Mistake(
        message=(
            "partitioner pk: may split the tuples of a key only over windows of time, whose parts "
            "can be merged; got [ROWS 5]. Use hash, or write a window of time: [RANGE 1 MINUTE]."
        ),
        options=(*RIDES, "--partitioner", "pk"),
        sql="SELECT COUNT(*) AS n FROM rides [ROWS 5] GROUP BY route",
    ),
    "--partitioner without an aggregate": Mistake(
        message="--partitioner: is for aggregates; got pk for a query without one. Leave it out.",
        options=(*RIDES, "--partitioner", "pk"),
        sql="SELECT route FROM rides",
    ),
    "--partial of no such place": Mistake(
        message="--partial: must be a known word; got driver. There are: auto, map, instance.",
        options=(*RIDES, "--partial", "driver"),
    ),
    "--partial without an aggregate": Mistake(
        message="--partial: is for aggregates; got map for a query without one. Leave it out.",
        options=(*RIDES, "--partial", "map"),
        sql="SELECT route FROM rides",
    ),
    "WITH PARTITIONER without an aggregate": Mistake(
        message=(
            "WITH PARTITIONER cam: is for an aggregate; got a query without one. "
            "Write it after the SELECT that has the aggregate."
        ),
        options=RIDES,
        sql="SELECT route FROM rides WITH PARTITIONER cam",
    ),
    "WITH PARTITIONER of no such name": Mistake(
        message=(
            "WITH PARTITIONER: must be a known word; got pkk. Did you mean pk? There are: "
            "hash, shuffle, pk, cm, am, cam, lm, auto, standby."
        ),
        options=RIDES,
        sql="SELECT COUNT(*) AS n FROM rides [RANGE 1 HOUR] WITH PARTITIONER pkk",
    ),
    "--max-windows-per-tuple 0": Mistake(
        message="--max-windows-per-tuple: must be at least 1; got 0.",
        options=(*RIDES, "--max-windows-per-tuple", "0"),
    ),
    "--method scan": Mistake(
        message="--method: is for joins; got scan for a query without one. Leave it out.",
        options=(*RIDES, "--method", "scan"),
    ),
    "--routing round-robin": Mistake(
        message="--routing: is for joins; got round-robin for a query without one. Leave it out.",
        options=(*RIDES, "--routing", "round-robin"),
    ),
    "--exchange pigeon": Mistake(
        message="--exchange: must be a known word; got pigeon. There are: auto, shared, shuffle.",
        options=(*RIDES, "--exchange", "pigeon"),
    ),
    "--log loud": Mistake(
        message="--log: must be a known word; got loud. There are: debug, info, warning, error.",
        options=(*RIDES, "--log", "loud"),
    ),
    "--dashboard page": Mistake(
        message=(
            "--dashboard: must be a port from 0 to 65535, or HOST:PORT; got page. "
            "Write 8123, or 0.0.0.0:8123 for all who can reach this host."
        ),
        options=(*RIDES, "--dashboard", "page"),
    ),
    "--log-format xml": Mistake(
        message="--log-format: must be a known word; got xml. There are: text, json.",
        options=(*RIDES, "--log-format", "xml"),
    ),
    "--dashboard of another machine": Mistake(
        message=(
            "--dashboard: must be a port that is free, on an address of this host; got "
            "192.0.2.1:0, Cannot assign requested address. Choose another, or 0 for any that is "
            "free."
        ),
        options=(*RIDES, "--dashboard", "192.0.2.1:0"),
    ),
    "--colour red": Mistake(
        message=(
            "--colour: no option of `tidegate run` has this name. There are: --stream, --time, "
            "--master, --conf, --instances, {words}, ..."
        ),
        options=(*RIDES, "--colour", "red"),
    ),
    "--instance 2": Mistake(
        message=(
            "--instance: no option of `tidegate run` has this name. Did you mean --instances? "
            "There are: --stream, --time, --master, --conf, --instances, {words}, ..."
        ),
        options=(*RIDES, "--instance", "2"),
    ),
    "--chekpoint d": Mistake(
        message=(
            "--chekpoint: no option of `tidegate run` has this name. Did you mean "
            "--checkpoint? There are: --stream, --time, --master, --conf, --instances, {words}, ..."
        ),
        options=(*RIDES, "--chekpoint", "d"),
    ),
    "--format xml": Mistake(
        message="--format: must be a known format; got xml. There are: parquet, csv, json.",
        options=(*RIDES, "--out", "o", "--format", "xml"),
    ),
    "--switch of one batch twice": Mistake(
        message="--switch: a batch can be named once; got 1 twice. Keep one 1=N.",
        options=(*RIDES, "--switch", "1=2", "--switch", "1=3"),
    ),
    "--switch of one batch of a subquery twice": Mistake(
        message=(
            "--switch: a batch can be named once; got aggregate:1 twice. Keep one aggregate:1=N."
        ),
        options=(*RIDES, "--switch", "aggregate:1=2", "--switch", "aggregate:1=3"),
    ),
    "--switch of a subquery without a batch": Mistake(
        message="--switch: must look like BATCH=N, for example 3=4; got aggregate=3.",
        options=(*RIDES, "--switch", "aggregate=3"),
    ),
    "--switch of a subquery that is not there": Mistake(
        message=(
            "--switch: must name a subquery of the query; got agregate. Did you mean aggregate? "
            "There are: aggregate."
        ),
        options=(*RIDES, "--switch", "agregate:1=2"),
    ),
    "--switch of a subquery beyond the buckets": Mistake(
        message=(
            "--switch: must not exceed the number of buckets (64); got 65. Ask for fewer "
            "instances or more --buckets."
        ),
        options=(*RIDES, "--switch", "aggregate:1=65"),
    ),
    "--instances of a subquery that is not there": Mistake(
        message=("--instances: must name a subquery of the query; got join. There are: aggregate."),
        options=(*RIDES, "--instances", "join=2"),
    ),
    "--instances of a subquery in words": Mistake(
        message="--instances: must be a whole number, or NAME=N; got aggregate=two.",
        options=(*RIDES, "--instances", "aggregate=two"),
    ),
    "--instances of a subquery 0": Mistake(
        message="--instances: must be at least 1; got 0.",
        options=(*RIDES, "--instances", "aggregate=0"),
    ),
    "--instances twice": Mistake(
        message="--instances: one number is possible; got 2 and 3.",
        options=(*RIDES, "--instances", "2", "--instances", "3"),
    ),
    "--instances of a subquery twice": Mistake(
        message="--instances: a subquery can be named once; got aggregate twice.",
        options=(*RIDES, "--instances", "aggregate=2", "--instances", "aggregate=3"),
    ),
    "--instances without a name": Mistake(
        message="--instances: must be a whole number, or NAME=N; got =3.",
        options=(*RIDES, "--instances", "=3"),
    ),
    "--switch without a name": Mistake(
        message="--switch: must look like BATCH=N, for example 3=4; got :3=4.",
        options=(*RIDES, "--switch", ":3=4"),
    ),
    "several outputs without --out": Mistake(
        message=(
            "--out: is needed by a script with several outputs, unless a terminal shows them; got "
            "a, b. Give a folder; each "
            "output gets one of its name in it."
        ),
        sql=f"INSERT INTO a {COUNT}; INSERT INTO b SELECT route FROM rides",
    ),
    "--instances of a subquery of a query-cloud": Mistake(
        message=(
            "--instances: the strategy query-cloud has one number of instances for the whole "
            "query; got one for aggregate. Leave the subquery out, or use another --strategy."
        ),
        options=(*RIDES, "--strategy", "query-cloud", "--instances", "aggregate=2"),
    ),
    "--strategy all of a run": Mistake(
        message=(
            "--strategy: `tidegate run` takes one of operator-set, query-cloud, operator-cloud; "
            "got all. `tidegate explain --strategy all` compares them."
        ),
        options=(*RIDES, "--strategy", "all"),
    ),
    "--strategy cloud": Mistake(
        message=(
            "--strategy: must be a known word; got cloud. Did you mean query-cloud? There are: "
            "operator-set, query-cloud, operator-cloud, all."
        ),
        options=(*RIDES, "--strategy", "cloud"),
    ),
    "--instances beyond --buckets": Mistake(
        message=(
            "--instances: must not exceed the number of buckets (4); got 5. Ask for fewer "
            "instances or more --buckets."
        ),
        options=(*RIDES, "--buckets", "4", "--instances", "5"),
    ),
    "--out is a file": Mistake(
        message="rides.csv: the output must be a folder; got a file. Choose another --out.",
        options=(*RIDES, "--out", "rides.csv"),
    ),
    "--out below a file": Mistake(
        message=(
            "rides.csv/o: the output folder must be writable; got a file at "
            "{folder}/rides.csv. Choose another --out or change its permissions."
        ),
        options=(*RIDES, "--out", "rides.csv/o"),
    ),
    "--out where no folder can be made": Mistake(
        message=(
            "/proc/results: the output folder must be writable; got no permission. Choose "
            "another --out or change its permissions."
        ),
        options=(*RIDES, "--out", "/proc/results"),
    ),
    "--out holds results": Mistake(
        message=(
            "old: a new run needs an output folder without results; got batches of an earlier "
            "run (batch=00000000). Choose another --out, delete the folder, or continue with "
            "its --checkpoint."
        ),
        options=(*RIDES, "--out", "old"),
        before=Good(sql=COUNT, options=(*RIDES, "--out", "old")),
    ),
    "--out holds results of another query": Mistake(
        message=(
            "old: a new run needs an output folder without results; got batches of an earlier "
            "run (batch=00000000). Choose another --out, delete the folder, or continue with "
            "its --checkpoint."
        ),
        options=(*RIDES, "--out", "old", "--checkpoint", "new"),
        before=Good(
            sql="SELECT SUM(fare) AS n FROM rides [RANGE 10 SECONDS]",
            options=(*RIDES, "--out", "old", "--checkpoint", "state"),
        ),
    ),
    "--out empty": Mistake(
        message="--out: must say where results go; got ''. Give a folder, or console:.",
        options=(*RIDES, "--out", ""),
    ),
    "--out without its slashes": Mistake(
        message=("--out: a URI of s3 must have its slashes; got s3:bucket/x. Write s3://bucket/x."),
        options=(*RIDES, "--out", "s3:bucket/x"),
    ),
    "--out of a misspelt file system": Mistake(
        message=(
            "--out: must be a path or of a known scheme; got s4:. Did you mean s3 or gs? There "
            "are: file, console, kafka, s3, gs, abfs, hdfs, postgresql, delta, delta+s3, iceberg."
        ),
        options=(*RIDES, "--out", "s4://bucket/x"),
    ),
    "--checkpoint of a misspelt file system": Mistake(
        message=(
            "checkpoint s4://bucket/x: must be a path or of a known scheme; got s4:. Did you mean "
            "s3 or gs? There are: file, s3, gs, abfs, hdfs."
        ),
        options=(*RIDES, "--checkpoint", "s4://bucket/x"),
    ),
    "--out and --checkpoint in one bucket's folder": Mistake(
        message=(
            "--checkpoint: must be another folder than --out; got s3://b/x/. Choose one of its own."
        ),
        options=(*RIDES, "--out", "s3://b/x?region=a", "--checkpoint", "s3://b/x/"),
    ),
    "--out in Kafka without a port": Mistake(
        message=(
            "--out: a broker must be host:port; got 'host'. Write it like "
            "kafka://localhost:9092/rides; with several brokers host:port,host:port."
        ),
        options=(*RIDES, "--out", "kafka://host/topic"),
    ),
    "--out in Kafka as Protobuf": Mistake(
        message=(
            "--out: format must be json or csv or avro; got format=protobuf. Values in Protobuf "
            "are read, and not written. Write format=avro and registry=http://localhost:8081, "
            "which registers a schema of the results, or format=json."
        ),
        options=(*RIDES, "--out", "kafka://host:9092/topic?format=protobuf"),
    ),
    "--out in Postgres without a table": Mistake(
        message=(
            "--out: must name a table; got no table=. Write "
            "postgresql://user@host:port/database?table=name."
        ),
        options=(*RIDES, "--out", "postgresql://u@host/db"),
    ),
    "--out in Postgres with a password": Mistake(
        message=(
            "--out: a URI must be without keys and passwords; got "
            "postgresql://u:...@host/db?table=t. Leave it out, and have it in PGPASSWORD, or in "
            "~/.pgpass."
        ),
        options=(*RIDES, "--out", "postgresql://u:secret@host/db?table=t"),
    ),
    "--out in Postgres with a password as a parameter": Mistake(
        message=(
            "--out: a URI must be without keys and passwords; got "
            "postgresql://u@host/db?table=t&password=... Leave it out, and have it in PGPASSWORD, "
            "or in ~/.pgpass."
        ),
        options=(*RIDES, "--out", "postgresql://u@host/db?table=t&password=secret"),
    ),
    "--out in Postgres with a parameter misspelt": Mistake(
        message=(
            "--out: parameters must be those of Postgres; got newst=... Did you mean newest? "
            "There are: table, newest, sslmode, sslrootcert, sslcert, sslkey, sslcrl, "
            "sslnegotiation, channel_binding, require_auth, gssencmode, krbsrvname, "
            "target_session_attrs, load_balance_hosts, connect_timeout, keepalives, "
            "keepalives_idle, tcp_user_timeout, application_name, service, ..."
        ),
        options=(*RIDES, "--out", "postgresql://u@host/db?table=t&newst=true"),
    ),
    "--out in Postgres with the host as a parameter": Mistake(
        message=(
            "--out: parameters must be those of Postgres; got host=... Write it before the ?, as "
            "in postgresql://user@host:port/database."
        ),
        options=(*RIDES, "--out", "postgresql:///db?table=t&host=h"),
    ),
    "--out in Postgres with a wrong newest": Mistake(
        message=(
            "--out: newest must be true or false; got yes. Write newest=true for one row of each "
            "key, or leave it out."
        ),
        options=(*RIDES, "--out", "postgresql://u@host/db?table=t&newest=yes"),
    ),
    "--out in Postgres without slashes": Mistake(
        message=(
            "--out: a URI of Postgres must have its slashes; got postgresql:db. Write "
            "postgresql://user@host:port/database?table=name."
        ),
        options=(*RIDES, "--out", "postgresql:db?table=t"),
    ),
    "--out in a table of three names": Mistake(
        message=(
            "postgresql://u@host/db: table must be a name, or schema.name; got a.b.c. Write "
            "postgresql://user@host:port/database?table=name."
        ),
        options=(*RIDES, "--out", "postgresql://u@host/db?table=a.b.c"),
    ),
    "--out in Postgres with a format": Mistake(
        message=(
            "--format: is for results in files and topics; got csv for "
            "postgresql://u@host/db?table=t. Give a folder as --out, or leave --format out."
        ),
        options=(*RIDES, "--out", "postgresql://u@host/db?table=t", "--format", "csv"),
    ),
    "--out in Postgres that does not answer": Mistake(
        message=(
            "postgresql://u@127.0.0.1:1/db, table t: must be a table that can be written; got "
            "{words}. See that the server runs, and that host, port and sslmode are right."
        ),
        options=(*RIDES, "--out", "postgresql://u@127.0.0.1:1/db?table=t"),
    ),
    "--out in Delta with a format": Mistake(
        message=(
            "--format: is for results in files and topics; got csv for delta:out. Give a folder "
            "as --out, or leave --format out."
        ),
        options=(*RIDES, "--out", "delta:out", "--format", "csv"),
    ),
    "--out in Iceberg without a table": Mistake(
        message=(
            "--out: must name a table with its namespace; got no table. Write "
            "iceberg:lake.db?table=namespace.table."
        ),
        options=(*RIDES, "--out", "iceberg:lake.db"),
    ),
    "--out in Delta with keys": Mistake(
        message=(
            "--out: a URI must be without keys and passwords; got delta+s3://key:...@bucket/out. "
            "Leave it out, and have it in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or in "
            "~/.aws/credentials."
        ),
        options=(*RIDES, "--out", "delta+s3://key:secret@bucket/out"),
    ),
    "--out of a misspelt scheme": Mistake(
        message=(
            "--out: must be a path or of a known scheme; got consol:. Did you mean console? "
            "There are: file, console, kafka, s3, gs, abfs, hdfs, postgresql, delta, delta+s3, "
            "iceberg. A folder of this name is ./consol:."
        ),
        options=(*RIDES, "--out", "consol:"),
    ),
    "--out with a colon": Mistake(
        message=(
            "--out: must be a path or of a known scheme; got run:. There are: file, console, "
            "kafka, s3, gs, abfs, hdfs, postgresql, delta, delta+s3, iceberg. A folder of this "
            "name is ./run:1."
        ),
        options=(*RIDES, "--out", "run:1"),
    ),
    "--out in memory": Mistake(
        message=(
            "--out: must be a place that outlives the command; got memory:. memory: is for "
            "Python programs. Use a folder, or console:."
        ),
        options=(*RIDES, "--out", "memory:"),
    ),
    "--out as on Windows": Mistake(
        message=(
            "--out: must be a folder of this system, or a URI; got the Windows path C:\\out. "
            "Write it as this system does, for example out or /data/out."
        ),
        options=(*RIDES, "--out", "C:\\out"),
    ),
    "--out on another host": Mistake(
        message=(
            "--out: a file URI must name a folder on this machine; got file://o/p. Write it as "
            "file:///o/p, or as a plain path."
        ),
        options=(*RIDES, "--out", "file://o/p"),
    ),
    "--out as the URI of a file": Mistake(
        message="rides.csv: the output must be a folder; got a file. Choose another --out.",
        options=(*RIDES, "--out", "file:rides.csv?format=csv"),
    ),
    "--out with an unknown format": Mistake(
        message="--out: must be a known format; got format=xml. There are: parquet, csv, json.",
        options=(*RIDES, "--out", "o?format=xml"),
    ),
    "--out with an unknown parameter": Mistake(
        message=(
            "--out: parameters must be those of file:; got fromat=csv. Did you mean format? "
            "There are: format, nonfinite."
        ),
        options=(*RIDES, "--out", "o?fromat=csv"),
    ),
    "--out with half a parameter": Mistake(
        message=(
            "--out: after the ? parameters must look like format=csv; got o?csv. In the name of "
            "a folder write ? as %3F and the whole as file:///path."
        ),
        options=(*RIDES, "--out", "o?csv"),
    ),
    "--out console: with a parameter": Mistake(
        message=(
            "--out: parameters must be those of console:; got format=csv. It has none: leave it "
            "out."
        ),
        options=(*RIDES, "--out", "console:?format=csv"),
    ),
    "--format beside another in --out": Mistake(
        message=(
            "--format: must be the format of --out, or left out; got json beside o?format=csv. "
            "Keep one of json and csv."
        ),
        options=(*RIDES, "--out", "o?format=csv", "--format", "json"),
    ),
    "--format of console:": Mistake(
        message=(
            "--format: is for results in files and topics; got json for console:. Give a folder as "
            "--out, or leave --format out."
        ),
        options=(*RIDES, "--out", "console:", "--format", "json"),
    ),
    "--format without --out": Mistake(
        message=(
            "--format: is for results in files and topics; got json for console:. Give a folder as "
            "--out, or leave --format out."
        ),
        options=(*RIDES, "--format", "json"),
    ),
    "several outputs to console:": Mistake(
        message=(
            "--out: is needed by a script with several outputs, unless a terminal shows them; got "
            "a, b. Give a folder; each "
            "output gets one of its name in it."
        ),
        sql=f"INSERT INTO a {COUNT}; INSERT INTO b SELECT route FROM rides",
        options=(*RIDES, "--out", "console:"),
    ),
    "--checkpoint is --out as a URI": Mistake(
        message="--checkpoint: must be another folder than --out; got o. Choose one of its own.",
        options=(*RIDES, "--checkpoint", "o", "--out", "file:o?format=csv"),
    ),
    "--checkpoint of another query": Mistake(
        message=(
            "{folder}/state: must be the checkpoint of this query; got one of a query that "
            "differs: the state of aggregate does not have COUNT(*). What changed:\n"
            "  aggregate\n    - select SUM(fare) as n\n    + select COUNT(*) as n\n"
            "Use another --checkpoint and --out, or the query it was made with."
        ),
        options=(*RIDES, "--checkpoint", "state", "--out", "o"),
        before=Good(
            sql="SELECT SUM(fare) AS n FROM rides [RANGE 10 SECONDS]",
            options=(*RIDES, "--checkpoint", "state", "--out", "o"),
        ),
    ),
    "--checkpoint of changed SQL": Mistake(
        message=(
            "{folder}/state: must be the checkpoint of this query; got one of a query that "
            "differs: the state of aggregate was made with what has changed. What changed:\n"
            "  aggregate\n    + where fare > 0\n"
            "Use another --checkpoint and --out, or the query it was made with. What may change is "
            "what follows the state: HAVING, ORDER BY, LIMIT, the select list, and WHERE after a "
            "join."
        ),
        sql=COUNT + " WHERE fare > 0",
        options=(*RIDES, "--checkpoint", "state", "--out", "o"),
        before=Good(
            sql=COUNT,
            options=(*RIDES, "--checkpoint", "state", "--out", "o", "--available-now"),
        ),
    ),
    "--checkpoint with other --buckets": Mistake(
        message=(
            "{folder}/state: was made with 64 buckets, which are fixed for its life; got "
            "--buckets 8. Use --buckets 64, or another --checkpoint and --out."
        ),
        options=(*RIDES, "--checkpoint", "state", "--buckets", "8", "--out", "o"),
        before=Good(sql=COUNT, options=(*RIDES, "--checkpoint", "state", "--out", "o")),
    ),
    "--checkpoint with another --out": Mistake(
        message=(
            "o2: must have the results of this checkpoint, up to batch=00000000; got no "
            "batch=00000000. Continue with the --out of the earlier run, or start from an "
            "empty checkpoint; if the results were moved away on purpose, make an empty folder "
            "batch=00000000."
        ),
        options=(*RIDES, "--checkpoint", "state", "--out", "o2"),
        before=Good(sql=COUNT, options=(*RIDES, "--checkpoint", "state", "--out", "o")),
    ),
    "--checkpoint is a file": Mistake(
        message=(
            "{folder}/rides.csv: the checkpoint must be a folder; got Not a directory. Choose "
            "another folder."
        ),
        options=(*RIDES, "--checkpoint", "rides.csv"),
    ),
    "--checkpoint is --out": Mistake(
        message="--checkpoint: must be another folder than --out; got o. Choose one of its own.",
        options=(*RIDES, "--checkpoint", "o", "--out", "o"),
    ),
    "--out with other format": Mistake(
        message=(
            "--format: must be that of the results in o, parquet; got csv. Use --format "
            "parquet, or another --out and --checkpoint."
        ),
        options=(*RIDES, "--checkpoint", "state", "--out", "o", "--format", "csv"),
        before=Good(sql=COUNT, options=(*RIDES, "--checkpoint", "state", "--out", "o")),
    ),
    "--summary in a missing folder": Mistake(
        message="--summary: must be in a folder that exists; got no folder no/such. Make it first.",
        options=(*RIDES, "--summary", "no/such/place.json"),
    ),
    "--summary is a folder": Mistake(
        message="--summary: must be a file; got the folder empty. Add a name.",
        options=(*RIDES, "--summary", "empty"),
    ),
    "--summary is query": Mistake(
        message="--summary: must be another file than the query; got q.sql. Choose another name.",
        options=(*RIDES, "--summary", "q.sql"),
    ),
    "--out without value": Mistake(
        message="--out: requires an argument.",
        options=(*RIDES, "--out"),
    ),
    "--conf without =": Mistake(
        message=(
            "--conf: must look like KEY=VALUE, for example spark.executor.memory=4g; got foo."
        ),
        options=(*RIDES, "--master", "local[1]", "--conf", "foo"),
    ),
    "--conf of something else": Mistake(
        message=(
            "--conf: the names of Spark's settings start with spark.; got executor.memory=4g. "
            "Did you mean spark.executor.memory?"
        ),
        options=(*RIDES, "--master", "local[1]", "--conf", "executor.memory=4g"),
    ),
    "--conf that changes what queries mean": Mistake(
        message=(
            "--conf: spark.sql.session.timeZone must be UTC, so that every run gives the same "
            "rows; got spark.sql.session.timeZone=CET. Leave it out."
        ),
        options=(*RIDES, "--master", "local[1]", "--conf", "spark.sql.session.timeZone=CET"),
    ),
    "--conf spark.master": Mistake(
        message=(
            "--conf: spark.master cannot be set here; got spark.master=yarn. Use --master, or "
            "master= in Python."
        ),
        options=(*RIDES, "--master", "local[1]", "--conf", "spark.master=yarn"),
    ),
    "--conf without Spark": Mistake(
        message=(
            "--conf: is for Spark; got spark.ui.enabled=true with --master none. Leave it out, or "
            "name another master."
        ),
        options=(*RIDES, "--conf", "spark.ui.enabled=true"),
    ),
    "--exchange shared on a cluster": Mistake(
        message=(
            "--exchange: shared needs all tasks on one host; got the master spark://there:7077. "
            "Use --exchange auto, which sends tuples from host to host."
        ),
        options=(*RIDES, "--master", "spark://there:7077", "--exchange", "shared"),
    ),
    "--master where nobody listens": Mistake(
        message=(
            "--master: must be a Spark master that answers; got spark://127.0.0.1:1 (Connection "
            "refused). See that it runs (sbin/start-master.sh) and that host and port are those it "
            "logs."
        ),
        options=(*RIDES, "--master", "spark://127.0.0.1:1", "--out", "results"),
    ),
    "--master lokal": Mistake(
        message=(
            "--master: must be none, local[N], or the URL of a Spark master; got lokal. Use "
            "for example local[2], spark://host:7077, or none to run without Spark."
        ),
        options=(*RIDES, "--master", "lokal"),
    ),
    "--master local[0]": Mistake(
        message=(
            "--master: must be none, local[N], or the URL of a Spark master; got local[0]. Use "
            "for example local[2], spark://host:7077, or none to run without Spark."
        ),
        options=(*RIDES, "--master", "local[0]"),
    ),
    "--master local[": Mistake(
        message=(
            "--master: must be none, local[N], or the URL of a Spark master; got local[2. Use "
            "for example local[2], spark://host:7077, or none to run without Spark."
        ),
        options=(*RIDES, "--master", "local[2"),
    ),
    "--follow=yes": Mistake(
        message="--follow: does not take a value.",
        options=(*RIDES, "--follow=yes"),
    ),
    "extra argument": Mistake(
        message=(
            "run: got unexpected extra argument (second.sql). `tidegate run --help` lists what "
            "there is."
        ),
        options=(*RIDES, "second.sql"),
    ),
    "rows in place of a query": Mistake(
        message="SQL line 1, column 1: expected CREATE STREAM, INSERT INTO or SELECT; got ts.",
        sql="ts,route\n1,2\n",
    ),
    "--instances -2": Mistake(
        message="--instances: must be at least 1; got -2.",
        options=(*RIDES, "--instances", "-2"),
    ),
    "--instances 2.5": Mistake(
        message="--instances: must be a whole number, or NAME=N; got 2.5.",
        options=(*RIDES, "--instances", "2.5"),
    ),
    "--buckets many": Mistake(
        message="--buckets: must be a whole number; got many.",
        options=(*RIDES, "--buckets", "many"),
    ),
    "--batch-rows -5": Mistake(
        message="--batch-rows: must be at least 1; got -5.",
        options=(*RIDES, "--batch-rows", "-5"),
    ),
}
