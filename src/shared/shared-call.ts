// Lets simultaneous callers share one call. A caller that arrives while a call is in progress gets the result of the
// next one, which begins after it arrived: no result is older than its request.

export class SharedCall<Params, Result> {
  readonly #call: (params: Params) => Promise<Result>;
  #underWay: Promise<Result> | null = null;
  #next: Promise<Result> | null = null;
  #latest: Params | null = null;

  constructor(call: (params: Params) => Promise<Result>) {
    this.#call = call;
  }

  /** The parameters of the latest caller count for all who share a call. */
  run(params: Params): Promise<Result> {
    this.#latest = params;
    if (this.#underWay === null) return this.#begin();
    this.#next ??= this.#underWay.then(
      () => this.#begin(),
      () => this.#begin(),
    );
    return this.#next;
  }

  #begin(): Promise<Result> {
    this.#next = null;
    const call = this.#call(this.#latest as Params).finally(() => {
      if (this.#underWay === call) this.#underWay = null;
    });
    this.#underWay = call;
    return call;
  }
}
