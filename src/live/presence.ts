import type { Bus } from '../bus/bus.ts';
import type { AccountId } from '../model/ids.ts';

/** Somebody who comes back within this was not away: connections break, and clients come again. */
const OFFLINE_GRACE_MS = 5_000;
/** Every account that is here is told again within this, for nodes that did not hear of it. */
const REANNOUNCE_MS = 60_000;
/** Looks over which the accounts are spread. */
const REANNOUNCE_TICKS = 20;
/** Who was not told of for so long is not believed to be on another node any more. */
const REMOTE_TTL_MS = 3 * REANNOUNCE_MS;
/** Timers are late on a busy machine, and words take a while. */
const DELAY_MARGIN_MS = 5_000;
/** Accounts on other nodes that are remembered. */
const MAX_REMOTE_ACCOUNTS = 100_000;

/**
 * Who was in the foreground all this time, in ms, was there at its beginning: by then a connection that was dead already
 * has given no sign for long enough, and nobody goes on believing a node that died.
 */
export function presenceSettledMs(heartbeatMs: number): number {
  return Math.max(2 * heartbeatMs + OFFLINE_GRACE_MS, REMOTE_TTL_MS) + DELAY_MARGIN_MS;
}

/** What presence needs of the sessions of this node that somebody looks at. */
interface LocalAccounts {
  readonly accounts: Iterable<AccountId>;
  has(accountId: AccountId): boolean;
}

/**
 * Who has a live connection in the foreground: known of this node, believed of others. Each node tells of its own accounts when they come
 * and go, and all of them again once in a while, so that a lost word or a node that dies is mended within three minutes.
 */
export class Presence {
  readonly #bus: Bus;
  readonly #local: LocalAccounts;
  readonly #onChange: (accountId: AccountId, online: boolean) => void;
  /** Until when they are believed to be online. */
  readonly #remote = new Map<AccountId, number>();
  /** Accounts whose last connection here went, or is looked at no more, by when that is told. */
  readonly #goingOffline = new Map<AccountId, number>();
  #toReannounce: AccountId[] = [];
  /** Accounts of one look. */
  #accountsPerTick = 0;
  #reannouncedMs = 0;
  #unsubscribe: () => void = () => {};

  constructor(bus: Bus, local: LocalAccounts, onChange: (accountId: AccountId, online: boolean) => void) {
    this.#bus = bus;
    this.#local = local;
    this.#onChange = onChange;
  }

  start(): void {
    this.#unsubscribe = this.#bus.subscribe({
      ephemeral: (signal) => {
        if (signal.kind === 'presence') this.#onSignal(signal.accountId, signal.online);
      },
    });
  }

  /** Tells at once who has left: other nodes would believe in them for minutes. */
  stop(): void {
    for (const accountId of this.#goingOffline.keys()) this.#publishOffline(accountId);
    this.#unsubscribe();
  }

  /** Everybody who is online, as far as this node knows. */
  accounts(): AccountId[] {
    return [...new Set([...this.#local.accounts, ...this.#goingOffline.keys(), ...this.#remote.keys()])];
  }

  /** The account's first connection here. */
  accountOnline(accountId: AccountId): void {
    if (this.#goingOffline.delete(accountId)) return;
    const isChange = !this.#remote.has(accountId);
    this.#bus.publish('ephemeral', { kind: 'presence', accountId, online: true });
    if (isChange) this.#onChange(accountId, true);
  }

  /** Its last one went. */
  accountOffline(accountId: AccountId): void {
    this.#goingOffline.set(accountId, performance.now() + OFFLINE_GRACE_MS);
  }

  /** Its last one is looked at no more, which is no accident; told with the next look, so that a flutter tells little. */
  accountInBackground(accountId: AccountId): void {
    this.#goingOffline.set(accountId, performance.now());
  }

  /** Called about every second. */
  tick(): void {
    const nowMs = performance.now();
    for (const [accountId, dueMs] of this.#goingOffline) if (dueMs <= nowMs) this.#publishOffline(accountId);
    for (const [accountId, untilMs] of this.#remote) {
      if (untilMs > nowMs) continue;
      this.#remote.delete(accountId);
      if (!this.#isLocal(accountId)) this.#onChange(accountId, false);
    }
    this.#reannounce(nowMs);
  }

  #publishOffline(accountId: AccountId): void {
    this.#goingOffline.delete(accountId);
    this.#bus.publish('ephemeral', { kind: 'presence', accountId, online: false });
    if (!this.#remote.has(accountId)) this.#onChange(accountId, false);
  }

  /** Tells of a part of the accounts, so that all have been told of within the time for it. */
  #reannounce(nowMs: number): void {
    if (this.#toReannounce.length === 0) {
      if (nowMs - this.#reannouncedMs < REANNOUNCE_MS / 2) return;
      this.#reannouncedMs = nowMs;
      this.#toReannounce = [...this.#local.accounts];
      this.#accountsPerTick = Math.ceil(this.#toReannounce.length / REANNOUNCE_TICKS);
    }
    for (const accountId of this.#toReannounce.splice(0, this.#accountsPerTick)) {
      if (this.#local.has(accountId)) this.#bus.publish('ephemeral', { kind: 'presence', accountId, online: true });
    }
  }

  /** Our own words come by here as well: they say nothing new. */
  #onSignal(accountId: AccountId, online: boolean): void {
    if (this.#isLocal(accountId)) {
      // Another node believes that the account is gone.
      if (!online && this.#local.has(accountId))
        this.#bus.publish('ephemeral', { kind: 'presence', accountId, online: true });
      if (!online) this.#remote.delete(accountId);
      return;
    }
    const wasOnline = this.#remote.has(accountId);
    if (!online) this.#remote.delete(accountId);
    else if (wasOnline || this.#remote.size < MAX_REMOTE_ACCOUNTS) {
      this.#remote.set(accountId, performance.now() + REMOTE_TTL_MS);
    }
    if (online !== wasOnline) this.#onChange(accountId, online);
  }

  #isLocal(accountId: AccountId): boolean {
    return this.#local.has(accountId) || this.#goingOffline.has(accountId);
  }
}
