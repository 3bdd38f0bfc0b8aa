import { expect, test } from '@jest/globals';
import { parseNtfyActions } from '../../src/callers/core/ntfy-actions.ts';

test.each([
  ['view, Open, https://a.example', [{ action: 'view', label: 'Open', url: 'https://a.example' }]],
  ['view,Open,https://a.example;', [{ action: 'view', label: 'Open', url: 'https://a.example' }]],
  [
    'action=view, url=https://a.example/?a=1&b=2, label=Open it; http, Stop, https://b.example, method=PUT',
    [
      { action: 'view', url: 'https://a.example/?a=1&b=2', label: 'Open it' },
      { action: 'http', label: 'Stop', url: 'https://b.example', method: 'PUT' },
    ],
  ],
  [
    String.raw`view, "Open; \"now\", please", url='https://a.example'`,
    [{ action: 'view', label: 'Open; "now", please', url: 'https://a.example' }],
  ],
  ['view, "not closed, https://a.example', [{ action: 'view', label: 'not closed, https://a.example' }]],
  ['view, Open, https://a.example, four, five', [{ action: 'view', label: 'Open', url: 'https://a.example' }]],
  ['', []],
  ['broadcast', [{ action: 'broadcast' }]],
])('reads %s', (text, actions) => expect(parseNtfyActions(text)).toEqual(actions));

test('reads ten actions at most', () => expect(parseNtfyActions('view,a,b;'.repeat(50))).toHaveLength(10));
