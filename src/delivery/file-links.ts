import { HOOK_LINK_TTL_MS, signFileLink } from '../files/signed-link.ts';
import type { CreateFileLink } from './payload.ts';

/**
 * Makes the file addresses in deliveries to reverse webhooks. They are valid for some days, while the message exists.
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
