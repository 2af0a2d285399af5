// An application that makes its own instance when it is loaded.

import { Holdfast } from "holdfast";

export const holdfast = new Holdfast({ database: "postgres://app@db.example.org/app" });

const cleanup = holdfast.job("cleanup", { run: async () => "clean" });
holdfast.schedule("weekly", cleanup, { cron: "0 4 * * 0" });
