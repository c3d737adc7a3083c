import { readDoctor } from "../api/client";
import { usePolled } from "../api/usePolled";
import { Badge } from "../parts/Badge";
import { Problem } from "../parts/Problem";
import { Section } from "../parts/Section";

const KINDS = { error: "error", info: "new", warning: "warning" };

/** What is wrong, and what to do; looked at when the page opens and when asked again. */
export const Doctor = ({ name }: { readonly name: string }) => {
  const { data, error, refresh } = usePolled(() => readDoctor(name));

  return (
    <Section
      aside={
        <button onClick={refresh} type="button">
          Look again
        </button>
      }
      title="Doctor"
    >
      <Problem error={error} />
      <div aria-live="polite">
        {data === undefined && error === undefined ? <p>Looking …</p> : undefined}
        {data?.faults.length === 0 ? <p>Nothing is wrong.</p> : undefined}
        <ul className="tg-faults">
          {data?.faults.map((fault) => (
            <li key={`${fault.code} ${fault.file}`}>
              <Badge kind={KINDS[fault.severity]}>{fault.code}</Badge> {fault.message}
              <br />
              <strong>What to do:</strong> {fault.remedy || "Nothing."}
            </li>
          ))}
        </ul>
      </div>
    </Section>
  );
};
