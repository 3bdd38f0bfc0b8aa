import type { KeyObject } from 'node:crypto';
import { hookSecretKey } from '../model/hook-secret.ts';
import type { HttpAttemptOutcome } from '../outbound/delivery-client.ts';
import type { HookSignature } from '../storage/hooks/hooks.ts';
import type { Sealer } from '../storage/db/sealed.ts';
import { signV1, signV1a } from './sign.ts';

/** The keys that sign a hook's deliveries. The old one also signs until `untilMs` (Unix time). */
export interface SigningKeys {
  readonly current: KeyObject;
  readonly old: { readonly key: KeyObject; readonly untilMs: number } | null;
  /** Private keys of the server that sign `v1a`. */
  readonly serverKeys: readonly KeyObject[];
}

/** The secrets in a hook's row. */
interface SealedSecrets {
  readonly secretSealed: string;
  readonly oldSecretSealed: string | null;
  readonly oldSecretUntil: Date | null;
}

/** The parts of a request that its signature covers or its headers contain. */
interface SignedRequest {
  /** The value of the header `webhook-id`. */
  readonly id: string;
  /** The time of this attempt. */
  readonly at: Date;
  readonly body: Buffer;
  /** The value of the header `klatch-hops`: the webhooks that the message has passed through. */
  readonly hops: number;
}

/** The outcome of a request that was not sent, since its hook asks for a signature that the server cannot make. */
export const MISSING_SERVER_KEY_FAILURE: HttpAttemptOutcome = {
  delivered: false,
  category: 'signature',
  code: null,
  durationMs: 0,
  retryAfterMs: null,
  detail: 'the hook asks for v1a, and modules.security.server-keys names no key',
};

/**
 * Decrypts the secrets in a hook's row. Throws when they were sealed with another `secret` than the server's present
 * one.
 */
export function openSigningKeys(sealer: Sealer, serverKeys: readonly KeyObject[], row: SealedSecrets): SigningKeys {
  const current = hookSecretKey(sealer.open('hook-secret', row.secretSealed));
  if (row.oldSecretSealed === null || row.oldSecretUntil === null) return { current, old: null, serverKeys };
  const key = hookSecretKey(sealer.open('hook-secret', row.oldSecretSealed));
  return { current, old: { key, untilMs: row.oldSecretUntil.getTime() }, serverKeys };
}

/** True when a hook asks for a signature that the server cannot make: nothing must be sent to it. */
export function lacksServerKey(keys: SigningKeys, requested: HookSignature): boolean {
  return requested !== 'v1' && keys.serverKeys.length === 0;
}

/** The headers of one request, signed as its hook asks, at the time of this attempt. */
export function deliveryHeaders(
  keys: SigningKeys,
  requested: HookSignature,
  { id, at, body, hops }: SignedRequest,
): Record<string, string> {
  const timestampS = Math.floor(at.getTime() / 1000);
  const { current, old, serverKeys: server } = keys;
  const secrets = old !== null && at.getTime() < old.untilMs ? [current, old.key] : [current];
  const v1 = requested === 'v1a' ? '' : signV1(secrets, id, timestampS, body);
  const v1a = requested === 'v1' ? '' : signV1a(server, id, timestampS, body);
  return {
    'content-type': 'application/json',
    'webhook-id': id,
    'webhook-timestamp': String(timestampS),
    'webhook-signature': requested === 'both' ? `${v1} ${v1a}` : v1 + v1a,
    'klatch-hops': String(hops),
  };
}
