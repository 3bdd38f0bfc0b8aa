import { createHash, ECDH } from 'node:crypto';
import type { Config } from '../../config/config.ts';
import { configuredAppIds, configuredDeviceKinds, PUSH_SETTING_KEYS } from '../../config/push-apps.ts';
import { KlatchError } from '../../errors.ts';
import type { DeviceKind, WebSubscription } from '../../model/device.ts';
import type { AddressPolicy } from '../../outbound/address-policy.ts';

const MAX_GOOGLE_TOKEN_LENGTH = 4_096;
const GOOGLE_TOKEN_PATTERN = /^[\x21-\x7e]+$/;
/**
 * A device token of Apple. The pattern allows more than today's 64 hexadecimal digits, since Apple may make them
 * longer.
 */
const APPLE_TOKEN_PATTERN = /^(?:[0-9a-fA-F]{2}){32,100}$/;
const MAX_ENDPOINT_LENGTH = 2_048;
/** A browser's keys in base64url: a public key of 65 bytes, and a secret of 16 bytes. Some libraries add padding. */
const PUBLIC_KEY_PATTERN = /^[A-Za-z0-9_-]{87}=?$/;
const AUTH_SECRET_PATTERN = /^[A-Za-z0-9_-]{22}(?:==)?$/;
const UNCOMPRESSED_POINT_PREFIX = 4;

type AppDeviceKind = Exclude<DeviceKind, 'web'>;

/** Each parser checks the form of a vendor's token, and returns the only spelling in which the server stores it. */
const TOKEN_PARSERS: Readonly<Record<AppDeviceKind, (token: string) => string>> = {
  google: parseGoogleToken,
  apple: parseAppleToken,
};

/** For each vendor, the configuration key whose value identifies an app. */
const APP_ID_CONFIG_KEYS: Readonly<Record<AppDeviceKind, string>> = { google: 'project-id', apple: 'bundle-id' };

/** The token that identifies a device to its vendor. */
interface DeviceToken {
  /**
   * The vendor's own token; for a browser, the JSON of its `WebSubscription`. It is stored sealed, and never logged.
   */
  readonly token: string;
  /** SHA-256 (hex) of the token, or of a browser's endpoint. The database finds the device by it. */
  readonly hash: string;
}

/** A client's description of its device. */
interface DeviceTokenInput {
  readonly kind: DeviceKind;
  readonly token?: string | undefined;
  readonly subscription?: WebSubscription | undefined;
}

/**
 * Checks the token of a device, and returns it in the one spelling in which the server stores it. Throws
 * `invalid_input` for a token that its vendor cannot have issued, and `hook_address_forbidden` for an endpoint that the
 * address policy refuses. No error quotes the token or the endpoint.
 */
export function parseDeviceToken({ kind, token, subscription }: DeviceTokenInput, policy: AddressPolicy): DeviceToken {
  if (kind === 'web') {
    if (token !== undefined) throw invalid('token: a browser is registered by its subscription, without a token');
    if (subscription === undefined) throw invalid('subscription: is required for the kind web');
    const parsed = parseSubscription(subscription, policy);
    // The endpoint alone identifies the browser: with new encryption keys it is still the same device.
    return { token: JSON.stringify(parsed), hash: deviceLookupHash(parsed.endpoint) };
  }
  if (subscription !== undefined) throw invalid(`subscription: is for the kind web; ${kind} has a token`);
  if (token === undefined) throw invalid(`token: is required for the kind ${kind}`);
  const parsed = TOKEN_PARSERS[kind](token);
  return { token: parsed, hash: deviceLookupHash(parsed) };
}

/**
 * Throws `invalid_input` if the server sends no pushes to this kind of device, or to this app. The error names the
 * setting that the administrator would have to change.
 */
