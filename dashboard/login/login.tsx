// The login: exchanges a secret for a cookie that no script can read.

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { call } from "../api/call.js";
import { Button } from "../shared/button.js";
import { Code } from "../shared/panel.js";
import { refusalText } from "../shared/refusal.js";
import { useMe } from "../shell/me.js";

export function Login() {
  const { login, scopes } = useMe();
  return (
    <main className="grid min-h-dvh place-items-center p-4">
      <div className="w-full max-w-sm rounded-xl border border-line bg-surface p-6">
        <h1 className="text-xl font-semibold tracking-tight">Holdfast</h1>
        {login === "secret" ? <SecretForm isMore={scopes.length > 0} /> : null}
        {login === "elsewhere" ? (
          <p className="mt-2 text-muted">
            Your application decides who has access, and it did not recognize you. Sign in to the
            application, then reload this page.
          </p>
        ) : null}
        {login === "none" ? (
          <p className="mt-2 text-muted">
            No secret is set, so nobody has access to this page. Set{" "}
            <Code>HOLDFAST_READ_SECRET</Code> or <Code>HOLDFAST_ADMIN_SECRET</Code> and start again.
          </p>
        ) : null}
      </div>
    </main>
  );
}

function SecretForm({ isMore }: { readonly isMore: boolean }) {
  const [secret, setSecret] = useState("");
  const client = useQueryClient();
  const login = useMutation({
    mutationFn: () => call("createSession", "POST /api/session", { body: { secret } }),
    onSuccess: () => client.invalidateQueries(),
  });
  return (
    <form
      className="mt-3 grid gap-3"
      onSubmit={(event) => {
        event.preventDefault();
        login.mutate();
      }}
    >
      <p className="text-muted">
        {isMore
          ? "You have no access to this page. A secret with the scope read or admin opens it."
          : "A secret with the scope read shows everything; one with the scope admin may change it too."}
      </p>
      <label className="grid gap-1">
        <span className="font-medium">Secret</span>
        <input
          className="field"
          type="password"
          autoComplete="current-password"
          required
          value={secret}
          aria-invalid={login.isError}
          aria-describedby="login-problem"
          onChange={(event) => setSecret(event.target.value)}
        />
      </label>
      <p id="login-problem" role="alert" className="min-h-5 text-failed-ink">
        {login.isError ? problemOf(login.error) : ""}
      </p>
      <Button type="submit" kind="main" disabled={login.isPending || secret === ""}>
        Log in
      </Button>
    </form>
  );
}

function problemOf(error: unknown): string {
  const text = refusalText(error);
  return text.startsWith("A valid secret")
    ? "This secret is not valid. Check for spaces around it."
    : text;
}
