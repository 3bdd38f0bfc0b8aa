import { describe, expect, test } from '@jest/globals';
import { ProtocolError } from '../../../client/core/chat-error.ts';
import {
  anything,
  arrayOf,
  boolean,
  constant,
  decodeOrNull,
  decodeReceived,
  integer,
  naturalNumber,
  nonEmptyString,
  nullable,
  number,
  objectWithAtLeast,
  optional,
  positiveInteger,
  recordOf,
  string,
  type Decoder,
} from '../../../client/core/decode.ts';
import { RpcClient, type Notification } from '../../../client/core/rpc-client.ts';
import { decodeChangePage, decodeMessage } from '../../../client/core/shapes.ts';

const person = objectWithAtLeast({ id: positiveInteger, nick: nullable(string), label: optional(string) });

const message = {
  id: '7:42',
  seq: 42,
  rev: 43,
  sender: { id: 5, name: 'Alice', nick: 'alice', kind: 'user' },
  text: 'hello',
  sent_at: '2026-11-20T08:00:00.000Z',
};

describe('a decoder', () => {
  test.each<[string, Decoder<unknown>, readonly unknown[], readonly unknown[]]>([
    ['a text', string, ['', 'a'], [1, null, undefined, {}]],
    ['a text with something in it', nonEmptyString, ['a'], ['', 1]],
    ['a truth', boolean, [true, false], [0, 'true', null]],
    ['a number', number, [0, -1.5], [Number.NaN, Infinity, '1']],
    ['a whole number', integer, [0, -1, 2 ** 53 - 1], [1.5, 2 ** 53, '1', null]],
    ['a number from 0 on', naturalNumber, [0, 1], [-1, 0.5]],
    ['a number from 1 on', positiveInteger, [1], [0, -1]],
    ['one value', constant('a'), ['a'], ['b', null]],
    ['null besides', nullable(string), [null, 'a'], [undefined, 1]],
    ['a list', arrayOf(integer), [[], [1, 2]], [{}, [1, '2'], 'ab', null]],
    ['an object of numbers', recordOf(integer), [{}, { a: 1 }], [{ a: '1' }, [], null]],
    [
      'an object',
      person,
      [
        { id: 1, nick: null },
        { id: 1, nick: 'a', label: 'b' },
      ],
      [{ id: 1 }, [], null, 'x'],
    ],
    ['an optional field', person, [{ id: 1, nick: null, label: undefined }], [{ id: 1, nick: null, label: null }]],
    ['anything', anything, [undefined, null, {}, 'a'], []],
  ])('takes %s, as it is, and nothing else', (_, decode, good, bad) => {
    for (const value of good) expect(decode(value)).toBe(value);
    for (const value of bad) expect(() => decode(value)).toThrow(/should be/);
  });

  test('keeps the fields that it does not know', () => {
    const value = { id: 1, nick: 'alice', since: 2026 };
    expect(person(value)).toBe(value);
  });

  test('says where something else stands, and does not repeat it', () => {
    const list = objectWithAtLeast({ people: arrayOf(person) });
    const read = (): unknown =>
      list({
        people: [
          { id: 1, nick: null },
          { id: 2, nick: ['secret'] },
        ],
      });
    expect(read).toThrow('people.1.nick should be a text');
    expect(() => list('secret')).toThrow('the value should be an object');
  });

  test('tells a person in one sentence, and what is wrong behind it; or gives null', () => {
    const read = (): unknown => decodeReceived(person, { id: 0 }, 'the server answers oddly');
    expect(read).toThrow(ProtocolError);
    expect(read).toThrow('the server answers oddly');
    expect(decodeOrNull(person, { id: 0 })).toBeNull();
  });
});

describe('what a server sends', () => {
  test('is taken with fields that are newer than this client, and without those that are older', () => {
    const newer = { ...message, reactions: [{ emoji: '+' }] };
    expect(decodeMessage(newer)).toBe(newer);
    expect(decodeMessage({ ...message, attachments: [] })).toMatchObject({ attachments: [] });
  });

  test.each([
    ['a message without a text', { ...message, text: undefined }, 'changes.0.message.text should be a text'],
    ['a deletion that is none', { ...message, deleted: false }, 'changes.0.message.deleted should be true'],
    ['a sender without a nick', { ...message, sender: { id: 1, name: 'a', kind: 'user' } }, 'message.sender.nick'],
  ])('is refused as %s', (_, odd, sentence) => {
    expect(() => decodeChangePage({ changes: [{ rev: 1, message: odd }], rev: 1, more: false })).toThrow(sentence);
  });
});

describe('a text of JSON-RPC', () => {
  const heard: Notification[] = [];
  const sent: string[] = [];
  const client = (): RpcClient =>
    new RpcClient({
      send: (text) => sent.push(text),
      onNotification: (each) => heard.push(each),
      maxPendingRequests: 10,
    });
  const json = (value: object): string => JSON.stringify({ jsonrpc: '2.0', ...value });

  test('is an answer, a refusal or a notification', async () => {
    const rpc = client();
    const [first, second, third] = [1, 2, 3].map((params) => rpc.call('x', params, 60_000));
    rpc.receive(json({ id: 2, error: { message: 'no', data: { code: 'forbidden' } } }));
    rpc.receive(json({ id: 1, result: { a: 1 } }));
    rpc.receive(json({ id: 3 }));
    rpc.receive(json({ id: 99, result: 'too late' }));
    rpc.receive(json({ method: 'y', params: [1] }));
    expect(await first).toEqual({ a: 1 });
    await expect(second).rejects.toMatchObject({ name: 'ServerError', code: 'forbidden', message: 'no' });
    expect(await third).toBeUndefined();
    expect(heard).toEqual([{ method: 'y', params: [1], receivedTextLength: expect.any(Number) }]);
  });

  test.each([
    ['{', 'the server sent something that is not JSON: check its address'],
    ['{"a":1}', 'the server sent something that is not JSON-RPC 2.0: check its address'],
    ['[]', 'the server sent something that is not JSON-RPC 2.0: check its address'],
    ['{"id":1.5,"result":1}', 'the server sent something that is not JSON-RPC 2.0: check its address'],
    ['{"id":1,"error":"no"}', 'the server sent something that is not JSON-RPC 2.0: check its address'],
    ['{"id":null,"result":1}', 'the server sent something that is not JSON-RPC 2.0: check its address'],
    ['{"id":null,"error":{"message":"odd"}}', 'the server could not read a request: odd'],
  ])('is refused as %s', (text, sentence) => {
    const refused = expect.objectContaining({ name: 'ProtocolError', message: sentence });
    expect(() => client().receive(text)).toThrow(refused);
  });
});
