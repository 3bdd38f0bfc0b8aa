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
      return `${update.changeNumber}:${update.online ? '' : '-'}${update.accountId}`;
    case 'position':
      return String(update.changeNumber);
    case 'snapshot': {
      let previousAccountId = 0;
      const differences = update.onlineAccountsInPart.map((id) => {
        const difference = (id - previousAccountId).toString(RADIX);
        previousAccountId = id;
        return difference;
      });
      const { changeNumber: number, partNumber: part, partCount: parts } = update;
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
  if (account === undefined) return { kind: 'position', changeNumber: Number(number) };
  const accountId = Math.abs(Number(account)) as AccountId;
  return { kind: 'change', changeNumber: Number(number), accountId, online: !account.startsWith('-') };
}

function decodeSnapshot([number, part, parts, differences = '']: readonly string[]): PresenceUpdate {
  let accountId = 0;
  const accounts = differences === '' ? [] : differences.split(ACCOUNT_SEPARATOR);
  return {
    kind: 'snapshot',
    changeNumber: Number(number),
    partNumber: Number(part),
    partCount: Number(parts),
    onlineAccountsInPart: accounts.map((difference) => (accountId += parseInt(difference, RADIX)) as AccountId),
  };
}

/** Splits the set of online accounts after change `changeNumber` into the parts of a snapshot, at least one. */
export function splitSnapshot(changeNumber: number, accounts: Iterable<AccountId>): PresenceUpdate[] {
  const ascending = [...accounts].sort((a, b) => a - b);
  const partCount = Math.max(1, Math.ceil(ascending.length / ACCOUNTS_PER_PART));
  return Array.from({ length: partCount }, (_, index) => ({
    kind: 'snapshot',
    changeNumber: changeNumber,
    partNumber: index + 1,
    partCount: partCount,
    onlineAccountsInPart: ascending.slice(index * ACCOUNTS_PER_PART, (index + 1) * ACCOUNTS_PER_PART),
  }));
}
