// One thing at a time of what is rare and needs a connection of its own: days of history, checks, repairs.
// So an instance keeps to its budget of connections, whoever asks for what.

export type InTurn = <T>(work: () => Promise<T>) => Promise<T>;

export function newSemaphore(): InTurn {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const mine = last.then(work, work);
    last = mine.catch(() => undefined);
    return mine;
  };
}
