// Buttons of four kinds: main, plain, quiet, and danger for actions that cannot be undone.

import type { ButtonHTMLAttributes, ReactNode } from "react";

const KINDS = {
  main: "bg-accent text-on-accent border-transparent hover:opacity-90 font-medium",
  plain: "bg-surface border-line hover:border-planned",
  quiet: "border-transparent text-muted hover:text-ink hover:bg-sunken",
  danger: "bg-surface border-failed/50 text-failed-ink hover:bg-failed/8",
} as const;

type ButtonProps = Omit<ButtonHTMLAttributes<HTMLButtonElement>, "className"> & {
  readonly kind?: keyof typeof KINDS;
  readonly isSmall?: boolean;
  readonly children: ReactNode;
};

export function Button({ kind = "plain", isSmall = false, type = "button", ...rest }: ButtonProps) {
  const size = isSmall ? "min-h-7 px-2 text-xs" : "min-h-8.5 px-3";
  return (
    <button
      type={type}
      className={`inline-flex items-center justify-center gap-1.5 rounded-md border whitespace-nowrap disabled:cursor-not-allowed disabled:opacity-50 ${size} ${KINDS[kind]}`}
      {...rest}
    />
  );
}
