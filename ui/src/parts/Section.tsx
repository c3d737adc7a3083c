import { type ReactNode, useId } from "react";

type Props = { readonly title: string; readonly children: ReactNode; readonly aside?: ReactNode };

/** A part of a page, known to screen readers by its heading. */
export const Section = ({ aside, children, title }: Props) => {
  const id = useId();

  return (
    <section aria-labelledby={id} className="tg-section">
      <div className="tg-row">
        <h2 id={id}>{title}</h2>
        {aside}
      </div>
      {children}
    </section>
  );
};
