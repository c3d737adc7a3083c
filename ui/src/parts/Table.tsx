import type { ReactNode } from "react";

export type Column<Row> = {
  name: string;
  cell: (row: Row) => ReactNode;
  isNumber?: boolean;
};

type Props<Row> = {
  readonly caption: string;
  readonly columns: Array<Column<Row>>;
  readonly rows: Row[];
  readonly keyOf: (row: Row) => string | number;
};

/** A plain table, which scrolls by itself where the page is narrow. */
export const Table = <Row,>({ caption, columns, keyOf, rows }: Props<Row>) => (
  <div aria-label={caption} className="tg-scroll" role="group" tabIndex={0}>
    <table>
      <caption className="tg-hidden">{caption}</caption>
      <thead>
        <tr>
          {columns.map((column) => (
            <th className={column.isNumber ? "tg-number" : undefined} key={column.name} scope="col">
              {column.name}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={keyOf(row)}>
            {columns.map((column) => (
              <td className={column.isNumber ? "tg-number" : undefined} key={column.name}>
                {column.cell(row)}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  </div>
);
