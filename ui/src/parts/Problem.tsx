import { ApiError } from "../api/client";

/** What went wrong, in words that help. */
export const tellProblem = (error: Error): string => {
  if (error instanceof ApiError && error.status === 403) {
    return "You may not see this. Ask for read access to the DAG.";
  }

  return error.message;
};

export const Problem = ({ error }: { readonly error: Error | undefined }) =>
  error ? (
    <p className="tg-problem" role="alert">
      {tellProblem(error)}
    </p>
  ) : undefined;
