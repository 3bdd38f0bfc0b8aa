import { crc32, deflateSync } from 'node:zlib';
import { callAs } from '../../test/support/call.ts';

const SIGNATURE = Buffer.from('\x89PNG\r\n\x1a\n', 'latin1');
const GREY_8_BITS = 8;

interface Sender {
  readonly url: string;
  readonly token: string;
  readonly conversation: number;
}

/** Uploads a picture and sends a message with it. */
export async function sendPicture(
  { url, token, conversation }: Sender,
  size: { readonly width: number; readonly height: number },
  text: string,
): Promise<number> {
  const response = await fetch(`${url}/v1/files?name=picture.png`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'image/png' },
    body: pictureOf(size.width, size.height),
  });
  if (!response.ok) throw new Error(`a picture was answered ${response.status}`);
  const { id } = (await response.json()) as { id: string };
  const { seq } = await callAs<{ seq: number }>({ url }, { token }, 'messages.send', {
    conversation,
    text,
    files: [id],
  });
  return seq;
}

/** A grey PNG. */
function pictureOf(width: number, height: number): Buffer<ArrayBuffer> {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header[8] = GREY_8_BITS;
  // The first byte of a row is its filter type; 0 means none.
  const row = Buffer.concat([Buffer.alloc(1), Buffer.alloc(width, 0x80)]);
  const pixels = deflateSync(Buffer.concat(Array.from({ length: height }, () => row)));
  return Buffer.concat([SIGNATURE, chunk('IHDR', header), chunk('IDAT', pixels), chunk('IEND', Buffer.alloc(0))]);
}

function chunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type), data]);
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.length);
  sum.writeUInt32BE(crc32(body));
  return Buffer.concat([length, body, sum]);
}
