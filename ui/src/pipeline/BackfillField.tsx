import { useId } from "react";

import type { Param } from "../api/types";
import { kindOf } from "./fields";

type Props = {
  readonly name: string;
  readonly onChange: (value: string | boolean) => void;
  readonly param: Param;
  readonly value: string | boolean;
};

const TYPES = { integer: "number", time: "datetime-local" } as Record<string, string>;

const Control = ({ id, onChange, param, value }: Omit<Props, "name"> & { readonly id: string }) => {
  const kind = kindOf(param);
  const shared = { "aria-describedby": `${id}-help`, id };

  if (kind === "toggle") {
    return <input {...shared} checked={Boolean(value)} onChange={(event) => onChange(event.target.checked)} type="checkbox" />;
  }
  if (kind === "choice") {
    return (
      <select {...shared} onChange={(event) => onChange(event.target.value)} value={String(value)}>
        {param.schema.enum?.map((one) => (
          <option key={String(one)}>{String(one)}</option>
        ))}
      </select>
    );
  }
  if (kind === "json" || kind === "lines") {
    return <textarea {...shared} onChange={(event) => onChange(event.target.value)} rows={2} value={String(value)} />;
  }

  return (
    <input
      {...shared}
      max={param.schema.maximum}
      min={param.schema.minimum}
      onChange={(event) => onChange(event.target.value)}
      type={TYPES[kind] ?? "text"}
      value={String(value)}
    />
  );
};

/** One parameter of the DAG. */
export const BackfillField = ({ name, onChange, param, value }: Props) => {
  const id = useId();

  return (
    <div className="tg-field">
      <label htmlFor={id}>{param.schema.title ?? name}</label>
      <Control id={id} onChange={onChange} param={param} value={value} />
      <small id={`${id}-help`}>{param.description}</small>
    </div>
  );
};