export function requirePushConfigured(config: Config, kind: DeviceKind, app: string | null): void {
  if (!configuredDeviceKinds(config).includes(kind)) {
    throw invalid(
      `kind: devices of the kind ${kind} are told nothing here, since ${PUSH_SETTING_KEYS[kind]} is not configured`,
    );
  }
  if (app === null) return;
  if (kind === 'web') throw invalid(`app: is for the kinds ${Object.keys(APP_ID_CONFIG_KEYS).join(' and ')}`);
  if (configuredAppIds(config, kind).includes(app)) return;
  throw invalid(
    `app: nothing in ${PUSH_SETTING_KEYS[kind]} has this ${APP_ID_CONFIG_KEYS[kind]}; /v1/about lists those that there are`,
  );
}

function parseGoogleToken(token: string): string {
  if (token.length <= MAX_GOOGLE_TOKEN_LENGTH && GOOGLE_TOKEN_PATTERN.test(token)) return token;
  throw invalid(
    `token: is no registration token of Firebase (visible ASCII, at most ${MAX_GOOGLE_TOKEN_LENGTH} characters)`,
  );
}

/** Returns the token in lower case, since upper and lower case name the same device. */
function parseAppleToken(token: string): string {
  if (APPLE_TOKEN_PATTERN.test(token)) return token.toLowerCase();
  throw invalid('token: is no device token of Apple (64 to 200 hexadecimal digits)');
}

function parseSubscription({ endpoint, keys }: WebSubscription, policy: AddressPolicy): WebSubscription {
  return {
    endpoint: parseEndpoint(endpoint, policy),
    keys: { p256dh: parsePublicKey(keys.p256dh), auth: parseAuthSecret(keys.auth) },
  };
}

/** Checks the endpoint of a browser. It has to use TLS, unless `delivery.allow` names its host. */
function parseEndpoint(text: string, policy: AddressPolicy): string {
  const invalidEndpoint = (what: string): KlatchError => invalid(`subscription.endpoint: ${what}`);
  const url = URL.parse(text);
  if (url === null || !['http:', 'https:'].includes(url.protocol))
    throw invalidEndpoint('is no absolute https:// address');
  if (url.username !== '' || url.password !== '' || url.href.includes('#')) {
    throw invalidEndpoint('must hold no credentials and no fragment');
  }
  if (url.port === '0' || url.href.length > MAX_ENDPOINT_LENGTH) {
    throw invalidEndpoint(`has the port 0, or more than ${MAX_ENDPOINT_LENGTH} characters`);
  }
  const rule = policy.violatedRuleBeforeLookup(url.hostname);
  if (rule !== null) {
    const sentence =
      `subscription.endpoint: the address policy refuses this host (${rule}): ` +
      'the administrator can allow it with delivery.allow in server.conf';
    throw new KlatchError('hook_address_forbidden', { sentence });
  }
  if (url.protocol === 'http:' && !policy.isHostAllowListed(url.hostname)) {
    throw invalidEndpoint('must begin with https:// (http:// is for hosts that delivery.allow names)');
  }
  return url.href;
}

/**
 * Checks a browser's public key: an uncompressed point of P-256 (RFC 8291). Nothing can be encrypted for other bytes.
 */
function parsePublicKey(text: string): string {
  const bytes = Buffer.from(text, 'base64url');
  if (PUBLIC_KEY_PATTERN.test(text) && bytes[0] === UNCOMPRESSED_POINT_PREFIX && isOnP256Curve(bytes))
    return bytes.toString('base64url');
  throw invalid('subscription.keys.p256dh: is no public key of P-256 in base64url (65 bytes, uncompressed)');
}

function isOnP256Curve(point: Buffer): boolean {
  try {
    ECDH.convertKey(point, 'prime256v1');
    return true;
  } catch {
    // OpenSSL throws for a point that is not on the curve.
    return false;
  }
}

function parseAuthSecret(text: string): string {
  if (AUTH_SECRET_PATTERN.test(text)) return Buffer.from(text, 'base64url').toString('base64url');
  throw invalid('subscription.keys.auth: is no secret of 16 bytes in base64url');
}

function deviceLookupHash(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

function invalid(sentence: string): KlatchError {
  return new KlatchError('invalid_input', { sentence });
}
