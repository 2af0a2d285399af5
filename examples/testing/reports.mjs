// A small application: a report every night, and a mail to each reader. It gets the Holdfast to declare its jobs on,
// and the mailer, so that a test can pass its own.

import { PermanentError } from "holdfast";

/**
 * @param {import("holdfast").Holdfast} holdfast
 * @param {{ send(mail: { to: string, text: string }): Promise<void>, readers: string[] }} around
 */
export function register(holdfast, { send, readers }) {
  const mail = holdfast.job("mail", {
    retry: { attempts: 4, delay: "10s", factor: 2, jitter: 0 },
    /** @param {{ to: string, text: string }} input */
    async run(input) {
      if (!input.to.includes("@")) throw new PermanentError(`${input.to} is no address`);
      await send(input);
    },
  });

  const report = holdfast.job("report", {
    async run(_, ctx) {
      // The tick of this run, however late it runs.
      const day = ctx.nominalAt?.toISOString().slice(0, 10);
      for (const to of readers)
        await mail.enqueue({ to, text: `Report of ${day}` }, { key: `${day} ${to}` });
    },
  });

  holdfast.schedule("nightly", report, {
    cron: "30 2 * * *",
    timezone: "America/New_York",
    missed: { run: "latest", within: "6h" },
  });
  return { mail, report };
}
