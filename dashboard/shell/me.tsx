// Who looks at the page and what they may do. Buttons are shown only to those who may press them.

import { createContext, use } from "react";
import type { Me, Scope } from "../api/wire.js";

export const MeContext = createContext<Me>({
  scopes: [],
  by: null,
  login: "secret",
  hasEvents: false,
});

export function useMe(): Me {
  return use(MeContext);
}

export function useMay(scope: Scope): boolean {
  return useMe().scopes.includes(scope);
}
