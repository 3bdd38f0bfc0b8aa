/**
 * The part of the tar format (POSIX ustar) that a backup uses: regular files with short names, so that any tar can read
 * a backup. Klatch has its own code, because tar-stream brings five packages, one with native parts, for writing and
 * reading such files.
 */

const BLOCK_BYTES = 512;
/** The length of the name field in a header; Klatch's names take a third of it. */
const MAX_NAME_BYTES = 100;
/** Offset and length of the fields of a header, in bytes. */
const HEADER_FIELDS = {
  name: [0, 100],
  mode: [100, 8],
  uid: [108, 8],
  gid: [116, 8],
  size: [124, 12],
  mtime: [136, 12],
  checksum: [148, 8],
  type: [156, 1],
  magic: [257, 8],
} as const;

type Field = keyof typeof HEADER_FIELDS;

/** The input is not a tar archive of regular files (`invalid`), or ends too early (`truncated`). */
export class TarError extends Error {
  override readonly name = 'TarError';
  readonly kind: 'truncated' | 'invalid';

  constructor(kind: TarError['kind'], message: string) {
    super(message);
    this.kind = kind;
  }
}

/** A file of an archive. Its `content` can be read until the next file is requested, which skips the unread rest. */
export interface TarEntry {
  readonly name: string;
  readonly size: number;
  readonly content: AsyncGenerator<Buffer, void, undefined>;
}

/** The chunks of an archive for one file. When tar extracts the file, only its owner may read it. */
export function encodeTarFile(name: string, content: readonly Buffer[], mtime: Date): Buffer[] {
  const size = content.reduce((sum, chunk) => sum + chunk.length, 0);
  if (!/^[\x21-\x7e]+$/.test(name) || name.length >= MAX_NAME_BYTES) throw new RangeError(`a bad name: ${name}`);
  const header = Buffer.alloc(BLOCK_BYTES);
  const put = (field: Field, text: string): number => header.write(text, HEADER_FIELDS[field][0], 'latin1');
  const putOctal = (field: Field, value: number): number =>
    put(field, `${value.toString(8).padStart(HEADER_FIELDS[field][1] - 1, '0')}\0`);
  put('name', name);
  putOctal('mode', 0o600);
  putOctal('uid', 0);
  putOctal('gid', 0);
  putOctal('size', size);
  putOctal('mtime', Math.floor(mtime.getTime() / 1_000));
  put('type', '0');
  put('magic', 'ustar\x0000');
  put('checksum', `${checksum(header).toString(8).padStart(6, '0')}\0 `);
  return [header, ...content, Buffer.alloc(paddingBytes(size))];
}

/** The end marker of an archive. */
export function encodeTarEnd(): Buffer {
  return Buffer.alloc(2 * BLOCK_BYTES);
}

/** The files of an archive in their order. Throws TarError, also when the end marker is missing. */
export async function* readTar(input: AsyncIterable<Buffer>): AsyncGenerator<TarEntry, void, undefined> {
  const source = new ByteSource(input);
  try {
    for (;;) {
      const header = await source.readExactly(BLOCK_BYTES);
      if (header.every((byte) => byte === 0)) {
        // Reads on to the end of the compressed stream, where gzip checks its own checksum.
        await source.drainZeros();
        return;
      }
      const { name, size } = parseTarHeader(header);
      const content = readEntryContent(source, size);
      yield { name, size, content };
      // Skips the rest of the file that the consumer has not read.
      for await (const _ of content);
    }
  } finally {
    await source.close();
  }
}

async function* readEntryContent(source: ByteSource, size: number): AsyncGenerator<Buffer, void, undefined> {
  for (let left = size; left > 0;) {
    const chunk = await source.readUpTo(left);
    left -= chunk.length;
    yield chunk;
  }
  await source.readExactly(paddingBytes(size));
}

function parseTarHeader(header: Buffer): { name: string; size: number } {
  const readText = (field: Field): string => {
    const [start, length] = HEADER_FIELDS[field];
    return header.toString('latin1', start, start + length).replace(/\0[^]*$/, '');
  };
  const readNumber = (field: Field): number => {
    const digits = readText(field).trim();
    if (!/^[0-7]+$/.test(digits)) throw new TarError('invalid', `its ${field} is no number`);
    return Number.parseInt(digits, 8);
  };
  if (!readText('magic').startsWith('ustar')) throw new TarError('invalid', 'there is no file where one should begin');
  const storedChecksum = readNumber('checksum');
  const copy = Buffer.from(header);
  copy.fill(' ', HEADER_FIELDS.checksum[0], HEADER_FIELDS.checksum[0] + HEADER_FIELDS.checksum[1]);
  if (checksum(copy) !== storedChecksum) throw new TarError('invalid', 'the head of a file in it was changed');
  if (!['0', ''].includes(readText('type'))) throw new TarError('invalid', 'it holds something that is not a file');
  return { name: readText('name'), size: readNumber('size') };
}

/** The sum of all bytes of the header, where the checksum field itself counts as blanks. */
function checksum(header: Buffer): number {
  const [start, length] = HEADER_FIELDS.checksum;
  let sum = 0;
  for (const [index, byte] of header.entries()) sum += index >= start && index < start + length ? 0x20 : byte;
  return sum;
}

function paddingBytes(size: number): number {
  return (BLOCK_BYTES - (size % BLOCK_BYTES)) % BLOCK_BYTES;
}

/** Cuts a stream of chunks into pieces of the requested sizes. */
class ByteSource {
  readonly #chunks: AsyncIterator<Buffer>;
  #remaining: Buffer = Buffer.alloc(0);

  constructor(input: AsyncIterable<Buffer>) {
    this.#chunks = input[Symbol.asyncIterator]();
  }

  /** The next bytes of the stream: at least one and at most `most`. */
  async readUpTo(most: number): Promise<Buffer> {
    while (this.#remaining.length === 0) {
      const next = await this.#chunks.next();
      if (next.done === true) throw new TarError('truncated', 'it ends in the middle');
      this.#remaining = next.value;
    }
    const chunk = this.#remaining.subarray(0, most);
    this.#remaining = this.#remaining.subarray(chunk.length);
    return chunk;
  }

  async readExactly(count: number): Promise<Buffer> {
    const chunks: Buffer[] = [];
    for (let left = count; left > 0;) {
      const chunk = await this.readUpTo(left);
      left -= chunk.length;
      chunks.push(chunk);
    }
    return Buffer.concat(chunks);
  }

  /** Reads to the end of the stream, and throws if anything but zeros remains. */
  async drainZeros(): Promise<void> {
    for (let chunk: Buffer | null = this.#remaining; chunk !== null;) {
      if (chunk.some((byte) => byte !== 0)) throw new TarError('invalid', 'it goes on behind its end');
      const next = await this.#chunks.next();
      chunk = next.done === true ? null : next.value;
    }
  }

  async close(): Promise<void> {
    await this.#chunks.return?.();
  }
}
