import { expect, test } from '@jest/globals';
import { KlatchError } from '../../src/errors.ts';
import type { ConversationId, HookId } from '../../src/model/ids.ts';
import { controlHook } from '../../src/operations/hook-control.ts';
import type { Services } from '../../src/operations/services.ts';
import { DatabaseLostError } from '../../src/storage/database-error.ts';

const hook = { conversationId: 7 as ConversationId, hookId: 5 as HookId };

/** Only what a control write works with; the words that it publishes are kept. */
function servicesWith(transaction: () => Promise<unknown>): { services: Services; words: unknown[] } {
  const words: unknown[] = [];
  const bus = { publish: (...word: unknown[]) => words.push(word) };
  return { services: { bus, database: { general: { transaction } } } as unknown as Services, words };
}

const control = { unknown: 'It may have been done', work: () => Promise.resolve('done') };

test('a control write is told to the lanes before it is answered', async () => {
  const { services, words } = servicesWith(() => Promise.resolve('done'));
  expect(await controlHook(services, hook, control)).toBe('done');
  expect(words).toEqual([['hooksChanged', [7]]]);
});

test('one whose answer was lost says so, and is told to the lanes as well: it may be a change', async () => {
  const { services, words } = servicesWith(() => Promise.reject(new DatabaseLostError('lost')));
  const lost = await controlHook(services, hook, control).catch((error: unknown) => error);
  expect(lost).toBeInstanceOf(KlatchError);
  expect(lost).toMatchObject({ code: 'outcome_unknown', message: 'It may have been done' });
  expect(words).toEqual([['hooksChanged', [7]]]);
});
