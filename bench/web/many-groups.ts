import { setTimeout as wait } from 'node:timers/promises';
import { postOnSchedule } from '../support/schedule.ts';
import { heapBytes } from './page-probe.ts';
import type { WebPlan } from './plan.ts';
import type { Measures } from './rows.ts';
import type { BenchConversation } from './seed.ts';
import { slopeOf, type HeapSample } from './series.ts';
import type { WebStage } from './stage.ts';

const MB = 1_000_000;
const MESSAGES_BEFORE = 60;
const CONNECTIONS = 16;

/** Measures by how much the heap of an open page grows in a minute while many groups get messages. */
export async function measureManyGroups(stage: WebStage, plan: WebPlan): Promise<Measures> {
  const { count, perSecond, seconds, sampleSeconds } = plan.groups;
  const groups: BenchConversation[] = [];
  for (let n = 1; n <= count; n += 1) groups.push(await stage.conversation(`Group ${n}`, MESSAGES_BEFORE));
  const page = await stage.openAtEnd(groups[0]!);
  try {
    const cdp = await page.context().newCDPSession(page);
    const posting = postOnSchedule({
      origin: stage.server.url,
      paths: groups.map(({ webhook }) => new URL(webhook).pathname),
      perSecond,
      durationMs: seconds * 1_000,
      connections: CONNECTIONS,
    });
    // The await below reports a failure. Without this handler, one during the samples would be an unhandled rejection.
    posting.catch(() => {});
    const samples: HeapSample[] = [];
    for (let at = 0; at < seconds; at += sampleSeconds) {
      await wait(sampleSeconds * 1_000);
      samples.push({ atMs: performance.now(), megabytes: (await heapBytes(cdp)) / MB });
    }
    await posting;
    return { heapSlope: { klatch: slopeOf(samples) } };
  } finally {
    await page.context().close();
  }
}
