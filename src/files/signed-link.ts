import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto';
import type { AccountId, ConversationId } from '../model/ids.ts';

/**
 * The reader that a link is for: an account, as long as the account may read the file, or the receivers of a
 * conversation's hooks.
 */
export type FileLinkReader =
  { readonly kind: 'account'; readonly id: AccountId } | { readonly kind: 'conversation'; readonly id: ConversationId };

/** What the signed URL of a file contains. */
export interface FileLink {
  readonly file: { readonly id: string; readonly name: string };
  readonly reader: FileLinkReader;
  readonly expiresAt: Date;
}

/**
 * The time for which a link in a delivery to a reverse webhook is valid. A later attempt of the delivery has newer
 * links.
 */
export const HOOK_LINK_TTL_MS = 7 * 86_400_000;

const LINK_KEY_LABEL = 'file-links-1';
const READER_PATTERN = /^([ag])([1-9]\d{0,15})$/;
const EXPIRES_PATTERN = /^[1-9]\d{0,11}$/;

/** Derives the key that signs links from the server's secret. The key is used for nothing else. */
export function fileLinkKey(secret: string): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, 'klatch', LINK_KEY_LABEL, 32));
}

/** Creates a URL with which any client can read the file: `<base>/v1/files/<id>/<name>?expires=…&for=…&signature=…`. */
export function signFileLink(key: Buffer, baseUri: string, link: FileLink): string {
  const { id, name } = link.file;
  const expires = String(Math.floor(link.expiresAt.getTime() / 1_000));
  const readerCode = `${link.reader.kind === 'account' ? 'a' : 'g'}${link.reader.id}`;
  const signature = signLinkFields(key, { id, name, expires, reader: readerCode });
  return `${baseUri}/v1/files/${id}/${encodeURIComponent(name)}?expires=${expires}&for=${readerCode}&signature=${signature}`;
}

/**
 * Checks a link, and returns the reader that it is for. Null: the link has expired, was changed, or never was valid.
 */
export function readerOfValidFileLink(
  key: Buffer,
  file: { readonly id: string; readonly name: string },
  given: { readonly query: URLSearchParams; readonly nowMs: number },
): FileLinkReader | null {
  const { query, nowMs } = given;
  const [expires, reader, signature] = ['expires', 'for', 'signature'].map((name) => singleQueryValue(query, name)) as [
    string,
    string,
    string,
  ];
  const match = READER_PATTERN.exec(reader);
  if (match === null || !EXPIRES_PATTERN.test(expires)) return null;
  // Compares the signatures as texts: decoding ignores invalid characters, so many texts would match.
  const expected = Buffer.from(signLinkFields(key, { ...file, expires, reader }));
  const presented = Buffer.from(signature);
  if (presented.length !== expected.length || !timingSafeEqual(presented, expected)) return null;
  if (Number(expires) * 1_000 <= nowMs) return null;
  const id = Number(match[2]);
  return match[1] === 'a'
    ? { kind: 'account', id: id as AccountId }
    : { kind: 'conversation', id: id as ConversationId };
}

/** The value of a query parameter that occurs exactly once; otherwise an empty string, which never matches. */
function singleQueryValue(query: URLSearchParams, name: string): string {
  const values = query.getAll(name);
  return values.length === 1 ? values[0]! : '';
}

/** Signs the fields as JSON: a plain concatenation would be the same for different fields. */
function signLinkFields(key: Buffer, link: { id: string; name: string; expires: string; reader: string }): string {
  const { id, name, expires, reader } = link;
  return createHmac('sha256', key)
    .update(JSON.stringify([id, name, expires, reader]))
    .digest('base64url');
}
