import { glob, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { CleanUp } from './clean-up.ts';
import type { Fault, Scene } from './fault.ts';
import { refuse, take } from './receiver.ts';
import { endedByItself } from './server-faults.ts';
import { Stage } from './stage.ts';
import type { ShimCommand } from './clock-shim.ts';
import { until } from './until.ts';

const RUNS = { full: 100, quick: 2, test: 2 };
const RUN_MS = 40_000;
const HOUR_S = 3_600;
/** The difference between the server's clock and the real time in each run. It moves forward and back between runs. */
const OFFSETS_S = [-HOUR_S / 2, HOUR_S / 2, -26 * HOUR_S, 26 * HOUR_S, 0, -2 * HOUR_S, -60, 60, 365 * 24 * HOUR_S, 0];
/**
 * A delivery's timestamp shows the sender's clock. The clock counts as set if the timestamp differs by less than this
 * from the expected time.
 */
const NEAR_S = 10;

/** Sets the clock of a running server, while some hooks deliver and others wait for their next attempt. */
function clockScene(stage: Stage, setClock: (offsetS: number) => Promise<void>): Scene {
  const { records, healthy } = recordsOf(stage);
  return {
    stage,
    strike: async (run) => {
      const offsetS = OFFSETS_S[run % OFFSETS_S.length]!;
      stage.struck.behave = refuse(500);
      await stage.struckAreAnswered(3);
      await setClock(offsetS);
      const isSet = (timestampS: number): boolean => Math.abs(timestampS - Date.now() / 1000 - offsetS) < NEAR_S;
      await until('deliveries say that the clock was set', () =>
        healthy.every((record) => isSet(record.lastTimestampS)),
      );
      stage.struck.behave = take;
      stage.faultEnds();
      await until('struck hooks go on', () => records.every((record) => isSet(record.lastTimestampS)));
    },
    violations: () => endedByItself(stage),
  };
}

function recordsOf({ hooks }: Stage) {
  return {
    records: hooks.map(({ record }) => record),
    healthy: hooks.filter(({ isStruck }) => !isStruck).map(({ record }) => record),
  };
}

async function openInjected(cleanUp: CleanUp): Promise<Scene> {
  const stage = await Stage.start(cleanUp, { process: { preload: join(import.meta.dirname, 'clock-shim.ts') } });
  return clockScene(stage, (offsetS) => stage.server.tell({ clockOffsetMs: offsetS * 1000 } satisfies ShimCommand));
}

/** The path of libfaketime (Debian's package) in its variant for programs with threads; null if it is not installed. */
async function faketimeLibrary(): Promise<string | null> {
  for await (const path of glob('/usr/lib{,64}{,/*}/faketime/libfaketimeMT.so.1')) return path;
  return null;
}

async function openFaketime(cleanUp: CleanUp): Promise<Scene> {
  const folder = await mkdtemp(join(tmpdir(), 'klatch-faults-'));
  await cleanUp.add('folder of the clock', () => rm(folder, { recursive: true, force: true }));
  const file = join(folder, 'clock');
  const setClock = async (offsetS: number): Promise<void> => {
    // The rename replaces the file at once, so that no process reads half of it.
    await writeFile(`${file}.new`, offsetS < 0 ? `${offsetS}` : `+${offsetS}`);
    await rename(`${file}.new`, file);
  };
  await setClock(0);
  const env = {
    LD_PRELOAD: (await faketimeLibrary())!,
    FAKETIME_TIMESTAMP_FILE: file,
    FAKETIME_CACHE_DURATION: '1',
    FAKETIME_DONT_FAKE_MONOTONIC: '1',
    DONT_FAKE_MONOTONIC: '1',
  };
  const stage = await Stage.start(cleanUp, { process: { env } });
  return clockScene(stage, setClock);
}

export const clockFaults: readonly Fault[] = [
  {
    name: 'clock',
    title: 'clock set back and forward (injected)',
    runs: RUNS,
    runMs: RUN_MS,
    repeatsPerLane: 0,
    open: openInjected,
  },
  {
    name: 'faketime',
    title: 'clock set back and forward (libfaketime)',
    runs: RUNS,
    runMs: RUN_MS,
    repeatsPerLane: 0,
    lacks: async () =>
      (await faketimeLibrary()) === null ? 'faketime is not installed: apt-get install faketime' : null,
    open: openFaketime,
  },
];
