import { Link } from "react-router-dom";

import { ApiError, readBatches, readPipeline } from "../api/client";
import { usePolled } from "../api/usePolled";
import { Charts } from "../charts/Charts";
import { Problem } from "../parts/Problem";
import { Backfill } from "./Backfill";
import { Doctor } from "./Doctor";
import { Positions } from "./Positions";
import { QuarantineSample } from "./QuarantineSample";
import { Runs } from "./Runs";
import { SpecText } from "./SpecText";
import { Summary } from "./Summary";
import { Timeline } from "./Timeline";

type Props = { readonly isTab: boolean; readonly name: string };

const REFRESH_SECONDS = 10;
const BATCHES = 100;

/** One pipeline in full. */
export const PipelinePage = ({ isTab, name }: Props) => {
  const detail = usePolled(() => readPipeline(name), REFRESH_SECONDS);
  const history = usePolled(() => readBatches(name, BATCHES), REFRESH_SECONDS);
  const batches = history.data?.history.batches;

  if (isTab && detail.error instanceof ApiError && detail.error.status === 404) {
    return <p>This DAG is not one of a tidegate pipeline.</p>;
  }

  return (
    <>
      <div className="tg-row">
        <h1>{name}</h1>
        <span className="tg-row">
          <Link to="/plugin/tidegate">All pipelines</Link>
          {isTab ? undefined : <Link to={`/dags/${encodeURIComponent(name)}`}>DAG</Link>}
          <Backfill name={name} newest={batches?.[0]} />
        </span>
      </div>
      <Problem error={detail.error ?? history.error} />
      {detail.data ? (
        <>
          <p className="tg-muted">{detail.data.health.description}</p>
          <Summary detail={detail.data} />
          {batches && batches.length > 0 ? (
            <>
              <Timeline batches={batches} health={detail.data.health} />
              <Charts batches={batches} />
            </>
          ) : undefined}
          <Positions detail={detail.data} />
          <Runs batches={batches ?? []} name={name} />
          <Doctor name={name} />
          {detail.data.has_quarantine ? <QuarantineSample name={name} /> : undefined}
          <SpecText name={name} />
        </>
      ) : undefined}
    </>
  );
};
