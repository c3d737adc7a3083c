import type {
  BatchPage,
  DagRun,
  Findings,
  FleetPage,
  Param,
  PartitionLags,
  PipelineDetail,
  PipelineHealth,
  Quarantine,
  Spec,
} from "./types";

const PAGE = 500;

/** An answer that was not what was asked for. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

const locate = (path: string) => new URL(path, document.baseURI).href;

const logIn = () => {
  const next = encodeURIComponent(globalThis.location.href);

  globalThis.location.replace(locate(`api/v2/auth/login?next=${next}`));
};

const tell = async (answer: Response): Promise<string> => {
  const body = (await answer.json().catch(() => undefined)) as { detail?: unknown } | undefined;
  const detail = body?.detail;

  if (typeof detail === "string") {
    return detail;
  }

  return detail === undefined ? answer.statusText : JSON.stringify(detail);
};

const request = async <T>(path: string, init?: RequestInit): Promise<T> => {
  const answer = await fetch(locate(path), { credentials: "same-origin", ...init });

  if (answer.status === 401) {
    logIn();
  }
  if (!answer.ok) {
    throw new ApiError(answer.status, await tell(answer));
  }

  return (await answer.json()) as T;
};

const of = (name: string, rest = "") => `tidegate/api/pipelines/${encodeURIComponent(name)}${rest}`;

/** Reads every pipeline, page by page. */
export const readFleet = async (): Promise<FleetPage> => {
  const first = await request<FleetPage>(`tidegate/api/fleet?limit=${PAGE}`);
  const all: PipelineHealth[] = [...first.pipelines];

  while (all.length < first.total) {
    const more = await request<FleetPage>(`tidegate/api/fleet?limit=${PAGE}&offset=${all.length}`);

    if (more.pipelines.length === 0) {
      break;
    }
    all.push(...more.pipelines);
  }

  return { ...first, pipelines: all };
};

export const readPipeline = (name: string) => request<PipelineDetail>(of(name));
export const readBatches = (name: string, limit: number) =>
  request<BatchPage>(of(name, `/batches?limit=${limit}`));
export const readSpec = (name: string) => request<Spec>(of(name, "/spec"));
export const readDoctor = (name: string) => request<Findings>(of(name, "/doctor"));
export const readLag = (name: string) => request<PartitionLags>(of(name, "/lag"));
export const readQuarantine = (name: string) => request<Quarantine>(of(name, "/quarantine"));

/** Airflow's own API, which checks for itself what the user may do. */
export const readRuns = async (name: string): Promise<DagRun[]> => {
  const path = `api/v2/dags/${encodeURIComponent(name)}/dagRuns?order_by=-run_after&limit=25`;

  return (await request<{ dag_runs: DagRun[] }>(path)).dag_runs;
};

export const readParams = async (dagId: string): Promise<Record<string, Param>> =>
  (await request<{ params: Record<string, Param> | null }>(`api/v2/dags/${dagId}/details`)).params ?? {};

export const trigger = (dagId: string, conf: Record<string, unknown>): Promise<DagRun> =>
  request<DagRun>(`api/v2/dags/${dagId}/dagRuns`, {
    body: JSON.stringify({ conf, logical_date: null }),
    headers: { "Content-Type": "application/json" },
    method: "POST",
  });
