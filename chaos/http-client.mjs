// The client of the HTTP API with the same verbs as the library, so that one and the same caller can ask
// over either way.

/**
 * @param {any} client what `createClient` of `holdfast/client` answered
 * @param {readonly string[]} names of the jobs
 */
export function overHttp(client, names) {
  /** @type {Record<string, any>} */
  const jobs = {};
  for (const name of names)
    jobs[name] = {
      enqueue: (/** @type {unknown} */ input, /** @type {object} */ options) =>
        client.enqueue(name, input, options),
    };
  const { runs, schedules } = client;
  return { jobs, holdfast: { runs, schedules } };
}
