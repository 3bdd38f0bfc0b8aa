import { setTimeout as wait } from 'node:timers/promises';
import type { LiveConfig } from '../config/config.ts';
import { KlatchError } from '../errors.ts';
import type { Log } from '../log.ts';
import type { AccountId, ConversationId } from '../model/ids.ts';
import type { SourceKey } from '../model/source-key.ts';
import {
  MAX_FOLLOWED,
  type AccountCaller,
  type Caller,
  type Following,
  type FollowRequest,
  type LiveSession,
} from '../operations/caller.ts';
import { reading } from '../operations/database-errors.ts';
import { ANONYMOUS_FRAME_BYTES, ANONYMOUS_FRAME_LIMITS, FRAME_LIMITS } from '../operations/input-limits.ts';
import type { Operation } from '../operations/operation.ts';
import type { Services } from '../operations/services.ts';
import { listFollowed } from '../storage/following.ts';
import type { FoundSession } from '../storage/sessions.ts';
import type { CloseReason } from './close-codes.ts';
import type { Connection, ConnectionListener } from './connection.ts';
import { readJson, serveRequest } from './json-rpc.ts';
import type { LiveCounts, LiveEnding } from './live-counts.ts';
import type { Prepared } from './prepared.ts';
import type { Feeds } from './feeds.ts';
import { SessionExpiry } from './session-expiry.ts';
import { Stream } from './stream.ts';

/** Requests, and bytes of them, that may wait for their turn before the connection is read no further. */
const MAX_PENDING = 256;
/** Who is further ahead of the allowed rate than this floods. */
const MAX_TURN_MS = 2_000;
const MAX_REJECTED_TOKENS = 5;
/** Requests of one that has not said who it is: signing in takes a handful. */
const MAX_STRANGE = 100;
/** How long a client may take to read what waited and to end the connection from its side. */
const CLOSING_MS = 10_000;
const NO_REQUESTS: readonly Pending[] = [];

/** `waiting`: nobody knows who it is. */
export type SessionState = 'waiting' | 'authenticated' | 'following' | 'closing' | 'closed';

/** Where sessions live: what they share, and who knows of all of them. */
export interface SessionHome {
  readonly config: LiveConfig;
  readonly services: Services;
  readonly operations: ReadonlyMap<string, Operation>;
  readonly counts: LiveCounts;
  readonly feeds: Feeds;
  readonly log: Log;
  /** A clock of the time in which clients could be heard, as of some moments ago. */
  readonly nowMs: number;
  /** Takes a session up as one of the caller's account; false: that has too many. */
  admit(session: Session, caller: AccountCaller): boolean;
  /** Reserves a request's turn: in how many ms it is, or null when that is too long. */
  reserve(caller: AccountCaller | null, source: SourceKey, maxMs: number): number | null;
  /** Resolves when somebody who tries tokens may be told that this one was none. */
  holdBack(source: SourceKey): Promise<void>;
  /** Resolves when it is known that the session still holds. */
  certain(session: Session): Promise<void> | null;
  /** Whether somebody looks at a session that is open has changed. */
  lookedAt(session: Session): void;
  /** Asks what the account's membership is, and settles it in all its sessions. */
  ask(conversationId: ConversationId, accountId: AccountId): void;
  /** A session is closing, or closed. */
  left(session: Session, how: { before: SessionState; endedBy: LiveEnding }): void;
}

interface Pending {
  readonly text: string;
  /** When its turn is, by the monotonic clock. */
  readonly dueAtMs: number;
}

/** One client's connection, from its first byte to its last: who it is, what it asks, and what it is sent unasked. */
export class Session implements LiveSession, ConnectionListener {
  readonly connection: Connection;
  readonly #home: SessionHome;
  #state: SessionState = 'waiting';
  #caller: AccountCaller | null = null;
  #stream: Stream | null = null;
  #expiry: SessionExpiry | null = null;
  #pending: Pending[] = NO_REQUESTS as Pending[];
  #pendingBytes = 0;
  #isWorking = false;
  #isPaused = false;
  /** The client sends nothing more. */
  #isEnded = false;
  /** It ends for this reason as soon as the request in hand is answered. */
  #ending: CloseReason | null = null;
  #endedBy: LiveEnding = 'client';
  #rejectedTokens = 0;
  #strange = 0;
  /** Of the last sign of life, or of the beginning of the end. */
  #sinceMs: number;
  #bytesSeen = 0;
  /** Null: there was room for more when it was last looked at. */
  #takenSeen: number | null = null;
  #isAsked = false;
  #isForeground = true;

  constructor(connection: Connection, home: SessionHome) {
    this.connection = connection;
    this.#home = home;
    this.#sinceMs = home.nowMs;
  }

  get state(): SessionState {
    return this.#state;
  }

  /** Whether something can be sent. */
  get isOpen(): boolean {
    return this.#state !== 'closing' && this.#state !== 'closed';
  }

