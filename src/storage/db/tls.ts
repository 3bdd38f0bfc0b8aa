import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import net from 'node:net';
import tls from 'node:tls';
import type { DatabaseTlsConfig } from '../../config/services.ts';
import { keyPathForMessage } from '../../config/key-path-for-message.ts';

/** The message that asks for TLS: its length, and a code in the place of the protocol version. */
const SSL_REQUEST = Buffer.from([0, 0, 0, 8, 4, 210, 22, 47]);
const TLS_ACCEPTED = 'S';
const TLS_REFUSED = 'N';

/**
 * Turns a connection to PostgreSQL into one with TLS, as libpq does: the server answers a request with one byte that
 * tells whether it supports TLS. Files are read each time, so that a certificate can be renewed while the server runs.
 */
export async function startTls(socket: net.Socket, host: string, config: DatabaseTlsConfig): Promise<tls.TLSSocket> {
  const options = readTlsOptions(config);
  socket.write(SSL_REQUEST);
  const [answer] = (await once(socket, 'data')) as [Buffer];
  const text = answer.toString('latin1');
  if (text === TLS_REFUSED) throw new Error('it does not offer TLS, which services.postgresql.tls demands');
  // Further bytes would count as if they had arrived encrypted: an attacker on the path has inserted them
  // (CVE-2021-23222).
  if (text !== TLS_ACCEPTED) throw new Error('it does not answer as PostgreSQL does when asked for TLS');
  const secured = tls.connect({
    socket,
    host,
    minVersion: 'TLSv1.2',
    rejectUnauthorized: config.mode === 'verify-full',
    ...(net.isIP(host) === 0 ? { servername: host } : {}),
    ...options,
  });
  await once(secured, 'secureConnect');
  return secured;
}

function readTlsOptions({ databaseCaFile, certificate, key }: DatabaseTlsConfig): tls.SecureContextOptions {
  return {
    ...(databaseCaFile === null ? {} : { ca: readPem(databaseCaFile) }),
    ...(certificate === null ? {} : { cert: readPem(certificate) }),
    ...(key === null ? {} : { key: readPem(key) }),
  };
}

function readPem(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    // The system's own message contains the path. An administrator may have written a key in the place of its path.
    const { code } = error as NodeJS.ErrnoException;
    throw new Error(`${keyPathForMessage(path)} cannot be read (${code})`, { cause: error });
  }
}
