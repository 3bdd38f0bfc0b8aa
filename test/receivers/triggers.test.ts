import { expect, test } from '@jest/globals';
import { findTrigger } from '../../src/receivers/triggers.ts';

test.each([
  ['!ping', '!'],
  ['  !ping', '!'],
  ['! ping', '!'],
  ['deploy web', 'deploy'],
  ['deploy\nweb', 'deploy'],
  ['/run now', '/run'],
  ['🔴 HighCPU', '🔴'],
])('%j begins with the trigger %j', (text, trigger) => {
  expect(findTrigger(text, ['!', 'deploy', '/run', '🔴'])).toBe(trigger);
});

test.each(['', ' ', 'ping!', 'deployed', 'Deploy web', 'please deploy', '/running', '?'])(
  '%j begins with none',
  (text) => {
    expect(findTrigger(text, ['!', 'deploy', '/run', '🔴'])).toBeNull();
  },
);

test('the first trigger that fits is the one', () => {
  expect(findTrigger('!!now', ['!', '!!'])).toBe('!');
  expect(findTrigger('!!now', ['!!', '!'])).toBe('!!');
});
