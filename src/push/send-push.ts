import type { Log } from '../log.ts';
import { WrongSecretError } from '../storage/db/sealed.ts';
import type { DeviceTokenCache } from './device-tokens.ts';
import { failedOutcome, refusedOutcome } from './outcomes.ts';
import type { PushNotification, PushOutcome, PushVendor } from './vendors/vendor.ts';

/** A vendor's driver that takes longer than `push.timeout` and this time together is not waited for. */
export const SEND_GRACE_MS = 5_000;

export interface SendDeps {
  readonly tokens: DeviceTokenCache;
  readonly timeoutMs: number;
  readonly log: Log;
}

/** A device with its sealed token. */
interface DeviceWithSealedToken {
  readonly tokenSealed: string;
  readonly app: string | null;
}

/** Sends one push. Never rejects, and resolves within `timeoutMs` and SEND_GRACE_MS, whatever the driver does. */
export function sendPush(
  vendor: PushVendor,
  push: { target: DeviceWithSealedToken; notification: PushNotification },
  { tokens, timeoutMs, log }: SendDeps,
): Promise<PushOutcome> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(failedOutcome('timeout')), timeoutMs + SEND_GRACE_MS);
    const conclude = (outcome: PushOutcome): void => {
      clearTimeout(timer);
      resolve(outcome);
    };
    const fail = (error: unknown): void => conclude(toOutcome(error, vendor, log));
    try {
      const token = tokens.open(push.target.tokenSealed);
      vendor.send({ token, app: push.target.app }, push.notification).then(conclude, fail);
    } catch (error) {
      fail(error);
    }
  });
}

function toOutcome(error: unknown, { kind }: PushVendor, log: Log): PushOutcome {
  if (error instanceof WrongSecretError) return refusedOutcome('sealed', null);
  // The driver has a bug. Only the name of its error is logged, since its message may contain secrets.
  log.error('a push could not be sent', { vendor: kind, name: error instanceof Error ? error.name : 'unknown' });
  return failedOutcome('internal');
}
