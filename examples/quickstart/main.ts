// One job with a schedule, and one run: declared, stored, executed, read. The same program is in the README.

import { Holdfast } from "holdfast";

const holdfast = new Holdfast({ database: "sqlite:hello.db" });

const greet = holdfast.job("greet", {
  async run(name, ctx) {
    return `Hello ${name}, this is attempt ${ctx.attempt}.`;
  },
});
holdfast.schedule("every-morning", greet, {
  cron: "0 9 * * *",
  timezone: "Europe/Paris",
  missed: { run: "latest", within: "1h" },
  input: "everyone",
});

await holdfast.start();
const { id } = await greet.enqueue("Ada", { key: "greet-ada" });
const run = await holdfast.runs.wait(id, { timeout: "30s" });
console.log(run.status, run.result);
await holdfast.stop();
