// Which route a path means, word by word.

import { describe, expect, test } from "vitest";
import { Router } from "./router.js";

function made(...routes: readonly (readonly [method: string, path: string])[]): Router<string> {
  const router = new Router<string>();
  for (const [method, path] of routes) router.add(method, path, `${method} ${path}`);
  return router;
}

const router = made(
  ["GET", "/api/runs/{id}"],
  ["DELETE", "/api/runs/{id}"],
  ["POST", "/api/runs/cancel"],
  ["GET", "/api/runs"],
  ["POST", "/api/{kind}/{name}/pause"],
  ["POST", "/api/schedules/{name}/pause"],
);

describe("a path", () => {
  test.for([
    ["GET", "/api/runs", "GET /api/runs", {}],
    ["GET", "/api/runs/r-1", "GET /api/runs/{id}", { id: "r-1" }],
    ["GET", "/api/runs/%C3%A9%2Fb", "GET /api/runs/{id}", { id: "é/b" }],
    ["GET", "/api/runs/%E0%A4%A", "GET /api/runs/{id}", { id: "%E0%A4%A" }],
    ["GET", "/api/runs/__proto__", "GET /api/runs/{id}", { id: "__proto__" }],
    ["GET", "/api/r%75ns", "GET /api/runs", {}],
  ] as const)("%s %s is %s", ([method, path, value, params]) => {
    expect(router.find(method, path)).toEqual({ value, params });
  });

  test("with a word goes before one with a parameter, whichever was added first", () => {
    expect(router.find("POST", "/api/runs/cancel")).toMatchObject({
      value: "POST /api/runs/cancel",
    });
    expect(router.find("POST", "/api/schedules/s/pause")).toMatchObject({
      value: "POST /api/schedules/{name}/pause",
    });
    expect(router.find("GET", "/api/runs/cancel")).toMatchObject({ params: { id: "cancel" } });
  });

  test("with another method lists its methods", () => {
    expect(router.find("POST", "/api/runs")).toEqual({ methods: ["GET"] });
    expect(router.find("PUT", "/api/runs/cancel")).toEqual({ methods: ["POST", "GET", "DELETE"] });
  });

  test.for([
    "",
    "/",
    "/api",
    "/api/runs/",
    "//api/runs",
    "/api/runs//",
    "/API/runs",
    "/api/../api/runs",
    "/api\\runs",
  ])("%j leads nowhere", (path) => {
    expect(router.find("GET", path)).toBeNull();
  });
});
