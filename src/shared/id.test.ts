// Ids that sort by time and only grow.

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { isUuid, UuidV7Source, uuidTimeMs, uuidv7 } from "./id.js";

const V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const bytes = fc.uint8Array({ minLength: 10, maxLength: 10 });
const time = fc.integer({ min: 0, max: 2 ** 48 - 2 });

/** A generator of chance that is the same in every run of the tests. */
function seededFill(seed = 1): (into: Uint8Array) => void {
  let state = seed;
  return (into) => {
    for (let i = 0; i < into.length; i++) {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
      into[i] = state >>> 24;
    }
  };
}

describe("uuidv7", () => {
  test("is the example of RFC 9562, appendix A.6", () => {
    const random = Uint8Array.of(0x0c, 0xc3, 0x18, 0xc4, 0xdc, 0x0c, 0x0c, 0x07, 0x39, 0x8f);
    expect(uuidv7(0x017f22e279b0, random)).toBe("017f22e2-79b0-7cc3-98c4-dc0c0c07398f");
  });

  test("has version and variant, and gives its millisecond back, whatever time and chance", () => {
    fc.assert(
      fc.property(time, bytes, (nowMs, random) => {
        const id = uuidv7(nowMs, random);
        expect(id).toMatch(V7);
        expect(isUuid(id)).toBe(true);
        expect(uuidTimeMs(id)).toBe(nowMs);
      }),
    );
  });

  test("refuses less chance than it needs", () => {
    expect(() => uuidv7(0, new Uint8Array(9))).toThrow(RangeError);
  });
});

describe("UuidV7Source", () => {
  test("grows strictly whatever the clock does", () => {
    const clock = fc.array(fc.oneof(time, fc.constantFrom(Number.NaN, -5, 1e300, 7.5)), {
      minLength: 1,
      maxLength: 50,
    });
    fc.assert(
      fc.property(clock, fc.integer(), (times, seed) => {
        let now = 0;
        const source = new UuidV7Source(() => now, seededFill(seed));
        let last = "";
        for (now of times) {
          for (let i = 0; i < 3; i++) {
            const id = source.next();
            expect(id).toMatch(V7);
            expect(id > last).toBe(true);
            last = id;
          }
        }
      }),
    );
  });

  test("makes 10,000 ids in one millisecond, in order, by borrowing the next ones", () => {
    const source = new UuidV7Source(() => 1_000, seededFill());
    const ids = Array.from({ length: 10_000 }, () => source.next());
    expect(new Set(ids).size).toBe(ids.length);
    expect([...ids].sort()).toEqual(ids);
    expect(uuidTimeMs(ids[2_000] ?? "")).toBe(1_000);
    expect(uuidTimeMs(ids.at(-1) ?? "")).toBeLessThan(1_006);
  });

  test("goes on from its last millisecond when the clock steps back an hour", () => {
    let now = 10_000_000;
    const source = new UuidV7Source(() => now, seededFill());
    const before = source.next();
    now -= 3_600_000;
    expect(source.next() > before).toBe(true);
    now += 3_600_001;
    expect(uuidTimeMs(source.next())).toBe(10_000_001);
  });

  test("never uses a random byte twice", () => {
    let fills = 0;
    const source = new UuidV7Source(
      () => 1,
      (pool) => pool.fill(++fills),
    );
    const ids = Array.from({ length: 2_000 }, () => source.next().slice(-12));
    // A pool of 4 KiB is enough for 512 ids of eight bytes, less what the counter's start took.
    for (const tail of new Set(ids)) {
      expect(ids.filter((id) => id === tail).length).toBeLessThanOrEqual(512);
    }
  });

  test("two sources in one process with the same clock do not meet", () => {
    const one = new UuidV7Source(() => 1, seededFill(1));
    const two = new UuidV7Source(() => 1, seededFill(2));
    const ids = Array.from({ length: 1_000 }, () => [one.next(), two.next()]).flat();
    expect(new Set(ids).size).toBe(2_000);
  });
});

test.each([
  ["0199c1de-0000-7000-8000-000000000000", true],
  ["0199C1DE-0000-7000-8000-000000000000", true],
  ["9b2f7c0e-5d4a-4b7e-8f57-3d0c6a1e2b4f", true],
  ["0199c1de00007000800000000000000", false],
  ["0199c1de-0000-7000-8000-00000000000g", false],
  ["0199c1de-0000-7000-8000-000000000000\n", false],
  [" 0199c1de-0000-7000-8000-00000000000", false],
  ["", false],
  ["a".repeat(100_000), false],
  [undefined, false],
])("isUuid(%j) is %s", (text, answer) => {
  expect(isUuid(text)).toBe(answer);
});

test("the time of an id that is no UUIDv7 is undefined", () => {
  expect(uuidTimeMs("9b2f7c0e-5d4a-4b7e-8f57-3d0c6a1e2b4f")).toBeUndefined();
  expect(uuidTimeMs("nonsense")).toBeUndefined();
});
