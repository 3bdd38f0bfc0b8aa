import type { Page } from 'playwright-core';
import { Random } from '../../faults/histories/random.ts';
import { eventually } from '../../test/support/eventually.ts';
import { round } from '../support/report.ts';
import { sendPicture } from './pictures.ts';
import type { WebPlan } from './plan.ts';
import type { Measures } from './rows.ts';
import type { BenchConversation } from './seed.ts';
import { VIEW, type WebStage } from './stage.ts';
import { within } from './within.ts';

const SEED = 2;
const MESSAGES = 3_000;
const PICTURES = 60;
/** The probe keeps watching for this many frames after an event has shown its effect. */
const FRAMES_AFTER = 12;
const STEP_S = 120;
/** The person who sends the new messages and pictures, while person 0 reads. */
const WRITER_INDEX = 1;
/** The view shows at least this many rows. */
const SCREEN_ROWS = 20;
const SIZES = [
  VIEW,
  { width: 1_000, height: 700 },
  { width: 700, height: 900 },
  { width: 1_600, height: 900 },
] as const;

const KINDS = [
  'edit above',
  'edit below',
  'delete above',
  'new message',
  'new picture',
  'load',
  'pictures',
  'resize',
] as const;
type AnchorEvent = (typeof KINDS)[number];

interface Watched {
  readonly drift: number;
  readonly frames: number;
}

/**
 * Plays events while a page shows the middle of a conversation. Measures by how many pixels each event moves the
 * message in view.
 */
export async function measureAnchorDrift(stage: WebStage, plan: WebPlan): Promise<Measures> {
  const conversation = await anchorConversation(stage);
  const page = await stage.openAtEnd(conversation);
  const events = new AnchorEvents(stage, page, conversation);
  const drifts = new Map<AnchorEvent, number[]>(KINDS.map((kind) => [kind, []]));
  try {
    for (let n = 0; n < plan.anchorEvents; n += 1) {
      const kind = KINDS[n % KINDS.length]!;
      const { drift } = await within(STEP_S, `event ${n} (${kind})`, events.play(kind));
      drifts.get(kind)!.push(drift);
    }
  } finally {
    await page.context().close();
  }
  for (const [kind, all] of drifts)
    console.log(`  anchor: ${all.length} × ${kind}: at most ${round(Math.max(0, ...all), 2)} px`);
  return { anchorDrift: { klatch: Math.max(0, ...[...drifts.values()].flat()) } };
}

/** Creates a conversation of texts. At its end, pictures of many sizes alternate with texts. */
async function anchorConversation(stage: WebStage): Promise<BenchConversation> {
  const conversation = await stage.conversation('Anchor', MESSAGES);
  const { id } = conversation;
  const sender = { url: stage.server.url, token: stage.tokens[WRITER_INDEX]!, conversation: id };
  for (let n = 0; n < PICTURES; n += 1) {
    const size = { width: 200 + ((n * 97) % 900), height: 100 + ((n * 61) % 700) };
    await sendPicture(sender, size, `picture ${n}`);
    await stage.call('messages.send', { conversation: id, text: textAfter(n) }, WRITER_INDEX);
  }
  const messages = MESSAGES + 2 * PICTURES;
  await stage.call('messages.mark-read', { conversation: id, seq: messages });
  return { ...conversation, messages, newestTexts: [textAfter(PICTURES - 1)] };
}

function textAfter(picture: number): string {
  return `text after picture ${picture}.`;
}

class AnchorEvents {
  readonly #stage: WebStage;
  readonly #page: Page;
  readonly #conversation: BenchConversation;
  readonly #random = new Random(SEED);
  readonly #deleted = new Set<number>();
  #lastSeq: number;
  #played = 0;

  constructor(stage: WebStage, page: Page, conversation: BenchConversation) {
    this.#stage = stage;
    this.#page = page;
    this.#conversation = conversation;
    this.#lastSeq = conversation.messages;
  }

  /** Plays one event while the probe watches the anchor, the first message in view. */
  async play(kind: AnchorEvent): Promise<Watched> {
    this.#played += 1;
    if (kind === 'load') return this.#scrollTo(this.#random.fraction() * 0.9);
    if (kind === 'pictures') return this.#scrollTo(this.#shareOfPictures());
    await this.#leaveEnd();
    return this.#watch(() => this.#act(kind));
  }

