type Props = { readonly kind: string; readonly children: string };

/** A word in a colour; the word says all, the colour only helps. */
export const Badge = ({ children, kind }: Props) => <span className={`tg-badge tg-${kind}`}>{children}</span>;
