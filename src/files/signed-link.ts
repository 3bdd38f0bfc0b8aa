import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto';
import type { AccountId, ConversationId } from '../model/ids.ts';

/** For whom a link is: an account, as long as it may read the file, or whoever hears a conversation. */
export type FileLinkReader =
  { readonly kind: 'account'; readonly id: AccountId } | { readonly kind: 'conversation'; readonly id: ConversationId };

/** What a link says: which file, under which name, for whom and how long. */
export interface FileLink {
  readonly file: { readonly id: string; readonly name: string };
  readonly reader: FileLinkReader;
  readonly expiresAt: Date;
}

/** Reverse webhooks get links that are good for so long, made at each attempt. */
export const HOOK_LINK_TTL_MS = 7 * 86_400_000;

const LINK_KEY_LABEL = 'file-links-1';
const READER_PATTERN = /^([ag])([1-9]\d{0,15})$/;
const EXPIRES_PATTERN = /^[1-9]\d{0,11}$/;

/** The key that links are signed with: made from the server's secret and good for nothing else. */
export function fileLinkKey(secret: string): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, 'klatch', LINK_KEY_LABEL, 32));
}

/** The address of a file for whoever has it: `<base>/v1/files/<id>/<name>?expires=…&for=…&signature=…`. */
export function signFileLink(key: Buffer, baseUri: string, link: FileLink): string {
  const { id, name } = link.file;
  const expires = String(Math.floor(link.expiresAt.getTime() / 1_000));
  const reader = `${link.reader.kind === 'account' ? 'a' : 'g'}${link.reader.id}`;
  const signature = signLinkFields(key, { id, name, expires, reader });
  return `${baseUri}/v1/files/${id}/${encodeURIComponent(name)}?expires=${expires}&for=${reader}&signature=${signature}`;
}

/** For whom an address is good at this moment; null: it is over, was changed, or never was one. */
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
  // Their texts: decoding skips what is no base64url, so that many would be good.
  const expected = Buffer.from(signLinkFields(key, { ...file, expires, reader }));
  const presented = Buffer.from(signature);
  if (presented.length !== expected.length || !timingSafeEqual(presented, expected)) return null;
  if (Number(expires) * 1_000 <= nowMs) return null;
  const id = Number(match[2]);
  return match[1] === 'a'
    ? { kind: 'account', id: id as AccountId }
    : { kind: 'conversation', id: id as ConversationId };
}

/** The value of a name that is there once; else nothing that fits. */
function singleQueryValue(query: URLSearchParams, name: string): string {
  const values = query.getAll(name);
  return values.length === 1 ? values[0]! : '';
}

/** As JSON, so that no value can be read as the beginning of the next. */
function signLinkFields(key: Buffer, link: { id: string; name: string; expires: string; reader: string }): string {
  const { id, name, expires, reader } = link;
  return createHmac('sha256', key)
    .update(JSON.stringify([id, name, expires, reader]))
    .digest('base64url');
}
