import { once } from 'node:events';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import { WebSocketServer, type WebSocket } from 'ws';

/** The connection of one client to the fake server. */
export interface FakePeer {
  say(text: string): void;
  notify(method: string, params: unknown): void;
  cut(): void;
  /** The number of bytes that the client has not accepted yet. */
  unsent(): number;
}

interface Request {
  readonly id: number;
  readonly method: string;
  readonly params: any; // oxlint-disable-line typescript/no-explicit-any -- whatever the client sent
}

type Answer = { readonly result: unknown } | { readonly error: { message: string; data?: { code: string } } } | null;

/**
 * A minimal server of the protocol, over WebSocket or over lines on TCP. A test can let it omit, repeat and cut
 * messages as a real server never would. Its conversations are lists of changes by rev.
 */
export class FakeServer {
  readonly conversations = new Map<number, Map<number, object>>();
  readonly heads = new Map<number, number>();
  readonly requests: Request[] = [];
  /** The current epoch of the server's log, and the previous one. */
  #epoch = 0;
  #previousEpoch = 0;
  /** By conversation: the head before the first change in the current epoch. */
  #epochRevs = new Map<number, number>();
  readonly peers = new Set<FakePeer>();
  /** Replaces the answer to a request. Undefined: the usual answer; null: no answer. */
  override: (request: Request, peer: FakePeer) => Answer | undefined = () => undefined;
  /** The clients that have subscribed. */
  readonly #followers = new Set<FakePeer>();
  readonly #listener: WebSocketServer | Server;

  private constructor(kind: 'ws' | 'tcp') {
    if (kind === 'ws') {
      this.#listener = new WebSocketServer({ port: 0, host: '127.0.0.1' });
      this.#listener.on('connection', (socket: WebSocket) => this.#takeFrames(socket));
    } else {
      this.#listener = createServer((socket) => this.#takeLines(socket)).listen(0, '127.0.0.1');
    }
  }

  static async start(kind: 'ws' | 'tcp'): Promise<FakeServer> {
    const server = new FakeServer(kind);
    await once(server.#listener, 'listening');
    return server;
  }

  get url(): string {
    const { port } = this.#listener.address() as AddressInfo;
    return `${this.#listener instanceof WebSocketServer ? 'ws' : 'tcp'}://127.0.0.1:${port}`;
  }

  async stop(): Promise<void> {
    this.cut();
    await new Promise((resolve) => this.#listener.close(resolve));
  }

  /** Closes every connection without a close message. */
  cut(): void {
    for (const peer of this.peers) peer.cut();
  }

  /**
   * Stores a change, and sends it to subscribers unless it is `lost`. Removes the change with the rev that it
   * `replaces`.
   */
  change(conversation: number, options: { lost?: boolean; replaces?: number; length?: number } = {}): number {
    const rev = (this.heads.get(conversation) ?? 0) + 1;
    const changes = this.conversations.get(conversation) ?? new Map<number, object>();
    this.conversations.set(conversation, changes);
    this.heads.set(conversation, rev);
    if (options.replaces !== undefined) changes.delete(options.replaces);
    changes.set(rev, changeOf(conversation, rev, options.length));
    if (options.lost !== true) this.send(conversation, rev);
    return rev;
  }

  /** Loses the changes after these revs, and begins a new epoch, as a restore does. */
  restore(heads: ReadonlyMap<number, number>, epoch: number, previousEpoch = this.#epoch): void {
    for (const [conversation, head] of heads) {
      for (const rev of this.conversations.get(conversation)!.keys())
        if (rev > head) this.conversations.get(conversation)!.delete(rev);
      this.heads.set(conversation, head);
    }
    this.#epochRevs = new Map(this.heads);
    this.#previousEpoch = previousEpoch;
    this.#epoch = epoch;
  }

  /** Sends a stored change to all subscribed clients. */
  send(conversation: number, rev: number): void {
    const change = this.conversations.get(conversation)!.get(rev)!;
    for (const peer of this.#followers) peer.notify('conversation.change', { conversation, ...change });
  }

  #takeFrames(socket: WebSocket): void {
    const peer = this.#peer({
      say: (text) => socket.send(text),
      cut: () => socket.terminate(),
      unsent: () => socket.bufferedAmount,
    });
    socket.on('message', (data) => this.#answer(peer, (data as Buffer).toString('utf8')));
    socket.once('close', () => this.#forget(peer));
  }

  #takeLines(socket: Socket): void {
    const peer = this.#peer({
      say: (text) => socket.write(`${text}\n`),
      cut: () => socket.destroy(),
      unsent: () => socket.writableLength,
    });
    const lines = createInterface({ input: socket });
    lines.on('line', (line) => this.#answer(peer, line));
    // The readline interface emits the errors of its socket, too.
    lines.on('error', () => socket.destroy());
    socket.on('error', () => socket.destroy());
    socket.once('close', () => this.#forget(peer));
  }

  #peer(way: Pick<FakePeer, 'say' | 'cut' | 'unsent'>): FakePeer {
    const notify = (method: string, params: unknown): void =>
      way.say(JSON.stringify({ jsonrpc: '2.0', method, params }));
    const peer = { ...way, notify };
    this.peers.add(peer);
    return peer;
  }

