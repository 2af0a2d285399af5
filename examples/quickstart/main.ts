// One job with a schedule, and one run: declared, stored, executed, looked at. The same program is in the README.

import { Holdfast } from "holdfast";

const holdfast = new Holdfast({ database: "sqlite:.holdfast/quickstart.db" });

const welcome = holdfast.job("welcome", {
  async run(input: { name: string }, ctx) {
    return `Hello ${input.name}, this is attempt ${ctx.attempt}.`;
  },
});
holdfast.schedule("every-morning", welcome, { cron: "0 9 * * *", input: { name: "all" } });

await holdfast.start();
const { id } = await welcome.enqueue({ name: "Ada" }, { key: "welcome-ada" });
const run = await holdfast.runs.wait(id, { timeout: "30s" });
console.log(run.status, run.result);
await holdfast.stop();