  #act(kind: AnchorEvent): Promise<void> {
    if (kind === 'resize') return this.#resize();
    if (kind === 'new message' || kind === 'new picture') return this.#send(kind === 'new picture');
    return this.#revise(kind);
  }

  async #watch(act: () => Promise<void>): Promise<Watched> {
    if (!(await this.#page.evaluate<boolean>('probe.watchAnchor()'))) throw new Error('no message is in view');
    await act();
    await this.#page.evaluate(`probe.frames(${FRAMES_AFTER})`);
    return this.#page.evaluate<Watched>('probe.stopAnchor()');
  }

  /** Scrolls as a person does, so that rows load. The probe watches as soon as a message is in view. */
  async #scrollTo(share: number): Promise<Watched> {
    await this.#page.evaluate(
      `{ const feed = document.querySelector('.feed'); feed.scrollTop = ${share} * (feed.scrollHeight - feed.clientHeight); }`,
    );
    await this.#page.evaluate('probe.frames(1)');
    await eventually(
      () => this.#page.evaluate<boolean>('probe.watchAnchor()'),
      (isWatching) => isWatching,
    );
    await this.#page.evaluate('probe.settled()');
    await this.#page.evaluate(`probe.frames(${FRAMES_AFTER})`);
    return this.#page.evaluate<Watched>('probe.stopAnchor()');
  }

  /** A random place among the pictures, above the end, as a share of the height of the list. */
  #shareOfPictures(): number {
    const seq = this.#conversation.messages - SCREEN_ROWS - this.#random.between(0, 2 * PICTURES - SCREEN_ROWS);
    return seq / this.#lastSeq;
  }

  /** Scrolls away from the end of the list, since a view at the end follows new messages, as it should. */
  async #leaveEnd(): Promise<void> {
    const isNearEnd = await this.#page.evaluate<boolean>(
      `(({ scrollHeight, scrollTop, clientHeight }) => scrollHeight - scrollTop < 2 * clientHeight)(document.querySelector('.feed'))`,
    );
    if (isNearEnd) await this.#scrollTo(this.#random.fraction() * 0.9);
  }

  /** Edits or deletes one of the messages whose rows are drawn. */
  async #revise(kind: AnchorEvent): Promise<void> {
    const { above, below } = await this.#page.evaluate<{ above: number[]; below: number[] }>('probe.drawnAround()');
    const seqs = (kind === 'edit below' ? below : [...above, ...below.slice(0, 1)]).filter(
      (seq) => !this.#deleted.has(seq),
    );
    const seq = this.#random.pick(seqs);
    const isDeletion = kind === 'delete above';
    const shown = isDeletion ? 'deleted' : `edit ${this.#played}`;
    if (isDeletion) this.#deleted.add(seq);
    if (isDeletion) await this.#reviseAsSender('messages.delete', { seq });
    else
      await this.#reviseAsSender('messages.edit', {
        seq,
        text: `${shown}. ${'Longer. '.repeat(this.#random.between(0, 60))}`,
      });
    await eventually(
      () => this.#page.evaluate<boolean>(`probe.showsAt(${seq}, ${JSON.stringify(shown)})`),
      (isShown) => isShown,
    );
  }

  /** Edits or deletes a message as its sender: no other person may. */
  async #reviseAsSender(operation: string, input: { seq: number; text?: string }): Promise<void> {
    const { id } = this.#conversation;
    const { messages } = await this.#stage.call<{ messages: { sender: { id: number } }[] }>('messages.history', {
      conversation: id,
      after: input.seq - 1,
      limit: 1,
    });
    const person = this.#stage.accounts.indexOf(messages[0]!.sender.id);
    await this.#stage.call(operation, { conversation: id, ...input }, person);
  }

  async #send(withPicture: boolean): Promise<void> {
    const { id } = this.#conversation;
    const text = `new ${this.#played}`;
    const before = await this.#listHeight();
    const sender = { url: this.#stage.server.url, token: this.#stage.tokens[WRITER_INDEX]!, conversation: id };
    if (withPicture) await sendPicture(sender, { width: 640, height: 360 }, text);
    else await this.#stage.call('messages.send', { conversation: id, text }, WRITER_INDEX);
    this.#lastSeq += 1;
    // The row of the new message is not drawn, so only the height of the list shows that the page has it.
    await eventually(
      () => this.#listHeight(),
      (now) => now > before,
    );
  }

  #listHeight(): Promise<number> {
    return this.#page.evaluate<number>(`document.querySelector('.feed').scrollHeight`);
  }

  async #resize(): Promise<void> {
    const now = this.#page.viewportSize()!;
    const others = SIZES.filter(({ width, height }) => width !== now.width || height !== now.height);
    await this.#page.setViewportSize(this.#random.pick(others));
  }
}
