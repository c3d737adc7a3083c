import { useEffect, useState } from "react";

/** Whether Airflow is dark now: a canvas does not follow a style sheet by itself. */
export const useTheme = (): string => {
  const read = () => document.documentElement.className;
  const [theme, setTheme] = useState(read);

  useEffect(() => {
    const observer = new MutationObserver(() => setTheme(read()));

    observer.observe(document.documentElement, { attributeFilter: ["class"], attributes: true });

    return () => observer.disconnect();
  }, []);

  return theme;
};
