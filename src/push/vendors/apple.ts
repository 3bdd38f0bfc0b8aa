import { getCACertificates } from 'node:tls';
import type { ApplePushConfig, ApplePushKey } from '../../config/services.ts';
import { readAppleKey, readCaFile } from '../../config/keys/push-keys.ts';
import { readApnsResponse, apnsReasonOf } from './apple-response.ts';
import { AppleProviderTokens } from './apple-token.ts';
import type { VendorOptions } from './google.ts';
import { H2Failure, type H2Response } from './h2-connection.ts';
import { H2Pool } from './h2-pool.ts';
import { failedOutcome, transportFailure, unregisteredOutcome, refusedOutcome } from '../outcomes.ts';
import { collapseKey, buildPayload } from '../payload.ts';
import type { PushNotification, PushOutcome, PushTarget, PushVendor } from './vendor.ts';

/** Apple's limit for a payload, in bytes. */
const MAX_PAYLOAD_BYTES = 4_096;
const CONNECT_TIMEOUT_MS = 5_000;
const PRODUCTION_ENDPOINT = 'https://api.push.apple.com';
const SANDBOX_ENDPOINT = 'https://api.sandbox.push.apple.com';
/**
 * The format of Apple's device tokens. Other texts are refused, since the token becomes a part of the request's path.
 */
const DEVICE_TOKEN_PATTERN = /^[0-9A-Fa-f]{16,400}$/;

/** A configured app, with its key and the connections that use this key. */
interface AppleApp {
  readonly bundleId: string;
  readonly pathPrefix: string;
  readonly tokens: AppleProviderTokens;
  readonly pool: H2Pool;
}

/** Sends pushes to Apple's push service, over HTTP/2 and with tokens that a .p8 key signs. */
export class AppleVendor implements PushVendor {
  readonly kind = 'apple';
  readonly problem: string | null;
  readonly #options: VendorOptions;
  readonly #appsByBundleId = new Map<string, AppleApp>();
  /** The connections by origin and key. Apple accepts the tokens of only one key on a connection. */
  readonly #poolsByOriginAndKey = new Map<string, H2Pool>();
  readonly #tokensByKey = new Map<string, AppleProviderTokens>();
  readonly #defaultBundleId: string | null;

  constructor(config: ApplePushConfig, options: VendorOptions) {
    this.#options = options;
    this.#defaultBundleId = config.keys[0]?.bundleId ?? null;
    const authority = config.extraAppleCaFile === null ? null : readCaFile(config.extraAppleCaFile);
    const problems = typeof authority === 'string' ? [authority] : [];
    const ca = authority === null || typeof authority === 'string' ? null : [authority.pem];
    for (const key of problems.length > 0 ? [] : config.keys) {
      const problem = this.#addAppReturningProblem(key, config.applePushEndpoint, ca);
      if (problem !== null) problems.push(problem);
    }
    this.problem = this.#appsByBundleId.size > 0 ? null : (problems[0] ?? 'there is no key of it');
  }

