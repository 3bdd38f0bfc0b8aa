import type { BrowserContext, Page } from 'playwright-core';
import { BenchProcess } from '../process.ts';
import type { Condition } from './page-probe.ts';
import { newestShown, type BenchConversation } from './seed.ts';
import { VIEW, type WebStage } from './stage.ts';

export type SideName = 'klatch' | 'bare' | 'lounge';

/** One of the compared pages; in one run the same work is done with each. Its conversations have numbers from 0. */
export interface Side {
  readonly name: SideName;
  /** The address that shows a conversation. */
  urlOf(conversation: number): string;
  /**
   * The page meets these conditions when the conversation is open at its newest messages, and a person can write. The
   * first two are the last message and the eighth from the end: The Lounge shows the last one before it has the others.
   */
  conditionsOf(conversation: number): readonly Condition[];
  /** The selector of the element that opens a conversation by a click. */
  linkTo(conversation: number): string;
  /** The selector of the field in which a person writes. */
  readonly field: string;
  /** Two selectors of texts of messages: of all messages on the screen, and of those that the server has confirmed. */
  readonly shown: string;
  readonly confirmed: string;
  /** A browser that is signed in, with nothing cached. */
  newProfile(): Promise<BrowserContext>;
  stop(): Promise<void>;
}

export function klatchSide(stage: WebStage, conversations: readonly BenchConversation[]): Side {
  return {
    name: 'klatch',
    urlOf: (n) => `${stage.server.url}/c/${conversations[n]!.id}`,
    conditionsOf: (n) => stage.conditionsOf(conversations[n]!),
    linkTo: (n) => `a[href$="/c/${conversations[n]!.id}"]`,
    field: 'textarea',
    shown: '.feed .text',
    confirmed: '.feed article .text',
    newProfile: () => stage.newProfile(),
    stop: () => Promise.resolve(),
  };
}

export async function bareSide(stage: WebStage, conversations: readonly BenchConversation[]): Promise<Side> {
  const { process: bare, first } = await BenchProcess.start('programs/bare-page.ts', [
    stage.server.url,
    stage.tokens[0]!,
  ]);
  const also = conversations.map(({ id }) => `also=${id}`).join('&');
  return {
    name: 'bare',
    urlOf: (n) => `http://127.0.0.1:${first}/${conversations[n]!.id}?${also}`,
    conditionsOf: (n) => [...newestShown('#rows p', conversations[n]!), { present: 'textarea' }],
    linkTo: (n) => `nav button[value="${conversations[n]!.id}"]`,
    field: 'textarea',
    shown: '#rows p',
    confirmed: '#rows p',
    newProfile: () => stage.browser.newProfile({ viewport: VIEW }),
    stop: () => bare.stop(),
  };
}

/** Runs `measure` for each side in each round; each round begins with another side. Returns the results by side. */
export async function inTurns<T>(
  sides: readonly Side[],
  rounds: number,
  measure: (side: Side, round: number) => Promise<T>,
): Promise<Map<SideName, T[]>> {
  const results = new Map<SideName, T[]>(sides.map(({ name }) => [name, []]));
  for (let round = 0; round < rounds; round += 1) {
    for (let n = 0; n < sides.length; n += 1) {
      const side = sides[(round + n) % sides.length]!;
      results.get(side.name)!.push(await measure(side, round));
    }
  }
  return results;
}

/** Runs `work` with a new page of a profile, and then closes the page. */
export async function withPage<T>(profile: BrowserContext, work: (page: Page) => Promise<T>): Promise<T> {
  const page = await profile.newPage();
  try {
    return await work(page);
  } finally {
    await page.close();
  }
}
