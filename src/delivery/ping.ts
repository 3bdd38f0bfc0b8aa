import type { KeyObject } from 'node:crypto';
import type { DeliveryConfig } from '../config/config.ts';
import type { Log } from '../log.ts';
import type { ConversationId, LogEpoch, Rev, Seq } from '../model/ids.ts';
import type { ExampleRequest } from '../model/example-request.ts';
import { hookToken } from '../model/hook-secret.ts';
import type { AddressPolicy } from '../outbound/address-policy.ts';
import { DeliveryClient, type HttpAttemptOutcome } from '../outbound/delivery-client.ts';
import type { DnsResolver } from '../outbound/dns-resolver.ts';
import { receiverFormat } from '../receivers/formats.ts';
import type { ExampleTarget, PingTarget } from '../storage/hooks/hook-ping.ts';
import type { Sealer } from '../storage/db/sealed.ts';
import {
  deliveryHeaders,
  lacksServerKey,
  openSigningKeys,
  MISSING_SERVER_KEY_FAILURE,
  type SigningKeys,
} from './headers.ts';
import { deliveryBody, deliveryId } from './payload.ts';

interface PingerOptions {
  readonly config: DeliveryConfig;
  readonly policy: AddressPolicy;
  readonly lookup: DnsResolver;
  readonly userAgent: string;
  readonly sealer: Sealer;
  /** The server's private keys that sign deliveries. */
  readonly serverKeys: readonly KeyObject[];
  readonly log: Log;
}

const MAX_PINGS_IN_FLIGHT = 16;
/** The most pings of one group in flight. So receivers of one group that hang do not use up all pings. */
const MAX_PINGS_PER_GROUP = 4;
/**
 * The longest times for connecting and the answer's headers, and then for the answer's body. A ping must end within 8
 * s, since its caller waits for it.
 */
const MAX_HEADERS_TIMEOUT_MS = 6_000;
const MAX_BODY_TIMEOUT_MS = 1_000;
/**
 * An unused connection is closed after this time, which is shorter than the 5 s between two pings of a hook. So a ping
 * usually opens a new connection, and tests whether that is possible.
 */
const KEEP_ALIVE_MS = 1_000;

/**
 * Sends pings. They are signed like deliveries and obey the same address policy, but use other connections. So pings
 * and deliveries do not wait for each other. A target's answer to a ping has no effect on its hook.
 */
export class Pinger {
  readonly #options: PingerOptions;
  readonly #client: DeliveryClient;
  readonly #inFlightByGroup = new Map<ConversationId, number>();
  #totalInFlight = 0;

  constructor(options: PingerOptions) {
    const { config, policy, lookup, userAgent } = options;
    this.#options = options;
    this.#client = new DeliveryClient({
      policy,
      lookup,
      userAgent,
      // Equal to the bound for all hosts together, so that no ping waits for a connection.
      maxInFlightPerHost: MAX_PINGS_IN_FLIGHT,
      connectTimeoutMs: config.connectTimeoutMs,
      responseHeadersTimeoutMs: Math.min(config.responseHeadersTimeoutMs, MAX_HEADERS_TIMEOUT_MS),
      maxResponseBytes: config.maxResponseBytes,
      responseBodyReadMs: Math.min(config.responseBodyReadMs, MAX_BODY_TIMEOUT_MS),
      keepAliveMs: KEEP_ALIVE_MS,
      maxIdleConnections: MAX_PINGS_IN_FLIGHT,
    });
  }

  /** Sends one ping; resolves within 8 s. Null when too many pings are in flight, or the server is stopping. */
  async send(target: PingTarget): Promise<HttpAttemptOutcome | null> {
    const { conversationId: group } = target;
    const groupInFlight = this.#inFlightByGroup.get(group) ?? 0;
    if (this.#totalInFlight >= MAX_PINGS_IN_FLIGHT || groupInFlight >= MAX_PINGS_PER_GROUP) return null;
    this.#totalInFlight += 1;
    this.#inFlightByGroup.set(group, groupInFlight + 1);
    try {
      return await this.#signAndPostUnlessStopped(target);
    } finally {
      this.#totalInFlight -= 1;
      const remaining = this.#inFlightByGroup.get(group)! - 1;
      if (remaining === 0) this.#inFlightByGroup.delete(group);
      else this.#inFlightByGroup.set(group, remaining);
    }
  }

  /**
   * The signed request that the hook would get for an invented message; nothing is sent. Null: the hook asks for a
   * signature that the server cannot make.
   */
  example(target: ExampleTarget): ExampleRequest | null {
    const { sealer, serverKeys, userAgent } = this.#options;
    const keys = openSigningKeys(sealer, serverKeys, target);
    if (lacksServerKey(keys, target.signature)) return null;
    const at = new Date();
    const { url, headers, body, id } = exampleOf(target, at);
    const signed = deliveryHeaders(keys, target.signature, { id, at, body, hops: 0 });
    return { url, headers: { 'user-agent': userAgent, ...signed, ...headers }, body: body.toString('utf8') };
  }

  /** Ends the pings in flight. Idempotent. */
  stop(): Promise<void> {
    return this.#client.stop();
  }

  async #signAndPostUnlessStopped(target: PingTarget): Promise<HttpAttemptOutcome | null> {
    const { sealer, serverKeys, log } = this.#options;
    const keys = openSigningKeys(sealer, serverKeys, target);
    if (lacksServerKey(keys, target.signature)) return MISSING_SERVER_KEY_FAILURE;
    const at = new Date();
    const { url, headers, body } = pingRequest(target, keys, at);
    const request = { id: `${target.hookId}_ping_${at.getTime()}`, at, body, hops: 0 };
    const signed = deliveryHeaders(keys, target.signature, request);
    const attempt = await this.#client.post(url, { ...signed, ...headers }, body);
    const { category, code, detail, durationMs } = attempt;
    log.info('a ping', { hook: target.hookId, host: new URL(target.url).hostname, category, code, detail, durationMs });
    // A failed attempt has no category if this server closed its HTTP client: such an attempt says nothing about the
    // receiver.
    return attempt.delivered || category !== null ? attempt : null;
  }
}

