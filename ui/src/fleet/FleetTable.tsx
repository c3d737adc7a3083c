import type { PipelineHealth } from "../api/types";
import { COLUMNS } from "./columns";
import type { Order } from "./order";

type Props = {
  readonly now: string;
  readonly onSort: (column: string) => void;
  readonly order: Order;
  readonly rows: PipelineHealth[];
};

const tellOrder = (order: Order, column: string) => {
  if (order.column !== column) {
    return undefined;
  }

  return order.isDescending ? "descending" : "ascending";
};

/** All pipelines; on a phone each row is a card. The roles are named, as cards would lose them. */
export const FleetTable = ({ now, onSort, order, rows }: Props) => (
  <table className="tg-fleet" role="table">
    <caption className="tg-hidden">Pipelines; the headers sort</caption>
    <thead role="rowgroup">
      <tr role="row">
        {COLUMNS.map((column) => (
          <th
            aria-sort={tellOrder(order, column.id)}
            className={column.isNumber ? "tg-number" : undefined}
            key={column.id}
            role="columnheader"
            scope="col"
          >
            <button onClick={() => onSort(column.id)} type="button">
              {column.name}
              <span aria-hidden="true" className="tg-arrow">
                {order.column === column.id ? (order.isDescending ? "▼" : "▲") : ""}
              </span>
            </button>
          </th>
        ))}
      </tr>
    </thead>
    <tbody role="rowgroup">
      {rows.map((row) => (
        <tr key={row.pipeline} role="row">
          {COLUMNS.map((column) => (
            <td
              className={column.isNumber ? "tg-number" : undefined}
              data-label={column.name}
              key={column.id}
              role="cell"
            >
              {column.cell(row, now)}
            </td>
          ))}
        </tr>
      ))}
    </tbody>
  </table>
);
