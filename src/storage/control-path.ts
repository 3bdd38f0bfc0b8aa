import { createHash } from 'node:crypto';
import { realpathSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** sockaddr_un holds 108 bytes, the last of which is the terminating zero. */
const MAX_BYTES = 107;

/**
 * The path of a data directory's control socket: inside it, or, where that is too long for a Unix socket, in a folder
 * named after it in `$XDG_RUNTIME_DIR`, else in the temporary folder. Server and command line come to the same path.
 */
export function controlSocketPath(dataDir: string, env: NodeJS.ProcessEnv = process.env): string {
  const inside = join(dataDir, 'control.sock');
  if (Buffer.byteLength(inside) <= MAX_BYTES) return inside;
  const runtime = env['XDG_RUNTIME_DIR'];
  const name = createHash('sha256').update(realpathSync(dataDir)).digest('hex').slice(0, 16);
  return join(runtime?.startsWith('/') === true ? runtime : tmpdir(), `klatch-control-${name}`, 'control.sock');
}
