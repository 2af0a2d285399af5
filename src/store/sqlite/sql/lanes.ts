// The lanes that an instance claims from: those of its jobs, in its queues, where nothing is paused.

/**
 * `l` is a lane, `q` its queue; a job that is named twice has its lanes twice. From the names to the lanes: each
 * lane looked up among the names takes half as long again (measured).
 */
export const LANES_OF_JOBS = /* sql */ `
json_each(:jobs) v cross join {lane} l on l.job = v.value left join {queue} q on q.name = l.queue`;

export const MAY_CLAIM = /* sql */ `
(:queues is null or l.queue in (select value from json_each(:queues))) and q.paused_at is null`;
