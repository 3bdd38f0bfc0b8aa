import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { request } from '../../http/wire.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { eventually } from '../../support/eventually.ts';
import { Workspace, type Program } from '../program.ts';

let database: TestDatabase;
let workspace: Workspace;
let server: Program;
let port: number;
beforeAll(async () => {
  database = await createTestDatabase();
  workspace = await Workspace.create();
});
afterAll(async () => {
  await workspace.remove();
  await database.drop();
});

async function serve(...lines: readonly string[]): Promise<void> {
  await workspace.configure(database.target, lines);
  const serving = await workspace.serve();
  ({ server } = serving);
  port = Number(new URL(serving.url).port);
}

test('group info has the addresses for other programs, and the posts that were refused', async () => {
  await serve('http.base-uri = "https://klatch.example/chat"');
  const { stdout } = await workspace.run(['group', 'create', 'Operations', '--json']);
  const token = (JSON.parse(stdout) as { webhook: string }).webhook.split('/').at(-1)!;
  // \x9b is the control character that some terminals read as ESC [.
  const headers = { 'user-agent': '\x9b31mAlerts/1.0', 'content-type': 'application/json' };
  const path = `/v1/webhooks/${token}/slack`;
  for (const body of ['{}', '{}', '{']) expect((await request(port, { path, headers, body })).status).toBe(400);
  const shown = await eventually(
    async () => (await workspace.run(['group', 'info', 'Operations'])).stdout,
    (text) => / 2 +31mAlerts/.test(text) && / 1 +31mAlerts/.test(text),
  );
  expect(shown).not.toMatch(/[\u007f-\u009f]/);
  const at = '\\d{4}-\\d{2}-\\d{2}T[\\d:.]+Z';
  expect(shown).toMatch(
    new RegExp(
      '\\n\\nPosts of the last 7 days that were refused for what they hold:\\n' +
        'LAST +POSTS +PROGRAM +READ AS +CODE +ANSWER\\n' +
        `${at} +1 +31mAlerts/1\\.0 +slack +invalid_input +The body is not valid JSON.*\\n` +
        `${at} +2 +31mAlerts/1\\.0 +slack +invalid_input +The body was read as slack, and nothing in it can be shown\\n$`,
    ),
  );
  const base = 'https://klatch.example/chat';
  expect(shown).toContain('\n\nPaste into other programs (docs/callers.md has the lines for each of them):\n');
  expect(shown).toMatch(/\nFOR +PASTE +SUCH AS\n/);
  for (const [name, pasted, programs] of [
    ['Webhook', `${base}/v1/webhooks/${token}`, 'Alertmanager, Grafana, Uptime Kuma, GitHub and \\d+ more'],
    ['Slack', `${base}/v1/webhooks/${token}/slack`, 'Healthchecks, .*'],
    ['Gotify', `server ${base}, token ${token}`, 'Proxmox VE, .*'],
    ['ntfy', `server ${base}/v1/webhooks, topic ${token}`, 'ntfy clients'],
    ['Telegram bot', `base URL ${base}, token 100:${token}`, '.*'],
  ] as const)
    expect(shown).toMatch(new RegExp(`^${name} +${pasted} +${programs}$`, 'm'));
});

test('without http.caller-paths the addresses are left out that need them', async () => {
  await server.stop();
  await serve('http.caller-paths = false');
  const { stdout } = await workspace.run(['group', 'info', 'Operations']);
  expect(stdout).toMatch(/^Slack +http/m);
  expect(stdout).not.toMatch(/^(?:Gotify|Mattermost|Telegram bot) /m);
});
