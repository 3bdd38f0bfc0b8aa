import { Agent, request } from 'undici';
import type { GooglePushConfig } from '../../config/services.ts';
import { readServiceAccount } from '../../config/keys/push-keys.ts';
import { readResponse, type VendorResponse } from './response.ts';
import { readFcmResponse, refusesAccessToken } from './google-response.ts';
import { GoogleAccessTokens } from './google-token.ts';
import { failedOutcome, refusedOutcome, type FailedOutcome } from '../outcomes.ts';
import { collapseKey, buildPayload, secondsUntilExpiry } from '../payload.ts';
import type { PushNotification, PushOutcome, PushTarget, PushVendor } from './vendor.ts';

/** The most bytes of a message. FCM's limit is 4,096; the difference is for parts that FCM may count too. */
const MAX_PAYLOAD_BYTES = 4_000;
/** The longest time, in seconds, for which FCM stores a message: 28 days. */
const MAX_TTL_S = 28 * 24 * 3600;
const MAX_TOKEN_CHARACTERS = 4_096;
/**
 * The most connections, over HTTP/1.1. HTTP/2 gained nothing: a service that answers after 30 ms accepted as many
 * pushes a second (1,800), with as much processor time of this node.
 */
const MAX_CONNECTIONS = 64;
const CONNECT_TIMEOUT_MS = 5_000;
const MAX_HEADER_BYTES = 16 * 1024;

/** The limits of pushes to a vendor whose address is configured, and the User-Agent. */
export interface VendorOptions {
  readonly timeoutMs: number;
  /** The most pushes in flight at once. */
  readonly maxInFlight: number;
  readonly userAgent: string;
  /** A monotonic clock in milliseconds; by default `performance.now`. Tests set their own. */
  readonly now?: () => number;
}

interface FirebaseProject {
  readonly sendUrl: string;
  readonly tokens: GoogleAccessTokens;
}

/** Sends pushes to Firebase Cloud Messaging (FCM), by its HTTP v1 API. */
export class GoogleVendor implements PushVendor {
  readonly kind = 'google';
  readonly problem: string | null;
  readonly #projects = new Map<string, FirebaseProject>();
  readonly #defaultProjectId: string | null;
  readonly #options: VendorOptions;
  /**
   * The connections to FCM. They follow no redirects, since tokens and texts must go only to the configured address.
   */
  readonly #agent: Agent;

  constructor(config: GooglePushConfig, options: VendorOptions) {
    this.#options = options;
    const { timeoutMs, maxInFlight: inFlight, userAgent, now = () => performance.now() } = options;
    const dispatcher = new Agent({
      connections: Math.min(inFlight, MAX_CONNECTIONS),
      connect: { timeout: Math.min(CONNECT_TIMEOUT_MS, timeoutMs) },
      maxHeaderSize: MAX_HEADER_BYTES,
      allowH2: false,
    });
    this.#agent = dispatcher;
    const problems: string[] = [];
    for (const { projectId, key } of config.keys) {
      const account = readServiceAccount(projectId, key);
      if (typeof account === 'string') problems.push(account);
      else if (!this.#projects.has(projectId)) {
        const tokenOptions = { endpoint: config.tokenEndpoint, dispatcher, userAgent, timeoutMs, now };
        const url = `${config.googlePushEndpoint}/v1/projects/${encodeURIComponent(projectId)}/messages:send`;
        this.#projects.set(projectId, { sendUrl: url, tokens: new GoogleAccessTokens(account, tokenOptions) });
      }
    }
    this.#defaultProjectId = config.keys[0]?.projectId ?? null;
    this.problem = this.#projects.size > 0 ? null : (problems[0] ?? 'there is no key of it');
  }

  async send(target: PushTarget, notification: PushNotification): Promise<PushOutcome> {
    const project = this.#projects.get(target.app ?? this.#defaultProjectId ?? '');
    if (project === undefined) return refusedOutcome('no key', null);
    if (target.token.length > MAX_TOKEN_CHARACTERS) return refusedOutcome('request', null);
    const body = renderFcm(target.token, notification);
    const response = await this.#sendWithRetry(project, body);
    const outcome = 'outcome' in response ? response : readFcmResponse(response);
    if (outcome.outcome !== 'failed' || outcome.category !== 'key') return outcome;
    // If several projects are configured, a failure of one project's key must not make the others wait.
    return { ...outcome, vendorWide: this.#projects.size === 1 };
  }

  async #sendWithRetry(project: FirebaseProject, body: string): Promise<VendorResponse | FailedOutcome> {
    // AbortSignal.timeout is not used: its timers would continue after the answers, with thousands of pushes a second.
    const deadline = new AbortController();
    const abortAtDeadline = (): void => deadline.abort(new DOMException('the time is up', 'TimeoutError'));
    const timer = setTimeout(abortAtDeadline, this.#options.timeoutMs);
    try {
      const firstResponse = await this.#post(project, body, deadline.signal);
      return isWorthImmediateRetry(firstResponse) ? await this.#post(project, body, deadline.signal) : firstResponse;
    } finally {
      clearTimeout(timer);
    }
  }

  async stop(): Promise<void> {
    await this.#agent.destroy();
  }

  async #post(
    { sendUrl: url, tokens }: FirebaseProject,
    body: string,
    signal: AbortSignal,
  ): Promise<VendorResponse | FailedOutcome> {
    const token = await Promise.race([tokens.getToken(), failAtDeadline(signal)]);
    if (typeof token !== 'string') return token;
    const headers = {
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      'user-agent': this.#options.userAgent,
    };
    const response = await readResponse(
      () => request(url, { method: 'POST', headers, body, signal, dispatcher: this.#agent }),
      signal,
    );
    if ('status' in response && refusesAccessToken(response)) tokens.invalidate(token);
    return response;
  }
}

function failAtDeadline(signal: AbortSignal): Promise<FailedOutcome> {
  const late = failedOutcome('timeout', { vendorWide: true });
  if (signal.aborted) return Promise.resolve(late);
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(late), { once: true }));
}

/**
 * True if one immediate retry may help: the access token was revoked, or an idle connection was closed while the
 * request was written. If both pushes arrive, the second replaces the first on the device.
 */
function isWorthImmediateRetry(response: VendorResponse | FailedOutcome): boolean {
  return 'status' in response ? refusesAccessToken(response) : response.category === 'connection';
}

/** FCM's message to a device token: title and text for the phone to show, and numbers for the app. */
function renderFcm(token: string, notification: PushNotification): string {
  const key = collapseKey(notification);
  const data = {
    conversation: String(notification.conversationId),
    first_seq: String(notification.firstSeq),
    last_seq: String(notification.lastSeq),
    ...(notification.accountUnreadCount === null ? {} : { unread: String(notification.accountUnreadCount) }),
  };
  const android = {
    collapse_key: key,
    priority: notification.urgent ? 'HIGH' : 'NORMAL',
    ttl: `${secondsUntilExpiry(notification, MAX_TTL_S)}s`,
    // With the same tag, the conversation's next notification replaces this one on the screen.
    notification: {
      tag: key,
      ...(notification.accountUnreadCount === null ? {} : { notification_count: notification.accountUnreadCount }),
    },
  };
  const payload = buildPayload(notification, MAX_PAYLOAD_BYTES, ({ title, text }) => ({
    notification: { title, ...(text === null ? {} : { body: text }) },
    data,
  }));
  return `{"message":{"token":${JSON.stringify(token)},"android":${JSON.stringify(android)},${payload.slice(1)}}`;
}
