import { useParams } from "react-router-dom";

import { FleetPage } from "./fleet/FleetPage";
import { PipelinePage } from "./pipeline/PipelinePage";
import css from "./style.css?inline";

type Props = { readonly dagId?: string };

/** The whole page: one pipeline within its DAG or below the page's own route, else all of them. */
export const App = ({ dagId }: Props) => {
  const { "*": rest } = useParams();
  const name = dagId ?? rest?.split("/")[0];

  return (
    <div className="tg">
      <style>{css}</style>
      {name ? <PipelinePage key={name} name={name} isTab={Boolean(dagId)} /> : <FleetPage />}
    </div>
  );
};
