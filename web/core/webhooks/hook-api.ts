import {
  arrayOf,
  boolean,
  integer,
  nullable,
  objectWithAtLeast,
  optional,
  recordOf,
  string,
  type Decoded,
} from '../../../client/core/decode.ts';
import type { OperationCaller } from '../people/operation-caller.ts';

export const ATTEMPTS_PER_PAGE = 50;
const MAX_LISTED_HOOKS = 100;

const healthFields = {
  state: string,
  pending: integer,
  oldest_pending_at: nullable(string),
  last_success_at: nullable(string),
  last_error: nullable(objectWithAtLeast({ at: string, category: nullable(string), code: nullable(integer) })),
  next_attempt_at: nullable(string),
} as const;

const identityFields = {
  id: integer,
  group: integer,
  group_title: string,
  url: string,
  host: string,
  description: nullable(string),
  order: string,
  format: string,
  events: arrayOf(string),
  removed: nullable(objectWithAtLeast({ at: string, by: string, restorable_until: nullable(string) })),
} as const;

const decodeListedHook = objectWithAtLeast({
  ...healthFields,
  ...identityFields,
  last_day: optional(arrayOf(objectWithAtLeast({ at: string, delivered: integer, failed: integer }))),
});
const decodeHookPage = objectWithAtLeast({ hooks: arrayOf(decodeListedHook), next: nullable(integer) });

const decodeAttempt = objectWithAtLeast({
  message_id: string,
  seq: integer,
  last_seq: integer,
  rev: optional(integer),
  last_rev: optional(integer),
  attempt: integer,
  at: string,
  outcome: string,
  category: nullable(string),
  code: nullable(integer),
  duration_ms: integer,
});
const decodeLogPage = objectWithAtLeast({ attempts: arrayOf(decodeAttempt), next: nullable(string) });

const decodeHook = objectWithAtLeast({
  ...healthFields,
  ...identityFields,
  batch: integer,
  signature: string,
  skip: arrayOf(string),
  old_secret_until: nullable(string),
  created_at: string,
  start_seq: integer,
  cursor: integer,
  last_seq: integer,
  failures: integer,
  failing_since: nullable(string),
});

const decodeStats = objectWithAtLeast({
  steps: arrayOf(
    objectWithAtLeast({
      at: string,
      delivered: integer,
      failed: integer,
      p50_ms: nullable(integer),
      p95_ms: nullable(integer),
    }),
  ),
});
const decodeCreated = objectWithAtLeast({ id: integer, secret: string });
const decodeUpdated = objectWithAtLeast({ id: integer });
const decodeRotated = objectWithAtLeast({ secret: string, token: optional(string) });
const decodePing = objectWithAtLeast({
  delivered: boolean,
  category: nullable(string),
  code: nullable(integer),
  duration_ms: integer,
});
const decodeExample = objectWithAtLeast({
  method: string,
  url: string,
  headers: recordOf(string),
  body: string,
});
const decodeRedelivery = objectWithAtLeast({ from: nullable(string), messages: integer, pending: integer });
const decodeSkipped = objectWithAtLeast({ skipped: integer });
const decodeChanged = objectWithAtLeast({ id: integer });

/** A reverse webhook in a list. */
export type ListedHook = Decoded<typeof decodeListedHook>;
/** A reverse webhook with all its fields except the secret. */
export type Hook = Decoded<typeof decodeHook>;
/** The requests to a hook in a period. */
export type HookStep = Decoded<typeof decodeStats>['steps'][number];
export type Attempt = Decoded<typeof decodeAttempt>;
type LogPage = Decoded<typeof decodeLogPage>;
type PingResult = Decoded<typeof decodePing>;
type RedeliveryAnswer = Decoded<typeof decodeRedelivery>;

/** A request as the receiver of a hook gets it. */
export type ExampleRequest = Decoded<typeof decodeExample>;

/** The rows of a delivery log to show. */
export interface LogFilter {
  readonly outcomes: readonly string[] | null;
  /** ISO 8601; null: from the beginning of the log. */
  readonly since: string | null;
  /** The id of a message, such as `7:42`; null: all messages. */
  readonly message: string | null;
}

/** The messages to send again: from a message id or a time on, or single ones by their ids. */
export type RedeliveryRequest = { readonly from: string } | { readonly only: readonly string[] };

/** The options of a hook that a person can set. */
export interface HookOptions {
  readonly description: string | null;
  readonly order: string;
  readonly batch: number;
  readonly signature: string;
  readonly events: readonly string[];
  readonly skip: readonly string[];
}

