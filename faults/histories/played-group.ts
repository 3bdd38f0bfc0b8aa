import { setTimeout as wait } from 'node:timers/promises';
import { callAs } from '../../test/support/call.ts';
import { postJson } from '../../test/support/server.ts';
import { undoneAt } from './expected-items.ts';
import {
  epochSuffix,
  isLogged,
  seqOf,
  type Action,
  type EventType,
  type History,
  type MessageKey,
  type MessageState,
  type Moment,
  type SenderKind,
} from './history.ts';
import { HookTarget, type HookReceiver, type LogicalClock } from './hook-receiver.ts';
import type { Author, Installation } from './installation.ts';
import { messageKey, PlayedHook, type HookContext } from './played-hook.ts';
import { Random } from './random.ts';

const MAX_PAUSE_MS = 30;
const MAX_ONLY = 4;
const MAX_POSTS_UNTIL_END = 10;
const MAX_SEED = 1_000_000;
/** The kinds of senders. A kind that is listed more often posts more often. */
const SENDERS: readonly SenderKind[] = ['user', 'user', 'user', 'bot', 'webhook'];
/** One removal raises the first seq of the group by at most this. */
const MAX_REMOVED = 5;

/** Objects that all groups of a round share. */
export interface RoundContext {
  readonly installation: Installation;
  readonly receiver: HookReceiver;
  readonly clock: LogicalClock;
  readonly authors: { readonly user: Author; readonly bot: Author };
}

/** A message that the group posts; `asked` is the moment of its request. */
interface Post {
  readonly text: string;
  readonly by: SenderKind;
  readonly asked: Moment;
}

interface OwnMessage {
  readonly key: MessageKey;
  readonly by: SenderKind;
}

/** Performs random actions on one group, and records them. */
export class PlayedGroup {
  readonly id: number;
  readonly actions: Action[] = [];
  readonly hooks: PlayedHook[] = [];
  readonly #round: RoundContext;
  readonly #random: Random;
  readonly #context: HookContext;
  /** The messages that the database stores, deleted ones included. */
  #messages: OwnMessage[] = [];
  /** The messages of the person or the bot that are not deleted. */
  #editable: OwnMessage[] = [];
  #firstSeq = 1;
  #epoch = 0;
  #texts = 0;
  /** The messages that the last redelivery with `only` requested. */
  #lastOnly: readonly MessageKey[] = [];
  #unanswered: Post | null = null;

  private constructor(round: RoundContext, random: Random, group: { readonly id: number; readonly token: string }) {
    this.id = group.id;
    this.#round = round;
    this.#random = random;
    const path = `/v1/webhooks/${group.token}`;
    this.#context = { ...round, random, group: group.id, path, actions: this.actions };
  }

  static async create(round: RoundContext, random: Random): Promise<PlayedGroup> {
    const { server } = round.installation;
    const group = await server.createGroup('History');
    for (const { nick } of [round.authors.user, round.authors.bot]) {
      await server.operate('groups.add-member', { group: group.id, user: nick, role: 'member' });
    }
    const played = new PlayedGroup(round, random, group);
    await played.readEpoch();
    // No hook is registered yet: hooks must not get these posts.
    for (let n = random.between(0, 3); n > 0; n -= 1) await played.#post();
    await played.#register();
    if (random.chance(0.4)) {
      for (let n = random.between(0, 3); n > 0; n -= 1) await played.#post();
      await played.#register();
    }
    return played;
  }

  /** Reads the log epoch with which the server stamps new changes. */
  async readEpoch(): Promise<void> {
    this.#epoch = await this.#round.installation.logEpoch();
  }

  /**
   * Performs this many random actions. `isUndone`: a restore will undo them, so none of them changes settings of hooks
   * or removes anything.
   */
  async play(steps: number, isUndone: boolean): Promise<void> {
    for (let n = 0; n < steps; n += 1) await this.#step(isUndone);
  }

  /**
   * Posts until a post gets no answer, because the server has ended. `findUnansweredPost` then finds out whether it was
   * stored.
   */
  async postUntilEnd(): Promise<void> {
    for (let n = 0; n < MAX_POSTS_UNTIL_END; n += 1) {
      const post = this.#newPost();
      const id = await this.#send(post).catch(() => null);
      if (id === null) {
        this.#unanswered = post;
        return;
      }
      await this.#recordPost(post, messageKey(id));
    }
  }

