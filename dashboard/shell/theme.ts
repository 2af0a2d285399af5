// Light or dark: the system's choice, unless the reader chose.

import { remember, remembered } from "../shared/memory.js";

export type Theme = "system" | "light" | "dark";

export function chosenTheme(): Theme {
  const theme = remembered("theme");
  return theme === "light" || theme === "dark" ? theme : "system";
}

export function applyTheme(theme: Theme = chosenTheme()): void {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}

export function chooseTheme(theme: Theme): void {
  remember("theme", theme);
  applyTheme(theme);
}
