import { type FormEvent, useRef, useState } from "react";
import { Link } from "react-router-dom";

import { ApiError, readParams, trigger } from "../api/client";
import type { BatchPoint, DagRun, Param } from "../api/types";
import { tellProblem } from "../parts/Problem";
import { BackfillField } from "./BackfillField";
import { fill, readForm, suggestRange, type Values } from "./fields";

type Props = { readonly name: string; readonly newest: BatchPoint | undefined };

const DAG = "backfill";

const tell = (reason: unknown): string => {
  if (reason instanceof ApiError && reason.status === 404) {
    return "There is no DAG 'backfill' in this Airflow.";
  }
  if (reason instanceof ApiError && reason.status === 403) {
    return "You may not start a backfill.";
  }

  return reason instanceof Error ? tellProblem(reason) : String(reason);
};

/**
 * The form of the DAG 'backfill', filled in for this pipeline.
 *
 * Airflow's own form can be neither opened nor filled in by a link, so its fields are shown here, as the
 * DAG declares them, and Airflow's own API starts the run.
 */
export const Backfill = ({ name, newest }: Props) => {
  const dialog = useRef<HTMLDialogElement>(null);
  const [params, setParams] = useState<Record<string, Param>>({});
  const [values, setValues] = useState<Values>({});
  const [problem, setProblem] = useState<string>();
  const [begun, setBegun] = useState<DagRun>();

  const open = () => {
    setProblem(undefined);
    setBegun(undefined);
    dialog.current?.showModal();
    readParams(DAG).then(
      (found) => {
        setParams(found);
        setValues(fill(found, { pipeline: name, ...suggestRange(newest) }));
      },
      (reason: unknown) => setProblem(tell(reason)),
    );
  };

  const submit = (event: FormEvent) => {
    event.preventDefault();
    Promise.resolve()
      .then(() => trigger(DAG, readForm(params, values)))
      .then(setBegun)
      .catch((reason: unknown) => setProblem(tell(reason)));
  };

  return (
    <>
      <button className="tg-primary" onClick={open} type="button">
        Backfill …
      </button>
      <dialog aria-labelledby="tg-backfill" className="tg-dialog" ref={dialog}>
        <form onSubmit={submit}>
          <h2 id="tg-backfill">Backfill {name}</h2>
          <div className="tg-fields">
            {Object.entries(params).map(([field, param]) => (
              <BackfillField
                key={field}
                name={field}
                onChange={(value) => setValues({ ...values, [field]: value })}
                param={param}
                value={values[field] ?? ""}
              />
            ))}
          </div>
          <p aria-live="polite" role="status">
            {problem}
            {begun ? (
              <Link to={`/dags/${DAG}/runs/${encodeURIComponent(begun.dag_run_id)}`}>
                It has begun: {begun.dag_run_id}
              </Link>
            ) : undefined}
          </p>
          <div className="tg-row">
            <button onClick={() => dialog.current?.close()} type="button">
              Close
            </button>
            <button className="tg-primary" disabled={Object.keys(params).length === 0} type="submit">
              Start
            </button>
          </div>
        </form>
      </dialog>
    </>
  );
};
