"""An Airflow DAG that runs a query over what is new, every ten minutes, and one run at a time."""

from __future__ import annotations

from datetime import datetime, timedelta

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG

RUN = (
    "tidegate run /etc/tidegate/rides.sql --available-now"
    " --checkpoint s3://bucket/state/rides --out s3://bucket/rides"
    " --lineage http://marquez:5000"
)

with DAG(
    dag_id="rides",
    schedule=timedelta(minutes=10),
    start_date=datetime(2024, 1, 1),
    catchup=False,  # a run takes all there is, so a missed one is made up for by the next
    max_active_runs=1,  # the checkpoint lets one run in at a time
    default_args={"retries": 2, "retry_delay": timedelta(minutes=1)},
) as dag:
    BashOperator(
        task_id="rides",
        # With exec the SIGTERM of a cleared task reaches tidegate, which ends after its batch.
        # After exit code 2, a mistake in the query or the options, retries change nothing.
        bash_command=f"exec {RUN}",
        append_env=True,  # the worker has AWS_..., OPENLINEAGE_API_KEY and the like
        env={"OPENLINEAGE_NAMESPACE": "airflow"},
        execution_timeout=timedelta(hours=1),
    )
