import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { run, step } from './run.ts';

/** The choice of the key that signs. */
export interface KeyChoice {
  /** $SIGNING_KEY: key files, or ids of keys in the caller's own GnuPG home; several with commas between. */
  readonly wanted: string | undefined;
  /**
   * The file with the passphrase of the key, $SIGNING_PASSPHRASE_FILE. Without it, gpg-agent asks for the passphrase.
   */
  readonly passphraseFile: string | undefined;
  /** The caller's GnuPG home, $GNUPGHOME; without it, gpg's own choice. */
  readonly gnupgHome: string | undefined;
  /** The file of the throw-away key, which signs when the caller names none. */
  readonly throwAwayFile: string;
}

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
const stayAlive = (): void => {};

/** The number of the algorithm RSA in OpenPGP. */
const RSA = '1';
const MIN_RSA_BITS = 2048;
/** The accepted hash algorithms SHA256, SHA384 and SHA512, by their numbers in OpenPGP. */
const HASHES = ['8', '9', '10'];
/**
 * The maximum number of attempts to remove the temporary GnuPG home. An attempt can fail because gpg-agent removes a
 * file at the same time; the agent has at most five such files.
 */
const REMOVAL_TRIES = 100;

/**
 * Signs the apt repository. It imports key files into a temporary GnuPG home, since a path in the source tree can be
 * too long for the socket of gpg-agent. It searches ids in the caller's home, and does not touch the agent of that
 * home. `close` stops the agent of the temporary home and removes the home.
 */
export class SigningKey {
  readonly #choice: KeyChoice;
  /** The GnuPG home in use; null: the caller's home. */
  #home: string | null = null;
  #ids: readonly string[] = [];

  constructor(choice: KeyChoice) {
    this.#choice = choice;
  }

  /** Whether the key was made for this build only, so that no client depends on its signatures. */
  get isThrowAway(): boolean {
    return !this.#choice.wanted;
  }

