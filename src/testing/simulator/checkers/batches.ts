// Checks batches after each commit: each is made once under the fence of its run, counts its children exactly as they
// end and resume, and is followed by one run.

import type { Batches, NewBatch } from "../../../store/batches.js";
import type { EventLog } from "../event-log.js";
import type { Note } from "./row-changes.js";
import type { Transaction } from "./run-places.js";
import type { RunHistory } from "./runs.js";

type BatchFacts = {
  readonly id: number;
  readonly parent: string;
  readonly name: string;
  /** The fence under which it was made. */
  readonly fence: number;
  readonly thenRun: string | null;
  readonly children: Map<string, number | null>;
  /** Runs that had ended before the batch, by status: they count from the beginning. */
  before: readonly number[];
  counts: Counts;
  continuations: number;
};

type Counts = {
  readonly scheduled: number;
  readonly refused: number;
  readonly unended: number;
  /** Completed, failed, cancelled. */
  readonly ended: readonly number[];
};

const NONE: Counts = { scheduled: 0, refused: 0, unended: 0, ended: [0, 0, 0] };
const MAKING = ["batches.enqueue", "batches.enqueueChildren"];

export class BatchHistory {
  readonly #batches = new Map<number, BatchFacts>();
  readonly #byChild = new Map<string, BatchFacts>();
  readonly #byContinuation = new Map<string, BatchFacts>();
  readonly #log: EventLog;
  readonly #runs: RunHistory;

  constructor(log: EventLog, runs: RunHistory) {
    this.#log = log;
    this.#runs = runs;
  }

  commit(transaction: Transaction): void {
    const touched = new Set<BatchFacts>();
    const made = new Set<BatchFacts>();
    for (const note of transaction.notes) this.#take(note, transaction, { touched, made });
    for (const batch of made) this.#begin(batch);
    for (const batch of touched) this.#check(batch, transaction);
    if (MAKING.includes(transaction.verb)) this.#checkFence(transaction, made.size > 0);
  }

  #take(
    note: Note,
    transaction: Transaction,
    { touched, made }: { touched: Set<BatchFacts>; made: Set<BatchFacts> },
  ): void {
    const [kind, first] = note;
    switch (kind) {
      case "batch+": {
        const batch = this.#born(note, transaction);
        made.add(batch);
        touched.add(batch);
        break;
      }
      case "batch~": {
        const [, id, scheduled, refused, unended, completed, failed, cancelled] = note.map(Number);
        const batch = this.#batches.get(Number(id));
        if (!batch) break;
        batch.counts = {
          scheduled: Number(scheduled),
          refused: Number(refused),
          unended: Number(unended),
          ended: [Number(completed), Number(failed), Number(cancelled)],
        };
        touched.add(batch);
        break;
      }
      case "run+":
        this.#run(note, transaction, touched);
        break;
      case "outcome+":
      case "outcome-": {
        const batch = this.#byChild.get(String(first));
        if (!batch || transaction.verb === "runs.remove") break;
        batch.children.set(String(first), kind === "outcome+" ? Number(note[3]) : null);
        touched.add(batch);
        break;
      }
      default:
        break;
    }
  }

  #born([, id, parent, name, thenRun]: Note, { params }: Transaction): BatchFacts {
    const batch: BatchFacts = {
      id: Number(id),
      parent: String(parent),
      name: String(name),
      fence: (params as NewBatch).parent.fence,
      thenRun: thenRun === null ? null : String(thenRun),
      children: new Map(),
      before: [0, 0, 0],
      counts: NONE,
      continuations: 0,
    };
    for (const other of this.#batches.values()) {
      if (other.parent === batch.parent && other.name === batch.name)
        this.#violate(`Run ${parent} has two batches of the name ${name}.`);
    }
    this.#batches.set(batch.id, batch);
    if (batch.thenRun !== null) this.#byContinuation.set(batch.thenRun, batch);
    return batch;
  }

  #run(note: Note, { verb }: Transaction, touched: Set<BatchFacts>): void {
    const [, id, , , , , , , parent, batchId, input] = note;
    const batch = this.#batches.get(Number(batchId));
    if (batchId !== null && batch) {
      if (verb !== "batches.enqueue" && verb !== "batches.call")
        this.#violate(`Batch ${batchId} got a child by ${verb}.`);
      batch.children.set(String(id), null);
      this.#byChild.set(String(id), batch);
      touched.add(batch);
    }
    const before = this.#byContinuation.get(String(id));
    if (!before) return;
    before.continuations += 1;
    if (parent !== before.parent) this.#violate(`Run ${id} comes after a batch of another run.`);
    this.#checkInput(before, String(input));
    if (verb === "leases.reclaim") this.#log.saw("batch-ended-by-reaper");
    if (verb === "runs.cancel") this.#log.saw("batch-ended-by-cancel");
  }

  /** The counts are written before the run that follows the batch. */
  #checkInput({ id, counts }: BatchFacts, input: string): void {
    const [completed, failed, cancelled] = counts.ended;
    const { scheduled, refused: errors } = counts;
    const right = JSON.stringify({ scheduled, errors, completed, failed, cancelled });
    if (input !== right) this.#violate(`What comes after batch ${id} got ${input}, not ${right}.`);
  }

  /** Counts at the start beyond the new children belong to runs that had ended before. */
  #begin(batch: BatchFacts): void {
    batch.before = batch.counts.ended;
    const before = batch.before.reduce((sum, count) => sum + count, 0);
    if (before > 0) this.#log.saw("batch-met-ended-run");
    if (batch.counts.scheduled !== batch.children.size + before)
      this.#violate(
        `Batch ${batch.id} says ${batch.counts.scheduled} and has ${batch.children.size} children.`,
      );
  }

  #check(batch: BatchFacts, { verb }: Transaction): void {
    const { id, children, before, counts } = batch;
    const statuses = [...children.values()];
    const unended = statuses.filter((status) => status === null).length;
    const ended = before.map(
      (count, at) => count + statuses.filter((status) => status === at + 1).length,
    );
    if (unended !== counts.unended || String(ended) !== String(counts.ended))
      this.#violate(
        `After ${verb}, batch ${id} counts ${counts.unended} and ${counts.ended}, not ${unended} and ${ended}.`,
      );
    if (batch.continuations > 1) this.#violate(`Batch ${id} was followed by two runs.`);
    if (unended === 0 && batch.thenRun !== null && batch.continuations === 0)
      this.#violate(`Batch ${id} has ended, and nothing comes after it.`);
    if (unended > 0 && batch.continuations === 1) this.#log.saw("child-retried-after-batch");
  }

  /** Only the current holder of a run makes its children; a later holder gets the children that the first one made. */
  #checkFence({ params, notes, process }: Transaction, isMade: boolean): void {
    const { parent, name } = params as NewBatch & Parameters<Batches["enqueueChildren"]>[0];
    const lease = this.#runs.leases.get(parent.fence);
    const isHeld = lease?.process === process && lease.ids.includes(parent.id);
    if (notes.length > 0 && !isHeld)
      this.#log.violate("S3", `Run ${parent.id} made runs without holding ${parent.fence}.`);
    if (isMade || !isHeld || name === undefined) return;
    for (const batch of this.#batches.values()) {
      if (batch.parent === parent.id && batch.name === name && batch.fence !== parent.fence)
        this.#log.saw("batch-replayed");
    }
  }

  #violate(text: string): void {
    this.#log.violate("B", text);
  }
}
