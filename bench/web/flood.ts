import type { Page } from 'playwright-core';
import { machineMs, wallMs } from '../support/clock.ts';
import { percentile } from '../support/report.ts';
import { postOnSchedule } from '../support/schedule.ts';
import type { WebPlan } from './plan.ts';
import type { Measures } from './rows.ts';
import { lagsOf, type Shown } from './series.ts';
import { storedTexts, type BenchConversation } from './seed.ts';
import { VIEW, type WebStage } from './stage.ts';
import { within } from './within.ts';

const MESSAGES_BEFORE = 60;
const CONNECTIONS = 64;
/** The time between two keys that a person types. */
const KEY_MS = 200;
const NODES_MS = 1_000;
/** The page must show the last post within this time. */
const LAST_S = 60;
/** The time limit for showing 60,000 messages by scrolling. */
const READ_S = 2_400;
/** The height of the page while it shows all messages: in a view of 800 px that took more than 15 minutes. */
const READ_HEIGHT_PX = 6_000;

/** Posts many messages a second into the open conversation while a person types. */
export async function measureFlood(stage: WebStage, plan: WebPlan): Promise<Measures> {
  const { perSecond, seconds } = plan.flood;
  const conversation = await stage.conversation('Flood', MESSAGES_BEFORE);
  const page = await stage.openAtEnd(conversation);
  try {
    await page.locator('textarea').first().focus();
    await page.evaluate(`probe.recordLast({ list: '.feed', item: 'article', attribute: 'aria-posinset' })`);
    const typing = startTyping(page);
    const clock = wallMs() - machineMs();
    const { posts } = await postOnSchedule({
      origin: stage.server.url,
      paths: [new URL(conversation.webhook).pathname],
      perSecond,
      durationMs: seconds * 1_000,
      connections: CONNECTIONS,
    });
    console.log(`web: flood: ${posts.length} posts were answered 200`);
    const last = MESSAGES_BEFORE + posts.length;
    await page.waitForSelector(`.feed article[aria-posinset="${last}"]`, {
      state: 'attached',
      timeout: LAST_S * 1_000,
    });
    console.log(`web: flood: the page shows message ${last}`);
    await within(LAST_S, 'two frames after the flood', page.evaluate('probe.frames(2)'));
    const { keys, nodes } = await within(LAST_S, 'the last key', typing.stop());
    const shown = await within(LAST_S, 'the recorded frames', page.evaluate<Shown[]>('probe.stopLast()'));
    console.log('web: flood: reading all messages ...');
    const commits = posts.map(({ id, answeredMs }) => ({ number: Number(id.split(':')[1]), atMs: answeredMs + clock }));
    return {
      floodLag: { klatch: percentile(lagsOf(commits, shown), 0.99) },
      floodKeys: { klatch: percentile(keys, 0.95) },
      floodNodes: { klatch: nodes },
      floodWrong: { klatch: await countWrong(stage, page, conversation) },
    };
  } finally {
    await page.context().close();
  }
}

interface Typed {
  readonly keys: readonly number[];
  readonly nodes: number;
}

/** Types into the field that has the focus, and counts DOM nodes, until `stop` is called. */
export function startTyping(page: Page): { stop(): Promise<Typed> } {
  const stopped = new AbortController();
  let nodes = 0;
  const type = async (): Promise<void> => {
    await page.evaluate('probe.recordKeys()');
    for (let n = 0; !stopped.signal.aborted; n += 1) {
      const next = performance.now() + KEY_MS;
      await page.keyboard.press('abcdefgh'[n % 8]!);
      if (n % (NODES_MS / KEY_MS) === 0) nodes = Math.max(nodes, await page.evaluate<number>('probe.countNodes()'));
      await page.waitForTimeout(Math.max(0, next - performance.now()));
    }
  };
  const typed = type();
  // `stop` awaits this promise. Without this handler, an earlier failure would be an unhandled rejection.
  typed.catch(() => {});
  return {
    stop: async () => {
      stopped.abort();
      await typed;
      return { keys: await page.evaluate<number[]>('probe.stopKeys()'), nodes };
    },
  };
}

/** Reads the whole conversation in the page and compares it with the database. Returns the number of differences. */
async function countWrong(stage: WebStage, page: Page, { id }: BenchConversation): Promise<number> {
  const stored = await storedTexts(stage.server, id);
  await page.setViewportSize({ ...VIEW, height: READ_HEIGHT_PX });
  const reading = page.evaluate<{ found: [number, string][]; disordered: number }>('probe.readAll()');
  const { found, disordered } = await within(READ_S, 'reading the conversation', reading);
  const right = found.filter(([seq, text]) => stored.get(seq) === text).length;
  return stored.size - right + disordered;
}
