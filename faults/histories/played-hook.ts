import { setTimeout as wait } from 'node:timers/promises';
import { eventually } from '../../test/support/eventually.ts';
import { postJson, readJson, type JsonAnswer } from '../../test/support/server.ts';
import type { Behaviour, HookReceiver, HookTarget, LogicalClock } from './hook-receiver.ts';
import type { Action, EventType, HookAction, HookHistory, HookSettings, LogRow, MessageKey } from './history.ts';
import type { Installation } from './installation.ts';
import { ModelReceiver } from './model-receiver.ts';
import type { Random } from './random.ts';

const BOTH: readonly EventType[] = ['message.updated', 'message.deleted'];
const BEHAVIOURS: readonly (readonly [number, Behaviour])[] = [
  [4, 'accepting'],
  [2, 'failing'],
  [2, 'refusing'],
  [1, 'hanging up'],
  [2, 'slow'],
];
const PAGE_SIZES = [7, 100] as const;
const PATCH_REPEAT_MS = 200;
const MAX_PATCH_ATTEMPTS = 50;

export function randomSettings(random: Random): HookSettings {
  return {
    order: random.chance(0.6) ? 'strict' : 'none',
    batch: random.pick([1, 1, 1, 3, 10]),
    events: random.pick([[], BOTH, BOTH, BOTH, ['message.updated'], ['message.deleted']]),
    skip: random.chance(0.8) ? [] : random.pick([['bot'], ['webhook'], ['bot', 'webhook']]),
  };
}

/** Objects that all hooks of one group share. */
export interface HookContext {
  readonly installation: Installation;
  readonly receiver: HookReceiver;
  readonly clock: LogicalClock;
  readonly random: Random;
  readonly group: number;
  /** The path of the webhook URL of the group on the server. */
  readonly path: string;
  readonly actions: Action[];
}

/** Performs actions on one hook, and records each with the answer of the server. */
export class PlayedHook {
  readonly target: HookTarget;
  readonly #context: HookContext;
  readonly #receiver: ModelReceiver;
  #settings: HookSettings;

  private constructor(context: HookContext, target: HookTarget, settings: HookSettings) {
    this.#context = context;
    this.target = target;
    this.#receiver = target.receiver!;
    this.#settings = settings;
  }

  static async register(context: HookContext, target: HookTarget): Promise<PlayedHook> {
    const { installation, receiver, clock, random, path } = context;
    const settings = randomSettings(random);
    receiver.add(target);
    const asked = clock.next();
    const body = { url: receiver.urlOf(target), ...settings };
    const answer = await postJson(`${installation.server.url}${path}/reverse`, body);
    if (answer.status !== 201) throw new Error(`a hook could not be registered: ${answer.status}`);
    target.hook = answer.body.id;
    target.receiver = new ModelReceiver(answer.body.secret, settings.order);
    context.actions.push({ type: 'registered', asked, answered: clock.next(), hook: target.hook, settings });
    return new PlayedHook(context, target, settings);
  }

  get id(): number {
    return this.target.hook;
  }

  changeBehaviour(): void {
    this.target.behaviour = this.#context.random.weighted(BEHAVIOURS);
  }

  async pause(paused: boolean): Promise<void> {
    const asked = this.#context.clock.next();
    await this.#patch({ paused });
    this.#done(asked, { type: paused ? 'paused' : 'resumed' });
  }

