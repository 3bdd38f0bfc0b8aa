import { expect, test } from '@jest/globals';
import { groupAddresses } from '../../src/callers/group-addresses.ts';
import { programs } from '../../src/callers/programs.ts';

const group = { baseUri: 'https://example.org/chat', token: 'TOKEN', hasCallerPaths: true };

test('each way to reach a group is filled in, behind the path of the server', () => {
  const shown = groupAddresses(group).map(({ name, values }) => [name, ...values.map((each) => each.value)]);
  expect(shown).toEqual([
    ['Webhook', 'https://example.org/chat/v1/webhooks/TOKEN'],
    ['Slack', 'https://example.org/chat/v1/webhooks/TOKEN/slack'],
    ['Discord', 'https://example.org/chat/v1/webhooks/TOKEN/discord'],
    ['Teams', 'https://example.org/chat/v1/webhooks/TOKEN/teams'],
    ['Google Chat', 'https://example.org/chat/v1/webhooks/TOKEN/google-chat'],
    ['JSON', 'https://example.org/chat/v1/webhooks/TOKEN/json'],
    ['Jenkins', 'https://example.org/chat/v1/webhooks/', 'TOKEN'],
    ['Mattermost', 'https://example.org/chat', 'TOKEN'],
    ['Discord library', 'https://example.org/chat/api', '1', 'TOKEN'],
    ['Gotify', 'https://example.org/chat', 'TOKEN'],
    ['ntfy', 'https://example.org/chat/v1/webhooks', 'TOKEN'],
    ['Telegram bot', 'https://example.org/chat', '100:TOKEN'],
  ]);
});

test('without the paths of other products those are left out that need them', () => {
  const names = groupAddresses({ ...group, hasCallerPaths: false }).map(({ name }) => name);
  expect(names).toEqual(['Webhook', 'Slack', 'Discord', 'Teams', 'Google Chat', 'JSON', 'Jenkins', 'ntfy']);
});

test('every program is named beside an address, those first for which it is the recommended one', () => {
  const shown = groupAddresses(group);
  const named = new Set(shown.flatMap((address) => address.programs));
  expect([...named].sort()).toEqual(programs.map(({ name }) => name).sort());
  const slack = shown.find(({ name }) => name === 'Slack')!.programs;
  expect(slack.indexOf('Healthchecks')).toBeLessThan(slack.indexOf('Alertmanager'));
  expect(new Set(slack).size).toBe(slack.length);
});
