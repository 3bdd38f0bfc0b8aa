import type { Bus } from '../bus/bus.ts';
import type { AccountId } from '../model/ids.ts';

/** Somebody who comes back within this was not away: connections break, and clients come again. */
const OFFLINE_GRACE_MS = 5_000;
/** Every account that is here is told again within this, for nodes that did not hear of it. */
const MAX_REANNOUNCE_INTERVAL_MS = 60_000;
/** Looks over which the accounts are spread. */
const REANNOUNCE_SPREAD_TICKS = 20;
/** Who was not told of for so long is not believed to be on another node any more. */
const REMOTE_TTL_MS = 3 * MAX_REANNOUNCE_INTERVAL_MS;
/** Timers are late on a busy machine, and words take a while. */
const STALENESS_MARGIN_MS = 5_000;
/** Accounts on other nodes that are remembered. */
const MAX_REMOTE_ACCOUNTS = 100_000;

/**
 * Who was in the foreground all this time, in ms, was there at its beginning: by then a connection that was dead already
 * has given no sign for long enough, and nobody goes on believing a node that died.
 */
export function maxPresenceStalenessMs(heartbeatMs: number): number {
  return Math.max(2 * heartbeatMs + OFFLINE_GRACE_MS, REMOTE_TTL_MS) + STALENESS_MARGIN_MS;
}

/** What presence needs of the sessions of this node that somebody looks at. */
interface LocalForegroundAccounts {
  readonly accounts: Iterable<AccountId>;
  has(accountId: AccountId): boolean;
}

/**
 * Who has a live connection in the foreground: known of this node, believed of others. Each node tells of its own accounts when they come
 * and go, and all of them again once in a while, so that a lost word or a node that dies is mended within three minutes.
 */
export class Presence {
  readonly #bus: Bus;
  readonly #localAccounts: LocalForegroundAccounts;
  readonly #onChange: (accountId: AccountId, online: boolean) => void;
  /** Until when they are believed to be online. */
  readonly #remoteExpiryMsByAccount = new Map<AccountId, number>();
  /** Accounts whose last connection here went, or is looked at no more, by when that is told. */
  readonly #offlineDueMsByAccount = new Map<AccountId, number>();
  #toReannounce: AccountId[] = [];
  /** Accounts of one look. */
  #reannouncedPerTick = 0;
  #lastReannounceStartMs = 0;
  #unsubscribe: () => void = () => {};

  constructor(
    bus: Bus,
    localAccounts: LocalForegroundAccounts,
    onChange: (accountId: AccountId, online: boolean) => void,
  ) {
    this.#bus = bus;
    this.#localAccounts = localAccounts;
    this.#onChange = onChange;
  }

  start(): void {
    this.#unsubscribe = this.#bus.subscribe({
      ephemeral: (signal) => {
        if (signal.kind === 'presence') this.#onPresenceEvent(signal.accountId, signal.online);
      },
    });
  }

  /** Tells at once who has left: other nodes would believe in them for minutes. */
  stop(): void {
    for (const accountId of this.#offlineDueMsByAccount.keys()) this.#publishOffline(accountId);
    this.#unsubscribe();
  }

  /** Everybody who is online, as far as this node knows. */
  onlineAccounts(): AccountId[] {
    return [
      ...new Set([
        ...this.#localAccounts.accounts,
        ...this.#offlineDueMsByAccount.keys(),
        ...this.#remoteExpiryMsByAccount.keys(),
      ]),
    ];
  }

  /** The account's first connection here. */
  firstForegroundSessionStarted(accountId: AccountId): void {
    if (this.#offlineDueMsByAccount.delete(accountId)) return;
    const isChange = !this.#remoteExpiryMsByAccount.has(accountId);
    this.#bus.publish('ephemeral', { kind: 'presence', accountId, online: true });
    if (isChange) this.#onChange(accountId, true);
  }

  /** Its last one went. */
  lastForegroundSessionEnded(accountId: AccountId): void {
    this.#offlineDueMsByAccount.set(accountId, performance.now() + OFFLINE_GRACE_MS);
  }

  /** Its last one is looked at no more, which is no accident; told with the next look, so that a flutter tells little. */
  accountInBackground(accountId: AccountId): void {
    this.#offlineDueMsByAccount.set(accountId, performance.now());
  }

  /** Called about every second. */
  tick(): void {
    const nowMs = performance.now();
    for (const [accountId, dueMs] of this.#offlineDueMsByAccount) if (dueMs <= nowMs) this.#publishOffline(accountId);
    for (const [accountId, untilMs] of this.#remoteExpiryMsByAccount) {
      if (untilMs > nowMs) continue;
      this.#remoteExpiryMsByAccount.delete(accountId);
      if (!this.#isLocalOrGoingOffline(accountId)) this.#onChange(accountId, false);
    }
    this.#reannounce(nowMs);
  }

  #publishOffline(accountId: AccountId): void {
    this.#offlineDueMsByAccount.delete(accountId);
    this.#bus.publish('ephemeral', { kind: 'presence', accountId, online: false });
    if (!this.#remoteExpiryMsByAccount.has(accountId)) this.#onChange(accountId, false);
  }

  /** Tells of a part of the accounts, so that all have been told of within the time for it. */
  #reannounce(nowMs: number): void {
    if (this.#toReannounce.length === 0) {
      if (nowMs - this.#lastReannounceStartMs < MAX_REANNOUNCE_INTERVAL_MS / 2) return;
      this.#lastReannounceStartMs = nowMs;
      this.#toReannounce = [...this.#localAccounts.accounts];
      this.#reannouncedPerTick = Math.ceil(this.#toReannounce.length / REANNOUNCE_SPREAD_TICKS);
    }
    for (const accountId of this.#toReannounce.splice(0, this.#reannouncedPerTick)) {
      if (this.#localAccounts.has(accountId))
        this.#bus.publish('ephemeral', { kind: 'presence', accountId, online: true });
    }
  }

  /** Our own words come by here as well: they say nothing new. */
  #onPresenceEvent(accountId: AccountId, online: boolean): void {
    if (this.#isLocalOrGoingOffline(accountId)) {
      // Another node believes that the account is gone.
      if (!online && this.#localAccounts.has(accountId))
        this.#bus.publish('ephemeral', { kind: 'presence', accountId, online: true });
      if (!online) this.#remoteExpiryMsByAccount.delete(accountId);
      return;
    }
    const wasOnline = this.#remoteExpiryMsByAccount.has(accountId);
    if (!online) this.#remoteExpiryMsByAccount.delete(accountId);
    else if (wasOnline || this.#remoteExpiryMsByAccount.size < MAX_REMOTE_ACCOUNTS) {
      this.#remoteExpiryMsByAccount.set(accountId, performance.now() + REMOTE_TTL_MS);
    }
    if (online !== wasOnline) this.#onChange(accountId, online);
  }

  #isLocalOrGoingOffline(accountId: AccountId): boolean {
    return this.#localAccounts.has(accountId) || this.#offlineDueMsByAccount.has(accountId);
  }
}
