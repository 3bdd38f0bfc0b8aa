import { accessSync, constants } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import { MAX_UNSETTLED_ATTEMPTS } from '../../src/delivery/lane.ts';
import { ALERTMANAGER } from '../../test/foreign/callers/alertmanager.ts';
import type { CleanUp } from '../clean-up.ts';
import type { Fault, Lack, Scene } from '../fault.ts';
import { endedByItself } from '../server-faults.ts';
import { Stage } from '../stage.ts';
import { CommandedBot } from './commanded-bot.ts';
import { GithubReplay } from './github-replay.ts';
import { PairedAlertmanagers } from './paired-alertmanagers.ts';
import { readStoredTexts } from './past-the-server.ts';
import { SilentJobs } from './silent-jobs.ts';

/**
 * The server is killed at a random time of at most this after new alerts were reported. So the kill may interrupt the
 * posts of both Alertmanagers: the second one waits a second for the first.
 */
const MAX_DELAY_MS = 2_500;
/** Pause of each of the stage's own callers after an answer. It leaves capacity for the posts of the real programs. */
const GAP_MS = 30;

async function lacksPrograms(): Promise<Lack> {
  try {
    accessSync(ALERTMANAGER, constants.X_OK);
    return null;
  } catch {
    return `${ALERTMANAGER} is missing: apt-get install prometheus-alertmanager`;
  }
}

async function open(cleanUp: CleanUp): Promise<Scene> {
  const stage = await Stage.start(cleanUp, { load: { gapMs: GAP_MS } });
  const [alerts, events] = [await stage.server.createGroup('Alerts'), await stage.server.createGroup('Events')];
  const readTexts = (): Promise<string[]> => readStoredTexts(stage.server, alerts.id);
  const alertmanagers = await PairedAlertmanagers.start({ webhook: alerts.webhook, readTexts }, cleanUp);
  const replay = new GithubReplay(events.webhook);
  await cleanUp.add('replay', () => replay.abort());
  replay.start();
  const bot = await CommandedBot.start(stage.server, await stage.server.createGroup('Bot'), cleanUp);
  const jobs = new SilentJobs(stage.server, await stage.server.createGroup('Jobs'));
  await cleanUp.add('jobs', () => jobs.abort());
  const violations: string[] = [];
  return {
    stage,
    strike: async () => {
      await alertmanagers.report();
      await jobs.report();
      await wait(Math.random() * MAX_DELAY_MS);
      await stage.server.end('SIGKILL');
      stage.faultEnds();
      await stage.server.start();
    },
    afterwards: () => alertmanagers.areShown(),
    settle: async () => {
      await replay.stop();
      await alertmanagers.finish();
      await bot.finish();
      await jobs.finish();
      violations.push(...(await bot.violations()), ...(await jobs.violations()));
      violations.push(...(await alertmanagers.violations()));
      violations.push(...replay.violationsOf(await readStoredTexts(stage.server, events.id)));
    },
    violations: () => [...endedByItself(stage), ...violations],
    remark: () =>
      `besides, two clustered Alertmanagers reported ${alertmanagers.count} alerts, ` +
      `${replay.delivered} events of GitHub were replayed, a bot had ${bot.commands} commands in ${bot.calls} calls, ` +
      `and ${jobs.count} jobs fell silent and came again`,
  };
}

/** Kills the server while real programs post. Their groups have to show each report once, in its last state. */
export const callersKillFault: Fault = {
  name: 'callers-kill',
  title: 'kill -9 of the server among real callers',
  runs: { full: 100, quick: 3, test: 1 },
  runMs: 40_000,
  repeatsPerLane: MAX_UNSETTLED_ATTEMPTS,
  lacks: lacksPrograms,
  open,
};
