import { describe, expect, test } from '@jest/globals';
import {
  applyAlertUpdate,
  MAX_SENDER_ALERTS,
  type PostedAlertState,
  type AlertStatus,
  type AlertUpdate,
  type SenderAlert,
} from '../../src/model/alert.ts';

const RECEIVED = new Date('2026-11-23T12:00:00Z');
const at = (time: string): Date => new Date(`2026-11-23T${time}:00Z`);
const firing = (fingerprint: string, start = '10:00'): SenderAlert => ({
  fingerprint,
  startsAt: at(start),
  state: 'firing',
});
const resolved = (fingerprint: string, start = '10:00'): SenderAlert => ({
  ...firing(fingerprint, start),
  state: 'resolved',
});
const update = (state: AlertStatus, ...senderAlerts: SenderAlert[]): AlertUpdate => ({
  state,
  senderAlerts,
  fallbackStartedAt: RECEIVED,
});

/** The state of an alert after these updates, and for each update whether it changed the state. */
function after(...updates: AlertUpdate[]): { known: PostedAlertState; changes: boolean[] } {
  let known = null as PostedAlertState | null;
  const changes = updates.map((each) => {
    const change = applyAlertUpdate(known, each);
    known = change?.after ?? known;
    return change !== null;
  });
  return { known: known!, changes };
}

const fingerprints = ({ senderAlerts }: PostedAlertState, state: AlertStatus): string[] =>
  senderAlerts.filter((alert) => alert.state === state).map(({ fingerprint }) => fingerprint);

describe('an update with alerts of its own', () => {
  test('changes nothing when it is repeated, or tells only an earlier state', () => {
    const updates = [
      update('firing', firing('a')),
      update('firing', firing('a')),
      update('firing', firing('a'), firing('b', '10:05')),
      update('firing', firing('a')),
      update('firing', resolved('a'), firing('b', '10:05')),
      update('firing', firing('a'), firing('b', '10:05')),
      update('resolved', resolved('a'), resolved('b', '10:05')),
      update('firing', resolved('a'), firing('b', '10:05')),
      update('firing', firing('a')),
      update('resolved', resolved('b', '10:05')),
    ];
    const { known, changes } = after(...updates);
    expect(changes).toEqual([true, false, true, false, true, false, true, false, false, false]);
    expect(known).toEqual({
      state: 'resolved',
      since: at('10:00'),
      senderAlerts: [resolved('a'), resolved('b', '10:05')],
    });
  });

  test('in any order leads to the same state, whatever comes twice', () => {
    const updates = [
      update('firing', firing('a')),
      update('firing', firing('a'), firing('b', '10:05')),
      update('firing', resolved('a'), firing('b', '10:05')),
      update('resolved', resolved('a'), resolved('b', '10:05')),
    ];
    const orders = permutations([0, 1, 2, 3]);
    for (const order of orders) {
      const { known } = after(...order.map((index) => updates[index]!), updates[order[0]!]!);
      expect([order, known.state, fingerprints(known, 'resolved').sort()]).toEqual([order, 'resolved', ['a', 'b']]);
    }
  });

  test('fires while one of its alerts does, whatever the sender says of all', () => {
    expect(after(update('firing', resolved('a'), firing('b'))).known.state).toBe('firing');
    expect(after(update('firing', firing('a')), update('firing', resolved('a'))).known.state).toBe('resolved');
  });

  test('is a new incident where nothing was known or all was resolved, and begins with its earliest alert', () => {
    const first = applyAlertUpdate(null, update('firing', firing('a', '10:05'), firing('b')))!;
    expect(first).toMatchObject({ isNewIncident: true, after: { since: at('10:00') } });
    const more = applyAlertUpdate(
      first.after,
      update('firing', firing('a', '10:05'), firing('b'), firing('c', '09:00')),
    )!;
    expect(more).toMatchObject({ isNewIncident: false, after: { since: at('10:00') } });
    const all = ['a', 'b', 'c'].map((name, index) => resolved(name, ['10:05', '10:00', '09:00'][index]));
    const over = applyAlertUpdate(more.after, update('resolved', ...all))!;
    expect(over).toMatchObject({ isNewIncident: false, after: { state: 'resolved', since: at('10:00') } });
    const again = applyAlertUpdate(over.after, update('firing', firing('b', '11:30')))!;
    expect(again).toMatchObject({ isNewIncident: true, after: { state: 'firing', since: at('11:30') } });
    expect(applyAlertUpdate(null, update('resolved', resolved('a')))).toMatchObject({ isNewIncident: true });
  });

  test('that all is resolved forgets what the sender reports no more, and shows it if it comes back', () => {
    const silenced = after(update('firing', firing('a'), firing('b')), update('resolved', resolved('a')));
    expect(silenced.known).toMatchObject({ state: 'resolved', senderAlerts: [resolved('a')] });
    expect(applyAlertUpdate(silenced.known, update('firing', firing('b')))).toMatchObject({ isNewIncident: true });
  });

  test('that says nothing of the others leaves them as they are', () => {
    const { known, changes } = after(
      update('firing', firing('a'), firing('b')),
      update('firing', firing('a'), firing('c')),
    );
    expect([changes, fingerprints(known, 'firing')]).toEqual([
      [true, true],
      ['a', 'b', 'c'],
    ]);
  });
});

