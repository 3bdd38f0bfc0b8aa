import type { Bus } from '../bus/bus.ts';
import type { AccountId } from '../model/ids.ts';

/** Somebody who comes back within this was not away: connections break, and clients come again. */
const LINGER_MS = 5_000;
/** Every account that is here is told again within this, for nodes that did not hear of it. */
const REPEAT_MS = 60_000;
/** Looks over which the accounts are spread. */
const REPEAT_LOOKS = 20;
/** Who was not told of for so long is not believed to be on another node any more. */
const BELIEVED_MS = 3 * REPEAT_MS;
/** Timers are late on a busy machine, and words take a while. */
const MARGIN_MS = 5_000;
/** Accounts on other nodes that are remembered. */
const MAX_ELSEWHERE = 100_000;

/**
 * Who was in the foreground all this time, in ms, was there at its beginning: by then a connection that was dead already
 * has given no sign for long enough, and nobody goes on believing a node that died.
 */
export function certainAfterMs(heartbeatMs: number): number {
  return Math.max(2 * heartbeatMs + LINGER_MS, BELIEVED_MS) + MARGIN_MS;
}

/** What presence needs of the sessions of this node that somebody looks at. */
interface Here {
  readonly accounts: Iterable<AccountId>;
  has(accountId: AccountId): boolean;
}

/**
 * Who has a live connection in the foreground: known of this node, believed of others. Each node tells of its own accounts when they come
 * and go, and all of them again once in a while, so that a lost word or a node that dies is mended within three minutes.
 */
export class Presence {
  readonly #bus: Bus;
  readonly #here: Here;
  readonly #onChange: (accountId: AccountId, online: boolean) => void;
  /** Until when they are believed to be online. */
  readonly #elsewhere = new Map<AccountId, number>();
  /** Accounts whose last connection here went, or is looked at no more, by when that is told. */
  readonly #leaving = new Map<AccountId, number>();
  #toRepeat: AccountId[] = [];
  /** Accounts of one look. */
  #share = 0;
  #repeatedMs = 0;
  #unsubscribe: () => void = () => {};

  constructor(bus: Bus, here: Here, onChange: (accountId: AccountId, online: boolean) => void) {
    this.#bus = bus;
    this.#here = here;
    this.#onChange = onChange;
  }

  start(): void {
    this.#unsubscribe = this.#bus.subscribe({
      signal: (signal) => {
        if (signal.kind === 'presence') this.#heard(signal.accountId, signal.online);
      },
    });
  }

  /** Tells at once who has left: other nodes would believe in them for minutes. */
  stop(): void {
    for (const accountId of this.#leaving.keys()) this.#leave(accountId);
    this.#unsubscribe();
  }

  /** Everybody who is online, as far as this node knows. */
  accounts(): AccountId[] {
    return [...new Set([...this.#here.accounts, ...this.#leaving.keys(), ...this.#elsewhere.keys()])];
  }

  /** The account's first connection here. */
  came(accountId: AccountId): void {
    if (this.#leaving.delete(accountId)) return;
    const isNews = !this.#elsewhere.has(accountId);
    this.#bus.publish('signal', { kind: 'presence', accountId, online: true });
    if (isNews) this.#onChange(accountId, true);
  }

  /** Its last one went. */
  went(accountId: AccountId): void {
    this.#leaving.set(accountId, performance.now() + LINGER_MS);
  }

  /** Its last one is looked at no more, which is no accident; told with the next look, so that a flutter tells little. */
  turnedAway(accountId: AccountId): void {
    this.#leaving.set(accountId, performance.now());
  }

  /** Called about every second. */
  look(): void {
    const nowMs = performance.now();
    for (const [accountId, dueMs] of this.#leaving) if (dueMs <= nowMs) this.#leave(accountId);
    for (const [accountId, untilMs] of this.#elsewhere) {
      if (untilMs > nowMs) continue;
      this.#elsewhere.delete(accountId);
      if (!this.#isHere(accountId)) this.#onChange(accountId, false);
    }
    this.#repeat(nowMs);
  }

  #leave(accountId: AccountId): void {
    this.#leaving.delete(accountId);
    this.#bus.publish('signal', { kind: 'presence', accountId, online: false });
    if (!this.#elsewhere.has(accountId)) this.#onChange(accountId, false);
  }

  /** Tells of a part of the accounts, so that all have been told of within the time for it. */
  #repeat(nowMs: number): void {
    if (this.#toRepeat.length === 0) {
      if (nowMs - this.#repeatedMs < REPEAT_MS / 2) return;
      this.#repeatedMs = nowMs;
      this.#toRepeat = [...this.#here.accounts];
      this.#share = Math.ceil(this.#toRepeat.length / REPEAT_LOOKS);
    }
    for (const accountId of this.#toRepeat.splice(0, this.#share)) {
      if (this.#here.has(accountId)) this.#bus.publish('signal', { kind: 'presence', accountId, online: true });
    }
  }

  /** Our own words come by here as well: they say nothing new. */
  #heard(accountId: AccountId, online: boolean): void {
    if (this.#isHere(accountId)) {
      // Another node believes that the account is gone.
      if (!online && this.#here.has(accountId))
        this.#bus.publish('signal', { kind: 'presence', accountId, online: true });
      if (!online) this.#elsewhere.delete(accountId);
      return;
    }
    const wasOnline = this.#elsewhere.has(accountId);
    if (!online) this.#elsewhere.delete(accountId);
    else if (wasOnline || this.#elsewhere.size < MAX_ELSEWHERE) {
      this.#elsewhere.set(accountId, performance.now() + BELIEVED_MS);
    }
    if (online !== wasOnline) this.#onChange(accountId, online);
  }

  #isHere(accountId: AccountId): boolean {
    return this.#here.has(accountId) || this.#leaving.has(accountId);
  }
}
