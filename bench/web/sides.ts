import type { BrowserContext, Page } from 'playwright-core';
import { BenchProcess } from '../process.ts';
import type { Condition } from './page-probe.ts';
import type { BenchConversation } from './seed.ts';
import { VIEW, type WebStage } from './stage.ts';

export type SideName = 'klatch' | 'bare' | 'lounge';

/** A page that does the same as others do in the same run. Its conversations have numbers from 0. */
export interface Side {
  readonly name: SideName;
  /** The address that shows a conversation. */
  urlOf(conversation: number): string;
  /** What it shows when the conversation is open, with its newest message, and one can write. */
  conditionsOf(conversation: number): readonly Condition[];
  /** What opens a conversation by a click. */
  linkTo(conversation: number): string;
  /** Where one writes. */
  readonly field: string;
  /** Texts of messages: of any that is on screen, and of those that the server has confirmed. */
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
    conditionsOf: (n) => [{ text: ['#rows p', conversations[n]!.lastText] }, { present: 'textarea' }],
    linkTo: (n) => `nav button[value="${conversations[n]!.id}"]`,
    field: 'textarea',
    shown: '#rows p',
    confirmed: '#rows p',
    newProfile: () => stage.browser.newProfile({ viewport: VIEW }),
    stop: () => bare.stop(),
  };
}

/** By side, what `measure` resolved to in each round. Each round begins with another side. */
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

/** A page in a profile, gone when `work` is done. */
export async function withPage<T>(profile: BrowserContext, work: (page: Page) => Promise<T>): Promise<T> {
  const page = await profile.newPage();
  try {
    return await work(page);
  } finally {
    await page.close();
  }
}
