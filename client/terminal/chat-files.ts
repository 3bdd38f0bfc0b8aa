import { createReadStream, createWriteStream, rmSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Command } from 'commander';
import { deriveHttpBaseUrl } from '../core/address.ts';
import { anything } from '../core/decode.ts';
import { downloadFile, uploadFile, type FileServer } from '../node/file-transfer.ts';
import type { LiveClient } from '../core/live-client.ts';
import { withExplainedErrors, loadProfileAndServer, withServerAndProfile, type ChatOptions } from './chat-client.ts';
import { formatBytes } from '../core/format-bytes.ts';
import { sanitize } from '../core/safe-text.ts';
import { print, type ChatContext } from './context.ts';
import { ChatCommandError } from './command-error.ts';

const PROGRESS_INTERVAL_MS = 200;
/** The longest name of a downloaded file. Longer names are cut, since file systems limit names. */
const MAX_FILE_NAME_BYTES = 200;

interface DownloadOptions extends ChatOptions {
  readonly output?: string;
}

export function addDownload(chat: Command, context: ChatContext): void {
  const command = chat
    .command('download')
    .description('save a file of a message, and print where; nothing that is there is written over')
    .argument('<file>', 'its id, as klatch chat read shows it behind the name')
    .option('--output <path>', 'save it here ("-": to standard output) and not under its name in this folder')
    .action((id: string, options: DownloadOptions) => download(context, id, options));
  context.withExamples(withServerAndProfile(command), [
    'klatch chat download Zm9vYmFyYmF6cXV4MTIzNA',
    'klatch chat download Zm9vYmFyYmF6cXV4MTIzNA --output - | less',
  ]);
}

async function download(context: ChatContext, id: string, { output, ...options }: DownloadOptions): Promise<void> {
  const server = findFileServer(context, options);
  await withExplainedErrors(async () => {
    const { name, size, bytes } = await downloadFile(server, id);
    const path = output ?? safeFileName(name, id);
    const progress = new TransferProgressLine(context, { name: name ?? id, size });
    try {
      bytes.on('data', (chunk: Buffer) => progress.addTransferredBytes(chunk.length));
      if (output === '-') await pipeline(bytes, context.output, { end: false });
      else await saveNewFile(bytes, path);
    } finally {
      progress.eraseLine();
    }
    if (output !== '-') print(context, path);
  });
}

async function saveNewFile(bytes: Readable, path: string): Promise<void> {
  const file = createWriteStream(path, { flags: 'wx' });
  let isFileCreated = false;
  file.once('open', () => (isFileCreated = true));
  try {
    await pipeline(bytes, file);
  } catch (error) {
    // Removes the incomplete file, which would look like the whole one.
    if (isFileCreated) rmSync(path, { force: true });
    const { code } = error as NodeJS.ErrnoException;
    if (!isFileCreated && code !== undefined) {
      throw new ChatCommandError('operationFailed', unwritableSentence(path, code), { cause: error });
    }
    const sentence = `the download of ${path} broke off; nothing of it was kept: please repeat it`;
    throw new ChatCommandError('unavailable', sentence, { cause: error });
  }
}

/** The reason why the file cannot be created, and what to do. */
function unwritableSentence(path: string, code: string): string {
  const folder = dirname(path);
  if (code === 'EEXIST') return `${path} is there already: choose another --output`;
  if (code === 'EISDIR') return `${path} names a folder: put the name of a file behind it`;
  if (code === 'ENOENT') {
    return `${path} cannot be made: there is no folder ${folder}; make it, or choose another --output`;
  }
  if (code === 'ENOTDIR') return `${path} cannot be made: ${folder} is no folder; choose another --output`;
  if (code === 'EACCES' || code === 'EPERM' || code === 'EROFS') {
    return `${path} cannot be made: you may not write into ${folder} (${code}); choose another --output`;
  }
  return `${path} cannot be made (${code}): choose another --output`;
}

/** A file of this machine to upload. */
interface LocalFile {
  readonly path: string;
  readonly size: number;
}

/** The files to upload, and their server. */
interface PreparedUploads {
  readonly server: FileServer;
  readonly files: readonly LocalFile[];
}

/**
 * Checks whether the files can be uploaded, before the command changes anything. Resolves to null if there are no
 * files. Throws ChatCommandError.
 */
export async function prepareUploads(
  context: ChatContext,
  options: ChatOptions,
  paths: readonly string[],
): Promise<PreparedUploads | null> {
  if (paths.length === 0) return null;
  const files = await Promise.all(paths.map(async (path) => ({ path, size: await fileSizeOf(path) })));
  return { server: findFileServer(context, options), files };
}

