import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, request, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { buffer } from 'node:stream/consumers';
import type { S3Config } from '../../src/config/services.ts';
import { refuseSignature, type Keys } from './s3-signature.ts';

const ROOT = resolve(import.meta.dirname, '../..');
export const BUCKET = 'klatch-files';
/** The keys for the bucket. s3rver knows the access key, and the gate in front of it checks the secret key. */
export const KEYS: Keys = { accessKey: 'S3RVER', secretKey: 'a secret key/for+tests', region: 'eu-test-1' };

const CHILD = `
const S3rver = require('s3rver');
const options = { address: '127.0.0.1', port: 0, silent: true, vhostBuckets: false, directory: process.argv[1],
  configureBuckets: [{ name: process.argv[2] }] };
new S3rver(options).run().then(({ port }) => console.log(port));
process.stdin.resume().on('end', () => process.exit(0));
`;

export interface SeenRequest {
  readonly method: string;
  /** The path and the query of the request. */
  readonly target: string;
  readonly headers: IncomingMessage['headers'];
  readonly bytes: number;
}

/** Handles a request in place of the gate. Undefined: the gate passes the request on. */
export type Interference = (seen: SeenRequest, response: ServerResponse) => 'taken' | undefined;

/**
 * The S3 store s3rver in a process of its own, behind a gate that verifies signatures. The gate adds missing features
 * (ending and listing uploads). For a test it can fail, be slow or be unreachable.
 */
export class S3Server {
  readonly #directory: string;
  readonly #child: ChildProcess;
  readonly #childPort: number;
  readonly #gate: Server;
  /** The multipart uploads in progress, by their ids. */
  readonly #uploads = new Map<string, { key: string; begunAt: Date }>();
  readonly seen: SeenRequest[] = [];
  interfere: Interference = () => undefined;
  nowMs: () => number = Date.now;

  private constructor(directory: string, child: ChildProcess, childPort: number) {
    this.#directory = directory;
    this.#child = child;
    this.#childPort = childPort;
    this.#gate = createServer((incoming, response) => void this.#handle(incoming, response));
  }

  static async start(): Promise<S3Server> {
    const directory = await mkdtemp(join(tmpdir(), 'klatch-s3-'));
    const child = spawn(process.execPath, ['-e', CHILD, directory, BUCKET], {
      cwd: ROOT,
      stdio: ['pipe', 'pipe', 'ignore'],
    });
    const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string];
    const server = new S3Server(directory, child, Number(line));
    server.#gate.listen(0, '127.0.0.1');
    await once(server.#gate, 'listening');
    return server;
  }

  config(changes: Partial<S3Config> = {}): S3Config {
    const { port } = this.#gate.address() as AddressInfo;
    return {
      bucket: BUCKET,
      accessKey: KEYS.accessKey,
      secretKey: KEYS.secretKey,
      s3Endpoint: `http://127.0.0.1:${port}`,
      region: KEYS.region,
      pathStyle: true,
      downloads: 'proxy',
      ...changes,
    };
  }

  get uploads(): number {
    return this.#uploads.size;
  }

  /** Adds an upload in progress, as if somebody had begun it and not recorded it. */
  leaveUpload(key: string, uploadId: string, begunAt = new Date()): void {
    this.#uploads.set(uploadId, { key, begunAt });
  }

  /** The requests, without signatures: "PUT /bucket/key". */
  get requests(): string[] {
    return this.seen.map(({ method, target }) => `${method} ${target}`);
  }

