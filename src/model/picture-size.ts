/** The size in which a picture is shown, in pixels. */
export interface PictureSize {
  readonly width: number;
  readonly height: number;
}

/** The largest side that JPEG can express. A picture that claims more is shown without a size. */
const MAX_SIDE_PX = 65_535;
const PNG_SIGNATURE = Buffer.from('89504e470d0a1a0a', 'hex');

/**
 * The size of a PNG, JPEG, GIF or WebP; null if its first bytes do not contain the size. Nothing is decoded: the code
 * reads numbers at fixed places, and skips the segments of a JPEG by their lengths.
 */
export function readPictureSize(head: Buffer): PictureSize | null {
  const size = readPng(head) ?? readGif(head) ?? readWebp(head) ?? readJpeg(head);
  if (size === null || !isValidSide(size.width) || !isValidSide(size.height)) return null;
  return size;
}

function isValidSide(px: number): boolean {
  return px >= 1 && px <= MAX_SIDE_PX;
}

function ascii(bytes: Buffer, start: number, end: number): string {
  return bytes.toString('latin1', start, end);
}

function readPng(bytes: Buffer): PictureSize | null {
  const isPng = bytes.length >= 24 && bytes.subarray(0, 8).equals(PNG_SIGNATURE) && ascii(bytes, 12, 16) === 'IHDR';
  return isPng ? { width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) } : null;
}

function readGif(bytes: Buffer): PictureSize | null {
  const isGif = bytes.length >= 10 && /^GIF8[79]a$/.test(ascii(bytes, 0, 6));
  return isGif ? { width: bytes.readUInt16LE(6), height: bytes.readUInt16LE(8) } : null;
}

/**
 * Reads the first chunk of a WebP, of which there are three kinds: lossy, lossless, and extended. The extended one
 * contains the size of the canvas.
 */
function readWebp(bytes: Buffer): PictureSize | null {
  if (bytes.length < 30 || ascii(bytes, 0, 4) !== 'RIFF' || ascii(bytes, 8, 12) !== 'WEBP') return null;
  const chunkType = ascii(bytes, 12, 16);
  if (chunkType === 'VP8X') return { width: bytes.readUIntLE(24, 3) + 1, height: bytes.readUIntLE(27, 3) + 1 };
  if (chunkType === 'VP8L' && bytes[20] === 0x2f) {
    const bits = bytes.readUInt32LE(21);
    return { width: (bits & 0x3fff) + 1, height: ((bits >>> 14) & 0x3fff) + 1 };
  }
  const isLossy = chunkType === 'VP8 ' && bytes.readUIntBE(23, 3) === 0x9d012a;
  return isLossy ? { width: bytes.readUInt16LE(26) & 0x3fff, height: bytes.readUInt16LE(28) & 0x3fff } : null;
}

const JPEG_APP1 = 0xe1;
const JPEG_START_OF_SCAN = 0xda;
const JPEG_END = 0xd9;

function readJpeg(bytes: Buffer): PictureSize | null {
  if (bytes.length < 4 || bytes.readUInt16BE(0) !== 0xffd8) return null;
  let isTurned = false;
  let offset = 2;
  while (offset + 4 <= bytes.length && bytes[offset] === 0xff) {
    const marker = bytes[offset + 1]!;
    if (marker === 0xff) {
      // The first of the two bytes 0xff only fills space before a marker.
      offset += 1;
      continue;
    }
    if (marker === JPEG_START_OF_SCAN || marker === JPEG_END) return null;
    const segmentLength = bytes.readUInt16BE(offset + 2);
    if (segmentLength < 2) return null;
    const segment = bytes.subarray(offset + 4, offset + 2 + segmentLength);
    if (isStartOfFrame(marker)) return readJpegFrame(segment, isTurned);
    if (marker === JPEG_APP1) isTurned ||= isExifTurned(segment);
    offset += 2 + segmentLength;
  }
  return null;
}

/** Whether a marker is one of SOF0 to SOF15, without the three of this range that contain tables. */
function isStartOfFrame(marker: number): boolean {
  return marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc;
}

function readJpegFrame(segment: Buffer, isTurned: boolean): PictureSize | null {
  if (segment.length < 5) return null;
  const [height, width] = [segment.readUInt16BE(1), segment.readUInt16BE(3)];
  return isTurned ? { width: height, height: width } : { width, height };
}

const EXIF_HEADER = 'Exif\0\0';
const EXIF_ORIENTATION_TAG = 0x0112;
const EXIF_ENTRY_BYTES = 12;
/** Pictures with an EXIF orientation from the first to the last of these are shown with width and height exchanged. */
const FIRST_TURNED_ORIENTATION = 5;
const LAST_ORIENTATION = 8;

/**
 * Whether the EXIF orientation exchanges width and height, as with a camera that was held upright: browsers turn the
 * picture by it.
 */
function isExifTurned(segment: Buffer): boolean {
  if (ascii(segment, 0, 6) !== EXIF_HEADER) return false;
  const tiff = segment.subarray(6);
  const byteOrder = ascii(tiff, 0, 2);
  if (tiff.length < 8 || (byteOrder !== 'II' && byteOrder !== 'MM')) return false;
  const isLittleEndian = byteOrder === 'II';
  const readUint16 = (offset: number): number =>
    isLittleEndian ? tiff.readUInt16LE(offset) : tiff.readUInt16BE(offset);
  const directoryOffset = isLittleEndian ? tiff.readUInt32LE(4) : tiff.readUInt32BE(4);
  if (directoryOffset + 2 > tiff.length) return false;
  const entryCount = readUint16(directoryOffset);
  for (let index = 0; index < entryCount; index += 1) {
    const entryOffset = directoryOffset + 2 + index * EXIF_ENTRY_BYTES;
    if (entryOffset + EXIF_ENTRY_BYTES > tiff.length) return false;
    if (readUint16(entryOffset) !== EXIF_ORIENTATION_TAG) continue;
    const orientation = readUint16(entryOffset + 8);
    return orientation >= FIRST_TURNED_ORIENTATION && orientation <= LAST_ORIENTATION;
  }
  return false;
}
