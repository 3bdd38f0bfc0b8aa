import { eventually } from '../../support/eventually.ts';
import { Receiver } from '../../support/receiver.ts';
import type { Host } from './host.ts';

/** The base URI of a server with the default settings. */
export const BASE_URI = 'http://127.0.0.1:9090';
/** The beginning of every `klatch setup` command here. */
export const SETUP = `klatch setup --base-uri ${BASE_URI} --allow loopback`;

/** A group of the server with a reverse webhook, whose receiver runs in the test. */
export class Conversation {
  readonly receiver: Receiver;
  /** The group's webhook URL, which contains the integration token. */
  readonly webhook: string;
  readonly hookId: number;
  #posted = 0;

  private constructor(receiver: Receiver, webhook: string, hookId: number) {
    this.receiver = receiver;
    this.webhook = webhook;
    this.hookId = hookId;
  }

  static async open(host: Host, title = 'Trials'): Promise<Conversation> {
    const { webhook } = JSON.parse(await host.machine.must(`klatch group create ${title} --json`)) as {
      webhook: string;
    };
    const receiver = await Receiver.start();
    const answer = await post(`${webhook}/reverse`, { url: receiver.url() });
    if (answer.status !== 201) throw new Error(`the hook was answered ${answer.status}: ${await answer.text()}`);
    const { id } = (await answer.json()) as { id: number };
    return new Conversation(receiver, webhook, id);
  }

  /** Posts the next message. Resolves when the receiver has got it. */
  async say(): Promise<void> {
    this.#posted += 1;
    const text = `message ${this.#posted}`;
    const answer = await post(this.webhook, { text });
    if (answer.status !== 200) throw new Error(`the post was answered ${answer.status}: ${await answer.text()}`);
    await this.heard(text);
  }

  /** Resolves when the receiver has got a message with this text. */
  async heard(text: string): Promise<void> {
    await eventually(
      async () => this.texts().includes(text),
      (isThere) => isThere,
    );
  }

  /** The texts that the receiver got, each once, in the order of first arrivals. */
  texts(): string[] {
    return [...new Set(this.receiver.arrivals.map(({ body }) => body.data.message.text as string))];
  }

  /** The state of the hook, as its owner sees it. */
  async hook(): Promise<{ status: string; state: string; pending: number }> {
    const answer = await fetch(`${this.webhook}/reverse/${this.hookId}`);
    return (await answer.json()) as { status: string; state: string; pending: number };
  }

  stop(): Promise<void> {
    return this.receiver.stop();
  }
}

export function post(url: string, body: object, headers: Readonly<Record<string, string>> = {}): Promise<Response> {
  return fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(10_000),
  });
}
