import { createHmac } from 'node:crypto';
import webPush from 'web-push';
import type { WebPushConfig } from '../config/config.ts';
import { wrongWebPushPair } from '../config/push-keys.ts';
import { BoundedCache } from '../model/bounded-cache.ts';
import type { WebSubscription } from '../model/device.ts';
import type { AddressPolicy } from '../outbound/address-policy.ts';
import { DeliveryClient, type Attempt } from '../outbound/delivery-client.ts';
import type { NameLookup } from '../outbound/name-lookup.ts';
import { objectOf } from './answer.ts';
import type { VendorOptions } from './google.ts';
import { HostRests } from './host-rests.ts';
import { boundRetry, delivered, failed, gone, refused } from './outcomes.ts';
import { fitPayload, secondsLeft } from './payload.ts';
import type { PushNote, PushOutcome, PushTarget, PushVendor } from './vendor.ts';

/** What a push service has to take (RFC 8030, 7.2), less what encryption adds (RFC 8188, 8291). */
const MAX_PAYLOAD_BYTES = 3_993;
/** What is tried with a service that finds that too large. */
const SHORT_PAYLOAD_BYTES = 1_024;
const MAX_TTL_S = 28 * 24 * 3600;
const PER_HOST = 32;
const CONNECT_MS = 5_000;
const ANSWER_BYTES = 16 * 1024;
const ANSWER_MS = 1_000;
/** Signing is dear, and a signature good for 12 hours; services are few. */
const VAPID_MS = 6 * 3_600_000;
const VAPID_ORIGINS = 1_000;
/** The library is told of no other. */
const NO_SERVICE = 'https://push.invalid';
/** What services ask to be waited for where they say nothing else. */
const QUOTA_WAIT_MS = 60_000;

type Sent = Pick<Attempt, 'delivered' | 'category' | 'code' | 'retryAfterMs'>;

/** Where connections may go. */
export interface GuardedWay {
  readonly policy: AddressPolicy;
  readonly lookup: NameLookup;
}

/** Browsers' push services (RFC 8030, 8188, 8291, 8292). Clients name their addresses, so each is guarded. */
export class WebVendor implements PushVendor {
  readonly kind = 'web';
  readonly problem: string | null;
  readonly #config: WebPushConfig;
  readonly #client: DeliveryClient;
  readonly #timeoutMs: number;
  readonly #vapid = new BoundedCache<string, string>(VAPID_ORIGINS, { ttl: VAPID_MS });
  readonly #rests = new HostRests();

