import { describe, expect, test } from '@jest/globals';
import { makeAlertUpdate, singleAlertsOf } from '../../src/callers/core/alert-update.ts';

describe('the key of an alert', () => {
  test('is kept as it came', () => expect(makeAlertUpdate('{}:{a="b"}', 'firing')?.key).toBe('{}:{a="b"}'));

  test('is none without text', () => expect(makeAlertUpdate(' \u0000 ', 'firing')).toBeNull());

  test('is at most 500 characters, and still another one for another group', () => {
    const keys = ['x', 'y'].map((end) => makeAlertUpdate('🔥'.repeat(400) + end, 'resolved')!.key);
    expect(keys.map((key) => key.length)).toEqual([500, 500]);
    expect(keys[0]).not.toBe(keys[1]);
    expect(keys[0]!.isWellFormed()).toBe(true);
  });
});

describe('the alerts of a group', () => {
  const alert = { fingerprint: 'f1', startsAt: '2026-11-22T10:02:00.123456789+01:00', status: 'firing' };

  test('are told apart by fingerprint and start', () =>
    expect(singleAlertsOf([alert, { ...alert, fingerprint: 'f2', status: 'resolved' }])).toEqual([
      { fingerprint: 'f1', startsAt: alert.startsAt, state: 'firing' },
      { fingerprint: 'f2', startsAt: alert.startsAt, state: 'resolved' },
    ]));

  test.each([
    { ...alert, fingerprint: '' },
    { ...alert, startsAt: 'yesterday' },
    { ...alert, startsAt: '0001-01-01T00:00:00Z' },
    { ...alert, startsAt: null },
    {},
  ])('are none where one cannot be told apart: %j', (other) => expect(singleAlertsOf([alert, other])).toEqual([]));
});
