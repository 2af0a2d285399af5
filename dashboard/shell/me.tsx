// The user of the page and their scopes. Buttons are shown only to users who may use them.

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
