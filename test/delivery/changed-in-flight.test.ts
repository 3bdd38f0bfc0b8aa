import { expect, test } from '@jest/globals';
import { holdOpen, isWaiting, until } from '../storage/fixture.ts';
import { eventually } from '../support/eventually.ts';
import { Receiver } from '../support/receiver.ts';
import { postJson, readJson, TestServer } from '../support/server.ts';

test('what is answered after a hook was paused counts, though what was answered before was settled too late as well', async () => {
  const server = await TestServer.start();
  const second = Promise.withResolvers<number>();
  const receiver = await Receiver.start(({ body }) => (body.data.message.seq === 2 ? second.promise : 200));
  try {
    const group = await server.createGroup();
    const { body } = await postJson(`${group.webhook}/reverse`, { url: receiver.url() });
    const url = `${group.webhook}/reverse/${body.id}`;
    // The open transaction of the pause locks the row of the hook. The settlement of the first message waits for the
    // lock, while the second message is in flight.
    const pause = await holdOpen(
      server.database.target,
      (tx) => tx`update reverse_hook set paused_at = now(), generation = generation + 1 where id = ${body.id}`,
    );
    for (const text of ['one', 'two', 'three']) await postJson(group.webhook, { text });
    await receiver.received(2);
    await until(server.database, (sql) => isWaiting(sql, 'settle'));
    await pause.release();
    const pending = async (): Promise<number> => (await readJson(await fetch(url))).body.pending;
    await eventually(pending, (count) => count === 2);
    // This request notifies the lane of the change, as any change does.
    await fetch(url, { method: 'PATCH', body: '{"paused":true}' });
    second.resolve(200);
    await eventually(pending, (count) => count === 1);
    await fetch(url, { method: 'PATCH', body: '{"paused":false}' });
    await eventually(pending, (count) => count === 0);
    expect(receiver.seqs()).toEqual([1, 2, 3]);
  } finally {
    second.resolve(200);
    await server.stop();
    await receiver.stop();
  }
});
