import { readQuarantine } from "../api/client";
import { usePolled } from "../api/usePolled";
import { count, moment } from "../parts/format";
import { Problem } from "../parts/Problem";
import { Section } from "../parts/Section";
import { Table } from "../parts/Table";

/** What was put aside: how much by rule, and the newest of it. */
export const QuarantineSample = ({ name }: { readonly name: string }) => {
  const { data, error } = usePolled(() => readQuarantine(name));

  return (
    <Section title="Quarantine">
      <Problem error={error} />
      {data?.tallies.length === 0 ? <p>Nothing was put aside.</p> : undefined}
      {data && data.tallies.length > 0 ? (
        <>
          <Table
            caption="Put aside, by rule"
            columns={[
              { cell: (one) => one.rule, name: "Rule" },
              { cell: (one) => count(one.rows), isNumber: true, name: "Rows" },
              { cell: (one) => count(one.runs), isNumber: true, name: "Runs" },
              { cell: (one) => moment(one.last), name: "Last" },
            ]}
            keyOf={(one) => `${one.sink} ${one.rule}`}
            rows={data.tallies}
          />
          <Table
            caption="The newest that were put aside"
            columns={[
              { cell: ([, row]) => row.rule, name: "Rule" },
              { cell: ([, row]) => row.place.split("/").at(-1), name: "Place" },
              { cell: ([, row]) => row.reason, name: "Reason" },
              { cell: ([, row]) => <code>{row.content}</code>, name: "What" },
            ]}
            keyOf={([place]) => place}
            rows={[...data.rows.entries()]}
          />
        </>
      ) : undefined}
    </Section>
  );
};