describe('an alert that fires several times', () => {
  test('is ended once by the last of its ends, however late those of earlier times come', () => {
    const again = [update('firing', firing('a')), update('firing', firing('a', '11:00'))];
    const late = after(...again, update('resolved', resolved('a')), update('firing', firing('a')));
    expect([late.changes, late.known.state]).toEqual([[true, true, false, false], 'firing']);
    // Here the update that began the first incident never arrived, and its end comes after the second incident began.
    const unknown = after(again[1]!, update('resolved', resolved('a')));
    expect([unknown.changes, unknown.known.state]).toEqual([[true, false], 'firing']);
    const ended = after(...again, update('resolved', resolved('a', '11:00')));
    expect([ended.known.state, fingerprints(ended.known, 'firing')]).toEqual(['resolved', []]);
  });

  test('is ended by the end of a time that was not heard of', () => {
    const { known } = after(update('firing', firing('a')), update('resolved', resolved('a', '11:00')));
    expect([known.state, fingerprints(known, 'firing')]).toEqual(['resolved', []]);
  });

  test('is ended as it was told last when its start was corrected to an earlier one', () => {
    const corrected = after(update('firing', firing('a', '10:20')), update('firing', firing('a', '10:05')));
    expect([corrected.changes, fingerprints(corrected.known, 'firing')]).toEqual([[true, true], ['a']]);
    expect(applyAlertUpdate(corrected.known, update('firing', firing('a', '10:20')))).toBeNull();
    const ended = applyAlertUpdate(corrected.known, update('resolved', resolved('a', '10:05')))!;
    expect(ended.after.state).toBe('resolved');
  });

  test('that is there twice in one update is in its later state', () => {
    for (const both of [
      [firing('a'), resolved('a')],
      [resolved('a'), firing('a')],
    ])
      expect(after(update('firing', ...both)).known).toMatchObject({
        state: 'resolved',
        senderAlerts: [resolved('a')],
      });
  });
});

describe('an update without alerts of its own', () => {
  test('is taken as the newest, whatever came before', () => {
    const { known, changes } = after(update('resolved'), update('firing'), update('firing'), update('resolved'));
    expect(changes).toEqual([true, true, true, true]);
    expect(known).toEqual({ state: 'resolved', since: RECEIVED, senderAlerts: [] });
  });

  test('that all is resolved ends the alerts that are known of the sender', () => {
    expect(after(update('firing', firing('a')), update('resolved')).known).toMatchObject({
      state: 'resolved',
      senderAlerts: [],
    });
  });
});

describe(`of more than ${MAX_SENDER_ALERTS} alerts`, () => {
  const many = (count: number): SenderAlert[] =>
    Array.from({ length: count }, (_, n) => firing(String(n).padStart(5, '0')));

  test('always the same ones are kept, so that a repetition changes nothing in whatever order', () => {
    const alerts = many(MAX_SENDER_ALERTS + 100);
    const { known, changes } = after(update('firing', ...alerts), update('firing', ...alerts.toReversed()));
    expect([known.senderAlerts.length, changes]).toEqual([MAX_SENDER_ALERTS, [true, false]]);
  });

  test('those that fire are kept before others', () => {
    const over = many(MAX_SENDER_ALERTS).map((alert): SenderAlert => ({ ...alert, state: 'resolved' }));
    const { known } = after(update('firing', ...over, firing('z')));
    expect([known.state, known.senderAlerts.length]).toEqual(['firing', MAX_SENDER_ALERTS]);
  });

  test('the newest update stays, and of what was known before the resolved ones go first', () => {
    const { known } = after(
      update('firing', firing('old'), resolved('over'), ...many(MAX_SENDER_ALERTS - 3)),
      update('firing', firing('new one'), firing('new two')),
    );
    expect(known.senderAlerts).toHaveLength(MAX_SENDER_ALERTS);
    const names = known.senderAlerts.map(({ fingerprint }) => fingerprint);
    expect(['old', 'new one', 'new two'].every((name) => names.includes(name))).toBe(true);
    expect(names).not.toContain('over');
  });
});

function permutations(items: readonly number[]): number[][] {
  if (items.length === 0) return [[]];
  return items.flatMap((item) => permutations(items.filter((other) => other !== item)).map((rest) => [item, ...rest]));
}
