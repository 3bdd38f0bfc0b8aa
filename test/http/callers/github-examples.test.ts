import { randomUUID } from 'node:crypto';
import { createRequire } from 'node:module';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { isIgnored } from '../../../src/callers/core/message-form.ts';
import { renderText } from '../../../src/callers/core/render-text.ts';
import type { JsonObject } from '../../../src/callers/core/values.ts';
import { github } from '../../../src/callers/github.ts';
import { mentionsOf } from '../../../src/model/mentions.ts';
import { PATIENT } from '../../support/config.ts';
import { TestServer, type TestGroup } from '../../support/server.ts';
import { storedMessages } from '../wire.ts';

const examples = createRequire(import.meta.url)('@octokit/webhooks-examples') as readonly {
  readonly name: string;
  readonly examples: readonly JsonObject[];
}[];
const events = examples.flatMap(({ name, examples: bodies }) => bodies.map((body) => ({ name, body })));
type Event = (typeof events)[number];
const CONNECTIONS = 8;

let server: TestServer;
let group: TestGroup;
beforeAll(async () => {
  server = await TestServer.start(PATIENT);
});
afterAll(() => server.stop());
beforeEach(async () => {
  group = await server.createGroup();
});

/** Delivers an event as GitHub does: as JSON, or as a form with the field `payload`. */
async function deliver(
  { name, body }: Event,
  { path = '', isForm = false, id = randomUUID() }: { path?: string; isForm?: boolean; id?: string } = {},
): Promise<{ status: number; text: string }> {
  const json = JSON.stringify(body);
  const answer = await fetch(group.webhook + path, {
    method: 'POST',
    headers: {
      'content-type': isForm ? 'application/x-www-form-urlencoded' : 'application/json',
      'user-agent': 'GitHub-Hookshot/044aadd',
      'x-github-event': name,
      'x-github-delivery': id,
      'x-github-hook-id': '292430182',
      'x-hub-signature-256': 'sha256=',
    },
    body: isForm ? new URLSearchParams({ payload: json }).toString() : json,
  });
  return { status: answer.status, text: await answer.text() };
}

/** Delivers all examples over several connections at the same time. */
async function deliverAll(way: { readonly path: string; readonly isForm: boolean }) {
  const left = events.values();
  const answers: Awaited<ReturnType<typeof deliver>>[] = [];
  const deliverInTurn = async (): Promise<void> => {
    for (const event of left) answers.push(await deliver(event, way));
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, deliverInTurn));
  return answers;
}

/** The text of an event in a group that keeps no state of alerts; null: the event is not shown. */
function textOf({ name, body }: Event): string | null {
  const form = github.read({ body, headers: { 'x-github-event': name }, query: new URLSearchParams() });
  return isIgnored(form) ? null : renderText(form);
}

const shownWithoutMemory = events.filter((event) => {
  const form = github.read({
    body: event.body,
    headers: { 'x-github-event': event.name },
    query: new URLSearchParams(),
  });
  return !isIgnored(form) && form.alert === null;
});

describe.each([
  ['as JSON on the address of the group', { path: '', isForm: false }],
  ['as a form on the address of the group', { path: '', isForm: true }],
  ['as JSON behind /github', { path: '/github', isForm: false }],
  ['as a form behind /github', { path: '/github', isForm: true }],
])('the examples of all events of GitHub, %s', (_name, way) => {
  test('are all taken, and those that are shown mention nobody', async () => {
    const answers = await deliverAll(way);
    const refused = answers.filter(({ status }) => status !== 200);
    expect([answers.length, refused]).toEqual([329, []]);
    const texts = (await storedMessages(server, group)).map(({ text }) => text);
    expect(texts).toEqual(expect.arrayContaining(shownWithoutMemory.map(textOf)));
    expect(texts.flatMap((text) => mentionsOf(text))).toEqual([]);
  });
});

test('an event that is delivered again under its id is one message', async () => {
  const [shown] = shownWithoutMemory;
  const id = randomUUID();
  const first = await deliver(shown!, { id });
  expect(await deliver(shown!, { id })).toEqual(first);
  expect(await deliver(shown!, { id, path: '/github' })).toEqual(first);
  expect(await storedMessages(server, group)).toHaveLength(1);
});

test('a comment that names a member mentions nobody', async () => {
  const comment = events.find(({ name, body }) => name === 'issue_comment' && body['action'] === 'created')!;
  const text = 'see @ada, and @here';
  const body = { ...comment.body, comment: { ...(comment.body['comment'] as JsonObject), body: text } };
  expect((await deliver({ ...comment, body })).status).toBe(200);
  const [stored] = await storedMessages(server, group);
  expect(stored!.text).toContain('see @\u2060ada');
  expect(mentionsOf(stored!.text)).toEqual([]);
});
