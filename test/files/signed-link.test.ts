import { describe, expect, test } from '@jest/globals';
import { fileLinkKey, signFileLink, readerOfValidFileLink, type FileLink } from '../../src/files/signed-link.ts';
import type { AccountId, ConversationId } from '../../src/model/ids.ts';

const key = fileLinkKey('a secret of at least thirty-two characters');
const file = { id: 'AAAAAAAAAAAAAAAAAAAAAA', name: 'Größe & "mehr" 100 %.png' };
const link: FileLink = {
  file,
  reader: { kind: 'account', id: 7 as AccountId },
  expiresAt: new Date('2026-01-02T03:04:05.678Z'),
};
const before = Date.parse('2026-01-02T03:04:04Z');

function verify(url: string, nowMs = before, withKey = key) {
  const { pathname, searchParams } = new URL(url);
  const [, , , id, name] = pathname.split('/');
  return readerOfValidFileLink(withKey, { id: id!, name: decodeURIComponent(name!) }, { query: searchParams, nowMs });
}

describe('a signed address of a file', () => {
  const url = signFileLink(key, 'https://chat.example/klatch', link);

  test('names the file and is good for whom it is for, until it is over', () => {
    expect(url).toMatch(/^https:\/\/chat\.example\/klatch\/v1\/files\/A{22}\/Gr%C3%B6%C3%9Fe/);
    const short = signFileLink(key, 'https://chat.example', link);
    expect(verify(short)).toEqual({ kind: 'account', id: 7 });
    expect(verify(short, Date.parse('2026-01-02T03:04:05Z'))).toBeNull();
    const ofGroup = signFileLink(key, 'https://chat.example', {
      ...link,
      reader: { kind: 'conversation', id: 7 as ConversationId },
    });
    expect(verify(ofGroup)).toEqual({ kind: 'conversation', id: 7 });
  });

  test.each([
    ['another file', (url: string) => url.replace('AAAA', 'AAAB')],
    ['another name', (url: string) => url.replace('.png', '.exe')],
    ['a later end', (url: string) => url.replace(/expires=(\d+)/, (_, s: string) => `expires=${Number(s) + 1}`)],
    ['an end with a zero before it', (url: string) => url.replace('expires=', 'expires=0')],
    ['another reader', (url: string) => url.replace('for=a7', 'for=a8')],
    ['a conversation for an account', (url: string) => url.replace('for=a7', 'for=g7')],
    ['a second reader', (url: string) => `${url}&for=a8`],
    ['no signature', (url: string) => url.replace(/&signature=.*/, '')],
    ['an empty signature', (url: string) => url.replace(/signature=.*/, 'signature=')],
    ['a shorter signature', (url: string) => url.slice(0, -2)],
    ['more behind the signature', (url: string) => `${url}=`],
    ['a sign within the signature', (url: string) => url.replace(/signature=(.)/, 'signature=$1.')],
    [
      'a bit of the signature',
      (url: string) => url.replace(/signature=(.)/, (_, c) => `signature=${c === 'A' ? 'B' : 'A'}`),
    ],
  ])('is good for nothing with %s', (_what, change) => {
    const changed = change(signFileLink(key, 'https://chat.example', link));
    expect(changed).not.toBe(signFileLink(key, 'https://chat.example', link));
    expect(verify(changed)).toBeNull();
  });

  test('is good for nothing on a server with another secret', () => {
    const short = signFileLink(key, 'https://chat.example', link);
    expect(verify(short, before, fileLinkKey('another secret of thirty-two characters'))).toBeNull();
  });
});
