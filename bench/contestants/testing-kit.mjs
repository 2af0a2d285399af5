// The test kit as its users call it, from the built files.

import { createTestHoldfast } from "../../dist/testing/index.js";

export async function open() {
  return {
    /** Lets days of one schedule pass whose handler does nothing; counts its runs. */
    async pass({ cron, days, nowAt }) {
      const kit = await createTestHoldfast({
        now: nowAt,
        setup(holdfast) {
          const job = holdfast.job("noop", { run: async () => null });
          holdfast.schedule("scheduled", job, { cron });
        },
      });
      await kit.start();
      await kit.advance(`${days}d`);
      const handled = kit.calls("noop").length;
      const completed = (await kit.runs({ status: "completed" })).length;
      await kit.close();
      return { handled, completed };
    },
  };
}
