import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { eventually } from '../../support/eventually.ts';
import type { TestServer } from '../../support/server.ts';
import { openAs } from './signed-in-page.ts';
import { startServerForBrowsers, WebBrowser } from './web-browser.ts';

let server: TestServer;
let browser: WebBrowser;
beforeAll(async () => {
  browser = await WebBrowser.start();
  server = await startServerForBrowsers();
});
afterAll(async () => {
  await browser.stop();
  await server.stop();
});

test('the nick of a member is completed by keys and by the pointer, and nothing moves meanwhile', async () => {
  const { id } = await server.createGroup('Mentions');
  for (const [nick, name] of [
    ['alice', 'Alice'],
    ['bob', 'Bob Builder <b>'],
    ['beth', 'Beth'],
    ['outsider', 'Not a member'],
  ] as const) {
    await server.operate('accounts.create', { nick, name });
    if (nick !== 'outsider') await server.operate('groups.add-member', { group: id, user: nick });
  }
  const { page, complaints } = await openAs(server, await browser.newProfile(), 'alice', `/c/${id}`);
  const field = page.getByRole('textbox');
  const options = page.getByRole('option');
  const before = await field.boundingBox();
  await field.pressSequentially('ask @b');
  await eventually(
    () => options.allInnerTexts(),
    (texts) => JSON.stringify(texts) === JSON.stringify(['Beth @beth', 'Bob Builder <b> @bob']),
  );
  expect(await field.boundingBox()).toEqual(before);
  await field.press('ArrowDown');
  expect(await options.nth(1).getAttribute('aria-selected')).toBe('true');
  expect(await field.getAttribute('aria-activedescendant')).toBe(await options.nth(1).getAttribute('id'));
  await field.press('Enter');
  expect([await field.inputValue(), await options.count()]).toEqual(['ask @bob ', 0]);

  // A word of the name finds the person too, even if the mention is in the middle of the text. Tab accepts the option.
  await field.press('Home');
  await field.pressSequentially('@bui');
  await options.first().waitFor();
  await field.press('Tab');
  expect(await field.inputValue()).toBe('@bob ask @bob ');
  await field.pressSequentially('and ');
  expect(await field.inputValue()).toBe('@bob and ask @bob ');

  // Esc closes the options and leaves the text. Without options, Enter sends the text.
  await field.fill('');
  await field.pressSequentially('@be');
  await options.first().waitFor();
  await field.press('Escape');
  expect([await field.inputValue(), await options.count()]).toEqual(['@be', 0]);
  await field.pressSequentially('t');
  await options.first().click();
  expect(await field.inputValue()).toBe('@beth ');
  await field.press('Enter');
  await page.getByRole('article').getByText('@beth').waitFor();
  await field.pressSequentially('@out');
  await field.press('Enter');
  await page.getByRole('article').getByText('@out').waitFor();
  expect(complaints).toEqual([]);
});
