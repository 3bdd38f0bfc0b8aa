import { createHash } from 'node:crypto';
import type { AlertUpdate, SingleAlert } from './message-form.ts';
import { momentOf } from './moments.ts';
import { storableText } from './plain-text.ts';
import { stringOf, type JsonObject } from './values.ts';

const MAX_KEY_LENGTH = 500;
const MAX_FINGERPRINT_LENGTH = 200;
const HASH_LENGTH = 64;

/**
 * Makes the update of the alert with this key. Null if the key has only white space and control characters. A key that
 * is too long is cut, and its hash is appended.
 */
export function makeAlertUpdate(
  key: string,
  state: AlertUpdate['state'],
  alerts: readonly SingleAlert[] = [],
  details: Pick<AlertUpdate, 'isReplacement' | 'onlyAfterFiring' | 'since'> = {},
): AlertUpdate | null {
  const storable = storableText(key).trim();
  if (storable === '') return null;
  return { key: boundedKey(storable), state, alerts, ...details };
}

function boundedKey(key: string): string {
  if (key.length <= MAX_KEY_LENGTH) return key;
  const hash = createHash('sha256').update(key).digest('hex');
  return key.slice(0, MAX_KEY_LENGTH - HASH_LENGTH - 1).toWellFormed() + ' ' + hash;
}

/**
 * Reads the single alerts of a group. Empty if any of them lacks a usable fingerprint or start: with only some of its
 * alerts, a changed group could look like a repeated post.
 */
export function singleAlertsOf(alerts: readonly JsonObject[]): readonly SingleAlert[] {
  const found: SingleAlert[] = [];
  for (const alert of alerts) {
    const [fingerprint, startsAt] = [stringOf(alert['fingerprint']), stringOf(alert['startsAt'])];
    if (fingerprint === '' || fingerprint.length > MAX_FINGERPRINT_LENGTH || momentOf(startsAt) === null) return [];
    found.push({ fingerprint: storableText(fingerprint), startsAt: startsAt.trim(), state: alertState(alert) });
  }
  return found;
}

export const alertState = (alert: JsonObject): AlertUpdate['state'] =>
  alert['status'] === 'resolved' ? 'resolved' : 'firing';