  constructor(config: WebPushConfig, options: VendorOptions, { policy, lookup }: GuardedWay) {
    this.#config = config;
    this.problem = this.#findProblem();
    this.#timeoutMs = options.timeoutMs;
    this.#client = new DeliveryClient({
      policy,
      lookup,
      perHost: Math.min(PER_HOST, options.inFlight),
      connectTimeoutMs: Math.min(CONNECT_MS, options.timeoutMs),
      headersTimeoutMs: options.timeoutMs,
      answerBytes: ANSWER_BYTES,
      answerTimeMs: Math.min(ANSWER_MS, options.timeoutMs),
      userAgent: options.userAgent,
    });
  }

  async send(target: PushTarget, note: PushNote): Promise<PushOutcome> {
    if (this.problem !== null) return failed('key', { vendorWide: true });
    const subscription = readSubscription(target.token);
    if (subscription === null) return gone('subscription', null);
    const { origin } = new URL(subscription.endpoint);
    const restMs = this.#rests.left(origin);
    if (restMs > 0) return failed('resting', { retryAfterMs: restMs });
    const startedMs = performance.now();
    const endMs = startedMs + this.#timeoutMs;
    const first = await this.#post(subscription, note, MAX_PAYLOAD_BYTES, endMs);
    const attempt = first?.code === 413 ? await this.#post(subscription, note, SHORT_PAYLOAD_BYTES, endMs) : first;
    // Keys that nobody can encrypt for; or the fault is ours, which must not forget every browser.
    if (attempt === null) return refused('subscription', null);
    const { code, category } = attempt;
    if (code !== null || category !== null) {
      this.#rests.note(origin, code !== null || category === 'address policy', startedMs);
    }
    return readAttempt(attempt);
  }

  stop(): Promise<void> {
    return this.#client.stop();
  }

  #findProblem(): string | null {
    const wrong = wrongWebPushPair(this.#config.public, this.#config.private);
    if (wrong !== null) return `services.web-push.private ${wrong}`;
    try {
      this.#authorization(NO_SERVICE);
      return null;
    } catch {
      return 'services.web-push.subject is no address that a push service could write to';
    }
  }

  async #post(subscription: WebSubscription, note: PushNote, maxBytes: number, endMs: number): Promise<Sent | null> {
    const sealed = this.#seal(subscription, note, maxBytes);
    if (sealed === null) return null;
    const { promise: late, resolve } = Promise.withResolvers<Sent>();
    const end = (): void => resolve({ delivered: false, category: 'timeout', code: null, retryAfterMs: null });
    const timer = setTimeout(end, Math.max(1, endMs - performance.now()));
    // One that waited for a connection until its time was up is not sent behind our back.
    const beforeWrite = (): boolean => performance.now() < endMs;
    const headers = { ...sealed.headers, authorization: this.#authorization(new URL(subscription.endpoint).origin) };
    const attempt = this.#client.post(subscription.endpoint, headers, sealed.body, beforeWrite);
    return Promise.race([attempt, late]).finally(() => clearTimeout(timer));
  }

  #seal(
    { keys }: WebSubscription,
    note: PushNote,
    maxBytes: number,
  ): { headers: Record<string, string>; body: Buffer } | null {
    const ttlS = secondsLeft(note, MAX_TTL_S);
    try {
      // The library encrypts. It warns on the console about some addresses, and signs anew each time: it sees neither.
      const details = webPush.generateRequestDetails({ endpoint: NO_SERVICE, keys }, renderWeb(note, maxBytes), {
        TTL: ttlS,
        contentEncoding: 'aes128gcm',
        urgency: note.urgent ? 'high' : 'normal',
        topic: this.#topic(note),
      });
      return { headers: details.headers, body: details.body };
    } catch {
      // Its words could hold what the client sent as keys.
      return null;
    }
  }

  #authorization(origin: string): string {
    const known = this.#vapid.get(origin);
    if (known !== undefined) return known;
    const { subject, public: publicKey, private: privateKey } = this.#config;
    const made = webPush.getVapidHeaders(origin, subject, publicKey, privateKey, 'aes128gcm').Authorization;
    this.#vapid.set(origin, made);
    return made;
  }

  /** 32 characters that say the service nothing about the conversation, and the same ones each time. */
  #topic({ conversationId }: PushNote): string {
    const mac = createHmac('sha256', this.#config.private).update(`topic ${conversationId}`).digest();
    return mac.subarray(0, 24).toString('base64url');
  }
}

/** What the service worker of a browser gets, decrypted. */
function renderWeb(note: PushNote, maxBytes: number): string {
  return fitPayload(note, maxBytes, ({ title, text }) => ({
    title,
    ...(text === null ? {} : { text }),
    conversation: note.conversationId,
    first_seq: note.firstSeq,
    last_seq: note.lastSeq,
    ...(note.unread === null ? {} : { unread: note.unread }),
    urgent: note.urgent,
  }));
}

function readSubscription(token: string): WebSubscription | null {
  const { endpoint, keys } = objectOf(token) ?? {};
  const { p256dh, auth } = (keys ?? {}) as Record<string, unknown>;
  if (typeof endpoint !== 'string' || typeof p256dh !== 'string' || typeof auth !== 'string') return null;
  const protocol = URL.parse(endpoint)?.protocol;
  return protocol === 'https:' || protocol === 'http:' ? { endpoint, keys: { p256dh, auth } } : null;
}

/** One service's failure is never that of all: they are as many as clients name. */
function readAttempt({ delivered: isTaken, category, code, ...more }: Sent): PushOutcome {
  if (isTaken) return delivered;
  const retryAfterMs = boundRetry(more.retryAfterMs);
  // Not sent: no connection was free in time, or the server stops.
  if (code === null && category === null) return failed('busy');
  if (code === null)
    return category === 'address policy' ? refused('address policy', null) : failed(category ?? 'busy');
  const retry = { code, retryAfterMs };
  if (code === 404 || code === 410) return gone('unregistered', code);
  if (code === 413) return refused('too large', code);
  if (code === 401 || code === 403) return refused('key', code);
  if (code === 429) return failed('quota', { code, retryAfterMs: retryAfterMs ?? QUOTA_WAIT_MS });
  if (code === 408 || code === 425 || code >= 500) return failed('status', retry);
  return code < 400 ? failed('redirect', retry) : refused('request', code);
}
