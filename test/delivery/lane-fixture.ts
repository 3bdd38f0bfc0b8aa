import { eventually } from '../support/eventually.ts';
import { Receiver, type Answerer, type Arrival } from '../support/receiver.ts';
import { postJson, readJson, TestServer, type JsonAnswer, type TestGroup } from '../support/server.ts';

type Row = Record<string, any>; // oxlint-disable-line typescript/no-explicit-any -- tests look into it freely

/** One server, one group, one receiver with one hook: what tests of a lane look at. */
export class LaneFixture {
  readonly server: TestServer;
  readonly group: TestGroup;
  readonly receiver: Receiver;
  hook = 0;

  private constructor(server: TestServer, group: TestGroup, receiver: Receiver) {
    this.server = server;
    this.group = group;
    this.receiver = receiver;
  }

  static async start(changes: Record<string, object> = {}): Promise<LaneFixture> {
    const delivery = { retryMs: [30, 60, 60, 60, 60, 60], ...changes['delivery'] };
    const server = await TestServer.start({ ...changes, delivery });
    return new LaneFixture(server, await server.createGroup(), await Receiver.start());
  }

  async stop(): Promise<void> {
    await this.server.stop();
    await this.receiver.stop();
  }

  async register(options: object = {}, answer?: Answerer): Promise<void> {
    if (answer !== undefined) this.receiver.answer = answer;
    const { body } = await postJson(`${this.group.webhook}/reverse`, { url: this.receiver.url(), ...options });
    this.hook = body.id;
  }

  async post(from: number, to: number): Promise<void> {
    for (let n = from; n <= to; n += 1) await postJson(this.group.webhook, { text: `message ${n}` });
  }

  /** Changes the row as an administrator does, and tells the lanes. */
  async change(set: Record<string, unknown>): Promise<void> {
    const { server, hook, group } = this;
    await server.database.query(
      (sql) => sql`update reverse_hook set ${sql(set)}, generation = generation + 1 where id = ${hook}`,
    );
    await server.database.query((sql) => sql`select pg_notify('klatch', ${`test h${group.id}`})`);
  }

  /** Pauses or resumes it as its owner does: holds by the time this resolves. */
  pause(paused: boolean): Promise<void> {
    return this.patch({ paused });
  }

  /** Changes it as its owner does. */
  async patch(changes: object): Promise<void> {
    const url = `${this.group.webhook}/reverse/${this.hook}`;
    const headers = { 'content-type': 'application/json' };
    const answer = await fetch(url, { method: 'PATCH', headers, body: JSON.stringify(changes) });
    if (!answer.ok) throw new Error(`the change was answered ${answer.status}`);
  }

  async row(): Promise<Row> {
    const [row] = await this.server.database.query((sql) => sql`select * from reverse_hook where id = ${this.hook}`);
    return { ...row };
  }

  async health(): Promise<JsonAnswer['body']> {
    return (await readJson(await fetch(`${this.group.webhook}/reverse/${this.hook}`))).body;
  }

  rowWhere(right: (row: Row) => boolean): Promise<Row> {
    return eventually(() => this.row(), right);
  }

  /** The delivery log, oldest first: `seq outcome`, or `first-last outcome` of a batch. */
  async log(): Promise<string[]> {
    const rows = await this.server.database.query(
      (sql) => sql`select seq, last_seq, outcome from delivery_attempt where hook_id = ${this.hook} order by at, seq`,
    );
    return rows.map((r) => `${seqsOf([Number(r['seq']), Number(r['last_seq'])])} ${String(r['outcome'])}`);
  }

  async retries(): Promise<number[]> {
    const rows = await this.server.database.query((sql) => sql`select seq from delivery_retry order by seq`);
    return rows.map((row) => Number(row['seq']));
  }
}

const seqsOf = ([first, last]: [number, number]): string => (first === last ? String(first) : `${first}-${last}`);

/** The seqs of a delivery: one message, or a batch. */
export function seqs(arrival: Arrival): number[] {
  const events = Array.isArray(arrival.body) ? arrival.body : [arrival.body];
  return events.map((event) => event.data.message.seq as number);
}

/** The part of `webhook-id` that says which messages. */
export function rangeOf(arrival: Arrival): string {
  return String(arrival.headers['webhook-id']).split('_')[2]!;
}

export const upTo = (count: number): number[] => Array.from({ length: count }, (_, n) => n + 1);
