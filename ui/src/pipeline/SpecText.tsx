import { readSpec } from "../api/client";
import { usePolled } from "../api/usePolled";
import { Problem } from "../parts/Problem";
import { Section } from "../parts/Section";

/** The spec as it was written. */
export const SpecText = ({ name }: { readonly name: string }) => {
  const { data, error } = usePolled(() => readSpec(name));

  return (
    <Section title="Spec">
      <Problem error={error} />
      {data ? (
        <pre aria-label={data.file} role="group" tabIndex={0}>
          {data.text}
        </pre>
      ) : undefined}
    </Section>
  );
};
