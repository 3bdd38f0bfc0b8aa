import { randomUUID } from 'node:crypto';
import { mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { InvalidArgumentError } from 'commander';
import {
  constant,
  decodeOrNull,
  integer,
  nonEmptyString,
  objectWithAtLeast,
  string,
  type Decoded,
} from '../core/decode.ts';
import { ChatCommandError } from './command-error.ts';
import type { ChatContext } from './context.ts';

const DEFAULT_PROFILE_NAME = 'default';
const PROFILE_NAME_PATTERN = /^[A-Za-z0-9_-]{1,64}$/;
const GROUP_AND_OTHERS_BITS = 0o077;

const decodeProfile = objectWithAtLeast({
  version: constant(1),
  /** The address of the server, as the person typed it at the sign-in. */
  server: string,
  token: nonEmptyString,
  /** A random id of the sign-in. The other files of the profile contain the id of the sign-in that they belong to. */
  sign_in: string,
  account: objectWithAtLeast({ id: integer, nick: string }),
});

/** A session with its server and account. */
export type Profile = Decoded<typeof decodeProfile>;

/** Reads the value of `--profile`. */
export function parseProfileName(text: string): string {
  if (PROFILE_NAME_PATTERN.test(text)) return text;
  throw new InvalidArgumentError('A profile is named with 1 to 64 letters, digits, dashes or underscores.');
}

/** The file with a profile's session: chat.json, or chat-<name>.json, in $XDG_CONFIG_HOME/klatch. */
export function profilePath(env: ChatContext['env'], name = DEFAULT_PROFILE_NAME): string {
  return join(xdgKlatchFolder(env['XDG_CONFIG_HOME'], '.config'), profileFileName(name));
}

/** The file with the last handled revs of a profile: named as the file of its session, in $XDG_STATE_HOME/klatch. */
export function resumePositionsPath(env: ChatContext['env'], name = DEFAULT_PROFILE_NAME): string {
  return join(xdgKlatchFolder(env['XDG_STATE_HOME'], '.local/state'), profileFileName(name));
}

/**
 * The profile that the last sign-in wrote. Throws ChatCommandError where nobody is signed in, or where others could
 * read it.
 */
export function loadProfile(path: string): Profile {
  const profile = decodeOrNull(decodeProfile, readProfileJson(path));
  if (profile !== null) return profile;
  throw new ChatCommandError('notConfigured', `${path} cannot be understood: sign in again`);
}

/** Whether somebody is signed in with this profile: its file exists. */
export function hasProfile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false }) !== undefined;
}

/** Writes a new session into a file that only this user can read. */
export function saveProfile(path: string, { server, token, account }: Omit<Profile, 'version' | 'sign_in'>): void {
  const profile: Profile = { version: 1, server, token, sign_in: randomUUID(), account };
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  // Creates a new file each time: the permissions of an existing file may let other users read it.
  const temporaryPath = `${path}.${process.pid}.new`;
  try {
    writeFileSync(temporaryPath, `${JSON.stringify(profile, null, 2)}\n`, { mode: 0o600, flag: 'wx' });
    renameSync(temporaryPath, path);
  } finally {
    rmSync(temporaryPath, { force: true });
  }
}

export function removeProfile(path: string): void {
  rmSync(path, { force: true });
}

function readProfileJson(path: string): unknown {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined) {
    throw new ChatCommandError(
      'notConfigured',
      'nobody is signed in: `klatch chat sign-in --server ADDRESS` does that',
    );
  }
  if ((found.mode & GROUP_AND_OTHERS_BITS) !== 0) {
    throw new ChatCommandError('notPermitted', `${path} holds a token and is open to others: chmod 600 ${path}`);
  }
  try {
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

function xdgKlatchFolder(base: string | undefined, fallbackInHome: string): string {
  // The specification of these variables tells programs to ignore a relative path.
  return join(base?.startsWith('/') === true ? base : join(homedir(), fallbackInHome), 'klatch');
}

function profileFileName(name: string): string {
  return name === DEFAULT_PROFILE_NAME ? 'chat.json' : `chat-${name}.json`;
}