  #forget(peer: FakePeer): void {
    this.peers.delete(peer);
    this.#followers.delete(peer);
  }

  #answer(peer: FakePeer, text: string): void {
    const request = JSON.parse(text) as Request;
    this.requests.push(request);
    const answer = this.override(request, peer);
    if (answer === null) return;
    if (answer !== undefined) return peer.say(JSON.stringify({ jsonrpc: '2.0', id: request.id, ...answer }));
    peer.say(JSON.stringify({ jsonrpc: '2.0', id: request.id, result: this.#result(request) }));
    if (request.method === 'live.subscribe') this.#follow(peer, request.params as { since: Record<string, number> });
  }

  #result({ method, params }: Request): unknown {
    if (method === 'live.authenticate') return { account: { id: 5, nick: 'alice', name: 'Alice' }, session: 1 };
    if (method === 'live.subscribe') {
      const begin = (id: number, head: number): number => params.since[id] ?? (params.default === 'start' ? 0 : head);
      const conversations = [...this.heads].map(([id, head]) => ({
        id,
        rev: Math.min(begin(id, head), head),
        ...(this.#epoch === 0 ? {} : { epoch_rev: this.#epochRevs.get(id) ?? 0 }),
      }));
      return { conversations, complete: true, ...this.#epochs };
    }
    if (method === 'conversations.sync') {
      const {
        conversation,
        after_rev: after,
        limit,
      } = params as { conversation: number; after_rev: number; limit: number };
      const behind = [...this.conversations.get(conversation)!].filter(([rev]) => rev > after).slice(0, limit);
      const head = this.heads.get(conversation)!;
      const more = behind.length === limit && behind.at(-1)![0] < head;
      return {
        changes: behind.map(([, change]) => change),
        rev: more ? behind.at(-1)![0] : head,
        more,
        ...this.#epochs,
      };
    }
    return {};
  }

  get #epochs(): object {
    return this.#epoch === 0 ? {} : { epoch: this.#epoch, previous_epoch: this.#previousEpoch };
  }

  #follow(peer: FakePeer, { since }: { since: Record<string, number> }): void {
    this.#followers.add(peer);
    for (const [conversation, changes] of this.conversations) {
      const after = since[conversation] ?? this.heads.get(conversation)!;
      for (const [rev, change] of changes)
        if (rev > after) peer.notify('conversation.change', { conversation, ...change });
    }
  }
}

function changeOf(conversation: number, rev: number, length = 0): object {
  const sender = { id: 6, name: 'Bob', nick: 'bob', kind: 'user' };
  const message = {
    id: `${conversation}:${rev}`,
    seq: rev,
    rev,
    sender,
    text: `change ${rev}`.padEnd(length),
    sent_at: '2026-11-20T08:00:00.000Z',
  };
  return { rev, message };
}