/** The period and the step of counts of requests. */
export interface StatsRange {
  readonly hours: number;
  readonly step: '5m' | '1h' | '1d';
}

/** The operations on reverse webhooks. They reject with ServerError and ConnectionError. */
export class HookApi {
  readonly #api: OperationCaller;

  constructor(api: OperationCaller) {
    this.#api = api;
  }

  /** The hooks of a group with their requests of the last 24 hours, at most 100. */
  async hooksOf(group: number): Promise<ListedHook[]> {
    const input = { group, limit: MAX_LISTED_HOOKS, requests: true };
    return (await this.#api.call('hooks.list', input, decodeHookPage)).hooks;
  }

  /** The hooks of a group that were removed less than some days ago. */
  async removedHooksOf(group: number): Promise<ListedHook[]> {
    const input = { group, limit: MAX_LISTED_HOOKS, state: 'removed' };
    return (await this.#api.call('hooks.list', input, decodeHookPage)).hooks;
  }

  /** A page of the hooks of all groups that the account owns or administers, after the hook `after`. */
  managedHooks(after: number): Promise<{ hooks: ListedHook[]; next: number | null }> {
    const input = { after, limit: MAX_LISTED_HOOKS, requests: true };
    return this.#api.call('hooks.list-managed', input, decodeHookPage);
  }

  hook(hook: number): Promise<Hook> {
    return this.#api.call('hooks.info', { hook }, decodeHook);
  }

  async steps(hook: number, range: StatsRange): Promise<HookStep[]> {
    return (await this.#api.call('hooks.stats', { hook, ...range }, decodeStats)).steps;
  }

  /** A page of the delivery log, newest first. `before`: `next` of the page before; null: the newest attempts. */
  log(hook: number, { outcomes, since, message }: LogFilter, before: string | null): Promise<LogPage> {
    const input = {
      hook,
      limit: ATTEMPTS_PER_PAGE,
      ...(outcomes === null ? {} : { outcome: outcomes }),
      ...(since === null ? {} : { since }),
      ...(message === null ? {} : { message }),
      ...(before === null ? {} : { before }),
    };
    return this.#api.call('hooks.log', input, decodeLogPage);
  }

  /** Resolves to the number of the new hook and its secret, which the server does not show again. */
  create(
    group: number,
    url: string,
    { description, ...options }: HookOptions,
  ): Promise<{ id: number; secret: string }> {
    const input = { group, url, ...options, ...(description === null ? {} : { description }) };
    return this.#api.call('hooks.create', input, decodeCreated);
  }

  async change(hook: number, options: HookOptions): Promise<void> {
    await this.#api.call('hooks.update', { hook, ...options }, decodeUpdated);
  }

  /** Pauses the hook, or resumes it: a failing hook is then tried at once. */
  async setPaused(hook: number, isPaused: boolean): Promise<void> {
    await this.#api.call('hooks.update', { hook, paused: isPaused }, decodeUpdated);
  }

  /**
   * Resolves to the new secret, or to the token that follows from it if requests carry one in the hook's format. The
   * server shows neither again.
   */
  async rotateSecret(hook: number): Promise<string> {
    const { secret, token } = await this.#api.call('hooks.update', { hook, rotate_secret: true }, decodeRotated);
    return token ?? secret;
  }

  ping(hook: number): Promise<PingResult> {
    return this.#api.call('hooks.ping', { hook }, decodePing);
  }

  /** The signed request that the receiver gets for an invented message; nothing is sent. */
  example(hook: number): Promise<ExampleRequest> {
    return this.#api.call('hooks.example', { hook }, decodeExample);
  }

  /** What `redeliver` would send now. */
  previewRedelivery(hook: number, request: RedeliveryRequest): Promise<RedeliveryAnswer> {
    return this.#api.call('hooks.redeliver', { hook, ...request, dry_run: true }, decodeRedelivery);
  }

  redeliver(hook: number, request: RedeliveryRequest): Promise<RedeliveryAnswer> {
    return this.#api.call('hooks.redeliver', { hook, ...request }, decodeRedelivery);
  }

  /** Resolves to the number of messages and events that the hook will not get. */
  async discardBacklog(hook: number): Promise<number> {
    return (await this.#api.call('hooks.discard-backlog', { hook }, decodeSkipped)).skipped;
  }

  async remove(hook: number): Promise<void> {
    await this.#api.call('hooks.remove', { hook }, decodeChanged);
  }

  async restore(hook: number): Promise<void> {
    await this.#api.call('hooks.restore', { hook }, decodeChanged);
  }
}
