import {
  arrayOf,
  boolean,
  integer,
  nullable,
  objectWithAtLeast,
  string,
  type Decoded,
} from '../../client/core/decode.ts';
import type { Api } from './api.ts';

/** An account has fewer sessions as a rule; the ones beyond are ended with the others. */
const MAX_SESSIONS = 200;

const decodeProfile = objectWithAtLeast({ id: integer, nick: string, name: string, about: nullable(string) });
const decodeSession = objectWithAtLeast({
  id: integer,
  label: string,
  created_at: string,
  used_at: string,
  current: boolean,
});
const decodeSessions = objectWithAtLeast({ sessions: arrayOf(decodeSession) });
const decodeEnded = objectWithAtLeast({ session: integer });
const decodeOthersEnded = objectWithAtLeast({ ended: integer });

/** What others see of an account. */
export type Profile = Decoded<typeof decodeProfile>;
/** A sign-in of the account, on one device. */
export type AccountSession = Decoded<typeof decodeSession>;

/** The operations on the own account. They reject with ServerError and ConnectionError. */
export class AccountApi {
  readonly #api: Api;

  constructor(api: Api) {
    this.#api = api;
  }

  profile(): Promise<Profile> {
    return this.#api.call('profile.show', {}, decodeProfile);
  }

  updateProfile(profile: Pick<Profile, 'nick' | 'name' | 'about'>): Promise<Profile> {
    return this.#api.call('profile.update', profile, decodeProfile);
  }

  async sessions(): Promise<AccountSession[]> {
    return (await this.#api.call('sessions.list', { limit: MAX_SESSIONS }, decodeSessions)).sessions;
  }

  async endSession(session: number): Promise<void> {
    await this.#api.call('sessions.end', { session }, decodeEnded);
  }

  async endOtherSessions(): Promise<void> {
    await this.#api.call('sessions.end-others', {}, decodeOthersEnded);
  }
}
