import { expect, test } from '@jest/globals';
import { eventually } from '../../support/eventually.ts';
import { postJson } from '../../support/server.ts';
import { ALL_EVENTS, deliveriesOf, EventsFixture } from './events-fixture.ts';

const HISTORIES = 12;
const STEPS = 40;

/**
 * Makes a generator that returns the same numbers for the same seed, so that a failure can be reproduced (mulberry32).
 */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d_2b_79_f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}

interface State {
  readonly rev: number;
  readonly text: string;
}

/** A receiver that follows only the rules of docs/reverse-webhooks.md. */
class DocumentedReceiver {
  readonly messages = new Map<number, State>();
  /** The items that were new to the receiver, in their order: `42` for a message, `r57` for an event. */
  readonly handled: string[] = [];
  readonly #known = new Set<string>();

  take(delivery: { type: string; data: { rev?: number; message: { seq: number; rev: number; text: string } } }): void {
    const { seq, rev, text } = delivery.data.message;
    const id = delivery.type === 'message.created' ? `${seq}` : `r${delivery.data.rev}`;
    if (!this.#known.has(id)) this.handled.push(id);
    this.#known.add(id);
    const known = this.messages.get(seq);
    if (known?.rev === rev && known.text !== text) throw new Error(`rev ${rev} came with two texts`);
    if (known === undefined || known.rev < rev) this.messages.set(seq, { rev, text });
  }
}

/** Performs random actions in the group, and records their expected order. */
class History {
  readonly it: EventsFixture;
  readonly order: string[] = [];
  readonly #next: () => number;
  readonly #alive: number[] = [];
  #failing = false;

  constructor(it: EventsFixture, seed: number) {
    this.it = it;
    this.#next = random(seed);
    it.lane.receiver.answer = () => (this.#failing && this.#next() < 0.7 ? 503 : 200);
  }

  async step(): Promise<void> {
    const dice = this.#next();
    if (dice < 0.35 || this.#alive.length === 0) await this.#post();
    else if (dice < 0.7) this.order.push(`r${await this.it.edit(this.#any(), `edited ${this.#next()}`)}`);
    else if (dice < 0.78) await this.#erase();
    else if (dice < 0.84) this.#failing = !this.#failing;
    else if (dice < 0.9) await this.it.lane.pause(this.#next() < 0.5);
    else if (dice < 0.96) await this.#redeliver();
    else await this.it.lane.server.restart();
  }

  async end(): Promise<void> {
    this.#failing = false;
    await this.it.lane.patch({ paused: false });
    await eventually(
      () => this.it.lane.health(),
      ({ pending }) => pending === 0,
    );
  }

  async #post(): Promise<void> {
    const seq = await this.it.send(`posted ${this.#next()}`);
    this.#alive.push(seq);
    this.order.push(`${seq}`);
  }

  async #erase(): Promise<void> {
    const [seq] = this.#alive.splice(Math.floor(this.#next() * this.#alive.length), 1);
    this.order.push(`r${await this.it.erase(seq!)}`);
  }

  async #redeliver(): Promise<void> {
    const { lane } = this.it;
    const from = `${lane.group.id}:${this.#any()}`;
    expect((await postJson(`${lane.webhook}/reverse/${lane.hook}/redeliver`, { from })).status).toBe(202);
  }

  #any(): number {
    return this.#alive[Math.floor(this.#next() * this.#alive.length)]!;
  }
}

/** The state of the group's messages in the database. */
async function storedMessages({ lane }: EventsFixture): Promise<Map<number, State>> {
  const rows = await lane.server.database.query(
    (sql) => sql<{ seq: number; rev: number; text: string }[]>`select seq, rev, text from message order by seq`,
  );
  return new Map(rows.map(({ seq, rev, text }) => [seq, { rev, text }]));
}

test.each([
  ['strict', 1],
  ['strict', 7],
  ['none', 1],
  ['none', 7],
])('a receiver of a hook with order %s and batch %i ends with what the group has', async (order, batch) => {
  for (let seed = 1; seed <= HISTORIES / 4; seed += 1) {
    const it = await EventsFixture.start();
    try {
      const history = new History(it, seed * 1_000 + batch);
      await it.lane.register({ events: ALL_EVENTS, order, batch });
      for (let n = 0; n < STEPS; n += 1) await history.step();
      await history.end();
      const receiver = new DocumentedReceiver();
      for (const arrival of it.lane.receiver.arrivals) for (const each of deliveriesOf(arrival)) receiver.take(each);
      expect(receiver.messages).toEqual(await storedMessages(it));
      if (order === 'strict') expect(receiver.handled).toEqual(history.order);
      else expect([...receiver.handled].sort()).toEqual([...history.order].sort());
    } finally {
      await it.stop();
    }
  }
});
