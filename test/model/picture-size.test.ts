import { describe, expect, test } from '@jest/globals';
import { readPictureSize } from '../../src/model/picture-size.ts';

const hex = (text: string): Buffer => Buffer.from(text.replaceAll(' ', ''), 'hex');
const segment = (marker: string, content: Buffer): Buffer => {
  const length = Buffer.alloc(2);
  length.writeUInt16BE(content.length + 2);
  return Buffer.concat([hex(marker), length, content]);
};
const frame = (marker = 'ffc0'): Buffer => segment(marker, hex('08 0140 0280 03 012200 021101 031101'));
const jpeg = (...parts: Buffer[]): Buffer => Buffer.concat([hex('ffd8'), ...parts]);

/** A JPEG segment (APP1) with EXIF data: one entry, and then the orientation. */
function exif(orientation: number, order: 'II' | 'MM'): Buffer {
  const tiff = Buffer.alloc(8 + 2 + 24);
  const uint16 = (value: number, at: number): unknown =>
    order === 'II' ? tiff.writeUInt16LE(value, at) : tiff.writeUInt16BE(value, at);
  tiff.write(order, 0, 'latin1');
  uint16(42, 2);
  if (order === 'II') tiff.writeUInt32LE(8, 4);
  else tiff.writeUInt32BE(8, 4);
  uint16(2, 8);
  uint16(0x010f, 10);
  uint16(0x0112, 22);
  uint16(orientation, 30);
  return segment('ffe1', Buffer.concat([Buffer.from('Exif\0\0', 'latin1'), tiff]));
}

const PNG = hex('89504e470d0a1a0a 0000000d 49484452 00000280 00000140 0806000000');
const LANDSCAPE = { width: 640, height: 320 };
const PORTRAIT = { width: 320, height: 640 };

describe('the size of a picture', () => {
  test.each([
    ['a PNG', PNG, LANDSCAPE],
    ['a GIF', hex('474946383961 8002 4001 f70000'), LANDSCAPE],
    ['an old GIF', hex('474946383761 8002 4001 f70000'), LANDSCAPE],
    ['a lossy WebP', hex('52494646 24000000 57454250 56503820 18000000 300100 9d012a 8002 4001 0000'), LANDSCAPE],
    ['a lossless WebP', hex('52494646 24000000 57454250 5650384c 18000000 2f 7fc24f00 0000000000'), LANDSCAPE],
    ['an extended WebP', hex('52494646 24000000 57454250 56503858 0a000000 00000000 7f0200 3f0100'), LANDSCAPE],
    ['a JPEG', jpeg(segment('ffe0', Buffer.from('JFIF\0')), frame()), LANDSCAPE],
    ['a progressive JPEG with fill bytes', jpeg(hex('ffff'), frame('ffc2')), LANDSCAPE],
    ['a JPEG whose tables come first', jpeg(segment('ffc4', Buffer.alloc(30)), frame()), LANDSCAPE],
    ['a JPEG that lies on its side, big-endian', jpeg(exif(6, 'MM'), frame()), PORTRAIT],
    ['a JPEG that lies on its side, little-endian', jpeg(exif(8, 'II'), frame()), PORTRAIT],
    ['a JPEG upside down', jpeg(exif(3, 'II'), frame()), LANDSCAPE],
  ])('of %s is what a browser shows', (_what, head, size) => {
    expect(readPictureSize(head)).toEqual(size);
  });

  test.each([
    ['nothing', Buffer.alloc(0)],
    ['text', Buffer.from('GIF is a format of pictures, and so is PNG')],
    ['a PNG without width', hex('89504e470d0a1a0a 0000000d 49484452 00000000 00000140 0806000000')],
    ['a PNG of two billion', hex('89504e470d0a1a0a 0000000d 49484452 7fffffff 00000140 0806000000')],
    ['a JPEG whose picture begins before its frame', jpeg(segment('ffda', Buffer.alloc(4)), frame())],
    ['a JPEG with a segment of length 0', jpeg(hex('ffe0 0000'), frame())],
    ['a JPEG whose frame is behind what was read', jpeg(segment('ffe1', Buffer.alloc(60_000))).subarray(0, 4_100)],
  ])('is unknown of %s', (_what, head) => {
    expect(readPictureSize(head)).toBeNull();
  });

  test('is right or unknown where the bytes are cut anywhere, and never an error', () => {
    const whole = [PNG, jpeg(exif(6, 'MM'), exif(8, 'II'), frame())];
    for (const picture of whole) {
      const size = readPictureSize(picture);
      for (let length = 0; length < picture.length; length += 1) {
        expect([null, size]).toContainEqual(readPictureSize(picture.subarray(0, length)));
      }
    }
  });

  test('is no error and no long search for bytes that an attacker chose', () => {
    let seed = 1;
    const next = (): number => (seed = (seed * 48_271) % 2_147_483_647);
    const starts = [PNG, jpeg(), jpeg(exif(6, 'II')), hex('474946383961'), hex('52494646000000005745425056503820')];
    for (let round = 0; round < 5_000; round += 1) {
      const noise = Buffer.from(Array.from({ length: 40 }, () => (next() % 4 === 0 ? 0xff : next() % 256)));
      const size = readPictureSize(
        Buffer.concat([starts[round % starts.length]!.subarray(0, 4 + (next() % 60)), noise]),
      );
      if (size !== null) expect(Math.min(size.width, size.height)).toBeGreaterThan(0);
    }
    // The reader makes progress in each step, even with fill bytes and with the smallest segments, and so ends.
    expect(readPictureSize(jpeg(Buffer.alloc(262_144, 0xff)))).toBeNull();
    expect(readPictureSize(jpeg(...Array.from({ length: 60_000 }, () => hex('ffe00002'))))).toBeNull();
  });
});
