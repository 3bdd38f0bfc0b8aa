import type { LiveTransport } from '../model/transport.ts';

const MIN_16_BIT_LENGTH = 126;
const MIN_64_BIT_LENGTH = 65_536;
const FINAL_TEXT_FRAME_BYTE = 0x81;
const NEWLINE = 0x0a;

/** Concatenated frames for one transport, and the offset at which each ends. */
interface ConcatenatedFrames {
  readonly bytes: Buffer;
  readonly frameEnds: Uint32Array;
}

/** The encoding of a text as a frame of one transport. */
interface FrameFormat {
  /** Bytes of a frame besides its text of `length` bytes. */
  readonly frameOverheadBytes: (length: number) => number;
  /** Writes a frame and returns where it ends. */
  readonly write: (target: Buffer, at: number, part: { text: string; length: number }) => number;
}

const FRAME_FORMATS: Readonly<Record<LiveTransport, FrameFormat>> = {
  websocket: { frameOverheadBytes: frameHeaderBytes, write: writeFrame },
  tcp: { frameOverheadBytes: () => 1, write: writeLine },
};

/**
 * Texts for many clients, encoded once for each transport. A server's WebSocket frames are not masked, so all clients
 * get the same bytes.
 */
export class EncodedFrames {
  readonly frameCount: number;
  readonly #texts: readonly string[];
  readonly #encoded: Partial<Record<LiveTransport, ConcatenatedFrames>> = {};

  constructor(texts: readonly string[]) {
    this.#texts = texts;
    this.frameCount = texts.length;
  }

  /** The frames for a transport, without the first `framesToSkip`. */
  bytes(kind: LiveTransport, framesToSkip: number): Buffer {
    const { bytes, frameEnds } = (this.#encoded[kind] ??= encode(this.#texts, FRAME_FORMATS[kind]));
    return framesToSkip === 0 ? bytes : bytes.subarray(frameEnds[framesToSkip - 1]);
  }
}

function encode(texts: readonly string[], { frameOverheadBytes, write }: FrameFormat): ConcatenatedFrames {
  const lengths = texts.map((text) => Buffer.byteLength(text));
  const total = lengths.reduce((sum, length) => sum + length + frameOverheadBytes(length), 0);
  // The buffer is not taken from the shared pool of Node.js: a cached slice of the pool would keep the whole pool in
  // memory.
  const bytes = Buffer.allocUnsafeSlow(total);
  const frameEnds = new Uint32Array(texts.length);
  let offset = 0;
  for (const [index, text] of texts.entries()) {
    offset = write(bytes, offset, { text, length: lengths[index]! });
    frameEnds[index] = offset;
  }
  return { bytes, frameEnds };
}

/** RFC 6455, 5.2: length in 7 bits, or 126 and 16 bits, or 127 and 64 bits. */
function frameHeaderBytes(length: number): number {
  if (length < MIN_16_BIT_LENGTH) return 2;
  return length < MIN_64_BIT_LENGTH ? 4 : 10;
}

function writeFrame(target: Buffer, start: number, { text, length }: { text: string; length: number }): number {
  let at = target.writeUInt8(FINAL_TEXT_FRAME_BYTE, start);
  if (length < MIN_16_BIT_LENGTH) at = target.writeUInt8(length, at);
  else if (length < MIN_64_BIT_LENGTH) at = target.writeUInt16BE(length, target.writeUInt8(126, at));
  else at = target.writeBigUInt64BE(BigInt(length), target.writeUInt8(127, at));
  return at + target.write(text, at);
}

function writeLine(target: Buffer, start: number, { text }: { text: string }): number {
  return target.writeUInt8(NEWLINE, start + target.write(text, start));
}
