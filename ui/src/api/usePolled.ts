import { useCallback, useEffect, useRef, useState } from "react";

type Polled<T> = { data: T | undefined; error: Error | undefined; refresh: () => void };

/** Reads something now and every so often, but for while nobody looks; old answers stay on errors. */
export const usePolled = <T>(read: () => Promise<T>, seconds?: number): Polled<T> => {
  const [data, setData] = useState<T>();
  const [error, setError] = useState<Error>();
  const latest = useRef(read);

  latest.current = read;

  const refresh = useCallback(() => {
    latest.current().then(
      (answer) => {
        setData(answer);
        setError(undefined);
      },
      (reason: unknown) => setError(reason instanceof Error ? reason : new Error(String(reason))),
    );
  }, []);

  useEffect(() => {
    refresh();
    if (seconds === undefined) {
      return undefined;
    }
    const tick = () => document.visibilityState === "visible" && refresh();
    const timer = setInterval(tick, seconds * 1000);

    document.addEventListener("visibilitychange", tick);

    return () => {
      clearInterval(timer);
      document.removeEventListener("visibilitychange", tick);
    };
  }, [refresh, seconds]);

  return { data, error, refresh };
};