/**
 * Builds the request of a ping. In the format of another product, a ping is a message with seq 0, which no group
 * contains. A reply to it is not posted.
 */
function pingRequest(
  target: PingTarget,
  keys: SigningKeys,
  at: Date,
): { url: string; headers: Readonly<Record<string, string>>; body: Buffer } {
  const { conversationId, title, hookId } = target;
  const foreign = foreignRequest(target, {
    at,
    text: `Klatch tests reverse webhook ${hookId} of the group ${title}.`,
    token: hookToken(keys.current),
  });
  if (foreign !== null) return foreign;
  const data = { group: { id: conversationId, title }, hook: { id: hookId } };
  const body = JSON.stringify({ type: 'webhook.ping', timestamp: at.toISOString(), data });
  return { url: target.url, headers: {}, body: Buffer.from(body) };
}

const TOKEN_PLACEHOLDER = '<token of the hook>';

/** An invented message has seq 0, which no group contains. */
const INVENTED = {
  seq: 0 as Seq,
  logEpoch: 0 as LogEpoch,
  rev: 0 as Rev,
  revLogEpoch: 0 as LogEpoch,
  text: 'This message is an example. It is in no group.',
  deliveredAsDeleted: false,
  attachments: null,
  cards: null,
  senderId: 0,
  senderName: 'Klatch',
  senderNick: null,
  senderKind: 'bot',
  label: null,
} as const;

function exampleOf(
  target: ExampleTarget,
  at: Date,
): { id: string; url: string; headers: Readonly<Record<string, string>>; body: Buffer } {
  const { hookId, conversationId, title, batch } = target;
  const { seq, logEpoch, text } = INVENTED;
  const id = deliveryId(hookId, conversationId, { first: seq, last: seq, rev: 0, lastRev: null, logEpoch });
  // Whoever reads the example must not learn the token, with which a receiver recognises the server.
  const foreign = foreignRequest(target, { at, text, token: TOKEN_PLACEHOLDER });
  if (foreign !== null) return { id, ...foreign };
  // The invented message has no file, so no link is made.
  const message = deliveryBody(conversationId, { ...INVENTED, title, sentAt: at }, () => '');
  const body = Buffer.from(batch === 1 ? message : `[${message}]`);
  return { id, url: target.url, headers: {}, body };
}

/** A message for a hook in the format of another product; null: the hook has Klatch's own format. */
function foreignRequest(
  { conversationId, title, url: target, format: name }: PingTarget,
  { at, text, token }: { readonly at: Date; readonly text: string; readonly token: string },
): { url: string; headers: Readonly<Record<string, string>>; body: Buffer } | null {
  const format = receiverFormat(name);
  if (format === null) return null;
  const url = new URL(target);
  const group = { id: conversationId, title };
  const sender = { id: 0, name: 'Klatch', nick: null, kind: 'bot', label: null, iconUrl: null } as const;
  const message = { id: `${conversationId}:0`, sentAt: at, text, trigger: '', files: [], group, sender };
  const body = Buffer.from(format.body(message, { url, token }));
  return { url: format.requestUrl(url), headers: format.headers, body };
}
