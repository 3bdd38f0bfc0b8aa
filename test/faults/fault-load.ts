import { setTimeout as wait } from 'node:timers/promises';
import { eventually } from '../support/eventually.ts';
import { Receiver } from '../support/receiver.ts';
import { postJson, type TestGroup } from '../support/server.ts';
import { ServerProcess } from '../support/server-process.ts';

export interface FaultPlan {
  /** How often the fault happens, spread over the load. */
  readonly faults: number;
  /** The fault: resolves when the server is ready again. */
  readonly strike: (server: ServerProcess) => Promise<void>;
  /** HOCON over the server's own, which uses the embedded database. */
  readonly settings?: string;
  readonly messages: number;
  readonly groups: number;
  readonly hooksPerGroup: number;
  readonly clients: number;
}

/** What was seen from outside. Everything but the repeats has to be 0. */
export interface FaultReport {
  readonly faults: number;
  readonly messages: number;
  readonly deliveries: number;
  /** Messages that were answered 200 and did not reach every hook of their group. */
  readonly lost: number;
  /** Texts that are in the log more than once, though their client repeated them with one Idempotency-Key. */
  readonly postedTwice: number;
  /** First arrivals of an id after the first arrival of a later one of the same hook. */
  readonly outOfOrder: number;
  /** Arrivals of an id that had arrived before. */
  readonly repeats: number;
  /** The most repeats that one hook saw; a lane's unsettled attempts for each fault are what may be. */
  readonly maxRepeatsOfAHook: number;
  /** From each fault to the first answer that says ready, in ms. */
  readonly recoveryMs: readonly number[];
}

const SETTINGS = `
  limits { token-rate = 10000, registrations-per-minute = 1000 }
  delivery.retry = [50ms, 100ms]
  log.level = warn`;

/** Kills the server as nothing can be caught, and starts it again. */
export async function killServer(server: ServerProcess): Promise<void> {
  await server.end('SIGKILL');
  await server.start();
}

/**
 * Lets a fault strike again and again while clients post and receivers get what is posted. Clients repeat a post with
 * its Idempotency-Key until it is answered 200.
 */
export async function runFaults(plan: FaultPlan): Promise<FaultReport> {
  const server = await ServerProcess.create(`${SETTINGS}\n${plan.settings ?? ''}`);
  const receiver = await Receiver.start();
  try {
    await server.start();
    const groups = await prepare(server, receiver, plan);
    const recoveryMs = await postThrough(server, groups, plan);
    const deliveries = plan.messages * plan.hooksPerGroup;
    await eventually(
      async () => distinctIds(receiver),
      (count) => count >= deliveries,
      120_000,
    );
    // Whatever would arrive twice or late has the time of another message through every lane.
    return judge(receiver, plan, recoveryMs);
  } finally {
    await server.remove();
    await receiver.stop();
  }
}

async function prepare(server: ServerProcess, receiver: Receiver, plan: FaultPlan): Promise<TestGroup[]> {
  const groups: TestGroup[] = [];
  for (let g = 0; g < plan.groups; g += 1) {
    const group = await server.createGroup(`Group ${g}`);
    for (let h = 0; h < plan.hooksPerGroup; h += 1) {
      await postJson(`${group.webhook}/reverse`, { url: receiver.url(`/${g}/${h}`) });
    }
    groups.push(group);
  }
  return groups;
}

async function postThrough(server: ServerProcess, groups: readonly TestGroup[], plan: FaultPlan): Promise<number[]> {
  const recoveryMs: number[] = [];
  let next = 0;
  let posted = 0;
  const client = async (): Promise<void> => {
    while (next < plan.messages) {
      const n = next++;
      await postUntilTaken(groups[n % groups.length]!, n);
      posted += 1;
    }
  };
  const clients = Promise.all(Array.from({ length: plan.clients }, client));
  for (let fault = 1; fault <= plan.faults; fault += 1) {
    const due = Math.floor((plan.messages * fault) / (plan.faults + 1));
    await eventually(
      async () => posted,
      (count) => count >= due,
      120_000,
    );
    const struck = performance.now();
    await plan.strike(server);
    recoveryMs.push(Math.round(performance.now() - struck));
  }
  await clients;
  return recoveryMs;
}

async function postUntilTaken(group: TestGroup, n: number): Promise<void> {
  for (;;) {
    const answer = await postJson(group.webhook, { text: `text ${n}` }, { 'idempotency-key': `key-${n}` }).catch(
      () => null,
    );
    if (answer?.status === 200) return;
    if (answer !== null && answer.status !== 503) throw new Error(`a post was answered ${answer.status}`);
    await wait(20);
  }
}

function distinctIds(receiver: Receiver): number {
  return new Set(receiver.arrivals.map((arrival) => arrival.headers['webhook-id'])).size;
}

function judge(receiver: Receiver, plan: FaultPlan, recoveryMs: number[]): FaultReport {
  const textsOfPath = new Map<string, Map<string, number>>();
  const newestOfPath = new Map<string, number>();
  const seen = new Set<unknown>();
  const repeatsOfPath = new Map<string, number>();
  let outOfOrder = 0;
  for (const { path, headers, body } of receiver.arrivals) {
    const { seq, text } = body.data.message as { seq: number; text: string };
    if (seen.has(headers['webhook-id'])) {
      repeatsOfPath.set(path, (repeatsOfPath.get(path) ?? 0) + 1);
      continue;
    }
    seen.add(headers['webhook-id']);
    if (seq < (newestOfPath.get(path) ?? 0)) outOfOrder += 1;
    newestOfPath.set(path, Math.max(seq, newestOfPath.get(path) ?? 0));
    const texts = textsOfPath.get(path) ?? new Map<string, number>();
    texts.set(text, (texts.get(text) ?? 0) + 1);
    textsOfPath.set(path, texts);
  }
  let lost = 0;
  let postedTwice = 0;
  for (let n = 0; n < plan.messages; n += 1) {
    for (let h = 0; h < plan.hooksPerGroup; h += 1) {
      const count = textsOfPath.get(`/${n % plan.groups}/${h}`)?.get(`text ${n}`) ?? 0;
      if (count === 0) lost += 1;
      if (count > 1 && h === 0) postedTwice += 1;
    }
  }
  const repeats = [...repeatsOfPath.values()];
  return {
    faults: plan.faults,
    messages: plan.messages,
    deliveries: plan.messages * plan.hooksPerGroup,
    lost,
    postedTwice,
    outOfOrder,
    repeats: repeats.reduce((sum, count) => sum + count, 0),
    maxRepeatsOfAHook: Math.max(0, ...repeats),
    recoveryMs,
  };
}
