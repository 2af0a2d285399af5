// The page as a whole: finds out who is logged in, connects to the hints, and shows one of the pages.

import { QueryClient, QueryClientProvider, useQuery, useQueryClient } from "@tanstack/react-query";
import { Component, type ReactNode, useEffect } from "react";
import { Route, Router, Switch } from "wouter";
import { BASE_PATH, call, onUnauthorized, Refused } from "../api/call.js";
import { LiveProvider } from "../live/live.js";
import { Overview } from "../overview/overview.js";
import { Empty, PageHead, Waiting } from "../shared/panel.js";
import { RefusalNote } from "../shared/refusal.js";
import { ToastProvider } from "../shared/toast.js";
import { ZoneProvider } from "../shared/zone.js";
import { Frame } from "./frame.js";
import { fetchAhead, later } from "./later.js";
import { MeContext } from "./me.js";

const Login = later(() => import("../login/login.js").then((m) => m.Login));
const Schedules = later(() => import("../schedules/schedules.js").then((m) => m.Schedules));
const SchedulePage = later(() => import("../schedule/schedule.js").then((m) => m.SchedulePage));
const Runs = later(() => import("../runs/runs.js").then((m) => m.Runs));
const RunPage = later(() => import("../run/run.js").then((m) => m.RunPage));
const Queues = later(() => import("../queues/queues.js").then((m) => m.Queues));
const Locks = later(() => import("../locks/locks.js").then((m) => m.Locks));
const Instances = later(() => import("../instances/instances.js").then((m) => m.Instances));
const Alerts = later(() => import("../alerts/alerts.js").then((m) => m.Alerts));
const Check = later(() => import("../check/check.js").then((m) => m.Check));
const Audit = later(() => import("../audit/audit.js").then((m) => m.Audit));
const Settings = later(() => import("../settings/settings.js").then((m) => m.Settings));

const client = new QueryClient({
  defaultOptions: {
    queries: {
      // Hints report changes; between them, cached data counts as current.
      staleTime: 2_000,
      retry: (failures, error) => failures < 2 && error instanceof Refused && error.status >= 500,
      placeholderData: (before: unknown) => before,
    },
  },
});

export function App() {
  return (
    <QueryClientProvider client={client}>
      <ZoneProvider>
        <ToastProvider>
          <Guarded>
            <Inside />
          </Guarded>
        </ToastProvider>
      </ZoneProvider>
    </QueryClientProvider>
  );
}

function Inside() {
  const queries = useQueryClient();
  const me = useQuery({
    queryKey: ["me"],
    queryFn: () => call("me", "GET /api/me"),
    staleTime: 60_000,
  });
  useEffect(
    () => onUnauthorized(() => void queries.invalidateQueries({ queryKey: ["me"] })),
    [queries],
  );
  if (me.error && me.data === undefined)
    return (
      <main className="mx-auto max-w-xl p-6">
        <RefusalNote error={me.error} retry={() => void me.refetch()} />
      </main>
    );
  if (me.data === undefined) return <Waiting />;
  const mayRead = me.data.scopes.includes("read");
  return (
    <MeContext value={me.data}>
      <Router base={BASE_PATH}>
        {mayRead ? (
          <LiveProvider hasEvents={me.data.hasEvents}>
            <Frame>
              <Pages />
            </Frame>
          </LiveProvider>
        ) : (
          <Login />
        )}
      </Router>
    </MeContext>
  );
}

function Pages() {
  useEffect(fetchAhead, []);
  return (
    <Switch>
      <Route path="/" component={Overview} />
      <Route path="/login" component={Overview} />
      <Route path="/schedules" component={Schedules} />
      <Route path="/schedules/:name">
        {({ name }) => <SchedulePage key={name} name={plain(name)} />}
      </Route>
      <Route path="/runs" component={Runs} />
      <Route path="/runs/:id">{({ id }) => <RunPage key={id} id={plain(id)} />}</Route>
      <Route path="/queues" component={Queues} />
      <Route path="/locks" component={Locks} />
      <Route path="/instances" component={Instances} />
      <Route path="/alerts" component={Alerts} />
      <Route path="/check" component={Check} />
      <Route path="/audit" component={Audit} />
      <Route path="/settings" component={Settings} />
      <Route>
        <PageHead title="Nothing here" />
        <Empty title="There is no such page">
          The address may be mistyped, or of another version. The menu leads to every page there is.
        </Empty>
      </Route>
    </Switch>
  );
}

function plain(text: string | undefined): string {
  try {
    return decodeURIComponent(text ?? "");
  } catch {
    return text ?? "";
  }
}

/** An error in one part must not leave a blank page. */
class Guarded extends Component<{ readonly children: ReactNode }, { readonly error: unknown }> {
  override state: { readonly error: unknown } = { error: null };

  static getDerivedStateFromError(error: unknown) {
    return { error };
  }

  override render() {
    if (this.state.error === null) return this.props.children;
    return (
      <main className="mx-auto grid max-w-xl gap-3 p-6">
        <RefusalNote error={this.state.error} retry={() => location.reload()} />
      </main>
    );
  }
}
