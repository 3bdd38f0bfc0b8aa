import { webcrypto } from 'node:crypto';

const { subtle } = webcrypto;

/** The keys of a browser's push subscription, with the private half. */
export interface Browser {
  readonly keys: webcrypto.CryptoKeyPair;
  readonly auth: Buffer;
}

const TAG_BYTES = 16;

/**
 * Decrypts a message of Web Push with WebCrypto alone, written from the text of RFC 8291 (keys) and RFC 8188 (records).
 * It shares no code with the library that encrypted it.
 */
export async function openAes128gcm(message: Buffer, { keys, auth }: Browser): Promise<Buffer> {
  // The header of RFC 8188, 2.1: salt (16 bytes), record size (4), length of the key id (1), key id: the public key of
  // the sender.
  const salt = message.subarray(0, 16);
  const recordBytes = message.readUInt32BE(16);
  const keyBytes = message.readUInt8(20);
  const senderPoint = message.subarray(21, 21 + keyBytes);
  const { contentKey, baseNonce } = await deriveKeys(senderPoint, salt, { keys, auth });
  const records: Buffer[] = [];
  const sealed = message.subarray(21 + keyBytes);
  for (let at = 0, n = 0; at < sealed.length; at += recordBytes, n += 1) {
    const record = sealed.subarray(at, at + recordBytes);
    const iv = nonceOf(baseNonce, n);
    const plain = Buffer.from(
      await subtle.decrypt({ name: 'AES-GCM', iv, tagLength: TAG_BYTES * 8 }, contentKey, record),
    );
    records.push(withoutPadding(plain, at + recordBytes >= sealed.length));
  }
  return Buffer.concat(records);
}

/** Derives the keys as RFC 8291, 3.3 and 3.4 describe. */
async function deriveKeys(senderPoint: Buffer, salt: Buffer, { keys, auth }: Browser) {
  const curve = { name: 'ECDH', namedCurve: 'P-256' } as const;
  const sender = await subtle.importKey('raw', senderPoint, curve, false, []);
  const shared = await subtle.deriveBits({ name: 'ECDH', public: sender }, keys.privateKey, 256);
  const ownPoint = Buffer.from(await subtle.exportKey('raw', keys.publicKey));
  const info = Buffer.concat([Buffer.from('WebPush: info\0'), ownPoint, senderPoint]);
  const ikm = await hkdf(Buffer.from(shared), { salt: auth, info, bytes: 32 });
  const contentBytes = await hkdf(ikm, { salt, info: Buffer.from('Content-Encoding: aes128gcm\0'), bytes: 16 });
  const baseNonce = await hkdf(ikm, { salt, info: Buffer.from('Content-Encoding: nonce\0'), bytes: 12 });
  const contentKey = await subtle.importKey('raw', contentBytes, 'AES-GCM', false, ['decrypt']);
  return { contentKey, baseNonce };
}

async function hkdf(
  ikm: Buffer,
  { salt, info, bytes }: { salt: Buffer; info: Buffer; bytes: number },
): Promise<Buffer> {
  const key = await subtle.importKey('raw', ikm, 'HKDF', false, ['deriveBits']);
  return Buffer.from(await subtle.deriveBits({ name: 'HKDF', hash: 'SHA-256', salt, info }, key, bytes * 8));
}

/** The nonce of a record (RFC 8188, 2.3): the base XOR the number of the record. */
function nonceOf(base: Buffer, n: number): Buffer {
  const nonce = Buffer.from(base);
  nonce.writeUInt32BE((nonce.readUInt32BE(8) ^ n) >>> 0, 8);
  return nonce;
}

/**
 * Removes the padding (RFC 8188, 2): a delimiter (2 in the last record, 1 in earlier ones) and zeros after the text.
 */
function withoutPadding(plain: Buffer, isLast: boolean): Buffer {
  let end = plain.length - 1;
  while (end >= 0 && plain[end] === 0) end -= 1;
  if (plain[end] !== (isLast ? 2 : 1)) throw new Error('wrong delimiter');
  return plain.subarray(0, end);
}
