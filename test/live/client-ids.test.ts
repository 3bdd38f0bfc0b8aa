import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { callAs } from '../support/call.ts';
import { eventually } from '../support/eventually.ts';
import { createPerson, type TestPerson } from '../support/people.ts';
import type { LiveClient } from './client.ts';
import { LiveFixture } from './fixture.ts';

let live: LiveFixture;
let bob: TestPerson;
beforeAll(async () => {
  live = await LiveFixture.start();
  bob = await createPerson(live.server, 'bob');
  await live.add('bob');
});
afterAll(() => live.stop());

/** The client_ids of the messages that the client got, by text. Waits until it has got the text `last`. */
async function clientIds(client: LiveClient, last: string): Promise<Record<string, string | undefined>> {
  const messages = await eventually(
    () => client.changes(live.group.id).flatMap(({ message }) => message ?? []),
    (all) => all.at(-1)?.text === last,
  );
  return Object.fromEntries(messages.map(({ text, client_id: clientId }) => [text, clientId]));
}

const send = (person: TestPerson, text: string, clientId?: string): Promise<unknown> => {
  const key = clientId === undefined ? {} : { client_id: clientId };
  return callAs(live.server, person, 'messages.send', { conversation: live.group.id, text, ...key });
};

test("a live change has its client_id on all of the sender's connections and on nobody else's, also for who comes back", async () => {
  const following = await Promise.all(
    live.urls.map(async (url) => [await live.follow(url), await live.follow(url, bob.token)] as const),
  );
  // All messages are sent at the same time, so that messages of both people and one without an id share a batch.
  await Promise.all([
    send(alice(), 'hers', 'a-1'),
    send(bob, 'his', 'b-1'),
    send(alice(), 'unnamed'),
    live.post('posted'),
  ]);
  await send(alice(), 'last', 'a-2');
  const returned = await live.follow(live.urls[0], alice().token, { default: 'start' });
  const seenByAlice = { hers: 'a-1', his: undefined, unnamed: undefined, posted: undefined, last: 'a-2' };
  const seenByBob = { ...seenByAlice, hers: undefined, his: 'b-1', last: undefined };
  for (const [hers, his] of following) {
    expect(await clientIds(hers, 'last')).toEqual(seenByAlice);
    expect(await clientIds(his, 'last')).toEqual(seenByBob);
  }
  expect(await clientIds(returned, 'last')).toEqual(seenByAlice);
});

const alice = (): TestPerson => live.alice;
