import { readLag } from "../api/client";
import type { PartitionLag, PartitionPosition, PipelineDetail } from "../api/types";
import { usePolled } from "../api/usePolled";
import { count, seconds } from "../parts/format";
import { Problem } from "../parts/Problem";
import { Section } from "../parts/Section";
import { Table } from "../parts/Table";

const REFRESH_SECONDS = 60;

const Partitions = ({ name, partitions }: { readonly name: string; readonly partitions: PartitionPosition[] }) => {
  const { data, error } = usePolled(() => readLag(name), REFRESH_SECONDS);
  const live = new Map(data?.partitions.map((lag) => [`${lag.topic}-${lag.partition}`, lag]));
  const find = (one: PartitionPosition): PartitionLag | undefined => live.get(`${one.topic}-${one.partition}`);

  return (
    <>
      <Problem error={error ?? (data?.problem ? new Error(data.problem) : undefined)} />
      <Table
        caption="Offsets by partition"
        columns={[
          { cell: (one) => `${one.topic}-${one.partition}`, name: "Partition" },
          { cell: (one) => count(one.committed), isNumber: true, name: "Committed" },
          { cell: (one) => count(one.planned), isNumber: true, name: "Planned" },
          { cell: (one) => count(find(one)?.end), isNumber: true, name: "End now" },
          { cell: (one) => count(find(one)?.lag_records), isNumber: true, name: "Lag" },
          { cell: (one) => seconds(find(one)?.lag_seconds), isNumber: true, name: "Behind" },
          { cell: (one) => seconds(find(one)?.headroom_seconds), isNumber: true, name: "Kept for" },
        ]}
        keyOf={(one) => `${one.topic}-${one.partition}`}
        rows={partitions}
      />
    </>
  );
};

/** Where the query stands in each source. */
export const Positions = ({ detail }: { readonly detail: PipelineDetail }) => {
  const partitions = detail.positions.flatMap((position) => position.partitions);

  return (
    <Section title="Positions">
      {detail.positions.length === 0 ? <p>Nothing is committed yet.</p> : undefined}
      <ul className="tg-notes">
        {detail.positions.map((position) => (
          <li key={position.source}>
            {detail.positions.length > 1 ? `${position.source}: ` : ""}
            {position.kind}, committed {position.committed}
            {position.planned === position.committed ? "" : `, planned ${position.planned}`}
          </li>
        ))}
      </ul>
      {partitions.length > 0 ? <Partitions name={detail.health.pipeline} partitions={partitions} /> : undefined}
    </Section>
  );
};
