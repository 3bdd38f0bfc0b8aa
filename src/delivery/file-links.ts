import { HOOK_LINK_TTL_MS, signFileLink } from '../files/signed-link.ts';
import type { CreateFileLink } from './payload.ts';

/** Makes the addresses of files that reverse webhooks are told: good for some days, as long as the message is there. */
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
