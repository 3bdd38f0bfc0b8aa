import { randomUUID } from 'node:crypto';
import { createRequire } from 'node:module';
import { setTimeout as wait } from 'node:timers/promises';
import { isIgnored } from '../../src/callers/core/message-form.ts';
import { renderText } from '../../src/callers/core/render-text.ts';
import { objectOf, type JsonObject } from '../../src/callers/core/values.ts';
import { github } from '../../src/callers/github.ts';
import { RepeatingCaller } from './repeating-caller.ts';

const examples = createRequire(import.meta.url)('@octokit/webhooks-examples') as readonly {
  readonly name: string;
  readonly examples: readonly JsonObject[];
}[];

/** Pause between two deliveries. */
const GAP_MS = 20;
/** One of this many deliveries is sent a second time after its 200, as a person can request on GitHub's page. */
const REDELIVERED_EACH = 10;

interface Event {
  readonly name: string;
  readonly body: JsonObject;
}

/**
 * The text of the message that shows the event. Null: the group shows no message, or shows an alert, whose message may
 * cover several events.
 */
function textOf({ name, body }: Event): string | null {
  const form = github.read({ body, headers: { 'x-github-event': name }, query: new URLSearchParams() });
  return isIgnored(form) || form.alert !== null ? null : renderText(form);
}

/** The event with the name of another repository, so that the texts of all events differ. */
const numbered = ({ name, body }: Event, n: number): Event => ({
  name,
  body: { ...body, repository: { ...objectOf(body['repository']), full_name: `analytical/engine-${n}` } },
});

const isTold = (event: Event): boolean => textOf(numbered(event, 0))?.includes('analytical/engine-0') === true;

const shownEvents = examples
  .flatMap(({ name, examples: bodies }): Event[] => bodies.map((body) => ({ name, body })))
  .filter(isTold);

/**
 * Posts one event of GitHub after the other. It repeats each with the same delivery id until the server answers 200.
 */
export class GithubReplay {
  /** The number of events that the server answered with 200. */
  delivered = 0;
  readonly #webhook: string;
  readonly #caller = new RepeatingCaller('GitHub');
  readonly #texts: string[] = [];
  #isStopped = false;
  #replay: Promise<void> = Promise.resolve();

  constructor(webhook: string) {
    this.#webhook = webhook;
  }

  start(): void {
    this.#replay = this.#run();
  }

  /** Resolves when the server has answered every started event with 200. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#replay;
  }

  async abort(): Promise<void> {
    this.#caller.abort();
    await this.stop();
  }

  /** The violations in words, for the texts that the group shows. Call it after `stop`. */
  violationsOf(shown: readonly string[]): string[] {
    const count = new Map<string, number>();
    for (const text of shown) count.set(text, (count.get(text) ?? 0) + 1);
    const missing = this.#texts.filter((text) => !count.has(text)).length;
    const repeated = [...count.values()].filter((times) => times > 1).length;
    const known = new Set(this.#texts);
    const strange = [...count.keys()].filter((text) => !known.has(text)).length;
    return [
      ...this.#caller.violations,
      ...(missing > 0 ? [`${missing} events of GitHub are not shown`] : []),
      ...(repeated > 0 ? [`${repeated} events of GitHub are shown more than once`] : []),
      ...(strange > 0 ? [`${strange} messages show what GitHub did not deliver`] : []),
    ];
  }

  async #run(): Promise<void> {
    // oxlint-disable-next-line no-unmodified-loop-condition -- `stop` does.
    for (let n = 0; !this.#isStopped; n += 1) {
      const event = numbered(shownEvents[n % shownEvents.length]!, n);
      const deliveryId = randomUUID();
      const isTaken = await this.#deliver(event, deliveryId);
      if (!isTaken || (n % REDELIVERED_EACH === 0 && !(await this.#deliver(event, deliveryId)))) return;
      this.delivered += 1;
      this.#texts.push(textOf(event)!);
      await wait(GAP_MS);
    }
  }

  #deliver({ name, body }: Event, deliveryId: string): Promise<boolean> {
    const headers = {
      'user-agent': 'GitHub-Hookshot/044aadd',
      'x-github-event': name,
      'x-github-delivery': deliveryId,
    };
    return this.#caller.post(this.#webhook, { body, headers });
  }
}
