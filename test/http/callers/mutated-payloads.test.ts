import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { formats } from '../../../src/callers/formats.ts';
import { mutatedPayloads, readPayloads } from '../../callers/mutated-payloads.ts';
import { PATIENT } from '../../support/config.ts';
import { TestServer, type TestGroup } from '../../support/server.ts';
import { storedMessages } from '../wire.ts';

const PAYLOADS_OF_A_FORMAT = 100;
const CONNECTIONS = 8;

let server: TestServer;
let group: TestGroup;
beforeAll(async () => {
  server = await TestServer.start({
    ...PATIENT,
    limits: { postsPerSecondPerToken: 100_000, postBurstPerToken: 100_000 },
  });
  group = await server.createGroup();
});
afterAll(() => server.stop());

/** The statuses mean, in order: posted; ignored; no content to show; the text that remains is too long. */
const EXPECTED_STATUSES = [200, 204, 400, 413];

test.each(formats)('mutated payloads of $name are taken, or refused in a sentence', async (format) => {
  const own = readPayloads().filter((payload) => payload.format === format);
  const payloads = mutatedPayloads(own, PAYLOADS_OF_A_FORMAT, 3);
  const statuses = new Set<number>();
  let posted = 0;
  const postInTurn = async (): Promise<void> => {
    for (const { fixture } of payloads) {
      posted += 1;
      const url = posted % 2 === 0 ? group.webhook : `${group.webhook}/${format.name}`;
      const answer = await fetch(fixture.query === undefined ? url : `${url}?${fixture.query}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...fixture.headers },
        body: JSON.stringify(fixture.body),
      });
      await answer.arrayBuffer();
      statuses.add(answer.status);
    }
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, postInTurn));
  expect(posted).toBe(PAYLOADS_OF_A_FORMAT);
  expect(statuses).toContain(200);
  expect([...statuses].filter((status) => !EXPECTED_STATUSES.includes(status))).toEqual([]);
});

test('no stored text is longer than a message may be', async () => {
  const texts = (await storedMessages(server, group)).map(({ text }) => text);
  expect(texts.length).toBeGreaterThan(0);
  expect(texts.filter((text) => Array.from(text).length > 40_000 || !text.isWellFormed())).toEqual([]);
});
