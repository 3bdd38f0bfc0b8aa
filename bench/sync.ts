import { LiveStage, type Side } from './live/live-stage.ts';
import { median, report, round } from './support/report.ts';
import { fillLog } from './seed-data.ts';
import { cpuSeconds, residentMiB } from './support/cpu.ts';

const CLIENTS = 1_000;
const MESSAGES = 10_000;
const ROUNDS = 3;

/** Measures the time until 1,000 clients that reconnect at once have each received 10,000 messages. */
export async function benchSync(): Promise<boolean> {
  const stage = await LiveStage.start();
  try {
    const ws = await stage.people('ws', CLIENTS, { default: 'start' });
    const tcp = await stage.people('tcp', CLIENTS, { default: 'start' });
    for (const { group } of [ws, tcp]) await fillLog(stage.server, group, MESSAGES);
    const bare = await stage.bare(CLIENTS, MESSAGES);
    const rounds: { ws: number; tcp: number; bare: number }[] = [];
    for (let n = 0; n < ROUNDS; n += 1) {
      rounds.push({ ws: await comeBack(ws), bare: await comeBack(bare), tcp: await comeBack(tcp) });
    }
    const { pid } = stage.server;
    const perSecond = (seconds: number): number => round((CLIENTS * MESSAGES) / seconds);
    report(
      `sync: ${CLIENTS} clients come back at once after ${MESSAGES} messages`,
      rounds.map((each) => ({
        'ws, s': round(each.ws, 1),
        'tcp, s': round(each.tcp, 1),
        'bare ws, s': round(each.bare, 1),
        ratio: round(each.bare / each.ws, 2),
      })),
      {
        bench: 'sync',
        ratio: round(median(rounds.map((each) => each.bare / each.ws)), 2),
        baseline: 'bare ws server that has the messages in memory and sends each of them to each client; no target',
        rate: perSecond(median(rounds.map((each) => each.ws))),
        'rate over tcp': perSecond(median(rounds.map((each) => each.tcp))),
        'server MiB': round(residentMiB(pid)),
        'CPU s of the server and its database': round(cpuSeconds(pid)),
      },
    );
    return true;
  } finally {
    await stage.stop();
  }
}

/** Returns the seconds from the first connection to the last message. */
async function comeBack(side: Side): Promise<number> {
  const started = performance.now();
  await side.clients.ask('open');
  await side.clients.ask(`wait ${CLIENTS * MESSAGES}`);
  const seconds = (performance.now() - started) / 1_000;
  await side.clients.ask('close');
  return seconds;
}
