import { anything, arrayOf, boolean, objectWithAtLeast, type Decoder } from '../../client/core/decode.ts';

/** The `limit` of the request for the list of sessions: the greatest that the server accepts. */
const MAX_LISTED_SESSIONS = 1_000;

const decodeProfile = objectWithAtLeast({ addresses: arrayOf(anything) });
const decodeSessions = objectWithAtLeast({
  sessions: arrayOf(objectWithAtLeast({ current: boolean, app_password: boolean })),
});

interface RisksApi {
  call<Answer>(operation: string, input: object, decode: Decoder<Answer>): Promise<Answer>;
}

/** The losses that a sign-out would cause. */
export interface SignOutRisks {
  /** Whether texts that were not sent would be lost. */
  readonly losesTexts: boolean;
  /**
   * Whether the person could not sign in again: the account has no address for codes, and is signed in nowhere else.
   */
  readonly losesAccess: boolean;
}

/**
 * Whether only the administrator could restore access to the account after a sign-out. Rejects with ServerError and
 * ConnectionError.
 */
export async function isOnlyWayIn(api: RisksApi): Promise<boolean> {
  const { addresses } = await api.call('profile.show', {}, decodeProfile);
  if (addresses.length > 0) return false;
  const { sessions } = await api.call('sessions.list', { limit: MAX_LISTED_SESSIONS }, decodeSessions);
  return sessions.every((session) => session.current || session.app_password);
}
