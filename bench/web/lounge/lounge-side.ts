import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { eventually } from '../../../test/support/eventually.ts';
import { percentile } from '../../support/report.ts';
import { startTyping } from '../flood.ts';
import { addProbe, startTimes, type Condition } from '../page-probe.ts';
import type { WebPlan } from '../plan.ts';
import { messageText, newestShown, type BenchConversation } from '../seed.ts';
import { lagsOf, type Shown } from '../series.ts';
import type { Side } from '../sides.ts';
import { VIEW, type SignedIn, type WebStage } from '../stage.ts';
import { within } from '../within.ts';
import { installLounge } from './install.ts';
import { IrcSender } from './irc-sender.ts';
import { IrcServer } from './irc-server.ts';
import { LoungeServer, PASSWORD, USER } from './lounge-server.ts';

const SENDER = 'sender';
const FLOOD_CHANNEL = '#flood';
const TEXTS = '.chat-view .msg .content';
const FIELD = '#input';
const START_S = 60;
/** The page must show the last message within this time. */
const LAST_S = 120;

/** The measurements of The Lounge under a flood. */
export interface LoungeFlood {
  readonly lagMs: number;
  readonly keyMs: number;
  readonly nodes: number;
}

/** The Lounge with as many channels as Klatch has conversations, and the same messages in them. */
export class LoungeSide implements Side {
  readonly name = 'lounge';
  readonly version: string;
  readonly field = FIELD;
  readonly shown = TEXTS;
  /** The Lounge shows a user's own message only when its server has it: so each message that is shown is confirmed. */
  readonly confirmed = TEXTS;
  readonly #stage: WebStage;
  readonly #conversations: readonly BenchConversation[];
  readonly #parts: Parts;
  #signedIn: SignedIn | null = null;
  /** The numbers that The Lounge gives to channels, by the names of the channels. */
  readonly #channelIds = new Map<string, string>();

  private constructor(stage: WebStage, conversations: readonly BenchConversation[], parts: Parts) {
    this.#stage = stage;
    this.#conversations = conversations;
    this.#parts = parts;
    this.version = parts.version;
  }

  /** Installs and starts The Lounge and the IRC server, fills the channels and signs in. */
  static async start(stage: WebStage, conversations: readonly BenchConversation[]): Promise<LoungeSide> {
    const side = new LoungeSide(stage, conversations, await startParts(conversations.map((_, n) => channelOf(n))));
    try {
      for (const [n, { title, messages }] of conversations.entries()) {
        const texts = Array.from({ length: messages }, (_, at) => textOf(title, at + 1));
        await side.#parts.sender.sayAll(channelOf(n), texts);
      }
      await side.#signIn();
      return side;
    } catch (error) {
      await side.stop();
      throw error;
    }
  }

  urlOf(conversation: number): string {
    return this.#urlOf(channelOf(conversation));
  }

  conditionsOf(conversation: number): readonly Condition[] {
    return [...newestShown(TEXTS, this.#conversations[conversation]!), { present: FIELD }];
  }

  linkTo(conversation: number): string {
    return `.channel-list-item[data-name="${channelOf(conversation)}"]`;
  }

  newProfile() {
    return this.#stage.browser.newProfile({
      viewport: VIEW,
      ...(this.#signedIn === null ? {} : { storageState: this.#signedIn }),
    });
  }

  /** Measures the flood that Klatch also gets. Null if the page did not show the last message within LAST_S. */
  async measureFlood({ flood }: WebPlan): Promise<LoungeFlood | null> {
    const page = await (await this.newProfile()).newPage();
    try {
      await addProbe(page, [{ present: FIELD }]);
      await page.goto(this.#urlOf(FLOOD_CHANNEL), { waitUntil: 'commit' });
      await within(START_S, 'the start of The Lounge', startTimes(page));
      await page.locator(FIELD).focus();
      await page.evaluate(`probe.recordLast({ list: '.chat-view .chat', item: '.msg .content', attribute: null })`);
      const typing = startTyping(page);
      const texts = Array.from({ length: flood.perSecond * flood.seconds }, (_, n) => textOf('flood', n + 1));
      const sentAt = await this.#parts.sender.sayOnSchedule(FLOOD_CHANNEL, texts, flood.perSecond);
      if (!(await showsLast(page, texts.at(-1)!))) return null;
      const { keys, nodes } = await typing.stop();
      const shown = await page.evaluate<Shown[]>('probe.stopLast()');
      const lags = lagsOf(
        sentAt.map((atMs, n) => ({ number: n + 1, atMs })),
        shown,
      );
      return { lagMs: percentile(lags, 0.99), keyMs: percentile(keys, 0.95), nodes };
    } finally {
      await page.context().close();
    }
  }

  async stop(): Promise<void> {
    const { sender, lounge, irc, folder } = this.#parts;
    sender.close();
    await lounge.stop();
    await irc.stop();
    await rm(folder, { recursive: true, force: true });
  }

  #urlOf(channel: string): string {
    return `${this.#parts.lounge.url}/#/chan-${this.#channelIds.get(channel)}`;
  }

  async #signIn(): Promise<void> {
    const profile = await this.#stage.browser.newProfile({ viewport: VIEW });
    try {
      const page = await profile.newPage();
      await page.goto(this.#parts.lounge.url);
      await page.locator('input[name="username"]').fill(USER);
      await page.locator('#signin-password').fill(PASSWORD);
      await page.locator('button[type="submit"]').click();
      await page.locator('.channel-list-item[data-type="channel"]').first().waitFor();
      for (const item of await page.locator('.channel-list-item[data-type="channel"]').all()) {
        const id = /chan-(\d+)/.exec((await item.getAttribute('aria-controls')) ?? '')?.[1];
        this.#channelIds.set((await item.getAttribute('data-name'))!, id!);
      }
      this.#signedIn = await profile.storageState();
    } finally {
      await profile.close();
    }
  }
}

interface Parts {
  readonly version: string;
  readonly folder: string;
  readonly irc: IrcServer;
  readonly lounge: LoungeServer;
  readonly sender: IrcSender;
}

async function startParts(ofConversations: readonly string[]): Promise<Parts> {
  const { script, version } = installLounge();
  const channels = [...ofConversations, FLOOD_CHANNEL];
  const folder = await mkdtemp(join(tmpdir(), 'klatch-lounge-'));
  const irc = await IrcServer.start(folder);
  const sender = await IrcSender.open(irc.port, SENDER);
  for (const channel of channels) sender.join(channel);
  const lounge = await LoungeServer.start({ script, folder, ircPort: irc.port, channels });
  await eventually(
    () => channels.every((channel) => sender.hasJoined(channel, USER)),
    (haveJoined) => haveJoined,
  );
  return { version, folder, irc, lounge, sender };
}

function channelOf(conversation: number): string {
  return `#bench-${conversation}`;
}

function textOf(title: string, n: number): string {
  return `${messageText(title, n)} load on web-1 is above its threshold.`;
}

async function showsLast(page: Page, text: string): Promise<boolean> {
  const shown = page.evaluate(`probe.painted([{ text: [${JSON.stringify(TEXTS)}, ${JSON.stringify(text)}] }])`);
  return within(LAST_S, 'the last message of The Lounge', shown).then(
    () => true,
    () => false,
  );
}
