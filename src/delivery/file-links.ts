import { HOOK_LINK_TTL_MS, signFileLink } from '../files/signed-link.ts';
import type { CreateFileLink } from './payload.ts';

/**
 * Creates the function that makes the file URLs in deliveries to reverse webhooks. A URL is valid for some days, while
 * its message exists.
 */
export function createFileLinker(key: Buffer, baseUri: string): CreateFileLink {
  return (conversationId, { id, name }) => {
    const expiresAt = new Date(Date.now() + HOOK_LINK_TTL_MS);
    return signFileLink(key, baseUri, {
      file: { id, name },
      reader: { kind: 'conversation', id: conversationId },
      expiresAt,
    });
  };
}