  /** Null while it is waiting. */
  get caller(): AccountCaller | null {
    return this.#caller;
  }

  /** Only of one that is not waiting. */
  get accountId(): AccountId {
    return this.#caller!.accountId;
  }

  /** Null until it follows. */
  get stream(): Stream | null {
    return this.#stream;
  }

  authenticated(caller: AccountCaller): void {
    if (this.#state !== 'waiting') {
      throw new KlatchError('forbidden', { sentence: 'This connection is somebody already: open another one' });
    }
    if (!this.#home.admit(this, caller)) {
      this.#ending = 'tooMany';
      throw new KlatchError('limit_reached', { sentence: 'This account has as many live connections as it may have' });
    }
    this.#caller = caller;
    this.#state = 'authenticated';
    this.connection.allowFrames(this.#home.config.maxFrameBytes);
    if (caller.expiresAt !== null) {
      this.#expiry = new SessionExpiry(caller.expiresAt, () => this.close('sessionEnded'));
    }
  }

  /** Whether somebody looks at it, as far as its client says. */
  get isForeground(): boolean {
    return this.#isForeground;
  }

  lookedAt(isForeground: boolean): void {
    if (isForeground === this.#isForeground) return;
    this.#isForeground = isForeground;
    if (this.isOpen) this.#home.lookedAt(this);
  }

  async rejected(): Promise<void> {
    this.#rejectedTokens += 1;
    if (this.#rejectedTokens >= MAX_REJECTED_TOKENS) this.#ending = 'unauthenticated';
    await this.#home.holdBack(this.connection.source);
  }

  async follow(request: FollowRequest): Promise<Following> {
    if (this.#state !== 'authenticated' || this.#stream !== null) {
      throw new KlatchError('invalid_input', { sentence: 'This connection follows already' });
    }
    const { accountId } = this.#caller!;
    const stream = new Stream(this, this.#home.feeds);
    this.#stream = stream;
    try {
      const { general } = this.#home.services.database;
      let isComplete = true;
      const conversations = await stream.prepare(request, async () => {
        const heads = await reading(general.run((sql) => listFollowed(sql, accountId, MAX_FOLLOWED + 1)));
        isComplete = heads.length <= MAX_FOLLOWED;
        return heads.slice(0, MAX_FOLLOWED);
      });
      return { conversations, isComplete };
    } catch (error) {
      this.#stream = null;
      throw error;
    }
  }

  /** What the account is now; it was renamed, or got another role. */
  renewed({ role, nick, name }: FoundSession): void {
    if (this.#caller !== null) this.#caller = { ...this.#caller, role, nick, name };
  }

  send(text: string): void {
    if (this.#isOverfull()) return;
    this.#home.counts.sent(this.connection.kind, 1);
    this.connection.send(text);
  }

  sendPrepared(prepared: Prepared, behind: number): void {
    if (this.#isOverfull()) return;
    this.#home.counts.sent(this.connection.kind, prepared.count - behind);
    this.connection.sendPrepared(prepared, behind);
  }

  /** Says why and ends; what waits to be sent still goes out. */
  close(reason: CloseReason): void {
    if (!this.isOpen) return;
    this.#leave('closing', reason);
    this.connection.close(reason);
  }

  /** The same once the request in hand is answered. */
  end(reason: CloseReason): void {
    if (this.#isWorking) this.#ending = reason;
    else this.close(reason);
  }

  destroy(): void {
    this.connection.destroy();
  }

  received(text: string): void {
    if (!this.isOpen || this.#isEnded) return;
    this.#home.counts.framesIn[this.connection.kind] += 1;
    const dueInMs = this.#reserve();
    if (dueInMs === null) return;
    if (this.#pending === NO_REQUESTS) this.#pending = [];
    this.#pending.push({ text, dueAtMs: performance.now() + dueInMs });
    this.#pendingBytes += text.length;
    if (!this.#isPaused && this.#hasMuchToDo) {
      this.#isPaused = true;
      this.connection.pause();
    }
    if (!this.#isWorking) void this.#work();
  }

  asked(): void {
    this.#reserve();
  }

  failed(reason: CloseReason): void {
    this.close(reason);
  }

  ended(): void {
    this.#isEnded = true;
    if (!this.#isWorking) this.close('done');
  }

  closed(code: number): void {
    if (code === 0 && this.#state !== 'closing') this.#endedBy = 'client';
    this.#leave('closed', null);
  }

  /** Called now and then: asks for a sign of life, and ends what gave none, or took too long. */
  look(nowMs: number): void {
    const { heartbeatMs, authenticateWithinMs } = this.#home.config;
    const ageMs = nowMs - this.#sinceMs;
    if (this.#state === 'closing') {
      if (ageMs > CLOSING_MS) this.destroy();
    } else if (this.#state === 'waiting') {
      if (ageMs > authenticateWithinMs) this.close('unauthenticated');
    } else if (this.#givesSign()) {
      this.#sinceMs = nowMs;
      this.#isAsked = false;
    } else if (ageMs > 2 * heartbeatMs) {
      this.close('silent');
      // Who does not live reads no farewell either.
      this.destroy();
    } else if (ageMs > heartbeatMs && !this.#isAsked) {
      this.#isAsked = true;
      this.connection.ask();
    }
  }

  /**
   * Whether something came since the last look, or something went out that had no room before: who is busy reading may
   * come to our question late. One that is not read from cannot give a sign.
   */
  #givesSign(): boolean {
    const { bytesRead, bytesTaken, isFull } = this.connection;
    const hasTaken = this.#takenSeen !== null && this.#takenSeen !== bytesTaken;
    const has = bytesRead !== this.#bytesSeen || hasTaken || (this.#isPaused && !isFull);
    this.#bytesSeen = bytesRead;
    this.#takenSeen = isFull ? bytesTaken : null;
    return has;
  }

  get #hasMuchToDo(): boolean {
    const maxBytes = this.#caller === null ? ANONYMOUS_FRAME_BYTES : this.#home.config.maxFrameBytes;
    return this.#pending.length >= MAX_PENDING || this.#pendingBytes >= maxBytes;
  }

  /** In how many ms the next request has its turn; null: too many came, and the connection was closed. */
  #reserve(): number | null {
    this.#strange += this.#caller === null ? 1 : 0;
    if (this.#caller === null && this.#strange > MAX_STRANGE) {
      this.close('flood');
      return null;
    }
    const dueInMs = this.#home.reserve(this.#caller, this.connection.source, MAX_TURN_MS);
    if (dueInMs === null) this.close('flood');
    return dueInMs;
  }

  /** One request after the other, in the order in which they came. */
  async #work(): Promise<void> {
    this.#isWorking = true;
    for (let next = this.#pending.shift(); next !== undefined && this.isOpen; next = this.#pending.shift()) {
      this.#pendingBytes -= next.text.length;
      await this.#turn(next);
      if (this.#expiry?.isPast === true) this.close('sessionEnded');
      if (this.isOpen && this.#ending === null) await this.#answer(next.text);
      if (this.#ending !== null) this.close(this.#ending);
      if (this.#isPaused && this.isOpen && !this.#hasMuchToDo) {
        this.#isPaused = false;
        this.connection.resume();
      }
    }
    this.#pending = NO_REQUESTS as Pending[];
    this.#pendingBytes = 0;
    this.#isWorking = false;
    if (this.#isEnded) this.close('done');
  }

  /** Waits until the request may be worked on, and the client has read the answers before. */
  async #turn({ dueAtMs }: Pending): Promise<void> {
    const aheadMs = dueAtMs - performance.now();
    if (aheadMs > 1) await wait(aheadMs, undefined, { ref: false });
    if (this.connection.isFull) await this.connection.drained();
    await this.#home.certain(this);
  }

  async #answer(text: string): Promise<void> {
    // An empty line is a sign of life.
    if (text.trim() === '') return;
    const { services, operations, log } = this.#home;
    const json = await this.#parse(text);
    if (!this.isOpen) return;
    if (json === undefined) {
      this.close('notJson');
      return;
    }
    const caller: Caller = this.#caller ?? { kind: 'nobody', source: this.connection.source, live: this };
    const answer = await serveRequest(json, { services, operations, log, caller });
    if (answer !== null) this.send(answer);
    if (this.#stream !== null && this.#state === 'authenticated') this.#begin(this.#stream);
  }

  /** Its turn comes once its network has time left; a network that takes too much floods. */
  async #parse(text: string): Promise<unknown> {
    const { parseBudget } = this.#home.services;
    const { source } = this.connection;
    const limits = this.#caller === null ? ANONYMOUS_FRAME_LIMITS : FRAME_LIMITS;
    try {
      const refusal = (): KlatchError => new KlatchError('too_often');
      return await parseBudget.runInLine(source, { maxMs: MAX_TURN_MS, refusal }, () => readJson(text, limits));
    } catch (error) {
      if (!(error instanceof KlatchError)) throw error;
      this.close('flood');
      return undefined;
    }
  }

  #begin(stream: Stream): void {
    this.#state = 'following';
    for (const conversationId of stream.begin()) this.#home.ask(conversationId, this.#caller!.accountId);
  }

  /** Whether too much waits already; then the client has to come back for the rest. */
  #isOverfull(): boolean {
    if (!this.isOpen) return true;
    if (this.connection.bytesWaiting <= this.#home.config.sendQueueBytes) return false;
    this.close('behind');
    return true;
  }

  #leave(state: 'closing' | 'closed', reason: CloseReason | null): void {
    const before = this.#state;
    if (before === 'closed') return;
    if (reason !== null) this.#endedBy = reason;
    this.#state = state;
    this.#sinceMs = this.#home.nowMs;
    this.#stream?.stop();
    this.#expiry?.stop();
    this.#home.left(this, { before, endedBy: this.#endedBy });
  }
}
