import { createHash, createHmac, pbkdf2Sync, randomBytes, timingSafeEqual } from 'node:crypto';

/**
 * PostgreSQL's default number of hash rounds. A password generated here has 192 random bits, to which more rounds would
 * add nothing.
 */
const SCRAM_ITERATIONS = 4_096;
/** A verifier from the server with more rounds than this is not compared: that would take seconds. */
const MAX_SCRAM_ITERATIONS = 1_000_000;
const SALT_BYTES = 16;
const PASSWORD_BYTES = 24;
const VERIFIER_PATTERN = /^SCRAM-SHA-256\$(\d{1,7}):([A-Za-z0-9+/=]+)\$([A-Za-z0-9+/=]+):([A-Za-z0-9+/=]+)$/;

/** A password of 32 random characters that are not special in URLs, shells, SQL and configuration files. */
export function createPassword(): string {
  return randomBytes(PASSWORD_BYTES).toString('base64url');
}

/**
 * The verifier that PostgreSQL stores for a password (RFC 5802 and 7677). If PostgreSQL gets the verifier, neither it
 * nor its log ever sees the password. The verifier holds no character that needs quoting.
 */
export function scramVerifier(password: string): string {
  const salt = randomBytes(SALT_BYTES);
  const { storedKey, serverKey } = deriveScramKeys(password, salt, SCRAM_ITERATIONS);
  return `SCRAM-SHA-256$${SCRAM_ITERATIONS}:${salt.toString('base64')}$${storedKey.toString('base64')}:${serverKey.toString('base64')}`;
}

/** Whether a password matches PostgreSQL's stored verifier; false for a verifier that this function cannot compare. */
export function matchesStoredPassword(stored: string | null, user: string, password: string): boolean {
  if (stored === null) return false;
  if (/^md5[0-9a-f]{32}$/.test(stored)) {
    return stored === `md5${createHash('md5').update(password).update(user).digest('hex')}`;
  }
  const [, rounds, salt, , serverKey] = VERIFIER_PATTERN.exec(stored) ?? [];
  const iterations = Number(rounds);
  if (salt === undefined || serverKey === undefined || iterations < 1 || iterations > MAX_SCRAM_ITERATIONS)
    return false;
  const expected = Buffer.from(serverKey, 'base64');
  const found = deriveScramKeys(password, Buffer.from(salt, 'base64'), iterations).serverKey;
  return expected.length === found.length && timingSafeEqual(expected, found);
}

function deriveScramKeys(password: string, salt: Buffer, iterations: number): { storedKey: Buffer; serverKey: Buffer } {
  const salted = pbkdf2Sync(password, salt, iterations, 32, 'sha256');
  const clientKey = createHmac('sha256', salted).update('Client Key').digest();
  const storedKey = createHash('sha256').update(clientKey).digest();
  return { storedKey, serverKey: createHmac('sha256', salted).update('Server Key').digest() };
}