  /** Throws with a sentence when the key is not available. */
  open(): void {
    // Ctrl-C ends the running gpg, whose failure leads to `close`; Ctrl-C must not end this process before that.
    for (const signal of SIGNALS) process.on(signal, stayAlive);
    const parts = (this.#choice.wanted ?? '').split(',').map((part) => part.trim());
    const wanted = parts.filter((part) => part !== '');
    const files = this.isThrowAway ? [this.#choice.throwAwayFile] : wanted.filter((part) => existsSync(part));
    if (!this.isThrowAway && files.length === 0) {
      this.#ids = wanted.map((id) => this.#fingerprintsOf(id)[0]!);
      return;
    }
    if (!this.isThrowAway && files.length < wanted.length) {
      throw new Error('SIGNING_KEY: name key files only, or ids only');
    }
    this.#home = mkdtempSync(join(tmpdir(), `klatch-gpg-${process.pid}-`));
    if (this.isThrowAway && !existsSync(this.#choice.throwAwayFile)) this.#makeThrowAwayKey();
    for (const file of files) this.#gpg(['--import', file]);
    this.#ids = this.#fingerprintsOf();
  }

  /** Writes the public keys as one binary keyring, which gnupg 1.4 and apt 1.0 can read. */
  exportKeyring(file: string): void {
    this.#gpg(['--output', file, '--export-options', 'export-minimal', '--export', ...this.#ids]);
  }

  /** The fingerprints of the primary keys, in hexadecimal digits. */
  get fingerprints(): readonly string[] {
    return this.#ids;
  }

  /** The text with its signatures around it, as in InRelease. */
  clearSign(text: string): string {
    return this.#sign('--clear-sign', text);
  }

  /** The signatures alone, as in Release.gpg. */
  detachSign(text: string): string {
    return this.#sign('--detach-sign', text);
  }

  close(): void {
    for (const signal of SIGNALS) process.off(signal, stayAlive);
    if (this.#home === null) return;
    run('gpgconf', ['--homedir', this.#home, '--kill', 'all']);
    // The agent removes its sockets while it exits, and gpgconf does not wait for that. rmSync gives up without an
    // error when a file disappears while it reads the folder (Node 24).
    for (let tries = 0; existsSync(this.#home) && tries < REMOVAL_TRIES; tries += 1) {
      rmSync(this.#home, { recursive: true, force: true });
    }
    if (existsSync(this.#home)) throw new Error(`${this.#home} holds a secret key and cannot be removed: remove it`);
    this.#home = null;
  }

  #sign(how: string, text: string): string {
    const { passphraseFile } = this.#choice;
    const passphrase = passphraseFile ? ['--pinentry-mode', 'loopback', '--passphrase-file', passphraseFile] : [];
    const signers = this.#ids.flatMap((id) => ['--local-user', id]);
    return this.#gpg([...passphrase, '--digest-algo', 'SHA256', '--armor', ...signers, how], text);
  }

  #makeThrowAwayKey(): void {
    step('making a throw-away key: what it signs is for trying out (SIGNING_KEY names the real one)');
    const name = 'Klatch packages, throw-away key';
    this.#gpg([
      '--passphrase',
      '',
      '--cert-digest-algo',
      'SHA256',
      '--quick-generate-key',
      name,
      'rsa4096',
      'sign',
      'never',
    ]);
    const { throwAwayFile } = this.#choice;
    mkdirSync(dirname(throwAwayFile), { recursive: true });
    writeFileSync(throwAwayFile, this.#gpg(['--armor', '--export-secret-keys']), { mode: 0o600 });
  }

  #fingerprintsOf(...ids: readonly string[]): string[] {
    const lines = this.#list(ids).split('\n');
    // The line with a primary key's fingerprint follows the key's own line. The fingerprints of subkeys are not needed.
    const found = lines.filter((line, i) => line.startsWith('fpr:') && lines[i - 1]?.startsWith('sec:'));
    if (found.length === 0) throw new Error('SIGNING_KEY: the file holds no secret key');
    return found.map((line) => line.split(':')[9]!);
  }

  #list(ids: readonly string[]): string {
    try {
      return this.#gpg(['--with-colons', '--list-secret-keys', ...ids]);
    } catch (error) {
      throw new Error(`SIGNING_KEY: there is no secret key ${ids.join(', ')} in the GnuPG home`, { cause: error });
    }
  }

  #gpg(args: readonly string[], input?: string): string {
    const folder = this.#home ?? this.#choice.gnupgHome;
    const home = folder === undefined ? [] : ['--homedir', folder];
    const own = ['--batch', '--yes', '--quiet', '--no-tty', ...home];
    return run('gpg', [...own, ...args], { stdio: ['pipe', 'pipe', 'pipe'], input: input ?? '' });
  }
}

/**
 * Checks a file as the oldest client does: it needs a good RSA signature, over SHA-2, by a key of the keyring. Throws
 * with a sentence.
 */
export function checkSignature(keyringFile: string, signedFile: string): void {
  const said = run('gpgv', ['--status-fd', '1', '--keyring', keyringFile, signedFile]);
  const valid = said.split('\n').filter((line) => line.startsWith('[GNUPG:] VALIDSIG '));
  if (valid.length === 0) throw new Error(`${signedFile} has no valid signature`);
  for (const line of valid) {
    // The fields of the line: VALIDSIG fingerprint date time expiry version reserved key-algorithm hash-algorithm class
    // primary-fingerprint
    const [algorithm, hash] = line.split(' ').slice(8, 10);
    if (algorithm !== RSA || !HASHES.includes(hash!)) {
      throw new Error(
        'the key signs with something else than RSA and SHA-2, which Ubuntu 14.04 cannot verify: SIGNING_KEY',
      );
    }
  }
  if (keysOf(keyringFile).some(({ bits }) => bits < MIN_RSA_BITS)) {
    throw new Error(`the key has fewer than ${MIN_RSA_BITS} bits: today's apt refuses it`);
  }
}

/** The primary keys in a keyring of public keys: fingerprint in hexadecimal digits, and length in bits. */
export function keysOf(keyringFile: string): { fingerprint: string; bits: number }[] {
  // Uses a temporary GnuPG home: gpg would otherwise create one for the caller.
  const home = mkdtempSync(join(tmpdir(), `klatch-gpg-${process.pid}-`));
  try {
    const said = run('gpg', ['--homedir', home, '--batch', '--show-keys', '--with-colons', keyringFile]);
    const lines = said.split('\n').map((line) => line.split(':'));
    // The fingerprint is on the line after the line of its key.
    return lines.flatMap(([kind, , bits], i) =>
      kind === 'pub' ? [{ fingerprint: lines[i + 1]![9]!, bits: Number(bits) }] : [],
    );
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}
