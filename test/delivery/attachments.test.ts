import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { HOOK_LINK_TTL_MS, fileLinkKey, readerOfValidFileLink } from '../../src/files/signed-link.ts';
import type { Attachment } from '../../src/model/attachment.ts';
import { callAs } from '../support/call.ts';
import { testConfig } from '../support/config.ts';
import { insertFile } from '../support/files.ts';
import { createPerson, type TestPerson } from '../support/people.ts';
import { Receiver } from '../support/receiver.ts';
import { postJson, TestServer, type TestGroup } from '../support/server.ts';

/**
 * The delay of a retry, from which jitter may subtract a fifth. The rest exceeds the time for which messages are
 * cached, so the next attempt reads them again.
 */
const RETRY_MS = 1_500;

let server: TestServer;
let receiver: Receiver;
let alice: TestPerson;
let group: TestGroup;

beforeAll(async () => {
  server = await TestServer.start({ delivery: { retryDelaysMs: [RETRY_MS] } });
  receiver = await Receiver.start();
  alice = await createPerson(server, 'alice');
});
afterAll(async () => {
  await server.stop();
  await receiver.stop();
});

type Forwarded = Attachment & { readonly url: string };

const messageOf = (body: unknown): { text: string; deleted?: true; attachments: Forwarded[] } =>
  (body as { data: { message: { text: string; attachments: Forwarded[] } } }).data.message;

/** The group and the expiry in a file's link; null if the link has expired, was changed, or belongs to an account. */
function readLink({ url }: Forwarded): { group: number; expiresAt: number } | null {
  const { origin, pathname, searchParams } = new URL(url);
  expect(origin).toBe('http://klatch.example');
  const [, id, name] = /^\/v1\/files\/([\w-]{22})\/([^/]+)$/.exec(pathname)!;
  const key = fileLinkKey(testConfig(server.database.target, '/').secret);
  const file = { id: id!, name: decodeURIComponent(name!) };
  const reader = readerOfValidFileLink(key, file, { query: searchParams, nowMs: Date.now() });
  if (reader?.kind !== 'conversation') return null;
  return { group: reader.id, expiresAt: Number(searchParams.get('expires')) * 1_000 };
}

/** Makes a group with alice as a member, and a hook whose receiver gets requests at this path. */
async function follow(path: string, options: object = {}): Promise<void> {
  group = await server.createGroup();
  await server.operate('groups.add-member', { group: group.id, user: 'alice' });
  const registered = await postJson(`${group.webhook}/reverse`, { url: receiver.url(path), ...options });
  expect(registered.status).toBe(201);
}

const arrived = async (path: string, count: number) => {
  for (let all = 1; ; all += 1) {
    const own = (await receiver.received(all)).filter((arrival) => arrival.path === path);
    if (own.length >= count) return own;
  }
};

describe('a forwarded message with files', () => {
  test('names them with links that anybody may follow who hears the group, made anew at each attempt', async () => {
    await follow('/retried');
    let failures = 1;
    receiver.answer = () => (failures-- > 0 ? 500 : 200);
    const file = await insertFile(server, alice.id, { name: 'Über 50 % & more.pdf' });
    const before = Date.now();
    await callAs(server, alice, 'messages.send', { conversation: group.id, text: '', files: [file.id] });
    const [first, second] = (await arrived('/retried', 2)).map(({ body }) => messageOf(body));
    for (const message of [first!, second!]) {
      expect(message).toMatchObject({ text: '', attachments: [file] });
      expect(Object.keys(message.attachments[0]!)).toEqual(['id', 'name', 'type', 'size', 'url']);
    }
    const links = [first!, second!].map(({ attachments }) => readLink(attachments[0]!)!);
    expect(links.map((link) => link.group)).toEqual([group.id, group.id]);
    expect(links[0]!.expiresAt).toBeGreaterThan(before + HOOK_LINK_TTL_MS - 2_000);
    expect(links[1]!.expiresAt).toBeGreaterThanOrEqual(links[0]!.expiresAt + 1_000);
  });

  test('is forwarded in a batch in the same way', async () => {
    await follow('/batch', { batch: 10 });
    let failures = 1;
    receiver.answer = () => (failures-- > 0 ? 500 : 200);
    const [one, two] = [await insertFile(server, alice.id), await insertFile(server, alice.id, { name: 'two' })];
    await callAs(server, alice, 'messages.send', { conversation: group.id, text: 'both', files: [two.id, one.id] });
    const [first, second] = (await arrived('/batch', 2)).map(({ body }) => messageOf((body as unknown[])[0]));
    expect(second!.attachments).toMatchObject([two, one]);
    const [early, late] = [first!, second!].map(({ attachments }) => readLink(attachments[1]!)!.expiresAt);
    expect(late).toBeGreaterThan(early!);
  });

  test('that was deleted meanwhile has neither files nor links to them', async () => {
    await follow('/deleted');
    const deleted = Promise.withResolvers<void>();
    let failures = 1;
    // The first attempt fails only after the message is deleted, so that the second attempt surely comes after the
    // deletion.
    receiver.answer = async () => {
      if (failures-- <= 0) return 200;
      await deleted.promise;
      return 500;
    };
    const file = await insertFile(server, alice.id);
    const sent = { conversation: group.id, text: 'oops', files: [file.id] };
    const { seq } = await callAs<{ seq: number }>(server, alice, 'messages.send', sent);
    await arrived('/deleted', 1);
    await callAs(server, alice, 'messages.delete', { conversation: group.id, seq });
    deleted.resolve();
    const [, second] = (await arrived('/deleted', 2)).map(({ body }) => messageOf(body));
    expect(second).toMatchObject({ text: '', deleted: true, attachments: [] });
  });

  test('that is redelivered has links of that moment', async () => {
    await follow('/again');
    receiver.answer = () => 200;
    const file = await insertFile(server, alice.id);
    const sent = { conversation: group.id, text: '/report now', files: [file.id] };
    const { id } = await callAs<{ id: string }>(server, alice, 'messages.send', sent);
    const [first] = await arrived('/again', 1);
    expect(first!.body.data.command).toEqual({ name: 'report', text: 'now' });
    const earlier = readLink(messageOf(first!.body).attachments[0]!)!.expiresAt;
    // After this wait, a new link expires at a later second than the first one.
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    const [hook] = (await (await fetch(`${group.webhook}/reverse`)).json()) as { id: number }[];
    const again = await postJson(`${group.webhook}/reverse/${hook!.id}/redeliver`, { only: [id] });
    expect(again.status).toBe(202);
    const [, second] = await arrived('/again', 2);
    expect(readLink(messageOf(second!.body).attachments[0]!)!.expiresAt).toBeGreaterThan(earlier);
  });
});