  /** Changes a random part of the settings of the hook. */
  async change(): Promise<void> {
    const { random, clock } = this.#context;
    const { order, batch, events, skip } = randomSettings(random);
    const changes = Object.fromEntries(random.some(Object.entries({ order, batch, events, skip }), 0.4));
    const settings: HookSettings = { ...this.#settings, ...changes };
    // With `none`, requests may overtake others after the change. So the receiver identifies handled items by their ids
    // from here on.
    if (settings.order === 'none') this.#receiver.keepIds();
    const asked = clock.next();
    await this.#patchUntilConfirmed({ ...changes, order: settings.order });
    this.#settings = settings;
    this.#done(asked, { type: 'changed', settings });
  }

  async rotateSecret(): Promise<void> {
    const asked = this.#context.clock.next();
    const { secret } = await this.#patch({ rotate_secret: true });
    this.#receiver.addSecret(secret);
    this.#done(asked, { type: 'changed', settings: this.#settings });
  }

  async redeliverFrom(message: MessageKey): Promise<void> {
    const asked = this.#context.clock.next();
    const { status, body } = await this.#redeliver({ from: this.#messageId(message) });
    const from = status === 202 && body.from !== null ? messageKey(body.from) : null;
    this.#done(asked, { type: 'redelivered from', message, status, from });
  }

  async redeliverOnly(messages: readonly MessageKey[]): Promise<void> {
    const asked = this.#context.clock.next();
    const { status } = await this.#redeliver({ only: messages.map((message) => this.#messageId(message)) });
    this.#done(asked, { type: 'redelivered only', messages, status });
  }

  async discardBacklog(): Promise<void> {
    const asked = this.#context.clock.next();
    const { status, body } = await this.#redeliver({ discard_backlog: true });
    this.#done(asked, { type: 'discarded backlog', status, skipped: body.skipped });
  }

  /**
   * Lets the target answer 410 to the deliveries of what `post` posts. Resolves when the server has removed the hook.
   */
  async answerGoneUntilRemoved(post: () => Promise<void>): Promise<void> {
    this.target.behaviour = 'gone';
    await post();
    await eventually(
      async () => (await fetch(this.#url)).status,
      (status) => status === 410,
    );
    this.target.behaviour = 'accepting';
  }

  /** Restores the removed hook, as `klatch hook restore` does. */
  async bringBack(): Promise<void> {
    const asked = this.#context.clock.next();
    await this.#context.installation.server.operate('hooks.restore', { hook: this.id });
    this.#done(asked, { type: 'brought back' });
  }

  /**
   * Lets the target accept everything. Resolves with the record of the hook, when the hook has delivered everything.
   */
  async end(): Promise<HookHistory> {
    this.target.behaviour = 'accepting';
    await this.pause(false);
    const health = await eventually(
      async () => (await readJson(await fetch(this.#url))).body as { pending: number },
      ({ pending }) => pending === 0,
    );
    const log = await this.#readLog();
    this.#context.receiver.remove(this.target);
    const { messages, handled } = this.#receiver;
    return { hook: this.id, arrivals: this.target.arrivals, log, messages, handled, pending: health.pending };
  }

  async #readLog(): Promise<LogRow[]> {
    const rows: LogRow[] = [];
    for (let query: string | null = `?limit=${this.#context.random.pick(PAGE_SIZES)}`; query !== null;) {
      const { body, headers } = await readJson(await fetch(`${this.#url}/deliveries${query}`));
      rows.push(...(body as LogRow[]));
      query = /^<(.*)>; rel="next"$/.exec(headers.get('link') ?? '')?.[1] ?? null;
    }
    return rows;
  }

  get #url(): string {
    const { installation, path } = this.#context;
    return `${installation.server.url}${path}/reverse/${this.id}`;
  }

  async #patch(changes: object): Promise<{ secret: string }> {
    const { status, body } = await this.#sendPatch(changes);
    if (status !== 200) throw new Error(`the change of a hook was answered ${status}`);
    return body;
  }

  /**
   * Changes settings; repeats the request while the answer is 503, as documented: a busy lane may learn of a change
   * late.
   */
  async #patchUntilConfirmed(settings: object): Promise<void> {
    for (let attempt = 1; ; attempt += 1) {
      const { status } = await this.#sendPatch(settings);
      if (status === 200) return;
      if (status !== 503 || attempt === MAX_PATCH_ATTEMPTS)
        throw new Error(`the change of a hook was answered ${status}`);
      await wait(PATCH_REPEAT_MS);
    }
  }

  async #sendPatch(changes: object): Promise<JsonAnswer> {
    const headers = { 'content-type': 'application/json' };
    return readJson(await fetch(this.#url, { method: 'PATCH', headers, body: JSON.stringify(changes) }));
  }

  #redeliver(request: object): Promise<JsonAnswer> {
    return postJson(`${this.#url}/redeliver`, request);
  }

  #messageId(message: MessageKey): string {
    return `${this.#context.group}:${message}`;
  }

  #done(asked: number, action: DistributiveOmit<HookAction, 'asked' | 'answered' | 'hook'>): void {
    const { actions, clock } = this.#context;
    actions.push({ ...action, asked, answered: clock.next(), hook: this.id });
  }
}

type DistributiveOmit<T, Key extends PropertyKey> = T extends unknown ? Omit<T, Key> : never;

export const messageKey = (id: string): MessageKey => id.slice(id.indexOf(':') + 1);
