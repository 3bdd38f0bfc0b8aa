import type { Page } from 'playwright-core';
import { Random } from '../../faults/histories/random.ts';
import { median } from '../support/report.ts';
import { heapBytes } from './page-probe.ts';
import type { WebPlan } from './plan.ts';
import type { Measures } from './rows.ts';
import type { BenchConversation } from './seed.ts';
import type { WebStage } from './stage.ts';
import { frameTimes, traced } from './trace.ts';
import { within } from './within.ts';

const MB = 1_000_000;
const SEED = 1;
const DRAG_FRAMES = 30;
/** The time limit for scrolling once through a conversation, while some pages of messages have to load. */
const WAY_S = 900;
const STEP_S = 120;
/** The speed of a person who turns the wheel quickly. */
const SCROLL_PX_PER_SECOND = 4_000;

/** The measurements of one pass through the conversation. */
interface Pass {
  readonly nodes: number;
  readonly heapMB: number;
  readonly jumps: readonly number[];
  /** The number of jumps after which the message did not come into view. */
  readonly lost: number;
}

/** Measures two passes through 100,000 messages, and the work for each frame while a person scrolls. */
export async function measureLongConversation(stage: WebStage, plan: WebPlan): Promise<Measures> {
  const conversation = await stage.conversation('Long', plan.longMessages);
  const page = await stage.openAtEnd(conversation);
  try {
    const random = new Random(SEED);
    const first = await pass(page, { conversation, plan, random });
    const second = await pass(page, { conversation, plan, random });
    const { workMs, longestMs } = await scrollTraced(page, plan.tracedSeconds);
    return {
      longNodes: { klatch: Math.max(first.nodes, second.nodes) },
      longHeap: { klatch: second.heapMB },
      longGrowth: { klatch: second.heapMB - first.heapMB },
      jump: { klatch: median([...first.jumps, ...second.jumps]) },
      lostJumps: { klatch: first.lost + second.lost },
      frameWork: { klatch: workMs },
      longestTask: { klatch: longestMs },
    };
  } finally {
    await page.context().close();
  }
}

interface PassOptions {
  readonly conversation: BenchConversation;
  readonly plan: WebPlan;
  readonly random: Random;
}

/** One pass: scrolls up and down, drags the scroll bar, and jumps to messages. */
async function pass(page: Page, { conversation, plan, random }: PassOptions): Promise<Pass> {
  let nodes = 0;
  for (const step of [-plan.scrollStepPx, plan.scrollStepPx]) {
    const way = page.evaluate<{ nodes: number }>(`probe.scrollThrough('.feed', ${step})`);
    nodes = Math.max(nodes, (await within(WAY_S, 'a way through the conversation', way)).nodes);
  }
  for (let n = 0; n < plan.drags; n += 1) {
    const drag = page.evaluate<number>(`probe.dragTo('.feed', ${random.fraction()}, ${DRAG_FRAMES})`);
    nodes = Math.max(nodes, await within(STEP_S, 'a drag of the bar', drag));
  }
  const { jumps, lost } = await jumpAround(page, { conversation, plan, random });
  const cdp = await page.context().newCDPSession(page);
  const heapMB = (await heapBytes(cdp)) / MB;
  await cdp.detach();
  return { nodes, heapMB, jumps, lost };
}

/** Jumps to random messages by their URLs. Returns the time until each was drawn. */
async function jumpAround(
  page: Page,
  { conversation, plan, random }: PassOptions,
): Promise<{ jumps: number[]; lost: number }> {
  const jumps: number[] = [];
  let lost = 0;
  for (let n = 0; n < plan.jumps; n += 1) {
    const seq = random.between(1, conversation.messages);
    const jump = page.evaluate<{ ms: number } | { failure: string }>(
      `probe.jumpTo('/c/${conversation.id}/${seq}', ${seq})`,
    );
    const result = await within(STEP_S, `the jump to ${seq}`, jump);
    if ('ms' in result) jumps.push(result.ms);
    else {
      lost += 1;
      console.log(`  long: message ${seq} did not come into view: ${result.failure}`);
    }
  }
  return { jumps, lost };
}

/** Scrolls up and down alternately, as a wheel does, while the browser traces its work. */
async function scrollTraced(page: Page, seconds: number): Promise<{ workMs: number; longestMs: number }> {
  const cdp = await page.context().newCDPSession(page);
  const { width, height } = page.viewportSize()!;
  const yDistance = (SCROLL_PX_PER_SECOND * seconds) / 2;
  const events = await traced(page, async () => {
    for (const direction of [1, -1]) {
      await cdp.send('Input.synthesizeScrollGesture', {
        x: Math.round(width * 0.6),
        y: Math.round(height / 2),
        yDistance: yDistance * direction,
        speed: SCROLL_PX_PER_SECOND,
        gestureSourceType: 'mouse',
        preventFling: true,
      });
    }
  });
  return frameTimes(events);
}
