import { connect, type Socket } from 'node:net';

/** What a closed loop of posts saw. Times in ms. */
export interface LoadResult {
  /** Answers a second. */
  readonly rate: number;
  readonly p50: number;
  readonly p99: number;
  /** Answers that were not 200. */
  readonly failed: number;
}

export interface LoadPlan {
  readonly origin: string;
  readonly paths: readonly string[];
  readonly connections: number;
  readonly durationMs: number;
}

const HEAD_END = '\r\n\r\n';
/** Without an answer for this long the round is given up. */
const STALLED_MS = 30_000;

/**
 * Posts over a fixed number of connections, each sending its next request when it has its answer.
 *
 * Bare sockets and no HTTP library: this process shares the machine's cores with what it measures, and undici would take
 * as much of them as the server does (measured: 35 µs a request against 12).
 */
export async function runLoad(plan: LoadPlan): Promise<LoadResult> {
  const { hostname, port, host } = new URL(plan.origin);
  const latencies: number[] = [];
  let sent = 0;
  let failed = 0;
  const started = performance.now();
  const end = started + plan.durationMs;
  const connection = async (): Promise<void> => {
    const client = await HttpConnection.open(hostname, Number(port));
    while (performance.now() < end) {
      const n = sent++;
      const asked = performance.now();
      const status = await client.ask(postOf(host, plan.paths[n % plan.paths.length]!, n));
      if (status !== 200) failed += 1;
      latencies.push(performance.now() - asked);
    }
    client.close();
  };
  await Promise.all(Array.from({ length: plan.connections }, connection));
  const seconds = (performance.now() - started) / 1000;
  const sorted = Float64Array.from(latencies).sort();
  const at = (share: number): number => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
  return { rate: latencies.length / seconds, p50: at(0.5), p99: at(0.99), failed };
}

/** Posts so many messages to one URL over as many connections as told. Rejects when one is not answered 200. */
export async function postMessages(url: string, count: number, connections: number): Promise<void> {
  const { hostname, port, host, pathname } = new URL(url);
  let sent = 0;
  const connection = async (): Promise<void> => {
    const client = await HttpConnection.open(hostname, Number(port));
    while (sent < count) {
      const status = await client.ask(postOf(host, pathname, sent++));
      if (status !== 200) throw new Error(`a post was answered ${status}`);
    }
    client.close();
  };
  await Promise.all(Array.from({ length: connections }, connection));
}

/** A whole request with the nth message. */
function postOf(host: string, path: string, n: number): string {
  const body = `{"text":"message ${n}: load on web-${n % 7} is above its threshold"}`;
  const head = `POST ${path} HTTP/1.1\r\nHost: ${host}\r\nContent-Type: application/json\r\nContent-Length: `;
  return `${head}${body.length}${HEAD_END}${body}`;
}

/** One kept connection, one request at a time, ASCII only, answers with a Content-Length. */
class HttpConnection {
  readonly #socket: Socket;
  #received = '';
  #answered: PromiseWithResolvers<number> = Promise.withResolvers();

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.setEncoding('latin1');
    socket.setNoDelay(true);
    socket.setTimeout(STALLED_MS, () => socket.destroy(new Error('no answer from what is measured')));
    socket.on('data', (chunk: string) => this.#read(chunk));
    socket.on('error', (error) => this.#answered.reject(error));
    socket.on('close', () => this.#answered.reject(new Error('the connection was closed in a benchmark')));
  }

  static open(host: string, port: number): Promise<HttpConnection> {
    return new Promise((resolve, reject) => {
      const socket = connect({ host, port }, () => resolve(new HttpConnection(socket)));
      socket.once('error', reject);
    });
  }

  /** Sends a whole request; resolves with the status of its answer when its body has arrived. */
  ask(request: string): Promise<number> {
    this.#answered = Promise.withResolvers();
    this.#socket.write(request, 'latin1');
    return this.#answered.promise;
  }

  close(): void {
    this.#answered.promise.catch(() => {});
    this.#socket.destroy();
  }

  #read(chunk: string): void {
    this.#received += chunk;
    const head = this.#received.indexOf(HEAD_END);
    if (head === -1) return;
    const length = /\r\ncontent-length: (\d+)/i.exec(this.#received)?.[1];
    if (length === undefined) throw new Error('an answer without a Content-Length');
    if (this.#received.length < head + HEAD_END.length + Number(length)) return;
    const status = Number(this.#received.slice(9, 12));
    this.#received = '';
    this.#answered.resolve(status);
  }
}
