import { useMemo, useState } from "react";

import { readFleet } from "../api/client";
import type { PipelineHealth } from "../api/types";
import { usePolled } from "../api/usePolled";
import { Badge } from "../parts/Badge";
import { moment } from "../parts/format";
import { Problem } from "../parts/Problem";
import { COLUMNS } from "./columns";
import { FleetTable } from "./FleetTable";
import { filterBy, type Order, sortBy, turn } from "./order";

const REFRESH_SECONDS = 10;

const tally = (rows: PipelineHealth[]) =>
  (["error", "warning", "ok", "new"] as const)
    .map((health) => [health, rows.filter((row) => row.health === health).length] as const)
    .filter(([, count]) => count > 0);

/** Every pipeline that the user may see. */
export const FleetPage = () => {
  const { data, error } = usePolled(readFleet, REFRESH_SECONDS);
  const [order, setOrder] = useState<Order>({ column: "health", isDescending: false });
  const [text, setText] = useState("");
  const shown = useMemo(() => {
    const column = COLUMNS.find(({ id }) => id === order.column) ?? COLUMNS[0]!;

    return data ? sortBy(filterBy(data.pipelines, text), column.rank, order.isDescending, data.now) : [];
  }, [data, order, text]);

  return (
    <>
      <div className="tg-row">
        <h1>Pipelines</h1>
        {data ? (
          <p className="tg-muted">
            {tally(data.pipelines).map(([health, count]) => (
              <Badge key={health} kind={health}>{`${count} ${health}`}</Badge>
            ))}{" "}
            as of {moment(data.now)}
          </p>
        ) : undefined}
      </div>
      <div className="tg-row tg-tools">
        <label>
          Filter{" "}
          <input onChange={(event) => setText(event.target.value)} placeholder="name, state, …" type="search" value={text} />
        </label>
        <label className="tg-narrow">
          Sort by{" "}
          <select onChange={(event) => setOrder(turn(order, event.target.value))} value={order.column}>
            {COLUMNS.map(({ id, name }) => (
              <option key={id} value={id}>
                {name}
              </option>
            ))}
          </select>
        </label>
        <span aria-live="polite" className="tg-muted">
          {data ? `${shown.length} of ${data.pipelines.length} pipelines` : "Loading …"}
        </span>
      </div>
      <Problem error={error} />
      {data ? (
        <FleetTable now={data.now} onSort={(column) => setOrder(turn(order, column))} order={order} rows={shown} />
      ) : undefined}
    </>
  );
};
