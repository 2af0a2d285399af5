// Gives the client of the HTTP API the verbs of the library, so that the same caller can use both.

/**
 * @param {any} client the result of `createClient` of `holdfast/client`
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
  const { runs, schedules, signal } = client;
  return { jobs, holdfast: { runs, schedules, signal } };
}
