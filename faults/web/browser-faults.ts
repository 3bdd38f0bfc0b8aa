import { accessSync, constants } from 'node:fs';
import { buildWeb } from '../../scripts/package/web.ts';
import { MAX_UNSETTLED_ATTEMPTS } from '../../src/delivery/lane.ts';
import { CHROMIUM } from '../../test/foreign/web/web-browser.ts';
import { CuttingProxy } from '../../test/client/core/cutting-proxy.ts';
import type { CleanUp } from '../clean-up.ts';
import type { Fault, Lack, Scene } from '../fault.ts';
import { endedByItself } from '../server-faults.ts';
import { Stage } from '../stage.ts';
import { cutConnections, killServer, takeNetwork } from './interruptions.ts';
import { WatchedTabs } from './watched-tabs.ts';

/** Pause of each of the stage's own callers after an answer. It leaves CPU time for the browser. */
const GAP_MS = 60;
const OFFLINE_MS = 30_000;

async function lacksChromium(): Promise<Lack> {
  try {
    accessSync(CHROMIUM, constants.X_OK);
    return null;
  } catch {
    return `${CHROMIUM} is missing: apt-get install chromium`;
  }
}

/**
 * Strikes the tabs. Resolves when they can reach the server again; calls `onEnd` as soon as nothing is broken any more.
 */
type Interrupt = (watched: WatchedTabs, run: number, onEnd: () => void) => Promise<void>;

async function open(cleanUp: CleanUp, interrupt: Interrupt): Promise<Scene> {
  // The server of a test runs from its sources, and serves the browser client that was built last. So it is built
  // first.
  await buildWeb();
  let stage: Stage | null = null;
  const proxy = await CuttingProxy.start(() => stage!.server.port);
  await cleanUp.add('proxy', () => proxy.stop());
  const settings = `http.base-uri = "http://127.0.0.1:${proxy.port}"`;
  stage = await Stage.start(cleanUp, { settings, load: { gapMs: GAP_MS } });
  const opened = stage;
  const watched = await WatchedTabs.open({ server: opened.server, proxy }, cleanUp);
  return {
    stage: opened,
    strike: async (run) => {
      await interrupt(watched, run, () => opened.faultEnds());
      await watched.followAgain();
    },
    afterwards: () => watched.walk(),
    settle: () => watched.settle(),
    violations: () => [...endedByItself(opened), ...watched.violations()],
    remark: () => watched.remark(),
  };
}

/**
 * Faults that strike three tabs of a real browser. Callers post into the conversation that the tabs show, and each tab
 * sends texts into it.
 */
export const browserFaults: readonly Fault[] = [
  {
    name: 'browser-cuts',
    title: 'connections of a browser with three tabs cut',
    runs: { full: 100, quick: 10, test: 3 },
    runMs: 40_000,
    repeatsPerLane: 0,
    lacks: lacksChromium,
    open: (cleanUp) =>
      open(cleanUp, async (watched, run, onEnd) => {
        await cutConnections(watched, run);
        onEnd();
      }),
  },
  {
    name: 'browser-kill',
    title: 'kill -9 of the server of a browser with three tabs',
    runs: { full: 20, quick: 3, test: 1 },
    runMs: 30_000,
    repeatsPerLane: MAX_UNSETTLED_ATTEMPTS,
    lacks: lacksChromium,
    open: (cleanUp) => open(cleanUp, killServer),
  },
  {
    name: 'browser-offline',
    title: 'browser with three tabs offline for 30 s',
    runs: { full: 20, quick: 3, test: 1 },
    runMs: 150_000,
    repeatsPerLane: 0,
    lacks: lacksChromium,
    open: (cleanUp) =>
      open(cleanUp, async (watched, run, onEnd) => {
        await takeNetwork(watched, run, OFFLINE_MS);
        onEnd();
      }),
  },
];
