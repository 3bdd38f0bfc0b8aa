import { expect, test } from '@jest/globals';
import { scopes } from '../../src/model/scopes.ts';
import { settingsParts } from '../../web/core/routes.ts';
import { scopeWords, settingsWords } from '../../web/words/settings-words.ts';

test('the settings have words for each scope that a token can have, and a title for each part', () => {
  expect(Object.keys(scopeWords)).toEqual([...scopes]);
  expect(Object.keys(settingsWords.parts)).toEqual([...settingsParts]);
});
