import type { ConfigChanges } from '../../support/config.ts';
import { callAs } from '../../support/call.ts';
import type { TestPerson } from '../../support/people.ts';
import type { Arrival } from '../../support/receiver.ts';
import { joined, send } from '../../operations/conversation-calls.ts';
import { LaneFixture } from '../fixtures/lane-fixture.ts';

export const ALL_EVENTS = ['message.updated', 'message.deleted'];

/** A lane of a hook in whose group a person writes, edits and deletes. */
export class EventsFixture {
  readonly lane: LaneFixture;
  readonly alice: TestPerson;

  private constructor(lane: LaneFixture, alice: TestPerson) {
    this.lane = lane;
    this.alice = alice;
  }

  static async start(changes: ConfigChanges = {}): Promise<EventsFixture> {
    const lane = await LaneFixture.start(changes as Record<string, object>);
    return new EventsFixture(lane, await joined(lane.server, 'alice', lane.group.id));
  }

  stop(): Promise<void> {
    return this.lane.stop();
  }

  /** Posts as alice; resolves with the seq. */
  async send(text: string): Promise<number> {
    return (await send(this.lane.server, this.alice, this.lane.group.id, text)).seq;
  }

  /** Edits a message of alice; resolves with the rev. */
  async edit(seq: number, text: string): Promise<number> {
    const input = { conversation: this.lane.group.id, seq, text };
    return (await callAs(this.lane.server, this.alice, 'messages.edit', input)).rev;
  }

  async erase(seq: number): Promise<number> {
    const input = { conversation: this.lane.group.id, seq };
    return (await callAs(this.lane.server, this.alice, 'messages.delete', input)).rev;
  }

  /**
   * The deliveries in the order of arrival: `42` for a message, `42 updated r57` for an event, with `+` between those
   * of a batch.
   */
  get arrived(): string[] {
    return this.lane.receiver.arrivals.map(describeArrival);
  }

  /** The delivery log, oldest first. */
  async log(): Promise<string[]> {
    const rows = await this.lane.server.database.query(
      (sql) => sql`
        select seq, rev, last_rev, outcome from delivery_attempt where hook_id = ${this.lane.hook}
        order by at, seq, rev`,
    );
    return rows.map(({ seq, rev, last_rev: last, outcome }) => {
      const range = Number(rev) === 0 ? `${seq}` : last === rev ? `${seq} r${rev}` : `r${rev}-${last}`;
      return `${range} ${String(outcome)}`;
    });
  }

  /** The rows of delivery_retry: `42` for a message, `r57` or `r57-60` for events. */
  async retries(): Promise<string[]> {
    const rows = await this.lane.server.database.query(
      (sql) => sql`select seq, rev, last_rev from delivery_retry order by seq, rev`,
    );
    return rows.map(({ seq, rev, last_rev: last }) =>
      Number(rev) === 0 ? `${seq}` : `r${rev}${last === rev ? '' : `-${last}`}`,
    );
  }

  async events(): Promise<number[]> {
    const rows = await this.lane.server.database.query((sql) => sql`select rev from hook_event order by rev`);
    return rows.map(({ rev }) => Number(rev));
  }
}

// oxlint-disable-next-line typescript/no-explicit-any -- tests look into it freely
type Delivery = any;

export const deliveriesOf = ({ body }: Arrival): Delivery[] => (Array.isArray(body) ? body : [body]);

export function describeArrival(arrival: Arrival): string {
  return deliveriesOf(arrival).map(describeDelivery).join('+');
}

function describeDelivery({ type, data }: Delivery): string {
  const { seq } = data.message;
  return type === 'message.created' ? `${seq}` : `${seq} ${String(type).replace('message.', '')} r${data.rev}`;
}
