import { createHmac } from 'node:crypto';
import webPush from 'web-push';
import type { WebPushConfig } from '../../config/services.ts';
import { webPushPairProblem } from '../../config/keys/push-keys.ts';
import { BoundedCache } from '../../model/bounded-cache.ts';
import type { WebSubscription } from '../../model/device.ts';
import type { AddressPolicy } from '../../outbound/address-policy.ts';
import { DeliveryClient, type HttpAttemptOutcome } from '../../outbound/delivery-client.ts';
import type { DnsResolver } from '../../outbound/dns-resolver.ts';
import { parseJsonObject } from './response.ts';
import type { VendorOptions } from './google.ts';
import { UnresponsiveHostBackoff } from '../host-backoff.ts';
import { boundRetryAfter, delivered, failedOutcome, unregisteredOutcome, refusedOutcome } from '../outcomes.ts';
import { buildPayload, secondsUntilExpiry } from '../payload.ts';
import type { PushNotification, PushOutcome, PushTarget, PushVendor } from './vendor.ts';

/**
 * The largest payload in bytes: the size that every push service must accept (RFC 8030, 7.2), minus the overhead of
 * encryption (RFC 8188, 8291).
 */
const MAX_PAYLOAD_BYTES = 3_993;
/** The largest payload of the second attempt, after a service has rejected the first one as too large. */
const MAX_RETRY_PAYLOAD_BYTES = 1_024;
const MAX_TTL_S = 28 * 24 * 3600;
const MAX_CONNECTIONS_PER_HOST = 32;
const CONNECT_TIMEOUT_MS = 5_000;
const MAX_RESPONSE_BYTES = 16 * 1024;
const RESPONSE_BODY_TIMEOUT_MS = 1_000;
/**
 * How long a VAPID signature for a push service is reused. It is valid for 12 hours; signing is expensive, and services
 * are few.
 */
const VAPID_CACHE_TTL_MS = 6 * 3_600_000;
const MAX_VAPID_ORIGINS = 1_000;
/** The library `web-push` gets this origin instead of that of the push service, since it only encrypts. */
const DUMMY_ORIGIN_FOR_LIBRARY = 'https://push.invalid';
/** The wait after an answer 429 that has no Retry-After. */
const DEFAULT_QUOTA_WAIT_MS = 60_000;

type WebAttemptOutcome = Pick<HttpAttemptOutcome, 'delivered' | 'category' | 'code' | 'retryAfterMs'>;

/** The address policy and the DNS resolver for the connections. */
interface WebVendorDeps {
  readonly policy: AddressPolicy;
  readonly lookup: DnsResolver;
}

/**
 * Sends pushes to the push services of browsers (RFC 8030, 8188, 8291, 8292). Clients choose the addresses of the
 * services, so the address policy applies to each push.
 */
export class WebVendor implements PushVendor {
  readonly kind = 'web';
  readonly problem: string | null;
  readonly #config: WebPushConfig;
  readonly #client: DeliveryClient;
  readonly #timeoutMs: number;
  readonly #authorizationByOrigin = new BoundedCache<string, string>(MAX_VAPID_ORIGINS, { ttl: VAPID_CACHE_TTL_MS });
  readonly #unresponsiveHostBackoff = new UnresponsiveHostBackoff();

