// Runs in the page: from an input event to the frame that shows what it asked for.
//
// The clock starts with the event's own timestamp, which the browser gives it when the input arrives, so what
// keeps the page from hearing of it counts. In every frame from then on the page is asked whether the new
// content is there. It is painted at the end of the frame in which it is found; the clock stops after the
// frame that follows, so the figures are a frame too long rather than too short.

/** @returns {void} */
export function stopwatch() {
  const KINDS = ["click", "keydown", "wheel", "change", "popstate"];
  let armed = null;
  const begin = (event) => {
    if (armed && armed.fromMs === null) armed.fromMs = event.timeStamp;
  };
  for (const kind of KINDS) addEventListener(kind, begin, { capture: true, passive: true });

  /** Starts with the next event of the page; resolves with milliseconds. */
  window.timeUntil = (isThere) => {
    armed = { fromMs: null };
    window.timed = new Promise((resolve) => {
      const look = () => {
        if (armed.fromMs === null || !isThere()) return requestAnimationFrame(look);
        const { port1, port2 } = new MessageChannel();
        port1.onmessage = () => resolve(performance.now() - armed.fromMs);
        requestAnimationFrame(() => port2.postMessage(null));
      };
      requestAnimationFrame(look);
    });
  };

  /** The runs that the list shows on the screen. */
  window.shownRuns = () =>
    [...document.querySelectorAll("[data-run]")]
      .filter((row) => {
        const { top, bottom } = row.getBoundingClientRect();
        return bottom > 0 && top < innerHeight;
      })
      .map((row) => ({ id: row.dataset.run, text: row.textContent ?? "" }));
}
