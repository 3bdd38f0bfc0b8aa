import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { BrowserContext, Page } from 'playwright-core';
import { Receiver } from '../../support/receiver.ts';
import { postJson, type TestGroup, type TestServer } from '../../support/server.ts';
import { openAs } from './signed-in-page.ts';
import { startServerForBrowsers, WebBrowser } from './web-browser.ts';

/** With this folder in the environment, the test writes a picture of each step into it. */
const PICTURES = process.env['KLATCH_HOOK_PICTURES'];

let server: TestServer;
let browser: WebBrowser;
let profile: BrowserContext;
let page: Page;
let complaints: readonly string[];
let group: TestGroup;
let receiver: Receiver;

beforeAll(async () => {
  browser = await WebBrowser.start();
  // A failed delivery waits so long that only a person who resumes the hook makes the server send it again.
  server = await startServerForBrowsers({ delivery: { retryDelaysMs: [600_000] } });
  await server.operate('accounts.create', { nick: 'alice', name: 'Alice' });
  group = await server.createGroup('Operations');
  await server.operate('groups.add-member', { group: group.id, user: 'alice' });
  await server.operate('groups.transfer', { group: group.id, user: 'alice' });
  receiver = await Receiver.start();
  profile = await browser.newProfile({ viewport: { width: 1_280, height: 900 } });
  ({ page, complaints } = await openAs(server, profile, 'alice', `/c/${group.id}`));
});
afterAll(async () => {
  await profile.close();
  await browser.stop();
  await server.stop();
  await receiver.stop();
});

async function picture(name: string): Promise<void> {
  if (PICTURES === undefined) return;
  mkdirSync(PICTURES, { recursive: true });
  await page.screenshot({ path: join(PICTURES, `${name}.png`) });
}

const post = async (text: string): Promise<void> => {
  expect((await postJson(`${server.url}/v1/webhooks/${group.token}`, { text })).status).toBe(200);
};
const button = (name: string) => page.getByRole('button', { name, exact: true });
const sentence = () => page.locator('.hook-sentence');

/** Clicks a button that asks first, checks what it says about its consequence, and confirms. */
async function confirm(name: string, consequence: RegExp): Promise<void> {
  await button(name).click();
  await page.getByText(consequence).waitFor();
  await page.getByRole('group', { name }).getByRole('button', { name, exact: true }).click();
}

test('the life of a failing hook is seen and handled in the browser alone', async () => {
  const { port } = receiver;

  // Added.
  await button('Details').click();
  await page.getByRole('link', { name: 'Reverse webhooks: messages go to programs' }).click();
  await page.getByText('There is none yet.').waitFor();
  await button('Add a reverse webhook').click();
  await page.getByLabel('URL to which messages are sent').fill(receiver.url());
  await page.getByLabel('What it is for (optional)').fill('The pager of the people on call');
  await page.locator('.hook-form').getByRole('button', { name: 'Add a reverse webhook' }).click();
  const secret = await page.getByRole('textbox', { name: 'Secret of reverse webhook' }).inputValue();
  expect(secret).toMatch(/^whsec_/);
  await picture('1-added');
  await button('Done').click();
  await post('first');
  await receiver.received(1);
  await page.getByRole('link', { name: 'The pager of the people on call' }).click();
  await sentence().getByText('Nothing waits. Last delivery').waitFor();
  await picture('2-active');

  // The receiver dies.
  await receiver.stop();
  await post('second');
  await sentence()
    .getByText(/Failing since .*: the target refused the connection or cannot be reached\. Next attempt in \d+ min/)
    .waitFor();
  await post('third');
  await sentence().getByText('2 messages wait. The server keeps trying.').waitFor();
  await picture('3-failing');
  await button('Ping').click();
  await page.getByText(/The ping failed after \d+ ms: the target refused the connection/).waitFor();
  await picture('4-ping');

  // The receiver returns.
  receiver = await Receiver.start(() => 200, port);
  await confirm('Resume now', /sends the next message at once, and then the others: 2 messages/);
  expect((await receiver.received(2)).map(({ body }) => body.data.message.text)).toEqual(['second', 'third']);
  await sentence().getByText('Nothing waits. Last delivery').waitFor();
  await picture('5-resumed');

  // Sent again from an hour ago.
  await button('Send again').click();
  await page.getByText(/would send 3 messages, beginning with message 1/).waitFor();
  await picture('6-preview');
  await page.getByRole('group', { name: 'Send again' }).getByRole('button', { name: 'Send again' }).click();
  expect((await receiver.received(5)).slice(2).map(({ body }) => body.data.message.seq)).toEqual([1, 2, 3]);

  // A new secret.
  await confirm('Replace the secret', /with the present one too for 24 hours/);
  expect(await page.getByRole('textbox', { name: 'Secret of reverse webhook' }).inputValue()).not.toBe(secret);
  await button('Done').click();

  // Removed by 410, and restored.
  receiver.answer = () => 410;
  await post('fourth');
  await sentence()
    .getByText(/the receiver answered 410.*You can restore it until/)
    .waitFor();
  await picture('7-removed');
  receiver.answer = () => 200;
  await confirm('Restore', /from the message that it answered with 410/);
  await sentence().getByText('Nothing waits. Last delivery').waitFor();
  expect(receiver.arrivals.at(-1)!.body.data.message.text).toBe('fourth');
  await picture('8-restored');

  // The log tells all of it, and its filters find the failures.
  const log = page.getByRole('list', { name: 'Delivery log' });
  await page.getByRole('button', { name: /newer attempts?$/ }).click();
  await log.getByText('hook removed: the target answered 410').waitFor();
  await page.getByLabel('Result').selectOption('failed');
  await log.getByText('failed: the target refused the connection or cannot be reached').first().waitFor();
  expect(await log.getByText('delivered, answered 200').count()).toBe(0);
  await picture('9-log');

  // A selection of the log is sent again, after a question.
  await page.getByLabel('Result').selectOption('delivered');
  await page.getByRole('checkbox', { name: 'Send message 3 again' }).first().check();
  const arrived = receiver.arrivals.length;
  await confirm('Send 1 message again', /The receiver gets these messages again/);
  expect((await receiver.received(arrived + 1)).at(-1)!.body.data.message.text).toBe('third');
  expect(complaints).toEqual([]);
});