/**
 * Uploads the files and returns their ids in the same order. On a failure it removes the files that were uploaded, and
 * throws ChatCommandError.
 */
export async function uploadAll(
  context: ChatContext,
  client: LiveClient,
  { server, files }: PreparedUploads,
): Promise<readonly string[]> {
  const fileIds: string[] = [];
  try {
    for (const file of files) fileIds.push(await uploadLocalFile(context, server, file));
    return fileIds;
  } catch (error) {
    await discardUploads(client, fileIds);
    throw error;
  }
}

async function uploadLocalFile(context: ChatContext, server: FileServer, { path, size }: LocalFile): Promise<string> {
  const name = basename(path);
  const progress = new TransferProgressLine(context, { name, size });
  // Reads only as many bytes as were announced: another program may still append to the file.
  const bytes = size === 0 ? Readable.from([]) : createReadStream(path, { end: size - 1 });
  const onProgress = (sentBytes: number): void => progress.showTransferred(sentBytes);
  try {
    return (await withExplainedErrors(() => uploadFile(server, { name, size, content: bytes, onProgress }))).id;
  } catch (error) {
    throw error instanceof ChatCommandError ? error : unreadableFileError(path, error);
  } finally {
    progress.eraseLine();
  }
}

/** Removes uploaded files of a message that was not sent. Without this, the server removes them a day later. */
export async function discardUploads(client: LiveClient, ids: readonly string[]): Promise<void> {
  await Promise.allSettled(ids.map((file) => client.call('files.remove', { file }, { decode: anything })));
}

function findFileServer(context: ChatContext, options: ChatOptions): FileServer {
  const { profile, server } = loadProfileAndServer(context, options);
  const baseUrl = deriveHttpBaseUrl(server);
  if (baseUrl !== null) return { baseUrl, token: profile.token };
  const errorSentence =
    `files go over HTTP, which ${sanitize(server)} is not: ` +
    "give the server's HTTP address, --server http://… or https://…, here or when you sign in";
  throw new ChatCommandError('usage', errorSentence);
}

async function fileSizeOf(path: string): Promise<number> {
  const found = await stat(path).catch((error: unknown) => {
    throw unreadableFileError(path, error);
  });
  if (found.isFile()) return found.size;
  throw new ChatCommandError('usage', `--file: ${path} is not a file`);
}

function unreadableFileError(path: string, cause: unknown): ChatCommandError {
  const { code } = cause as NodeJS.ErrnoException;
  return new ChatCommandError('usage', `--file: ${path} cannot be read (${code ?? 'it failed'})`, { cause });
}

/** Makes the name that a sender gave a file safe for this folder: no path, no hidden file, no control characters. */
export function safeFileName(name: string | null, id: string): string {
  const safe = sanitize(name ?? '')
    .split(/[/\\]/)
    .at(-1)!
    .replace(/^[.\s-]+/, '')
    .trim();
  const truncatedName = Buffer.from(safe)
    .subarray(0, MAX_FILE_NAME_BYTES)
    .toString('utf8')
    .replace(/\uFFFD+$/, '');
  return truncatedName === '' ? id : truncatedName;
}

/** Shows the progress of a file in one line, which it overwrites; only on a terminal. */
class TransferProgressLine {
  readonly #context: ChatContext;
  readonly #name: string;
  readonly #size: number | null;
  #transferredBytes = 0;
  #lastShownAtMs = -Infinity;
  #isShown = false;

  constructor(context: ChatContext, { name, size }: { name: string; size: number | null }) {
    this.#context = context;
    this.#name = sanitize(name);
    this.#size = size;
  }

  addTransferredBytes(bytes: number): void {
    this.showTransferred(this.#transferredBytes + bytes);
  }

  showTransferred(bytes: number): void {
    this.#transferredBytes = bytes;
    const now = performance.now();
    if (!this.#context.errorOutput.isTTY || now - this.#lastShownAtMs < PROGRESS_INTERVAL_MS) return;
    this.#lastShownAtMs = now;
    this.#isShown = true;
    const size = this.#size;
    const part = size === null || size === 0 ? '' : ` (${Math.floor((bytes / size) * 100)} % of ${formatBytes(size)})`;
    this.#context.errorOutput.write(`\r\u001b[K${this.#name}: ${formatBytes(bytes)}${part}`);
  }

  eraseLine(): void {
    if (this.#isShown) this.#context.errorOutput.write('\r\u001b[K');
    this.#isShown = false;
  }
}