  async stop(): Promise<void> {
    this.#gate.closeAllConnections();
    this.#gate.close();
    const exited = once(this.#child, 'exit');
    this.#child.stdin!.end();
    await exited;
    await rm(this.#directory, { recursive: true, force: true });
  }

  async #handle(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = '', url: target = '', headers } = incoming;
    let body: Buffer;
    try {
      body = await buffer(incoming);
    } catch {
      // The client has disconnected.
      return;
    }
    const seen = { method, target, headers, bytes: body.length };
    this.seen.push(seen);
    if (this.interfere(seen, response) === 'taken') return;
    const refusal = refuseSignature({ method, target, headers, body }, KEYS, this.nowMs());
    if (refusal !== null) answerError(response, 403, refusal);
    else if (!this.#answerItself(seen, response)) this.#pass({ ...seen, target: inPathStyle(seen) }, body, response);
  }

  /** Answers the requests that s3rver does not support. */
  #answerItself({ method, target }: SeenRequest, response: ServerResponse): boolean {
    const url = new URL(target, 'http://unused');
    const uploadId = url.searchParams.get('uploadId');
    if (method === 'GET' && url.searchParams.has('uploads')) {
      this.#listUploads(url, response);
      return true;
    }
    if (uploadId !== null && !this.#uploads.has(uploadId)) {
      answerError(response, 404, 'NoSuchUpload');
      return true;
    }
    if (method !== 'DELETE' || uploadId === null) return false;
    this.#uploads.delete(uploadId);
    response.writeHead(204).end();
    return true;
  }

  #listUploads({ searchParams }: URL, response: ServerResponse): void {
    const prefix = searchParams.get('prefix') ?? '';
    const after = `${searchParams.get('key-marker') ?? ''} ${searchParams.get('upload-id-marker') ?? ''}`;
    const all = [...this.#uploads]
      .map(([uploadId, upload]) => ({ uploadId, ...upload }))
      .filter(({ key, uploadId }) => key.startsWith(prefix) && `${key} ${uploadId}` > after)
      .sort((a, b) => (`${a.key} ${a.uploadId}` < `${b.key} ${b.uploadId}` ? -1 : 1));
    // A page has two uploads, so that every listing needs several pages.
    const page = all.slice(0, 2);
    const isCut = page.length < all.length;
    const last = page.at(-1);
    const entries = page.map(
      ({ key, uploadId, begunAt }) =>
        `<Upload><Key>${key}</Key><UploadId>${uploadId}</UploadId><Initiated>${begunAt.toISOString()}</Initiated></Upload>`,
    );
    const next = isCut
      ? `<NextKeyMarker>${last!.key}</NextKeyMarker><NextUploadIdMarker>${last!.uploadId}</NextUploadIdMarker>`
      : '';
    response.setHeader('content-type', 'application/xml');
    response.end(
      `<?xml version="1.0"?><ListMultipartUploadsResult><IsTruncated>${isCut}</IsTruncated>${next}${entries.join('')}</ListMultipartUploadsResult>`,
    );
  }

  #pass({ method, target, headers }: SeenRequest, body: Buffer, response: ServerResponse): void {
    const outgoing = request(
      { host: '127.0.0.1', port: this.#childPort, method, path: target, headers },
      (answer) => void this.#answer({ method, target }, answer, response),
    );
    outgoing.on('error', () => response.destroy());
    outgoing.end(body);
  }

  async #answer(
    { method, target }: { method: string; target: string },
    answer: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const url = new URL(target, 'http://unused');
    const uploadId = url.searchParams.get('uploadId');
    const isBeginning = method === 'POST' && url.searchParams.has('uploads');
    response.writeHead(answer.statusCode!, answer.headers);
    if (!isBeginning) {
      if (method === 'POST' && uploadId !== null && answer.statusCode === 200) this.#uploads.delete(uploadId);
      answer.pipe(response);
      return;
    }
    const text = (await buffer(answer)).toString();
    const id = /<UploadId>([0-9a-f]+)</.exec(text)![1]!;
    this.#uploads.set(id, { key: url.pathname.split('/').slice(2).join('/'), begunAt: new Date() });
    response.end(text);
  }
}

/** The path of a request with the bucket in it, since s3rver does not support the bucket in the host name. */
function inPathStyle({ target, headers }: SeenRequest): string {
  return headers.host?.startsWith(`${BUCKET}.`) === true ? `/${BUCKET}${target}` : target;
}

export function answerError(response: ServerResponse, status: number, code: string): 'taken' {
  response.writeHead(status, { 'content-type': 'application/xml' });
  response.end(`<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>${code}</Code><Message>no</Message></Error>`);
  return 'taken';
}
