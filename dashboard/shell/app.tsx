// The page as a whole: who looks at it, what it hears of, and which part of it is shown.

import { QueryClient, QueryClientProvider, useQuery, useQueryClient } from "@tanstack/react-query";
import { Component, lazy, type ReactNode, Suspense, useEffect } from "react";
import { Route, Router, Switch } from "wouter";
import { BASE_PATH, call, onUnauthorized, Refused } from "../api/call.js";
import { LiveProvider } from "../live/live.js";
import { Overview } from "../overview/overview.js";
import { Empty, PageHead, Waiting } from "../shared/panel.js";
import { RefusalNote } from "../shared/refusal.js";
import { ToastProvider } from "../shared/toast.js";
import { ZoneProvider } from "../shared/zone.js";
import { Frame } from "./frame.js";
import { MeContext } from "./me.js";

const Login = lazy(() => import("../login/login.js").then((m) => ({ default: m.Login })));
const Schedules = lazy(() =>
  import("../schedules/schedules.js").then((m) => ({ default: m.Schedules })),
);
const SchedulePage = lazy(() =>
  import("../schedule/schedule.js").then((m) => ({ default: m.SchedulePage })),
);
const Runs = lazy(() => import("../runs/runs.js").then((m) => ({ default: m.Runs })));
const RunPage = lazy(() => import("../run/run.js").then((m) => ({ default: m.RunPage })));
const Queues = lazy(() => import("../queues/queues.js").then((m) => ({ default: m.Queues })));
const Locks = lazy(() => import("../locks/locks.js").then((m) => ({ default: m.Locks })));
const Instances = lazy(() =>
  import("../instances/instances.js").then((m) => ({ default: m.Instances })),
);
const Alerts = lazy(() => import("../alerts/alerts.js").then((m) => ({ default: m.Alerts })));
const Check = lazy(() => import("../check/check.js").then((m) => ({ default: m.Check })));
const Audit = lazy(() => import("../audit/audit.js").then((m) => ({ default: m.Audit })));
const Settings = lazy(() =>
  import("../settings/settings.js").then((m) => ({ default: m.Settings })),
);

const client = new QueryClient({
  defaultOptions: {
    queries: {
      // Hints say when something changed; in between what was read is taken as it is.
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
          <Suspense fallback={<Waiting />}>
            <Login />
          </Suspense>
        )}
      </Router>
    </MeContext>
  );
}

function Pages() {
  return (
    <Suspense fallback={<Waiting rows={6} />}>
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
            The address may be mistyped, or of another version. The menu leads to every page there
            is.
          </Empty>
        </Route>
      </Switch>
    </Suspense>
  );
}

function plain(text: string | undefined): string {
  try {
    return decodeURIComponent(text ?? "");
  } catch {
    return text ?? "";
  }
}

/** One part that fails must not leave a white page. */
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
