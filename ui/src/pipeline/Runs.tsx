import { Link } from "react-router-dom";

import { readRuns } from "../api/client";
import type { BatchPoint, DagRun } from "../api/types";
import { usePolled } from "../api/usePolled";
import { Badge } from "../parts/Badge";
import { count, moment, seconds } from "../parts/format";
import { Problem } from "../parts/Problem";
import { Section } from "../parts/Section";
import { Table } from "../parts/Table";

type Props = { readonly batches: BatchPoint[]; readonly name: string };

const REFRESH_SECONDS = 15;
const TASKS = ["plan", "submit", "confirm"];
const KINDS: Record<string, string> = { failed: "error", queued: "new", running: "warning", success: "ok" };

const locate = (name: string, run: string, rest = "") =>
  `/dags/${encodeURIComponent(name)}/runs/${encodeURIComponent(run)}${rest}`;

const addUp = (batches: BatchPoint[], pick: (batch: BatchPoint) => number | null): number | null => {
  const values = batches.map(pick);

  return values.includes(null) ? null : values.reduce<number>((sum, value) => sum + (value ?? 0), 0);
};

/** Airflow's runs of the DAG, with what each committed, and the way to its logs. */
export const Runs = ({ batches, name }: Props) => {
  const { data, error } = usePolled(() => readRuns(name), REFRESH_SECONDS);
  const of = (run: DagRun) => batches.filter((batch) => batch.run_id === run.dag_run_id);

  return (
    <Section title="Runs">
      <Problem error={error} />
      {data?.length === 0 ? <p>Airflow has no run of it yet.</p> : undefined}
      <Table
        caption="The newest runs"
        columns={[
          { cell: (run) => <Link to={locate(name, run.dag_run_id)}>{run.dag_run_id}</Link>, name: "Run" },
          { cell: (run) => <Badge kind={KINDS[run.state] ?? "new"}>{run.state}</Badge>, name: "State" },
          { cell: (run) => moment(run.start_date), name: "Started" },
          { cell: (run) => seconds(run.duration), isNumber: true, name: "Took" },
          { cell: (run) => of(run).length, isNumber: true, name: "Batches" },
          { cell: (run) => count(addUp(of(run), (batch) => batch.written_rows)), isNumber: true, name: "Rows written" },
          {
            cell: (run) =>
              TASKS.map((task) => (
                <Link
                  aria-label={`log of ${task} in ${run.dag_run_id}`}
                  className="tg-log"
                  key={task}
                  to={locate(name, run.dag_run_id, `/tasks/${task}`)}
                >
                  {task}
                </Link>
              )),
            name: "Logs",
          },
        ]}
        keyOf={(run) => run.dag_run_id}
        rows={data ?? []}
      />
    </Section>
  );
};