  async send(target: PushTarget, notification: PushNotification): Promise<PushOutcome> {
    const app = this.#appsByBundleId.get(target.app ?? this.#defaultBundleId ?? '');
    if (app === undefined) return refusedOutcome('no key', null);
    if (!DEVICE_TOKEN_PATTERN.test(target.token)) return unregisteredOutcome('token', null);
    const deadlineMs = performance.now() + this.#options.timeoutMs;
    const body = renderApns(notification);
    try {
      const token = app.tokens.getToken();
      const response = await this.#post(app, this.#headers(app, target, notification), body, deadlineMs);
      if (!hasTokenExpired(response)) return this.#toOutcome(response);
      const waitMs = app.tokens.renewExpiredOrWaitMs(token);
      if (waitMs > 0)
        return failedOutcome('key', { code: response.status, retryAfterMs: waitMs, vendorWide: this.#isOnlyApp });
      return this.#toOutcome(await this.#post(app, this.#headers(app, target, notification), body, deadlineMs));
    } catch (error) {
      return toFailure(error);
    }
  }

  stop(): Promise<void> {
    for (const pool of this.#poolsByOriginAndKey.values()) pool.stop();
    return Promise.resolve();
  }

  /**
   * True if only one app is configured. Then a failure of its key concerns the vendor as a whole; otherwise the other
   * apps must not wait.
   */
  get #isOnlyApp(): boolean {
    return this.#appsByBundleId.size === 1;
  }

  #addAppReturningProblem(key: ApplePushKey, endpoint: string | null, ca: readonly string[] | null): string | null {
    if (this.#appsByBundleId.has(key.bundleId)) return null;
    const privateKey = readAppleKey(key.path);
    if (typeof privateKey === 'string') return privateKey;
    const { timeoutMs, now = () => performance.now() } = this.#options;
    const url = new URL(endpoint ?? (key.sandbox ? SANDBOX_ENDPOINT : PRODUCTION_ENDPOINT));
    const name = `${key.teamId} ${key.keyId}`;
    const connectTimeoutMs = Math.min(CONNECT_TIMEOUT_MS, timeoutMs);
    const trusted = ca === null ? null : [...getCACertificates('default'), ...ca];
    const pool =
      this.#poolsByOriginAndKey.get(`${url.origin} ${name}`) ??
      new H2Pool(url.origin, { ca: trusted, connectTimeoutMs });
    const tokens = this.#tokensByKey.get(name) ?? new AppleProviderTokens(privateKey, key, now);
    this.#poolsByOriginAndKey.set(`${url.origin} ${name}`, pool);
    this.#tokensByKey.set(name, tokens);
    const path = url.pathname.replace(/\/+$/, '');
    this.#appsByBundleId.set(key.bundleId, { bundleId: key.bundleId, pathPrefix: path, tokens, pool });
    return null;
  }

  /** The request's headers, as alternating names and values, with the current provider token. */
  #headers(app: AppleApp, target: PushTarget, notification: PushNotification): string[] {
    return [
      ':path',
      `${app.pathPrefix}/3/device/${target.token}`,
      'content-type',
      'application/json',
      'apns-topic',
      app.bundleId,
      'apns-push-type',
      'alert',
      'apns-priority',
      // Priority 10: at once. 5: when the device's battery allows it.
      notification.urgent ? '10' : '5',
      'apns-expiration',
      String(Math.floor(notification.expiresAt.getTime() / 1000)),
      'apns-collapse-id',
      collapseKey(notification),
      'user-agent',
      this.#options.userAgent,
      'authorization',
      `bearer ${app.tokens.getToken()}`,
    ];
  }

  #post(app: AppleApp, headers: readonly string[], body: string, deadlineMs: number): Promise<H2Response> {
    return app.pool.post(headers, body, Math.max(1, deadlineMs - performance.now()));
  }

  #toOutcome(response: H2Response): PushOutcome {
    const outcome = readApnsResponse(response);
    if (outcome.outcome !== 'failed' || outcome.category !== 'key') return outcome;
    return { ...outcome, vendorWide: this.#isOnlyApp };
  }
}

/**
 * The JSON payload: title and text for the phone to show, which an extension of the app may change, and numbers for the
 * app.
 */
function renderApns(notification: PushNotification): string {
  return buildPayload(notification, MAX_PAYLOAD_BYTES, ({ title, text }) => ({
    aps: {
      alert: { title, ...(text === null ? {} : { body: text }) },
      'thread-id': collapseKey(notification),
      'mutable-content': 1,
      ...(notification.accountUnreadCount === null ? {} : { badge: notification.accountUnreadCount }),
      ...(notification.urgent ? { sound: 'default' } : {}),
    },
    conversation: notification.conversationId,
    first_seq: notification.firstSeq,
    last_seq: notification.lastSeq,
  }));
}

function hasTokenExpired(response: H2Response): boolean {
  return response.status === 403 && apnsReasonOf(response) === 'ExpiredProviderToken';
}

function toFailure(error: unknown): PushOutcome {
  if (!(error instanceof H2Failure)) throw error;
  if (error.reason === 'connect') return transportFailure(error.cause ?? error);
  // `busy`: this node has too many waiting requests, which says nothing about Apple.
  return failedOutcome(error.reason === 'lost' ? 'connection' : error.reason, { vendorWide: error.reason !== 'busy' });
}
