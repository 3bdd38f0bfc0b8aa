import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { alertNamed, AlertNode, alertPost } from '../../operations/messages/alert-node.ts';
import type { AlertPost } from '../../../src/operations/messages/alert-writer.ts';
import { LiveClient } from '../../live/client.ts';
import { callAs } from '../../support/call.ts';
import { eventually } from '../../support/eventually.ts';
import { joined } from '../../operations/conversation-calls.ts';
import { ALL_EVENTS, EventsFixture } from './events-fixture.ts';

let it: EventsFixture;
/** Another node than the one that delivers; it posts the alerts. */
let node: AlertNode;
beforeEach(async () => {
  it = await EventsFixture.start();
  node = new AlertNode(it.lane.server.database);
  await node.connect();
});
afterEach(async () => {
  await node.stop();
  await it.stop();
});

const a = alertNamed('a');
const over = [alertNamed('a', 'resolved')];

async function tell(post: AlertPost): Promise<number> {
  const { token } = it.lane.group;
  return node.post({ integration: (await node.tokens.find(token))!, token }, post);
}

async function revOf(seq: number): Promise<number> {
  const [row] = await it.lane.server.database.query(
    (sql) => sql`select rev from message where conversation_id = ${it.lane.group.id} and seq = ${seq}`,
  );
  return Number(row!['rev']);
}

/** Makes the events older than a minute, so that sweeps (searches for hooks with work) do not find them. */
const hideFromSweeps = (): Promise<unknown> =>
  it.lane.server.database.query((sql) =>
    sql.unsafe(`
      create function make_old() returns trigger language plpgsql as $$ begin
        new.at := new.at - interval '1 hour'; return new; end $$;
      create trigger make_old before insert on hook_event for each row execute function make_old()`),
  );

describe('an alert that is kept up to date', () => {
  test('is told to hooks that ask for events, in its place and with the hops of the post that changed it', async () => {
    await it.lane.register({ events: ALL_EVENTS });
    await hideFromSweeps();
    const seq = await tell(alertPost('firing', [a]));
    const between = await it.send('between');
    await it.lane.receiver.received(2);
    // This post only edits a message: nothing but the notification of the event wakes the lane.
    await tell(alertPost('firing', [a, alertNamed('b')], { hops: 2 }));
    const edited = await revOf(seq);
    await it.lane.receiver.received(3);
    await tell(alertPost('resolved', [...over, alertNamed('b', 'resolved')], { hops: 3 }));
    const ended = await revOf(seq);
    await it.lane.receiver.received(5);
    expect(it.arrived).toEqual([
      `${seq}`,
      `${between}`,
      `${seq} updated r${edited}`,
      `${seq} updated r${ended}`,
      `${between + 1}`,
    ]);
    const [first, , update, last, line] = it.lane.receiver.arrivals;
    expect(update!.body.data).toMatchObject({ message: { text: 'firing: a b' }, actor: { kind: 'webhook' } });
    expect(last!.body.data.message).toMatchObject({ seq, text: 'resolved:' });
    expect(last!.body.data.actor).toMatchObject({ id: first!.body.data.sender.id, kind: 'webhook' });
    expect(line!.body.data.message.text).toBe('cpu is resolved');
    expect([first, update, last, line].map((each) => each!.headers['klatch-hops'])).toEqual(['0', '2', '3', '3']);
  });

  test('is told to hooks that ask for no events by its new messages alone', async () => {
    await it.lane.register();
    const seq = await tell(alertPost('firing', [a]));
    await tell(alertPost('firing', [a, alertNamed('b')]));
    await tell(alertPost('resolved', [...over, alertNamed('b', 'resolved')]));
    await it.lane.receiver.received(2);
    expect(it.arrived).toEqual([`${seq}`, `${seq + 1}`]);
    expect(await it.events()).toEqual([]);
  });

  test('reaches live clients, whose message changes and who get the line', async () => {
    const client = await LiveClient.signIn(it.lane.server.liveUrl, it.alice.token);
    try {
      await client.call('live.subscribe');
      const { id } = it.lane.group;
      const shown = (): [number, string][] => client.changes(id).map(({ message }) => [message.seq, message.text]);
      const seq = await tell(alertPost('firing', [a]));
      await eventually(shown, (all) => all.length === 1);
      // This post only edits a message: its notification wakes the feed before the feed compares itself with the
      // database.
      await tell(alertPost('firing', [a, alertNamed('b')]));
      await eventually(shown, (all) => all.length === 2);
      await tell(alertPost('resolved', [...over, alertNamed('b', 'resolved')]));
      await eventually(shown, (all) => all.length === 4);
      expect(shown()).toEqual([
        [seq, 'firing: a'],
        [seq, 'firing: a b'],
        [seq, 'resolved:'],
        [seq + 1, 'cpu is resolved'],
      ]);
    } finally {
      client.socket.destroy();
    }
  });

  test('whose message a person deleted gets a new one by its next change, and by no repetition', async () => {
    const owner = await joined(it.lane.server, 'olga', it.lane.group.id, 'owner');
    const seq = await tell(alertPost('firing', [a]));
    await callAs(it.lane.server, owner, 'messages.delete', { conversation: it.lane.group.id, seq });
    expect(await tell(alertPost('firing', [a]))).toBe(seq);
    expect(await tell(alertPost('firing', [a, alertNamed('b')]))).toBe(seq + 1);
    expect(await tell(alertPost('resolved', [...over, alertNamed('b', 'resolved')]))).toBe(seq + 1);
    const rows = await it.lane.server.database.query((sql) => sql`select text from message order by seq`);
    expect(rows.map(({ text }) => text)).toEqual(['', 'resolved:', 'cpu is resolved']);
  });
});
