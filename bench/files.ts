import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdir, rm } from 'node:fs/promises';
import { request, type ClientRequest, type IncomingMessage } from 'node:http';
import { once } from 'node:events';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { ServerProcess } from '../test/support/server-process.ts';
import { cpuSeconds } from './support/cpu.ts';
import { createUsers } from './seed-users.ts';
import { BenchProcess } from './process.ts';
import { median, report, round } from './support/report.ts';

const settle = promisify(execFile);

const MIB = 1024 * 1024;
const FILE_MIB = Number(process.env['MIB'] ?? 1024);
const ROUNDS = 5;
const TARGET = 0.7;
/**
 * Uploads and downloads may raise the server's peak of memory after the warm-up by at most this much. Memory must not
 * grow with the size of a file.
 */
const MAX_GROWTH_MIB = 64;
const CHUNK = Buffer.alloc(MIB, 'klatch');

const SETTINGS = `
  limits { file-size = 2 GiB, storage-per-user = 100 GiB, storage-total = 100 GiB }
  log.level = warn`;

interface Measured {
  /** The transfer rate, in MiB a second. */
  readonly rate: number;
  /** CPU seconds of the serving process for a GiB. They do not change when the disk is busy with other work. */
  readonly cpu: number;
}

interface Round {
  readonly up: Measured;
  readonly bareUp: Measured;
  readonly safeUp: Measured;
  readonly down: Measured;
  readonly bareDown: Measured;
}

/** Measures a large upload and download, compared with a bare Node server that streams to and from a file. */
export async function benchFiles(): Promise<boolean> {
  const server = await ServerProcess.create(SETTINGS);
  const stops: (() => Promise<void>)[] = [() => server.remove()];
  try {
    await server.start();
    const { id: group } = await server.createGroup('Files');
    const [token] = await createUsers(server, group, 1);
    const folder = join(server.dataDir, 'bare');
    await mkdir(folder);
    const bare = await BenchProcess.start('programs/bare-files.ts', [folder]);
    stops.unshift(() => bare.process.stop());
    const bareUrl = `http://127.0.0.1:${bare.first}`;
    const klatch = new KlatchFiles(server.url, token!);
    const stage = { klatch, bareUrl, folder, pids: { server: server.pid, bare: bare.process.pid } };
    // The warm-up: V8 compiles the code, and the store makes its folders.
    await oneRound(stage, 64 * MIB);
    const before = peakMiB(server.pid);
    const rounds: Round[] = [];
    for (let n = 0; n < ROUNDS; n += 1) {
      rounds.push(await oneRound(stage, FILE_MIB * MIB));
    }
    return print(rounds, before, peakMiB(server.pid));
  } finally {
    for (const stop of stops) await stop();
  }
}

interface Stage {
  readonly klatch: KlatchFiles;
  readonly bareUrl: string;
  readonly folder: string;
  readonly pids: { readonly server: number; readonly bare: number };
}

/** Runs the transfers one after the other, so that other load on the machine disturbs all of them alike. */
async function oneRound({ klatch, bareUrl, folder, pids }: Stage, bytes: number): Promise<Round> {
  const byServer = { bytes, pid: pids.server };
  const byBare = { bytes, pid: pids.bare };
  const put = { method: 'PUT', bytes };
  let id = '';
  const bareUp = await measure(byBare, () => send(`${bareUrl}/plain`, put));
  const up = await measure(byServer, async () => void (id = await klatch.upload(bytes)));
  const safeUp = await measure(byBare, () => send(`${bareUrl}/safe?flush`, put));
  const bareDown = await measure(byBare, () => receive(`${bareUrl}/plain`, bytes));
  const down = await measure(byServer, () => klatch.download(id, bytes));
  await klatch.remove(id);
  for (const name of ['plain', 'safe']) await rm(join(folder, name));
  return { up, bareUp, safeUp, down, bareDown };
}

class KlatchFiles {
  readonly #url: string;
  readonly #headers: Record<string, string>;

  constructor(url: string, token: string) {
    this.#url = url;
    this.#headers = { authorization: `Bearer ${token}` };
  }

