import { MAX_UNSETTLED_ATTEMPTS } from '../src/delivery/lane.ts';
import type { Fault, Scene } from './fault.ts';
import { Stage } from './stage.ts';

/** Returns a violation if a server has exited unexpectedly. */
export function endedByItself({ servers }: Stage): string[] {
  return servers.some((server) => !server.running) ? ['the server did not survive'] : [];
}

async function scene(stage: Stage, strike: Scene['strike']): Promise<Scene> {
  return { stage, strike, violations: () => endedByItself(stage) };
}

export const serverFaults: readonly Fault[] = [
  {
    name: 'kill',
    title: 'kill -9 of the server',
    runs: { full: 100, quick: 10, test: 4 },
    runMs: 20_000,
    repeatsPerLane: MAX_UNSETTLED_ATTEMPTS,
    open: async (cleanUp) => {
      const stage = await Stage.start(cleanUp);
      return scene(stage, async () => {
        await stage.server.end('SIGKILL');
        stage.faultEnds();
        await stage.server.start();
      });
    },
  },
  {
    name: 'restart',
    title: 'clean restart of the server',
    runs: { full: 100, quick: 2, test: 1 },
    runMs: 40_000,
    repeatsPerLane: 0,
    open: async (cleanUp) => {
      const stage = await Stage.start(cleanUp);
      return scene(stage, async () => {
        const code = await stage.server.end('SIGTERM');
        if (code !== 0) stage.recorder.violations.add(`a server that was asked to stop ended with ${code}`);
        stage.faultEnds();
        await stage.server.start();
      });
    },
  },
];
