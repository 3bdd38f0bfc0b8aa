import type { AccountId } from '../model/ids.ts';
import type { PresenceUpdate } from './bus.ts';

/** The separators of the fields of a snapshot and of its accounts; commas separate the items of a notification. */
const FIELD_SEPARATOR = '!';
const ACCOUNT_SEPARATOR = '.';
const RADIX = 36;
/**
 * The maximum number of accounts in one part of a snapshot. An account takes about 3 bytes, and a part fits into a
 * notification for any ids.
 */
const ACCOUNTS_PER_PART = 500;

/**
 * Encodes a presence update as an item of a notification. A snapshot has its accounts in ascending order, each as the
 * difference to the previous one.
 */
export function encodePresence(update: PresenceUpdate): string {
  switch (update.kind) {
    case 'change':
      return `${update.number}:${update.online ? '' : '-'}${update.accountId}`;
    case 'position':
      return String(update.number);
    case 'snapshot': {
      let previous = 0;
      const differences = update.onlineAccountsInPart.map((id) => {
        const difference = (id - previous).toString(RADIX);
        previous = id;
        return difference;
      });
      const { number, part, parts } = update;
      return [number, part, parts, differences.join(ACCOUNT_SEPARATOR)].join(FIELD_SEPARATOR);
    }
    case 'request':
      return `?${update.snapshotOfNode ?? ''}`;
    default:
      return 'x';
  }
}

export function decodePresence(item: string): PresenceUpdate {
  if (item === 'x') return { kind: 'leave' };
  if (item.startsWith('?')) return { kind: 'request', snapshotOfNode: item === '?' ? null : item.slice(1) };
  if (item.includes(FIELD_SEPARATOR)) return decodeSnapshot(item.split(FIELD_SEPARATOR));
  const [number, account] = item.split(':');
  if (account === undefined) return { kind: 'position', number: Number(number) };
  const accountId = Math.abs(Number(account)) as AccountId;
  return { kind: 'change', number: Number(number), accountId, online: !account.startsWith('-') };
}

function decodeSnapshot([number, part, parts, differences = '']: readonly string[]): PresenceUpdate {
  let id = 0;
  const accounts = differences === '' ? [] : differences.split(ACCOUNT_SEPARATOR);
  return {
    kind: 'snapshot',
    number: Number(number),
    part: Number(part),
    parts: Number(parts),
    onlineAccountsInPart: accounts.map((difference) => (id += parseInt(difference, RADIX)) as AccountId),
  };
}

/** Splits the set of online accounts after change `number` into the parts of a snapshot, at least one. */
export function splitSnapshot(number: number, accounts: Iterable<AccountId>): PresenceUpdate[] {
  const ascending = [...accounts].sort((a, b) => a - b);
  const parts = Math.max(1, Math.ceil(ascending.length / ACCOUNTS_PER_PART));
  return Array.from({ length: parts }, (_, index) => ({
    kind: 'snapshot',
    number,
    part: index + 1,
    parts,
    onlineAccountsInPart: ascending.slice(index * ACCOUNTS_PER_PART, (index + 1) * ACCOUNTS_PER_PART),
  }));
}