  async upload(bytes: number): Promise<string> {
    const url = `${this.#url}/v1/files?name=large.bin`;
    const answer = await send(url, { method: 'POST', bytes, headers: this.#headers });
    return (JSON.parse(answer) as { id: string }).id;
  }

  download(id: string, bytes: number): Promise<void> {
    return receive(`${this.#url}/v1/files/${id}`, bytes, this.#headers);
  }

  async remove(file: string): Promise<void> {
    const request = {
      method: 'POST',
      headers: { ...this.#headers, 'content-type': 'application/json' },
      body: JSON.stringify({ file }),
    };
    const answer = await fetch(`${this.#url}/v1/api/files.remove`, request);
    if (!answer.ok) throw new Error(`the file was not removed: ${await answer.text()}`);
  }
}

/** Sends a body of this many bytes, a MiB at a time. Resolves to the text of the answer. */
async function send(
  url: string,
  { method, bytes, headers = {} }: { method: string; bytes: number; headers?: Record<string, string> },
): Promise<string> {
  const outgoing = request(url, { method, headers: { ...headers, 'content-length': bytes }, agent: false });
  const answered = answerOf(outgoing);
  for (let left = bytes; left > 0; left -= CHUNK.length) {
    if (!outgoing.write(CHUNK)) await once(outgoing, 'drain');
  }
  outgoing.end();
  const answer = await answered;
  let text = '';
  for await (const chunk of answer.setEncoding('utf8')) text += chunk as string;
  if (answer.statusCode !== 201) throw new Error(`an upload was answered with ${answer.statusCode}: ${text}`);
  return text;
}

/** Reads a file to its end and discards it. */
async function receive(url: string, bytes: number, headers: Record<string, string> = {}): Promise<void> {
  const outgoing = request(url, { headers, agent: false });
  outgoing.end();
  const answer = await answerOf(outgoing);
  let received = 0;
  answer.on('data', (chunk: Buffer) => (received += chunk.length));
  await once(answer, 'end');
  if (received !== bytes) throw new Error(`of ${bytes} bytes ${received} came`);
}

async function answerOf(outgoing: ClientRequest): Promise<IncomingMessage> {
  const [answer] = (await once(outgoing, 'response')) as [IncomingMessage];
  return answer;
}

async function measure(of: { bytes: number; pid: number }, work: () => Promise<unknown>): Promise<Measured> {
  const mib = of.bytes / MIB;
  // Writes of the previous upload that still wait for the disk must not slow this transfer down.
  await settle('sync');
  const cpuBefore = cpuSeconds(of.pid);
  const startedAt = performance.now();
  await work();
  const seconds = (performance.now() - startedAt) / 1_000;
  return { rate: mib / seconds, cpu: ((cpuSeconds(of.pid) - cpuBefore) / mib) * 1_024 };
}

/** The peak of a process's resident memory so far, in MiB. */
function peakMiB(pid: number): number {
  const line = /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
  return Number(line?.[1] ?? 0) / 1024;
}

function print(rounds: readonly Round[], before: number, peak: number): boolean {
  const rows = rounds.map(({ up, bareUp, safeUp, down, bareDown }) => ({
    'up MiB/s': round(up.rate),
    'bare up': round(bareUp.rate),
    ratio: round(up.rate / bareUp.rate, 3),
    'bare up, flushed': round(safeUp.rate),
    'down MiB/s': round(down.rate),
    'bare down': round(bareDown.rate),
    'ratio down': round(down.rate / bareDown.rate, 3),
    'CPU s/GiB up, bare': `${round(up.cpu, 2)}, ${round(bareUp.cpu, 2)}`,
    'CPU s/GiB down, bare': `${round(down.cpu, 2)}, ${round(bareDown.cpu, 2)}`,
  }));
  const upRatio = round(median(rounds.map(({ up, bareUp }) => up.rate / bareUp.rate)), 3);
  const downRatio = round(median(rounds.map(({ down, bareDown }) => down.rate / bareDown.rate)), 3);
  const growth = peak - before;
  report(`files: ${FILE_MIB} MiB up and down, the upload safe on disk`, rows, {
    bench: 'files',
    ratio: Math.min(upRatio, downRatio),
    baseline: 'bare Node stream to and from a file',
    rate: round(median(rounds.map(({ up }) => up.rate))),
    target: TARGET,
    'ratio up': upRatio,
    'ratio down': downRatio,
    'ratio up to a stream that is flushed': round(median(rounds.map(({ up, safeUp }) => up.rate / safeUp.rate)), 3),
    'peak memory after 64 MiB, MiB': round(before),
    'peak memory, MiB': round(peak),
  });
  if (growth > MAX_GROWTH_MIB) console.log(`the server's memory grew by ${round(growth)} MiB`);
  return upRatio >= TARGET && downRatio >= TARGET && growth <= MAX_GROWTH_MIB;
}
