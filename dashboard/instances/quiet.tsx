// Makes one instance quiet, and wakes it.

import { call } from "../api/call.js";
import type { Instance } from "../api/wire.js";
import { ActionButton } from "../shared/action.js";
import { useMay } from "../shell/me.js";

export function QuietButton({ instance }: { readonly instance: Instance }) {
  const mayChange = useMay("admin");
  if (!mayChange || !instance.isLive) return null;
  const params = { id: instance.id };
  if (instance.quietAt !== null)
    return (
      <ActionButton
        label="Wake"
        isSmall
        act={async () => {
          await call("wakeInstance", "POST /api/instances/{id}/wake", { params, body: {} });
          return "It claims and fires again.";
        }}
      />
    );
  return (
    <ActionButton
      label="Quiet"
      isSmall
      confirm={{
        title: "Make this instance quiet?",
        summary: `${instance.id} claims and fires nothing new until it is woken; the ${instance.held} runs that it holds go on. The other instances do its work.`,
        verb: "Make it quiet",
        note: "Why? It is shown beside the instance.",
      }}
      act={async (note) => {
        await call("quietInstance", "POST /api/instances/{id}/quiet", {
          params,
          body: note === undefined ? {} : { note },
        });
        return "It claims no new runs.";
      }}
    />
  );
}
