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

/**
 * The `limit` of a request for a list, the greatest that the server accepts. By default (`limits`) an account can have
 * fewer sessions, devices and bots, so that one answer contains all of them.
 */
const MAX_LISTED = 1_000;

const decodeProfile = objectWithAtLeast({ id: integer, nick: string, name: string, about: nullable(string) });
const decodeSession = objectWithAtLeast({
  id: integer,
  label: string,
  created_at: string,
  used_at: string,
  expires_at: nullable(string),
  current: boolean,
  app_password: boolean,
});
const decodeSessions = objectWithAtLeast({ sessions: arrayOf(decodeSession) });
const decodeAppPassword = objectWithAtLeast({ session: integer, label: string, token: string });
const decodeEnded = objectWithAtLeast({ session: integer });
const decodeOtherSessionsEnded = objectWithAtLeast({ ended: integer });
const decodeDevice = objectWithAtLeast({
  id: integer,
  kind: string,
  label: nullable(string),
  seen_at: string,
  current: boolean,
});
const decodeDevices = objectWithAtLeast({ devices: arrayOf(decodeDevice) });
const decodeDeviceRemoved = objectWithAtLeast({ device: integer });
const decodeBlocked = objectWithAtLeast({
  blocked: arrayOf(objectWithAtLeast({ id: integer, nick: string, name: string, at: string })),
});
const decodeUnblocked = objectWithAtLeast({ id: integer });

/** The fields of an account that others see. */
export type Profile = Decoded<typeof decodeProfile>;
/** A sign-in of the account: of a browser, a phone, a program. */
export type AccountSession = Decoded<typeof decodeSession>;
/** A new app password with its token, which the server shows only in this answer. */
export type AppPassword = Decoded<typeof decodeAppPassword>;
/** A device that gets notifications. */
type Device = Decoded<typeof decodeDevice>;
/** An account that the signed-in account has blocked: a blocked account cannot send private messages to it. */
type BlockedAccount = Decoded<typeof decodeBlocked>['blocked'][number];

/** The operations on the signed-in account. They reject with ServerError and ConnectionError. */
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

  /** All sessions of the account, app passwords included. */
  async sessions(): Promise<AccountSession[]> {
    return (await this.#api.call('sessions.list', { limit: MAX_LISTED }, decodeSessions)).sessions;
  }

  /** `expiresInS` null: the app password is valid until it is revoked. */
  createAppPassword(label: string, expiresInS: number | null): Promise<AppPassword> {
    const input = { label, ...(expiresInS === null ? {} : { expires_in_s: expiresInS }) };
    return this.#api.call('sessions.create', input, decodeAppPassword);
  }

  async endSession(session: number): Promise<void> {
    await this.#api.call('sessions.end', { session }, decodeEnded);
  }

  async endOtherSessions(): Promise<void> {
    await this.#api.call('sessions.end-others', {}, decodeOtherSessionsEnded);
  }

  async devices(): Promise<Device[]> {
    return (await this.#api.call('devices.list', { limit: MAX_LISTED }, decodeDevices)).devices;
  }

  async removeDevice(device: number): Promise<void> {
    await this.#api.call('devices.remove', { device }, decodeDeviceRemoved);
  }

  async blocked(): Promise<BlockedAccount[]> {
    return (await this.#api.call('blocks.list', { limit: MAX_LISTED }, decodeBlocked)).blocked;
  }

  async unblock(user: number): Promise<void> {
    await this.#api.call('blocks.remove', { user }, decodeUnblocked);
  }
}
