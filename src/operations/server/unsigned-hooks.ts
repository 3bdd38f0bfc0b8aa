import { countServerKeySignedHooks, retryHooksLackingServerKey } from '../../storage/hooks/hooks.ts';
import type { Services } from '../core/services.ts';

/**
 * Called before deliveries start. With a server key, retries the hooks that waited for a key at once; they would be
 * retried within an hour otherwise. Without a server key, logs how many hooks ask for signatures that need one: nothing
 * is sent to them.
 */
export async function retryOrReportUnsignedHooks({ database, serverKeys, log }: Services): Promise<void> {
  if (serverKeys.length > 0) {
    const hookCount = await database.general.run(retryHooksLackingServerKey);
    if (hookCount > 0) log.info('hooks that waited for a server key are tried again', { hooks: hookCount });
    return;
  }
  const hookCount = await database.general.run(countServerKeySignedHooks);
  if (hookCount === 0) return;
  const advice = 'list the key again in modules.security.server-keys, or make one with "klatch keys generate"';
  log.error('hooks ask for v1a signatures, and there is no server key: nothing is sent to them', {
    hooks: hookCount,
    advice,
  });
}
