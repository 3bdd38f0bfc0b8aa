import { connect, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import { setTimeout as wait } from 'node:timers/promises';
import { wallMs } from '../../support/clock.ts';

/**
 * The sender sends this many lines and then pauses for BURST_MS, since an IRC server buffers 32 KiB for each reader.
 */
const BURST = 20;
const BURST_MS = 20;

/** A user of an IRC server who joins channels and writes. */
export class IrcSender {
  readonly #socket: Socket;
  /** By channel, in lower case: the nicks of users who joined it after this one. */
  readonly #joined = new Map<string, Set<string>>();

  private constructor(socket: Socket) {
    this.#socket = socket;
  }

  static async open(port: number, nick: string): Promise<IrcSender> {
    const socket = connect({ host: '127.0.0.1', port });
    socket.setNoDelay(true);
    socket.on('error', () => socket.destroy());
    const sender = new IrcSender(socket);
    const welcomed = Promise.withResolvers<void>();
    socket.once('close', () => welcomed.reject(new Error('the IRC server closed a connection')));
    welcomed.promise.catch(() => {});
    createInterface({ input: socket }).on('line', (line) => sender.#onLine(line, welcomed.resolve));
    socket.write(`NICK ${nick}\r\nUSER ${nick} 0 * :${nick}\r\n`);
    await welcomed.promise;
    return sender;
  }

  join(channel: string): void {
    this.#socket.write(`JOIN ${channel}\r\n`);
  }

  hasJoined(channel: string, nick: string): boolean {
    return this.#joined.get(channel.toLowerCase())?.has(nick) ?? false;
  }

  /** Sends texts as quickly as the server can pass them on. */
  async sayAll(channel: string, texts: readonly string[]): Promise<void> {
    for (let from = 0; from < texts.length; from += BURST) {
      for (const text of texts.slice(from, from + BURST)) this.#say(channel, text);
      await wait(BURST_MS);
    }
  }

  /** Sends texts at a fixed rate; resolves to the Unix time in ms at which each was sent. */
  async sayOnSchedule(channel: string, texts: readonly string[], perSecond: number): Promise<number[]> {
    const sentAt: number[] = [];
    const startedMs = wallMs();
    while (sentAt.length < texts.length) {
      const due = Math.min(texts.length, Math.ceil(((wallMs() - startedMs) * perSecond) / 1_000));
      while (sentAt.length < due) {
        this.#say(channel, texts[sentAt.length]!);
        sentAt.push(wallMs());
      }
      await wait(1);
    }
    return sentAt;
  }

  close(): void {
    this.#socket.destroy();
  }

  #say(channel: string, text: string): void {
    this.#socket.write(`PRIVMSG ${channel} :${text}\r\n`);
  }

  #onLine(line: string, welcome: () => void): void {
    if (line.startsWith('PING')) this.#socket.write(`PONG${line.slice(4)}\r\n`);
    const [prefix = '', command, target = ''] = line.split(' ');
    if (command === '001') welcome();
    if (command !== 'JOIN') return;
    const channel = target.replace(/^:/, '').toLowerCase();
    const nicks = this.#joined.get(channel) ?? new Set();
    this.#joined.set(channel, nicks.add(prefix.slice(1).split('!')[0]!));
  }
}