  /**
   * Records the post that got no answer, if the database contains it: only the database shows whether the server stored
   * it.
   */
  async findUnansweredPost(): Promise<void> {
    const post = this.#unanswered;
    this.#unanswered = null;
    if (post === null) return;
    const [row] = await this.#round.installation.query(
      (sql) => sql<{ seq: number; epoch: number }[]>`
        select seq, epoch from message where conversation_id = ${this.id} and text = ${post.text}`,
    );
    if (row !== undefined) await this.#recordPost(post, `${row.seq}${epochSuffix(row.epoch)}`);
  }

  /** Saves the current state; the returned function goes back to it after the backup of that time was restored. */
  remember(): () => void {
    const [messages, editable, firstSeq] = [[...this.#messages], [...this.#editable], this.#firstSeq];
    return () => {
      this.#messages = [...messages];
      this.#editable = [...editable];
      this.#lastOnly = [];
      this.#firstSeq = firstSeq;
    };
  }

  async end(): Promise<History> {
    const hooks = [];
    for (const hook of this.hooks) hooks.push(await hook.end());
    const { installation } = this.#round;
    const notices = await installation.query(
      (sql) => sql<{ kind: string }[]>`select kind from notice where conversation_id = ${this.id}`,
    );
    const messages = await this.#readMessages();
    return { group: this.id, actions: this.actions, hooks, messages, notices: notices.map(({ kind }) => kind) };
  }

  #step(isUndone: boolean): Promise<void> | void {
    const random = this.#random;
    const hook = random.pick(this.hooks);
    const lasting = isUndone ? 0 : 1;
    const ifThere = this.#messages.length > 0 ? 1 : 0;
    const step = random.weighted<() => Promise<void> | void>([
      [40, () => this.#post()],
      [16, () => this.#edit()],
      [6, () => this.#delete()],
      [8, () => wait(random.between(0, MAX_PAUSE_MS))],
      [10, () => hook.changeBehaviour()],
      [4, () => hook.pause(true)],
      [5, () => hook.pause(false)],
      [3 * ifThere, () => hook.redeliverFrom(random.pick(this.#messages).key)],
      [3 * ifThere, () => this.#redeliverOnly(hook)],
      [1, () => hook.discardBacklog()],
      [3 * lasting, () => hook.change()],
      [1 * lasting, () => hook.rotateSecret()],
      [1 * lasting, () => this.#removeAndBringBack(hook)],
      [1 * lasting, () => this.#removeMessages()],
      [1 * lasting, () => this.#expireEvents()],
    ]);
    return step();
  }

  async #register(): Promise<void> {
    // The target has its own random generator: the next action of the group must not depend on the number of requests
    // that arrive.
    const random = new Random(this.#random.between(1, MAX_SEED));
    const target = new HookTarget(`/${this.id}/${this.hooks.length}`, random);
    this.hooks.push(await PlayedHook.register(this.#context, target));
  }

  async #post(by?: SenderKind): Promise<void> {
    const post = this.#newPost(by);
    await this.#recordPost(post, messageKey(await this.#send(post)));
  }

  #newPost(by = this.#random.pick(SENDERS)): Post {
    return { text: this.#newText(), by, asked: this.#round.clock.next() };
  }

  async #recordPost({ text, by, asked }: Post, key: MessageKey): Promise<void> {
    const answered = this.#round.clock.next();
    const seq = seqOf(key);
    const [row] = await this.#round.installation.query(
      (sql) => sql<{ rev: number }[]>`
        select rev from message where conversation_id = ${this.id} and seq = ${seq.number}`,
    );
    const rev = { number: row!.rev, epoch: seq.epoch };
    this.actions.push({ type: 'posted', asked, answered, message: key, seq: seq.number, rev, text, by });
    this.#messages.push({ key, by });
    if (by !== 'webhook') this.#editable.push({ key, by });
  }

  /** Posts the message. Resolves with its id. */
  async #send({ by, text }: Post): Promise<string> {
    if (by !== 'webhook') return (await this.#callAs(by, 'messages.send', { conversation: this.id, text })).id;
    const answer = await postJson(`${this.#round.installation.server.url}${this.#context.path}`, { text });
    if (answer.status !== 200) throw new Error(`a post was answered ${answer.status}`);
    return answer.body.id;
  }

  async #edit(): Promise<void> {
    if (this.#editable.length === 0) return;
    const message = this.#random.pick(this.#editable);
    await this.#change(message, 'message.updated', this.#newText());
  }

  async #delete(): Promise<void> {
    if (this.#editable.length === 0) return;
    const message = this.#random.pick(this.#editable);
    this.#editable = this.#editable.filter((each) => each !== message);
    await this.#change(message, 'message.deleted', '');
  }

  async #change({ key, by }: OwnMessage, type: EventType, text: string): Promise<void> {
    const input = { conversation: this.id, seq: seqOf(key).number };
    const asked = this.#round.clock.next();
    const { rev: number } =
      type === 'message.updated'
        ? await this.#callAs(by, 'messages.edit', { ...input, text })
        : await this.#callAs(by, 'messages.delete', input);
    const rev = { number, epoch: this.#epoch };
    this.actions.push({ type, asked, answered: this.#round.clock.next(), message: key, rev, text, by });
  }

  #callAs(by: SenderKind, operation: string, input: object): Promise<{ id: string; rev: number }> {
    const { installation, authors } = this.#round;
    return callAs(installation.server, by === 'bot' ? authors.bot : authors.user, operation, input);
  }

  /**
   * Requests a redelivery of some messages, in 3 of 10 cases of the same ones as the last time, whose delivery may
   * still be running.
   */
  #redeliverOnly(hook: PlayedHook): Promise<void> {
    const isRepeated = this.#lastOnly.length > 0 && this.#random.chance(0.3);
    this.#lastOnly = isRepeated ? this.#lastOnly : this.#someMessages();
    return hook.redeliverOnly(this.#lastOnly);
  }

  #someMessages(): MessageKey[] {
    const count = this.#random.between(1, MAX_ONLY);
    const keys = Array.from({ length: count }, () => this.#random.pick(this.#messages).key);
    return [...new Set(keys)];
  }

  async #removeAndBringBack(hook: PlayedHook): Promise<void> {
    await hook.pause(false);
    await hook.answerGoneUntilRemoved(() => this.#post('user'));
    for (let n = this.#random.between(0, 3); n > 0; n -= 1)
      await (this.#random.chance(0.5) ? this.#post() : this.#edit());
    await hook.bringBack();
  }

  async #removeMessages(): Promise<void> {
    const last = this.#messages.at(-1);
    if (last === undefined) return;
    const firstSeq = Math.min(seqOf(last.key).number, this.#firstSeq + this.#random.between(1, MAX_REMOVED));
    if (firstSeq <= this.#firstSeq) return;
    const asked = this.#round.clock.next();
    await this.#round.installation.removeMessagesBefore(this.id, firstSeq);
    this.actions.push({ type: 'messages removed', asked, answered: this.#round.clock.next(), firstSeq });
    this.#firstSeq = firstSeq;
    this.#lastOnly = [];
    this.#editable = this.#editable.filter(({ key }) => seqOf(key).number >= firstSeq);
  }

  async #expireEvents(): Promise<void> {
    const asked = this.#round.clock.next();
    const lastRev = await this.#round.installation.expireEvents(this.id);
    this.actions.push({ type: 'events expired', asked, answered: this.#round.clock.next(), lastRev });
  }

  async #readMessages(): Promise<Map<MessageKey, MessageState>> {
    const rows = await this.#round.installation.query(
      (sql) => sql<{ seq: number; epoch: number; rev: number; text: string; deleted: boolean }[]>`
        select seq, epoch, rev,
          case when deleted_at is null then text else '' end as text, deleted_at is not null as deleted
        from message where conversation_id = ${this.id} order by seq`,
    );
    return new Map(
      rows.map(({ seq, epoch, rev, text, deleted }) => {
        const key = `${seq}${epochSuffix(epoch)}`;
        const change = this.actions.findLast(
          (action) => isLogged(action) && action.message === key && undoneAt(action, this.actions) === null,
        );
        if (change === undefined || !isLogged(change) || change.rev.number !== rev) {
          throw new Error(`message ${this.id}:${key} has rev ${rev}, which no answer named`);
        }
        return [key, { rev: change.rev, text, deleted }];
      }),
    );
  }

  #newText(): string {
    this.#texts += 1;
    return `text ${this.#texts}`;
  }
}
