// Ends the session of the page.

import { useQueryClient } from "@tanstack/react-query";
import { call } from "../api/call.js";
import { useMe } from "./me.js";

export function Logout() {
  const me = useMe();
  const client = useQueryClient();
  if (me.by === null || me.login !== "secret") return null;
  return (
    <button
      type="button"
      className="link"
      onClick={async () => {
        await call("deleteSession", "DELETE /api/session");
        client.clear();
        location.reload();
      }}
    >
      Log out
    </button>
  );
}
