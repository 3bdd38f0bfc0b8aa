import { expect, test } from '@jest/globals';
import { LocalBus } from '../../../src/bus/bus.ts';
import { silentLog } from '../../../src/log.ts';
import { Housekeeping } from '../../../src/workers/housekeeping.ts';
import { testConfig } from '../../support/config.ts';
import { ALL_EVENTS, EventsFixture } from './events-fixture.ts';

test('a hook that was paused for too long goes on without the events that expired, and with every message', async () => {
  const it = await EventsFixture.start();
  try {
    const { lane } = it;
    await lane.register({ events: ALL_EVENTS });
    await lane.pause(true);
    const first = await it.send('first');
    const expired = await it.edit(first, 'expired');
    await lane.server.database.query((sql) => sql`update hook_event set at = at - interval '8 days'`);
    const kept = await it.edit(first, 'kept');
    const { database } = lane.server;
    const config = testConfig(database.target, '/nowhere');
    const cleaning = new Housekeeping({
      database: database.open(),
      bus: new LocalBus(),
      config,
      node: 'a',
      log: silentLog(),
    });
    expect(await cleaning.runOnce()).toMatchObject({ events: 1, lostEvents: 1 });
    expect(cleaning.counts).toEqual({ lostEvents: 1 });
    expect(await it.events()).toEqual([kept]);
    const second = await it.send('second');
    await lane.pause(false);
    await lane.receiver.received(3);
    expect(it.arrived).toEqual([`${first}`, `${first} updated r${kept}`, `${second}`]);
    expect(await it.log()).toContain(`${first} r${expired} expired`);
  } finally {
    await it.stop();
  }
});