  constructor(config: WebPushConfig, options: VendorOptions, { policy, lookup }: WebVendorDeps) {
    this.#config = config;
    this.problem = this.#findProblem();
    this.#timeoutMs = options.timeoutMs;
    this.#client = new DeliveryClient({
      policy,
      lookup,
      maxInFlightPerHost: Math.min(MAX_CONNECTIONS_PER_HOST, options.maxInFlight),
      connectTimeoutMs: Math.min(CONNECT_TIMEOUT_MS, options.timeoutMs),
      responseHeadersTimeoutMs: options.timeoutMs,
      maxResponseBytes: MAX_RESPONSE_BYTES,
      responseBodyReadMs: Math.min(RESPONSE_BODY_TIMEOUT_MS, options.timeoutMs),
      userAgent: options.userAgent,
    });
  }

  async send(target: PushTarget, notification: PushNotification): Promise<PushOutcome> {
    if (this.problem !== null) return failedOutcome('key', { vendorWide: true });
    const subscription = parseSubscription(target.token);
    if (subscription === null) return unregisteredOutcome('subscription', null);
    const { origin } = new URL(subscription.endpoint);
    const backoffMs = this.#unresponsiveHostBackoff.remainingBackoffMs(origin);
    if (backoffMs > 0) return failedOutcome('resting', { retryAfterMs: backoffMs });
    const startedAtMs = performance.now();
    const deadlineMs = startedAtMs + this.#timeoutMs;
    const firstAttempt = await this.#post(subscription, notification, MAX_PAYLOAD_BYTES, deadlineMs);
    const attempt =
      firstAttempt?.code === 413
        ? await this.#post(subscription, notification, MAX_RETRY_PAYLOAD_BYTES, deadlineMs)
        : firstAttempt;
    // Encryption failed: the browser's keys are unusable, or this server has a bug. The device is not removed, since a
    // bug would remove all browsers.
    if (attempt === null) return refusedOutcome('subscription', null);
    const { code, category } = attempt;
    if (code !== null || category !== null) {
      this.#unresponsiveHostBackoff.recordRequest(origin, code !== null || category === 'address policy', startedAtMs);
    }
    return toOutcome(attempt);
  }

  stop(): Promise<void> {
    return this.#client.stop();
  }

  #findProblem(): string | null {
    const problem = webPushPairProblem(this.#config.public, this.#config.private);
    if (problem !== null) return `services.web-push.private ${problem}`;
    try {
      this.#authorizationFor(DUMMY_ORIGIN_FOR_LIBRARY);
      return null;
    } catch {
      return 'services.web-push.subject is no address that a push service could write to';
    }
  }

  async #post(
    subscription: WebSubscription,
    notification: PushNotification,
    maxBytes: number,
    deadlineMs: number,
  ): Promise<WebAttemptOutcome | null> {
    const encrypted = this.#encryptNotification(subscription, notification, maxBytes);
    if (encrypted === null) return null;
    const { promise: late, resolve } = Promise.withResolvers<WebAttemptOutcome>();
    const settleAsTimeout = (): void =>
      resolve({ delivered: false, category: 'timeout', code: null, retryAfterMs: null });
    const timer = setTimeout(settleAsTimeout, Math.max(1, deadlineMs - performance.now()));
    // A request that gets its connection only after the deadline is not sent.
    const beforeWrite = (): boolean => performance.now() < deadlineMs;
    const headers = {
      ...encrypted.headers,
      authorization: this.#authorizationFor(new URL(subscription.endpoint).origin),
    };
    const attempt = this.#client.post(subscription.endpoint, headers, encrypted.body, beforeWrite);
    return Promise.race([attempt, late]).finally(() => clearTimeout(timer));
  }

  #encryptNotification(
    { keys }: WebSubscription,
    notification: PushNotification,
    maxBytes: number,
  ): { headers: Record<string, string>; body: Buffer } | null {
    const ttlS = secondsUntilExpiry(notification, MAX_TTL_S);
    try {
      // The library only encrypts here. With the real address it would warn on the console about some addresses, and
      // with the VAPID key it would sign each time.
      const details = webPush.generateRequestDetails(
        { endpoint: DUMMY_ORIGIN_FOR_LIBRARY, keys },
        renderWeb(notification, maxBytes),
        {
          TTL: ttlS,
          contentEncoding: 'aes128gcm',
          urgency: notification.urgent ? 'high' : 'normal',
          topic: this.#topic(notification),
        },
      );
      return { headers: details.headers, body: details.body };
    } catch {
      // The error is not logged, since its message could contain the client's keys.
      return null;
    }
  }

  #authorizationFor(origin: string): string {
    const cached = this.#authorizationByOrigin.get(origin);
    if (cached !== undefined) return cached;
    const { vapidSubject, public: publicKey, private: privateKey } = this.#config;
    const header = webPush.getVapidHeaders(origin, vapidSubject, publicKey, privateKey, 'aes128gcm').Authorization;
    this.#authorizationByOrigin.set(origin, header);
    return header;
  }

  /**
   * The topic by which a push service replaces older pushes of the same conversation: 32 characters that reveal nothing
   * about it.
   */
  #topic({ conversationId }: PushNotification): string {
    const mac = createHmac('sha256', this.#config.private).update(`topic ${conversationId}`).digest();
    return mac.subarray(0, 24).toString('base64url');
  }
}

/** The payload for the service worker of a browser, before encryption. */
function renderWeb(notification: PushNotification, maxBytes: number): string {
  return buildPayload(notification, maxBytes, ({ title, text }) => ({
    title,
    ...(text === null ? {} : { text }),
    conversation: notification.conversationId,
    first_seq: notification.firstSeq,
    last_seq: notification.lastSeq,
    ...(notification.accountUnreadCount === null ? {} : { unread: notification.accountUnreadCount }),
    urgent: notification.urgent,
  }));
}

function parseSubscription(token: string): WebSubscription | null {
  const { endpoint, keys } = parseJsonObject(token) ?? {};
  const { p256dh, auth } = (keys ?? {}) as Record<string, unknown>;
  if (typeof endpoint !== 'string' || typeof p256dh !== 'string' || typeof auth !== 'string') return null;
  const protocol = URL.parse(endpoint)?.protocol;
  return protocol === 'https:' || protocol === 'http:' ? { endpoint, keys: { p256dh, auth } } : null;
}

/** Derives the outcome of a push. It never concerns the vendor as a whole, since clients choose the push services. */
function toOutcome({ delivered: isTaken, category, code, ...more }: WebAttemptOutcome): PushOutcome {
  if (isTaken) return delivered;
  const retryAfterMs = boundRetryAfter(more.retryAfterMs);
  // The push was not sent: no connection was free in time, or the server is stopping.
  if (code === null && category === null) return failedOutcome('busy');
  if (code === null)
    return category === 'address policy' ? refusedOutcome('address policy', null) : failedOutcome(category ?? 'busy');
  const failureDetails = { code, retryAfterMs };
  if (code === 404 || code === 410) return unregisteredOutcome('unregistered', code);
  if (code === 413) return refusedOutcome('too large', code);
  if (code === 401 || code === 403) return refusedOutcome('key', code);
  if (code === 429) return failedOutcome('quota', { code, retryAfterMs: retryAfterMs ?? DEFAULT_QUOTA_WAIT_MS });
  if (code === 408 || code === 425 || code >= 500) return failedOutcome('status', failureDetails);
  return code < 400 ? failedOutcome('redirect', failureDetails) : refusedOutcome('request', code);
}
