import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { raiseLogEpoch } from '../../../src/storage/messages/log-epoch.ts';
import { LiveFixture } from '../../live/fixture.ts';
import { callAs } from '../../support/call.ts';
import { send } from '../conversation-calls.ts';

let live: LiveFixture;
beforeEach(async () => {
  live = await LiveFixture.start();
});
afterEach(() => live.stop());

const raise = (): Promise<number> => live.server.database.query((sql) => raiseLogEpoch(sql));

/** The epoch of the group as `conversations.sync`, `messages.history` and `live.subscribe` report it. */
async function toldEpochs(): Promise<object[]> {
  const conversation = live.group.id;
  const { server, alice } = live;
  const pick = ({ epoch, previous_epoch: previous, epoch_rev: rev }: Record<string, unknown>): object => ({
    ...(epoch === undefined ? {} : { epoch }),
    ...(previous === undefined ? {} : { previous }),
    ...(rev === undefined ? {} : { rev }),
  });
  const sync = await callAs(server, alice, 'conversations.sync', { conversation, after_rev: 0 });
  const history = await callAs(server, alice, 'messages.history', { conversation });
  const client = await live.signIn(live.urls[1]);
  const { conversations, ...subscribed } = await client.call('live.subscribe');
  await client.close();
  return [sync, history, { ...subscribed, epoch_rev: conversations[0].epoch_rev }].map((each) => pick(each as never));
}

describe('an answer', () => {
  test('says nothing of epochs while no change was lost', async () => {
    await send(live.server, live.alice, live.group.id, 'one');
    expect(await toldEpochs()).toEqual([{}, {}, {}]);
  });

  test('says the epoch, the one before, and behind which rev who knows that one drops what it has', async () => {
    const { server, alice, group } = live;
    await send(server, alice, group.id, 'one');
    const { last_rev: before } = await callAs(server, alice, 'conversations.show', { conversation: group.id });
    const first = await raise();
    const told = { epoch: first, previous: 0, rev: before };
    // As long as the group has no change of the new epoch, that epoch begins after its last change.
    expect(await toldEpochs()).toEqual([told, told, told]);
    const sent = await send(server, alice, group.id, 'two');
    expect(sent.id).toBe(`${group.id}:${sent.seq}.${first}`);
    await send(server, alice, group.id, 'three');
    expect(await toldEpochs()).toEqual([told, told, told]);
    const second = await raise();
    const later = { epoch: second, previous: first, rev: before + 2 };
    expect(await toldEpochs()).toEqual([later, later, later]);
  });

  test('goes on with the search behind a message of a later epoch', async () => {
    const { server, alice, group } = live;
    await send(server, alice, group.id, 'needle one');
    await raise();
    const sent = await send(server, alice, group.id, 'needle two');
    const search = (before: string) => callAs(server, alice, 'messages.search', { text: 'needle', before });
    await expect(search(`${group.id}:${sent.seq}`)).rejects.toThrow('no such message');
    await expect(search(sent.id)).resolves.toBeDefined();
  });
});

describe('a client that follows while a new epoch begins', () => {
  test.each([0, 1, 2])('is told to come back once something is written, on transport %i', async (transport) => {
    const client = await live.follow(live.urls[transport]!);
    const other = await live.signIn(live.urls[1]);
    await live.post('before');
    await raise();
    await live.post('after');
    expect(await client.ended()).toBe(4008);
    // A client that only makes requests, and follows nothing, stays connected.
    await expect(other.call('live.ping')).resolves.toBeDefined();
    const again = await live.signIn(live.urls[transport]!);
    const { epoch } = await again.call('live.subscribe');
    expect(epoch).toBeGreaterThan(0);
    await live.post('and on');
    await again.call('live.ping');
    expect(again.code).toBeNull();
  });
});
