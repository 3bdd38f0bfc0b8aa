import { MAX_UNSETTLED_ATTEMPTS } from '../src/delivery/lane.ts';
import { DatabaseProxy } from '../test/support/database-proxy.ts';
import type { Fault } from './fault.ts';
import { killPostmaster, OwnDatabase } from './own-database.ts';
import { endedByItself } from './server-faults.ts';
import { Stage } from './stage.ts';
import { until } from './until.ts';

/** Short time-outs shorten each run. The relations between them are those of the defaults. */
const SHORT_TIMEOUTS = `services.postgresql {
  connect-timeout = 500ms, query-timeout = 1500ms, flush-timeout = 1s, lock-timeout = 300ms
}`;

export const databaseFaults: readonly Fault[] = [
  {
    name: 'database-kill',
    title: 'kill -9 of the embedded PostgreSQL',
    runs: { full: 100, quick: 2, test: 1 },
    runMs: 40_000,
    repeatsPerLane: MAX_UNSETTLED_ATTEMPTS,
    open: async (cleanUp) => {
      const stage = await Stage.start(cleanUp);
      const strike = async (): Promise<void> => {
        await killPostmaster(stage.server.dataDir);
        // The fault ends here, because the server restarts PostgreSQL itself: the time of recovery includes the
        // restart.
        stage.faultEnds();
      };
      return { stage, strike, violations: () => endedByItself(stage) };
    },
  },
  {
    name: 'own-database-kill',
    title: 'kill -9 and restart of a PostgreSQL beside the server',
    runs: { full: 100, quick: 2, test: 1 },
    runMs: 40_000,
    repeatsPerLane: MAX_UNSETTLED_ATTEMPTS,
    open: async (cleanUp) => {
      const database = await OwnDatabase.start(cleanUp);
      const stage = await Stage.start(cleanUp, { settings: database.settings() });
      const strike = async (): Promise<void> => {
        await database.killAndRestart();
        stage.faultEnds();
      };
      return { stage, strike, violations: () => endedByItself(stage) };
    },
  },
  {
    name: 'blackhole',
    title: "PostgreSQL's connection blackholed",
    runs: { full: 100, quick: 2, test: 2 },
    runMs: 40_000,
    repeatsPerLane: MAX_UNSETTLED_ATTEMPTS,
    open: async (cleanUp) => {
      const database = await OwnDatabase.start(cleanUp);
      const proxy = await DatabaseProxy.start(database.place);
      await cleanUp.add('proxy', () => proxy.stop());
      const settings = `${database.settings(proxy.address)}\n${SHORT_TIMEOUTS}`;
      const stage = await Stage.start(cleanUp, { settings });
      const strike = async (run: number): Promise<void> => {
        proxy.hold('both');
        const isAway = async (): Promise<boolean> => (await fetch(`${stage.server.url}/v1/ready`)).status === 503;
        await until('the server says that its database is away', isAway);
        // In every second run the proxy forgets its connections, as a firewall does. In the other runs it delivers all
        // bytes that it held back.
        if (run % 2 === 0) proxy.abandon();
        await proxy.forward();
        stage.faultEnds();
      };
      return { stage, strike, violations: () => endedByItself(stage) };
    },
  },
];
